"""Grids of more CTAs than are resident at a time: what is known of CTAs that have ended."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from ptxgen.emulator.checks.order.remote_clocks import ClusterEpoch
from ptxgen.emulator.checks.order.vector_clock import VectorClock
from tests.support.harness import codes, launch

SCHEDULES: list[Any] = ["eager", "late", "random"]
HEAD = """
    .reg .pred %p, %q; .reg .u32 %t, %c, %n, %x, %y, %z; .reg .b64 %count, %data, %mine, %wide;
    mov.u32 %t, %tid.x;
    mov.u32 %c, %ctaid.x;
    mov.u32 %n, %nctaid.x;
    mov.u64 %count, %out0;
    mov.u64 %data, %out1;
    mad.wide.u32 %mine, %c, 4, %data;
    setp.ne.u32 %p, %t, 0;
    @%p bra end;
"""
#: Each CTA leaves its number; who takes the last ticket adds them up.
TICKET = """
    st.global.u32 [%mine], %c;
    RELEASE atom.global.add.u32 %x, [%count], 1;
    ACQUIRE
    sub.u32 %n, %n, 1;
    setp.ne.u32 %p, %x, %n;
    @%p bra end;
    mov.u32 %x, 0;
    mov.u32 %z, 0;
    add:
    mad.wide.u32 %wide, %z, 4, %data;
    ld.global.u32 %y, [%wide];
    add.u32 %x, %x, %y;
    add.u32 %z, %z, 1;
    setp.le.u32 %p, %z, %n;
    @%p bra add;
    st.global.u32 [%data], %x;
    end:
    ret;
"""
#: Each CTA waits for the one before, and takes what the first one has left.
CHAIN = """
    .reg .b64 %flag; mad.wide.u32 %flag, %c, 4, %count;
    setp.ne.u32 %q, %c, 0;
    @%q bra wait;
    st.global.u32 [%data], 42;
    bra give;
    wait:
    ld.acquire.gpu.global.u32 %x, [%flag+-4];
    setp.ne.u32 %q, %x, 1;
    @%q bra wait;
    ld.global.u32 %y, [%data];
    st.global.u32 [%mine], %y;
    give:
    GIVE.global.u32 [%flag], 1;
    end:
    ret;
"""


def run(body: str, grid: int, **options: Any) -> tuple[list[str], list[int]]:
    outputs = [np.zeros(grid, np.uint32), np.full(grid, 0xBAD, np.uint32)]
    report, (_, left) = launch(HEAD + body, outputs, block=64, grid=grid, multiprocessors=3, **options)
    assert report.status in ("ok", "findings"), report.summary()
    return codes(report), left.tolist()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_last_of_many_knows_all_that_have_ended(schedule: Any) -> None:
    text = TICKET.replace("RELEASE", "membar.gl;").replace("ACQUIRE", "membar.gl;")
    found, left = run(text, 40, schedule=schedule)
    assert (found, left) == ([], [sum(range(40)), *range(1, 40)])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_it_does_not_without_a_fence(schedule: Any) -> None:
    found, _ = run(TICKET.replace("RELEASE", "").replace("ACQUIRE", "membar.gl;"), 40, schedule=schedule)
    assert set(found) == {"missing-fence"}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_chain_of_ctas(schedule: Any) -> None:
    found, left = run(CHAIN.replace("GIVE", "st.release.gpu"), 30, schedule=schedule)
    assert (found, left) == ([], [42] * 30)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_chain_that_breaks(schedule: Any) -> None:
    """The CTA that takes from one which does not release knows nothing of the first, which has long ended."""
    broken = "setp.eq.u32 %q, %c, 20; @%q st.relaxed.gpu.global.u32 [%flag], 1; @!%q st.release.gpu"
    found, _ = run(CHAIN.replace("GIVE", broken), 23, schedule=schedule)
    assert found == ["missing-fence"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_strong_loads_see_what_an_ended_cta_has_released(schedule: Any) -> None:
    """CTA 0 gives volatile data and ends; CTA 3, in its place, tells CTA 1 that it is there, and nothing else."""
    body = """
    setp.eq.u32 %q, %c, 0;
    @%q bra give;
    setp.eq.u32 %q, %c, 1;
    @%q bra take;
    setp.eq.u32 %q, %c, 3;
    @%q bra tell;
    ret;
    give:
    st.volatile.global.u32 [%data], 7;
    st.release.gpu.global.u32 [%data+32], 1;
    ret;
    tell:
    st.relaxed.gpu.global.u32 [%data+64], 1;
    ret;
    take:
    ld.relaxed.gpu.global.u32 %x, [%data+64];
    setp.ne.u32 %p, %x, 1;
    @%p bra take;
    again:
    ld.acquire.gpu.global.u32 %x, [%data+32];
    setp.ne.u32 %p, %x, 1;
    @%p bra again;
    ld.volatile.global.u32 %y, [%data];
    st.global.u32 [%mine], %y;
    end:
    ret;
    """
    report, (left,) = launch(
        HEAD.replace("%out1", "%out0") + body, [np.zeros(32, np.uint32)], grid=4, multiprocessors=2, schedule=schedule
    )
    assert (report.status, codes(report)) == ("ok", [])
    assert left[1] == 7


def test_knowledge_of_clusters_against_plain_vector_clocks() -> None:
    """Warps of clusters that follow each other in three places tell each other at random."""
    rng, places, members = random.Random(5), 3, 2
    epochs: list[ClusterEpoch] = []
    #: By warp that lives: what it knows, and the same as a dictionary.
    alive: dict[tuple[int, int], tuple[VectorClock, dict[tuple[int, int], int]]] = {}

    def begin(place: int) -> None:
        epochs.append(ClusterEpoch.begin(len(epochs), place, places, shared=True))
        for member in range(members):
            for key in [key for key in alive if key[1] == member and epochs[key[0]].slot == place]:
                del alive[key]
            clocks = np.zeros(members, np.int64)
            clocks[member] = 1
            alive[len(epochs) - 1, member] = VectorClock(epochs[-1], clocks), {(len(epochs) - 1, member): 1}

    for place in range(places):
        begin(place)
    told: list[tuple[VectorClock, dict[tuple[int, int], int]]] = []
    asked = [0, 0]
    for _ in range(600):
        who = rng.choice(list(alive))
        known, reference = alive[who]
        what = rng.random()
        if what < 0.05:
            begin(rng.randrange(places))
        elif what < 0.5:
            told.append((known.copy(), dict(reference)))
            known.clocks[who[1]] += 1
            reference[who] += 1
        elif told:
            some = rng.choices(told[-8:], k=rng.randrange(1, 5))
            if len(some) == 1:
                known.join(some[0][0])
            else:
                known.join_all([given for given, _ in some])
            for key, clock in [each for _, had in some for each in had.items()]:
                reference[key] = max(reference.get(key, 0), clock)
        for _ in range(4):
            number, member = rng.randrange(len(epochs)), rng.randrange(members)
            has = reference.get((number, member), 0)
            clock = max(has + rng.choice((-1, 0, 0, 1)), 1)
            assert known.has_observed(epochs[number], member, clock) == (clock <= has)
            asked[clock <= has] += 1
    assert min(asked) > 300
    assert len(epochs) > 15
