"""docs/measurements.md: a recorder replaces its own section and nothing else."""

from __future__ import annotations

import pytest

from tools.measurements import REPORT, replace_section


@pytest.mark.parametrize("name", ["emulation", "reading", "values", "fuzz"])
def test_a_recorder_writes_its_own_section(name: str) -> None:
    page = REPORT.read_text()
    changed = replace_section(page, name, "new text")
    assert changed != page
    assert f"<!-- {name}: begin -->\nnew text\n<!-- {name}: end -->\n" in changed
    own = page[page.index(f"<!-- {name}: begin -->\n") :].partition(f"<!-- {name}: end -->\n")[0]
    old = own.removeprefix(f"<!-- {name}: begin -->\n")
    assert replace_section(changed, name, old) == page


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="emulation: begin"):
        replace_section("# Measurements\n", "emulation", "text")
