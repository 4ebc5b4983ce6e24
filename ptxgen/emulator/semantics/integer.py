"""Integer arithmetic: wraps to the width of the type. PTX ISA 9.7.1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.group import Group
from ptxgen.emulator.registers import Binder, joined, numpy_type, parts
from ptxgen.emulator.semantics import meaning
from ptxgen.instr import integer
from ptxgen.instr.integer import doubled
from ptxgen.instr.types import TYPES

_Run = Callable[[Group], None]


def _by_parts(function: Callable[..., Any], type: str) -> Callable[..., Any]:
    """A function of integers, on each part of the words of a packed type: .u16x2, .s8x4."""
    bits, _, count = type[1:].partition("x")
    if not count:
        return function
    part = np.dtype(f"{'i' if type[0] == 's' else 'u'}{int(bits) // 8}")

    def run(*words: Any) -> Any:
        return joined(function(*(parts(word, part) for word in words)).astype(part), np.uint32)

    return run


def _binary(function: Callable[[Any, Any], Any]) -> Callable[..., _Run]:
    """A meaning d = function(a, b) in the instruction's type."""

    def bind(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
        type = op.type
        a, b, d = binder.source(op.a, type), binder.source(op.b, type), binder.destination(op.d, type)
        compute = _by_parts(function, type)
        return lambda g: d(g, compute(a(g), b(g)))

    return bind


meaning(integer.add)(_binary(lambda a, b: a + b))
meaning(integer.sub)(_binary(lambda a, b: a - b))


def truncated_division(a: Any, b: Any) -> Any:
    """Quotient rounded towards zero; all ones where b is 0, as GPUs give (unspecified in PTX)."""
    safe = np.where(b == 0, np.ones_like(b), b)
    floor = a // safe
    inexact = (a - floor * safe) != 0
    quotient = np.where(inexact & ((a < 0) != (safe < 0)), floor + np.ones_like(floor), floor)
    return np.where(b == 0, ~np.zeros_like(quotient), quotient)


def truncated_remainder(a: Any, b: Any) -> Any:
    """Remainder with the sign of a; a where b is 0."""
    return np.where(b == 0, a, a - truncated_division(a, b) * b)


meaning(integer.div)(_binary(truncated_division))
meaning(integer.rem)(_binary(truncated_remainder))


@meaning(integer.min, integer.max)
def extremum(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    pick = np.minimum if isinstance(op, integer.min) else np.maximum
    a, b, d = binder.source(op.a, op.type), binder.source(op.b, op.type), binder.destination(op.d, op.type)

    def choose(x: Any, y: Any) -> Any:
        return np.maximum(pick(x, y), 0) if op.relu else pick(x, y)

    compute = _by_parts(choose, op.type)
    return lambda g: d(g, compute(a(g), b(g)))


@meaning(integer.add_sat, integer.sub_sat)
def saturating(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    a, b, d = binder.source(op.a, op.type), binder.source(op.b, op.type), binder.destination(op.d, op.type)
    sign = 1 if isinstance(op, integer.add_sat) else -1

    def exact(x: Any, y: Any) -> Any:
        range = np.iinfo(np.asarray(x).dtype)
        sum = np.asarray(x).astype(np.int64) + sign * np.asarray(y).astype(np.int64)
        return np.clip(sum, range.min, range.max).astype(range.dtype)

    compute = _by_parts(exact, op.type)
    return lambda g: d(g, compute(a(g), b(g)))


def high_half(a: Any, b: Any, bits: int, signed: bool) -> Any:
    """The upper half of a product, of the operands' type."""
    if bits < 64:
        wide = np.int64 if signed else np.uint64
        return (np.asarray(a).astype(wide) * np.asarray(b).astype(wide)) >> wide(bits)
    mask = np.uint64(0xFFFFFFFF)
    x, y = np.asarray(a).astype(np.uint64), np.asarray(b).astype(np.uint64)
    xl, xh, yl, yh = x & mask, x >> np.uint64(32), y & mask, y >> np.uint64(32)
    middle = xh * yl + ((xl * yl) >> np.uint64(32))
    carry = xl * yh + (middle & mask)
    high = xh * yh + (middle >> np.uint64(32)) + (carry >> np.uint64(32))
    if signed:
        zero = np.uint64(0)
        high = high - np.where(np.asarray(a) < 0, y, zero) - np.where(np.asarray(b) < 0, x, zero)
        return high.astype(np.int64)
    return high


@meaning(integer.mul, integer.mad)
def multiply(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    type = TYPES[op.type]
    a, b, d = binder.source(op.a, type), binder.source(op.b, type), binder.destination(op.d, type)
    c = binder.source(op.c, type) if isinstance(op, integer.mad) else None
    dtype = numpy_type(type)

    def run(g: Group) -> None:
        if op.half == "lo":
            product = np.asarray(a(g)) * b(g)
        else:
            product = high_half(a(g), b(g), type.bits, type.kind == "signed").astype(dtype)
        d(g, product if c is None else product + c(g))

    return run


@meaning(integer.mul_wide, integer.mad_wide)
def multiply_wide(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    wide = TYPES[doubled(op)]
    a, b, d = binder.source(op.a, op.type), binder.source(op.b, op.type), binder.destination(op.d, wide)
    c = binder.source(op.c, wide) if isinstance(op, integer.mad_wide) else None
    dtype = numpy_type(wide)

    def run(g: Group) -> None:
        product = np.asarray(a(g)).astype(dtype) * np.asarray(b(g)).astype(dtype)
        d(g, product if c is None else product + c(g))

    return run


@meaning(integer.abs, integer.neg)
def sign_change(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    a, d = binder.source(op.a, op.type), binder.destination(op.d, op.type)
    function = _by_parts(np.abs if isinstance(op, integer.abs) else np.negative, op.type)
    return lambda g: d(g, function(a(g)))


@meaning(integer.bfe)
def extract(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    """9.7.1.19: bits past the top are copies of the sign (or zero), and a field of no bits is 0.

    The manual takes b and c from 0 to 255. Of larger ones the 32-bit form reads the low 8 bits, the 64-bit form all
    (measured, H200, driver 580, 2026-11-20).
    """
    type = TYPES[op.type]
    dtype, width, signed = numpy_type(type), type.bits, type.kind == "signed"
    a, d = binder.source(op.a, type), binder.destination(op.d, type)
    b, c = binder.source(op.b, "u32"), binder.source(op.c, "u32")

    def run(g: Group) -> None:
        value = np.asarray(a(g))
        start, length = (np.asarray(each(g)).astype(np.int64) & (255 if width == 32 else -1) for each in (b, c))
        # Move the field's last bit (the top one at most) to the top, then back with its sign.
        end = np.minimum(start + length, width)
        taken = np.maximum(end - start, 0)
        inside = np.minimum(start, width - 1)
        up = (width - np.maximum(taken, 1) - inside).clip(0, width - 1).astype(dtype)
        down = (width - np.maximum(taken, 1)).astype(dtype)
        field = (value << up) >> down
        past = (value >> dtype.type(width - 1)) if signed else np.zeros_like(value)
        d(g, np.where(length == 0, dtype.type(0), np.where(start >= width, past, field)))

    return run
