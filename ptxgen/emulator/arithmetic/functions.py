"""Functions that hardware approximates: .approx and .full. PTX ISA 9.7.3.8, 9.7.3.13 to 22, 9.7.4.9 and 10.

Each is MUFU, the special function unit, in the sequence that ptxas writes around it (ptxas 13.0, sm_90a): bit for bit
what an H200 computes (measured, driver 580.159.04, 2026-11-27: all operands, and 2**32 pairs of the divisions).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arithmetic import special
from ptxgen.emulator.arithmetic.exact import Doubles, fused
from ptxgen.emulator.arithmetic.formats import Format
from ptxgen.emulator.arithmetic.single import Singles, add, multiply

_LEAST, _LARGE = np.float32(2.0**-126), np.float32(2.0**126)
_PER_TURN = np.array(1 / (2 * np.pi), np.float32)
_MINUS_24 = np.array(-24, np.float32)
_ONE, _HALF, _THREE_EIGHTHS = np.array(1.0), np.array(0.5), np.array(0.375)
_NAN_F64 = np.uint64(0xFFF80000 << 32).view(np.float64)


def _subnormal(a: Singles) -> Any:
    """Which operands are subnormal or zero; None if there are none."""
    small = np.abs(a) < _LEAST
    return small if np.count_nonzero(small) else None


def _scaled(function: Callable[[Singles], Singles], after: float) -> Callable[[Singles, bool], Singles]:
    """A function of a subnormal a: that of a * 2**24, multiplied by `after`."""

    def compute(a: Singles, ftz: bool) -> Singles:
        small = None if ftz else _subnormal(a)
        if small is None:
            return function(a)
        result = function(np.where(small, a * np.float32(2.0**24), a))
        return np.where(small, multiply(result, np.array(after, np.float32)), result)

    return compute


root = _scaled(special.root, 2.0**-12)
reciprocal_root = _scaled(special.reciprocal_root, 2.0**12)


def reciprocal(a: Singles, ftz: bool) -> Singles:
    """1 / a. Without .ftz, operands above 2**126 and subnormal ones are scaled, and so are their results."""
    if ftz:
        return special.reciprocal(a)
    magnitude = np.abs(a)
    small, large = magnitude < _LEAST, magnitude > _LARGE
    if not np.count_nonzero(small | large):
        return special.reciprocal(a)
    scale = np.where(small, np.float32(2.0**24), np.where(large, np.float32(0.25), np.float32(1)))
    return multiply(special.reciprocal(a * scale), scale)


def logarithm(a: Singles, ftz: bool) -> Singles:
    """The logarithm to the base 2; of a subnormal a, that of a * 2**24, less 24."""
    small = None if ftz else _subnormal(a)
    if small is None:
        return special.logarithm(a)
    result = special.logarithm(np.where(small, a * np.float32(2.0**24), a))
    return np.where(small, add(result, _MINUS_24), result)


def power(a: Singles, ftz: bool) -> Singles:
    """2 to the power a; without .ftz, the square of that of a / 2 where the result may be subnormal."""
    low = a < np.float32(-126)
    if ftz or not np.count_nonzero(low):
        return special.power(a)
    result = special.power(np.where(low, a * np.float32(0.5), a))
    return np.where(low, multiply(result, result), result)


def hyperbolic_tangent(a: Singles, ftz: bool) -> Singles:
    return special.hyperbolic_tangent(a)


def turns(angle: Singles) -> Singles:
    """An angle in turns: multiplied by 1 / (2 pi) as .f32, rounding towards zero, with and without .ftz."""
    return multiply(np.asarray(angle, np.float32), _PER_TURN, "rz")


def sine(a: Singles, ftz: bool) -> Singles:
    return special.sine(turns(a))


def cosine(a: Singles, ftz: bool) -> Singles:
    return special.cosine(turns(a))


def sine_of_turns(a: Singles, ftz: bool) -> Singles:
    return special.sine(a)


def cosine_of_turns(a: Singles, ftz: bool) -> Singles:
    return special.cosine(a)


def divide_fast(a: Singles, b: Singles, ftz: bool) -> Singles:
    """a * (1 / b) (div.approx). Without .ftz, a subnormal b is multiplied by 2**24 first, and a too."""
    return _quotient(a, b, ftz, large=False)


def divide_full(a: Singles, b: Singles, ftz: bool) -> Singles:
    """a * (1 / b) (div.full), as `divide_fast`, but with a quarter of a and of b where |b| is above 2**126."""
    return _quotient(a, b, ftz, large=True)


def _quotient(a: Singles, b: Singles, ftz: bool, large: bool) -> Singles:
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    magnitude = np.abs(b)
    scale = None
    if large and np.count_nonzero(magnitude > _LARGE):
        scale = np.where(magnitude > _LARGE, np.float32(0.25), np.float32(1))
    if not ftz and np.count_nonzero(magnitude < _LEAST):
        scale = np.where(magnitude < _LEAST, np.float32(2.0**24), np.float32(1) if scale is None else scale)
    if scale is not None:
        a, b = multiply(a, scale, "rn", ftz), multiply(b, scale, "rn", ftz)
    return multiply(special.reciprocal(b), a, "rn", ftz)


def upper_half(function: Callable[[special.Words], special.Words], a: Doubles) -> Doubles:
    """A function of the upper words of .f64; the lower words count for nothing, and are zeros in the result."""
    upper = (np.asarray(a).view(np.uint64) >> np.uint64(32)).astype(np.uint32)
    return (function(upper).astype(np.uint64) << np.uint64(32)).view(np.float64)


def reciprocal_root_f64(a: Doubles) -> Doubles:
    """1 / the square root of a in .f64 (rsqrt.approx.f64): MUFU.RSQ64H and one step of Householder's iteration.

    ptxas multiplies subnormal a by 2**54 first. Here all a but the largest, for which the square of the guess is
    subnormal, are taken between 1 and 4 by a power of 4: nothing else depends on the exponent.
    """
    a = np.asarray(a)
    plain = (a > 0) & (a < np.inf)
    x = np.where(plain, a, 1.0)
    mantissa, exponent = np.frexp(x)
    half = np.where(x < 2.0**1020, (exponent - 1) >> 1, 0)
    x = np.where(x < 2.0**1020, np.ldexp(mantissa, exponent - 2 * half), x)
    guess = upper_half(special.upper_reciprocal_root, x)
    missing = fused(x, -(guess * guess), _ONE, "rn")
    better = fused(fused(missing, _THREE_EIGHTHS, _HALF, "rn"), guess * missing, guess, "rn")
    unusual = np.where(a == 0, np.copysign(np.inf, a), np.where(a < 0, _NAN_F64, np.where(a == np.inf, 0.0, a + a)))
    return np.where(plain, np.ldexp(better, -half), unusual)


def of_half(function: Callable[[Singles], Singles], word: Any, format: Format) -> NDArray[np.uint16]:
    """A function of MUFU with .F16 or .BF16: that of the number as .f32, cut off, but above the range infinite."""
    return _half_results(function, format.name).take(word)


@cache
def _half_results(function: Callable[[Singles], Singles], format: str) -> NDArray[np.uint16]:
    """The results of all words of 16 bits."""
    words = np.arange(1 << 16, dtype=np.uint32)
    with np.errstate(invalid="ignore", over="ignore"):
        if format == "bf16":
            result = function((words << np.uint32(16)).view(np.float32))
            cut = (result.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
        else:
            result = function(words.astype(np.uint16).view(np.float16).astype(np.float32))
            nearest = result.astype(np.float16)
            above = (np.abs(nearest) > np.abs(result)) & (np.abs(result) < np.float32(2.0**16))
            cut = nearest.view(np.uint16) - above
        return np.where(np.isnan(result), np.uint16(0x7FFF), cut)
