"""A deadlock is one finding for each cause: what waits for other waiting warps follows from that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen.device import LaunchReport
from ptxgen.emulator.schedule.wait_graph import causes_of
from tests.support.harness import launch

SCHEDULES = ("eager", "late", "random")

#: Warp 0 copies to a stage, warp 1 combines it with a word and passes it on to warp 2; both rings have one stage.
CHAIN = """
    .shared .align 128 .b8 stage[128]; .shared .align 4 .b32 sums[32];
    .shared .align 8 .b64 full; .shared .align 8 .b64 empty; .shared .align 8 .b64 ready; .shared .align 8 .b64 taken;
    .reg .b32 %t, %w, %lane, %i, %phase, %free, %x, %at, %sum; .reg .pred %first, %lead, %p, %more;
    mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; and.b32 %lane, %t, 31;
    setp.eq.u32 %first, %t, 0; setp.eq.u32 %lead, %lane, 0;
    @%first mbarrier.init.shared::cta.b64 [full], FULL;
    @%first mbarrier.init.shared::cta.b64 [empty], EMPTY;
    @%first mbarrier.init.shared::cta.b64 [ready], READY;
    @%first mbarrier.init.shared::cta.b64 [taken], 1;
    @%first fence.mbarrier_init.release.cluster;
    bar.sync 0;
    mov.u32 %i, 0; mov.u32 %phase, 0;
    shl.b32 %at, %lane, 2; mov.u32 %sum, sums; add.u32 %sum, %sum, %at; mov.u32 %x, stage; add.u32 %at, %at, %x;
    setp.eq.u32 %p, %w, 1; @%p bra middle;
    setp.eq.u32 %p, %w, 2; @%p bra last;
    mov.u32 %free, PRODUCER;
load: mbarrier.try_wait.parity.shared::cta.b64 %p, [empty], %free; @!%p bra load;
    @%lead EXPECT;
    @%lead cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [stage], [%in0], 128, [full];
    xor.b32 %free, %free, 1; add.u32 %i, %i, 1; setp.lt.u32 %more, %i, 4; @%more bra load;
    bra end;
middle: mov.u32 %free, 1;
got: mbarrier.try_wait.parity.shared::cta.b64 %p, [full], %phase; @!%p bra got;
    ld.shared.u32 %x, [%at];
    bar.warp.sync -1;
    @%lead RELEASE;
vacant: mbarrier.try_wait.parity.shared::cta.b64 %p, [taken], %free; @!%p bra vacant;
    st.shared.u32 [%sum], %x;
    bar.warp.sync -1;
    @%lead mbarrier.arrive.shared::cta.b64 _, [ready];
    xor.b32 %phase, %phase, 1; xor.b32 %free, %free, 1; add.u32 %i, %i, 1; setp.lt.u32 %more, %i, 4; @%more bra got;
    bra end;
last: mbarrier.try_wait.parity.shared::cta.b64 %p, [ready], %phase; @!%p bra last;
    ld.shared.u32 %x, [%sum];
    bar.warp.sync -1;
    @%lead TAKE;
    xor.b32 %phase, %phase, 1; add.u32 %i, %i, 1; setp.lt.u32 %more, %i, 4; @%more bra last;
end: bar.sync 0; ret;
"""
RIGHT = {
    "FULL": "1", "EMPTY": "1", "READY": "1", "PRODUCER": "1",
    "EXPECT": "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128",
    "RELEASE": "mbarrier.arrive.shared::cta.b64 _, [empty]",
    "TAKE": "mbarrier.arrive.shared::cta.b64 _, [taken]",
}  # fmt: skip

#: (change, code, a part of the message).
WRONG = [
    ({"FULL": "2"}, "deadlock", ") has 1 of 2 arrivals pending"),
    ({"EMPTY": "2"}, "deadlock", ") has 1 of 2 arrivals pending"),
    ({"READY": "33"}, "deadlock", ") has 32 of 33 arrivals pending"),
    ({"PRODUCER": "0"}, "deadlock", "wait with parity 1 if the stage is empty at first"),
    ({"RELEASE": "bar.warp.sync 1"}, "deadlock", ") has 1 of 1 arrivals pending"),
    ({"TAKE": "bar.warp.sync 1"}, "deadlock", "has 1 of 1 arrivals pending"),
    ({"EXPECT": "bar.warp.sync 1"}, "deadlock", "announce the bytes by mbarrier.arrive.expect_tx"),
    ({"EXPECT": "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256"}, "expect-tx", "announces 256 bytes"),
]


def chain(schedule: Any, seed: int = 0, grid: int = 1, **changes: str) -> LaunchReport:
    body = CHAIN
    for name, text in {**RIGHT, **changes}.items():
        body = body.replace(name, text)
    values = np.arange(32, dtype=np.uint32)
    return launch(body, inputs=[values], block=96, grid=grid, schedule=schedule, seed=seed)[0]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_right_chain(schedule: Any) -> None:
    for seed in range(3 if schedule == "random" else 1):
        report = chain(schedule, seed)
        assert (report.status, report.findings) == ("ok", []), report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("changes", "code", "part"), WRONG, ids=[str(each[0]) for each in WRONG])
def test_one_finding_of_a_deadlock(changes: dict[str, str], code: str, part: str, schedule: Any) -> None:
    for seed in range(3 if schedule == "random" else 1):
        report = chain(schedule, seed, grid=2, **changes)
        assert report.status == "deadlock", report.summary()
        (found,) = [each for each in report.findings if each.severity == "error"]
        assert found.code == code, report.summary()
        assert part in found.message, report.summary()
        assert "deadlock" in {each.code for each in found.consequences}


def test_a_message_names_the_lines_that_wait_because_of_it() -> None:
    (found,) = chain("eager", FULL="2").findings
    lines = sorted(each.line for each in found.consequences if each.line)
    assert f"(lines {', '.join(map(str, lines))} wait because of it)" in found.message


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("changes", [
    {"RELEASE": "bar.warp.sync 1; bar.sync 1, 64; @%lead mbarrier.arrive.shared::cta.b64 _, [empty]"},
    {"TAKE": "bar.warp.sync 1; barrier.sync 3, 96; @%lead mbarrier.arrive.shared::cta.b64 _, [taken]"},
], ids=str)  # fmt: skip
def test_a_barrier_of_more_threads_than_come(changes: dict[str, str], schedule: Any) -> None:
    """Nobody else comes to this barrier: that is the cause, and no arrival at an mbarrier is missing."""
    report = chain(schedule, 0, 1, **changes)
    (found,) = [each for each in report.findings if each.severity == "error"]
    assert "never completes: 32 of" in found.message, report.summary()
    assert "fix: make its thread count the number of threads that execute it" in found.message
    assert "deadlock" in {each.code for each in found.consequences}


def test_deadlocks_that_do_not_depend_on_each_other() -> None:
    body = """
    .shared .align 8 .b64 m; .reg .b32 %t; .reg .pred %p, %q;
    mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0;
    @%p mbarrier.init.shared::cta.b64 [m], 1;
    bar.sync 0;
    setp.lt.u32 %q, %t, 32; @%q bra waits;
    setp.lt.u32 %q, %t, 64; @%q exit;
    bar.sync 1, 96;
    ret;
waits: mbarrier.try_wait.parity.shared::cta.b64 %p, [m], 0; @!%p bra waits;
    ret;"""
    report, _ = launch(body, block=128)
    assert [each.code for each in report.findings] == ["deadlock"] * 2, report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("first", "second", "code"), [("1, 64", "2, 64", "deadlock"), ("1, 96", "1, 128", "barrier-mismatch")]
)
def test_a_wrong_barrier(first: str, second: str, code: str, schedule: Any) -> None:
    """The two halves of a pair of warps take barriers of different numbers, or different counts."""
    body = f"""
    .reg .b32 %t; .reg .pred %p;
    mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 32; @%p bra a;
    bar.sync {first};
    ret;
a:  bar.sync {second};
    ret;"""
    report, _ = launch(body, block=64, schedule=schedule)
    (found,) = report.findings
    assert (report.status, found.code) == ("deadlock", code), report.summary()
    assert {each.code for each in found.consequences} == {"deadlock"}
    assert code != "deadlock" or " threads have arrived, 32 at barrier " in found.message


def test_causes_of_waits() -> None:
    assert causes_of([set(), {0}, {1}]) == [0, 0, 0]
    assert causes_of([{1}, {0}, {0}]) == [0, 0, 0]
    assert causes_of([{1}, set(), set()]) == [1, 1, 2]
    assert causes_of([{1, 2}, set(), set()]) == [1, 1, 2]
