"""docs/measurements.md: sections that each command of measurement writes on its own."""

from __future__ import annotations

from pathlib import Path

REPORT = Path(__file__).parents[1] / "docs" / "measurements.md"


def replace_section(page: str, name: str, text: str) -> str:
    """The page with the text of one marked section replaced. Raises ValueError where the page lacks its marks."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise ValueError(f"the page must have one section between {begin.strip()} and {end.strip()}")
    head, _, rest = page.partition(begin)
    return head + begin + text.strip("\n") + "\n" + end + rest.partition(end)[2]


def record(name: str, text: str) -> None:
    """Write one section."""
    REPORT.write_text(replace_section(REPORT.read_text(), name, text))
