"""Accesses to global memory that meet those of a grid that may run at the same time. PTX ISA 9.7.13.13.

A grid that begins before the one before it has ended may touch what that one stores or reads only after
griddepcontrol.wait.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.global_events import UNIT, Events, GlobalEvents
from ptxgen.syntax import Statement


class GridRaces:
    """The accesses of one grid against those of its neighbours in the stream."""

    def __init__(self, events: GlobalEvents, warps_per_cta: int, findings: Findings) -> None:
        self._events, self._warps, self._findings = events, warps_per_cta, findings
        #: Those of the grid before, and of the grid that may begin before this one has ended.
        self.before: GlobalEvents | None = None
        self.after: GlobalEvents | None = None
        #: Which warps have waited for the grids before.
        self.waited: NDArray[np.bool_] = np.zeros(0, np.bool_)

    def follow(self, earlier: GridRaces) -> None:
        """This grid begins while that one may still run."""
        self.before, earlier.after = earlier._events, self._events

    def access(
        self, rows: NDArray[np.int64], offsets: NDArray[np.int64], racing: NDArray[np.bool_] | None, size: int,
        statement: Statement, what: str,
    ) -> None:  # fmt: skip
        """Warps load or store `size` bytes a lane at these offsets (warps, 32) of the heap, those lanes that race."""
        for other, which in ((self.before, "before"), (self.after, "after")):
            if other is None:
                continue
            free = offsets // UNIT < len(other.copy_writer)
            free &= racing if racing is not None else True
            if which == "before":
                free = free & ~self.waited[rows][:, None]
            if not free.any():
                continue
            places = np.where(free, offsets, 0)
            tables = (other.writer, other.reader) if what == "store" else (other.writer,)
            copies = (other.copy_writer, other.copy_reader) if what == "store" else (other.copy_writer,)
            found = [other.of_threads(table, places, size)[free] for table in tables]
            found += [table[places // UNIT][free] for table in copies]
            self._report(other, found, which, what, statement)

    def copy(self, row: int, units: NDArray[np.int64], what: str, statement: Statement, *, writes: bool) -> None:
        """A copy of a warp reads or writes units of the heap; that another warp of its CTA has waited is enough."""
        for other, which in ((self.before, "before"), (self.after, "after")):
            first = row - row % self._warps
            if other is None or (which == "before" and self.waited[first : first + self._warps].any()):
                continue
            inside = units[units < len(other.copy_writer)]
            tables = (other.writer, other.reader) if writes else (other.writer,)
            copies = (other.copy_writer, other.copy_reader) if writes else (other.copy_writer,)
            found = [other.units(table, inside) for table in tables] + [table[inside] for table in copies]
            self._report(other, found, which, what, statement)

    def _report(self, other: GlobalEvents, found: list[Events], which: str, what: str, statement: Statement) -> None:
        for events in found:
            if events.any():
                earlier = other.kind_of(int(events[events != 0].ravel()[0]))
                self._findings.add(
                    "grid-race",
                    f"the {what} is not ordered with the {earlier.what} of line {earlier.statement.line} of the grid "
                    f"{which}, which may run at the same time: griddepcontrol.wait must come before it"
                    f"{'' if which == 'before' else ' there'}",
                    statement,
                )
