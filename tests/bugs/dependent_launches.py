"""Programmatic dependent launch: a grid that begins while the one before it still runs."""

from __future__ import annotations

from tests.bugs.bug import REBUILT, Bug

BUGS = [
    Bug(
        name="read-only-load-of-the-previous-grid",
        source="ggml-org/llama.cpp#24030",
        what="`__restrict__` makes read-only loads, which may pass the wait for the previous kernel (PDL): races",
        code="nc-load",
        before="""
    griddepcontrol.launch_dependents;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %thread;
""",
        ptx="""
    griddepcontrol.wait;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
-    ld.global.nc.u32 %r0, [%rd0]; // <--
+    ld.global.u32 %r0, [%rd0];
    add.u32 %r0, %r0, 1;
    st.global.u32 [%rd0+1024], %r0;
""",
    ),
    Bug(
        name="no-wait-for-the-previous-grid",
        source="ggml-org/llama.cpp#23690",
        what="a new kernel is launched as a programmatic dependent (PDL) and does not wait: garbled output",
        code="grid-race",
        before="""
    griddepcontrol.launch_dependents;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %thread;
""",
        ptx="""
+    griddepcontrol.wait;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    ld.global.u32 %r0, [%rd0]; // <--
    add.u32 %r0, %r0, 1;
    st.global.u32 [%rd0+1024], %r0;
""",
    ),
    Bug(
        name="wait-of-one-thread-without-a-barrier",
        source=REBUILT,
        what="thread 0 alone executes griddepcontrol.wait, and the others load what the previous grid writes",
        code="grid-race",
        block=64,
        before="""
    griddepcontrol.launch_dependents;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], 8;
""",
        ptx="""
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    @%thread0 griddepcontrol.wait;
+    bar.sync 0;
    ld.global.u32 %r1, [%rd0]; // <--
    st.global.u32 [%rd0+1024], %r1;
""",
    ),
    Bug(
        name="tensor-load-without-a-wait-for-the-grid",
        source=REBUILT,
        what="the producer's first TMA load is issued before griddepcontrol.wait",
        code="grid-race",
        block=64,
        before="""
    griddepcontrol.launch_dependents;
    mul.wide.u32 %rd0, %thread, 16;
    add.u64 %rd0, %rd0, %matrix;
    st.global.v4.b32 [%rd0+1024], {%thread, 8, 8, 8};
""",
        ptx="""
    .shared .align 128 .b8 t[1024];
    .shared .align 8 .b64 full;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
    @%thread0 fence.mbarrier_init.release.cluster;
    bar.sync 0;
    @!%thread0 bra E;
+    griddepcontrol.wait;
    mbarrier.arrive.expect_tx.shared.b64 _, [full], 1024;
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [t], [%map, {0, 8}], [full]; // <--
L:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra L;
    ld.shared.u32 %r1, [t];
    st.global.u32 [%data], %r1;
E:
""",
    ),
    Bug(
        name="output-cleared-before-the-wait",
        source=REBUILT,
        what="the dependent grid clears its output before griddepcontrol.wait: the grid before still reads there",
        code="grid-race",
        block=32,
        before="""
    griddepcontrol.launch_dependents;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    ld.global.u32 %r0, [%rd0+128];
    st.global.u32 [%rd0+4096], %r0;
""",
        ptx="""
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
+    griddepcontrol.wait;
    st.global.u32 [%rd0+128], %thread; // <--
-    griddepcontrol.wait;
""",
    ),
    Bug(
        name="wait-by-one-warp",
        source=REBUILT,
        what="one warp executes griddepcontrol.wait, the other reads on without a barrier",
        code="grid-race",
        block=64,
        before="""
    griddepcontrol.launch_dependents;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %thread;
""",
        ptx="""
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    setp.eq.u32 %p0, %warp, 0;
    @%p0 griddepcontrol.wait;
+    bar.sync 0;
    ld.global.u32 %r0, [%rd0]; // <--
    st.global.u32 [%rd0+1024], %r0;
""",
    ),
    Bug(
        name="copy-issued-before-the-wait",
        source=REBUILT,
        what="the first bulk copy of the pipeline is issued before griddepcontrol.wait",
        code="grid-race",
        block=32,
        before="""
    griddepcontrol.launch_dependents;
    mul.wide.u32 %rd0, %thread, 16;
    add.u64 %rd0, %rd0, %data;
    st.global.v4.u32 [%rd0], {%thread, 1, 2, 3};
""",
        ptx="""
    .shared .align 128 .b8 t[512];
    .shared .align 8 .b64 bar;
    @!%thread0 bra E;
    mbarrier.init.shared.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
+    griddepcontrol.wait;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [t], [%data], 512, [bar]; // <--
-    griddepcontrol.wait;
W:
    mbarrier.try_wait.parity.shared.b64 %done, [bar], 0;
    @!%done bra W;
E:
""",
    ),
    Bug(
        name="metadata-read-by-warps-that-do-not-wait-for-the-grid",
        source="Dao-AILab/quack#206",
        what="the load warp alone waits for the grid before; MMA and epilogue warps read the group boundaries at once",
        code="grid-race",
        before="""
    griddepcontrol.launch_dependents;
    setp.lt.u32 %p1, %thread, 8;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    @%p1 st.global.u32 [%rd0], %thread; // <--
""",
        ptx="""
    setp.eq.u32 %p2, %warp, 0;
-    @%p2 griddepcontrol.wait;
+    griddepcontrol.wait;
    ld.global.v2.u32 {%r1, %r2}, [%data+8]; // <--
    sub.u32 %r1, %r2, %r1;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0+1024], %r1;
""",
    ),
    Bug(
        name="first-group-read-by-the-constructor-of-the-scheduler",
        source="NVIDIA/cutlass#2962",
        what="the tile scheduler's constructor reads the first problem shape before wait_on_dependent_grids",
        code="grid-race",
        before="""
    griddepcontrol.launch_dependents;
    @%thread0 st.global.u32 [%data], 77; // <--
""",
        ptx="""
-    ld.global.u32 %r1, [%data]; // <--
    griddepcontrol.wait;
+    ld.global.u32 %r1, [%data];
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0+1024], %r1;
""",
    ),
]
