"""Masks of warp-wide instructions, and warpgroups."""

from __future__ import annotations

from tests.bugs.bug import Bug

#: Operands of a wgmma of 64 x 8 x 16 in f16 at smem_a and smem_b, stored by all threads.
OPERANDS = """
    .shared .align 1024 .b8 smem_a[2048];
    .shared .align 1024 .b8 smem_b[1024];
    .reg .b64 %desc_a, %desc_b;
    .reg .b32 %own;
    .reg .f32 %d<4>;
    mov.b64 %desc_a, 0x0000001000080040;
    mov.b64 %desc_b, 0x00000010000800C0;
    shl.b32 %r0, %thread, 4;
    mov.u32 %r1, smem_a;
    add.u32 %own, %r1, %r0;
    st.shared.v4.b32 [%own], {0, 0, 0, 0};
    shr.u32 %r0, %r0, 1;
    mov.u32 %r1, smem_b;
    add.u32 %r1, %r1, %r0;
    st.shared.v2.b32 [%r1], {0, 0};
    fence.proxy.async.shared::cta;
    bar.sync 0;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %desc_a, %desc_b, 0, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
"""

BUGS = [
    Bug(
        name="full-mask-in-a-branch",
        source="alpaka-group/mallocMC#145",
        what="a ballot with the full mask in a branch that some lanes do not take: deadlocks on V100",
        code="deadlock",
        block=32,
        ptx="""
    setp.lt.u32 %p0, %lane, 16;
    @!%p0 bra JOIN;
-    vote.sync.ballot.b32 %r0, %p0, 0xffffffff; // <--
+    vote.sync.ballot.b32 %r0, %p0, 0x0000ffff;
JOIN:
    bar.warp.sync 0xffffffff; // <--
""",
    ),
    Bug(
        name="mask-without-the-lane-itself",
        source="ComputationalRadiationPhysics/picongpu#2514",
        what="warp functions under a condition on the thread get a mask that is not that of the lanes there",
        code="warp-mask",
        also=("deadlock",),
        block=32,
        ptx="""
    setp.lt.u32 %p0, %lane, 16;
    @!%p0 bra JOIN;
-    vote.sync.ballot.b32 %r0, %p0, 0x000000ff; // <--
+    vote.sync.ballot.b32 %r0, %p0, 0x0000ffff;
JOIN:
    bar.warp.sync 0xffffffff;
""",
    ),
    Bug(
        name="barrier-under-a-condition-on-the-thread",
        source="acts-project/acts#307",
        what="__syncthreads in a condition that depends on the thread",
        code="divergent-warp",
        also=("deadlock",),
        block=64,
        ptx="""
    setp.lt.u32 %p0, %thread, 48;
-    @%p0 bar.sync 0; // <--
+    bar.sync 0;
""",
    ),
    Bug(
        name="jump-over-the-barrier",
        source="numba/numba#2655",
        what="lanes that take an error branch skip __syncthreads, and others read what has not been written",
        code="divergent-warp",
        also=("deadlock", "shared-race"),
        block=64,
        ptx="""
    .shared .align 4 .b32 pad;
    setp.eq.u32 %p1, %thread, 1;
    setp.lt.u32 %p0, %lane, 14;
    @%p1 st.shared.u32 [pad], 112211;
-    @%p0 bra ERROR;
    bar.sync 0; // <--
    ld.shared.u32 %r0, [pad];
ERROR:
""",
    ),
    Bug(
        name="operand-overwritten-under-wgmma",
        source="tile-ai/tilelang#2613",
        what="the next copy overwrites the operand that another warp group's wgmma may still read",
        code="shared-race",
        ptx=OPERANDS
        + """
+    wgmma.wait_group.sync.aligned 0;
+    bar.sync 0;
    st.shared.v4.b32 [%own], {%thread, 1, 1, 1}; // <--
-    wgmma.wait_group.sync.aligned 0;
""",
    ),
    Bug(
        name="stride-takes-wgmma-behind-its-operand",
        source="tile-ai/tilelang#2593",
        what="the descriptor has the stride of another tile: wgmma reads past its operand, 97 % of the tile is wrong",
        code="operand-region",
        also=("uninitialized-shared",),
        ptx=OPERANDS.replace(
            "    mov.b64 %desc_a, 0x0000001000080040;",
            "-    mov.b64 %desc_a, 0x0000001800080040;\n+    mov.b64 %desc_a, 0x0000001000080040;",
        ).replace("0, 1, 1, 0, 0;", "0, 1, 1, 0, 0; // <--")
        + """
    wgmma.wait_group.sync.aligned 0;
""",
    ),
]
