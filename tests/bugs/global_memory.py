"""Global memory: flags, fences, scopes, loads through the read-only path."""

from __future__ import annotations

from tests.bugs.bug import REBUILT, Bug

BUGS = [
    Bug(
        name="read-only-load-of-data-written-here",
        source="deepseek-ai/DeepEP#136",
        what="ld.global.nc reads a buffer that the same kernel writes: the line in L1 may be stale",
        code="nc-load",
        block=64,
        ptx="""
    setp.ne.u32 %p0, %warp, 0;
    @%p0 bra READ;
    @%lane0 st.global.u32 [%data], 7;
READ:
    bar.sync 0;
-    ld.global.nc.u32 %r0, [%data]; // <--
+    ld.global.u32 %r0, [%data];
    @%thread0 st.global.u32 [%data+64], %r0;
""",
    ),
    Bug(
        name="semaphore-released-without-a-fence",
        source="NVIDIA/Fuser#2391",
        what="split-K: a CTA sets the semaphore after its stores without __threadfence",
        code="missing-fence",
        also=("global-race",),
        block=32,
        grid=2,
        ptx="""
    setp.ne.u32 %p0, %cta, 0;
    @%p0 bra NEXT;
    @%thread0 st.global.u32 [%data+512], 7;
+    @%thread0 fence.acq_rel.gpu;
    @%thread0 st.relaxed.gpu.global.u32 [%data], 1; // <--
    bra END;
NEXT:
    ld.acquire.gpu.global.u32 %r0, [%data];
    setp.eq.u32 %p1, %r0, 0;
    @%p1 bra NEXT;
    ld.global.u32 %r1, [%data+512]; // <--
END:
""",
    ),
    Bug(
        name="spin-loop-with-relaxed-loads",
        source="NVIDIA/cutlass#3117",
        what="a spin loop on a flag of other CTAs loads it relaxed instead of acquire",
        code="missing-fence",
        severity="advice",
        block=32,
        grid=2,
        ptx="""
    setp.ne.u32 %p0, %cta, 0;
    @%p0 bra NEXT;
    @%thread0 st.global.u32 [%data+512], 7;
    @%thread0 st.release.gpu.global.u32 [%data], 1;
    bra END;
NEXT:
-    ld.relaxed.gpu.global.u32 %r0, [%data];
+    ld.acquire.gpu.global.u32 %r0, [%data];
    setp.eq.u32 %p1, %r0, 0;
    @%p1 bra NEXT;
    ld.global.u32 %r1, [%data+512]; // <--
END:
""",
    ),
    Bug(
        name="scales-read-without-a-mask",
        source="triton-lang/triton#10772",
        what="the tail of the scales is loaded without a mask: reads past the array, NaNs in the result",
        code="out-of-bounds",
        block=32,
        ptx="""
    mul.wide.u32 %rd0, %lane, 4;
    add.u64 %rd0, %rd0, %data;
-    add.u64 %rd0, %rd0, 0x40000000;
    ld.global.u32 %r0, [%rd0]; // <--
""",
    ),
    Bug(
        name="group-barrier-without-syncthreads",
        source="flashinfer-ai/flashinfer#5251",
        what="thread 0 releases what all threads of the CTA have written, with no __syncthreads between",
        code="global-race",
        grid=2,
        ptx="""
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    setp.eq.u32 %p0, %cta, 0;
    @!%p0 bra OTHER;
    st.global.u32 [%rd0+512], 7;
+    bar.sync 0;
    @%thread0 fence.acq_rel.gpu;
    @%thread0 red.relaxed.gpu.global.add.u32 [%data], 1;
    bra END;
OTHER:
    @!%thread0 bra GO;
POLL:
    ld.acquire.gpu.global.u32 %r4, [%data];
    setp.lt.u32 %p1, %r4, 1;
    @%p1 bra POLL;
GO:
    bar.sync 0;
    ld.global.u32 %r5, [%rd0+512]; // <--
END:
""",
    ),
    Bug(
        name="read-only-load-after-a-tensor-store",
        source=REBUILT,
        what="a TMA store writes the tile, and the epilogue loads it back through the read-only path",
        code="nc-load",
        ptx="""
    .shared .align 128 .b8 t[1024];
    mov.u32 %r0, t;
    mad.lo.u32 %r0, %thread, 8, %r0;
    st.shared.v2.b32 [%r0], {%thread, 2};
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @!%thread0 bra N;
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, {0, 8}], [t];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
N:
    bar.sync 0;
    add.u64 %rd1, %matrix, 1024;
    mul.wide.u32 %rd0, %thread, 8;
    add.u64 %rd1, %rd1, %rd0;
-    ld.global.nc.v2.b32 {%r2, %r3}, [%rd1]; // <--
+    ld.global.v2.b32 {%r2, %r3}, [%rd1];
    add.u64 %rd0, %rd0, %data;
    st.global.v2.b32 [%rd0], {%r2, %r3};
""",
    ),
    Bug(
        name="read-only-load-after-a-bulk-reduction",
        source=REBUILT,
        what="the same of what cp.reduce.async.bulk adds to",
        code="nc-load",
        ptx="""
    .shared .align 128 .b8 t[1024];
    mov.u32 %r0, t;
    mad.lo.u32 %r0, %thread, 8, %r0;
    st.shared.v2.b32 [%r0], {%thread, 2};
    fence.proxy.async;
    bar.sync 0;
    @!%thread0 bra N;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%data], [t], 1024;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
N:
    bar.sync 0;
    mul.wide.u32 %rd0, %thread, 8;
    add.u64 %rd0, %rd0, %data;
-    ld.global.nc.b64 %rd3, [%rd0]; // <--
+    ld.global.b64 %rd3, [%rd0];
    st.global.b64 [%rd0+4096], %rd3;
""",
    ),
    Bug(
        name="stream-k-partials-without-a-fence",
        source=REBUILT,
        what="stream-K: a CTA counts itself by a relaxed reduction after the stores of its partial tile",
        code="missing-fence",
        block=64,
        grid=2,
        ptx="""
    mul.wide.u32 %rd0, %thread, 16;
    add.u64 %rd0, %rd0, %data;
    setp.eq.u32 %p0, %cta, 0;
    @%p0 bra OWNER;
    mov.b32 %r1, 0x3F800000;
    st.global.cg.v4.b32 [%rd0+1024], {%r1, %r1, %r1, %r1}; // <--
    bar.sync 0;
+    @%thread0 fence.acq_rel.gpu;
    @%thread0 red.relaxed.gpu.global.add.u32 [%data], 1; // <--
    bra E;
OWNER:
    @!%thread0 bra S;
P:
    ld.relaxed.gpu.global.u32 %r2, [%data];
    setp.lt.u32 %p1, %r2, 1;
    @%p1 bra P;
    fence.acq_rel.gpu;
S:
    bar.sync 0;
    ld.global.cg.v4.b32 {%r3, %r4, %r5, %r6}, [%rd0+1024]; // <--
    st.global.v4.b32 [%rd0+8192], {%r3, %r4, %r5, %r6};
E:
""",
    ),
    Bug(
        name="split-k-turn-handed-on-too-early",
        source=REBUILT,
        what="thread 0 hands the turn to the next CTA while other threads still add to the tile",
        code="global-race",
        block=64,
        grid=3,
        ptx="""
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
W:
    @!%thread0 bra GO;
    ld.acquire.gpu.global.u32 %r1, [%data+4096];
    setp.ne.u32 %p0, %r1, %cta;
    @%p0 bra W;
GO:
    bar.sync 0;
    ld.global.u32 %r2, [%rd0]; // <--
    add.u32 %r2, %r2, 5;
    st.global.u32 [%rd0], %r2; // <--
+    bar.sync 0;
    add.u32 %r3, %cta, 1;
    @%thread0 st.release.gpu.global.u32 [%data+4096], %r3;
""",
    ),
    Bug(
        name="read-only-load-of-a-stored-tile",
        source=REBUILT,
        what="ld.global.nc reads what a TMA store of the same kernel has written, after a complete wait and its fence",
        code="nc-load",
        block=32,
        ptx="""
    .shared .align 128 .b8 buf[1024];
    shl.b32 %r0, %lane, 5;
    mov.u32 %r1, buf;
    add.u32 %r1, %r1, %r0;
    st.shared.v4.u32 [%r1], {%lane, 1, 2, 3};
    st.shared.v4.u32 [%r1+16], {%lane, 1, 2, 3};
    fence.proxy.async.shared::cta;
    bar.warp.sync -1;
    mov.u32 %r4, 0;
    mov.u32 %r5, 8;
    @!%lane0 bra J;
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, {%r4, %r5}], [buf]; // <--
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    fence.proxy.async.global;
J:
    bar.warp.sync -1;
    mul.wide.u32 %rd0, %lane, 32;
    add.u64 %rd1, %matrix, %rd0;
-    ld.global.nc.u32 %r7, [%rd1+1024]; // <--
+    ld.global.u32 %r7, [%rd1+1024];
    mul.wide.u32 %rd0, %lane, 4;
    add.u64 %rd1, %data, %rd0;
    st.global.u32 [%rd1+4096], %r7;
""",
    ),
    Bug(
        name="read-only-load-of-a-counter",
        source=REBUILT,
        what="ld.global.nc reads a counter that all threads add to before __syncthreads",
        code="nc-load",
        block=64,
        ptx="""
    red.relaxed.gpu.global.add.u32 [%data+16], 1; // <--
    bar.sync 0;
-    ld.global.nc.u32 %r0, [%data+16]; // <--
+    ld.global.u32 %r0, [%data+16];
    @%thread0 st.global.u32 [%data+64], %r0;
""",
    ),
    Bug(
        name="fence-after-the-ticket",
        source=REBUILT,
        what="last-block reduction: __threadfence comes after the atomic that takes the ticket, not before",
        code="missing-fence",
        also=("global-race",),
        block=32,
        grid=3,
        ptx="""
    .reg .pred %last;
    mul.wide.u32 %rd0, %cta, 4;
    add.u64 %rd1, %data, %rd0;
    @!%thread0 bra E;
    st.global.u32 [%rd1+256], %cta; // <--
+    membar.gl;
    atom.global.inc.u32 %r0, [%data], 2; // <--
-    membar.gl;
    setp.eq.u32 %last, %r0, 2;
    @!%last bra E;
+    membar.gl;
    ld.global.u32 %r1, [%data+256]; // <--
    ld.global.u32 %r2, [%data+260]; // <--
    ld.global.u32 %r3, [%data+264]; // <--
    add.u32 %r1, %r1, %r2;
    add.u32 %r1, %r1, %r3;
    st.global.u32 [%data+64], %r1;
E:
""",
    ),
    Bug(
        name="look-back-status-without-release",
        source=REBUILT,
        what="decoupled look-back: the aggregate is stored, then its status word, relaxed and without a fence",
        code="missing-fence",
        also=("global-race",),
        block=1,
        grid=3,
        ptx="""
    mul.wide.u32 %rd0, %cta, 8;
    add.u64 %rd1, %data, %rd0;
    add.u32 %r5, %cta, 1;
    st.global.u32 [%rd1+256], %r5; // <--
-    st.relaxed.gpu.global.u32 [%rd1+260], 1; // <--
+    st.release.gpu.global.u32 [%rd1+260], 1;
    setp.eq.u32 %p0, %cta, 0;
    @%p0 bra E;
P:
    ld.acquire.gpu.global.u32 %r1, [%rd1+252];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra P;
    ld.global.u32 %r2, [%rd1+248]; // <--
E:
""",
    ),
    Bug(
        name="lock-given-back-without-a-fence",
        source=REBUILT,
        what="a spin lock is given back by atomicExch without __threadfence",
        code="missing-fence",
        also=("global-race",),
        block=1,
        grid=3,
        ptx="""
L:
    atom.global.cas.b32 %r0, [%data], 0, 1;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra L;
    fence.acq_rel.gpu;
    ld.global.u32 %r1, [%data+64]; // <--
    add.u32 %r1, %r1, 1;
    st.global.u32 [%data+64], %r1; // <--
+    fence.acq_rel.gpu;
    atom.global.exch.b32 %r2, [%data], 0; // <--
""",
    ),
    Bug(
        name="grid-barrier-with-a-fence-of-the-cta",
        source=REBUILT,
        what="a barrier of the grid has __threadfence_block before the arrival",
        code="missing-fence",
        also=("global-race", "narrow-scope"),
        block=32,
        grid=2,
        ptx="""
    xor.b32 %r7, %cta, 1;
    mul.wide.u32 %rd0, %cta, 4;
    mul.wide.u32 %rd1, %r7, 4;
    add.u64 %rd0, %rd0, %data;
    add.u64 %rd1, %rd1, %data;
    @!%thread0 bra J;
    st.global.u32 [%rd0+64], %cta; // <--
-    membar.cta;
+    membar.gl;
    red.global.add.u32 [%data], 1; // <--
P:
    ld.volatile.global.u32 %r0, [%data];
    setp.lt.u32 %p0, %r0, 2;
    @%p0 bra P;
    membar.gl;
    ld.global.u32 %r1, [%rd1+64]; // <--
J:
""",
    ),
    Bug(
        name="flag-released-for-its-cta-alone",
        source=REBUILT,
        what="a CTA publishes a word to another one by red.release.cta",
        code="narrow-scope",
        block=32,
        grid=2,
        ptx="""
    .reg .b64 %flag;
    add.u64 %flag, %data, 2048;
    @!%lane0 bra END;
    setp.ne.u32 %p0, %cta, 0;
    @%p0 bra POLL;
    st.global.u32 [%data], 7;
-    red.release.cta.global.add.u32 [%flag], 1; // <--
+    red.release.gpu.global.add.u32 [%flag], 1;
    bra END;
POLL:
    ld.acquire.gpu.global.u32 %r0, [%flag];
    setp.eq.u32 %p1, %r0, 0;
    @%p1 bra POLL;
    ld.global.u32 %r1, [%data];
END:
""",
    ),
    Bug(
        name="flag-acquired-for-its-cluster-alone",
        source=REBUILT,
        what="a CTA polls by ld.acquire.cluster for a flag that a CTA of another cluster sets",
        code="narrow-scope",
        block=32,
        grid=2,
        ptx="""
    .reg .b64 %flag;
    add.u64 %flag, %data, 2048;
    @!%lane0 bra END;
    setp.ne.u32 %p0, %cta, 0;
    @%p0 bra POLL;
    st.global.u32 [%data], 7;
    st.release.gpu.global.u32 [%flag], 1;
    bra END;
POLL:
-    ld.acquire.cluster.global.u32 %r0, [%flag]; // <--
+    ld.acquire.gpu.global.u32 %r0, [%flag];
    setp.eq.u32 %p1, %r0, 0;
    @%p1 bra POLL;
    ld.global.u32 %r1, [%data];
END:
""",
    ),
    Bug(
        name="split-k-waits-for-too-few",
        source=REBUILT,
        what="the CTA that adds up the partial tiles of a split-K GEMM waits for one arrival less than it reads tiles",
        code="global-race",
        block=64,
        grid=4,
        ptx="""
    setp.eq.u32 %p0, %cta, 0;
    mul.wide.u32 %rd0, %cta, 256;
    mul.wide.u32 %rd1, %thread, 4;
    add.u64 %rd0, %rd0, %rd1;
    add.u64 %rd0, %rd0, %data;
    @%p0 bra FIXUP;
    st.global.u32 [%rd0], %thread; // <--
    bar.sync 0;
    @%thread0 red.release.gpu.global.add.u32 [%data], 1;
    bra END;
FIXUP:
    @!%thread0 bra READY;
POLL:
    ld.acquire.gpu.global.u32 %r1, [%data];
-    setp.lt.u32 %p1, %r1, 2;
+    setp.lt.u32 %p1, %r1, 3;
    @%p1 bra POLL;
READY:
    bar.sync 0;
    ld.global.u32 %r2, [%rd0+256]; // <--
    ld.global.u32 %r3, [%rd0+512]; // <--
    ld.global.u32 %r4, [%rd0+768]; // <--
    add.u32 %r2, %r2, %r3;
    add.u32 %r2, %r2, %r4;
    st.global.u32 [%rd0+1024], %r2;
END:
""",
    ),
    Bug(
        name="counter-of-three-waits-for-any",
        source=REBUILT,
        what="who reads the part of one producer waits for any two of three arrivals: that one may be missing",
        code="global-race",
        block=1,
        grid=4,
        ptx="""
    setp.eq.u32 %p0, %cta, 0;
    @%p0 bra POLL;
    mad.wide.u32 %rd0, %cta, 4, %data;
    st.global.u32 [%rd0+64], 7; // <--
    red.release.gpu.global.add.u32 [%data], 1;
    bra END;
POLL:
    ld.acquire.gpu.global.u32 %r1, [%data];
-    setp.lt.u32 %p1, %r1, 2;
+    setp.lt.u32 %p1, %r1, 3;
    @%p1 bra POLL;
    ld.global.u32 %r2, [%data+68]; // <--
    st.global.u32 [%data+128], %r2;
END:
""",
    ),
    Bug(
        name="bit-of-another-producer",
        source=REBUILT,
        what="each producer sets a bit when it is done, and the consumer of one of them waits for the bit of another",
        code="global-race",
        block=1,
        grid=4,
        ptx="""
    setp.eq.u32 %p0, %cta, 0;
    @%p0 bra POLL;
    mad.wide.u32 %rd0, %cta, 4, %data;
    st.global.u32 [%rd0+64], 7; // <--
    mov.u32 %r3, 1;
    shl.b32 %r3, %r3, %cta;
    red.release.gpu.global.or.b32 [%data], %r3;
    bra END;
POLL:
    ld.acquire.gpu.global.u32 %r1, [%data];
-    and.b32 %r1, %r1, 8;
+    and.b32 %r1, %r1, 2;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra POLL;
    ld.global.u32 %r2, [%data+68]; // <--
    st.global.u32 [%data+128], %r2;
END:
""",
    ),
    Bug(
        name="warps-counted-one-short",
        source=REBUILT,
        what="warps count themselves in shared memory; warp 0 waits for two of three and reads what the first stores",
        code="shared-race",
        ptx="""
    .shared .align 4 .b32 n;
    .shared .align 4 .b8 words[16];
    mov.b32 %r8, n;
    mov.b32 %r9, words;
    @%thread0 st.shared.u32 [%r8], 0;
    bar.sync 0;
    @!%lane0 bra END;
    setp.eq.u32 %p0, %warp, 0;
    @%p0 bra POLL;
    mad.lo.u32 %r1, %warp, 4, %r9;
    st.shared.u32 [%r1], %thread; // <--
    fence.acq_rel.cta;
    red.shared.add.u32 [%r8], 1;
    bra END;
POLL:
    ld.relaxed.cta.shared.u32 %r4, [%r8];
-    setp.lt.u32 %p1, %r4, 2;
+    setp.lt.u32 %p1, %r4, 3;
    @%p1 bra POLL;
    fence.acq_rel.cta;
    ld.shared.u32 %r1, [%r9+4]; // <--
    st.global.u32 [%data], %r1;
END:
""",
    ),
    Bug(
        name="slot-refilled-without-waiting-for-its-reader",
        source=REBUILT,
        what="a producer fills the one slot of a ring again although the consumer has not said that it has read it",
        code="global-race",
        block=1,
        grid=2,
        ptx="""
    mov.u32 %r9, 1;
    setp.eq.u32 %p0, %cta, 0;
    @%p0 bra TAKE;
GIVE:
+    ld.acquire.gpu.global.u32 %r4, [%data+4];
+    add.u32 %r4, %r4, 1;
+    setp.lt.u32 %p1, %r4, %r9;
+    @%p1 bra GIVE;
    st.global.u32 [%data+64], %r9; // <--
    st.release.gpu.global.u32 [%data], %r9;
    add.u32 %r9, %r9, 1;
    setp.le.u32 %p2, %r9, 3;
    @%p2 bra GIVE;
    bra END;
TAKE:
    ld.acquire.gpu.global.u32 %r4, [%data];
    setp.lt.u32 %p1, %r4, %r9;
    @%p1 bra TAKE;
    ld.global.u32 %r5, [%data+64]; // <--
    mad.wide.u32 %rd0, %r9, 4, %data;
    st.global.u32 [%rd0+128], %r5;
    st.release.gpu.global.u32 [%data+4], %r9;
    add.u32 %r9, %r9, 1;
    setp.le.u32 %p2, %r9, 3;
    @%p2 bra TAKE;
END:
""",
    ),
    Bug(
        name="stream-k-counts-one-peer-too-few",
        source=REBUILT,
        what="stream-K: the owner of a tile waits by volatile loads and a fence until all but one peer have arrived",
        code="global-race",
        block=64,
        grid=3,
        ptx="""
    setp.eq.u32 %p0, %cta, 2;
    mul.wide.u32 %rd0, %cta, 256;
    mul.wide.u32 %rd1, %thread, 4;
    add.u64 %rd1, %rd1, %data;
    add.u64 %rd0, %rd0, %rd1;
    @%p0 bra OWNER;
    st.global.u32 [%rd0+1024], %thread; // <--
    membar.gl;
    bar.sync 0;
    @%thread0 atom.global.add.u32 %r5, [%data], 1;
    bra END;
OWNER:
    @!%thread0 bra READY;
-    mov.u32 %r4, 1;
+    mov.u32 %r4, 2;
POLL:
    ld.volatile.global.u32 %r1, [%data];
    setp.lt.u32 %p1, %r1, %r4;
    @%p1 bra POLL;
    membar.gl;
READY:
    bar.sync 0;
    ld.global.u32 %r2, [%rd1+1024]; // <--
    ld.global.u32 %r3, [%rd1+1280]; // <--
    add.u32 %r2, %r2, %r3;
    st.global.u32 [%rd1+2048], %r2;
END:
""",
    ),
    Bug(
        name="fixup-waits-for-too-few-threads",
        source=REBUILT,
        what="every thread arrives for its own part of a tile, and the fixup waits for those of one CTA less",
        code="global-race",
        seeds=tuple(range(8)),
        block=64,
        grid=4,
        ptx="""
    setp.eq.u32 %p0, %cta, 0;
    mul.wide.u32 %rd0, %cta, 256;
    mul.wide.u32 %rd1, %thread, 4;
    add.u64 %rd0, %rd0, %rd1;
    add.u64 %rd0, %rd0, %data;
    @%p0 bra FIXUP;
    st.global.u32 [%rd0+1024], %thread; // <--
    red.release.gpu.global.add.u32 [%data], 1;
    bra END;
FIXUP:
    ld.acquire.gpu.global.u32 %r1, [%data];
-    setp.lt.u32 %p1, %r1, 128;
+    setp.lt.u32 %p1, %r1, 192;
    @%p1 bra FIXUP;
    bar.sync 0;
    ld.global.u32 %r2, [%rd0+1280]; // <--
    ld.global.u32 %r3, [%rd0+1536]; // <--
    ld.global.u32 %r4, [%rd0+1792]; // <--
    add.u32 %r2, %r2, %r3;
    add.u32 %r2, %r2, %r4;
    st.global.u32 [%rd0+8192], %r2;
END:
""",
    ),
]
