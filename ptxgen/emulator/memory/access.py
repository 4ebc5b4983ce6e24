"""How instructions access memory: state spaces of generic addresses, checked locations, loads and stores.

The emulator executes accesses one instruction at a time, and caching has no effect on values. Where strong loads may
return stale values, a policy says which (`strong_loads`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.arrays import any_set, count_nonzero
from ptxgen.emulator.checks.registry.memory import READ_ONLY
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.global_memory import (
    CODE_WINDOW,
    CONST_WINDOW,
    LOCAL_WINDOW,
    PARAM_WINDOW,
    SHARED_WINDOW,
    WINDOW_BYTES,
)
from ptxgen.emulator.memory.located import Bytes, MemoryAccess
from ptxgen.emulator.memory.order import Order
from ptxgen.emulator.memory.shared_memory import RESERVED_BYTES
from ptxgen.emulator.native.library import chosen, pointer_to
from ptxgen.emulator.state.group import Group, spread

if TYPE_CHECKING:
    from ptxgen.emulator.state.machine import Machine

#: Where state spaces lie in the generic address space. Global addresses are generic addresses.
WINDOWS = {"shared": SHARED_WINDOW, "param": PARAM_WINDOW, "local": LOCAL_WINDOW, "const": CONST_WINDOW, "global": 0}
_READ_ONLY = {"param": "the kernel's parameters", "const": "constant memory"}


class Part(NamedTuple):
    """The lanes of an access that go to one state space: their addresses there, and which warps of the whole."""

    space: str
    addresses: NDArray[np.int64]
    group: Group
    chosen: NDArray[np.bool_] | slice


def in_window(addresses: NDArray[np.int64], space: str) -> NDArray[np.bool_]:
    """Which generic addresses lie in the window of a state space; in global memory are those in none."""
    if space != "global":
        return (addresses >= WINDOWS[space]) & (addresses < WINDOWS[space] + WINDOW_BYTES)
    return (addresses < CODE_WINDOW) | (addresses >= SHARED_WINDOW + WINDOW_BYTES)


def parts_of(g: Group, space: str | None, addresses: NDArray[np.int64]) -> list[Part]:
    """An access by state spaces: one, or with generic addresses each that occurs."""
    if space is not None:
        return [Part(space, addresses, g, slice(None))]
    parts: list[Part] = []
    rest = g.active
    for name in WINDOWS:
        lanes = rest & in_window(addresses, name) if name != "global" else rest
        part = g.narrowed(lanes) if any_set(lanes) else None
        if part is not None:
            chosen = np.isin(g.indices, part.indices)
            parts.append(
                Part("shared::cluster" if name == "shared" else name, addresses[chosen] - WINDOWS[name], part, chosen)
            )
            rest = rest & ~lanes
    return parts


def locate(g: Group, space: str, addresses: NDArray[np.int64], size: int, what: str) -> Bytes:
    """The bytes of accesses of `size` bytes, a power of two; those of masked lanes are somewhere legal.

    Raises MemoryFault, with the thread, where an access is misaligned or outside memory.
    """
    try:
        return _locate(g, space, addresses, size, what)
    except MemoryFault as fault:
        if fault.place is not None:
            position, lane = fault.place
            warp, address = int(g.indices[position]), int(addresses[position, lane])
            fault.summary += f", by lane {lane} of {g.machine.warp_name(warp)}"
            own = space in ("shared", "shared::cta") and not fault.fix
            if own and fault.rule and (past := g.machine.shared_names.past(address)):
                fault.rule += f"; {past}"
            fault.accesses = (
                g.machine.findings.access("accessor", None, warp, lanes=1 << lane, space=space, address=address),
            )
        raise


def _locate(g: Group, space: str, addresses: NDArray[np.int64], size: int, what: str) -> Bytes:
    machine = g.machine
    if space == "global":
        return Bytes(machine.memory.data, machine.memory.offsets(addresses.view(np.uint64), size, g.mask, what))
    if space.startswith("shared"):
        if machine.clusters.size == 1 and (found := _in_own_memory(g, addresses, size)) is not None:
            return found
        slots, inside = machine.clusters.locate_all(g.indices, addresses, g.mask, space)
        inside = machine.shared.offsets(inside, size, g.mask, what)
        return Bytes(machine.shared.data.reshape(-1), inside + slots * machine.shared.pitch, slots, inside)
    if space == "local":
        inside = machine.stack.offsets(g, addresses, size, what)
        threads = g.indices[:, None] * 32 + np.arange(32)
        return Bytes(machine.stack.memory.data.reshape(-1), inside + threads * machine.stack.memory.pitch)
    bank = machine.banks[space]
    return Bytes(bank.data, bank.offsets(addresses, size, g.mask, what))


def _in_own_memory(g: Group, addresses: NDArray[np.int64], size: int) -> Bytes | None:
    """Accesses to shared memory by machine code; None without it, or where there is something to raise."""
    library, machine, mask = chosen(), g.machine, g.mask
    if library is None or not addresses.flags.c_contiguous or addresses.itemsize != 8:
        return None
    shared = machine.shared
    slots: NDArray[np.int64] = machine.cta_slot[g.indices]
    lanes = None if mask is None else np.ascontiguousarray(mask)
    bases = slots * shared.pitch
    inside, offsets = np.empty(addresses.shape, np.int64), np.empty(addresses.shape, np.int64)
    bad = library.shared_offsets(
        pointer_to(addresses),
        None if lanes is None else pointer_to(lanes),
        addresses.size,
        WINDOW_BYTES,
        RESERVED_BYTES,
        shared.size,
        size,
        pointer_to(bases),
        pointer_to(inside),
        pointer_to(offsets),
    )
    return None if bad else Bytes(shared.data.reshape(-1), offsets, slots[:, None], inside)


def load_words(
    g: Group,
    space: str,
    addresses: NDArray[np.int64],
    dtype: np.dtype[Any],
    count: int,
    statement: syntax.Instruction,
    *,
    order: Order | None = None,
    measured: bool = True,
) -> list[NDArray[Any]]:
    """`count` neighboring values per lane from a state space; addresses are those of the space.

    A strong load (volatile, relaxed, acquire) has an order. Without `measured` its cost does not count: hardware would
    access other addresses.
    """
    machine, size = g.machine, dtype.itemsize
    total = size * count
    places = locate(g, space, addresses, total, "a load")
    data, offsets = places.data, places.offsets
    access = MemoryAccess(g.indices, g.mask, space, places, total, statement, order)
    if measured:
        machine.events.memory_requested(access)
    values = _gathered(data, offsets, dtype, count)
    if order is not None:
        machine.effects += machine.strong_loads.replace(access, values)
    elif machine.perturbation is not None:
        machine.perturbation.loaded(access, values)
        if statement.line in machine.perturbation.stale:
            machine.effects += machine.strong_loads.replace(access, values)
    machine.events.memory_loads(access)
    return values


def parameters_at(machine: Machine, address: Any, dtype: np.dtype[Any], count: int) -> list[NDArray[Any]] | None:
    """`count` neighboring values, the same for all lanes, of the kernel's parameters: no check has anything to say of
    such a load. None where an observer besides the checks has to see it, or it is a fault.
    """
    if machine.is_observed:
        return None
    bank, size, start = machine.banks["param"], dtype.itemsize * count, int(address)
    if start < 0 or start > bank.size - size or start % size or dtype.itemsize > 8:
        return None
    return [word.reshape(()) for word in bank.data[start : start + size].view(dtype)[:, None]]


def _gathered(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], dtype: np.dtype[Any], count: int
) -> list[NDArray[Any]]:
    """`count` neighboring values of a type at each of some offsets in memory."""
    library, size = chosen(), dtype.itemsize
    if library is None or not offsets.flags.c_contiguous:
        words, index = data.view(dtype), offsets // size
        return [words[index + i] for i in range(count)]
    values = np.empty((count, *offsets.shape), dtype)
    library.gather(pointer_to(data), pointer_to(offsets), offsets.size, size, count, pointer_to(values))
    return list(values)


def store_words(
    g: Group,
    space: str,
    addresses: NDArray[np.int64],
    dtype: np.dtype[Any],
    values: Sequence[NDArray[Any]],
    statement: syntax.Instruction,
    *,
    order: Order | None = None,
    measured: bool = True,
) -> None:
    """Neighboring values per lane to a state space; of lanes that hit the same bytes the last one wins.

    A strong store (volatile, relaxed, release) has an order.
    """
    machine, size = g.machine, dtype.itemsize
    total = size * len(values)
    if space in _READ_ONLY:
        raise MemoryFault(READ_ONLY, f"a store to {_READ_ONLY[space]}")
    places = locate(g, space, addresses, total, "a store")
    data, offsets = places.data, places.offsets
    access = MemoryAccess(g.indices, g.mask, space, places, total, statement, order)
    if measured:
        machine.events.memory_requested(access)
    machine.events.memory_stores(access, values)
    words, index = data.view(dtype), offsets // size
    changed = False  # a store of the same value is no effect: threads that poll may store what they read
    for i, value in enumerate(values):
        full = spread(np.asarray(value), index.shape)
        at = index + i
        if g.mask is not None:
            at, full = at[g.mask], full[g.mask]
        changed = changed or bool(count_nonzero(words[at] != full))
        words[at] = full
    if space != "local":  # which no other thread sees
        machine.effects += changed
        machine.stores += 1
    if order is not None:
        machine.events.strong_stores_done(data, None)
