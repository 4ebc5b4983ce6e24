"""bar.warp.sync with a mask that leaves lanes out orders accesses to shared memory for those that it names alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen.emulator.checks.order.warp_sync import MaskedSyncs
from tests.support.harness import codes, launch, poisoned

SCHEDULES: list[Any] = ["eager", "late", "random"]
HEAD = """
    .shared .align 4 .b32 data[64]; .reg .u32 %t, %at, %x, %y, %m, %n; .reg .pred %p, %q; .reg .b64 %to;
    mov.u32 %t, %tid.x;
    mov.u32 %y, data;
    mad.lo.u32 %at, %t, 4, %y;
    mul.wide.u32 %to, %t, 4;
    add.u64 %to, %to, %out0;
    setp.lt.u32 %p, %t, 16;
    mov.u32 %x, 7;
"""
STORE = "st.shared.u32 [%at], %t; "
#: From which lane each loads: its number XORed.
LOAD = "xor.b32 %n, %t, {}; mad.lo.u32 %n, %n, 4, %y; ld.shared.u32 %x, [%n]; "
#: All have stored something, and know it; another value; the word that lanes of both halves share.
START, OTHER = STORE + "bar.warp.sync -1; ", "add.u32 %m, %t, 99; st.shared.u32 [%at], %m; "
SAME = "and.b32 %n, %t, 15; mad.lo.u32 %n, %n, 4, %y; "
OUT = "st.global.u32 [%to], %x; ret;"
HALVES = "selp.b32 %m, 0xFFFF, 0xFFFF0000, %p; bar.warp.sync %m; "
QUARTERS = "and.b32 %m, %t, 24; shl.b32 %m, 0xFF, %m; bar.warp.sync %m; "
CASES = [
    ("halves, within", STORE + HALVES + LOAD.format(8), True),
    ("halves, across", STORE + HALVES + LOAD.format(16), False),
    ("halves, across, then all", STORE + HALVES + "bar.warp.sync -1; " + LOAD.format(16), True),
    ("quarters, then halves, within", STORE + QUARTERS + HALVES + LOAD.format(8), True),
    ("quarters, then halves, across", STORE + QUARTERS + HALVES + LOAD.format(24), False),
    ("halves, then quarters", STORE + HALVES + QUARTERS + LOAD.format(8), True),
    ("quarters twice, across", STORE + QUARTERS + QUARTERS + LOAD.format(8), False),
    ("one half alone", STORE + "@%p bar.warp.sync 0xFFFF; @%p xor.b32 %n, %t, 8; @%p mad.lo.u32 %n, %n, 4, %y; "
     "@%p ld.shared.u32 %x, [%n];", True),
    ("one half alone, the other reads", "@%p st.shared.u32 [%at], %t; @%p bar.warp.sync 0xFFFF; xor.b32 %n, %t, 16; "
     "mad.lo.u32 %n, %n, 4, %y; @!%p ld.shared.u32 %x, [%n];", False),
    ("one half in a branch, the other reads", START + "@!%p bra over; " + OTHER + "bar.warp.sync 0xFFFF; bra join; "
     "over: xor.b32 %n, %t, 16; mad.lo.u32 %n, %n, 4, %y; ld.shared.u32 %x, [%n]; join:", False),
    ("a chain", "setp.lt.u32 %q, %t, 4; @%q st.shared.u32 [%at], %t; setp.lt.u32 %q, %t, 8; @%q bar.warp.sync 0xFF; "
     "and.b32 %n, %t, 28; setp.eq.u32 %q, %n, 4; setp.eq.or.u32 %q, %n, 8, %q; @%q bar.warp.sync 0xFF0; "
     "sub.u32 %n, %t, 8; mad.lo.u32 %n, %n, 4, %y; and.b32 %m, %t, 28; setp.eq.u32 %q, %m, 8; "
     "@%q ld.shared.u32 %x, [%n];", True),
    ("a chain, and who is not in it", "setp.lt.u32 %q, %t, 4; @%q st.shared.u32 [%at], %t; setp.lt.u32 %q, %t, 8; "
     "@%q bar.warp.sync 0xFF; sub.u32 %n, %t, 8; mad.lo.u32 %n, %n, 4, %y; and.b32 %m, %t, 28; setp.eq.u32 %q, %m, 8; "
     "@%q ld.shared.u32 %x, [%n];", False),
    ("loads, then another half overwrites", START + LOAD.format(16) + HALVES + OTHER, False),
    ("loads, then the same half overwrites", START + LOAD.format(8) + HALVES + OTHER, True),
    ("stores, then another half overwrites", SAME + "@%p st.shared.u32 [%n], %t; " + HALVES
     + "@!%p st.shared.u32 [%n], %t; ", False),
]  # fmt: skip


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("name", "body", "clean"), CASES, ids=[case[0] for case in CASES])
def test_narrow_masks(name: str, body: str, clean: bool, schedule: Any) -> None:
    report, _ = launch(f"{HEAD} {body} {OUT}", [poisoned(32)], schedule=schedule)
    assert codes(report) == ([] if clean else ["shared-race"]), report.summary()


def test_lanes_that_have_left_are_not_left_out() -> None:
    body = f"{HEAD} @!%p ret; {STORE} bar.warp.sync 0xFFFF; {LOAD.format(8)} {OUT}"
    report, (found,) = launch(body, [np.zeros(32, np.uint32)])
    assert not report.findings, report.summary()
    assert found[:16].tolist() == [lane ^ 8 for lane in range(16)]


def test_what_some_lanes_have_waited_for() -> None:
    """Lane 0 waits for a copy and meets the lower half: the others may not read what it brought."""
    body = """
        .shared .align 16 .b32 data[32]; .shared .align 8 .b64 full; .reg .u32 %t, %at, %x; .reg .pred %p, %q, %h;
        .reg .b64 %to;
        mov.u32 %t, %tid.x;
        mov.u32 %x, data;
        mad.lo.u32 %at, %t, 4, %x;
        setp.eq.u32 %p, %t, 0;
        setp.lt.u32 %h, %t, 16;
        @%p mbarrier.init.shared::cta.b64 [full], 1;
        fence.mbarrier_init.release.cluster;
        bar.warp.sync -1;
        @!%p bra over;
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;
        cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [data], [%in0], 128, [full];
        again:
        mbarrier.try_wait.parity.shared::cta.b64 %q, [full], 0;
        @!%q bra again;
        over:
        @%h bar.warp.sync 0xFFFF;
        {} ld.shared.u32 %x, [%at];
        mul.wide.u32 %to, %t, 4;
        add.u64 %to, %to, %out0;
        st.global.u32 [%to], %x;
        ret;
        """
    given = np.arange(32, dtype=np.uint32)
    for guard, clean in (("@%h", True), ("", False)):
        report, _ = launch(body.format(guard), [poisoned(32)], inputs=[given])
        assert codes(report) == ([] if clean else ["shared-race"]), report.summary()


def test_old_intervals_are_dropped() -> None:
    narrow, rows = MaskedSyncs(), np.array([3])
    lane, other = np.array([20]), np.array([1])
    for number in range(20):
        narrow.groups_synchronize(3, number, [0xFFFF])
    assert [bool(narrow.unordered(3, lane, np.array([n]), other)[0]) for n in (0, 11, 12, 19)] == [
        False,
        False,
        True,
        True,
    ]
    assert not narrow.unordered(3, np.array([2]), np.array([19]), other)[0]
    assert not narrow.unordered(3, lane, np.array([19]), np.array([32]))[0]  # several lanes
    assert narrow.any(rows)
    narrow.clear(rows)
    assert not narrow.any(rows)
