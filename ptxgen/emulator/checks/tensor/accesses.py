"""Conflicts of accesses to tensor memory: by tcgen05.ld and st of warps, by the tensor core.

Tensor memory is kept in columns by band of 16 lanes: two accumulators of 64 rows may share columns, one on the first
and one on the last 16 lanes of each warp's quarter (PTX ISA 9.7.16.10.5, layouts C and F), and Triton places them so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.causes import Cause
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.mbarrier.stale_waits import Event
from ptxgen.emulator.checks.order.vector_clock import PENDING, AsyncOperation
from ptxgen.emulator.checks.tensor.fences import TensorFences
from ptxgen.layouts.tmem import COLUMNS
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import Ordering
    from ptxgen.emulator.state.machine import PendingLoad

_BAND = 16
_BANDS = 8
#: Bands that a warp reaches: those of its quarter of the lanes.
_HALVES = 2


def bands_of(lanes: NDArray[np.int64] | Sequence[int]) -> list[int]:
    """The bands that have some of these lanes."""
    return np.unique(np.asarray(lanes) // _BAND).tolist()


class TensorAccesses:
    """The last accesses to each column of the resident CTAs' tensor memories.

    `slot` is the CTA whose memory it is, where that is not the operation's own.
    """

    def __init__(self, ordering: Ordering, fences: TensorFences, slots: int, findings: Findings) -> None:
        self._ordering, self._fences, self._findings = ordering, fences, findings
        #: Whether anything has accessed tensor memory.
        self._used = False
        self.writer = np.zeros((slots, _BANDS, COLUMNS), np.int64)
        #: The last MMA that read A, metadata or scale factors there.
        self.core_reader = np.zeros((slots, _BANDS, COLUMNS), np.int64)
        #: In which of its intervals a warp last loaded a column of its first or second band: `PENDING` until
        #: tcgen05.wait::ld, or until the warp reads a register of the load.
        self.reader_clock = np.zeros((slots, ordering.warps, _HALVES, COLUMNS), np.int64)
        #: The last tcgen05.ld of each columns by a warp in one of its intervals, the latest at the end.
        self._loads: dict[tuple[int, int], dict[range, Statement]] = {}
        #: What conflicts with a warp's loads that may be under way, by columns: reported if their values are used.
        self._doubtful: dict[int, list[tuple[range, Callable[[], None]]]] = {}

    def clear(self, slots: NDArray[np.int64]) -> None:
        """Make slots ready for the next CTAs."""
        if self._used:
            for table in (self.writer, self.core_reader, self.reader_clock):
                table[slots] = 0
        if self._doubtful:
            for row in self._ordering.rows_of(slots).tolist():
                self._doubtful.pop(row, None)

    def write(
        self, operation: AsyncOperation, row: int, bands: list[int], columns: range, *, accumulates: bool = False,
        slot: int | None = None,
    ) -> None:  # fmt: skip
        """A tcgen05.mma, cp or shift issued by warp `row` writes, or adds to, columns in these bands of the lanes.

        The tensor core's operations do not conflict with each other: the pipelines of 9.7.16.6.2 order most pairs, and
        CUTLASS and DeepGEMM rely on the order of a cp after the mma whose scale factors it overwrites.
        """
        slot = operation.slot if slot is None else slot
        known = self._ordering.known[row]
        span = slice(columns.start, columns.stop)
        if accumulates:
            self._require_written(slot, bands, columns, "adds to", operation.statement)
        for number in np.unique(self.writer[slot, bands, span]):
            earlier = self._ordering.operations.get(int(number))
            if earlier is None or earlier.what != "tcgen05.st":
                continue
            if earlier.number in known.operations:
                self._advise_fence(row, earlier, operation.what, operation.statement)
                continue
            # Two stores of one warp may be to different lanes of its quarter.
            if operation.what != "tcgen05.st" or earlier.row != row:
                why = "has not waited for that store by tcgen05.wait::st"
                self._unfinished_write(operation, earlier, columns, why, row)
        if self._fences.unfenced:
            loaded = self.reader_clock[slot][..., span].max(axis=(1, 2), initial=0)
            for warp in np.flatnonzero(loaded):
                reader, latest = slot * self._ordering.warps + int(warp), int(loaded[warp])
                if reader != row and (reader, latest) in self._fences.unfenced:
                    at = self._load_of(reader, latest, columns)
                    self._advise_fence_before("tcgen05.ld", at, operation.what, operation.statement)
        for reader, where, event in self._unknown_loads(row, slot, bands, columns):
            warp = self._ordering.member_name(row, reader % self._ordering.members)
            message = (
                f"the {operation.what} takes columns {columns.start}-{columns.stop - 1}, which {warp} may "
                f"still be reading with the {where}"
            )
            self._against_load(reader, columns, event, partial(self._race, message, operation.statement, row, event))
        self._used = True
        self.writer[slot, bands, span] = operation.number

    def _against_load(self, reader: int, columns: range, event: Event, report: Callable[[], None]) -> None:
        """A load that nobody has waited for harms nobody until its values are used: masked attention drops some."""
        if event.clock == PENDING:
            self._doubtful.setdefault(reader, []).append((columns, report))
        else:
            report()

    def _race(self, message: str, statement: Statement, row: int, event: Event, *, reads: bool = False) -> None:
        """Warp `row` does not know that something is over: its last wait may have been for a phase too early."""
        why, parity = self._ordering.waits.why(row, event, reads=reads)
        earlier = self._ordering.operations.get(event.operation)
        cause = earlier.cause if earlier is not None else None
        self._findings.add("mbarrier-parity" if parity else "tensor-race", message + why, statement, cause=cause)

    def _unknown_loads(
        self, row: int, slot: int, bands: Sequence[int], columns: range
    ) -> Iterator[tuple[int, str, Event]]:
        """(warp, its load, what would tell) of loads of a slot's cells that warp `row` does not know to be over."""
        reached = np.zeros(_BANDS, np.bool_)
        reached[list(bands)] = True
        # Of each warp, the bands of its quarter.
        mine = np.resize(reached.reshape(-1, _HALVES), (self._ordering.warps, _HALVES))
        clocks = self.reader_clock[slot][..., columns.start : columns.stop].max(axis=2, initial=0)
        latest = np.where(mine, clocks, 0).max(axis=1, initial=0)
        for warp in np.flatnonzero(latest > self._ordering.of_cta(slot, self._ordering.known[row].for_tensor_memory)):
            reader, pending = slot * self._ordering.warps + int(warp), latest[warp] == PENDING
            if pending or reader != row:
                earlier = self._load_of(reader, int(latest[warp]), columns)
                where = f" of line {earlier.line}" if earlier is not None else ""
                what = f"tcgen05.ld{where}" + (", without a tcgen05.wait::ld" if pending else "")
                member = reader % self._ordering.members
                yield reader, what, Event(member=member, clock=int(latest[warp]))

    def core_read(
        self, operation: AsyncOperation, row: int, bands: list[int], columns: range, what: str,
        slot: int | None = None,
    ) -> None:  # fmt: skip
        """A tcgen05.mma or shift issued by warp `row` reads `what` (A, scale factors) in columns of these bands."""
        slot, span = operation.slot if slot is None else slot, slice(columns.start, columns.stop)
        writers = np.unique(self.writer[slot, bands, span])
        if writers[0] == 0:
            self._require_written(slot, bands, columns, f"reads {what} in", operation.statement)
        for number in writers:
            earlier = self._ordering.operations.get(int(number))
            if earlier is None or earlier.what != "tcgen05.st":
                continue
            if earlier.number in self._ordering.known[row].operations:
                self._advise_fence(row, earlier, operation.what, operation.statement)
                continue
            self._findings.add(
                "tensor-race",
                f"the {operation.what} reads {what} in columns {columns.start}-{columns.stop - 1}, which the "
                f"tcgen05.st of line {earlier.statement.line} may still write; its warp has not waited for that "
                "store by tcgen05.wait::st",
                operation.statement,
            )
        self._used = True
        self.core_reader[slot, bands, span] = operation.number

    def freed(self, row: int, slot: int, columns: range, statement: Statement) -> None:
        """A warp frees columns: nothing may write or read them any more."""
        span, known = slice(columns.start, columns.stop), self._ordering.known[row]
        uses = {int(number): "read" for number in np.unique(self.core_reader[slot][:, span])}
        uses |= {int(number): "write" for number in np.unique(self.writer[slot][:, span])}
        for number, verb in uses.items():
            earlier = self._ordering.operations.get(number)
            if earlier is not None and number not in known.operations:
                what = f"the {earlier.what} of line {earlier.statement.line} may still {verb}"
                self._freed_in_use(f"{what}; its warp has not waited for it", statement, earlier.cause)
        for reader, where, event in self._unknown_loads(row, slot, range(_BANDS), columns):
            warp = self._ordering.member_name(row, reader % self._ordering.members)
            what = f"{warp} may still read with the {where}"
            self._against_load(reader, columns, event, partial(self._freed_in_use, what, statement))
        self.writer[slot][:, span] = 0
        self.core_reader[slot][:, span] = 0
        self.reader_clock[slot][..., span] = 0

    def _freed_in_use(self, what: str, statement: Statement, cause: Cause = None) -> None:
        self._findings.add("tmem-freed-in-use", f"frees columns that {what}", statement, cause=cause)

    def store(self, operation: AsyncOperation, row: int, bands: list[int], columns: range) -> None:
        """A warp's tcgen05.st writes columns of bands of its quarter of the lanes."""
        known = self._ordering.known[row].operations
        for number in np.unique(self.writer[operation.slot, bands, columns.start : columns.stop]):
            earlier = self._ordering.operations.get(int(number))
            if earlier is None or earlier.what == "tcgen05.st" or earlier.number in known:
                continue
            self._unfinished_write(operation, earlier, columns, "has not waited for a tcgen05.commit of it", row)
        for number in np.unique(self.core_reader[operation.slot, bands, columns.start : columns.stop]):
            earlier = self._ordering.operations.get(int(number))
            if earlier is not None and earlier.number not in known:
                self._race(
                    f"the {operation.what} takes columns {columns.start}-{columns.stop - 1}, which the "
                    f"{earlier.what} of line {earlier.statement.line} may still read; its warp has not waited for a "
                    "tcgen05.commit of it",
                    operation.statement,
                    row,
                    Event(earlier.number),
                )
        self.write(operation, row, bands, columns)

    def stored(self, row: int, numbers: Sequence[int]) -> None:
        """A warp has waited for its tcgen05.st."""
        self._ordering.known[row].operations.update(numbers)
        self._fences.known[row].update(numbers)
        self._fences.accessed(row, numbers)

    def _unfinished_write(
        self, operation: AsyncOperation, earlier: AsyncOperation, columns: range, why: str, row: int
    ) -> None:
        self._race(
            f"the {operation.what} takes columns {columns.start}-{columns.stop - 1}, which the {earlier.what} of line "
            f"{earlier.statement.line} may still write; its warp {why}",
            operation.statement,
            row,
            Event(earlier.number),
        )

    def read(self, row: int, bands: list[int], columns: range, statement: Statement) -> None:
        """A warp's tcgen05.ld reads columns of bands of its quarter of the lanes."""
        slot, warp = divmod(row, self._ordering.warps)
        span = slice(columns.start, columns.stop)
        writers = np.unique(self.writer[slot, bands, span])
        if writers[0] == 0:
            self._require_written(slot, bands, columns, "reads", statement)
        for number in writers:
            earlier = self._ordering.operations.get(int(number))
            if earlier is None:
                continue
            if earlier.number not in self._ordering.known[row].operations:
                stored = earlier.what == "tcgen05.st"
                if stored and earlier.row == row:
                    self._findings.add(
                        "missing-tcgen05-wait",
                        f"the load reads columns {columns.start}-{columns.stop - 1} that the tcgen05.st of line "
                        f"{earlier.statement.line} writes, for which no tcgen05.wait::st has waited; hardware is taken "
                        "to keep the order of a warp's own stores and loads (CUTLASS relies on it), the manual is not",
                        statement,
                        severity="advice",
                    )
                    continue
                awaited = "that store by tcgen05.wait::st" if stored else "a tcgen05.commit of that operation"
                self._race(
                    f"the load reads columns {columns.start}-{columns.stop - 1} that the {earlier.what} of line "
                    f"{earlier.statement.line} writes; its warp has not waited for {awaited}",
                    statement,
                    row,
                    Event(earlier.number),
                    reads=True,
                )
            else:
                self._advise_fence(row, earlier, "load", statement)
        self._used = True
        self.reader_clock[slot, warp, [band % _HALVES for band in bands], span] = PENDING
        self._remember_load(row, PENDING, columns, statement)

    def _remember_load(self, row: int, clock: int, columns: range, statement: Statement) -> None:
        loads = self._loads.setdefault((row, clock), {})
        loads.pop(columns, None)
        loads[columns] = statement

    def _load_of(self, row: int, clock: int, columns: range) -> Statement | None:
        """The last tcgen05.ld of a warp, in one of its intervals, of any of these columns."""
        loads = reversed(self._loads.get((row, clock), {}).items())
        return next((at for each, at in loads if each.start < columns.stop and columns.start < each.stop), None)

    def _advise_fence(self, row: int, earlier: AsyncOperation, what: str, statement: Statement) -> None:
        """Advice: the manual asks for the fence (9.7.16.6.4), kernels by CuTe and Triton leave it out in places."""
        if earlier.number not in self._fences.known[row]:
            self._findings.add(
                "missing-tcgen05-fence",
                f"tcgen05.fence::after_thread_sync is missing between the wait for the {earlier.what} of line "
                f"{earlier.statement.line} and this {what}",
                statement,
                severity="advice",
            )
        if earlier.number in self._fences.unfenced and earlier.row != row:
            self._advise_fence_before(earlier.what, earlier.statement, what, statement)

    def _advise_fence_before(self, before: str, at: Statement | None, what: str, statement: Statement) -> None:
        where = f" of line {at.line}" if at is not None else ""
        self._findings.add(
            "missing-tcgen05-fence",
            f"tcgen05.fence::before_thread_sync is missing between the {before}{where} and the synchronization of its "
            f"warp with that of this {what}",
            statement,
            severity="advice",
        )

    def loaded(self, row: int, loads: Sequence[PendingLoad]) -> None:
        """A warp has waited for these tcgen05.ld, or read their registers."""
        slot, warp = divmod(row, self._ordering.warps)
        clock = self._ordering.clock(row)
        if row in self._doubtful:
            self._report_doubts(row, {column for load in loads for column in load.columns})
        for load in loads:
            halves, columns = [band % _HALVES for band in load.bands], load.columns
            self.reader_clock[slot, warp, halves, columns.start : columns.stop] = clock
            self._remember_load(row, clock, columns, load.statement)
        if loads:
            self._fences.accessed(row, [(row, clock)])

    def _report_doubts(self, row: int, used: set[int]) -> None:
        """A warp uses what it has loaded from these columns."""
        doubts = self._doubtful.pop(row)
        for columns, report in doubts:
            if not used.isdisjoint(columns):
                report()
        self._doubtful[row] = [each for each in doubts if used.isdisjoint(each[0])]

    def _require_written(
        self, slot: int, bands: Sequence[int], columns: range, verb: str, statement: Statement
    ) -> None:
        """Find columns to which nothing has been written in any of these bands of a quarter.

        A load of 32 lanes from an accumulator of 64 rows finds values on one band only; right kernels use no others.
        """
        span = slice(columns.start, columns.stop)
        quarters: dict[int, list[int]] = {}
        for band in bands:
            quarters.setdefault(band // _HALVES, []).append(band)
        missing, partly = np.zeros(len(columns), np.bool_), np.zeros(len(columns), np.bool_)
        for each in quarters.values():
            unwritten = self.writer[slot, each, span] == 0
            missing |= unwritten.all(axis=0)
            partly |= unwritten.any(axis=0)
        if (partly & ~missing).any():
            message = f"{verb} tensor memory of which half the lanes hold nothing"
            self._findings.suspects.add("tensor", "uninitialized-tensor", message, statement, plain=False)
        if missing.any():
            at = np.flatnonzero(missing) + columns.start
            together = len(at) == at[-1] - at[0] + 1
            where = f"columns {at[0]}-{at[-1]}" if together else f"{len(at)} columns from {at[0]} on"
            message = f"{verb} tensor memory in {where} that nothing has written"
            self._findings.add("uninitialized-tensor", message, statement, reads=True)
