"""MUFU, the special function unit: one function of one number each, bit for bit an H200's.

Names are those of SASS. All flush: subnormal operands count as zeros, and results below the normal range are zeros. The
values come from `interpolator`; here are the reductions of the argument, exponents and special values (measured, H200,
driver 580.159.04, 2026-11-27, all operands; tests/data/silicon/functions_h200.npz).

Functions whose names begin with `usual_` give NaN where an operand takes another way: zeros, subnormal and infinite
numbers, NaN, negative ones of roots and logarithms, results below the normal range. Mostly there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arithmetic.interpolator import BINADES, Integers, Rows, rows
from ptxgen.emulator.arithmetic.single import NAN, Singles
from ptxgen.emulator.arrays import count_nonzero

Words = NDArray[np.uint32]

_LEAST, _INFINITY, _ZERO = np.float32(2.0**-126), np.float32(np.inf), np.float32(0)
#: Bits of a .f64 that a .f32 has.
_OF_SINGLE = np.int64(~0x1FFFFFFF)


def any_unusual(result: Singles) -> bool:
    """Whether a result is NaN."""
    return bool(count_nonzero(result != result))


def usual_reciprocal(a: Singles) -> Singles:
    return cut_off(_reciprocals().at(_words(a)))


def reciprocal(a: Singles) -> Singles:
    """MUFU.RCP: 1 / a."""
    result = usual_reciprocal(a)
    if not any_unusual(result):
        return result
    magnitude = np.abs(a)
    # Of 2**126 on: the next larger number's reciprocal is below the normal range.
    other = np.where(magnitude < _LEAST, _INFINITY, np.where(magnitude == np.float32(2.0**126), _LEAST, _ZERO))
    return _with_nan(np.where(result != result, np.copysign(other, a), result), a)


def usual_reciprocal_root(a: Singles) -> Singles:
    words = _words(a)
    result = cut_off(_reciprocal_roots().at(words))
    exact = (words & 0xFFFFFF) == 1 << 23  # powers of four
    if count_nonzero(exact):
        result = np.where(exact, np.nextafter(result, _INFINITY), result)
    return result


def reciprocal_root(a: Singles) -> Singles:
    """MUFU.RSQ: 1 / the square root of a."""
    result = usual_reciprocal_root(a)
    if not any_unusual(result):
        return result
    other = np.where(np.abs(a) < _LEAST, np.copysign(_INFINITY, a), np.where(a == _INFINITY, _ZERO, NAN))
    return np.where(result != result, other, result)


def usual_root(a: Singles) -> Singles:
    return cut_off(_roots().at(_words(a)))


def root(a: Singles) -> Singles:
    """MUFU.SQRT: the square root of a."""
    result = usual_root(a)
    if not any_unusual(result):
        return result
    other = np.where(np.abs(a) < _LEAST, np.copysign(_ZERO, a), np.where(a == _INFINITY, _INFINITY, NAN))
    return np.where(result != result, other, result)


def usual_logarithm(a: Singles) -> Singles:
    """Of 36 bits after the binary point; what is negative is complemented: 2**-36 less in magnitude."""
    words = _words(a)
    result = cut_off(np.floor(_logarithms().at(words)) * 2.0**-36)
    one = words == 0x3F800000
    return np.where(one, _ZERO, result) if count_nonzero(one) else result


def logarithm(a: Singles) -> Singles:
    """MUFU.LG2: the logarithm of a to the base 2."""
    result = usual_logarithm(a)
    if not any_unusual(result):
        return result
    other = np.where(np.abs(a) < _LEAST, -_INFINITY, np.where(a == _INFINITY, _INFINITY, NAN))
    return np.where(result != result, other, result)


_FARTHEST = np.float32(256)


def power(a: Singles) -> Singles:
    """MUFU.EX2: 2 to the power a. Of a, 23 bits after the binary point count.

    They are cut off, and the opposite of a number with a fraction is its complement: 2**-23 less.
    """
    a = np.asarray(a, np.float32)
    near = np.abs(a) < _FARTHEST
    plain = count_nonzero(near) == near.size
    bounded = a if plain else np.where(near, a, np.where(a > 0, np.float32(255), np.float32(-255)))
    fixed = np.multiply(bounded, 2.0**23, dtype=np.float64).astype(np.int64)
    fixed = fixed - ((fixed < 0) & ((fixed & 0x7FFFFF) != 0))
    result = cut_off(_powers().at(fixed))
    return result if plain else _with_nan(result, a)


def sine(turns: Singles) -> Singles:
    """MUFU.SIN: the sine of an angle in turns, with 25 bits after the binary point."""
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
    negative = (part & (1 << 24)) != 0
    if not cosine:
        negative = negative != np.signbit(turns)
    return np.where(part & (1 << 23), ~part, part) & 0x7FFFFF, negative


def _circular(turns: Singles, cosine: bool) -> Singles:
    turns = np.asarray(turns, np.float32)
    finite = np.isfinite(turns)
    plain = count_nonzero(finite) == finite.size
    fraction, negative = quarter(turns if plain else np.where(finite, turns, _ZERO), cosine)
    value = cut_off(_sines().at(fraction))
    result = np.where(negative, -value, value)
    return result if plain else np.where(finite, result, NAN)


def hyperbolic_tangent(a: Singles) -> Singles:
    """MUFU.TANH: a itself below 2**-8, and 1 from 8 on; between, 17 bits of a count beside those of the segment."""
    words = _words(a)
    lead = words >> 19
    x = ((words & 0x7FFFFF) >> tangent_shifts().take(lead)) & 0x1FFFF
    result = cut_off(_tangents().segment(lead, x))
    return _with_nan(np.where(np.abs(a) < np.float32(2.0**-8), a, result), a)


def upper_reciprocal(upper: Words) -> Words:
    """MUFU.RCP64H: 1 / a in .f64, from upper words to upper words. It is RCP of 20 bits of mantissa."""
    word = upper.astype(np.int64)
    value = _plain("rcp", 21).segment((word >> 13) & 0x7F, (word & 0x1FFF) << 3).astype(np.int64)
    exponent = word >> 20 & 0x7FF
    result = value + ((2044 - exponent) << 20)
    if count_nonzero((exponent == 0) | (exponent > 2044)):
        result = np.where(exponent == 0, 0x7FF << 20, np.where(result < 1 << 20, 0, result))
    result = result | (word & (1 << 31))
    nan = (word & 0x7FFFFFFF) > 0x7FF << 20
    return (np.where(nan, 0x7FFFFFFF, result) if count_nonzero(nan) else result).astype(np.uint32)


def upper_reciprocal_root(upper: Words) -> Words:
    """MUFU.RSQ64H: 1 / the square root of a in .f64, from upper words to upper words."""
    word = upper.astype(np.int64)
    index = (word >> 14) & 0x7F ^ 0x40
    value = _plain("rsqrt", 21).segment(index, (word & 0x3FFF) << 3).astype(np.int64)
    value = value + ((word & 0x1FFFFF) == 1 << 20)  # powers of four
    result = value + ((1021 - (((word >> 20) - 1023) >> 1)) << 20)
    unusual = (word < 1 << 20) | (upper >= 0x7FF << 20)
    if count_nonzero(unusual):
        magnitude = word & 0x7FFFFFFF
        other = np.where(magnitude < 1 << 20, (0x7FF << 20) | (word & (1 << 31)), 0x7FFFFFFF)
        result = np.where(unusual, np.where(word == 0x7FF << 20, 0, other), result)
    return result.astype(np.uint32)


def _words(a: Singles) -> Integers:
    return np.asarray(a, np.float32).view(np.uint32).astype(np.int64)


def cut_off(value: Any) -> Singles:
    """Values of .f64 as .f32, rounded towards zero."""
    return (np.asarray(value).view(np.int64) & _OF_SINGLE).view(np.float64).astype(np.float32)


def _with_nan(result: Singles, a: Singles) -> Singles:
    nan = a != a
    return np.where(nan, NAN, result) if count_nonzero(nan) else result


# Rows by the leading bits of a .f32: its sign, exponent, and the first bits of its mantissa.


def _leading(bits: int) -> tuple[Integers, Integers, Integers]:
    """The leading 9 + `bits` bits of all .f32: the words of these, the exponents, and the bits of mantissa."""
    lead = np.arange(1 << (9 + bits))
    return lead, (lead >> bits & 0xFF) - 127, lead & ((1 << bits) - 1)


def _positive(exponent: Integers, lead: Integers) -> Any:
    """Which rows are of positive normal numbers."""
    return (exponent > -127) & (exponent < 128) & (lead < len(lead) // 2)


def _scaled(exponent: Any, usual: Any) -> Any:
    return np.where(usual, np.ldexp(1.0, exponent), np.nan)


@cache
def _reciprocals() -> Rows:
    lead, exponent, segment = _leading(7)
    usual = (exponent > -127) & (exponent < 126)
    return rows("rcp", segment, np.where(lead >> 15, -1.0, 1.0) * _scaled(-exponent, usual))


@cache
def _reciprocal_roots() -> Rows:
    lead, exponent, segment = _leading(6)
    odd = (exponent & 1) << 6
    return rows("rsqrt", segment | odd, _scaled(-(exponent >> 1), _positive(exponent, lead)))


@cache
def _roots() -> Rows:
    lead, exponent, segment = _leading(6)
    odd = (exponent & 1) << 6
    return rows("sqrt", segment | odd, _scaled(exponent >> 1, _positive(exponent, lead)))


@cache
def _logarithms() -> Rows:
    """In units of 2**-36; one more where the exponent, and so the logarithm, is negative."""
    lead, exponent, segment = _leading(6)
    made = rows("lg2", segment, _scaled(np.full(exponent.shape, 36), _positive(exponent, lead)))
    return Rows(made.c0 + exponent * 2.0**36 + (exponent < 0), made.c1, made.c2, made.rest)


@cache
def _powers() -> Rows:
    """By the exponent of the result, those from 256 on being negative, and 6 bits."""
    lead = np.arange(1 << 15)
    exponent = (lead >> 6) - (lead >> 14 << 9)
    made = rows("ex2", lead & 0x3F, np.where((exponent >= -126) & (exponent < 128), np.ldexp(1.0, exponent), 0.0))
    return Rows(np.where(exponent < 128, made.c0, np.inf), made.c1, made.c2, made.rest)


@cache
def _sines() -> Rows:
    return rows("sin")


@cache
def _plain(name: str, places: int) -> Rows:
    return rows(name, None, 2.0**places)


@cache
def tangent_shifts() -> Integers:
    """By sign, exponent and 4 bits: how many bits of the mantissa do not count."""
    _, exponent, _ = _leading(4)
    return 6 - np.array([BINADES.get(int(each), 0) for each in exponent])


@cache
def _tangents() -> Rows:
    lead, exponent, first = _leading(4)
    base = dict(zip(BINADES, np.cumsum([0, *(1 << bits for bits in BINADES.values())]).tolist(), strict=False))
    start = np.array([base.get(int(each), 0) for each in exponent])
    bits = 6 - tangent_shifts()
    segment = np.where((exponent >= min(BINADES)) & (exponent <= max(BINADES)), start + (first >> (4 - bits)), 0)
    made = rows("tanh", segment, np.where(lead < len(lead) // 2, 1.0, -1.0))
    large = exponent > max(BINADES)
    one = np.where(lead < len(lead) // 2, 1.0, -1.0)
    return Rows(np.where(large, one, made.c0), np.where(large, 0.0, made.c1), np.where(large, 0.0, made.c2), made.rest)


#: The rows of each function, for machine code, which interpolates as `Rows` does.
ROWS: Mapping[str, Callable[[], Rows]] = {
    "reciprocal": _reciprocals,
    "reciprocal root": _reciprocal_roots,
    "root": _roots,
    "logarithm": _logarithms,
    "power": _powers,
    "sine": _sines,
    "tangent": _tangents,
}
