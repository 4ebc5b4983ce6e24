"""Proxy fences between threads and the asynchronous copies."""

from __future__ import annotations

from tests.bugs.bug import REBUILT, Bug

#: A stage of 256 bytes filled by a bulk copy of one lane, for which all threads have waited.
STAGE = """
    .shared .align 128 .b8 stage[256];
    .shared .align 8 .b64 full;
    .reg .b32 %own;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
    @%thread0 fence.mbarrier_init.release.cluster;
    bar.sync 0;
    shl.b32 %r0, %lane, 3;
    mov.u32 %r1, stage;
    add.u32 %own, %r1, %r0;
    @%thread0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;
    @%thread0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [stage], [%data], 256, [full];
FILLED:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra FILLED;
"""
AGAIN = """
REFILLED:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 1;
    @!%done bra REFILLED;
"""
REFILL = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [stage], [%data], 256, [full];"
STORE = "cp.async.bulk.global.shared::cta.bulk_group [%data], [stage], 256;"

BUGS = [
    Bug(
        name="stage-refilled-by-the-reading-warp",
        source="deepseek-ai/DeepEP#642",
        what="a warp reads a stage by ld.shared and refills it by TMA: the load may not be done; wrong data on NVL72",
        code="missing-proxy-fence",
        severity="advice",
        block=32,
        ptx=STAGE
        + f"""
    ld.shared.v2.u32 {{%r2, %r3}}, [%own];
+    fence.proxy.async.shared::cta;
    bar.warp.sync 0xffffffff;
    @%thread0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;
    @%thread0 {REFILL} // <--
"""
        + AGAIN,
    ),
    Bug(
        name="stage-refilled-after-syncthreads",
        source="NVIDIA/TransformerEngine#2695",
        what="shared memory is read, then TMA loads the next stage there: __syncthreads but no proxy fence between",
        code="missing-proxy-fence",
        severity="advice",
        ptx=STAGE
        + f"""
    ld.shared.v2.u32 {{%r2, %r3}}, [%own];
+    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%thread0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;
    @%thread0 {REFILL} // <--
"""
        + AGAIN,
    ),
    Bug(
        name="combine-buffer-reused",
        source="deepseek-ai/DeepGEMM#389",
        what="the combine loop of the mega MoE reads a stage and a later TMA load refills it in the same warp",
        code="missing-proxy-fence",
        severity="advice",
        block=32,
        ptx=STAGE
        + f"""
    mov.u32 %r8, 0;
STEP:
    ld.shared.v2.u32 {{%r2, %r3}}, [%own];
    add.u32 %r4, %r2, %r3;
+    fence.proxy.async.shared::cta;
    bar.warp.sync 0xffffffff;
    @%thread0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;
    @%thread0 {REFILL} // <--
    add.u32 %r8, %r8, 1;
    and.b32 %r9, %r8, 1;
WAIT:
    mbarrier.try_wait.parity.shared.b64 %done, [full], %r9;
    @!%done bra WAIT;
    setp.lt.u32 %p0, %r8, 2;
    @%p0 bra STEP;
""",
    ),
    Bug(
        name="state-stored-without-proxy-fence",
        source="MoonshotAI/FlashKDA#24",
        what="threads write the state to shared memory, __syncthreads, then a TMA store sends it: no fence.proxy.async",
        code="missing-proxy-fence",
        ptx=STAGE
        + f"""
    setp.eq.u32 %p0, %warp, 0;
    @%p0 st.shared.v2.u32 [%own], {{%lane, %lane}};
+    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%thread0 {STORE} // <--
    @%thread0 cp.async.bulk.commit_group;
    @%thread0 cp.async.bulk.wait_group 0;
""",
    ),
    Bug(
        name="tma-store-right-after-the-stores",
        source="NVIDIA/Fuser#4814",
        what="the code generator puts no proxy fence between the stores of the epilogue and its TMA store",
        code="missing-proxy-fence",
        block=32,
        ptx=STAGE
        + f"""
    bar.warp.sync 0xffffffff;
    st.shared.v2.u32 [%own], {{%lane, %thread}};
+    fence.proxy.async.shared::cta;
    bar.warp.sync 0xffffffff;
    @%thread0 {STORE} // <--
    @%thread0 cp.async.bulk.commit_group;
    @%thread0 cp.async.bulk.wait_group.read 0;
""",
    ),
    Bug(
        name="mbarrier-init-not-fenced",
        source="MoonshotAI/FlashKDA#25",
        what="three mbarriers are initialized without fence.mbarrier_init before TMA completes on them",
        code="mbarrier-init-proxy",
        severity="advice",
        ptx="""
    .shared .align 128 .b8 stage[256];
    .shared .align 8 .b64 full;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
+    @%thread0 fence.mbarrier_init.release.cluster;
    bar.sync 0;
    @%thread0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;
    @%thread0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [stage], [%data], 256, [full]; // <--
FILLED:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra FILLED;
""",
    ),
    Bug(
        name="mbarrier-init-fenced-by-another-thread",
        source="mlc-ai/TIRx-kernels#9",
        what="fence.mbarrier_init is executed by another warp than the one that initializes the mbarriers",
        code="mbarrier-init-proxy",
        severity="advice",
        ptx="""
    .shared .align 128 .b8 stage[256];
    .shared .align 8 .b64 full;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
-    setp.eq.u32 %p0, %thread, 32;
-    @%p0 fence.mbarrier_init.release.cluster;
+    @%thread0 fence.mbarrier_init.release.cluster;
    bar.sync 0;
    @%thread0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;
    @%thread0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [stage], [%data], 256, [full]; // <--
FILLED:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra FILLED;
""",
    ),
    Bug(
        name="store-issued-by-a-whole-warp",
        source="mlc-ai/TIRx-kernels#202",
        what="a TMA store is issued by all 32 lanes of the warp instead of one",
        code="duplicate-copy",
        severity="advice",
        block=32,
        ptx=STAGE
        + f"""
    bar.warp.sync 0xffffffff;
-    {STORE} // <--
-    cp.async.bulk.commit_group;
-    cp.async.bulk.wait_group 0;
+    @%thread0 {STORE}
+    @%thread0 cp.async.bulk.commit_group;
+    @%thread0 cp.async.bulk.wait_group 0;
""",
    ),
    Bug(
        name="reduction-issued-by-a-whole-warp",
        source="mlc-ai/TIRx-kernels#202",
        what="the same of a reduction: each of 32 lanes adds the same tile",
        code="duplicate-copy",
        block=32,
        ptx=STAGE
        + """
    bar.warp.sync 0xffffffff;
-    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%data], [stage], 256; // <--
-    cp.async.bulk.commit_group;
-    cp.async.bulk.wait_group 0;
+    @%thread0 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%data], [stage], 256;
+    @%thread0 cp.async.bulk.commit_group;
+    @%thread0 cp.async.bulk.wait_group 0;
""",
    ),
    Bug(
        name="stage-refilled-while-a-store-reads-it",
        source="deepseek-ai/DeepEP#657",
        what="wait_group 1 leaves the store of this very stage in flight when the next load overwrites it",
        code="shared-race",
        block=32,
        ptx=STAGE
        + f"""
    bar.warp.sync 0xffffffff;
    @!%thread0 bra END;
    {STORE}
    cp.async.bulk.commit_group;
-    cp.async.bulk.wait_group.read 1;
+    cp.async.bulk.wait_group.read 0;
    mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;
-    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [stage], [%matrix], 256, [full]; // <--
+    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [stage], [%matrix], 256, [full];
LAST:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 1;
    @!%done bra LAST;
    cp.async.bulk.wait_group 0;
END:
""",
    ),
    Bug(
        name="bulk-store-in-no-bulk-group",
        source="triton-lang/triton#5738",
        what="TMA stores are committed by cp.async.commit_group, so that cp.async.bulk.wait_group waits for nothing",
        code="shared-race",
        also=("global-race",),
        block=32,
        ptx=STAGE
        + f"""
    bar.warp.sync 0xffffffff;
    @!%thread0 bra END;
    {STORE}
-    cp.async.commit_group;
+    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
    st.shared.u32 [stage], 5; // <--
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
END:
""",
    ),
    Bug(
        name="stored-tile-read-after-a-wait-for-its-source",
        source=REBUILT,
        what="all threads load what a bulk store wrote, but wait_group.read waited until it had read its source",
        code="global-race",
        ptx=STAGE
        + f"""
    @%thread0 {STORE}
    @%thread0 cp.async.bulk.commit_group;
-    @%thread0 cp.async.bulk.wait_group.read 0;
+    @%thread0 cp.async.bulk.wait_group 0;
    bar.sync 0;
    ld.global.u32 %r2, [%data]; // <--
""",
    ),
    Bug(
        name="epilogue-begins-with-stage-0-in-each-tile",
        source="NVIDIA/cutlass#3636",
        what="the epilogue counts no tiles: each begins with stage 0 of a ring of three, whose store may be in flight",
        code="shared-race",
        target="sm_100a",
        ptx="""
    .shared .align 16 .b8 ring[1536];
    mov.u32 %r0, ring;
    mov.u32 %r1, 0;
    mov.u32 %r2, 0;
STEP:
    mad.lo.u32 %r3, %r2, 512, %r0;
    mad.lo.u32 %r4, %thread, 4, %r3;
    add.u32 %r5, %thread, %r1;
    st.shared.u32 [%r4], %r5; // <--
    fence.proxy.async.shared::cta;
    bar.sync 0;
    mad.wide.u32 %rd0, %r1, 512, %data;
    @%thread0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r3], 512; // <--
    @%thread0 cp.async.bulk.commit_group;
    @%thread0 cp.async.bulk.wait_group.read 2;
    bar.sync 0;
    add.u32 %r1, %r1, 1;
    add.u32 %r2, %r2, 1;
    setp.eq.u32 %p0, %r2, 3;
    @%p0 mov.u32 %r2, 0;
-    and.b32 %r6, %r1, 3;
-    setp.eq.u32 %p0, %r6, 0;
-    @%p0 mov.u32 %r2, 0;
    setp.lt.u32 %p0, %r1, 12;
    @%p0 bra STEP;
    @%thread0 cp.async.bulk.wait_group 0;
""",
    ),
]
