"""Lanes of a warp that synchronize by a mask of bar.warp.sync that leaves others out (9.7.13.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Intervals of a warp between such meetings that are kept; of older ones races are missed.
_MOST = 8
_OWN = np.uint32(1) << np.arange(32, dtype=np.uint32)


class MaskedSyncs:
    """For each warp the intervals that ended so since all its lanes last met: the number of each, and for each lane
    (32) which lanes, as bits, know what it did there.
    """

    def __init__(self) -> None:
        self._known: dict[int, list[tuple[int, NDArray[np.uint32]]]] = {}

    def met(self, row: int, interval: int, groups: Sequence[int]) -> None:
        """Lanes of a warp synchronize, those of each of these groups (bits), and its interval ends."""
        intervals = self._known.setdefault(row, [])
        intervals.append((interval, _OWN.copy()))
        del intervals[:-_MOST]
        for _, known in intervals:
            for group in groups:
                known[(known & np.uint32(group)) != 0] |= np.uint32(group)

    def clear(self, rows: NDArray[np.int64]) -> None:
        """All lanes of these warps synchronize."""
        if self._known:
            for row in rows.tolist():
                self._known.pop(row, None)

    def any(self, rows: NDArray[np.int64]) -> bool:
        """Whether lanes of some of these warps have met so."""
        return bool(self._known) and not self._known.keys().isdisjoint(rows.tolist())

    def unordered(
        self, row: int, lanes: NDArray[Any], intervals: NDArray[Any], others: NDArray[Any]
    ) -> NDArray[np.bool_]:
        """Where these lanes of a warp do not know what `others` (above 31: several) did in one of these intervals."""
        found = np.zeros(np.broadcast_shapes(lanes.shape, intervals.shape), np.bool_)
        for number, known in self._known.get(row, ()):
            there = (intervals == number) & (others < len(known))
            found |= there & (known[np.minimum(others, len(known) - 1)] >> lanes.astype(np.uint32) & 1 == 0)
        return found
