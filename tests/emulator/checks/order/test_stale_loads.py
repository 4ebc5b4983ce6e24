"""Stale values that strong loads return where nothing orders a store before them, and how kernels exclude them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.harness import codes, launch

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
    assert run(passing(*parts), schedule="eager")[1] == NEW
    assert run(passing(*parts), schedule="late", checks=False)[1] == NEW
    assert {run(passing(*parts), schedule="random", seed=seed)[1] for seed in range(12)} == {OLD, NEW}


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
    for schedule, expected in (("eager", 0), ("late", 1)):
        report, _ = launch(HEAD + passing(*WRONG["no acquire"]), [words, left], grid=2, schedule=schedule)
        assert len(report.stale_values) == expected
        for each in report.stale_values:
            assert (each.line - each.store_line, each.times) == (1, 2)  # of the flag, and of the data
            assert (
                str(each) == f"line {each.line} found what was there before the store of line {each.line - 1}, 2 times"
            )
