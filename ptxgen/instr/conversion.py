"""Conversion between types. PTX ISA 9.7.9.21 (cvt) and 9.7.9.22 (cvt.pack).

Packed formats (.f16x2, .e4m3x2 and so on) sit in untyped registers of their width, the value of the first source in
the upper bits. The narrow ones are fp8 (e4m3, e5m2), fp6 (e2m3, e3m2; each in 8 bits), fp4 (e2m1), the powers of two
ue8m0, the scale factors ue5m3, and s2f6, fixed-point numbers with six bits after the point.
"""

from dataclasses import KW_ONLY
from typing import Any, Literal, get_args

from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import register, source, vector
from ptxgen.instr.model.syntax_line import flag
from ptxgen.instr.model.targets import ALL, Availability
from ptxgen.syntax import Immediate

_Type = Literal["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "bf16", "f16", "f32", "f64"]
_TYPES = get_args(_Type)
#: What PTX 9.4 added for sm_107.
_SM107 = Availability("9.4", "sm_107f")
#: .bf16 against .f32 came with sm_80, with .ftz and against the others with sm_90 (measured, ptxas 13.5).
_BF16 = {
    "bf16": Availability("7.0", "sm_80+"),
    "atype=bf16": Availability("7.1", ALL),
    "ftz dtype=f32 atype=bf16": Availability("7.8", "sm_90+"),
    **{f"dtype=bf16 atype={name}": Availability("7.8", "sm_90+") for name in _TYPES if name != "f32"},
    **{f"dtype={name} atype=bf16": Availability("7.8", "sm_90+") for name in _TYPES if name != "f32"},
}
_WIDTH = {"bf16": 16, "f16": 16, "f32": 32, "f64": 64}
_INTEGER_ROUNDING = ("rni", "rzi", "rmi", "rpi")


def _needed_rounding(dtype: str, atype: str) -> str:
    """One of "integer", "float", "either" (optional integer), "optional" (optional float, measured), "none"."""
    if dtype not in _WIDTH:
        return "integer" if atype in _WIDTH else "none"
    if atype == "bf16" and dtype in ("f32", "f64"):
        return "optional"
    if atype not in _WIDTH or _WIDTH[dtype] < _WIDTH[atype]:
        return "float"
    if dtype == atype:
        return "either"
    if _WIDTH[dtype] == _WIDTH[atype]:  # f16 and bf16: the manual asks for a rounding, ptxas does not (measured, 13.5)
        return "optional"
    return "none"


def _contains(dtype: str, atype: str) -> bool:
    """Whether every value of one integer type is one of another."""
    wide, narrow = int(dtype[1:]), int(atype[1:])
    if dtype[0] == atype[0]:
        return wide >= narrow
    return dtype[0] == "s" and wide > narrow


def _is_relaxed(form: Any) -> bool:
    """Registers may be wider than the types, except with .bf16 (measured, ptxas 13.5)."""
    return "bf16" not in (form.dtype, getattr(form, "atype", "f32"))


def _has_wide_result(form: Any) -> bool:
    """As _is_relaxed; where ptxas 13.5 calls a routine for the conversion, it wants the exact width (measured)."""
    return _is_relaxed(form) and not (form.ftz and form.atype == "f64" and form.rounding != "rn")


def _is_integer(form: Any) -> bool:
    """Special registers convert to integers only (measured, ptxas 13.5)."""
    return form.dtype not in _WIDTH and form.atype not in _WIDTH


def _is_direct(form: Any) -> bool:
    """Whether ptxas makes one instruction of it, not one that flushes subnormals before (measured, ptxas 13.5)."""
    return not form.ftz or not {form.dtype, form.atype} & {"f64", "u64", "s64"}


class cvt(Instruction, section="9.7.9.21", ptx="1.0", targets=ALL):
    """d = a in another type. `rounding` is rni.. towards an integer and rn.. towards a shorter float.

    `pzo` makes -0.0 results +0.0.
    """

    syntax = "cvt{.rounding}{.ftz}{.sat}{.pzo}.dtype.atype d, a"
    d: OperandLike = register("dtype", wide=_has_wide_result)
    a: OperandLike = source("atype", wide=_is_relaxed, special=_is_integer, float_sums=_is_direct)
    _: KW_ONLY
    rounding: Literal["rni", "rzi", "rmi", "rpi", "rn", "rz", "rm", "rp"] | None = None
    ftz: bool = False
    sat: bool = False
    pzo: bool = False
    dtype: _Type
    atype: _Type
    needs = {**_BF16, "pzo": _SM107}

    @rule("rounding")
    def _rounding(self) -> str | None:
        """Float to integer needs an integer rounding, to a shorter or other float a float rounding."""
        wanted = _needed_rounding(self.dtype, self.atype)
        what = f"cvt.{self.dtype}.{self.atype}"
        found = self.rounding
        if wanted == "integer" and found not in _INTEGER_ROUNDING:
            return f"{what} needs .rni, .rzi, .rmi or .rpi" + (f", not .{found}" if found else "")
        if wanted == "float" and (found is None or found in _INTEGER_ROUNDING):
            return f"{what} needs .rn, .rz, .rm or .rp" + (f", not .{found}" if found else "")
        if wanted == "either" and found is not None and found not in _INTEGER_ROUNDING:
            return f"{what} requires .rni, .rzi, .rmi or .rpi, not .{found}"
        if wanted == "optional" and found in _INTEGER_ROUNDING:
            return f"{what} requires .rn, .rz, .rm or .rp, not .{found}"
        if wanted == "none" and found is not None:
            return f"{what} is exact and allows no rounding, not .{found}"
        return None

    @rule("sat")
    def _sat(self) -> str | None:
        """.sat is where clamping can happen: not from a type into one that holds all its values, not with .bf16."""
        if not self.sat:
            return None
        what = f"cvt.{self.dtype}.{self.atype}"
        if "bf16" in (self.dtype, self.atype):
            return f"{what} allows no .sat"
        if self.dtype not in _WIDTH and self.atype not in _WIDTH and _contains(self.dtype, self.atype):
            return f"{what} allows no .sat: every .{self.atype} fits .{self.dtype}"
        return None

    @rule("pzo")
    def _pzo(self) -> str | None:
        """.pzo is for .f32 as .f16 or .bf16: the only shorter floats that zeros with a sign come from (ptxas 13.5)."""
        if not self.pzo:
            return None
        if self.atype != "f32" or self.dtype not in ("f16", "bf16"):
            return f"cvt.pzo requires a .f32 as .f16 or .bf16, not .{self.dtype}.{self.atype}"
        if self.sat or (self.ftz and self.dtype == "f16"):
            return f"cvt.pzo.{self.dtype}.f32 allows no .{'sat' if self.sat else 'ftz'}"
        return None

    @rule("ftz")
    def _ftz(self) -> str | None:
        """.ftz is for conversions from or to .f32."""
        if self.ftz and "f32" not in (self.dtype, self.atype):
            return f"cvt.ftz requires .f32 on one side, not .{self.dtype}.{self.atype}"
        return None


#: The families with formats beyond fp8.
_NARROW_TARGETS = "sm_100f sm_110f sm_120f"
_RANDOM_TARGETS = "sm_100a sm_103a sm_107a"
_S2F6_TARGETS = "sm_100a sm_103a sm_107a sm_110a sm_120a sm_121a"
_Pair = Literal["f16x2", "bf16x2"]


def _is_f16(form: Any) -> bool:
    return form.dtype in ("f16", "f16x2")


class cvt_half(Instruction, section="9.7.9.21", ptx="7.0", targets=ALL):
    """d = a, a .f32 as a 16-bit float; `relu` clamps negative values to 0, `satfinite` to the largest finite value.

    `pzo` makes -0.0 results +0.0.
    """

    syntax = "cvt.rounding{.relu}{.satfinite}{.pzo}.dtype.f32 d, a"
    d: OperandLike = register("dtype", wide=_is_f16)
    a: OperandLike = source("f32", wide=_is_f16)
    _: KW_ONLY
    rounding: Literal["rn", "rz"]
    relu: bool = False
    satfinite: bool = False
    pzo: bool = False
    dtype: Literal["f16", "bf16"]
    needs = {
        "pzo": _SM107,
        "relu": Availability("7.0", "sm_80+"),
        "bf16": Availability("7.0", "sm_80+"),
        "satfinite": Availability("8.1", ALL),
    }


class cvt_half2(Instruction, section="9.7.9.21", ptx="7.0", targets="sm_80+"):
    """d = a in the high half and b in the low half, each a .f32 as a 16-bit float."""

    syntax = "cvt.rounding{.relu}{.satfinite}{.pzo}.dtype.f32 d, a, b"
    d: OperandLike = register("dtype", wide=_is_f16)
    a: OperandLike = source("f32", wide=_is_f16)
    b: OperandLike = source("f32", wide=_is_f16)
    _: KW_ONLY
    rounding: Literal["rn", "rz"]
    relu: bool = False
    satfinite: bool = False
    pzo: bool = False
    dtype: _Pair
    needs = {"satfinite": Availability("8.1", "sm_80+"), "pzo": _SM107}


class cvt_half2_rs(Instruction, opcode="cvt", section="9.7.9.21", ptx="8.7", targets=_RANDOM_TARGETS):
    """As cvt_half2, but up or down by chance: the halves of `rbits` are random bits for a and b (13 each for .f16)."""

    syntax = "cvt.rs{.relu}{.satfinite}.dtype.f32 d, a, b, rbits"
    d: OperandLike = register("dtype", wide=_is_f16)
    a: OperandLike = source("f32", wide=_is_f16)
    b: OperandLike = source("f32", wide=_is_f16)
    rbits: OperandLike = register("b32", untyped=True, sums=True)
    _: KW_ONLY
    relu: bool = False
    satfinite: bool = False
    dtype: _Pair


class cvt_tf32(Instruction, opcode="cvt", section="9.7.9.21", ptx="7.0", targets="sm_80+"):
    """d = a, a .f32 as .tf32: 10 bits of fraction, in a .b32 register. .rna rounds ties away from zero."""

    syntax = "cvt.rounding{.satfinite}{.relu}{.pzo}.tf32.f32 d, a"
    d: OperandLike = register("tf32")
    a: OperandLike = source("f32", float_sums=lambda form: form.rounding != "rna")
    _: KW_ONLY
    rounding: Literal["rna", "rn", "rz"]
    satfinite: bool = False
    relu: bool = False
    pzo: bool = False
    needs = {
        "pzo": _SM107,
        "satfinite": Availability("8.1", "sm_80+"),
        **dict.fromkeys(("rn", "rz"), Availability("7.8", "sm_90+")),
        **dict.fromkeys(("rn satfinite", "rz satfinite"), Availability("8.6", "sm_100+")),
    }

    @rule("relu")
    def _relu(self) -> str | None:
        """.relu is for .rn and .rz."""
        return "cvt.rna.tf32.f32 allows no .relu; use .rn or .rz" if self.relu and self.rounding == "rna" else None

    @rule("pzo")
    def _pzo(self) -> str | None:
        """.pzo is for .rn and .rz."""
        return "cvt.rna.tf32.f32 allows no .pzo; use .rn or .rz" if self.pzo and self.rounding == "rna" else None

    @rule("constant", reads_operands=True)
    def _constant(self) -> str | None:
        """.rna takes constants of 32 bits, not decimal ones (measured, ptxas 13.5)."""
        if self.rounding == "rna" and isinstance(self.a, Immediate) and self.a.width is None:
            return f"a must be a register or a constant of 32 bits such as 0f3F800000 for .rna, not {self.a}"
        return None


# Narrow formats. satfinite clamps to the largest finite value; where it must stand, there are no infinities to give.


class _ToNarrow(Instruction, opcode="cvt", section="9.7.9.21", ptx="7.8", targets="sm_89+"):
    _: KW_ONLY
    rounding: Literal["rn", "rz"]
    relu: bool = False
    pzo: bool = False
    scaled: bool = flag("scaled::n1::ue8m0", default=False)
    dtype: Literal["e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2"]
    needs = {
        "sm_89": Availability("8.1", ALL),
        **dict.fromkeys(("e2m3x2", "e3m2x2", "e2m1x2"), Availability("8.6", _NARROW_TARGETS)),
        "rz": _SM107,
        "pzo": _SM107,
        "scaled::n1::ue8m0": _SM107,
    }


class cvt_narrow2(_ToNarrow):
    """d = a and b, two .f32, in a narrow format; with `scaled` divided by the .ue8m0 `scale` first."""

    syntax = "cvt.rounding.satfinite{.relu}{.pzo}{.scaled}.dtype.f32 d, a, b{, scale}"
    d: OperandLike = register("dtype")
    a: OperandLike = source("f32")
    b: OperandLike = source("f32")
    scale: OperandLike = source("ue8m0", when="scaled")


class cvt_narrow2_pair(_ToNarrow):
    """d = both halves of a in a narrow format; with `scaled` divided by the .ue8m0 `scale` first."""

    syntax = "cvt.rounding.satfinite{.relu}{.pzo}{.scaled}.dtype.atype d, a{, scale}"
    d: OperandLike = register("dtype")
    a: OperandLike = source("atype")
    scale: OperandLike = source("ue8m0", when="scaled")
    _: KW_ONLY
    atype: _Pair
    needs = {
        **_ToNarrow.needs,
        **dict.fromkeys(("bf16x2", "e2m3x2", "e3m2x2", "e2m1x2"), Availability("9.1", _NARROW_TARGETS)),
    }


class cvt_narrow4_rs(Instruction, opcode="cvt", section="9.7.9.21", ptx="8.7", targets=_RANDOM_TARGETS):
    """d = four .f32 in a narrow format, rounded up or down by chance.

    The first of `abef` goes to the upper bits. The upper half of `rbits` is for its first two, the lower for the others
    (for .e2m1x4 their upper and lower bytes); the first of each two takes the bits in reverse order.
    """

    syntax = "cvt.rs{.relu}.satfinite.dtype.f32 d, abef, rbits"
    d: OperandLike = register("dtype", plain=True)
    abef: OperandLike = vector("f32", 4, mixed=True)
    rbits: OperandLike = register("b32", untyped=True, sums=True)
    _: KW_ONLY
    relu: bool = False
    dtype: Literal["e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4", "e2m1x4"]


def _signed(form: Any) -> str | None:
    """.relu is for formats with a sign."""
    return "cvt from .ue5m3x2 allows no .relu: it has no sign" if form.relu and form.atype == "ue5m3x2" else None


class cvt_f16x2(Instruction, opcode="cvt", section="9.7.9.21", ptx="7.8", targets="sm_89+"):
    """d = two narrow values as .f16; `relu` clamps negative ones to 0."""

    syntax = "cvt.rn{.relu}.f16x2.atype d, a"
    d: OperandLike = register("f16x2")
    a: OperandLike = source("atype")
    _: KW_ONLY
    relu: bool = False
    atype: Literal["e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2", "ue5m3x2"]
    needs = {
        "sm_89": Availability("8.1", ALL),
        **dict.fromkeys(("e2m3x2", "e3m2x2", "e2m1x2"), Availability("8.6", _NARROW_TARGETS)),
        "ue5m3x2": _SM107,
    }
    _relu = rule("relu")(_signed)


class cvt_bf16x2(Instruction, opcode="cvt", section="9.7.9.21", ptx="9.1", targets=_NARROW_TARGETS):
    """d = two narrow values as .bf16; with `scaled` times the two .ue8m0 powers of two in `scale`."""

    syntax = "cvt.rn{.relu}{.satfinite}{.scaled}.bf16x2.atype d, a{, scale}"
    d: OperandLike = register("bf16x2")
    a: OperandLike = source("atype")
    scale: OperandLike = source("ue8m0x2", when="scaled")
    _: KW_ONLY
    relu: bool = False
    satfinite: bool = False
    scaled: bool = flag("scaled::n2::ue8m0", default=False)
    atype: Literal["e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2", "ue5m3x2", "s2f6x2"]
    needs = {
        **dict.fromkeys(("e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2"), Availability("9.2", _NARROW_TARGETS)),
        "ue5m3x2": _SM107,
        "s2f6x2": Availability("9.1", _S2F6_TARGETS),
    }
    _relu = rule("relu")(_signed)


class _ToScale(Instruction, opcode="cvt", section="9.7.9.21", ptx="8.6", targets=_NARROW_TARGETS):
    d: OperandLike = register("ue8m0x2")
    _: KW_ONLY
    rounding: Literal["rz", "rp"]
    satfinite: bool = False


class cvt_ue8m0x2(_ToScale):
    """d = a and b, two .f32, as powers of two."""

    syntax = "cvt.rounding{.satfinite}.ue8m0x2.f32 d, a, b"
    a: OperandLike = source("f32")
    b: OperandLike = source("f32")


class cvt_ue8m0x2_pair(_ToScale):
    """d = both halves of a, two .bf16, as powers of two."""

    syntax = "cvt.rounding{.satfinite}.ue8m0x2.bf16x2 d, a"
    a: OperandLike = source("bf16x2")


class cvt_bf16x2_ue8m0x2(Instruction, opcode="cvt", section="9.7.9.21", ptx="8.6", targets=_NARROW_TARGETS):
    """d = two powers of two as .bf16."""

    syntax = "cvt.rn.bf16x2.ue8m0x2 d, a"
    d: OperandLike = register("bf16x2")
    a: OperandLike = source("ue8m0x2")


class _ToUe5m3(Instruction, opcode="cvt", section="9.7.9.21", ptx="9.4", targets="sm_107f"):
    d: OperandLike = register("ue5m3x2")
    _: KW_ONLY
    rounding: Literal["rn", "rz", "rp"]
    satfinite: bool = False
    scaled: bool = flag("scaled::n1::ue8m0", default=False)

    @rule("scaled")
    def _scaled(self) -> str | None:
        """Scaling goes with .rn and .rz."""
        return "cvt.rp.ue5m3x2 allows no scale; use .rn or .rz" if self.scaled and self.rounding == "rp" else None


class cvt_ue5m3x2(_ToUe5m3):
    """d = a and b, two .f32, as .ue5m3; with `scaled` divided by the .ue8m0 `scale` first."""

    syntax = "cvt.rounding{.satfinite}{.scaled}.ue5m3x2.f32 d, a, b{, scale}"
    a: OperandLike = source("f32")
    b: OperandLike = source("f32")
    scale: OperandLike = source("ue8m0", when="scaled")


class cvt_ue5m3x2_pair(_ToUe5m3):
    """d = both halves of a as .ue5m3; with `scaled` divided by the .ue8m0 `scale` first."""

    syntax = "cvt.rounding{.satfinite}{.scaled}.ue5m3x2.atype d, a{, scale}"
    a: OperandLike = source("atype")
    scale: OperandLike = source("ue8m0", when="scaled")
    _: KW_ONLY
    atype: _Pair


class _ToS2f6(Instruction, opcode="cvt", section="9.7.9.21", ptx="9.1", targets=_S2F6_TARGETS):
    d: OperandLike = register("b16")  # any register of 16 bits (measured, ptxas 13.5)
    _: KW_ONLY
    rounding: Literal["rn", "rz"]
    relu: bool = False
    scaled: bool = flag("scaled::n2::ue8m0", default=False)
    needs = {"rz": Availability("9.4", "sm_107a")}


class cvt_s2f6x2(_ToS2f6):
    """d = a and b, two .f32, as .s2f6; with `scaled` divided by the two .ue8m0 powers of two in `scale` first."""

    syntax = "cvt.rounding.satfinite{.relu}{.scaled}.s2f6x2.f32 d, a, b{, scale}"
    a: OperandLike = source("f32")
    b: OperandLike = source("f32")
    scale: OperandLike = source("ue8m0x2", when="scaled")


class cvt_s2f6x2_pair(_ToS2f6):
    """d = both halves of a as .s2f6; with `scaled` divided by the two .ue8m0 powers of two in `scale` first."""

    syntax = "cvt.rounding.satfinite{.relu}{.scaled}.s2f6x2.bf16x2 d, a{, scale}"
    a: OperandLike = source("bf16x2")
    scale: OperandLike = source("ue8m0x2", when="scaled")


class cvt_pack16(Instruction, opcode="cvt.pack", section="9.7.9.22", ptx="6.5", targets="sm_72+"):
    """d = a and b clamped to 16 bits, a in the upper half."""

    syntax = "cvt.pack.sat.type.s32 d, a, b"
    d: OperandLike = register("u32", wide=True)
    a: OperandLike = source("s32", wide=True)
    b: OperandLike = source("s32", wide=True)
    _: KW_ONLY
    type: Literal["u16", "s16"]


class cvt_pack(Instruction, opcode="cvt.pack", section="9.7.9.22", ptx="6.5", targets="sm_72+"):
    """d = a and b clamped to 2, 4 or 8 bits, below them the lower bits of c: four of these pack eight, and so on."""

    syntax = "cvt.pack.sat.type.s32.b32 d, a, b, c"
    d: OperandLike = register("u32", wide=True)
    a: OperandLike = source("s32", wide=True)
    b: OperandLike = source("s32", wide=True)
    c: OperandLike = source("b32", wide=True)
    _: KW_ONLY
    type: Literal["u2", "s2", "u4", "s4", "u8", "s8"]
    needs = dict.fromkeys(("u2", "s2", "u4", "s4"), Availability("1.0", "sm_75+"))
