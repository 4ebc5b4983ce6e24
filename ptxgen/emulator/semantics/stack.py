"""Memory on the stack of a thread. PTX ISA 9.7.17. The stack pointer is an address in .local."""

from __future__ import annotations

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks.registry import calls
from ptxgen.emulator.load.operands import Binder
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.state.group import Group
from ptxgen.instr import stack


@semantics(stack.alloca)
def allocate(op: stack.alloca, binder: Binder, statement: syntax.Instruction) -> Plain:
    """The allocation lasts until the function returns, or until an earlier stack pointer is restored."""
    size, pointer = binder.source(op.size, op.type), binder.destination(op.ptr, op.type)
    align = int(op.align.evaluate()) if op.align is not None else 8

    def run(g: Group) -> None:
        held = g.machine.stack
        first = held.pointer[g.warps]
        start = (first + (align - 1)) & -align
        wanted = g.full(size(g)).astype(np.int64)
        held.extend(g, start + wanted - first)
        pointer(g, start.astype(np.uint64))

    return run


@semantics(stack.stacksave)
def save(op: stack.stacksave, binder: Binder, statement: syntax.Instruction) -> Plain:
    d = binder.destination(op.d, op.type)
    return lambda g: d(g, g.machine.stack.pointer[g.warps].astype(np.uint64))


@semantics(stack.stackrestore)
def restore(op: stack.stackrestore, binder: Binder, statement: syntax.Instruction) -> Plain:
    a = binder.source(op.a, op.type)

    def run(g: Group) -> None:
        held = g.machine.stack
        to = g.full(a(g)).astype(np.int64)
        wrong = ((to < held.frame[g.warps]) | (to > held.pointer[g.warps])) & g.active
        if any_set(wrong):
            raise MemoryFault(
                calls.BAD_STACK_POINTER,
                f"stackrestore to {int(to[wrong][0]):#x}",
                rule="No stacksave of this function returned it",
            )
        g.store(held.pointer, to)

    return run
