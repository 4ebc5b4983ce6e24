"""Loads and stores. PTX ISA 9.7.9.

Caching, ordering and scope have no effect on values here: the emulator executes accesses one instruction at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.checks.happens_before import UNIT
from ptxgen.emulator.group import Group
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.global_memory import PARAM_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from ptxgen.emulator.registers import Binder, Unmodelled, numpy_type
from ptxgen.emulator.semantics import meaning
from ptxgen.instr import memory
from ptxgen.instr.types import TYPES

_Run = Callable[[Group], None]
_Values = Sequence[NDArray[Any]]


def space_of(addresses: NDArray[np.int64], active: NDArray[np.bool_]) -> list[tuple[str, NDArray[np.bool_]]]:
    """The state spaces of generic addresses, each with its lanes."""
    shared = active & (addresses >= SHARED_WINDOW) & (addresses < SHARED_WINDOW + WINDOW_BYTES)
    parameter = active & (addresses >= PARAM_WINDOW) & (addresses < PARAM_WINDOW + WINDOW_BYTES)
    rest = active & ~shared & ~parameter
    return [
        (name, lanes) for name, lanes in (("shared", shared), ("param", parameter), ("global", rest)) if lanes.any()
    ]


def load_words(
    g: Group,
    space: str,
    addresses: NDArray[np.int64],
    dtype: np.dtype[Any],
    count: int,
    statement: syntax.Instruction,
    *,
    strong: bool = False,
) -> _Values:
    """`count` neighbouring values per lane from a state space; addresses are those of the space.

    A strong load (volatile, relaxed, acquire) synchronises with the strong store that it reads.
    """
    machine, mask, size = g.machine, g.mask, dtype.itemsize
    if space == "global":
        offsets = machine.memory.offsets(addresses.view(np.uint64), size * count, mask, "a load")
        words = machine.memory.data.view(dtype)
    elif space == "param":
        return _load_parameters(g, addresses, dtype, count)
    else:
        slots, inside = machine.clusters.locate_all(g.indices, addresses, mask, space)
        inside = machine.shared.offsets(inside, size * count, mask, "a load")
        if not strong:
            track_shared(g, slots, inside, size * count, statement, write=False)
        offsets = inside + slots * machine.shared.pitch
        words = machine.shared.data.reshape(-1).view(dtype)
    if strong:
        synchronise(g, space, addresses, g.machine.subscribe)
    index = offsets // size
    return [words[index + i] for i in range(count)]


def _load_parameters(g: Group, addresses: NDArray[np.int64], dtype: np.dtype[Any], count: int) -> _Values:
    size, block = dtype.itemsize, g.machine.parameters
    limit = len(block) - 64
    used = np.unique(addresses[g.active])
    if used.size and (used[0] < 0 or used[-1] + size * count > limit):
        raise MemoryFault(
            "out-of-bounds", f"a load at byte {int(used[-1])} of the kernel's {limit} bytes of parameters"
        )
    if ((used & (size * count - 1)) != 0).any():
        raise MemoryFault("misaligned", f"a load of {size * count} bytes at byte {int(used[0])} of the parameters")
    index = np.clip(addresses, 0, limit)[..., None] + np.arange(size * count)
    raw = block[np.minimum(index, len(block) - 1)].view(dtype)
    return [raw[..., i] for i in range(count)]


def store_words(
    g: Group,
    space: str,
    addresses: NDArray[np.int64],
    dtype: np.dtype[Any],
    values: _Values,
    statement: syntax.Instruction,
    *,
    strong: bool = False,
) -> None:
    """Neighbouring values per lane to a state space; of lanes that hit the same bytes the last one wins."""
    machine, size = g.machine, dtype.itemsize
    machine.effects += 1
    total = size * len(values)
    if space == "global":
        offsets = machine.memory.offsets(addresses.view(np.uint64), total, g.mask, "a store")
        words = machine.memory.data.view(dtype)
    elif space == "param":
        raise MemoryFault("read-only", "a store to the kernel's parameters")
    else:
        slots, inside = machine.clusters.locate_all(g.indices, addresses, g.mask, space)
        inside = machine.shared.offsets(inside, total, g.mask, "a store")
        track_shared(g, slots, inside, total, statement, write=True, strong=strong)
        offsets = inside + slots * machine.shared.pitch
        words = machine.shared.data.reshape(-1).view(dtype)
    if strong:
        synchronise(g, space, addresses, g.machine.publish)
    index = offsets // size
    for i, value in enumerate(values):
        full = np.broadcast_to(value, index.shape)
        if g.mask is None:
            words[index + i] = full
        else:
            words[index[g.mask] + i] = full[g.mask]


def track_shared(
    g: Group,
    slots: NDArray[np.int64],
    offsets: NDArray[np.int64],
    size: int,
    statement: syntax.Instruction,
    *,
    write: bool,
    strong: bool = False,
) -> None:
    """Tell the checks which units of which CTA's memory each warp touches (`Clusters.locate_all`); strong accesses
    race with nothing.
    """
    ordering = g.machine.ordering
    if ordering is None:
        return
    active = g.active
    apart = slots.shape[1] > 1
    for position, row in enumerate(g.indices):
        lanes = active[position]
        first = offsets[position][lanes]
        reached = slots[position][lanes] if apart else slots[position]
        for slot in np.unique(reached) if apart else reached:
            touched = first[reached == slot] if apart else first
            # An access is aligned to its size, at most 16 bytes: it lies in one unit.
            units, place = np.unique(touched // UNIT, return_inverse=True)
            masks = np.zeros(len(units), np.uint16)
            np.bitwise_or.at(masks, place, np.left_shift((1 << size) - 1, touched % UNIT).astype(np.uint16))
            if strong:
                ordering.strong_write(int(row), units, masks, int(slot))
            else:
                (ordering.write if write else ordering.read)(int(row), units, masks, statement, int(slot))


def synchronise(g: Group, space: str, addresses: NDArray[np.int64], how: Callable[[int, int, str, int], None]) -> None:
    """Publish at, or subscribe to, the words that strong accesses touch."""
    if g.machine.ordering is not None:
        active, clusters = g.active, g.machine.clusters
        for position, row in enumerate(g.indices):
            for address in np.unique(addresses[position][active[position]]):
                slot, place = -1, int(address)
                if space != "global":
                    slot, place = clusters.locate(int(row), place, space)
                how(int(row), slot, space.split("::")[0], place)


def _each_space(
    g: Group, space: str | None, addresses: NDArray[np.int64]
) -> list[tuple[str, NDArray[np.int64], Group]]:
    """(space, addresses in it, lanes) of an access."""
    if space is not None:
        return [(space if space == "shared::cluster" else space.split("::")[0], addresses, g)]
    parts = []
    for name, lanes in space_of(addresses, g.active):
        part = g.narrowed(lanes)
        assert part is not None
        chosen = addresses[np.isin(g.indices, part.indices)]
        reached = "shared::cluster" if name == "shared" else name
        parts.append((reached, chosen - {"shared": SHARED_WINDOW, "param": PARAM_WINDOW, "global": 0}[name], part))
    return parts


def _modelled(space: str | None) -> None:
    if space is not None and space.split("::")[0] not in ("global", "shared", "param"):
        raise Unmodelled(f".{space} memory")
    if space == "param::func":
        raise Unmodelled("parameters of functions")


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
    _modelled(op.space)
    type = TYPES[op.type]
    if type.bits == 128:
        raise Unmodelled("128-bit loads of one register")
    dtype = numpy_type(type)
    address = binder.address(op.a)
    destinations = [binder.destination(element, type) for element in _vector(op, op.d, binder)]
    strong = not isinstance(op, _WEAK)

    def run(g: Group) -> None:
        addresses = np.ascontiguousarray(g.full(address(g)))
        for space, inside, part in _each_space(g, op.space, addresses):
            values = load_words(part, space, inside, dtype, len(destinations), statement, strong=strong)
            for destination, value in zip(destinations, values, strict=True):
                destination(part, value)

    return run


@meaning(memory.st, memory.st_keep, memory.st_volatile, memory.st_ordered)
def store(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    _modelled(op.space)
    type = TYPES[op.type]
    if type.bits == 128:
        raise Unmodelled("128-bit stores of one register")
    dtype = numpy_type(type)
    address = binder.address(op.a)
    sources = [binder.source(element, type) for element in _vector(op, op.b, binder)]
    strong = not isinstance(op, _WEAK)

    def run(g: Group) -> None:
        addresses = np.ascontiguousarray(g.full(address(g)))
        for space, inside, part in _each_space(g, op.space, addresses):
            values = [np.asarray(source(part)) for source in sources]
            store_words(part, space, inside, dtype, values, statement, strong=strong)

    return run
