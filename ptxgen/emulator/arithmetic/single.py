"""Arithmetic in .f32, as its instructions do it: rounding, .ftz, .sat, the one NaN. PTX ISA 9.7.3.

Operands are arrays of .f32; sums and products of them are exact as pairs of .f64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arithmetic.exact import Doubles, round_odd, two_sum
from ptxgen.emulator.arrays import count_nonzero

Singles = NDArray[np.float32]

#: NaN results of .f32 arithmetic are this pattern; abs, neg, min and max too (measured, H200, 2026-11-20).
NAN = np.uint32(0x7FFFFFFF).view(np.float32)
_TINY = np.float32(2.0**-126)
#: Exclusive upper bound of magnitudes that round to nearest below 2**-126 with an unbounded exponent.
_TINY_NEAREST = 2.0**-126 * (1 - 2.0**-25)
_LOW_BITS, _HALF_BIT = np.uint64(0x1FFFFFFF), np.uint64(0x10000000)


def flush(value: Any) -> Any:
    """Subnormal .f32 values become zeros of their sign (.ftz)."""
    value = np.asarray(value)
    small = np.abs(value) < _TINY
    return value * ~small if count_nonzero(small) else value


def canonical(result: NDArray[Any]) -> NDArray[Any]:
    """NaNs of .f32 as the one pattern that arithmetic gives; other types as they are."""
    if result.dtype != np.float32:
        return result
    nan = result != result
    return np.where(nan, NAN, result) if count_nonzero(nan) else result


def saturate(result: Singles) -> Singles:
    """.sat: into [0, 1], NaN and -0 as +0."""
    clipped = np.clip(result, np.float32(0), np.float32(1)) + np.float32(0)
    return np.where(np.isnan(result), np.float32(0), clipped).astype(np.float32)


def round_f32(total: Doubles, error: Doubles, rounding: str) -> Singles:
    """The exact value total + error, |error| at most half an ulp of total, as .f32."""
    odd = round_odd(total, error)
    nearest = odd.astype(np.float32)
    if rounding == "rn":
        return nearest
    wide = nearest.astype(np.float64)
    above = (wide > odd) if rounding in ("rm", "rz") else np.zeros(odd.shape, np.bool_)
    below = (wide < odd) if rounding in ("rp", "rz") else np.zeros(odd.shape, np.bool_)
    if rounding == "rz":
        above &= odd > 0
        below &= odd < 0
    down = np.nextafter(nearest, np.float32(-np.inf))
    up = np.nextafter(nearest, np.float32(np.inf))
    return np.where(above, down, np.where(below, up, nearest))


def flush_rounded(result: Singles, total: Doubles, error: Doubles, rounding: str) -> Singles:
    """.ftz of a rounded result: tiny is what lies below the normal range if exponents are free (measured, H200)."""
    unlimited = round_f32(total * 2.0**100, error * 2.0**100, rounding)
    return np.where(np.abs(unlimited) < 2.0**-26, np.copysign(np.float32(0), result), result)


def finish(total: Doubles, error: Doubles, rounding: str, ftz: bool, sat: bool) -> Singles:
    """The exact value total + error as the result of an instruction with its modifiers."""
    result = round_f32(total, error, rounding)
    if ftz:
        result = flush_rounded(result, total, error, rounding)
    return canonical(saturate(result) if sat else result)


def add(a: Singles, b: Singles, rounding: str = "rn", ftz: bool = False, sat: bool = False) -> Singles:
    """a + b."""
    if ftz:
        a, b = flush(a), flush(b)
    if rounding == "rn":
        result = a + b
        if ftz:
            result = flush(result)  # tiny sums are exact
        return canonical(saturate(result) if sat else result)
    return _sum(np.asarray(a, np.float64), np.asarray(b, np.float64), rounding, ftz, sat)


def multiply(a: Singles, b: Singles, rounding: str = "rn", ftz: bool = False, sat: bool = False) -> Singles:
    """a * b."""
    if ftz:
        a, b = flush(a), flush(b)
    if rounding == "rn" and not ftz:
        result = a * b
        return canonical(saturate(result) if sat else result)
    product = np.asarray(np.multiply(a, b, dtype=np.float64))
    if rounding != "rn":
        return finish(product, np.zeros_like(product), rounding, ftz, sat)
    result = _flushed(product.astype(np.float32), np.abs(product))
    return canonical(saturate(result) if sat else result)


def fused(a: Singles, b: Singles, c: Singles, rounding: str = "rn", ftz: bool = False, sat: bool = False) -> Singles:
    """a * b + c, rounded once."""
    if ftz:
        a, b, c = flush(a), flush(b), flush(c)
    product, addend = np.multiply(a, b, dtype=np.float64), np.asarray(c, np.float64)
    if rounding != "rn":
        return _sum(product, addend, rounding, ftz, sat)
    total = np.asarray(product + addend)
    result = total.astype(np.float32)
    # Rounding a second time is wrong only where the first one made a tie, or below the normal range.
    doubtful = (total.view(np.uint64) & _LOW_BITS) == _HALF_BIT
    if count_nonzero(np.abs(result) <= _TINY):
        magnitude = np.abs(total)
        if ftz:
            result = _flushed(result, magnitude)
        else:
            doubtful |= (magnitude < _TINY) & (magnitude > 0)
    if count_nonzero(doubtful):
        result = np.where(doubtful, _sum(product, addend, rounding, ftz, False), result)
    return canonical(saturate(result) if sat else result)


def _flushed(result: Singles, magnitude: Doubles) -> Singles:
    """.ftz of a result rounded to nearest, by the magnitude that was rounded."""
    tiny = magnitude < _TINY_NEAREST
    return result * ~tiny if count_nonzero(tiny) else result


def _sum(a: Doubles, b: Doubles, rounding: str, ftz: bool, sat: bool) -> Singles:
    """a + b, exact in pairs of .f64."""
    total, error = two_sum(a, b)
    result = round_f32(total, error, rounding)
    if ftz:
        result = flush_rounded(result, total, error, rounding)
    if rounding == "rm":
        # Opposite values cancel to -0 when rounding down (IEEE 754, 6.3).
        opposite = (total == 0) & (error == 0) & (np.signbit(a) != np.signbit(b))
        result = np.where(opposite, np.float32(-0.0), result)
    return canonical((saturate(result) if sat else result).astype(np.float32))


def divide(a: Singles, b: Singles, rounding: str, ftz: bool = False) -> Singles:
    """a / b. .f64 separates every quotient of two .f32 from each value of .f32 and tie that it does not equal."""
    if ftz:
        a, b = flush(a), flush(b)
    quotient = np.asarray(np.divide(a, b, dtype=np.float64))
    return finish(quotient, np.zeros_like(quotient), rounding, ftz, False)


def square_root(a: Singles, rounding: str, ftz: bool = False) -> Singles:
    """The square root of a; what holds of quotients holds of roots."""
    root = np.asarray(np.sqrt(flush(a) if ftz else a, dtype=np.float64))
    return finish(root, np.zeros_like(root), rounding, False, False)


def extremum(a: Any, b: Any, smaller: bool, nan_wins: bool = False) -> Any:
    """The smaller or larger of two floats of any type; -0 is less than +0. A NaN wins or loses (9.7.3.11)."""
    chosen = np.asarray((np.fmin if smaller else np.fmax)(a, b))
    zeros = chosen == 0
    if count_nonzero(zeros):
        both = zeros & (a == b)
        negative = np.signbit(a) | np.signbit(b) if smaller else np.signbit(a) & np.signbit(b)
        zero = np.zeros((), chosen.dtype)
        chosen = np.where(both, np.where(negative, -zero, zero), chosen)
    if nan_wins:
        nan = np.isnan(a) | np.isnan(b)
        if count_nonzero(nan):
            chosen = np.where(nan, np.array(np.nan, chosen.dtype), chosen)
    return chosen
