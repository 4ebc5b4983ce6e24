"""The accumulator, in tensor memory or in registers, and the instruction that adds to it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ptxgen.descriptors import BlockScaledInstructionDescriptor, DescriptorError, InstructionDescriptor
from ptxgen.gemm.concepts.operand import Fragments, Operand
from ptxgen.gemm.concepts.scale_operand import ScaleOperand
from ptxgen.gemm.errors import PlanError
from ptxgen.layouts.tmem import COLUMNS, LANES

#: A CTA's warps reach one quarter of the 128 TMEM lanes each (PTX ISA 9.7.16.2.1).
QUARTERS = 4
#: Columns of a wgmma at most (PTX ISA 9.7.15.5).
MMA_COLUMNS = 256


@dataclass(frozen=True, slots=True)
class ColumnRegion:
    """Columns of tensor memory, from `first` on."""

    name: str
    first: int
    columns: int
    holds: str

    def explain(self) -> str:
        return f"{self.name} {self.first}-{self.first + self.columns - 1}"


@dataclass(frozen=True)
class Accumulator:
    """`stages` accumulators of m x n in tensor memory; m and n are the MMA's, of the pair with 2.

    They lie side by side, or two of them share `overlap` columns: the last of one, the first of the other. `scales` are
    those of A and B, whose columns come next.
    """

    m: int
    n: int
    cta_group: int
    stages: int
    instruction: InstructionDescriptor | BlockScaledInstructionDescriptor
    overlap: int = 0
    scales: tuple[ScaleOperand, ...] = ()

    @classmethod
    def of(
        cls,
        a: Operand | Fragments,
        b: Operand,
        *,
        m: int,
        n: int,
        cta_group: int,
        stages: int,
        overlap: int = 0,
        scales: tuple[ScaleOperand, ...] = (),
    ) -> Accumulator:
        """Raises PlanError for a tile that tcgen05.mma does not have, and for more than 512 columns."""
        legal = {1: (64, 128), 2: (256,)}[cta_group]
        if scales and cta_group == 1:
            legal = (128,)
        if m not in legal:
            words = " or ".join(map(str, legal))
            raise PlanError(f"the M tile must be {words} (tcgen05.mma with cta_group::{cta_group}), not {m}")
        if not 16 <= n <= 256 or n % 16:
            raise PlanError(f"the N tile must be 16 to 256 in steps of 16, not {n}")
        # The instruction descriptor has bits for f16 by bf16, but no tensor core does (fact f16-mixed).
        if a.type.kind != b.type.kind or (a.type.kind == "f16" and a.dtype != b.dtype):
            raise PlanError(f"no MMA multiplies {a.dtype} by {b.dtype}")
        if overlap and (stages != 2 or overlap >= n):
            raise PlanError(
                f"overlap takes two accumulators with more columns than they share; these are {stages} of {n}, "
                f"overlap {overlap}"
            )
        try:
            instruction = _scaled(a, b, m, n, cta_group, scales) if scales else _plain(a, b, m, n, cta_group)
        except DescriptorError as error:
            raise PlanError(f"the tile {m}×{n} has no descriptor: {error}") from error
        made = cls(m, n, cta_group, stages, instruction, overlap, scales)
        if made.columns > COLUMNS:
            what = "the accumulators" if not scales else "accumulators and scales"
            raise PlanError(
                f"{what} need {made.columns} TMEM columns ({made._sum}, allocated as a power of two); "
                f"there are {COLUMNS}{'; accumulators may share some (overlap)' if scales else ''}"
            )
        return made

    @property
    def _sum(self) -> str:
        """The columns as they are added: "2 x 256 - 128 shared + sfa 4 + sfb 8"."""
        shared = f" - {self.overlap} shared" if self.overlap else ""
        return f"{self.stages} x {self.n}{shared}" + "".join(f" + {each.name} {each.columns}" for each in self.scales)

    @property
    def step(self) -> int:
        """Columns from one accumulator to the next."""
        return self.n - self.overlap

    @property
    def regions(self) -> tuple[ColumnRegion, ...]:
        """The map of tensor memory; accumulators may overlap."""
        names = [f"accumulator {i}" for i in range(self.stages)] if self.stages > 1 else ["accumulator"]
        sums = f"{self.m // self.cta_group}×{self.n} sums"
        made = [ColumnRegion(name, i * self.step, self.n, sums) for i, name in enumerate(names)]
        for each in self.scales:
            end = made[-1].first + made[-1].columns
            words = f"scales of {each.rows} rows, {each.words} word{'s' * (each.words > 1)} of K"
            made.append(ColumnRegion(each.name, end, each.columns, words))
        return tuple(made)

    def column(self, name: str) -> int:
        """The first column of a region."""
        return next(each.first for each in self.regions if each.name == name)

    @property
    def columns(self) -> int:
        """Allocated columns: a power of two of at least 32 (PTX ISA 9.7.16.7.1)."""
        columns, last = 32, self.regions[-1]
        while columns < last.first + last.columns:
            columns *= 2
        return columns

    @property
    def rows(self) -> int:
        """Rows of C in this CTA."""
        return self.m // self.cta_group

    @property
    def rows_per_warp(self) -> int:
        """Rows in one warp's quarter of the lanes: 32, or 16 where M is 64 (layout F)."""
        return self.rows // QUARTERS

    @property
    def kind(self) -> str:
        """The instruction's kind with what belongs to it: "mxf8f6f4.block_scale.block32"."""
        kind = self.instruction.kind
        return f"{kind}.block_scale.block{self.scales[0].type.block}" if self.scales else kind

    @property
    def d_type(self) -> str:
        return self.instruction.d_type if isinstance(self.instruction, InstructionDescriptor) else "f32"

    def instruction_of(self, step: int) -> InstructionDescriptor | BlockScaledInstructionDescriptor:
        """The instruction descriptor of one MMA of a K block: scale-factor ids count its part of a word of scales."""
        if isinstance(self.instruction, InstructionDescriptor):
            return self.instruction
        sfa, sfb = self.scales
        return replace(self.instruction, sfa_id=sfa.steps[step].id, sfb_id=sfb.steps[step].id)

    def explain(self) -> str:
        """The map in words: "512 of 512 TMEM columns × 128 lanes: accumulators in columns 0-255, 256-511"."""
        stages = ", ".join(f"{i * self.step}-{i * self.step + self.n - 1}" for i in range(self.stages))
        what = f"accumulators in columns {stages}" if self.stages > 1 else f"the accumulator in columns {stages}"
        shared = f", which share {self.overlap}" if self.overlap else ""
        others = "".join(f", {each.explain()}" for each in self.regions[self.stages :])
        return f"{self.columns} of {COLUMNS} TMEM columns × {LANES} lanes: {what}{shared}{others}"


def _plain(a: Operand | Fragments, b: Operand, m: int, n: int, cta_group: int) -> InstructionDescriptor:
    return InstructionDescriptor(
        kind=a.type.kind,
        a_type=a.dtype,
        b_type=b.dtype,
        d_type="s32" if a.type.is_integer else "f32",
        a_major=a.major,
        b_major=b.major,
        m=m,
        n=n,
        cta_group=cta_group,
    )


def _scaled(
    a: Operand | Fragments, b: Operand, m: int, n: int, cta_group: int, scales: tuple[ScaleOperand, ...]
) -> BlockScaledInstructionDescriptor:
    type = scales[0].type
    return BlockScaledInstructionDescriptor(
        kind=type.kind,
        scale_vec=f"block{type.block}",
        scale_type=type.scale,
        a_type=a.dtype,
        b_type=b.dtype,
        a_major=a.major,
        b_major=b.major,
        m=m,
        n=n,
        cta_group=cta_group,
        dense_k=a.mma_k,
    )


@dataclass(frozen=True)
class RegisterAccumulator:
    """An accumulator of m x n in registers: `blocks` times 64 rows per warpgroup for wgmma, or one element per thread.

    The registers of a wgmma are those of stmatrix fragments: two neighboring elements of a row in every 8 columns, and
    the same of the row 8 further down. `cut`: wgmma keeps only 13 bits of fraction in them, as in all sums of
    8-bit floating point. `promoted`: the sums of a K block, of 64 rows at a time, are in registers of their own and are
    added to the accumulator by the CUDA cores. `halves`: wgmmas side by side along N for 64 rows, 1 or 2; the registers
    of the second follow those of the first, and so are those of one wgmma of all columns.
    """

    m: int
    n: int
    d_type: str
    opcode: str = ""
    trans: str = ""
    cta_group: int = 1
    stages: int = 1
    cut: bool = False
    promoted: bool = False
    blocks: int = 1
    halves: int = 1

    @classmethod
    def of(
        cls,
        a: Operand | Fragments,
        b: Operand,
        *,
        m: int,
        n: int,
        warpgroups: int = 0,
        promote: bool = True,
        widest: int = MMA_COLUMNS,
    ) -> RegisterAccumulator:
        """The accumulator of wgmma, whose rows `warpgroups` share; 0: one for every 64.

        `widest`: columns of a wgmma at most, from which on two have half of the tile's each.

        Raises PlanError for types that wgmma does not multiply, and for rows or columns that cannot be shared so.
        """
        warpgroups = warpgroups or m // 64
        blocks = m // 64 // warpgroups
        if blocks not in (1, 2) or m != 64 * warpgroups * blocks:
            raise PlanError(f"a warpgroup multiplies 64 or 128 rows: {warpgroups} cannot share m_tile = {m}")
        floating = not a.type.is_integer
        pairs = {a.dtype, b.dtype}
        cut = a.type.kind == "f8f6f4"
        promoted, mixed = cut and promote, a.type.is_integer or cut
        narrow = min(a.type.bits, b.type.bits) < 8
        if narrow or (len(pairs) > 1 and not mixed) or a.type.kind != b.type.kind:
            raise PlanError(f"no wgmma multiplies {a.dtype} by {b.dtype}")
        halves = _halves(b, n, widest)
        columns = n // halves
        if not floating and columns % 16 and columns > 24:
            step, first = 16 * halves, "32" if halves == 1 else "272"
            raise PlanError(f"wgmma of {a.dtype} takes an N tile in steps of {step} from {first} on, not {n}")
        d_type = "f32" if floating else "s32"
        name = f"wgmma.mma_async.sync.aligned.m64n{columns}k{a.mma_k}.{d_type}.{a.dtype}.{b.dtype}"
        scales = ", 1, 1" if floating else ""
        transposed = [int(each.major == "mn") for each in (a, b) if isinstance(each, Operand)]
        majors = "".join(f", {each}" for each in transposed) if a.type.bytes == 2 else ""
        return cls(
            m, n, d_type, name, scales + majors, cut=cut, promoted=promoted, blocks=blocks, halves=halves
        )  # fmt: skip

    @property
    def warpgroups(self) -> int:
        return self.m // (64 * self.blocks)

    @property
    def rows(self) -> int:
        return self.m

    @property
    def rows_per_warp(self) -> int:
        return 16

    @property
    def columns(self) -> int:
        """Columns of tensor memory: none."""
        return 0

    @property
    def regions(self) -> tuple[ColumnRegion, ...]:
        """The map of tensor memory: empty."""
        return ()

    @property
    def registers(self) -> int:
        """Registers of a thread."""
        return (self.blocks + self.promoted) * self.n // 2 if self.opcode else 1

    @property
    def mma_registers(self) -> int:
        """Registers of a thread that one wgmma adds to."""
        return self.n // 2 // self.halves

    @property
    def parts(self) -> str:
        """What promoted sums take: "128 + 64 for a K block of 64 rows"; of others nothing."""
        own = self.n // 2
        return f"{self.blocks * own} + {own} for a K block of 64 rows" if self.promoted else ""

    def explain(self) -> str:
        words = f"{self.registers} register{'s' * (self.registers > 1)} a thread"
        return (
            f"{words}, {self.n // 2} of them for sums of one K block, which are added in fp32"
            if self.promoted
            else words
        )


def _halves(b: Operand, n: int, widest: int) -> int:
    """How many wgmmas have the columns of a tile, 1 or 2. Raises PlanError for columns that have no halves."""
    if n <= widest or (n <= MMA_COLUMNS and n % 16):
        return 1
    step = 16 if b.major == "k" else 2 * b.row_bytes // b.type.bytes
    if n % step:
        layout = "" if b.major == "k" else f", with B MN-major and swizzle {b.swizzle},"
        raise PlanError(f"two wgmmas share an N tile of {n} columns, which{layout} must be a multiple of {step}")
    return 2
