"""MUFU, the special function unit: one function of one number each, bit for bit an H200's.

Names are those of SASS. All flush: subnormal operands count as zeros, and results below the normal range are zeros. The
values come from `interpolator`; here are the reductions of the argument, exponents and special values (measured, H200,
driver 580.159.04, 2026-11-27, all operands; tests/data/silicon/functions_h200.npz).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arithmetic.interpolator import BINADES, Integers, table
from ptxgen.emulator.arithmetic.single import NAN, Singles

Words = NDArray[np.uint32]

_SIGN, _MAGNITUDE, _MANTISSA = np.uint32(1 << 31), np.uint32(0x7FFFFFFF), np.uint32(0x7FFFFF)
_LEAST, _INFINITE = np.uint32(1 << 23), np.uint32(0xFF << 23)
_INFINITY, _ZERO = np.float32(np.inf), np.float32(0)
#: Bits of a .f64 that a .f32 has not.
_BEYOND_SINGLE = np.int64(~0x1FFFFFFF)


def reciprocal(a: Singles) -> Singles:
    """MUFU.RCP: 1 / a."""
    words, magnitude = _words(a)
    value = table("rcp", 24).at((words & _MANTISSA).astype(np.int64)).astype(np.int32)
    exponent = 252 - (magnitude >> np.uint32(23)).astype(np.int32)
    result = _assembled(value + (exponent << 23))
    if _unusual(magnitude):
        result = np.where(magnitude < _LEAST, _INFINITY, np.where(magnitude < _INFINITE, result, _ZERO))
        result = np.where(magnitude > _INFINITE, NAN, result)
    return np.copysign(result, np.where(magnitude > _INFINITE, _ZERO, a))


def reciprocal_root(a: Singles) -> Singles:
    """MUFU.RSQ: 1 / the square root of a."""
    words, magnitude = _words(a)
    position = _over_two_binades(words)
    value = table("rsqrt", 24).at(position).astype(np.int32)
    value = np.where(position == 0, np.int32(1 << 24), value)  # powers of four are exact
    half = ((magnitude >> np.uint32(23)).astype(np.int32) - 127) >> 1
    result = (value + ((125 - half) << 23)).view(np.float32)
    if _unusual(words):
        result = np.where(words >= _INFINITE, np.where(words == _INFINITE, _ZERO, NAN), result)
        result = np.where(magnitude < _LEAST, np.copysign(_INFINITY, a), result)
    return result


def root(a: Singles) -> Singles:
    """MUFU.SQRT: the square root of a."""
    words, magnitude = _words(a)
    position = _over_two_binades(words)
    value = table("sqrt", 23).at(position).astype(np.int32)
    half = ((magnitude >> np.uint32(23)).astype(np.int32) - 127) >> 1
    result = (value + ((126 + half) << 23)).view(np.float32)
    if _unusual(words):
        result = np.where(words >= _INFINITE, np.where(words == _INFINITE, _INFINITY, NAN), result)
        result = np.where(magnitude < _LEAST, np.copysign(_ZERO, a), result)
    return result


def power(a: Singles) -> Singles:
    """MUFU.EX2: 2 to the power a. Of a, 23 bits after the binary point count.

    They are cut off, and the opposite of a number with a fraction is its complement: 2**-23 less.
    """
    a = np.asarray(a, np.float32)
    magnitude = (np.fmin(np.abs(a), np.float32(256)) * np.float64(1 << 23)).astype(np.int64)
    negative = -magnitude - ((magnitude & 0x7FFFFF) != 0)
    fixed = np.where(np.signbit(a), negative, magnitude)
    value = table("ex2", 23).at(fixed & 0x7FFFFF).astype(np.int64)
    bits = value + (((fixed >> 23) + 126) << 23)
    result = _assembled(np.minimum(bits, 0xFF << 23).astype(np.int32))
    return _with_nan(result, a)


def logarithm(a: Singles) -> Singles:
    """MUFU.LG2: the logarithm of a to the base 2, of 36 bits after the binary point.

    What is negative is complemented: 2**-36 less in magnitude.
    """
    words, magnitude = _words(a)
    exponent = (magnitude >> np.uint32(23)).astype(np.int64) - 127
    fraction = np.floor(table("lg2", 36).at((words & _MANTISSA).astype(np.int64)))
    whole = np.where(words == 0x3F800000, 0.0, fraction + exponent * 2.0**36)
    result = _cut_off(np.where(whole < 0, whole + 1, whole) * 2.0**-36)
    if _unusual(words):
        result = np.where(words >= _INFINITE, np.where(words == _INFINITE, _INFINITY, NAN), result)
        result = np.where(magnitude < _LEAST, -_INFINITY, result)
    return result


def sine(turns: Singles) -> Singles:
    """MUFU.SIN: the sine of an angle in turns, of which 25 bits after the binary point count."""
    return _circular(turns, cosine=False)


def cosine(turns: Singles) -> Singles:
    """MUFU.COS: the cosine of an angle in turns."""
    return _circular(turns, cosine=True)


def quarter(turns: Singles, cosine: bool) -> tuple[Integers, Any]:
    """The 23-bit fraction of a quarter turn whose sine is the magnitude sought, and whether the result is negative.

    Falling quarters mirror rising ones: the fraction is complemented.
    """
    magnitude = np.abs(np.asarray(turns, np.float64))
    part = ((magnitude - np.floor(magnitude)) * 2.0**25).astype(np.int64)
    if cosine:
        part += 1 << 23
    negative = (part >> 24 & 1) != 0
    if not cosine:
        negative = negative != np.signbit(turns)
    return np.where(part & (1 << 23), ~part, part) & 0x7FFFFF, negative


def _circular(turns: Singles, cosine: bool) -> Singles:
    turns = np.asarray(turns, np.float32)
    finite = np.isfinite(turns)
    plain = bool(finite.all())
    fraction, negative = quarter(turns if plain else np.where(finite, turns, _ZERO), cosine)
    value = _cut_off(table("sin", 0).at(fraction))
    result = np.where(negative, -value, value)
    return result if plain else np.where(finite, result, NAN)


_FIRST, _LAST = min(BINADES), max(BINADES)
_BITS = np.array(list(BINADES.values()), np.int64)
_BASE = np.cumsum(np.int64(1) << _BITS) - (np.int64(1) << _BITS)


def hyperbolic_tangent(a: Singles) -> Singles:
    """MUFU.TANH: a itself below 2**-8, and 1 from 8 on; between, 17 bits of a count beside those of the segment."""
    words, magnitude = _words(a)
    exponent = (magnitude >> np.uint32(23)).astype(np.int64) - 127
    place = np.clip(exponent, _FIRST, _LAST) - _FIRST
    bits = _BITS.take(place)
    position = (words & _MANTISSA).astype(np.int64) >> (6 - bits)
    value = _cut_off(table("tanh", 0).segment(_BASE.take(place) + (position >> 17), position & 0x1FFFF))
    size = np.where(exponent < _FIRST, np.abs(a), np.where(exponent > _LAST, np.float32(1), value))
    return _with_nan(np.copysign(size, a), a)


def upper_reciprocal(upper: Words) -> Words:
    """MUFU.RCP64H: 1 / a in .f64, from upper words to upper words. It is RCP of 20 bits of mantissa."""
    magnitude = upper & _MAGNITUDE
    value = table("rcp", 21).at((upper & np.uint32(0xFFFFF)).astype(np.int64) << 3).astype(np.int64)
    bits = value + ((2044 - (magnitude >> np.uint32(20)).astype(np.int64)) << 20)
    result = np.where(bits < 1 << 20, 0, bits)
    result = np.where(magnitude < 1 << 20, 0x7FF << 20, np.where(magnitude >= 0x7FF << 20, 0, result))
    signed = result.astype(np.uint32) | (upper & _SIGN)
    return np.where(magnitude > 0x7FF << 20, _MAGNITUDE, signed)


def upper_reciprocal_root(upper: Words) -> Words:
    """MUFU.RSQ64H: 1 / the square root of a in .f64, from upper words to upper words."""
    magnitude, sign = upper & _MAGNITUDE, upper & _SIGN
    position = ((upper & np.uint32(0x1FFFFF)) ^ np.uint32(1 << 20)).astype(np.int64)
    value = table("rsqrt", 21).at(position << 3).astype(np.int64)
    value = np.where(position == 0, 1 << 21, value)
    half = ((magnitude >> np.uint32(20)).astype(np.int64) - 1023) >> 1
    result = (value + ((1021 - half) << 20)).astype(np.uint32)
    result = np.where(upper >= 0x7FF << 20, np.where(upper == 0x7FF << 20, np.uint32(0), _MAGNITUDE), result)
    return np.where(magnitude < 1 << 20, np.uint32(0x7FF << 20) | sign, result)


def _words(a: Singles) -> tuple[Words, Words]:
    """The bits of a, with and without its sign."""
    words = np.asarray(a, np.float32).view(np.uint32)
    return words, words & _MAGNITUDE


def _unusual(words: Words) -> bool:
    """Whether any of these is no normal number; with signs, whether any is no positive normal number."""
    return bool(np.count_nonzero(words - _LEAST >= _INFINITE - _LEAST))


def _over_two_binades(words: Words) -> Integers:
    """The mantissa, and above it the last bit of the exponent."""
    return ((words & np.uint32(0xFFFFFF)) ^ _LEAST).astype(np.int64)


def _assembled(bits: NDArray[np.int32]) -> Singles:
    """Positive numbers from their bits; what lies below the normal range is zero."""
    return np.where(bits < _LEAST.astype(np.int32), np.int32(0), bits).view(np.float32)


def _cut_off(value: Any) -> Singles:
    """Values of .f64 as .f32, rounded towards zero."""
    return (np.asarray(value).view(np.int64) & _BEYOND_SINGLE).view(np.float64).astype(np.float32)


def _with_nan(result: Singles, a: Singles) -> Singles:
    nan = a != a
    return np.where(nan, NAN, result) if np.count_nonzero(nan) else result
