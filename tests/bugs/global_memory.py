"""Global memory: flags, fences, scopes, loads through the read-only path."""

from __future__ import annotations

from tests.bugs.bug import Bug

BUGS = [
    Bug(
        name="read-only-load-of-data-written-here",
        source="deepseek-ai/DeepEP#136",
        what="ld.global.nc reads a buffer that the same kernel writes: the line in L1 may be stale",
        code="nc-load",
        block=64,
        ptx="""
    setp.ne.u32 %p0, %warp, 0;
    @%p0 bra READ;
    @%lane0 st.global.u32 [%data], 7;
READ:
    bar.sync 0;
-    ld.global.nc.u32 %r0, [%data]; // <--
+    ld.global.u32 %r0, [%data];
    @%lane0 st.global.u32 [%data+64], %r0;
""",
    ),
    Bug(
        name="semaphore-released-without-a-fence",
        source="NVIDIA/Fuser#2391",
        what="split-K: a CTA sets the semaphore after its stores without __threadfence",
        code="missing-fence",
        also=("global-race",),
        block=32,
        grid=2,
        ptx="""
    setp.ne.u32 %p0, %cta, 0;
    @%p0 bra NEXT;
    @%thread0 st.global.u32 [%data+512], 7;
+    @%thread0 fence.acq_rel.gpu;
    @%thread0 st.relaxed.gpu.global.u32 [%data], 1; // <--
    bra END;
NEXT:
    ld.acquire.gpu.global.u32 %r0, [%data];
    setp.eq.u32 %p1, %r0, 0;
    @%p1 bra NEXT;
    ld.global.u32 %r1, [%data+512]; // <--
END:
""",
    ),
    Bug(
        name="spin-loop-with-relaxed-loads",
        source="NVIDIA/cutlass#3117",
        what="a spin loop on a flag of other CTAs loads it relaxed instead of acquire",
        code="missing-fence",
        severity="advice",
        block=32,
        grid=2,
        ptx="""
    setp.ne.u32 %p0, %cta, 0;
    @%p0 bra NEXT;
    @%thread0 st.global.u32 [%data+512], 7;
    @%thread0 st.release.gpu.global.u32 [%data], 1;
    bra END;
NEXT:
-    ld.relaxed.gpu.global.u32 %r0, [%data];
+    ld.acquire.gpu.global.u32 %r0, [%data];
    setp.eq.u32 %p1, %r0, 0;
    @%p1 bra NEXT;
    ld.global.u32 %r1, [%data+512]; // <--
END:
""",
    ),
    Bug(
        name="scales-read-without-a-mask",
        source="triton-lang/triton#10772",
        what="the tail of the scales is loaded without a mask: reads behind the array, NaNs in the result",
        code="out-of-bounds",
        block=32,
        ptx="""
    mul.wide.u32 %rd0, %lane, 4;
    add.u64 %rd0, %rd0, %data;
-    add.u64 %rd0, %rd0, 0x40000000;
    ld.global.u32 %r0, [%rd0]; // <--
""",
    ),
    Bug(
        name="group-barrier-without-syncthreads",
        source="flashinfer-ai/flashinfer#5251",
        what="thread 0 releases what all threads of the CTA have written, with no __syncthreads between",
        code="global-race",
        grid=2,
        ptx="""
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    setp.eq.u32 %p0, %cta, 0;
    @!%p0 bra OTHER;
    st.global.u32 [%rd0+512], 7;
+    bar.sync 0;
    @%thread0 fence.acq_rel.gpu;
    @%thread0 red.relaxed.gpu.global.add.u32 [%data], 1;
    bra END;
OTHER:
    @!%thread0 bra GO;
POLL:
    ld.acquire.gpu.global.u32 %r4, [%data];
    setp.lt.u32 %p1, %r4, 1;
    @%p1 bra POLL;
GO:
    bar.sync 0;
    ld.global.u32 %r5, [%rd0+512]; // <--
END:
""",
    ),
    Bug(
        name="read-only-load-of-the-previous-grid",
        source="ggml-org/llama.cpp#24030",
        what="`__restrict__` makes read-only loads, which may pass the wait for the previous kernel (PDL): races",
        code="nc-load",
        before="""
    griddepcontrol.launch_dependents;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %thread;
""",
        ptx="""
    griddepcontrol.wait;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
-    ld.global.nc.u32 %r0, [%rd0]; // <--
+    ld.global.u32 %r0, [%rd0];
    add.u32 %r0, %r0, 1;
    st.global.u32 [%rd0+1024], %r0;
""",
    ),
    Bug(
        name="no-wait-for-the-previous-grid",
        source="ggml-org/llama.cpp#23690",
        what="a new kernel is launched as a programmatic dependent (PDL) and does not wait: garbled output",
        code="grid-race",
        before="""
    griddepcontrol.launch_dependents;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], %thread;
""",
        ptx="""
+    griddepcontrol.wait;
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    ld.global.u32 %r0, [%rd0]; // <--
    add.u32 %r0, %r0, 1;
    st.global.u32 [%rd0+1024], %r0;
""",
    ),
]
