"""Reductions and counters: accesses that each read and change a word, and plain ones beside them."""

from __future__ import annotations

from tests.bugs.bug import REBUILT, Bug

BUGS = [
    Bug(
        name="cta-counted-before-its-warps-have-added",
        source="NVIDIA/raft#3041",
        what="thread 0 counts its CTA as finished before the other warps have added to the histogram: no __syncthreads",
        code="global-race",
        block=64,
        grid=3,
        ptx="""
    .reg .b32 %bin;
    and.b32 %bin, %thread, 15;
    mad.wide.u32 %rd0, %bin, 4, %data;
    atom.global.add.u32 %r1, [%rd0+256], 1;
    fence.acq_rel.gpu;
+    bar.sync 0;
    .shared .align 4 .b32 last;
    mov.u32 %r2, %nctaid.x;
    sub.u32 %r2, %r2, 1;
    @%thread0 atom.global.inc.u32 %r3, [%data], %r2;
    @%thread0 st.shared.u32 [last], %r3;
    bar.sync 0;
    ld.shared.u32 %r3, [last];
    setp.ne.u32 %p0, %r3, %r2;
    @%p0 bra END;
    fence.acq_rel.gpu;
    setp.gt.u32 %p0, %thread, 15;
    @%p0 bra END;
    ld.global.u32 %r4, [%rd0+256]; // <--
    st.global.u32 [%rd0+1024], %r4;
END:
""",
    ),
    Bug(
        name="sum-read-by-lanes-that-have-not-synchronized",
        source=REBUILT,
        what="the lanes of a warp add to a word of shared memory and load it in the next line, without a __syncwarp",
        code="shared-race",
        block=32,
        ptx="""
    .shared .align 4 .b32 sum;
    @%thread0 st.shared.u32 [sum], 0;
    bar.warp.sync -1;
    red.shared.add.u32 [sum], 1;
+    bar.warp.sync -1;
    ld.shared.u32 %r1, [sum]; // <--
    mad.wide.u32 %rd0, %lane, 4, %data;
    st.global.u32 [%rd0], %r1;
""",
    ),
    Bug(
        name="lanes-add-before-lane-0-has-cleared",
        source=REBUILT,
        what="lane 0 clears the counter of its warp, and the others add to it without a __syncwarp",
        code="shared-race",
        block=32,
        ptx="""
    .shared .align 4 .b32 count;
    @%thread0 st.shared.u32 [count], 0;
+    bar.warp.sync -1;
    red.shared.add.u32 [count], 1; // <--
    bar.warp.sync -1;
    ld.shared.u32 %r1, [count];
    @%thread0 st.global.u32 [%data], %r1;
""",
    ),
    Bug(
        name="lanes-add-after-a-load-of-all",
        source=REBUILT,
        what="all lanes load the offset of their warp, and then advance it by an atomic operation each, unsynchronized",
        code="shared-race",
        block=32,
        ptx="""
    .shared .align 4 .b32 offset;
    @%thread0 st.shared.u32 [offset], 7;
    bar.warp.sync -1;
    ld.shared.u32 %r1, [offset];
+    bar.warp.sync -1;
    red.shared.add.u32 [offset], 1; // <--
    mad.wide.u32 %rd0, %lane, 4, %data;
    st.global.u32 [%rd0], %r1;
""",
    ),
    Bug(
        name="volatile-store-read-by-lanes",
        source=REBUILT,
        what="lane 0 publishes by a volatile store, and plain loads of the other lanes follow without a __syncwarp",
        code="shared-race",
        block=32,
        ptx="""
    .shared .align 4 .b32 found;
    @%thread0 st.shared.u32 [found], 0;
    bar.warp.sync -1;
    @%thread0 st.volatile.shared.u32 [found], 5;
+    bar.warp.sync -1;
    ld.shared.u32 %r1, [found]; // <--
    mad.wide.u32 %rd0, %lane, 4, %data;
    st.global.u32 [%rd0], %r1;
""",
    ),
    Bug(
        name="total-in-global-memory-read-by-lanes",
        source=REBUILT,
        what="the lanes of a warp add to a total in global memory and load it in the next line",
        code="global-race",
        block=32,
        ptx="""
    red.global.add.u32 [%data], 1;
+    bar.warp.sync -1;
    ld.global.u32 %r1, [%data]; // <--
    mad.wide.u32 %rd0, %lane, 4, %data;
    st.global.u32 [%rd0+64], %r1;
""",
    ),
    Bug(
        name="total-cleared-by-one-lane",
        source=REBUILT,
        what="lane 0 clears a total in global memory, to which all lanes add in the next line",
        code="global-race",
        block=32,
        ptx="""
    @%thread0 st.global.u32 [%data], 5;
+    bar.warp.sync -1;
    red.global.add.u32 [%data], 1; // <--
""",
    ),
    Bug(
        name="total-loaded-by-all-then-advanced-by-all",
        source=REBUILT,
        what="all warps load a total, and then each adds to it, without a __syncthreads in between",
        code="global-race",
        block=64,
        ptx="""
    ld.global.u32 %r1, [%data]; // <--
+    bar.sync 0;
    red.global.add.u32 [%data], 1; // <--
    mad.wide.u32 %rd0, %thread, 4, %data;
    st.global.u32 [%rd0+64], %r1;
""",
    ),
    Bug(
        name="named-barrier-without-one-that-adds",
        source=REBUILT,
        what="four warps add to a sum, and the one that reads it waits for two of the others",
        code="shared-race",
        block=128,
        ptx="""
    .shared .align 4 .b32 sum;
    @%thread0 st.shared.u32 [sum], 0;
    bar.sync 0;
    red.shared.add.u32 [sum], 1;
-    setp.eq.u32 %p1, %warp, 1;
-    @%p1 bra END;
-    bar.sync 1, 96;
+    bar.sync 1, 128;
    setp.ne.u32 %p1, %warp, 0;
    @%p1 bra END;
    ld.shared.u32 %r1, [sum]; // <--
    st.global.u32 [%data], %r1;
END:
""",
    ),
    Bug(
        name="last-cta-by-a-load-of-the-counter",
        source=REBUILT,
        what="a volatile load of the counter decides who is the last, in place of what the atomic operation returns",
        code="global-race",
        also=("missing-fence",),
        block=1,
        grid=4,
        ptx="""
    mad.wide.u32 %rd0, %cta, 4, %data;
    add.u32 %r1, %cta, 5;
    st.global.u32 [%rd0+256], %r1;
    fence.acq_rel.gpu;
-    red.global.add.u32 [%data], 1;
-    ld.volatile.global.u32 %r2, [%data];
+    atom.global.add.u32 %r2, [%data], 1;
    fence.acq_rel.gpu;
    setp.lt.u32 %p0, %r2, 3;
    @%p0 bra END;
    ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%data+256]; // <--
    add.u32 %r3, %r3, %r4;
    add.u32 %r5, %r5, %r6;
    add.u32 %r3, %r3, %r5;
    st.global.u32 [%data+4], %r3;
END:
""",
    ),
    Bug(
        name="two-of-three-flags",
        source=REBUILT,
        what="the waiter adds up three flags, and goes on when two are set",
        code="global-race",
        block=1,
        grid=4,
        ptx="""
    mad.wide.u32 %rd0, %cta, 4, %data;
    setp.eq.u32 %p0, %cta, 3;
    @%p0 bra POLL;
    add.u32 %r1, %cta, 5;
    st.global.u32 [%rd0+256], %r1;
    fence.acq_rel.gpu;
    st.volatile.global.u32 [%rd0], 1;
    bra END;
POLL:
    ld.volatile.global.u32 %r1, [%data];
    ld.volatile.global.u32 %r2, [%data+4];
    ld.volatile.global.u32 %r3, [%data+8];
    add.u32 %r1, %r1, %r2;
    add.u32 %r1, %r1, %r3;
-    setp.lt.u32 %p1, %r1, 2;
+    setp.lt.u32 %p1, %r1, 3;
    @%p1 bra POLL;
    fence.acq_rel.gpu;
    ld.global.u32 %r4, [%data+256]; // <--
    ld.global.u32 %r5, [%data+260]; // <--
    ld.global.u32 %r6, [%data+264]; // <--
    add.u32 %r4, %r4, %r5;
    add.u32 %r4, %r4, %r6;
    st.global.u32 [%data+16], %r4;
END:
""",
    ),
    Bug(
        name="aggregate-by-a-weak-load-beside-its-flag",
        source="JuliaGPU/AcceleratedKernels.jl#98",
        what="look-back: the aggregate is stored and loaded weakly beside an atomic flag, with no fence on either side",
        code="missing-fence",
        grid=2,
        ptx="""
    setp.ne.u32 %p1, %cta, 0;
    @%p1 bra NEXT;
    mov.u32 %r1, 41;
    mov.u32 %r2, 1;
    @%thread0 st.global.u32 [%data+64], %r1; // <--
+    @%thread0 fence.acq_rel.gpu;
    @%thread0 st.relaxed.gpu.global.u32 [%data], %r2;
    bra DONE;
NEXT:
    @!%thread0 bra DONE;
POLL:
    ld.relaxed.gpu.global.u32 %r3, [%data];
    setp.eq.u32 %p2, %r3, 0;
    @%p2 bra POLL;
+    fence.acq_rel.gpu;
    ld.global.u32 %r4, [%data+64]; // <--
    st.global.u32 [%data+128], %r4;
DONE:
""",
    ),
]
