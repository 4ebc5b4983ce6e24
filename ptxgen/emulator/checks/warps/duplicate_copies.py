"""Copies to global memory that several lanes of a warp issue, all the same one. PTX ISA 9.7.9.25."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import count_nonzero
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import races
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.observer import Observer

_STORES = frozenset(["tensor store", "bulk store"])
_REDUCTIONS = frozenset(["tensor reduction", "bulk reduction"])


class DuplicateCopies(Observer):
    """Stores come as one copy of several lanes, reductions one by one."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        #: The last reduction and the granules of global memory that it changes.
        self._last: tuple[AsyncWork, NDArray[np.int64]] | None = None

    def work_writes_global(self, work: AsyncWork, granules: NDArray[np.int64]) -> None:
        if work.what in _STORES and count_nonzero(work.lanes) > 1:
            self._report(work, int(count_nonzero(work.lanes)))
        elif work.what in _REDUCTIONS:
            if self._last is not None:
                last, there = self._last
                same = (last.statement, last.warp, last.issued) == (work.statement, work.warp, work.issued)
                if same and len(granules) and np.array_equal(granules, there):
                    self._report(work, None)
            self._last = work, granules

    def _report(self, work: AsyncWork, lanes: int | None) -> None:
        issuer = self._findings.access("issuer", work.statement, work.warp)
        if lanes is None:
            rule, severity = "Each lane adds the same data once more", "error"
        else:
            rule, severity = "One lane is enough; ptxas makes one instruction of them", "advice"
        self._findings.report(
            races.DUPLICATE_COPY,
            work.statement,
            summary=f"{lanes or 'several'} lanes of {issuer} issue the same copy",
            rule=rule,
            accesses=(issuer,),
            severity=severity,
            cause=("duplicate", work.statement.line),
        )
