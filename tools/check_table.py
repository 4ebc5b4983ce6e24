"""Write the table of checks in docs/emulator.md again, between its two markers: `python -m tools.check_table`."""

from __future__ import annotations

from pathlib import Path

from ptxgen.cli.reference.checks import table
from ptxgen.emulator.checks.registry import CHECKS

PAGE = Path(__file__).parents[1] / "docs" / "emulator.md"
BEGIN, END = "<!-- table of checks, by make docs -->\n", "<!-- end of the table -->\n"


def renewed(page: str) -> str:
    """The page with the table as the declarations have it."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table(CHECKS.values())}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
