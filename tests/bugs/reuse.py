"""Storage that is used again: tiles, stages and tensor memory that one side still reads."""

from __future__ import annotations

from tests.bugs.bug import Bug
from tests.bugs.tensor_memory import BEGIN, COMMIT, END, MMA, WAIT

#: A row of 16 bytes for each thread at %own, written by the thread; %other is the row of a thread of another warp.
ROWS = """
    .shared .align 128 .b8 tile[4096];
    .reg .b32 %own, %other;
    mov.u32 %r0, tile;
    mad.lo.u32 %own, %thread, 16, %r0;
    xor.b32 %other, %thread, 32;
    mad.lo.u32 %other, %other, 16, %r0;
"""
#: The thread's address in `data`, 16 bytes each.
OUT = """
    mul.wide.u32 %rd0, %thread, 16;
    add.u64 %rd0, %rd0, %data;
"""

#: A wgmma of 64 x 8 x 16 in f16 by each of two warpgroups, with the same A and B at smem_a and smem_b.
TWO_WARPGROUPS = """
    .shared .align 1024 .b8 smem_a[2048];
    .shared .align 1024 .b8 smem_b[1024];
    .reg .b64 %desc_a, %desc_b;
    .reg .f32 %d<4>;
    mov.b64 %desc_a, 0x0000001000080040;
    mov.b64 %desc_b, 0x00000010000800C0;
    shl.b32 %r0, %thread, 3;
    mov.u32 %r1, smem_a;
    add.u32 %r1, %r1, %r0;
    st.shared.v2.b32 [%r1], {0, 0};
    shl.b32 %r0, %thread, 2;
    mov.u32 %r1, smem_b;
    add.u32 %r1, %r1, %r0;
    st.shared.b32 [%r1], 0;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %desc_a, %desc_b, 0, 1, 1, 0, 0; // <--
    wgmma.commit_group.sync.aligned;
"""

MULTICAST = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"

BUGS = [
    Bug(
        name="epilogue-input-under-stmatrix",
        source="NVIDIA/Fuser#3960",
        what="the tile of the epilogue's input is that of its output, and no __syncthreads is before the stmatrix",
        code="shared-race",
        ptx=ROWS
        + """
    st.shared.v4.u32 [%own], {%thread, %thread, %lane, %warp};
    bar.sync 0;
    ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%other]; // <--
    add.u32 %r4, %r4, %r5;
+    bar.sync 0;
    stmatrix.sync.aligned.m8n8.x4.shared.b16 [%own], {%r4, %r5, %r6, %r7}; // <--
    bar.sync 0;
    ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%other];
"""
        + OUT
        + """
    st.global.v4.u32 [%rd0], {%r4, %r5, %r6, %r7};
""",
    ),
    Bug(
        name="idle-threads-reset-the-sum",
        source="NVIDIA/Fuser#678",
        what="threads without work go on to the next turn and reset the sum before a working thread has stored it",
        code="shared-race",
        block=64,
        ptx="""
    .shared .align 4 .b32 sum;
    setp.lt.u32 %p1, %thread, 4;
    mov.u32 %r3, 0;
TURN:
    mov.u32 %r0, 0;
    @%thread0 st.shared.u32 [sum], %r0;
    bar.sync 0;
    @%p1 red.shared.add.u32 [sum], %lane;
    bar.sync 0;
    setp.eq.u32 %p2, %thread, 3;
    mul.wide.u32 %rd0, %r3, 4;
    add.u64 %rd0, %rd0, %data;
    @%p2 ld.shared.u32 %r1, [sum]; // <--
    @%p2 st.global.u32 [%rd0], %r1;
+    bar.sync 0;
    setp.ge.u32 %p3, %thread, 32;
    @%p3 st.shared.u32 [sum], %r0; // <--
    bar.sync 0;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p0, %r3, 3;
    @%p0 bra TURN;
""",
    ),
    Bug(
        name="chunks-of-all-threads-behind-syncwarp",
        source="NVIDIA/TensorRT-LLM#17054",
        what="all threads of the CTA copy a chunk by cp.async, and wait_group and __syncwarp alone precede its use",
        code="shared-race",
        ptx=ROWS
        + OUT
        + """
    cp.async.cg.shared.global [%own], [%rd0], 16; // <--
    cp.async.commit_group;
    cp.async.wait_group 0;
-    bar.warp.sync 0xffffffff;
+    bar.sync 0;
    ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%other]; // <--
    st.global.v4.u32 [%rd0+8192], {%r4, %r5, %r6, %r7};
""",
    ),
    Bug(
        name="chunk-refilled-behind-syncwarp",
        source="NVIDIA/TensorRT-LLM#17054",
        what="the next chunk is copied into a stage behind __syncwarp, while another warp still reads the last one",
        code="shared-race",
        ptx=ROWS
        + OUT
        + """
    mov.u32 %r3, 0;
CHUNK:
    cp.async.cg.shared.global [%own], [%rd0], 16; // <--
    cp.async.commit_group;
    cp.async.wait_group 0;
    bar.sync 0;
    ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%other]; // <--
    st.global.v4.u32 [%rd0+8192], {%r4, %r5, %r6, %r7};
-    bar.warp.sync 0xffffffff;
+    bar.sync 0;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p0, %r3, 3;
    @%p0 bra CHUNK;
""",
    ),
    Bug(
        name="store-of-c-awaited-at-a-fixed-iteration",
        source="uccl-project/mKernel#18",
        what="the wait for the store of C stands at a fixed step of K, which meets C's slot for some sizes of K alone",
        code="shared-race",
        block=32,
        ptx="""
    .shared .align 128 .b8 ring[512];
    .shared .align 8 .b64 full;
    .reg .b32 %k, %count, %slot, %base, %parity, %task;
    @!%thread0 bra DONE;
    mbarrier.init.shared.b64 [full], 1;
    fence.proxy.async.shared::cta;
    mov.u32 %base, ring;
    mov.u32 %count, 0;
    mov.u32 %task, 0;
TASK:
    mov.u32 %k, 0;
BLOCK:
-    setp.eq.u32 %p1, %k, 1;
+    setp.eq.u32 %p1, %k, 0;
    @%p1 cp.async.bulk.wait_group.read 0;
    and.b32 %slot, %count, 1;
    mad.lo.u32 %slot, %slot, 256, %base;
    mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%slot], [%matrix], 256, [full]; // <--
    and.b32 %parity, %count, 1;
FILLED:
    mbarrier.try_wait.parity.shared.b64 %done, [full], %parity;
    @!%done bra FILLED;
    add.u32 %count, %count, 1;
    add.u32 %k, %k, 1;
    setp.lt.u32 %p0, %k, 3;
    @%p0 bra BLOCK;
    add.u32 %slot, %base, 256;
    mad.wide.u32 %rd0, %task, 256, %data;
    cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%slot], 256; // <--
    cp.async.bulk.commit_group;
    add.u32 %task, %task, 1;
    setp.lt.u32 %p0, %task, 3;
    @%p0 bra TASK;
    cp.async.bulk.wait_group 0;
DONE:
""",
    ),
    Bug(
        name="wgmma-awaited-behind-the-barrier",
        source="NVIDIA/Fuser#3865",
        what="__syncthreads comes before wgmma.wait_group: the next copy overwrites the other warpgroup's operand",
        code="shared-race",
        block=256,
        ptx=TWO_WARPGROUPS
        + """
    .shared .align 8 .b64 full;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
    @%thread0 fence.mbarrier_init.release.cluster;
-    bar.sync 0;
    wgmma.wait_group.sync.aligned 0;
+    bar.sync 0;
    @%thread0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 1024;
    @%thread0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [smem_b], [%data], 1024, [full]; // <--
FILLED:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra FILLED;
""",
    ),
    Bug(
        name="operand-of-two-warpgroups-refilled-by-one",
        source="triton-lang/triton#11047",
        what="two warpgroups multiply by one B; the first that has waited refills it while the other's wgmma reads",
        code="shared-race",
        block=256,
        ptx=TWO_WARPGROUPS
        + """
    wgmma.wait_group.sync.aligned 0;
+    bar.sync 0;
    setp.lt.u32 %p1, %thread, 64;
    shl.b32 %r0, %thread, 4;
    mov.u32 %r1, smem_b;
    add.u32 %r1, %r1, %r0;
    cvt.u64.u32 %rd0, %r0;
    add.u64 %rd0, %rd0, %data;
    @%p1 cp.async.cg.shared.global [%r1], [%rd0], 16; // <--
    cp.async.commit_group;
    cp.async.wait_group 0;
""",
    ),
    Bug(
        name="indices-over-the-values",
        source="Xtra-Computing/thundersvm#99",
        what="the values begin where the indices of a smaller block would end: indices and values overlap",
        code="shared-race",
        block=64,
        ptx="""
    .shared .align 8 .b8 both[1024];
    .reg .f64 %value;
    mov.u32 %r0, both;
    mad.lo.u32 %r1, %thread, 4, %r0;
    mad.lo.u32 %r2, %thread, 8, %r0;
    cvt.rn.f64.u32 %value, %thread;
-    st.shared.f64 [%r2+32], %value; // <--
+    st.shared.f64 [%r2+256], %value;
    st.shared.u32 [%r1], %thread; // <--
    bar.sync 0;
-    ld.shared.f64 %value, [%r2+32];
+    ld.shared.f64 %value, [%r2+256];
    mul.wide.u32 %rd0, %thread, 8;
    add.u64 %rd0, %rd0, %data;
    st.global.f64 [%rd0], %value;
""",
    ),
    Bug(
        name="prefix-over-the-tile-that-others-read",
        source="NVIDIA/cccl#4556",
        what="thread 0 writes the inclusive prefix where the tile's aggregate is, before later warps have read it",
        code="global-race",
        ptx="""
    mad.wide.u32 %rd0, %cta, 4, %data;
    ld.global.u32 %r1, [%rd0]; // <--
+    bar.sync 0;
    add.u32 %r2, %r1, 7;
    @%thread0 st.global.u32 [%rd0], %r2; // <--
    mad.wide.u32 %rd1, %thread, 4, %data;
    st.global.u32 [%rd1+4096], %r1;
""",
    ),
    Bug(
        name="accumulator-released-before-its-last-columns",
        source="NVIDIA/cudnn-frontend#652",
        what="the epilogue arrives for the MMA before it loads the columns that the next accumulator overlaps",
        code="tensor-race",
        target="sm_100a",
        ptx=BEGIN
        + f"""
    @%thread0 {MMA}
    @%thread0 {COMMIT}
"""
        + WAIT
        + f"""
    .shared .align 8 .b64 free;
    @%thread0 mbarrier.init.shared.b64 [free], 128;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    add.u32 %r4, %row, 8;
    tcgen05.ld.sync.aligned.32x32b.x8.b32 {{%r8, %r9, %r10, %r11, %r12, %r13, %r14, %r15}}, [%row];
+    tcgen05.ld.sync.aligned.32x32b.x8.b32 {{%r16, %r17, %r18, %r19, %r20, %r21, %r22, %r23}}, [%r4];
    tcgen05.wait::ld.sync.aligned;
    tcgen05.fence::before_thread_sync;
    mbarrier.arrive.shared.b64 _, [free];
-    tcgen05.ld.sync.aligned.32x32b.x8.b32 {{%r16, %r17, %r18, %r19, %r20, %r21, %r22, %r23}}, [%r4]; // <--
-    tcgen05.wait::ld.sync.aligned;
    @!%thread0 bra DONE;
FREE:
    mbarrier.try_wait.parity.shared.b64 %done, [free], 0;
    @!%done bra FREE;
    tcgen05.fence::after_thread_sync;
    {MMA} // <--
    {COMMIT}
DONE:
    mbarrier.try_wait.parity.shared.b64 %done, [done], 1;
    @!%done bra DONE;
"""
        + END,
    ),
    Bug(
        name="second-load-before-the-wait-for-the-mma",
        source="facebookexperimental/triton#1630",
        what="the wait for the MMA moves behind one of two loads of its accumulator",
        code="tensor-race",
        target="sm_100a",
        ptx=BEGIN
        + f"""
    @%thread0 {MMA} // <--
    @%thread0 {COMMIT}
    add.u32 %r4, %row, 16;
-    tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r8}}, [%row]; // <--
"""
        + WAIT
        + """
    tcgen05.fence::after_thread_sync;
+    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r8}, [%row];
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r9}, [%r4];
    tcgen05.wait::ld.sync.aligned;
    add.u32 %r8, %r8, %r9;
"""
        + END,
    ),
    Bug(
        name="leader-refills-what-the-peers-epilogue-uses",
        source="inclusionAI/humming#56",
        what="the leader's next multicast fills the shared union of both CTAs after its own epilogue alone",
        code="shared-race",
        grid=2,
        cluster=2,
        ptx=f"""
    .shared .align 128 .b8 both[2048];
    .shared .align 8 .b64 full;
    .reg .b32 %own, %other;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
    @%thread0 fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.u32 %r0, both;
    mad.lo.u32 %own, %thread, 16, %r0;
    xor.b32 %other, %thread, 32;
    mad.lo.u32 %other, %other, 16, %r0;
    st.shared.v4.u32 [%own], {{%thread, %thread, %lane, %warp}};
    bar.sync 0;
    ld.shared.v4.u32 {{%r4, %r5, %r6, %r7}}, [%other]; // <--
    fence.proxy.async.shared::cta;
    @%thread0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 2048;
-    bar.sync 0;
+    barrier.cluster.arrive.aligned;
+    barrier.cluster.wait.aligned;
    setp.eq.u32 %p1, %rank, 0;
    and.pred %p1, %p1, %thread0;
    mov.b16 %rs0, 3;
    @%p1 {MULTICAST} [both], [%matrix], 2048, [full], %rs0; // <--
FILLED:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra FILLED;
    ld.shared.v4.u32 {{%r4, %r5, %r6, %r7}}, [%other];
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
""",
    ),
]
