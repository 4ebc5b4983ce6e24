"""Integer arithmetic: wraps to the width of the type. PTX ISA 9.7.1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.load.operands import Binder, joined, numpy_type, parts
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.state.group import Group
from ptxgen.instr import integer
from ptxgen.instr.integer import doubled
from ptxgen.instr.model.types import TYPES

_Binary = integer.add | integer.sub | integer.div | integer.rem


def _by_parts(function: Callable[..., Any], type: str) -> Callable[..., Any]:
    """A function of integers, on each part of the words of a packed type: .u16x2, .s8x4."""
    bits, _, count = type[1:].partition("x")
    if not count:
        return function
    part = np.dtype(f"{'i' if type[0] == 's' else 'u'}{int(bits) // 8}")

    def run(*words: Any) -> Any:
        return joined(function(*(parts(word, part) for word in words)).astype(part), np.uint32)

    return run


def _binary(function: Callable[[Any, Any], Any]) -> Callable[..., Plain]:
    """A meaning d = function(a, b) in the instruction's type."""

    def bind(op: _Binary, binder: Binder, statement: syntax.Instruction) -> Plain:
        type = op.type
        a, b, d = binder.source(op.a, type), binder.source(op.b, type), binder.destination(op.d, type)
        compute = _by_parts(function, type)
        return lambda g: d(g, compute(a(g), b(g)))

    return bind


semantics(integer.add)(_binary(lambda a, b: a + b))
semantics(integer.sub)(_binary(lambda a, b: a - b))


def truncated_division(a: Any, b: Any) -> Any:
    """Quotient rounded towards zero; all ones where b is 0, as GPUs give (unspecified in PTX)."""
    safe = np.where(b == 0, np.ones_like(b), b)
    floor = a // safe
    inexact = (a - floor * safe) != 0
    quotient = np.where(inexact & ((a < 0) != (safe < 0)), floor + np.ones_like(floor), floor)
    return np.where(b == 0, ~np.zeros_like(quotient), quotient)


def truncated_remainder(a: Any, b: Any) -> Any:
    """Remainder with the sign of a; all ones where b is 0 (unspecified; measured, H100)."""
    return np.where(b == 0, ~np.zeros_like(a), a - truncated_division(a, b) * b)


semantics(integer.div)(_binary(truncated_division))
semantics(integer.rem)(_binary(truncated_remainder))


@semantics(integer.min, integer.max)
def extremum(op: integer.min | integer.max, binder: Binder, statement: syntax.Instruction) -> Plain:
    pick = np.minimum if isinstance(op, integer.min) else np.maximum
    a, b, d = binder.source(op.a, op.type), binder.source(op.b, op.type), binder.destination(op.d, op.type)

    def choose(x: Any, y: Any) -> Any:
        return np.maximum(pick(x, y), 0) if op.relu else pick(x, y)

    compute = _by_parts(choose, op.type)
    return lambda g: d(g, compute(a(g), b(g)))


@semantics(integer.add_sat, integer.sub_sat)
def saturating(op: integer.add_sat | integer.sub_sat, binder: Binder, statement: syntax.Instruction) -> Plain:
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


@semantics(integer.mul, integer.mad)
def multiply(op: integer.mul | integer.mad, binder: Binder, statement: syntax.Instruction) -> Plain:
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


@semantics(integer.mul_wide, integer.mad_wide)
def multiply_wide(op: integer.mul_wide | integer.mad_wide, binder: Binder, statement: syntax.Instruction) -> Plain:
    wide = TYPES[doubled(op)]
    a, b, d = binder.source(op.a, op.type), binder.source(op.b, op.type), binder.destination(op.d, wide)
    c = binder.source(op.c, wide) if isinstance(op, integer.mad_wide) else None
    dtype = numpy_type(wide)

    def run(g: Group) -> None:
        product = np.asarray(a(g)).astype(dtype) * np.asarray(b(g)).astype(dtype)
        d(g, product if c is None else product + c(g))

    return run


@semantics(integer.abs, integer.neg)
def sign_change(op: integer.abs | integer.neg, binder: Binder, statement: syntax.Instruction) -> Plain:
    a, d = binder.source(op.a, op.type), binder.destination(op.d, op.type)
    function = _by_parts(np.abs if isinstance(op, integer.abs) else np.negative, op.type)
    return lambda g: d(g, function(a(g)))


@semantics(integer.bfe)
def extract(op: integer.bfe, binder: Binder, statement: syntax.Instruction) -> Plain:
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


@semantics(integer.mad_sat, integer.mad24_sat)
def multiply_saturating(
    op: integer.mad_sat | integer.mad24_sat, binder: Binder, statement: syntax.Instruction
) -> Plain:
    a, b, c = (binder.source(operand, "s32") for operand in (op.a, op.b, op.c))
    d = binder.destination(op.d, "s32")
    short = isinstance(op, integer.mad24_sat)

    def run(g: Group) -> None:
        x, y = np.asarray(a(g)).astype(np.int64), np.asarray(b(g)).astype(np.int64)
        product = _low_24(x, True) * _low_24(y, True) >> 16 if short else x * y >> 32
        d(g, np.clip(product + np.asarray(c(g)).astype(np.int64), -(2**31), 2**31 - 1).astype(np.int32))

    return run


def _low_24(value: Any, signed: bool) -> Any:
    """The low 24 bits of 64-bit integers, extended by their sign."""
    shift = value.dtype.type(40)
    return (value << shift) >> shift if signed else value & value.dtype.type(0xFFFFFF)


@semantics(integer.mul24, integer.mad24)
def multiply_24(op: integer.mul24 | integer.mad24, binder: Binder, statement: syntax.Instruction) -> Plain:
    a, b, d = binder.source(op.a, op.type), binder.source(op.b, op.type), binder.destination(op.d, op.type)
    c = binder.source(op.c, op.type) if isinstance(op, integer.mad24) else None
    signed, dtype = op.type == "s32", numpy_type(TYPES[op.type])
    shift = 16 if op.half == "hi" else 0

    def run(g: Group) -> None:
        x, y = (_low_24(np.asarray(each(g)).astype(np.int64), signed) for each in (a, b))
        product = (x * y >> shift).astype(dtype)
        d(g, product if c is None else product + c(g))

    return run


@semantics(integer.clmad)
def multiply_without_carry(op: integer.clmad, binder: Binder, statement: syntax.Instruction) -> Plain:
    """The product of polynomials over GF(2) (measured, H200, driver 580, 2026-11-20)."""
    a, b, c = (binder.source(operand, "u64") for operand in (op.a, op.b, op.c))
    d = binder.destination(op.d, "u64")

    def run(g: Group) -> None:
        x, y = g.full(a(g), np.uint64), g.full(b(g), np.uint64)
        result = g.full(c(g), np.uint64).copy()
        for bit in range(64):
            shifted = x << np.uint64(bit) if op.half == "lo" else (x >> np.uint64(1)) >> np.uint64(63 - bit)
            result ^= np.where(y >> np.uint64(bit) & np.uint64(1), shifted, np.uint64(0))
        d(g, result)

    return run


@semantics(integer.sad)
def absolute_difference(op: integer.sad, binder: Binder, statement: syntax.Instruction) -> Plain:
    a, b, c = (binder.source(operand, op.type) for operand in (op.a, op.b, op.c))
    d = binder.destination(op.d, op.type)

    def run(g: Group) -> None:
        x, y = np.asarray(a(g)), np.asarray(b(g))
        d(g, c(g) + np.where(x < y, y - x, x - y))

    return run


def bit_length(word: Any) -> Any:
    """How many bits unsigned words have below and with the highest one."""
    word = np.array(word)
    shift = 1
    while shift < 8 * word.dtype.itemsize:
        word |= word >> word.dtype.type(shift)
        shift *= 2
    return np.bitwise_count(word).astype(np.uint32)


def _count(function: Callable[[Any, int], Any]) -> Callable[..., Plain]:
    """A meaning d = function(a, width), d of 32 bits whatever the type of a."""

    def bind(op: integer.popc | integer.clz, binder: Binder, statement: syntax.Instruction) -> Plain:
        type = TYPES[op.type]
        a, d = binder.source(op.a, type), binder.destination(op.d, "u32")
        return lambda g: d(g, function(np.asarray(a(g)), type.bits))

    return bind


semantics(integer.popc)(_count(lambda a, width: np.bitwise_count(a)))
semantics(integer.clz)(_count(lambda a, width: np.uint32(width) - bit_length(a)))


@semantics(integer.bfind)
def find_highest(op: integer.bfind, binder: Binder, statement: syntax.Instruction) -> Plain:
    type = TYPES[op.type]
    a, d = binder.source(op.a, type), binder.destination(op.d, "u32")
    unsigned = np.dtype(f"u{type.bytes}")

    def run(g: Group) -> None:
        value = np.asarray(a(g))
        found = bit_length(np.where(value < 0, ~value, value).view(unsigned))
        place = np.uint32(type.bits) - found if op.shiftamt else found - np.uint32(1)
        d(g, np.where(found == 0, np.uint32(0xFFFFFFFF), place))

    return run


@semantics(integer.fns)
def find_nth(op: integer.fns, binder: Binder, statement: syntax.Instruction) -> Plain:
    """The manual's loop, for all lanes at once."""
    mask, base, offset = binder.source(op.mask, "u32"), binder.source(op.base, "u32"), binder.source(op.offset, "s32")
    d = binder.destination(op.d, "b32")

    def run(g: Group) -> None:
        word = g.full(mask(g), np.uint32)
        start, wanted = g.full(base(g)).astype(np.int64), g.full(offset(g)).astype(np.int64)
        left = np.maximum(np.abs(wanted) - 1, 0)
        step = np.where(wanted < 0, -1, 1)
        found = np.full(word.shape, 0xFFFFFFFF, np.uint32)
        pending = np.ones(word.shape, np.bool_)
        for distance in range(32):
            position = start + step * distance
            pending &= (position >= 0) & (position < 32) & ((wanted != 0) | (distance == 0))
            if not any_set(pending):
                break
            one = pending & ((word >> np.clip(position, 0, 31).astype(np.uint32) & np.uint32(1)) == 1)
            hit = one & (left == 0)
            found = np.where(hit, position.astype(np.uint32), found)
            left = np.where(one, left - 1, left)
            pending &= ~hit
        d(g, found)

    return run


@semantics(integer.brev)
def reverse_bits(op: integer.brev, binder: Binder, statement: syntax.Instruction) -> Plain:
    type = TYPES[op.type]
    a, d = binder.source(op.a, type), binder.destination(op.d, type)

    def run(g: Group) -> None:
        word = np.asarray(a(g))
        number, shift = word.dtype.type, type.bits // 2
        whole = (1 << type.bits) - 1
        while shift:
            lower = number(whole // ((1 << shift) + 1))  # groups of `shift` bits, every other one
            word = ((word >> number(shift)) & lower) | ((word & lower) << number(shift))
            shift //= 2
        d(g, word)

    return run


@semantics(integer.bfi)
def insert(op: integer.bfi, binder: Binder, statement: syntax.Instruction) -> Plain:
    """Of c and d the low 8 bits count (9.7.1.20); in the 64-bit form all of them do (measured, H100)."""
    type = TYPES[op.type]
    number, width = numpy_type(type).type, type.bits
    a, b, f = binder.source(op.a, type), binder.source(op.b, type), binder.destination(op.f, type)
    c, d = binder.source(op.c, "u32"), binder.source(op.d, "u32")

    def run(g: Group) -> None:
        start, length = (np.asarray(each(g)) & np.uint32(255 if width == 32 else 2**32 - 1) for each in (c, d))
        mask = _ones(length, number, width) << np.minimum(start, width - 1).astype(number)
        mask = np.where(start < width, mask, number(0))
        shifted = np.asarray(a(g)) << np.minimum(start, width - 1).astype(number)
        f(g, (shifted & mask) | (np.asarray(b(g)) & ~mask))

    return run


def _ones(count: Any, number: Any, width: int) -> Any:
    """Words with `count` ones at the bottom: all of them for counts of the width or more."""
    some = (number(1) << np.minimum(count, width - 1).astype(number)) - number(1)
    return np.where(count < width, some, ~number(0))


@semantics(integer.szext)
def extend(op: integer.szext, binder: Binder, statement: syntax.Instruction) -> Plain:
    a, b, d = binder.source(op.a, "u32"), binder.source(op.b, "u32"), binder.destination(op.d, "u32")
    signed = op.type == "s32"

    def run(g: Group) -> None:
        value, count = np.asarray(a(g)), np.asarray(b(g))
        if op.mode == "wrap":
            count = count & np.uint32(31)
        kept = _ones(count, np.uint32, 32)
        top = np.where(count > 0, kept ^ (kept >> np.uint32(1)), np.uint32(0))
        negative = signed & ((value & top) != 0) & (count < 32)
        d(g, np.where(negative, value | ~kept, value & kept))

    return run


@semantics(integer.bmsk)
def mask_of_ones(op: integer.bmsk, binder: Binder, statement: syntax.Instruction) -> Plain:
    a, b, d = binder.source(op.a, "u32"), binder.source(op.b, "u32"), binder.destination(op.d, "u32")

    def run(g: Group) -> None:
        start, count = np.asarray(a(g)), np.asarray(b(g))
        if op.mode == "wrap":
            start, count = start & np.uint32(31), count & np.uint32(31)
        moved = _ones(count, np.uint32, 32) << np.minimum(start, 31).astype(np.uint32)
        d(g, np.where(start < 32, moved, np.uint32(0)))

    return run


@semantics(integer.dp4a, integer.dp2a)
def dot_product(op: integer.dp4a | integer.dp2a, binder: Binder, statement: syntax.Instruction) -> Plain:
    """Four bytes by four bytes, or two halves of a by two bytes of b."""
    halves = isinstance(op, integer.dp2a)
    a, b, c = (binder.source(operand, "u32") for operand in (op.a, op.b, op.c))
    d = binder.destination(op.d, "u32")
    a_part, b_part = (
        np.dtype(f"{op.atype[0].replace('s', 'i')}{2 if halves else 1}"),
        op.btype[0].replace("s", "i") + "1",
    )
    chosen = slice(2, 4) if halves and op.half == "hi" else slice(0, 2) if halves else slice(0, 4)

    def run(g: Group) -> None:
        products = parts(a(g), a_part).astype(np.int64) * parts(b(g), b_part)[..., chosen]
        d(g, (products.sum(axis=-1) + np.asarray(c(g))).astype(np.uint32))

    return run
