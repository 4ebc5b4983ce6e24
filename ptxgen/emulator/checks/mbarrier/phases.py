"""Phases of an mbarrier against those who arrive and wait. PTX ISA 9.7.13.15.

A wait names its phase by a parity alone, so a phase must not complete while a waiter is still a whole round behind.
It is advice where the waiter does nothing else from then on, and another warp copies after the same wait: TileLang lets
all warps of its producers wait for a free stage, which one thread fills.
Arrivals of the lanes of a warp by one instruction belong to one phase: if a phase ends among them, the count is wrong.
cp.async.mbarrier.arrive without .noinc raises the pending count of the present phase, which its asynchronous arrival
lowers again (9.7.13.15.15). That comes in time only if another arrival of the phase comes after it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ptxgen.device import Access, Severity, Status
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.mbarrier.stale_waits import StaleWaits
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.order.mbarriers import MbarrierOrder
from ptxgen.emulator.checks.registry import mbarriers
from ptxgen.emulator.observer import Lanes, Observer
from ptxgen.emulator.state.mbarriers import MBarrier
from ptxgen.emulator.state.signals import Signal
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.engines.work import AsyncWork
    from ptxgen.emulator.memory.located import MemoryAccess


_IDLE = (
    "wait for the next one but one, without end. The warp accesses no memory after the wait, so no data depends on it"
)


@dataclass(slots=True)
class _Rounds:
    """Of one mbarrier the first wait of each warp for the last phase that it waited for: phase, epoch, where; and the
    warps that arrive in the present phase, or have issued what does.
    """

    waits: dict[int, tuple[int, int, Statement]] = field(default_factory=dict)
    arrivers: set[int] = field(default_factory=set)
    #: The last arrival of each warp by an instruction in the present phase, and in the one before: interval, where.
    arrivals: dict[int, tuple[int, Statement]] = field(default_factory=dict)
    before: dict[int, tuple[int, Statement]] = field(default_factory=dict)
    #: The last increment of each warp in the present phase that no arrival is known to come after: interval, where.
    increments: dict[int, tuple[int, Statement]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Behind:
    """A wait for a phase of an mbarrier that a slow warp takes for the next but one."""

    mbarrier: MBarrier
    phase: int
    statement: Statement
    waiter: Access
    after: frozenset[Hashable]


class Phases(Observer):
    """Finds phases that end too early, as arrivals and waits show."""

    def __init__(
        self, happens_before: HappensBefore, clocks: MbarrierOrder, waits: StaleWaits, findings: Findings
    ) -> None:
        self._happens_before, self._clocks, self._waits, self._findings = happens_before, clocks, waits, findings
        self._rounds: WeakKeyDictionary[MBarrier, _Rounds] = WeakKeyDictionary()
        #: The phase in which each mbarrier was at the first arrival of the present instruction of a warp.
        self._arriving: dict[MBarrier, int] = {}
        #: Waits that are a round behind, by warp, until the warp accesses memory.
        self._idle: dict[int, list[_Behind]] = {}
        #: The interval of that warp before it arrives.
        self._interval = 0
        #: Each warp's waits since its last copy, and those after which a warp has issued a copy.
        self._waited: dict[int, set[Statement]] = {}
        self._before_copies: set[Statement] = set()
        #: True once an arrival or wait was relaxed: it orders in time, but no clock has that order.
        self._relaxed = False

    def mbarriers_updated(
        self, warp: int, lanes: int, slot: int, statement: Statement, *, arrives: bool, relaxed: bool
    ) -> None:
        self._arriving.clear()
        self._interval = self._happens_before.clock(warp)
        self._relaxed |= relaxed
        if arrives and self._idle:
            self._acts([warp])

    def memory_requested(self, access: MemoryAccess) -> None:
        if self._idle and access.space in ("global", "shared"):
            self._acts(access.warps.tolist())

    def work_issued(self, work: AsyncWork) -> None:
        if "copy" in work.what and work.warp in self._waited:
            self._before_copies |= self._waited.pop(work.warp)
        if self._idle:
            self._acts([work.warp])

    def warpgroup_issues(self, warps: Sequence[int]) -> None:
        if self._idle:
            self._acts(warps)

    def tensor_read(self, warp: int, bands: list[int], columns: range, statement: Statement) -> None:
        if self._idle:
            self._acts([warp])

    def ctas_end(self, slots: Sequence[int]) -> None:
        for warp in [warp for warp in self._idle if warp // self._happens_before.warps in slots]:
            self._report_behind(warp, "advice")
        for warp in [warp for warp in self._waited if warp // self._happens_before.warps in slots]:
            del self._waited[warp]

    def launch_ends(self, status: Status) -> None:
        for warp in sorted(self._idle):
            self._report_behind(warp, "error" if status == "deadlock" else "advice")

    def _acts(self, warps: Sequence[int]) -> None:
        for warp in warps:
            if warp in self._idle:
                self._report_behind(warp, "error")

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
        rounds = self._rounds.setdefault(mbarrier, _Rounds())
        rounds.arrivers.add(warp)
        self._holds_open(warp, rounds)
        first = self._arriving.setdefault(mbarrier, mbarrier.phase)
        if first != mbarrier.phase:
            self._report_split(warp, slot, mbarrier, first, statement)
        elif warp not in rounds.arrivals:
            self._against_phase_before(warp, slot, mbarrier, rounds.before, statement)
        rounds.arrivals[warp] = self._interval, statement

    def arrivals_split(self, warp: int, slot: int, mbarrier: MBarrier, first: int, statement: Statement) -> None:
        self._report_split(warp, slot, mbarrier, first, statement)

    def signal_promised(self, warp: int, mbarrier: MBarrier, signal: Signal) -> None:
        rounds = self._rounds.setdefault(mbarrier, _Rounds())
        rounds.arrivers.add(warp)
        self._holds_open(warp, rounds)

    def mbarrier_counts_copies(
        self, warp: int, slot: int, mbarrier: MBarrier, statement: Statement, *, increments: bool
    ) -> None:
        """An increment must come after the phase before, and before the present one can complete."""
        rounds = self._rounds.setdefault(mbarrier, _Rounds())
        if not increments:
            self._holds_open(warp, rounds)
            return
        if (arrival := self._unordered_before(warp, mbarrier, rounds.before)) is not None:
            self._report_increment(warp, mbarrier, statement, *arrival, before=mbarrier.phase - 1)
        rounds.increments[warp] = self._happens_before.clock(warp), statement

    def _holds_open(self, warp: int, rounds: _Rounds) -> None:
        """A warp arrives: the increments that happen before that come in time."""
        for other, (clock, _) in list(rounds.increments.items()):
            if other == warp or self._happens_before.has_observed(warp, other, clock):
                del rounds.increments[other]

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
        self._waited.setdefault(warp, set()).add(statement)
        waits, phase = self._rounds.setdefault(mbarrier, _Rounds()).waits, mbarrier.phase - 1
        before = waits.get(warp)
        if before is None or before[0] != phase:
            waits[warp] = phase, self._happens_before.clock(warp), statement

    def mbarrier_phase_ends(self, mbarrier: MBarrier) -> None:
        """Every warp that has waited for the phase before must have done so before an arrival of this phase."""
        rounds = self._rounds.get(mbarrier)
        if rounds is None or self._relaxed:
            return
        rounds.before, rounds.arrivals = rounds.arrivals, {}
        arrivers, rounds.arrivers = rounds.arrivers, set()
        increments, rounds.increments = rounds.increments, {}
        for warp, (_, statement) in increments.items():
            other, (_, arrival) = next(iter(rounds.before.items()), (warp, (0, statement)))
            self._report_increment(warp, mbarrier, statement, other, arrival)
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
            if any(happens_before.relaxed.order_before(each, warp, clock) for each in observed):
                continue  # in time, which is enough here
            waiter = self._findings.access(
                "waiter", statement, warp, space="shared", address=mbarrier.address, phase=phase
            )
            mbarrier.behind = True
            after = frozenset[Hashable]().union(*map(self._waits.waited_on, arrivers))
            self._idle.setdefault(warp, []).append(_Behind(mbarrier, phase, statement, waiter, after))

    def _against_phase_before(
        self, warp: int, slot: int, mbarrier: MBarrier, before: dict[int, tuple[int, Statement]], statement: Statement
    ) -> None:
        """An arrival must come after all of the phase before: else it might have counted there."""
        if (arrival := self._unordered_before(warp, mbarrier, before)) is not None:
            self._report_early(warp, slot, mbarrier, *arrival, statement)

    def _unordered_before(
        self, warp: int, mbarrier: MBarrier, before: dict[int, tuple[int, Statement]]
    ) -> tuple[int, Statement] | None:
        """An arrival of the phase before, and its warp, that does not come before this point of a warp."""
        if self._relaxed or mbarrier.miscounted:
            return None
        happens_before = self._happens_before
        for other, (clock, earlier) in before.items():
            if other == warp or happens_before.has_observed(warp, other, clock):
                continue
            if happens_before.relaxed.order(warp, other, clock):
                continue
            member = other % happens_before.members
            if happens_before.before_mma(other, happens_before.observed[warp], member, clock):
                continue
            return other, earlier
        return None

    def _report_increment(
        self,
        warp: int,
        mbarrier: MBarrier,
        statement: Statement,
        other: int,
        earlier: Statement,
        *,
        before: int | None = None,
    ) -> None:
        """An increment is unordered with the end of a phase, of the one `before` or else of the present one."""
        if mbarrier.miscounted or self._relaxed:
            return
        mbarrier.miscounted = True
        phase = mbarrier.phase if before is None else before
        place = {"space": "shared", "address": mbarrier.address, "phase": phase}
        increment = self._findings.access("arriver", statement, warp, **place)
        arrival = self._findings.access("arriver", earlier, other, **place)
        self._findings.report(
            mbarriers.MBARRIER_SPLIT,
            statement,
            summary=f"phase {phase} of {mbarrier.name} can complete before {increment} raises its pending count: no "
            f"arrival of the phase{'' if earlier is statement else f' ({arrival})'} is ordered after it",
            rule="Without .noinc a cp.async.mbarrier.arrive adds one to the pending count of the present phase and "
            "takes it off once the copies are done, so another arrival of the phase must come after it",
            fix="a barrier between the cp.async.mbarrier.arrive of all threads and the mbarrier.arrive, an "
            "mbarrier.arrive by every thread, or .noinc with an init count of all threads",
            accesses=(increment, arrival),
            cause=causes.of_miscounted(mbarrier.address),
            after=frozenset([causes.refilled(mbarrier.address)]),
        )

    def _report_early(
        self, warp: int, slot: int, mbarrier: MBarrier, other: int, earlier: Statement, statement: Statement
    ) -> None:
        mbarrier.miscounted = True
        place = {"slot": slot, "space": "shared", "address": mbarrier.address}
        arrival = self._findings.access("arriver", statement, warp, phase=mbarrier.phase, **place)
        first = self._findings.access("arriver", earlier, other, phase=mbarrier.phase - 1, **place)
        repeated = self._waits.repeated(warp)
        self._findings.report(
            mbarriers.MBARRIER_SPLIT,
            statement,
            summary=f"{arrival} arrives on {mbarrier.name} in phase {mbarrier.phase}, but nothing orders it after "
            f"phase {mbarrier.phase - 1}, in which {first} arrives",
            rule=f"A phase expects {mbarrier.expected} arrival{'s' if mbarrier.expected > 1 else ''}: the count is too "
            f"small, or the thread arrives again before it has waited{repeated}",
            fix="flip the parity after each wait" if repeated else None,
            accesses=(arrival, first),
            cause=causes.of_miscounted(mbarrier.address),
            after=frozenset([causes.refilled(mbarrier.address), causes.early(warp), causes.early(other)]),
        )

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
            rule=f"A phase expects {mbarrier.expected} arrival{'s' if mbarrier.expected > 1 else ''}, so it ends among "
            "those of one warp",
            accesses=(arrival,),
            cause=causes.of_miscounted(mbarrier.address),
            after=frozenset([causes.refilled(mbarrier.address), causes.early(warp)]),
        )

    def _report_behind(self, warp: int, severity: Severity) -> None:
        for found in self._idle.pop(warp):
            phase, idle = found.phase, severity == "advice" and found.statement in self._before_copies
            self._findings.report(
                mbarriers.MBARRIER_ROUND_BEHIND,
                found.statement,
                summary=f"phase {phase + 1} of {found.mbarrier.name} can complete while {found.waiter} still waits for "
                f"phase {phase}",
                rule=f"No arrival of phase {phase + 1} is ordered after this wait, and a wait names its phase by its "
                f"parity alone: it would {_IDLE if idle else 'take the next one for its own'}",
                accesses=(found.waiter,),
                cause=frozenset([causes.mbarrier(found.mbarrier.address)]),
                after=found.after | {causes.stuck(found.mbarrier.address), causes.refilled(found.mbarrier.address)},
                severity="advice" if idle else "error",
            )
