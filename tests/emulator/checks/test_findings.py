"""How findings fold: one for what many warps and lines do wrong in the same way; without checks none of theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.device.report import Severity
from ptxgen.emulator import Emulator
from ptxgen.emulator.checks.findings import Findings, line_list
from ptxgen.emulator.checks.registry import Check, mbarriers, races
from ptxgen.syntax import Statement
from tests.support.harness import codes, module
from tests.support.tensor_kernel import FIRST, IMAGE, READ, THREADS, WAIT, source

#: Statements in lines of their own.
STATEMENTS = Kernel.from_ptx(module("\nret;" * 120)).entry.body.statements  # type: ignore[union-attr]
RACE = "the load reads data of the store of line 9 by {}, with which its warp has not synchronized"


def report(
    findings: Findings,
    check: Check,
    summary: str,
    statement: Statement,
    *,
    severity: Severity | None = None,
    ends: bool = False,
) -> None:
    findings.report(check, statement, summary=summary, rule="", fix="", severity=severity, ends=ends)


def test_warps_fold() -> None:
    findings = Findings()
    for _ in range(2):
        for warp in ("warp 3", "warp 5 of the CTA of rank 1", "warp 5"):
            report(findings, races.SHARED_RACE, RACE.format(warp), STATEMENTS[0])
    (found,) = findings.list()
    assert found.message == f"race: {RACE.format('warp 3')}. (the same of 2 other warps)"
    assert (found.line, found.instruction) == (STATEMENTS[0].line, "ret;")
    one = Findings()
    for warp in (0, 1):
        report(one, races.SHARED_RACE, RACE.format(f"warp {warp}"), STATEMENTS[0])
    assert one.list()[0].message.endswith(" (the same of 1 other warp)")


def test_what_stays_apart() -> None:
    """Another line, code, severity, or another word than the warp; and what the launch ended with."""
    findings = Findings()
    report(findings, races.SHARED_RACE, RACE.format("warp 0"), STATEMENTS[0])
    report(findings, races.SHARED_RACE, RACE.format("warp 1"), STATEMENTS[1])
    report(findings, races.MISSING_FENCE, RACE.format("warp 2"), STATEMENTS[0])
    report(findings, races.SHARED_RACE, RACE.format("warp 3"), STATEMENTS[0], severity="advice")
    report(findings, races.SHARED_RACE, RACE.format("warp 4 of another CTA"), STATEMENTS[0])
    report(findings, races.SHARED_RACE, RACE.format("lane 4 of warp 0"), STATEMENTS[0])
    assert not any("the same" in each.message for each in findings.list())
    assert len(findings.list()) == 6
    for warp in (0, 1):
        report(findings, mbarriers.DEADLOCK, f"warp {warp} stays", STATEMENTS[0], ends=True)
    assert [each.code for each in findings.list()][:3] == ["deadlock", "deadlock", "shared-race"]


def test_lines_fold() -> None:
    findings = Findings()
    lines = [each.line for each in STATEMENTS]
    report(findings, races.SHARED_RACE, RACE.format("warp 0"), STATEMENTS[0])
    report(findings, races.SHARED_RACE, RACE.format("warp 0"), STATEMENTS[1])
    assert findings.list()[0].message.endswith(f" (so does line {lines[1]})")
    for statement in STATEMENTS[2:101]:
        report(findings, races.SHARED_RACE, RACE.format("warp 0"), statement)
    shown = ", ".join(map(str, lines[1:9]))
    assert findings.list()[0].message.endswith(f" (so do lines {shown} and 92 more)")
    report(findings, races.SHARED_RACE, RACE.format("warp 1"), STATEMENTS[50])  # a line for which the finding stands
    (found,) = findings.list()
    assert (
        found.message == f"race: {RACE.format('warp 0')}. (so do lines {shown} and 92 more) (the same of 1 other warp)"
    )


def test_lists_of_lines() -> None:
    assert line_list([4]) == "line 4"
    assert line_list([7, 4, 4]) == "lines 4, 7"
    assert line_list(range(1, 9)) == "lines 1, 2, 3, 4, 5, 6, 7, 8"
    assert line_list(range(1, 10)) == "lines 1, 2, 3, 4, 5, 6, 7, 8 and 1 more"


def test_the_limit_counts_what_is_folded_once() -> None:
    findings = Findings()
    for line in (3, 4):
        for warp in range(30):
            report(findings, races.SHARED_RACE, f"reads what line {line} stores by warp {warp}", STATEMENTS[line])
    assert len(findings.list()) == 2
    for line in range(40):
        report(findings, races.SHARED_RACE, f"reads what line {line} loads", STATEMENTS[0])
    assert len(findings.list()) == 20


@pytest.mark.parametrize("checks", [True, False])
def test_without_checks_there_are_none_of_their_findings(checks: bool) -> None:
    """A register of a load that nobody has waited for, and columns that are never freed; its value is there."""
    text = source(FIRST + WAIT + READ.replace("tcgen05.wait::ld.sync.aligned;", ""))
    emulator = Emulator(checks=checks)
    image = np.random.default_rng(4).integers(0, 64, IMAGE, dtype=np.uint8)
    arguments: list[Any] = [emulator.array(image), emulator.empty(1, np.uint32)]
    report = emulator.launch(Kernel.from_ptx(text), 1, THREADS, arguments)
    assert (report.status, codes(report)) == ("ok", ["missing-tcgen05-wait"] if checks else []), report.summary()
    report = emulator.launch(Kernel.from_ptx(module("trap;")), 1, 32, [])
    assert (report.status, codes(report)) == ("fault", ["trap"])


def test_a_deadlock_has_its_reason_without_checks() -> None:
    body = """.shared .b64 bar;
.reg .pred %p;
mbarrier.init.shared.b64 [bar], 1;
    mbarrier.init.shared.b64 [bar], 1;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;
    L:
    mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
    @!%p bra L;
    ret;
    """
    report = Emulator(checks=False).launch(Kernel.from_ptx(module(body)), 1, 1, [])
    assert (report.status, codes(report)) == ("deadlock", ["expect-tx", "deadlock"]), report.summary()


def test_much_advice_hides_no_error() -> None:
    findings = Findings()
    for number in range(30):
        report(findings, races.SHARED_RACE, f"advice {number}", STATEMENTS[number], severity="advice")
    report(findings, races.SHARED_RACE, "an error", STATEMENTS[40])
    assert findings.errors
    assert sorted(each.severity for each in findings.list()) == ["advice"] * 20 + ["error"]
