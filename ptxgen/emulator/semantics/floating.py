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
#: NaN results of .f32 arithmetic are this pattern; abs, neg, min and max too (measured, H200, 2026-11-20).
_NAN32 = np.uint32(0x7FFFFFFF)


def flush(value: Any) -> Any:
    """Subnormal .f32 values become zeros of their sign (.ftz)."""
    value = np.asarray(value)
    return np.where(np.abs(value) < np.float32(2**-126), np.copysign(np.float32(0), value), value)


def canonical(result: NDArray[Any]) -> NDArray[Any]:
    """NaNs of .f32 as the one pattern that arithmetic gives; other types as they are."""
    if result.dtype != np.float32:
        return result
    return np.where(np.isnan(result), _NAN32.view(np.float32), result)


def quieted(value: NDArray[Any], result: NDArray[Any]) -> NDArray[Any]:
    """`result`, but where `value` is a .f64 NaN that NaN, made quiet: abs and neg leave its sign (measured, H200)."""
    words = value.view(np.uint64) | np.uint64(1 << 51)
    return np.where(np.isnan(value), words.view(np.float64), result)


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


def flush_rounded(
    result: NDArray[np.float32], total: NDArray[np.float64], error: NDArray[np.float64], rounding: str
) -> NDArray[np.float32]:
    """.ftz of a rounded result: tiny is what lies below the normal range if exponents are free (measured, H200)."""
    unlimited = round_f32(total * 2.0**100, error * 2.0**100, rounding)
    return np.where(np.abs(unlimited) < 2.0**-26, np.copysign(np.float32(0), result), result)


def sum_f32(a: NDArray[np.float64], b: NDArray[np.float64], op: Any, rounding: str) -> NDArray[np.float32]:
    """a + b, exact in .f64 pairs, as the .f32 result of an instruction with its modifiers."""
    total, error = two_sum(a, b)
    result = round_f32(total, error, rounding)
    if op.ftz:
        result = flush_rounded(result, total, error, rounding)
    if rounding == "rm":
        # Opposite values cancel to -0 when rounding down (IEEE 754, 6.3).
        cancelled = (total == 0) & (error == 0) & (np.signbit(a) != np.signbit(b))
        result = np.where(cancelled, np.float32(-0.0), result)
    if op.sat:
        clipped = np.clip(result, np.float32(0), np.float32(1)) + np.float32(0)  # -0 becomes +0
        result = np.where(np.isnan(result), np.float32(0), clipped)
    return canonical(result.astype(np.float32))


def arithmetic_f64(function: Any, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """A .f64 result; of NaN operands the second one survives, then the first, made quiet (measured, H200)."""
    return quieted(b, np.where(np.isnan(b), b, quieted(a, function(a, b))))


@meaning(floating.add, floating.sub, floating.mul)
def arithmetic(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    rounding = op.rounding or "rn"
    a, b, d = binder.source(op.a, op.type), binder.source(op.b, op.type), binder.destination(op.d, op.type)
    if op.type == "f64":
        if rounding != "rn":
            raise Unmodelled(f".f64 arithmetic with .{rounding}")
        function = {floating.add: np.add, floating.sub: np.subtract, floating.mul: np.multiply}[type(op)]
        return lambda g: d(g, arithmetic_f64(function, np.asarray(a(g)), np.asarray(b(g))))

    def run(g: Group) -> None:
        x, y = np.asarray(a(g)), np.asarray(b(g))
        if op.ftz:
            x, y = flush(x), flush(y)
        x, y = x.astype(np.float64), y.astype(np.float64)
        if isinstance(
            op, floating.mul
        ):  # the product of two .f32 is exact in .f64; adding a zero of its sign changes nothing
            product = x * y
            d(g, sum_f32(product, np.copysign(np.zeros_like(product), product), op, rounding))
        else:
            d(g, sum_f32(x, -y if isinstance(op, floating.sub) else y, op, rounding))

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
        product = x.astype(np.float64) * y.astype(np.float64)
        d(g, sum_f32(product, z.astype(np.float64), op, op.rounding))

    return run


@meaning(floating.abs, floating.neg)
def sign_change(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    a, d = binder.source(op.a, op.type), binder.destination(op.d, op.type)
    function = np.abs if isinstance(op, floating.abs) else np.negative

    def run(g: Group) -> None:
        value = np.asarray(a(g))
        if op.type == "f64":
            d(g, quieted(value, function(value)))
        else:
            d(g, canonical(function(flush(value) if op.ftz else value)))

    return run


@meaning(floating.min, floating.max)
def extremum(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    a, b, d = binder.source(op.a, op.type), binder.source(op.b, op.type), binder.destination(op.d, op.type)
    smaller = isinstance(op, floating.min)

    def run(g: Group) -> None:
        x, y = np.asarray(a(g)), np.asarray(b(g))
        if op.ftz:
            x, y = flush(x), flush(y)
        opposite = np.signbit(x) != np.signbit(y)
        if op.xorsign:
            x, y = np.abs(x), np.abs(y)
        chosen = (np.fmin if smaller else np.fmax)(x, y)
        # +0.0 is larger than -0.0 (9.7.3.11).
        zeros = (x == 0) & (y == 0)
        negative = np.signbit(x) | np.signbit(y) if smaller else np.signbit(x) & np.signbit(y)
        result = np.where(zeros, np.where(negative, -np.zeros_like(chosen), np.zeros_like(chosen)), chosen)
        if op.NaN:
            result = np.where(np.isnan(x) | np.isnan(y), np.float32(np.nan), result)
        if op.xorsign:
            result = np.where(opposite, -result, result)
        if op.type == "f64":
            result = quieted(np.where(np.isnan(x), y, 0.0), result)  # of two NaNs the second (measured, H200)
        d(g, canonical(result))

    return run
