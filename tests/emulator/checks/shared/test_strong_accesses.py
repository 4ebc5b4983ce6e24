"""Strong accesses to shared memory against copies, products' operands and memory that nothing has written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.device import LaunchReport
from ptxgen.emulator import Emulator
from tests.support.harness import codes, module

SCHEDULES: list[Any] = ["eager", "late", "random"]
#: A bulk copy fills `data`, BODY comes after BEFORE, by all threads; then memory may be copied back.
COPIED = """
    .shared .align 128 .b32 data[32];
    .shared .align 8 .b64 bar;
    .reg .pred %p, %q; .reg .u32 %t, %x, %at; .reg .b64 %in;
    ld.param.u64 %in, [in];
    mov.u32 %t, %tid.x;
    setp.eq.u32 %p, %t, 0;
    shl.b32 %at, %t, 2;
    mov.u32 %x, data;
    add.u32 %at, %at, %x;
    @%p mbarrier.init.shared::cta.b64 [bar], 1;
    @%p fence.mbarrier_init.release.cluster;
    bar.sync 0;
    @!%p bra begun;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [data], [%in], 128, [bar];
    begun: bar.warp.sync -1;
    BEFORE
    BODY
    AFTER
    ret;
"""
WAIT = "w: mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0; @!%q bra w;"
BACK = """
    fence.proxy.async;
    bar.sync 0;
    @!%p bra over;
    cp.async.bulk.global.shared::cta.bulk_group [%in], [data], 128;
    over: bar.warp.sync -1; MIDDLE
    @!%p bra done;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
    done:
"""
ACCESSES = {
    "volatile load": "ld.volatile.shared.u32 %x, [%at];",
    "acquiring load": "ld.acquire.cta.shared.u32 %x, [%at];",
    "volatile store": "st.volatile.shared.u32 [%at], %t;",
    "atomic operation": "atom.shared.add.u32 %x, [%at], 1;",
    "reduction": "red.shared.max.u32 [%at], 77;",
}
WRITES = [name for name in ACCESSES if "load" not in name]


def run(body: str, schedule: Any, **options: Any) -> LaunchReport:
    device = Emulator("sm_90a", schedule=schedule)
    data = device.array(np.random.default_rng(3).integers(0, 2**32, 32, np.uint32))
    kernel = Kernel.from_ptx(module(body, ".param .u64 in", target="sm_90a"))
    return device.launch(kernel, 1, 32, [data], **options)


def copied(access: str, before: str = "", after: str = "") -> str:
    return COPIED.replace("BODY", access).replace("BEFORE", before).replace("AFTER", after)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("access", ACCESSES.values(), ids=ACCESSES)
def test_before_a_copy_is_over(access: str, schedule: Any) -> None:
    report = run(copied(access, after=WAIT), schedule)
    assert codes(report) == ["shared-race"], report.summary()
    assert "while cp.async.bulk of line" in report.findings[0].message
    report = run(copied(access, before=WAIT), schedule)
    assert codes(report) == [], report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("access", ACCESSES)
def test_while_a_copy_reads(access: str, schedule: Any) -> None:
    text = copied("", before=WAIT, after=BACK)
    report = run(text.replace("MIDDLE", ACCESSES[access]), schedule)
    assert codes(report) == (["shared-race"] if access in WRITES else []), report.summary()
    report = run(text.replace("MIDDLE", "") + "", schedule)
    assert codes(report) == [], report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("access", ACCESSES.values(), ids=ACCESSES)
def test_before_a_copy_of_the_same_thread_is_over(access: str, schedule: Any) -> None:
    text = """
        .shared .align 128 .b32 data[32]; .reg .u32 %t, %x, %at; .reg .b64 %in, %from;
        ld.param.u64 %in, [in];
        mov.u32 %t, %tid.x;
        mul.wide.u32 %from, %t, 4;
        add.u64 %from, %from, %in;
        shl.b32 %at, %t, 2;
        mov.u32 %x, data;
        add.u32 %at, %at, %x;
        cp.async.ca.shared.global [%at], [%from], 4;
        BEFORE BODY cp.async.wait_all;
        ret;
    """
    report = run(text.replace("BODY", access).replace("BEFORE", ""), schedule)
    assert set(codes(report)) == {"shared-race"}, report.summary()
    assert "while cp.async" in report.findings[0].message
    assert [each.role for each in report.findings[0].accesses][1] == "writer"
    report = run(text.replace("BODY", access).replace("BEFORE", "cp.async.wait_all;"), schedule)
    assert codes(report) == [], report.summary()


#: Where TOUCHED has been written or not.
BARE = """
    .shared .align 16 .b32 data[32]; .reg .u32 %t, %x, %at;
    mov.u32 %t, %tid.x;
    shl.b32 %at, %t, 2;
    mov.u32 %x, data;
    add.u32 %at, %at, %x;
    TOUCHED BODY ret;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("access", ACCESSES)
def test_memory_that_nothing_has_written(access: str, schedule: Any) -> None:
    report = run(BARE.replace("BODY", ACCESSES[access]).replace("TOUCHED", ""), schedule)
    expected = set() if access == "volatile store" else {"uninitialized-shared"}
    assert set(codes(report)) == expected, report.summary()  # under `random` lanes are told apart
    report = run(BARE.replace("BODY", ACCESSES[access]).replace("TOUCHED", "st.shared.u32 [%at], 1;"), schedule)
    assert codes(report) == [], report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_exchange_writes_first(schedule: Any) -> None:
    """An atomic exchange may be a store whose result nobody reads."""
    report = run(BARE.replace("BODY", "atom.shared.exch.b32 _, [%at], %t;").replace("TOUCHED", ""), schedule)
    assert codes(report) == [], report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_mbarrier_overwritten(schedule: Any) -> None:
    body = """
        .shared .align 8 .b64 bar;
        .reg .u32 %x;
        mbarrier.init.shared::cta.b64 [bar], 32;
        bar.warp.sync -1;
        INVAL bar.warp.sync -1;
        atom.shared.exch.b32 %x, [bar], 0;
        ret;
    """
    report = run(body.replace("INVAL", ""), schedule)
    assert "mbarrier-overwritten" in codes(report), report.summary()
