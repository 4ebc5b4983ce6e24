"""Control flow: divergence, reconvergence, progress of every lane, barriers of the CTA, and what never ends."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.emulator import Emulator
from ptxgen.emulator.load.flow import execution_order
from tests.support.harness import codes, launch, line_of, module, poisoned

#: %i is the thread's number in the grid, %at its word of out0.
HEAD = """
    .reg .b64 %at, %wide;
    .reg .u32 %i, %t, %cta, %n, %lane, %x, %y, %z, %k;
    .reg .pred %p, %q, %r;
    mov.u32 %t, %tid.x;
    mov.u32 %cta, %ctaid.x;
    mov.u32 %n, %ntid.x;
    mad.lo.u32 %i, %cta, %n, %t;
    mul.wide.u32 %wide, %i, 4;
    add.u64 %at, %out0, %wide;
    and.b32 %lane, %t, 31;
"""


def run(body: str, threads: int = 80, ctas: int = 3, **options: Any) -> tuple[Any, list[int]]:
    report, (found,) = launch(HEAD + body, [poisoned(threads * ctas)], block=threads, grid=ctas, **options)
    return report, found.tolist()


SCHEDULES = [("eager", 0), ("late", 0), ("random", 1), ("random", 2)]


def collatz(i: int) -> int:
    steps, x = 0, i + 1
    while x != 1:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        steps += 1
    return steps


def nested(i: int) -> int:
    total = 0
    for outer in range(i % 5):
        for inner in range(i % 7):
            if (outer + inner + i) % 3 == 0:
                continue
            if inner > 4:
                break
            total += outer * inner + i
    return total


PROGRAMS = [
    (
        "if and else",
        """and.b32 %x, %i, 1;
setp.eq.u32 %p, %x, 0;
@%p bra even;
           mul.lo.u32 %y, %i, 3;
           bra both;
           even: add.u32 %y, %i, 100;
           both:
           add.u32 %y, %y, 1;
           st.global.u32 [%at], %y;
           ret;
           """,
        lambda i: (i + 100 if i % 2 == 0 else 3 * i) + 1,
    ),
    (
        "cold blocks at the end that jump back",
        """mov.u32 %y, %i;
rem.u32 %x, %i, 7;
setp.eq.u32 %p, %x, 3;
@%p bra cold;
           back:
           rem.u32 %x, %i, 5;
           setp.eq.u32 %p, %x, 1;
           @%p bra colder;
           again:
           st.global.u32 [%at], %y;
           ret;
           colder:
           add.u32 %y, %y, 2000;
           bra again;
           cold:
           add.u32 %y, %y, 1000;
           bra back;
           """,
        lambda i: i + 1000 * (i % 7 == 3) + 2000 * (i % 5 == 1),
    ),
    (
        "a loop with other counts in every lane",
        """add.u32 %x, %i, 1;
mov.u32 %y, 0;
           loop:
           setp.eq.u32 %p, %x, 1;
           @%p bra done;
           add.u32 %y, %y, 1;
           and.b32 %z, %x, 1;
           setp.eq.u32 %q, %z, 0;
           @%q bra even;
           mad.lo.u32 %x, %x, 3, 1;
           bra loop;
           even:
           shr.u32 %x, %x, 1;
           bra loop;
           done:
           st.global.u32 [%at], %y;
           ret;
           """,
        collatz,
    ),
    (
        "nested loops with continue and break",
        """mov.u32 %y, 0;
rem.u32 %n, %i, 5;
rem.u32 %k, %i, 7;
mov.u32 %x, 0;
           outer:
           setp.ge.u32 %p, %x, %n;
           @%p bra end;
           mov.u32 %z, 0;
           inner:
           setp.ge.u32 %p, %z, %k;
           @%p bra next;
           add.u32 %t, %x, %z;
           add.u32 %t, %t, %i;
           rem.u32 %t, %t, 3;
           setp.eq.u32 %q, %t, 0;
           @%q bra skip;
           setp.gt.u32 %q, %z, 4;
           @%q bra next;
           mad.lo.u32 %t, %x, %z, %i;
           add.u32 %y, %y, %t;
           skip:
           add.u32 %z, %z, 1;
           bra inner;
           next:
           add.u32 %x, %x, 1;
           bra outer;
           end:
           st.global.u32 [%at], %y;
           ret;
           """,
        nested,
    ),
    (
        "lanes that leave early, the rest goes on",
        """st.global.u32 [%at], %i;
rem.u32 %x, %i, 3;
setp.eq.u32 %p, %x, 0;
@%p exit;
           add.u32 %y, %i, 5;
           st.global.u32 [%at], %y;
           setp.lt.u32 %p, %i, 40;
           @!%p bra on;
           ret;
           on:
           add.u32 %y, %y, 7;
           st.global.u32 [%at], %y;
           """,
        lambda i: i if i % 3 == 0 else i + 5 if i < 40 else i + 12,
    ),
    (
        "guards with partial masks",
        """mov.u32 %y, 1;
and.b32 %x, %i, 3;
setp.eq.u32 %p|%q, %x, 2;
@%p mov.u32 %y, 2;
@!%p add.u32 %y, %y, %i;
           setp.gt.u32 %r, %i, 50;
           @%r shl.b32 %y, %y, 1;
           @%r setp.eq.u32 %p, %x, 0;
           @%p add.u32 %y, %y, 1000;
           st.global.u32 [%at], %y;
           @%q st.global.u32 [%at], %y;
           ret;
           """,
        lambda i: (
            (2 if i % 4 == 2 else 1 + i) * (2 if i > 50 else 1) + 1000 * ((i % 4 == 0) if i > 50 else (i % 4 == 2))
        ),
    ),
    (
        "falls off the end",
        "add.u32 %y, %i, 9; st.global.u32 [%at], %y;",
        lambda i: i + 9,
    ),
    (
        "a loop entered in its middle",
        """mov.u32 %y, 0;
rem.u32 %x, %i, 6;
setp.lt.u32 %p, %x, 3;
@%p bra middle;
           top: add.u32 %y, %y, 10;
           middle:
           add.u32 %y, %y, 1;
           add.u32 %x, %x, 1;
           setp.lt.u32 %p, %x, 8;
           @%p bra top;
           st.global.u32 [%at], %y;
           ret;
           """,
        lambda i: (8 - i % 6) + 10 * (8 - i % 6 - (1 if i % 6 < 3 else 0)),
    ),
]


@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
@pytest.mark.parametrize(("name", "body", "reference"), PROGRAMS, ids=[each[0] for each in PROGRAMS])
def test_divergence(name: str, body: str, reference: Any, schedule: Any, seed: int) -> None:
    report, found = run(body, schedule=schedule, seed=seed)
    assert report.status == "ok", report.summary()
    assert found == [reference(i) for i in range(len(found))]


def test_lanes_meet_again() -> None:
    """After an if and else, after cold blocks and after loops of different lengths the warp runs as one."""
    common = "add.u32 %y, %y, 1;" * 100
    apart = (
        "rem.u32 %x, %i, 4; mov.u32 %y, 0; setp.eq.u32 %p, %x, 0; @%p bra cold; back: "
        + common
        + ("st.global.u32 [%at], %y; ret; cold: add.u32 %y, %y, 2; bra back;")
    )
    report, _ = run(apart, threads=32, ctas=1)
    assert report.instructions < 140
    loop = "rem.u32 %x, %i, 9; mov.u32 %y, 0; l: add.u32 %y, %y, 1; setp.lt.u32 %p, %y, %x; @%p bra l;" + common
    report, _ = run(loop + "st.global.u32 [%at], %y; ret;", threads=32, ctas=1)
    assert report.instructions < 150


@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
def test_a_lane_waits_for_a_lane_of_its_warp(schedule: Any, seed: int) -> None:
    """Independent thread scheduling: the lanes below in the text get their turn although others spin."""
    flag = np.full(1, 7, np.uint32)
    body = """
        .reg .u32 %f;
        setp.eq.u32 %p, %lane, 5;
        @%p bra setter;
        spin:
        ld.volatile.global.u32 %f, [%in0];
        setp.ne.u32 %q, %f, 1234;
        @%q bra spin;
        bra done;
        setter:
        mov.u32 %x, 0;
        work:
        add.u32 %x, %x, 1;
        setp.lt.u32 %q, %x, 50;
        @%q bra work;
        mov.u32 %f, 1234;
        st.volatile.global.u32 [%in0], %f;
        done:
        st.global.u32 [%at], %f;
        ret;
    """
    report, found = run(body, threads=32, ctas=1, inputs=[flag], schedule=schedule, seed=seed)
    assert report.status == "ok", report.summary()
    assert found == [1234] * 32


@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
def test_a_cta_waits_for_another(schedule: Any, seed: int) -> None:
    body = """
        .reg .u32 %f;
        setp.eq.u32 %p, %cta, 2;
        @%p bra setter;
        spin:
        ld.relaxed.gpu.global.u32 %f, [%in0];
        setp.ne.u32 %q, %f, 99;
        @%q bra spin;
        bra done;
        setter:
        mov.u32 %f, 99;
        st.relaxed.gpu.global.u32 [%in0], %f;
        done:
        st.global.u32 [%at], %f;
        ret;
    """
    report, found = run(body, threads=64, ctas=3, inputs=[np.zeros(1, np.uint32)], schedule=schedule, seed=seed)
    assert report.status == "ok", report.summary()
    assert found == [99] * 192


def test_a_long_loop_without_effects_is_no_deadlock() -> None:
    """Ten thousand rounds of arithmetic, nothing stored: also with lanes that wait for the others to come."""
    body = """
        mov.u32 %x, 0;
        mov.u32 %y, 0;
        setp.lt.u32 %p, %lane, 9;
        @%p bra join;
        loop:
        add.u32 %x, %x, 1;
        mad.lo.u32 %y, %y, 5, %x;
        setp.lt.u32 %p, %x, 10000;
        @%p bra loop;
        join:
        bar.warp.sync 0xffffffff;
        bar.sync 0;
        st.global.u32 [%at], %y;
        ret;
    """
    report, found = run(body, threads=64, ctas=1)
    assert report.status == "ok", report.summary()
    y = 0
    for x in range(1, 10001):
        y = (5 * y + x) % 2**32
    assert found == [0 if i % 32 < 9 else y for i in range(64)]


def test_many_loops_at_once_are_no_deadlock() -> None:
    """Each of 24 warps counts in a loop of its own: between two looks at their state most of them have not run."""
    loops = "".join(f"setp.eq.u32 %p, %k, {w}; @%p bra l{w};\n" for w in range(24)) + "".join(
        f"l{w}: add.u32 %x, %x, 1; setp.lt.u32 %p, %x, 600; @%p bra l{w}; bra end;\n" for w in range(24)
    )
    body = f"shr.u32 %k, %t, 5; mov.u32 %x, 0; {loops} end: st.global.u32 [%at], %x; ret;"
    report, found = run(body, threads=768, ctas=1)
    assert report.status == "ok", report.summary()
    assert found == [600] * 768


ENDLESS = [
    ("a branch to itself", "l: bra l;", "deadlock"),
    ("waiting for a word that nobody writes",
     "l: ld.volatile.global.u32 %f, [%in0]; setp.ne.u32 %q, %f, 1; @%q bra l; ret;", "deadlock"),
    ("only some lanes of one warp",
     "setp.ne.u32 %p, %t, 33; @%p exit; l: ld.volatile.global.u32 %f, [%in0]; setp.ne.u32 %q, %f, 1; @%q bra l;",
     "deadlock"),
    ("a loop of several blocks, other lengths in every warp",
     "shr.u32 %z, %t, 5; o: mov.u32 %x, 0; l: add.u32 %x, %x, 1; setp.le.u32 %q, %x, %z; @%q bra l; bra o;",
     "deadlock"),
    ("counting without end", "l: add.u32 %x, %x, 1; bra l;", "incomplete"),
    ("storing without end", "l: add.u32 %x, %x, 1; st.global.u32 [%at], %x; bra l;", "incomplete"),
    ("one warp at a barrier, the other goes round",
     "setp.lt.u32 %p, %t, 32; @%p bra b; l: bra l; b: bar.sync 0; ret;", "deadlock"),
]  # fmt: skip


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(("name", "body", "status"), ENDLESS, ids=[each[0] for each in ENDLESS])
def test_what_never_ends_is_reported(name: str, body: str, status: str, schedule: Any) -> None:
    steps = 20000 if status == "deadlock" else 2000
    report, _ = run(".reg .u32 %f;" + body, 80, 2, inputs=[np.zeros(1, np.uint32)], schedule=schedule, max_steps=steps)
    assert report.status == status, report.summary()
    if status == "deadlock":
        assert report.findings[0].line is not None
    else:
        assert "step limit (2000) reached here" in report.findings[0].message
        assert "max_steps" in report.findings[0].message
        assert report.findings[0].line is not None


def test_reading_clocks_is_no_going_round() -> None:
    body = """
        .reg .u64 %begin, %now;
        mov.u64 %begin, %clock64;
        l:
        mov.u64 %now, %clock64;
        sub.u64 %now, %now, %begin;
        setp.lt.u64 %p, %now, 3000;
        @%p bra l;
        st.global.u32 [%at], %i;
        ret;
    """
    report, found = run(body)
    assert report.status == "ok", report.summary()
    assert found == list(range(240))


@pytest.mark.parametrize("opcode", ["bar.sync 0", "barrier.sync.aligned 0", "tcgen05.wait::ld.sync.aligned"])
def test_aligned_in_a_diverged_warp(opcode: str) -> None:
    body = f"setp.lt.u32 %p, %lane, 7; @%p bra skip;\n{opcode};\nskip: st.global.u32 [%at], %i; ret;"
    text = HEAD + body
    report, _ = run(body, threads=32, ctas=1)
    assert "divergent-warp" in codes(report)
    finding = next(each for each in report.findings if each.code == "divergent-warp")
    assert finding.instruction.startswith(opcode.split(" ")[0])
    assert opcode in text.splitlines()[line_of(text, opcode) - 1]
    whole, _ = run(body.replace("%lane, 7", "%t, 0"), threads=32, ctas=1)
    assert whole.status == "ok", whole.summary()
    left, _ = run(body.replace("bra skip", "exit"), threads=32, ctas=1)
    assert left.status == "ok", left.summary()  # lanes that have left are missed by nobody


#: Lane 0 waits for an mbarrier as WAIT says, the other lanes go on to a barrier of the CTA.
PRODUCER = """
    .shared .align 8 .b64 bar;
    .reg .pred %done;
    setp.eq.u32 %p, %t, 0;
    @%p mbarrier.init.shared.b64 [bar], {count};
    bar.sync 0;
    @%p mbarrier.arrive.shared.b64 _, [bar];
    @!%p bra over;
    wait: {wait}
    @!%done bra wait;
    over: bar.sync 0;
    st.global.u32 [%at], %i;
    ret;
"""


@pytest.mark.parametrize("wait", ["try_wait.parity", "test_wait.parity"])
@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
def test_lanes_that_wait_for_a_deadlocked_one(wait: str, schedule: Any, seed: int) -> None:
    """The deadlock is reported, and not that the barrier behind it is reached by 31 of 32 lanes."""
    text = PRODUCER.replace("{wait}", f"mbarrier.{wait}.shared.b64 %done, [bar], 0;")
    report, _ = run(text.replace("{count}", "2"), threads=64, ctas=1, schedule=schedule, seed=seed)
    assert report.status == "deadlock", report.summary()
    assert "divergent-warp" not in codes(report), report.summary()
    right, _ = run(text.replace("{count}", "1"), threads=64, ctas=1, schedule=schedule, seed=seed)
    assert (right.status, codes(right)) == ("ok", []), right.summary()


def exchange(barrier: str) -> str:
    """Every thread passes its number to the next one of its CTA through shared memory, twice."""
    return f"""
        .shared .align 4 .b8 buffer[512];
        .reg .u32 %base, %mine, %next;
        mov.u32 %base, buffer;
        mad.lo.u32 %mine, %t, 4, %base;
        add.u32 %x, %t, 1;
        rem.u32 %x, %x, %n;
        mad.lo.u32 %next, %x, 4, %base;
        st.shared.u32 [%mine], %i;
        {barrier} ld.shared.u32 %y, [%next];
        {barrier}
        st.shared.u32 [%mine], %y;
        {barrier} ld.shared.u32 %y, [%next];
        st.global.u32 [%at], %y;
        ret;
    """


@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
@pytest.mark.parametrize(
    "barrier",
    ["bar.sync 0;", "bar.sync 3, 96;", "barrier.sync 15;", "barrier.sync.aligned 2, 96;", "bar.cta.sync 1;"],
)
def test_barriers_order(barrier: str, schedule: Any, seed: int) -> None:
    """80 threads are three warps, of which a barrier with a number counts 32 each."""
    report, found = run(exchange(barrier), schedule=schedule, seed=seed)
    assert report.status == "ok", report.summary()
    assert found == [cta * 80 + (t + 2) % 80 for cta in range(3) for t in range(80)]


def test_without_the_barrier_there_is_a_race() -> None:
    report, _ = run(exchange(""))
    assert "shared-race" in codes(report)


def test_barriers_of_pairs_of_warps() -> None:
    """Producers and consumers of 64 threads, two barriers, many rounds; the last warp takes no part."""
    body = """
        .shared .align 4 .b8 word[4];
        .reg .u32 %base, %round;
        mov.u32 %base, word;
        mov.u32 %round, 0;
        mov.u32 %y, 0;
        setp.ge.u32 %p, %t, 64;
        @%p bra done;
        setp.ge.u32 %p, %t, 32;
        @%p bra consumer;
        produce:
        bar.sync 1, 64;
        st.shared.u32 [%base], %round;
        bar.sync 2, 64;
        add.u32 %round, %round, 1;
        setp.lt.u32 %q, %round, 20;
        @%q bra produce;
        bra done;
        consumer:
        bar.sync 1, 64;
        bar.sync 2, 64;
        ld.shared.u32 %x, [%base];
        mad.lo.u32 %y, %y, 3, %x;
        add.u32 %round, %round, 1;
        setp.lt.u32 %q, %round, 20;
        @%q bra consumer;
        done:
        st.global.u32 [%at], %y;
        ret;
    """
    expected = 0
    for number in range(20):
        expected = (3 * expected + number) % 2**32
    for schedule, seed in SCHEDULES:
        report, found = run(body, threads=96, ctas=2, schedule=schedule, seed=seed)
        assert report.status == "ok", report.summary()
        assert found == [expected if 32 <= t < 64 else 0 for _ in range(2) for t in range(96)]


STUCK = [
    ("a warp is missing", "setp.lt.u32 %p, %t, 32; @%p exit; bar.sync 0, 96; ret;", "64 of 96"),
    ("two of three warps make one pair", "bar.sync 0, 64; ret;", "32 of 64"),
    ("two barriers, one warp each", "setp.lt.u32 %p, %t, 32; @%p bra a; bar.sync 1, 96; ret; a: bar.sync 2, 96; ret;",
     "barrier 1"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "body", "part"), STUCK, ids=[each[0] for each in STUCK])
def test_barriers_that_nobody_completes(name: str, body: str, part: str) -> None:
    report, _ = run(body, threads=96, ctas=2)
    assert report.status == "deadlock", report.summary()
    assert len(report.findings) == 1, report.summary()
    assert any(part in finding.message for finding in report.all_findings), report.summary()


def test_threads_that_left_are_not_waited_for() -> None:
    body = "setp.ge.u32 %p, %t, 40; @%p exit; bar.sync 0; st.global.u32 [%at], %i; ret;"
    report, found = run(body, threads=96, ctas=1)
    assert report.status == "ok", report.summary()
    assert found == [i if i < 40 else 0xCDCDCDCD for i in range(96)]


BAD_BARRIERS = [("bar.sync %x;", 16, "barrier-number"), ("bar.sync 0, %x;", 33, "barrier-count")]


@pytest.mark.parametrize(("barrier", "value", "code"), BAD_BARRIERS)
def test_bad_barrier_operands(barrier: str, value: int, code: str) -> None:
    report, _ = run(f"mov.u32 %x, {value};\n{barrier}\nret;", threads=32, ctas=1)
    assert report.status == "fault"
    assert codes(report) == [code]
    clean, _ = run(f"mov.u32 %x, {15 if value == 16 else 32};\n{barrier}\nret;", threads=32, ctas=1)
    assert clean.status == "ok", clean.summary()


def test_a_label_that_is_not_there() -> None:
    report, _ = run("bra nowhere;", threads=32, ctas=1)
    assert (report.status, report.findings[0].code) == ("fault", "illegal-ptx")
    assert "nowhere" in report.findings[0].message


def test_labels_and_registers_have_scopes() -> None:
    body = """
        mov.u32 %y, 1;
        { .reg .u32 %y;
        mov.u32 %y, 50;
        bra here;
        mov.u32 %y, 60;
        here:
        add.u32 %x, %y, 0; }
        { .reg .u32 %y<3>;
        mov.u32 %y2, 7;
        bra here;
        add.u32 %x, %x, 1;
        here:
        add.u32 %x, %x, %y2; }
        add.u32 %x, %x, %y;
        st.global.u32 [%at], %x;
        ret;
    """
    report, found = run(body)
    assert report.status == "ok", report.summary()
    assert found == [58] * 240


# The order of execution.


def is_reachable(successors: list[list[int]], start: int, without: set[int]) -> set[int]:
    seen, stack = {start}, [start]
    while stack:
        for node in successors[stack.pop()]:
            if node not in seen and node not in without:
                seen.add(node)
                stack.append(node)
    return seen


@pytest.mark.parametrize("seed", range(200))
def test_execution_order_of_random_graphs(seed: int) -> None:
    """Every node once; edges between loops go forward; a loop's blocks stand together."""
    rng = random.Random(seed)
    size = rng.randrange(1, 14)
    successors = [sorted({rng.randrange(size) for _ in range(rng.choice([0, 1, 1, 2, 2]))}) for _ in range(size)]
    order = execution_order(successors)
    assert sorted(order) == list(range(size))
    assert order[0] == 0
    rank = {node: place for place, node in enumerate(order)}
    reached = is_reachable(successors, 0, set())
    assert {rank[node] for node in reached} == set(range(len(reached)))
    reach = [is_reachable(successors, node, set()) for node in range(size)]
    for node in reached:
        loop = {other for other in reach[node] if node in reach[other]}
        places = sorted(rank[other] for other in loop)
        assert places == list(range(places[0], places[0] + len(places)))
        for other in successors[node]:
            assert other in loop or rank[other] > rank[node]


def test_order_of_a_nest() -> None:
    """0 -> outer loop (1: inner loop 2, 3) -> 4, with a cold block 5 of the inner loop at the end."""
    assert execution_order([[1], [2, 4], [3, 5], [2, 1], [], [3]]) == [0, 1, 2, 5, 3, 4]


def test_an_entry_without_instructions() -> None:
    report = Emulator().launch(Kernel.from_ptx(module("")), 2, 33, [])
    assert report.status == "ok"
    assert report.instructions == 0
