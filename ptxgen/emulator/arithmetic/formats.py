"""Floating-point formats of 4 to 32 bits: words to values, and values to words with every rounding.

PTX ISA 5.2.3 (alternate formats) and 9.7.9.21 (cvt). A format is its bits of exponent and fraction, its largest finite
value, and what stands for infinity and NaN; those without infinity give their largest value or NaN instead.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Format:
    """A format. Words are sign, exponent and fraction, from the top; `largest`, `infinity`, `nan` without the sign."""

    name: str
    exponent: int
    fraction: int
    largest: int
    infinity: int | None = None
    nan: int | None = None
    signed: bool = True

    @property
    def bits(self) -> int:
        """The width of a word."""
        return self.signed + self.exponent + self.fraction

    @property
    def smallest(self) -> int:
        """The exponent of the smallest normal value, 2**smallest."""
        return 2 - (1 << (self.exponent - 1))

    @property
    def sign(self) -> int:
        """The sign bit; 0 if there is none."""
        return 1 << (self.bits - 1) if self.signed else 0


#: NaN patterns are those that cvt gives (9.7.9.21).
FORMATS = {
    format.name: format
    for format in (
        Format("f16", 5, 10, 0x7BFF, 0x7C00, 0x7FFF),
        Format("bf16", 8, 7, 0x7F7F, 0x7F80, 0x7FFF),
        Format("f32", 8, 23, 0x7F7FFFFF, 0x7F800000, 0x7FFFFFFF),
        Format("tf32", 8, 10, 0x3FBFF, 0x3FC00, 0x3FFFF),
        Format("e4m3", 4, 3, 0x7E, None, 0x7F),
        Format("e5m2", 5, 2, 0x7B, 0x7C, 0x7F),
        Format("e2m3", 2, 3, 0x1F),
        Format("e3m2", 3, 2, 0x1F),
        Format("e2m1", 2, 1, 0x7),
        Format("ue4m3", 4, 3, 0x7E, None, 0x7F, signed=False),
    )
}


@functools.cache
def values(name: str) -> NDArray[np.float32]:
    """The value of every word of a format of at most 16 bits; NaN where a word has none."""
    if name == "ue8m0":  # 2**(word - 127)
        table = np.ldexp(1.0, np.arange(256) - 127)
        table[255] = np.nan
    else:
        format = FORMATS[name]
        word = np.arange(1 << format.bits)
        magnitude = word & ~format.sign if format.signed else word
        field, fraction = magnitude >> format.fraction, magnitude & ((1 << format.fraction) - 1)
        whole = np.where(field > 0, fraction + (1 << format.fraction), fraction)
        table = np.ldexp(whole.astype(np.float64), np.maximum(field, 1) - 1 + format.smallest - format.fraction)
        table[magnitude > format.largest] = np.nan
        if format.infinity is not None:
            table[magnitude == format.infinity] = np.inf
        table = np.where(word & format.sign, -table, table)
    table = table.astype(np.float32)
    table.setflags(write=False)
    return table


def decode(word: Any, name: str) -> NDArray[np.float32]:
    """The values of words of a format of at most 16 bits, exactly."""
    word = np.asarray(word)
    if name == "f16":
        return word.astype(np.uint16, copy=False).view(np.float16).astype(np.float32)
    if name == "bf16":
        return (word.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return values(name)[word]


def encode(value: Any, format: Format, rounding: str, *, finite: bool = False, noise: Any = None) -> NDArray[np.uint32]:
    """Values, rounded once, as words of a format.

    `rounding` is rn, rna (ties away from zero), rz, rm, rp, or rs: away from zero where the part that is cut off, plus
    `noise` from [0, 1) of a unit, makes a whole unit. `finite` gives the largest value instead of infinity. Where
    there is no NaN, NaN gives the largest value (cvt, .satfinite).
    """
    value = np.asarray(value, np.float64)
    negative, special = np.signbit(value), ~np.isfinite(value)
    magnitude = np.where(special, 0.0, np.abs(value))
    top = np.where(magnitude > 0, np.maximum(np.frexp(magnitude)[1] - 1, format.smallest), format.smallest)
    scaled = np.ldexp(magnitude, format.fraction - top)
    whole = np.floor(scaled)
    word = whole.astype(np.int64) + _step(whole, scaled - whole, negative, rounding, noise)
    word += (top - format.smallest).astype(np.int64) << format.fraction
    over = word > format.largest
    if format.infinity is None or finite:
        infinity: Any = format.largest
        overflow: Any = format.largest
    else:
        infinity = format.infinity
        outwards = np.where(negative, rounding in ("rn", "rna", "rs", "rm"), rounding in ("rn", "rna", "rs", "rp"))
        overflow = np.where(outwards, format.infinity, format.largest)
    word = np.where(over, overflow, word)
    word = np.where(special, infinity, word) | np.where(negative, format.sign, 0)
    nan = np.isnan(value)
    return np.where(nan, format.nan if format.nan is not None else format.largest, word).astype(np.uint32)


def _step(whole: Any, rest: Any, negative: Any, rounding: str, noise: Any) -> Any:
    """1 where a magnitude is rounded up: `whole` units and `rest` of the next one."""
    if rounding == "rn":
        return (rest > 0.5) | ((rest == 0.5) & (whole % 2 == 1))
    if rounding == "rna":
        return rest >= 0.5
    if rounding == "rs":
        return rest + noise >= 1
    if rounding == "rz":
        return 0
    return (rest > 0) & (negative == (rounding == "rm"))
