"""Lanes of one warp that go apart where they make strong accesses, under the schedule `random`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.harness import codes, launch

LANES = np.arange(32, dtype=np.uint32)
HEAD = """
    .reg .pred %p, %q; .reg .u32 %t, %a, %b, %x, %y; .reg .b64 %to; .shared .align 4 .b8 words[128];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %to, %t, 4, %out0;
    mov.u32 %a, words;
    mad.lo.u32 %a, %t, 4, %a;
    add.u32 %y, %t, 100;
    st.volatile.shared.u32 [%a], %y;
    bar.sync 0;
    setp.lt.u32 %p, %t, 16;
"""
#: Every lane takes its neighbor's word, then replaces its own.
TOGETHER = """
    xor.b32 %b, %a, 4;
    ld.volatile.shared.u32 %x, [%b];
    BETWEEN st.volatile.shared.u32 [%a], 7;
    st.global.u32 [%to], %x;
    ret;
"""
#: The first half takes words of the second, which then replaces them.
BRANCHED = """
    mov.u32 %x, %y;
    @!%p bra join;
    ld.volatile.shared.u32 %x, [%a+64];
    join:
    BETWEEN st.volatile.shared.u32 [%a], 7;
    st.global.u32 [%to], %x;
    ret;
"""
EXPECTED = {TOGETHER: (LANES ^ 1) + 100, BRANCHED: np.where(LANES < 16, LANES + 16, LANES) + 100}
SHARED_LANES = pytest.mark.parametrize("body", [TOGETHER, BRANCHED], ids=["together", "branched"])
SEEDS = range(6)


def run(body: str, between: str, **options: Any) -> Any:
    """What each lane has taken."""
    report, (taken,) = launch(HEAD + body.replace("BETWEEN", between), [np.full(32, 0xBAD, np.uint32)], **options)
    assert (report.status, codes(report)) == ("ok", []), report.summary()
    return taken


@SHARED_LANES
@pytest.mark.parametrize("between", ["bar.warp.sync -1;", "bar.sync 0;"])
def test_lanes_that_synchronize_take_what_was_there(body: str, between: str) -> None:
    for schedule in ("eager", "late"):
        assert np.array_equal(run(body, between, schedule=schedule), EXPECTED[body])
    for seed in SEEDS:
        assert np.array_equal(run(body, between, schedule="random", seed=seed), EXPECTED[body])


@SHARED_LANES
def test_lanes_that_do_not_may_find_it_replaced(body: str) -> None:
    assert np.array_equal(run(body, "", schedule="eager"), EXPECTED[body])
    for checks in (True, False):
        found = [run(body, "", schedule="random", seed=seed, checks=checks) for seed in SEEDS]
        assert any((each == 7).any() for each in found)
        assert all(((each == 7) | (each == EXPECTED[body])).all() for each in found)


def test_the_seed_says_which() -> None:
    first, again = (run(TOGETHER, "", schedule="random", seed=3) for _ in range(2))
    assert np.array_equal(first, again)


def test_collectives_wait_for_lanes_that_went_ahead() -> None:
    body = TOGETHER.replace("st.global", "shfl.sync.idx.b32 %x, %x, 5, 31, -1; st.global")
    for seed in SEEDS:
        assert np.array_equal(run(body, "bar.warp.sync -1;", schedule="random", seed=seed), np.full(32, 104))


def test_a_lock_of_lanes_is_taken_by_one_after_the_other() -> None:
    body = """
    .reg .u32 %lock;
    mov.u32 %lock, words;
    mov.u32 %b, 0;
    st.shared.u32 [%a], 0;
    bar.sync 0;
    again:
    atom.acquire.cta.shared.cas.b32 %x, [%lock], 0, 1;
    setp.ne.u32 %p, %x, 0;
    @%p bra next;
    ld.volatile.shared.u32 %b, [%lock+4];
    add.u32 %y, %b, 1;
    st.volatile.shared.u32 [%lock+4], %y;
    st.release.cta.shared.u32 [%lock], 0;
    st.global.u32 [%to], %b;
    ret;
    next: bra again;
    """
    for seed in SEEDS:
        taken = run(body, "", schedule="random", seed=seed)
        assert np.array_equal(np.sort(taken), LANES)


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_each_half_of_a_warp_has_a_barrier_of_its_own(schedule: Any) -> None:
    """Lanes of a mask wait for no others: a half that spins on what the other one stores does so behind its barrier."""
    body = """
    st.volatile.shared.u32 [%a], 0;
    bar.sync 0;
    @!%p bra high;
    bar.warp.sync 0x0000FFFF;
    st.volatile.shared.u32 [%a], 5;
    bra join;
    high:
    bar.warp.sync 0xFFFF0000;
    wait:
    ld.volatile.shared.u32 %x, [%a+-64];
    setp.ne.u32 %q, %x, 5;
    @%q bra wait;
    join:
    bar.warp.sync -1;
    ld.volatile.shared.u32 %x, [words+60];
    st.global.u32 [%to], %x;
    ret;
    """
    for seed in SEEDS:
        assert np.array_equal(run(body, "", schedule=schedule, seed=seed), np.full(32, 5))


def test_a_lane_of_the_mask_that_never_comes() -> None:
    body = "@%p bra low; bar.warp.sync -1; bra end; low: shfl.sync.idx.b32 %x, %t, 0, 31, -1; end: ret;"
    report, _ = launch(HEAD + body, [np.zeros(32, np.uint32)])
    assert report.status == "deadlock"
    assert "bar.warp.sync" in report.summary()


def test_a_mask_that_does_not_name_who_comes() -> None:
    report, _ = launch(HEAD + "bar.warp.sync 0xFFFF; ret;", [np.zeros(32, np.uint32)])
    assert codes(report) == ["warp-mask"]


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("meet", ["bar.sync 0;", "bar.warp.sync -1;", "shfl.sync.idx.b32 %y, %t, 0, 31, -1;"])
def test_lanes_meet_again_after_loops_of_different_lengths(meet: str, schedule: Any) -> None:
    """However long nothing happens in memory meanwhile: those who are done do not come to the next round's barrier."""
    body = f"""
    .reg .u32 %round, %i, %n;
    mov.u32 %round, 0;
    mul.lo.u32 %n, %t, 40;
    mov.u32 %x, 0;
    again: {meet} mov.u32 %i, 0;
    inner:
    add.u32 %x, %x, %i;
    add.u32 %i, %i, 1;
    setp.le.u32 %p, %i, %n;
    @%p bra inner;
    add.u32 %round, %round, 1;
    setp.lt.u32 %p, %round, 2;
    @%p bra again;
    st.global.u32 [%to], %x;
    ret;
    """
    n = LANES.astype(np.uint64) * 40
    assert np.array_equal(run(body, "", schedule=schedule, seed=1), n * (n + 1))


#: Each lane takes a lock in shared memory in turn, counts, and gives it back; then comes __syncthreads.
LOCKED = """
    .reg .pred %p, %first; .reg .b32 %t, %x, %y; .reg .b64 %to;
    .shared .align 4 .b32 lock; .shared .align 4 .b32 count;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    @%first st.shared.u32 [lock], 0;
    @%first st.shared.u32 [count], 0;
    bar.sync 0;
LOCK:
    atom.acquire.cta.shared.cas.b32 %x, [lock], 0, 1;
    setp.ne.u32 %p, %x, 0;
    @%p bra LOCK;
    ld.relaxed.cta.shared.u32 %y, [count];
    add.u32 %y, %y, 1;
    st.relaxed.cta.shared.u32 [count], %y;
    UNLOCK
    bar.sync 0;
    ld.shared.u32 %y, [count];
    mad.wide.u32 %to, %t, 4, %out0;
    st.global.u32 [%to], %y;
    ret;
"""


@pytest.mark.one_in(3)
@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(
    "unlock", ["st.release.cta.shared.u32 [lock], 0;", "atom.release.cta.shared.exch.b32 %x, [lock], 0;"]
)
def test_a_barrier_of_the_cta_comes_after_a_lock_of_lanes(unlock: str, schedule: Any) -> None:
    """The holder gives the lock back before it waits at the barrier, where the warp is whole again."""
    report, (counts,) = launch(
        LOCKED.replace("UNLOCK", unlock), [np.full(64, 0xBAD, np.uint32)], block=64, schedule=schedule
    )
    assert (report.status, codes(report)) == ("ok", []), report.summary()
    assert np.array_equal(counts, np.full(64, 64))
