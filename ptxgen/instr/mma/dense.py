"""mma.sync: dense matrices. PTX ISA 9.7.14.5.14."""

from dataclasses import KW_ONLY
from typing import ClassVar, Literal

from ptxgen.instr.mma.common import Mma, d_count, d_type
from ptxgen.instr.model.form import OperandLike, rule
from ptxgen.instr.model.operands import vector
from ptxgen.instr.model.targets import Availability

F8 = Literal["e4m3", "e5m2"]
F8F6F4 = Literal["e4m3", "e5m2", "e3m2", "e2m3", "e2m1"]
Layout = Literal["row", "col"]


class f16_m8n8k4(Mma, ptx="6.4", targets="sm_70+"):
    """Four products at once, one for each two quads of a warp; made for sm_70, and slow later."""

    atype = btype = "f16"
    syntax = "mma.sync.aligned.m8n8k4.alayout.blayout.dtype.f16.f16.ctype d, a, b, c"
    _: KW_ONLY
    alayout: Layout
    blayout: Layout
    dtype: Literal["f16", "f32"]
    ctype: Literal["f16", "f32"]
    shape: ClassVar[str] = "m8n8k4"
    bits: ClassVar[int] = 16
    packed: ClassVar[str] = "f16x2"
    matrices: ClassVar[int] = 4

    @rule("accumulators")
    def _accumulators(self) -> str | None:
        """An f32 C requires an f32 D."""
        if self.ctype == "f32" and self.dtype == "f16":
            return "mma.m8n8k4 with .f32 as the type of C requires a D of .f32, not .f16"
        return None


class f16(Mma, ptx="6.5", targets="sm_75+"):
    """Half precision."""

    atype = btype = "f16"
    syntax = "mma.sync.aligned.shape.row.col.dtype.f16.f16.dtype d, a, b, c"
    _: KW_ONLY
    shape: Literal["m16n8k8", "m16n8k16"]
    dtype: Literal["f16", "f32"]
    bits: ClassVar[int] = 16
    packed: ClassVar[str] = "f16x2"
    needs = {"m16n8k16": Availability("7.0", "sm_80+")}


class bf16(Mma, ptx="7.0", targets="sm_80+"):
    """bfloat16."""

    atype = btype = "bf16"
    syntax = "mma.sync.aligned.shape.row.col.f32.bf16.bf16.f32 d, a, b, c"
    _: KW_ONLY
    shape: Literal["m16n8k8", "m16n8k16"]
    dtype: ClassVar[str] = "f32"
    bits: ClassVar[int] = 16
    packed: ClassVar[str] = "bf16x2"


class tf32(Mma, ptx="7.0", targets="sm_80+"):
    """tf32: 19 bits in a register of 32."""

    atype = btype = "tf32"
    syntax = "mma.sync.aligned.shape.row.col.f32.tf32.tf32.f32 d, a, b, c"
    _: KW_ONLY
    shape: Literal["m16n8k4", "m16n8k8"]
    dtype: ClassVar[str] = "f32"
    bits: ClassVar[int] = 32
    packed: ClassVar[str] = "tf32"


class f64(Mma, ptx="7.0", targets="sm_80+"):
    """Double precision, each step a fused multiply-add. D takes no `_` on sm_100 and later (measured, ptxas 13.5)."""

    atype = btype = "f64"
    syntax = "mma.sync.aligned.shape.row.col{.rounding}.f64.f64.f64.f64 d, a, b, c"
    d: OperandLike = vector(d_type, d_count)
    _: KW_ONLY
    shape: Literal["m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"]
    rounding: Literal["rn", "rz", "rm", "rp"] | None = None
    dtype: ClassVar[str] = "f64"
    bits: ClassVar[int] = 64
    packed: ClassVar[str] = "f64"
    needs = {shape: Availability("7.8", "sm_90+") for shape in ("m16n8k4", "m16n8k8", "m16n8k16")}


class f8(Mma, ptx="8.4", targets="sm_89+"):
    """8-bit floats. D takes no `_` on most targets (measured, ptxas 13.5)."""

    syntax = "mma.sync.aligned.shape.row.col.dtype.atype.btype.dtype d, a, b, c"
    d: OperandLike = vector(d_type, d_count)
    _: KW_ONLY
    shape: Literal["m16n8k16", "m16n8k32"]
    dtype: Literal["f16", "f32"]
    atype: F8
    btype: F8
    bits: ClassVar[int] = 8
    packed: ClassVar[str] = "b32"
    needs = {"m16n8k16": Availability("8.7", "sm_89+"), "dtype=f16": Availability("8.7", "sm_89+")}


class f8f6f4(Mma, ptx="8.6", targets="sm_100f sm_110f sm_120f"):
    """8-, 6- and 4-bit floats, each in a byte of its own.

    The manual has .m16n8k32 on sm_120f alone; ptxas 13.5 takes the 8-bit types with .m16n8k16 and on other targets too.
    """

    syntax = "mma.sync.aligned.shape.row.col.kind::f8f6f4.dtype.atype.btype.dtype d, a, b, c"
    d: OperandLike = vector(d_type, d_count)
    _: KW_ONLY
    shape: Literal["m16n8k16", "m16n8k32"]
    dtype: Literal["f16", "f32"]
    atype: F8F6F4
    btype: F8F6F4
    bits: ClassVar[int] = 8
    packed: ClassVar[str] = "b32"
    needs = {
        **{name: Availability("8.7", "sm_120f") for name in ("e3m2", "e2m3", "e2m1")},
        "m16n8k16": Availability("8.7", "sm_100f sm_110f sm_120f"),
        "dtype=f16": Availability("8.7", "sm_100f sm_110f sm_120f"),
    }

    @rule("narrow-types")
    def _narrow(self) -> str | None:
        """.m16n8k16 is for 8-bit types."""
        narrow = [each for each in (self.atype, self.btype) if each not in ("e4m3", "e5m2")]
        if self.shape == "m16n8k16" and narrow:
            return f".m16n8k16 requires .e4m3 or .e5m2, not .{narrow[0]}; .m16n8k32 allows it"
        return None


class i8(Mma, ptx="6.5", targets="sm_75+"):
    """8-bit integers; `satfinite` clamps the sums instead of wrapping them."""

    syntax = "mma.sync.aligned.shape.row.col{.satfinite}.s32.atype.btype.s32 d, a, b, c"
    _: KW_ONLY
    shape: Literal["m8n8k16", "m16n8k16", "m16n8k32"]
    satfinite: bool = False
    atype: Literal["s8", "u8"]
    btype: Literal["s8", "u8"]
    dtype: ClassVar[str] = "s32"
    bits: ClassVar[int] = 8
    packed: ClassVar[str] = "b32"
    needs = {shape: Availability("7.0", "sm_80+") for shape in ("m16n8k16", "m16n8k32")}


class i4(Mma, ptx="6.5", targets="sm_75+"):
    """4-bit integers; `satfinite` clamps the sums instead of wrapping them."""

    syntax = "mma.sync.aligned.shape.row.col{.satfinite}.s32.atype.btype.s32 d, a, b, c"
    _: KW_ONLY
    shape: Literal["m8n8k32", "m16n8k32", "m16n8k64"]
    satfinite: bool = False
    atype: Literal["s4", "u4"]
    btype: Literal["s4", "u4"]
    dtype: ClassVar[str] = "s32"
    bits: ClassVar[int] = 4
    packed: ClassVar[str] = "b32"
    needs = {shape: Availability("7.0", "sm_80+") for shape in ("m16n8k32", "m16n8k64")}


class b1(Mma, ptx="7.0", targets="sm_75+"):
    """Single bits: `op` of a row of A and a column of B, and the number of ones in it added to C."""

    atype = btype = "b1"
    syntax = "mma.sync.aligned.shape.row.col.s32.b1.b1.s32.op.popc d, a, b, c"
    _: KW_ONLY
    shape: Literal["m8n8k128", "m16n8k128", "m16n8k256"]
    op: Literal["xor", "and"]
    dtype: ClassVar[str] = "s32"
    bits: ClassVar[int] = 1
    packed: ClassVar[str] = "b32"
    needs = {
        **{shape: Availability("7.0", "sm_80+") for shape in ("m16n8k128", "m16n8k256")},
        "and": Availability("7.1", "sm_80+"),
    }
