"""What warps, CTAs and grids hand to each other: tiles, mailboxes, addresses and permissions to store."""

from __future__ import annotations

from tests.bugs.bug import Bug
from tests.bugs.tensor_memory import BEGIN, COMMIT, EIGHT, END, MMA, WAIT

BUGS = [
    Bug(
        name="gates-overwritten-by-the-next-chunk",
        source="sgl-project/sglang#37288",
        what="each chunk stores its gates at the top of the loop, while a lagging warp still reads those of the last",
        code="shared-race",
        ptx="""
    .shared .align 4 .b32 gates[128];
    mov.u32 %r0, gates;
    mad.lo.u32 %r1, %thread, 4, %r0;
    xor.b32 %r2, %thread, 64;
    mad.lo.u32 %r2, %r2, 4, %r0;
    mov.u32 %r3, 0;
    mov.u32 %r5, 0;
CHUNK:
    add.u32 %r4, %thread, %r3;
    st.shared.u32 [%r1], %r4; // <--
    barrier.sync 1, 128;
    ld.shared.u32 %r4, [%r2]; // <--
    add.u32 %r5, %r5, %r4;
+    barrier.sync 1, 128;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p0, %r3, 4;
    @%p0 bra CHUNK;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %r5;
""",
    ),
    Bug(
        name="bracket-rewritten-before-all-have-read-it",
        source="NVIDIA/TensorRT-LLM#18338",
        what="thread 0 rewrites the bracket that the others still read to decide whether they take the guarded barrier",
        code="shared-race",
        ptx="""
    .shared .align 4 .b32 bracket[2];
    mov.u32 %r0, 5;
    @%thread0 st.shared.v2.u32 [bracket], {%r0, %r0};
    bar.sync 0;
    ld.shared.v2.u32 {%r1, %r2}, [bracket]; // <--
    setp.ne.u32 %p0, %r1, %r2;
    @%p0 bra DONE;
+    bar.sync 0;
    mov.u32 %r3, 9;
    @%thread0 st.shared.u32 [bracket+4], %r3; // <--
    bar.sync 0;
    ld.shared.v2.u32 {%r1, %r2}, [bracket];
DONE:
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %r2;
""",
    ),
    Bug(
        name="columns-stored-before-the-last-mma-is-complete",
        source="mlc-ai/TIRx-kernels#7",
        what="the next block's factors are stored into the columns that the last committed MMA may still read",
        code="tensor-race",
        target="sm_100a",
        ptx=BEGIN
        + f"""
    mov.u32 %r0, 0;
    add.u32 %r1, %row, 32;
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r1], {EIGHT};
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    add.u32 %r2, %tmem, 32;
    @%thread0 tcgen05.mma.cta_group::1.kind::f16 [%tmem], [%r2], %desc_b, %idesc, 0; // <--
    @%thread0 {COMMIT}
-    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r1], {EIGHT}; // <--
"""
        + WAIT
        + f"""
+    tcgen05.fence::after_thread_sync;
+    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r1], {EIGHT};
    tcgen05.wait::st.sync.aligned;
"""
        + END,
    ),
    Bug(
        name="address-of-tensor-memory-read-without-a-barrier",
        source="NVIDIA/cutlass#2835",
        what="a CTA with no tile skips the barriers behind tcgen05.alloc, and its epilogue reads the address",
        code="shared-race",
        target="sm_100a",
        ptx="""
    .shared .align 4 .b32 slot;
    setp.ne.u32 %p0, %warp, 0;
    @%p0 bra ALLOCATED;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64; // <--
ALLOCATED:
+    tcgen05.fence::before_thread_sync;
+    bar.sync 0;
+    tcgen05.fence::after_thread_sync;
    setp.ne.u32 %p0, %warp, 3;
    @%p0 bra END;
    ld.shared.b32 %r0, [slot]; // <--
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 64;
END:
""",
    ),
    Bug(
        name="one-lane-arrives-for-what-all-lanes-stored",
        source="NVIDIA/cudnn-frontend#426",
        what="32 lanes of the load warp store, and one elected lane arrives with no __syncwarp before it",
        code="shared-race",
        block=64,
        ptx="""
    .shared .align 4 .b32 words[32];
    .shared .align 8 .b64 ready;
    @%thread0 mbarrier.init.shared.b64 [ready], 1;
    bar.sync 0;
    mov.u32 %r0, words;
    mad.lo.u32 %r0, %lane, 4, %r0;
    setp.ne.u32 %p0, %warp, 0;
    @%p0 bra TAKE;
    st.shared.u32 [%r0], %lane; // <--
    fence.proxy.async.shared::cta;
+    bar.warp.sync 0xffffffff;
    elect.sync _|%p1, 0xffffffff;
    @%p1 mbarrier.arrive.shared.b64 _, [ready];
    bra END;
TAKE:
    mbarrier.try_wait.parity.shared.b64 %done, [ready], 0;
    @!%done bra TAKE;
    ld.shared.u32 %r1, [%r0]; // <--
    mul.wide.u32 %rd0, %lane, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %r1;
END:
""",
    ),
    Bug(
        name="aliased-columns-stored-under-loads-of-other-warps",
        source="facebookexperimental/triton#1993",
        what="two buffers share columns of tensor memory; one warp's MMA overwrites what the others still load",
        code="tensor-race",
        also=("mbarrier-round-behind",),
        target="sm_100a",
        ptx=BEGIN
        + f"""
    @%thread0 {MMA}
    @%thread0 {COMMIT}
"""
        + WAIT
        + f"""
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x8.b32 {{%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}}, [%row]; // <--
    tcgen05.wait::ld.sync.aligned;
+    tcgen05.fence::before_thread_sync;
+    bar.sync 0;
+    tcgen05.fence::after_thread_sync;
    @%thread0 {MMA} // <--
    @%thread0 {COMMIT}
AGAIN:
    mbarrier.try_wait.parity.shared.b64 %done, [done], 1;
    @!%done bra AGAIN;
"""
        + END,
    ),
    Bug(
        name="local-arrival-at-a-peers-address",
        source="apache/tvm#20074",
        what="an arrival on a peer's mbarrier is lowered to the local form, with the mapped address of the peer",
        code="not-own-shared",
        grid=2,
        cluster=2,
        block=32,
        ptx="""
    .shared .align 8 .b64 ready;
    @%thread0 mbarrier.init.shared.b64 [ready], 1;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.u32 %r0, ready;
    xor.b32 %r1, %rank, 1;
    mapa.shared::cluster.u32 %r2, %r0, %r1;
-    @%thread0 mbarrier.arrive.shared::cta.b64 _, [%r2]; // <--
+    @%thread0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2];
WAIT:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [ready], 0; // <--
    @!%done bra WAIT;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
""",
    ),
    Bug(
        name="leader-arrives-before-its-warps-have-waited",
        source="triton-lang/triton#10035",
        what="the leader warp gives the buffer back while other warps of its partition still wait for that phase",
        code="mbarrier-round-behind",
        also=("deadlock",),
        block=96,
        ptx="""
    .shared .align 8 .b64 ready;
    .shared .align 8 .b64 empty;
    @%thread0 mbarrier.init.shared.b64 [ready], 1;
    @%thread0 mbarrier.init.shared.b64 [empty], 1;
    bar.sync 0;
    mov.u32 %r0, 0;
    setp.eq.u32 %p0, %warp, 2;
    setp.eq.u32 %p2, %thread, 64;
    @%p0 bra GIVE;
TAKE:
    and.b32 %r1, %r0, 1;
READY:
    mbarrier.try_wait.parity.shared.b64 %done, [ready], %r1; // <--
    @!%done bra READY;
+    barrier.sync 1, 64;
    @%thread0 mbarrier.arrive.shared.b64 _, [empty];
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p1, %r0, 6;
    @%p1 bra TAKE;
    bra END;
GIVE:
    and.b32 %r1, %r0, 1;
    xor.b32 %r1, %r1, 1;
EMPTY:
    mbarrier.try_wait.parity.shared.b64 %done, [empty], %r1; // <--
    @!%done bra EMPTY;
    @%p2 mbarrier.arrive.shared.b64 _, [ready];
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p1, %r0, 6;
    @%p1 bra GIVE;
END:
""",
    ),
    Bug(
        name="reduced-value-read-without-syncwarp",
        source="kokkos/kokkos#6630",
        what="one lane of a warp updates a value in shared memory, and other lanes read it without __syncwarp",
        code="shared-race",
        block=32,
        ptx="""
    .shared .align 4 .b32 value;
    @%lane0 st.shared.u32 [value], 3; // <--
+    bar.warp.sync 0xffffffff;
    ld.shared.u32 %r0, [value]; // <--
    mul.wide.u32 %rd0, %lane, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %r0;
""",
    ),
    Bug(
        name="device-barrier-without-a-fence-after-its-loop",
        source="microsoft/mscclpp#497",
        what="a barrier of all blocks fences before its relaxed counter, and not after the loop that polls it",
        code="missing-fence",
        severity="advice",
        grid=2,
        block=64,
        ptx="""
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    mul.wide.u32 %rd1, %cta, 1024;
    add.u64 %rd1, %rd1, %rd0;
    st.global.u32 [%rd1+4096], %thread;
    bar.sync 0;
    @!%thread0 bra WAITED;
    fence.acq_rel.gpu;
    atom.relaxed.gpu.global.add.u32 %r0, [%data], 1;
POLL:
    ld.relaxed.gpu.global.u32 %r0, [%data]; // <--
    setp.lt.u32 %p0, %r0, 2;
    @%p0 bra POLL;
+    fence.acq_rel.gpu;
WAITED:
    bar.sync 0;
    xor.b32 %r1, %cta, 1;
    mul.wide.u32 %rd1, %r1, 1024;
    add.u64 %rd1, %rd1, %rd0;
    ld.global.u32 %r2, [%rd1+4096]; // <--
    mul.wide.u32 %rd1, %cta, 1024;
    add.u64 %rd1, %rd1, %rd0;
    st.global.u32 [%rd1+16384], %r2;
""",
    ),
    Bug(
        name="volatile-signals-without-a-fence",
        source="vllm-project/vllm#8404",
        what="the signals of an all-reduce are volatile, and no fence comes between them and the data",
        code="missing-fence",
        grid=2,
        block=32,
        ptx="""
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    setp.ne.u32 %p0, %cta, 0;
    @%p0 bra TAKE;
    st.global.u32 [%rd0+4096], %thread; // <--
    bar.warp.sync 0xffffffff;
+    @%thread0 membar.sys;
    @%thread0 st.volatile.global.u32 [%data], 1; // <--
    bra END;
TAKE:
    ld.volatile.global.u32 %r0, [%data];
    setp.eq.u32 %p1, %r0, 0;
    @%p1 bra TAKE;
+    membar.sys;
    ld.global.u32 %r1, [%rd0+4096]; // <--
    st.global.u32 [%rd0+8192], %r1;
END:
""",
    ),
    Bug(
        name="sum-overwritten-while-others-read-it",
        source="warpfront/hipfire#575",
        what="the broadcast read of a reduction's sum and the reuse of its array have no barrier between them",
        code="shared-race",
        ptx="""
    .shared .align 4 .b32 words[128];
    mov.u32 %r0, words;
    mad.lo.u32 %r1, %thread, 4, %r0;
    st.shared.u32 [%r1], 1;
    bar.sync 0;
    ld.shared.u32 %r2, [words]; // <--
+    bar.sync 0;
    mad.lo.u32 %r3, %thread, 2, %r2;
    add.u32 %r3, %r3, 1;
    st.shared.u32 [%r1], %r3; // <--
    bar.sync 0;
    xor.b32 %r4, %thread, 32;
    mad.lo.u32 %r4, %r4, 4, %r0;
    ld.shared.u32 %r5, [%r4];
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %r5;
""",
    ),
    Bug(
        name="counter-used-before-it-is-cleared",
        source="alpaka-group/mallocMC#190",
        what="one thread clears a counter in shared memory, and the others add to it without a barrier",
        code="shared-race",
        ptx="""
    .shared .align 4 .b32 count;
    @%thread0 st.shared.u32 [count], 0; // <--
+    bar.sync 0;
    atom.shared.add.u32 %r0, [count], 1; // <--
    bar.sync 0;
    ld.shared.u32 %r1, [count];
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %r1;
""",
    ),
    Bug(
        name="scan-in-place-with-one-barrier-a-step",
        source="gunrock/gunrock#845",
        what="a scan in shared memory stores its sum right after it has read its neighbor, which others still read",
        code="shared-race",
        ptx="""
    .shared .align 4 .b32 words[256];
    mov.u32 %r0, words;
    mad.lo.u32 %r1, %thread, 4, %r0;
    st.shared.u32 [%r1], 0;
    st.shared.u32 [%r1+512], %thread;
    bar.sync 0;
    mov.u32 %r2, 4;
STEP:
    sub.u32 %r3, %r1, %r2;
    ld.shared.u32 %r4, [%r3+512]; // <--
    ld.shared.u32 %r5, [%r1+512];
    add.u32 %r4, %r4, %r5;
+    bar.sync 0;
    st.shared.u32 [%r1+512], %r4; // <--
    bar.sync 0;
    shl.b32 %r2, %r2, 1;
    setp.lt.u32 %p0, %r2, 512;
    @%p0 bra STEP;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %r4;
""",
    ),
    Bug(
        name="next-results-over-a-store-in-flight",
        source="NVIDIA/Fuser#5448",
        what="the loop stores results and issues a TMA store of them; commit and wait come after the loop alone",
        code="shared-race",
        ptx="""
    .shared .align 128 .b8 tile[512];
    mov.u32 %r0, tile;
    mad.lo.u32 %r1, %thread, 4, %r0;
    mov.u32 %r2, 0;
    mov.u64 %rd0, %data;
TURN:
    st.shared.u32 [%r1], %r2; // <--
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%thread0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 512; // <--
+    @%thread0 cp.async.bulk.commit_group;
+    @%thread0 cp.async.bulk.wait_group.read 0;
+    bar.sync 0;
    add.u64 %rd0, %rd0, 512;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p0, %r2, 3;
    @%p0 bra TURN;
    @%thread0 cp.async.bulk.commit_group;
    @%thread0 cp.async.bulk.wait_group 0;
""",
    ),
    Bug(
        name="dependency-awaited-after-the-first-reads",
        source="NVIDIA/cccl#5456",
        what="the grid dependency is awaited after the reads of the partitions that it was meant to guard",
        code="grid-race",
        block=32,
        before="""
    griddepcontrol.launch_dependents;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %thread;
""",
        ptx="""
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
+    griddepcontrol.wait;
    ld.global.u32 %r0, [%rd0]; // <--
-    griddepcontrol.wait;
    mul.wide.u32 %rd1, %r0, 4;
    add.u64 %rd1, %rd1, %data;
    ld.global.u32 %r1, [%rd1];
    st.global.u32 [%rd0+1024], %r1;
""",
    ),
    Bug(
        name="tensor-memory-that-nobody-allocates",
        source="NVIDIA/cutlass#2230",
        what="a tutorial uses tensor memory from address 0 on and never allocates it",
        code="tmem-out-of-allocation",
        target="sm_100a",
        ptx="""
    .shared .align 1024 .b8 smem_a[16384];
    .shared .align 1024 .b8 smem_b[4096];
    .shared .align 8 .b64 done;
    .shared .align 4 .b32 slot;
    .reg .b64 %desc_a, %desc_b;
    .reg .b32 %idesc, %tmem;
    mov.b64 %desc_a, 0x4000404000010040;
    mov.b64 %desc_b, 0x4000404000010440;
    mov.b32 %idesc, 0x8080490;
    setp.eq.u32 %p0, %warp, 0;
    mov.u32 %r39, smem_a; @%thread0 st.bulk.weak.shared::cta [%r39], 16384, 0;
    mov.u32 %r39, smem_b; @%thread0 st.bulk.weak.shared::cta [%r39], 4096, 0;
    @%thread0 mbarrier.init.shared.b64 [done], 1;
    fence.proxy.async.shared::cta;
    mov.u32 %tmem, 0;
+    @!%p0 bra ALLOCATED;
+    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;
+ALLOCATED:
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
+    ld.shared.b32 %tmem, [slot];
    @%thread0 tcgen05.mma.cta_group::1.kind::f16 [%tmem], %desc_a, %desc_b, %idesc, 0; // <--
    @%thread0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
"""
        + WAIT
        + """
+    tcgen05.fence::before_thread_sync;
+    bar.sync 0;
+    tcgen05.fence::after_thread_sync;
+    @!%p0 bra FREED;
+    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tmem, 64;
+FREED:
""",
    ),
    Bug(
        name="store-written-in-one-loop-and-read-in-the-next",
        source="ikawrakow/ik_llama.cpp#2502",
        what="a warp writes an array in shared memory in one loop and reads it in the next, with no __syncwarp",
        code="shared-race",
        block=32,
        ptx="""
    .shared .align 4 .b32 store[128];
    mov.u32 %r0, store;
    mad.lo.u32 %r1, %lane, 4, %r0;
    mov.u32 %r2, 0;
PUT:
    st.shared.u32 [%r1], %r2; // <--
    add.u32 %r1, %r1, 128;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p0, %r2, 4;
    @%p0 bra PUT;
+    bar.warp.sync 0xffffffff;
    xor.b32 %r3, %lane, 1;
    mad.lo.u32 %r1, %r3, 4, %r0;
    mov.u32 %r2, 0;
    mov.u32 %r4, 0;
GET:
    ld.shared.u32 %r5, [%r1]; // <--
    add.u32 %r4, %r4, %r5;
    add.u32 %r1, %r1, 128;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p0, %r2, 4;
    @%p0 bra GET;
    mul.wide.u32 %rd0, %lane, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %r4;
""",
    ),
    Bug(
        name="peer-invalidates-before-the-commit-arrives",
        source="triton-lang/triton#10409",
        what="the CTA that issues nothing runs ahead and invalidates the mbarrier on which the leader's commit arrives",
        code="mbarrier-uninitialized",
        schedules=("random",),
        seeds=(0, 1, 2, 3),
        target="sm_100a",
        grid=2,
        cluster=2,
        ptx="""
    .shared .align 1024 .b8 smem_a[16384];
    .shared .align 1024 .b8 smem_b[4096];
    .shared .align 8 .b64 done;
    .shared .align 4 .b32 slot;
    .reg .b64 %desc_a, %desc_b;
    .reg .b32 %idesc, %tmem;
    .reg .b16 %mask;
    .reg .pred %leader;
    mov.b64 %desc_a, 0x4000404000010040;
    mov.b64 %desc_b, 0x4000404000010440;
    mov.b32 %idesc, 0x10080490;
    setp.eq.u32 %p0, %warp, 0;
    setp.eq.and.u32 %leader, %rank, 0, %thread0;
    mov.u32 %r39, smem_a; @%thread0 st.bulk.weak.shared::cta [%r39], 16384, 0;
    mov.u32 %r39, smem_b; @%thread0 st.bulk.weak.shared::cta [%r39], 4096, 0;
    @%thread0 mbarrier.init.shared.b64 [done], 1;
    fence.mbarrier_init.release.cluster;
    fence.proxy.async.shared::cta;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @!%p0 bra ALLOCATED;
    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 64;
ALLOCATED:
    tcgen05.fence::before_thread_sync;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %tmem, [slot];
    mov.b16 %mask, 3;
    @!%leader bra ISSUED;
    tcgen05.mma.cta_group::2.kind::f16 [%tmem], %desc_a, %desc_b, %idesc, 0;
    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %mask; // <--
ISSUED:
-    setp.ne.u32 %p1, %rank, 0;
-    @%p1 bra WAITED;
WAIT:
    mbarrier.try_wait.parity.shared.b64 %done, [done], 0;
    @!%done bra WAIT;
WAITED:
    bar.sync 0;
    @%thread0 mbarrier.inval.shared.b64 [done]; // <--
    tcgen05.fence::before_thread_sync;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    tcgen05.fence::after_thread_sync;
    @!%p0 bra FREED;
    tcgen05.dealloc.cta_group::2.sync.aligned.b32 %tmem, 64;
FREED:
""",
    ),
    Bug(
        name="scales-copied-before-their-barrier",
        source="triton-lang/triton#6061",
        what="tcgen05.cp copies shared memory that other warps have stored, with no barrier before it",
        code="shared-race",
        target="sm_100a",
        ptx=BEGIN
        + """
    .shared .align 128 .b8 scales[512];
    mov.u32 %r0, scales;
    mad.lo.u32 %r1, %thread, 4, %r0;
    st.shared.u32 [%r1], %thread; // <--
    fence.proxy.async.shared::cta;
+    bar.sync 0;
    shr.u32 %r2, %r0, 4;
    cvt.u64.u32 %rd0, %r2;
    or.b64 %rd0, %rd0, 0x0000400800080000;
    add.u32 %r3, %tmem, 32;
    @%thread0 tcgen05.cp.cta_group::1.32x128b.warpx4 [%r3], %rd0; // <--
"""
        + f"""
    @%thread0 {COMMIT}
"""
        + WAIT
        + END,
    ),
]
