"""PTX that compilers wrote is legal: `check` finds no error, and says of what it does not know that it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxgen import check
from ptxgen.instr import UNDECLARED, load_all, undeclared
from ptxgen.instr.form import REGISTRY

FILES = sorted((Path(__file__).parent.parent / "data" / "ptx").glob("*.ptx"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_error_in_compiler_output(path: Path) -> None:
    found = check(path.read_text())
    assert [str(each) for each in found if each.severity == "error"] == []
    assert {each.code for each in found} <= {"not-declared", "address-width"}


@pytest.mark.parametrize(
    ("opcode", "known"),
    [
        ("tcgen05.mma.cta_group::1.kind::f17", False),
        ("cp.async.bulk.tensor.6d.shared::cta.global", False),
        ("add.u33", False),
    ],
)
def test_undeclared_forms_are_told_from_misspelt_ones(opcode: str, known: bool) -> None:
    assert undeclared(opcode) is known


def test_the_table_of_undeclared_forms_names_declared_opcodes() -> None:
    """An opcode that ptxgen does not know at all needs no entry."""
    load_all()
    assert {key.split(".")[0] for key in UNDECLARED} <= REGISTRY.keys() | {"cp"}
