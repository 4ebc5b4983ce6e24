"""Clusters: what CTAs do to each other's shared memory."""

from __future__ import annotations

from tests.bugs.bug import REBUILT, Bug

COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
MULTICAST = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"

#: A pair with tensor memory at %tmem, descriptors of a two-CTA MMA in bf16, mbarriers `done` and `ready` (COUNT).
PAIR = """
    .shared .align 1024 .b8 smem_a[16384];
    .shared .align 1024 .b8 smem_b[4096];
    .shared .align 8 .b64 done;
    .shared .align 8 .b64 ready;
    .shared .align 4 .b32 slot;
    .reg .b64 %desc_a, %desc_b;
    .reg .b32 %idesc, %tmem;
    .reg .pred %warp0, %leader;
    mov.b64 %desc_a, 0x4000404000010040;
    mov.b64 %desc_b, 0x4000404000010440;
    mov.b32 %idesc, 0x10080490;
    setp.eq.u32 %warp0, %warp, 0;
    setp.eq.u32 %leader, %rank, 0;
    @%thread0 mbarrier.init.shared.b64 [done], 1;
    @%thread0 mbarrier.init.shared.b64 [ready], COUNT;
    @%thread0 fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @!%warp0 bra ALLOCATED;
    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 64;
ALLOCATED:
    tcgen05.fence::before_thread_sync;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %tmem, [slot];
"""
PAIR_END = """
WAIT:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [done], 0;
    @!%done bra WAIT;
    tcgen05.fence::before_thread_sync;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    tcgen05.fence::after_thread_sync;
    @!%warp0 bra FREED;
    tcgen05.dealloc.cta_group::2.sync.aligned.b32 %tmem, 64;
FREED:
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
"""

BUGS = [
    Bug(
        name="peer-operand-published-for-the-cta-alone",
        source="NVIDIA/cutlass#3643",
        what="threads of the peer CTA write their half and arrive with scope .cta at the leader: wrong results",
        code="narrow-scope",
        target="sm_100a",
        grid=2,
        cluster=2,
        ptx="""
    .shared .align 1024 .b8 smem_a[16384];
    .shared .align 1024 .b8 smem_b[4096];
    .shared .align 8 .b64 done;
    .shared .align 8 .b64 ready;
    .shared .align 4 .b32 slot;
    .reg .b64 %desc_a, %desc_b;
    .reg .b32 %idesc, %tmem;
    .reg .pred %warp0, %leader;
    mov.b64 %desc_a, 0x4000404000010040;
    mov.b64 %desc_b, 0x4000404000010440;
    mov.b32 %idesc, 0x10080490;
    setp.eq.u32 %warp0, %warp, 0;
    setp.eq.u32 %leader, %rank, 0;
    @%thread0 mbarrier.init.shared.b64 [done], 1;
    @%thread0 mbarrier.init.shared.b64 [ready], 2;
    @%thread0 fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @!%warp0 bra ALLOCATED;
    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 64;
ALLOCATED:
    tcgen05.fence::before_thread_sync;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %tmem, [slot];
    mov.u32 %r39, smem_a; @%thread0 st.bulk.weak.shared::cta [%r39], 16384, 0;
    mov.u32 %r39, smem_b; @%thread0 st.bulk.weak.shared::cta [%r39], 4096, 0;
    @%thread0 st.shared.u32 [smem_b], 0x3F803F80;
    fence.proxy.async.shared::cta;
    mov.u32 %r0, ready;
    mapa.shared::cluster.u32 %r1, %r0, 0;
-    @%thread0 mbarrier.arrive.release.cta.shared::cluster.b64 _, [%r1];
+    @%thread0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];
    @!%leader bra WAIT;
    @!%warp0 bra WAIT;
READY:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [ready], 0;
    @!%done bra READY;
    mov.b16 %rs0, 3;
    @!%thread0 bra WAIT;
    tcgen05.mma.cta_group::2.kind::f16 [%tmem], %desc_a, %desc_b, %idesc, 0; // <--
    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %rs0;
WAIT:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [done], 0;
    @!%done bra WAIT;
    tcgen05.fence::before_thread_sync;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    tcgen05.fence::after_thread_sync;
    @!%warp0 bra FREED;
    tcgen05.dealloc.cta_group::2.sync.aligned.b32 %tmem, 64;
FREED:
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
""",
    ),
    Bug(
        name="exit-while-a-peer-reads",
        source="triton-lang/triton#11730",
        what="CTA 0 returns while the others still read its shared memory: no cluster barrier before ret",
        code="cta-exit",
        block=32,
        grid=2,
        cluster=2,
        ptx="""
    .shared .align 4 .b32 result;
    @%thread0 st.shared.u32 [result], 7;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.u32 %r0, result;
    mapa.shared::cluster.u32 %r1, %r0, 0;
    setp.eq.u32 %p0, %rank, 0;
    @!%p0 ld.shared::cluster.u32 %r2, [%r1]; // <--
+    barrier.cluster.arrive.aligned;
+    barrier.cluster.wait.aligned;
""",
    ),
    Bug(
        name="exit-while-peers-store",
        source="facebookexperimental/triton#1105",
        what="CLC recycles an SM before all CTAs of the cluster have exited, and a peer's remote access fails",
        code="cta-exit",
        block=32,
        grid=2,
        cluster=2,
        ptx="""
    .shared .align 4 .b32 slot;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    xor.b32 %r0, %rank, 1;
    mov.u32 %r1, slot;
    mapa.shared::cluster.u32 %r2, %r1, %r0;
    @%thread0 st.shared::cluster.u32 [%r2], %rank; // <--
+    barrier.cluster.arrive.aligned;
+    barrier.cluster.wait.aligned;
""",
    ),
    Bug(
        name="remote-store-before-the-peer-is-ready",
        source="facebookexperimental/triton#2292",
        what="a CTA stores into its peer's shared memory before that has initialized it: the entry barrier is missing",
        code="shared-race",
        also=("cta-exit",),
        block=32,
        grid=2,
        cluster=2,
        ptx="""
    .shared .align 4 .b32 slot;
    @%thread0 st.shared.u32 [slot], 99; // <--
+    barrier.cluster.arrive.aligned;
+    barrier.cluster.wait.aligned;
    xor.b32 %r0, %rank, 1;
    mov.u32 %r1, slot;
    mapa.shared::cluster.u32 %r2, %r1, %r0;
    @%thread0 st.shared::cluster.u32 [%r2], %rank; // <--
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    ld.shared.u32 %r3, [slot];
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
""",
    ),
    Bug(
        name="multicast-before-the-receiver-is-ready",
        source="inclusionAI/humming#53",
        what="TMA multicast refills the peer's stage, which only the issuing CTA's own readers have given back",
        code="shared-race",
        also=("expect-tx", "cta-exit"),
        block=32,
        grid=2,
        cluster=2,
        ptx=f"""
    .shared .align 128 .b8 stage[256];
    .shared .align 8 .b64 full;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
    @%thread0 fence.mbarrier_init.release.cluster;
    @%thread0 st.shared.u32 [stage], 1;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.b16 %rs0, 3;
    setp.eq.u32 %p0, %rank, 0;
    and.pred %p1, %p0, %thread0;
    ld.shared.u32 %r2, [stage]; // <--
    bar.warp.sync 0xffffffff;
    @%thread0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;
+    fence.proxy.async.shared::cta;
+    barrier.cluster.arrive.aligned;
+    barrier.cluster.wait.aligned;
    @%p1 {MULTICAST} [stage], [%data], 256, [full], %rs0; // <--
WAIT:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra WAIT;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
""",
    ),
    Bug(
        name="pair-allocates-before-its-peer-has-started",
        source="triton-lang/triton#10735",
        what="the two-CTA allocation of tensor memory comes before any barrier of the cluster",
        code="pair-not-started",
        severity="advice",
        target="sm_100a",
        block=32,
        grid=2,
        cluster=2,
        ptx="""
    .shared .align 4 .b32 slot;
+    barrier.cluster.arrive.aligned;
+    barrier.cluster.wait.aligned;
    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 64; // <--
    ld.shared.b32 %r0, [slot];
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r0, 64;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
""",
    ),
    Bug(
        name="mbarrier-address-masked",
        source="facebookexperimental/triton#1077",
        what="TMA loads of both CTAs of a pair complete on the even CTA's mbarrier; the load lacks .cta_group::2",
        code="copy-mbarrier-cta",
        target="sm_100a",
        block=32,
        grid=2,
        cluster=2,
        ptx="""
    .shared .align 128 .b8 stage[256];
    .shared .align 8 .b64 full;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
    @%thread0 fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.u32 %r0, full;
-    and.b32 %r0, %r0, 0xFEFFFFFF;
    @!%thread0 bra WAIT;
    mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [stage], [%data], 256, [%r0]; // <--
WAIT:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra WAIT;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
""",
    ),
    Bug(
        name="relay-publishes-for-its-cta-alone",
        source="Dao-AILab/quack#63",
        what="a relay warp publishes its CTA's cp.async to the peer that issues the MMA by an arrival of scope .cta",
        code="narrow-scope",
        grid=2,
        cluster=2,
        target="sm_100a",
        ptx=PAIR.replace("COUNT", "2")
        + """
    mov.u32 %r39, smem_a; @%thread0 st.bulk.weak.shared::cta [%r39], 16384, 0;
    mov.u32 %r39, smem_b; @%thread0 st.bulk.weak.shared::cta [%r39], 4096, 0;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    mul.wide.u32 %rd0, %thread, 16;
    add.u64 %rd0, %rd0, %data;
    shl.b32 %r0, %thread, 4;
    mov.u32 %r1, smem_a;
    add.u32 %r1, %r1, %r0;
    cp.async.cg.shared.global [%r1], [%rd0], 16;
    cp.async.wait_all;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    mov.u32 %r0, ready;
    mapa.shared::cluster.u32 %r1, %r0, 0;
    setp.eq.u32 %p3, %thread, 32;
-    @%p3 mbarrier.arrive.release.cta.shared::cluster.b64 _, [%r1];
+    @%p3 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];
    @!%leader bra WAIT;
    @!%warp0 bra WAIT;
READY:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [ready], 0;
    @!%done bra READY;
    mov.b16 %rs0, 3;
    @!%thread0 bra WAIT;
    tcgen05.mma.cta_group::2.kind::f16 [%tmem], %desc_a, %desc_b, %idesc, 0; // <--
    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %rs0;
"""
        + PAIR_END,
    ),
    Bug(
        name="completion-in-the-peer-not-observed",
        source="NVIDIA/cutlass#3647",
        what="the leader issues a two-CTA MMA after its own copies are complete, and nobody has waited for the peer's",
        code="shared-race",
        also=("uninitialized-shared", "cta-exit"),
        grid=2,
        cluster=2,
        target="sm_100a",
        ptx=PAIR.replace("COUNT", "1")
        + f"""
    .shared .align 8 .b64 relayed;
    @%thread0 mbarrier.init.shared.b64 [relayed], 2;
    @%thread0 fence.mbarrier_init.release.cluster;
    mov.u32 %r39, smem_b; @%thread0 st.bulk.weak.shared::cta [%r39], 4096, 0;
    fence.proxy.async.shared::cta;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @!%thread0 bra WAIT;
    mbarrier.arrive.expect_tx.shared.b64 _, [ready], 16384;
    {COPY} [smem_a], [%data], 16384, [ready];
-    @!%leader bra WAIT;
READY:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [ready], 0;
    @!%done bra READY;
+    mov.u32 %r0, relayed;
+    mapa.shared::cluster.u32 %r1, %r0, 0;
+    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];
+    @!%leader bra WAIT;
+RELAYED:
+    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [relayed], 0;
+    @!%done bra RELAYED;
    mov.b16 %rs0, 3;
    tcgen05.mma.cta_group::2.kind::f16 [%tmem], %desc_a, %desc_b, %idesc, 0; // <--
    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %rs0;
"""
        + PAIR_END,
    ),
    Bug(
        name="commit-mask-of-the-first-pair",
        source="facebookexperimental/triton#783",
        what="tcgen05.commit multicasts to CTAs 0 and 1 in every pair: CTAs 2 and 3 of a cluster of four wait forever",
        code="deadlock",
        also=("mbarrier-split", "mbarrier-round-behind"),
        block=32,
        grid=4,
        cluster=4,
        target="sm_100a",
        ptx="""
    .shared .align 8 .b64 done;
    .shared .align 4 .b32 slot;
    .reg .b32 %tmem;
    @%thread0 mbarrier.init.shared.b64 [done], 1;
    @%thread0 fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.u32 %r1, 3;
    and.b32 %r2, %rank, 0xFFFFFFFE;
+    shl.b32 %r1, %r1, %r2;
    cvt.u16.u32 %rs0, %r1;
    setp.eq.u32 %p0, %rank, %r2;
    and.pred %p0, %p0, %thread0;
    @%p0 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %rs0;
WAIT:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [done], 0; // <--
    @!%done bra WAIT; // <--
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned; // <--
""",
    ),
    Bug(
        name="multicast-mask-outside-the-cluster",
        source="NVIDIA/cutlass#3658",
        what="the mask of the multicast has the bit of a peer that the cluster does not have: out of range faults",
        code="multicast-mask",
        block=32,
        grid=2,
        cluster=2,
        ptx=f"""
    .shared .align 128 .b8 stage[256];
    .shared .align 8 .b64 full;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
    @%thread0 fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
-    mov.b16 %rs0, 7;
+    mov.b16 %rs0, 3;
    setp.eq.u32 %p0, %rank, 0;
    and.pred %p1, %p0, %thread0;
    @%thread0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;
    @%p1 {MULTICAST} [stage], [%data], 256, [full], %rs0; // <--
WAIT:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra WAIT;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
""",
    ),
    Bug(
        name="tutorial-allocates-before-its-peer-has-started",
        source="NVIDIA/cutlass#3316",
        what="the tutorial of two-SM MMAs allocates tensor memory first and synchronizes the cluster after it",
        code="pair-not-started",
        severity="advice",
        grid=2,
        cluster=2,
        target="sm_100a",
        ptx="""
    .shared .align 8 .b64 done;
    .shared .align 4 .b32 slot;
    setp.eq.u32 %p0, %warp, 0;
+    @%thread0 mbarrier.init.shared.b64 [done], 1;
+    @%thread0 fence.mbarrier_init.release.cluster;
+    barrier.cluster.arrive.relaxed;
+    barrier.cluster.wait;
    @!%p0 bra ALLOCATED;
    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 128; // <--
ALLOCATED:
-    @%thread0 mbarrier.init.shared.b64 [done], 1;
-    @%thread0 fence.mbarrier_init.release.cluster;
    tcgen05.fence::before_thread_sync;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    tcgen05.fence::after_thread_sync;
    @!%p0 bra FREED;
    ld.shared.b32 %r0, [slot];
    tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r0, 128;
FREED:
    barrier.cluster.arrive;
    barrier.cluster.wait;
""",
    ),
    Bug(
        name="exit-while-a-peer-reduces-there",
        source=REBUILT,
        what="one of four CTAs does not wait for the red.async of its neighbor and exits",
        code="cta-exit",
        block=32,
        grid=4,
        cluster=4,
        ptx="""
    .shared .align 8 .b64 count;
    .shared .align 8 .b64 full;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
    @%thread0 fence.mbarrier_init.release.cluster;
    @%thread0 st.shared.u64 [count], 0;
    @%thread0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 4;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    add.u32 %r0, %rank, 1;
    and.b32 %r0, %r0, 3;
    mov.u32 %r1, count;
    mapa.shared::cluster.u32 %r2, %r1, %r0;
    mov.u32 %r1, full;
    mapa.shared::cluster.u32 %r3, %r1, %r0;
    @%thread0 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r2], 1, [%r3]; // <--
-    setp.eq.u32 %p1, %rank, 2;
-    @%p1 bra END;
WAIT:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [full], 0;
    @!%done bra WAIT;
END:
""",
    ),
    Bug(
        name="exit-before-the-second-commit-of-a-peer",
        source=REBUILT,
        what="the leader commits to two mbarriers of its peer, which waits for one of them and exits",
        code="cta-exit",
        target="sm_100a",
        grid=2,
        cluster=2,
        ptx=PAIR.replace("COUNT", "1")
        + """
    mov.u32 %r39, smem_a; @%thread0 st.bulk.weak.shared::cta [%r39], 16384, 0;
    mov.u32 %r39, smem_b; @%thread0 st.bulk.weak.shared::cta [%r39], 4096, 0;
    fence.proxy.async.shared::cta;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.b16 %rs0, 3;
    and.pred %p5, %leader, %thread0;
    @!%p5 bra ISSUED;
    tcgen05.mma.cta_group::2.kind::f16 [%tmem], %desc_a, %desc_b, %idesc, 0;
    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %rs0;
    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [ready], %rs0; // <--
ISSUED:
+READY:
+    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [ready], 0;
+    @!%done bra READY;
"""
        + PAIR_END,
    ),
    Bug(
        name="relaxed-wait-before-a-fence-of-its-cta",
        source=REBUILT,
        what="fence.acq_rel.cta behind the relaxed wait for words that the peer has stored here",
        code="narrow-scope",
        severity="advice",
        block=32,
        grid=2,
        cluster=2,
        ptx="""
    .shared .align 4 .b32 words[32];
    .shared .align 8 .b64 ready;
    @%thread0 mbarrier.init.shared.b64 [ready], 1;
    @%thread0 fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    shl.b32 %r0, %lane, 2;
    mov.u32 %r1, words;
    add.u32 %r0, %r0, %r1;
    mov.u32 %r2, ready;
    setp.eq.u32 %p0, %rank, 0;
    @%p0 bra READ;
    mapa.shared::cluster.u32 %r3, %r0, 0;
    mapa.shared::cluster.u32 %r4, %r2, 0;
    st.shared::cluster.u32 [%r3], %lane;
    bar.warp.sync 0xffffffff;
    @%lane0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];
    bra END;
READ:
    mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %done, [ready], 0;
    @!%done bra READ;
-    fence.acq_rel.cta;
+    fence.acq_rel.cluster;
    ld.shared.u32 %r5, [%r0]; // <--
END:
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
""",
    ),
    Bug(
        name="exit-while-peers-count",
        source=REBUILT,
        what="three CTAs count in the shared memory of the first, by generic addresses, and it does not wait for them",
        code="cta-exit",
        block=32,
        grid=4,
        cluster=4,
        ptx="""
    .shared .align 4 .b32 count;
    .reg .b64 %there;
    @%thread0 st.shared.u32 [count], 0;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.u64 %rd0, count;
    cvta.shared.u64 %rd0, %rd0;
    mapa.u64 %there, %rd0, 0;
    setp.ne.and.u32 %p0, %rank, 0, %thread0;
    @%p0 atom.relaxed.cluster.add.u32 %r1, [%there], 1; // <--
+    barrier.cluster.arrive.aligned;
+    barrier.cluster.wait.aligned;
""",
    ),
    Bug(
        name="global-partials-published-to-a-peer-by-a-cta-arrival",
        source=REBUILT,
        what="CTAs exchange partial sums in global memory; the arrivals at the peers' mbarriers have scope .cta",
        code="narrow-scope",
        block=64,
        grid=4,
        cluster=4,
        ptx="""
    .shared .align 8 .b64 ready;
    .reg .b64 %mine, %theirs;
    @%thread0 mbarrier.init.shared.b64 [ready], 1;
    @%thread0 fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    add.u32 %r0, %rank, 1;
    and.b32 %r0, %r0, 3;
    mov.u32 %r1, ready;
    mapa.shared::cluster.u32 %r1, %r1, %r0;
    mad.lo.u32 %r2, %rank, 64, %thread;
    mad.wide.u32 %mine, %r2, 8, %data;
    add.u32 %r2, %rank, 3;
    and.b32 %r2, %r2, 3;
    mad.lo.u32 %r2, %r2, 64, %thread;
    mad.wide.u32 %theirs, %r2, 8, %data;
    st.global.v2.u32 [%mine], {%thread, %rank};
    bar.sync 0;
-    @%thread0 mbarrier.arrive.shared::cluster.b64 _, [%r1];
+    @%thread0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];
READY:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [ready], 0;
    @!%done bra READY;
    ld.global.v2.u32 {%r3, %r4}, [%theirs]; // <--
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
""",
    ),
    Bug(
        name="one-rendezvous-for-a-ring-of-three",
        source="facebookexperimental/triton#3472",
        what="leader and follower meet at one mbarrier, while the follower may be two stages ahead: its arrivals mix",
        code="mbarrier-split",
        also=("deadlock",),
        grid=2,
        cluster=2,
        block=32,
        seeds=(0, 1, 2),
        ptx="""
    .shared .align 8 .b64 meet[3];
    .reg .b32 %k, %slot, %at, %parity, %leader_at;
    mov.u32 %r0, meet;
    @%thread0 mbarrier.init.shared.b64 [meet], 2;
    @%thread0 mbarrier.init.shared.b64 [meet+8], 2;
    @%thread0 mbarrier.init.shared.b64 [meet+16], 2;
    @%thread0 fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.u32 %k, 0;
STEP:
-    mov.u32 %slot, 0;
-    and.b32 %parity, %k, 1;
+    rem.u32 %slot, %k, 3;
+    div.u32 %parity, %k, 3;
+    and.b32 %parity, %parity, 1;
    mad.lo.u32 %at, %slot, 8, %r0;
    mapa.shared::cluster.u32 %leader_at, %at, 0;
    @%thread0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%leader_at]; // <--
    setp.ne.u32 %p1, %rank, 0;
    @%p1 bra NEXT;
MEET:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [%at], %parity;
    @!%done bra MEET;
NEXT:
    add.u32 %k, %k, 1;
    setp.lt.u32 %p0, %k, 3;
    @%p0 bra STEP;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
""",
    ),
]
