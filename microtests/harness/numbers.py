"""Floating point as exact fractions, rounded once: the reference of arithmetic. Shares nothing with the emulator.

From IEEE 754, the OCP formats (FP8, MX) and PTX ISA 9.7.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

Rounding = Literal["rn", "rz", "rm", "rp", "rna"]
Kind = Literal["finite", "inf", "nan"]


@dataclass(frozen=True)
class Format:
    """A binary format: bits of exponent and fraction, and which words are not finite.

    `special`: "ieee" the largest exponent is for infinities and NaNs, "nan" the largest word alone is a NaN (e4m3),
    "none" all are finite. `signed` False: no sign bit.
    """

    exponent: int
    fraction: int
    special: Literal["ieee", "nan", "none"] = "ieee"
    signed: bool = True

    @property
    def bits(self) -> int:
        return self.exponent + self.fraction + self.signed

    @property
    def sign(self) -> int:
        return 1 << (self.exponent + self.fraction)

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def lowest(self) -> int:
        """The exponent of the smallest normal number."""
        return 1 - self.bias

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.fraction

    @property
    def largest(self) -> int:
        """The word of the largest finite number."""
        return {"ieee": self.infinity - 1, "nan": self.sign - 2, "none": self.sign - 1}[self.special]


F16, BF16, F32, F64 = Format(5, 10), Format(8, 7), Format(8, 23), Format(11, 52)
TF32 = Format(8, 10)
E4M3, E5M2 = Format(4, 3, "nan"), Format(5, 2)
E2M3, E3M2, E2M1 = Format(2, 3, "none"), Format(3, 2, "none"), Format(2, 1, "none")
UE4M3 = Format(4, 3, "nan", False)
FORMATS = {
    "f16": F16,
    "bf16": BF16,
    "f32": F32,
    "f64": F64,
    "tf32": TF32,
    "e4m3": E4M3,
    "e5m2": E5M2,
    "e2m3": E2M3,
    "e3m2": E3M2,
    "e2m1": E2M1,
    "ue4m3": UE4M3,
}


@dataclass(frozen=True, slots=True)
class Number:
    """A value with the sign of a zero; infinities and NaNs by `kind`."""

    kind: Kind
    negative: bool
    value: Fraction = Fraction(0)

    def __neg__(self) -> Number:
        return Number(self.kind, not self.negative, -self.value)

    def __abs__(self) -> Number:
        return Number(self.kind, False, abs(self.value))

    @property
    def is_zero(self) -> bool:
        return self.kind == "finite" and self.value == 0

    def as_float(self) -> float:
        """The nearest Python float."""
        if self.kind == "nan":
            return math.nan
        size = math.inf if self.kind == "inf" else float(abs(self.value))
        return -size if self.negative else size


NAN = Number("nan", False)


def finite(value: Fraction | int, negative: bool | None = None) -> Number:
    """A finite number; `negative` is for zeros."""
    fraction = Fraction(value)
    return Number("finite", fraction < 0 if fraction else bool(negative), fraction)


def of_float(value: float) -> Number:
    """A Python float as a number."""
    if math.isnan(value):
        return NAN
    if math.isinf(value):
        return Number("inf", value < 0)
    return finite(Fraction(value), math.copysign(1.0, value) < 0)


@lru_cache(maxsize=65536)
def decode(word: int, format: Format, ftz: bool = False) -> Number:
    """The number of a word; with `ftz` a subnormal one is zero."""
    negative, magnitude = bool(format.signed and word & format.sign), word & (format.sign - 1)
    if format.special == "ieee" and magnitude >= format.infinity:
        return NAN if magnitude > format.infinity else Number("inf", negative)
    if format.special == "nan" and magnitude == format.sign - 1:
        return NAN
    field, fraction = magnitude >> format.fraction, magnitude & ((1 << format.fraction) - 1)
    if field:
        fraction += 1 << format.fraction
    elif ftz:
        fraction = 0
    shift = max(field, 1) - 1 + format.lowest - format.fraction
    value = Fraction(fraction << shift) if shift >= 0 else Fraction(fraction, 1 << -shift)
    return Number("finite", negative, -value if negative else value)


def exponent(value: Fraction) -> int:
    """floor(log2(|value|)) of a value that is not zero."""
    top, bottom = abs(value.numerator), value.denominator
    guess = top.bit_length() - bottom.bit_length()
    below = top < bottom << guess if guess >= 0 else top << -guess < bottom
    return guess - 1 if below else guess


def rounded(value: Fraction, mode: Rounding) -> int:
    """A value as an integer."""
    floor = value.numerator // value.denominator
    rest = value - floor
    if rest == 0:
        return floor
    if mode == "rm" or (mode == "rz" and value > 0):
        return floor
    if mode == "rp" or mode == "rz":
        return floor + 1
    if rest == Fraction(1, 2):
        return floor + (1 if mode == "rna" and value > 0 else 0 if mode == "rna" else floor & 1)
    return floor + (rest > Fraction(1, 2))


def nan(format: Format) -> int:
    """The NaN that PTX gives: all bits below the sign."""
    return format.sign - 1


def encode(
    number: Number, format: Format, mode: Rounding = "rn", *, ftz: bool = False, finite_only: bool = False
) -> int:
    """The word of a number, rounded once. `finite_only` clamps to the largest finite word, infinities too.

    `ftz`: a result that is tiny after rounding with as many exponents as it takes is a zero (measured, H200).
    """
    if number.kind == "nan":
        return nan(format)
    sign = format.sign if number.negative and format.signed else 0
    if number.kind == "inf":
        clamped = finite_only or format.special != "ieee"
        return sign | (format.largest if clamped else format.infinity)
    if number.value == 0:
        return sign
    size = abs(number.value)
    mirrored: Rounding = {"rm": "rp", "rp": "rm"}.get(mode, mode) if number.negative else mode  # type: ignore[assignment]
    unbounded = exponent(size)
    if ftz:
        quantum = Fraction(2) ** (unbounded - format.fraction)
        if rounded(size / quantum, mirrored) * quantum < Fraction(2) ** format.lowest:
            return sign
    top = max(unbounded, format.lowest)
    quantum = Fraction(2) ** (top - format.fraction)
    magnitude = rounded(size / quantum, mirrored) + ((top - format.lowest) << format.fraction)
    if magnitude > format.largest:
        outwards = mirrored in ("rn", "rna", "rp") and not finite_only and format.special == "ieee"
        magnitude = format.infinity if outwards else format.largest
    return sign | magnitude


def add(a: Number, b: Number, mode: Rounding = "rn") -> Number:
    """The exact sum. An exact zero of numbers that cancel is negative only when rounding down (IEEE 754, 6.3)."""
    if "nan" in (a.kind, b.kind) or (a.kind == b.kind == "inf" and a.negative != b.negative):
        return NAN
    if "inf" in (a.kind, b.kind):
        return a if a.kind == "inf" else b
    total = a.value + b.value
    return finite(total, a.negative if a.negative == b.negative else mode == "rm")


def multiply(a: Number, b: Number) -> Number:
    """The exact product."""
    if "nan" in (a.kind, b.kind):
        return NAN
    negative = a.negative != b.negative
    if "inf" in (a.kind, b.kind):
        return NAN if a.is_zero or b.is_zero else Number("inf", negative)
    return finite(a.value * b.value, negative)


def divide(a: Number, b: Number) -> Number:
    """The exact quotient."""
    if "nan" in (a.kind, b.kind) or (a.kind == b.kind == "inf") or (a.is_zero and b.is_zero):
        return NAN
    negative = a.negative != b.negative
    if b.is_zero or a.kind == "inf":
        return Number("inf", negative)
    return finite(0 if b.kind == "inf" else a.value / b.value, negative)


def root(a: Number, format: Format) -> Number:
    """The square root, exact enough to be rounded to a format: with more bits, and one that says there are others."""
    if a.kind == "nan" or (a.negative and not a.is_zero):
        return NAN
    if a.kind == "inf" or a.is_zero:
        return a
    scale = 2 * (format.fraction + 4) - exponent(a.value) // 2 * 2
    scaled = a.value * Fraction(2) ** (2 * (scale // 2))
    whole = scaled.numerator // scaled.denominator
    found = math.isqrt(whole)
    exact = found * found == whole and scaled.denominator == 1
    return finite((Fraction(found) if exact else Fraction(2 * found + 1, 2)) / Fraction(2) ** (scale // 2))


def less(a: Number, b: Number) -> bool:
    """a < b of numbers that are not NaN."""
    return _key(a) < _key(b)


def _key(a: Number) -> tuple[int, Fraction]:
    if a.kind == "inf":
        return (-1 if a.negative else 1, Fraction(0))
    return (0, a.value)


def saturated(a: Number) -> Number:
    """.sat: clamped to 0 .. 1; a NaN is +0."""
    if a.kind == "nan" or a.negative:
        return finite(0)
    return finite(1) if a.kind == "inf" or a.value > 1 else a


def signed(word: int, bits: int) -> int:
    """The two's complement value of a word."""
    return word - (1 << bits) if word >> (bits - 1) else word
