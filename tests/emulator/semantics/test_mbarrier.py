"""mbarrier objects: phases, parities, counts, bytes, waits of all kinds, and what breaks them. PTX ISA 9.7.13.15."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from ptxgen.emulator.engines.timeline import Schedule
from ptxgen.emulator.observer import Lanes, Observer
from ptxgen.emulator.state.mbarriers import MBarrier
from ptxgen.syntax import Statement
from tests.support.harness import codes, launch, line_of, poisoned

HEAD = """
    .shared .align 8 .b64 bar;
    .shared .align 8 .b64 other;
    .reg .pred %p, %q; .reg .u32 %x, %t, %place, %parity; .reg .b64 %state, %old, %wide, %at;
    mov.u32 %place, bar;
    mov.u32 %t, %tid.x;
"""
TEST = "mbarrier.test_wait.parity.shared.b64 %p, [bar], {}; selp.u32 %x, 1, 0, %p; st.global.u32 [%out0+{}], %x;\n"


def run(body: str, words: int = 8, **options: Any) -> tuple[Any, list[int]]:
    report, (found,) = launch(HEAD + body + "\nret;", [poisoned(words)], **{"block": 1, **options})
    return report, found.tolist()


class Model:
    """An object as the manual describes it, for sequences of single operations."""

    def __init__(self, count: int) -> None:
        self.expected = self.pending = count
        self.tx = self.phase = 0

    def step(self, arrivals: int = 0, expect: int = 0, complete: int = 0, drop: int = 0) -> None:
        self.tx += expect - complete
        self.expected -= drop
        self.pending -= arrivals
        if self.pending == 0 and self.tx == 0:
            self.phase, self.pending = self.phase + 1, self.expected


@pytest.mark.parametrize("seed", range(12))
def test_random_operations(seed: int) -> None:
    """After each operation both parities are asked: that of the phase before the current one is done, no other."""
    rng = random.Random(seed)
    model = Model(rng.randrange(1, 9))
    lines = [f"mbarrier.init.shared.b64 [bar], {model.expected};"]
    expected: list[int] = []

    def ask() -> None:
        for parity in (0, 1):
            lines.append(TEST.format(parity, 4 * len(expected)))
            # Parity 1 on a fresh object is done: it is that of the phase before the first.
            expected.append(int((model.phase - 1) % 2 == parity))

    ask()
    for _ in range(60):
        kind = rng.randrange(6)
        if kind == 4 and model.expected > 1:
            count = rng.randrange(1, min(model.pending, model.expected - 1) + 1)
            lines.append(f"mbarrier.arrive_drop.shared.b64 _, [bar], {count};")
            model.step(arrivals=count, drop=count)
        elif kind == 5 and model.expected > 1 and model.tx < 2**19:
            lines.append("mbarrier.arrive_drop.expect_tx.release.cta.shared::cta.b64 %state, [bar], 32;")
            model.step(arrivals=1, expect=32, drop=1)
        elif kind == 0:
            count = rng.randrange(1, model.pending + 1)
            lines.append(f"mbarrier.arrive.shared::cta.b64 _, [bar], {count};")
            model.step(arrivals=count)
        elif kind == 1:
            size = rng.choice([0, 16, 4096, 2**20 - 1 - max(model.tx, 0)]) if model.tx < 2**19 else 0
            lines.append(f"mbarrier.arrive.expect_tx.shared.b64 %state, [bar], {size};")
            model.step(arrivals=1, expect=size)
        elif kind == 2:
            size = rng.choice([16, 32, 1024]) if model.tx < 2**19 else 0
            lines.append(f"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], {size};")
            model.step(expect=size)
        else:
            size = min(max(model.tx, rng.choice([0, 16])), 2**20 - 1)
            if model.tx - size < -(2**19):
                continue
            lines.append(f"mbarrier.complete_tx.shared.b64 [bar], {size};")
            model.step(complete=size)
        if model.pending == 0:  # only bytes are missing, or too many came: make the phase end
            size = abs(model.tx)
            lines.append(f"mbarrier.{'complete' if model.tx > 0 else 'expect'}_tx.shared.b64 [bar], {size};")
            model.step(**{"complete" if model.tx > 0 else "expect": size})
        ask()
    report, found = run("\n".join(lines), len(expected))
    assert report.status == "ok", report.summary()
    assert found == expected


def test_bytes_before_they_are_expected() -> None:
    """The tx-count may go below zero; the phase ends when arrivals and bytes are both even."""
    body = (
        "mbarrier.init.shared.b64 [bar], 1; mbarrier.complete_tx.shared.b64 [bar], 48;" + TEST.format(0, 0)
        + "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;" + TEST.format(0, 4)
        + "mbarrier.complete_tx.shared.b64 [bar], 16;" + TEST.format(0, 8)
    )  # fmt: skip
    report, found = run(body, 3)
    assert report.status == "ok", report.summary()
    assert found == [0, 0, 1]


def test_states_of_arrivals() -> None:
    """A state names the phase in which it was given: done once that has ended, and two phases later no more."""
    ask = "mbarrier.{}_wait.shared.b64 %p, [bar], %old; selp.u32 %x, 1, 0, %p; st.global.u32 [%out0+{}], %x;\n"
    body = (
        "mbarrier.init.shared.b64 [bar], 2; mbarrier.arrive.shared.b64 %old, [bar];" + ask.format("test", 0)
        + "mbarrier.arrive.shared.b64 %state, [bar];" + ask.format("test", 4) + ask.format("try", 8)
        + "mbarrier.arrive.shared.b64 %old, [bar];" + ask.format("test", 12)
        + "mbarrier.arrive.shared.b64 _, [bar];" + ask.format("test", 16)
    )  # fmt: skip
    report, found = run(body, 5)
    assert report.status == "ok", report.summary()
    assert found == [0, 1, 1, 0, 1]


def test_states_and_their_counts() -> None:
    """The bits that an H200 returned for states; pending_count is what was pending before the arrival."""
    body = """mbarrier.init.shared.b64 [bar], 9;
mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], 48;
        mbarrier.arrive.noComplete.shared.b64 %old, [bar], 4;
        mbarrier.pending_count.b64 %x, %old;
        st.global.u32 [%out0], %x;
        st.global.b64 [%out0+8], %old;
        mbarrier.arrive_drop.noComplete.release.cta.shared::cta.b64 %old, [bar], 2;
        mbarrier.pending_count.b64 %x, %old;
        st.global.u32 [%out0+4], %x;
        mbarrier.complete_tx.shared.b64 [bar], 48;
        mbarrier.arrive.shared.b64 %state, [bar], 3;
        mbarrier.arrive.shared.b64 %state, [bar];
        st.global.b64 [%out0+16], %state;"""
    report, found = run(body, 6)
    assert report.status == "ok", report.summary()
    assert found[:2] == [9, 5]
    states = [found[2] | found[3] << 32, found[4] | found[5] << 32]
    assert states[0] == (2**20 - 9) << 43 | (2**21 - 48) << 21 | (2**20 - 9) << 1
    # In the second phase 7 are expected: two were dropped.
    assert states[1] == 1 << 63 | (2**20 - 7) << 43 | (2**20 - 7) << 1


def test_arrivals_that_may_not_complete() -> None:
    body = "mbarrier.init.shared.b64 [bar], 3; mbarrier.arrive.noComplete.shared.b64 %state, [bar], {};"
    assert codes(run(body.format(3))[0]) == ["mbarrier-no-complete"]
    assert codes(run(body.format(2))[0]) == []


def test_threads_that_drop_out() -> None:
    """Of 96 threads a third leaves after each phase; the others go on without them."""
    body = """
        setp.eq.u32 %q, %t, 0;
        @%q mbarrier.init.shared.b64 [bar], 96;
        bar.sync 0;
        mov.u32 %place, 0;
        mul.lo.u32 %x, %t, 4;
        cvt.u64.u32 %at, %x;
        add.u64 %at, %at, %out0;
        loop:
        and.b32 %parity, %place, 1;
        add.u32 %place, %place, 1;
        st.global.u32 [%at], %place;
        mul.lo.u32 %x, %place, 32;
        setp.lt.u32 %q, %t, %x;
        @%q bra last;
        mbarrier.arrive.shared.b64 _, [bar];
        w:
        mbarrier.try_wait.parity.shared.b64 %p, [bar], %parity;
        @!%p bra w;
        bra loop;
        last: mbarrier.arrive_drop.shared.b64 _, [bar];
    """
    for schedule in ("eager", "late", "random"):
        report, found = run(body, 96, block=96, schedule=schedule)
        assert report.status == "ok", report.summary()
        assert found == [t // 32 + 1 for t in range(96)]


def test_multicast_operations() -> None:
    """sm_107f: the objects at the same place in all CTAs of a mask."""
    body = """
        .shared .align 8 .b64 bar;
        .reg .pred %p; .reg .u32 %x, %rank; .reg .b64 %at;
        mov.u32 %rank, %cluster_ctarank;
        mbarrier.init.shared.b64 [bar], 2;
        fence.mbarrier_init.release.cluster;
        barrier.cluster.arrive;
        barrier.cluster.wait;
        setp.ne.u32 %p, %rank, 1;
        @%p bra wait;
        mbarrier.expect_tx.relaxed.cluster.shared::cluster.multicast::cluster::32b.b64 [bar], 64, 11;
        mbarrier.arrive.release.cluster.shared::cluster.multicast::cluster::32b.b64 _, [bar], 2, 11;
        mbarrier.complete_tx.relaxed.cluster.shared::cluster.multicast::cluster::32b.b64 [bar], 64, 11;
        wait: barrier.cluster.arrive; barrier.cluster.wait;
        mbarrier.test_wait.parity.shared.b64 %p, [bar], 0;
        selp.u32 %x, 1, 0, %p;
        mad.wide.u32 %at, %rank, 4, %out0;
        st.global.u32 [%at], %x;
        ret;
    """
    report, (found,) = launch(
        body, [poisoned(4)], block=1, grid=4, cluster=4, version="9.4", kernel_target="sm_107f", target="sm_107f"
    )
    assert report.status == "ok", report.summary()
    assert found.tolist() == [1, 1, 0, 1]


def test_lanes_that_wait_for_different_objects() -> None:
    body = """
        setp.eq.u32 %q, %t, 0;
        @%q mbarrier.init.shared.b64 [bar], 1;
        @%q mbarrier.init.shared.b64 [other], 1;
        bar.sync 0;
        setp.eq.u32 %q, %t, 40;
        @%q bra arrives;
        and.b32 %x, %t, 1; mad.lo.u32 %place, %x, 8, %place;
        w:
        mbarrier.try_wait.parity.shared.b64 %p, [%place], 0;
        @!%p bra w;
        bra end;
        arrives:
        mbarrier.arrive.shared.b64 _, [other];
        mbarrier.arrive.shared.b64 _, [bar];
        end:
        mad.wide.u32 %at, %t, 4, %out0;
        st.global.u32 [%at], %t;
    """
    for schedule in ("eager", "late", "random"):
        report, found = run(body, 64, block=64, schedule=schedule)
        assert report.status == "ok", report.summary()
        assert found == list(range(64))


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_threads_arrive(schedule: Any) -> None:
    """Every thread arrives and waits in ten phases; what each wrote before is seen after."""
    body = """
        .shared .align 4 .b8 data[1024]; .reg .u32 %base, %mine, %next, %n, %round, %sum;
        setp.eq.u32 %q, %t, 0;
        @%q mbarrier.init.shared.b64 [bar], 80;
        bar.sync 0;
        mov.u32 %base, data;
        mov.u32 %round, 0;
        mov.u32 %sum, 0;
        mad.lo.u32 %mine, %t, 4, %base;
        add.u32 %x, %t, 37;
        rem.u32 %x, %x, 80;
        mad.lo.u32 %next, %x, 4, %base;
        loop:
        mad.lo.u32 %x, %t, 7, %round;
        st.shared.u32 [%mine], %x;
        and.b32 %parity, %round, 1;
        mbarrier.arrive.shared.b64 _, [bar];
        w:
        mbarrier.try_wait.parity.shared.b64 %p, [bar], %parity;
        @!%p bra w;
        ld.shared.u32 %x, [%next];
        add.u32 %sum, %sum, %x;
        bar.sync 0;
        add.u32 %round, %round, 1;
        setp.lt.u32 %p, %round, 10;
        @%p bra loop;
        mad.wide.u32 %at, %t, 4, %out0;
        st.global.u32 [%at], %sum;
    """
    report, found = run(body, 80, block=80, schedule=schedule)
    assert report.status == "ok", report.summary()
    assert found == [sum(7 * ((t + 37) % 80) + r for r in range(10)) for t in range(80)]
    unguarded = body.replace("bar.sync 0;\n        add.u32 %round", "add.u32 %round")
    racing, _ = run(unguarded, 80, block=80, schedule=schedule)
    assert "shared-race" in codes(racing)


def test_spinning_with_test_wait() -> None:
    body = """
        setp.eq.u32 %q, %t, 0;
        @%q mbarrier.init.shared.b64 [bar], 1;
        bar.sync 0;
        setp.eq.u32 %q, %t, 40;
        @%q bra arrives;
        spin:
        mbarrier.test_wait.parity.shared.b64 %p, [bar], 0;
        @!%p bra spin;
        bra end;
        arrives:
        mov.u32 %x, 0;
        work:
        add.u32 %x, %x, 1;
        setp.lt.u32 %p, %x, 400;
        @%p bra work;
        mbarrier.arrive.shared.b64 _, [bar];
        end:
        mad.wide.u32 %at, %t, 4, %out0;
        st.global.u32 [%at], %t;
    """
    for schedule in ("eager", "late", "random"):
        report, found = run(body, 64, block=64, schedule=schedule)
        assert report.status == "ok", report.summary()
        assert found == list(range(64))


def test_a_wait_that_gives_up() -> None:
    """try_wait may return false after a time: a program without a loop goes on, once and again."""
    body = "mbarrier.init.shared.b64 [bar], 1;" + "".join(
        f"mbarrier.try_wait.parity.shared.b64 %p, [bar], {parity}{hint}; selp.u32 %x, 1, 0, %p;"
        f"st.global.u32 [%out0+{4 * i}], %x;"
        for i, (parity, hint) in enumerate([(0, ""), (0, ", 100"), (1, ""), (0, "")])
    )
    report, found = run(body, 4)
    assert report.status == "ok", report.summary()
    assert found == [0, 0, 1, 0]


def test_random_lets_waits_reach_their_time_limit() -> None:
    """A try_wait may return false though the phase completes soon; `eager` and `late` wait for it."""
    body = """mov.u32 %t, %tid.x;
        setp.ne.u32 %q, %t, 0;
        @%q bra ready;
        mbarrier.init.shared.b64 [bar], 1;
        ready:
        bar.sync 0;
        setp.lt.u32 %q, %t, 32;
        @%q bra waits;
        setp.ne.u32 %q, %t, 32;
        @%q bra end;
        mbarrier.arrive.shared.b64 _, [bar];
        bra end;
        waits:
        mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
        selp.u32 %x, 1, 0, %p;
        mad.wide.u32 %at, %t, 4, %out0;
        st.global.u32 [%at], %x;
        end:
        """

    def succeeded(schedule: Schedule, seed: int) -> bool:
        report, found = run(body, 32, block=64, schedule=schedule, seed=seed)
        assert report.status == "ok", report.summary()
        assert len(set(found)) == 1
        return bool(found[0])

    assert succeeded("eager", 0)
    assert succeeded("late", 0)
    assert {succeeded("random", seed) for seed in range(24)} == {False, True}


def test_a_bounded_number_of_tries() -> None:
    body = """mbarrier.init.shared.b64 [bar], 1;
mov.u32 %x, 0;
        again:
        mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
        @%p bra end;
        add.u32 %x, %x, 1;
        setp.lt.u32 %q, %x, 300;
        @%q bra again;
        end:
        st.global.u32 [%out0], %x;
        """
    report, found = run(body, 1)
    assert report.status == "ok", report.summary()
    assert found == [300]


def test_waiting_without_end_is_a_deadlock() -> None:
    body = """mbarrier.init.shared.b64 [bar], 3;
        mbarrier.arrive.shared.b64 _, [bar];
        again:
        mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
        @!%p bra again;
        """
    report, _ = run(body, 1)
    assert report.status == "deadlock"
    finding = report.findings[0]
    assert finding.instruction.startswith("mbarrier.try_wait")
    assert "2 of 3 arrivals" in finding.message


INIT = "mbarrier.init.shared.b64 [bar], {};"
ARRIVE = "mbarrier.arrive.shared.b64 _, [bar]{};"
#: (name, what comes before: bad, the same: good, the instruction to blame, status, code)
FAULTS = [
    ("no init", "", INIT.format(1), ARRIVE.format(""), "fault", "mbarrier-uninitialized"),
    ("waiting without init", "", INIT.format(1), "mbarrier.test_wait.parity.shared.b64 %p, [bar], 0;", "fault",
     "mbarrier-uninitialized"),
    ("after its end", INIT.format(1) + "mbarrier.inval.shared.b64 [bar];", INIT.format(1), ARRIVE.format(""), "fault",
     "mbarrier-uninitialized"),
    ("too many arrivals", INIT.format(2), INIT.format(3), ARRIVE.format(", 3"), "fault", "mbarrier-overflow"),
    ("too many arrivals in turn", INIT.format(2) + "mbarrier.expect_tx.shared.b64 [bar], 5;" + ARRIVE.format(""),
     INIT.format(3) + "mbarrier.expect_tx.shared.b64 [bar], 5;" + ARRIVE.format(""), ARRIVE.format(", 2"), "fault",
     "mbarrier-overflow"),
    ("too many bytes", INIT.format(1) + "mbarrier.expect_tx.shared.b64 [bar], 1048575;",
     INIT.format(1) + "mbarrier.expect_tx.shared.b64 [bar], 1048574;", "mbarrier.expect_tx.shared.b64 [bar], 1;",
     "fault", "mbarrier-tx"),
    ("too few bytes", INIT.format(1) + "mbarrier.complete_tx.shared.b64 [bar], 1048575;",
     INIT.format(1) + "mbarrier.complete_tx.shared.b64 [bar], 1048574;", "mbarrier.complete_tx.shared.b64 [bar], 1;",
     "fault", "mbarrier-tx"),
    ("init again", INIT.format(1), INIT.format(1) + "mbarrier.inval.shared.b64 [bar];", INIT.format(2), "findings",
     "mbarrier-reinitialized"),
    ("stores to it", INIT.format(1), INIT.format(1) + "mbarrier.inval.shared.b64 [bar];", "st.shared.u32 [bar+4], 7;",
     "findings", "mbarrier-overwritten"),
    ("dropping too many", INIT.format(3), INIT.format(4), "mbarrier.arrive_drop.shared.b64 _, [bar], 4;", "fault",
     "mbarrier-overflow"),
    ("a count of nothing", "mov.u32 %x, 0;", "mov.u32 %x, 1;", INIT.format("%x"), "fault", "mbarrier-count"),
    ("a count of too many", "mov.u32 %x, 1048576;", "mov.u32 %x, 1048575;", INIT.format("%x"), "fault",
     "mbarrier-count"),
    ("not where mbarriers are", "add.u32 %place, %place, 4;", "add.u32 %place, %place, 8;",
     "mbarrier.init.shared.b64 [%place], 1;", "fault", "misaligned"),
    ("outside shared memory", "add.u32 %place, %place, 16;", "", "mbarrier.init.shared.b64 [%place], 1;", "fault",
     "out-of-bounds"),
    ("a global address", "mov.b64 %wide, %out0;", "cvt.u64.u32 %wide, %place; cvta.shared.u64 %wide, %wide;",
     "mbarrier.init.b64 [%wide], 1;", "fault", "not-shared"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "bad", "good", "victim", "status", "code"), FAULTS, ids=[each[0] for each in FAULTS])
def test_faults_and_their_twins(name: str, bad: str, good: str, victim: str, status: str, code: str) -> None:
    report, _ = run(f"{bad}\n{victim}")
    assert (report.status, codes(report)) == (status, [code]), report.summary()
    assert report.findings[0].instruction.startswith(victim.split(" ")[0])
    clean, _ = run(f"{good}\n{victim}")
    assert clean.status == "ok", clean.summary()


def test_init_must_be_seen_before_use() -> None:
    body = """setp.eq.u32 %q, %t, 0;
@%q mbarrier.init.shared.b64 [bar], 64;
        {}
        mbarrier.arrive.shared.b64 _, [bar];"""
    report, _ = run(body.format(""), block=64)
    assert codes(report) == ["mbarrier-init-race"]
    assert report.findings[0].line is not None
    clean, _ = run(body.format("bar.sync 0;"), block=64)
    assert clean.status == "ok", clean.summary()


ENDS = """setp.eq.u32 %q, %t, 0;
@%q mbarrier.init.shared.b64 [bar], 64;
bar.sync 0;
    mbarrier.arrive.shared.b64 _, [bar];
    {}
    {}
    @%q mbarrier.inval.shared.b64 [bar];"""
WAITS = "again: mbarrier.try_wait.parity.shared.b64 %p, [bar], 0; @!%p bra again;"


@pytest.mark.parametrize("seed", range(6))
def test_the_end_may_come_before_another_warp_has_waited(seed: int) -> None:
    """Advice: the phase is over, and hardware still says so to a warp that asks after the end."""
    report, _ = run(ENDS.format(WAITS, ""), block=64, schedule="random", seed=seed)
    assert (report.status, set(codes(report))) == ("ok", {"mbarrier-inval-race"}), report.summary()
    assert report.findings[0].instruction.startswith("@%q mbarrier.inval")
    clean, _ = run(ENDS.format(WAITS, "bar.sync 0;"), block=64, schedule="random", seed=seed)
    assert (clean.status, codes(clean)) == ("ok", []), clean.summary()


def test_the_end_must_come_after_all_arrivals() -> None:
    report, _ = run(ENDS.format("", ""), block=64)
    assert (report.status, codes(report)) == ("findings", ["mbarrier-inval-race"]), report.summary()
    clean, _ = run(ENDS.format("", "bar.sync 0;"), block=64)
    assert clean.status == "ok", clean.summary()


def test_generic_addresses_and_remote_forms() -> None:
    body = """cvt.u64.u32 %wide, %place;
cvta.shared.u64 %wide, %wide;
mbarrier.init.b64 [%wide], 2;
        mbarrier.arrive.b64 _, [%wide];
        mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%place];
        mbarrier.try_wait.parity.acquire.cta.b64 %p, [%wide+0], 0;
        selp.u32 %x, 1, 0, %p;
        st.global.u32 [%out0], %x;
        mbarrier.inval.b64 [%wide];
        mbarrier.init.shared.b64 [bar], 1;
        """
    report, found = run(body, 1)
    assert report.status == "ok", report.summary()
    assert found == [1]


def test_lines_of_findings() -> None:
    body = "mov.u32 %x, 3;\nmbarrier.init.shared.b64 [bar], 1;\nmbarrier.arrive.shared.b64 _, [bar], %x;"
    report, _ = run(body)
    assert report.findings[0].instruction.endswith("%x;")
    text = HEAD + body
    assert line_of(text, "[bar], %x") - line_of(text, "mov.u32 %x, 3") == 2
    assert report.findings[0].line is not None


def test_one_word_of_output_is_enough() -> None:
    """The harness shows what a kernel wrote, and leaves poison where it wrote nothing."""
    report, found = run("mov.u32 %x, 5; st.global.u32 [%out0+4], %x;", 3)
    assert report.ok
    assert found == [0xCDCDCDCD, 5, 0xCDCDCDCD]
    assert np.uint32(0xCDCDCDCD) == poisoned(1)[0]


LAYOUTS = """
    .reg .b8 %why;
    mbarrier.init{0}.shared.b64 [bar], {1};
    mbarrier.check_layout.layout::v1.shared.b64 %p, [bar];
    selp.u32 %x, 1, 0, %p;
    st.global.u32 [%out0], %x;
    mbarrier.check_layout.layout::v0.shared.b64 %p, [bar];
    selp.u32 %x, 1, 0, %p;
    st.global.u32 [%out0+4], %x;
    mbarrier.arrive.shared.b64 %state, [bar];
    mbarrier.test_wait.parity.phase_type::conditional.shared.b64 %p, [bar], 0;
    selp.u32 %x, 1, 0, %p;
    st.global.u32 [%out0+8], %x;
"""
REPORT = """
    mbarrier.try_wait.parity.phase_type::primary.acquire.cta.shared.b64 %p|%q, %why, [bar], 0;
    selp.u32 %x, 1, 0, %p;
    st.global.u32 [%out0+12], %x;
    selp.u32 %x, 1, 0, %q;
    st.global.u32 [%out0+16], %x;
    cvt.u32.u8 %x, %why;
    st.global.u32 [%out0+20], %x;
"""


def test_layouts_and_reports() -> None:
    """PTX 9.3: of layout v1 nothing is reported, since what goes wrong here ends the kernel."""
    report, found = run(LAYOUTS.format(".layout::v1", 1) + REPORT, 6, version="9.4")
    assert (report.status, found) == ("ok", [1, 0, 1, 1, 0, 0]), report.summary()
    for layout in ("", ".layout::v0"):
        report, found = run(LAYOUTS.format(layout, 1), 3, version="9.4")
        assert (report.status, found) == ("ok", [0, 1, 1]), report.summary()
    report, _ = run(LAYOUTS.format("", 1) + REPORT, 6, version="9.4")
    assert (report.status, codes(report)) == ("incomplete", ["not-modelled"])
    for layout, most in ((".layout::v1", 511), (".layout::v0", 2**20 - 1)):
        init = f"mov.u32 %x, {{}}; mbarrier.init{layout}.shared.b64 [bar], %x;"
        assert run(init.format(most), version="9.4")[0].status == "ok"
        assert codes(run(init.format(most + 1), version="9.4")[0]) == ["mbarrier-count"]


def test_init_by_all_lanes_of_a_warp() -> None:
    """Each makes the same object anew: undefined (9.7.13.15.9), but harmless. ThunderKittens does it."""
    body = "mov.u32 %x, 5; {} " + INIT.format("%x") + " bar.warp.sync -1; " + ARRIVE.format("")
    report, _ = run(body.format(""), block=4)
    assert (report.status, codes(report)) == ("ok", ["mbarrier-reinitialized"])
    assert report.findings[0].severity == "advice"
    report, _ = run(body.format("add.u32 %x, %x, %t;"), block=4)
    assert report.status == "findings"
    one = "mov.u32 %x, 1; again: mbarrier.init.shared.b64 [bar], 5; add.u32 %x, %x, 1;"
    one += "setp.lt.u32 %p, %x, 3; @%p bra again;"
    report, _ = run(one, block=1)  # a loop makes it anew: that is not the same instruction
    assert [(each.code, each.severity) for each in report.findings] == [("mbarrier-reinitialized", "error")]


RELAXED = "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;"


@pytest.mark.parametrize("seed", range(3))
def test_a_relaxed_barrier_is_enough_before_the_end(seed: int) -> None:
    """All waits are over by then, which nothing needs to see; arrivals without a wait still race."""
    clean, _ = run(ENDS.format(WAITS, RELAXED), block=64, schedule="random", seed=seed)
    assert (clean.status, codes(clean)) == ("ok", []), clean.summary()
    report, _ = run(ENDS.format("", RELAXED), block=64, schedule="random", seed=seed)
    assert (report.status, codes(report)) == ("findings", ["mbarrier-inval-race"]), report.summary()


class _Waits(Observer):
    """The lanes of each wait that passes, by warp."""

    def __init__(self) -> None:
        self.lanes: dict[int, list[int]] = {}

    def mbarrier_waited(self, warp: int, lanes: Lanes, mbarrier: MBarrier, statement: Statement, **_: Any) -> None:
        self.lanes.setdefault(warp, []).append(int(lanes.sum()))


def test_lanes_wait_together_by_states_of_their_own() -> None:
    """The states that lanes get from their arrivals differ in the arrivals before, but name the same phase."""
    body = """
        setp.eq.u32 %p, %t, 0;
        @%p mbarrier.init.shared.b64 [bar], 64;
        bar.sync 0;
        mbarrier.arrive.shared.b64 %state, [bar];
    again:
        mbarrier.try_wait.shared.b64 %q, [bar], %state;
        @!%q bra again;
        and.b32 %x, %t, 1;
        setp.eq.u32 %p, %x, 1;
        @%p xor.b64 %state, %state, 0x8000000000000000;
        mbarrier.test_wait.shared.b64 %q, [bar], %state;
        selp.u32 %x, 1, 0, %q;
        mad.wide.u32 %at, %t, 4, %out0;
        st.global.u32 [%at], %x;
    """
    seen = _Waits()
    report, found = run(body, 64, block=64, observers=[seen])
    assert report.status == "ok", report.summary()
    assert found == [1, 0] * 32  # odd lanes ask for the phase after it
    assert seen.lanes == {warp: [32, 16] for warp in (0, 1)}


@pytest.mark.parametrize(("count", "extra"), [("", 0), (", 3", 0), (", 3", 5), (", %count", 0)], ids=str)
def test_states_of_lanes_that_arrive_together(count: str, extra: int) -> None:
    """Each lane gets the state before its own arrival, whether the lanes arrive alike or with different counts."""
    counts = {"": [1] * 64, ", 3": [3] * 64, ", %count": [1 + each % 5 for each in range(64)]}[count]
    expected = sum(counts) + extra
    body = f"""
        .reg .u32 %count;
        rem.u32 %count, %t, 5;
        add.u32 %count, %count, 1;
        setp.eq.u32 %p, %t, 0;
        @%p mbarrier.init.shared.b64 [bar], {expected};
        bar.sync 0;
        mbarrier.arrive.shared.b64 %state, [bar]{count};
        mbarrier.pending_count.b64 %x, %state;
        mad.wide.u32 %at, %t, 4, %out0;
        st.global.u32 [%at], %x;
        bar.sync 0;
        {TEST.format(0, 256)}
    """
    report, found = run(body, 65, block=64)
    assert report.status == "ok", report.summary()
    left = expected - np.cumsum([0, *counts])
    if found[0] != expected:  # the second warp came first
        left = np.concatenate(
            [
                expected - sum(counts[32:]) - np.cumsum([0, *counts[:32]])[:32],
                expected - np.cumsum([0, *counts[32:]])[:32],
            ]
        )
    assert found[:64] == left[:64].tolist()
    assert found[64] == (extra == 0)
