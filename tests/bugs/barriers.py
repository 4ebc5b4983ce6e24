"""Barriers of the CTA: who reaches them, from where, and how often."""

from __future__ import annotations

from tests.bugs.bug import REBUILT, Bug

BUGS = [
    Bug(
        name="barrier-in-both-branches",
        source="ggml-org/llama.cpp#27955",
        what="each branch of a condition on the thread has a __syncthreads of its own",
        code="barrier-sites",
        ptx="""
    setp.ge.u32 %p0, %warp, 2;
    @%p0 bra OTHERS;
    add.u32 %r0, %warp, 1;
-    bar.sync 0;
    bra JOIN;
OTHERS:
    add.u32 %r0, %warp, 2;
-    bar.sync 0; // <--
JOIN:
+    bar.sync 0;
""",
    ),
    Bug(
        name="barrier-in-one-branch",
        source="ggml-org/llama.cpp#27870",
        what="a __syncthreads inside `threadIdx.y % np == 0` pairs with the next one of the other warps",
        code="barrier-sites",
        also=("shared-race", "deadlock"),
        ptx="""
    .shared .align 4 .b32 sums[4];
    shl.b32 %r0, %warp, 2;
    mov.u32 %r1, sums;
    add.u32 %r1, %r1, %r0;
    setp.ge.u32 %p0, %warp, 2;
    @%p0 bra JOIN;
    @%lane0 st.shared.u32 [%r1], %warp;
-    bar.sync 0;
JOIN:
    bar.sync 0; // <--
    ld.shared.u32 %r2, [sums];
+    bar.sync 0;
    @%thread0 st.global.u32 [%data], %r2;
""",
    ),
    Bug(
        name="barrier-in-a-divergent-branch",
        source="tile-ai/tilelang#1026",
        what="the compiler puts a __syncthreads into a branch that every other lane takes: the GPU hangs",
        code="divergent-warp",
        block=32,
        ptx="""
    .shared .align 4 .b32 room[32];
    shl.b32 %r0, %lane, 2;
    mov.u32 %r1, room;
    add.u32 %r1, %r1, %r0;
    and.b32 %r2, %lane, 1;
    setp.ne.u32 %p0, %r2, 0;
    @%p0 bra ODD;
    st.shared.u32 [%r1], %lane;
-    bar.sync 0; // <--
ODD:
+    bar.sync 0;
    @!%p0 ld.shared.u32 %r3, [%r1];
""",
    ),
    Bug(
        name="barrier-after-other-warps-exit",
        source="flashinfer-ai/flashinfer#2996",
        what="only the compute warps reach __syncthreads, the load warps exit: tinygemm2 hung now and then on H100",
        code="barrier-exited",
        severity="advice",
        block=384,
        ptx="""
    setp.ge.u32 %p0, %warp, 4;
    @%p0 bra END;
+    bar.sync 1, 128;
-    nanosleep.u32 100;
-    add.u32 %r0, %warp, 1;
-    setp.eq.u32 %p1, %r0, 9;
-    @%p1 bra END;
-    bar.sync 0; // <--
END:
""",
    ),
    Bug(
        name="barrier-number-of-two-groups",
        source="flashinfer-ai/flashinfer#4533",
        what="two pairs of warps of the correction warpgroup use one named barrier; now and then a CTA hangs",
        code="barrier-shared",
        also=("deadlock",),
        ptx="""
    setp.ge.u32 %p0, %warp, 2;
    @%p0 bra SECOND;
    bar.sync 1, 64;
    bra END;
SECOND:
-    bar.sync 1, 64; // <--
+    bar.sync 2, 64;
END:
""",
    ),
    Bug(
        name="barrier-arrived-twice",
        source="vllm-project/vllm#26026",
        what="an early return arrives at the epilogue's named barrier and loops round to it again without waiting",
        code="barrier-shared",
        also=("deadlock",),
        block=64,
        ptx="""
    mov.u32 %r0, 0;
    setp.ne.u32 %p0, %warp, 0;
    @%p0 bra LOAD;
TILE:
-    bar.arrive 1, 64; // <--
+    bar.sync 1, 64;
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p1, %r0, 2;
    @%p1 bra TILE;
    bra END;
LOAD:
    bar.sync 1, 64;
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p1, %r0, 2;
    @%p1 bra LOAD;
END:
""",
    ),
    Bug(
        name="barrier-count-of-too-many-threads",
        source="deepseek-ai/FlashMLA#57",
        what="the named barrier names 256 threads in a path that one warpgroup of 128 takes",
        code="deadlock",
        block=256,
        ptx="""
    setp.ge.u32 %p0, %warp, 4;
    @%p0 bra END;
-    bar.sync 1, 256; // <--
+    bar.sync 1, 128;
END:
""",
    ),
    Bug(
        name="barrier-of-a-tile-with-another-count",
        source="tile-ai/tilelang#605",
        what="two barriers get the same number, since a variable is assigned twice",
        code="barrier-mismatch",
        also=("deadlock", "barrier-shared"),
        block=128,
        ptx="""
    setp.ge.u32 %p0, %warp, 2;
    @%p0 bra OTHER;
    bar.sync 1, 64;
    bra END;
OTHER:
-    bar.arrive 1, 128; // <--
+    bar.sync 2, 64;
END:
""",
    ),
    Bug(
        name="tile-ahead-arrives-again",
        source="flashinfer-ai/flashinfer#4732",
        what="the math warps run a tile ahead and arrive at the named barrier again before the IO warps have",
        code="barrier-shared",
        also=("deadlock",),
        ptx="""
    mov.u32 %r0, 0;
    setp.ge.u32 %p0, %warp, 2;
    @%p0 bra IO;
MATH:
+    and.b32 %r1, %r0, 1;
-    mov.u32 %r1, 0;
    add.u32 %r1, %r1, 1;
    barrier.arrive %r1, 128; // <--
+    barrier.sync 3, 128;
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p1, %r0, 3;
    @%p1 bra MATH;
    bra END;
IO:
+    and.b32 %r1, %r0, 1;
-    mov.u32 %r1, 0;
    add.u32 %r1, %r1, 1;
    barrier.sync %r1, 128; // <--
+    barrier.sync 3, 128;
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p1, %r0, 3;
    @%p1 bra IO;
END:
""",
    ),
    Bug(
        name="barrier-with-a-count-at-two-sites-of-a-warp",
        source=REBUILT,
        what="half the lanes of each warp reach bar.sync 1, 64 in one branch, half in the other",
        code="divergent-warp",
        block=64,
        ptx="""
    setp.ge.u32 %p0, %lane, 16;
    @%p0 bra B1;
-    bar.sync 1, 64; // <--
    add.u32 %r0, %lane, 1;
    bra J;
B1:
-    bar.sync 1, 64; // <--
    add.u32 %r0, %lane, 2;
J:
+    bar.sync 1, 64;
""",
    ),
    Bug(
        name="barrier-arrived-at-by-half-a-warp",
        source=REBUILT,
        what="half the lanes of the producer warp return before bar.arrive",
        code="divergent-warp",
        also=("deadlock", "barrier-shared"),
        block=64,
        ptx="""
    setp.ne.u32 %p1, %warp, 0;
    @%p1 bra B2;
    setp.ge.u32 %p0, %lane, 16;
-    @%p0 bra E;
    bar.arrive 1, 64; // <--
    bra E;
B2:
    bar.sync 1, 64; // <--
E:
""",
    ),
    Bug(
        name="barrier-with-two-counts",
        source=REBUILT,
        what="one site of a barrier names 96 threads, the other 128: whoever comes last waits forever",
        code="barrier-shared",
        also=("barrier-mismatch",),
        ptx="""
    setp.ne.u32 %p1, %warp, 0;
    @%p1 bra B2;
    bar.sync 1, 128; // <--
    bra E;
B2:
-    bar.sync 1, 96; // <--
+    bar.sync 1, 128;
E:
""",
    ),
    Bug(
        name="barrier-without-one-of-its-producers",
        source=REBUILT,
        what="of three producer warps that the barrier counts one returns early; the others arrive and exit",
        code="deadlock",
        ptx="""
    setp.eq.u32 %p1, %warp, 0;
    @%p1 bra L;
-    setp.eq.u32 %p2, %warp, 3;
-    @%p2 bra E;
    bar.arrive 1, 128;
    bra E;
L:
    bar.sync 1, 128; // <--
E:
""",
    ),
    Bug(
        name="barrier-zero-by-a-pair-of-warps",
        source=REBUILT,
        what="two warps exchange data by bar.sync 0, 64, while the others may already be at the next __syncthreads",
        code="barrier-shared",
        also=("barrier-mismatch", "deadlock"),
        seeds=(0, 1, 2, 3),
        ptx="""
    setp.ge.u32 %p0, %warp, 2;
    bar.sync 0;
    @%p0 bra OTHERS;
-    bar.sync 0, 64; // <--
+    bar.sync 1, 64;
    bra JOIN;
OTHERS:
    add.u32 %r0, %warp, 1;
JOIN:
    bar.sync 0; // <--
""",
    ),
    Bug(
        name="threads-return-before-the-barrier",
        source=REBUILT,
        what="`if (i >= n) return;` at the top, __syncthreads below: the last threads never get there",
        code="barrier-exited",
        severity="advice",
        ptx="""
    setp.gt.u32 %p0, %thread, 100;
-    @%p0 ret;
    barrier.cta.sync.aligned 0; // <--
+    @%p0 ret;
""",
    ),
    Bug(
        name="reduction-barrier-by-a-part-of-each-warp",
        source=REBUILT,
        what="__syncthreads_or under a condition on the lane",
        code="divergent-warp",
        also=("deadlock",),
        block=64,
        ptx="""
    setp.lt.u32 %p0, %lane, 20;
    setp.eq.u32 %p1, %lane, 3;
-    @%p0 bar.red.or.pred %p2, 0, %p1; // <--
+    bar.red.or.pred %p2, 0, %p1;
    selp.u32 %r0, 1, 2, %p2;
    @%thread0 st.global.u32 [%data], %r0;
""",
    ),
    Bug(
        name="barriers-of-a-switch",
        source=REBUILT,
        what="each case of a switch on the warp has a __syncthreads of its own",
        code="barrier-sites",
        ptx="""
    .shared .align 16 .b8 words[512];
    shl.b32 %r0, %thread, 2;
    mov.u32 %r1, words;
    add.u32 %r1, %r1, %r0;
-    and.b32 %r2, %warp, 1;
+    and.b32 %r2, %cta, 1;
CASES: .branchtargets EVEN, ODD;
    brx.idx.uni %r2, CASES;
EVEN:
    st.shared.u32 [%r1], 5;
    bar.sync 0; // <--
    bra JOIN;
ODD:
    st.shared.u32 [%r1], 6;
    bar.sync 0; // <--
JOIN:
    xor.b32 %r0, %r0, 128;
    mov.u32 %r1, words;
    add.u32 %r1, %r1, %r0;
    ld.shared.u32 %r3, [%r1];
""",
    ),
    Bug(
        name="loop-with-a-barrier-and-other-trip-counts",
        source=REBUILT,
        what="odd warps run a loop with a __syncthreads once more than even ones",
        code="barrier-sites",
        also=("deadlock",),
        ptx="""
-    and.b32 %r2, %warp, 1;
-    add.u32 %r2, %r2, 1;
+    mov.u32 %r2, 2;
    mov.u32 %r3, 0;
TRIP:
    bar.sync 0; // <--
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p0, %r3, %r2;
    @%p0 bra TRIP;
    add.u32 %r3, %r3, 1;
    bar.sync 0; // <--
""",
    ),
    Bug(
        name="barrier-in-both-copies-of-a-branch",
        source="facebookexperimental/triton#1040",
        what="jump threading copies bar.sync into both sides of a branch that splits the warp",
        code="divergent-warp",
        also=("deadlock",),
        ptx="""
    .shared .align 4 .b32 word;
    setp.lt.u32 %p1, %lane, 16;
    setp.eq.u32 %p2, %warp, 1;
    mov.u32 %r1, 3;
    @!%p2 bra JOIN;
-    @%p1 bra FIRST;
-    bar.sync 14, 32; // <--
-    mov.u32 %r1, 5;
-    bra JOIN;
-FIRST:
-    bar.sync 14, 32; // <--
+    bar.sync 14, 32;
+    selp.u32 %r1, 3, 5, %p1;
JOIN:
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %r1;
""",
    ),
]
