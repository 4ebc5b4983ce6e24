"""Lanes of a warp that synchronize by a mask of bar.warp.sync that leaves others out (9.7.13.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

#: Intervals of a warp between such instructions that are kept; races with older ones are missed.
_MOST = 8
_OWN = np.uint32(1) << np.arange(32, dtype=np.uint32)
#: Reasons why lanes lag behind their warp: only other lanes have acquired; these have a value from one that has
#: (shuffle or vote); or all have acquired one by one, and these saw less.
Lag = Literal["alone", "handed over", "one by one"]
#: Of each the rule. NVIDIA's cooperative groups rely on the last two (groups larger than a warp): they are advice.
LAGS: dict[Lag, str] = {
    "alone": "Only other lanes of its warp have acquired what orders the two",
    "handed over": "Another lane of its warp has acquired what orders the two and handed the result over by a shuffle "
    "or a vote, which PTX does not count as synchronization; NVIDIA's cooperative groups rely on it",
    "one by one": "Only other lanes of its warp have acquired what orders the two, and its own have acquired before "
    "that; NVIDIA's cooperative groups, which reset their barrier by one lane, rely on it",
}


class MaskedSyncs:
    """For each warp the intervals that ended so since all its lanes last converged: the number of each, and for each
    lane (32) which lanes, as bits, are ordered after what it did there.
    """

    def __init__(self) -> None:
        self._intervals: dict[int, list[tuple[int, NDArray[np.uint32]]]] = {}

    def groups_synchronize(self, warp: int, interval: int, groups: Sequence[int]) -> None:
        """Lanes of a warp synchronize, those of each of these groups (bits), and its interval ends."""
        intervals = self._intervals.setdefault(warp, [])
        intervals.append((interval, _OWN.copy()))
        del intervals[:-_MOST]
        for _, observers in intervals:
            for group in groups:
                observers[(observers & np.uint32(group)) != 0] |= np.uint32(group)

    def clear(self, warps: NDArray[np.int64]) -> None:
        """All lanes of these warps synchronize."""
        if self._intervals:
            for warp in warps.tolist():
                self._intervals.pop(warp, None)

    def any(self, warps: NDArray[np.int64]) -> bool:
        """Whether lanes of some of these warps have synchronized so."""
        return bool(self._intervals) and not self._intervals.keys().isdisjoint(warps.tolist())

    def unordered(
        self, warp: int, lanes: NDArray[Any], intervals: NDArray[Any], others: NDArray[Any]
    ) -> NDArray[np.bool_]:
        """Where these lanes of a warp are unordered with what `others` (above 31: several) did in one of these
        intervals.
        """
        found = np.zeros(np.broadcast_shapes(lanes.shape, intervals.shape), np.bool_)
        for number, observers in self._intervals.get(warp, ()):
            there = (intervals == number) & (others < len(observers))
            found |= there & (observers[np.minimum(others, len(observers) - 1)] >> lanes.astype(np.uint32) & 1 == 0)
        return found
