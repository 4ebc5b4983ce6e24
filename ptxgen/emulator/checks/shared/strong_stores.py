"""The last strong stores, or atomic operations, on each byte of shared memory.

Strong accesses do not race with each other (PTX ISA 8.7), so that few stand for all: the last one to a byte, whoever it
is by, and the last one before it by another warp. Without the second a warp's own store would hide, whenever it comes
last, that other warps' stores are unordered with what it does next.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import any_set, count_nonzero
from ptxgen.emulator.checks.shared.reductions import SharedReductions
from ptxgen.emulator.memory.granules import GRANULE, Masks

_WORD = 4
#: The clocks of warps of a cluster.
_Clocks = NDArray[np.int64]


class _Stores(NamedTuple):
    """One store to each byte of each slot's memory, (slots, bytes): its interval, its warp in the cluster, its line."""

    #: 0 where there is no store, or where it does not count any more.
    clock: NDArray[np.int32]
    warp: NDArray[np.int16]
    line: NDArray[np.int32]

    @classmethod
    def none(cls, shape: tuple[int, int]) -> _Stores:
        """No stores; only what is touched takes memory."""
        return cls(np.zeros(shape, np.int32), np.zeros(shape, np.int16), np.zeros(shape, np.int32))

    def put(
        self, at: NDArray[np.int64], clock: NDArray[np.int64], warp: NDArray[np.int64], line: NDArray[np.int64]
    ) -> None:
        """Stores at flat places; of several at a place the last counts."""
        self.clock.reshape(-1)[at] = clock
        self.warp.reshape(-1)[at] = warp
        self.line.reshape(-1)[at] = line

    def get(self, at: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The stores at flat places: interval, warp, line."""
        clock, warp, line = (each.reshape(-1)[at].astype(np.int64) for each in self)
        return clock, warp, line


class StrongStores:
    """Which two warps, numbered in their cluster, last stored to each byte, in which of their intervals and lines."""

    def __init__(self, slots: int, members: int, bytes: int) -> None:
        self._bytes = -(-bytes // GRANULE) * GRANULE
        #: The last interval of each warp with a strong store to a slot's memory: most questions end here.
        self.latest = np.zeros((slots, members), np.int64)
        #: Slots with strong stores, and True once any slot had one.
        self._used, self.any_used = np.zeros(slots, np.bool_), False
        self._reductions = SharedReductions()

    @cached_property
    def _last(self) -> _Stores:
        """The last store to each byte."""
        return _Stores.none((len(self.latest), self._bytes))

    @cached_property
    def _before(self) -> _Stores:
        """The last before it by another warp."""
        return _Stores.none((len(self.latest), self._bytes))

    def clear(self, slot: int) -> None:
        """Make a slot ready for the next CTA."""
        if self._used[slot]:
            for stores in (self._last, self._before):
                stores.clock[slot] = 0
            self.latest[slot] = 0
            self._used[slot] = False
            self._reductions.clear(slot)

    def add(
        self,
        slots: NDArray[np.int64],
        warps: NDArray[np.int64],
        inside: NDArray[np.int64],
        size: int,
        clocks: NDArray[np.int64],
        changing: NDArray[np.bool_],
        line: int,
        *,
        observes: bool,
        reduces: bool = False,
    ) -> None:
        """Lanes store `size` bytes each at offsets of slots' memories, those of them that are `changing` something new;
        all are one-dimensional, and the last lane counts. An atomic operation with a result `observes`, one without
        `reduces`.
        """
        if reduces:
            self._reductions.add(slots, warps, inside, clocks, line)
        else:
            self._forget_reductions(slots, inside)
        np.maximum.at(self.latest, (slots, warps), clocks)
        self._used[slots] = self.any_used = True
        at = self._places(slots, inside, size).reshape(-1)
        clock, warp = np.repeat(np.where(changing, clocks, 0), size), np.repeat(warps, size)
        lines = np.full(len(at), line, np.int64)
        replaced = self._last.get(at)
        self._last.put(at, clock, warp, lines)
        if observes:
            self._before.clock.reshape(-1)[at] = 0
            return
        # What another warp stored before is kept: in an earlier instruction, or in this one by an earlier lane.
        winner = self._last.warp.reshape(-1)[at]
        for before in (replaced, (clock, warp, lines)):
            kept = (before[0] > 0) & (before[1] != winner)
            if any_set(kept):
                self._before.put(at[kept], *(each[kept] for each in before))

    def observe(self, slots: NDArray[np.int64], warps: NDArray[np.int64], inside: NDArray[np.int64], size: int) -> None:
        """Lanes see what others have stored, which comes before what they do next (8.9.4): it is forgotten."""
        if any_set(self._used[slots]):
            at = self._places(slots, inside, size)
            for stores in (self._last, self._before):
                stores.clock.reshape(-1)[at[stores.warp.reshape(-1)[at] != warps[:, None]]] = 0
            self._forget_reductions(slots, inside, warps)

    def _forget_reductions(
        self, slots: NDArray[np.int64], inside: NDArray[np.int64], but: NDArray[np.int64] | None = None
    ) -> None:
        for slot in np.unique(slots).tolist():
            mine = slots == slot
            self._reductions.forget(slot, inside[mine] // _WORD, but[mine] if but is not None else None)

    def forget(self, slot: int, granules: NDArray[np.int64], masks: Masks | np.uint16) -> None:
        """These bytes were overwritten by something that conflicts with whatever comes."""
        if self._used[slot]:
            for stores in (self._last, self._before):
                stores.clock[slot, _bytes(granules, masks)] = 0
            self._reductions.forget(slot, _bytes(granules, masks) // _WORD)

    def unordered(
        self, slot: int, warp: int, granules: NDArray[np.int64], masks: Masks | np.uint16, observed: _Clocks
    ) -> Iterator[tuple[int, int, int, int]]:
        """(other warp, line, interval, offset) of stores to these bytes unordered with `warp`, given its clocks."""
        if not self._used[slot] or not count_nonzero(self.latest[slot] > observed):
            return
        bytes, found = _bytes(granules, masks), set[int]()
        for each in self._late(slot, bytes, observed, but=warp):
            found.add(each[0])
            yield each
        for each in self._reductions.unordered(slot, warp, bytes // _WORD, observed):
            if each[0] not in found:
                yield each

    def unfenced(self, slot: int, granules: NDArray[np.int64], visible: _Clocks) -> Iterator[tuple[int, int, int, int]]:
        """(other warp, line, interval, offset) of stores to these granules that come after the `visible` clocks."""
        if not self._used[slot] or not count_nonzero(self.latest[slot] > visible):
            return
        yield from self._late(slot, _bytes(granules, np.uint16(0xFFFF)), visible)

    def _late(
        self, slot: int, bytes: NDArray[np.int64], clocks: _Clocks, but: int = -1
    ) -> Iterator[tuple[int, int, int, int]]:
        for stores in (self._last, self._before):
            clock, warp = stores.clock[slot, bytes], stores.warp[slot, bytes]
            late = np.flatnonzero((clock > clocks[warp]) & (warp != but))
            for member in np.unique(warp[late]).tolist():
                mine = late[warp[late] == member]
                last = mine[clock[mine].argmax()]
                yield member, int(stores.line[slot, bytes[last]]), int(clock[last]), int(bytes[last])

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
        if not any_set(self._used[slots]):
            return False
        chosen, byte = np.nonzero(masks[:, None] >> np.arange(GRANULE, dtype=np.uint16) & 1)
        place = (slots[chosen], granules[chosen] * GRANULE + byte)
        for stores in (self._last, self._before):
            clock, warp = stores.clock[place], stores.warp[place]
            if any_set((clock > observed[at[chosen], warp]) & (warp != warps[chosen])):
                return True
        _, first = np.unique(at, return_index=True)
        late = self.latest[slots[first]] > observed[at[first]]
        late[np.arange(len(first)), warps[first]] = False
        if not late.any():
            return False
        words = place[1] // _WORD
        return self._reductions.any_unordered(slots[chosen], warps[chosen], words, observed, at[chosen])

    def latest_after(self, slot: int, observed: _Clocks) -> Iterator[tuple[int, int, int]]:
        """(warp, line, offset) of the last stores to a slot's memory that come after these clocks."""
        if self._used[slot] and any_set(self.latest[slot] > observed):
            for member, line, _, offset in self._late(slot, self._stored(slot), observed):
                yield member, line, offset

    def _stored(self, slot: int) -> NDArray[np.int64]:
        """The bytes of a slot's memory to which something was stored that counts."""
        return np.flatnonzero((self._last.clock[slot] > 0) | (self._before.clock[slot] > 0))

    def _places(self, slots: NDArray[np.int64], inside: NDArray[np.int64], size: int) -> NDArray[np.int64]:
        """The bytes that lanes access: (lanes, size)."""
        return (slots * self._bytes + inside)[:, None] + np.arange(size)


def _bytes(granules: NDArray[np.int64], masks: Masks | np.uint16) -> NDArray[np.int64]:
    """The offsets of bytes of granules."""
    held = np.broadcast_to(masks, granules.shape)[:, None] >> np.arange(GRANULE, dtype=np.uint16) & 1
    return (granules[:, None] * GRANULE + np.arange(GRANULE))[held.astype(np.bool_)]
