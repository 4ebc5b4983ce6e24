"""What loads, stores and atomic operations of threads do to shared memory, for the trackers of its accesses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import all_set, any_set, count_nonzero
from ptxgen.emulator.checks.changes import changing_lanes
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.order.vector_clock import AsyncOperation
from ptxgen.emulator.checks.order.weak_flags import WeakFlags
from ptxgen.emulator.checks.shared.accesses import SharedAccesses
from ptxgen.emulator.checks.shared.at_once import AtOnce
from ptxgen.emulator.checks.shared.lanes import LaneAccesses
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.memory.global_memory import MAP_BYTES
from ptxgen.emulator.memory.granules import GRANULE, by_granule, by_warp, granules_of, starts
from ptxgen.emulator.memory.located import MemoryAccess
from ptxgen.emulator.observer import Lanes, Observer
from ptxgen.emulator.state.group import spread
from ptxgen.syntax import Instruction

#: Bytes in which blocks are counted.
_WORD = 8
#: A warp's access to one CTA's memory: position in the group, CTA slot, granules, bytes touched and bytes changed in
#: each.
_Piece = tuple[int, int, NDArray[np.int64], NDArray[np.uint16], NDArray[np.uint16]]


class SharedInstructions(Observer):
    """Finds the granules that each warp accesses in each CTA's memory."""

    def __init__(
        self, happens_before: HappensBefore, lanes: LaneAccesses, shared: SharedAccesses, flags: WeakFlags
    ) -> None:
        self._happens_before, self._lanes, self._shared, self._flags = happens_before, lanes, shared, flags
        self._at_once = AtOnce(happens_before, lanes, shared)

    def memory_loads(self, access: MemoryAccess) -> None:
        if access.places.slots is None:
            return
        if access.order is None:
            self.weak(access, None)
        else:
            self.strong(access, access.active, "strong load", reads=True, observes=True)

    def memory_stores(self, access: MemoryAccess, values: Sequence[NDArray[Any]]) -> None:
        if access.places.slots is None:
            return
        active = access.active
        changing = changing_lanes(active, access.places, access.size, values)
        if access.order is None:
            self.weak(access, changing)
        else:
            self.strong(access, active, "strong store", changing)

    def memory_updates(
        self, access: MemoryAccess, turns: NDArray[np.int64] | None, *, returns: bool, uses: bool
    ) -> None:
        if access.places.slots is not None:
            # Without a use of its result an atom is a red: it may as well come before what it has found.
            returns = returns and self._flags.is_used(access.statement)
            self.strong(access, access.active, "atomic operation", turns=turns, reads=uses, observes=returns)

    def block_stored(self, warp: int, lane: int, slot: int, start: int, size: int, statement: Instruction) -> None:
        granules, masks = granules_of(np.arange(start, start + size, _WORD), _WORD)
        self._shared.write(warp, granules, masks, statement, slot)

    def shared_tensormaps_change(self, maps: Sequence[tuple[int, int, int, int]], statement: Instruction) -> None:
        """Weak loads and stores of whole maps."""
        for warp, lane, slot, offset in maps:
            self._lanes.access_granules(warp, lane, slot, _granules_of_map(offset)[0], statement, writes=True)
        if not self._maps_change_together(maps, statement):
            for warp, _, slot, offset in maps:
                granules, masks = _granules_of_map(offset)
                self._shared.read(warp, granules, masks, statement, slot)
                self._shared.write(warp, granules, masks, statement, slot)

    def _maps_change_together(self, maps: Sequence[tuple[int, int, int, int]], statement: Instruction) -> bool:
        """All at once, if each warp changes one in its own CTA's memory; False where something may be reported."""
        warps = np.array([warp for warp, _, _, _ in maps])
        per_cta = self._happens_before.warps
        if count_nonzero(np.diff(warps) <= 0) or any(warp // per_cta != slot for warp, _, slot, _ in maps):
            return False
        each = [_granules_of_map(offset) for _, _, _, offset in maps]
        granules, masks = (np.concatenate(parts) for parts in zip(*each, strict=True))
        at = np.repeat(np.arange(len(warps)), len(each[0][0]))
        return self._shared.accesses(warps, at, granules, masks, None, statement) and self._shared.accesses(
            warps, at, granules, masks, masks, statement
        )

    def work_awaited(self, warp: int, lanes: Lanes, works: Sequence[AsyncWork], *, reads: bool = False) -> None:
        if all_set(lanes) and any(work.what.startswith("wgmma") for work in works):
            self._lanes.product_awaited(warp)

    def tensormap_publishes(self, warp: int, slot: int, offset: int, address: int, statement: Instruction) -> None:
        granules, masks = _granules_of_map(offset)
        self._lanes.load_together(warp, slot, granules, statement)
        self._shared.read(warp, granules, masks, statement)

    def weak(self, access: MemoryAccess, changing: Lanes | None) -> None:
        """Weak loads, or stores; only lanes that are `changing` memory can race."""
        warps, _, _, places, size, statement, _ = access
        slots, inside, active = places.slots, places.inside, access.active
        assert slots is not None
        assert inside is not None
        order, shared = self._happens_before, self._shared
        if self._at_once.keep(access, changing):
            return
        self._lanes.access(warps, slots, inside, active, size, statement, changing)
        apart, behind = slots.shape[1] > 1, order.lagging_lanes(warps)
        if behind is not None:
            behind &= active if changing is None else changing
        lagging = behind is not None and count_nonzero(behind) > 0
        if not apart and not lagging and self._together(access, inside, changing):
            return
        everywhere, new = spread(slots, inside.shape), active if changing is None else changing
        for position, slot, granules, masks, changed in _pieces(everywhere, inside, active, new, size):
            warp = int(warps[position])
            partly = order.lagging(warp) if lagging else None
            if partly is not None and behind is not None:
                mine = behind[position] & (everywhere[position] == slot)
                if any_set(mine):
                    touched = granules_of(inside[position][mine], size)
                    shared.lagging(warp, *touched, statement, slot, partly[0], writes=changing is not None)
            if changing is None:
                shared.read(warp, granules, masks, statement, slot)
            else:
                shared.write(warp, granules, masks, statement, slot, changed)

    def _together(self, access: MemoryAccess, inside: NDArray[np.int64], changing: Lanes | None) -> bool:
        """Weak accesses of all warps at once; False where something is found, which each warp reports for itself."""
        warps, mask, _, _, size, statement, _ = access
        at, granules, masks, changed = by_warp(inside, mask, size, changing)
        return self._shared.accesses(warps, at, granules, masks, changed if changing is not None else None, statement)

    def strong(
        self,
        access: MemoryAccess,
        active: Lanes,
        what: Literal["strong load", "strong store", "atomic operation"],
        changing: Lanes | None = None,
        *,
        turns: NDArray[np.int64] | None = None,
        reads: bool = False,
        observes: bool = False,
    ) -> None:
        """Strong accesses do not race with each other, and with nothing where they are not `changing` memory.

        They come one after the other in the order of `turns`, by default of warps and lanes. `reads`: the result
        depends on the old value. `observes`: the warp sees what others have stored.
        """
        warps, _, _, places, size, statement, _ = access
        slots, inside, (lanes,) = places.slots, places.inside, active.reshape(-1).nonzero()
        assert slots is not None
        assert inside is not None
        writes = what != "strong load"
        if turns is not None:
            lanes = lanes[turns]
        every = np.ones(len(lanes), np.bool_) if changing is None else changing.reshape(-1)[lanes]
        self._lanes.strong(warps, slots, inside, lanes, size, statement, every, writes=writes, observes=observes)
        self._shared.strong(
            warps[lanes // 32],
            spread(slots, inside.shape).reshape(-1)[lanes],
            inside.reshape(-1)[lanes],
            size,
            every,
            AsyncOperation(0, what, statement, 0),
            reads=reads,
            writes=writes,
            observes=observes,
        )


def _granules_of_map(offset: int) -> tuple[NDArray[np.int64], NDArray[np.uint16]]:
    granules = np.arange(offset // GRANULE, (offset + MAP_BYTES) // GRANULE, dtype=np.int64)
    return granules, np.full(len(granules), 0xFFFF, np.uint16)


def _pieces(
    slots: NDArray[np.int64], inside: NDArray[np.int64], active: Lanes, new: Lanes, size: int
) -> Iterator[_Piece]:
    """The accesses of a group by warp and CTA: slots, offsets, and which lanes access and change, all (warps, 32)."""
    chosen, most = np.flatnonzero(active), int(slots.max()) + 1
    owners = chosen // 32 * most + slots.reshape(-1)[chosen]
    places, granules, masks, changed = by_granule(owners, inside.reshape(-1)[chosen], size, new.reshape(-1)[chosen])
    begins = np.flatnonzero(starts(places)).tolist()
    for begin, end in zip(begins, [*begins[1:], len(places)], strict=True):
        position, slot = divmod(int(places[begin]), most)
        yield position, slot, granules[begin:end], masks[begin:end], changed[begin:end]
