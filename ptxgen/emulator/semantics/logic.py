"""Bitwise logic and shifts. PTX ISA 9.7.8."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.group import Group
from ptxgen.emulator.registers import Binder, numpy_type
from ptxgen.emulator.semantics import meaning
from ptxgen.instr import logic
from ptxgen.instr.types import TYPES

_Run = Callable[[Group], None]

_FUNCTIONS: dict[type, Any] = {
    logic.and_: np.bitwise_and, logic.or_: np.bitwise_or, logic.xor: np.bitwise_xor,
    logic.and_pred: np.logical_and, logic.or_pred: np.logical_or, logic.xor_pred: np.logical_xor,
}  # fmt: skip


@meaning(logic.and_, logic.or_, logic.xor)
def words(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    function = _FUNCTIONS[type(op)]
    a, b, d = binder.source(op.a, op.type), binder.source(op.b, op.type), binder.destination(op.d, op.type)
    return lambda g: d(g, function(a(g), b(g)))


@meaning(logic.and_pred, logic.or_pred, logic.xor_pred)
def predicates(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    function = _FUNCTIONS[type(op)]
    a, b, d = binder.predicate(op.a), binder.predicate(op.b), binder.destination(op.d, "pred")
    return lambda g: d(g, function(a(g), b(g)))


@meaning(logic.not_)
def complement(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    a, d = binder.source(op.a, op.type), binder.destination(op.d, op.type)
    return lambda g: d(g, ~np.asarray(a(g)))


@meaning(logic.not_pred)
def complement_predicate(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    a, d = binder.predicate(op.a), binder.destination(op.d, "pred")
    return lambda g: d(g, ~np.asarray(a(g)))


@meaning(logic.shl, logic.shr)
def shift(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    type = TYPES[op.type]
    dtype, bits, signed = numpy_type(type), type.bits, type.kind == "signed"
    a, b, d = binder.source(op.a, type), binder.source(op.b, "u32"), binder.destination(op.d, type)
    left = isinstance(op, logic.shl)

    def run(g: Group) -> None:
        value, amount = np.asarray(a(g)), np.asarray(b(g))
        inside = np.minimum(amount, bits - 1).astype(dtype)
        shifted = value << inside if left else value >> inside
        # Amounts of the width or more shift everything out; a signed right shift leaves the sign (9.7.8.9).
        d(g, shifted if signed and not left else np.where(amount < bits, shifted, dtype.type(0)))

    return run
