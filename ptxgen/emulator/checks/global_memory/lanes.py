"""Lanes of a warp that alone release, or acquire, what others of it have stored to global memory, or load from it.

A release pattern publishes what its own thread has done and observed (PTX ISA 8.8), and an acquire pattern orders what
its own thread does next. For the other lanes it counts from their next bar.warp.sync or barrier on; shuffles and votes
order no memory. `shared.lanes` has the same for shared memory, and says how races may be missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ptxgen.device.report import Severity
from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.global_memory.events import GlobalEvents, does
from ptxgen.emulator.checks.global_memory.shadow import NOBODY, SHIFT, Entries
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.order.listener import OrderListener
from ptxgen.emulator.checks.order.partial_release import PartialReleases
from ptxgen.emulator.checks.order.vector_clock import PENDING
from ptxgen.emulator.checks.order.warp_sync import LAGS
from ptxgen.emulator.checks.registry import races
from ptxgen.emulator.memory.global_memory import HEAP_BASE
from ptxgen.syntax import Statement

_LANES = np.arange(32, dtype=np.int32)


class LaneOrder(OrderListener):
    """The lanes that have stored to global memory in the interval of their warp's lanes, and released it."""

    def __init__(self, happens_before: HappensBefore, intervals: NDArray[np.int64], findings: Findings) -> None:
        self._happens_before, self._findings = happens_before, findings
        #: The number of the interval of each warp's lanes now (`LaneAccesses`).
        self._intervals = intervals
        #: The interval in which lanes of each warp last stored, and these lanes, as bits.
        self._stored, self._storers = np.zeros(len(intervals), np.int64), np.zeros(len(intervals), np.uint32)
        self._releases = PartialReleases()

    def released(self, warp: int, lanes: int) -> None:
        interval = int(self._intervals[warp])
        accessed = int(self._storers[warp]) if self._stored[warp] == interval else 0
        clock = self._happens_before.clock(warp)
        self._releases.done(warp, lanes, accessed=accessed, interval=interval, clock=clock)

    def converged(self, warps: NDArray[np.int64], clocks: NDArray[np.int64]) -> None:
        self._releases.converge(warps, clocks)

    def groups_converged(self, warp: int, groups: Sequence[int], clock: int) -> None:
        self._releases.converge(np.array([warp]), np.array([clock]))

    def stored(self, warps: NDArray[np.int64], lanes: NDArray[np.uint32]) -> None:
        """Lanes (bits) of these warps store weakly."""
        now = self._intervals[warps]
        self._storers[warps] = np.where(self._stored[warps] == now, self._storers[warps], np.uint32(0)) | lanes
        self._stored[warps] = now

    def compare(
        self,
        events: GlobalEvents,
        entries: Entries,
        offsets: NDArray[np.int64],
        warps: NDArray[np.int64],
        racing: NDArray[np.bool_] | None,
        statement: Statement,
        what: str,
    ) -> None:
        """Weak accesses of warps against the last stores there: `entries`, (warps, 32, places)."""
        if not self._releases.parts and not self._happens_before.any_lagging(warps):
            return
        candidates = entries != 0
        if racing is not None:
            candidates &= racing[..., None]
        if any_set(candidates):
            self._unreleased(events, entries, candidates, offsets, warps, statement, what)
            self._unacquired(events, entries, candidates, offsets, warps, statement, what)

    def _unreleased(
        self,
        events: GlobalEvents,
        entries: Entries,
        candidates: NDArray[np.bool_],
        offsets: NDArray[np.int64],
        warps: NDArray[np.int64],
        statement: Statement,
        what: str,
    ) -> None:
        if not self._releases.parts:
            return
        numbers = events.lanes[entries >> SHIFT]
        for number, part in self._releases.among(numbers[candidates]):
            there = candidates & (numbers == number) & (entries & NOBODY != NOBODY)
            if not any_set(there):
                continue
            actor = int(events.actor[entries[there][0] >> SHIFT])
            for position, warp in enumerate(warps.tolist()):
                observed = partial(self._happens_before.has_observed_actor, warp, actor)
                if (
                    self._happens_before.actor(warp) == actor
                    or not observed(part.begin)
                    or (part.end is not None and observed(part.end))
                ):
                    continue
                done, lanes = part.until(observed).lanes, (entries[position] & NOBODY).astype(np.int64)
                mine = there[position] & (done >> lanes & 1 == 0)
                if any_set(mine):
                    rule = "After the store only other lanes of that warp release it"
                    fix = "bar.warp.sync between the store and the release"
                    self._report(events, entries[position], mine, offsets[position], warp, statement, what, rule, fix)

    def _unacquired(
        self,
        events: GlobalEvents,
        entries: Entries,
        candidates: NDArray[np.bool_],
        offsets: NDArray[np.int64],
        warps: NDArray[np.int64],
        statement: Statement,
        what: str,
    ) -> None:
        happens_before = self._happens_before
        for position, warp in enumerate(warps.tolist()):
            lagging = happens_before.lagging(warp)
            if lagging is None:
                continue
            observed, behind = lagging
            suspects = candidates[position] & behind[:, None]
            for event in np.unique(entries[position][suspects] >> SHIFT).tolist():
                actor, clock = int(events.actor[event]), int(events.clock[event])
                if actor == happens_before.actor(warp) or clock == PENDING:
                    continue
                epoch = happens_before.epoch_of(actor), actor % happens_before.members, clock
                if observed.has_observed(*epoch) or not happens_before.has_observed_actor(warp, actor, clock):
                    continue  # or no lane has, which is reported elsewhere
                mine = suspects & (entries[position] >> SHIFT == event)
                lag = happens_before.lag(warp, mine.any(axis=1))
                fix = "bar.warp.sync between the acquire and this access"
                severity: Severity = "error" if lag == "alone" else "advice"
                self._report(
                    events, entries[position], mine, offsets[position], warp, statement, what, LAGS[lag], fix, severity
                )

    def _report(
        self,
        events: GlobalEvents,
        entries: Entries,
        chosen: NDArray[np.bool_],
        offsets: NDArray[np.int64],
        warp: int,
        statement: Statement,
        what: str,
        rule: str,
        fix: str,
        severity: Severity = "error",
    ) -> None:
        """Report the first of these accesses, (32, places), by a warp."""
        lane, place = np.unravel_index(int(chosen.argmax()), chosen.shape)
        entry, address = int(entries[lane, place]), HEAP_BASE + int(offsets[lane])
        other_lane = entry & NOBODY
        other_lanes = 1 << other_lane if other_lane != NOBODY else None
        party, other = events.parties(warp, entry >> SHIFT, what, statement, address, 1 << int(lane), other_lanes)
        self._findings.report(
            races.GLOBAL_RACE,
            statement,
            summary=f"{party} {does(party, what)} {party.place or 'global memory'}, which {other} writes",
            rule=rule,
            fix=fix,
            accesses=(party, other),
            severity=severity,
        )
