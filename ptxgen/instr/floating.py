"""Floating-point arithmetic in .f32 and .f64. PTX ISA 9.7.3; half precision (9.7.4) is not here yet."""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.form import Instruction, OperandLike, rule
from ptxgen.instr.operands import register, source
from ptxgen.instr.targets import ALL, Availability

_Rounding = Literal["rn", "rz", "rm", "rp"]
_Float = Literal["f32", "f64"]


def f32_only(form: Any) -> str | None:
    """.ftz, .sat, .NaN and .xorsign are for .f32."""
    for name in ("ftz", "sat", "NaN", "xorsign"):
        if form.type == "f64" and getattr(form, name, False):
            return f"{form.form.opcode}.f64 has no .{name}; it is for .f32"
    return None


_MINMAX_NEEDS = {"NaN": Availability("7.0", "sm_80+"), "xorsign": Availability("7.2", "sm_86+")}


def _signed_magnitude(form: Any) -> str | None:
    """.xorsign and .abs come together."""
    if form.xorsign != form.abs:
        return f"{form.form.opcode} takes .xorsign.abs together, or neither"
    return None


class add(Instruction, section="9.7.3.3", ptx="1.0", targets=ALL):
    """d = a + b, rounded to nearest even unless `rounding` says otherwise."""

    syntax = "add{.rounding}{.ftz}{.sat}.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    rounding: _Rounding | None = None
    ftz: bool = False
    sat: bool = False
    type: _Float
    _f32 = rule("f32-only")(f32_only)


class sub(Instruction, section="9.7.3.4", ptx="1.0", targets=ALL):
    """d = a - b, rounded to nearest even unless `rounding` says otherwise."""

    syntax = "sub{.rounding}{.ftz}{.sat}.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    rounding: _Rounding | None = None
    ftz: bool = False
    sat: bool = False
    type: _Float
    _f32 = rule("f32-only")(f32_only)


class mul(Instruction, section="9.7.3.5", ptx="1.0", targets=ALL):
    """d = a * b, rounded to nearest even unless `rounding` says otherwise."""

    syntax = "mul{.rounding}{.ftz}{.sat}.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    rounding: _Rounding | None = None
    ftz: bool = False
    sat: bool = False
    type: _Float
    _f32 = rule("f32-only")(f32_only)


class fma(Instruction, section="9.7.3.6", ptx="1.4", targets=ALL):
    """d = a * b + c with one rounding."""

    syntax = "fma.rounding{.ftz}{.sat}.type d, a, b, c"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    c: OperandLike = source("type")
    _: KW_ONLY
    rounding: _Rounding
    ftz: bool = False
    sat: bool = False
    type: _Float
    _f32 = rule("f32-only")(f32_only)


class abs(Instruction, section="9.7.3.9", ptx="1.0", targets=ALL):
    """d = |a|."""

    syntax = "abs{.ftz}.type d, a"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    _: KW_ONLY
    ftz: bool = False
    type: _Float
    _f32 = rule("f32-only")(f32_only)


class neg(Instruction, section="9.7.3.10", ptx="1.0", targets=ALL):
    """d = -a."""

    syntax = "neg{.ftz}.type d, a"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    _: KW_ONLY
    ftz: bool = False
    type: _Float
    _f32 = rule("f32-only")(f32_only)


class min(Instruction, section="9.7.3.11", ptx="1.0", targets=ALL):
    """d = the smaller of a and b; a NaN loses against a number unless `NaN` lets it win.

    `xorsign` and `abs`, together, compare magnitudes and give the result the product of the signs.
    """

    syntax = "min{.ftz}{.NaN}{.xorsign}{.abs}.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    ftz: bool = False
    NaN: bool = False
    xorsign: bool = False
    abs: bool = False
    type: _Float
    needs = _MINMAX_NEEDS
    _f32 = rule("f32-only")(f32_only)
    _xorsign = rule("xorsign")(_signed_magnitude)


class max(Instruction, section="9.7.3.12", ptx="1.0", targets=ALL):
    """d = the larger of a and b; a NaN loses against a number unless `NaN` lets it win.

    `xorsign` and `abs`, together, compare magnitudes and give the result the product of the signs.
    """

    syntax = "max{.ftz}{.NaN}{.xorsign}{.abs}.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    ftz: bool = False
    NaN: bool = False
    xorsign: bool = False
    abs: bool = False
    type: _Float
    needs = _MINMAX_NEEDS
    _f32 = rule("f32-only")(f32_only)
    _xorsign = rule("xorsign")(_signed_magnitude)


class min3(Instruction, opcode="min", section="9.7.3.11", ptx="8.8", targets="sm_100+"):
    """d = the smallest of a, b and c; `NaN` lets a NaN win, `abs` compares magnitudes."""

    syntax = "min{.ftz}{.NaN}{.abs}.f32 d, a, b, c"
    d: OperandLike = register("f32")
    a: OperandLike = source("f32")
    b: OperandLike = source("f32")
    c: OperandLike = source("f32")
    _: KW_ONLY
    ftz: bool = False
    NaN: bool = False
    abs: bool = False


class max3(Instruction, opcode="max", section="9.7.3.12", ptx="8.8", targets="sm_100+"):
    """d = the largest of a, b and c; `NaN` lets a NaN win, `abs` compares magnitudes."""

    syntax = "max{.ftz}{.NaN}{.abs}.f32 d, a, b, c"
    d: OperandLike = register("f32")
    a: OperandLike = source("f32")
    b: OperandLike = source("f32")
    c: OperandLike = source("f32")
    _: KW_ONLY
    ftz: bool = False
    NaN: bool = False
    abs: bool = False
