"""Half-precision arithmetic: .f16, .bf16 and two of them in a word. PTX ISA 9.7.4. NaN results are 0x7fff."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.arithmetic import functions, special
from ptxgen.emulator.arithmetic import half as arithmetic
from ptxgen.emulator.arithmetic.formats import FORMATS, Format
from ptxgen.emulator.arithmetic.single import extremum as smaller_or_larger
from ptxgen.emulator.load.operands import Binder, joined, parts
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.instr import half

_Words = NDArray[np.uint16]
_Arithmetic = half.add | half.sub | half.mul | half.fma
_Approximate = half.tanh | half.ex2 | half.ex2_bf16
_Half = _Arithmetic | half.neg | half.abs | half.min | half.max | _Approximate

_SIGN, _NAN = np.uint16(0x8000), np.uint16(0x7FFF)
#: The NaN that tensor copies fill in beyond the edges. fma.oob looks for it, of either sign, in a and b, not in c
#: (measured, H100).
_OOB_NAN = np.uint16(0x7FF7)


def _format(op: _Half) -> Format:
    return FORMATS[op.type.removesuffix("x2")]


def _apply(op: _Half, binder: Binder, function: Callable[..., _Words]) -> Plain:
    """d = function(operands) on words of 16 bits, or on both halves of words of 32."""
    packed = op.type.endswith("x2")
    type = "b32" if packed else "b16"
    operands = {name: getattr(op, name) for name in op.form.operands}
    result = operands.pop("d")
    sources, d = [binder.source(operand, type) for operand in operands.values()], binder.destination(result, type)
    if not packed:
        return lambda g: d(g, function(*(np.asarray(source(g)) for source in sources)))
    return lambda g: d(g, joined(function(*(parts(source(g), np.uint16) for source in sources)), np.uint32))


@semantics(*get_args(_Arithmetic))
def operation(op: _Arithmetic, binder: Binder, statement: syntax.Instruction) -> Plain:
    format = _format(op)

    def exact(*words: _Words) -> NDArray[np.float64]:
        a, b = words[:2]
        if isinstance(op, half.fma):
            return arithmetic.fused(a, b, words[2], format)
        if isinstance(op, half.mul):
            return arithmetic.multiply(a, b, format)
        return arithmetic.add(a, b ^ _SIGN if isinstance(op, half.sub) else b, format)

    def compute(*given: _Words) -> _Words:
        words = [arithmetic.flush(word, format) for word in given] if op.ftz else given
        value = exact(*words)
        result = arithmetic.narrowed(value, format)
        if op.ftz:
            result = _flushed(result, value, format)
        if op.sat:
            one = np.uint16(0x3C00)
            positive = ((result & _SIGN) == 0) & ~arithmetic.is_nan(result, format)
            result = np.where(positive, np.minimum(result, one), np.uint16(0))
        if isinstance(op, half.fma) and op.relu:
            result = np.where((result & _SIGN) != 0, np.uint16(0), result)
        if isinstance(op, half.fma) and op.oob:
            outside = (given[0] & ~_SIGN == _OOB_NAN) | (given[1] & ~_SIGN == _OOB_NAN)
            result = np.where(outside, np.uint16(0), result)
        return result

    return _apply(op, binder, compute)


def _flushed(result: _Words, value: NDArray[np.float64], format: Format) -> _Words:
    """.ftz of a result: tiny is what lies below the normal range if exponents are free, as in .f32."""
    limit = 2.0**format.smallest * (1 - 2.0 ** (-format.fraction - 2))
    return np.where(np.abs(value) < limit, result & _SIGN, result)


@semantics(half.neg, half.abs)
def sign_change(op: half.neg | half.abs, binder: Binder, statement: syntax.Instruction) -> Plain:
    format, negate = _format(op), isinstance(op, half.neg)

    def compute(a: _Words) -> _Words:
        word = arithmetic.flush(a, format) if op.ftz else a
        result = word ^ _SIGN if negate else word & ~_SIGN
        return np.where(arithmetic.is_nan(word, format), _NAN, result)

    return _apply(op, binder, compute)


@semantics(half.min, half.max)
def extremum(op: half.min | half.max, binder: Binder, statement: syntax.Instruction) -> Plain:
    format, smaller = _format(op), isinstance(op, half.min)

    def compute(a: _Words, b: _Words) -> _Words:
        if op.ftz:
            a, b = arithmetic.flush(a, format), arithmetic.flush(b, format)
        sign = (a ^ b) & _SIGN if op.xorsign else np.uint16(0)
        if op.xorsign:
            a, b = a & ~_SIGN, b & ~_SIGN
        x, y = arithmetic.widened(a, format), arithmetic.widened(b, format)
        result = arithmetic.narrowed(smaller_or_larger(x, y, smaller, op.NaN), format)
        return np.where(arithmetic.is_nan(result, format), _NAN, result | sign)

    return _apply(op, binder, compute)


_FUNCTIONS = {half.tanh: special.hyperbolic_tangent, half.ex2: special.power, half.ex2_bf16: special.power}


@semantics(*_FUNCTIONS)
def approximation(op: _Approximate, binder: Binder, statement: syntax.Instruction) -> Plain:
    """MUFU flushes subnormal operands, which the manual says of .ftz alone: they change no result of these."""
    format, function = _format(op), _FUNCTIONS[type(op)]
    return _apply(op, binder, lambda a: functions.of_half(function, a, format))
