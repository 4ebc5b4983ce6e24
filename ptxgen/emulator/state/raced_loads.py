"""What weak loads get in a rerun in place of bytes that another thread may be storing meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.memory.located import MemoryAccess

#: Bits of a warp's number.
_BITS = 26
#: Instead of a warp: it is not known which.
UNKNOWN = (1 << _BITS) - 1


def pairs_of(units: NDArray[np.int64], warps: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number for each unit and warp."""
    return units << _BITS | warps


class RacedBytes(NamedTuple):
    """The bytes that loads of one line share with unordered stores, in one state space, in units of `size` bytes.

    `units` are their numbers, `stored` and `loaded` pairs of these and the warps that store and load them so
    (`pairs_of`); all ascend.
    """

    space: str
    size: int
    units: NDArray[np.int64]
    stored: NDArray[np.int64]
    loaded: NDArray[np.int64]

    def replaced(self, offsets: NDArray[np.int64], bytes: int, warps: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Where words of so many bytes at these offsets, (warps, 32), are raced for these warps: other warps store
        there. A warp that stores there itself counts only if its load is known to race.
        """
        found = np.zeros(offsets.shape, np.bool_)
        for step in range(0, bytes, self.size):
            unit = (offsets + step) // self.size
            pairs = pairs_of(unit, warps[:, None])
            found |= _among(unit, self.units) & (~_among(pairs, self.stored) | _among(pairs, self.loaded))
        return found


class RacedLoads:
    """The bytes to replace, by line of the load. `global_warps` names the warps of the rerun as the pairs have them.

    In shared memory warps are named by their number among the `members` of their cluster.
    """

    def __init__(self, lines: Mapping[int, RacedBytes]) -> None:
        self._lines = lines
        self.global_warps: Callable[[NDArray[np.int64]], NDArray[np.int64]] = lambda warps: warps
        self.members = 1
        #: Lines with a replaced load.
        self.replaced: set[int] = set()

    def replace(self, access: MemoryAccess, values: Sequence[NDArray[Any]], byte: int) -> None:
        """Put `byte` into what lanes have loaded, `values` of neighboring words, (warps, 32), where it is raced."""
        raced = self._lines.get(access.statement.line)
        if raced is None or not access.space.startswith(raced.space):
            return
        places = access.places
        inside = places.offsets if places.inside is None else places.inside
        warps = self.global_warps(access.warps) if raced.space == "global" else access.warps % self.members
        for number, value in enumerate(values):
            size = value.dtype.itemsize
            there = raced.replaced(inside + number * size, size, warps) & access.active
            if any_set(there):
                self.replaced.add(access.statement.line)
                value[there] = np.full(size, byte, np.uint8).view(value.dtype)[0]


def _among(numbers: NDArray[np.int64], ascending: NDArray[np.int64]) -> NDArray[np.bool_]:
    if not len(ascending):
        return np.zeros(numbers.shape, np.bool_)
    return ascending[np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)] == numbers
