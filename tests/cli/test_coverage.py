"""The coverage table counts what is declared, certified and emulated."""

from __future__ import annotations

import pytest

from ptxgen import coverage
from ptxgen.instr import certified
from ptxgen.instr.form import REGISTRY
from ptxgen.instr.logic import shl, shr


def test_every_declaration_is_counted_once() -> None:
    rows = coverage.coverage()
    assert sum(row.declarations for row in rows) == sum(map(len, REGISTRY.values()))
    for row in rows:
        assert row.emulated + len(row.missing) == row.declarations
        assert row.certified <= row.declarations


def test_a_certificate_of_another_text_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def certificate(form: type, digest: str) -> certified.Certificate:
        return certified.Certificate(form.form.key, digest, 3, 30, 300, 5, 0, "13.5", "2026-11-20")

    made = [certificate(shl, certified.digest(shl)), certificate(shr, "old")]
    monkeypatch.setattr(coverage, "certificates", lambda: {each.key: each for each in made})
    (row,) = (row for row in coverage.coverage() if row.family == "logic")
    assert (row.certified, row.forms, row.assemblies, row.neighbours, row.excused, row.ptxas) == (
        1,
        3,
        30,
        300,
        5,
        "13.5",
    )
