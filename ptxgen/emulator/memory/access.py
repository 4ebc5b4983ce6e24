"""How instructions reach memory: state spaces of generic addresses, checked places of bytes, and what the checks see.

The emulator executes accesses one instruction at a time, and caching has no effect on values. Order and scope count in
the checks, and where strong loads may return older values (`checks.order.stale_loads`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.checks.order.strong_accesses import Order
from ptxgen.emulator.checks.order.strong_history import Place, in_shared_memory
from ptxgen.emulator.checks.order.vector_clock import AsyncOperation
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
from ptxgen.emulator.memory.granules import by_granule, granules_of, starts
from ptxgen.emulator.state.group import Group

#: Where state spaces lie in the generic address space. Global addresses are generic addresses.
WINDOWS = {"shared": SHARED_WINDOW, "param": PARAM_WINDOW, "local": LOCAL_WINDOW, "const": CONST_WINDOW, "global": 0}
_READ_ONLY = {"param": "the kernel's parameters", "const": "constant memory"}


class Part(NamedTuple):
    """The lanes of an access that go to one state space: their addresses there, and which warps of the whole."""

    space: str
    addresses: NDArray[np.int64]
    group: Group
    chosen: NDArray[np.bool_] | slice


class Bytes(NamedTuple):
    """Where an access finds its bytes: in `data` (flat) at `offsets` (warps, 32), checked.

    Of shared memory also in which slots, (warps, 1) where each warp stays in its own CTA, and where inside.
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    slots: NDArray[np.int64] | None = None
    inside: NDArray[np.int64] | None = None


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
        part = g.narrowed(lanes) if lanes.any() else None
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
            row, address = int(g.indices[position]), int(addresses[position, lane])
            fault.summary += f", by lane {lane} of {g.machine.warp_name(row)}"
            fault.accesses = (
                g.machine.findings.access("accessor", None, row, lanes=1 << lane, space=space, address=address),
            )
        raise


def _locate(g: Group, space: str, addresses: NDArray[np.int64], size: int, what: str) -> Bytes:
    machine = g.machine
    if space == "global":
        return Bytes(machine.memory.data, machine.memory.offsets(addresses.view(np.uint64), size, g.mask, what))
    if space.startswith("shared"):
        slots, inside = machine.clusters.locate_all(g.indices, addresses, g.mask, space)
        inside = machine.shared.offsets(inside, size, g.mask, what)
        return Bytes(machine.shared.data.reshape(-1), inside + slots * machine.shared.pitch, slots, inside)
    if space == "local":
        inside = machine.stack.offsets(g, addresses, size, what)
        threads = g.indices[:, None] * 32 + np.arange(32)
        return Bytes(machine.stack.memory.data.reshape(-1), inside + threads * machine.stack.memory.pitch)
    bank = machine.banks[space]
    return Bytes(bank.data, bank.offsets(addresses, size, g.mask, what))


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

    A strong load (volatile, relaxed, acquire) has an order. What it costs is not `measured` where the addresses of the
    lanes are not those that hardware would take.
    """
    size = dtype.itemsize
    places = locate(g, space, addresses, size * count, "a load")
    data, offsets = places.data, places.offsets
    if measured:
        measure(g, space, places, size * count, statement)
    if places.slots is not None:
        if order is None:
            track_shared(g, places, size * count, statement, write=False)
        else:
            track_strong(g, places, size * count, statement, "strong load", reads=True, observes=True)
    elif space == "global" and g.machine.checks is not None:
        if order is None:
            g.machine.checks.global_accesses.access(g.indices, offsets, g.mask, size * count, statement)
        else:
            g.machine.checks.global_accesses.strong(
                g.indices, offsets, g.mask, size * count, statement, "strong load", reads=True, writes=False
            )
    elif space == "local" and g.machine.checks is not None:
        g.machine.stack.require_written(g, offsets, size * count, statement)
    words, index = data.view(dtype), offsets // size
    values = [words[index + i] for i in range(count)]
    if order is not None and g.machine.checks is not None:
        _strong_load(g, space, addresses, places, values, order, statement)
    return values


def _strong_load(
    g: Group, space: str, addresses: NDArray[np.int64], places: Bytes, values: list[NDArray[Any]], order: Order,
    statement: syntax.Instruction,
) -> None:  # fmt: skip
    """Tell the checks of strong loads, of which some give older values than those that are there."""
    assert g.machine.checks is not None
    strong = g.machine.checks.strong
    size = values[0].dtype.itemsize * len(values)
    found = _Words.of(g, space, addresses, places)
    if found is None:
        return
    stale, active = strong.stale, g.active
    # Most words are data that nothing stores to: only what has changed may be older.
    changed = (
        set[Place]() if stale is None else {each for each in set(found.places.tolist()) if stale.changed(each, size)}
    )
    if strong.together(
        g.indices, found.positions, found.places, order, statement, reads=True, writes=False, older=bool(changed)
    ):
        return
    for position, row, words, lanes in found.by_warp(g):
        older = []
        for word, lane in zip(words, lanes, strict=True):
            if stale is not None and word in changed:
                alike = active[position] & (addresses[position] == addresses[position, lane])
                offset = int(places.offsets[position, lane])
                older.append(stale.load(row, alike, word, places.data, offset, statement.line))
        strong.access(row, words, order, reads=True, writes=False)
        for before in older:
            if before is not None:
                g.machine.effects += 1
                for value, old in zip(values, before[0].view(values[0].dtype), strict=True):
                    value[position, before[1]] = old


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
    if measured:
        measure(g, space, places, total, statement)
    if places.slots is not None:
        if order is None:
            track_shared(g, places, total, statement, write=True, values=values)
        else:
            track_strong(g, places, total, statement, "strong store", values=values)
    elif space == "local" and machine.checks is not None:
        machine.stack.mark_written(g, offsets, total)
    elif space == "global" and machine.checks is not None:
        if order is not None:
            machine.checks.global_accesses.strong(
                g.indices, offsets, g.mask, total, statement, "strong store", reads=False, writes=True
            )
        else:
            same = ~changing_lanes(g, places, total, values)
            machine.checks.global_accesses.access(g.indices, offsets, g.mask, total, statement, same)
    strong = machine.checks.strong if machine.checks is not None else None
    found = _Words.of(g, space, addresses, places) if order is not None and strong is not None else None
    if (
        order is not None
        and strong is not None
        and found is not None
        and not strong.together(g.indices, found.positions, found.places, order, statement, reads=False, writes=True)
    ):
        for position, row, places_of, lanes in found.by_warp(g):
            if strong.stale is not None:
                for place, lane in zip(places_of, lanes, strict=True):
                    alike = g.active[position] & (addresses[position] == addresses[position, lane])
                    strong.stale.store(row, alike, place, data, int(offsets[position, lane]), total, statement.line)
            strong.access(row, places_of, order, reads=False, writes=True)
    words, index = data.view(dtype), offsets // size
    changed = False  # what is there already is no effect: threads that poll may store what they read
    for i, value in enumerate(values):
        full = np.broadcast_to(value, index.shape)
        at = index + i
        if g.mask is not None:
            at, full = at[g.mask], full[g.mask]
        changed = changed or bool((words[at] != full).any())
        words[at] = full
    machine.effects += changed
    if order is not None and strong is not None and strong.stale is not None:
        strong.stale.stored(data)


def measure(g: Group, space: str, places: Bytes, size: int, statement: syntax.Instruction) -> None:
    """Count what an access costs, where advice is wanted: of memory of the warps' own CTAs, and of global memory."""
    efficiency = g.machine.efficiency
    if efficiency is None:
        return
    if space == "global":
        efficiency.heap(places.offsets, g.active, size, statement)
    elif places.inside is not None and places.slots is not None:
        own = g.active & (places.slots == g.machine.row_slot[g.indices][:, None])
        if own.any():
            efficiency.shared(places.inside, own, size, statement)


def track_shared(
    g: Group,
    places: Bytes,
    size: int,
    statement: syntax.Instruction,
    *,
    write: bool,
    values: Sequence[NDArray[Any]] = (),
) -> None:
    """Pass to the checks which granules of which CTA's memory each warp touches by weak accesses; stores of `values`
    that are there already race with nothing.
    """
    checks, slots, inside = g.machine.checks, places.slots, places.inside
    if checks is None or slots is None or inside is None:
        return
    active, apart = g.active, slots.shape[1] > 1
    new = changing_lanes(g, places, size, values) if values else active
    everywhere = np.broadcast_to(slots, inside.shape)
    checks.lanes.access(g.indices, slots, inside, active, size, statement, new if write else None)
    lagging = checks.order.any_lagging(g.indices)
    if not apart and not lagging and _track_together(g, inside, new if write else None, size, statement):
        return
    for position, slot, granules, masks, changed in _pieces(everywhere, inside, active, new, size):
        row = int(g.indices[position])
        partly = checks.order.lagging(row) if lagging else None
        if partly is not None:
            behind = active[position] & partly[1] & (everywhere[position] == slot)
            behind &= new[position] if write else True
            if behind.any():
                touched = granules_of(inside[position][behind], size)
                checks.shared.lagging(row, *touched, statement, slot, partly[0], writes=write)
        if write:
            checks.shared.write(row, granules, masks, statement, slot, changed if values else masks)
        else:
            checks.shared.read(row, granules, masks, statement, slot)


def track_strong(
    g: Group,
    places: Bytes,
    size: int,
    statement: syntax.Instruction,
    what: Literal["strong load", "strong store", "atomic operation"],
    *,
    reads: bool = False,
    observes: bool = False,
    values: Sequence[NDArray[Any]] = (),
) -> None:
    """Tell the checks of strong accesses to shared memory, which do not race with each other, and with nothing where
    they store `values` that are there already.

    `reads`: what is there goes into the result. `observes`: the warp sees what others have stored (red does not).
    """
    checks, slots, inside = g.machine.checks, places.slots, places.inside
    if checks is None or slots is None or inside is None:
        return
    writes, lanes = what != "strong load", np.flatnonzero(g.active)
    if writes:
        checks.lanes.forget(slots, inside, g.active, size)
    new = changing_lanes(g, places, size, values).reshape(-1)[lanes] if values else np.ones(len(lanes), np.bool_)
    # An atomic operation comes in place of what it observes; under `random` which one comes last is open yet.
    checks.shared.strong(
        g.indices[lanes // 32], np.broadcast_to(slots, inside.shape).reshape(-1)[lanes], inside.reshape(-1)[lanes],
        size, new, AsyncOperation(0, what, statement, 0), reads=reads, writes=writes,
        observes=observes and (not writes or g.machine.timeline.schedule == "random"),
    )  # fmt: skip


#: What a warp accesses in a CTA's memory: its position in the group, the slot, granules, and the bytes of each that it
#: touches and that it changes.
_Piece = tuple[int, int, NDArray[np.int64], NDArray[np.uint16], NDArray[np.uint16]]


def _pieces(
    slots: NDArray[np.int64], inside: NDArray[np.int64], active: NDArray[np.bool_], new: NDArray[np.bool_], size: int
) -> Iterator[_Piece]:
    """The accesses of a group by warp and CTA: slots, offsets, and which lanes access and change, all (warps, 32)."""
    chosen, most = np.flatnonzero(active), int(slots.max()) + 1
    owners = chosen // 32 * most + slots.reshape(-1)[chosen]
    places, granules, masks, changed = by_granule(owners, inside.reshape(-1)[chosen], size, new.reshape(-1)[chosen])
    begins = np.flatnonzero(starts(places)).tolist()
    for begin, end in zip(begins, [*begins[1:], len(places)], strict=True):
        position, slot = divmod(int(places[begin]), most)
        yield position, slot, granules[begin:end], masks[begin:end], changed[begin:end]


def _track_together(
    g: Group, inside: NDArray[np.int64], new: NDArray[np.bool_] | None, size: int, statement: syntax.Instruction
) -> bool:
    """Tell the checks of all warps at once; False where they find something, which each warp must tell for itself."""
    assert g.machine.checks is not None
    chosen = slice(None) if g.mask is None else np.flatnonzero(g.mask)
    offsets, position = inside.reshape(-1)[chosen], np.arange(inside.size)[chosen] // 32
    fresh = new.reshape(-1)[chosen] if new is not None else np.zeros(len(offsets), np.bool_)
    at, granules, masks, changed = by_granule(position, offsets, size, fresh)
    changing = changed if new is not None else None
    return g.machine.checks.shared.accesses(g.indices, at, granules, masks, changing, statement)


def changing_lanes(g: Group, places: Bytes, size: int, values: Sequence[NDArray[Any]]) -> NDArray[np.bool_]:
    """Which lanes store something else than is in memory, or than a warp before them in the group stores there.

    Where lanes of one warp hit the same place, the last one counts: what the others store is never there to see.
    """
    part = size // len(values)
    word = np.dtype(f"u{part}")
    index = places.offsets // part
    new = np.stack([np.broadcast_to(np.ascontiguousarray(value).view(word), index.shape) for value in values], axis=-1)
    old = places.data.view(word)[index[..., None] + np.arange(len(values))]
    every = np.flatnonzero(g.active)
    places_of = index.reshape(-1)[every]
    if (places_of[1:] > places_of[:-1]).all():
        return g.active & (new != old).any(axis=-1)
    order = np.argsort(places_of, kind="stable")
    every, places_of = every[order], places_of[order]
    begins = starts(places_of)
    if begins.all():
        return g.active & (new != old).any(axis=-1)
    # Lanes by place, then by warp: the last of each warp there, and that of the first warp for all others.
    last = np.r_[begins[1:] | (every[1:] // 32 != every[:-1] // 32), True]
    every, place = every[last], (np.cumsum(begins) - 1)[last]
    before = every[np.searchsorted(place, place)]
    apart = before // 32 != every // 32
    flat = new.reshape(-1, len(values))
    old.reshape(-1, len(values))[every[apart]] = flat[before[apart]]
    changing = (new != old).any(axis=-1)
    wins = np.zeros(changing.shape, np.bool_)
    wins.reshape(-1)[every] = True
    return changing & wins


def strong_atomic(
    part: Part, places: Bytes, size: int, turns: Any, order: Order, statement: syntax.Instruction, *, reads: bool
) -> None:
    """Atomic operations of a part, lanes in this order: each reads (red does not count as reading), then stores."""
    g, checks = part.group, part.group.machine.checks
    strong = checks.strong if checks is not None else None
    found = _Words.of(g, part.space, part.addresses, places)
    if strong is None or found is None:
        return
    lanes = None if g.size == 1 or isinstance(turns, slice) else turns
    rows, positions, words = g.indices, found.positions, found.places
    if lanes is not None:
        rows, positions, words = rows[positions[lanes]], np.arange(len(lanes)), words[lanes]
    if strong.together(rows, positions, words, order, statement, reads=reads, writes=True):
        return
    for position, row, own, firsts in found.by_warp(g) if lanes is None else found.by_turn(g, lanes):
        if strong.stale is not None:
            for word, lane in zip(own, firsts, strict=True):
                alike = g.active[position] & (part.addresses[position] == part.addresses[position, lane])
                offset = int(places.offsets[position, lane])
                strong.stale.store(row, alike, word, places.data, offset, size, statement.line)
        strong.access(row, own, order, reads=reads, writes=True)


#: A warp's strong accesses: its position in the group, the warp, its words, and of each the first lane.
_OfWarp = tuple[int, int, list[Place], list[int]]


class _Words(NamedTuple):
    """The words of strong accesses: by active lane its number (32 to a warp), its word, its warp's position."""

    lanes: NDArray[np.int64]
    places: NDArray[np.int64]
    positions: NDArray[np.int64]

    @classmethod
    def of(cls, g: Group, space: str, addresses: NDArray[np.int64], places: Bytes) -> _Words | None:
        """Those of a group; None for local memory, which is nobody else's."""
        lanes = np.flatnonzero(g.active)
        if places.slots is not None and places.inside is not None:
            slots = np.broadcast_to(places.slots, addresses.shape).reshape(-1)[lanes]
            return cls(lanes, in_shared_memory(slots, places.inside.reshape(-1)[lanes]), lanes // 32)
        return cls(lanes, addresses.reshape(-1)[lanes], lanes // 32) if space == "global" else None

    def by_warp(self, g: Group) -> Iterator[_OfWarp]:
        """Each warp with its different words."""
        order = np.lexsort((self.places, self.positions))
        places, positions = self.places[order], self.positions[order]
        first = starts(places) | starts(positions)
        lanes, places, positions = self.lanes[order][first] % 32, places[first], positions[first]
        begins = np.flatnonzero(starts(positions)).tolist()
        for begin, end in zip(begins, [*begins[1:], len(places)], strict=True):
            position = int(positions[begin])
            yield position, int(g.indices[position]), places[begin:end].tolist(), lanes[begin:end].tolist()

    def by_turn(self, g: Group, turns: NDArray[np.int64]) -> Iterator[_OfWarp]:
        """Of each warp at each word the first and the last lane, in this order.

        The operations of a warp between the two release and acquire nothing that these do not.
        """
        keys = np.stack([self.places[turns], self.positions[turns]])
        _, first = np.unique(keys, axis=1, return_index=True)
        _, last = np.unique(keys[:, ::-1], axis=1, return_index=True)
        for turn in turns[np.union1d(first, len(turns) - 1 - last)].tolist():
            position = int(self.positions[turn])
            yield position, int(g.indices[position]), [int(self.places[turn])], [int(self.lanes[turn]) % 32]
