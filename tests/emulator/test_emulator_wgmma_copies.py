"""Accumulators that are copied before wgmma.wait_group: compilers do it with .f16 ones, and ptxas waits then."""

from __future__ import annotations

from typing import Any

import pytest

from ptxgen.emulator import Emulator
from tools.cases import SCHEDULES, load

CASE = load("t36_90_product_f16_sum16")
WAIT = "wgmma.wait_group.sync.aligned 0;"
IN_FLIGHT = "wgmma-register-in-flight"


def run(schedule: Any, text: str) -> tuple[list[tuple[str, str, str]], bool]:
    outcome = CASE.run(Emulator(CASE.target, schedule), text)
    found = [(each.code, each.severity, each.message.partition(" of ")[0]) for each in outcome.report.findings]
    return found, not outcome.wrong


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_copies_hold_the_result(schedule: Any) -> None:
    found, right = run(schedule, CASE.text)
    assert right
    assert found == [(IN_FLIGHT, "advice", "copies the accumulator")] * 2


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_copies_hold_the_result_without_checks(schedule: Any) -> None:
    outcome = CASE.run(Emulator(CASE.target, schedule, checks=False))
    assert not outcome.wrong


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_copies_are_not_to_be_used_before_the_wait(schedule: Any) -> None:
    assert CASE.text.count(WAIT) == 1
    found, _ = run(schedule, CASE.text.replace(WAIT, "add.s16 %rs50, %rs50, 1;\n" + WAIT))
    assert (IN_FLIGHT, "error", "reads a register that holds a copy") in found


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_no_wait_at_all(schedule: Any) -> None:
    found, _ = run(schedule, CASE.text.replace(WAIT, ""))
    assert IN_FLIGHT in {code for code, severity, _ in found if severity == "error"}
