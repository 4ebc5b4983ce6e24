"""Floating-point arithmetic with the rounding that PTX defines. PTX ISA 9.7.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.group import Group
from ptxgen.emulator.registers import Binder, Unmodelled
from ptxgen.emulator.semantics import meaning
from ptxgen.instr import floating

_Run = Callable[[Group], None]
#: NaN results of .f32 arithmetic are this pattern (9.7.3, "canonical NaN").
_NAN32 = np.uint32(0x7FFFFFFF)


def flush(value: Any) -> Any:
    """Subnormal .f32 values become zeros of their sign (.ftz)."""
    value = np.asarray(value)
    return np.where(np.abs(value) < np.float32(2**-126), np.copysign(np.float32(0), value), value)


def two_sum(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """a + b rounded, and its exact error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def round_f32(total: NDArray[np.float64], error: NDArray[np.float64], rounding: str) -> NDArray[np.float32]:
    """The exact value total + error, |error| at most half an ulp of total, as .f32."""
    error = np.where(np.isfinite(total), error, 0.0)
    # Rounding to odd first makes a second rounding to nearest correct (53 bits are more than 24 + 2).
    inexact = error != 0
    even = (total.view(np.uint64) & np.uint64(1)) == 0
    towards = np.where(error > 0, np.inf, -np.inf)
    odd = np.where(inexact & even, np.nextafter(total, towards), total)
    nearest = odd.astype(np.float32)
    if rounding == "rn":
        return nearest
    wide = nearest.astype(np.float64)
    above = (wide > odd) if rounding in ("rm", "rz") else np.zeros_like(inexact)
    below = (wide < odd) if rounding in ("rp", "rz") else np.zeros_like(inexact)
    if rounding == "rz":
        above &= odd > 0
        below &= odd < 0
    down = np.nextafter(nearest, np.float32(-np.inf))
    up = np.nextafter(nearest, np.float32(np.inf))
    return np.where(above, down, np.where(below, up, nearest))


def _finish32(result: NDArray[np.float32], op: Any) -> NDArray[np.float32]:
    if op.ftz:
        result = flush(result)
    if op.sat:
        result = np.where(np.isnan(result), np.float32(0), np.clip(result, np.float32(0), np.float32(1)))
    return np.where(np.isnan(result), _NAN32.view(np.float32), result).astype(np.float32)


@meaning(floating.add, floating.sub, floating.mul)
def arithmetic(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    rounding = op.rounding or "rn"
    a, b, d = binder.source(op.a, op.type), binder.source(op.b, op.type), binder.destination(op.d, op.type)
    if op.type == "f64":
        if rounding != "rn":
            raise Unmodelled(f".f64 arithmetic with .{rounding}")
        function = {floating.add: np.add, floating.sub: np.subtract, floating.mul: np.multiply}[type(op)]
        return lambda g: d(g, function(a(g), b(g)))

    def run(g: Group) -> None:
        x, y = np.asarray(a(g)), np.asarray(b(g))
        if op.ftz:
            x, y = flush(x), flush(y)
        wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
        if isinstance(op, floating.mul):
            total, error = wide_x * wide_y, np.zeros(np.broadcast_shapes(x.shape, y.shape))
        else:
            total, error = two_sum(wide_x, -wide_y if isinstance(op, floating.sub) else wide_y)
        d(g, _finish32(round_f32(np.asarray(total), np.asarray(error), rounding), op))

    return run


@meaning(floating.fma)
def fused(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    if op.type == "f64":
        raise Unmodelled("fma.f64")
    a, b, c = (binder.source(operand, "f32") for operand in (op.a, op.b, op.c))
    d = binder.destination(op.d, "f32")

    def run(g: Group) -> None:
        x, y, z = (np.asarray(source(g)) for source in (a, b, c))
        if op.ftz:
            x, y, z = flush(x), flush(y), flush(z)
        # The product of two .f32 is exact in .f64.
        total, error = two_sum(x.astype(np.float64) * y.astype(np.float64), z.astype(np.float64))
        d(g, _finish32(round_f32(np.asarray(total), np.asarray(error), op.rounding), op))

    return run


@meaning(floating.abs, floating.neg)
def sign_change(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    a, d = binder.source(op.a, op.type), binder.destination(op.d, op.type)
    function = np.abs if isinstance(op, floating.abs) else np.negative
    if op.ftz:
        return lambda g: d(g, function(flush(a(g))))
    return lambda g: d(g, function(a(g)))


@meaning(floating.min, floating.max)
def extremum(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    a, b, d = binder.source(op.a, op.type), binder.source(op.b, op.type), binder.destination(op.d, op.type)
    smaller = isinstance(op, floating.min)

    def run(g: Group) -> None:
        x, y = np.asarray(a(g)), np.asarray(b(g))
        if op.ftz:
            x, y = flush(x), flush(y)
        chosen = (np.fmin if smaller else np.fmax)(x, y)
        # +0.0 is larger than -0.0 (9.7.3.11).
        zeros = (x == 0) & (y == 0)
        negative = np.signbit(x) | np.signbit(y) if smaller else np.signbit(x) & np.signbit(y)
        d(g, np.where(zeros, np.where(negative, -np.zeros_like(chosen), np.zeros_like(chosen)), chosen))

    return run
