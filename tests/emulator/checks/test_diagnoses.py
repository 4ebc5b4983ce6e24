"""A diagnosis survives a reader with the kernel beside it: it names the cause, and its fix cures.

Each kernel has one mistake whose message was once wrong or led astray.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen.device import LaunchReport
from tests.bugs import BUGS
from tests.bugs.bug import Bug
from tests.bugs.tensor_memory import BEGIN, END
from tests.emulator.checks.test_consequences import RING
from tests.support.harness import launch

SCHEDULES = ["eager", "late", "random"]
every_schedule = pytest.mark.parametrize("schedule", SCHEDULES)


def text(report: LaunchReport) -> str:
    """The message of the only error."""
    errors = [each for each in report.findings if each.severity == "error"]
    assert len(errors) == 1, report.summary()
    return errors[0].message


#: Warp 1 stores an array; warp 0 loads it without a barrier, in a loop that its own data ends.
WALKS = {
    "break at a zero": """
    mov.u32 %at, words;
    go: ld.shared.u32 %x, [%at];
    add.u32 %at, %at, 4;
    setp.ne.u32 %p, %x, 0;
    @%p bra go;""",
    "break, the address counted": """
    mov.u32 %i, 0;
    go: shl.b32 %at, %i, 2; mov.u32 %y, words; add.u32 %at, %at, %y;
    ld.shared.u32 %x, [%at];
    add.u32 %i, %i, 1;
    setp.ne.u32 %p, %x, 0;
    @%p bra go;""",
    "binary search": """
    mov.u32 %i, 0; mov.u32 %n, 64;
    go: add.u32 %y, %i, %n; shr.u32 %y, %y, 1;
    shl.b32 %at, %y, 2; mov.u32 %x, words; add.u32 %at, %at, %x;
    ld.shared.u32 %x, [%at];
    setp.lt.u32 %p, %x, 20;
    @%p mov.u32 %n, %y;
    @!%p add.u32 %i, %y, 1;
    setp.lt.u32 %p, %i, %n;
    @%p bra go;""",
    "list": """
    mov.u32 %x, 0;
    go: mov.u32 %at, words; add.u32 %at, %at, %x;
    ld.shared.u32 %x, [%at];
    and.b32 %x, %x, 0xfc;
    setp.ne.u32 %p, %x, 0;
    @%p bra go;""",
}
WALK = """
    .shared .align 4 .b32 words[64];
    .reg .b32 %t, %x, %y, %i, %n, %at; .reg .pred %p, %low;
    mov.u32 %t, %tid.x; setp.lt.u32 %low, %t, 32;
    shl.b32 %at, %t, 2; mov.u32 %y, words; add.u32 %at, %at, %y;
    st.shared.u32 [%at], 0;
    bar.sync 0;
    @%low bra read;
    sub.u32 %i, %t, 32;
    shl.b32 %at, %i, 2; mov.u32 %y, words; add.u32 %at, %at, %y;
    mul.lo.u32 %x, %i, 4; sub.u32 %x, 124, %x;
    st.shared.u32 [%at], %x;
    bra end;
    read: mov.u32 %i, 0;WALK
    st.global.u32 [%out0], %at;
    end: ret;"""


@every_schedule
@pytest.mark.parametrize("walk", WALKS)
def test_a_load_whose_address_changes_each_turn_polls_no_flag(walk: str, schedule: Any) -> None:
    found = text(launch(WALK.replace("WALK", WALKS[walk]), [np.zeros(4, np.uint32)], block=64, schedule=schedule)[0])
    assert "polls" not in found
    assert "bar.sync" in found


#: Thread 0 stores to a word of global memory, and warp 1 polls it in steps: the address is that of each turn.
POLLS = {
    "same register": "go: ld.global.u32 %x, [%out0];",
    "reloaded": "go: mov.b64 %at, %out0; ld.global.u32 %x, [%at+0];",
    "of the thread": "sub.u64 %at, %out0, 8; add.u64 %at, %at, 8;\ngo: ld.global.u32 %x, [%at];",
    "from memory": "go: ld.param.u64 %at, [p_out0]; ld.global.u32 %x, [%at];",
    "computed in the loop": "go: sub.u64 %at, %out0, 8; add.u64 %at, %at, 8; ld.global.u32 %x, [%at];",
    "a counter beside it": "mov.u32 %y, 0;\ngo: ld.global.u32 %x, [%out0]; add.u32 %y, %y, 1;",
}
POLL = """
    .reg .b32 %t, %x, %y; .reg .b64 %at; .reg .pred %p, %q, %low, %first;
    mov.u32 %t, %tid.x; setp.lt.u32 %low, %t, 32; setp.eq.u32 %first, %t, 0;
    @%first st.global.u32 [%out0], 1;
    @%low bra end;
    POLL
    setp.eq.u32 %p, %x, 0;
    @%p bra go;
    end: ret;"""


@pytest.mark.parametrize("poll", POLLS)
def test_a_load_of_one_word_polls_a_flag(poll: str) -> None:
    report, _ = launch(POLL.replace("POLL", POLLS[poll]), [np.zeros(4, np.uint32)], block=64)
    assert "polls it as a flag" in text(report)


#: 16 threads stage parameters, four warps read them.
STAGED = """
    .shared .align 4 .b32 words[16];
    .reg .b32 %t, %x, %at; .reg .pred %few;
    mov.u32 %t, %tid.x; setp.lt.u32 %few, %t, 16;
    and.b32 %x, %t, 15;
    mov.u32 %at, words; mad.lo.u32 %at, %x, 4, %at;
    @%few st.shared.u32 [%at], %t;
    BARRIER
    mov.u32 %at, words; xor.b32 %x, %x, 3; mad.lo.u32 %at, %x, 4, %at;
    ld.shared.u32 %x, [%at];
    ret;"""


@every_schedule
def test_lanes_and_warps_race_for_the_same_bytes(schedule: Any) -> None:
    report, _ = launch(STAGED.replace("BARRIER", ""), block=128, schedule=schedule)
    assert "fix: bar.sync" in text(report), report.summary()
    assert "bar.warp.sync" not in text(report)
    cured, _ = launch(STAGED.replace("BARRIER", "bar.sync 0;"), block=128, schedule=schedule)
    assert cured.ok


@every_schedule
def test_lanes_race_alone(schedule: Any) -> None:
    """One warp: bar.warp.sync is enough."""
    report, _ = launch(STAGED.replace("BARRIER", ""), block=32, schedule=schedule)
    assert "fix: bar.warp.sync" in text(report), report.summary()


STORED = """
    mov.u32 %r1, 0x3f803f80;
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%row+32], {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1};
    WAIT
    BARRIER
    @%thread0 tcgen05.mma.cta_group::1.kind::f16 [%tmem], [%tmem+32], %desc_b, %idesc, 0; // <--
    @%thread0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
FINISHED:
    mbarrier.try_wait.parity.shared.b64 %done, [done], 0;
    @!%done bra FINISHED;
"""
FENCED = "tcgen05.fence::before_thread_sync;\n    bar.sync 0;\n    tcgen05.fence::after_thread_sync;"


def tensor(body: str, schedule: Any) -> LaunchReport:
    bug = Bug(name="", source="rebuilt", what="", code="", target="sm_100a", ptx=BEGIN + body + END)
    return bug.run(schedule, right=False)


@every_schedule
def test_a_barrier_is_missing_after_the_wait_for_a_store(schedule: Any) -> None:
    wait = "tcgen05.wait::st.sync.aligned;"
    found = text(tensor(STORED.replace("WAIT", wait).replace("BARRIER", ""), schedule))
    assert "fix: bar.sync" in found
    assert "fix: tcgen05.wait::st" not in found
    found = text(tensor(STORED.replace("WAIT", "").replace("BARRIER", FENCED), schedule))
    assert "fix: tcgen05.wait::st" in found
    assert tensor(STORED.replace("WAIT", wait).replace("BARRIER", FENCED), schedule).ok


#: Warp 0 multiplies into the same columns twice; warp 1 gives them back by `empty`, and loads them.
GIVEN_BACK = """
    setp.eq.u32 %p0, %thread, 0;
    setp.eq.u32 %p1, %thread, 32;
    @%p0 tcgen05.mma.cta_group::1.kind::f16 [%tmem], %desc_a, %desc_b, %idesc, 0;
    @%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
    setp.ge.u32 %p2, %thread, 32;
    setp.ge.u32 %p3, %thread, 64;
    @%p3 bra JOIN;
    @%p2 bra LOAD;
EMPTY:
    mbarrier.try_wait.parity.shared.b64 %done, [empty], 0;
    @!%done bra EMPTY;
    tcgen05.fence::after_thread_sync;
    @%p0 tcgen05.mma.cta_group::1.kind::f16 [%tmem], %desc_a, %desc_b, %idesc, 0;
    @%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
LAST:
    mbarrier.try_wait.parity.shared.b64 %done, [done], 1;
    @!%done bra LAST;
    bra JOIN;
LOAD:
    mbarrier.try_wait.parity.shared.b64 %done, [done], 0;
    @!%done bra LOAD;
    tcgen05.fence::after_thread_sync;
    BEFORE
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%row];
    tcgen05.wait::ld.sync.aligned;
    tcgen05.fence::before_thread_sync;
    AFTER
    add.u32 %r1, %r0, 1;
JOIN:
"""
ARRIVE = "@%p1 mbarrier.arrive.shared.b64 _, [empty];"


@every_schedule
def test_columns_are_given_back_before_they_are_read(schedule: Any) -> None:
    found = text(tensor(GIVEN_BACK.replace("BEFORE", ARRIVE).replace("AFTER", ""), schedule))
    assert "fix: mbarrier.arrive on empty" in found
    assert "before this access" in found or "before the load" in found
    assert tensor(GIVEN_BACK.replace("BEFORE", "").replace("AFTER", ARRIVE), schedule).ok


@every_schedule
def test_a_stage_is_given_back_before_it_is_read(schedule: Any) -> None:
    report, _ = launch(RING.replace("; add", ";\n    add"), [np.zeros(64, np.uint32)], block=64, schedule=schedule)
    assert "mbarrier.arrive on empty" in text(report).splitlines()[-1]


#: Sizes of a copy: 508 bytes are no multiple of 16.
COPY = """
    .shared .align 16 .b8 tile[512]; .shared .align 8 .b64 bar; .reg .b32 %n;
    mbarrier.init.shared.b64 [bar], 1;
    mov.u32 %n, %ntid.x; mul.lo.u32 %n, %n, 508;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%out0], %n, [bar];
    ret;"""


def test_the_size_of_a_copy_is_no_misaligned_address() -> None:
    report, _ = launch(COPY, [np.zeros(128, np.uint32)], block=1)
    (found,) = report.findings
    assert found.code == "bulk-size"
    assert "508" in found.message
    assert "align" not in found.message.replace("misaligned", "align")
    assert "512" in found.fix


DYNAMIC = """
    .reg .b32 %t, %at;
    mov.u32 %t, %tid.x; mov.u32 %at, buffer; mad.lo.u32 %at, %t, 4, %at;
    st.shared.u32 [%at], %t;
    ret;"""


@pytest.mark.parametrize("bytes", [0, 64])
def test_forgotten_dynamic_shared_memory(bytes: int) -> None:
    items = ".extern .shared .align 16 .b8 buffer[];"
    report, _ = launch(DYNAMIC, block=32, items=items, shared_bytes=bytes)
    (found,) = report.findings
    assert found.code == "out-of-bounds"
    assert f"passes {bytes} bytes of dynamic shared memory" in found.message
    assert "shared_bytes" in found.fix
    assert launch(DYNAMIC, block=32, items=items, shared_bytes=128)[0].ok


def test_an_overrun_beside_the_dynamic_shared_memory_of_other_kernels() -> None:
    body = DYNAMIC.replace(".reg .b32 %t, %at;", ".reg .b32 %t, %at; .shared .align 16 .b8 own[64];").replace(
        "buffer", "own"
    )
    report, _ = launch(body, block=32, items=".extern .shared .align 16 .b8 buffer[];")
    (found,) = report.findings
    assert found.code == "out-of-bounds"
    assert "dynamic" not in found.message
    assert "The CTA has 0x400 to 0x43f" in found.message


#: CTA 0 stores to the memory of CTA 1, which loads it; or loads what CTA 1 has stored.
PEERS = {
    "store to a peer": """
    @%other bra load;
    mapa.shared::cluster.u32 %at, %at, 1;
    st.shared::cluster.u32 [%at], %t;
    bra end;
    load: ld.shared.u32 %x, [%at];""",
    "load from a peer": """
    @%other bra store;
    mapa.shared::cluster.u32 %at, %at, 1;
    ld.shared::cluster.u32 %x, [%at];
    bra end;
    store: st.shared.u32 [%at], %t;""",
}


@every_schedule
@pytest.mark.parametrize("access", PEERS)
def test_peers_synchronize_by_the_barrier_of_the_cluster(access: str, schedule: Any) -> None:
    body = f"""
    .shared .align 4 .b32 words[32];
    .reg .b32 %t, %x, %at, %rank; .reg .pred %other;
    mov.u32 %t, %tid.x; mov.u32 %rank, %cluster_ctarank; setp.ne.u32 %other, %rank, 0;
    mov.u32 %at, words; mad.lo.u32 %at, %t, 4, %at;
    st.shared.u32 [%at], 99;
    barrier.cluster.arrive; barrier.cluster.wait;{PEERS[access]}
    end: barrier.cluster.arrive; barrier.cluster.wait; ret;"""
    found = text(launch(body, grid=2, cluster=2, schedule=schedule)[0])
    assert "barrier.cluster" in found.splitlines()[-1]
    assert "mbarrier" not in found.splitlines()[-1]


#: Each thread copies its own four bytes, and loads those of another lane, of another warp, or its own.
ASYNC = """
    .shared .align 16 .b8 tile[512];
    .reg .b32 %t, %x, %at; .reg .b64 %from;
    mov.u32 %t, %tid.x; mul.wide.u32 %from, %t, 4; add.u64 %from, %from, %out0;
    mov.u32 %at, tile; mad.lo.u32 %at, %t, 4, %at;
    cp.async.ca.shared.global [%at], [%from], 4;
    cp.async.commit_group;
    WAIT
    mov.u32 %at, tile; xor.b32 %x, %t, MASK; mad.lo.u32 %at, %x, 4, %at;
    ACCESS
    ret;"""


@every_schedule
@pytest.mark.parametrize("mask", [0, 1, 32])
@pytest.mark.parametrize("access", ["ld.shared.u32 %x, [%at];", "st.shared.u32 [%at], 9;"])
def test_a_race_with_cp_async_names_its_wait(access: str, mask: int, schedule: Any) -> None:
    body = ASYNC.replace("MASK", str(mask)).replace("ACCESS", access)
    found = text(launch(body.replace("WAIT", ""), [np.zeros(128, np.uint32)], block=64, schedule=schedule)[0])
    fix = found.splitlines()[-1]
    assert "cp.async.wait_all" in fix
    assert "mbarrier" not in fix
    assert ("bar.sync" in fix) == (mask > 1)
    assert ("bar.warp.sync" in fix) == (mask < 2)
    waits = "cp.async.wait_all;" + (" bar.sync 0;" if mask > 1 else " bar.warp.sync -1;")
    assert launch(body.replace("WAIT", waits), [np.zeros(128, np.uint32)], block=64, schedule=schedule)[0].ok


ATOMIC = """
    .shared .align 4 .b32 count;
    .reg .b32 %t, %x; .reg .pred %low;
    mov.u32 %t, %tid.x; setp.lt.u32 %low, %t, 32;
    st.shared.u32 [count], 0;
    bar.sync 0;
    @%low atom.shared.add.u32 %x, [count], 1;
    @%low bra end;
    ld.shared.u32 %x, [count];
    st.global.u32 [%out0], %x;
    end: ret;"""


@every_schedule
def test_a_plain_load_against_an_atomic(schedule: Any) -> None:
    report, _ = launch(ATOMIC, [np.zeros(4, np.uint32)], block=64, schedule=schedule)
    fix = text(report).splitlines()[-1]
    assert "mbarrier" not in fix
    assert "ld.relaxed" in fix
    assert "bar.sync" in fix


#: What the finding of a bug must say, and its fix; `{n}` is the n-th marked line of MARKS in the bug's text.
SAID: dict[str, tuple[tuple[str, ...], str, str]] = {
    "commit-by-another-thread": (
        ("tcgen05.mma", "tcgen05.commit", "tcgen05.ld"),
        "tcgen05.commit of line {1} is by another thread than the one that has issued the operation",
        "let the thread of line {0} execute line {1}, and wait for its mbarrier before line {2}",
    ),
    "tensormap-changed-after-a-wait-for-an-open-group": (
        ("cp.async.bulk.tensor", "cp.async.bulk.wait_group"),
        "wait_group of line {1} does not wait for line {0}, whose group no commit_group has closed",
        "cp.async.bulk.commit_group after line {0}, before line {1}",
    ),
    "barrier-hoisted-out-of-the-branch": (
        ("st.shared.u32 [%own], %r3", "ld.shared.u32 %r4"),
        "The two warps have not synchronized",
        "bar.sync between line {0} and line {1}, and another after line {1}, before line {0} is executed again",
    ),
    "commit-mask-of-the-leader-alone": (
        ("tcgen05.commit",),
        "tcgen05.commit (line {0}) arrives on it in another CTA, whose multicast mask leaves this one out",
        "set the bit of this CTA's rank in the multicast mask of line {0}",
    ),
    "response-of-all-ctas-expected-by-the-first": (
        ("clusterlaunchcontrol.try_cancel",),
        "16 bytes (line {0}) have come, none expected",
        "mbarrier.arrive.expect_tx in a thread of each CTA that line {0} multicasts to",
    ),
    "wgmma-awaited-behind-the-barrier": (
        ("cp.async.bulk.shared::cta",),
        "Another warpgroup (warps 4 to 7) issued it; nothing orders this access after that warpgroup's "
        "wgmma.wait_group",
        "bar.sync, or an mbarrier on which that warpgroup arrives, between its wgmma.wait_group 0 and line {0}",
    ),
    "parity-that-never-flips": (
        ("%done, [full]",),
        "(line {0}) was for phase 0 (parity 0), as the wait before, so its parity may not have been flipped",
        "flip the parity after each wait",
    ),
    "counter-reset-under-its-pollers": (("st.release",), "last store to it, of line {0}, has left 0", ""),
}


@pytest.mark.parametrize("name", SAID)
def test_a_message_names_the_instruction_at_fault(name: str) -> None:
    bug = next(each for each in BUGS if each.name == name)
    marks, rule, fix = SAID[name]
    lines = bug.text(right=False).splitlines()
    at = [next(number for number, line in enumerate(lines, 1) if mark in line) for mark in marks]
    found = next(each for seed in bug.seeds for each in bug.run(bug.schedules[0], right=False, seed=seed).findings)
    assert rule.format(*at) in found.message
    assert fix.format(*at) in found.fix


def test_one_missing_wait_of_a_refill_is_one_finding() -> None:
    """The reader that the refill overtakes may miss a phase too: a consequence."""
    bug = next(each for each in BUGS if each.name == "response-overwritten-while-it-is-read")
    (found,) = bug.run("eager", right=False).findings
    assert {each.code for each in found.consequences} == {"mbarrier-round-behind"}


def test_a_wait_for_the_parity_of_the_last_one_is_named() -> None:
    """A phase that nobody completes is waited for with the parity of the warp's last wait: the init count is right."""
    report, _ = launch(
        """
    .shared .align 8 .b64 full;
    .reg .pred %q; .reg .b32 %t;
    mov.u32 %t, %tid.x;
    setp.ne.u32 %q, %t, 0;
    @!%q mbarrier.init.shared.b64 [full], 1;
    bar.sync 0;
    @!%q mbarrier.arrive.shared.b64 _, [full];
    one: mbarrier.try_wait.parity.shared.b64 %q, [full], 0;
    @!%q bra one;
    bar.sync 0;
    setp.ne.u32 %q, %t, 0;
    @!%q mbarrier.arrive.shared.b64 _, [full];
    bar.sync 0;
    two: mbarrier.try_wait.parity.shared.b64 %q, [full], 0;
    @!%q bra two;
""",
        block=64,
    )
    assert "with parity 0 too: the parity was not flipped, or a wait for phase 1 is missing" in text(report)
