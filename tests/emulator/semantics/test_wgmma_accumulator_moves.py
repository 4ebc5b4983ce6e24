"""Accumulators that are copied before wgmma.wait_group: compilers do it with .f16 ones, and ptxas waits then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen.emulator import Emulator
from tests.support.wgmma_kernel import IMAGE, Operand, registers
from tests.support.wgmma_kernel import WAIT as WAIT_GROUP
from tests.support.wgmma_kernel import run as run_products
from tools.recorded.case import SCHEDULES, load

CASE = load("t36_90_product_f16_sum16")
WAIT = "wgmma.wait_group.sync.aligned 0;"
IN_FLIGHT = "wgmma-register-in-flight"
A, B = Operand("k", "none", 0, 128, 256, 16), Operand("k", "none", 4096, 128, 256, 16)


def run(schedule: Any, text: str) -> tuple[list[tuple[str, str, str]], bool]:
    outcome = CASE.run(Emulator(CASE.target, schedule), text)
    found = [(each.code, each.severity, each.message) for each in outcome.report.findings]
    return found, not outcome.wrong


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_copies_hold_the_result(schedule: Any) -> None:
    found, right = run(schedule, CASE.text)
    assert right
    assert found == []  # ptxas waits at the first use of a copy, not at the mov


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_copies_are_not_to_be_used_before_the_wait(schedule: Any) -> None:
    assert CASE.text.count(WAIT) == 1
    found, _ = run(schedule, CASE.text.replace(WAIT, "add.s16 %rs50, %rs50, 1;\n" + WAIT))
    assert any(each[:2] == (IN_FLIGHT, "error") and "copy" in each[2] for each in found)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_no_wait_at_all(schedule: Any) -> None:
    found, _ = run(schedule, CASE.text.replace(WAIT, ""))
    assert IN_FLIGHT in {code for code, severity, _ in found if severity == "error"}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_copies_hold_the_result_where_nothing_is_checked(schedule: Any) -> None:
    outcome = CASE.run(Emulator(CASE.target, schedule, checks=False))
    assert outcome.right, outcome.report.summary()


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_products_go_on_with_copies(schedule: Any, *, checks: bool) -> None:
    """nvcc moves an accumulator to the registers with which the next product goes on, or to local memory, before the
    group is committed; ptxas then waits (its messages C7517 and C7520).
    """
    image = np.zeros(IMAGE, np.uint8)
    image[:16384].view(np.float16)[:] = 1
    product = f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{}}, {A.descriptor}, {B.descriptor}, %p, 1, 1, 0, 0;"
    moves = "".join(f"mov.b32 %d{4 + i}, %d{i};" for i in range(4))
    body = ".local .b32 kept[4]; setp.eq.u32 %p, %t, %t; wgmma.fence.sync.aligned;" + product.format(registers(4))
    body += moves + product.format(registers(4, 4))
    body += "".join(f"st.local.b32 [kept+{4 * i}], %d{4 + i};" for i in range(4)) + WAIT_GROUP
    body += "".join(f"ld.local.b32 %d{4 + i}, [kept+{4 * i}];" for i in range(4))
    done = run_products(body, 8, image, schedule=schedule, checks=checks)
    assert done.report.status == "ok", done.report.summary()
    assert {each.code for each in done.report.findings} == ({IN_FLIGHT} if checks else set())
    assert (done.words[:, 4:].view(np.float32) == 32).all()
