"""What reductions (red) of threads have changed in global memory, for the weak accesses that come after them.

A red observes nothing, so that each of those at a word must happen before a weak access there, not the last one alone:
of a histogram that all CTAs add to, the last CTA may read what its own threads have added last, and what a thread of
another CTA adds later. The shadow memory names the last; here all are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import HappensBefore

WORD = 4
#: Accesses of lanes that are kept.
_MOST = 1 << 20


class Reductions:
    """The words that reductions of each warp have changed, as their warps (`HappensBefore.actors`) and intervals."""

    def __init__(self, happens_before: HappensBefore) -> None:
        self._happens_before = happens_before
        #: By instruction: events of the warps, and of each access the event and the word.
        self._events: list[NDArray[np.int32]] = []
        self._accesses: list[tuple[NDArray[np.int32], NDArray[np.int64]]] = []
        #: Kinds of the events (`GlobalEvents.kind`).
        self._kinds: set[int] = set()
        self._size = 0
        #: By warp (`HappensBefore.actors`) how many of the instructions it is known to be ordered after.
        self._ordered: dict[int, int] = {}
        #: True once not all are kept.
        self.dropped = False

    @property
    def used(self) -> bool:
        """Whether there was any reduction."""
        return bool(self._kinds)

    def add(
        self, kind: int, events: NDArray[np.int32], accesses: NDArray[np.int32], offsets: NDArray[np.int64]
    ) -> None:
        """Warps execute a reduction, `events`; of each access its event and its offset in the heap."""
        self._kinds.add(kind)
        if self._size + len(offsets) > _MOST:
            self.dropped = True
            return
        self._size += len(offsets)
        self._events.append(events)
        self._accesses.append((accesses, offsets // WORD))

    def includes(self, kinds: NDArray[np.int32]) -> bool:
        """Whether any of these kinds of events is a reduction."""
        return not self._kinds.isdisjoint(np.unique(kinds).tolist())

    def unordered(
        self,
        warp: int,
        words: NDArray[np.int64],
        actor: NDArray[np.int64],
        clock: NDArray[np.int64],
    ) -> list[tuple[int, NDArray[np.int64]]]:
        """Events that a warp is unordered with and that have changed some of these words: with the words. The first of
        each other warp is enough. `actor` and `clock` are those of all events.
        """
        own = self._happens_before.actor(warp)
        first = self._ordered.get(own, 0)
        if first == len(self._events):
            return []
        events = np.concatenate(self._events[first:])
        actors, clocks = actor[events], clock[events]
        late = actors != own
        late[late] = ~self._happens_before.have_observed(np.full(late.sum(), warp), actors[late], clocks[late])
        late[late] = ~self._observed(warp, actors[late], clocks[late])
        if not late.any():
            self._ordered[own] = len(self._events)
            return []
        by_access, changed = (np.concatenate(each) for each in zip(*self._accesses[first:], strict=True))
        chosen = np.isin(by_access, events[late])
        chosen[chosen] = np.isin(changed[chosen], words)
        by_access, changed = by_access[chosen], changed[chosen]
        _, firsts = np.unique(actor[by_access], return_index=True)
        return [(int(by_access[at]), changed[by_access == by_access[at]]) for at in firsts.tolist()]

    def _observed(self, warp: int, actors: NDArray[np.int64], clocks: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether a warp has acquired what each of these has done up to an interval."""
        found = np.zeros(len(actors), np.bool_)
        for each in np.unique(actors).tolist():
            (mine,) = (actors == each).nonzero()
            last = int(clocks[mine].max())
            if self._happens_before.has_observed_actor(warp, each, last):
                found[mine] = True
                continue
            for clock in np.unique(clocks[mine]).tolist():
                if not self._happens_before.has_observed_actor(warp, each, clock):
                    break
                found[mine[clocks[mine] == clock]] = True
        return found

    def clear(self) -> None:
        """Events have other numbers from now on."""
        self._events.clear()
        self._accesses.clear()
        self._ordered.clear()
        self._size = 0
