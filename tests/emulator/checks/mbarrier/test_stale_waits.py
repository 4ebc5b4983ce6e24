"""Waits with the wrong parity: for a phase that was over long ago, or for one that does not come."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from ptxgen.device import LaunchReport
from ptxgen.emulator import Emulator
from tests.support.harness import codes, errors, launch, poisoned
from tools.mutants.subjects import load

SCHEDULES = ("eager", "late", "random")

#: Thread 0 ends two phases; all wait for the first, the second warp then for the other.
TWO_PHASES = """
    .shared .align 8 .b64 bar; .reg .b32 %t; .reg .pred %first, %p, %second;
    mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0; setp.ge.u32 %second, %t, 32;
    @%first mbarrier.init.shared::cta.b64 [bar], 1;
    bar.sync 0;
    @%first mbarrier.arrive.shared::cta.b64 _, [bar];
once: mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0; @!%p bra once;
    bar.sync 0;
    @%first mbarrier.arrive.shared::cta.b64 _, [bar];
    bar.sync 0;
    @!%second bra end;
again: mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], PARITY; @!%p bra again;
end: ret;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_phase_that_does_not_come(schedule: Any) -> None:
    report, _ = launch(TWO_PHASES.replace("PARITY", "0"), block=64, schedule=schedule)
    assert (report.status, codes(report)) == ("deadlock", ["mbarrier-parity", "deadlock"]), report.summary()
    parity, wait = report.all_findings
    assert "phase 2 (parity 0)" in wait.message
    assert "last wait" in parity.message
    assert "Phase 1 (parity 1) is complete, and" in parity.message
    assert parity.line == wait.line
    clean, _ = launch(TWO_PHASES.replace("PARITY", "1"), block=64, schedule=schedule)
    assert (clean.status, codes(clean)) == ("ok", []), clean.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_phase_that_is_tested_for_ever(schedule: Any) -> None:
    """A loop of test_wait is reported like a wait: the object, its phase, and the one that it missed."""
    polls = TWO_PHASES.replace("again: mbarrier.try_wait", "again: mbarrier.test_wait")
    report, _ = launch(polls.replace("PARITY", "0"), block=64, schedule=schedule)
    assert (report.status, codes(report)) == ("deadlock", ["mbarrier-parity", "deadlock"]), report.summary()
    parity, spin = report.all_findings
    assert "what this loop polls. It last tested phase 2 (parity 0) of" in spin.message
    assert "Phase 1 (parity 1) is complete, and" in parity.message
    clean, _ = launch(polls.replace("PARITY", "1"), block=64, schedule=schedule)
    assert (clean.status, codes(clean)) == ("ok", []), clean.summary()


#: A ring of two stages: the second warp fills them by copies, the first reads them, and both wait for each other.
RING = """
    .shared .align 128 .b8 ring[512]; .shared .align 8 .b64 full[2]; .shared .align 8 .b64 empty[2];
    .reg .b32 %t, %i, %stage, %parity, %start, %x, %fill, %drain, %at; .reg .b64 %from, %to;
    .reg .pred %first, %p, %more, %producer, %leader, %last;
    mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0; setp.ge.u32 %producer, %t, 32; setp.eq.u32 %leader, %t, 32;
    @%first mbarrier.init.shared::cta.b64 [full], 1; @%first mbarrier.init.shared::cta.b64 [full+8], 1;
    @%first mbarrier.init.shared::cta.b64 [empty], 32; @%first mbarrier.init.shared::cta.b64 [empty+8], 32;
    @%first fence.mbarrier_init.release.cluster;
    bar.sync 0;
    mov.u32 %i, 0; mov.u32 %stage, 0; mov.b64 %from, %in0; mad.wide.u32 %to, %t, 8, %out0;
    @%producer bra produce;
    mov.u32 %parity, CONSUMER;
consume:
    mov.u32 %drain, full; mad.lo.u32 %drain, %stage, 8, %drain;
filled: mbarrier.try_wait.parity.shared::cta.b64 %p, [%drain], %parity; @!%p bra filled;
    mov.u32 %at, ring; mad.lo.u32 %at, %stage, 256, %at; mad.lo.u32 %at, %t, 8, %at;
    ld.shared.u32 %x, [%at]; st.global.u32 [%to], %x; ld.shared.u32 %x, [%at+4]; st.global.u32 [%to+4], %x;
    mov.u32 %fill, empty; mad.lo.u32 %fill, %stage, 8, %fill;
    mbarrier.arrive.shared::cta.b64 _, [%fill];
    add.u64 %to, %to, 256; xor.b32 %stage, %stage, 1; setp.eq.u32 %last, %stage, 0;
    CONSUMER_FLIPS
    add.u32 %i, %i, 1; setp.lt.u32 %more, %i, 6; @%more bra consume;
    bra end;
produce:
    @!%leader bra end;
    mov.u32 %parity, PRODUCER;
fill:
    mov.u32 %fill, empty; mad.lo.u32 %fill, %stage, 8, %fill;
emptied: mbarrier.try_wait.parity.shared::cta.b64 %p, [%fill], %parity; @!%p bra emptied;
    mov.u32 %drain, full; mad.lo.u32 %drain, %stage, 8, %drain;
    mov.u32 %at, ring; mad.lo.u32 %at, %stage, 256, %at;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%drain], 256;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%at], [%from], 256, [%drain];
    add.u64 %from, %from, 256; xor.b32 %stage, %stage, 1; setp.eq.u32 %last, %stage, 0;
    PRODUCER_FLIPS
    add.u32 %i, %i, 1; setp.lt.u32 %more, %i, 6; @%more bra fill;
end: ret;
"""
FLIP = "@%last xor.b32 %parity, %parity, 1;"
RIGHT = {"CONSUMER_FLIPS": FLIP, "PRODUCER_FLIPS": FLIP, "CONSUMER": "0", "PRODUCER": "1"}


def ring(schedule: Any, seed: int = 0, **changes: str) -> tuple[LaunchReport, bool]:
    """The report, and whether the output is right."""
    body = RING
    for name, text in {**RIGHT, **changes}.items():
        body = body.replace(name, text)
    values = np.random.default_rng(5).integers(0, 2**32, 384, np.uint32)
    report, (found,) = launch(body, [poisoned(384)], inputs=[values], block=64, schedule=schedule, seed=seed)
    return report, bool((found == values).all())


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_right_ring(schedule: Any) -> None:
    for seed in range(4 if schedule == "random" else 1):
        report, right = ring(schedule, seed)
        assert (report.status, codes(report), right) == ("ok", [], True), report.summary()


#: (changes, schedules, code, part of its message).
WRONG: list[tuple[dict[str, str], str, str, str]] = [
    ({"CONSUMER": "1"}, "eager", "mbarrier-parity", "the first wait of the warp"),
    ({"CONSUMER": "1"}, "late random", "mbarrier-parity", "the phase before the first (parity 1)"),
    ({"CONSUMER_FLIPS": ""}, "eager random", "mbarrier-parity", "Phase 1 (parity 1) is complete, and"),
    (
        {"CONSUMER_FLIPS": ""},
        "late",
        "mbarrier-parity",
        "completes phase 1 (parity 1): the parity was not flipped",
    ),
    ({"PRODUCER": "0"}, "eager late random", "deadlock", "wait with parity 1 if the stage is empty at first"),
    ({"PRODUCER_FLIPS": ""}, "eager", "mbarrier-parity", "as the wait before: the parity was not flipped"),
    ({"PRODUCER_FLIPS": ""}, "late random", "mbarrier-overflow", "missing or has the wrong parity"),
    (
        {"CONSUMER": "1", "PRODUCER": "0"},
        "eager late random",
        "uninitialized-shared",
        "parity 1 selects the phase before the first",
    ),
]


@pytest.mark.parametrize(("changes", "schedules", "code", "part"), WRONG, ids=[str(each[0]) for each in WRONG])
def test_wrong_rings(changes: dict[str, str], schedules: str, code: str, part: str) -> None:
    """What is reported first depends on the interleaving: another seed, another witness of the same bug."""
    for schedule in schedules.split():
        report, _ = ring(schedule, 1, **changes)
        assert any(each.code == code and part in each.message for each in report.findings), report.summary()
    assert not any(ring("random", seed, **changes)[0].ok for seed in range(8))


def test_a_consumer_that_never_flips_its_parity_is_named_under_every_seed() -> None:
    """Also where it has run ahead and exited: the producer waits for arrivals that came too early."""
    for schedule, seed in [("eager", 0), ("late", 0), *[("random", seed) for seed in range(10)]]:
        report, _ = ring(schedule, seed, CONSUMER_FLIPS="")
        assert report.findings[0].code == "mbarrier-parity", report.summary()


#: A warp waits twice for one phase with one instruction and arrives in between.
TWICE = """
    .shared .align 8 .b64 full; .shared .align 8 .b64 other;
    .reg .b32 %t, %i; .reg .pred %first, %lead, %p, %more;
    mov.u32 %t, %tid.x; and.b32 %i, %t, 31; setp.eq.u32 %first, %t, 0; setp.eq.u32 %lead, %i, 0;
    @%first mbarrier.init.shared::cta.b64 [full], 1; @%first mbarrier.init.shared::cta.b64 [other], 2;
    bar.sync 0;
    @%first mbarrier.arrive.shared::cta.b64 _, [full];
    mov.u32 %i, 0; setp.ge.u32 %p, %t, 32; @%p bra last;
once: mbarrier.try_wait.parity.shared::cta.b64 %p, [full], 0; @!%p bra once;
    @%lead mbarrier.arrive.shared::cta.b64 _, [other];
    add.u32 %i, %i, 1; setp.lt.u32 %more, %i, 2; @%more bra once;
last: ret;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_two_waits_for_one_phase_are_right(schedule: Any) -> None:
    report, _ = launch(TWICE, block=64, schedule=schedule)
    assert (report.status, codes(report)) == ("ok", []), report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_commit_to_the_other_stage_of_a_pair(schedule: Any) -> None:
    """A phase completes that the producer has yet to wait for: also where the copies and MMAs are slow."""
    subject = load("modular-k6")
    text, count = re.subn(
        r"(tcgen05\.commit\S*) \[%r_empty\](, %rs_commit_mask;)",
        r"{ .reg .b32 %r_other; xor.b32 %r_other, %r_empty, 8; \1 [%r_other]\2 }",
        subject.text,
        count=1,
    )
    assert count
    report = subject.run(text, Emulator(subject.target, schedule, max_steps=400_000))[0]
    assert errors(report) == ["mbarrier-round-behind"], report.summary()
    clean = subject.run(subject.text, Emulator(subject.target, schedule))[0]
    assert (clean.status, errors(clean)) == ("ok", []), clean.summary()
    assert codes(clean) == []


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_arrivals_of_ctas_that_follow_others(schedule: Any) -> None:
    """Warps are compared by their names in the launch, of which there are more than are resident."""
    body = """
    .shared .align 8 .b64 full; .reg .b32 %t; .reg .pred %first, %lead;
    mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0; and.b32 %t, %t, 31; setp.eq.u32 %lead, %t, 0;
    @%first mbarrier.init.shared::cta.b64 [full], 1;
    bar.sync 0;
    @%lead mbarrier.arrive.shared::cta.b64 _, [full];
    ret;"""
    report, _ = launch(body, block=64, grid=6, schedule=schedule, multiprocessors=1)
    assert [each.code for each in report.findings] == ["mbarrier-split"], report.summary()
    assert report.findings[0].also_warps >= 10


#: CTA 0 alone waits; CTA 1, which has its place afterwards, reads what nobody has written.
ONE_AFTER_THE_OTHER = """
    .shared .align 8 .b64 ready;
    .shared .align 16 .b8 room[200000];
    .reg .b32 %c, %x; .reg .b64 %at; .reg .pred %second, %done;
    mov.u32 %c, %ctaid.x;
    setp.eq.u32 %second, %c, 1;
    @%second bra READ;
    mbarrier.init.shared.b64 [ready], 1;
    PASSES: mbarrier.try_wait.parity.shared.b64 %done, [ready], 1;
    @!%done bra PASSES;
    bra END;
    READ: ld.shared.u32 %x, [room+16];
    st.global.u32 [%out0], %x;
    END: ret;"""


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_waits_of_a_cta_explain_nothing_in_the_next(schedule: Any) -> None:
    report, _ = launch(ONE_AFTER_THE_OTHER, [poisoned(1)], grid=2, block=1, schedule=schedule, multiprocessors=1)
    assert "uninitialized-shared" in codes(report), report.summary()
    assert "passed at once" not in report.summary()


#: Warp 1 lets warp 0 go, issues an MMA, waits for it, and lets warp 0 go again; warp 0 waits for the first alone.
ANOTHER_BARRIER = """
    .shared .align 128 .b8 tile[16384]; .shared .align 8 .b64 done; .shared .align 8 .b64 go;
    .shared .align 8 .b64 seen; .shared .align 4 .b32 slot;
    .reg .b32 %t, %warp, %i, %at, %base, %x; .reg .b64 %matrix, %start;
    .reg .pred %first, %p, %one, %none;
    mov.u32 %t, %tid.x; shr.u32 %warp, %t, 5; setp.eq.u32 %first, %t, 0; setp.eq.u32 %one, %warp, 0;
    @%first mbarrier.init.shared::cta.b64 [done], 1; @%first mbarrier.init.shared::cta.b64 [go], 1;
    @%first mbarrier.init.shared::cta.b64 [seen], 1;
    @%one tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;
    mov.u32 %at, tile; mad.lo.u32 %at, %t, 128, %at; mov.u32 %i, 0;
zeros: st.shared.v4.u32 [%at], {%i, %i, %i, %i}; add.u32 %at, %at, 16; add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 8; @%p bra zeros;
    fence.proxy.async.shared::cta; tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
    ld.shared.u32 %base, [slot]; mov.b64 %matrix, 0x4000404000010000;
    mov.u32 %at, tile; shr.u32 %at, %at, 4; cvt.u64.u32 %start, %at; or.b64 %matrix, %matrix, %start;
    @!%one bra issues;
went: mbarrier.try_wait.parity.shared::cta.b64 %p, [go], 0; @!%p bra went;
    @%first mbarrier.arrive.shared::cta.b64 _, [seen];
    mov.u32 %i, 600;
late: sub.u32 %i, %i, 1; setp.ne.u32 %p, %i, 0; @%p bra late;
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%x}, [%base]; tcgen05.wait::ld.sync.aligned;
    bra end;
issues: setp.ne.u32 %none, %t, %t; setp.ne.u32 %p, %t, 32; @%p bra end;
    mbarrier.arrive.shared::cta.b64 _, [go];
    tcgen05.mma.cta_group::1.kind::f16 [%base], %matrix, %matrix, 0x8080490, %none;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
landed: mbarrier.try_wait.parity.shared::cta.b64 %p, [done], 0; @!%p bra landed;
acked: mbarrier.try_wait.parity.shared::cta.b64 %p, [seen], 0; @!%p bra acked;
    mbarrier.arrive.shared::cta.b64 _, [go];
end: bar.warp.sync -1;
    tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
    @%one tcgen05.dealloc.cta_group::1.sync.aligned.b32 %base, 64;
    @%one tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; ret;
"""


def test_an_mbarrier_that_hands_a_completion_on_is_not_that_of_the_operation() -> None:
    report, _ = launch(ANOTHER_BARRIER, block=128)
    race = next(each for each in report.findings if each.code == "tensor-race")
    assert "wait for done" in race.fix
    assert " go " not in race.message
