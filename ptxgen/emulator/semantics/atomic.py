"""Atomic operations on memory. PTX ISA 9.7.13.5 to 9.7.13.7.

Lanes that access the same address take turns in the order of warps and lanes, under the schedule `random` in a random
one. The elements of vectors and of packed values are atomic separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.dtypes import scalar_type
from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks.registry.memory import ATOMIC_SPACE, NOT_GLOBAL
from ptxgen.emulator.engines.async_stores import Work, later
from ptxgen.emulator.load.operands import Binder, Writer, numpy_type
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.access import Part, locate, parts_of
from ptxgen.emulator.memory.atomics import Operation, accumulate, swap, update
from ptxgen.emulator.memory.located import Bytes, MemoryAccess
from ptxgen.emulator.memory.order import Order, level, order_of
from ptxgen.emulator.memory.reductions import canonical, decrement, greater, increment, lesser
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.semantics.memory import space_of
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import Machine
from ptxgen.instr import atomic
from ptxgen.instr.model.types import TYPES

_Words = NDArray[Any]

#: The elements of floating-point types.
_FLOATS: dict[str, Any] = {
    name: scalar_type(name.removesuffix("x2")) for name in ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64")
}
_BITWISE: dict[str, Operation] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
#: Associative operations on integers.
_ASSOCIATIVE: dict[str, Operation] = {
    **_BITWISE, "add": np.add, "min": np.minimum, "max": np.maximum, "exch": lambda old, new: new,
}  # fmt: skip


def _swap_if(old: _Words, expected: _Words, new: _Words) -> _Words:
    same = old == expected
    return np.where(same.all(axis=-1, keepdims=True) if old.ndim == 2 else same, new, old)


def _sum(old: _Words, value: _Words) -> _Words:
    """A rounded sum: of 16-bit floats it is exact in 32 bits up to where it rounds, so that it rounds once."""
    return canonical(old + value)


def _double_sum(old: _Words, value: _Words) -> _Words:
    """As add.f64 does it in global memory: a NaN comes back as it is, signaling too (measured, H200)."""
    with np.errstate(invalid="ignore"):
        total = old + value
    total = np.where(np.isnan(total), np.uint64(0xFFF8 << 48).view(np.float64), total)
    return np.where(np.isnan(value), value, np.where(np.isnan(old), old, total))


def _flushed_sum(old: _Words, value: _Words) -> _Words:
    """As atom.add.f32 does it in global memory: subnormal inputs and results become zeros of their sign."""
    return canonical(_flush(_flush(old) + _flush(value)))


def _flush(value: _Words) -> _Words:
    tiny = np.abs(value) < np.finfo(np.float32).tiny
    return np.where(tiny, np.copysign(np.float32(0), value), value)


def operation_of(op: str, type: str, space: str | None, noftz: bool) -> tuple[Operation, bool, np.dtype[Any]]:
    """What an operation does to words, whether it is associative, and the type in which it computes."""
    if type in _FLOATS:
        dtype = np.dtype(_FLOATS[type])
        if op != "add":
            return (lesser if op == "min" else greater), False, dtype
        if space == "global" and (type == "f64" or (type == "f32" and not noftz)):
            return (_double_sum if type == "f64" else _flushed_sum), False, dtype
        return _sum, False, dtype
    dtype = numpy_type(TYPES[type])
    if op in ("inc", "dec"):
        return (increment if op == "inc" else decrement), False, dtype
    return _ASSOCIATIVE[op], True, dtype


def turns(machine: Machine, lanes: int) -> NDArray[np.int64] | None:
    """The order in which some lanes take their turns, None for their own."""
    if machine.timeline.schedule != "random" or lanes < 2:
        return None
    return np.random.default_rng(machine.timeline.random.getrandbits(64)).permutation(lanes)


def apply(
    machine: Machine,
    words: _Words,
    index: NDArray[np.int64],
    order: NDArray[np.int64] | None,
    operation: Operation,
    associative: bool,
    *operands: _Words,
) -> _Words:
    """Change words for each lane in its turn; gives what the lanes found."""
    lanes = slice(None) if order is None else order
    at = index[lanes]
    before = words[at]
    found = np.empty((len(index), *words.shape[1:]), words.dtype)
    given = [operand[lanes] for operand in operands]
    if operation is _swap_if and words.ndim == 1:
        found[lanes] = swap(words, at, *given)
    else:
        found[lanes] = (accumulate if associative else update)(words, at, operation, *given)
    raw = f"V{words.dtype.itemsize}"
    machine.effects += any_set(words[at].view(raw) != before.view(raw))
    return found


_Atom = atomic.atom | atomic.atom_add_noftz | atomic.atom_vector | atomic.atom_vector_half | atomic.atom_vector_packed
#: Atomic operations without a result.
_Red = atomic.red | atomic.red_add_noftz | atomic.red_vector | atomic.red_vector_half | atomic.red_vector_packed
#: Operations on one value: any; and operations that only add.
_Scalar = atomic.atom | atomic.red
_Sum = atomic.atom_add_noftz | atomic.atom_vector | atomic.red_add_noftz | atomic.red_vector


def change(
    part: Part,
    size: int,
    count: int,
    dtype: np.dtype[Any],
    operation: Operation,
    associative: bool,
    operands: Sequence[_Words],
    statement: syntax.Instruction,
    order: Order,
    *,
    reads: bool = True,
    uses: bool = True,
) -> _Words:
    """Do an operation for the active lanes of a part, on `count` neighboring elements of `size` bytes each.

    `operands` are (lanes, count); so is the result, what the lanes found. It `reads` if it gives that back (red does
    not), and `uses` the old value (exch does not).
    """
    g, machine = part.group, part.group.machine
    if part.space not in ("global", "shared", "shared::cluster"):
        raise MemoryFault(ATOMIC_SPACE, f"an atomic operation accesses .{part.space} memory")
    places = locate(g, part.space, part.addresses, size * count, "an atomic operation")
    data, offsets = places.data, places.offsets
    taking = turns(machine, int(g.active.sum()))
    access = MemoryAccess(g.indices, g.mask, part.space, places, size * count, statement, order)
    words = data.view(np.uint64).reshape(-1, 2) if size == 16 else data.view(dtype)
    index = offsets[g.active] // size
    older = None
    if reads and count == 1 and size < 16:
        older = machine.strong_loads.poll(
            access, words[index], lambda old: operation(old, *(operand[:, 0] for operand in operands))
        )
    machine.events.memory_updates(access, taking, returns=reads, uses=uses)
    found = [
        apply(machine, words, index + i, taking, operation, associative, *(operand[:, i] for operand in operands))
        for i in range(count)
    ]
    machine.events.strong_stores_done(data, found[0] if count == 1 else None)
    machine.effects += older is not None
    return np.stack(found if older is None else [older], axis=1)


@semantics(*get_args(_Atom | _Red))
def modify(op: _Atom | _Red, binder: Binder, statement: syntax.Instruction) -> Plain:
    type = TYPES[op.type]
    kind = "add" if isinstance(op, _Sum) else op.op
    noftz = op.noftz if isinstance(op, atomic.atom_vector | atomic.red_vector) else not isinstance(op, _Scalar)
    address, named = binder.address(op.a), space_of(op.space, binder, op.a)
    registers = binder.vector(op.b)
    sources = [binder.source(each, type) for each in registers]
    reads, uses = isinstance(op, _Atom), kind != "exch"
    results = [binder.destination(each, type) for each in binder.vector(op.d)] if isinstance(op, _Atom) else []
    order = order_of(op.sem, op.scope)
    binder.strong = True

    def run(g: Group) -> None:
        values = [_full(g, source(g)) for source in sources]
        addresses = np.ascontiguousarray(g.full(address(g)))
        for part in parts_of(g, named, addresses):
            operation, associative, dtype = operation_of(kind, op.type, part.space, noftz)
            operand = operands_of(part, values, dtype)
            size = 16 if type.bits == 128 else dtype.itemsize
            found = change(
                part,
                size,
                operand.shape[1],
                dtype,
                operation,
                associative,
                [operand],
                statement,
                order,
                reads=reads,
                uses=uses,
            )
            _give(part, results, found, numpy_type(type))

    return run


def _full(g: Group, value: Any) -> _Words:
    """Values of all lanes: (warps, 32), of 128 bits (warps, 32, 2)."""
    value = np.asarray(value)
    return value if value.ndim == 3 else g.full(value)


def operands_of(part: Part, values: Sequence[_Words], dtype: np.dtype[Any]) -> _Words:
    """The registers of the active lanes as elements: (lanes, elements), of 128 bits (lanes, 1, 2)."""
    lanes = np.stack([value[part.chosen][part.group.active] for value in values], axis=1)
    return lanes if lanes.ndim == 3 else lanes.view(dtype)


def _give(part: Part, results: Sequence[Writer], found: _Words, dtype: np.dtype[Any]) -> None:
    """Write what the lanes found to their registers."""
    g = part.group
    words = found if found.ndim == 3 else np.ascontiguousarray(found).view(dtype)
    for i, result in enumerate(results):
        full = np.zeros((g.size, 32, *words.shape[2:]), words.dtype)
        full[g.active] = words[:, i]
        result(g, full)


@semantics(atomic.atom_cas)
def compare_and_swap(op: atomic.atom_cas, binder: Binder, statement: syntax.Instruction) -> Plain:
    type = TYPES[op.type]
    address, named = binder.address(op.a), space_of(op.space, binder, op.a)
    expected, new, result = binder.source(op.b, type), binder.source(op.c, type), binder.destination(op.d, type)
    binder.strong = True
    dtype, order = numpy_type(type), order_of(op.sem, op.scope)

    def run(g: Group) -> None:
        values = [_full(g, expected(g)), _full(g, new(g))]
        addresses = np.ascontiguousarray(g.full(address(g)))
        for part in parts_of(g, named, addresses):
            operands = [operands_of(part, [value], dtype) for value in values]
            found = change(part, type.bytes, 1, dtype, _swap_if, False, operands, statement, order)
            _give(part, [result], found, dtype)

    return run


@semantics(atomic.red_async)
def reduce_async(op: atomic.red_async, binder: Binder, statement: syntax.Instruction) -> Plain:
    type = TYPES[op.type]
    address, named, barrier = binder.address(op.a), space_of(op.space, binder, op.a), binder.address(op.mbar)
    operation, associative, dtype = operation_of(op.op, op.type, "shared", noftz=False)
    source = binder.source(op.b, type)

    def run(g: Group) -> None:
        value, barriers = g.full(source(g)).copy(), g.full(barrier(g))
        for part in parts_of(g, named, np.ascontiguousarray(g.full(address(g)))):
            held = value[part.chosen]

            def work(places: Bytes, held: _Words = held) -> Work:
                words, index = places.data.view(dtype), places.offsets // dtype.itemsize

                def do(lanes: NDArray[np.bool_]) -> None:
                    order = turns(g.machine, int(lanes.sum()))
                    apply(g.machine, words, index[lanes], order, operation, associative, held[lanes])

                return do

            later(part, barriers[part.chosen], named, type.bytes, statement, "red.async", work)

    return run


@semantics(atomic.red_async_release, atomic.red_async_mmio)
def reduce_async_release(
    op: atomic.red_async_release | atomic.red_async_mmio, binder: Binder, statement: syntax.Instruction
) -> Plain:
    type = TYPES[op.type]
    address, named, source = binder.address(op.a), space_of(op.space, binder, op.a), binder.source(op.b, type)
    operation, associative, dtype = operation_of(op.op, op.type, "global", noftz=False)
    order = Order(acquires=False, releases=True, level=level(op.scope))

    def run(g: Group) -> None:
        value = g.full(source(g)).copy()
        for part in parts_of(g, named, np.ascontiguousarray(g.full(address(g)))):
            if part.space != "global":
                raise MemoryFault(NOT_GLOBAL, f"red.async.release accesses .{part.space} memory")
            operand = operands_of(part, [value], dtype)
            locate(part.group, part.space, part.addresses, type.bytes, "red.async")

            def complete(part: Part = part, operand: _Words = operand) -> None:
                change(part, type.bytes, 1, dtype, operation, associative, [operand], statement, order, reads=False)

            g.machine.submit(int(g.machine.cta_slot[part.group.indices[0]]), statement, complete)

    return run
