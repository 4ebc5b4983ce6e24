"""Pairs of CTAs: allocation of tensor memory, and arrivals from one to the other."""

from __future__ import annotations

from tests.bugs.bug import REBUILT, Bug
from tests.bugs.clusters import PAIR, PAIR_END

#: A two-CTA MMA by the leader on operands of zeros; both CTAs wait for it and load their half of D.
MULTIPLY_AND_LOAD = """
    mov.u32 %r39, smem_a; @%thread0 st.bulk.weak.shared::cta [%r39], 16384, 0;
    mov.u32 %r39, smem_b; @%thread0 st.bulk.weak.shared::cta [%r39], 4096, 0;
    fence.proxy.async.shared::cta;
    mov.u32 %r0, ready;
    mapa.shared::cluster.u32 %r1, %r0, 0;
    @%thread0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];
    @!%leader bra WAIT;
    @!%warp0 bra WAIT;
READY:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [ready], 0;
    @!%done bra READY;
    mov.b16 %rs0, 3;
    @!%thread0 bra WAIT;
    tcgen05.mma.cta_group::2.kind::f16 [%tmem], %desc_a, %desc_b, %idesc, 0;
    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %rs0;
WAIT:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [done], 0;
    @!%done bra WAIT;
    tcgen05.fence::after_thread_sync;
    shl.b32 %r2, %warp, 21;
    add.u32 %r2, %r2, %tmem;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%r2]; // <--
    tcgen05.wait::ld.sync.aligned;
    tcgen05.fence::before_thread_sync;
"""
DEALLOC = """
    tcgen05.fence::after_thread_sync;
    @%warp0 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %tmem, 64; // <--
"""

BUGS = [
    Bug(
        name="pair-frees-behind-a-barrier-of-its-cta",
        source=REBUILT,
        what="bar.sync in place of barrier.cluster before the two-CTA dealloc: the peer may still load its half",
        code="tmem-freed-in-use",
        severity="advice",
        grid=2,
        cluster=2,
        target="sm_100a",
        seeds=(0, 1, 2),
        ptx=PAIR.replace("COUNT", "2")
        + MULTIPLY_AND_LOAD
        + """
-    bar.sync 0;
+    barrier.cluster.arrive.aligned;
+    barrier.cluster.wait.aligned;
"""
        + DEALLOC,
    ),
    Bug(
        name="pair-frees-when-its-peer-has-arrived",
        source=REBUILT,
        what="the peer CTA arrives at the mbarrier that the dealloc waits for before it has loaded its half",
        code="tmem-freed-in-use",
        severity="advice",
        also=("cta-exit",),
        grid=2,
        cluster=2,
        target="sm_100a",
        seeds=(0, 1, 2),
        ptx=PAIR.replace("COUNT", "2")
        + """
    .shared .align 8 .b64 free;
    .reg .b32 %peer, %peer_free;
    @%thread0 mbarrier.init.shared.b64 [free], 128;
    @%thread0 fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    xor.b32 %peer, %rank, 1;
    mov.u32 %peer_free, free;
    mapa.shared::cluster.u32 %peer_free, %peer_free, %peer;
-    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%peer_free];
"""
        + MULTIPLY_AND_LOAD
        + """
+    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%peer_free];
    bar.sync 0;
FREE:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [free], 0;
    @!%done bra FREE;
"""
        + DEALLOC,
    ),
    Bug(
        name="leader-exits-before-its-peer-has-arrived",
        source="sgl-project/sglang#32907",
        what="a two-CTA kernel has no barrier at its end: the peer still arrives on an mbarrier of the exited leader",
        code="cta-exit",
        grid=2,
        cluster=2,
        target="sm_100a",
        ptx=PAIR.replace("COUNT", "2")
        + """
    .shared .align 8 .b64 empty;
    @%thread0 mbarrier.init.shared.b64 [empty], 256;
    @%thread0 fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
"""
        + MULTIPLY_AND_LOAD.replace("// <--", "")
        + """
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.u32 %r4, empty;
    mapa.shared::cluster.u32 %r4, %r4, 0;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4]; // <--
"""
        + DEALLOC.replace("// <--", "")
        + """
+    barrier.cluster.arrive.aligned;
+    barrier.cluster.wait.aligned;
""",
    ),
    Bug(
        name="trampoline-arrives-for-its-cta-alone",
        source="NVIDIA/cutlass#3324",
        what="ClusterBarrier has scope .cta: the leader may read what the peer copied by cp.async too early",
        code="narrow-scope",
        grid=2,
        cluster=2,
        target="sm_100a",
        ptx=PAIR.replace("COUNT", "2")
        + """
    .shared .align 8 .b64 copied;
    @%thread0 mbarrier.init.shared.b64 [copied], 128;
    mov.u32 %r39, smem_a; @%thread0 st.bulk.weak.shared::cta [%r39], 16384, 0;
    mov.u32 %r39, smem_b; @%thread0 st.bulk.weak.shared::cta [%r39], 4096, 0;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    mul.wide.u32 %rd0, %thread, 16;
    add.u64 %rd0, %rd0, %data;
    shl.b32 %r0, %thread, 4;
    mov.u32 %r1, smem_b;
    add.u32 %r1, %r1, %r0;
    cp.async.cg.shared.global [%r1], [%rd0], 16;
    cp.async.wait_all;
    fence.proxy.async.shared::cta;
    mbarrier.arrive.shared.b64 _, [copied];
    setp.eq.u32 %p3, %thread, 64;
    @!%p3 bra RELAYED;
COPIED:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [copied], 0;
    @!%done bra COPIED;
    mov.u32 %r0, ready;
    mapa.shared::cluster.u32 %r1, %r0, 0;
-    mbarrier.arrive.shared::cluster.b64 _, [%r1];
+    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];
RELAYED:
    @!%leader bra WAIT;
    @!%warp0 bra WAIT;
READY:
-    mbarrier.try_wait.parity.shared::cta.b64 %done, [ready], 0;
+    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [ready], 0;
    @!%done bra READY;
    mov.b16 %rs0, 3;
    @!%thread0 bra WAIT;
    tcgen05.mma.cta_group::2.kind::f16 [%tmem], %desc_a, %desc_b, %idesc, 0; // <--
    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %rs0;
"""
        + PAIR_END,
    ),
    Bug(
        name="relaxed-arrival-behind-a-fence-of-its-cta",
        source=REBUILT,
        what="fence.acq_rel.cta before the relaxed arrival at the leader, which reads the operand in a two-CTA MMA",
        code="narrow-scope",
        grid=2,
        cluster=2,
        target="sm_100a",
        ptx=PAIR.replace("COUNT", "2")
        + """
    mov.u32 %r39, smem_a; @%thread0 st.bulk.weak.shared::cta [%r39], 16384, 0;
    mov.u32 %r39, smem_b; @%thread0 st.bulk.weak.shared::cta [%r39], 4096, 0;
    @%thread0 st.shared.u32 [smem_b+64], 0x3F803F80;
    fence.proxy.async.shared::cta;
    mov.u32 %r0, ready;
    mapa.shared::cluster.u32 %r1, %r0, 0;
-    fence.acq_rel.cta;
+    fence.acq_rel.cluster;
    @%thread0 mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r1];
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
        name="pair-frees-before-its-peer-allocates",
        source="NVIDIA/cutlass#3435",
        what="a CTA of the pair frees its tensor memory before the peer has allocated: fails 25 of 25 times on a B300",
        code="pair-not-started",
        severity="advice",
        block=32,
        grid=2,
        cluster=2,
        target="sm_100a",
        ptx="""
    .shared .align 4 .b32 slot;
+    barrier.cluster.arrive.aligned;
+    barrier.cluster.wait.aligned;
    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 64; // <--
    tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
    ld.shared.b32 %r0, [slot];
    tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r0, 64; // <--
""",
    ),
    Bug(
        name="pair-allocates-behind-a-barrier-of-its-cta",
        source=REBUILT,
        what="the barrier before the two-CTA allocation is one of the CTA, not of the cluster",
        code="pair-not-started",
        severity="advice",
        grid=2,
        cluster=2,
        target="sm_100a",
        ptx="""
    .shared .align 4 .b32 slot;
    .shared .align 8 .b64 up;
    setp.eq.u32 %p0, %warp, 1;
    @%thread0 mbarrier.init.shared.b64 [up], 1;
    @%thread0 fence.mbarrier_init.release.cluster;
-    bar.sync 0;
+    barrier.cluster.arrive.release.aligned;
+    barrier.cluster.wait.acquire.aligned;
    @!%p0 bra A;
    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 512; // <--
    tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
A:
    tcgen05.fence::before_thread_sync;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %r0, [slot];
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @%p0 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r0, 512;
""",
    ),
    Bug(
        name="pair-allocates-between-arrive-and-wait",
        source=REBUILT,
        what="the allocation is between barrier.cluster.arrive and its wait",
        code="pair-not-started",
        severity="advice",
        grid=2,
        cluster=2,
        target="sm_100a",
        ptx="""
    .shared .align 4 .b32 slot;
    setp.eq.u32 %p0, %warp, 0;
    barrier.cluster.arrive.aligned;
+    barrier.cluster.wait.aligned;
    @!%p0 bra A;
    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 64; // <--
A:
-    barrier.cluster.wait.aligned;
    tcgen05.fence::before_thread_sync;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %r0, [slot];
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @%p0 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r0, 64;
""",
    ),
    Bug(
        name="pair-relinquishes-first",
        source=REBUILT,
        what="the permit to allocate is given up before the allocation",
        code="tmem-relinquished",
        grid=2,
        cluster=2,
        target="sm_100a",
        ptx="""
    .shared .align 4 .b32 slot;
    setp.eq.u32 %p0, %warp, 0;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @!%p0 bra A;
-    tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 64; // <--
+    tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
A:
    tcgen05.fence::before_thread_sync;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %r0, [slot];
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @%p0 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r0, 64;
""",
    ),
    Bug(
        name="pair-allocation-by-its-leader-alone",
        source=REBUILT,
        what="only the leader of the pair allocates, and waits for its peer forever",
        code="deadlock",
        grid=2,
        cluster=2,
        target="sm_100a",
        ptx="""
    .shared .align 4 .b32 slot;
    setp.eq.u32 %p0, %warp, 0;
    setp.eq.u32 %p1, %rank, 0;
-    and.pred %p0, %p0, %p1;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @!%p0 bra A;
    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 64; // <--
A:
    tcgen05.fence::before_thread_sync;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    tcgen05.fence::after_thread_sync;
    @%p0 ld.shared.b32 %r0, [slot];
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @%p0 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r0, 64;
""",
    ),
    Bug(
        name="pair-allocates-different-columns",
        source=REBUILT,
        what="the CTAs of a pair allocate different numbers of columns",
        code="tmem-allocation",
        grid=2,
        cluster=2,
        target="sm_100a",
        ptx="""
    .shared .align 4 .b32 slot;
    setp.eq.u32 %p0, %warp, 0;
    mov.u32 %r1, 64;
-    shl.b32 %r1, %r1, %rank;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @!%p0 bra A;
    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], %r1; // <--
A:
    tcgen05.fence::before_thread_sync;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %r0, [slot];
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @%p0 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r0, %r1;
""",
    ),
    Bug(
        name="leader-waits-for-its-pair-with-scope-cta",
        source=REBUILT,
        what="the leader polls with mbarrier.test_wait of scope .cta for both halves of the operands of its MMA",
        code="narrow-scope",
        grid=2,
        cluster=2,
        target="sm_100a",
        ptx=PAIR.replace("COUNT", "2")
        + """
    mov.u32 %r39, smem_a; @%thread0 st.bulk.weak.shared::cta [%r39], 16384, 0;
    mov.u32 %r39, smem_b; @%thread0 st.bulk.weak.shared::cta [%r39], 4096, 0;
    fence.proxy.async.shared::cta;
    mov.u32 %r0, ready;
    mapa.shared::cluster.u32 %r1, %r0, 0;
    @%thread0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];
    @!%leader bra WAIT;
    @!%warp0 bra WAIT;
READY:
-    mbarrier.test_wait.parity.shared::cta.b64 %done, [ready], 0;
+    mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 %done, [ready], 0;
    @!%done bra READY;
    mov.b16 %rs0, 3;
    @!%thread0 bra WAIT;
    tcgen05.mma.cta_group::2.kind::f16 [%tmem], %desc_a, %desc_b, %idesc, 0; // <--
    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %rs0;
"""
        + PAIR_END,
    ),
    Bug(
        name="commit-mask-of-the-leader-alone",
        source=REBUILT,
        what="the leader's commit multicasts to itself alone: the peer waits for its half without end",
        code="deadlock",
        target="sm_100a",
        grid=2,
        cluster=2,
        ptx="""
    .shared .align 8 .b64 done;
    .reg .b16 %mask;
    @%thread0 mbarrier.init.shared.b64 [done], 1;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    setp.eq.u32 %p0, %rank, 0;
    and.pred %p1, %p0, %thread0;
-    mov.b16 %mask, 1;
+    mov.b16 %mask, 3;
    @%p1 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %mask;
WAITING:
    mbarrier.try_wait.parity.shared.b64 %done, [done], 0; // <--
    @!%done bra WAITING;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
""",
    ),
]
