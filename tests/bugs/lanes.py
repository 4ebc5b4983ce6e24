"""Lanes of one warp: what they store, publish and read without synchronizing."""

from __future__ import annotations

from tests.bugs.bug import REBUILT, Bug

BUGS = [
    Bug(
        name="lanes-store-different-shared",
        source="triton-lang/triton#11614",
        what="the epilogue of a reduction stores a warp's partial result from all 32 lanes, whose values differ",
        code="shared-race",
        block=32,
        ptx="""
    .shared .align 4 .b32 best;
-    st.shared.u32 [best], %lane; // <--
+    @%lane0 st.shared.u32 [best], %lane;
    bar.warp.sync 0xffffffff;
    ld.shared.u32 %r0, [best];
    st.global.u32 [%data], %r0;
""",
    ),
    Bug(
        name="arrivals-coalesced-by-a-leader",
        source="NVIDIA/libcudacxx#300",
        what="a leader lane arrives for all lanes of its warp: nothing orders their stores before its arrival",
        code="shared-race",
        block=64,
        ptx="""
    .shared .align 16 .b8 room[128];
    .shared .align 8 .b64 ready;
    @%thread0 mbarrier.init.shared.b64 [ready], 32;
    bar.sync 0;
    shl.b32 %r0, %lane, 2;
    mov.u32 %r1, room;
    add.u32 %r1, %r1, %r0;
    setp.ne.u32 %p0, %warp, 0;
    @%p0 bra READ;
    st.shared.u32 [%r1], %lane;
-    @%lane0 mbarrier.arrive.shared.b64 _, [ready], 32;
+    mbarrier.arrive.shared.b64 _, [ready];
    bra END;
READ:
    mbarrier.try_wait.parity.shared.b64 %done, [ready], 0;
    @!%done bra READ;
    ld.shared.u32 %r2, [%r1]; // <--
END:
""",
    ),
    Bug(
        name="slot-released-while-lanes-read",
        source="NVlabs/cuda-oxide#1066",
        what="lane 0 gives the mailbox back while other lanes of its warp may not have read it",
        code="shared-race",
        block=64,
        ptx="""
    .shared .align 16 .b8 mailbox[128];
    .shared .align 8 .b64 ready;
    .shared .align 8 .b64 free;
    @%thread0 mbarrier.init.shared.b64 [ready], 1;
    @%thread0 mbarrier.init.shared.b64 [free], 1;
    bar.sync 0;
    setp.ne.u32 %p0, %warp, 0;
    @%p0 bra READ;
    @%lane0 st.shared.u32 [mailbox], 7;
    @%lane0 mbarrier.arrive.shared.b64 _, [ready];
FREE:
    mbarrier.try_wait.parity.shared.b64 %done, [free], 0;
    @!%done bra FREE;
    @%lane0 st.shared.u32 [mailbox], 8; // <--
    bra END;
READ:
    mbarrier.try_wait.parity.shared.b64 %done, [ready], 0;
    @!%done bra READ;
    ld.shared.u32 %r0, [mailbox];
+    bar.warp.sync 0xffffffff;
    @%lane0 mbarrier.arrive.shared.b64 _, [free];
END:
""",
    ),
    Bug(
        name="stage-refilled-while-lanes-read",
        source="mlc-ai/TIRx-kernels#202",
        what="a shared slot is refilled by TMA before every reader of the warp has released it",
        code="shared-race",
        block=64,
        ptx="""
    .shared .align 128 .b8 stage[256];
    .shared .align 8 .b64 full;
    .shared .align 8 .b64 empty;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
    @%thread0 mbarrier.init.shared.b64 [empty], 1;
    @%thread0 fence.mbarrier_init.release.cluster;
    bar.sync 0;
    setp.ne.u32 %p0, %warp, 0;
    @%p0 bra READ;
    @!%lane0 bra END;
    mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [stage], [%data], 256, [full];
EMPTY:
    mbarrier.try_wait.parity.shared.b64 %done, [empty], 0;
    @!%done bra EMPTY;
    mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [stage], [%data], 256, [full]; // <--
LAST:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 1;
    @!%done bra LAST;
    bra END;
READ:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra READ;
    shl.b32 %r0, %lane, 3;
    mov.u32 %r1, stage;
    add.u32 %r1, %r1, %r0;
    ld.shared.v2.u32 {%r2, %r3}, [%r1];
+    bar.warp.sync 0xffffffff;
    @%lane0 mbarrier.arrive.shared.b64 _, [empty];
END:
""",
    ),
    Bug(
        name="published-by-one-lane",
        source="mlc-ai/TIRx-kernels#202",
        what="one elected lane publishes shared memory before the rest of its warp has joined",
        code="shared-race",
        block=64,
        ptx="""
    .shared .align 16 .b8 scales[128];
    .shared .align 8 .b64 ready;
    @%thread0 mbarrier.init.shared.b64 [ready], 1;
    bar.sync 0;
    shl.b32 %r0, %lane, 2;
    mov.u32 %r1, scales;
    add.u32 %r1, %r1, %r0;
    setp.ne.u32 %p0, %warp, 0;
    @%p0 bra READ;
    st.shared.u32 [%r1], %lane;
+    bar.warp.sync 0xffffffff;
    @%lane0 mbarrier.arrive.shared.b64 _, [ready];
    bra END;
READ:
    mbarrier.try_wait.parity.shared.b64 %done, [ready], 0;
    @!%done bra READ;
    ld.shared.u32 %r2, [%r1]; // <--
END:
""",
    ),
    Bug(
        name="pointer-read-by-other-lanes",
        source="ORNL/HeCBench#221",
        what="lane 0 puts a pointer into shared memory, the other lanes read it on the next line, no __syncwarp",
        code="shared-race",
        block=32,
        ptx="""
    .shared .align 8 .b64 scratch;
    @%lane0 st.shared.u64 [scratch], %data;
+    bar.warp.sync 0xffffffff;
    ld.shared.u64 %rd0, [scratch]; // <--
""",
    ),
    Bug(
        name="warp-synchronous-reduction",
        source="CanReader/FastNN#8",
        what="the last steps of a reduction rely on lockstep: no __syncwarp between them",
        code="shared-race",
        block=32,
        ptx="""
    .shared .align 4 .b32 sums[64];
    shl.b32 %r0, %lane, 2;
    mov.u32 %r1, sums;
    add.u32 %r1, %r1, %r0;
    st.shared.u32 [%r1], %lane;
    st.shared.u32 [%r1+128], 1;
    bar.warp.sync 0xffffffff;
    ld.shared.u32 %r2, [%r1];
    ld.shared.u32 %r3, [%r1+64];
    add.u32 %r2, %r2, %r3;
+    bar.warp.sync 0xffffffff;
    st.shared.u32 [%r1], %r2; // <--
    bar.warp.sync 0xffffffff;
""",
    ),
    Bug(
        name="flag-released-by-one-lane",
        source="tile-ai/tilelang#2963",
        what="one lane releases a flag for what all lanes of its warp have stored, without __syncwarp",
        code="global-race",
        note="rebuilt from a description of the thread",
        block=32,
        grid=2,
        ptx="""
    shl.b32 %r0, %lane, 2;
    cvt.u64.u32 %rd0, %r0;
    add.u64 %rd1, %data, %rd0;
    setp.ne.u32 %p0, %cta, 0;
    @%p0 bra READ;
    st.global.u32 [%rd1+512], %thread;
+    bar.warp.sync 0xffffffff;
    @%lane0 st.release.gpu.global.u32 [%data], 1;
    bra END;
READ:
    ld.acquire.gpu.global.u32 %r1, [%data];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra READ;
    ld.global.u32 %r2, [%rd1+512]; // <--
END:
""",
    ),
    Bug(
        name="flag-acquired-by-one-lane",
        source="triton-lang/triton#11436",
        what="one lane polls and acquires a flag, and the other lanes of its warp read on, without __syncwarp",
        code="global-race",
        note="rebuilt from a description of the thread",
        block=32,
        grid=2,
        ptx="""
    shl.b32 %r0, %lane, 2;
    cvt.u64.u32 %rd0, %r0;
    add.u64 %rd1, %data, %rd0;
    setp.ne.u32 %p0, %cta, 0;
    @%p0 bra READ;
    st.global.u32 [%rd1+512], %thread;
    bar.warp.sync 0xffffffff;
    @%lane0 st.release.gpu.global.u32 [%data], 1;
    bra END;
READ:
    @!%lane0 bra GO;
POLL:
    ld.acquire.gpu.global.u32 %r1, [%data];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra POLL;
GO:
+    bar.warp.sync 0xffffffff;
    ld.global.u32 %r2, [%rd1+512]; // <--
END:
""",
    ),
    Bug(
        name="flag-in-shared-memory-released-by-one-lane",
        source=REBUILT,
        what="lane 0 sets a flag in shared memory that gives the slot back, while other lanes may still read it",
        code="shared-race",
        block=64,
        ptx="""
    .shared .align 16 .b8 slot[128];
    .shared .align 4 .b32 flag;
    @%thread0 st.shared.u32 [flag], 0;
    shl.b32 %r0, %lane, 2;
    mov.u32 %r1, slot;
    add.u32 %r1, %r1, %r0;
    setp.eq.u32 %p0, %warp, 0;
    @%p0 st.shared.u32 [%r1], %lane;
    barrier.cta.sync.aligned 0;
    @%p0 bra W;
    ld.shared.u32 %r5, [%r1];
+    bar.warp.sync -1;
    @%lane0 st.release.cta.shared.u32 [flag], 1;
    bra END;
W:
    ld.acquire.cta.shared.u32 %r6, [flag];
    setp.eq.u32 %p1, %r6, 0;
    @%p1 bra W;
    st.shared.u32 [%r1], 77; // <--
END:
""",
    ),
    Bug(
        name="wait-of-one-lane-and-a-shuffle",
        source=REBUILT,
        what="one lane waits for a bulk copy and shuffles a value to the others, which orders no memory",
        code="shared-race",
        block=64,
        ptx="""
    .shared .align 16 .b8 slot[512];
    .shared .align 8 .b64 full;
    @%thread0 mbarrier.init.shared::cta.b64 [full], 1;
    @%thread0 fence.mbarrier_init.release.cluster;
    bar.sync 0;
    setp.eq.u32 %p0, %warp, 0;
    @%p0 bra W;
    mov.u32 %r7, 0;
    @!%lane0 bra GO;
L0:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [full], 0;
    @!%done bra L0;
    mov.u32 %r7, 1;
GO:
-    shfl.sync.idx.b32 %r8, %r7, 0, 31, -1;
+    bar.warp.sync -1;
    mov.u32 %r0, slot;
    mad.lo.u32 %r0, %lane, 16, %r0;
    ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%r0]; // <--
    bra END;
W:
    @!%lane0 bra END;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 512;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [slot], [%data], 512, [full]; // <--
END:
""",
    ),
    Bug(
        name="vectors-of-neighboring-lanes-overlap",
        source=REBUILT,
        what="each pair of lanes stores 16 bytes to one place: the stride of the index is half of the vector",
        code="shared-race",
        block=32,
        ptx="""
    .shared .align 16 .b8 t[1024];
    mov.u32 %r0, t;
-    mad.lo.u32 %r0, %lane, 8, %r0;
+    mad.lo.u32 %r0, %lane, 16, %r0;
-    and.b32 %r0, %r0, 0xfffffff0;
    st.shared.v4.b32 [%r0], {%lane, 1, 2, 3}; // <--
    bar.warp.sync -1;
    mov.u32 %r2, t;
    ld.shared.u32 %r1, [%r2+16];
    @%lane0 st.global.u32 [%data], %r1;
""",
    ),
    Bug(
        name="scan-of-a-warp-in-place",
        source=REBUILT,
        what="a warp's scan in shared memory: a lane stores its sum before its neighbor has read the last one",
        code="shared-race",
        block=64,
        ptx="""
    .shared .align 16 .b8 buf[4096];
    .reg .b32 %own, %next, %base;
    mov.u32 %base, buf;
    shl.b32 %own, %thread, 2;
    add.u32 %own, %own, %base;
    xor.b32 %next, %own, 128;
    st.shared.u32 [%own], %thread;
    bar.warp.sync -1;
    mov.u32 %r1, 1;
L:
    setp.ge.u32 %p0, %lane, %r1;
    shl.b32 %r2, %r1, 2;
    sub.u32 %r3, %own, %r2;
    mov.u32 %r4, 0;
    @%p0 ld.shared.u32 %r4, [%r3]; // <--
+    bar.warp.sync -1;
    @%p0 ld.shared.u32 %r5, [%own];
    @%p0 add.u32 %r5, %r5, %r4;
    @%p0 st.shared.u32 [%own], %r5; // <--
    bar.warp.sync -1;
    shl.b32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 32;
    @%p1 bra L;
    ld.shared.u32 %r5, [%own];
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %r5;
""",
    ),
    Bug(
        name="vectors-of-two-lanes-overlap",
        source=REBUILT,
        what="two lanes of one instruction store different 16 bytes to the same place",
        code="shared-race",
        block=32,
        ptx="""
    .shared .align 16 .b8 t[1024];
-    shl.b32 %r0, %lane, 3;
-    and.b32 %r0, %r0, 0x1f0;
+    shl.b32 %r0, %lane, 4;
    mov.u32 %r1, t;
    add.u32 %r1, %r1, %r0;
    st.shared.v4.b32 [%r1], {%lane, %lane, 1, 2}; // <--
""",
    ),
    Bug(
        name="arrival-while-lanes-store-bytes",
        source=REBUILT,
        what="lane 0 arrives for its warp, whose lanes have stored a byte each through generic addresses",
        code="shared-race",
        block=64,
        ptx="""
    .shared .align 4 .b8 mask[32];
    .shared .align 8 .b64 bar;
    @%thread0 mbarrier.init.shared::cta.b64 [bar], 1;
    bar.sync 0;
    mov.u32 %r1, mask;
    add.u32 %r1, %r1, %lane;
    cvt.u64.u32 %rd1, %r1;
    cvta.shared.u64 %rd1, %rd1;
    setp.ne.u32 %p0, %warp, 0;
    @%p0 bra R;
    st.u8 [%rd1], 1;
+    bar.warp.sync 0xffffffff;
    setp.eq.u32 %p2, %lane, 0;
    @%p2 bra ARR;
    bra E;
ARR:
    mbarrier.arrive.release.cta.shared::cta.b64 %rd2, [bar];
    bra E;
R:
    mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %done, [bar], 0;
    @!%done bra R;
    and.b64 %rd3, %rd1, -4;
    ld.b32 %r4, [%rd3]; // <--
E:
""",
    ),
    Bug(
        name="shuffle-in-a-partial-warp",
        source="flashinfer-ai/flashinfer#3880",
        what="a reduction of 48 threads shuffles with the full mask: in the last warp 16 lanes do not exist",
        code="shuffle-source",
        block=48,
        ptx="""
    mul.wide.u32 %rd0, %warp, 4;
    add.u64 %rd0, %rd0, %data;
+    setp.lt.u32 %p0, %warp, 1;
    add.u32 %r0, %thread, 1;
    shfl.sync.bfly.b32 %r1, %r0, 16, 31, 0xffffffff; // <--
+    selp.u32 %r1, %r1, 0, %p0;
    add.u32 %r0, %r0, %r1;
    shfl.sync.bfly.b32 %r1, %r0, 8, 31, 0xffffffff;
    add.u32 %r0, %r0, %r1;
    @%lane0 st.global.u32 [%rd0], %r0;
""",
    ),
    Bug(
        name="shuffle-with-the-ballot-of-a-branch",
        source="NVIDIA/cuda-samples#398",
        what="the last step of a reduction has as many lanes as there are warps, but shuffles from 16 lanes away",
        code="shuffle-source",
        ptx="""
    setp.lt.u32 %p0, %thread, 4;
    vote.sync.ballot.b32 %r0, %p0, 0xffffffff;
    @!%p0 bra END;
    add.u32 %r1, %lane, 1;
-    shfl.sync.down.b32 %r2, %r1, 16, 31, %r0; // <--
-    add.u32 %r1, %r1, %r2;
    shfl.sync.down.b32 %r2, %r1, 2, 0x1c03, %r0;
    add.u32 %r1, %r1, %r2;
    shfl.sync.down.b32 %r2, %r1, 1, 0x1c03, %r0;
    add.u32 %r1, %r1, %r2;
    @%thread0 st.global.u32 [%data], %r1;
END:
""",
    ),
    Bug(
        name="shuffle-from-outside-the-mask",
        source=REBUILT,
        what="half a warp exchanges values in a branch, with a distance that reaches the other half",
        code="shuffle-source",
        block=32,
        ptx="""
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    setp.ge.u32 %p0, %lane, 16;
    @%p0 bra JOIN;
    add.u32 %r0, %lane, 1;
-    shfl.sync.bfly.b32 %r1, %r0, 16, 31, 0xffff; // <--
+    shfl.sync.bfly.b32 %r1, %r0, 8, 31, 0xffff;
    add.u32 %r0, %r0, %r1;
    st.global.u32 [%rd0], %r0;
JOIN:
""",
    ),
    Bug(
        name="shuffle-from-a-lane-that-has-exited",
        source=REBUILT,
        what="threads past the end of the array return early, and the others still add up their registers",
        code="shuffle-source",
        block=32,
        ptx="""
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    add.u32 %r0, %lane, 1;
    setp.ge.u32 %p0, %lane, 20;
-    @%p0 bra END;
+    selp.u32 %r0, 0, %r0, %p0;
    shfl.sync.down.b32 %r1, %r0, 16, 31, 0xffffffff; // <--
    add.u32 %r0, %r0, %r1;
    @%p0 bra END;
    st.global.u32 [%rd0], %r0;
END:
""",
    ),
    Bug(
        name="leader-has-exited",
        source=REBUILT,
        what="the value of lane 0 is broadcast to the warp after lane 0 has left",
        code="shuffle-source",
        block=32,
        ptx="""
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    mov.u32 %r0, 7;
-    @%lane0 bra END;
    shfl.sync.idx.b32 %r1, %r0, 0, 31, 0xffffffff; // <--
+    @%lane0 bra END;
    st.global.u32 [%rd0], %r1;
END:
""",
    ),
]
