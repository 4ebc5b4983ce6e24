"""Shared memory: barriers of the CTA that are missing or come too late."""

from __future__ import annotations

from tests.bugs.bug import REBUILT, Bug

#: The word of this thread in `room` at %own, that of its neighbor in the next warp at %next.
WORDS = """
    .shared .align 16 .b8 room[512];
    .reg .b32 %own, %next;
    shl.b32 %r0, %thread, 2;
    mov.u32 %r1, room;
    add.u32 %own, %r1, %r0;
    xor.b32 %r0, %r0, 128;
    add.u32 %next, %r1, %r0;
"""

BUGS = [
    Bug(
        name="one-thread-writes-all-read",
        source="ORNL/HeCBench#254",
        what="one thread writes two accumulators and all threads read them on the next line: no __syncthreads",
        code="shared-race",
        ptx="""
    .shared .align 4 .b32 total;
    @%thread0 st.shared.u32 [total], 5;
+    bar.sync 0;
    ld.shared.u32 %r0, [total]; // <--
""",
    ),
    Bug(
        name="next-tile-loaded-while-others-read",
        source="ORNL/HeCBench#253",
        what="the loop loads the next tile into shared memory while other threads still read the last one",
        code="shared-race",
        ptx=WORDS
        + """
    mov.u32 %r2, 0;
TILE:
    add.u32 %r3, %thread, %r2;
    st.shared.u32 [%own], %r3; // <--
    bar.sync 0;
    ld.shared.u32 %r4, [%next];
+    bar.sync 0;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p0, %r2, 2;
    @%p0 bra TILE;
""",
    ),
    Bug(
        name="one-barrier-in-a-loop",
        source="yelhousni/zprize-GPU-MSM-harness#1",
        what="each thread posts its value and one __syncthreads follows: a fast thread posts the next round's value",
        code="shared-race",
        ptx=WORDS
        + """
    mov.u32 %r2, 0;
ROUND:
    mad.lo.u32 %r3, %r2, 7, %thread;
    st.shared.u32 [%own], %r3; // <--
    bar.sync 0;
    ld.shared.u32 %r4, [room];
    ld.shared.u32 %r5, [%next];
+    bar.sync 0;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p0, %r2, 3;
    @%p0 bra ROUND;
""",
    ),
    Bug(
        name="thread-0-reduces-while-others-go-on",
        source="NVIDIA/cuml#6578",
        what="thread 0 reduces what all have written, the others go on with the loop and overwrite it",
        code="shared-race",
        ptx=WORDS
        + """
    mov.u32 %r2, 0;
ROUND:
    add.u32 %r3, %thread, %r2;
    st.shared.u32 [%own], %r3; // <--
    bar.sync 0;
    @%thread0 ld.shared.u32 %r4, [room+256];
    @%thread0 ld.shared.u32 %r5, [room+384];
+    bar.sync 0;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p0, %r2, 2;
    @%p0 bra ROUND;
""",
    ),
    Bug(
        name="buffer-reused-for-the-second-reduction",
        source="flashinfer-ai/flashinfer#3607",
        what="one buffer of warp sums for mean and variance: a fast warp writes the second before all read the first",
        code="shared-race",
        ptx="""
    .shared .align 16 .b8 sums[16];
    shl.b32 %r0, %warp, 2;
    mov.u32 %r1, sums;
    add.u32 %r1, %r1, %r0;
    @%lane0 st.shared.u32 [%r1], %warp;
    bar.sync 0;
    ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [sums];
+    bar.sync 0;
    add.u32 %r6, %warp, %r5;
    add.u32 %r6, %r6, 1;
    @%lane0 st.shared.u32 [%r1], %r6; // <--
    bar.sync 0;
    ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [sums];
""",
    ),
    Bug(
        name="output-tile-read-before-other-warps-write",
        source="tile-ai/TileOPs#1633",
        what="the accumulator goes to the output through a swizzled tile in shared memory, with no barrier around",
        code="shared-race",
        ptx=WORDS
        + """
    st.shared.u32 [%own], %thread;
+    bar.sync 3, 128;
    ld.shared.u32 %r2, [%next]; // <--
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %r2;
""",
    ),
    Bug(
        name="accumulators-alias-the-operands",
        source="sgl-project/sglang#37287",
        what="sC aliases the first stage of sA: a warp stores partial sums while another still reads its operand",
        code="shared-race",
        ptx=WORDS
        + """
    st.shared.u32 [%own], %thread;
    bar.sync 1, 128;
    ld.shared.u32 %r2, [%next];
+    bar.sync 1, 128;
    add.u32 %r2, %r2, 1000;
    st.shared.u32 [%own], %r2; // <--
    bar.sync 1, 128;
""",
    ),
    Bug(
        name="atomics-on-a-counter-not-yet-cleared",
        source="alicevision/popsift#82",
        what="threads add to a histogram in shared memory before all of it is set to zero",
        code="shared-race",
        ptx=WORDS
        + """
    st.shared.u32 [%own], 0;
+    bar.sync 0;
    atom.shared.add.u32 %r2, [%next], 1; // <--
""",
    ),
    Bug(
        name="sync-after-an-inner-loop-missing",
        source="ikawrakow/ik_llama.cpp#1649",
        what="the token loop reads sK at its end, and the next iteration overwrites sK at its top",
        code="shared-race",
        ptx=WORDS
        + """
    mov.u32 %r2, 0;
TOKEN:
    mad.lo.u32 %r3, %r2, 3, %thread;
    st.shared.u32 [%own], %r3; // <--
    bar.sync 0;
    ld.shared.u32 %r4, [%next];
    bar.warp.sync 0xffffffff;
+    bar.sync 0;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p0, %r2, 2;
    @%p0 bra TOKEN;
""",
    ),
    Bug(
        name="loop-without-a-sync-at-its-end",
        source="csarofeen/pytorch#383",
        what="the code generator emits no __syncthreads at the end of a loop whose top writes what its bottom reads",
        code="shared-race",
        block=64,
        ptx=WORDS
        + """
    mov.u32 %r2, 10;
AGAIN:
    st.shared.u32 [%own], %r2; // <--
    bar.sync 0;
    ld.shared.u32 %r3, [%next];
+    bar.sync 0;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p0, %r2, 12;
    @%p0 bra AGAIN;
""",
    ),
    Bug(
        name="barrier-dropped-for-a-partial-warp",
        source="tile-ai/tilelang#2556",
        what="`if tx < 48`: the compiler drops the barrier it needs, since 48 is no multiple of a warp",
        code="shared-race",
        block=64,
        ptx="""
    .shared .align 16 .b8 s[256];
    shl.b32 %r0, %thread, 2;
    mov.u32 %r1, s;
    add.u32 %r1, %r1, %r0;
    setp.lt.u32 %p0, %thread, 48;
    @%p0 st.shared.u32 [%r1], %thread;
+    bar.sync 0;
    mov.u32 %r2, s;
    sub.u32 %r2, %r2, %r0;
    @%p0 ld.shared.u32 %r3, [%r2+188]; // <--
""",
    ),
    Bug(
        name="barrier-hoisted-out-of-the-branch",
        source="tile-ai/tilelang#2612",
        what="the barrier inside the guarded loop is moved before the `if`: write and read in the loop are unordered",
        code="shared-race",
        ptx=WORDS
        + """
    setp.lt.u32 %p1, %warp, 4;
    bar.sync 0;
    @!%p1 bra END;
    mov.u32 %r2, 0;
STEP:
    mad.lo.u32 %r3, %r2, 5, %thread;
    st.shared.u32 [%own], %r3; // <--
+    bar.sync 0;
    ld.shared.u32 %r4, [%next];
+    bar.sync 0;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p0, %r2, 2;
    @%p0 bra STEP;
END:
""",
    ),
    Bug(
        name="barrier-before-the-other-branch",
        source="tile-ai/tilelang#3085",
        what="the barriers of both branches are dropped because one was: threads 1 to 32 exchange words unordered",
        code="shared-race",
        block=64,
        ptx="""
    .shared .align 16 .b8 s[256];
    shl.b32 %r0, %thread, 2;
    mov.u32 %r1, s;
    add.u32 %r2, %r1, %r0;
    sub.u32 %r3, %r1, %r0;
    sub.u32 %r4, %thread, 1;
    setp.lt.u32 %p0, %r4, 32;
    bar.sync 0;
    @%p0 st.shared.u32 [%r2], %thread;
+    bar.sync 0;
    @%p0 ld.shared.u32 %r5, [%r3+132]; // <--
""",
    ),
    Bug(
        name="phase-overwritten-before-others-read-it",
        source="triton-lang/triton#11334",
        what="cluster_barrier: a thread runs ahead and flips the phase before another warp has read it",
        code="shared-race",
        ptx="""
    .shared .align 4 .b32 phase;
    @%thread0 st.shared.u32 [phase], 0;
    bar.sync 0;
    ld.shared.u32 %r0, [phase];
+    bar.sync 0;
    xor.b32 %r1, %r0, 1;
    @%thread0 st.shared.u32 [phase], %r1; // <--
    bar.sync 0;
""",
    ),
    Bug(
        name="tile-stored-by-wmma-read-by-other-lanes",
        source="JustVugg/colibri#1099",
        what="lanes read what other lanes of the warp have just stored from an accumulator: no __syncwarp",
        code="shared-race",
        block=32,
        ptx="""
    .shared .align 16 .b8 tile[256];
    shl.b32 %r0, %lane, 3;
    mov.u32 %r1, tile;
    add.u32 %r2, %r1, %r0;
    xor.b32 %r3, %r0, 8;
    add.u32 %r3, %r1, %r3;
    st.shared.v2.u32 [%r2], {%lane, %lane};
+    bar.warp.sync 0xffffffff;
    ld.shared.u32 %r4, [%r3]; // <--
""",
    ),
    Bug(
        name="lanes-of-a-round-read-the-last-one",
        source="tpruvot/ccminer#75",
        what="each round of a tree in shared memory is read by other lanes than wrote it: no __syncwarp",
        code="shared-race",
        block=32,
        ptx="""
    .shared .align 16 .b8 levels[128];
    shl.b32 %r0, %lane, 2;
    mov.u32 %r1, levels;
    add.u32 %r1, %r1, %r0;
    st.shared.u32 [%r1], %lane;
+    bar.warp.sync 0xffffffff;
    setp.lt.u32 %p0, %lane, 16;
    @%p0 ld.shared.u32 %r2, [%r1+64]; // <--
""",
    ),
    Bug(
        name="row-maximum-read-before-it-is-written",
        source="mlc-ai/TIRx-kernels#6",
        what="FlashAttention-4 reads the row maximum in its first iteration, before anything has been written there",
        code="uninitialized-shared",
        block=32,
        ptx="""
    .shared .align 16 .b8 row_max[128];
    shl.b32 %r0, %lane, 2;
    mov.u32 %r1, row_max;
    add.u32 %r1, %r1, %r0;
+    st.shared.u32 [%r1], 0;
    ld.shared.u32 %r2, [%r1]; // <--
    add.u32 %r2, %r2, 1;
    mul.wide.u32 %rd0, %lane, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %r2;
""",
    ),
    Bug(
        name="histogram-cleared-while-read",
        source="flashinfer-ai/flashinfer#3529",
        what="each round of a radix top-k clears the histogram that other threads may still read for the last one",
        code="shared-race",
        block=64,
        ptx="""
    .shared .align 4 .b32 histogram[64];
    mov.u32 %r3, histogram;
    shl.b32 %r0, %thread, 2;
    add.u32 %r1, %r3, %r0;
    mov.u32 %r9, 0;
ROUND:
    st.shared.u32 [%r1], 0; // <--
    bar.sync 0;
    atom.shared.add.u32 %r2, [%r1], 1;
    bar.sync 0;
    ld.shared.u32 %r4, [histogram+132];
+    bar.sync 0;
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p0, %r9, 2;
    @%p0 bra ROUND;
""",
    ),
    Bug(
        name="consumers-store-the-same-tile",
        source=REBUILT,
        what="the compiler duplicates a consumer: both warps store the tile for the epilogue, equal bytes",
        code="shared-race",
        severity="advice",
        block=64,
        ptx="""
    .shared .align 16 .b8 tile[128];
    .reg .b32 %own;
    shl.b32 %own, %lane, 2;
    mov.u32 %r0, tile;
    add.u32 %own, %own, %r0;
    mad.lo.u32 %r1, %lane, 77, 5;
    setp.ne.u32 %p0, %warp, 0;
    @%p0 bra SECOND;
    st.shared.u32 [%own], %r1; // <--
    bra STORED;
SECOND:
-    st.shared.u32 [%own], %r1; // <--
STORED:
    bar.sync 0;
    xor.b32 %r2, %own, 4;
    ld.shared.u32 %r3, [%r2];
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %r3;
""",
    ),
    Bug(
        name="double-buffer-with-one-buffer",
        source=REBUILT,
        what="the loop has one barrier a round, which is enough for two buffers; its index is always 0",
        code="shared-race",
        ptx="""
    .shared .align 16 .b8 buf[4096];
    .reg .b32 %own, %next, %base;
    mov.u32 %base, buf;
    shl.b32 %own, %thread, 2;
    add.u32 %own, %own, %base;
    xor.b32 %next, %own, 128;
    mov.u32 %r1, 0;
L:
    and.b32 %r2, %r1, 1;
-    mov.u32 %r2, 0;
    shl.b32 %r2, %r2, 11;
    add.u32 %r3, %own, %r2;
    add.u32 %r4, %next, %r2;
    mad.lo.u32 %r6, %r1, 77, %thread;
    st.shared.u32 [%r3], %r6; // <--
    barrier.cta.sync 1, 128;
    ld.shared.u32 %r5, [%r4]; // <--
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p0, %r1, 4;
    @%p0 bra L;
""",
    ),
    Bug(
        name="histogram-read-before-all-have-counted",
        source=REBUILT,
        what="the first 16 threads add the histogram of the CTA to the total after a __syncwarp",
        code="shared-race",
        ptx="""
    .shared .align 16 .b8 buf[4096];
    .reg .b32 %own, %next, %base;
    mov.u32 %base, buf;
    shl.b32 %own, %thread, 2;
    add.u32 %own, %own, %base;
    xor.b32 %next, %own, 128;
    st.shared.u32 [%own], 0;
    bar.sync 0;
    and.b32 %r1, %thread, 15;
    mad.lo.u32 %r1, %r1, 4, %base;
    red.shared.add.u32 [%r1], 1;
-    bar.warp.sync -1;
+    bar.sync 0;
    setp.lt.u32 %p0, %thread, 16;
    @%p0 ld.shared.u32 %r2, [%own]; // <--
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    @%p0 red.global.add.u32 [%rd0], %r2;
""",
    ),
    Bug(
        name="second-array-begins-too-early",
        source=REBUILT,
        what="the second array in dynamic shared memory begins 64 bytes too early",
        code="shared-race",
        ptx="""
    .shared .align 16 .b8 buf[4096];
    .reg .b32 %own, %next, %base;
    mov.u32 %base, buf;
    shl.b32 %own, %thread, 2;
    add.u32 %own, %own, %base;
    xor.b32 %next, %own, 128;
    .reg .b32 %b;
    st.shared.u32 [%own], %thread;
    add.u32 %b, %own, 512;
-    sub.u32 %b, %b, 64;
    add.u32 %r1, %thread, 1000;
    st.shared.u32 [%b], %r1; // <--
    bar.sync 0;
    ld.shared.u32 %r2, [%own];
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %r2;
""",
    ),
    Bug(
        name="scan-step-in-one-buffer",
        source=REBUILT,
        what="a Hillis-Steele scan reads and writes one buffer with one __syncthreads in each step",
        code="shared-race",
        ptx="""
    .shared .align 4 .b32 t[128];
    shl.b32 %r0, %thread, 2;
    mov.u32 %r1, t;
    add.u32 %r1, %r1, %r0;
    st.shared.u32 [%r1], 1;
    bar.sync 0;
    mov.u32 %r2, 1;
L:
    setp.lt.u32 %p0, %thread, %r2;
    shl.b32 %r3, %r2, 2;
    sub.u32 %r4, %r1, %r3;
    mov.u32 %r5, 0;
    @!%p0 ld.shared.u32 %r5, [%r4]; // <--
+    bar.sync 0;
    ld.shared.u32 %r6, [%r1];
    add.u32 %r6, %r6, %r5;
    st.shared.u32 [%r1], %r6; // <--
    bar.sync 0;
    shl.b32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, 128;
    @%p1 bra L;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %r6;
""",
    ),
    Bug(
        name="byte-flags-cleared-while-scanned",
        source=REBUILT,
        what="each thread clears its byte while others still scan four bytes at a time",
        code="shared-race",
        block=64,
        ptx="""
    .shared .align 4 .b8 f[64];
    mov.u32 %r1, f;
    add.u32 %r1, %r1, %thread;
    st.shared.u8 [%r1], 1;
    bar.sync 0;
    and.b32 %r2, %thread, 60;
    xor.b32 %r2, %r2, 32;
    mov.u32 %r3, f;
    add.u32 %r3, %r3, %r2;
    ld.shared.v4.u8 {%rs0, %rs1, %rs2, %rs3}, [%r3]; // <--
+    bar.sync 0;
    st.shared.u8 [%r1], 0; // <--
    mul.wide.u32 %rd0, %thread, 2;
    add.u64 %rd0, %rd0, %data;
    st.global.u16 [%rd0], %rs1;
""",
    ),
    Bug(
        name="histogram-without-atomics",
        source=REBUILT,
        what="threads of several warps increment bins by a load, an add and a store",
        code="shared-race",
        block=64,
        ptx="""
    .shared .align 4 .b32 h[16];
    setp.lt.u32 %p0, %thread, 16;
    and.b32 %r0, %thread, 15;
    shl.b32 %r0, %r0, 2;
    mov.u32 %r1, h;
    add.u32 %r1, %r1, %r0;
    @%p0 st.shared.u32 [%r1], 0;
    bar.sync 0;
-    ld.shared.u32 %r2, [%r1]; // <--
-    add.u32 %r2, %r2, 1;
-    st.shared.u32 [%r1], %r2; // <--
+    red.shared.add.u32 [%r1], 1;
    bar.sync 0;
    ld.shared.u32 %r3, [%r1];
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %r3;
""",
    ),
    Bug(
        name="count-read-after-atomics-of-other-warps",
        source=REBUILT,
        what="three warps count by atomics, and the fourth loads the counter on the next line",
        code="shared-race",
        ptx="""
    .shared .align 4 .b32 count;
    @%thread0 st.shared.u32 [count], 0;
    bar.sync 0;
    setp.lt.and.u32 %p0, %warp, 3, %lane0;
    @%p0 atom.shared.add.u32 %r0, [count], 1; // <--
+    bar.sync 0;
    setp.eq.u32 %p1, %thread, 96;
    @%p1 ld.shared.u32 %r1, [count]; // <--
""",
    ),
    Bug(
        name="tile-zeroed-by-st-bulk-while-it-is-read",
        source="tile-ai/tilelang#2699",
        what="st.bulk zeroes a tile: the compiler does not take it for a store, and puts no __syncthreads before it",
        code="shared-race",
        target="sm_100a",
        ptx="""
    .shared .align 16 .b8 tile[512];
    mov.u32 %r0, tile;
    mad.lo.u32 %r1, %thread, 4, %r0;
    st.shared.u32 [%r1], %thread;
    bar.sync 0;
    xor.b32 %r2, %thread, 127;
    mad.lo.u32 %r2, %r2, 4, %r0;
    ld.shared.u32 %r3, [%r2]; // <--
+    bar.sync 0;
    @%thread0 st.bulk.weak.shared::cta [%r0], 512, 0; // <--
    bar.sync 0;
    ld.shared.u32 %r4, [%r1];
    add.u32 %r3, %r3, %r4;
    mad.wide.u32 %rd0, %thread, 4, %data;
    st.global.u32 [%rd0], %r3;
""",
    ),
]
