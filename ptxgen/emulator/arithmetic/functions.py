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
from ptxgen.emulator.arithmetic.exact import Doubles, fused, round_odd, two_product, two_sum
from ptxgen.emulator.arithmetic.formats import Format
from ptxgen.emulator.arithmetic.single import Singles, add, multiply
from ptxgen.emulator.arrays import count_nonzero

_LEAST, _LARGE = np.float32(2.0**-126), np.float32(2.0**126)
_UP, _QUARTER, _ONE = np.float32(2.0**24), np.float32(0.25), np.float32(1)
_PER_TURN = np.float64(np.float32(1 / (2 * np.pi)))
_MINUS_24 = np.array(-24, np.float32)
_LEAST_F64 = 2.0**-1022
_NAN_F64 = np.uint64(0xFFF80000 << 32).view(np.float64)


def _scaled(
    usual: Callable[[Singles], Singles], function: Callable[[Singles], Singles], after: float
) -> Callable[[Singles, bool], Singles]:
    """A function of a subnormal a: that of a * 2**24, multiplied by `after`."""

    def compute(a: Singles, ftz: bool) -> Singles:
        result = usual(a)
        if not special.any_unusual(result):
            return result
        if ftz:
            return function(a)
        small = np.abs(a) < _LEAST
        result = function(np.where(small, a * _UP, a))
        return np.where(small, multiply(result, np.array(after, np.float32)), result)

    return compute


root = _scaled(special.usual_root, special.root, 2.0**-12)
reciprocal_root = _scaled(special.usual_reciprocal_root, special.reciprocal_root, 2.0**12)


def reciprocal(a: Singles, ftz: bool) -> Singles:
    """1 / a. Without .ftz, operands above 2**126 and subnormal ones are scaled, and so are their results."""
    result = special.usual_reciprocal(a)
    if not special.any_unusual(result):
        return result
    if ftz:
        return special.reciprocal(a)
    magnitude = np.abs(a)
    scale = np.where(magnitude < _LEAST, _UP, np.where(magnitude > _LARGE, _QUARTER, _ONE))
    return multiply(special.reciprocal(a * scale), scale)


def logarithm(a: Singles, ftz: bool) -> Singles:
    """The logarithm to the base 2; of a subnormal a, that of a * 2**24, less 24."""
    result = special.usual_logarithm(a)
    if not special.any_unusual(result):
        return result
    if ftz:
        return special.logarithm(a)
    small = np.abs(a) < _LEAST
    result = special.logarithm(np.where(small, a * _UP, a))
    return np.where(small, add(result, _MINUS_24), result)


def power(a: Singles, ftz: bool) -> Singles:
    """2 to the power a; without .ftz, the square of that of a / 2 where the result may be subnormal."""
    result = special.power(a)
    if ftz or count_nonzero(result) == result.size:
        return result
    low = a < np.float32(-126)
    result = special.power(np.where(low, a * np.float32(0.5), a))
    return np.where(low, multiply(result, result), result)


def hyperbolic_tangent(a: Singles, ftz: bool) -> Singles:
    return special.hyperbolic_tangent(a)


def turns(angle: Singles) -> Singles:
    """An angle in turns: multiplied by 1 / (2 pi) as .f32, rounding towards zero, with and without .ftz.

    Products below the normal range are too small to count: how they are rounded does not matter.
    """
    product = np.multiply(angle, _PER_TURN, dtype=np.float64)
    return special.cut_off(product)


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
    result = special.usual_reciprocal(b)
    if special.any_unusual(result):
        magnitude = np.abs(b)
        scale = np.where(large & (magnitude > _LARGE), _QUARTER, _ONE)
        if not ftz:
            scale = np.where(magnitude < _LEAST, _UP, scale)
        a, result = multiply(a, scale, "rn", ftz), special.reciprocal(multiply(b, scale, "rn", ftz))
    return multiply(result, a, "rn", ftz)


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
    plain = (a >= _LEAST_F64) & (a < 2.0**1020)
    words = np.where(plain, a, 1.0).view(np.int64)
    half = ((words >> 52) - 1023) >> 1
    result = _refined((words - (half << 53)).view(np.float64)) * ((1023 - half) << 52).view(np.float64)
    if count_nonzero(plain) == plain.size:
        return result
    other = np.where(a == 0, np.copysign(np.inf, a), np.where(a < 0, _NAN_F64, np.where(a == np.inf, 0.0, a + a)))
    small, large = (a < _LEAST_F64) & (a > 0), (a >= 2.0**1020) & (a < np.inf)
    if count_nonzero(small):
        other = np.where(small, reciprocal_root_f64(np.where(small, a * 2.0**54, 1.0)) * 2.0**27, other)
    if count_nonzero(large):
        other = np.array(other)
        other[large] = _refined_large(a[large])
    return np.where(plain, result, other)


def _refined(x: Doubles) -> Doubles:
    """1 / the square root of x between 1 and 4. Of the sums, all but the last are exact before they are rounded."""
    guess = upper_half(special.upper_reciprocal_root, x)
    product, low = two_product(x, guess * guess)  # the square has 42 bits
    missing = (1 - product) - low
    product, low = two_sum(missing * 0.25, missing * 0.125)
    total, error = two_sum(np.array(0.5), product)
    factor = total + (error + low)
    product, low = two_product(factor, guess * missing)
    total, error = two_sum(guess, product)
    return total + round_odd(*two_sum(error, low))


def _refined_large(x: Doubles) -> Doubles:
    """The same for any x."""
    guess = upper_half(special.upper_reciprocal_root, x)
    missing = fused(x, -(guess * guess), np.array(1.0), "rn")
    factor = fused(missing, np.array(0.375), np.array(0.5), "rn")
    return fused(factor, guess * missing, guess, "rn")


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
