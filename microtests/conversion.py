"""Conversions. References: exact fractions, rounded once; NaNs and clamping from PTX ISA 9.7.9.21 and 9.7.9.22."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from microtests.harness.draft import Tolerance
from microtests.harness.inputs import words
from microtests.harness.lanes import lanewise
from microtests.harness.numbers import (
    BF16,
    F32,
    FORMATS,
    TF32,
    Format,
    Number,
    decode,
    encode,
    finite,
    rounded,
    saturated,
    signed,
)
from ptxgen.instr import conversion

_DTYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}


def _is_float(kind: str) -> bool:
    return kind in _DTYPES


def _range(kind: str) -> tuple[int, int]:
    bits = int(kind[1:])
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)


def _free_nan(form: Any) -> Tolerance | None:
    if _is_float(form.dtype) and _is_float(form.atype):
        return Tolerance("which NaN a conversion gives is open", dtype=_DTYPES[form.dtype])
    return None


def _source(kind: str, word: int, ftz: bool) -> Number:
    if _is_float(kind):
        return decode(word, FORMATS[kind], ftz and kind == "f32")
    return finite(word)


def _to_integer(form: Any, number: Number) -> int:
    low, high = _range(form.dtype)
    if number.kind == "nan":
        wide = form.atype == "f64" or form.dtype in ("u64", "s64")
        return 1 << (int(form.dtype[1:]) - 1) if wide else 0
    if number.kind == "inf":
        return low if number.negative else high
    value = number.value
    whole = rounded(value, {"i": form.rounding[:2]}[form.rounding[2]])
    return min(max(whole, low), high)


def _worth(form: Any) -> bool:
    """All pairs of types, all roundings of a few of them, and .ftz and .sat where they do something."""
    pair = (form.dtype, form.atype)
    full = pair in {
        ("s32", "f32"),
        ("u8", "f32"),
        ("f32", "s32"),
        ("f16", "f32"),
        ("f32", "f64"),
        ("f32", "u64"),
        ("s64", "f64"),
        ("f32", "f32"),
        ("f16", "f16"),
        ("s16", "f16"),
        ("u64", "f32"),
    }
    if full:
        return True
    return form.rounding in (None, "rn", "rzi") and not form.ftz and (not form.sat or "8" in form.dtype)


@lanewise(conversion.cvt, tolerance=_free_nan, only_if=_worth)
def cvt(form: Any, a: int) -> int:
    """Between integers and floats of all sizes."""
    if not _is_float(form.dtype) and not _is_float(form.atype):
        low, high = _range(form.dtype)
        return min(max(a, low), high) if form.sat else a
    # A .f32 that becomes .f16 is not flushed (measured, H200; docs/hardware.md).
    number = _source(form.atype, a, form.ftz and form.dtype != "f16")
    if not _is_float(form.dtype):
        return _to_integer(form, number)
    format = FORMATS[form.dtype]
    if form.rounding and form.rounding.endswith("i") and number.kind == "finite":
        whole = rounded(number.value, form.rounding[:2])
        number = finite(whole, number.negative)
    if form.sat:
        number = saturated(number)
    mode = form.rounding if form.rounding and not form.rounding.endswith("i") else "rn"
    return _zero(form, format, encode(number, format, mode, ftz=form.ftz and form.dtype == "f32"))


def _relu(form: Any, number: Number) -> Number:
    return finite(0) if form.relu and number.kind != "nan" and number.negative else number


def _zero(form: Any, format: Format, word: int) -> int:
    """With .pzo a result of -0 is +0."""
    return 0 if getattr(form, "pzo", False) and word == format.sign else word


def _half(form: Any, format: Format, a: int) -> int:
    word = encode(_relu(form, decode(a, F32)), format, form.rounding, finite_only=form.satfinite)
    return _zero(form, format, word)


@lanewise(conversion.cvt_half)
def cvt_half(form: Any, a: int) -> int:
    return _half(form, FORMATS[form.dtype], a)


@lanewise(conversion.cvt_half2)
def cvt_half2(form: Any, a: int, b: int) -> int:
    format = FORMATS[form.dtype.removesuffix("x2")]
    return _half(form, format, a) << 16 | _half(form, format, b)


@lanewise(conversion.cvt_tf32)
def cvt_tf32(form: Any, a: int) -> int:
    """The fraction has 10 bits, in the upper bits of a word; of NaN .rna cuts them off (measured, H100)."""
    number = _relu(form, decode(a, F32))
    if number.kind == "nan":
        return (a & 0xFFFFE000) - (0x2000 if form.satfinite else 0) if form.rounding == "rna" else 0x7FFFE000
    return _zero(form, TF32, encode(number, TF32, form.rounding, finite_only=form.satfinite)) << 13


def _narrow(form: Any, number: Number) -> int:
    """An element of a narrow format: always to a finite value; NaNs stay, or are the largest where there are none."""
    format = FORMATS[form.dtype[:4]]
    number = _relu(form, number)
    if number.kind == "nan":
        return format.largest if format.special == "none" else format.sign - 1
    return _zero(form, format, encode(number, format, form.rounding, finite_only=True))


def _beside(form: Any, high: int, low: int) -> int:
    return high << 4 | low if form.dtype == "e2m1x2" else high << 8 | low


def _unscaled(form: Any) -> bool:
    return not getattr(form, "scaled", False)


@lanewise(conversion.cvt_narrow2, only_if=_unscaled)
def cvt_narrow2(form: Any, a: int, b: int) -> int:
    return _beside(form, _narrow(form, decode(a, F32)), _narrow(form, decode(b, F32)))


@lanewise(conversion.cvt_narrow2_pair, only_if=_unscaled)
def cvt_narrow2_pair(form: Any, a: int) -> int:
    format = FORMATS[form.atype.removesuffix("x2")]
    return _beside(form, _narrow(form, decode(a >> 16, format)), _narrow(form, decode(a & 0xFFFF, format)))


def _every_word(form: Any, rng: np.random.Generator, count: int) -> Any:
    """All words of both elements of a narrow pair; unused bits are zeros."""
    bits = FORMATS[form.atype[:4]].bits
    low, high = np.arange(count) % (1 << bits), rng.permutation(count) % (1 << bits)
    if bits == 4:
        return (high << 4 | low).astype(np.uint8)
    return (high << 8 | low).astype(np.uint16)


def _wide(form: Any, word: int) -> int:
    source, format = FORMATS[form.atype[:4]], BF16 if form.form.key.endswith("bf16x2") else FORMATS["f16"]
    return encode(_relu(form, decode(word, source)), format, finite_only=getattr(form, "satfinite", False))


def _up(form: Any, a: int) -> int:
    shift = 4 if form.atype == "e2m1x2" else 8
    mask = (1 << shift) - 1
    return _wide(form, a >> shift) << 16 | _wide(form, a & mask)


@lanewise(conversion.cvt_f16x2, only_if=lambda form: form.atype[:4] in FORMATS, values={"a": _every_word})
def cvt_f16x2(form: Any, a: int) -> int:
    return _up(form, a)


@lanewise(
    conversion.cvt_bf16x2,
    only_if=lambda form: form.atype[:4] in FORMATS and _unscaled(form),
    values={"a": _every_word},
)
def cvt_bf16x2(form: Any, a: int) -> int:
    return _up(form, a)


def _positive(form: Any, rng: np.random.Generator, count: int) -> Any:
    """Positive normal numbers, for which the manual defines the power of two."""
    found = words("f32", 32, count, rng) & np.uint32(0x7FFFFFFF)
    tiny, large = found < 0x00800000, found >= 0x7F000000
    return np.where(tiny | large, np.uint32(0x3FC00000), found)


def _power(form: Any, number: Number) -> int:
    """The exponent with a bias of 127: below, or above what is no power of two with .rp."""
    from microtests.harness.numbers import exponent

    power = exponent(number.value)
    exact = number.value.numerator & (number.value.numerator - 1) == 0
    return power + 127 + (form.rounding == "rp" and not exact)


@lanewise(conversion.cvt_ue8m0x2, values={"a": _positive, "b": _positive})
def cvt_ue8m0x2(form: Any, a: int, b: int) -> int:
    return _power(form, decode(a, F32)) << 8 | _power(form, decode(b, F32))


@lanewise(
    conversion.cvt_ue8m0x2_pair,
    values={"a": lambda form, rng, count: _positive(form, rng, count) & np.uint32(0xFFFF0000) | np.uint32(0x4049)},
)
def cvt_ue8m0x2_pair(form: Any, a: int) -> int:
    return _power(form, decode(a >> 16, BF16)) << 8 | _power(form, decode(a & 0xFFFF, BF16))


@lanewise(conversion.cvt_bf16x2_ue8m0x2)
def cvt_bf16x2_ue8m0x2(form: Any, a: int) -> int:
    def one(byte: int) -> int:
        return 0x7FFF if byte == 255 else 0x0040 if byte == 0 else byte << 7

    return one(a >> 8) << 16 | one(a & 0xFF)


def _by_chance(form: Any, format: Format, word: int, noise: int, bits: int) -> int:
    """Away from zero where what is cut off, and a random fraction of so many bits, make one."""
    number, clamped = _relu(form, decode(word, F32)), format.bits < 16 or form.satfinite
    if number.kind == "nan":
        return _narrow_nan(format)
    if number.kind == "inf":
        return encode(number, format, "rz", finite_only=clamped)
    sign = format.sign if number.negative else 0
    magnitude = abs(number.value)
    below = encode(finite(magnitude), format, "rz", finite_only=True)
    first = below - (below == format.largest)
    step = decode(first + 1, format).value - decode(first, format).value
    up = (magnitude - decode(below, format).value) / step + Fraction(noise, 1 << bits) >= 1
    return sign | (below if clamped and below == format.largest else below + up)


def _narrow_nan(format: Format) -> int:
    return format.largest if format.special == "none" else format.sign - 1


@lanewise(conversion.cvt_half2_rs)
def cvt_half2_rs(form: Any, a: int, b: int, rbits: int) -> int:
    """The upper half of the random bits is for a, the lower for b; of each .f16 takes 13."""
    format = FORMATS[form.dtype.removesuffix("x2")]
    bits = 13 if format.bits == 16 and format.fraction == 10 else 16
    high, low = (
        _by_chance(form, format, word, part & ((1 << bits) - 1), bits) for word, part in ((a, rbits >> 16), (b, rbits))
    )
    return high << 16 | low


@lanewise(conversion.cvt_narrow4_rs)
def cvt_narrow4_rs(form: Any, abef: tuple[int, ...], rbits: int) -> int:
    """Each two have 16 random bits, which the first of them takes from the other end (measured on a B200)."""
    format, width, found = FORMATS[form.dtype[:4]], 4 if form.dtype == "e2m1x4" else 8, 0
    digits = f"{rbits:032b}"
    pairs = [digits[:16], digits[16:]]
    if form.dtype == "e2m1x4":  # the upper bytes of both halves, then the lower ones
        pairs = [digits[0:8] + digits[16:24], digits[8:16] + digits[24:32]]
    for place, word in enumerate(abef):
        bits = pairs[place // 2]
        found = found << width | _by_chance(form, format, word, int(bits if place % 2 else bits[::-1], 2), 16)
    return found


def _fixed(form: Any, number: Number, power: int) -> int:
    """Two's complement with six bits of fraction, of the number over a power of two; NaNs are the largest."""
    if number.kind == "nan" or power == 255:
        return 127
    if number.kind == "inf":
        units = -128 if number.negative else 127
    else:
        units = rounded(number.value / Fraction(2) ** (power - 127) * 64, form.rounding)
    return min(max(units, 0 if form.relu else -128), 127) & 0xFF


def _powers(form: Any, rng: np.random.Generator, count: int) -> Any:
    """Pairs of powers of two near one, and some NaNs."""
    found = rng.integers(119, 135, (2, count))
    found[:, ::50] = 255
    return (found[0] << 8 | found[1]).astype(np.uint16)


def _near_one(form: Any, rng: np.random.Generator, count: int) -> Any:
    """Numbers of which many tie."""
    found = rng.standard_normal(count).astype(np.float32)
    found[::2] = np.rint(found[::2] * 128) / 128
    found[5::40], found[6::40], found[7::40] = np.nan, np.inf, -np.inf
    return found


@lanewise(conversion.cvt_s2f6x2, values={"a": _near_one, "b": _near_one, "scale": _powers})
def cvt_s2f6x2(form: Any, a: int, b: int, scale: int = 0x7F7F) -> int:
    return _fixed(form, decode(a, F32), scale >> 8) << 8 | _fixed(form, decode(b, F32), scale & 0xFF)


def _bf16_pairs(form: Any, rng: np.random.Generator, count: int) -> Any:
    high, low = ((_near_one(form, rng, count).view(np.uint32) >> 16) for _ in range(2))
    return (high << 16 | low).astype(np.uint32)


@lanewise(conversion.cvt_s2f6x2_pair, values={"a": _bf16_pairs, "scale": _powers})
def cvt_s2f6x2_pair(form: Any, a: int, scale: int = 0x7F7F) -> int:
    return _fixed(form, decode(a >> 16, BF16), scale >> 8) << 8 | _fixed(form, decode(a & 0xFFFF, BF16), scale & 0xFF)


def _every_byte(form: Any, rng: np.random.Generator, count: int) -> Any:
    low, high = np.arange(count) % 256, rng.permutation(count) % 256
    return (high << 8 | low).astype(np.uint16)


@lanewise(
    conversion.cvt_bf16x2, only_if=lambda form: form.atype == "s2f6x2", values={"a": _every_byte, "scale": _powers}
)
def cvt_fixed_to_bf16x2(form: Any, a: int, scale: int = 0x7F7F) -> int:
    """Fixed point times a power of two."""

    def one(byte: int, power: int) -> int:
        if power == 255:
            return 0x7FFF
        value = Fraction(signed(byte, 8), 64) * Fraction(2) ** (power - 127)
        return encode(_relu(form, finite(value)), BF16, finite_only=form.satfinite)

    return one(a >> 8, scale >> 8) << 16 | one(a & 0xFF, scale & 0xFF)


@lanewise(
    conversion.cvt_bf16x2,
    only_if=lambda form: form.atype[:4] in FORMATS and form.scaled,
    values={"a": _every_word, "scale": _powers},
)
def cvt_scaled_to_bf16x2(form: Any, a: int, scale: int) -> int:
    """Narrow floats times a power of two."""
    source, shift = FORMATS[form.atype[:4]], 4 if form.atype == "e2m1x2" else 8

    def one(word: int, power: int) -> int:
        number = decode(word, source)
        if power == 255 or number.kind == "nan":
            return 0x7FFF
        if number.kind == "finite":
            number = finite(number.value * Fraction(2) ** (power - 127), number.negative)
        return encode(_relu(form, number), BF16, finite_only=form.satfinite)

    return one(a >> shift, scale >> 8) << 16 | one(a & ((1 << shift) - 1), scale & 0xFF)


@lanewise(conversion.cvt_pack16)
def cvt_pack16(form: Any, a: int, b: int) -> int:
    low, high = _range(form.type)
    return (min(max(a, low), high) & 0xFFFF) << 16 | min(max(b, low), high) & 0xFFFF


@lanewise(conversion.cvt_pack)
def cvt_pack(form: Any, a: int, b: int, c: int) -> int:
    """a and b above the lower bits of c."""
    bits = int(form.type[1:])
    low, high = _range(form.type)
    mask = (1 << bits) - 1
    first, second = min(max(a, low), high) & mask, min(max(b, low), high) & mask
    return c << 2 * bits | first << bits | second
