"""Mixed-precision arithmetic: .f16 or .bf16 operands, which are .f32 numbers too, and an .f32 sum. PTX ISA 9.7.5.

Of the packed forms of PTX ISA 9.4 those are here whose bits the manual defines; the others are in LEFT_OUT.
"""

from __future__ import annotations

from typing import Any, get_args

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.arithmetic import single
from ptxgen.emulator.arithmetic.formats import decode
from ptxgen.emulator.load.operands import Binder, Reader, Unmodelled, joined, parts
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.conversion import narrow
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


def _widened_pair(binder: Binder, operand: Any, type: str) -> Reader:
    read = binder.source(operand, "b32")
    name = type.removesuffix("x2")
    return lambda g: decode(parts(np.asarray(read(g)), np.uint16), name)


def _singles(binder: Binder, operand: Any) -> Reader:
    read = binder.source(operand, "b64")
    return lambda g: parts(np.asarray(read(g)), np.float32)


@semantics(mixed.add_f32x2, mixed.sub_f32x2)
def sums_of(op: mixed.add_f32x2 | mixed.sub_f32x2, binder: Binder, statement: syntax.Instruction) -> Plain:
    a, c, d = _widened_pair(binder, op.a, op.atype), _singles(binder, op.c), binder.destination(op.d, "b64")
    rounding, negated = op.rounding or "rn", isinstance(op, mixed.sub_f32x2)

    def run(g: Group) -> None:
        addend = np.asarray(c(g))
        d(g, joined(single.add(a(g), -addend if negated else addend, rounding), np.uint64))

    return run


@semantics(mixed.fma_f32x2)
def fused_pair(op: mixed.fma_f32x2, binder: Binder, statement: syntax.Instruction) -> Plain:
    a, b, c = _widened_pair(binder, op.a, op.atype), _singles(binder, op.b), _singles(binder, op.c)
    d = binder.destination(op.d, "b64")
    return lambda g: d(g, joined(single.fused(a(g), b(g), np.asarray(c(g)), op.rounding), np.uint64))


_ToBf16 = mixed.add_bf16x2 | mixed.sub_bf16x2 | mixed.mul_bf16x2


@semantics(*get_args(_ToBf16))
def narrowed(op: _ToBf16, binder: Binder, statement: syntax.Instruction) -> Plain:
    """Cutting off twice, to .f32 and to .bf16, cuts off the same bits as once."""
    if not isinstance(op, mixed.mul_bf16x2) and op.rounding is None:
        raise Unmodelled(f"{op.opcode_text} without .rz, which the manual has as mandatory (PTX ISA 9.4, 9.7.5.1),")
    a, c, d = _singles(binder, op.a), _singles(binder, op.c), binder.destination(op.d, "b32")

    def run(g: Group) -> None:
        left, right = np.asarray(a(g)), np.asarray(c(g))
        if isinstance(op, mixed.mul_bf16x2):
            exact = single.multiply(left, right, "rz")
        else:
            exact = single.add(left, -right if isinstance(op, mixed.sub_bf16x2) else right, "rz")
        halves = narrow(exact, "bf16", "rz").view(np.uint16)
        d(g, joined(np.where(np.isnan(exact), np.uint16(0x7FFF), halves), np.uint32))

    return run
