"""Write the recorded looks of docs/terminal.md again, each between its two markers: `python -m tools.terminal_page`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "terminal.md"
COLUMNS = 30
LOOKS = {
    "report": ("run", "hopper-1", "--m", "64", "--n", "128", "--k", "64"),
    "descriptor": ("explain", "wgmma", "0x4000004000010000"),
}


def look(name: str) -> str:
    """What a terminal of 30 columns shows, without times."""
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "ptxgen", *LOOKS[name]]
    made = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=True)
    return made.stdout.partition("\ntime\n")[0].rstrip()


def recorded(page: str, name: str) -> str:
    """What a page has between the markers of a look."""
    return re.findall(rf"<!-- {name}: begin -->\n(.*?)<!-- {name}: end -->", page, re.DOTALL)[0]


def fenced(shown: str) -> str:
    return f"```\n{shown}\n```\n"


def main() -> None:
    """Write the page."""
    page = PAGE.read_text(encoding="utf-8")
    for name in LOOKS:
        head, foot = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
        page = page.replace(head + recorded(page, name) + foot, head + fenced(look(name)) + foot)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
