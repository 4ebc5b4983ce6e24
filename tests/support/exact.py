"""Floating point by integers alone: numbers are n * 2**e, rounded once. The reference of the semantics tests.

Written from IEEE 754 and PTX ISA 9.7.3; shares nothing with the emulator.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.support.harness import WORDS


class Format(NamedTuple):
    """A binary format: bits of exponent and fraction, the name of its canonical NaN's word."""

    exponent: int
    fraction: int

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.fraction

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.fraction

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def smallest(self) -> int:
        """Exponent of the smallest normal number."""
        return 2 - (1 << (self.exponent - 1))


FORMATS = {"f16": Format(5, 10), "bf16": Format(8, 7), "f32": Format(8, 23), "f64": Format(11, 52)}


class Number(NamedTuple):
    """n * 2**e, with the sign of a zero; or an infinity or NaN (`kind`)."""

    kind: str
    negative: bool
    n: int = 0
    e: int = 0

    @property
    def value(self) -> tuple[int, int]:
        return (-self.n if self.negative else self.n), self.e


NAN = Number("nan", False)


def decode(word: int, format: Format) -> Number:
    negative, magnitude = bool(word & format.sign), word & (format.sign - 1)
    if magnitude > format.infinity:
        return NAN
    if magnitude == format.infinity:
        return Number("inf", negative)
    field, fraction = magnitude >> format.fraction, magnitude & ((1 << format.fraction) - 1)
    if field:
        fraction += 1 << format.fraction
    return Number("finite", negative, fraction, max(field, 1) - 1 + format.smallest - format.fraction)


def is_subnormal(word: int, format: Format) -> bool:
    return 0 < (word & (format.sign - 1)) < 1 << format.fraction


def flushed(word: int, format: Format) -> int:
    """.ftz: subnormals become zeros of their sign."""
    return word & format.sign if is_subnormal(word, format) else word


def _step(quotient: int, rest: int, half: int, mode: str, negative: bool) -> int:
    """A magnitude rounded: `rest` of 2 * `half` is cut off."""
    if not rest:
        return quotient
    if mode == "rn":
        return quotient + (rest > half or (rest == half and quotient & 1))
    return quotient + (mode == ("rm" if negative else "rp"))


def cut(n: int, shift: int, mode: str, negative: bool) -> int:
    """n >> shift, rounded."""
    if shift <= 0:
        return n << -shift
    return _step(n >> shift, n & ((1 << shift) - 1), 1 << (shift - 1), mode, negative)


def encode(n: int, e: int, format: Format, mode: str, zero_negative: bool = False) -> int:
    """The word of n * 2**e rounded once."""
    if n == 0:
        return format.sign if zero_negative else 0
    negative, n = n < 0, abs(n)
    top = max(n.bit_length() - 1 + e, format.smallest)
    magnitude = cut(n, top - format.fraction - e, mode, negative) + ((top - format.smallest) << format.fraction)
    if magnitude >= format.infinity:
        outwards = mode == "rn" or mode == ("rm" if negative else "rp")
        magnitude = format.infinity if outwards else format.infinity - 1
    return magnitude | (format.sign if negative else 0)


def canonical_nan(format: Format) -> int:
    return format.sign - 1


def _word(number: Number, format: Format) -> int:
    if number.kind == "nan":
        return canonical_nan(format)
    return format.infinity | (format.sign if number.negative else 0)


def add(a: Number, b: Number, format: Format, mode: str) -> int:
    if "nan" in (a.kind, b.kind) or (a.kind == b.kind == "inf" and a.negative != b.negative):
        return canonical_nan(format)
    if "inf" in (a.kind, b.kind):
        return _word(a if a.kind == "inf" else b, format)
    # An exact zero is negative if both are, or when rounding down numbers that cancel (IEEE 754, 6.3).
    negative = a.negative and b.negative if a.negative == b.negative else mode == "rm"
    return encode(*total(a, b).value, format, mode, negative)


def total(a: Number, b: Number) -> Number:
    """The exact sum of finite numbers (NaN of others: for their sum see `add`)."""
    if a.kind != "finite" or b.kind != "finite":
        return NAN
    e = min(a.e, b.e)
    n = (a.value[0] << (a.e - e)) + (b.value[0] << (b.e - e))
    return Number("finite", n < 0, abs(n), e)


def multiply(a: Number, b: Number) -> Number:
    """The exact product."""
    negative = a.negative != b.negative
    if "nan" in (a.kind, b.kind):
        return NAN
    if "inf" in (a.kind, b.kind):
        other = b if a.kind == "inf" else a
        return NAN if other.kind == "finite" and other.n == 0 else Number("inf", negative)
    return Number("finite", negative, a.n * b.n, a.e + b.e)


def round_number(number: Number, format: Format, mode: str) -> int:
    if number.kind != "finite":
        return _word(number, format)
    return encode(*number.value, format, mode, number.negative)


def is_tiny(number: Number, format: Format, mode: str) -> bool:
    """Whether a number, rounded with as many exponents as it takes, is below the smallest normal one: .ftz flushes it.

    Measured (H200): (1 - 2**-24) * 2**-126 rounded to nearest is flushed, (1 - 2**-46) * 2**-126 is not.
    """
    if number.kind != "finite" or number.n == 0:
        return False
    wide = Format(FORMATS["f64"].exponent, format.fraction)
    rounded = encode(*number._replace(e=number.e + 200).value, wide, mode)
    return less(decode(rounded & (wide.sign - 1), wide), Number("finite", False, 1, format.smallest + 200))


def to_integer(number: Number, mode: str) -> int:
    """A finite number as an integer, by .rni .rzi .rmi .rpi."""
    n = cut(number.n, -number.e, mode[:2], number.negative)
    return -n if number.negative else n


def less(a: Number, b: Number) -> bool:
    """a < b of numbers that are not NaN; zeros are equal."""

    def key(x: Number) -> tuple[int, int, int]:
        if x.kind == "inf":
            return (-1 if x.negative else 1, 0, 0)
        return (0, *x.value)

    x, y = key(a), key(b)
    if x[0] or y[0]:
        return x[0] < y[0]
    e = min(x[2], y[2])
    return x[1] << (x[2] - e) < y[1] << (y[2] - e)


def float_edges(name: str, count: int, seed: int) -> NDArray[np.unsignedinteger]:
    """Words of a format: a third special or near a special value, the rest random, of all magnitudes."""
    format, rng = FORMATS[name], random.Random(seed)
    one = ((1 << (format.exponent - 1)) - 1) << format.fraction
    special = [
        0, 1, 2, (1 << format.fraction) - 1, 1 << format.fraction, (1 << format.fraction) + 1, one - 1, one, one + 1,
        one + (1 << format.fraction), format.infinity - 1, format.infinity, format.infinity + 1, format.sign - 1,
    ]  # fmt: skip
    words = []
    for _ in range(count):
        kind = rng.randrange(6)
        if kind < 2:
            word = rng.choice(special)
        elif kind == 2:  # around one, with few bits: sums and products that tie
            word = one + (rng.randrange(-8, 9) << format.fraction) + (rng.getrandbits(4) << (format.fraction - 4))
        elif kind == 3:
            word = one + rng.randrange(-40 << format.fraction, 40 << format.fraction)
        else:
            word = rng.getrandbits(format.bits - 1)
        words.append((word & (format.sign - 1)) | rng.choice([0, format.sign]))
    return np.array(words, WORDS[format.bits])
