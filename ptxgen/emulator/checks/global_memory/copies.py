"""Conflicts of bulk and tensor copies in global memory: with each other, and with what threads load and store.

A copy is ordered after what its issuing thread has observed. A copy from global memory is ordered before what observes
its completion on its mbarrier; one to global memory for its own thread from cp.async.bulk.wait_group (without .read)
on, and for others that synchronize with it after that (PTX ISA 9.7.9.25.6.2). What threads have stored in the generic
proxy needs a fence.proxy.async before a copy reads it, or a reduction adds to it (9.7.9.25.2); in the opposite
direction the completion is such a fence. Reductions are relaxed operations (9.7.9.25.4.2, 9.7.9.25.5.3): they do not
race with each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.device import Status
from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.global_memory.equal_copies import OverlappingCopies
from ptxgen.emulator.checks.global_memory.events import GlobalEvents, does
from ptxgen.emulator.checks.global_memory.grid_races import GridRaces
from ptxgen.emulator.checks.global_memory.shadow import GRANULE, NOBODY, SHIFT, distinct_events
from ptxgen.emulator.checks.order.vector_clock import PENDING, AsyncOperation
from ptxgen.emulator.checks.registry import races
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.memory import GlobalMemory
from ptxgen.emulator.memory.global_memory import HEAP_BASE, MAP_BYTES
from ptxgen.emulator.observer import Lanes, Observer
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import HappensBefore


class GlobalCopies(Observer):
    """What copies read and write, against the last events at the same granules of 16 bytes."""

    def __init__(
        self,
        happens_before: HappensBefore,
        events: GlobalEvents,
        grids: GridRaces,
        memory: GlobalMemory,
        findings: Findings,
    ) -> None:
        self._happens_before, self._events, self._grids, self._findings = happens_before, events, grids, findings
        self._overlaps = OverlappingCopies(memory)
        #: Lines that lack one fence.
        self._groups = causes.Groups()
        #: The numbers of copies to global memory, by the stamps of their events.
        self._numbers: dict[int, int] = {}
        #: Event stamps that `waited` settles, by the number of a copy to global memory.
        self._stamps: dict[int, int] = {}

    def work_reads_global(self, work: AsyncWork, granules: NDArray[np.int64]) -> None:
        self.read(self._happens_before.operations[work.number], work.warp, granules)

    def work_writes_global(self, work: AsyncWork, granules: NDArray[np.int64]) -> None:
        operation = self._happens_before.operations[work.number]
        self._stamps[work.number] = self.write(operation, work.warp, granules)

    def work_awaited(self, warp: int, lanes: Lanes, works: Sequence[AsyncWork], *, reads: bool = False) -> None:
        if not reads:
            self.waited(warp, [self._stamps.pop(work.number) for work in works if work.number in self._stamps])

    def work_completed(self, work: AsyncWork) -> None:
        self._overlaps.completes(work.number)

    def launch_ends(self, status: Status) -> None:
        self._overlaps.end()

    def read(self, operation: AsyncOperation, warp: int, granules: NDArray[np.int64]) -> None:
        """A copy that `warp` issues reads these granules of the heap."""
        events, granules = self._events, self._inside(granules)
        self._grids.copy(warp, granules, operation.what, operation.statement, writes=False)
        for event in (*events.writer.events(granules), *events.strong.events(granules)):
            if self._require_observed(operation, warp, int(event), granules):
                self._require_proxy_fence(operation, warp, int(event), granules)
        found = events.copy_writer[granules]
        for event in distinct_events(found) if any_set(found) else ():
            self._require_observed(operation, warp, int(event), granules)
        events.copy_reader[granules] = events.of_copy(warp, 0, operation.statement, operation.what, operation.number)

    def write(self, operation: AsyncOperation, warp: int, granules: NDArray[np.int64]) -> int:
        """One to global memory overwrites them, or combines its data with theirs. Gives what `waited` takes."""
        events, granules = self._events, self._inside(granules)
        self._grids.copy(warp, granules, operation.what, operation.statement, writes=True)
        reduces = "reduction" in operation.what
        for event in events.writer.events(granules):
            if self._require_observed(operation, warp, int(event), granules) and reduces:
                self._require_proxy_fence(operation, warp, int(event), granules)
        for event in (*events.reader.events(granules), *events.earlier.events(granules)):
            self._require_observed(operation, warp, int(event), granules)
        if not reduces:
            for event in events.strong.events(granules):
                self._require_observed(operation, warp, int(event), granules)
        self._overlaps.begins(operation.number)
        self._against_stores(operation, warp, granules, reduces=reduces)
        for event in distinct_events(events.copy_reader[granules]):
            number = int(events.operation[event])
            if (
                number in self._happens_before.operations
                and number not in self._happens_before.observed[warp].operations
            ):
                self._report(operation, warp, int(event), granules)
        made = events.of_copy(warp, PENDING, operation.statement, operation.what)
        events.forget_granules(granules)
        events.copy_writer[granules] = made
        stamp = events.stamp(made)
        self._numbers[stamp] = operation.number
        return stamp

    def tensormap_used(
        self, warp: int, address: int, data: bytes, statement: Statement, *, prefetches: bool = False
    ) -> None:
        """`Tensormaps` has the fences."""
        granules = (address - HEAP_BASE) // GRANULE + np.arange(MAP_BYTES // GRANULE)
        what = "use of a tensormap"
        if self._grids.before is not None or self._grids.after is not None:
            self._grids.copy(warp, granules, what, statement, writes=False)
        for event in self._events.writer.events(granules):
            if not self._has_observed(warp, int(event)):
                self._events.report(warp, int(event), what, statement, self._events.where(granules, int(event)))
        event = self._events.of_warps(np.array([warp]), statement, what)
        self._events.strong_reader.keep(granules * GRANULE, GRANULE, np.repeat(event << SHIFT | NOBODY, len(granules)))

    def waited(self, warp: int, stamps: list[int]) -> None:
        """A warp has waited for the completion of its copies to global memory."""
        clock = self._happens_before.clock(warp)
        for stamp in stamps:
            self._events.settle(stamp, clock)

    def _inside(self, granules: NDArray[np.int64]) -> NDArray[np.int64]:
        """The granules that lie in the heap; the copy faults when it reaches others."""
        return granules[(granules >= 0) & (granules < len(self._events.copy_writer))]

    def _against_stores(
        self, operation: AsyncOperation, warp: int, granules: NDArray[np.int64], *, reduces: bool
    ) -> None:
        """The copies that have written there must happen before; reductions do not conflict with each other."""
        found = self._events.copy_writer[granules]
        for event in distinct_events(found).tolist() if any_set(found) else ():
            adds = self._events.adds(event)
            if (reduces and adds) or self._has_observed(warp, event):
                continue
            number = self._numbers.get(self._events.stamp(event))
            if reduces or adds or number is None:
                self._report(operation, warp, event, granules)
                continue
            address = self._events.where(granules, event)
            report = partial(self._events.report, warp, event, operation.what, operation.statement, address)
            self._overlaps.overlap(
                number, operation.number, granules[found == event], lambda equal, report=report: report(equal=equal)
            )

    def _require_observed(self, operation: AsyncOperation, warp: int, event: int, granules: NDArray[np.int64]) -> bool:
        """Whether an event happens before what the warp does now; reports it if not."""
        observed = self._has_observed(warp, event)
        if not observed:
            self._report(operation, warp, event, granules)
        return observed

    def _has_observed(self, warp: int, event: int) -> bool:
        return self._happens_before.has_observed_actor(
            warp, int(self._events.actor[event]), int(self._events.clock[event])
        )

    def _report(self, operation: AsyncOperation, warp: int, event: int, granules: NDArray[np.int64]) -> None:
        self._events.report(warp, event, operation.what, operation.statement, self._events.where(granules, event))

    def _require_proxy_fence(
        self, operation: AsyncOperation, warp: int, event: int, granules: NDArray[np.int64]
    ) -> None:
        """Any fence that the store happens before is enough: a path from it to the copy is not required."""
        events = self._events
        other = int(events.actor[event])
        if not self._happens_before.fenced_in_global(other, int(events.clock[event])):
            address = events.where(granules, event)
            found, writer = events.parties(warp, event, operation.what, operation.statement, address)
            self._findings.report(
                races.MISSING_PROXY_FENCE,
                operation.statement,
                summary=f"{found} {does(found, operation.what)} {found.place or 'global memory'}, which {writer} "
                "writes through the generic proxy",
                rule="No fence.proxy.async comes between them",
                fix=f"fence.proxy.async.global after line {writer.line}, before the synchronization",
                accesses=(found, writer),
                cause=self._groups.of(("stored", writer.line), ("copied by", operation.statement.line)),
            )
