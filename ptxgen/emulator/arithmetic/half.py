"""Arithmetic in .f16 and .bf16, with one rounding. PTX ISA 9.7.4. Operands and results are words of 16 bits.

All values of both formats are .f32 values, their products too, and sums are exact as pairs of .f64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arithmetic.exact import Doubles, round_odd, two_sum
from ptxgen.emulator.arithmetic.formats import FORMATS, Format, decode, encode
from ptxgen.emulator.arrays import count_nonzero

Halves = NDArray[np.uint16]


def flush(word: Any, format: Format) -> Halves:
    """Subnormal numbers as zeros of their sign (.ftz)."""
    word = np.asarray(word)
    magnitude = word & np.uint16(0x7FFF)
    return np.where(magnitude < 1 << format.fraction, word & np.uint16(0x8000), word)


def narrowed(value: Doubles, format: Format) -> Halves:
    """Values of .f64, rounded to nearest, as words; NaN is 0x7fff."""
    value = np.asarray(value)
    if format.name == "f16":
        result = value.astype(np.float16)
        nan = result != result
        words = result.view(np.uint16)
        return np.where(nan, np.uint16(0x7FFF), words) if count_nonzero(nan) else words
    magnitude = np.abs(value)
    if _has_tiny(magnitude) or not np.maximum.reduce(magnitude, axis=None) < 2.0**128:
        return encode(value, format, "rn").astype(np.uint16)
    # Cut off to .f32, odd where something was lost, and then rounded.
    words = value.view(np.uint64)
    lost = words & np.uint64(0x1FFFFFFF)
    single = (words ^ lost).view(np.float64).astype(np.float32).view(np.uint32) | (lost != 0)
    return ((single + np.uint32(0x7FFF) + (single >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def _has_tiny(magnitude: Doubles) -> bool:
    """Whether some number is subnormal in .bf16 and .f32."""
    if np.fmin.reduce(magnitude, axis=None) >= 2.0**-126:
        return False
    return bool(count_nonzero((magnitude < 2.0**-126) & (magnitude > 0)))


def widened(word: Any, format: Format) -> Doubles:
    """Words as .f64."""
    return np.asarray(decode(word, format.name), np.float64)


def add(a: Any, b: Any, format: Format) -> Doubles:
    """a + b, rounded so that `narrowed` rounds rightly."""
    x, y = widened(a, format), widened(b, format)
    return x + y if format.name == "f16" else _exactly(x, y, format)


def multiply(a: Any, b: Any, format: Format) -> Doubles:
    """a * b, exactly."""
    return widened(a, format) * widened(b, format)


def fused(a: Any, b: Any, c: Any, format: Format) -> Doubles:
    """a * b + c, rounded so that `narrowed` rounds rightly."""
    return _exactly(multiply(a, b, format), widened(c, format), format)


def _exactly(a: Doubles, b: Doubles, format: Format) -> Doubles:
    """a + b, rounded to odd where the rounding of .f64 could have made a tie of the format.

    Sums that are subnormal in .f16 are exact in .f64.
    """
    total = a + b
    low = np.uint64((1 << (52 - format.fraction)) - 1)
    tie = (total.view(np.uint64) & low) == np.uint64(1 << (51 - format.fraction))
    if count_nonzero(tie) or (format.name == "bf16" and _has_tiny(np.abs(total))):
        return round_odd(*two_sum(a, b))
    return total


def is_nan(word: Any, format: Format) -> NDArray[np.bool_]:
    """Which words are NaN."""
    infinity = FORMATS[format.name].infinity
    assert infinity is not None
    return (np.asarray(word) & np.uint16(0x7FFF)) > infinity
