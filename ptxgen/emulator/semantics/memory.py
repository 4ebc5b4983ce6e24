"""Loads and stores. PTX ISA 9.7.9."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.access import load_words, parts_of, store_words
from ptxgen.emulator.group import Group
from ptxgen.emulator.registers import Binder, Unmodelled, numpy_type
from ptxgen.emulator.semantics import meaning
from ptxgen.instr import memory
from ptxgen.instr.types import TYPES

_Run = Callable[[Group], None]


def space_of(op: Any, binder: Binder, operand: syntax.Operand) -> str | None:
    """The state space of an access, None if the address is generic.

    A name tells its own space: of .param the entry's parameters or a variable on the stack, and where the instruction
    says none, that of the variable (measured: SASS of ptxas 13.5 for ld, st and atom).
    """
    place = binder.place(operand)
    space = op.space if op.space in (None, "shared::cluster") else op.space.split("::")[0]
    if place is not None and (space is None or space == "param"):
        return place.space
    if space == "param" and (op.space == "param::func" or not binder.in_entry):
        return "local"
    return space


def _vector(op: Any, operand: syntax.Operand, binder: Binder) -> tuple[syntax.Operand, ...]:
    found, wanted = binder.vector(operand), memory.elements(op)
    if len(found) != wanted:
        raise Unmodelled(f"{len(found)} registers for {wanted} elements")
    return found


#: Loads and stores that order nothing.
_WEAK = (
    memory.ld, memory.ld_keep, memory.ld_readonly, memory.ld_readonly_nc, memory.ld_nc, memory.ld_nc_keep, memory.ldu,
    memory.st, memory.st_keep,
)  # fmt: skip


@meaning(
    memory.ld, memory.ld_keep, memory.ld_volatile, memory.ld_ordered, memory.ld_readonly, memory.ld_readonly_nc,
    memory.ld_nc, memory.ld_nc_keep, memory.ldu,
)  # fmt: skip
def load(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    type = TYPES[op.type]
    dtype, words = numpy_type(type), type.bits // 64 if type.bits == 128 else 1
    address, named = binder.address(op.a), space_of(op, binder, op.a)
    destinations = [binder.destination(element, type) for element in _vector(op, op.d, binder)]
    strong = not isinstance(op, _WEAK)

    def run(g: Group) -> None:
        addresses = np.ascontiguousarray(g.full(address(g)))
        for space, inside, part, _ in parts_of(g, named, addresses):
            values = load_words(part, space, inside, dtype, len(destinations) * words, statement, strong=strong)
            if words == 2:
                values = [np.stack(values, axis=-1)]
            for destination, value in zip(destinations, values, strict=True):
                destination(part, value)

    return run


@meaning(memory.st, memory.st_keep, memory.st_volatile, memory.st_ordered)
def store(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    type = TYPES[op.type]
    dtype = numpy_type(type)
    address, named = binder.address(op.a), space_of(op, binder, op.a)
    sources = [binder.source(element, type) for element in _vector(op, op.b, binder)]
    strong = not isinstance(op, _WEAK)

    def run(g: Group) -> None:
        addresses = np.ascontiguousarray(g.full(address(g)))
        for space, inside, part, _ in parts_of(g, named, addresses):
            values = [np.asarray(source(part)) for source in sources]
            if type.bits == 128:
                values = [values[0][..., word] for word in range(2)]
            store_words(part, space, inside, dtype, values, statement, strong=strong)

    return run
