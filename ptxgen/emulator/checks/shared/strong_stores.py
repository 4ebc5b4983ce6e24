"""The last strong store, or atomic operation, on each byte of shared memory.

Strong accesses do not race with each other (PTX ISA 8.7), so that the last one stands for all, and is kept once for a
byte, whoever it is by.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.memory.granules import GRANULE, Masks

#: The clocks of warps of a cluster.
_Clocks = NDArray[np.int64]


class StrongStores:
    """Which warp, numbered in its cluster, last stored to each byte, in which of its intervals, and in which line."""

    def __init__(self, slots: int, members: int, bytes: int) -> None:
        shape = (slots, -(-bytes // GRANULE) * GRANULE)
        #: 0 where there is none, or what it was does not count any more; only what is touched takes memory.
        self._clock, self._line = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        self._warp = np.zeros(shape, np.int16)
        #: The last interval of each warp with a strong store to a slot's memory: most questions end here.
        self.latest = np.zeros((slots, members), np.int64)
        #: Slots with strong stores, and True once any slot had one.
        self._used, self.any_used = np.zeros(slots, np.bool_), False

    def clear(self, slot: int) -> None:
        """Make a slot ready for the next CTA."""
        if self._used[slot]:
            self._clock[slot] = 0
            self.latest[slot] = 0
            self._used[slot] = False

    def add(
        self,
        slots: NDArray[np.int64],
        warps: NDArray[np.int64],
        inside: NDArray[np.int64],
        size: int,
        clocks: NDArray[np.int64],
        changing: NDArray[np.bool_],
        line: int,
    ) -> None:
        """Lanes store `size` bytes each at offsets of slots' memories, those of them that are `changing` something new;
        all are one-dimensional, and the last lane counts.
        """
        at = self._places(slots, inside, size)
        self._clock.reshape(-1)[at] = np.where(changing, clocks, 0)[:, None]
        self._warp.reshape(-1)[at] = warps[:, None]
        self._line.reshape(-1)[at] = line
        np.maximum.at(self.latest, (slots, warps), clocks)
        self._used[slots] = self.any_used = True

    def observe(self, slots: NDArray[np.int64], warps: NDArray[np.int64], inside: NDArray[np.int64], size: int) -> None:
        """Lanes see what others have stored, which comes before what they do next (8.9.4): it is forgotten."""
        if self._used[slots].any():
            at = self._places(slots, inside, size)
            self._clock.reshape(-1)[at[self._warp.reshape(-1)[at] != warps[:, None]]] = 0

    def forget(self, slot: int, granules: NDArray[np.int64], masks: Masks | np.uint16) -> None:
        """These bytes were overwritten by something that conflicts with whatever comes."""
        if self._used[slot]:
            self._clock[slot, _bytes(granules, masks)] = 0

    def unordered(
        self, slot: int, warp: int, granules: NDArray[np.int64], masks: Masks | np.uint16, observed: _Clocks
    ) -> Iterator[tuple[int, int, int, int]]:
        """(other warp, line, interval, offset) of stores to these bytes unordered with `warp`, given its clocks."""
        if not self._used[slot] or not np.count_nonzero(self.latest[slot] > observed):
            return
        yield from self._late(slot, _bytes(granules, masks), observed, but=warp)

    def unfenced(self, slot: int, granules: NDArray[np.int64], visible: _Clocks) -> Iterator[tuple[int, int, int, int]]:
        """(other warp, line, interval, offset) of stores to these granules that come after the `visible` clocks."""
        if not self._used[slot] or not np.count_nonzero(self.latest[slot] > visible):
            return
        yield from self._late(slot, _bytes(granules, np.uint16(0xFFFF)), visible)

    def _late(
        self, slot: int, bytes: NDArray[np.int64], clocks: _Clocks, but: int = -1
    ) -> Iterator[tuple[int, int, int, int]]:
        clock, warp = self._clock[slot, bytes], self._warp[slot, bytes]
        late = np.flatnonzero((clock > clocks[warp]) & (warp != but))
        for member in np.unique(warp[late]).tolist():
            mine = late[warp[late] == member]
            last = mine[clock[mine].argmax()]
            yield member, int(self._line[slot, bytes[last]]), int(clock[last]), int(bytes[last])

    def any_unordered(
        self,
        slots: NDArray[np.int64],
        warps: NDArray[np.int64],
        granules: NDArray[np.int64],
        masks: Masks,
        observed: _Clocks,
        at: NDArray[np.int64],
    ) -> bool:
        """Whether `unordered` has something for many warps: by access the slot, the warp, a granule and its bytes, and
        which of the `observed` clocks are its.
        """
        if not self._used[slots].any():
            return False
        chosen, byte = np.nonzero(masks[:, None] >> np.arange(GRANULE, dtype=np.uint16) & 1)
        place = (slots[chosen], granules[chosen] * GRANULE + byte)
        clock, warp = self._clock[place], self._warp[place]
        return bool(((clock > observed[at[chosen], warp]) & (warp != warps[chosen])).any())

    def latest_after(self, slot: int, observed: _Clocks) -> Iterator[tuple[int, int, int]]:
        """(warp, line, offset) of the last stores to a slot's memory that come after these clocks."""
        if self._used[slot] and (self.latest[slot] > observed).any():
            for member, line, _, offset in self._late(slot, np.flatnonzero(self._clock[slot]), observed):
                yield member, line, offset

    def _places(self, slots: NDArray[np.int64], inside: NDArray[np.int64], size: int) -> NDArray[np.int64]:
        """The bytes that lanes access: (lanes, size)."""
        return (slots * self._clock.shape[1] + inside)[:, None] + np.arange(size)


def _bytes(granules: NDArray[np.int64], masks: Masks | np.uint16) -> NDArray[np.int64]:
    """The offsets of bytes of granules."""
    held = np.broadcast_to(masks, granules.shape)[:, None] >> np.arange(GRANULE, dtype=np.uint16) & 1
    return (granules[:, None] * GRANULE + np.arange(GRANULE))[held.astype(np.bool_)]
