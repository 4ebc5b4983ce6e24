"""Arithmetic in .f16 and .bf16, with one rounding. PTX ISA 9.7.4. Operands and results are words of 16 bits.

All values of both formats are .f32 values, their products too, and sums are exact as pairs of .f64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arithmetic.exact import Doubles, round_odd, two_sum
from ptxgen.emulator.arithmetic.formats import FORMATS, Format, decode, encode

Halves = NDArray[np.uint16]


def flush(word: Any, format: Format) -> Halves:
    """Subnormal numbers as zeros of their sign (.ftz)."""
    word = np.asarray(word)
    magnitude = word & np.uint16(0x7FFF)
    return np.where(magnitude < 1 << format.fraction, word & np.uint16(0x8000), word)


def narrowed(value: Doubles, format: Format) -> Halves:
    """Values of .f64, rounded to nearest, as words; NaN is 0x7fff."""
    if format.name == "f16":
        result = value.astype(np.float16)
        return np.where(result != result, np.uint16(0x7FFF), result.view(np.uint16))
    return encode(value, format, "rn").astype(np.uint16)


def widened(word: Any, format: Format) -> Doubles:
    """Words as .f64."""
    return np.asarray(decode(word, format.name), np.float64)


def add(a: Any, b: Any, format: Format) -> Doubles:
    """a + b, rounded so that `narrowed` rounds rightly."""
    x, y = widened(a, format), widened(b, format)
    return x + y if format.name == "f16" else round_odd(*two_sum(x, y))


def multiply(a: Any, b: Any, format: Format) -> Doubles:
    """a * b, exactly."""
    return widened(a, format) * widened(b, format)


def fused(a: Any, b: Any, c: Any, format: Format) -> Doubles:
    """a * b + c, rounded so that `narrowed` rounds rightly."""
    return round_odd(*two_sum(multiply(a, b, format), widened(c, format)))


def is_nan(word: Any, format: Format) -> NDArray[np.bool_]:
    """Which words are NaN."""
    infinity = FORMATS[format.name].infinity
    assert infinity is not None
    return (np.asarray(word) & np.uint16(0x7FFF)) > infinity
