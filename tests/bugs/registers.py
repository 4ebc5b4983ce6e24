"""Registers: what is read before it is written, and what warpgroups hand over by setmaxnreg."""

from __future__ import annotations

from tests.bugs.bug import REBUILT, Bug

BUGS = [
    Bug(
        name="setmaxnreg-one-warp",
        source="mlc-ai/TIRx-kernels#168",
        what="one warp of a warpgroup executes setmaxnreg, inside the branch of its role; the others do not",
        code="setmaxnreg-warpgroup",
        block=256,
        directives=".maxntid 256 .minnctapersm 1",
        ptx="""
    setp.ge.u32 %p0, %warp, 4;
    @%p0 bra CONSUMER;
-    setp.ne.u32 %p1, %warp, 0;
-    @%p1 bra END;
    setmaxnreg.dec.sync.aligned.u32 40; // <--
    bra END;
CONSUMER:
    setmaxnreg.dec.sync.aligned.u32 216;
END:
""",
    ),
    Bug(
        name="setmaxnreg-different-counts",
        source="mlc-ai/TIRx-kernels#151",
        what="the warps of one warpgroup name different register counts",
        code="setmaxnreg-warpgroup",
        block=256,
        directives=".maxntid 256 .minnctapersm 1",
        ptx="""
    setp.ge.u32 %p0, %warp, 4;
    @%p0 bra CONSUMER;
    setp.eq.u32 %p1, %warp, 0;
    @%p1 bra LOAD;
    bar.warp.sync 0xffffffff;
-    setmaxnreg.dec.sync.aligned.u32 64; // <--
+    setmaxnreg.dec.sync.aligned.u32 40;
    bra END;
LOAD:
    setmaxnreg.dec.sync.aligned.u32 40;
    bra END;
CONSUMER:
    setmaxnreg.dec.sync.aligned.u32 216;
END:
""",
    ),
    Bug(
        name="setmaxnreg-over-budget",
        source="mlc-ai/TIRx-kernels#165",
        what="three warpgroups request 232, 232 and 96 registers a thread: more than a multiprocessor has",
        code="setmaxnreg-budget",
        also=("deadlock",),
        block=384,
        directives=".maxntid 384 .minnctapersm 1",
        ptx="""
    setp.ge.u32 %p0, %warp, 8;
    @%p0 bra PRODUCER;
    setmaxnreg.inc.sync.aligned.u32 232; // <--
    bra END;
PRODUCER:
-    setmaxnreg.dec.sync.aligned.u32 96;
+    setmaxnreg.dec.sync.aligned.u32 40;
END:
""",
    ),
    Bug(
        name="setmaxnreg-nobody-gives-back",
        source="pytorch/helion#3620",
        what="the compute warps raise their registers and no other warpgroup lowers its own: the kernel hangs",
        code="deadlock",
        also=("setmaxnreg-budget",),
        block=512,
        directives=".maxntid 512 .minnctapersm 1",
        ptx="""
    setp.ge.u32 %p0, %warp, 8;
    @%p0 bra PRODUCER;
    setmaxnreg.inc.sync.aligned.u32 168; // <--
    bra END;
PRODUCER:
+    setmaxnreg.dec.sync.aligned.u32 80;
END:
    bar.sync 0;
""",
    ),
    Bug(
        name="setmaxnreg-with-launch-bounds",
        source="NVIDIA/cutlass#2007",
        what="__launch_bounds__(384, 1) gives 168 registers a thread: two warpgroups of 232 and one of 40 do not fit",
        code="setmaxnreg-budget",
        also=("deadlock",),
        block=384,
        directives=".maxntid 384 .minnctapersm 1",
        ptx="""
    setp.ge.u32 %p0, %warp, 8;
    @%p0 bra CONSUMER;
    setmaxnreg.inc.sync.aligned.u32 232; // <--
    bra END;
CONSUMER:
-    setmaxnreg.dec.sync.aligned.u32 64;
+    setmaxnreg.dec.sync.aligned.u32 40;
END:
""",
    ),
    Bug(
        name="setmaxnreg-for-four-warpgroups",
        source="tile-ai/tilelang#2406",
        what="24 and 240 registers are hard-coded for one producer and two consumers; this kernel has three consumers",
        code="setmaxnreg-budget",
        also=("deadlock",),
        block=512,
        directives=".maxntid 512 .minnctapersm 1",
        ptx="""
    setp.lt.u32 %p0, %warp, 4;
    @%p0 bra PRODUCER;
-    setmaxnreg.inc.sync.aligned.u32 240; // <--
+    setmaxnreg.inc.sync.aligned.u32 160;
    bra END;
PRODUCER:
    setmaxnreg.dec.sync.aligned.u32 24;
END:
""",
    ),
    Bug(
        name="setmaxnreg-three-of-four-warps",
        source=REBUILT,
        what="three of the four producer warps execute setmaxnreg, the spare one goes to the end",
        code="setmaxnreg-warpgroup",
        block=256,
        directives=".maxntid 256 .minnctapersm 1",
        ptx="""
    setp.ge.u32 %p0, %warp, 4;
    @%p0 bra CONSUMER;
-    setp.eq.u32 %p1, %warp, 3;
-    @%p1 bra END;
    setmaxnreg.dec.sync.aligned.u32 40; // <--
    bra END;
CONSUMER:
    setmaxnreg.dec.sync.aligned.u32 216;
END:
    bar.sync 0;
""",
    ),
    Bug(
        name="setmaxnreg-in-the-loop-with-another-count",
        source=REBUILT,
        what="the persistent loop raises the registers again, beyond what the producers gave back",
        code="setmaxnreg-budget",
        also=("deadlock",),
        block=384,
        directives=".maxntid 384 .minnctapersm 1",
        ptx="""
    setp.ge.u32 %p0, %warp, 4;
    @%p0 bra CONSUMER;
    setmaxnreg.dec.sync.aligned.u32 24;
    bra END;
CONSUMER:
    mov.u32 %r0, 0;
-LOOP:
    setmaxnreg.inc.sync.aligned.u32 240; // <--
+LOOP:
    add.u32 %r0, %r0, 1;
-    setmaxnreg.inc.sync.aligned.u32 248; // <--
    setp.lt.u32 %p1, %r0, 2;
    @%p1 bra LOOP;
END:
    bar.sync 0;
""",
    ),
    Bug(
        name="setmaxnreg-twice-with-a-wrong-sum",
        source=REBUILT,
        what="the producers take registers back that the consumers already hold",
        code="setmaxnreg-budget",
        also=("deadlock",),
        block=384,
        directives=".maxntid 384 .minnctapersm 1",
        ptx="""
    setp.ge.u32 %p0, %warp, 4;
    @%p0 bra CONSUMER;
    setmaxnreg.dec.sync.aligned.u32 40;
    bar.sync 1, 128;
-    setmaxnreg.inc.sync.aligned.u32 104; // <--
+    setmaxnreg.dec.sync.aligned.u32 32;
    bra END;
CONSUMER:
    setmaxnreg.inc.sync.aligned.u32 232; // <--
END:
    bar.sync 0;
""",
    ),
    Bug(
        name="setmaxnreg-dec-raises",
        source=REBUILT,
        what="setmaxnreg.dec names more registers than the launch gives",
        code="illegal-ptx",
        block=384,
        directives=".maxntid 384 .minnctapersm 1",
        ptx="""
    setp.ge.u32 %p0, %warp, 4;
    @%p0 bra CONSUMER;
-    setmaxnreg.dec.sync.aligned.u32 200; // <--
+    setmaxnreg.dec.sync.aligned.u32 40;
    bra END;
CONSUMER:
    bar.sync 1, 256;
END:
    bar.sync 0;
""",
    ),
    Bug(
        name="setmaxnreg-by-one-lane",
        source=REBUILT,
        what="setmaxnreg is under the predicate of the elected lane",
        code="divergent-warp",
        block=384,
        directives=".maxntid 384 .minnctapersm 1",
        ptx="""
    setp.ge.u32 %p0, %warp, 4;
    @%p0 bra CONSUMER;
-    @%lane0 setmaxnreg.dec.sync.aligned.u32 40; // <--
+    setmaxnreg.dec.sync.aligned.u32 40;
    bra END;
CONSUMER:
    setmaxnreg.inc.sync.aligned.u32 232;
END:
    bar.sync 0;
""",
    ),
    Bug(
        name="setmaxnreg-by-another-sequence",
        source=REBUILT,
        what="three warps of the warpgroup lower their registers twice, the fourth once",
        code="setmaxnreg-warpgroup",
        block=384,
        directives=".maxntid 384 .minnctapersm 1",
        ptx="""
    setp.ge.u32 %p0, %warp, 4;
    @%p0 bra CONSUMER;
    setp.eq.u32 %p1, %warp, 0;
    @%p1 bra W0;
-    setmaxnreg.dec.sync.aligned.u32 40;
-    setmaxnreg.dec.sync.aligned.u32 24; // <--
+    setmaxnreg.dec.sync.aligned.u32 40;
    bra END;
W0:
    setmaxnreg.dec.sync.aligned.u32 40;
    bra END;
CONSUMER:
    setmaxnreg.inc.sync.aligned.u32 232;
END:
    bar.sync 0;
""",
    ),
    Bug(
        name="setmaxnreg-in-the-branch-of-the-load-warp",
        source=REBUILT,
        what="of the producer warpgroup only the load warp lowers its registers, so that the consumers wait forever",
        code="setmaxnreg-warpgroup",
        also=("deadlock",),
        block=384,
        directives=".maxntid 384 .minnctapersm 1",
        ptx="""
    setp.ge.u32 %p0, %warp, 4;
    @%p0 bra CONSUMER;
-    setp.ne.u32 %p1, %warp, 1;
-    @%p1 bra END;
    setmaxnreg.dec.sync.aligned.u32 40; // <--
    bra END;
CONSUMER:
    setmaxnreg.inc.sync.aligned.u32 232;
END:
    bar.sync 0;
""",
    ),
    Bug(
        name="guard-compares-what-one-warp-has",
        source=REBUILT,
        what="only warp 0 sets the flag that all warps compare with 1: elsewhere it may happen to be 1, too",
        code="uninitialized-register",
        block=64,
        ptx="""
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    setp.eq.u32 %p0, %warp, 0;
+    mov.u32 %r0, 0;
    @%p0 mov.u32 %r0, 1;
    setp.eq.u32 %p1, %r0, 1; // <--
    @%p1 st.global.u32 [%rd0], 2;
    @!%p1 st.global.u32 [%rd0], 1;
""",
    ),
    Bug(
        name="branch-compares-an-unset-state",
        source=REBUILT,
        what="a state that only one branch sets is compared with another register, and decides about the work",
        code="uninitialized-register",
        block=64,
        ptx="""
    mul.wide.u32 %rd0, %thread, 4;
    add.u64 %rd0, %rd0, %data;
    st.global.u32 [%rd0], 1;
    ld.global.u32 %r2, [%data+4096];
    add.u32 %r2, %r2, 77;
    setp.eq.u32 %p0, %warp, 0;
+    mov.u32 %r0, 0;
    @!%p0 bra SKIP;
    mov.u32 %r0, 77;
SKIP:
    setp.ne.s32 %p1, %r0, %r2; // <--
    @%p1 bra END;
    st.global.u32 [%rd0], 2;
END:
""",
    ),
]
