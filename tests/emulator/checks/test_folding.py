"""One missing wait, fence or barrier is one finding, whatever it leaves unordered, and its fix cures all."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from ptxgen.device import LaunchReport
from tests.bugs.bug import Bug
from tests.bugs.tensor_memory import BEGIN, COMMIT, END, MMA, WAIT
from tests.support.harness import launch

SCHEDULES = ["eager", "late", "random"]
every_schedule = pytest.mark.parametrize("schedule", SCHEDULES)


def run(body: str, schedule: Any = "eager") -> LaunchReport:
    """A launch of 64 threads on zeros."""
    return launch(body, [np.zeros(2048, np.uint32)], block=64, schedule=schedule)[0]


#: The loads of a tile are in flight where an epilogue takes its memory.
EPILOGUE = """
    .shared .align 16 .b8 tile[4096];
    .reg .b32 %t, %x, %at, %i; .reg .b64 %from; .reg .pred %p; .reg .f32 %f<3>;
    mov.u32 %t, %tid.x; mul.wide.u32 %from, %t, 16; add.u64 %from, %from, %out0;
    mov.u32 %at, tile; mad.lo.u32 %at, %t, 16, %at;
    cp.async.cg.shared.global [%at], [%from], 16;
    cp.async.cg.shared.global [%at+1024], [%from+1024], 16;
    cp.async.cg.shared.global [%at+2048], [%from+2048], 16;
    cp.async.commit_group;
    WAIT
    bar.sync 0;
    mov.u32 %at, tile; xor.b32 %x, %t, MASK; mad.lo.u32 %at, %x, 16, %at;
    st.shared.f32 [%at], 0f3F800000;
    st.shared.f32 [%at+4], 0f3F800000;
    st.shared.f32 [%at+1024], 0f3F800000;
    st.shared.f32 [%at+1028], 0f3F800000;
    st.shared.f32 [%at+2048], 0f3F800000;
    bar.sync 0;
    ld.shared.f32 %f0, [%at];
    ld.shared.f32 %f1, [%at+1024];
    ld.shared.f32 %f2, [%at+2048];
    ret;"""


@every_schedule
@pytest.mark.parametrize("mask", [0, 33])
def test_copies_in_flight_under_an_epilogue(mask: int, schedule: Any) -> None:
    body = EPILOGUE.replace("MASK", str(mask))
    (found,) = run(body.replace("WAIT", ""), schedule).findings
    assert found.code == "shared-race"
    assert run(body.replace("WAIT", "cp.async.wait_all;"), schedule).ok


#: Each warp stores in several lines, and loads what the other has stored.
COPIES = """
    SHARED
    .reg .b32 %t, %x; .reg .b64 %at, %from, %base, %o;
    mov.u32 %t, %tid.x; BASE
    mul.wide.u32 %at, %t, 4; add.u64 %at, %at, %base;
    xor.b32 %x, %t, 32; mul.wide.u32 %from, %x, 4; add.u64 %from, %from, %base;
    st.SPACE.u32 [%at], %t;
    st.SPACE.u32 [%at+256], %t;
    st.SPACE.u32 [%at+512], %t;
    ld.SPACE.u32 %x, [%from];
    ld.SPACE.u32 %x, [%from+256];
    ld.SPACE.u32 %x, [%from+512];
    mul.wide.u32 %o, %t, 4; add.u64 %o, %o, %out0; st.global.u32 [%o+4096], %x;
    ret;"""
SPACES = {
    "shared": (".shared .align 4 .b32 words[192];", "mov.u64 %base, words;"),
    "global": ("", "mov.b64 %base, %out0;"),
}


@every_schedule
@pytest.mark.parametrize("space", SPACES)
def test_the_copies_of_an_unrolled_loop(space: str, schedule: Any) -> None:
    """The barrier goes between the last store and the first load."""
    shared, base = SPACES[space]
    body = COPIES.replace("SHARED", shared).replace("BASE", base).replace("SPACE", space)
    (found,) = run(body, schedule).findings
    named = re.fullmatch(r"bar\.sync between line (\d+) and line (\d+)", found.fix)
    assert named is not None, found.fix
    assert int(named[2]) - int(named[1]) == 1
    assert run(re.sub(r"(ld\.\w+\.u32 %x, \[%from\];)", r"bar.sync 0; \1", body), schedule).ok


#: A warp's loads of tensor memory, each used where nothing waits for it.
LOADS = """
    @%thread0 MMA
    @%thread0 COMMIT
WAIT
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%row];
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%row+1];
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%row+2];
    add.u32 %r1, %r1, 1;
    add.u32 %r2, %r2, 1;
    add.u32 %r3, %r3, 1;
"""


@every_schedule
def test_loads_of_tensor_memory_without_a_wait(schedule: Any) -> None:
    body = LOADS.replace("MMA", MMA).replace("COMMIT", COMMIT).replace("WAIT", WAIT)
    waits = "    tcgen05.wait::ld.sync.aligned;\n"
    bug = Bug(name="", source="rebuilt", what="", code="", target="sm_100a", ptx=BEGIN + body + waits + END)
    (found,) = bug.run(schedule, right=False).findings
    assert (found.code, found.severity, len(found.also_lines)) == ("missing-tcgen05-wait", "advice", 2)
    text = bug.text(right=False).splitlines()
    assert found.fix.startswith(f"tcgen05.wait::ld before line {text.index('    add.u32 %r1, %r1, 1;') + 1},")


#: Thread 0 copies two arrays to global memory that all threads have stored, without a fence.
STAGED = """
    .shared .align 128 .b8 tile[1024];
    .reg .b32 %t, %at, %x; .reg .pred %first;
    mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0;
    mov.u32 %at, tile; mad.lo.u32 %at, %t, 4, %at;
    st.shared.u32 [%at], %t;
    st.shared.u32 [%at+256], %t;
    st.shared.u32 [%at+512], %t;
    FENCE
    bar.sync 0;
    mov.u32 %at, tile;
    @%first cp.async.bulk.global.shared::cta.bulk_group [%out0], [%at], 512;
    @%first cp.async.bulk.global.shared::cta.bulk_group [%out0+512], [%at+512], 256;
    @%first cp.async.bulk.global.shared::cta.bulk_group [%out0+1024], [%at+256], 512;
    @%first cp.async.bulk.commit_group;
    @%first cp.async.bulk.wait_group 0;
    ret;"""


@every_schedule
def test_copies_of_what_no_fence_covers(schedule: Any) -> None:
    (found,) = run(STAGED.replace("FENCE", ""), schedule).findings
    assert (found.code, found.severity) == ("missing-proxy-fence", "error")
    assert run(STAGED.replace("FENCE", "fence.proxy.async.shared::cta;"), schedule).ok


#: All threads load what the grid before writes, in several lines, and thread 0 copies some.
NEXT = """
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
+    griddepcontrol.wait;
    ld.global.u32 %r0, [%rd0];
    ld.global.u32 %r1, [%rd0+512];
    ld.global.u32 %r2, [%rd0+1024];
    st.global.u32 [%rd0+1536], %r2;
"""
BEFORE = """
    griddepcontrol.launch_dependents;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], 1;
    st.global.u32 [%rd0+512], 2;
    st.global.u32 [%rd0+1024], 3;
    st.global.u32 [%rd0+1536], 3;
"""


@every_schedule
def test_accesses_before_a_wait_for_the_grid(schedule: Any) -> None:
    bug = Bug(name="", source="rebuilt", what="", code="grid-race", ptx=NEXT, before=BEFORE)
    found = [each for each in bug.run(schedule, right=False).findings if each.severity == "error"]
    assert [each.code for each in found] == ["grid-race"]
    if "next grid" not in found[0].fix:
        line = bug.text(right=False).splitlines().index("    ld.global.u32 %r0, [%rd0];") + 1
        assert found[0].fix == f"griddepcontrol.wait before line {line}"
    assert bug.run(schedule, right=True).ok


#: One warp of two synchronizes in a branch of its own, and each exchanges words with the other.
SITES = """
    .shared .align 4 .b32 tile[64];
    .reg .b32 %t, %x, %at, %other; .reg .pred %p;
    mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 32;
    mov.u32 %at, tile; mad.lo.u32 %at, %t, 4, %at; xor.b32 %other, %at, 128;
    st.shared.u32 [%at], %t;
    BRANCH bar.sync 0;
    ld.shared.u32 %x, [%other];
    bar.sync 0;
    st.shared.u32 [%at], %x;
    bar.sync 0;
    ld.shared.u32 %x, [%other];
    END
    ret;"""


@every_schedule
def test_a_barrier_of_some_warps(schedule: Any) -> None:
    """The barriers pair up wrongly from there on: the races that follow are its consequences."""
    end = "@%p bra done; bar.sync 0; done:"
    wrong = SITES.replace("BRANCH", "@!%p bra on;").replace("bar.sync 0;", "bar.sync 0; on:", 1)
    report = run(wrong.replace("END", end), schedule)
    assert [each.code for each in report.findings] == ["barrier-sites"], report.summary()
    assert "shared-race" in {each.code for each in report.findings[0].consequences}
    assert run(SITES.replace("BRANCH", "").replace("END", ""), schedule).findings == []
