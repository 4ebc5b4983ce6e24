"""Floating-point arithmetic in .f32, .f32x2 and .f64. PTX ISA 9.7.3.

An operation with `rounding` is correctly rounded, one with .approx fast and near. .ftz takes subnormal inputs and
results as zeros of their sign. The .f32x2 forms do two .f32 operations at once, one in each half of a .b64 register.
"""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import predicate, register, source
from ptxgen.instr.model.syntax_line import flag
from ptxgen.instr.model.targets import ALL, Availability

_Rounding = Literal["rn", "rz", "rm", "rp"]
_Float = Literal["f32", "f64"]


def _directed(form: Any) -> bool:
    return form.rounding != "rn"


def _directed_f64(form: Any) -> bool:
    return form.rounding != "rn" and form.type == "f64"


def _single(form: Any) -> bool:
    return form.type == "f32"


def f32_only(form: Any) -> str | None:
    """.ftz, .sat, .NaN and .xorsign are for .f32."""
    for name in ("ftz", "sat", "NaN", "xorsign"):
        if form.type == "f64" and getattr(form, name, False):
            return f"{form.form.opcode}.f64 allows no .{name}; .{name} requires .f32"
    return None


def signed_magnitude(form: Any) -> str | None:
    """.xorsign and .abs come together."""
    if form.xorsign != form.abs:
        return f"{form.form.opcode} requires .xorsign and .abs together, or neither"
    return None


class testp(Instruction, section="9.7.3.1", ptx="2.0", targets=ALL):
    """p = whether a has the property; zeros count as normal."""

    syntax = "testp.property.type p, a"
    p: OperandLike = predicate()
    a: OperandLike = source("type", float_sums=False)
    _: KW_ONLY
    property: Literal["finite", "infinite", "number", "notanumber", "normal", "subnormal"]
    type: _Float


class copysign(Instruction, section="9.7.3.2", ptx="2.0", targets=ALL):
    """d = b with the sign of a."""

    syntax = "copysign.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type", float_sums=False)
    b: OperandLike = source("type", float_sums=False)
    _: KW_ONLY
    type: _Float


class _Operation(Instruction, ptx="1.0", targets=ALL):
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    ftz: bool = False
    sat: bool = False
    type: _Float
    _f32 = rule("f32-only")(f32_only)


class _Binary(_Operation):
    rounding: _Rounding | None = None


class add(_Binary, section="9.7.3.3"):
    """d = a + b, rounded to nearest even unless `rounding` says otherwise."""

    syntax = "add{.rounding}{.ftz}{.sat}.type d, a, b"


class sub(_Binary, section="9.7.3.4"):
    """d = a - b, rounded to nearest even unless `rounding` says otherwise."""

    syntax = "sub{.rounding}{.ftz}{.sat}.type d, a, b"


class mul(_Binary, section="9.7.3.5"):
    """d = a * b, rounded to nearest even unless `rounding` says otherwise."""

    syntax = "mul{.rounding}{.ftz}{.sat}.type d, a, b"


class _Fused(_Operation):
    c: OperandLike = source("type")
    _: KW_ONLY
    rounding: _Rounding


class fma(_Fused, section="9.7.3.6", ptx="1.4"):
    """d = a * b + c with one rounding."""

    syntax = "fma.rounding{.ftz}{.sat}.type d, a, b, c"


class mad(_Fused, section="9.7.3.7"):
    """d = a * b + c with one rounding: another name of fma."""

    syntax = "mad.rounding{.ftz}{.sat}.type d, a, b, c"


class _Packed(Instruction, ptx="8.6", targets="sm_100+"):
    d: OperandLike = register("f32x2")
    a: OperandLike = source("f32x2")
    b: OperandLike = source("f32x2")
    _: KW_ONLY
    ftz: bool = False


class _PackedBinary(_Packed):
    rounding: _Rounding | None = None


class add_f32x2(_PackedBinary, opcode="add", section="9.7.3.3"):
    """d = a + b in each half."""

    syntax = "add{.rounding}{.ftz}.f32x2 d, a, b"


class sub_f32x2(_PackedBinary, opcode="sub", section="9.7.3.4"):
    """d = a - b in each half."""

    syntax = "sub{.rounding}{.ftz}.f32x2 d, a, b"


class mul_f32x2(_PackedBinary, opcode="mul", section="9.7.3.5"):
    """d = a * b in each half."""

    syntax = "mul{.rounding}{.ftz}.f32x2 d, a, b"


class fma_f32x2(_Packed, opcode="fma", section="9.7.3.6"):
    """d = a * b + c in each half, with one rounding."""

    syntax = "fma.rounding{.ftz}.f32x2 d, a, b, c"
    c: OperandLike = source("f32x2")
    _: KW_ONLY
    rounding: _Rounding


class div(Instruction, section="9.7.3.8", ptx="1.4", targets=ALL):
    """d = a / b, correctly rounded."""

    syntax = "div.rounding{.ftz}.type d, a, b"
    d: OperandLike = register("type", plain=_directed)
    a: OperandLike = source("type", plain=_directed, float_sums=False)
    b: OperandLike = source("type", plain=_directed, float_sums=False)
    _: KW_ONLY
    rounding: _Rounding
    ftz: bool = False
    type: _Float
    _f32 = rule("f32-only")(f32_only)


class _FastDivision(Instruction, section="9.7.3.8", ptx="1.4", targets=ALL):
    d: OperandLike = register("f32")
    a: OperandLike = source("f32")
    b: OperandLike = source("f32")
    _: KW_ONLY
    ftz: bool = False


class div_approx(_FastDivision, opcode="div"):
    """d = a * (1 / b), within 2 ulp for |b| from 2**-126 to 2**126; above that 0, or NaN for an infinite a."""

    syntax = "div.approx{.ftz}.f32 d, a, b"


class div_full(_FastDivision, opcode="div.full"):
    """d = a / b, within 2 ulp in the full range."""

    syntax = "div.full{.ftz}.f32 d, a, b"
    a: OperandLike = source("f32", float_sums=False)
    b: OperandLike = source("f32", float_sums=False)


class _Unary(Instruction, ptx="1.0", targets=ALL):
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    _: KW_ONLY
    ftz: bool = False
    type: _Float
    _f32 = rule("f32-only")(f32_only)


class abs(_Unary, section="9.7.3.9"):
    """d = |a|."""

    syntax = "abs{.ftz}.type d, a"


class neg(_Unary, section="9.7.3.10"):
    """d = -a."""

    syntax = "neg{.ftz}.type d, a"


class _Extremum(Instruction, ptx="1.0", targets=ALL):
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    ftz: bool = False
    NaN: bool = False
    xorsign: bool = False
    abs: bool = False
    type: _Float
    needs = {"NaN": Availability("7.0", "sm_80+"), "xorsign": Availability("7.2", "sm_86+")}
    _f32 = rule("f32-only")(f32_only)
    _xorsign = rule("xorsign")(signed_magnitude)


class min(_Extremum, section="9.7.3.11"):
    """d = the smaller of a and b; a NaN loses against a number unless `NaN` lets it win.

    `xorsign` and `abs`, together, compare magnitudes and give the result the product of the signs.
    """

    syntax = "min{.ftz}{.NaN}{.xorsign}{.abs}.type d, a, b"


class max(_Extremum, section="9.7.3.12"):
    """d = the larger of a and b; a NaN loses against a number unless `NaN` lets it win.

    `xorsign` and `abs`, together, compare magnitudes and give the result the product of the signs.
    """

    syntax = "max{.ftz}{.NaN}{.xorsign}{.abs}.type d, a, b"


class _Extremum3(Instruction, ptx="8.8", targets="sm_100+"):
    d: OperandLike = register("f32")
    a: OperandLike = source("f32")
    b: OperandLike = source("f32")
    c: OperandLike = source("f32")
    _: KW_ONLY
    ftz: bool = False
    NaN: bool = False
    abs: bool = False


class min3(_Extremum3, opcode="min", section="9.7.3.11"):
    """d = the smallest of a, b and c; `NaN` lets a NaN win, `abs` compares magnitudes."""

    syntax = "min{.ftz}{.NaN}{.abs}.f32 d, a, b, c"


class max3(_Extremum3, opcode="max", section="9.7.3.12"):
    """d = the largest of a, b and c; `NaN` lets a NaN win, `abs` compares magnitudes."""

    syntax = "max{.ftz}{.NaN}{.abs}.f32 d, a, b, c"


class rcp(Instruction, section="9.7.3.13", ptx="1.4", targets=ALL):
    """d = 1 / a, correctly rounded. ptxas takes .ftz with .f64 too, where it does nothing (measured, ptxas 13.5)."""

    syntax = "rcp.rounding{.ftz}.type d, a"
    d: OperandLike = register("type", plain=_directed_f64)
    a: OperandLike = source("type", plain=_directed_f64, float_sums=_single)
    _: KW_ONLY
    rounding: _Rounding
    ftz: bool = False
    type: _Float


class sqrt(_Unary, section="9.7.3.15", ptx="1.4"):
    """d = the square root of a, correctly rounded."""

    syntax = "sqrt.rounding{.ftz}.type d, a"
    d: OperandLike = register("type", plain=_directed_f64)
    a: OperandLike = source("type", plain=_directed_f64, float_sums=_single)
    _: KW_ONLY
    rounding: _Rounding


class _Approximate(Instruction, ptx="1.4", targets=ALL):
    d: OperandLike = register("f32")
    a: OperandLike = source("f32")
    _: KW_ONLY
    ftz: bool = False


class rcp_approx(_Approximate, opcode="rcp", section="9.7.3.13"):
    """d = 1 / a, within 1 ulp."""

    syntax = "rcp.approx{.ftz}.f32 d, a"


class sqrt_approx(_Approximate, opcode="sqrt", section="9.7.3.15"):
    """d = the square root of a, with a relative error of at most 2**-23."""

    syntax = "sqrt.approx{.ftz}.f32 d, a"


class rsqrt(_Approximate, section="9.7.3.16"):
    """d = 1 / the square root of a, with a relative error of at most 2**-22.9."""

    syntax = "rsqrt.approx{.ftz}.f32 d, a"


class lg2(_Approximate, section="9.7.3.20"):
    """d = the logarithm of a to base 2, with an error of at most 2**-22: absolute from 0.5 to 2, else relative."""

    syntax = "lg2.approx{.ftz}.f32 d, a"


class ex2(_Approximate, section="9.7.3.21"):
    """d = 2 to the power a, within 2 ulp."""

    syntax = "ex2.approx{.ftz}.f32 d, a"


class _Angle(_Approximate):
    two_pi: bool = flag("2pi", default=False)
    needs = {"2pi": Availability("9.5", ALL)}

    @rule("2pi")
    def _flushed(self) -> str | None:
        """.2pi comes with .ftz (measured, ptxas 13.5)."""
        if self.two_pi and not self.ftz:
            return f"{self.form.opcode}.approx.2pi requires .ftz too: {self.form.opcode}.approx.ftz.2pi.f32"
        return None


class sin(_Angle, section="9.7.3.18"):
    """d = the sine of a in radians, with an absolute error of at most 2**-20.5 from -2 pi to 2 pi.

    With `two_pi`, a is in turns: d = sin(2 pi a).
    """

    syntax = "sin.approx{.ftz}{.two_pi}.f32 d, a"


class cos(_Angle, section="9.7.3.19"):
    """d = the cosine of a in radians, with an absolute error of at most 2**-20.5 from -2 pi to 2 pi.

    With `two_pi`, a is in turns: d = cos(2 pi a).
    """

    syntax = "cos.approx{.ftz}{.two_pi}.f32 d, a"


class tanh(Instruction, section="9.7.3.22", ptx="7.0", targets="sm_75+"):
    """d = the hyperbolic tangent of a, with a relative error of at most 2**-11."""

    syntax = "tanh.approx.f32 d, a"
    d: OperandLike = register("f32")
    a: OperandLike = source("f32")


class _Double(Instruction, targets=ALL):
    d: OperandLike = register("f64")
    a: OperandLike = source("f64")


class rcp_approx_f64(_Double, opcode="rcp", section="9.7.3.14", ptx="2.1"):
    """d = 1 / a roughly: the upper 32 bits of d from those of a; the lower become 0."""

    syntax = "rcp.approx.ftz.f64 d, a"


class rsqrt_f64(_Double, opcode="rsqrt", section="9.7.3.16", ptx="1.4"):
    """d = 1 / the square root of a: a slow software routine."""

    syntax = "rsqrt.approx.f64 d, a"
    a: OperandLike = source("f64", float_sums=False)


class rsqrt_ftz_f64(_Double, opcode="rsqrt", section="9.7.3.17", ptx="4.0"):
    """d = 1 / the square root of a roughly: the upper 32 bits of d from those of a; the lower become 0."""

    syntax = "rsqrt.approx.ftz.f64 d, a"
