"""Phases of an mbarrier against those who arrive and wait. PTX ISA 9.7.13.15.

A wait names its phase by a parity alone, so a phase must not complete while a waiter is still a whole round behind.
Arrivals of the lanes of a warp by one instruction belong to one phase: if a phase ends among them, the count is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.order.mbarriers import MbarrierOrder
from ptxgen.emulator.checks.registry import mbarriers
from ptxgen.emulator.observer import Lanes, Observer
from ptxgen.emulator.state.mbarriers import MBarrier
from ptxgen.syntax import Statement


@dataclass(slots=True)
class _Rounds:
    """Of one mbarrier the first wait of each warp for the last phase that it waited for: phase, epoch, where."""

    waits: dict[int, tuple[int, int, Statement]] = field(default_factory=dict)


class Phases(Observer):
    """Finds phases that end too early, as arrivals and waits show."""

    def __init__(self, happens_before: HappensBefore, clocks: MbarrierOrder, findings: Findings) -> None:
        self._happens_before, self._clocks, self._findings = happens_before, clocks, findings
        self._rounds: WeakKeyDictionary[MBarrier, _Rounds] = WeakKeyDictionary()
        #: The phase in which each mbarrier was at the first arrival of the present instruction of a warp.
        self._arriving: dict[MBarrier, int] = {}
        #: Whether an arrival or a wait was relaxed: it orders in time, but no clock has that order.
        self._relaxed = False

    def mbarriers_updated(
        self, warp: int, lanes: int, slot: int, statement: Statement, *, arrives: bool, relaxed: bool
    ) -> None:
        self._arriving.clear()
        self._relaxed |= relaxed

    def mbarrier_updated(
        self,
        warp: int,
        slot: int,
        mbarrier: MBarrier,
        statement: Statement,
        *,
        expects: bool,
        arrives: bool,
        scope: str | None,
    ) -> None:
        if not arrives:
            return
        first = self._arriving.setdefault(mbarrier, mbarrier.phase)
        if first != mbarrier.phase:
            self._report_split(warp, slot, mbarrier, first, statement)

    def mbarrier_waited(
        self,
        warp: int,
        lanes: Lanes,
        mbarrier: MBarrier,
        statement: Statement,
        *,
        relaxed: bool,
        cluster: bool,
        result: int,
    ) -> None:
        self._relaxed |= relaxed
        waits, phase = self._rounds.setdefault(mbarrier, _Rounds()).waits, mbarrier.phase - 1
        before = waits.get(warp)
        if before is None or before[0] != phase:
            waits[warp] = phase, self._happens_before.clock(warp), statement

    def mbarrier_phase_ends(self, mbarrier: MBarrier) -> None:
        """Every warp that has waited for the phase before must have done so before an arrival of this phase."""
        rounds = self._rounds.get(mbarrier)
        if rounds is None or self._relaxed:
            return
        happens_before, clocks = self._happens_before, self._clocks.of(mbarrier)
        for warp, (phase, clock, statement) in rounds.waits.items():
            if phase != mbarrier.phase - 1 or phase < 0:
                continue
            epoch, member = happens_before.epoch(warp), warp % happens_before.members
            observed = [each for each in (clocks.arriving, clocks.completed) if each is not None]
            if any(each.has_observed(epoch, member, clock) for each in observed):
                continue
            if any(happens_before.before_mma(warp, each, member, clock) for each in observed):
                continue
            self._report_behind(warp, mbarrier, phase, statement)
            return

    def _report_split(self, warp: int, slot: int, mbarrier: MBarrier, first: int, statement: Statement) -> None:
        if mbarrier.miscounted:
            return
        mbarrier.miscounted = True
        arrival = self._findings.access(
            "arriver", statement, warp, slot=slot, space="shared", address=mbarrier.address, phase=first
        )
        self._findings.report(
            mbarriers.MBARRIER_SPLIT,
            statement,
            summary=f"lanes of {arrival} arrive on {mbarrier.name} in phases {first} and {mbarrier.phase}",
            rule=f"A phase expects {mbarrier.expected} arrivals, so it ends among those of one warp",
            accesses=(arrival,),
            cause=frozenset([causes.mbarrier(mbarrier.address), causes.DEADLOCK]),
        )

    def _report_behind(self, warp: int, mbarrier: MBarrier, phase: int, statement: Statement) -> None:
        waiter = self._findings.access("waiter", statement, warp, space="shared", address=mbarrier.address, phase=phase)
        self._findings.report(
            mbarriers.MBARRIER_ROUND_BEHIND,
            statement,
            summary=f"phase {phase + 1} of {mbarrier.name} can complete while {waiter} still waits for phase {phase}",
            rule=f"No arrival of phase {phase + 1} is ordered after this wait, and a wait names its phase by its "
            "parity alone: it would take the next one for its own",
            accesses=(waiter,),
            cause=frozenset([causes.mbarrier(mbarrier.address)]),
        )
