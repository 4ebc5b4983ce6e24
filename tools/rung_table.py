"""Write the tables of rungs in docs/kernels.md again, between their markers: `python -m tools.rung_table`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from ptxgen.builder import KERNELS_FOLDER
from ptxgen.gemm import GemmPlan, kernels
from ptxgen.toolchain import assemble

PAGE = Path(__file__).parents[1] / "docs" / "kernels.md"
BEGIN, END = "<!-- table of rungs, by make docs -->\n", "<!-- end of the table -->\n"
MAPS_BEGIN, MAPS_END = "<!-- maps of tensor memory, by make docs -->\n", "<!-- end of the maps -->\n"
_HEAD = """\
| id | kernel | lines of its entry | of its template | of its PTX | registers | shared memory | TMEM columns |
|---|---|---:|---:|---:|---:|---:|---:|
"""


def entry_lines() -> dict[str, int]:
    """Lines of each rung's entry in its ladder.toml."""
    found: dict[str, int] = {}
    for path in KERNELS_FOLDER.glob("*/ladder.toml"):
        for entry in re.split(r"^(?=\[\[rung\]\])", path.read_text(), flags=re.MULTILINE)[1:]:
            own = re.split(r"^\[templates|^#", entry, flags=re.MULTILINE)[0].strip()
            name = re.search(r'^name = "(.*)"$', own, re.MULTILINE)
            assert name is not None
            found[name[1]] = len(own.splitlines())
    return found


def table(registers: Callable[[str, GemmPlan], int | str]) -> str:
    """The table; `registers` gives those of a thread by name and plan."""
    return _HEAD + "".join(f"| {' | '.join(map(str, row))} |\n" for row in _rows(registers))


def _rows(registers: Callable[[str, GemmPlan], int | str]) -> Iterator[tuple[object, ...]]:
    lines = entry_lines()
    for name, entry in kernels().items():
        plan = entry.plan()
        text = plan.text
        template = len((KERNELS_FOLDER / entry.template.name).read_text().splitlines())
        written = f"{len(text.splitlines())} ({len(text.encode()) / 1000:.1f} kB)"
        columns = plan.accumulator.columns or "-"
        yield (
            ", ".join(entry.rungs), f"`{name}`", lines[name], template, written, registers(name, plan),
            plan.shared.bytes, columns,
        )  # fmt: skip


def maps() -> str:
    """The columns of tensor memory of the block-scaled kernels."""
    head = "| id | kernel | accumulators | shared | SFA | SFB |\n|---|---|---|---:|---|---|\n"
    rows: list[str] = []
    for name, entry in kernels().items():
        regions = entry.plan().accumulator.regions
        if len(entry.plan().scales) == 2:
            spans = [f"{each.first}-{each.first + each.columns - 1}" for each in regions]
            shared = str(entry.plan().config.overlap or "-")
            row = [", ".join(entry.rungs), f"`{name}`", ", ".join(spans[:-2]), shared, *spans[-2:]]
            rows.append(f"| {' | '.join(row)} |\n")
    return head + "".join(rows)


def registers_shown(page: str) -> dict[str, str]:
    """The registers of each kernel that a page has in its table."""
    cells = (line.split(" | ") for line in page.splitlines() if line.startswith("| ") and " | `" in line)
    return {row[1].strip("`"): row[5] for row in cells if len(row) == 8}


def renewed(page: str, registers: Callable[[str, GemmPlan], int | str]) -> str:
    """The page with the tables as the ladders have them."""
    for begin, end, made in ((BEGIN, END, table(registers)), (MAPS_BEGIN, MAPS_END, maps())):
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}{made}{end}{after}"
    return page


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(), lambda _, plan: assemble(plan.text).registers))
