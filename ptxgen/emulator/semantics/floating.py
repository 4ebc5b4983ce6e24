"""Floating-point arithmetic in .f32, .f32x2 and .f64. PTX ISA 9.7.3.

What is defined to the bit is so here; approximations are an H200's: see `ptxgen.emulator.arithmetic.functions`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.arithmetic import exact, functions, single, special
from ptxgen.emulator.arithmetic.single import canonical, flush
from ptxgen.emulator.arrays import count_nonzero
from ptxgen.emulator.load.operands import Binder, joined, parts
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.instr import floating
from ptxgen.instr.model.form import Instruction

_Doubles = NDArray[np.float64]


def quieted(value: NDArray[Any], result: NDArray[Any]) -> NDArray[Any]:
    """`result`, but where `value` is a .f64 NaN that NaN, made quiet: abs and neg leave its sign (measured, H200)."""
    nan = np.isnan(value)
    if not count_nonzero(nan):
        return result
    words = np.asarray(value).view(np.uint64) | np.uint64(1 << 51)
    return np.where(nan, words.view(np.float64), result)


def nan_of_operands(op: Instruction, result: _Doubles, *operands: _Doubles) -> _Doubles:
    """The NaNs of .f64 results, made quiet: b before a, in fma b before c before a, in div a before b (measured)."""
    order = {1: (0,), 2: (0, 1), 3: (0, 2, 1)}[len(operands)]
    for index in reversed(order) if isinstance(op, floating.div) else order:
        result = quieted(operands[index], result)
    return result


def _single(op: _Arithmetic | _Packed) -> Callable[..., Any]:
    """The .f32 function of a sum, difference, product or fused product, with the modifiers of the instruction."""
    rounding, ftz = op.rounding or "rn", op.ftz
    sat = not isinstance(op, floating.div | _Packed) and op.sat
    if isinstance(op, floating.add | floating.add_f32x2):
        return lambda a, b: single.add(a, b, rounding, ftz, sat)
    if isinstance(op, floating.sub | floating.sub_f32x2):
        return lambda a, b: single.add(a, -b, rounding, ftz, sat)
    if isinstance(op, floating.mul | floating.mul_f32x2):
        return lambda a, b: single.multiply(a, b, rounding, ftz, sat)
    return lambda a, b, c: single.fused(a, b, c, rounding, ftz, sat)


def _double(op: _Arithmetic) -> Callable[..., Any]:
    """The same in .f64, without regard to which NaN comes out."""
    rounding = op.rounding or "rn"
    if isinstance(op, floating.add):
        return lambda a, b: exact.add(a, b, rounding)
    if isinstance(op, floating.sub):
        return lambda a, b: exact.add(a, -b, rounding)
    if isinstance(op, floating.mul):
        return lambda a, b: exact.multiply(a, b, rounding)
    if isinstance(op, floating.div):
        return lambda a, b: exact.divide(a, b, rounding)
    return lambda a, b, c: exact.fused(a, b, c, rounding)


def _apply(op: Instruction, binder: Binder, function: Callable[..., Any], type: str) -> Plain:
    """d = function(operands), all of one type."""
    operands = {name: getattr(op, name) for name in op.form.operands}
    result = operands.pop("d")
    sources, d = [binder.source(operand, type) for operand in operands.values()], binder.destination(result, type)
    if len(sources) == 1:
        (a,) = sources
        return lambda g: d(g, function(np.asarray(a(g))))
    if len(sources) == 2:
        a, b = sources
        return lambda g: d(g, function(np.asarray(a(g)), np.asarray(b(g))))
    return lambda g: d(g, function(*(np.asarray(source(g)) for source in sources)))


_Arithmetic = floating.add | floating.sub | floating.mul | floating.fma | floating.mad | floating.div


@semantics(*get_args(_Arithmetic))
def arithmetic(op: _Arithmetic, binder: Binder, statement: syntax.Instruction) -> Plain:
    if op.type == "f64":
        function = _double(op)
        return _apply(op, binder, lambda *values: nan_of_operands(op, function(*values), *values), "f64")
    if isinstance(op, floating.div):
        return _apply(op, binder, lambda a, b: single.divide(a, b, op.rounding, op.ftz), "f32")
    return _apply(op, binder, _single(op), "f32")


_Packed = floating.add_f32x2 | floating.sub_f32x2 | floating.mul_f32x2 | floating.fma_f32x2


@semantics(*get_args(_Packed))
def packed(op: _Packed, binder: Binder, statement: syntax.Instruction) -> Plain:
    function = _single(op)

    def halves(*words: Any) -> Any:
        return joined(function(*(parts(word, np.float32) for word in words)), np.uint64)

    sources = [op.a, op.b, *([op.c] if isinstance(op, floating.fma_f32x2) else [])]
    binder.depends(op.d, 64, [[(each, first + n) for each in sources for n in (0, 1)] for first in (0, 0, 2, 2)])
    return _apply(op, binder, halves, "b64")


@semantics(floating.abs, floating.neg)
def sign_change(op: floating.abs | floating.neg, binder: Binder, statement: syntax.Instruction) -> Plain:
    function = np.abs if isinstance(op, floating.abs) else np.negative
    if op.type == "f64":
        return _apply(op, binder, lambda a: quieted(a, function(a)), "f64")
    return _apply(op, binder, lambda a: canonical(function(flush(a) if op.ftz else a)), "f32")


@semantics(floating.min, floating.max)
def extremum(op: floating.min | floating.max, binder: Binder, statement: syntax.Instruction) -> Plain:
    smaller = isinstance(op, floating.min)

    def choose(a: Any, b: Any) -> Any:
        if op.ftz:
            a, b = flush(a), flush(b)
        opposite: Any = False
        if op.xorsign:
            opposite = np.signbit(a) != np.signbit(b)
            a, b = np.abs(a), np.abs(b)
        result = single.extremum(a, b, smaller, op.NaN)
        if op.xorsign:
            result = np.where(opposite, -result, result)
        if op.type == "f64":
            return quieted(np.where(np.isnan(a), b, 0.0), result)  # of two NaNs the second (measured, H200)
        return canonical(result)

    return _apply(op, binder, choose, op.type)


@semantics(floating.min3, floating.max3)
def extremum_of_three(op: floating.min3 | floating.max3, binder: Binder, statement: syntax.Instruction) -> Plain:
    smaller = isinstance(op, floating.min3)

    def choose(*values: Any) -> Any:
        if op.ftz:
            values = tuple(flush(value) for value in values)
        if op.abs:
            values = tuple(np.abs(value) for value in values)
        a, b, c = values
        return canonical(single.extremum(single.extremum(a, b, smaller, op.NaN), c, smaller, op.NaN))

    return _apply(op, binder, choose, "f32")


@semantics(floating.copysign)
def copy_sign(op: floating.copysign, binder: Binder, statement: syntax.Instruction) -> Plain:
    return _apply(op, binder, lambda a, b: np.copysign(b, a), op.type)


@semantics(floating.testp)
def test_property(op: floating.testp, binder: Binder, statement: syntax.Instruction) -> Plain:
    """Zeros count as normal, and not as subnormal (9.7.3.1)."""
    a, p = binder.source(op.a, op.type), binder.destination(op.p, "pred")
    tiny = np.float32(2.0**-126) if op.type == "f32" else np.float64(2.0**-1022)

    def holds(value: Any) -> Any:
        magnitude = np.abs(value)
        return {
            "finite": lambda: np.isfinite(value),
            "infinite": lambda: np.isinf(value),
            "number": lambda: ~np.isnan(value),
            "notanumber": lambda: np.isnan(value),
            "normal": lambda: np.isfinite(value) & ((magnitude >= tiny) | (magnitude == 0)),
            "subnormal": lambda: (magnitude < tiny) & (magnitude != 0),
        }[op.property]()

    return lambda g: p(g, holds(np.asarray(a(g))))


@semantics(floating.rcp)
def reciprocal(op: floating.rcp, binder: Binder, statement: syntax.Instruction) -> Plain:
    """.ftz does nothing in .f64."""
    if op.type == "f64":
        one = np.array(1.0)
        return _apply(op, binder, lambda a: nan_of_operands(op, exact.divide(one, a, op.rounding), a), "f64")
    return _apply(op, binder, lambda a: single.divide(np.array(1, np.float32), a, op.rounding, op.ftz), "f32")


@semantics(floating.sqrt)
def root(op: floating.sqrt, binder: Binder, statement: syntax.Instruction) -> Plain:
    if op.type == "f64":
        return _apply(op, binder, lambda a: nan_of_operands(op, exact.square_root(a, op.rounding), a), "f64")
    return _apply(op, binder, lambda a: single.square_root(a, op.rounding, op.ftz), "f32")


_Flushing = (
    floating.rcp_approx
    | floating.sqrt_approx
    | floating.rsqrt
    | floating.lg2
    | floating.ex2
    | floating.div_full
    | floating.div_approx
)
_APPROXIMATIONS: dict[type[Instruction], Callable[..., Any]] = {
    floating.rcp_approx: functions.reciprocal,
    floating.sqrt_approx: functions.root,
    floating.rsqrt: functions.reciprocal_root,
    floating.lg2: functions.logarithm,
    floating.ex2: functions.power,
    floating.div_full: functions.divide_full,
    floating.div_approx: functions.divide_fast,
    floating.tanh: functions.hyperbolic_tangent,
}


@semantics(*_APPROXIMATIONS)
def approximation(op: _Flushing | floating.tanh, binder: Binder, statement: syntax.Instruction) -> Plain:
    function, ftz = _APPROXIMATIONS[type(op)], isinstance(op, _Flushing) and op.ftz
    return _apply(op, binder, lambda *values: function(*values, ftz), "f32")


@semantics(floating.sin, floating.cos)
def circular(op: floating.sin | floating.cos, binder: Binder, statement: syntax.Instruction) -> Plain:
    if isinstance(op, floating.sin):
        function = functions.sine_of_turns if op.two_pi else functions.sine
    else:
        function = functions.cosine_of_turns if op.two_pi else functions.cosine
    return _apply(op, binder, lambda a: function(a, op.ftz), "f32")


_UpperHalf = floating.rcp_approx_f64 | floating.rsqrt_ftz_f64


@semantics(*get_args(_UpperHalf))
def upper_half(op: _UpperHalf, binder: Binder, statement: syntax.Instruction) -> Plain:
    """From the upper 32 bits of a to those of d; subnormals are zeros, NaN is 0x7fffffff00000000 (9.7.3.14, 17)."""
    root = isinstance(op, floating.rsqrt_ftz_f64)
    function = special.upper_reciprocal_root if root else special.upper_reciprocal
    return _apply(op, binder, lambda a: functions.upper_half(function, a), "f64")


@semantics(floating.rsqrt_f64)
def reciprocal_root_f64(op: floating.rsqrt_f64, binder: Binder, statement: syntax.Instruction) -> Plain:
    """A software routine around MUFU.RSQ64H, here as there."""
    return _apply(op, binder, lambda a: nan_of_operands(op, functions.reciprocal_root_f64(a), a), "f64")
