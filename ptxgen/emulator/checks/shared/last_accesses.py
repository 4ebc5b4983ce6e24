"""The last loads, or stores, of each warp in each granule of shared memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import any_set, count_nonzero
from ptxgen.emulator.checks.order.vector_clock import PENDING
from ptxgen.emulator.memory.granules import ALL_BYTES, GRANULE, Masks, distinct, first_byte
from ptxgen.emulator.native.library import chosen, pointer_to
from ptxgen.emulator.native.shared import Touched, packed_accesses


class _Table:
    """Last accesses to one CTA's memory by warps `first` and up of its cluster: (warps, granules)."""

    __slots__ = ("clock", "first", "latest", "line", "mask")

    def __init__(
        self, first: int, clock: NDArray[np.int32], mask: Masks, line: NDArray[np.int32], latest: NDArray[np.int64]
    ) -> None:
        self.first, self.clock, self.mask, self.line = first, clock, mask, line
        #: The last interval of each warp in which it accessed anything: most questions end here.
        self.latest = latest

    @classmethod
    def empty(cls, latest: NDArray[np.int64], granules: int) -> _Table:
        """One for all warps of a cluster."""
        shape = (len(latest), granules)
        return cls(0, np.zeros(shape, np.int32), np.zeros(shape, np.uint16), np.zeros(shape, np.int32), latest)

    def of(self, clocks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The clocks of the table's warps, of those of the cluster."""
        return clocks[self.first : self.first + len(self.latest)]


class ThreadAccesses:
    """Which bytes of each granule every warp has accessed in its last interval that touched the granule, and in which.

    Warps are numbered in their cluster. A slot's table has its own warps until one of a peer comes.
    """

    def __init__(self, slots: int, size: int, warps: int, granules: int) -> None:
        self._size, self._warps, self._granules = size, warps, granules
        #: The accesses to each slot's memory, made when they are first asked for.
        self._tables: list[_Table | None] = [None] * slots
        #: Slots whose memory was accessed, and a pointer to them.
        self._used = np.zeros(slots, np.bool_)
        self.used = pointer_to(self._used)
        #: The accesses of the CTAs' own warps; only what is touched takes memory.
        shape = (slots, warps, granules)
        self.clock, self.mask = np.zeros(shape, np.int32), np.zeros(shape, np.uint16)
        self.line = np.zeros(shape, np.int32)
        #: The last interval of each warp of the cluster in which it accessed anything of a slot.
        self.latest = np.zeros((slots, size * warps), np.int64)
        #: The accesses of the CTAs' own warps, for machine code.
        self.packed = packed_accesses(self.clock, self.mask, self.line, self.latest)
        #: Slots whose table includes the warps of peer CTAs, and True once any slot had one.
        self._apart, self.any_apart = np.zeros(slots, np.bool_), False

    def table(self, slot: int) -> _Table | None:
        """The accesses to a slot's memory, None if there was none yet."""
        table = self._tables[slot]
        if table is None and self._used[slot]:
            own = slot % self._size * self._warps
            latest = self.latest[slot, own : own + self._warps]
            table = self._tables[slot] = _Table(own, self.clock[slot], self.mask[slot], self.line[slot], latest)
        return table

    def apart(self, slots: NDArray[np.int64]) -> bool:
        """Whether some of these slots have a table of their own."""
        return self.any_apart and any_set(self._apart[slots])

    def _reach(self, slot: int, warp: int) -> _Table:
        self._used[slot] = True
        table, own = self.table(slot), slot % self._size * self._warps
        assert table is not None
        if not table.first <= warp < table.first + len(table.latest):
            whole = _Table.empty(self.latest[slot], self._granules)
            self._apart[slot] = self.any_apart = True
            for name in ("clock", "mask", "line"):
                getattr(whole, name)[own : own + self._warps] = getattr(table, name)
            table = self._tables[slot] = whole
        return table

    def add(self, slot: int, warp: int, granules: NDArray[np.int64], masks: Masks, clock: int, line: int) -> None:
        """A warp accesses bytes of these different granules, in an instruction of a line."""
        table = self._reach(slot, warp)
        at = warp - table.first
        mask, latest = table.mask[at], int(table.latest[at])
        if latest >= clock:  # else none of them has been touched in this interval
            masks = mask[granules] * (table.clock[at][granules] == clock) | masks
        mask[granules] = masks
        table.clock[at][granules] = clock
        table.line[at][granules] = line
        table.latest[at] = max(latest, clock)

    def add_own(self, touched: Touched, clocks: NDArray[np.int64], line: int) -> None:
        """As `add`, for warps that access their own CTAs' memories, none `apart`, in their intervals of `clocks`."""
        warps, slots = touched.warps, touched.slots
        self._used[slots] = True
        library = chosen()
        if library is not None:
            touched.keep(library, self.packed, np.ascontiguousarray(clocks), line)
            return
        at, granules, masks = touched.at, touched.granules, touched.bytes
        place, now = warps[at] * self._granules + granules, clocks[at]
        clock, mask = self.clock.reshape(-1), self.mask.reshape(-1)
        mask[place] = mask[place] * (clock[place] == now) | masks
        clock[place] = now
        self.line.reshape(-1)[place] = line
        latest = warps if self._size == 1 else slots * self._size * self._warps + warps % (self._size * self._warps)
        last = self.latest.reshape(-1)
        last[latest] = np.maximum(last[latest], clocks)

    def unordered(
        self, slot: int, warp: int, granules: NDArray[np.int64], masks: Masks | np.uint16, observed: NDArray[np.int64]
    ) -> Iterator[tuple[int, int, int, int]]:
        """(other warp, line, interval, offset) of accesses to the same bytes that are unordered with `warp`, which has
        these clocks.
        """
        table = self.table(slot)
        if table is None:
            return
        clocks, at = table.of(observed), warp - table.first
        others = table.latest > clocks
        if 0 <= at < len(others):
            others[at] = False
        if not count_nonzero(others):
            return
        late = (table.clock[:, granules] > clocks[:, None]) & ((table.mask[:, granules] & masks) != 0)
        late &= others[:, None]
        if count_nonzero(late):
            yield from self.lines(slot, granules, late, masks)

    def conflicts(
        self, slot: int, warp: int, granules: NDArray[np.int64], masks: Masks | np.uint16, observed: NDArray[np.int64]
    ) -> Iterator[tuple[int, int, NDArray[np.int64], Masks]]:
        """(other warp, line, granules, bytes of them) of all accesses that `unordered` finds."""
        table = self.table(slot)
        if table is None:
            return
        clocks, bytes = table.of(observed), np.broadcast_to(masks, granules.shape)
        for at in np.flatnonzero(table.latest > clocks).tolist():
            common = table.mask[at, granules] & bytes
            late = (table.clock[at, granules] > clocks[at]) & (common != 0)
            lines = table.line[at, granules]
            for line in distinct(lines[late]).tolist() if at != warp - table.first else ():
                chosen = late & (lines == line)
                yield at + table.first, line, granules[chosen], common[chosen]

    def pending(self, slot: int, warp: int, granules: NDArray[np.int64], masks: Masks) -> tuple[int, int] | None:
        """(line, offset) of a cp.async of this warp to some of these bytes, for which it has not waited."""
        table = self.table(slot)
        at = warp - table.first if table is not None else 0
        if table is None or not 0 <= at < len(table.latest) or table.latest[at] != PENDING:
            return None
        hit = (table.clock[at, granules] == PENDING) & ((table.mask[at, granules] & masks) != 0)
        if not any_set(hit):
            return None
        first = int(hit.argmax())
        granule = int(granules[first])
        return int(table.line[at, granule]), granule * GRANULE + first_byte(table.mask[at, granule] & masks[first])

    def settle(self, slot: int, warp: int, granules: NDArray[np.int64], clock: int) -> None:
        """The warp has waited for its cp.async to these granules: they count as stores that it makes now."""
        table = self._reach(slot, warp)
        at = warp - table.first
        table.clock[at, granules[table.clock[at, granules] == PENDING]] = clock
        table.latest[at] = table.clock[at].max()

    def lines(
        self,
        slot: int,
        granules: NDArray[np.int64],
        chosen: NDArray[np.bool_],
        masks: Masks | np.uint16 = ALL_BYTES,
    ) -> Iterator[tuple[int, int, int, int]]:
        """(warp, line, interval, offset) of the last access by each warp among the `chosen` ones, (warps, granules).

        `offset`: the first byte of it that is among `masks`.
        """
        table = self.table(slot)
        assert table is not None
        for at in np.flatnonzero(chosen.any(axis=1)):
            last = np.where(chosen[at], table.clock[at, granules], -1).argmax()
            granule = granules[last]
            offset = int(granule) * GRANULE + first_byte(table.mask[at, granule] & _mask(masks, last))
            yield int(at) + table.first, int(table.line[at, granule]), int(table.clock[at, granule]), offset

    def last_line(self, slot: int, warp: int, granule: int) -> int:
        """The line of the last access of `warp` of the machine to a granule, 0 if there was none."""
        table = self.table(slot)
        at = warp % (self._size * self._warps) - table.first if table is not None else -1
        return int(table.line[at, granule]) if table is not None and 0 <= at < len(table.latest) else 0

    def is_pending(self, slot: int, warp: int, granule: int) -> bool:
        """Whether `warp` of the machine has not waited for its cp.async to a granule."""
        table = self.table(slot)
        at = warp % (self._size * self._warps) - table.first if table is not None else -1
        return table is not None and 0 <= at < len(table.latest) and int(table.clock[at, granule]) == PENDING

    def forget(self, slot: int, granules: NDArray[np.int64], masks: Masks | np.uint16) -> None:
        """These bytes were overwritten by something that conflicts with whatever comes."""
        table = self.table(slot)
        if table is not None:
            table.mask[:, granules] &= ~masks

    def forget_all(self, slot: int, granules: NDArray[np.int64] | slice) -> None:
        """The same of all bytes of some granules."""
        table = self.table(slot)
        if table is not None:
            table.mask[:, granules] = 0

    def clear(self, slot: int) -> None:
        if self._used[slot]:
            self._tables[slot] = None
            self._used[slot] = False
            self._apart[slot] = False
            for array in (self.clock, self.mask, self.latest):
                array[slot] = 0


def _mask(masks: Masks | np.uint16, at: np.intp) -> np.uint16:
    return masks[at] if isinstance(masks, np.ndarray) else masks
