"""Sums and products with a carry. PTX ISA 9.7.2. Each lane has one carry.

The manual calls what sub.cc and subc leave there a borrow. Hardware computes a + ~b + 1 and keeps its carry, the
opposite of the borrow, as addc after sub.cc shows (measured, H100, driver 580, 2026-11-22).
"""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.load.operands import Binder, numpy_type
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.integer import high_half
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.state.group import Group
from ptxgen.instr import extended
from ptxgen.instr.model.types import TYPES

_Words = NDArray[Any]


def _with_carry(a: _Words, b: _Words, carry: Any) -> tuple[_Words, NDArray[np.bool_]]:
    """Unsigned words a + b + carry, and what is carried out."""
    first = a + b
    total = first + np.asarray(carry)
    return total, (first < a) | (total < first)


def _saturated(a: _Words, b: _Words, carry: Any) -> _Words:
    """The same of .s32, clamped to its range."""
    x, y = (np.asarray(each).view(np.int32).astype(np.int64) for each in (a, b))
    return np.clip(x + y + np.asarray(carry), -(2**31), 2**31 - 1).astype(np.int32).view(np.uint32)


_Extended = extended.add_cc | extended.addc | extended.sub_cc | extended.subc | extended.mad_cc | extended.madc


@semantics(*get_args(_Extended))
def carried(op: _Extended, binder: Binder, statement: syntax.Instruction) -> Plain:
    type = TYPES[op.type]
    unsigned = np.dtype(f"u{type.bytes}")
    subtract = isinstance(op, extended.sub_cc | extended.subc)
    reads = isinstance(op, extended.addc | extended.subc | extended.madc)
    writes = not reads or op.cc
    d = binder.destination(op.d, f"u{type.bits}")
    a, b = binder.source(op.a, type), binder.source(op.b, type)
    c = binder.source(op.c, type) if isinstance(op, extended.mad_cc | extended.madc) else None
    low = not isinstance(op, extended.mad_cc | extended.madc) or op.half == "lo"
    saturating = isinstance(op, extended.addc | extended.subc) and op.sat  # madc.hi.sat wraps (measured, H100)

    def product(x: Any, y: Any) -> _Words:
        if low:
            return np.asarray(np.asarray(x) * y)
        # Of 16-bit types, which the manual does not have, the high half of 64 bits is taken (measured, H100).
        return np.asarray(high_half(x, y, max(type.bits, 32), type.kind == "signed")).astype(numpy_type(type))

    def run(g: Group) -> None:
        if c is None:
            x, y = np.asarray(a(g)), np.asarray(b(g))
        else:
            x, y = product(a(g), b(g)), np.asarray(c(g))
        x, y = x.view(unsigned), y.view(unsigned)
        if subtract:
            y = ~y
        given = g.machine.carry[g.warps].astype(unsigned) if reads else np.array(subtract, unsigned)
        if saturating:
            d(g, _saturated(x, y, given))
            return
        total, out = _with_carry(x, y, given)
        d(g, total)
        if writes:
            g.store(g.machine.carry, np.asarray(out))

    return run
