"""Mixed-precision arithmetic: .f16 or .bf16 operands, which are .f32 numbers too, and an .f32 sum. PTX ISA 9.7.5."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.arithmetic import single
from ptxgen.emulator.arithmetic.formats import decode
from ptxgen.emulator.load.operands import Binder, Reader
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.state.group import Group
from ptxgen.instr import mixed


def _widened(binder: Binder, operand: Any, type: str) -> Reader:
    read = binder.source(operand, "b16")
    return lambda g: decode(read(g), type)


@semantics(mixed.add, mixed.sub)
def sum_of(op: mixed.add | mixed.sub, binder: Binder, statement: syntax.Instruction) -> Plain:
    a, c, d = _widened(binder, op.a, op.atype), binder.source(op.c, "f32"), binder.destination(op.d, "f32")
    rounding, negated = op.rounding or "rn", isinstance(op, mixed.sub)

    def run(g: Group) -> None:
        addend = np.asarray(c(g))
        d(g, single.add(a(g), -addend if negated else addend, rounding, sat=op.sat))

    return run


@semantics(mixed.fma)
def fused(op: mixed.fma, binder: Binder, statement: syntax.Instruction) -> Plain:
    a, b = _widened(binder, op.a, op.abtype), _widened(binder, op.b, op.abtype)
    c, d = binder.source(op.c, "f32"), binder.destination(op.d, "f32")
    return lambda g: d(g, single.fused(a(g), b(g), np.asarray(c(g)), op.rounding, sat=op.sat))
