"""mma.sp: sparse A. PTX ISA 9.7.14.6.3. mma.sp itself is slow on later targets; sp::ordered_metadata is not."""

from dataclasses import KW_ONLY
from typing import ClassVar, Literal

from ptxgen.instr.mma.common import SparseMma, d_count, d_type
from ptxgen.instr.mma.dense import F8, F8F6F4
from ptxgen.instr.model.form import OperandLike, rule
from ptxgen.instr.model.operands import vector
from ptxgen.instr.model.targets import Availability, Target

_Variant = Literal["sp", "sp::ordered_metadata"]
#: Targets that have ordered metadata alone, and those without sparse products of 8-bit floats (measured, ptxas 13.5).
_WITHOUT_ORDER = range(100, 1000)
_CONVERTED = range(90, 120)
_ORDERED = {"sp::ordered_metadata": Availability("8.5", "sm_80+")}


class sp_f16(SparseMma):
    """Half precision."""

    atype = btype = "f16"
    syntax = "mma.variant.sync.aligned.shape.row.col.dtype.f16.f16.dtype d, a, b, c, e, f"
    _: KW_ONLY
    variant: _Variant
    shape: Literal["m16n8k16", "m16n8k32"]
    dtype: Literal["f16", "f32"]
    bits: ClassVar[int] = 16
    packed: ClassVar[str] = "f16x2"
    needs = _ORDERED
    functions = _WITHOUT_ORDER

    def is_function(self, target: Target) -> bool:
        return self.variant == "sp" and super().is_function(target)


class sp_bf16(SparseMma):
    """bfloat16."""

    atype = btype = "bf16"
    syntax = "mma.variant.sync.aligned.shape.row.col.f32.bf16.bf16.f32 d, a, b, c, e, f"
    _: KW_ONLY
    variant: _Variant
    shape: Literal["m16n8k16", "m16n8k32"]
    dtype: ClassVar[str] = "f32"
    bits: ClassVar[int] = 16
    packed: ClassVar[str] = "b32"
    needs = _ORDERED


class sp_tf32(SparseMma):
    """tf32: 19 bits in a register of 32."""

    atype = btype = "tf32"
    syntax = "mma.variant.sync.aligned.shape.row.col.f32.tf32.tf32.f32 d, a, b, c, e, f"
    _: KW_ONLY
    variant: _Variant
    shape: Literal["m16n8k8", "m16n8k16"]
    dtype: ClassVar[str] = "f32"
    bits: ClassVar[int] = 32
    packed: ClassVar[str] = "b32"
    needs = _ORDERED


class sp_f8(SparseMma, ptx="8.4", targets="sm_89+"):
    """8-bit floats."""

    syntax = "mma.variant.sync.aligned.m16n8k64.row.col.dtype.atype.btype.dtype d, a, b, c, e, f"
    d: OperandLike = vector(d_type, d_count)
    _: KW_ONLY
    variant: _Variant
    dtype: Literal["f16", "f32"]
    atype: F8
    btype: F8
    shape: ClassVar[str] = "m16n8k64"
    bits: ClassVar[int] = 8
    packed: ClassVar[str] = "b32"
    needs = {**_ORDERED, "dtype=f16": Availability("8.7", "sm_120f")}
    converted = _CONVERTED

    @rule("f16-metadata")
    def _f16(self) -> str | None:
        """f16 accumulators require ordered metadata."""
        if self.dtype == "f16" and self.variant == "sp":
            return "mma.sp of 8-bit floats requires a D of .f32, not .f16; use mma.sp::ordered_metadata"
        return None


class sp_f8f6f4(SparseMma, ptx="8.6", targets="sm_100f sm_110f sm_120f"):
    """8-, 6- and 4-bit floats, each in a byte of its own.

    The manual has it for sm_120f alone; ptxas 13.5 takes the 8-bit types on more targets (measured).
    """

    syntax = (
        "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.dtype.atype.btype.dtype d, a, b, c, e, f"
    )
    d: OperandLike = vector(d_type, d_count)
    _: KW_ONLY
    dtype: Literal["f16", "f32"]
    atype: F8F6F4
    btype: F8F6F4
    shape: ClassVar[str] = "m16n8k64"
    bits: ClassVar[int] = 8
    packed: ClassVar[str] = "b32"
    needs = {name: Availability("8.7", "sm_120f") for name in ("e3m2", "e2m3", "e2m1", "dtype=f16")}
    converted = _CONVERTED


class sp_i8(SparseMma):
    """8-bit integers; `satfinite` clamps the sums instead of wrapping them."""

    syntax = "mma.variant.sync.aligned.shape.row.col{.satfinite}.s32.atype.btype.s32 d, a, b, c, e, f"
    _: KW_ONLY
    variant: _Variant
    shape: Literal["m16n8k32", "m16n8k64"]
    satfinite: bool = False
    atype: Literal["s8", "u8"]
    btype: Literal["s8", "u8"]
    dtype: ClassVar[str] = "s32"
    bits: ClassVar[int] = 8
    packed: ClassVar[str] = "b32"
    needs = _ORDERED
    functions = _WITHOUT_ORDER

    def is_function(self, target: Target) -> bool:
        return self.variant == "sp" and super().is_function(target)


class sp_i4(SparseMma):
    """4-bit integers; `satfinite` clamps the sums instead of wrapping them."""

    syntax = "mma.variant.sync.aligned.shape.row.col{.satfinite}.s32.atype.btype.s32 d, a, b, c, e, f"
    _: KW_ONLY
    variant: _Variant
    shape: Literal["m16n8k64", "m16n8k128"]
    satfinite: bool = False
    atype: Literal["s4", "u4"]
    btype: Literal["s4", "u4"]
    dtype: ClassVar[str] = "s32"
    bits: ClassVar[int] = 4
    packed: ClassVar[str] = "b32"
    needs = _ORDERED
    functions = range(90, 1000)
