"""Exact sums and products as pairs of .f64, and .f64 arithmetic with every rounding (IEEE 754).

Pairs `(total, error)` stand for total + error, where total is the value rounded to nearest. The transformations are
those of Knuth (sum), Dekker and Veltkamp (product), and Boldo and Melquiond (fused multiply-add by rounding to odd).
They are exact as long as nothing over- or underflows; what may do so is computed one by one with fractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import any_set

Doubles = NDArray[np.float64]
Pair = tuple[Doubles, Doubles]

#: Magnitudes within which products of two, and such a product with a sum, neither over- nor underflow.
_SAFE, _SAFE_SUM = 2.0**400, 2.0**700


def two_sum(a: Doubles, b: Doubles) -> Pair:
    """a + b rounded, and its exact error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Doubles, b: Doubles) -> Pair:
    """a * b rounded, and its exact error."""
    total = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    return total, ((a_high * b_high - total) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(value: Doubles) -> Pair:
    """A value as the sum of two with 26 bits each."""
    scaled = value * 134217729.0  # 2**27 + 1
    high = scaled - (scaled - value)
    return high, value - high


def round_odd(total: Doubles, error: Doubles) -> Doubles:
    """The exact value total + error rounded to odd: rounding it again, to at most 51 bits, is then right."""
    error = np.where(np.isfinite(total), error, 0.0)
    even = (total.view(np.uint64) & np.uint64(1)) == 0
    towards = np.where(error > 0, np.inf, -np.inf)
    return np.where((error != 0) & even, np.nextafter(total, towards), total)


def directed(nearest: Doubles, error: Doubles, rounding: str) -> Doubles:
    """A value rounded as wanted, from the nearest one and what has the sign of the exact value minus that."""
    if rounding == "rn":
        return nearest
    down = (error < 0) & ((rounding == "rm") | ((rounding == "rz") & (nearest > 0)))
    up = (error > 0) & ((rounding == "rp") | ((rounding == "rz") & (nearest < 0)))
    return np.where(down, np.nextafter(nearest, -np.inf), np.where(up, np.nextafter(nearest, np.inf), nearest))


def cancelled(result: Doubles, a: Doubles, b: Doubles, rounding: str) -> Doubles:
    """The sign of an exact zero a + b of opposite signs: -0 when rounding down, else +0 (IEEE 754, 6.3)."""
    opposite = (result == 0) & (np.signbit(a) != np.signbit(b))
    return np.where(opposite, -0.0 if rounding == "rm" else 0.0, result)


def add(a: Doubles, b: Doubles, rounding: str) -> Doubles:
    """a + b in .f64."""
    if rounding == "rn":
        return a + b
    total, error = two_sum(a, b)
    result = cancelled(directed(total, error, rounding), a, b, rounding)
    large = (np.abs(total) >= 2.0**1022) & np.isfinite(a) & np.isfinite(b)
    return _one_by_one(result, large, lambda x, y: x + y, (a, b), rounding)


def multiply(a: Doubles, b: Doubles, rounding: str) -> Doubles:
    """a * b in .f64."""
    if rounding == "rn":
        return a * b
    total, error = two_product(a, b)
    result = directed(total, np.where(np.isfinite(total), error, 0.0), rounding)
    return _one_by_one(result, _unsafe(a, b) & (a != 0) & (b != 0), lambda x, y: x * y, (a, b), rounding)


def divide(a: Doubles, b: Doubles, rounding: str) -> Doubles:
    """a / b in .f64."""
    quotient = a / b
    if rounding == "rn":
        return quotient
    product, error = two_product(quotient, b)
    rest = (a - product) - error
    special = ~np.isfinite(quotient) | (b == 0) | ~np.isfinite(b)
    result = directed(quotient, np.where(special, 0.0, np.where(b > 0, rest, -rest)), rounding)
    return _one_by_one(result, _unsafe(a, b) & (a != 0) & (b != 0), lambda x, y: x / y, (a, b), rounding)


def square_root(a: Doubles, rounding: str) -> Doubles:
    """The square root of a in .f64."""
    root = np.sqrt(a)
    if rounding == "rn":
        return root
    # Powers of four take operands to where the product and its error are exact; the root itself is normal.
    scale = np.where(a < 2.0**-600, 2.0**600, np.where(a > 2.0**600, 2.0**-600, 1.0))
    scaled, root_scaled = a * scale, root * np.sqrt(scale)
    product, error = two_product(root_scaled, root_scaled)
    rest = (scaled - product) - error
    return directed(root, np.where(np.isfinite(root), rest, 0.0), rounding)


def fused(a: Doubles, b: Doubles, c: Doubles, rounding: str) -> Doubles:
    """a * b + c in .f64, rounded once."""
    product, low = two_product(a, b)
    small, smaller = two_sum(c, low)
    high, rest = two_sum(product, small)
    total, error = two_sum(high, round_odd(*two_sum(smaller, rest)))
    result = cancelled(directed(total, error, rounding), product, c, rounding)
    special = ~np.isfinite(a) | ~np.isfinite(b)
    plain = special | (a == 0) | (b == 0) | ~np.isfinite(c)
    if any_set(plain):  # nothing is rounded, or the product is an exact zero
        factor = np.where(special | np.isfinite(c), a, 0.0)  # a finite product adds nothing to an infinity
        result = np.where(plain, add(factor * b, c, rounding), result)
    unsafe = (_unsafe(a, b) | _outside(c, _SAFE_SUM)) & ~plain
    return _one_by_one(result, unsafe, lambda x, y, z: x * y + z, (a, b, c), rounding)


def _outside(value: Doubles, limit: float) -> NDArray[np.bool_]:
    magnitude = np.abs(value)
    return ((magnitude > limit) | ((magnitude < 1 / limit) & (magnitude != 0))) & np.isfinite(value)


def _unsafe(a: Doubles, b: Doubles) -> NDArray[np.bool_]:
    return (_outside(a, _SAFE) | _outside(b, _SAFE)) & np.isfinite(a) & np.isfinite(b)


def _one_by_one(
    result: Doubles,
    where: NDArray[np.bool_],
    function: Callable[..., Fraction],
    operands: tuple[Doubles, ...],
    rounding: str,
) -> Doubles:
    """`result`, with the elements that `where` marks computed exactly: none of them a sum of zeros of one sign."""
    if not any_set(where):
        return result
    result = np.array(result)
    where = np.broadcast_to(where, result.shape)
    spread = [np.broadcast_to(operand, result.shape) for operand in operands]
    for index in zip(*np.nonzero(where), strict=True):
        exact = function(*(Fraction(float(operand[index])) for operand in spread))
        result[index] = rounded(exact, rounding) if exact else (-0.0 if rounding == "rm" else 0.0)
    return result


def rounded(exact: Fraction, rounding: str) -> float:
    """A fraction that is not zero, as .f64."""
    negative, n, d = exact < 0, abs(exact.numerator), exact.denominator
    top = n.bit_length() - d.bit_length()
    if n << max(-top, 0) < d << max(top, 0):
        top -= 1
    unit = max(top - 52, -1074)
    whole, rest = divmod(n << max(-unit, 0), d << max(unit, 0))
    twice = 2 * rest - (d << max(unit, 0))
    away = rounding == ("rm" if negative else "rp")
    if rest and (away or (rounding == "rn" and (twice > 0 or (twice == 0 and whole & 1)))):
        whole += 1
    if whole.bit_length() + unit > 1024:
        magnitude = math.inf if away or rounding == "rn" else float.fromhex("0x1.fffffffffffffp+1023")
    else:
        magnitude = math.ldexp(whole, unit)
    return -magnitude if negative else magnitude
