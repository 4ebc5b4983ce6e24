"""Programmatic dependent launch: griddepcontrol with launches that overlap (PTX ISA 9.7.13.13)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.device import Launch, LaunchReport
from ptxgen.emulator import Emulator
from tests.support.harness import codes, module

SCHEDULES = [("eager", 0), ("late", 0), *(("random", seed) for seed in range(3))]
N = 96
HEAD = """
    .reg .pred %p; .reg .b32 %t, %v, %i, %n; .reg .b64 %a, %b, %from, %to;
    ld.param.u64 %a, [a];
    ld.param.u64 %b, [b];
    mov.u32 %t, %ctaid.x;
    mov.u32 %i, %ntid.x;
    mov.u32 %v, %tid.x;
    mad.lo.u32 %t, %t, %i, %v; mad.wide.u32 %from, %t, 4, %a; mad.wide.u32 %to, %t, 4, %b;
"""
#: Lets the next grid begin, works for a while, and only then stores 3 t + 1.
FIRST = """
    {release} mov.u32 %i, 0;
    work:
    add.u32 %i, %i, 1;
    st.global.u32 [%from], %i;
    setp.lt.u32 %p, %i, 50;
    @%p bra work;
    mad.lo.u32 %v, %t, 3, 1;
    st.global.u32 [%from], %v;
    ret;
"""
#: Adds 5 to what the first one stored.
SECOND = "{wait} ld.global.u32 %v, [%from]; add.u32 %v, %v, 5; {then} st.global.u32 [%to], %v; ret;"
RELEASE, WAIT = "griddepcontrol.launch_dependents;", "griddepcontrol.wait;"


def kernel(body: str) -> Kernel:
    return Kernel.from_ptx(module(HEAD + body, ".param .u64 a, .param .u64 b"))


def run(
    *bodies: str, schedule: Any = "eager", seed: int = 0, **options: Any
) -> tuple[list[LaunchReport], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The kernels with the same arrays a and b, 3 CTAs of 32 threads each."""
    emulator = Emulator(schedule=schedule, seed=seed, **options)
    a, b = (emulator.array(np.full(N, 0xCDCDCDCD, np.uint32)) for _ in range(2))
    reports = emulator.launch_overlapping([Launch(kernel(body), 3, 32, [a, b]) for body in bodies])
    return reports, a.numpy(), b.numpy()


@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
@pytest.mark.parametrize("release", [RELEASE, ""])
@pytest.mark.parametrize("slots", [1, 3])
def test_waiting_makes_the_grid_before_visible(schedule: Any, seed: int, release: str, slots: int) -> None:
    reports, first, second = run(
        FIRST.format(release=release),
        SECOND.format(wait=WAIT, then=""),
        schedule=schedule,
        seed=seed,
        multiprocessors=slots,
    )
    assert [(each.status, codes(each)) for each in reports] == [("ok", [])] * 2, reports[1].summary()
    assert (first == 3 * np.arange(N) + 1).all()
    assert (second == first + 5).all()


@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
def test_reading_without_waiting(schedule: Any, seed: int) -> None:
    """A finding whatever the schedule, and as late as legal the wrong values too."""
    reports, first, second = run(
        FIRST.format(release=RELEASE), SECOND.format(wait="", then=""), schedule=schedule, seed=seed
    )
    assert {code for each in reports for code in codes(each)} == {"grid-race"}
    assert (first == 3 * np.arange(N) + 1).all()
    if schedule == "eager":
        assert (second == first + 5).all()
    elif schedule == "late":
        assert (second != first + 5).any()


@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
def test_one_thread_waits_for_its_cta(schedule: Any, seed: int) -> None:
    """A predicate diverges no warp: all its threads arrive at the barrier together, after the wait."""
    wait = "setp.eq.u32 %p, %v, 0; @%p griddepcontrol.wait; bar.sync 0;"
    reports, first, second = run(
        FIRST.format(release=RELEASE), SECOND.format(wait=wait, then=""), schedule=schedule, seed=seed
    )
    assert [(each.status, codes(each)) for each in reports] == [("ok", [])] * 2, reports[1].summary()
    assert (second == first + 5).all()


@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
def test_storing_over_what_the_grid_before_reads(schedule: Any, seed: int) -> None:
    reads = f"{RELEASE} ld.global.u32 %v, [%from]; st.global.u32 [%to], %v; ret;"
    for wait, found in (("", {"grid-race"}), (WAIT, set())):
        reports, _, _ = run(reads, f"{wait} st.global.u32 [%from], %t; ret;", schedule=schedule, seed=seed)
        assert {code for each in reports for code in codes(each)} == found, wait


#: Copies 64 bytes of a to shared memory, and stores them to b.
COPY = """
    .shared .align 16 .b8 tile[64];
    .shared .align 8 .b64 bar;
    .reg .pred %q;
    setp.ne.u32 %q, %t, 0;
    @%q bra end;
    mbarrier.init.shared::cta.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
    {wait} mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%a], 64, [bar];
    there:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra there;
    cp.async.bulk.global.shared::cta.bulk_group [%b], [tile], 64;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    end:
    ret;
"""


@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
def test_copies_without_waiting(schedule: Any, seed: int) -> None:
    for wait, found in (("", {"grid-race"}), (WAIT, set())):
        for first in (
            FIRST.format(release=RELEASE),
            RELEASE + "ld.global.u32 %v, [%to]; ret;",
            RELEASE + COPY.format(wait=""),
        ):
            reports, _, _ = run(first, COPY.format(wait=wait), schedule=schedule, seed=seed)
            assert {code for each in reports for code in codes(each)} == found, (wait, first)


def test_without_a_release_the_next_grid_begins_after_the_end() -> None:
    reports, first, second = run(FIRST.format(release=""), SECOND.format(wait="", then=""), schedule="late")
    assert [(each.status, codes(each)) for each in reports] == [("ok", [])] * 2
    assert (second == first + 5).all()


@pytest.mark.parametrize(("schedule", "overlap"), [("eager", False), ("late", True)])
def test_the_grid_begins_before_the_end_of_the_one_before(schedule: Any, overlap: bool) -> None:
    """The first grid sees what the second stored before it waits, with strong accesses."""
    first = f"""{RELEASE} mov.u32 %i, 0;
        work:
        add.u32 %i, %i, 1;
        ld.relaxed.gpu.global.u32 %v, [%to];
        setp.lt.u32 %p, %i, 90;
        @%p bra work;
        st.global.u32 [%from], %v;
        ret;
        """
    second = f"st.relaxed.gpu.global.u32 [%to], 7; {WAIT} ret;"
    reports, seen, _ = run(first, second, schedule=schedule)
    assert [(each.status, codes(each)) for each in reports] == [("ok", [])] * 2
    assert (seen == (7 if overlap else 0xCDCDCDCD)).all()


@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
def test_a_chain_of_three(schedule: Any, seed: int) -> None:
    second = SECOND.format(wait=WAIT, then=RELEASE)
    third = (
        f"{WAIT} ld.global.u32 %v, [%to]; ld.global.u32 %i, [%from]; add.u32 %v, %v, %i; st.global.u32 [%to], %v; ret;"
    )
    reports, first, last = run(FIRST.format(release=RELEASE), second, third, schedule=schedule, seed=seed)
    assert [(each.status, codes(each)) for each in reports] == [("ok", [])] * 3, [each.summary() for each in reports]
    assert (last == 2 * first + 5).all()


SPIN = "spin: ld.volatile.global.u32 %v, [%to]; setp.ne.u32 %p, %v, 9; @%p bra spin; ret;"


def test_a_grid_that_waits_for_the_one_before_by_memory() -> None:
    """The second goes round until the first, which has released it, stores what it looks for."""
    first = f"{RELEASE} mov.u32 %i, 0; work: add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 900; @%p bra work; "
    reports, _, _ = run(first + "st.volatile.global.u32 [%to], 9; ret;", SPIN, schedule="late")
    assert [each.status for each in reports] == ["ok", "ok"], [each.summary() for each in reports]


def test_what_never_ends() -> None:
    reports, _, _ = run(RELEASE + SPIN, WAIT + "ret;", schedule="late")
    assert [each.status for each in reports] == ["deadlock", "deadlock"]
    assert "the end of the grids before" in reports[1].findings[-1].message


@pytest.mark.parametrize("schedule", ["eager", "late"])
def test_after_a_fault_nothing_runs(schedule: Any) -> None:
    reports, _, found = run(f"{RELEASE} trap; ret;", SECOND.format(wait=WAIT, then=""), schedule=schedule)
    assert [each.status for each in reports] == ["fault", "incomplete"]
    assert codes(reports[1]) == ["not-run"]
    assert (found == 0xCDCDCDCD).all()


def test_an_illegal_kernel_in_a_stream() -> None:
    emulator = Emulator()
    a = emulator.empty(N, np.uint32)
    bad = Kernel.from_ptx(module("mov.b64 %t, 1; ret;", ".param .u64 a, .param .u64 b"))
    reports = emulator.launch_overlapping([Launch(kernel("ret;"), 1, 32, [a, a]), Launch(bad, 1, 32, [a, a])])
    assert [(each.status, codes(each)[0]) for each in reports] == [("incomplete", "not-run"), ("fault", "illegal-ptx")]
