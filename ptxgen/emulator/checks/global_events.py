"""Which accesses each place of global memory has seen last: what the checks of threads and of copies share.

An event is a warp's accesses by one instruction in one of its intervals, or one asynchronous copy. Threads' accesses
are kept for each two bytes, those of copies for each unit of 16 bytes, where they touch all of it. Of several loads
since a store one is remembered. So a race may be missed; none is invented.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.knowledge import PENDING
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.happens_before import Ordering

Events = NDArray[np.int32]
HALF, WORD, UNIT = 2, 4, 16
#: An event at both halves of a word.
_BOTH = np.int64(1 << 32 | 1)
#: Events after which all is forgotten, so that long kernels do not fill the memory.
_MANY = 1 << 22


class Kind(NamedTuple):
    """What an event's instruction does: "store", "tensor copy", ..."""

    statement: Statement
    what: str


class GlobalEvents:
    """The last writer and reader of each place, by event; 0 is none."""

    def __init__(self, ordering: Ordering, bytes: int, findings: Findings) -> None:
        self._ordering, self._findings = ordering, findings
        units = -(-bytes // UNIT)
        #: By threads, for each two bytes.
        self.writer, self.reader = (
            np.zeros(units * (UNIT // HALF), np.int32),
            np.zeros(units * (UNIT // HALF), np.int32),
        )
        #: By asynchronous copies, for each unit.
        self.copy_writer, self.copy_reader = np.zeros(units, np.int32), np.zeros(units, np.int32)
        #: Of each event: its warp, in which of the warp's intervals it is over, its kind, and of a copy to shared
        #: memory its number among the asynchronous operations.
        self.row, self.clock = np.zeros(1024, np.int32), np.zeros(1024, np.int64)
        self.kind, self.operation = np.zeros(1024, np.int32), np.zeros(1024, np.int64)
        #: Whether threads have stored anything, copies written or read anything.
        self.stores, self.copies = False, False
        self._kinds: list[Kind] = []
        self._numbers: dict[tuple[int, str], int] = {}
        self._used = 1
        #: Events that have been forgotten.
        self._before = 0
        #: The last events of each instruction: warps, their intervals, first event.
        self._last: dict[int, tuple[NDArray[np.int64], NDArray[np.int64], int]] = {}

    def grow(self, bytes: int) -> None:
        """The heap has become larger."""
        units = max(-(-bytes // UNIT) - len(self.copy_writer), 0)
        for name, each in (("writer", UNIT // HALF), ("reader", UNIT // HALF), ("copy_writer", 1), ("copy_reader", 1)):
            setattr(self, name, np.concatenate([getattr(self, name), np.zeros(units * each, np.int32)]))

    # Places.

    def of_threads(self, table: Events, offsets: NDArray[np.int64], size: int) -> Events:
        """The events of threads at accesses of `size` bytes: (warps, 32, halves)."""
        if size < WORD:
            return table[offsets // HALF][..., None]
        words = offsets // WORD
        if size > WORD:
            words = words[..., None] + np.arange(size // WORD)
        return table.view(np.int64)[words].view(np.int32).reshape(*offsets.shape, -1)

    def keep(
        self, table: Events, offsets: NDArray[np.int64], mask: NDArray[np.bool_] | None, size: int, events: Events
    ) -> None:
        """Remember events, one of each warp, at its accesses of `size` bytes: of those that meet the first stays."""
        given = np.broadcast_to(events[:, None], offsets.shape)
        if size == 1:  # two neighbours make a half
            pair = (offsets[:, :-1] % HALF == 0) & (offsets[:, 1:] == offsets[:, :-1] + 1)
            if mask is not None:
                pair &= mask[:, :-1] & mask[:, 1:]
            offsets, given = offsets[:, :-1][pair], given[:, :-1][pair]
        elif mask is not None:
            offsets, given = offsets[mask], given[mask]
        offsets, given = offsets.ravel()[::-1], given.ravel()[::-1]
        if size <= HALF:
            table[offsets // HALF] = given
            return
        words, pairs = table.view(np.int64), given * _BOTH
        if size == WORD:
            words[offsets // WORD] = pairs
        else:
            words[offsets[:, None] // WORD + np.arange(size // WORD)] = pairs[:, None]

    def units(self, table: Events, units: NDArray[np.int64]) -> Events:
        """The different events of threads in whole units."""
        found = table.view(np.int64).reshape(-1, UNIT // WORD)[units]
        return distinct_events(found.view(np.int32)) if found.any() else np.zeros(0, np.int32)

    def forget_units(self, units: NDArray[np.int64]) -> None:
        """A copy has written whole units: it is what later accesses meet."""
        for table in (self.writer, self.reader):
            table.view(np.int64).reshape(-1, UNIT // WORD)[units] = 0
        self.copy_reader[units] = 0

    # Events.

    def of_warps(self, rows: NDArray[np.int64], statement: Statement, what: str) -> Events:
        """An event for each warp: the same as before where no warp has synchronised since."""
        clocks, key = self._ordering.intervals(rows), id(statement)
        last = self._last.get(key)
        if last is None or not (np.array_equal(last[0], rows) and np.array_equal(last[1], clocks)):
            first = self._add(len(rows), statement, what)
            span = slice(first, first + len(rows))
            self.row[span], self.clock[span] = rows, clocks
            last = self._last[key] = rows.copy(), clocks, first
        return np.arange(last[2], last[2] + len(rows), dtype=np.int32)

    def of_copy(self, row: int, clock: int, statement: Statement, what: str, operation: int = 0) -> int:
        """An event for an asynchronous copy that a warp has asked for."""
        event = self._add(1, statement, what)
        self.row[event], self.clock[event], self.operation[event] = row, clock, operation
        self.copies = True
        return event

    def stamp(self, event: int) -> int:
        """A name of an event that stays its own when events are forgotten; `settle` takes it."""
        return self._before + event

    def settle(self, stamp: int, clock: int) -> None:
        """A warp has waited for a copy of its: it is over in this interval."""
        if stamp >= self._before:
            self.clock[stamp - self._before] = clock

    def kind_of(self, event: int) -> Kind:
        """What an event's instruction is."""
        return self._kinds[int(self.kind[event])]

    def report(self, row: int, event: int, does: str, statement: Statement) -> None:
        """An access of a warp that does not know an event: `does` begins the message, "the load reads"."""
        earlier, what = self.kind_of(event)
        other, clock = int(self.row[event]), int(self.clock[event])
        where = f"the {what} of line {earlier.line} by {self._ordering.warp_of(row, other)}"
        number = int(self.operation[event])
        doubted = self._ordering.doubted_operation(row, number) if number else self._ordering.doubted(row, other, clock)
        if doubted:
            self._report_fence(where, doubted, statement)
            return
        if number:
            why = "whose completion its warp has not waited for"
        elif clock == PENDING:
            why = "which no cp.async.bulk.wait_group (without .read) has waited for"
        else:
            why = "with which its warp has not synchronised"
        self._findings.add("global-race", f"{does} data of {where}, {why}", statement)

    def _report_fence(self, where: str, side: str, statement: Statement) -> None:
        """Only a flag or lock orders the two, and its accesses are strong, but nothing more.

        Without an acquire it is advice: CUDA's own samples end so, with bar.sync after an atomic operation.
        """
        missing = (
            "its store does not release: use .release, or fence.acq_rel before it"
            if side == "release"
            else "the load of it does not acquire: use .acquire, or fence.acq_rel after it"
        )
        self._findings.add(
            "missing-fence",
            f"this access and {where} are ordered by a strong access alone; {missing}, in a scope that includes both "
            "threads",
            statement,
            severity="error" if side == "release" else "advice",
        )

    def _add(self, count: int, statement: Statement, what: str) -> int:
        if self._used > _MANY:
            for table in (self.writer, self.reader, self.copy_writer, self.copy_reader):
                table[:] = 0
            self._last.clear()
            self._before, self._used = self._before + self._used, 1
        first, self._used = self._used, self._used + count
        while self._used > len(self.row):
            for name in ("row", "clock", "kind", "operation"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
        key = (id(statement), what)
        if key not in self._numbers:
            self._numbers[key] = len(self._kinds)
            self._kinds.append(Kind(statement, what))
        self.kind[first : self._used] = self._numbers[key]
        return first


def distinct_events(events: Events) -> Events:
    """The different events among some, without 0."""
    found = np.unique(events)
    return found[1:] if len(found) and found[0] == 0 else found
