"""Half-precision arithmetic, single and two at a time. References: exact fractions, rounded once (PTX ISA 9.7.4)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from microtests.floating import extremum
from microtests.harness.draft import Tolerance
from microtests.harness.inputs import words
from microtests.harness.lanes import lanewise
from microtests.harness.numbers import (
    FORMATS,
    Format,
    Number,
    add,
    decode,
    encode,
    finite,
    multiply,
    of_float,
    saturated,
)
from ptxgen.instr import half

#: The NaN that tensor copies fill in for elements out of bounds (measured, H200; docs/hardware.md).
OOB_NAN = 0x7FF7


def _halves(form: Any, compute: Callable[..., int], given: dict[str, int]) -> int:
    """Each half alone for the x2 types."""
    format = FORMATS[form.type.removesuffix("x2")]
    found = 0
    for shift in (0, 16) if form.type.endswith("x2") else (0,):
        found |= compute(form, format, *(word >> shift & 0xFFFF for word in given.values())) << shift
    return found


def _finish(form: Any, format: Format, number: Number) -> int:
    if getattr(form, "sat", False):
        number = saturated(number)
    if getattr(form, "relu", False) and number.kind != "nan" and number.negative:
        number = finite(0)
    return encode(number, format, ftz=form.ftz)


def _arithmetic(compute: Callable[..., Number]) -> Callable[..., int]:
    def element(form: Any, format: Format, *given: int) -> int:
        # Of either sign, in a and b alone (measured, H100).
        if getattr(form, "oob", False) and OOB_NAN in [word & 0x7FFF for word in given[:2]]:
            return 0
        return _finish(form, format, compute(*(decode(word, format, form.ftz) for word in given)))

    def reference(form: Any, **given: int) -> int:
        return _halves(form, element, given)

    return reference


lanewise(half.add)(_arithmetic(add))
lanewise(half.sub)(_arithmetic(lambda a, b: add(a, -b)))
lanewise(half.mul)(_arithmetic(multiply))


def _with_fill(form: Any, rng: np.random.Generator, count: int) -> Any:
    """Operands of which some are the NaN of elements out of bounds."""
    bits = 32 if form.type.endswith("x2") else 16
    found = words(form.type, bits, count, rng)
    if form.oob:
        found[::7] = OOB_NAN * (0x10001 if bits == 32 else 1)
    return found


lanewise(half.fma, values={"b": _with_fill})(_arithmetic(lambda a, b, c: add(multiply(a, b), c)))


def _any_nan(form: Any) -> Tolerance:
    import ml_dtypes

    kind: Any = np.float16 if form.type.startswith("f16") else ml_dtypes.bfloat16
    return Tolerance("PTX leaves the sign and payload of a NaN open here", dtype=kind)


def _magnitude(form: Any, format: Format, word: int) -> int:
    tiny = 0 < word & (format.sign - 1) < 1 << format.fraction
    return word & format.sign if form.ftz and tiny else word


@lanewise(half.neg, tolerance=_any_nan)
def neg(form: Any, a: int) -> int:
    return _halves(form, lambda f, format, x: _magnitude(f, format, x) ^ 0x8000, {"a": a})


@lanewise(half.abs, tolerance=_any_nan)
def abs_(form: Any, a: int) -> int:
    return _halves(form, lambda f, format, x: _magnitude(f, format, x) & 0x7FFF, {"a": a})


@lanewise(half.min, tolerance=_any_nan)
def min_(form: Any, a: int, b: int) -> int:
    return _halves(form, lambda f, format, x, y: extremum(f, format, True, f.ftz, x, y), {"a": a, "b": b})


@lanewise(half.max, tolerance=_any_nan)
def max_(form: Any, a: int, b: int) -> int:
    return _halves(form, lambda f, format, x, y: extremum(f, format, False, f.ftz, x, y), {"a": a, "b": b})


def _function(compute: Callable[[float], float]) -> Callable[..., int]:
    def element(form: Any, format: Format, word: int) -> int:
        ftz = getattr(form, "ftz", "ftz" in form.form.syntax)
        try:
            number = of_float(compute(decode(word, format, ftz).as_float()))
        except OverflowError:
            number = Number("inf", False)
        return encode(number, format, ftz=ftz)

    def reference(form: Any, a: int) -> int:
        return _halves(form, element, {"a": a})

    return reference


def _bound(absolute: float, relative: float) -> Callable[[Any], Tolerance]:
    def tolerance(form: Any) -> Tolerance:
        kind = _any_nan(form).dtype
        # The reference is rounded too.
        step = 2.0**-11 if form.type.startswith("f16") else 2.0**-8
        return Tolerance("the manual's bound", kind, relative + step, absolute + 2.0**-24)

    return tolerance


lanewise(half.tanh, tolerance=_bound(2.0**-8, 0.0))(_function(math.tanh))
lanewise(half.ex2, half.ex2_bf16, tolerance=_bound(2.0**-126, 2.0**-7))(_function(lambda a: 2.0**a))
