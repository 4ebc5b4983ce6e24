"""The clocks that warps have acquired from the warps of other clusters.

Clusters become resident one after the other in a slot of the GPU. For each slot the latest cluster from which a warp
has acquired clocks is kept, with these clocks. Those of earlier clusters are searched for in the graph of releases that
the warp has acquired, since few accesses conflict with those of a cluster that has ended. So the cost of synchronizing
does not grow with the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import count_nonzero

_CLOCK_BITS = 32
_CLOCK = (1 << _CLOCK_BITS) - 1
_MOMENTS = count(1)


@dataclass(frozen=True, slots=True, eq=False)
class ClusterEpoch:
    """A cluster of a launch: its number, which is unique, and which of the `slots` for clusters it is resident in."""

    number: int
    slot: int
    slots: int
    #: True if other clusters use the same slot before or after this one.
    shared: bool
    #: Nothing has released clocks of it before this moment.
    began: int

    @classmethod
    def begin(cls, number: int, slot: int, slots: int, *, shared: bool) -> ClusterEpoch:
        """A cluster begins."""
        return cls(number, slot, slots, shared, next(_MOMENTS))

    @property
    def key(self) -> int:
        """What its clocks carry in their upper bits."""
        return self.number + 1 << _CLOCK_BITS


class _Released:
    """Clocks of a cluster (None: of none) that were released, together with parts that were released before."""

    __slots__ = ("clocks", "epoch", "moment", "parts")

    def __init__(self, epoch: ClusterEpoch | None, clocks: NDArray[np.int64] | None, *parts: _Released) -> None:
        self.moment, self.epoch, self.clocks, self.parts = next(_MOMENTS), epoch, clocks, parts


class _Search:
    """What has been found in a graph so far, from the last moment on backwards."""

    def __init__(self, root: _Released) -> None:
        self._found: dict[int, NDArray[np.int64]] = {}
        self._open, self._seen = [(-root.moment, root)], {root.moment}

    def has_observed(self, epoch: ClusterEpoch, member: int, clock: int) -> bool:
        """Whether a warp of a cluster was released up to an interval of its."""
        found = self._found.get(epoch.number)
        if found is not None and found[member] >= clock:
            return True
        while self._open and -self._open[0][0] > epoch.began:
            _, released = heappop(self._open)
            for part in released.parts:
                if part.moment not in self._seen:
                    self._seen.add(part.moment)
                    heappush(self._open, (-part.moment, part))
            if released.epoch is None or released.clocks is None:
                continue
            before = self._found.get(released.epoch.number)
            clocks = released.clocks if before is None else np.maximum(before, released.clocks)
            self._found[released.epoch.number] = clocks
            if released.epoch is epoch and clocks[member] >= clock:
                return True
        return False


class RemoteClocks:
    """Clocks of the warps of other clusters, which are not changed any more."""

    __slots__ = ("__weakref__", "_joined", "_latest", "_released", "_search", "slots")

    def __init__(self, latest: NDArray[np.int64], slots: int, released: _Released | None) -> None:
        #: (slots, warps of a cluster): the number of the last cluster there and the clock, as one integer.
        self._latest, self._released = latest, released
        #: The slots from which it has any clocks, one bit each.
        self.slots = slots
        self._search: _Search | None = None
        #: Cache of the last join: (operand, result).
        self._joined: tuple[ref[RemoteClocks], ref[RemoteClocks]] | None = None

    @classmethod
    def of(cls, epoch: ClusterEpoch, clocks: NDArray[np.int64], remote: RemoteClocks | None) -> RemoteClocks:
        """What other clusters acquire from a warp with these clocks of its own cluster, and `remote` ones of others."""
        latest = np.zeros((epoch.slots, len(clocks)), np.int64) if remote is None else remote._latest.copy()
        row = latest[epoch.slot]
        np.maximum(row, (clocks | epoch.key) * (clocks != 0), out=row)
        released = None
        if epoch.shared:
            before = () if remote is None or remote._released is None else (remote._released,)
            released = _Released(epoch, clocks.copy(), *before)
        return cls(latest, 1 << epoch.slot | (0 if remote is None else remote.slots), released)

    def joined(self, other: RemoteClocks) -> RemoteClocks:
        """The maximum of both."""
        if other is self or (other._joined is not None and other._joined[1]() is self):
            return self
        before = self._joined[1]() if self._joined is not None else None
        if self._joined is not None and before is not None and (before is other or self._joined[0]() is other):
            return before
        made = self._with(np.maximum(self._latest, other._latest), other)
        self._joined = ref(other), ref(made)
        return made

    def joined_all(self, others: Sequence[RemoteClocks]) -> RemoteClocks:
        """The maximum of this and of others."""
        if len(others) < 2:
            return self.joined(others[0]) if others else self
        latest = self._latest.copy()
        for each in others:
            np.maximum(latest, each._latest, out=latest)
        return self._with(latest, *others)

    def _with(self, latest: NDArray[np.int64], *others: RemoteClocks) -> RemoteClocks:
        slots, released = self.slots, {self._released: None}
        for each in others:
            slots |= each.slots
            released[each._released] = None
        parts = [each for each in released if each is not None]
        one = _Released(None, None, *parts) if len(parts) > 1 else parts[0] if parts else None
        return RemoteClocks(latest, slots, one)

    def clocks(self, epoch: ClusterEpoch) -> NDArray[np.int64]:
        """The clocks of the warps of a cluster that is resident now."""
        warp = self._latest[epoch.slot]
        return (warp & _CLOCK) * (warp >= epoch.key)

    def has_observed(self, epoch: ClusterEpoch, member: int, clock: int) -> bool:
        """Whether this has a warp of a cluster up to an interval of its."""
        latest, wanted = int(self._latest[epoch.slot, member]), epoch.key | clock
        if latest >> _CLOCK_BITS <= epoch.number + 1 or self._released is None:
            return latest >> _CLOCK_BITS == epoch.number + 1 and latest >= wanted
        if self._search is None:
            self._search = _Search(self._released)
        return self._search.has_observed(epoch, member, clock)

    def has(self, other: RemoteClocks) -> bool:
        """Whether this has all of another; where clusters have ended it may say no although it does."""
        return other is self or (
            (other._released is None or other._released is self._released)
            and not count_nonzero(other._latest > self._latest)
        )
