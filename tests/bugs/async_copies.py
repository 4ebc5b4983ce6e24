"""cp.async: groups, and waits for them."""

from __future__ import annotations

from tests.bugs.bug import REBUILT, Bug

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
    Bug(
        name="commit-missing",
        source=REBUILT,
        what="cp.async.wait_group 0 without cp.async.commit_group waits for nothing",
        code="shared-race",
        ptx="""
    .shared .align 16 .b8 buf[4096];
    .reg .b32 %own, %next, %base;
    mov.u32 %base, buf;
    shl.b32 %own, %thread, 2;
    add.u32 %own, %own, %base;
    xor.b32 %next, %own, 128;
    mul.wide.u32 %rd0, %thread, 16;
    add.u64 %rd0, %rd0, %data;
    mad.lo.u32 %r1, %thread, 16, %base;
    cp.async.ca.shared.global [%r1], [%rd0], 16;
+    cp.async.commit_group;
    cp.async.wait_group 0;
    bar.sync 0;
    ld.shared.v2.f32 {%r3, %r4}, [%r1]; // <--
    cp.async.wait_all;
    st.global.u32 [%rd0+8192], %r3;
""",
    ),
    Bug(
        name="plain-arrival-for-cp-async",
        source=REBUILT,
        what="each thread arrives by itself after its cp.async: the arrival does not wait for the copy",
        code="shared-race",
        ptx="""
    .shared .align 16 .b8 t[2048];
    .shared .align 8 .b64 full;
    @%thread0 mbarrier.init.shared.b64 [full], 128;
    bar.sync 0;
    mul.wide.u32 %rd0, %thread, 16;
    add.u64 %rd0, %rd0, %data;
    mov.u32 %r0, t;
    mad.lo.u32 %r1, %thread, 16, %r0;
    cp.async.cg.shared.global [%r1], [%rd0], 16;
-    mbarrier.arrive.shared.b64 _, [full];
+    cp.async.mbarrier.arrive.noinc.shared.b64 [full];
L:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra L;
    xor.b32 %r2, %thread, 64;
    mad.lo.u32 %r2, %r2, 16, %r0;
    ld.shared.v4.b32 {%r3, %r4, %r5, %r6}, [%r2]; // <--
    cp.async.wait_all;
    st.global.u32 [%rd0+8192], %r3;
""",
    ),
    Bug(
        name="arrival-before-the-last-copy",
        source=REBUILT,
        what="cp.async.mbarrier.arrive.noinc comes before the last cp.async of the stage: nothing waits for that copy",
        code="shared-race",
        block=64,
        ptx="""
    .shared .align 16 .b8 t[1024];
    .shared .align 8 .b64 bar;
    @%thread0 mbarrier.init.shared::cta.b64 [bar], 32;
    bar.sync 0;
    shl.b32 %r0, %lane, 4;
    mov.u32 %r1, t;
    add.u32 %r1, %r1, %r0;
    cvt.u64.u32 %rd0, %r0;
    add.u64 %rd0, %rd0, %data;
    setp.ne.u32 %p0, %warp, 0;
    @%p0 bra R;
    cp.async.cg.shared.global [%r1], [%rd0], 16;
-    cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];
    cp.async.cg.shared.global [%r1+512], [%rd0+512], 16;
+    cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];
    bra E;
R:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [bar], 0;
    @!%done bra R;
    ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1];
    ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1+512]; // <--
E:
""",
    ),
    Bug(
        name="wait-group-with-the-number-of-the-last-wait",
        source=REBUILT,
        what="the second wait of a pipeline repeats the number of the first: one group fewer is complete than it reads",
        code="shared-race",
        block=32,
        ptx="""
    .shared .align 16 .b8 t[1536];
    shl.b32 %r0, %lane, 4;
    mov.u32 %r1, t;
    add.u32 %r1, %r1, %r0;
    cvt.u64.u32 %rd0, %r0;
    add.u64 %rd0, %rd0, %data;
    cp.async.cg.shared.global [%r1], [%rd0], 16;
    cp.async.commit_group;
    cp.async.ca.shared.global [%r1+512], [%rd0+512], 16;
    cp.async.commit_group;
    cp.async.cg.shared.global [%r1+1024], [%rd0+1024], 16;
    cp.async.commit_group;
    cp.async.wait_group 2;
    bar.warp.sync -1;
    ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1];
-    cp.async.wait_group 2;
+    cp.async.wait_group 1;
    bar.warp.sync -1;
    ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1+512]; // <--
    cp.async.wait_all;
    ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1+1024];
""",
    ),
]
