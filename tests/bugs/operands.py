"""Operands of MMAs that are read in another layout than the tensor copy wrote."""

from __future__ import annotations

from ptxgen.descriptors import InstructionDescriptor, SmemDescriptor
from tests.bugs.bug import REBUILT, Bug

LOAD = "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes"
#: Tiles of 64 rows of 64 bf16 in rows of 128 bytes, 128-byte swizzle: rows 0 to 127 at smem_a, 128 to 255 at smem_b,
#: which follows it. %rd0 and %rd1 are what K-major descriptors with SBO 1024 hold above the start address.
TILES = f"""
    .shared .align 1024 .b8 smem_a[16384];
    .shared .align 1024 .b8 smem_b[16384];
    .shared .align 8 .b64 full;
    @%thread0 mbarrier.init.shared.b64 [full], 1;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%thread0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 32768;
    @%thread0 {LOAD} [smem_a], [%map, {{0, 0}}], [full];
    @%thread0 {LOAD} [smem_b], [%map, {{0, 128}}], [full];
LOADED:
    mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
    @!%done bra LOADED;
"""


#: 128 columns of tensor memory at %r0, and the end of a kernel that has issued MMAs.
ALLOCATED = """
    .shared .align 8 .b64 done;
    .shared .align 4 .b32 slot;
    .reg .pred %warp0;
    setp.eq.u32 %warp0, %warp, 0;
    @%thread0 mbarrier.init.shared.b64 [done], 1;
    @!%warp0 bra ALLOCATED;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 128;
ALLOCATED:
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %r0, [slot];
"""
FREED = """
    @%thread0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
FINISHED:
    mbarrier.try_wait.parity.shared.b64 %done, [done], 0;
    @!%done bra FINISHED;
    tcgen05.fence::after_thread_sync;
    bar.sync 0;
    @!%warp0 bra FREED;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 128;
FREED:
"""


def wgmma(steps: str, columns: int = 128) -> str:
    """A wgmma of 64 x `columns` x 16 for each line of `steps`: descriptors of A and B, scale-d, majors of A and B."""
    registers = ", ".join(f"%f{number}" for number in range(columns // 2))
    lines = [f"    .reg .f32 %f<{columns // 2}>;", "    wgmma.fence.sync.aligned;"]
    for step in steps.strip("\n").splitlines():
        sign = step[0] if step[0] in "+-" else " "
        a, b, scale, trans_a, trans_b, *mark = step[1:].split(maxsplit=5)
        lines += [
            f"{sign}   mov.b64 %rd2, {a};",
            f"{sign}   mov.b64 %rd3, {b};",
            f"{sign}   setp.ne.b32 %p1, {scale}, 0;",
            f"{sign}   wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.bf16.bf16 {{{registers}}}, %rd2, %rd3, %p1, "
            f"1, 1, {trans_a}, {trans_b}; {' '.join(mark)}",
        ]
    return TILES + "\n".join([*lines, "    wgmma.commit_group.sync.aligned;", "    wgmma.wait_group.sync.aligned 0;"])


def smem(start: int, *, sbo: int = 1024, lbo: int = 16) -> str:
    """A matrix descriptor of wgmma with 128-byte swizzle."""
    return hex(1 << 62 | sbo >> 4 << 32 | lbo >> 4 << 16 | start >> 4)


def matrix(start: int, *, sbo: int = 1024, lbo: int = 16) -> str:
    """The same of tcgen05."""
    value = SmemDescriptor(
        start_address=start, stride_byte_offset=sbo, leading_byte_offset=lbo, swizzle="128B"
    ).encode()
    return f"{value:#x}"


#: Instruction descriptors of 128 x 64 x 16 in bf16, both operands K-major, and B MN-major.
K_MAJOR = hex(InstructionDescriptor(kind="f16", d_type="f32", a_type="bf16", b_type="bf16", m=128, n=64).encode())
B_MN_MAJOR = hex(int(K_MAJOR, 16) | 1 << 16)
#: The first of these with both types 0: f16.
F16 = hex(int(K_MAJOR, 16) & ~(0b111 << 7 | 0b111 << 10))


def tcgen05(steps: str) -> str:
    """A tcgen05.mma for each line of `steps`: descriptors of A and B, instruction descriptor, accumulate."""
    lines = []
    for step in steps.strip("\n").splitlines():
        sign = step[0] if step[0] in "+-" else " "
        a, b, idesc, accumulate, *mark = step[1:].split(maxsplit=4)
        lines += [
            f"{sign}   mov.b64 %rd2, {a};",
            f"{sign}   mov.b64 %rd3, {b};",
            f"{sign}   mov.b32 %r1, {idesc};",
            f"{sign}   setp.ne.b32 %p1, {accumulate}, 0;",
            f"{sign}   @%thread0 tcgen05.mma.cta_group::1.kind::f16 [%r0], %rd2, %rd3, %r1, %p1; {' '.join(mark)}",
        ]
    return TILES + ALLOCATED + "\n".join(lines) + FREED


#: Where the tiles lie: the reserved bytes of the CTA come first.
A, B = 1024, 17408

#: P in columns 64 to 95 of tensor memory: 64 bf16 of each row, from 32 registers with two each.
WORDS = ", ".join(["%r4"] * 32)


def attention(steps: str, store: str = f" .x32.b32 [%r3], {{{WORDS}}};") -> str:
    """A tcgen05.mma with A in tensor memory for each line of `steps`: column of A, descriptor of B, accumulate."""
    lines = [
        "    shl.b32 %r2, %warp, 21;",
        "    add.u32 %r3, %r0, %r2;",
        "    add.u32 %r3, %r3, 64;",
        "    mov.b32 %r4, 0x3f803f80;",
        *(f"{line[0]}    tcgen05.st.sync.aligned.32x32b{line[1:]}" for line in store.splitlines()),
        "    tcgen05.wait::st.sync.aligned;",
        "    tcgen05.fence::before_thread_sync;",
        "    bar.sync 0;",
        "    tcgen05.fence::after_thread_sync;",
        f"    mov.b32 %r1, {B_MN_MAJOR};",
    ]
    for step in steps.strip("\n").splitlines():
        sign = step[0] if step[0] in "+-" else " "
        column, b, accumulate, *mark = step[1:].split(maxsplit=3)
        lines += [
            f"{sign}   add.u32 %r2, %r0, {column};",
            f"{sign}   mov.b64 %rd3, {b};",
            f"{sign}   setp.ne.b32 %p1, {accumulate}, 0;",
            f"{sign}   @%thread0 tcgen05.mma.cta_group::1.kind::f16 [%r0], [%r2], %rd3, %r1, %p1; {' '.join(mark)}",
        ]
    return TILES + ALLOCATED + "\n".join(lines) + FREED


BUGS = [
    Bug(
        name="sbo-of-half-a-group",
        source=REBUILT,
        what="SBO 512 for 1024 of A: rows 8 to 15 are read from rows 4 to 11 of the tile",
        code="operand-layout",
        box=(64, 128),
        swizzle="128B",
        ptx=wgmma(f"""
-{smem(A, sbo=512)} {smem(B)} 0 0 0 // <--
+{smem(A)} {smem(B)} 0 0 0
"""),
    ),
    Bug(
        name="sbo-of-two-groups",
        source=REBUILT,
        what="SBO 2048 for 1024 of B, with N of half the tile: every second group of 8 rows is read by nothing",
        code="operand-layout",
        box=(64, 128),
        swizzle="128B",
        ptx=wgmma(
            f"""
-{smem(A)} {smem(B, sbo=2048)} 0 0 0 // <--
+{smem(A)} {smem(B)} 0 0 0
""",
            64,
        ),
    ),
    Bug(
        name="k-major-tile-read-mn-major",
        source=REBUILT,
        what="imm-trans-b is 1 over rows that TMA wrote K-major; the steps of K are those of K-major",
        code="operand-layout",
        box=(64, 128),
        swizzle="128B",
        ptx=wgmma(
            "\n".join(
                f"""
-{smem(A + 32 * step)} {smem(B + 32 * step)} {step} 0 1 // <--
+{smem(A + 32 * step)} {smem(B + 32 * step)} {step} 0 0
""".strip("\n")
                for step in range(4)
            )
        ),
    ),
    Bug(
        name="mn-major-tile-read-k-major",
        source=REBUILT,
        what="imm-trans-b is 0 over rows that TMA wrote MN-major: the steps of K are 16 rows",
        code="operand-layout",
        box=(64, 128),
        swizzle="128B",
        ptx=wgmma(
            "\n".join(
                f"""
-{smem(A + 32 * step)} {smem(B + 2048 * step)} {step} 0 0 // <--
+{smem(A + 32 * step)} {smem(B + 2048 * step)} {step} 0 1
""".strip("\n")
                for step in range(4)
            ),
            64,
        ),
    ),
    Bug(
        name="step-of-half-k",
        source=REBUILT,
        what="the start addresses step by 16 bytes of K for 32: each MMA multiplies half of the elements again",
        code="operand-layout",
        box=(64, 128),
        swizzle="128B",
        ptx=wgmma(
            "\n".join(
                f"""
-{smem(A + 16 * step)} {smem(B + 16 * step)} {step} 0 0 // <--
+{smem(A + 32 * step)} {smem(B + 32 * step)} {step} 0 0
""".strip("\n")
                for step in range(4)
            )
        ),
    ),
    Bug(
        name="b-major-of-a-k-major-tile",
        source=REBUILT,
        what="b_major in the instruction descriptor is MN-major over rows that TMA wrote K-major",
        code="operand-layout",
        target="sm_100a",
        box=(64, 128),
        swizzle="128B",
        ptx=tcgen05(
            "\n".join(
                f"""
-{matrix(A + 32 * step)} {matrix(B + 32 * step)} {B_MN_MAJOR} {step} // <--
+{matrix(A + 32 * step)} {matrix(B + 32 * step)} {K_MAJOR} {step}
""".strip("\n")
                for step in range(4)
            )
        ),
    ),
    Bug(
        name="b-major-of-an-mn-major-tile",
        source=REBUILT,
        what="b_major in the instruction descriptor is K-major over rows that TMA wrote MN-major",
        code="operand-layout",
        target="sm_100a",
        box=(64, 128),
        swizzle="128B",
        ptx=tcgen05(
            "\n".join(
                f"""
-{matrix(A + 32 * step)} {matrix(B + 2048 * step)} {K_MAJOR} {step} // <--
+{matrix(A + 32 * step)} {matrix(B + 2048 * step)} {B_MN_MAJOR} {step}
""".strip("\n")
                for step in range(4)
            )
        ),
    ),
    Bug(
        name="sbo-of-half-a-group-in-tcgen05",
        source=REBUILT,
        what="SBO 512 for 1024 of B: rows 8 to 15 are read from rows 4 to 11 of the tile",
        code="operand-layout",
        target="sm_100a",
        box=(64, 128),
        swizzle="128B",
        ptx=tcgen05(f"""
-{matrix(A)} {matrix(B, sbo=512)} {K_MAJOR} 0 // <--
+{matrix(A)} {matrix(B)} {K_MAJOR} 0
"""),
    ),
    Bug(
        name="f16-over-a-bf16-tensormap",
        source=REBUILT,
        what="the types in the instruction descriptor are left 0, which is f16, over a bf16 tensormap",
        code="operand-element-type",
        target="sm_100a",
        box=(64, 128),
        swizzle="128B",
        ptx=tcgen05(f"""
-{matrix(A)} {matrix(B)} {F16} 0 // <--
+{matrix(A)} {matrix(B)} {K_MAJOR} 0
"""),
    ),
    Bug(
        name="bf16-over-an-f16-tensormap",
        source=REBUILT,
        what="wgmma multiplies bf16, the tensormap has f16",
        code="operand-element-type",
        map_type="f16",
        box=(64, 128),
        swizzle="128B",
        ptx="\n".join(
            line.replace(".bf16.bf16", ".f16.f16") if line.startswith("+") else line
            for line in wgmma(f"-{smem(A)} {smem(B)} 0 0 0 // <--\n+{smem(A)} {smem(B)} 0 0 0").splitlines()
        ),
    ),
    Bug(
        name="p-of-half-a-step",
        source=REBUILT,
        what="P V: the address of P in tensor memory steps by 4 columns for 8, so half of P is multiplied twice",
        code="operand-cells",
        target="sm_100a",
        box=(64, 128),
        swizzle="128B",
        ptx=attention(
            "\n".join(
                f"-{64 + 4 * step} {matrix(B + 2048 * step)} {step} // <--\n"
                f"+{64 + 8 * step} {matrix(B + 2048 * step)} {step}"
                for step in range(4)
            )
        ),
    ),
    Bug(
        name="p-unpacked",
        source=REBUILT,
        what="P V: tcgen05.st stores P with .unpack::16b, but A in tensor memory has two elements in each column",
        code="operand-cells",
        target="sm_100a",
        box=(64, 128),
        swizzle="128B",
        ptx=attention(
            f"-64 {matrix(B)} 0 // <--\n+64 {matrix(B)} 0",
            f"-.x32.unpack::16b.b32 [%r3], {{{WORDS}}};\n+.x32.b32 [%r3], {{{WORDS}}};",
        ),
    ),
    Bug(
        name="f32-accumulator-packed",
        source=REBUILT,
        what="tcgen05.ld takes an f32 accumulator with .pack::16b, which keeps the low half of each column",
        code="operand-cells",
        severity="advice",
        target="sm_100a",
        box=(64, 128),
        swizzle="128B",
        ptx=tcgen05(f" {matrix(A)} {matrix(B)} {K_MAJOR} 0").replace(
            "    tcgen05.fence::after_thread_sync;\n    bar.sync 0;\n    @!%warp0 bra FREED;",
            """
    tcgen05.fence::after_thread_sync;
    shl.b32 %r2, %warp, 21;
    add.u32 %r3, %r0, %r2;
-    tcgen05.ld.sync.aligned.32x32b.x4.pack::16b.b32 {%r4, %r5, %r6, %r7}, [%r3]; // <--
+    tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r4, %r5, %r6, %r7}, [%r3];
    tcgen05.wait::ld.sync.aligned;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    @!%warp0 bra FREED;""",
        ),
    ),
    Bug(
        name="bulk-reduction-of-a-swizzled-tile",
        source=REBUILT,
        what="a tile that TMA wrote with a swizzle is reduced into global memory by a bulk copy without a tensormap",
        code="swizzle-mismatch",
        box=(64, 128),
        swizzle="128B",
        ptx=TILES
        + """
-    @%thread0 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [%data], [smem_a], 16384; // <--
+    @%thread0 cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%map, {0, 0}], [smem_a];
    @%thread0 cp.async.bulk.commit_group;
    @%thread0 cp.async.bulk.wait_group 0;
""",
    ),
    Bug(
        name="software-swizzle-off-the-pattern",
        source=REBUILT,
        what="threads swizzle a tile by offsets from its start, which is 512 bytes into the pattern of 1024",
        code="swizzle-mismatch",
        severity="advice",
        ptx=f"""
    .shared .align 1024 .b8 tiles[36864];
    .reg .f32 %f<32>;
    mov.u32 %r0, tiles;
-    add.u32 %r0, %r0, 512;
    mov.u32 %r1, %thread;
TILE:
    shl.b32 %r2, %r1, 4;
    shr.u32 %r3, %r2, 3;
    and.b32 %r3, %r3, 112;
    xor.b32 %r2, %r2, %r3;
    add.u32 %r2, %r2, %r0;
    st.shared.v4.b32 [%r2], {{%r1, %r1, %r1, %r1}};
    add.u32 %r1, %r1, 128;
    setp.lt.u32 %p0, %r1, 2048;
    @%p0 bra TILE;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    wgmma.fence.sync.aligned;
    mov.b64 %rd2, {smem(A)};
    mov.b64 %rd3, {smem(A + 8192)};
-    add.u64 %rd2, %rd2, 32;
-    add.u64 %rd3, %rd3, 32;
    setp.ne.b32 %p1, 0, 0;
    wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{{", ".join(f"%f{number}" for number in range(32))}}}, \
%rd2, %rd3, %p1, 1, 1, 0, 0; // <--
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
""".replace("\\\n", ""),
    ),
]
