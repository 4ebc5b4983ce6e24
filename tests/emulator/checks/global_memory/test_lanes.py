"""Races in global memory among the lanes of one warp, and between single bytes: each with a clean twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.harness import codes, launch

SCHEDULES: list[Any] = ["eager", "late", "random"]
#: `mine` is this thread's word, `next` that of the lane beside it, `one` a word of all; lane 0 is %first.
HEAD = """
    .shared .align 4 .b8 room[128];
    .reg .pred %first, %p; .reg .u32 %t, %x, %y, %s; .reg .b64 %mine, %next, %one, %byte, %beside; .reg .b16 %h;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    mad.wide.u32 %mine, %t, 4, %out0;
    xor.b32 %x, %t, 1;
    mad.wide.u32 %next, %x, 4, %out0;
    add.u64 %one, %out0, 512;
    mad.lo.u32 %x, %t, 5, 7;
    cvt.u64.u32 %byte, %t;
    add.u64 %byte, %byte, %out0;
    xor.b32 %y, %t, 32;
    cvt.u64.u32 %beside, %y;
    add.u64 %beside, %beside, %out0;
    cvt.u16.u32 %h, %x;
    mov.u32 %s, room;
    mad.lo.u32 %s, %t, 4, %s;
"""
PUT, GET = "st.global.u32 [%mine], %x;", "ld.global.u32 %y, [%next];"
MEET = "bar.warp.sync -1;"
#: name -> what comes first, and then
KERNELS = {
    "read after write": (PUT, GET),
    "write after write": (PUT, "st.global.u32 [%next], %x;"),
    "one for all": ("@%first st.global.u32 [%one], 7;", "ld.global.u32 %y, [%one];"),
    "wide and narrow": (PUT, "ld.global.u16 %h, [%next+2];"),
    "bytes": ("st.global.u8 [%byte], %h;", "ld.global.u32 %y, [%mine];"),
    "cp.async": (PUT, "cp.async.ca.shared.global [%s], [%next], 4; cp.async.wait_all;"),
    "the next turn": ("st.global.u32 [%mine], %x; add.u64 %mine, %mine, 4;", "st.global.u32 [%mine], %x;"),
}


def run(body: str, **options: Any) -> Any:
    array = np.arange(5000, 5256, dtype=np.uint32)
    return launch(HEAD + body + "\nret;", [array], **{"block": 32, **options})[0]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("first", "then"), KERNELS.values(), ids=KERNELS)
def test_lanes_of_a_warp(first: str, then: str, schedule: Any) -> None:
    racing = run(first + then, schedule=schedule)
    assert codes(racing) == ["global-race"], racing.summary()
    assert "of the same warp" in racing.findings[0].message
    for meeting in (MEET, "bar.sync 0;"):
        clean = run(first + meeting + then, schedule=schedule)
        assert (clean.status, codes(clean)) == ("ok", []), clean.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("mask", "clean"), [("shl.b32 %x, 3, %x;", True), ("shl.b32 %x, 0x55555555, %y;", False)])
def test_masks_that_leave_lanes_out(mask: str, clean: bool, schedule: Any) -> None:
    """Pairs of neighbors meet, or all even lanes and all odd ones."""
    meet = f"and.b32 %x, %t, 30; and.b32 %y, %t, 1; {mask} bar.warp.sync %x; mad.lo.u32 %x, %t, 5, 7;"
    for then in (GET, "st.global.u32 [%next], %x;"):
        report = run(PUT + meet + then, schedule=schedule)
        assert codes(report) == ([] if clean else ["global-race"]), report.summary()


@pytest.mark.parametrize(
    "body",
    [
        PUT + "ld.global.u32 %y, [%mine]; add.u32 %y, %y, 1; st.global.u32 [%mine], %y;",
        # Several lanes store the same, or to the same place: nobody can tell which of them it was.
        "st.global.u32 [%one], 7; ld.global.u32 %y, [%one];",
        "@%first st.global.u32 [%one], 7; @!%first st.global.u32 [%one], 7; ld.global.u32 %y, [%one];",
        "@%first st.global.u32 [%one], 7; setp.eq.u32 %p, %t, 1; @%p st.global.u32 [%one], 7;"
        "@%first ld.global.u32 %y, [%one];",
        # A store of what was loaded: shuffles may order it.
        "ld.global.u32 %y, [%next]; shfl.sync.bfly.b32 %y, %y, 1, 31, -1; st.global.u32 [%mine], %y;",
        # A flag between lanes that go apart.
        """@!%first bra take;
st.global.u32 [%out0+256], 7;
st.release.gpu.global.u32 [%one], 1;
bra end;
        take:
        ld.acquire.gpu.global.u32 %y, [%one];
        setp.ne.u32 %p, %y, 1;
        @%p bra take;
        ld.global.u32 %y, [%out0+256]; end:""",
        "st.volatile.global.u32 [%mine], %x; ld.volatile.global.u32 %y, [%next];",
    ],
)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_lanes_that_do_not_race(body: str, schedule: Any) -> None:
    report = run(body, schedule=schedule)
    assert (report.status, codes(report)) == ("ok", []), report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_flag_between_lanes_without_a_release(schedule: Any) -> None:
    body = """@!%first bra take;
st.global.u32 [%out0+256], 7;
st.relaxed.gpu.global.u32 [%one], 1;
bra end;
        take:
        ld.relaxed.gpu.global.u32 %y, [%one];
        setp.ne.u32 %p, %y, 1;
        @%p bra take;
        ld.global.u32 %y, [%out0+256]; end:"""
    assert codes(run(body, schedule=schedule)) == ["global-race"]


#: Threads of two warps at single bytes: in turns, each beside a byte of the other warp, whose neighbor it leaves.
TURNS = """
    and.b32 %x, %t, 31;
    shr.u32 %y, %t, 5;
    shl.b32 %x, %x, 1;
    add.u32 %s, %x, %y;
    cvt.u64.u32 %byte, %s;
    add.u64 %byte, %byte, %out0;
    xor.b32 %y, %y, 1;
    add.u32 %s, %x, %y;
    cvt.u64.u32 %beside, %s;
    add.u64 %beside, %beside, %out0;
    mad.lo.u32 %s, %t, 3, 1;
    cvt.u16.u32 %h, %s;
"""
MINE, OTHER = "st.global.u8 [%byte], %h;", "ld.global.u8 %h, [%beside];"
HALF = "add.u64 %one, %out0, 64; mad.wide.u32 %one, %x, 1, %out0; and.b64 %one, %one, -2;"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("first", "then"),
    [
        (MINE, OTHER),
        (OTHER, MINE),
        (MINE, "st.global.u8 [%beside], %h;"),
        (MINE, HALF + "ld.global.u16 %h, [%one];"),
        (HALF + "@%first ld.global.u16 %h, [%one];", "setp.eq.u32 %p, %t, 32; @%p st.global.u8 [%out0], %h;"),
        # What a warp does at the byte beside does not hide it.
        ("@!%first st.global.u8 [%byte], %h; @%first st.global.u8 [%byte], %h;", OTHER),
    ],
)
def test_single_bytes(first: str, then: str, schedule: Any) -> None:
    racing = run(TURNS + first + then, block=64, schedule=schedule)
    assert set(codes(racing)) == {"global-race"}, racing.summary()
    clean = run(TURNS + first + "bar.sync 0;" + then, block=64, schedule=schedule)
    assert (clean.status, codes(clean)) == ("ok", []), clean.summary()


def test_bytes_side_by_side_do_not_race() -> None:
    again = "add.u16 %h, %h, 1;" + MINE + "ld.global.u8 %h, [%byte];"
    report = run(TURNS + MINE + again + again, block=64)
    assert (report.status, codes(report)) == ("ok", []), report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_copies_meet_single_bytes(schedule: Any) -> None:
    """A bulk copy reads what one thread has stored in one byte of it."""
    body = """
        .shared .align 128 .b8 tile[64];
        .shared .align 8 .b64 bar;
        @%first mbarrier.init.shared::cta.b64 [bar], 1;
        @%first fence.mbarrier_init.release.cluster;
        bar.sync 0;
        setp.eq.u32 %p, %t, 40;
        @%p st.global.u8 [%out0+5], %h;
        ORDER
        @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64;
        @%first cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%out0], 64, [bar];
        w:
        mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
        @!%p bra w;
    """
    assert codes(run(body.replace("ORDER", ""), block=64, schedule=schedule)) == ["global-race"]
    assert codes(run(body.replace("ORDER", "bar.sync 0;"), block=64, schedule=schedule)) == ["missing-proxy-fence"]
    assert codes(run(body.replace("ORDER", "fence.proxy.async; bar.sync 0;"), block=64, schedule=schedule)) == []


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_lanes_that_store_different_values_to_one_word(schedule: Any) -> None:
    """In one instruction: which of them stays is undefined."""
    report = run("st.global.u32 [%one], %t;", schedule=schedule)
    assert codes(report) == ["global-race"], report.summary()
    assert "to which lane 1 stores another value" in report.findings[0].message
