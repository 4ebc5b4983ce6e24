"""The words of strong accesses by the lanes of warps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import count_nonzero
from ptxgen.emulator.checks.order.strong_history import Word, in_shared_memory
from ptxgen.emulator.memory.global_memory import HEAP_BASE
from ptxgen.emulator.memory.granules import starts
from ptxgen.emulator.memory.located import MemoryAccess
from ptxgen.emulator.state.group import spread

#: A warp's strong accesses: its position in the group, the warp, its words, and of each the first lane.
_OfWarp = tuple[int, int, list[Word], list[int]]


class StrongWords(NamedTuple):
    """The words of strong accesses: by active lane its number (32 to a warp), its word, its warp's position."""

    warps: NDArray[np.int64]
    lanes: NDArray[np.int64]
    places: NDArray[np.int64]
    positions: NDArray[np.int64]

    @classmethod
    def of(cls, access: MemoryAccess) -> StrongWords | None:
        """The words of an access; None for local memory, which no other thread reaches."""
        warps, _, space, places, _, _, _ = access
        (lanes,) = access.active.reshape(-1).nonzero()
        if places.slots is not None and places.inside is not None:
            slots = spread(places.slots, places.inside.shape).reshape(-1)[lanes]
            return cls(warps, lanes, in_shared_memory(slots, places.inside.reshape(-1)[lanes]), lanes // 32)
        return (
            cls(warps, lanes, places.offsets.reshape(-1)[lanes] + HEAP_BASE, lanes // 32) if space == "global" else None
        )

    def by_warp(self) -> Iterator[_OfWarp]:
        """Each warp with its different words."""
        if self.one_lane_each:
            each = zip(self.positions.tolist(), self.places.tolist(), (self.lanes % 32).tolist(), strict=True)
            for position, place, lane in each:
                yield position, int(self.warps[position]), [place], [lane]
            return
        order = np.lexsort((self.places, self.positions))
        places, positions = self.places[order], self.positions[order]
        first = starts(places) | starts(positions)
        lanes, places, positions = self.lanes[order][first] % 32, places[first], positions[first]
        begins = np.flatnonzero(starts(positions)).tolist()
        for begin, end in zip(begins, [*begins[1:], len(places)], strict=True):
            position = int(positions[begin])
            yield position, int(self.warps[position]), places[begin:end].tolist(), lanes[begin:end].tolist()

    def by_turn(self, turns: NDArray[np.int64]) -> Iterator[_OfWarp]:
        """Of each warp at each word the first and the last lane, in this order.

        The operations of a warp between the two release and acquire nothing that these do not.
        """
        if self.one_lane_each:
            order = turns
        else:
            order = self._first_and_last(turns)
        for turn in order.tolist():
            position = int(self.positions[turn])
            yield position, int(self.warps[position]), [int(self.places[turn])], [int(self.lanes[turn]) % 32]

    def _first_and_last(self, turns: NDArray[np.int64]) -> NDArray[np.int64]:
        """The turns of `by_turn`."""
        places, positions = self.places[turns], self.positions[turns]
        order = np.lexsort((positions, places))
        first = starts(places[order]) | starts(positions[order])
        last = np.append(first[1:], True)
        return turns[np.union1d(order[first], order[last])]

    @property
    def one_lane_each(self) -> bool:
        """Whether one lane of each warp has a word, as where threads lock."""
        return not count_nonzero(self.positions[1:] <= self.positions[:-1])
