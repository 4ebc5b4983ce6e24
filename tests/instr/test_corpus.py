"""PTX that compilers wrote is legal: `check` finds no error."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxgen import check
from tools.recorded.files import compiled

FILES = compiled()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_error_in_compiler_output(path: Path) -> None:
    found = check(path.read_text())
    assert [str(each) for each in found if each.severity == "error"] == []
    assert {each.code for each in found} <= {"address-width"}
