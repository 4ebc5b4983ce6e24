"""Sums in .f32 of .f16 or .bf16 operands. References: exact fractions, rounded once (PTX ISA 9.7.5)."""

from __future__ import annotations

from typing import Any

from microtests.harness.lanes import lanewise
from microtests.harness.numbers import F32, FORMATS, Number, add, decode, encode, multiply, saturated
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
