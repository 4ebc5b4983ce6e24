"""The coverage table counts what is declared, certified and emulated."""

from __future__ import annotations

import pytest

from ptxgen import coverage
from ptxgen.emulator.semantics import LEFT_OUT, missing, reason
from ptxgen.instr.logic import shl, shr
from ptxgen.instr.model import certified
from ptxgen.instr.model.form import REGISTRY
from ptxgen.silicon import OTHERS
from tests.support.paths import DOCS


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
    assert (row.certified, row.forms, row.assemblies, row.neighbors, row.excused, row.ptxas) == (
        1,
        3,
        30,
        300,
        5,
        "13.5",
    )


def test_every_declaration_of_tcgen05_has_a_witness_or_none() -> None:
    (row,) = (row for row in coverage.coverage() if row.family == "tcgen05")
    assert len(row.silicon) == row.declarations
    assert OTHERS.keys() <= row.silicon.keys()
    assert row.silicon["tcgen05.shift"] == row.silicon["tcgen05.cp"] == row.silicon["tcgen05.mma"] == "others"
    assert row.silicon["tcgen05.mma_ws_sp_ts"] == "none"
    assert row.witnessed == len(OTHERS)
    assert not any(other.silicon for other in coverage.coverage() if other.family != "tcgen05")
    assert "| tcgen05.mma_ws_ts | none |  |" in coverage.page(coverage.coverage())


def test_an_answer_of_ours_counts_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "microtested", lambda: {"tcgen05.mma_ws_ts": (3, 1)})
    (row,) = (row for row in coverage.coverage() if row.family == "tcgen05")
    assert row.silicon["tcgen05.mma_ws_ts"] == "ours"


def test_the_page_is_fresh() -> None:
    written = (DOCS / "coverage.md").read_text()
    assert written == coverage.page(coverage.coverage()), "run `make docs`"


def test_what_is_not_emulated_has_a_reason() -> None:
    assert [key for key in missing() if reason(key) is None] == []
    unused = [each for each in LEFT_OUT if not any(key == each or key.startswith(f"{each}.") for key in missing())]
    assert unused == []


def test_every_certificate_is_of_the_present_declarations() -> None:
    stale = [
        form.form.key
        for forms in REGISTRY.values()
        for form in forms
        if (known := certified.certificates().get(form.form.key)) is None or known.digest != certified.digest(form)
    ]
    assert stale == [], "run `make certify`"
