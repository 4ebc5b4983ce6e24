"""Operations on multimem addresses. PTX ISA 9.7.9.14.

A multimem address names the same location in several devices. The emulator is one device: each of its global
addresses is also the multimem address of a multicast object with that device alone, and reducing one value gives it.
Bulk copies are in `bulk`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.checks.registry.memory import NOT_GLOBAL
from ptxgen.emulator.load.operands import Binder, Reader, numpy_type
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.access import Part, load_words, locate, parts_of, store_words
from ptxgen.emulator.memory.order import Order, level, order_of
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.atomic import change, operands_of, operation_of
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.state.group import Group
from ptxgen.instr import multimem
from ptxgen.instr.model.types import TYPES


def _parts(g: Group, space: str | None, address: Reader, statement: syntax.Instruction) -> list[Part]:
    """The access, by warps. Raises MemoryFault outside of global memory, the only one with multimem addresses."""
    parts = parts_of(g, space, np.ascontiguousarray(g.full(address(g))))
    for part in parts:
        if part.space != "global":
            raise MemoryFault(NOT_GLOBAL, f"{statement.opcode} accesses .{part.space} memory")
    return parts


@semantics(multimem.ld_reduce, multimem.ld_reduce_float)
def load(op: multimem.ld_reduce | multimem.ld_reduce_float, binder: Binder, statement: syntax.Instruction) -> Plain:
    type = TYPES[op.type]
    dtype, address = numpy_type(type), binder.address(op.a)
    destinations = [binder.destination(element, type) for element in binder.vector(op.d)]
    order = order_of(op.sem, op.scope) if op.sem not in (None, "weak") else None

    def run(g: Group) -> None:
        for space, inside, part, _ in _parts(g, op.space, address, statement):
            values = load_words(part, space, inside, dtype, len(destinations), statement, order=order)
            for destination, value in zip(destinations, values, strict=True):
                destination(part, value)

    return run


@semantics(multimem.st, multimem.st_float)
def store(op: multimem.st | multimem.st_float, binder: Binder, statement: syntax.Instruction) -> Plain:
    type = TYPES[op.type]
    dtype, address = numpy_type(type), binder.address(op.a)
    sources = [binder.source(element, type) for element in binder.vector(op.b)]
    order = order_of(op.sem, op.scope) if op.sem not in (None, "weak") else None

    def run(g: Group) -> None:
        for space, inside, part, _ in _parts(g, op.space, address, statement):
            values = [np.asarray(source(part)) for source in sources]
            store_words(part, space, inside, dtype, values, statement, order=order)

    return run


@semantics(multimem.red, multimem.red_float)
def reduce(op: multimem.red | multimem.red_float, binder: Binder, statement: syntax.Instruction) -> Plain:
    """As red: its elements are atomic separately.

    Sums of .f32 flush subnormal numbers: ptxas 13.5 makes REDG.E.ADD.F32.FTZ of both (SASS of sm_90a and sm_100a).
    """
    type, address = TYPES[op.type], binder.address(op.a)
    operation, associative, dtype = operation_of(op.op, op.type, "global", noftz=False)
    sources = [binder.source(element, type) for element in binder.vector(op.b)]
    order = order_of(op.sem, op.scope)

    def run(g: Group) -> None:
        values = [g.full(source(g)) for source in sources]
        for part in _parts(g, op.space, address, statement):
            operand = operands_of(part, values, dtype)
            size, count = dtype.itemsize, operand.shape[1]
            change(part, size, count, dtype, operation, associative, [operand], statement, order, reads=False)

    return run


@semantics(multimem.st_async, multimem.red_async)
def operate_async(op: multimem.st_async | multimem.red_async, binder: Binder, statement: syntax.Instruction) -> Plain:
    """As st.async.release and red.async.release, whose completion no instruction waits for."""
    type, address, source = TYPES[op.type], binder.address(op.a), binder.source(op.b, op.type)
    dtype = numpy_type(type)
    adds, order = isinstance(op, multimem.red_async), Order(acquires=False, releases=True, level=level(op.scope))

    def run(g: Group) -> None:
        value = g.full(source(g)).copy()
        for part in _parts(g, op.space, address, statement):
            locate(part.group, part.space, part.addresses, type.bytes, statement.opcode)
            held = value[part.chosen]

            def complete(part: Part = part, held: NDArray[Any] = held) -> None:
                if not adds:
                    store_words(part.group, part.space, part.addresses, dtype, [held], statement, order=order)
                    return
                operand = held[part.group.active][:, None].view(dtype)
                change(part, type.bytes, 1, dtype, np.add, True, [operand], statement, order, reads=False)

            g.machine.submit(int(g.machine.cta_slot[part.group.indices[0]]), statement, complete)

    return run
