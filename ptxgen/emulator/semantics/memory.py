"""Loads and stores. PTX ISA 9.7.9."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.checks.registry.memory import BULK_SIZE, NOT_GLOBAL, NOT_SHARED
from ptxgen.emulator.engines.async_stores import Work, later
from ptxgen.emulator.load.operands import Binder, Unmodelled, numpy_type
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.access import Part, load_words, locate, parameters_at, parts_of, store_words
from ptxgen.emulator.memory.located import Bytes
from ptxgen.emulator.memory.order import Order, level, order_of
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import Machine
from ptxgen.instr import memory
from ptxgen.instr.model.types import TYPES

_Mmio = memory.ld_mmio | memory.st_mmio
_ReadOnly = memory.ld_readonly | memory.ld_readonly_nc | memory.ld_nc | memory.ld_nc_keep | memory.ldu
_Load = memory.ld | memory.ld_keep | memory.ld_volatile | memory.ld_ordered | memory.ld_mmio | _ReadOnly
_Store = memory.st | memory.st_keep | memory.st_volatile | memory.st_ordered | memory.st_mmio

#: The unit of the size of st.bulk, and its alignment, in bytes.
_BULK_GRANULE = 8


def space_of(space: str | None, binder: Binder, operand: syntax.Operand) -> str | None:
    """The state space of an access with the modifier `space`, None if the address is generic.

    A name has its own space: for .param the entry's parameters or a variable on the stack, and where the instruction
    says none, that of the variable (measured: SASS of ptxas 13.5 for ld, st and atom).
    """
    location = binder.location(operand)
    base = space if space is None or space == "shared::cluster" else space.split("::")[0]
    if location is not None and (base is None or base == "param"):
        return location.space
    if base == "param" and (space == "param::func" or not binder.in_entry):
        return "local"
    return base


def _vector(
    op: _Load | _Store | memory.st_async, operand: syntax.Operand, binder: Binder
) -> tuple[syntax.Operand, ...]:
    found, required = binder.vector(operand), 1 if isinstance(op, _Mmio) else memory.elements(op)
    if len(found) != required:
        raise Unmodelled(f"{len(found)} registers for {required} elements")
    return found


def _order(op: _Load | _Store) -> Order | None:
    """None for weak accesses. Volatile and mmio ones are relaxed, or as they say, in the scope of the system (8.4)."""
    if isinstance(op, memory.ld_volatile | memory.st_volatile):
        return order_of(None, "sys")
    if isinstance(op, _Mmio):
        return order_of(op.sem, "sys")
    return order_of(op.sem, op.scope) if isinstance(op, memory.ld_ordered | memory.st_ordered) else None


@semantics(*get_args(_Load))
def load(op: _Load, binder: Binder, statement: syntax.Instruction) -> Plain:
    type = TYPES[op.type]
    dtype, halves = numpy_type(type), type.bits // 64 if type.bits == 128 else 1
    address, named = binder.address(op.a), space_of(op.space, binder, op.a)
    destinations = [binder.destination(element, type) for element in _vector(op, op.d, binder)]
    order, length = _order(op), len(destinations) * halves
    binder.strong = order is not None
    if order is not None:
        binder.program.has_strong_loads = True
    if ".nc" in statement.opcode:
        binder.program.has_read_only_loads = True

    def run(g: Group) -> None:
        given = address(g)
        if named == "param" and np.ndim(given) == 0 and (words := parameters_at(g.machine, given, dtype, length)):
            for destination, word in zip(destinations, words, strict=True):
                destination(g, word)
            return
        addresses = np.ascontiguousarray(g.full(given))
        for space, inside, part, _ in parts_of(g, named, addresses):
            values = load_words(part, space, inside, dtype, length, statement, order=order)
            if halves == 2:
                values = [np.stack(values, axis=-1)]
            for destination, value in zip(destinations, values, strict=True):
                destination(part, value)

    return run


@semantics(*get_args(_Store))
def store(op: _Store, binder: Binder, statement: syntax.Instruction) -> Plain:
    type = TYPES[op.type]
    dtype = numpy_type(type)
    address, named = binder.address(op.a), space_of(op.space, binder, op.a)
    sources = [binder.source(element, type) for element in _vector(op, op.b, binder)]
    order = _order(op)
    binder.strong = order is not None

    def run(g: Group) -> None:
        addresses = np.ascontiguousarray(g.full(address(g)))
        for space, inside, part, _ in parts_of(g, named, addresses):
            values = [np.asarray(source(part)) for source in sources]
            if type.bits == 128:
                values = [values[0][..., word] for word in range(2)]
            store_words(part, space, inside, dtype, values, statement, order=order)

    return run


@semantics(memory.st_bulk, memory.st_bulk_32)
def fill(op: memory.st_bulk | memory.st_bulk_32, binder: Binder, statement: syntax.Instruction) -> Plain:
    """Zeros, as if a thread stored them. Raises MemoryFault outside the CTA's own shared memory."""
    address, named = binder.address(op.a), space_of(op.space, binder, op.a)
    size = binder.source(op.size, "u32" if isinstance(op, memory.st_bulk_32) else "u64")

    def run(g: Group) -> None:
        machine, sizes = g.machine, g.full(size(g))
        for part in parts_of(g, named, np.ascontiguousarray(g.full(address(g)))):
            if not part.space.startswith("shared"):
                raise MemoryFault(NOT_SHARED, f"st.bulk accesses .{part.space} memory")
            for position, lane in np.argwhere(part.group.active):
                warp, start = int(part.group.indices[position]), int(part.addresses[position, lane])
                _zero(machine, warp, int(lane), start, int(sizes[part.chosen][position, lane]), statement)

    return run


def _zero(machine: Machine, warp: int, lane: int, address: int, size: int, statement: syntax.Instruction) -> None:
    slot, start = machine.clusters.locate(warp, address, "shared")
    if size % _BULK_GRANULE:
        raise MemoryFault(
            BULK_SIZE,
            f"st.bulk of {size} bytes",
            rule=f"The size of st.bulk must be a multiple of {_BULK_GRANULE} bytes",
        )
    machine.shared.require(start, size, _BULK_GRANULE, "st.bulk")
    machine.shared.data[slot, start : start + size] = 0
    machine.effects += 1
    if size:
        machine.events.block_stored(warp, lane, slot, start, size, statement)


# Asynchronous stores.


@semantics(memory.st_async)
def store_async(op: memory.st_async, binder: Binder, statement: syntax.Instruction) -> Plain:
    type = TYPES[op.type]
    dtype, size = numpy_type(type), type.bytes * memory.elements(op)
    address, named, barrier = binder.address(op.a), space_of(op.space, binder, op.a), binder.address(op.mbar)
    sources = [binder.source(element, type) for element in _vector(op, op.b, binder)]

    def run(g: Group) -> None:
        values = _halves(g, [source(g) for source in sources], type.bits)
        barriers = g.full(barrier(g))
        for part in parts_of(g, named, np.ascontiguousarray(g.full(address(g)))):
            held = [value[part.chosen] for value in values]

            def work(places: Bytes, held: list[NDArray[Any]] = held) -> Work:
                words, index = places.data.view(dtype), places.offsets // dtype.itemsize

                def do(lanes: NDArray[np.bool_]) -> None:
                    for i, value in enumerate(held):
                        words[index[lanes] + i] = value[lanes]

                return do

            later(part, barriers[part.chosen], named, size, statement, "st.async", work)

    return run


def _halves(g: Group, values: list[Any], bits: int) -> list[NDArray[Any]]:
    """The words to store, all lanes of each; 128 bits are two."""
    arrays = [np.asarray(value) for value in values]
    return [arrays[0][..., word] for word in range(2)] if bits == 128 else [g.full(array) for array in arrays]


@semantics(memory.st_async_release, memory.st_async_mmio)
def store_async_release(
    op: memory.st_async_release | memory.st_async_mmio, binder: Binder, statement: syntax.Instruction
) -> Plain:
    type = TYPES[op.type]
    dtype = numpy_type(type)
    address, named, source = binder.address(op.a), space_of(op.space, binder, op.a), binder.source(op.b, type)
    order = Order(acquires=False, releases=True, level=level(op.scope))

    def run(g: Group) -> None:
        value = g.full(source(g)).copy()
        for part in parts_of(g, named, np.ascontiguousarray(g.full(address(g)))):
            if part.space != "global":
                raise MemoryFault(NOT_GLOBAL, f"st.async.release accesses .{part.space} memory")
            held = [value[part.chosen]]
            locate(part.group, part.space, part.addresses, dtype.itemsize, "st.async")

            def complete(part: Part = part, held: list[NDArray[Any]] = held) -> None:
                store_words(part.group, part.space, part.addresses, dtype, held, statement, order=order)

            g.machine.submit(int(g.machine.cta_slot[part.group.indices[0]]), statement, complete)

    return run
