"""Polling loops, and what a source takes for atomic or for converged.

The memory model proves nothing wrong in most of these: each access is strong. So they are reported where a schedule
shows them: `random`, which with odd seeds lets pollers run last, tears vectors, leaves lanes apart, and lets a
mbarrier.try_wait reach its time limit.
"""

from __future__ import annotations

from tests.bugs.bug import REBUILT, Bug

SEEDS = tuple(range(8))

BUGS = [
    Bug(
        name="vector-with-one-flag",
        source="NVIDIA/nccl#824",
        what="a store of 16 bytes is taken for one atomic access: its one flag says nothing of the other 8 bytes",
        code="wrong-result",
        schedules=("random",),
        seeds=SEEDS,
        block=1,
        grid=2,
        ptx="""
    setp.eq.u32 %p0, %cta, 0;
    @%p0 bra STORE;
POLL:
    ld.volatile.global.v4.u32 {%r0, %r1, %r2, %r3}, [%data]; // <--
    setp.ne.u32 %p1, %r3, 1;
+    setp.ne.or.u32 %p1, %r1, 1, %p1;
    @%p1 bra POLL;
    st.global.v2.u32 [%data+64], {%r0, %r2};
    bra END;
STORE:
    st.volatile.global.v4.u32 [%data], {5, 1, 7, 1};
END:
""",
    ),
    Bug(
        name="second-try-wait-taken-for-a-wait",
        source="rebuilt",
        what="a second mbarrier.try_wait stands in for the retry loop: it may reach its time limit, too",
        code="shared-race",
        also=("uninitialized-shared",),
        schedules=("random",),
        seeds=tuple(range(64)),
        block=64,
        ptx="""
    .shared .align 8 .b8 full[8];
    .shared .align 4 .b8 words[128];
    mov.b32 %r0, full;
    mov.b32 %r1, words;
    mad.lo.u32 %r1, %lane, 4, %r1;
    @%thread0 mbarrier.init.shared::cta.b64 [%r0], 32;
    bar.sync 0;
    setp.eq.u32 %p0, %warp, 0;
    @%p0 bra READ;
    st.shared.u32 [%r1], %thread;
    mbarrier.arrive.shared::cta.b64 _, [%r0];
    bra END;
READ:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [%r0], 0;
    @%done bra FULL;
AGAIN:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [%r0], 0;
+    @!%done bra AGAIN;
FULL:
    ld.shared.u32 %r2, [%r1]; // <--
    mad.wide.u32 %rd0, %lane, 4, %data;
    st.global.u32 [%rd0], %r2;
END:
""",
    ),
    Bug(
        name="two-words-of-64-bits-with-one-flag",
        source="NVIDIA/nccl#1641",
        what="st.volatile.v2.u64 is taken for an atomic store of data and flag, and a poller for one of both",
        code="wrong-result",
        schedules=("random",),
        seeds=SEEDS,
        block=1,
        grid=2,
        ptx="""
    setp.eq.u32 %p0, %cta, 0;
    @%p0 bra STORE;
POLL:
    ld.volatile.global.v2.u64 {%rd0, %rd1}, [%data]; // <--
    setp.eq.u64 %p1, %rd1, 0;
    @%p1 bra POLL;
+    fence.acq_rel.gpu;
+    ld.volatile.global.u64 %rd0, [%data];
    st.global.u64 [%data+64], %rd0;
    bra END;
STORE:
-    mov.u64 %rd2, 5;
-    mov.u64 %rd3, 1;
-    st.volatile.global.v2.u64 [%data], {%rd2, %rd3};
+    st.volatile.global.u64 [%data], 5;
+    fence.acq_rel.gpu;
+    st.volatile.global.u64 [%data+8], 1;
END:
""",
    ),
    Bug(
        name="counter-wraps-under-its-pollers",
        source="NVIDIA/cuml#458",
        what="a grid barrier polls for a value that the first CTA of the next round changes: a slow CTA misses it",
        code="deadlock",
        schedules=("random",),
        seeds=SEEDS,
        block=1,
        grid=4,
        ptx="""
    mov.u32 %r9, 0;
    mov.u32 %r1, %nctaid.x;
    sub.u32 %r2, %r1, 1;
ROUND:
-    atom.acq_rel.gpu.global.inc.u32 %r3, [%data], %r2;
+    atom.acq_rel.gpu.global.add.u32 %r3, [%data], 1;
+    add.u32 %r5, %r9, 1;
+    mul.lo.u32 %r5, %r5, %r1;
POLL:
    ld.acquire.gpu.global.u32 %r4, [%data]; // <--
-    setp.ne.u32 %p0, %r4, 0; // <--
+    setp.lt.u32 %p0, %r4, %r5;
    @%p0 bra POLL; // <--
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p1, %r9, 3;
    @%p1 bra ROUND;
""",
    ),
    Bug(
        name="counter-reset-under-its-pollers",
        source="flashinfer-ai/flashinfer#3615",
        what="the leading CTA resets the arrival counter of a group while a peer still polls it: the stream hangs",
        code="deadlock",
        schedules=("random",),
        seeds=SEEDS,
        block=1,
        grid=4,
        ptx="""
    mov.u32 %r1, %nctaid.x;
    sub.u32 %r2, %r1, 1;
    atom.acq_rel.gpu.global.add.u32 %r3, [%data], 1;
POLL:
    ld.acquire.gpu.global.u32 %r4, [%data]; // <--
    setp.lt.u32 %p0, %r4, %r1; // <--
    @%p0 bra POLL; // <--
-    setp.eq.u32 %p2, %cta, 0;
+    atom.acq_rel.gpu.global.add.u32 %r3, [%data+4], 1;
+    setp.eq.u32 %p2, %r3, %r2;
    @%p2 st.release.gpu.global.u32 [%data], 0;
""",
    ),
    Bug(
        name="counter-cleared-by-a-weak-store",
        source="flashinfer-ai/flashinfer#3610",
        what="the same with a plain store of zero, which races with the loads of the peers",
        code="global-race",
        also=("deadlock",),
        block=1,
        grid=4,
        ptx="""
    mov.u32 %r1, %nctaid.x;
    sub.u32 %r2, %r1, 1;
    atom.acq_rel.gpu.global.add.u32 %r3, [%data], 1;
POLL:
    ld.acquire.gpu.global.u32 %r4, [%data]; // <--
    setp.lt.u32 %p0, %r4, %r1;
    @%p0 bra POLL;
-    setp.eq.u32 %p2, %cta, 0;
+    atom.acq_rel.gpu.global.add.u32 %r3, [%data+4], 1;
+    setp.eq.u32 %p2, %r3, %r2;
    @%p2 st.global.u32 [%data], 0; // <--
""",
    ),
    Bug(
        name="counter-initialized-in-the-kernel",
        source="vllm-project/vllm#41444",
        what="CTA 0 stores 0 to the counter at which the others already arrive: arrivals get lost",
        code="global-race",
        also=("deadlock",),
        block=32,
        grid=2,
        ptx="""
    setp.eq.u32 %p0, %cta, 0;
    and.pred %p0, %p0, %thread0;
-    @%p0 st.global.u32 [%data+64], 0; // <--
    bar.sync 0;
    @!%thread0 bra END;
    red.release.gpu.global.add.u32 [%data+64], 1; // <--
    mov.u32 %r1, %nctaid.x;
POLL:
    ld.acquire.gpu.global.u32 %r4, [%data+64]; // <--
    setp.lt.u32 %p1, %r4, %r1;
    @%p1 bra POLL;
END:
""",
    ),
    Bug(
        name="active-mask-asked-twice",
        source="ComputationalRadiationPhysics/picongpu#4825",
        what="atomicAllInc asks __activemask() twice and takes the answers for the same: particles get lost",
        code="wrong-result",
        schedules=("random",),
        seeds=SEEDS,
        block=32,
        ptx="""
    and.b32 %r0, %lane, 1;
    setp.eq.u32 %p0, %r0, 0;
    @%p0 bra JOIN;
    add.u32 %r0, %r0, 1;
JOIN:
+    bar.warp.sync 0xffffffff;
    activemask.b32 %r1;
    popc.b32 %r2, %r1;
    activemask.b32 %r3; // <--
    brev.b32 %r4, %r3;
    bfind.shiftamt.u32 %r4, %r4;
    setp.eq.u32 %p1, %lane, %r4;
    @%p1 atom.relaxed.gpu.global.add.u32 %r5, [%data], %r2;
""",
    ),
    Bug(
        name="shared-slot-of-16-bytes-with-one-flag",
        source=REBUILT,
        what="a mailbox of 16 bytes in shared memory is polled by one word and read by the same vector load",
        code="wrong-result",
        schedules=("random",),
        seeds=SEEDS,
        block=64,
        ptx="""
    .shared .align 16 .b8 slot[16];
    @%thread0 st.shared.v4.u32 [slot], {0, 0, 0, 0};
    bar.sync 0;
    @!%lane0 bra E;
    setp.eq.u32 %p0, %warp, 0;
    @%p0 bra W;
P:
    ld.volatile.shared.v4.u32 {%r0, %r1, %r2, %r3}, [slot];
    setp.ne.u32 %p1, %r3, 1;
+    setp.ne.or.u32 %p1, %r0, 5, %p1;
    @%p1 bra P;
    st.global.u32 [%data+64], %r0; // <--
    bra E;
W:
    st.volatile.shared.v4.u32 [slot], {5, 6, 7, 1};
E:
""",
    ),
    Bug(
        name="pair-of-64-bits-for-one-of-128",
        source=REBUILT,
        what="data and flag in a vector of two 64-bit words, where only a .b128 scalar is one access",
        code="wrong-result",
        schedules=("random",),
        seeds=SEEDS,
        block=1,
        grid=2,
        ptx="""
    .reg .b128 %q;
    mov.u64 %rd4, 5;
    mov.u64 %rd5, 1;
    setp.eq.u32 %p0, %cta, 0;
    @%p0 bra W;
P:
-    ld.relaxed.sys.global.v2.b64 {%rd0, %rd1}, [%data];
+    ld.relaxed.sys.global.b128 %q, [%data];
+    mov.b128 {%rd0, %rd1}, %q;
    setp.eq.u64 %p1, %rd1, 0;
    @%p1 bra P;
    st.global.u64 [%data+64], %rd0; // <--
    bra E;
W:
-    st.relaxed.sys.global.v2.b64 [%data], {%rd4, %rd5};
+    mov.b128 %q, {%rd4, %rd5};
+    st.relaxed.sys.global.b128 [%data], %q;
E:
""",
    ),
    Bug(
        name="warps-wait-for-a-counter-at-zero",
        source=REBUILT,
        what="a barrier of warps sets its counter to zero, for which the others wait, and the next round adds at once",
        code="deadlock",
        schedules=("random",),
        seeds=SEEDS,
        block=96,
        ptx="""
    .shared .align 4 .b32 cnt;
    .shared .align 4 .b32 gen;
    @%thread0 st.shared.u32 [cnt], 0;
    @%thread0 st.shared.u32 [gen], 0;
    bar.sync 0;
    mov.u32 %r9, 0;
    @!%lane0 bra E;
R:
+    ld.relaxed.cta.shared.u32 %r7, [gen];
    atom.acq_rel.cta.shared.add.u32 %r1, [cnt], 1;
    setp.ne.u32 %p0, %r1, 2;
-    @!%p0 st.relaxed.cta.shared.u32 [cnt], 0;
-    @!%p0 bra D;
+    @%p0 bra P;
+    st.relaxed.cta.shared.u32 [cnt], 0;
+    red.release.cta.shared.add.u32 [gen], 1;
+    bra D;
P:
-    ld.acquire.cta.shared.u32 %r2, [cnt]; // <--
-    setp.ne.u32 %p1, %r2, 0; // <--
+    ld.acquire.cta.shared.u32 %r2, [gen];
+    setp.eq.u32 %p1, %r2, %r7;
    @%p1 bra P; // <--
D:
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p0, %r9, 3;
    @%p0 bra R;
E:
""",
    ),
    Bug(
        name="signal-set-twice-before-it-is-taken",
        source=REBUILT,
        what="a flag of one bit stands for each of several items: a second signal before the first is taken gets lost",
        code="deadlock",
        schedules=("random",),
        seeds=SEEDS,
        block=1,
        grid=2,
        ptx="""
    mov.u32 %r9, 0;
    setp.eq.u32 %p0, %cta, 0;
    @%p0 bra W;
P:
    ld.acquire.gpu.global.u32 %r1, [%data]; // <--
    setp.eq.u32 %p1, %r1, 0; // <--
    @%p1 bra P; // <--
    st.relaxed.gpu.global.u32 [%data], 0;
+    st.release.gpu.global.u32 [%data+8], 1;
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p1, %r9, 3;
    @%p1 bra P;
    bra E;
W:
    st.release.gpu.global.u32 [%data], 1;
+Q:
+    ld.acquire.gpu.global.u32 %r1, [%data+8];
+    setp.eq.u32 %p1, %r1, 0;
+    @%p1 bra Q;
+    st.relaxed.gpu.global.u32 [%data+8], 0;
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p1, %r9, 3;
    @%p1 bra W;
E:
""",
    ),
    Bug(
        name="poll-for-an-exact-count",
        source=REBUILT,
        what="the consumer polls for count == k while the producer goes on adding",
        code="deadlock",
        schedules=("random",),
        seeds=SEEDS,
        block=1,
        grid=2,
        ptx="""
    mov.u32 %r9, 0;
    setp.eq.u32 %p0, %cta, 0;
    @%p0 bra W;
N:
    add.u32 %r9, %r9, 1;
P:
    ld.acquire.gpu.global.u32 %r1, [%data]; // <--
-    setp.ne.u32 %p1, %r1, %r9; // <--
+    setp.lt.u32 %p1, %r1, %r9;
    @%p1 bra P; // <--
    setp.lt.u32 %p1, %r9, 4;
    @%p1 bra N;
    bra E;
W:
    red.release.gpu.global.add.u32 [%data], 1;
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p1, %r9, 4;
    @%p1 bra W;
E:
""",
    ),
    Bug(
        name="fixup-waits-for-one-of-two-peers",
        source=REBUILT,
        what="stream-K fixup: the counter of finished peers is compared with 1, but two peers contribute",
        code="global-race",
        schedules=("random",),
        seeds=SEEDS,
        block=32,
        grid=3,
        ptx="""
    mad.lo.u32 %r0, %cta, 32, %thread;
    mul.wide.u32 %rd0, %r0, 4;
    add.u64 %rd0, %rd0, %data;
    setp.eq.u32 %p0, %cta, 0;
    @%p0 bra F;
    st.global.u32 [%rd0+256], %r0; // <--
    bar.sync 0;
    @%thread0 red.release.gpu.global.add.u32 [%data], 1;
    bra E;
F:
    @!%thread0 bra G;
P:
    ld.acquire.gpu.global.u32 %r1, [%data];
-    setp.lt.u32 %p1, %r1, 1;
+    setp.lt.u32 %p1, %r1, 2;
    @%p1 bra P;
G:
    bar.sync 0;
    ld.global.u32 %r2, [%rd0+384]; // <--
    ld.global.u32 %r3, [%rd0+512]; // <--
E:
""",
    ),
    Bug(
        name="counter-reset-under-pollers-that-back-off",
        source=REBUILT,
        what="the last to arrive resets the counter that others poll with a growing nanosleep in between",
        code="deadlock",
        schedules=("random",),
        seeds=SEEDS,
        block=32,
        grid=4,
        ptx="""
    @!%thread0 bra E;
    mov.u32 %r1, %nctaid.x;
    mov.u32 %r8, 8;
    atom.acq_rel.gpu.global.add.u32 %r3, [%data], 1;
P:
    ld.acquire.gpu.global.u32 %r4, [%data]; // <--
    setp.ge.u32 %p0, %r4, %r1;
    @%p0 bra D;
    setp.gt.u32 %p1, %r8, 1000;
    @%p1 bra S;
    shl.b32 %r8, %r8, 1;
S:
    nanosleep.u32 %r8;
    bra P;
D:
-    add.u32 %r5, %r3, 1;
-    setp.eq.u32 %p2, %r5, %r1;
-    @%p2 st.relaxed.gpu.global.u32 [%data], 0;
+    atom.acq_rel.gpu.global.add.u32 %r6, [%data+4], 1;
+    add.u32 %r5, %r6, 1;
+    setp.eq.u32 %p2, %r5, %r1;
+    @%p2 st.relaxed.gpu.global.u32 [%data], 0;
E:
""",
    ),
    Bug(
        name="vector-of-32-bytes-with-one-flag",
        source=REBUILT,
        target="sm_100a",
        what="a load of 32 bytes is taken for one access: its flag says nothing of the other words",
        code="wrong-result",
        schedules=("random",),
        seeds=SEEDS,
        block=1,
        grid=2,
        ptx="""
    mov.u64 %rd0, 11;
    mov.u64 %rd1, 12;
    mov.u64 %rd2, 13;
    mov.u64 %rd3, 1;
    setp.eq.u32 %p0, %cta, 0;
    @%p0 bra W;
P:
    ld.relaxed.gpu.global.v4.b64 {%rd4, %rd5, %rd6, %rd7}, [%data];
    setp.ne.u64 %p1, %rd7, 1;
+    setp.ne.or.u64 %p1, %rd4, 11, %p1;
+    setp.ne.or.u64 %p1, %rd6, 13, %p1;
    @%p1 bra P;
    st.global.v2.u64 [%data+64], {%rd4, %rd6}; // <--
    bra E;
W:
    st.relaxed.gpu.global.v4.b64 [%data], {%rd0, %rd1, %rd2, %rd3};
E:
""",
    ),
    Bug(
        name="sequence-number-in-a-vector",
        source=REBUILT,
        what="each message of 16 bytes ends in its sequence number, on which alone the receiver relies",
        code="wrong-result",
        schedules=("random",),
        seeds=SEEDS,
        block=1,
        grid=2,
        ptx="""
    mov.u32 %r9, 0;
    setp.eq.u32 %p0, %cta, 0;
    @%p0 bra W;
    mov.u32 %r10, 0;
N:
    add.u32 %r9, %r9, 1;
P:
    ld.volatile.global.v4.u32 {%r0, %r1, %r2, %r3}, [%data];
    setp.ne.u32 %p1, %r3, %r9;
+    setp.ne.or.u32 %p1, %r0, %r9, %p1;
    @%p1 bra P;
    mad.lo.u32 %r10, %r10, 3, %r0;
    st.release.gpu.global.u32 [%data+32], %r9;
    setp.lt.u32 %p2, %r9, 4;
    @%p2 bra N;
    st.global.u32 [%data+64], %r10; // <--
    bra E;
W:
    add.u32 %r9, %r9, 1;
    st.volatile.global.v4.u32 [%data], {%r9, 2, 3, %r9};
Q:
    ld.acquire.gpu.global.u32 %r4, [%data+32];
    setp.ne.u32 %p1, %r4, %r9;
    @%p1 bra Q;
    setp.lt.u32 %p2, %r9, 4;
    @%p2 bra W;
E:
""",
    ),
    Bug(
        name="sense-read-after-the-arrival",
        source=REBUILT,
        what="a grid barrier arrives and then reads the sense, which the last CTA may have flipped in between",
        code="deadlock",
        schedules=("random",),
        seeds=SEEDS,
        block=64,
        grid=4,
        ptx="""
    mov.u32 %r9, 0;
    mov.u32 %r1, %nctaid.x;
    sub.u32 %r2, %r1, 1;
ROUND:
    bar.sync 0;
    @!%thread0 bra NEXT;
+    ld.acquire.gpu.global.u32 %r4, [%data+4];
    atom.acq_rel.gpu.global.add.u32 %r3, [%data], 1;
-    ld.acquire.gpu.global.u32 %r4, [%data+4];
    setp.eq.u32 %p0, %r3, %r2;
    @%p0 bra LAST;
POLL:
    ld.acquire.gpu.global.u32 %r5, [%data+4]; // <--
    setp.eq.u32 %p1, %r5, %r4; // <--
    @%p1 bra POLL; // <--
    bra NEXT;
LAST:
    st.relaxed.gpu.global.u32 [%data], 0;
    add.u32 %r5, %r4, 1;
    st.release.gpu.global.u32 [%data+4], %r5;
NEXT:
    bar.sync 0; // <--
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p1, %r9, 3;
    @%p1 bra ROUND;
""",
    ),
    Bug(
        name="counter-reset-after-the-release",
        source=REBUILT,
        what="the last CTA at a grid barrier releases the others and then resets the counter: arrivals are lost",
        code="deadlock",
        schedules=("random",),
        seeds=SEEDS,
        block=64,
        grid=4,
        ptx="""
    mov.u32 %r9, 0;
    mov.u32 %r1, %nctaid.x;
    sub.u32 %r2, %r1, 1;
ROUND:
    bar.sync 0;
    @!%thread0 bra NEXT;
    ld.acquire.gpu.global.u32 %r4, [%data+4];
    atom.acq_rel.gpu.global.add.u32 %r3, [%data], 1;
    setp.eq.u32 %p0, %r3, %r2;
    @%p0 bra LAST;
POLL:
    ld.acquire.gpu.global.u32 %r5, [%data+4]; // <--
    setp.eq.u32 %p1, %r5, %r4; // <--
    @%p1 bra POLL; // <--
    bra NEXT;
LAST:
    add.u32 %r5, %r4, 1;
+    st.relaxed.gpu.global.u32 [%data], 0;
    st.release.gpu.global.u32 [%data+4], %r5;
-    st.relaxed.gpu.global.u32 [%data], 0;
NEXT:
    bar.sync 0; // <--
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p1, %r9, 3;
    @%p1 bra ROUND;
""",
    ),
]
