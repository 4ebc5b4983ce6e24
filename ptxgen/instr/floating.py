"""Floating-point arithmetic in .f32 and .f64. PTX ISA 9.7.3; half precision (9.7.4) is not here yet."""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.form import Instruction, OperandLike, rule
from ptxgen.instr.operands import register, source
from ptxgen.instr.targets import ALL

_Rounding = Literal["rn", "rz", "rm", "rp"]
_Float = Literal["f32", "f64"]


def f32_only(form: Any) -> str | None:
    """.ftz and .sat are for .f32."""
    for name in ("ftz", "sat"):
        if form.type == "f64" and getattr(form, name, False):
            return f"{form.form.opcode}.f64 has no .{name}; it is for .f32"
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
    """d = the smaller of a and b; a NaN loses against a number."""

    syntax = "min{.ftz}.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    ftz: bool = False
    type: _Float
    _f32 = rule("f32-only")(f32_only)


class max(Instruction, section="9.7.3.12", ptx="1.0", targets=ALL):
    """d = the larger of a and b; a NaN loses against a number."""

    syntax = "max{.ftz}.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    ftz: bool = False
    type: _Float
    _f32 = rule("f32-only")(f32_only)
