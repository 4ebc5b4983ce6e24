"""Stale values that strong loads return where nothing orders a store before them, and how kernels exclude them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.harness import codes, errors, launch

SCHEDULES: list[Any] = ["eager", "late", "random"]
OLD, NEW = 0x0BAD0BAD, 7
#: %data and %flag are words of the first output, %mine a word of the second for each CTA.
HEAD = """
    .reg .pred %p, %q; .reg .u32 %t, %c, %x, %y, %z; .reg .b64 %data, %flag, %other, %mine, %wide;
    mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u64 %data, %out0; add.u64 %flag, %out0, 128;
    add.u64 %other, %out0, 64; mad.wide.u32 %mine, %c, 4, %out1;
"""
#: CTA 0 gives: data, then a flag. CTA 1 takes: the flag, then the data.
PASSING = """
    setp.ne.u32 %p, %t, 0; @%p bra end; setp.ne.u32 %q, %c, 0; @%q bra take;
    st.volatile.global.u32 [%data], 7; GIVE bra end;
    take: TAKE setp.ne.u32 %p, %x, 1; @%p bra take; AFTER ld.volatile.global.u32 %y, [%data]; st.global.u32 [%mine], %y;
    end: ret;
"""
RIGHT = {
    "membar": ("membar.gl; st.volatile.global.u32 [%flag], 1;", "ld.volatile.global.u32 %x, [%flag];", "membar.gl;"),
    "release and acquire": (
        "st.release.gpu.global.u32 [%flag], 1;", "ld.acquire.gpu.global.u32 %x, [%flag];", "",
    ),
    "fences and relaxed": (
        "fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%flag], 1;", "ld.relaxed.gpu.global.u32 %x, [%flag];",
        "fence.acq_rel.gpu;",
    ),
    "atomics": (
        "membar.gl; atom.global.exch.b32 %x, [%flag], 1;", "atom.global.cas.b32 %x, [%flag], 1, 1;", "membar.gl;",
    ),
}  # fmt: skip
WRONG = {
    "no release": (RIGHT["membar"][0].removeprefix("membar.gl;"), *RIGHT["membar"][1:]),
    "no acquire": (*RIGHT["membar"][:2], ""),
    "relaxed store": (
        "st.relaxed.gpu.global.u32 [%flag], 1;",
        *RIGHT["release and acquire"][1:],
    ),
    "relaxed load": (*RIGHT["release and acquire"][:1], "ld.relaxed.gpu.global.u32 %x, [%flag];", ""),
    "fence of the CTA": (RIGHT["membar"][0].replace("membar.gl", "membar.cta"), *RIGHT["membar"][1:]),
    "acquire of the CTA": (*RIGHT["membar"][:2], "membar.cta;"),
    "unfenced swap": (*RIGHT["atomics"][:2], ""),
}


def run(body: str, *, block: int = 32, grid: int = 2, **options: Any) -> Any:
    """What each CTA leaves in its word."""
    words = np.zeros(64, np.uint32)
    words[[0, 16]] = OLD
    report, (_, given) = launch(HEAD + body, [words, np.full(grid, 99, np.uint32)], block=block, grid=grid, **options)
    assert (report.status, codes(report)) == ("ok", []), report.summary()
    return given.tolist()


def passing(give: str, take: str, after: str) -> str:
    return PASSING.replace("GIVE", give).replace("TAKE", take).replace("AFTER", after)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("parts", RIGHT.values(), ids=RIGHT)
def test_ordered_stores_are_seen(parts: tuple[str, str, str], schedule: Any) -> None:
    for seed in range(4):
        assert run(passing(*parts), schedule=schedule, seed=seed)[1] == NEW


@pytest.mark.parametrize("parts", WRONG.values(), ids=WRONG)
def test_stores_that_nothing_orders_are_missed(parts: tuple[str, str, str]) -> None:
    assert run(passing(*parts), schedule="late")[1] == OLD
    assert run(passing(*parts), schedule="eager")[1] == OLD
    assert run(passing(*parts), schedule="late", checks=False)[1] == NEW
    assert {run(passing(*parts), schedule="random", seed=seed)[1] for seed in range(12)} == {OLD, NEW}


#: CTA 1 adds up what CTA 0 has stored, in a loop that no load decides; compilers unroll such loops.
SUM = """
    setp.ne.u32 %p, %t, 0; @%p bra end; setp.ne.u32 %q, %c, 0; @%q bra take;
    st.volatile.global.u32 [%data], 1; st.volatile.global.u32 [%data+4], 1; st.volatile.global.u32 [%data+8], 1;
    st.volatile.global.u32 [%data+12], 1; FENCE st.volatile.global.u32 [%flag], 1; bra end;
    take: ld.volatile.global.u32 %x, [%flag]; setp.ne.u32 %p, %x, 1; @%p bra take; FENCE
    mov.u32 %z, 0; mov.u32 %y, 0;
    more: ld.volatile.global.u32 %x, [%data]; add.u32 %z, %z, %x;
    ld.volatile.global.u32 %x, [%data+4]; add.u32 %z, %z, %x;
    add.u64 %data, %data, 8; add.u32 %y, %y, 1; setp.lt.u32 %p, %y, 2; @%p bra more; st.global.u32 [%mine], %z;
    end: ret;
"""


#: CTA 0 stores an array, then a flag; CTA 1 loads it.
ARRAY = """
    mad.wide.u32 %data, %t, 4, %data; setp.ne.u32 %q, %c, 0; @%q bra take; st.volatile.global.u32 [%data], 7;
    FENCE bar.sync 0; st.volatile.global.u32 [%flag+64], 1; bra end;
    take: ld.volatile.global.u32 %x, [%flag+64]; setp.ne.u32 %p, %x, 1; @%p bra take; bar.sync 0; FENCE
    ld.volatile.global.u32 %y, [%data]; mad.wide.u32 %mine, %t, 4, %out1; st.global.u32 [%mine], %y;
    end: ret;
"""


@pytest.mark.parametrize("schedule", ["eager", "late"])
def test_an_array_that_a_cta_hands_to_another(schedule: Any) -> None:
    words = np.zeros(64, np.uint32)
    for fence, value in (("membar.gl;", 7), ("", 0)):
        body = HEAD + ARRAY.replace("FENCE", fence)
        report, (_, given) = launch(body, [words, np.full(32, 99, np.uint32)], block=32, grid=2, schedule=schedule)
        assert report.status == "ok", report.summary()
        assert set(given.tolist()) == {value}


@pytest.mark.parametrize("schedule", ["eager", "late"])
def test_a_loop_that_adds_up_what_it_loads(schedule: Any) -> None:
    words = np.zeros(64, np.uint32)
    for fence, total in (("membar.gl;", 4), ("", 0)):
        body = HEAD + SUM.replace("FENCE", fence)
        report, (_, given) = launch(body, [words, np.full(2, 99, np.uint32)], block=32, grid=2, schedule=schedule)
        assert (report.status, given[1]) == ("ok", total), report.summary()


def test_what_has_been_read_stays_read() -> None:
    """8.10.5, and 8.9.4: also for who knows of another's read."""
    twice = (
        "l: ld.volatile.global.u32 %y, [%data]; setp.ne.u32 %p, %y, 7; @%p bra l; ld.volatile.global.u32 %z, [%data];"
    )
    body = f"""
        setp.ne.u32 %p, %t, 0; @%p bra end; setp.eq.u32 %q, %c, 1; @%q bra middle; setp.eq.u32 %q, %c, 2; @%q bra last;
        st.volatile.global.u32 [%data], 7; bra end;
        middle: {twice} st.global.u32 [%mine], %z; GIVE bra end;
        last: ld.acquire.gpu.global.u32 %x, [%flag]; setp.ne.u32 %p, %x, 1; @%p bra last;
        ld.relaxed.gpu.global.u32 %y, [%data]; st.global.u32 [%mine], %y; end: ret;
    """
    released = body.replace("GIVE", "st.release.gpu.global.u32 [%flag], 1;")
    assert run(released, grid=3, schedule="late")[1:] == [NEW, NEW]
    unordered = body.replace("GIVE", "st.relaxed.gpu.global.u32 [%flag], 1;")
    assert run(unordered, grid=3, schedule="late")[1:] == [NEW, OLD]


def test_fences_have_an_order() -> None:
    """8.10.6, store buffering: of two that store, fence .sc and load, one sees the other's store."""
    body = """
        setp.ne.u32 %p, %t, 0; @%p bra end; setp.ne.u32 %q, %c, 0; @%q mov.u64 %wide, %data; @%q mov.u64 %data, %other;
        @%q mov.u64 %other, %wide;
        st.volatile.global.u32 [%data], 7; FENCE ld.volatile.global.u32 %y, [%other];
        st.global.u32 [%mine], %y; end: ret;
    """
    for schedule in ("late", "random"):
        for seed in range(4):
            for fence in ("fence.sc.gpu;", "membar.gl;"):
                assert NEW in run(body.replace("FENCE", fence), schedule=schedule, seed=seed)
    for fence in ("", "fence.acq_rel.gpu;", "fence.sc.cta;"):
        assert run(body.replace("FENCE", fence), schedule="late") == [OLD, OLD]


def test_fences_order_what_others_have_learnt() -> None:
    """A barrier passes on what a fence .sc has put before it."""
    body = """
        setp.eq.u32 %p, %c, 0; setp.eq.u32 %q, %c, 1; setp.lt.and.u32 %q, %t, 32, %q;
        @%p st.volatile.global.u32 [%data], 7; @%p membar.gl; @%q FENCE bar.sync 0;
        ld.volatile.global.u32 %y, [%data]; setp.eq.u32 %p, %t, 32; @%p st.global.u32 [%mine], %y; ret;
    """
    for fence, seen in (("fence.sc.gpu;", NEW), ("membar.gl;", NEW), ("membar.cta;", OLD), ("fence.acq_rel.gpu;", OLD)):
        assert run(body.replace("FENCE", fence), block=64, schedule="late")[1] == seen


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_barriers_order_strong_accesses(schedule: Any) -> None:
    """Also after a flag that nobody has acquired: CUDA's samples end so."""
    body = """
        setp.lt.u32 %p, %t, 32; @%p st.volatile.global.u32 [%data], 7; bar.sync 0; ld.volatile.global.u32 %y, [%data];
        setp.eq.u32 %p, %t, 40; @%p st.global.u32 [%mine], %y; ret;
    """
    assert run(body, block=64, grid=1, schedule=schedule) == [NEW]
    flag = """
        setp.ne.u32 %q, %c, 0; @%q bra take; setp.ne.u32 %p, %t, 0; @%p bra end;
        st.volatile.global.u32 [%data], 7; membar.gl; st.volatile.global.u32 [%flag], 1; bra end;
        take: setp.ne.u32 %p, %t, 0; @%p bra meet;
        wait: ld.volatile.global.u32 %x, [%flag]; setp.ne.u32 %p, %x, 1; @%p bra wait;
        meet: barrier.sync 0; ld.volatile.global.u32 %y, [%data]; setp.eq.u32 %p, %t, 32; @%p st.global.u32 [%mine], %y;
        end: ret;
    """
    for seed in range(4):
        assert run(flag, block=64, schedule=schedule, seed=seed)[1] == NEW


def test_own_stores_are_seen() -> None:
    body = "st.volatile.global.u32 [%mine], 1; ld.volatile.global.u32 %y, [%mine]; st.global.u32 [%mine], %y; ret;"
    assert run(body, schedule="late") == [1, 1]


def test_words_of_several_sizes_are_left_alone() -> None:
    """Of bytes that accesses of different sizes share, nothing older is read."""
    parts = WRONG["no acquire"]
    body = passing(*parts).replace("st.volatile.global.u32 [%data], 7;", "st.volatile.global.v2.u32 [%data], {7, 8};")
    assert run(body, schedule="late")[1] == NEW
    pair = body.replace("ld.volatile.global.u32 %y, [%data]", "ld.volatile.global.v2.u32 {%y, %z}, [%data]")
    assert run(pair, schedule="late")[1] == OLD


#: Each lane stores to its own word and loads that of the next lane.
NEIGHBOURS = """
    and.b32 %x, %t, 31; add.u32 %y, %x, 1; and.b32 %y, %y, 31; mov.u64 %wide, BASE;
    mad.wide.u32 %data, %x, 4, %wide; mad.wide.u32 %other, %y, 4, %wide;
    st.volatile.SPACE.u32 [%data], 0; bar.warp.sync -1;
    add.u32 %x, %x, 100; st.volatile.SPACE.u32 [%data], %x; BETWEEN ld.volatile.SPACE.u32 %y, [%other];
    mad.wide.u32 %mine, %t, 4, %out1; st.global.u32 [%mine], %y; ret;
"""
SPACES = {"global": "%out0", "shared": "room"}


def neighbors(space: str, between: str, **options: Any) -> Any:
    body = NEIGHBOURS.replace("SPACE", space).replace("BASE", SPACES[space]).replace("BETWEEN", between)
    head = ".shared .align 16 .b32 room[32];" + HEAD
    outputs = [np.zeros(64, np.uint32), np.full(32, 99, np.uint32)]
    report, (_, given) = launch(head + body, outputs, **options)
    assert (report.status, codes(report)) == ("ok", []), report.summary()
    return given


@pytest.mark.parametrize("space", SPACES)
def test_lanes_of_a_warp(space: str) -> None:
    """Volatile does not take the place of bar.warp.sync (9.7.13.2)."""
    new = np.roll(np.arange(100, 132), -1)
    for schedule in SCHEDULES:
        for seed in range(3):
            assert (neighbors(space, "bar.warp.sync -1;", schedule=schedule, seed=seed) == new).all()
    for between in ("", "shfl.sync.idx.b32 %z, %x, 0, 31, -1;"):
        assert (neighbors(space, between, schedule="late") == 0).all()
    assert (neighbors(space, "", schedule="eager") == new).all()
    found = neighbors(space, "", schedule="random")
    assert (found == 0).any()
    assert (found == new).any()


def test_lanes_that_know_each_other() -> None:
    """A lane that has stored or read the newer value, or has acquired what the other has released, reads it."""
    body = """
        setp.eq.u32 %p, %t, 0; setp.eq.u32 %q, %t, 1; @%p st.volatile.global.u32 [%data], 7; BETWEEN
        ld.volatile.global.u32 %y, [%data]; @%q st.global.u32 [%mine], %y; ret;
    """
    flag = "@%p st.release.gpu.global.u32 [%flag], 1; @%q ld.acquire.gpu.global.u32 %x, [%flag];"
    again = "ld.volatile.global.u32 %z, [%data];"
    for between, seen in (
        ("", OLD), (again, NEW), ("@%q st.volatile.global.u32 [%data], 7;", NEW),
        (flag + flag.split("; ")[1].replace("%x", "%z"), NEW), ("membar.gl;", NEW),
    ):  # fmt: skip
        assert run(body.replace("BETWEEN", between), grid=1, schedule="late") == [seen], between


def test_the_report_says_which_loads_found_stale_values() -> None:
    """The load is in the line after the store."""
    words, left = np.zeros(64, np.uint32), np.zeros(2, np.uint32)
    for schedule, expected in (("eager", 1), ("late", 1)):
        report, _ = launch(HEAD + passing(*WRONG["no acquire"]), [words, left], grid=2, schedule=schedule)
        assert len(report.stale_values) == expected
        for each in report.stale_values:
            assert (each.line - each.store_line, each.times) == (1, 2)  # of the flag, and of the data
            assert (
                str(each) == f"line {each.line} found what was there before the store of line {each.line - 1}, 2 times"
            )


#: Three warps store and arrive, the fourth polls and reads what all have stored. One word is the counter, [out1].
ARRIVALS = """
    .reg .b32 %t, %warp, %lane, %x, %bit, %sum, %i;
    .reg .b64 %to, %at;
    .reg .pred %first, %last, %done, %more;
    mov.u32 %t, %tid.x;
    shr.u32 %warp, %t, 5;
    and.b32 %lane, %t, 31;
    setp.eq.u32 %first, %lane, 0;
    setp.eq.u32 %last, %warp, 3;
    mov.u32 %bit, 1;
    shl.b32 %bit, %bit, %warp;
    mul.wide.u32 %to, %warp, 4;
    add.u64 %to, %to, %out0;
    @!%first ret;
    @%last bra WAIT;
    st.global.u32 [%to], %t;
    ARRIVE
    ret;
WAIT:
    POLL
    @!%done bra WAIT;
    mov.u32 %i, 0;
    mov.u32 %sum, 0;
    mov.b64 %at, %out0;
AGAIN:
    ld.global.u32 %x, [%at];
    add.u32 %sum, %sum, %x;
    add.u64 %at, %at, 4;
    add.u32 %i, %i, 1;
    setp.lt.u32 %more, %i, 3;
    @%more bra AGAIN;
    st.global.u32 [%out0+16], %sum;
    ret;
"""
ADD = "atom.add.release.gpu.global.u32 %x, [%out1], 1;"
OR = "atom.or.release.gpu.global.b32 %x, [%out1], %bit;"
EXCHANGE = "atom.exch.release.gpu.global.b32 %x, [%out1], 1;"
LOAD = "ld.acquire.gpu.global.u32 %x, [%out1];"
UNTIL = "setp.ge.u32 %done, %x, {};"
#: (arrival, poll of too few signals, poll of all)
TOO_FEW = {
    "counter polled by add of 0": (ADD, "atom.add.acquire.gpu.global.u32 %x, [%out1], 0;" + UNTIL, 2, 3),
    "counter polled by or of 0": (ADD, "atom.or.acquire.gpu.global.b32 %x, [%out1], 0;" + UNTIL, 2, 3),
    "counter polled by a compare-and-swap": (
        ADD, "atom.cas.acquire.gpu.global.b32 %x, [%out1], 77, 78;" + UNTIL, 2, 3,
    ),
    "counter polled by a load": (ADD, LOAD + UNTIL, 2, 3),
    "bits polled by a load": (OR, LOAD + UNTIL, 1, 7),
    "bits polled by add of 0": (OR, "atom.add.acquire.gpu.global.u32 %x, [%out1], 0;" + UNTIL, 1, 7),
    "bits polled by maximum": (OR, "atom.max.acquire.gpu.global.u32 %x, [%out1], 0;" + UNTIL, 1, 7),
    "equal values exchanged": (
        EXCHANGE, "atom.cas.acquire.gpu.global.b32 %x, [%out1], 1, 1;" + UNTIL, 1, None,
    ),
    "equal values exchanged, polled by a load": (EXCHANGE, LOAD + UNTIL, 1, None),
}  # fmt: skip


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("case", TOO_FEW)
def test_too_few_signals(case: str, schedule: Any) -> None:
    arrive, poll, few, enough = TOO_FEW[case]
    reported = []
    for seed in range(4 if schedule == "random" else 1):
        text = ARRIVALS.replace("ARRIVE", arrive).replace("POLL", poll.format(few))
        outputs = [np.zeros(8, np.uint32), np.zeros(1, np.uint32)]
        report, _ = launch(text, outputs, block=128, schedule=schedule, seed=seed)
        reported.append("global-race" in errors(report))
        if enough is not None:
            text = ARRIVALS.replace("ARRIVE", arrive).replace("POLL", poll.format(enough))
            outputs = [np.zeros(8, np.uint32), np.zeros(1, np.uint32)]
            report, (found, _) = launch(text, outputs, block=128, schedule=schedule, seed=seed)
            assert (report.status, codes(report), found[4]) == ("ok", [], 96), report.summary()
    assert all(reported), reported


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("left", [1, 0])
def test_a_flag_left_by_the_launch_before(left: int, schedule: Any) -> None:
    """The word is 1 from the start: the poll may pass before anything is stored."""
    only = "@%last bra WAIT; setp.ne.u32 %more, %warp, 1; @%more ret;"
    text = ARRIVALS.replace("@%last bra WAIT;", only).replace("POLL", LOAD + "setp.eq.u32 %done, %x, 1;")
    text = text.replace("ARRIVE", "st.release.gpu.global.u32 [%out1], 1;")
    found = set[str]()
    for seed in range(4 if schedule == "random" else 1):
        outputs = [np.zeros(8, np.uint32), np.full(1, left, np.uint32)]
        found.update(errors(launch(text, outputs, block=128, schedule=schedule, seed=seed)[0]))
    assert found == ({"global-race"} if left else set())


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_locks_by_exchange_stay_exclusive(schedule: Any) -> None:
    """An exchange that finds the lock taken changes nothing, but would take it if it came earlier."""
    text = """
    .reg .b32 %x, %lane;
    .reg .pred %first, %taken;
    mov.u32 %lane, %laneid;
    setp.eq.u32 %first, %lane, 0;
    @!%first ret;
TAKE:
    atom.exch.acquire.gpu.global.b32 %x, [%out1], 1;
    setp.ne.u32 %taken, %x, 0;
    @%taken bra TAKE;
    ld.global.u32 %x, [%out0];
    add.u32 %x, %x, 1;
    st.global.u32 [%out0], %x;
    st.release.gpu.global.u32 [%out1], 0;
    ret;
"""
    for seed in range(3):
        outputs = [np.zeros(1, np.uint32), np.zeros(1, np.uint32)]
        report, (found, _) = launch(text, outputs, grid=2, block=128, schedule=schedule, seed=seed)
        assert (report.status, codes(report), found[0]) == ("ok", [], 8), report.summary()


#: The barrier of cooperative groups for tiles above a warp: lane 0 sets the warp's bit and hands on what it found.
TILE_BARRIER = """
    .shared .align 4 .b32 bits, data[64];
    .reg .b32 %t, %at, %lane, %bit, %old, %seen, %x;
    .reg .pred %p, %first, %last, %spin;
    .reg .b64 %rd;
    mov.u32 %t, %tid.x;
    and.b32 %lane, %t, 31;
    setp.eq.u32 %first, %lane, 0;
    setp.eq.u32 %p, %t, 0;
    @%p st.shared.u32 [bits], 0;
    bar.sync 0;
    // The second warp comes late, so that the first polls what it has changed itself.
    shr.u32 %seen, %t, 5;
    mul.lo.u32 %seen, %seen, 200;
WORK:
    sub.u32 %seen, %seen, 1;
    setp.gt.s32 %spin, %seen, 0;
    @%spin bra WORK;
    shl.b32 %at, %t, 2;
    mov.u32 %x, data;
    add.u32 %at, %at, %x;
    st.shared.u32 [%at], %t;
    bar.warp.sync -1;
    shr.u32 %bit, %t, 5;
    shl.b32 %bit, 1, %bit;
    mov.u32 %old, 0;
    @%first atom.shared.or.acq_rel.cta.b32 %old, [bits], %bit;
    shfl.sync.idx.b32 %old, %old, 0, 31, -1;
    or.b32 %old, %old, %bit;
    setp.eq.u32 %last, %old, 3;
    @%last bra RESET;
POLL:
    ld.shared.acquire.cta.u32 %seen, [bits];
    and.b32 %seen, %seen, %bit;
    setp.ne.u32 %spin, %seen, 0;
    @%spin bra POLL;
    bra DONE;
RESET:
    @%first red.shared.and.release.cta.b32 [bits], 0;
DONE:
    xor.b32 %at, %t, 32;
    shl.b32 %at, %at, 2;
    mov.u32 %x, data;
    add.u32 %at, %at, %x;
    ld.shared.u32 %x, [%at];
    mad.wide.u32 %rd, %t, 4, %out0;
    st.global.u32 [%rd], %x;
    ret;
"""


@pytest.mark.parametrize(("schedule", "seed"), [("eager", 0), ("late", 0), *(("random", seed) for seed in range(6))])
def test_lanes_poll_what_another_lane_changed_before_a_shuffle(schedule: Any, seed: int) -> None:
    """NVIDIA's cooperative groups poll so; without the shuffle a lane might find its warp's bit not set yet."""
    poison = np.full(64, 0xCDCDCDCD, np.uint32)
    report, (found,) = launch(TILE_BARRIER, [poison], block=64, schedule=schedule, seed=seed)
    assert [each for each in report.findings if each.severity == "error"] == [], report.summary()
    np.testing.assert_array_equal(found, np.arange(64) ^ 32)
