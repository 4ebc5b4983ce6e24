"""Arithmetic on four packed 8-bit floats. References: exact fractions, rounded once (PTX ISA 9.4, 9.7.6)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from microtests.harness.lanes import lanewise
from microtests.harness.numbers import FORMATS, NAN, Number, add, decode, encode, finite, multiply, nan
from ptxgen.instr import alternate


def _element(word: int, type: str, place: int) -> Number:
    """The number at one of four places: of 4 bits each in .e2m1x4, else in the lower bits of a byte."""
    if type == "ue8m0x4":
        power = (word >> place * 8 & 255) - 127
        return NAN if power == 128 else finite(Fraction(2) ** power)
    format = FORMATS["e2m1" if type == "e2m1p4x4" else type.removesuffix("x4")]
    return decode(word >> place * (4 if type == "e2m1x4" else 8) & (1 << format.bits) - 1, format)


def _four(form: Any, compute: Callable[[int], Number]) -> int:
    format = FORMATS[form.dtype.removesuffix("x4")]

    def element(number: Number) -> int:
        # e4m3 has no infinity: without .satfinite, NaN is for all that would round beyond its largest value, 448.
        beyond = number.kind == "inf" or abs(number.value) > 464
        if form.dtype == "e4m3x4" and beyond and not form.satfinite:
            return nan(format)
        return encode(number, format, finite_only=form.satfinite)

    return sum(element(compute(place)) << 8 * place for place in range(4))


@lanewise(alternate.add, every=4)
def add_(form: Any, a: int, c: int) -> int:
    return _four(form, lambda at: add(_element(a, form.atype, at), _element(c, form.dtype, at)))


@lanewise(alternate.sub, every=4)
def sub(form: Any, a: int, c: int) -> int:
    return _four(form, lambda at: add(_element(a, form.atype, at), -_element(c, form.dtype, at)))


@lanewise(alternate.mul, every=30)
def mul(form: Any, a: int, b: int) -> int:
    return _four(form, lambda at: multiply(_element(a, form.atype, at), _element(b, form.btype, at)))


@lanewise(alternate.fma, every=30)
def fma(form: Any, a: int, b: int, c: int) -> int:
    def element(at: int) -> Number:
        product = multiply(_element(a, form.atype, at), _element(b, form.btype, at))
        return add(product, _element(c, form.dtype, at))

    return _four(form, element)
