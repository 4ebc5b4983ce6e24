"""Unordered copies to the same global memory: whether they store the same bytes.

racecheck of compute-sanitizer calls such a pair a hazard that changes nothing. The bytes are available only when both
copies are complete, so the finding waits for that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import all_set
from ptxgen.emulator.checks.global_memory.shadow import GRANULE
from ptxgen.emulator.memory import GlobalMemory

#: Called with whether the bytes are equal.
Report = Callable[[bool], object]


@dataclass(slots=True, eq=False)
class _Pair:
    """Two copies: granules of both, the numbers of those in flight, the bytes after the first of them."""

    granules: NDArray[np.int64]
    under_way: set[int]
    before: NDArray[np.uint8] | None
    report: Report


class OverlappingCopies:
    """Pairs of copies to global memory, by the numbers of their asynchronous work, until both are complete."""

    def __init__(self, memory: GlobalMemory) -> None:
        self._memory = memory
        self._under_way: set[int] = set()
        self._pairs: list[_Pair] = []

    def begins(self, number: int) -> None:
        """A copy to global memory is issued."""
        self._under_way.add(number)

    def overlap(self, earlier: int, number: int, granules: NDArray[np.int64], report: Report) -> None:
        """A copy that begins overlaps an earlier one at these granules of the heap."""
        under_way = {number} | ({earlier} & self._under_way)
        before = self._bytes(granules) if len(under_way) == 1 else None
        self._pairs.append(_Pair(granules, under_way, before, report))

    def completes(self, number: int) -> None:
        """A copy completes."""
        if number not in self._under_way:
            return
        self._under_way.discard(number)
        for pair in [each for each in self._pairs if number in each.under_way]:
            now = self._bytes(pair.granules)
            if pair.before is None:
                pair.before = now
                pair.under_way.discard(number)
            else:
                self._pairs.remove(pair)
                pair.report(all_set(pair.before == now))

    def end(self) -> None:
        """The launch ends: copies still in flight count as different."""
        for pair in self._pairs:
            pair.report(False)
        self._pairs.clear()

    def _bytes(self, granules: NDArray[np.int64]) -> NDArray[np.uint8]:
        return self._memory.data.reshape(-1, GRANULE)[granules].copy()
