"""Clusters: what CTAs do to each other's shared memory."""

from __future__ import annotations

from tests.bugs.bug import Bug

MULTICAST = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"

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
    @%thread0 st.bulk.weak.shared::cta [smem_a], 16384, 0;
    @%thread0 st.bulk.weak.shared::cta [smem_b], 4096, 0;
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
]
