"""Conflicts of threads' accesses to global memory: with those of other warps, of this CTA or not, and with copies.

A store conflicts with an earlier access, a load with an earlier store, of which its warp does not know: through
barriers, mbarriers, or strong accesses (volatile, relaxed, acquire and release, atomics), which race with nothing and
tell what their warp knows. Single bytes are remembered where a warp stores or loads two neighbours. What bulk and
tensor copies do is in `global_copies`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.global_events import UNIT, Events, GlobalEvents
from ptxgen.emulator.checks.grid_races import GridRaces
from ptxgen.emulator.checks.knowledge import PENDING
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.happens_before import Ordering


class GlobalAccesses:
    """What threads load and store, against the last events at the same places."""

    def __init__(self, ordering: Ordering, events: GlobalEvents, grids: GridRaces) -> None:
        self._ordering, self._events, self._grids = ordering, events, grids

    def access(
        self, rows: NDArray[np.int64], offsets: NDArray[np.int64], mask: NDArray[np.bool_] | None, size: int,
        statement: Statement, same: NDArray[np.bool_] | None = None, what: str = "load",
    ) -> None:  # fmt: skip
        """Warps load `size` bytes at these offsets (warps, 32) of the heap, or store them.

        A store gives `same`, (warps, 32): which lanes change nothing. Writing again what is there is harmless.
        """
        events = self._events
        racing = mask if same is None else ~same if mask is None else mask & ~same
        what = what if same is None else "store"
        if self._grids.before is not None or self._grids.after is not None:
            self._grids.access(rows, offsets, racing, size, statement, what)
        if events.stores:
            self._compare(events.of_threads(events.writer, offsets, size), rows, racing, statement, what)
        if same is not None:
            self._compare(events.of_threads(events.reader, offsets, size), rows, racing, statement, what)
        if events.copies:
            units = offsets[..., None] // UNIT if size <= UNIT else offsets[..., None] // UNIT + np.arange(size // UNIT)
            # What is there is not what a copy under way will write: all lanes count.
            self._compare(events.copy_writer[units], rows, mask, statement, what)
            if same is not None:
                self._against_copies_that_read(events.copy_reader[units], rows, racing, statement)
        table = events.reader if same is None else events.writer
        mine = events.of_warps(rows, statement, what)
        events.keep(table, offsets, mask, size, mine)
        if same is not None:
            events.stores = True
            if len(rows) > 1:
                first = events.of_threads(table, offsets, size)
                if (first != mine[:, None, None]).any():  # lanes of several warps that store to the same place at once
                    self._compare(first, rows, racing, statement, what)

    def forget(self, offsets: NDArray[np.int64], mask: NDArray[np.bool_] | None, size: int) -> None:
        """Strong stores: whoever accesses the place later is not behind the weak accesses of before."""
        events = self._events
        for table in (events.writer, events.reader):
            events.keep(table, offsets, mask, max(size, 2), np.zeros(len(offsets), np.int32))
        if events.copies:
            units = (offsets if mask is None else offsets[mask]) // UNIT
            events.copy_writer[units] = 0
            events.copy_reader[units] = 0

    def _compare(
        self, events: Events, rows: NDArray[np.int64], racing: NDArray[np.bool_] | None, statement: Statement, what: str
    ) -> None:
        """Report accesses among these events, (warps, 32, places), that the warps do not know."""
        suspect = events != 0
        if not suspect.any():
            return
        mine = rows[:, None, None]
        others, clocks = self._events.row[events], self._events.clock[events]
        suspect &= (others != mine) | (clocks == PENDING)
        if racing is not None:
            suspect &= racing[..., None]
        if not suspect.any():
            return
        suspect &= ~self._ordering.know(np.broadcast_to(mine, events.shape), others, clocks)
        if not suspect.any():
            return
        found = np.broadcast_to(mine, events.shape)[suspect].astype(np.int64) << 32 | events[suspect]
        for pair in np.unique(found).tolist():
            row, event = pair >> 32, pair & 0xFFFFFFFF
            if not self._ordering.knows(row, int(self._events.row[event]), int(self._events.clock[event])):
                self._report(row, event, statement, what)

    def _against_copies_that_read(
        self, events: Events, rows: NDArray[np.int64], racing: NDArray[np.bool_] | None, statement: Statement
    ) -> None:
        """Report copies that may still read what is overwritten."""
        suspect = events != 0
        if racing is not None:
            suspect &= racing[..., None]
        if not suspect.any():
            return
        operations, known = self._ordering.operations, self._ordering.known
        found = np.broadcast_to(rows[:, None, None], events.shape)[suspect].astype(np.int64) << 32 | events[suspect]
        for pair in np.unique(found).tolist():
            row, event = pair >> 32, pair & 0xFFFFFFFF
            number = int(self._events.operation[event])
            if number in operations and number not in known[row].operations:
                self._report(row, event, statement, "store")

    def _report(self, row: int, event: int, statement: Statement, what: str) -> None:
        verb = "overwrites" if what == "store" else "reads"
        self._events.report(row, event, f"the {what} {verb}", statement)
