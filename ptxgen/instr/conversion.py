"""Conversion between types. PTX ISA 9.7.9 (cvt); the narrow formats (fp8, fp6, fp4, tf32) are not here yet."""

from dataclasses import KW_ONLY
from typing import Any, Literal, get_args

from ptxgen.instr.form import Instruction, OperandLike, rule
from ptxgen.instr.operands import register, source
from ptxgen.instr.targets import ALL, Availability

_Type = Literal["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "bf16", "f16", "f32", "f64"]
_TYPES = get_args(_Type)
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


def _is_integer(form: Any) -> bool:
    """Special registers convert to integers only (measured, ptxas 13.5)."""
    return form.dtype not in _WIDTH and form.atype not in _WIDTH


class cvt(Instruction, section="9.7.9 (cvt)", ptx="1.0", targets=ALL):
    """d = a in another type. `rounding` is rni.. towards an integer and rn.. towards a shorter float."""

    syntax = "cvt{.rounding}{.ftz}{.sat}.dtype.atype d, a"
    d: OperandLike = register("dtype", wide=_is_relaxed)
    a: OperandLike = source("atype", wide=_is_relaxed, special=_is_integer)
    _: KW_ONLY
    rounding: Literal["rni", "rzi", "rmi", "rpi", "rn", "rz", "rm", "rp"] | None = None
    ftz: bool = False
    sat: bool = False
    dtype: _Type
    atype: _Type
    needs = _BF16

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
            return f"{what} takes .rni, .rzi, .rmi or .rpi, not .{found}"
        if wanted == "optional" and found in _INTEGER_ROUNDING:
            return f"{what} takes .rn, .rz, .rm or .rp, not .{found}"
        if wanted == "none" and found is not None:
            return f"{what} is exact and takes no rounding, not .{found}"
        return None

    @rule("sat")
    def _sat(self) -> str | None:
        """.sat is where clamping can happen: not from a type into one that holds all its values, not with .bf16."""
        if not self.sat:
            return None
        what = f"cvt.{self.dtype}.{self.atype}"
        if "bf16" in (self.dtype, self.atype):
            return f"{what} takes no .sat"
        if self.dtype not in _WIDTH and self.atype not in _WIDTH and _contains(self.dtype, self.atype):
            return f"{what} takes no .sat: every .{self.atype} fits .{self.dtype}"
        return None

    @rule("ftz")
    def _ftz(self) -> str | None:
        """.ftz is for conversions from or to .f32."""
        if self.ftz and "f32" not in (self.dtype, self.atype):
            return f"cvt.ftz needs .f32 on one side, not .{self.dtype}.{self.atype}"
        return None


def _is_f16(form: Any) -> bool:
    return form.dtype in ("f16", "f16x2")


class cvt_half(Instruction, section="9.7.9 (cvt)", ptx="7.0", targets=ALL):
    """d = a, a .f32 as a 16-bit float; `relu` clamps negative values to 0, `satfinite` to the largest finite value."""

    syntax = "cvt.rounding{.relu}{.satfinite}.dtype.f32 d, a"
    d: OperandLike = register("dtype", wide=_is_f16)
    a: OperandLike = source("f32", wide=_is_f16)
    _: KW_ONLY
    rounding: Literal["rn", "rz"]
    relu: bool = False
    satfinite: bool = False
    dtype: Literal["f16", "bf16"]
    needs = {
        "relu": Availability("7.0", "sm_80+"),
        "bf16": Availability("7.0", "sm_80+"),
        "satfinite": Availability("8.1", ALL),
    }


class cvt_half2(Instruction, section="9.7.9 (cvt)", ptx="7.0", targets="sm_80+"):
    """d = a in the high half and b in the low half, each a .f32 as a 16-bit float."""

    syntax = "cvt.rounding{.relu}{.satfinite}.dtype.f32 d, a, b"
    d: OperandLike = register("dtype", wide=_is_f16)
    a: OperandLike = source("f32", wide=_is_f16)
    b: OperandLike = source("f32", wide=_is_f16)
    _: KW_ONLY
    rounding: Literal["rn", "rz"]
    relu: bool = False
    satfinite: bool = False
    dtype: Literal["f16x2", "bf16x2"]
    needs = {"satfinite": Availability("8.1", "sm_80+")}
