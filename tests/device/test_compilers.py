"""Advice that compilers cause, which summaries count in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxgen.device import Finding, LaunchReport
from ptxgen.device.compilers import COMPILERS, compiler_of
from ptxgen.emulator.checks.registry import CHECKS

WITNESSES = Path(__file__).parents[1] / "data" / "witnesses"


@pytest.mark.parametrize(
    ("prefix", "name"), [("t39", "Triton"), ("g39", "Triton"), ("t36", "Triton"), ("c48", "CuTe DSL")]
)
def test_recorded_modules_are_recognized(prefix: str, name: str) -> None:
    """All but those without shared memory, of which nothing tells whose they are."""
    files = sorted(WITNESSES.glob(f"{prefix}_*.ptx"))[:12]
    found = [compiler_of(path.read_text()) for path in files if ".shared" in path.read_text()]
    assert {each.name if each is not None else "" for each in found} == {name}


@pytest.mark.parametrize("prefix", ["m12", "n30", "l19"])
def test_others_are_not(prefix: str) -> None:
    assert all(compiler_of(path.read_text()) is None for path in WITNESSES.glob(f"{prefix}_*.ptx"))


def test_mosaic_gpu() -> None:
    found = compiler_of(".shared .align 16 .b8 __dynamic_shmem__0;")
    assert found is not None
    assert found.name == "Mosaic GPU"


def test_codes_are_those_of_checks() -> None:
    assert {code for each in COMPILERS for code in each.accepts} <= CHECKS.keys()


def test_a_summary_counts_them_in_one_line() -> None:
    findings = [
        Finding("missing-tcgen05-fence", "advice", "a"),
        Finding("missing-tcgen05-fence", "advice", "b"),
        Finding("bank-conflicts", "advice", "c"),
        Finding("shared-race", "advice", "d"),
        Finding("shared-race", "error", "e"),
    ]
    report = LaunchReport("findings", findings, compiler=COMPILERS[0])
    text = report.summary()
    assert "missing-tcgen05-fence 2 times, shared-race" in text
    assert [each.summary for each in report.compiler_made] == ["a", "b", "d"]
    assert [line for line in text.splitlines() if line.endswith((" a", " b", " d"))] == []
    assert len(report.summary(consequences=True).splitlines()) == 6
    assert len(LaunchReport("findings", findings).summary().splitlines()) == 6
