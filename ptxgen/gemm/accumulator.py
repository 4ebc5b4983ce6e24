"""The accumulator, in tensor memory or in registers, and the instruction that adds to it."""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.descriptors import DescriptorError, InstructionDescriptor
from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.operand import Operand
from ptxgen.gemm.types import TYPES
from ptxgen.layouts.tmem import COLUMNS, LANES

#: A CTA's warps reach one quarter of the 128 TMEM lanes each (PTX ISA 9.7.16.2.1).
QUARTERS = 4


@dataclass(frozen=True)
class Accumulator:
    """`stages` accumulators of m x n side by side in tensor memory; m and n are the MMA's, of the pair with 2."""

    m: int
    n: int
    cta_group: int
    stages: int
    instruction: InstructionDescriptor

    @classmethod
    def of(cls, a: Operand, b: Operand, *, m: int, n: int, cta_group: int, stages: int) -> Accumulator:
        """Raises PlanError for a tile that tcgen05.mma does not have, and for more than 512 columns."""
        legal = {1: (64, 128), 2: (256,)}[cta_group]
        if m not in legal:
            words = " or ".join(map(str, legal))
            raise PlanError(f"the M tile must be {words} (tcgen05.mma with cta_group::{cta_group}), not {m}")
        if not 32 <= n <= 256 or n % 16:
            raise PlanError(f"the N tile must be 32 to 256 in steps of 16, not {n}")
        if TYPES[a.dtype].kind != TYPES[b.dtype].kind:
            raise PlanError(f"no MMA multiplies {a.dtype} by {b.dtype}")
        try:
            instruction = InstructionDescriptor(
                kind=a.type.kind, a_type=a.dtype, b_type=b.dtype, d_type="s32" if a.type.is_integer else "f32",
                a_major=a.major, b_major=b.major, m=m, n=n, cta_group=cta_group,
            )  # fmt: skip
        except DescriptorError as error:
            raise PlanError(f"the tile {m}×{n} has no descriptor: {error}") from error
        made = cls(m, n, cta_group, stages, instruction)
        if made.columns > COLUMNS:
            raise PlanError(
                f"the accumulators need {made.columns} TMEM columns ({stages} x {n}, allocated as a power of two); "
                f"there are {COLUMNS}"
            )
        return made

    @property
    def columns(self) -> int:
        """Allocated columns: a power of two of at least 32 (PTX ISA 9.7.16.7.1)."""
        columns = 32
        while columns < self.stages * self.n:
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
        return self.instruction.kind

    @property
    def d_type(self) -> str:
        return self.instruction.d_type

    def explain(self) -> str:
        stages = ", ".join(f"{i * self.n}-{(i + 1) * self.n - 1}" for i in range(self.stages))
        what = f"accumulators in columns {stages}" if self.stages > 1 else f"the accumulator in columns {stages}"
        return f"{self.columns} of {COLUMNS} TMEM columns × {LANES} lanes: {what}"


@dataclass(frozen=True)
class RegisterAccumulator:
    """An accumulator of m x n in registers: 64 rows per warpgroup for wgmma, or one element per thread.

    The registers of a wgmma are those of stmatrix fragments: two neighboring elements of a row in every 8 columns, and
    the same of the row 8 further down. `promoted`: the sums of a K block are in registers of their own and are added to
    the accumulator by the CUDA cores, as wgmma keeps only 13 bits of fraction in sums of 8-bit floating point.
    """

    m: int
    n: int
    d_type: str
    opcode: str = ""
    trans: str = ""
    cta_group: int = 1
    stages: int = 1
    promoted: bool = False

    @classmethod
    def of(cls, a: Operand, b: Operand, *, m: int, n: int) -> RegisterAccumulator:
        """The accumulator of wgmma. Raises PlanError for types that it does not multiply."""
        floating = not a.type.is_integer
        pairs = {a.dtype, b.dtype}
        promoted = a.type.kind == "f8f6f4"
        mixed = a.type.is_integer or promoted
        if (len(pairs) > 1 and not mixed) or a.type.kind != b.type.kind:
            raise PlanError(f"no wgmma multiplies {a.dtype} by {b.dtype}")
        d_type = "f32" if floating else "s32"
        name = f"wgmma.mma_async.sync.aligned.m64n{n}k{a.mma_k}.{d_type}.{a.dtype}.{b.dtype}"
        scales = ", 1, 1" if floating else ""
        majors = f", {int(a.major == 'mn')}, {int(b.major == 'mn')}" if a.type.bytes == 2 else ""
        return cls(m, n, d_type, name, scales + majors, promoted=promoted)

    @property
    def warpgroups(self) -> int:
        return self.m // 64

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
    def registers(self) -> int:
        """Registers of a thread."""
        return (1 + self.promoted) * self.n // 2 if self.opcode else 1

    def explain(self) -> str:
        words = f"{self.registers} register{'s' * (self.registers > 1)} a thread"
        return f"{words}, half of them for sums of one K block, which are added in fp32" if self.promoted else words
