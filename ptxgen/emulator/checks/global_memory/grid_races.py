"""Accesses to global memory that conflict with those of a grid that may run at the same time. PTX ISA 9.7.13.13.

A grid that begins before the one before it has ended may touch what that one stores or reads only after
griddepcontrol.wait, by the thread itself or by one whose wait it has observed. Strong accesses, and reductions by
copies, do not race with each other. A wait does not order ld.global.nc (8.1, 9.7.9.9): compilers may move it before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.global_memory.events import READS, Events, GlobalEvents, does, role_of
from ptxgen.emulator.checks.global_memory.shadow import GRANULE, SHIFT, ShadowMemory, distinct_events
from ptxgen.emulator.checks.registry import races
from ptxgen.emulator.memory.global_memory import HEAP_BASE
from ptxgen.emulator.observer import Events as LaunchEvents
from ptxgen.emulator.observer import Observer
from ptxgen.syntax import Instruction, Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import HappensBefore


class GridRaces(Observer):
    """The accesses of one grid against those of its neighbors in the stream."""

    def __init__(self, happens_before: HappensBefore, events: GlobalEvents, findings: Findings) -> None:
        self._happens_before, self._events, self._findings = happens_before, events, findings
        #: Events of the previous grid, and of the next one, which may begin before this grid has ended.
        self.before: GlobalEvents | None = None
        self.after: GlobalEvents | None = None
        self._previous: GridRaces | None = None
        #: By CTA: the stamp of its first event after griddepcontrol.launch_dependents.
        self._released: dict[int, int] = {}
        #: Warps that have waited for the grids before, by `HappensBefore.actors`, and in which of their intervals.
        self._waited: dict[int, int] = {}
        #: Warps that have waited, or that have observed one which has.
        self._free: set[int] = set()

    def grid_follows(self, before: LaunchEvents) -> None:
        earlier = before.find(GridRaces)
        if earlier is not None:
            self.before, earlier.after = earlier._events, self._events
            self._previous = earlier

    def forget_previous(self) -> None:
        """This grid has ended: its accesses have been compared with those of the grid before."""
        if self._previous is not None:
            self._previous.after = None
        self.before = self._previous = None

    def grid_released(self, warps: NDArray[np.int64]) -> None:
        for actor in self._happens_before.actors(warps).tolist():
            self._released.setdefault(actor // self._happens_before.warps, self._events.next_stamp)

    def _is_released(self, event: int) -> bool:
        """Whether the next grid may have begun at an event: its CTA has allowed that before."""
        first = self._released.get(int(self._events.actor[event]) // self._happens_before.warps)
        return first is not None and self._events.stamp(event) >= first

    def grids_waited(self, warps: NDArray[np.int64]) -> None:
        """Warps have waited for the grids before."""
        actors = self._happens_before.actors(warps).tolist()
        self._waited.update(zip(actors, self._happens_before.intervals(warps).tolist(), strict=True))
        self._free.update(actors)

    def _has_waited(self, warp: int) -> bool:
        """Whether a warp has waited, or has observed that another one has."""
        actor = self._happens_before.actor(warp)
        if actor in self._free:
            return True
        if any(self._happens_before.has_observed_actor(warp, *waited) for waited in self._waited.items()):
            self._free.add(actor)
            return True
        return False

    def _another_waits(self, warp: int) -> bool:
        """Whether another warp of a warp's CTA has waited."""
        per_cta = self._happens_before.warps
        first = self._happens_before.actor(warp) // per_cta * per_cta
        return not self._free.isdisjoint(range(first, first + per_cta))

    def access(
        self,
        warps: NDArray[np.int64],
        offsets: NDArray[np.int64],
        racing: NDArray[np.bool_] | None,
        size: int,
        statement: Statement,
        what: str,
        *,
        strong: bool = False,
    ) -> None:
        """Warps load or store `size` bytes a lane at these offsets (warps, 32) of the heap, those lanes that race."""
        for other, which in ((self.before, "before"), (self.after, "after")):
            if other is None:
                continue
            free = offsets // GRANULE < len(other.copy_writer)
            if racing is not None:
                free &= racing
            if not any_set(free):
                continue
            places, writes = np.where(free, offsets, 0), what not in READS
            found = [table.at(places, size) >> SHIFT for table in _of_threads(other, writes=writes, strong=strong)]
            found += [table[places // GRANULE][..., None] for table in _of_copies(other, writes=writes)]
            for events in found:
                if any_set(hit := (events != 0) & free[..., None]):
                    for position in np.flatnonzero(hit.any(axis=(1, 2))).tolist():
                        conflicting = distinct_events(events[position][hit[position]])
                        lane, _ = np.argwhere(hit[position])[0]
                        address = HEAP_BASE + int(offsets[position, lane])
                        self._report(
                            other, int(warps[position]), conflicting, which, what, statement, address, adds=strong
                        )

    def copy(self, warp: int, granules: NDArray[np.int64], what: str, statement: Statement, *, writes: bool) -> None:
        """A copy of a warp reads or writes granules of the heap."""
        if self.before is self.after is None:
            return
        for other, which in ((self.before, "before"), (self.after, "after")):
            if other is None:
                continue
            inside, adds = granules[granules < len(other.copy_writer)], "reduction" in what
            found = [table.events(inside) for table in _of_threads(other, writes=writes, strong=adds)]
            found += [distinct_events(table[inside]) for table in _of_copies(other, writes=writes)]
            for events in found:
                if len(events):
                    address = other.where(inside, int(events[0]))
                    self._report(other, warp, events, which, what, statement, address, adds=adds)

    def _read_only(self, events: Sequence[int], statement: Statement) -> list[int]:
        """The events of the previous grid that may take place while a read-only load is performed."""
        if self._previous is None or not isinstance(statement, Instruction) or ".nc" not in statement.opcode:
            return []
        return [event for event in events if self._previous._is_released(event)]

    def _report(
        self,
        other: GlobalEvents,
        warp: int,
        events: Events,
        which: str,
        what: str,
        statement: Statement,
        address: int | None,
        *,
        adds: bool,
    ) -> None:
        """A warp's access touches the bytes of these events; one that `adds`, as atomic operations do, does not
        conflict with reductions."""
        racing = [event for event in events.tolist() if not (adds and other.adds(event))]
        waited = which == "before" and self._has_waited(warp)
        if waited:
            racing = self._read_only(racing, statement)
        if not racing:
            return
        earlier = other.kind_of(racing[0])
        found = self._findings.access(role_of(what), statement, warp, space="global", address=address)
        party = self._findings.access(role_of(earlier.what), earlier.statement, space="global", address=address)
        place = found.place or "global memory"
        if waited:
            self._findings.report(
                races.NC_LOAD,
                statement,
                summary=f"{found} reads {place}, which {party} of the previous grid writes after its "
                "griddepcontrol.launch_dependents",
                rule="The read-only path is not coherent, and griddepcontrol.wait does not order it: the load may be "
                "performed before the wait",
                accesses=(found, party),
            )
            return
        rule = "The two grids may run at the same time, and no griddepcontrol.wait orders the accesses"
        if which == "before":
            order, fix = "previous", f"griddepcontrol.wait before line {statement.line}"
            if self._another_waits(warp):
                rule = "Another warp of its CTA has waited for that grid, and this one has not synchronized with it"
                fix = f"bar.sync after griddepcontrol.wait and before line {statement.line}, or the wait by all warps"
        else:
            order, fix = "next", f"griddepcontrol.wait before line {earlier.statement.line} of the next grid"
        self._findings.report(
            races.GRID_RACE,
            statement,
            summary=f"{found} {does(found, what)} {place}, which {party} of the {order} grid "
            f"{'reads' if party.role == 'reader' else 'writes'}",
            rule=rule,
            fix=fix,
            accesses=(found, party),
            cause=frozenset([causes.GRID_WAIT[which]]),
        )


def _of_threads(other: GlobalEvents, *, writes: bool, strong: bool) -> list[ShadowMemory]:
    """The events of another grid's threads at the bytes of an access."""
    readers = [other.reader, other.earlier] if writes else []
    strong_ones = [] if strong else [other.strong, other.strong_reader] if writes else [other.strong]
    return [table for table in (other.writer, *readers, *strong_ones) if table.used]


def _of_copies(other: GlobalEvents, *, writes: bool) -> list[Events]:
    """The events of another grid's copies at the granules of an access."""
    if not other.copies:
        return []
    return [other.copy_writer, other.copy_reader] if writes else [other.copy_writer]
