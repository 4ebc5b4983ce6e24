"""The bytes of an mbarrier's phases: expect_tx that is missing, too small, too large or late is reported, whatever time
copies take; right kernels are not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen.device import LaunchReport
from tests.support.harness import codes, launch, poisoned

SCHEDULES = ("eager", "late", "random")
#: Two copies fill a buffer in every round; each of two warps reads a half of it.
KERNEL = """
    .shared .align 128 .b8 buffer[512];
    .shared .align 8 .b64 bar;
    .reg .b32 %t, %i, %parity, %x, %place; .reg .b64 %at, %from; .reg .pred %leader, %second, %p, %more;
    mov.u32 %t, %tid.x; setp.eq.u32 %leader, %t, 0; setp.eq.u32 %second, %t, 32;
    @%leader mbarrier.init.shared::cta.b64 [bar], COUNT;
    @%leader fence.mbarrier_init.release.cluster;
    bar.sync 0;
    mov.u32 %parity, 0; mov.u32 %i, 0; mov.b64 %from, %in0; mov.u32 %place, buffer; mad.lo.u32 %place, %t, 8, %place;
    mad.wide.u32 %at, %t, 8, %out0;
round:
    BEFORE
    EXPECT
    @%leader cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buffer], [%from], 256, [bar];
    SECOND
    AFTER
wait: mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], %parity; @!%p bra wait;
    ld.shared.u32 %x, [%place]; st.global.u32 [%at], %x; ld.shared.u32 %x, [%place+4]; st.global.u32 [%at+4], %x;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    xor.b32 %parity, %parity, 1; add.u64 %from, %from, 512; add.u64 %at, %at, 512; add.u32 %i, %i, 1;
    setp.lt.u32 %more, %i, 4; @%more bra round;
    END
    ret;
"""
EXPECT = "@%leader mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;"
SECOND = "@%leader cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buffer+256], [%from+256], 256, [bar];"
ARRIVE = "@%leader mbarrier.arrive.shared::cta.b64 _, [bar];"
EXPECT_ALONE = "@%leader mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 512;"
PLACES = {"COUNT": "1", "BEFORE": "", "EXPECT": EXPECT, "SECOND": SECOND, "AFTER": "", "END": ""}


def run(schedule: Any, seed: int = 0, **changes: str) -> tuple[LaunchReport, bool]:
    """The report, and whether the output is right; `changes` put other text in place of the names above."""
    body = KERNEL
    for name, text in {**PLACES, **changes}.items():
        body = body.replace(name, text)
    values = np.random.default_rng(7).integers(0, 2**32, 512, np.uint32)
    report, (found,) = launch(body, [poisoned(512)], inputs=[values], block=64, schedule=schedule, seed=seed)
    return report, bool((found == values).all())


#: Ways to count the same bytes, all right.
RIGHT: dict[str, dict[str, str]] = {
    "arrive.expect_tx": {},
    "expect_tx, then an arrival": {"EXPECT": EXPECT_ALONE, "AFTER": ARRIVE},
    "expect_tx between the copies": {"EXPECT": "", "SECOND": EXPECT_ALONE + SECOND, "AFTER": ARRIVE},
    "the arrival after the copies": {"EXPECT": "", "AFTER": EXPECT},
    "each half of the bytes with an arrival": {
        "COUNT": "2",
        "EXPECT": EXPECT.replace("512", "256"), "SECOND": EXPECT.replace("512", "256") + SECOND,
    },
    "another warp arrives, after a barrier": {
        "EXPECT": EXPECT_ALONE, "AFTER": "bar.sync 0; @%second mbarrier.arrive.shared::cta.b64 _, [bar];",
    },
    "another warp arrives too, unordered": {
        "COUNT": "2", "BEFORE": "@%second mbarrier.arrive.shared::cta.b64 _, [bar];",
    },
    "expect_tx after the arrival that names other bytes": {
        "EXPECT": EXPECT.replace("512", "256") + EXPECT_ALONE.replace("512", "256"),
    },
    "one phase more, without bytes": {"END": ARRIVE},
    "nothing of the bytes of a phase, which is forgotten": {
        "END": "@%leader mbarrier.inval.shared::cta.b64 [bar];",
    },
}  # fmt: skip


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", RIGHT)
def test_right_ways(name: str, schedule: Any) -> None:
    for seed in range(4 if schedule == "random" else 1):
        report, right = run(schedule, seed, **RIGHT[name])
        assert (report.status, codes(report), right) == ("ok", [], True), report.summary()


#: (name, changes, the schedules in which it is found, part of the message).
WRONG: list[tuple[str, dict[str, str], str, str]] = [
    ("too small by a copy", {"EXPECT": EXPECT.replace("512", "256")}, "eager late random", "transfer 512|no expect_tx"),
    ("too small by some bytes", {"EXPECT": EXPECT.replace("512", "496")}, "eager late random", "announce 512 bytes"),
    ("too large", {"EXPECT": EXPECT.replace("512", "528")}, "eager late random", "16 bytes are missing, and no copy"),
    ("a copy is missing", {"SECOND": ""}, "eager late random", "256 bytes are missing, and no copy"),
    ("none, the arrival first", {"EXPECT": ARRIVE}, "eager late random", "announces no bytes"),
    ("none, the arrival last", {"EXPECT": "", "AFTER": ARRIVE}, "eager late random", "announces no bytes"),
    ("after the arrival", {"EXPECT": "", "SECOND": SECOND + ARRIVE + EXPECT_ALONE}, "eager late random",
     "is late|announces no bytes"),
    ("another warp arrives, unordered", {
        "COUNT": "2", "EXPECT": ARRIVE + EXPECT_ALONE, "AFTER": "@%second mbarrier.arrive.shared::cta.b64 _, [bar];",
    }, "eager late", "is late"),
    ("by another warp than arrives", {
        "EXPECT": EXPECT_ALONE, "AFTER": "@%second mbarrier.arrive.shared::cta.b64 _, [bar];",
    }, "eager late", "is late"),
    ("never awaited, too small", {
        "wait: mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], %parity; @!%p bra wait;": "bra out;", "END": "out:",
        "EXPECT": EXPECT.replace("512", "496"),
    }, "eager", "the CTA exits after 16 bytes more"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "schedules", "part"), WRONG, ids=[each[0] for each in WRONG])
def test_wrong_ways(name: str, changes: dict[str, str], schedules: str, part: str) -> None:
    for schedule in schedules.split():
        report, _ = run(schedule, 3, **changes)
        assert report.status in ("findings", "deadlock")
        found = [finding for finding in report.findings if finding.code == "expect-tx"]
        assert found, report.summary()
        assert any(each in found[0].message for each in part.split("|")), found[0].message
        assert found[0].instruction.startswith("@%leader"), found[0]
        first = found[0].accesses[0]
        assert (first.line, first.name, first.space) == (found[0].line, "bar", "shared"), found[0]


def test_bytes_that_nobody_sends_or_awaits() -> None:
    """Advice: nobody waits for the phase, so that nothing goes wrong."""
    named = {"END": "@%leader mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64;"}
    for end in ("", "bar.sync 0; @%leader mbarrier.inval.shared::cta.b64 [bar];"):
        report, right = run("eager", END=named["END"] + end)
        assert (report.status, codes(report), right) == ("ok", ["expect-tx"], True), report.summary()
        assert "still expects 64 bytes" in report.findings[0].message


def test_a_count_kept_by_hand() -> None:
    """mbarrier.complete_tx may lower what nothing has raised yet: nothing is proved by that."""
    by_hand = "@%leader mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 512;"
    report, _ = run("eager", EXPECT=by_hand + EXPECT_ALONE + EXPECT, END=by_hand)
    assert (report.status, codes(report)) == ("ok", []), report.summary()


#: A copy of a producer warp and a consumer warp that waits for it.
PASSED = """
    .shared .align 128 .b8 stage[256]; .shared .align 8 .b64 full;
    .reg .b32 %t, %x, %at; .reg .pred %first, %p, %consumer;
    mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0; setp.ge.u32 %consumer, %t, 32;
    @%first mbarrier.init.shared.b64 [full], 1;
    @%first fence.mbarrier_init.release.cluster;
    bar.sync 0;
    @%consumer bra wait;
    FIRST
    @%first cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [stage], [%in0], 256, [full];
    SECOND
    bra end;
wait: mbarrier.try_wait.parity.shared.b64 %p, [full], 0; @!%p bra wait;
    and.b32 %x, %t, 31; mov.u32 %at, stage; mad.lo.u32 %at, %x, 4, %at; ld.shared.u32 %x, [%at];
end: ret;
"""
ARRIVED = "@%first mbarrier.arrive.shared.b64 _, [full];"
ANNOUNCED = "@%first mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [full], 256;"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("first", "second", "part"),
    [
        (f"{ARRIVED}\n{ANNOUNCED}", "", "is late: phase 0 of full"),
        (ARRIVED, ANNOUNCED, "is late: phase 0 of full"),
        (ARRIVED, "", "expect_tx"),
        (f"{ANNOUNCED}\n{ARRIVED}", "", ""),
        (ANNOUNCED, ARRIVED, ""),
    ],
    ids=["arrival first", "arrival before the copy", "no expect_tx", "expect_tx first", "arrival after the copy"],
)
def test_a_phase_that_completes_without_its_bytes(first: str, second: str, part: str, schedule: Any) -> None:
    body = PASSED.replace("FIRST", first).replace("SECOND", second)
    for seed in range(3 if schedule == "random" else 1):
        report, _ = launch(body, inputs=[np.arange(64, dtype=np.uint32)], block=64, schedule=schedule, seed=seed)
        assert [each.code for each in report.findings] == ["expect-tx"] * bool(part), report.summary()
        assert all(part in each.message for each in report.findings)
