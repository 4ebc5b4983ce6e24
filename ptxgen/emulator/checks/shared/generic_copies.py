"""cp.async, st.async and red.async, which write shared memory in the generic proxy: what a thread has waited for counts
as its own stores. PTX ISA 9.7.9.25.3, 9.7.9.12, 9.7.13.7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.shared.accesses import SharedAccesses
from ptxgen.emulator.checks.shared.lanes import LaneAccesses
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.memory.granules import by_granule, granules_of
from ptxgen.emulator.memory.located import MemoryAccess
from ptxgen.emulator.observer import Observer
from ptxgen.emulator.state.signals import Signal

_STORES = frozenset(["st.async", "red.async"])


@dataclass(slots=True)
class _Copy:
    """What a warp writes: offsets of the lanes, bytes of each, the granules, and the interval in which it counts as
    stored for waits on an mbarrier (None: no mbarrier gets an arrival for it).
    """

    offsets: NDArray[np.int64]
    size: int
    granules: NDArray[np.int64]
    clock: int | None = None


class GenericCopies(Observer):
    """No thread may access the destination of a copy in flight before a wait for it."""

    def __init__(self, happens_before: HappensBefore, lanes: LaneAccesses, shared: SharedAccesses) -> None:
        self._happens_before, self._lanes, self._shared = happens_before, lanes, shared
        #: As long as a thread may wait for the work.
        self._copies: WeakKeyDictionary[AsyncWork, _Copy] = WeakKeyDictionary()

    def copies_issued(
        self, works: Sequence[AsyncWork], access: MemoryAccess, sources: NDArray[np.int64], read: NDArray[np.int64]
    ) -> None:
        warps, _, _, places, size, statement, _ = access
        slots, inside, active = places.slots, places.inside, access.active
        assert slots is not None
        assert inside is not None
        self._lanes.access(warps, slots, inside, active, size, statement, active)
        lanes = np.flatnonzero(active)
        positions, offsets = lanes // 32, inside.reshape(-1)[lanes]
        at, granules, masks, _ = by_granule(positions, offsets, size)
        together = self._shared.accesses(warps, at, granules, masks, masks, statement, copies=True)
        first, begin = 0, 0
        everyone = range(1, len(works) + 1)
        lasts, ends = np.searchsorted(positions, everyone).tolist(), np.searchsorted(at, everyone).tolist()
        for work, last, end in zip(works, lasts, ends, strict=True):
            self._copies[work] = _Copy(offsets[first:last], size, granules[begin:end])
            if not together:
                self._shared.copy(work.warp, granules[begin:end], masks[begin:end], statement)
            first, begin = last, end

    def copies_awaited(self, warp: int, works: Sequence[AsyncWork], signaled: Sequence[AsyncWork]) -> None:
        if works:
            self._shared.copied(warp, np.concatenate([self._copies[work].granules for work in works]))
        done = [(work, self._copies[work]) for work in (*works, *signaled)]
        for size in {copy.size for _, copy in done}:
            some = [(work, copy) for work, copy in done if copy.size == size]
            lanes = np.concatenate([np.flatnonzero(work.lanes) for work, _ in some])
            self._lanes.copied(warp, some[0][0].slot, lanes, np.concatenate([copy.offsets for _, copy in some]), size)

    def copies_arrive_later(self, warp: int, works: Sequence[AsyncWork], signal: Signal) -> None:
        """A wait for the phase also acquires what the warp had done when it executed cp.async.mbarrier.arrive, except
        its stores of this interval: PTX orders the copies alone (9.7.13.15.17).
        """
        clock = self._happens_before.clock(warp)
        self._shared.races.copies_published(warp, clock)
        for work in works:
            copy = self._copies[work]
            copy.clock = clock if copy.clock is None else copy.clock
        self._happens_before.given[signal] = self._happens_before.release(warp)

    def copies_arrive(self, warp: int, works: Sequence[AsyncWork]) -> None:
        for work in works:
            copy = self._copies[work]
            self._shared.copied(warp, copy.granules, None, copy.clock)

    def async_store_issued(self, work: AsyncWork, offsets: NDArray[np.int64], size: int, signal: Signal) -> None:
        """A wait for the mbarrier also acquires what the thread had, though PTX orders the store alone."""
        granules, masks = granules_of(offsets, size)
        if work.what == "red.async":
            self._shared.reduce(work.warp, granules, masks, work.statement, work.slot)
        else:
            self._shared.copy(work.warp, granules, masks, work.statement, work.slot, work.what)
        self._copies[work] = _Copy(offsets, size, granules, self._happens_before.clock(work.warp))
        self._happens_before.given[signal] = self._happens_before.release(work.warp)

    def work_completed(self, work: AsyncWork) -> None:
        if work.what in _STORES:
            copy = self._copies.pop(work)
            self._shared.copied(work.warp, copy.granules, work.slot, copy.clock)
