"""Phases that end among the arrivals of a warp, or while a waiter is a round behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.harness import codes, launch

ARRIVE = """\
    .shared .align 8 .b64 ready;
    .reg .b32 %t;
    .reg .pred %first, %done;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    @%first mbarrier.init.shared.b64 [ready], COUNT;
    bar.sync 0;
    mbarrier.arrive.shared.b64 _, [ready];
    wait: mbarrier.try_wait.parity.shared.b64 %done, [ready], 0;
    @!%done bra wait;
    ret;"""


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(("count", "found"), [(128, []), (127, ["mbarrier-split"]), (96, ["mbarrier-split"])])
def test_a_phase_ends_among_the_arrivals_of_a_round(count: int, found: list[str], schedule: Any) -> None:
    """One round is enough to prove it: arrivals of one warp, or of two that are unordered, count in two phases."""
    report, _ = launch(ARRIVE.replace("COUNT", str(count)), block=128, schedule=schedule)
    assert codes(report) == found, report.summary()


WORDS = np.arange(128, dtype=np.uint32)
COPIED = ARRIVE.replace(
    "    mbarrier.arrive.shared.b64 _, [ready];",
    """\
    .shared .align 4 .b32 words[128];
    .reg .b32 %own;
    .reg .b64 %from;
    shl.b32 %own, %t, 2;
    cvt.u64.u32 %from, %own;
    add.u64 %from, %from, %in0;
    mov.u32 %t, words;
    add.u32 %own, %own, %t;
    cp.async.ca.shared.global [%own], [%from], 4;
    cp.async.mbarrier.arrive.noinc.shared.b64 [ready];""",
)


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(("count", "found"), [(128, []), (127, ["mbarrier-split"]), (100, ["mbarrier-split"])])
def test_a_phase_ends_among_the_arrivals_of_copies(count: int, found: list[str], schedule: Any) -> None:
    """cp.async.mbarrier.arrive.noinc is an arrival for each lane, as mbarrier.arrive is."""
    report, _ = launch(COPIED.replace("COUNT", str(count)), inputs=[WORDS], block=128, schedule=schedule)
    assert codes(report) == found, report.summary()


#: Both warps wait for a free stage, as all warps of TileLang's producers do, but only the first one fills it.
FREE = """\
    .shared .align 8 .b64 free;
    .shared .align 8 .b64 full;
    .shared .align 16 .b32 stage[4];
    .shared .align 4 .b32 own[96];
    .reg .b32 %t, %warp, %parity, %count, %x;
    .reg .pred %first, %consumer, %filler, %done, %more;
    mov.u32 %t, %tid.x;
    shr.u32 %warp, %t, 5;
    setp.eq.u32 %first, %t, 0;
    setp.eq.u32 %consumer, %warp, 2;
    setp.eq.u32 %filler, %warp, 0;
    @%first mbarrier.init.shared.b64 [free], 32;
    @%first mbarrier.init.shared.b64 [full], 1;
    @%first fence.mbarrier_init.release.cluster;
    mov.u32 %count, 0;
    bar.sync 0;
FILL:
    and.b32 %parity, %count, 1;
    @%consumer bra CONSUME;
    xor.b32 %parity, %parity, 1;
READY:
    mbarrier.try_wait.parity.shared.b64 %done, [free], %parity;
    @!%done bra READY;
    @!%filler bra NEXT;
    FILL_IT
    bra NEXT;
CONSUME:
    mbarrier.try_wait.parity.shared.b64 %done, [full], %parity;
    @!%done bra CONSUME;
    ld.shared.u32 %x, [stage];
    mbarrier.arrive.shared.b64 _, [free];
NEXT:
    add.u32 %count, %count, 1;
    setp.lt.u32 %more, %count, 4;
    @%more bra FILL;
    LAST
    ret;"""

ARRIVES = "@%first mbarrier.arrive.shared.b64 _, [full];"
COPIES = """@%first mbarrier.arrive.expect_tx.shared.b64 _, [full], 16;
    @%first cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [stage], [%out0], 16, [full];"""
STORE = "mov.u32 %x, own; mad.lo.u32 %x, %t, 4, %x; st.shared.u32 [%x], %t;"


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(
    ("fill", "last", "status"), [(COPIES, "", "ok"), (COPIES, STORE, "findings"), (ARRIVES, "", "findings")]
)
def test_a_waiter_that_does_nothing_after_its_wait(fill: str, last: str, status: str, schedule: Any) -> None:
    body = FREE.replace("FILL_IT", fill).replace("LAST", last)
    if fill == ARRIVES:
        body = body.replace("ld.shared.u32 %x, [stage];", "")
    report, _ = launch(body, [np.zeros(4, np.uint32)], block=96, schedule=schedule)
    assert (report.status, set(codes(report))) == (status, {"mbarrier-round-behind"}), report.summary()


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_two_waits_before_a_copy(schedule: Any) -> None:
    """Each of the two is before the copies of the first warp."""
    wait = "READY:\n    mbarrier.try_wait.parity.shared.b64 %done, [free], %parity;\n    @!%done bra READY;"
    arrive = "mbarrier.arrive.shared.b64 _, [free];"
    body = (
        FREE.replace("FILL_IT", COPIES)
        .replace("LAST", "")
        .replace(".shared .align 8 .b64 full;", ".shared .align 8 .b64 full, other;")
        .replace("bar.sync 0;", "@%first mbarrier.init.shared.b64 [other], 32;\n    bar.sync 0;")
        .replace(wait, wait.replace("free", "other").replace("READY", "OTHER") + "\n" + wait)
        .replace(arrive, arrive.replace("free", "other") + "\n    " + arrive)
    )
    report, _ = launch(body, [np.zeros(4, np.uint32)], block=96, schedule=schedule)
    found = [(each.code, each.severity) for each in report.all_findings]
    assert found == [("mbarrier-round-behind", "advice")], report.summary()


ROUNDS = """\
    .shared .align 8 .b64 ready;
    .reg .b32 %t;
    .reg .pred %first, %done;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    @%first mbarrier.init.shared.b64 [ready], 1;
    bar.sync 0;
    @%first mbarrier.arrive.shared.b64 _, [ready];
    one: mbarrier.try_wait.parity.shared.b64 %done, [ready], 0;
    @!%done bra one;
    SYNCHRONIZE
    @%first mbarrier.arrive.shared.b64 _, [ready];
    two: mbarrier.try_wait.parity.shared.b64 %done, [ready], 1;
    @!%done bra two;
    ret;"""


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(
    ("synchronize", "found"),
    [
        ("", ["mbarrier-round-behind"]),
        ("bar.sync 0;", []),
        ("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;", []),
    ],
    ids=["nothing", "bar.sync", "relaxed"],
)
def test_waits_for_the_phase_before_are_over(synchronize: str, found: list[str], schedule: Any) -> None:
    """A relaxed arrival comes after the wait in time, which is enough, though it publishes no memory."""
    report, _ = launch(ROUNDS.replace("SYNCHRONIZE", synchronize), block=64, cluster=1, schedule=schedule)
    assert codes(report) == found, report.summary()
