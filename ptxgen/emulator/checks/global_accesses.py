"""Conflicts of accesses to global memory by threads of different warps, in the same CTA or not.

Kept for each word of four bytes: the last store and the last load. A store conflicts with an earlier access, a load
with an earlier store, of which its warp does not know: through barriers, mbarriers, or strong accesses (volatile,
relaxed, acquire and release, atomics), which race with nothing and tell what their warp knows. Accesses of fewer than
four bytes are looked at, but not kept; of several loads since a store one is remembered. So a race may be missed; none
is invented.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.findings import Findings
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.happens_before import Ordering

_WORD = 4
#: Events after which all is forgotten, so that long kernels do not fill the memory.
_MANY = 1 << 22


class GlobalAccesses:
    """The last events at each word of global memory.

    An event is a warp's accesses by one instruction in one of its intervals.
    """

    def __init__(self, ordering: Ordering, bytes: int, findings: Findings) -> None:
        self._ordering, self._findings = ordering, findings
        words = -(-bytes // _WORD)
        self._writer, self._reader = np.zeros(words, np.int32), np.zeros(words, np.int32)
        self._row, self._clock = np.zeros(1024, np.int32), np.zeros(1024, np.int64)
        #: The instruction of each event, by its place among those seen.
        self._statement = np.zeros(1024, np.int32)
        self._statements: list[Statement] = []
        self._numbers: dict[int, int] = {}
        self._used = 1
        #: The last events of each instruction: warps, their intervals, first event.
        self._last: dict[int, tuple[NDArray[np.int64], NDArray[np.int64], int]] = {}
        #: Those of the grid before, and of the grid that may begin before this one has ended.
        self.before: GlobalAccesses | None = None
        self.after: GlobalAccesses | None = None
        #: Which warps have waited for the grids before.
        self.after_grids: NDArray[np.bool_] = np.zeros(0, np.bool_)

    def grow(self, bytes: int) -> None:
        """The heap has become larger."""
        more = np.zeros(max(-(-bytes // _WORD) - len(self._writer), 0), np.int32)
        self._writer, self._reader = np.concatenate([self._writer, more]), np.concatenate([self._reader, more])

    def access(
        self, rows: NDArray[np.int64], offsets: NDArray[np.int64], mask: NDArray[np.bool_] | None, size: int,
        statement: Statement, same: NDArray[np.bool_] | None = None,
    ) -> None:  # fmt: skip
        """Warps load `size` bytes at these offsets (warps, 32) of the heap, or store them.

        A store gives `same`, (warps, 32): which lanes change nothing. Writing again what is there is harmless.
        """
        words = offsets // _WORD
        if size > _WORD:
            words = words[..., None] + np.arange(size // _WORD)
        if self.before is not None or self.after is not None:
            self._compare_grids(rows, words, mask, statement, same)
        writers = self._writer[words]
        if writers.any():
            self._compare(writers, rows, words, mask, statement, same, "store")
        if same is not None:
            readers = self._reader[words]
            if readers.any():
                self._compare(readers, rows, words, mask, statement, same, "load")
        if size < _WORD:
            return
        events = self._events(rows, statement)[(..., *(None,) * (words.ndim - 1))]
        events = np.broadcast_to(events, words.shape)
        chosen, given = (words.ravel(), events.ravel()) if mask is None else (words[mask], events[mask].ravel())
        kept = self._reader if same is None else self._writer
        kept[chosen.ravel()[::-1]] = given[::-1]  # of those that meet, the first stays
        if same is not None and len(rows) > 1:
            first = kept[words]
            if (first != events).any():  # lanes that store to the same word at once; `same` compares with the first
                self._compare(first, rows, words, mask, statement, same, "store")

    def forget(self, offsets: NDArray[np.int64], mask: NDArray[np.bool_] | None, size: int) -> None:
        """Strong stores: whoever accesses the words later is not behind the weak accesses of before."""
        words = offsets // _WORD
        if size > _WORD:
            words = words[..., None] + np.arange(size // _WORD)
        chosen = words if mask is None else words[mask]
        self._writer[chosen] = 0
        self._reader[chosen] = 0

    def _events(self, rows: NDArray[np.int64], statement: Statement) -> NDArray[np.int32]:
        """An event for each warp: the same as before where no warp has synchronised since."""
        clocks = self._ordering.intervals(rows)
        key = id(statement)
        last = self._last.get(key)
        if last is not None and np.array_equal(last[0], rows) and np.array_equal(last[1], clocks):
            return np.arange(last[2], last[2] + len(rows), dtype=np.int32)
        if self._used > _MANY:
            self._writer[:] = 0
            self._reader[:] = 0
            self._last.clear()
            self._used = 1
        first, self._used = self._used, self._used + len(rows)
        while self._used > len(self._row):
            self._row = np.concatenate([self._row, np.zeros_like(self._row)])
            self._clock = np.concatenate([self._clock, np.zeros_like(self._clock)])
            self._statement = np.concatenate([self._statement, np.zeros_like(self._statement)])
        if key not in self._numbers:
            self._numbers[key] = len(self._statements)
            self._statements.append(statement)
        span = slice(first, self._used)
        self._row[span], self._clock[span], self._statement[span] = rows, clocks, self._numbers[key]
        self._last[key] = rows.copy(), clocks, first
        return np.arange(first, self._used, dtype=np.int32)

    def _compare(
        self, events: NDArray[np.int32], rows: NDArray[np.int64], words: NDArray[np.int64],
        mask: NDArray[np.bool_] | None, statement: Statement, same: NDArray[np.bool_] | None, what: str,
    ) -> None:  # fmt: skip
        """Report accesses among these events that the warps do not know."""
        extra = (None,) * (events.ndim - 1)
        mine = rows[(..., *extra)]
        others = self._row[events]
        suspect = (events != 0) & (others != mine)
        if mask is not None:
            suspect &= mask if events.ndim == 2 else mask[..., None]
        if same is not None:
            suspect &= ~same if events.ndim == 2 else ~same[..., None]
        if not suspect.any():
            return
        suspect &= ~self._ordering.know(np.broadcast_to(mine, events.shape), others, self._clock[events])
        if not suspect.any():
            return
        seen: set[tuple[int, int]] = set()
        for at in np.argwhere(suspect):
            place = tuple(at)
            event, row = int(events[place]), int(rows[at[0]])
            if (event, row) in seen or self._ordering.knows(row, int(self._row[event]), int(self._clock[event])):
                seen.add((event, row))
                continue
            seen.add((event, row))
            side = self._ordering.doubted(row, int(self._row[event]), int(self._clock[event]))
            if side:
                self._report_fence(row, event, statement, what, side)
            else:
                self._report(row, event, int(words[place]) * _WORD, statement, what, writes=same is not None)

    def _report_fence(self, row: int, event: int, statement: Statement, what: str, side: str) -> None:
        """Only a flag or lock orders the two, and its accesses are strong, but nothing more.

        Without an acquire it is advice: CUDA's own samples end so, with bar.sync after an atomic operation.
        """
        earlier, where = self._statements[int(self._statement[event])], int(self._row[event])
        missing = (
            "its store does not release: use .release, or fence.acq_rel before it"
            if side == "release"
            else "the load of it does not acquire: use .acquire, or fence.acq_rel after it"
        )
        self._findings.add(
            "missing-fence",
            f"this access and the {what} of line {earlier.line} by {self._ordering.warp_of(row, where)} are ordered by "
            f"a strong access alone; {missing}, in a scope that includes both threads",
            statement,
            severity="error" if side == "release" else "advice",
        )

    def _compare_grids(
        self, rows: NDArray[np.int64], words: NDArray[np.int64], mask: NDArray[np.bool_] | None, statement: Statement,
        same: NDArray[np.bool_] | None,
    ) -> None:  # fmt: skip
        """Report accesses to what the grid before stores, or stores to what it reads, before griddepcontrol.wait."""
        free = np.ones(words.shape, np.bool_) if mask is None else np.broadcast_to(_spread(mask, words), words.shape)
        if same is not None:
            free = free & ~_spread(same, words)
        for other, which in ((self.before, "before"), (self.after, "after")):
            if other is None:
                continue
            late = ~self.after_grids[rows][(..., *(None,) * (words.ndim - 1))] if which == "before" else np.True_
            for what, kept in (("store", other._writer), ("load", other._reader))[: 1 if same is None else 2]:
                inside = words < len(kept)
                events = np.where(inside, kept[np.where(inside, words, 0)], 0)
                suspect = (events != 0) & free & late
                if suspect.any():
                    earlier = other._statements[int(other._statement[int(events[suspect][0])])]
                    self._findings.add(
                        "grid-race",
                        f"the {'store' if same is not None else 'load'} is not ordered with the {what} of line "
                        f"{earlier.line} of the grid {which}, which may run at the same time: griddepcontrol.wait must "
                        f"come before it{'' if which == 'before' else ' there'}",
                        statement,
                    )

    def _report(self, row: int, event: int, offset: int, statement: Statement, what: str, *, writes: bool) -> None:
        earlier, other = self._statements[int(self._statement[event])], int(self._row[event])
        where = self._ordering.warp_of(row, other)
        verb = "overwrites" if writes else "reads"
        self._findings.add(
            "global-race",
            f"the {'store' if writes else 'load'} {verb} data of the {what} of line {earlier.line} by {where}, with "
            "which its warp has not synchronised",
            statement,
        )


def _spread(lanes: NDArray[np.bool_], words: NDArray[np.int64]) -> NDArray[np.bool_]:
    """What holds of lanes, for each of their words."""
    return lanes if words.ndim == lanes.ndim else lanes[..., None]
