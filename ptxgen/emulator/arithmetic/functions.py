"""Functions that hardware approximates: .approx and .full. PTX ISA 9.7.3.8, 9.7.3.13 to 22.

The manual gives bounds of the error and the results at special values. Here the values are those of .f64 arithmetic
rounded to .f32, so hardware may differ within those bounds: an H100 does by at most 2 units in the last place where
the bound is one of units. The special values are the manual's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptxgen.emulator.arithmetic.exact import Doubles, two_product
from ptxgen.emulator.arithmetic.single import Singles, canonical, flush, multiply

_PER_TURN = np.array(1 / (2 * np.pi), np.float32)


def _approximation(function: Callable[[Any], Any]) -> Callable[[Singles, bool], Singles]:
    """A function of one .f32, computed in .f64."""

    def compute(a: Singles, ftz: bool) -> Singles:
        wide = np.asarray(flush(a) if ftz else a, np.float64)
        result = np.asarray(function(wide)).astype(np.float32)
        return canonical(flush(result) if ftz else result)

    return compute


def _turns(a: Any) -> Any:
    """An angle in turns. Hardware multiplies by 1 / (2 pi) as .f32, rounding towards zero (ptxas 13.5, sm_90a)."""
    return multiply(np.asarray(a, np.float32), _PER_TURN, "rz").astype(np.float64)


def _sine(turns: Any) -> Any:
    """The sine of an angle in turns: whole turns do not matter, and the second quarter mirrors the first."""
    part = turns - np.rint(turns)
    mirrored = np.where(np.abs(part) > 0.25, np.copysign(0.5, part) - part, part)
    result = np.sin(mirrored * (2 * np.pi))
    return np.where(turns == 0, turns, result)


def _cosine(turns: Any) -> Any:
    return np.sin((0.25 - np.abs(turns - np.rint(turns))) * (2 * np.pi))


reciprocal = _approximation(lambda a: 1 / a)
root = _approximation(np.sqrt)
reciprocal_root = _approximation(lambda a: 1 / np.sqrt(a))
logarithm = _approximation(np.log2)
power = _approximation(np.exp2)
hyperbolic_tangent = _approximation(np.tanh)
sine = _approximation(lambda a: _sine(_turns(a)))
cosine = _approximation(lambda a: _cosine(_turns(a)))
sine_of_turns = _approximation(_sine)
cosine_of_turns = _approximation(_cosine)


def reciprocal_root_f64(a: Doubles) -> Doubles:
    """1 / the square root of a in .f64: the first guess, and what its square misses to the second order."""
    scale = np.where(a < 2.0**-600, 2.0**600, np.where(a > 2.0**600, 2.0**-600, 1.0))
    scaled = a * scale
    guess = 1 / np.sqrt(scaled)
    square, rest = two_product(guess, guess)
    product, low = two_product(square, scaled)
    missing = (1 - product) - (low + rest * scaled)
    better = guess + guess * missing * 0.5
    plain = (a == 0) | ~np.isfinite(a)
    return np.where(plain, guess, better) * np.sqrt(scale)


def divide_full(a: Singles, b: Singles, ftz: bool) -> Singles:
    """a / b over the full range (div.full)."""
    if ftz:
        a, b = flush(a), flush(b)
    result = np.asarray(np.divide(a, b, dtype=np.float64)).astype(np.float32)
    return canonical(flush(result) if ftz else result)


def divide_fast(a: Singles, b: Singles, ftz: bool) -> Singles:
    """a * (1 / b), where 1 / b is 0 for |b| above 2**126 (div.approx).

    Subnormal b are multiplied by 2**24 first, and a too (ptxas 13.5, sm_90a).
    """
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    if not ftz:
        small = np.abs(b) < np.float32(2.0**-126)
        scale = np.where(small, np.float32(2.0**24), np.float32(1))
        a, b = a * scale, b * scale
    return multiply(a, reciprocal(b, True), "rn", ftz)
