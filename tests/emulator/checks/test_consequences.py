"""One cause is one finding, with what follows from it folded under it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxgen import Finding
from ptxgen.emulator import Emulator
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import mbarriers, races
from tests.bugs import BUGS, warps
from tests.bugs.bug import Bug
from tests.support.gemm import run
from tests.support.harness import launch
from tools.mutants.subjects import load

SCHEDULES = ["eager", "late", "random"]
WAIT_LOADED = r"\$wait:\n.*?\n.*?bra \$wait;\n"

CAUSES: list[tuple[Callable[[str], str], str, set[str]]] = [
    (lambda text: text.replace("[%r_full], 32768", "[%r_full], 16384"), "expect-tx", {"deadlock", "shared-race"}),
    (lambda text: text.replace("[%r_full], 32768", "[%r_full], 32784"), "expect-tx", {"deadlock"}),
    (lambda text: re.sub(WAIT_LOADED, "", text, count=1), "shared-race", {"shared-race"}),
]


def one(findings: list[Finding]) -> tuple[str, set[str]]:
    """The code of the only finding, and those of its consequences."""
    (found,) = findings
    return found.code, {each.code for each in found.consequences}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("edit", "root", "follow"), CAUSES, ids=["too few bytes", "too many bytes", "no wait"])
def test_one_cause_in_a_gemm(edit: Callable[[str], str], root: str, follow: set[str], schedule: Any) -> None:
    report = run(256, 128, 256, edit=edit, schedule=schedule).report
    code, consequences = one(report.findings)
    assert code == root
    assert follow <= consequences, report.summary()
    assert f"+ {len(report.findings[0].consequences)} consequence" in report.summary()


def edited(name: str, line: int, old: str, new: str, schedule: Any) -> list[Finding]:
    """The findings of a recorded kernel with a line changed."""
    subject = load(name)
    lines = subject.text.splitlines(keepends=True)
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new)
    return subject.run("".join(lines), Emulator(subject.target, schedule))[0].findings


def test_a_wait_that_passes_at_once() -> None:
    """A deadlock and 20 uninitialized reads, since the consumer does not wait for any stage."""
    code, consequences = one(edited("cute_90_gemm_f16", 192, "], 0, 10000000", "], 1, 10000000", "eager"))
    assert code == "uninitialized-shared"
    assert "deadlock" in consequences


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_one_advice_names_all_barriers_without_a_fence(schedule: Any) -> None:
    findings = edited("cute_90_gemm_f16", 47, "fence.mbarrier_init.release.cluster;", "", schedule)
    (found,) = findings
    assert (found.code, found.severity, found.consequences) == ("mbarrier-init-proxy", "advice", ())
    barriers = {each.address for each in found.accesses if each.role == "initializer"}
    assert len(barriers) == 3
    assert all(f"({address:#x})" in found.message for address in barriers)


BROKEN = [
    ("cute_100_gemm_f16", 558, "bar.sync \t0;", "", "tmem-freed-in-use"),
    ("g39_90_specialised", 277, "setmaxnreg.dec.sync.aligned.u32 \t64;", "", "setmaxnreg-warpgroup"),
    ("splitk_cluster", 492, ".release", ".relaxed", "shared-race"),
    ("streamk", 160, "bar.sync", "// bar.sync", "shared-race"),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("name", "line", "old", "new", "root"), BROKEN, ids=[each[0] for each in BROKEN])
def test_one_cause_in_a_recorded_kernel(name: str, line: int, old: str, new: str, root: str, schedule: Any) -> None:
    """No barrier before tcgen05.dealloc; a warp that skips one setmaxnreg; a relaxed barrier of the cluster; no barrier
    between the stores of two tiles and three ldmatrix.
    """
    (found,) = [each for each in edited(name, line, old, new, schedule) if each.severity == "error"]
    assert found.code == root
    if new == ".relaxed":
        assert found.fix.startswith("leave out .relaxed")


ALONE = [
    "leader-waits-for-its-pair-with-scope-cta",
    "bytes-announced-by-a-thread-that-does-not-arrive",
    "stage-reused-after-a-commit-of-another-thread",
    "columns-freed-before-registers-are-stored",
    "stride-takes-tcgen05-behind-its-operand",
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("bug", [each for each in BUGS if each.name in ALONE], ids=lambda bug: bug.name)
def test_a_bug_is_one_error(bug: Bug, schedule: Any) -> None:
    errors = [each for each in bug.run(schedule, right=False).findings if each.severity == "error"]
    assert [each.code for each in errors] == [bug.code]


#: Each warp stores to two arrays, and loads the next one's words of both.
TWO_ARRAYS = """
    .shared .align 4 .b8 a[256]; .shared .align 4 .b8 b[256];
    .reg .b32 %t, %x, %y, %at;
    mov.u32 %t, %tid.x; shl.b32 %x, %t, 2; xor.b32 %y, %x, 128;
    mov.u32 %at, a; add.u32 %at, %at, %x; st.shared.u32 [%at], %t;
    mov.u32 %at, b; add.u32 %at, %at, %x; st.shared.u32 [%at], %t;
    BARRIER
    mov.u32 %at, a; add.u32 %at, %at, %y; ld.shared.u32 %x, [%at];
    mov.u32 %at, b; add.u32 %at, %at, %y; ld.shared.u32 %x, [%at];
    ret;"""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("barrier", ["", "bar.sync 0;"])
def test_one_missing_barrier_leaves_two_arrays_unordered(barrier: str, schedule: Any) -> None:
    report, _ = launch(TWO_ARRAYS.replace("BARRIER", barrier).replace("; ", ";\n"), block=64, schedule=schedule)
    assert [each.code for each in report.findings] == ([] if barrier else ["shared-race"]), report.summary()


#: Warps of two CTAs in turn add to a word; the flag between them is set before all threads are through.
TURNS = """
    .reg .b32 %t, %c, %flag, %x; .reg .b64 %at; .reg .pred %p, %first;
    mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x;
    setp.eq.u32 %first, %t, 0;
    mad.wide.u32 %at, %t, 4, %out0;
    @!%first bra go;
    turn: ld.acquire.gpu.global.u32 %flag, [%out0+1024];
    setp.ne.u32 %p, %flag, %c;
    @%p bra turn;
    go: bar.sync 0;
    ld.global.u32 %x, [%at];
    add.u32 %x, %x, 5;
    st.global.u32 [%at], %x;
    add.u32 %c, %c, 1;
    @%first st.release.gpu.global.u32 [%out0+1024], %c;
    ret;"""
#: A CTA stores an array, then a flag that another one polls; or CTAs add to a word, one after the other, by a lock.
FLAGGED = """
    .reg .b32 %t, %c, %x; .reg .b64 %at; .reg .pred %first, %other, %p;
    mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x;
    setp.eq.u32 %first, %t, 0; setp.ne.u32 %other, %c, 0;
    mad.wide.u32 %at, %t, 4, %out0;
    @%other bra poll;
    st.global.u32 [%at], 7;
    bar.sync 0;
    @%first SET;
    bra end;
poll: POLL;
    setp.eq.u32 %p, %x, 0;
    @%p bra poll;
    bar.sync 0;
    ld.global.u32 %x, [%at];
    st.global.u32 [%at+512], %x;
end: ret;"""
LOCKED = """
    .reg .b32 %t, %x; .reg .pred %other, %p;
    mov.u32 %t, %tid.x; setp.ne.u32 %other, %t, 0;
    @%other bra end;
lock: POLL;
    setp.ne.u32 %p, %x, 0;
    @%p bra lock;
    TAKE
    ld.global.u32 %x, [%out0];
    add.u32 %x, %x, 1;
    st.global.u32 [%out0], %x;
    SET;
end: ret;"""
SET, UNSET = "st{}.global.u32 [%out0+1024], 1", "st{}.global.u32 [%out0+1024], 0"
TAKE = "st.global.u32 [%out0+1024], 1;"
GET, SWAP = "ld{}.global.u32 %x, [%out0+1024]", "atom{}.global.cas.b32 %x, [%out0+1024], 0, 1"
RELEASE, ACQUIRE, SMALL, LITTLE = ".release.gpu", ".acquire.gpu", ".release.cta", ".acquire.cta"
#: (kernel, how a flag is set and polled, how a lock is taken, code).
WEAK = {
    "flag, both weak": (FLAGGED, SET.format(""), GET.format(""), "", "global-race"),
    "flag, weak store": (FLAGGED, SET.format(""), GET.format(ACQUIRE), "", "global-race"),
    "flag, weak load": (FLAGGED, SET.format(RELEASE), GET.format(""), "", "global-race"),
    "flag, both .cta": (FLAGGED, SET.format(SMALL), GET.format(LITTLE), "", "narrow-scope"),
    "lock, weak store": (LOCKED, UNSET.format(""), SWAP.format(ACQUIRE), "", "global-race"),
    "lock, all weak": (LOCKED, UNSET.format(""), GET.format(""), TAKE, "global-race"),
    "lock, .cta swap": (LOCKED, UNSET.format(RELEASE), SWAP.format(LITTLE), "", "narrow-scope"),
    "lock, both .cta": (LOCKED, UNSET.format(SMALL), SWAP.format(LITTLE), "", "narrow-scope"),
    "right flag": (FLAGGED, SET.format(RELEASE), GET.format(ACQUIRE), "", ""),
    "right lock": (LOCKED, UNSET.format(RELEASE), SWAP.format(ACQUIRE), "", ""),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", WEAK)
def test_a_weak_flag_explains_races_on_what_it_should_order(name: str, schedule: Any) -> None:
    body, sets, polls, takes, code = WEAK[name]
    for old, new in (("SET", sets), ("POLL", polls), ("TAKE", takes)):
        body = body.replace(old, new)
    for seed in range(3 if schedule == "random" else 1):
        report, _ = launch(body, [np.zeros(512, np.uint32)], grid=2, block=64, schedule=schedule, seed=seed)
        if not code:
            assert not report.findings, report.summary()
            continue
        assert one(report.findings)[0] == code, report.summary()
        if code == "global-race":
            assert "polls it as a flag, but" in report.findings[0].rule


#: A flag in shared memory, relaxed in all CTAs but the first.
RELAXED_LATER = """
    .shared .align 4 .b32 data[32]; .shared .align 4 .b32 flag;
    .reg .b32 %t, %c, %x, %at; .reg .pred %first, %other, %p;
    mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x;
    setp.eq.u32 %first, %t, 0; setp.ge.u32 %other, %t, 32;
    @%first st.shared.u32 [flag], 0;
    bar.sync 0;
    and.b32 %x, %t, 31;
    mov.u32 %at, data; mad.lo.u32 %at, %x, 4, %at;
    setp.eq.u32 %p, %c, 0;
    @%other bra poll;
    st.shared.u32 [%at], 7;
    bar.warp.sync -1;
    @%p fence.acq_rel.cta;
    @%first st.relaxed.cta.shared.u32 [flag], 1;
    bra end;
poll: ld.acquire.cta.shared.u32 %x, [flag];
    setp.eq.u32 %p, %x, 0;
    @%p bra poll;
    bar.warp.sync -1;
    ld.shared.u32 %x, [%at];
end: ret;"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_relaxed_flag_of_ctas_that_follow_others(schedule: Any) -> None:
    report, _ = launch(RELAXED_LATER, grid=6, block=64, schedule=schedule, multiprocessors=1)
    assert one(report.findings) == ("missing-fence", set()), report.summary()


def test_a_barrier_that_is_missing_besides_a_weak_flag_stays() -> None:
    """The flag would not order what comes after it."""
    body = FLAGGED.replace("SET", SET.format("")).replace("POLL", GET.format(ACQUIRE))
    body = body.replace("bra end;\npoll", "bar.sync 0;\n st.global.u32 [%at+512], 9;\n bra end;\npoll")
    report, _ = launch(body, [np.zeros(512, np.uint32)], grid=2, block=64)
    assert sorted(each.code for each in report.findings) == ["global-race"] * 2, report.summary()


#: A load through the read-only path of what threads of both CTAs add to.
READ_ONLY = """
    .reg .b32 %x;
    red.relaxed.gpu.global.add.u32 [%out0], 1;
    ld.global.nc.u32 %x, [%out0];
    ret;"""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("body", "root"), [(TURNS, "global-race"), (READ_ONLY, "nc-load")], ids=["turns", "nc"])
def test_two_instructions_race_in_many_ways(body: str, root: str, schedule: Any) -> None:
    report, _ = launch(body, [np.zeros(512, np.uint32)], grid=2, block=64, schedule=schedule)
    code, consequences = one(report.findings)
    assert (code, consequences) == (root, {"global-race"}), report.summary()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_unrolled_products_that_nobody_awaits(schedule: Any) -> None:
    """One finding each for registers and stage, however many MMAs a step has."""
    findings = edited("wgmma_attention", 316, "aligned 0;", "aligned 1;", schedule)
    assert sorted(each.code for each in findings) == ["shared-race", "wgmma-register-in-flight"]
    assert all(len(each.consequences) >= 3 for each in findings)


#: A producer and a consumer warp with four stages; the consumer gives a stage back before it reads it.
RING = """
    .shared .align 128 .b8 stages[1024];
    .shared .align 8 .b64 full[4]; .shared .align 8 .b64 empty[4];
    .reg .b32 %t, %lane, %n, %stage, %phase, %free, %full, %empty, %at, %x;
    .reg .pred %first, %lead, %done, %p;
    mov.u32 %t, %tid.x;
    and.b32 %lane, %t, 31;
    setp.eq.u32 %lead, %lane, 0;
    setp.lt.u32 %first, %t, 4;
    shl.b32 %x, %t, 3;
    mov.u32 %full, full; add.u32 %full, %full, %x;
    mov.u32 %empty, empty; add.u32 %empty, %empty, %x;
    @%first mbarrier.init.shared.b64 [%full], 1;
    @%first mbarrier.init.shared.b64 [%empty], 1;
    @%first fence.mbarrier_init.release.cluster;
    bar.sync 0;
    mov.u32 %n, 0;
NEXT:
    and.b32 %stage, %n, 3;
    shr.u32 %phase, %n, 2;
    and.b32 %phase, %phase, 1;
    xor.b32 %free, %phase, 1;
    shl.b32 %x, %stage, 3;
    mov.u32 %full, full; add.u32 %full, %full, %x;
    mov.u32 %empty, empty; add.u32 %empty, %empty, %x;
    shl.b32 %x, %stage, 8;
    mov.u32 %at, stages; add.u32 %at, %at, %x;
    setp.ge.u32 %p, %t, 32;
    @%p bra CONSUME;
RELEASED:
    mbarrier.try_wait.parity.shared.b64 %done, [%empty], %free;
    @!%done bra RELEASED;
    @%lead mbarrier.arrive.expect_tx.shared.b64 _, [%full], 256;
    @%lead cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%at], [%out0], 256, [%full];
    bra DONE;
CONSUME:
    mbarrier.try_wait.parity.shared.b64 %done, [%full], %phase;
    @!%done bra CONSUME;
    bar.warp.sync 0xffffffff;
    @%lead mbarrier.arrive.shared.b64 _, [%empty];
    shl.b32 %x, %lane, 3;
    add.u32 %at, %at, %x;
    ld.shared.b32 %x, [%at];
DONE:
    add.u32 %n, %n, 1;
    setp.lt.u32 %p, %n, 12;
    @%p bra NEXT;
    ret;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_stages_of_a_ring(schedule: Any) -> None:
    report, _ = launch(RING.replace("; add", ";\n    add"), [np.zeros(64, np.uint32)], block=64, schedule=schedule)
    assert one(report.findings) == ("shared-race", set()), report.summary()


#: The two operands of a wgmma, stored in two lines without a fence.
OPERANDS = Bug(
    name="operands",
    source="rebuilt",
    what="",
    code="missing-proxy-fence",
    ptx=warps.OPERANDS.replace("    fence.proxy", "+    fence.proxy") + "    wgmma.wait_group.sync.aligned 0;",
)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_stores_that_lack_one_fence(schedule: Any) -> None:
    report = OPERANDS.run(schedule, right=False)
    assert one(report.findings) == ("missing-proxy-fence", set()), report.summary()
    assert {"smem_a", "smem_b"} <= {each.name for each in report.findings[0].accesses}


#: What two warps store in lines of their own is read by a third without a barrier.
STORES = """
    .shared .align 16 .b8 words[1024];
    .reg .b32 %t, %lane, %at, %x;
    .reg .pred %first, %second, %third;
    mov.u32 %t, %tid.x;
    and.b32 %lane, %t, 31;
    setp.lt.u32 %first, %t, 32;
    setp.ge.u32 %third, %t, 64;
    or.pred %second, %first, %third;
    mov.u32 %x, words;
    shl.b32 %at, %t, 4;
    add.u32 %at, %at, %x;
    @%first st.shared.b32 [%at], 1;
    @!%second st.shared.b32 [%at], 2;
    shl.b32 %at, %lane, 5;
    add.u32 %at, %at, %x;
    @%third ld.shared.b32 %x, [%at];
    ret;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_stores_that_lack_one_barrier(schedule: Any) -> None:
    report, _ = launch(STORES, block=96, schedule=schedule)
    assert one(report.findings) == ("shared-race", {"shared-race"}), report.summary()


#: The GEMM of the ladder with one synchronization changed: (line's part, what it becomes, the codes that may lead).
IN_A_GEMM: list[tuple[str, str, str, set[str]]] = [
    ("an arrival too few on empty", r"(mbarrier\.init\S* \[smem\+40976\]), 16", r"\1, 15", {"mbarrier-split"}),
    ("an arrival too many on full", r"(mbarrier\.init\S* \[smem\+40960\]), 1;", r"\1, 2;", {"deadlock"}),
    ("an arrival too many on empty", r"(mbarrier\.init\S* \[smem\+40976\]), 16", r"\1, 17", {"deadlock"}),
    ("no expect_tx", r"mbarrier\.arrive\.expect_tx\S* _, \[%r_full\], 20480;", "", {"deadlock"}),
    ("a wait of another stage", r"(try_wait\S* %p_done, \[%r_ab_slot\+)40960", r"\g<1>40968", {"shared-race"}),
    ("an init of another stage", r"(mbarrier\.init\S* \[smem\+)40960", r"\g<1>40968", {"mbarrier-reinitialized"}),
    (
        "no arrival at the cluster's barrier",
        r"barrier\.cluster\.arrive\.relaxed\.aligned;",
        "",
        {"cluster-barrier-order"},
    ),
    (
        "a relaxed wait",
        r"try_wait\.parity(\S* %p_done, \[%r_ab_slot\+40976)",
        r"try_wait.parity.relaxed.cluster\1",
        {"shared-race"},
    ),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("schedule", ["eager", "late"])
@pytest.mark.parametrize(("old", "new", "codes"), [each[1:] for each in IN_A_GEMM], ids=[each[0] for each in IN_A_GEMM])
def test_one_cause_in_a_warp_specialized_gemm(old: str, new: str, codes: set[str], schedule: Any) -> None:
    subject = load("hopper-4")
    text, count = re.subn(old, new, subject.text, count=1)
    assert count
    report = subject.run(text, Emulator(subject.target, schedule, max_steps=300_000))[0]
    (found,) = [each for each in report.findings if each.severity == "error"]
    assert found.code in codes, report.summary()


def test_what_a_check_does_not_explain_stays() -> None:
    findings = Findings()
    for cause in (frozenset([("mbarrier", 8)]), frozenset([("mbarrier", 16)])):
        findings.report(races.SHARED_RACE, None, summary=f"race at {cause}", cause=cause)
    findings.report(mbarriers.MBARRIER_COUNT, None, summary="count", cause=frozenset([("mbarrier", 8)]))
    findings.report(mbarriers.EXPECT_TX, None, summary="bytes", cause=frozenset([("mbarrier", 8)]))
    found = {each.code: len(each.consequences) for each in findings.list()}
    assert found == {"shared-race": 0, "mbarrier-count": 0, "expect-tx": 1}


def test_advice_explains_no_error() -> None:
    findings = Findings()
    cause = frozenset([("mbarrier", 8)])
    findings.report(mbarriers.EXPECT_TX, None, summary="bytes", severity="advice", cause=cause)
    findings.report(races.SHARED_RACE, None, summary="race", cause=cause)
    findings.report(races.SHARED_RACE, None, summary="advice", severity="advice", cause=cause)
    assert [(each.code, each.severity, len(each.consequences)) for each in findings.list()] == [
        ("expect-tx", "advice", 1),
        ("shared-race", "error", 0),
    ]


def test_what_ended_the_launch_leads_its_cause_to_the_front() -> None:
    findings = Findings()
    cause = frozenset([("mbarrier", 8)])
    findings.report(races.SHARED_RACE, None, summary="race")
    findings.report(mbarriers.EXPECT_TX, None, summary="bytes", cause=cause)
    findings.report(mbarriers.DEADLOCK, None, summary="stuck", ends=True, cause=cause)
    assert [each.code for each in findings.list()] == ["expect-tx", "shared-race"]


def test_a_finding_as_data() -> None:
    body = """.shared .b32 data[4]; .reg .u32 %t, %x; .reg .pred %p; mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 32;
    @%p st.shared.u32 [data], 1;
    bar.sync 0;
    ld.shared.u32 %x, [data+8]; ret;"""
    report, _ = launch(body, block=64)
    (found,) = report.findings
    assert found.message == (
        "uninitialized read: ld.shared (line 12, warp 0, CTA 0) reads data[2] (0x408), which is "
        f"uninitialized. (the same of 1 other warp)\nfix: {found.fix}"
    )
    access = found.to_json()["accesses"][0]
    assert [access[key] for key in ("role", "space", "address", "name")] == ["reader", "shared", 0x408, "data[2]"]
    assert (found.section, found.also_warps, found.also_lines) == ("5.1.7", 1, ())


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_thread_counts_that_differ_are_named(schedule: Any) -> None:
    (bug,) = [each for each in BUGS if each.name == "barrier-with-two-counts"]
    (found,) = bug.run(schedule, right=False).findings
    assert "Their thread counts differ: 128 here, 96 in line 30" in found.message
    assert found.fix.startswith("name the same thread count")


#: Each warp stores 24 rows of 128 bytes by %to, with STRIDE bytes between the warps; warp 3 begins 7168 bytes behind.
OVERLAPPING = """
    .shared .align 16 .b8 tile[12288]; .shared .align 4 .b32 word;
    .reg .b32 %t, %warp, %lane, %to, %x; .reg .pred %last, %first;
    mov.u32 %t, %tid.x; shr.u32 %warp, %t, 5; and.b32 %lane, %t, 31; mov.u32 %to, tile;
    setp.eq.u32 %first, %t, 0; mad.lo.u32 %to, %lane, 4, %to; mad.lo.u32 %to, %warp, STRIDE, %to;
    setp.eq.u32 %last, %warp, 3; @%last add.u32 %to, %to, 7168;
    OTHER
""" + "".join(f"    st.shared.u32 [%to+{128 * row}], %t;\n" for row in range(24))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_races_of_an_address_that_faults(schedule: Any) -> None:
    """The wrong stride is their cause too; a race of another address stays a finding of its own."""
    text = OVERLAPPING.replace("STRIDE", "1024")
    report, _ = launch(text.replace("OTHER", ""), block=128, schedule=schedule)
    assert report.status == "fault"
    assert one(report.findings) == ("out-of-bounds", {"shared-race"}), report.summary()
    report, _ = launch(text.replace("OTHER", "@%first st.shared.u32 [word], 1; ld.shared.u32 %x, [word];"), block=128)
    assert [each.code for each in report.findings] == ["out-of-bounds", "shared-race"], report.summary()
    right = OVERLAPPING.replace("STRIDE", "3072").replace("7168", "0").replace("OTHER", "")
    assert launch(right, block=128, schedule=schedule)[0].findings == []
