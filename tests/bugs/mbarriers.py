"""mbarriers: counts, phases and parities."""

from __future__ import annotations

from tests.bugs.bug import REBUILT, Bug

MULTICAST = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
COPY = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
LOAD = "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes"

BUGS = [
    Bug(
        name="mbarrier-all-lanes-arrive",
        source="apache/tvm#20250",
        what="the lowering drops the predicate of an arrival: 32 lanes arrive where the mbarrier expects one",
        code="mbarrier-split",
        also=("mbarrier-round-behind", "deadlock"),
        block=64,
        ptx="""
    .shared .align 8 .b64 ready;
    @%thread0 mbarrier.init.shared.b64 [ready], 1;
    bar.sync 0;
    setp.ne.u32 %p0, %warp, 0;
    @%p0 bra WAIT;
-    mbarrier.arrive.shared.b64 _, [ready]; // <--
+    @%lane0 mbarrier.arrive.shared.b64 _, [ready];
    bra END;
WAIT:
+    mbarrier.try_wait.parity.shared.b64 %done, [ready], 0;
+    @!%done bra WAIT;
END:
""",
    ),
    Bug(
        name="mbarrier-dealloc-handshake-by-a-whole-warp",
        source="triton-lang/triton#9498",
        what="the handshake before a two-CTA tcgen05.dealloc: 32 lanes arrive on the peer's mbarrier of count 1",
        code="mbarrier-split",
        also=("mbarrier-round-behind", "deadlock", "cta-exit"),
        block=32,
        grid=2,
        cluster=2,
        ptx="""
    .shared .align 8 .b64 freed;
    @%thread0 mbarrier.init.shared.b64 [freed], 1;
    @%thread0 fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    xor.b32 %r0, %rank, 1;
    mov.u32 %r1, freed;
    mapa.shared::cluster.u32 %r2, %r1, %r0;
-    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2]; // <--
+    @%lane0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r2];
+WAIT:
+    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [freed], 0;
+    @!%done bra WAIT;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
""",
    ),
    Bug(
        name="mbarrier-waiter-a-round-behind",
        source="mlc-ai/TIRx-kernels#42",
        what="only one of two consumers gives the stage back, so a phase can complete while the other still waits",
        code="mbarrier-round-behind",
        block=96,
        ptx="""
    .shared .align 8 .b64 full;
    .shared .align 8 .b64 empty;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
-    @%thread0 mbarrier.init.shared.b64 [empty], 1;
+    @%thread0 mbarrier.init.shared.b64 [empty], 2;
    bar.sync 0;
    mov.u32 %r0, 0;
    setp.ne.u32 %p0, %warp, 0;
    @%p0 bra CONSUME;
PRODUCE:
    @%lane0 mbarrier.arrive.shared.b64 _, [full];
RELEASED:
    mbarrier.try_wait.parity.shared.b64 %done, [empty], %r0;
    @!%done bra RELEASED;
    xor.b32 %r0, %r0, 1;
    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra PRODUCE;
    bra END;
CONSUME:
    mbarrier.try_wait.parity.shared.b64 %done, [full], %r0; // <--
    @!%done bra CONSUME;
    ld.global.u32 %r1, [%data];
    bar.warp.sync 0xffffffff;
-    setp.eq.u32 %p2, %warp, 1;
-    and.pred %p2, %p2, %lane0;
-    @%p2 mbarrier.arrive.shared.b64 _, [empty];
+    @%lane0 mbarrier.arrive.shared.b64 _, [empty];
    xor.b32 %r0, %r0, 1;
    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra CONSUME;
END:
""",
    ),
    Bug(
        name="mbarrier-warp-arrives-on-count-one",
        source="deepseek-ai/DeepEP#293",
        what="the mbarrier expects one arrival, but all threads of a warp arrive",
        code="mbarrier-split",
        also=("mbarrier-round-behind", "deadlock", "expect-tx"),
        block=32,
        ptx="""
    .shared .align 128 .b8 stage[256];
    .shared .align 8 .b64 full;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
    @%thread0 fence.mbarrier_init.release.cluster;
    bar.warp.sync 0xffffffff;
-    mbarrier.arrive.shared.b64 _, [full]; // <--
+    @%thread0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;
+    @%thread0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [stage], [%data], 256, [full];
WAIT:
+    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
+    @!%done bra WAIT;
""",
    ),
    Bug(
        name="expect-tx-smaller-than-the-box",
        source="mirage-project/mirage#705",
        what="the kernel expects fewer bytes than the box of the tensormap delivers: all CTAs hang",
        code="expect-tx",
        also=("deadlock", "mbarrier-round-behind"),
        block=32,
        ptx=f"""
    .shared .align 128 .b8 stage[1024];
    .shared .align 8 .b64 full;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
    @%thread0 fence.mbarrier_init.release.cluster;
    bar.warp.sync 0xffffffff;
-    @%thread0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 512; // <--
+    @%thread0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 1024;
    @%thread0 {LOAD} [stage], [%map, {{0, 0}}], [full]; // <--
WAIT:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra WAIT;
""",
    ),
    Bug(
        name="mbarrier-used-before-its-init",
        source="NVIDIA/Fuser#1552",
        what="no __syncthreads after mbarrier.init: the test hung on H100",
        code="mbarrier-init-race",
        block=64,
        ptx="""
    .shared .align 8 .b64 ready;
    @%thread0 mbarrier.init.shared.b64 [ready], 64;
+    bar.sync 0;
-    bar.warp.sync 0xffffffff;
    mbarrier.arrive.shared.b64 _, [ready]; // <--
WAIT:
    mbarrier.try_wait.parity.shared.b64 %done, [ready], 0; // <--
    @!%done bra WAIT;
""",
    ),
    Bug(
        name="mbarrier-never-initialized",
        source="NVIDIA/cutlass#2364",
        what="a function called mbarrier_init_tx_bytes does an arrive.expect_tx: the mbarrier is never initialized",
        code="mbarrier-uninitialized",
        block=32,
        ptx="""
    .shared .align 8 .b64 ready;
+    @%thread0 mbarrier.init.shared.b64 [ready], 1;
-    @%thread0 mbarrier.arrive.expect_tx.shared.b64 _, [ready], 1; // <--
    bar.warp.sync 0xffffffff;
""",
    ),
    Bug(
        name="mbarrier-initialized-by-several-warps",
        source="mlc-ai/TIRx-kernels#6",
        what="every warp of the warpgroup elects a lane that initializes the mbarriers",
        code="mbarrier-reinitialized",
        also=("mbarrier-init-race", "shared-race"),
        block=64,
        ptx="""
    .shared .align 8 .b64 ready;
-    @%lane0 mbarrier.init.shared.b64 [ready], 64; // <--
+    @%thread0 mbarrier.init.shared.b64 [ready], 64;
    bar.sync 0;
    mbarrier.arrive.shared.b64 _, [ready];
WAIT:
    mbarrier.try_wait.parity.shared.b64 %done, [ready], 0;
    @!%done bra WAIT;
""",
    ),
    Bug(
        name="consumer-waits-for-the-wrong-phase",
        source="facebookexperimental/triton#186",
        what="the consumer's phase is inverted, so that its first wait passes at once",
        code="mbarrier-parity",
        also=("shared-race", "deadlock"),
        block=64,
        ptx="""
    .shared .align 128 .b8 stage[256];
    .shared .align 8 .b64 full;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
    @%thread0 fence.mbarrier_init.release.cluster;
    bar.sync 0;
    setp.eq.u32 %p0, %thread, 32;
    @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;
    @%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [stage], [%data], 256, [full];
WAIT:
-    mbarrier.try_wait.parity.shared.b64 %done, [full], 1; // <--
+    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra WAIT;
    ld.shared.u32 %r0, [stage]; // <--
""",
    ),
    Bug(
        name="mbarrier-counts-a-warpgroup",
        source="facebookexperimental/triton#183",
        what="the count of the mbarrier assumes a role of four warps; the role has six, and two are not waited for",
        code="mbarrier-split",
        also=("uninitialized-shared",),
        block=224,
        ptx="""
    .shared .align 4 .b32 words[192];
    .shared .align 8 .b64 ready;
-    @%thread0 mbarrier.init.shared.b64 [ready], 128;
+    @%thread0 mbarrier.init.shared.b64 [ready], 192;
    bar.sync 0;
    shl.b32 %r0, %thread, 2;
    mov.u32 %r1, words;
    add.u32 %r2, %r1, %r0;
    setp.ge.u32 %p0, %warp, 6;
    @%p0 bra WAIT;
    st.shared.u32 [%r2], %thread; // <--
    mbarrier.arrive.shared.b64 _, [ready]; // <--
    bra END;
WAIT:
    mbarrier.try_wait.parity.shared.b64 %done, [ready], 0;
    @!%done bra WAIT;
    shl.b32 %r0, %lane, 2;
    add.u32 %r2, %r1, %r0;
    ld.shared.u32 %r3, [%r2]; // <--
    ld.shared.u32 %r3, [%r2+128]; // <--
    ld.shared.u32 %r3, [%r2+256]; // <--
    ld.shared.u32 %r3, [%r2+384]; // <--
    ld.shared.u32 %r3, [%r2+512]; // <--
    ld.shared.u32 %r3, [%r2+640]; // <--
END:
""",
    ),
    Bug(
        name="multicast-ring-without-the-peers-release",
        source=REBUILT,
        what="the leader refills both CTAs by multicast once its own consumer has released the stage",
        code="shared-race",
        also=("mbarrier-round-behind",),
        block=64,
        grid=2,
        cluster=2,
        ptx=f"""
    .shared .align 128 .b8 stage[256];
    .shared .align 8 .b64 full;
    .shared .align 8 .b64 empty;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
-    @%thread0 mbarrier.init.shared.b64 [empty], 1;
+    @%thread0 mbarrier.init.shared.b64 [empty], 2;
    @%thread0 fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.b16 %rs0, 3;
    mov.u32 %r0, 0;
    mov.u32 %r5, empty;
    mapa.shared::cluster.u32 %r6, %r5, 0;
    setp.ne.u32 %p0, %warp, 0;
    @%p0 bra CONSUME;
    @!%lane0 bra END;
    setp.ne.u32 %p4, %rank, 0;
PRODUCE:
    and.b32 %r1, %r0, 1;
    xor.b32 %r2, %r1, 1;
    @%p4 bra EXPECT;
RELEASED:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [empty], %r2; // <--
    @!%done bra RELEASED;
EXPECT:
    @%p4 bra PEER;
    mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;
    {MULTICAST} [stage], [%data], 256, [full], %rs0; // <--
    bra NEXT;
PEER:
    mbarrier.arrive.expect_tx.shared.b64 _, [full], 256; // <--
WAITFULL:
    mbarrier.try_wait.parity.shared.b64 %done, [full], %r1; // <--
    @!%done bra WAITFULL;
NEXT:
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p1, %r0, 4;
    @%p1 bra PRODUCE;
    bra END;
CONSUME:
    and.b32 %r1, %r0, 1;
FULL:
    mbarrier.try_wait.parity.shared.b64 %done, [full], %r1; // <--
    @!%done bra FULL;
    ld.shared.u32 %r4, [stage]; // <--
    fence.proxy.async.shared::cta;
    bar.warp.sync 0xffffffff;
-    setp.ne.u32 %p5, %rank, 0;
-    @%p5 bra SKIP;
    @%lane0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6]; // <--
SKIP:
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p1, %r0, 4;
    @%p1 bra CONSUME;
END:
    bar.warp.sync 0xffffffff;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
""",
    ),
    Bug(
        name="ring-released-by-one-of-two-warpgroups",
        source=REBUILT,
        what="two consumer warpgroups share a stage, but the empty mbarrier counts one of them",
        code="shared-race",
        also=("mbarrier-round-behind",),
        block=288,
        ptx=f"""
    .shared .align 128 .b8 stage[256];
    .shared .align 8 .b64 full;
    .shared .align 8 .b64 empty;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
-    @%thread0 mbarrier.init.shared.b64 [empty], 128;
+    @%thread0 mbarrier.init.shared.b64 [empty], 256;
    @%thread0 fence.mbarrier_init.release.cluster;
    bar.sync 0;
    mov.u32 %r0, 0;
    setp.ge.u32 %p0, %warp, 8;
    @!%p0 bra CONSUME;
    @!%lane0 bra END;
PRODUCE:
    and.b32 %r1, %r0, 1;
    xor.b32 %r2, %r1, 1;
RELEASED:
    mbarrier.try_wait.parity.shared.b64 %done, [empty], %r2; // <--
    @!%done bra RELEASED;
    mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;
    {COPY} [stage], [%data], 256, [full]; // <--
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p1, %r0, 4;
    @%p1 bra PRODUCE;
    bra END;
CONSUME:
    and.b32 %r1, %r0, 1;
FULL:
    mbarrier.try_wait.parity.shared.b64 %done, [full], %r1; // <--
    @!%done bra FULL;
    mov.u32 %r3, stage;
    mad.lo.u32 %r3, %lane, 4, %r3;
    ld.shared.u32 %r4, [%r3]; // <--
    fence.proxy.async.shared::cta;
-    setp.ge.u32 %p3, %warp, 4;
-    @%p3 bra SKIP;
    mbarrier.arrive.shared.b64 _, [empty];
SKIP:
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p1, %r0, 4;
    @%p1 bra CONSUME;
END:
""",
    ),
    Bug(
        name="ring-with-a-reader-that-releases-nothing",
        source=REBUILT,
        what="a third warp waits for the full mbarrier, and the empty one does not count it",
        code="mbarrier-round-behind",
        ptx="""
    .shared .align 8 .b64 full;
    .shared .align 8 .b64 empty;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
-    @%thread0 mbarrier.init.shared.b64 [empty], 2;
+    @%thread0 mbarrier.init.shared.b64 [empty], 3;
    bar.sync 0;
    mov.u32 %r0, 0;
    setp.ne.u32 %p0, %warp, 0;
    @%p0 bra CONSUME;
PRODUCE:
    and.b32 %r1, %r0, 1;
    xor.b32 %r2, %r1, 1;
RELEASED:
    mbarrier.try_wait.parity.shared.b64 %done, [empty], %r2;
    @!%done bra RELEASED;
    @%lane0 mbarrier.arrive.shared.b64 _, [full];
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p1, %r0, 4;
    @%p1 bra PRODUCE;
    bra END;
CONSUME:
    and.b32 %r1, %r0, 1;
FULL:
    mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %done, [full], %r1, 0x989680; // <--
    @%done bra GOT;
    bra FULL;
GOT:
    mad.wide.u32 %rd0, %thread, 4, %data;
    st.global.u32 [%rd0], %r0;
    bar.warp.sync 0xffffffff;
-    setp.eq.u32 %p2, %warp, 3;
-    @%p2 bra SKIP;
    @%lane0 mbarrier.arrive.shared.b64 _, [empty];
SKIP:
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p1, %r0, 4;
    @%p1 bra CONSUME;
END:
""",
    ),
    Bug(
        name="ring-whose-stage-is-released-twice",
        source=REBUILT,
        what="two consumers release a stage whose empty mbarrier expects one arrival: its phase completes twice",
        code="mbarrier-split",
        also=("mbarrier-round-behind", "deadlock"),
        block=96,
        ptx="""
    .shared .align 8 .b64 full;
    .shared .align 8 .b64 empty;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
-    @%thread0 mbarrier.init.shared.b64 [empty], 1;
+    @%thread0 mbarrier.init.shared.b64 [empty], 2;
    bar.sync 0;
    mov.u32 %r0, 0;
    setp.ne.u32 %p0, %warp, 0;
    @%p0 bra CONSUME;
PRODUCE:
    and.b32 %r1, %r0, 1;
    @%lane0 mbarrier.arrive.shared.b64 _, [full];
RELEASED:
    mbarrier.test_wait.parity.shared.b64 %done, [empty], %r1; // <--
    @!%done bra RELEASED;
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p1, %r0, 4;
    @%p1 bra PRODUCE;
    bra END;
CONSUME:
    and.b32 %r1, %r0, 1;
FULL:
    mbarrier.test_wait.parity.shared.b64 %done, [full], %r1; // <--
    @!%done bra FULL;
    bar.warp.sync 0xffffffff;
    @%lane0 mbarrier.arrive.shared.b64 _, [empty]; // <--
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p1, %r0, 4;
    @%p1 bra CONSUME;
END:
""",
    ),
    Bug(
        name="mbarrier-counts-127-of-128",
        source=REBUILT,
        what="128 threads arrive where the mbarrier expects 127: the last one counts for the next phase",
        code="mbarrier-split",
        block=160,
        ptx="""
    .shared .align 8 .b64 ready;
-    @%thread0 mbarrier.init.shared.b64 [ready], 127;
+    @%thread0 mbarrier.init.shared.b64 [ready], 128;
    bar.sync 0;
    setp.ge.u32 %p0, %warp, 4;
    @%p0 bra WAIT;
    mbarrier.arrive.shared.b64 _, [ready]; // <--
    bra END;
WAIT:
    mbarrier.try_wait.parity.shared.b64 %done, [ready], 0;
    @!%done bra WAIT;
END:
""",
    ),
    Bug(
        name="ring-counts-127-of-128",
        source=REBUILT,
        what="the same in a ring: the stage is free before its last reader has released it",
        code="mbarrier-split",
        also=("mbarrier-round-behind", "shared-race"),
        block=160,
        ptx="""
    .shared .align 8 .b64 full;
    .shared .align 8 .b64 empty;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
-    @%thread0 mbarrier.init.shared.b64 [empty], 127;
+    @%thread0 mbarrier.init.shared.b64 [empty], 128;
    bar.sync 0;
    mov.u32 %r0, 0;
    setp.lt.u32 %p0, %warp, 4;
    @%p0 bra CONSUME;
PRODUCE:
    and.b32 %r1, %r0, 1;
    xor.b32 %r2, %r1, 1;
RELEASED:
    mbarrier.try_wait.parity.shared.b64 %done, [empty], %r2; // <--
    @!%done bra RELEASED;
    @%lane0 mbarrier.arrive.shared.b64 _, [full];
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p1, %r0, 4;
    @%p1 bra PRODUCE;
    bra END;
CONSUME:
    and.b32 %r1, %r0, 1;
FULL:
    mbarrier.try_wait.parity.shared.b64 %done, [full], %r1; // <--
    @!%done bra FULL;
    mbarrier.arrive.shared.b64 _, [empty]; // <--
    add.u32 %r0, %r0, 1;
    setp.lt.u32 %p1, %r0, 4;
    @%p1 bra CONSUME;
END:
""",
    ),
    Bug(
        name="bytes-announced-by-a-thread-that-does-not-arrive",
        source=REBUILT,
        what="one thread arrives and copies, another announces the bytes: nobody waits for them",
        code="expect-tx",
        block=64,
        ptx=f"""
    .shared .align 128 .b8 stage[1024];
    .shared .align 8 .b64 full;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
    @%thread0 fence.mbarrier_init.release.cluster;
    bar.sync 0;
    setp.eq.u32 %p3, %thread, 32;
-    @%thread0 mbarrier.arrive.shared.b64 _, [full];
+    @%thread0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 1024;
    @%thread0 {COPY} [stage], [%data], 1024, [full]; // <--
-    @%p3 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [full], 1024; // <--
WAIT:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra WAIT;
""",
    ),
    Bug(
        name="mask-slot-released-once-per-warp",
        source="NVIDIA/cudnn-frontend#993",
        what="one lane releases the slot of the mask for its warp, whose lanes have read words of their own",
        code="shared-race",
        target="sm_100a",
        also=("missing-proxy-fence",),
        ptx="""
    .shared .align 16 .b8 slot[128];
    .shared .align 8 .b64 full;
    .shared .align 8 .b64 empty;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
-    @%thread0 mbarrier.init.shared.b64 [empty], 3;
+    @%thread0 mbarrier.init.shared.b64 [empty], 96;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    mov.u32 %r0, slot;
    mad.lo.u32 %r0, %lane, 4, %r0;
    mov.u32 %r9, 0;
    mov.u32 %r3, 0;
    setp.ne.u32 %p0, %warp, 0;
    @%p0 bra READ;
    @!%thread0 bra END;
FILL:
    mad.wide.u32 %rd0, %r3, 128, %data;
    mbarrier.arrive.expect_tx.shared.b64 _, [full], 128;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [slot], [%rd0], 128, [full]; // <--
    and.b32 %r4, %r3, 1;
GIVEN:
    mbarrier.try_wait.parity.shared.b64 %done, [empty], %r4;
    @!%done bra GIVEN;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p1, %r3, 3;
    @%p1 bra FILL;
    bra END;
READ:
    and.b32 %r4, %r3, 1;
    mbarrier.try_wait.parity.shared.b64 %done, [full], %r4;
    @!%done bra READ;
    ld.shared.u32 %r5, [%r0]; // <--
    add.u32 %r9, %r9, %r5;
+    fence.proxy.async.shared::cta;
-    @%lane0 mbarrier.arrive.shared.b64 _, [empty];
+    mbarrier.arrive.shared.b64 _, [empty];
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p1, %r3, 3;
    @%p1 bra READ;
    mad.wide.u32 %rd0, %thread, 4, %data;
    st.global.u32 [%rd0+4096], %r9;
END:
""",
    ),
    Bug(
        name="parity-that-never-flips",
        source=REBUILT,
        what="the consumer of a ring of one stage waits for parity 0 in each turn, and reads what has not come",
        code="mbarrier-split",
        also=("mbarrier-parity", "mbarrier-overflow"),
        target="sm_100a",
        ptx="""
    .shared .align 16 .b8 slot[128];
    .shared .align 8 .b64 full;
    .shared .align 8 .b64 empty;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
    @%thread0 mbarrier.init.shared.b64 [empty], 96;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    mov.u32 %r0, slot;
    mad.lo.u32 %r0, %lane, 4, %r0;
    mov.u32 %r9, 0;
    mov.u32 %r3, 0;
    setp.ne.u32 %p0, %warp, 0;
    @%p0 bra READ;
    @!%thread0 bra END;
FILL:
    mad.wide.u32 %rd0, %r3, 128, %data;
    mbarrier.arrive.expect_tx.shared.b64 _, [full], 128;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [slot], [%rd0], 128, [full];
    and.b32 %r4, %r3, 1;
GIVEN:
    mbarrier.try_wait.parity.shared.b64 %done, [empty], %r4;
    @!%done bra GIVEN;
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p1, %r3, 3;
    @%p1 bra FILL;
    bra END;
READ:
-    mov.u32 %r4, 0;
+    and.b32 %r4, %r3, 1;
    mbarrier.try_wait.parity.shared.b64 %done, [full], %r4; // <--
    @!%done bra READ;
    ld.shared.u32 %r5, [%r0]; // <--
    add.u32 %r9, %r9, %r5;
    fence.proxy.async.shared::cta;
    mbarrier.arrive.shared.b64 _, [empty]; // <--
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p1, %r3, 3;
    @%p1 bra READ;
    mad.wide.u32 %rd0, %thread, 4, %data;
    st.global.u32 [%rd0+4096], %r9;
END:
""",
    ),
]
