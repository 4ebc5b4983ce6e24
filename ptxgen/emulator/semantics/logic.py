"""Bitwise logic and shifts. PTX ISA 9.7.8."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.load.operands import Binder, constant, numpy_type
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.state.group import Group
from ptxgen.instr import logic
from ptxgen.instr.model.operands.specification import value_of
from ptxgen.instr.model.types import TYPES

_FUNCTIONS: dict[type, Any] = {
    logic.and_: np.bitwise_and, logic.or_: np.bitwise_or, logic.xor: np.bitwise_xor,
    logic.and_pred: np.logical_and, logic.or_pred: np.logical_or, logic.xor_pred: np.logical_xor,
}  # fmt: skip


@semantics(logic.and_, logic.or_, logic.xor)
def words(op: logic.and_ | logic.or_ | logic.xor, binder: Binder, statement: syntax.Instruction) -> Plain:
    function = _FUNCTIONS[type(op)]
    a, b, d = binder.source(op.a, op.type), binder.source(op.b, op.type), binder.destination(op.d, op.type)
    return lambda g: d(g, function(a(g), b(g)))


_Predicates = logic.and_pred | logic.or_pred | logic.xor_pred


@semantics(*get_args(_Predicates))
def predicates(op: _Predicates, binder: Binder, statement: syntax.Instruction) -> Plain:
    function = _FUNCTIONS[type(op)]
    a, b, d = binder.predicate(op.a), binder.predicate(op.b), binder.destination(op.d, "pred")
    return lambda g: d(g, function(a(g), b(g)))


@semantics(logic.not_)
def complement(op: logic.not_, binder: Binder, statement: syntax.Instruction) -> Plain:
    a, d = binder.source(op.a, op.type), binder.destination(op.d, op.type)
    return lambda g: d(g, ~np.asarray(a(g)))


@semantics(logic.not_pred)
def complement_predicate(op: logic.not_pred, binder: Binder, statement: syntax.Instruction) -> Plain:
    a, d = binder.predicate(op.a), binder.destination(op.d, "pred")
    return lambda g: d(g, ~np.asarray(a(g)))


@semantics(logic.shl, logic.shr)
def shift(op: logic.shl | logic.shr, binder: Binder, statement: syntax.Instruction) -> Plain:
    type = TYPES[op.type]
    dtype, bits, signed = numpy_type(type), type.bits, type.kind == "signed"
    a, b, d = binder.source(op.a, type), binder.source(op.b, "u32"), binder.destination(op.d, type)
    left = isinstance(op, logic.shl)
    if value_of(op.b) is not None:
        amount = int(constant(op.b, TYPES["u32"]))
        by, nothing = dtype.type(min(amount, bits - 1)), dtype.type(0)
        if amount >= bits and (left or not signed):
            return lambda g: d(g, nothing)
        return (lambda g: d(g, a(g) << by)) if left else (lambda g: d(g, a(g) >> by))

    def run(g: Group) -> None:
        value, amount = np.asarray(a(g)), np.asarray(b(g))
        inside = np.minimum(amount, bits - 1).astype(dtype)
        shifted = value << inside if left else value >> inside
        # Amounts of the width or more shift everything out; a signed right shift leaves the sign (9.7.8.9).
        d(g, shifted if signed and not left else np.where(amount < bits, shifted, dtype.type(0)))

    return run


@semantics(logic.cnot)
def is_zero(op: logic.cnot, binder: Binder, statement: syntax.Instruction) -> Plain:
    a, d = binder.source(op.a, op.type), binder.destination(op.d, op.type)
    return lambda g: d(g, np.asarray(a(g)) == 0)


def _table(lut: int) -> Callable[[Any, Any, Any], Any]:
    """A function of three words by its table: bit 4 a + 2 b + c of `lut` is the result for these bits."""

    def compute(a: Any, b: Any, c: Any) -> Any:
        result = np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b), np.shape(c)), np.uint32)
        for index in range(8):
            if lut >> index & 1:
                result |= (a if index & 4 else ~a) & (b if index & 2 else ~b) & (c if index & 1 else ~c)
        return result

    return compute


@semantics(logic.lop3, logic.lop3_bool)
def three_input(op: logic.lop3 | logic.lop3_bool, binder: Binder, statement: syntax.Instruction) -> Plain:
    a, b, c = (binder.source(operand, "b32") for operand in (op.a, op.b, op.c))
    d = binder.destination(op.d, "b32")
    function = _table(int(op.lut.evaluate()))
    if isinstance(op, logic.lop3):
        return lambda g: d(g, function(a(g), b(g), c(g)))
    p, q = binder.destination(op.p, "pred"), binder.predicate(op.q)
    combine = np.logical_or if op.combine == "or" else np.logical_and

    def run(g: Group) -> None:
        result, other = function(a(g), b(g), c(g)), q(g)
        d(g, result)
        p(g, combine(result != 0, other))

    return run


@semantics(logic.shf)
def funnel_shift(op: logic.shf, binder: Binder, statement: syntax.Instruction) -> Plain:
    a, b, c = (binder.source(operand, "u32") for operand in (op.a, op.b, op.c))
    d = binder.destination(op.d, "b32")

    def run(g: Group) -> None:
        both = np.asarray(b(g)).astype(np.uint64) << np.uint64(32) | np.asarray(a(g)).astype(np.uint64)
        amount = np.asarray(c(g))
        amount = (amount & np.uint32(31) if op.mode == "wrap" else np.minimum(amount, 32)).astype(np.uint64)
        shifted = both >> amount if op.direction == "r" else (both << amount) >> np.uint64(32)
        d(g, shifted.astype(np.uint32))

    return run
