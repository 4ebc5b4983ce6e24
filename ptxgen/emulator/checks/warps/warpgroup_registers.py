"""setmaxnreg by whole warpgroups: all their warps execute the same ones. PTX ISA 9.7.19.5."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.device import Status
from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import barriers
from ptxgen.emulator.observer import Observer
from ptxgen.syntax import Instruction, Statement

#: Warps of a warpgroup.
_WARPS = 4


class _Change(NamedTuple):
    """One setmaxnreg of a warp: where, and the registers of a thread that it names."""

    statement: Instruction
    registers: int


class WarpgroupRegisters(Observer):
    """Compares the setmaxnreg of the warps of each warpgroup; `present`, (warps, 32), have not exited."""

    def __init__(self, warps_per_cta: int, present: NDArray[np.bool_], findings: Findings) -> None:
        self._warps_per_cta, self._present, self._findings = warps_per_cta, present, findings
        #: setmaxnreg instructions that each warp has executed.
        self._done: dict[int, list[_Change]] = {}

    def registers_set(self, warp: int, statement: Instruction, count: int) -> None:
        done = self._done.setdefault(warp, [])
        done.append(_Change(statement, count))
        for other in self._warpgroup(warp):
            changes = self._done.get(other, ())
            if len(changes) >= len(done) and changes[len(done) - 1].registers != count:
                self._report_count(warp, done[-1], other, changes[len(done) - 1])
                return

    def ctas_end(self, slots: Sequence[int]) -> None:
        for slot in slots if self._done else ():
            warps = range(slot * self._warps_per_cta, (slot + 1) * self._warps_per_cta)
            self._compare([warp for warp in warps if warp in self._done])
            for warp in warps:
                self._done.pop(warp, None)

    def launch_deadlocks(self, may_execute: Callable[[int, Statement], bool]) -> None:
        self._compare(sorted(self._done), may_execute)

    def launch_ends(self, status: Status) -> None:
        self._compare(sorted(self._done))

    def _warpgroup(self, warp: int) -> range:
        """The warps of a warp's warpgroup."""
        warp_id = warp % self._warps_per_cta
        first = warp_id - warp_id % _WARPS
        return range(warp - warp_id + first, warp - warp_id + min(first + _WARPS, self._warps_per_cta))

    def _compare(self, warps: Sequence[int], may_execute: Callable[[int, Statement], bool] | None = None) -> None:
        """Find warps that have exited, or gone past, a setmaxnreg that others of their warpgroup have executed."""
        for warp in warps:
            done = self._done[warp]
            for other in self._warpgroup(warp):
                count = len(self._done.get(other, ()))
                if count >= len(done):
                    continue
                if not any_set(self._present[other]):
                    self._report_missing(warp, done[count], other, "exits without doing so")
                    break
                if may_execute is not None and not any(may_execute(other, each.statement) for each in done):
                    self._report_missing(warp, done[count], other, "has gone another way and waits there")
                    break

    def _report_count(self, warp: int, change: _Change, other: int, there: _Change) -> None:
        here = self._findings.access("accessor", change.statement, warp)
        peer = self._findings.access("accessor", there.statement, other)
        self._findings.report(
            barriers.SETMAXNREG_WARPGROUP,
            change.statement,
            summary=f"{here} names {change.registers} registers, {peer} of the same warpgroup {there.registers}",
            rule="All warps of a warpgroup must execute the same setmaxnreg",
            accesses=(here, peer),
            cause=self._cause(warp, change),
        )

    def _report_missing(self, warp: int, change: _Change, other: int, instead: str) -> None:
        here = self._findings.access("accessor", change.statement, warp)
        self._findings.report(
            barriers.SETMAXNREG_WARPGROUP,
            change.statement,
            summary=f"{here} changes its registers, warp {other % self._warps_per_cta} of the same warpgroup {instead}",
            rule="All warps of a warpgroup must execute the same setmaxnreg",
            accesses=(here,),
            cause=self._cause(warp, change),
        )

    def _cause(self, warp: int, change: _Change) -> frozenset[Hashable]:
        """Once the warps of a warpgroup have gone apart, later changes of its registers differ too."""
        group = warp % self._warps_per_cta // _WARPS
        return frozenset([("setmaxnreg", change.statement.line), causes.registers(group), causes.DEADLOCK])
