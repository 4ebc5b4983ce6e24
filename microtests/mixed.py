"""Sums in .f32 of .f16 or .bf16 operands. References: exact fractions, rounded once (PTX ISA 9.7.5).

The forms on two elements are those of PTX ISA 9.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from microtests.harness.lanes import lanewise
from microtests.harness.numbers import BF16, F32, FORMATS, Number, add, decode, encode, multiply, saturated
from ptxgen.instr import mixed


def _finish(form: Any, number: Number) -> int:
    return encode(saturated(number) if form.sat else number, F32, form.rounding or "rn")


@lanewise(mixed.add)
def add_(form: Any, a: int, c: int) -> int:
    return _finish(form, add(decode(a, FORMATS[form.atype]), decode(c, F32), form.rounding or "rn"))


@lanewise(mixed.sub)
def sub(form: Any, a: int, c: int) -> int:
    return _finish(form, add(decode(a, FORMATS[form.atype]), -decode(c, F32), form.rounding or "rn"))


@lanewise(mixed.fma)
def fma(form: Any, a: int, b: int, c: int) -> int:
    format = FORMATS[form.abtype]
    return _finish(form, add(multiply(decode(a, format), decode(b, format)), decode(c, F32), form.rounding))


def _both(element: Callable[[tuple[int, ...]], int], bits: int, *given: tuple[int, int]) -> int:
    """The result of two elements of `bits` each; an operand comes as its word and the bits of its elements."""
    found = 0
    for place in range(2):
        found |= element(tuple(word >> place * width & (1 << width) - 1 for word, width in given)) << place * bits
    return found


@lanewise(mixed.add_f32x2)
def add_f32x2(form: Any, a: int, c: int) -> int:
    format, mode = FORMATS[form.atype.removesuffix("x2")], form.rounding or "rn"
    return _both(lambda e: encode(add(decode(e[0], format), decode(e[1], F32), mode), F32, mode), 32, (a, 16), (c, 32))


@lanewise(mixed.sub_f32x2)
def sub_f32x2(form: Any, a: int, c: int) -> int:
    format, mode = FORMATS[form.atype.removesuffix("x2")], form.rounding or "rn"
    return _both(lambda e: encode(add(decode(e[0], format), -decode(e[1], F32), mode), F32, mode), 32, (a, 16), (c, 32))


@lanewise(mixed.fma_f32x2)
def fma_f32x2(form: Any, a: int, b: int, c: int) -> int:
    format = FORMATS[form.atype.removesuffix("x2")]

    def element(e: tuple[int, ...]) -> int:
        product = multiply(decode(e[0], format), decode(e[1], F32))
        return encode(add(product, decode(e[2], F32), form.rounding), F32, form.rounding)

    return _both(element, 32, (a, 16), (b, 32), (c, 32))


def _to_bf16(number: Number) -> int:
    return encode(number, BF16, "rz")


def _rounds(form: Any) -> bool:
    """PTX ISA 9.4 has .rz as mandatory, so that the bits without it are not defined."""
    return form.rounding is not None


@lanewise(mixed.add_bf16x2, only_if=_rounds)
def add_bf16x2(form: Any, a: int, c: int) -> int:
    return _both(lambda e: _to_bf16(add(decode(e[0], F32), decode(e[1], F32), "rz")), 16, (a, 32), (c, 32))


@lanewise(mixed.sub_bf16x2, only_if=_rounds)
def sub_bf16x2(form: Any, a: int, c: int) -> int:
    return _both(lambda e: _to_bf16(add(decode(e[0], F32), -decode(e[1], F32), "rz")), 16, (a, 32), (c, 32))


@lanewise(mixed.mul_bf16x2)
def mul_bf16x2(form: Any, a: int, c: int) -> int:
    return _both(lambda e: _to_bf16(multiply(decode(e[0], F32), decode(e[1], F32))), 16, (a, 32), (c, 32))
