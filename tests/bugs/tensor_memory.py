"""tcgen05: matrix products, tensor memory, commits and waits."""

from __future__ import annotations

from tests.bugs.bug import REBUILT, Bug

#: Operands of zeros at smem_a and smem_b, an mbarrier `done`, and 64 columns of tensor memory at %tmem. %desc_a,
#: %desc_b and %idesc describe a product of 128 x 32 x 16 in bf16.
BEGIN = """
    .shared .align 1024 .b8 smem_a[16384];
    .shared .align 1024 .b8 smem_b[4096];
    .shared .align 8 .b64 done;
    .shared .align 8 .b64 empty;
    .shared .align 4 .b32 slot;
    .reg .b64 %desc_a, %desc_b;
    .reg .b32 %idesc, %tmem, %row;
    .reg .pred %warp0;
    mov.b64 %desc_a, 0x4000404000010040;
    mov.b64 %desc_b, 0x4000404000010440;
    mov.b32 %idesc, 0x8080490;
    setp.eq.u32 %warp0, %warp, 0;
    mov.u32 %r39, smem_a; @%thread0 st.bulk.weak.shared::cta [%r39], 16384, 0;
    mov.u32 %r39, smem_b; @%thread0 st.bulk.weak.shared::cta [%r39], 4096, 0;
    @%thread0 mbarrier.init.shared.b64 [done], 1; // <--
    @%thread0 mbarrier.init.shared.b64 [empty], 1;
    fence.proxy.async.shared::cta;
    @!%warp0 bra ALLOCATED;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;
ALLOCATED:
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %tmem, [slot];
    shl.b32 %row, %warp, 21;
    add.u32 %row, %row, %tmem;
"""
#: All warps are done with tensor memory.
END = """
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    @!%warp0 bra FREED;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tmem, 64;
FREED:
"""
MMA = "tcgen05.mma.cta_group::1.kind::f16 [%tmem], %desc_a, %desc_b, %idesc, 0;"
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];"
WAIT = """
FINISHED:
    mbarrier.try_wait.parity.shared.b64 %done, [done], 0;
    @!%done bra FINISHED;
"""
#: The registers of a tcgen05.st of eight equal columns.
EIGHT = "{" + ", ".join(["%r0"] * 8) + "}"
#: What follows the stores of the scale factors at %r1 and %r3.
SCALED = (
    """
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    @!%thread0 bra WAIT;
    tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%tmem], %desc_a, %desc_b, %idesc, [%r1], [%r3], 0; // <--
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
WAIT:
"""
    + WAIT
    + END
)

BUGS = [
    Bug(
        name="scores-added-to-the-exponentials",
        source=REBUILT,
        what="the scores of the next block take the place of P, and their first MMA adds to what is there",
        code="operand-cells",
        target="sm_100a",
        ptx=BEGIN
        + f"""
    mov.u32 %r0, 0;
    add.u32 %r1, %row, 8;
    add.u32 %r2, %row, 16;
    add.u32 %r3, %row, 24;
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%row], {EIGHT};
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r1], {EIGHT};
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r2], {EIGHT};
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r3], {EIGHT};
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    add.u32 %r4, %tmem, 32;
    @%thread0 tcgen05.mma.cta_group::1.kind::f16 [%r4], [%tmem], %desc_b, %idesc, 0;
-    @%thread0 tcgen05.mma.cta_group::1.kind::f16 [%tmem], %desc_a, %desc_b, %idesc, 1; // <--
+    @%thread0 tcgen05.mma.cta_group::1.kind::f16 [%tmem], %desc_a, %desc_b, %idesc, 0;
    @%thread0 {COMMIT}
"""
        + WAIT
        + END,
    ),
    Bug(
        name="chunk-of-p-that-is-not-stored",
        source=REBUILT,
        what="P takes the place of the scores, but one chunk of it is not stored: the MMA multiplies f32 as bf16",
        code="operand-cells",
        target="sm_100a",
        ptx=BEGIN
        + f"""
    @%thread0 {MMA}
    @%thread0 {COMMIT}
"""
        + WAIT
        + f"""
    tcgen05.fence::after_thread_sync;
    mov.u32 %r0, 0;
    add.u32 %r1, %row, 8;
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%row], {EIGHT};
+    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r1], {EIGHT};
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    add.u32 %r4, %tmem, 32;
    add.u32 %r5, %tmem, 8;
    @!%thread0 bra SECOND;
    tcgen05.mma.cta_group::1.kind::f16 [%r4], [%tmem], %desc_b, %idesc, 0;
    tcgen05.mma.cta_group::1.kind::f16 [%r4], [%r5], %desc_b, %idesc, 1; // <--
    {COMMIT}
SECOND:
    mbarrier.try_wait.parity.shared.b64 %done, [done], 1;
    @!%done bra SECOND;
"""
        + END,
    ),
    Bug(
        name="commit-by-another-thread",
        source="mlc-ai/TIRx-kernels#53",
        what="tcgen05.commit by another thread than the one that issued the MMAs: it tracks only its own thread",
        code="tensor-race",
        note="rebuilt from a description of the thread",
        target="sm_100a",
        ptx=BEGIN
        + f"""
    @%thread0 {MMA}
-    setp.eq.u32 %p1, %thread, 32;
-    @%p1 {COMMIT}
+    @%thread0 {COMMIT}
"""
        + WAIT
        + """
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%row]; // <--
    tcgen05.wait::ld.sync.aligned;
"""
        + END,
    ),
    Bug(
        name="commit-before-the-last-mma",
        source=REBUILT,
        what="tcgen05.commit comes before the last MMA of the tile, so that nobody waits for that one",
        code="tensor-race",
        target="sm_100a",
        ptx=BEGIN
        + f"""
    @%thread0 {MMA}
-    @%thread0 {COMMIT}
    @%thread0 tcgen05.mma.cta_group::1.kind::f16 [%tmem], %desc_a, %desc_b, %idesc, 1;
+    @%thread0 {COMMIT}
"""
        + WAIT
        + """
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%row]; // <--
    tcgen05.wait::ld.sync.aligned;
"""
        + END,
    ),
    Bug(
        name="wait-for-a-parity-that-has-passed",
        source="tile-ai/tilelang#3087",
        what="the wait after the MMA names a parity that has completed, so the next copy overwrites what the MMA reads",
        code="mbarrier-parity",
        also=("tmem-freed-in-use", "deadlock"),
        target="sm_100a",
        ptx=BEGIN
        + f"""
    @%thread0 {MMA}
    @%thread0 {COMMIT}
FINISHED:
-    mbarrier.try_wait.parity.shared.b64 %done, [done], 1; // <--
+    mbarrier.try_wait.parity.shared.b64 %done, [done], 0;
    @!%done bra FINISHED;
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r0}}, [%row]; // <--
    tcgen05.wait::ld.sync.aligned;
"""
        + END,
    ),
    Bug(
        name="scales-overlap-the-accumulator",
        source="triton-lang/triton#6050",
        what="the lowering of the scaled MMA picks the wrong shape for the scale factors in tensor memory",
        code="tmem-overlap",
        also=("tensor-race",),
        target="sm_100a",
        ptx=BEGIN
        + """
    mov.b32 %idesc, 0x8880000;
-    add.u32 %r1, %tmem, 24;
-    add.u32 %r2, %row, 24;
+    add.u32 %r1, %tmem, 32;
+    add.u32 %r2, %row, 32;
    add.u32 %r3, %r1, 4;
    mov.b32 %r4, 0x7F7F7F7F;
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r2], {%r4, %r4, %r4, %r4, %r4, %r4, %r4, %r4};
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    @!%thread0 bra WAIT;
    tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%tmem], %desc_a, %desc_b, %idesc, [%r1], [%r3], 0; // <--
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
WAIT:
"""
        + WAIT
        + END,
    ),
    Bug(
        name="next-mma-without-a-fence-after-the-wait",
        source=REBUILT,
        what="the epilogue has loaded the accumulator and arrived; the next tile's MMA follows the wait, no fence",
        code="missing-tcgen05-fence",
        severity="advice",
        target="sm_100a",
        ptx=BEGIN
        + f"""
    .shared .align 8 .b64 free;
    @%thread0 mbarrier.init.shared.b64 [free], 128;
    bar.sync 0;
    @%thread0 {MMA}
    @%thread0 {COMMIT}
"""
        + WAIT
        + """
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%row];
    tcgen05.wait::ld.sync.aligned;
    tcgen05.fence::before_thread_sync;
    mbarrier.arrive.shared.b64 _, [free];
    @!%thread0 bra NEXT;
FREE:
    mbarrier.try_wait.parity.shared.b64 %done, [free], 0;
    @!%done bra FREE;
+    tcgen05.fence::after_thread_sync;
"""
        + f"""
    {MMA} // <--
    {COMMIT}
NEXT:
    mbarrier.try_wait.parity.shared.b64 %done, [done], 1;
    @!%done bra NEXT;
"""
        + END,
    ),
    Bug(
        name="next-mma-behind-loads-without-a-fence",
        source=REBUILT,
        what="the same with bar.sync, where the warps that have loaded execute no fence before it",
        code="missing-tcgen05-fence",
        severity="advice",
        target="sm_100a",
        ptx=BEGIN
        + f"""
    @%thread0 {MMA}
    @%thread0 {COMMIT}
"""
        + WAIT
        + f"""
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r0}}, [%row];
    tcgen05.wait::ld.sync.aligned;
+    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    @%thread0 {MMA} // <--
    @%thread0 {COMMIT}
NEXT:
    mbarrier.try_wait.parity.shared.b64 %done, [done], 1;
    @!%done bra NEXT;
"""
        + END,
    ),
    Bug(
        name="scales-overlap-each-other",
        source=REBUILT,
        what="the scale factors of A take a column for each 32 rows, and those of B begin in the last of them",
        code="tmem-overlap",
        target="sm_100a",
        ptx=BEGIN
        + """
    mov.b32 %idesc, 0x8880000;
    add.u32 %r1, %tmem, 32;
    add.u32 %r2, %row, 32;
-    add.u32 %r3, %r1, 3;
+    add.u32 %r3, %r1, 4;
    mov.b32 %r4, 0x7F7F7F7F;
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r2], {%r4, %r4, %r4, %r4, %r4, %r4, %r4, %r4};
"""
        + SCALED,
    ),
    Bug(
        name="scales-of-b-over-those-of-a",
        source=REBUILT,
        what="both scale factors are stored to the same columns: those of B replace those of A",
        code="tmem-overlap",
        target="sm_100a",
        ptx=BEGIN
        + """
    mov.b32 %idesc, 0x8880000;
    add.u32 %r1, %tmem, 32;
    add.u32 %r2, %row, 32;
    mov.b32 %r4, 0x7F7F7F7F;
    tcgen05.st.sync.aligned.32x32b.x4.b32 [%r2], {%r4, %r4, %r4, %r4};
    tcgen05.wait::st.sync.aligned;
    mov.u32 %r3, %r1;
+    add.u32 %r3, %r3, 4;
+    add.u32 %r2, %r2, 4;
    mov.b32 %r4, 0x80808080;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%r4};
"""
        + SCALED,
    ),
    Bug(
        name="scales-overlap-a",
        source=REBUILT,
        what="A is in tensor memory, and the scale factors of A begin in its last column",
        code="tmem-overlap",
        target="sm_100a",
        ptx=BEGIN
        + """
    mov.b32 %idesc, 0x8880000;
-    add.u32 %r1, %tmem, 39;
+    add.u32 %r1, %tmem, 40;
    add.u32 %r3, %r1, 4;
    add.u32 %r2, %row, 32;
    mov.b32 %r5, 0;
    mov.b32 %r4, 0x7F7F7F7F;
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r2], {%r5, %r5, %r5, %r5, %r5, %r5, %r5, %r5};
    add.u32 %r2, %r2, 8;
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r2], {%r4, %r4, %r4, %r4, %r4, %r4, %r4, %r4};
    add.u32 %r2, %tmem, 32;
"""
        + SCALED.replace("[%tmem], %desc_a", "[%tmem], [%r2]"),
    ),
    Bug(
        name="aliased-columns-stored-while-read",
        source="facebookexperimental/triton#1992",
        what="P aliases half of S in tensor memory: a fast warp stores P over what a slow warp has yet to read",
        code="tensor-race",
        block=256,
        target="sm_100a",
        ptx=BEGIN
        + f"""
    and.b32 %r1, %warp, 3;
    shl.b32 %row, %r1, 21;
    add.u32 %row, %row, %tmem;
    @%thread0 {MMA}
    @%thread0 {COMMIT}
"""
        + WAIT
        + """
    tcgen05.fence::after_thread_sync;
    setp.ge.u32 %p1, %warp, 4;
    @%p1 bra STORE;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%row];
    tcgen05.wait::ld.sync.aligned;
+    tcgen05.fence::before_thread_sync;
+    bar.sync 1, 256;
    bra STORED;
STORE:
+    bar.sync 1, 256;
+    tcgen05.fence::after_thread_sync;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%row], {%thread}; // <--
    tcgen05.wait::st.sync.aligned;
STORED:
"""
        + END,
    ),
    Bug(
        name="operand-stored-without-proxy-fence",
        source="sgl-project/sglang#39124",
        what="threads store an operand that tcgen05.mma reads through the async proxy; only __syncthreads in between",
        code="missing-proxy-fence",
        target="sm_100a",
        ptx=BEGIN
        + f"""
    shl.b32 %r0, %thread, 4;
    mov.u32 %r1, smem_a;
    add.u32 %r1, %r1, %r0;
    st.shared.v4.b32 [%r1], {{%thread, %thread, %thread, %thread}};
+    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%thread0 {MMA} // <--
    @%thread0 {COMMIT}
"""
        + WAIT
        + END,
    ),
    Bug(
        name="stage-reused-while-cp-reads",
        source="mlc-ai/TIRx-kernels#42",
        what="the transposer stores into a stage of scale factors that the preceding tcgen05.cp may still read",
        code="shared-race",
        also=("tmem-freed-in-use",),
        target="sm_100a",
        ptx=BEGIN
        + f"""
    @%thread0 tcgen05.cp.cta_group::1.128x256b [%tmem], %desc_a;
    @%thread0 {COMMIT}
"""
        + WAIT.replace("\nFINISHED", "\n+FINISHED").replace("\n    ", "\n+    ")
        + """
    @%thread0 st.shared.u32 [smem_a], 1; // <--
"""
        + "\n".join("-" + line for line in WAIT.strip("\n").splitlines())
        + END,
    ),
    Bug(
        name="slot-released-before-its-load-is-done",
        source="vllm-project/flash-attention#182",
        what="the slot is released without tcgen05.wait::ld; a use of the registers does not order load and next MMA",
        code="tensor-race",
        target="sm_100a",
        ptx=BEGIN
        + f"""
    setp.ne.u32 %p1, %thread, 0;
    @%thread0 {MMA}
    @%thread0 {COMMIT}
"""
        + WAIT
        + f"""
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r0}}, [%row]; // <--
+    tcgen05.wait::ld.sync.aligned;
    add.u32 %r1, %r0, 1; // <--
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0+64], %r1; // <--
    tcgen05.fence::before_thread_sync;
    bar.sync 1, 128;

    @%p1 bra SECOND;
    tcgen05.fence::after_thread_sync;
    {MMA} // <--
    {COMMIT}
SECOND:
    mbarrier.try_wait.parity.shared.b64 %done, [done], 1;
    @!%done bra SECOND;
"""
        + END,
    ),
    Bug(
        name="columns-freed-before-half-the-lanes-use-them",
        source="NVIDIA/cutlass#3652",
        what="no tcgen05.wait::ld before the arrival that lets the MMA warp free the columns; half the lanes use none",
        code="missing-tcgen05-wait",
        severity="advice",
        target="sm_100a",
        ptx=BEGIN
        + f"""
    @%thread0 {MMA}
    @%thread0 {COMMIT}
"""
        + WAIT
        + """
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%row];
+    tcgen05.wait::ld.sync.aligned;
    setp.lt.u32 %p1, %lane, 16;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    @%p1 st.global.u32 [%rd0], %r0; // <--
"""
        + END,
    ),
    Bug(
        name="operand-columns-reused-without-empty-barrier",
        source="mlc-ai/TIRx-kernels#53",
        what="the softmax warps store the next P into the columns from which an MMA may still read the last one",
        code="tensor-race",
        also=("tmem-freed-in-use",),
        note="rebuilt from a description of the thread",
        target="sm_100a",
        ptx=BEGIN
        + f"""
    mov.u32 %r0, 0;
    add.u32 %r9, %tmem, 32;
    add.u32 %r8, %row, 32;
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r8], {{%r0,%r0,%r0,%r0,%r0,%r0,%r0,%r0}};
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    @%thread0 tcgen05.mma.cta_group::1.kind::f16 [%tmem], [%r9], %desc_b, %idesc, 0; // <--
    @%thread0 {COMMIT}
+FINISHED:
+    mbarrier.try_wait.parity.shared.b64 %done, [done], 0;
+    @!%done bra FINISHED;
+    tcgen05.fence::after_thread_sync;
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r8], {{%r0,%r0,%r0,%r0,%r0,%r0,%r0,%r0}}; // <--
    tcgen05.wait::st.sync.aligned;
-FINISHED:
-    mbarrier.try_wait.parity.shared.b64 %done, [done], 0;
-    @!%done bra FINISHED;
"""
        + END,
    ),
    Bug(
        name="freed-while-another-warp-loads",
        source="mlc-ai/TIRx-kernels#19",
        what="one warp frees the tensor memory while others still load their results from it",
        code="tmem-freed-in-use",
        note="rebuilt from a description of the thread",
        target="sm_100a",
        ptx=BEGIN
        + f"""
    @%thread0 {MMA}
    @%thread0 {COMMIT}
"""
        + WAIT
        + """
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%row]; // <--
    tcgen05.wait::ld.sync.aligned;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %r0;
    tcgen05.fence::before_thread_sync;
+    bar.sync 0;
    @!%warp0 bra FREED;
    tcgen05.fence::after_thread_sync;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tmem, 64; // <--
FREED:
""",
    ),
    Bug(
        name="stored-columns-published-too-early",
        source="NVIDIA/cutlass#2687",
        what="no tcgen05.wait::st between the stores to tensor memory and the commit that hands them to the MMA",
        code="tensor-race",
        also=("tmem-freed-in-use",),
        target="sm_100a",
        ptx=BEGIN
        + f"""
    add.u32 %r9, %tmem, 32;
    add.u32 %r8, %row, 32;
    mov.u32 %r0, 0;
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r8], {{%r0, %r0, %r0, %r0, %r0, %r0, %r0, %r0}}; // <--
+    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    @%thread0 tcgen05.mma.cta_group::1.kind::f16 [%tmem], [%r9], %desc_b, %idesc, 0; // <--
    @%thread0 {COMMIT}
"""
        + WAIT
        + END,
    ),
    Bug(
        name="stage-reused-after-a-commit-of-another-thread",
        source=REBUILT,
        what="another warp commits the MMAs, and all threads refill the operand once that commit has completed",
        code="shared-race",
        target="sm_100a",
        ptx=BEGIN
        + f"""
    @%thread0 {MMA}
-    setp.eq.u32 %p2, %thread, 32;
-    @%p2 {COMMIT}
+    @%thread0 {COMMIT}
"""
        + WAIT
        + """
    mov.u32 %r1, smem_a;
    shl.b32 %r2, %thread, 2;
    add.u32 %r1, %r1, %r2;
    st.shared.u32 [%r1], 7; // <--
"""
        + END,
    ),
    Bug(
        name="columns-freed-before-registers-are-stored",
        source=REBUILT,
        what="the epilogue frees the columns after its barrier and stores the registers of tcgen05.ld after that",
        code="tmem-freed-in-use",
        target="sm_100a",
        ptx=BEGIN
        + f"""
    @%thread0 {MMA}
    @%thread0 {COMMIT}
"""
        + WAIT
        + """
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%row];
+    tcgen05.wait::ld.sync.aligned;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    @!%warp0 bra FREED;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tmem, 64; // <--
FREED:
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %r0;
""",
    ),
    Bug(
        name="stride-takes-tcgen05-behind-its-operand",
        source=REBUILT,
        what="the descriptor of B has twice its stride: the MMA reads the mbarriers and the staging tile after it",
        code="operand-region",
        target="sm_100a",
        ptx=BEGIN
        + f"""
    .shared .align 1024 .b8 staging[8192];
-    mov.b64 %desc_b, 0x4000408000010440;
    mov.u32 %r39, staging; @%thread0 st.bulk.weak.shared::cta [%r39], 8192, 0;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%thread0 {MMA} // <--
    @%thread0 {COMMIT}
"""
        + WAIT
        + END,
    ),
    Bug(
        name="dq-over-scores-that-are-still-read",
        source="facebookexperimental/triton#2024",
        what="dQ takes the place of the scores, and its MMA does not wait until all warps have loaded them",
        code="tensor-race",
        target="sm_100a",
        ptx=BEGIN
        + f"""
    @%thread0 {MMA}
    @%thread0 {COMMIT}
"""
        + WAIT
        + f"""
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x8.b32 {{%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}}, [%row]; // <--
    tcgen05.wait::ld.sync.aligned;
+    tcgen05.fence::before_thread_sync;
    mad.wide.u32 %rd0, %thread, 4, %data;
    st.global.u32 [%rd0], %r10;
+    bar.sync 0;
+    tcgen05.fence::after_thread_sync;
    @%thread0 {MMA} // <--
    @%thread0 {COMMIT.replace("done", "empty")}
SECOND:
    mbarrier.try_wait.parity.shared.b64 %done, [empty], 0;
    @!%done bra SECOND;
"""
        + END,
    ),
]
