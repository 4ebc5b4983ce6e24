"""cp.async: groups, and waits for them."""

from __future__ import annotations

from tests.bugs.bug import Bug

#: The word of this thread in `tile` at %own and that of its neighbor in the next warp at %next; its source at %from.
WORDS = """
    .shared .align 16 .b8 tile[1024];
    .reg .b32 %own, %next;
    .reg .b64 %from;
    shl.b32 %r0, %thread, 2;
    mov.u32 %r1, tile;
    add.u32 %own, %r1, %r0;
    xor.b32 %r0, %r0, 128;
    add.u32 %next, %r1, %r0;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %from, %rd0, %data;
"""

BUGS = [
    Bug(
        name="no-wait-before-syncthreads",
        source="NVIDIA/Fuser#3438",
        what="__syncthreads follows cp.async without cp.async.wait_all: it orders threads, not their copies",
        code="shared-race",
        block=64,
        ptx=WORDS
        + """
    cp.async.ca.shared.global [%own], [%from], 4;
+    cp.async.wait_all;
    bar.sync 0;
    ld.shared.u32 %r2, [%next]; // <--
""",
    ),
    Bug(
        name="commit-after-the-wait",
        source="csarofeen/pytorch#2457",
        what="the main loop commits its group after the wait, so that the wait is for nothing",
        code="shared-race",
        block=64,
        ptx=WORDS
        + """
    cp.async.ca.shared.global [%own], [%from], 4;
-    cp.async.wait_group 0;
    cp.async.commit_group;
+    cp.async.wait_group 0;
    bar.sync 0;
    ld.shared.u32 %r2, [%next]; // <--
    cp.async.wait_all;
""",
    ),
    Bug(
        name="stage-split-into-two-groups",
        source="tile-ai/tilelang#2505",
        what="a stage is committed in two groups but the wait counts stages: one group may still be on its way",
        code="shared-race",
        block=64,
        ptx=WORDS
        + """
    cp.async.ca.shared.global [%own], [%from], 4;
    cp.async.commit_group;
    cp.async.ca.shared.global [%own+512], [%from+512], 4;
    cp.async.commit_group;
-    cp.async.wait_group 1;
+    cp.async.wait_group 0;
    bar.sync 0;
    ld.shared.u32 %r2, [%next];
    ld.shared.u32 %r3, [%next+512]; // <--
    cp.async.wait_all;
""",
    ),
    Bug(
        name="copy-moved-before-the-last-use",
        source="tile-ai/tilelang#2668",
        what="pipelining moves the copy that overwrites a buffer before the last reads of the buffer",
        code="shared-race",
        block=64,
        ptx=WORDS
        + """
    st.shared.u32 [%own], %thread;
    bar.sync 0;
+    ld.shared.u32 %r2, [%next];
+    bar.sync 0;
    cp.async.ca.shared.global [%own], [%from], 4; // <--
-    ld.shared.u32 %r2, [%next]; // <--
    cp.async.wait_all;
    bar.sync 0;
""",
    ),
    Bug(
        name="zeros-published-by-the-arrival-of-copies",
        source="mlc-ai/TIRx-kernels#202",
        what="a row past the edge is filled with zeros by st.shared; the arrival for cp.async does not publish them",
        code="shared-race",
        block=64,
        ptx="""
    .shared .align 16 .b8 rows[512];
    .shared .align 8 .b64 full;
    @%thread0 mbarrier.init.shared.b64 [full], 32;
    bar.sync 0;
    shl.b32 %r0, %lane, 4;
    mov.u32 %r1, rows;
    add.u32 %r1, %r1, %r0;
    setp.ne.u32 %p0, %warp, 0;
    @%p0 bra READ;
    setp.ge.u32 %p1, %lane, 20;
    mul.wide.u32 %rd1, %lane, 16;
    add.u64 %rd1, %rd1, %data;
    mov.u32 %r2, 16;
-    @%p1 st.shared.v4.u32 [%r1], {0, 0, 0, 0};
-    @!%p1 cp.async.cg.shared.global [%r1], [%rd1], 16;
+    selp.u32 %r2, 0, 16, %p1;
+    cp.async.cg.shared.global [%r1], [%rd1], 16, %r2;
    cp.async.mbarrier.arrive.noinc.shared.b64 [full];
    bra END;
READ:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra READ;
    ld.shared.u32 %r3, [%r1]; // <--
END:
""",
    ),
]
