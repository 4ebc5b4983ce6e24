"""Floating-point arithmetic in .f32, .f32x2 and .f64. References: exact fractions, rounded once (PTX ISA 9.7.3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from microtests.harness.draft import Tolerance
from microtests.harness.inputs import words
from microtests.harness.lanes import lanewise
from microtests.harness.numbers import (
    F32,
    F64,
    FORMATS,
    NAN,
    Format,
    Number,
    add,
    decode,
    divide,
    encode,
    finite,
    less,
    multiply,
    of_float,
    root,
    saturated,
)
from ptxgen.instr import floating


def _free_nan(form: Any) -> Tolerance | None:
    """Payloads of .f64 NaNs are open (PTX ISA 9.7.3): only a GPU shows which NaN results."""
    return Tolerance("PTX leaves the payload of .f64 NaNs open", dtype=np.float64) if form.type == "f64" else None


def _rounded(form: Any, number: Number, format: Format, ftz: bool) -> int:
    if getattr(form, "sat", False):
        number = saturated(number)
    return encode(number, format, getattr(form, "rounding", None) or "rn", ftz=ftz)


def operation(compute: Callable[..., Number]) -> Callable[..., int]:
    """A reference from a function of exact numbers."""

    def reference(form: Any, **words: int) -> int:
        format, ftz = FORMATS[form.type], form.ftz and form.type == "f32"  # rcp.ftz.f64 is rcp.f64 (ptxas 13.5)
        numbers = [decode(word, format, ftz) for word in words.values()]
        return _rounded(form, compute(form, *numbers), format, ftz)

    return reference


def pair(compute: Callable[..., Number]) -> Callable[..., int]:
    """The same of both halves of 64 bits."""

    def reference(form: Any, **words: int) -> int:
        found = 0
        for shift in (0, 32):
            numbers = [decode(word >> shift & 0xFFFFFFFF, F32, form.ftz) for word in words.values()]
            found |= _rounded(form, compute(form, *numbers), F32, form.ftz) << shift
        return found

    return reference


def _mode(form: Any) -> Any:
    return getattr(form, "rounding", None) or "rn"


def add_(form: Any, a: Number, b: Number) -> Number:
    return add(a, b, _mode(form))


def sub(form: Any, a: Number, b: Number) -> Number:
    return add(a, -b, _mode(form))


def mul(form: Any, a: Number, b: Number) -> Number:
    return multiply(a, b)


def fma(form: Any, a: Number, b: Number, c: Number) -> Number:
    return add(multiply(a, b), c, _mode(form))


def div(form: Any, a: Number, b: Number) -> Number:
    return divide(a, b)


def rcp(form: Any, a: Number) -> Number:
    return divide(finite(1), a)


def sqrt(form: Any, a: Number) -> Number:
    return root(a, FORMATS[form.type])


for _form, _compute in (
    (floating.add, add_),
    (floating.sub, sub),
    (floating.mul, mul),
    (floating.fma, fma),
    (floating.mad, fma),
    (floating.div, div),
    (floating.rcp, rcp),
    (floating.sqrt, sqrt),
):
    lanewise(_form, tolerance=_free_nan)(operation(_compute))
for _form, _compute in (
    (floating.add_f32x2, add_),
    (floating.sub_f32x2, sub),
    (floating.mul_f32x2, mul),
    (floating.fma_f32x2, fma),
):
    lanewise(_form)(pair(_compute))


@lanewise(floating.testp)
def testp(form: Any, a: int) -> int:
    format = FORMATS[form.type]
    number = decode(a, format)
    magnitude = a & (format.sign - 1)
    subnormal = 0 < magnitude < 1 << format.fraction
    return int(
        {
            "finite": number.kind == "finite",
            "infinite": number.kind == "inf",
            "number": number.kind != "nan",
            "notanumber": number.kind == "nan",
            "normal": number.kind == "finite" and not subnormal,
            "subnormal": subnormal,
        }[form.property]
    )


@lanewise(floating.copysign)
def copysign(form: Any, a: int, b: int) -> int:
    sign = FORMATS[form.type].sign
    return a & sign | b & (sign - 1)


@lanewise(floating.abs, tolerance=lambda form: Tolerance("PTX leaves the sign of abs(NaN) open"))
def abs_(form: Any, a: int) -> int:
    return _magnitude(form, a) & (FORMATS[form.type].sign - 1)


def _magnitude(form: Any, a: int) -> int:
    format = FORMATS[form.type]
    if form.ftz and 0 < a & (format.sign - 1) < 1 << format.fraction:
        a &= format.sign
    return a


def _any_nan(form: Any) -> Tolerance:
    dtype = np.float32 if getattr(form, "type", "f32") == "f32" else np.float64
    return Tolerance("PTX leaves the payload of a NaN open here", dtype=dtype)


@lanewise(floating.neg, tolerance=_any_nan)
def neg(form: Any, a: int) -> int:
    return _magnitude(form, a) ^ FORMATS[form.type].sign


def extremum(form: Any, format: Format, smaller: bool, ftz: bool, *given: int) -> int:
    """min or max: NaNs lose unless .NaN, -0 is below +0, .abs and .xorsign look at magnitudes."""
    sign = 0
    if getattr(form, "xorsign", False):
        for word in given:
            sign ^= word & format.sign
    if getattr(form, "abs", False):
        given = tuple(word & (format.sign - 1) for word in given)
    numbers = [decode(word, format, ftz) for word in given]
    present = [number for number in numbers if number.kind != "nan"]
    if not present or (form.NaN and len(present) < len(numbers)):
        return format.sign - 1
    best = present[0]
    for number in present[1:]:
        before = less(number, best) or (not less(best, number) and number.negative and not best.negative)
        after = less(best, number) or (not less(number, best) and best.negative and not number.negative)
        if before if smaller else after:
            best = number
    return encode(best, format) | sign


@lanewise(floating.min, tolerance=_any_nan)
def min_(form: Any, a: int, b: int) -> int:
    return extremum(form, FORMATS[form.type], True, form.ftz, a, b)


@lanewise(floating.max, tolerance=_any_nan)
def max_(form: Any, a: int, b: int) -> int:
    return extremum(form, FORMATS[form.type], False, form.ftz, a, b)


@lanewise(floating.min3, tolerance=_any_nan)
def min3(form: Any, a: int, b: int, c: int) -> int:
    return extremum(form, F32, True, form.ftz, a, b, c)


@lanewise(floating.max3, tolerance=_any_nan)
def max3(form: Any, a: int, b: int, c: int) -> int:
    return extremum(form, F32, False, form.ftz, a, b, c)


# Approximations: the manual bounds their error; the emulator need not have the GPU's last bits.


def near(ulps: int, absolute: float = 0.0, *, relative: float = 0.0, dtype: Any = np.float32) -> Tolerance:
    return Tolerance("an approximation, with the manual's bound", dtype, relative, absolute, ulps)


def approximate(
    form: type, tolerance: Tolerance, compute: Callable[..., Number], format: Format = F32, **options: Any
) -> None:
    """Register an approximation of a function of exact numbers."""

    def reference(made: Any, **words: int) -> int:
        ftz = getattr(made, "ftz", False)
        numbers = [decode(word, format, ftz) for word in words.values()]
        return encode(compute(*numbers), format, "rn", ftz=ftz)

    lanewise(form, tolerance=tolerance, **options)(reference)


def _of(function: Callable[[float], float]) -> Callable[[Number], Number]:
    def compute(a: Number) -> Number:
        try:
            return of_float(function(a.as_float()))
        except OverflowError:
            return Number("inf", False)
        except ValueError:
            return NAN

    return compute


def _lg2(a: float) -> float:
    if a == 0:
        return -math.inf
    return math.log2(a) if a > 0 else math.nan


def _rsqrt(a: float) -> float:
    if a == 0:
        return math.copysign(math.inf, a)
    return 0.0 if a == math.inf else 1 / math.sqrt(a)


def _moderate(form: Any, rng: np.random.Generator, count: int) -> Any:
    """Angles for which the manual gives a bound, and others' edges."""
    return (rng.uniform(-math.pi, math.pi, count)).astype(np.float32)


def _not_huge(form: Any, rng: np.random.Generator, count: int) -> Any:
    """Divisors of div.approx and div.full, for which the bounds hold: 2**-126 to 2**126."""
    return (rng.choice([-1.0, 1.0], count) * np.exp2(rng.uniform(-20, 20, count))).astype(np.float32)


_FLUSHED = 2.0**-126
approximate(floating.rcp_approx, near(1, _FLUSHED), lambda a: divide(finite(1), a))
approximate(floating.sqrt_approx, near(3, _FLUSHED), lambda a: root(a, F32))
approximate(floating.rsqrt, near(4, _FLUSHED), _of(_rsqrt))
approximate(floating.div_approx, near(2, _FLUSHED), divide, values={"a": _not_huge, "b": _not_huge})
approximate(floating.div_full, near(2, _FLUSHED), divide, values={"a": _not_huge, "b": _not_huge})
approximate(floating.lg2, near(4, 2.0**-20), _of(_lg2))
approximate(floating.ex2, near(4, _FLUSHED), _of(lambda a: 2.0**a))
approximate(floating.sin, near(0, 2.0**-19), _of(math.sin), values={"a": _moderate}, only_if=lambda f: not f.two_pi)
approximate(floating.cos, near(0, 2.0**-19), _of(math.cos), values={"a": _moderate}, only_if=lambda f: not f.two_pi)


def _turns(form: Any, rng: np.random.Generator, count: int) -> Any:
    """Angles in turns."""
    return rng.uniform(-8, 8, count).astype(np.float32)


for _form, _function in ((floating.sin, math.sin), (floating.cos, math.cos)):
    approximate(
        _form,
        near(0, 2.0**-19),
        _of(lambda a, function=_function: function(2 * math.pi * math.fmod(a, 1))),
        values={"a": _turns},
        only_if=lambda f: f.two_pi,
    )
approximate(floating.tanh, near(0, 2.0**-30, relative=2.0**-10), _of(math.tanh))


def _upper(form: Any, rng: np.random.Generator, count: int) -> Any:
    """Numbers of 32 bits: the lower half does not count, and subnormals are zeros."""
    found = words("f64", 64, count, rng) & np.uint64(0xFFFFFFFF << 32)
    return np.where(found & np.uint64(0x7FF << 52), found, found & np.uint64(1 << 63))


_GROSS = near(0, relative=2.0**-18, absolute=2.3e-308, dtype=np.float64)
approximate(floating.rcp_approx_f64, _GROSS, lambda a: divide(finite(1), a), F64, values={"a": _upper})
approximate(floating.rsqrt_f64, _GROSS, _of(_rsqrt), F64)
approximate(floating.rsqrt_ftz_f64, _GROSS, _of(_rsqrt), F64, values={"a": _upper})
