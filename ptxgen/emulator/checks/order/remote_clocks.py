"""What warps know of the warps of other clusters.

Kept for each place in which clusters are resident, one after the other: the last cluster that a warp knows of there,
and how far. What it knows of those before is searched for where it was told, in a graph of who told whom, for few
accesses meet those of a cluster that has ended. So the cost of synchronizing does not grow with the grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from weakref import ref

import numpy as np
from numpy.typing import NDArray

_CLOCK_BITS = 32
_CLOCK = (1 << _CLOCK_BITS) - 1
_MOMENTS = count(1)


@dataclass(frozen=True, slots=True, eq=False)
class ClusterEpoch:
    """A cluster of a launch: its number, which no other has, and one of `places` in which it is resident."""

    number: int
    place: int
    places: int
    #: Whether other clusters come to its place, or were there.
    shared: bool
    #: Nobody has been told of it before this moment.
    began: int

    @classmethod
    def begin(cls, number: int, place: int, places: int, *, shared: bool) -> ClusterEpoch:
        """A cluster begins."""
        return cls(number, place, places, shared, next(_MOMENTS))

    @property
    def key(self) -> int:
        """What its clocks carry in their upper bits."""
        return self.number + 1 << _CLOCK_BITS


class _Told:
    """That somebody was told of a cluster (None: of none), together with parts that were told before."""

    __slots__ = ("clocks", "epoch", "moment", "parts")

    def __init__(self, epoch: ClusterEpoch | None, clocks: NDArray[np.int64] | None, *parts: _Told) -> None:
        self.moment, self.epoch, self.clocks, self.parts = next(_MOMENTS), epoch, clocks, parts


class _Search:
    """What has been found in a graph so far, from the last moment on backwards."""

    def __init__(self, root: _Told) -> None:
        self._found: dict[int, NDArray[np.int64]] = {}
        self._open, self._seen = [(-root.moment, root)], {root.moment}

    def has_observed(self, epoch: ClusterEpoch, member: int, clock: int) -> bool:
        """Whether somebody was told of a warp of a cluster up to an interval of its."""
        found = self._found.get(epoch.number)
        if found is not None and found[member] >= clock:
            return True
        while self._open and -self._open[0][0] > epoch.began:
            _, told = heappop(self._open)
            for part in told.parts:
                if part.moment not in self._seen:
                    self._seen.add(part.moment)
                    heappush(self._open, (-part.moment, part))
            if told.epoch is None or told.clocks is None:
                continue
            before = self._found.get(told.epoch.number)
            clocks = told.clocks if before is None else np.maximum(before, told.clocks)
            self._found[told.epoch.number] = clocks
            if told.epoch is epoch and clocks[member] >= clock:
                return True
        return False


class RemoteClocks:
    """Clocks of the warps of other clusters, which nobody changes any more."""

    __slots__ = ("__weakref__", "_joined", "_latest", "_search", "_told", "places")

    def __init__(self, latest: NDArray[np.int64], places: int, told: _Told | None) -> None:
        #: (places, warps of a cluster): the number of the last cluster there and the clock, as one integer.
        self._latest, self._told = latest, told
        #: The places of which it has anything, one bit each.
        self.places = places
        self._search: _Search | None = None
        #: What it was last joined with, and the result: knowledge by several scopes is joined alike.
        self._joined: tuple[ref[RemoteClocks], ref[RemoteClocks]] | None = None

    @classmethod
    def of(cls, epoch: ClusterEpoch, clocks: NDArray[np.int64], known: RemoteClocks | None) -> RemoteClocks:
        """What other clusters learn from a warp with these clocks of its own cluster, that knows of others."""
        latest = np.zeros((epoch.places, len(clocks)), np.int64) if known is None else known._latest.copy()
        own = np.where(clocks != 0, clocks | epoch.key, 0)
        np.maximum(latest[epoch.place], own, out=latest[epoch.place])
        told = None
        if epoch.shared:
            before = () if known is None or known._told is None else (known._told,)
            told = _Told(epoch, clocks.copy(), *before)
        return cls(latest, 1 << epoch.place | (0 if known is None else known.places), told)

    def joined(self, other: RemoteClocks) -> RemoteClocks:
        """What both have."""
        if other is self:
            return self
        if self._joined is not None and self._joined[0]() is other and (before := self._joined[1]()) is not None:
            return before
        told = self._told
        if told is None or other._told is None:
            told = told or other._told
        elif told is not other._told:
            told = _Told(None, None, told, other._told)
        made = RemoteClocks(np.maximum(self._latest, other._latest), self.places | other.places, told)
        self._joined = ref(other), ref(made)
        return made

    def clocks(self, epoch: ClusterEpoch) -> NDArray[np.int64]:
        """The clocks of the warps of a cluster that is resident now."""
        row = self._latest[epoch.place]
        return np.where(row >= epoch.key, row & _CLOCK, 0)

    def has_observed(self, epoch: ClusterEpoch, member: int, clock: int) -> bool:
        """Whether this has a warp of a cluster up to an interval of its."""
        latest, wanted = int(self._latest[epoch.place, member]), epoch.key | clock
        if latest >> _CLOCK_BITS <= epoch.number + 1 or self._told is None:
            return latest >> _CLOCK_BITS == epoch.number + 1 and latest >= wanted
        if self._search is None:
            self._search = _Search(self._told)
        return self._search.has_observed(epoch, member, clock)

    def has(self, other: RemoteClocks) -> bool:
        """Whether this has all of another; where clusters have ended it may say no although it does."""
        return other is self or (
            (other._told is None or other._told is self._told) and bool((other._latest <= self._latest).all())
        )
