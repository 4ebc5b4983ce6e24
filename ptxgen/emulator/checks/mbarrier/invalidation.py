"""Uses of mbarriers that do not happen before their mbarrier.inval. PTX ISA 9.7.13.15.10."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ptxgen.device.report import Role, Severity
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.order.mbarriers import MbarrierOrder, Use
from ptxgen.emulator.checks.registry import mbarriers
from ptxgen.emulator.observer import Observer
from ptxgen.emulator.state.mbarriers import MBarrier
from ptxgen.syntax import Statement


class Invalidation(Observer):
    """Reports uses that may come after the object is gone.

    Of waits for a phase that is over it is advice if the invalidating warp has seen to that by a wait of its own: Gluon
    of Triton 3.9 invalidates so, and its kernels run. It is an error once another object is made there. A relaxed
    arrival at the cluster's barrier is enough order for such a wait, which nothing has to see.
    """

    def __init__(self, happens_before: HappensBefore, order: MbarrierOrder, findings: Findings) -> None:
        self._happens_before, self._order, self._findings = happens_before, order, findings
        #: The severity of waits for the last phase that come after the object's end.
        self._late: WeakKeyDictionary[MBarrier, Severity] = WeakKeyDictionary()
        #: By CTA slot and address of an object that is gone: the warp that invalidated it, its interval, its statement.
        self._gone: dict[tuple[int, int], tuple[int, int, Statement]] = {}
        #: By the same, the uses of other warps that did not happen before its end: warps (`HappensBefore.actors`).
        self._in_use: dict[tuple[int, int], list[tuple[int, Use]]] = {}

    def mbarrier_invalidated(self, warp: int, slot: int, mbarrier: MBarrier, statement: Statement) -> None:
        self._gone[slot, mbarrier.address] = warp, self._happens_before.clock(warp), statement
        last = mbarrier.phase - 1
        late: Severity = "advice" if self._has_seen(warp, mbarrier, last) else "error"
        self._late[mbarrier] = late
        for other, use in self._order.of(mbarrier).users.items():
            if other == warp or self._happens_before.has_observed(warp, other, use.clock):
                continue
            waits = use.phase is not None and use.phase <= last
            if waits and late == "advice":
                self._in_use.setdefault((slot, mbarrier.address), []).append((self._happens_before.actor(other), use))
            if not (waits and self._happens_before.relaxed.order(warp, other, use.clock)):
                self._report(mbarrier, warp, other, use, statement, late if waits else "error")

    def mbarrier_initialized(self, warp: int, slot: int, mbarrier: MBarrier) -> None:
        for actor, use in self._in_use.pop((slot, mbarrier.address), ()):
            if not self._happens_before.has_observed_actor(warp, actor, use.clock):
                self._report_anew(mbarrier, warp, slot, actor, use)
        other, clock, invalidated = self._gone.pop((slot, mbarrier.address), (warp, 0, mbarrier.statement))
        if other == warp or self._happens_before.has_observed(warp, other, clock):
            return
        place = mbarrier.address
        init = self._findings.access("initializer", mbarrier.statement, warp, slot=slot, space="shared", address=place)
        inval = self._findings.access("accessor", invalidated, other, slot=slot, space="shared", address=place)
        self._findings.report(
            mbarriers.MBARRIER_INVAL_RACE,
            mbarrier.statement,
            summary=f"{init} makes {init.place} anew, which {inval} may not have invalidated yet",
            rule="The two warps have not synchronized after the mbarrier.inval",
            fix="a barrier between the mbarrier.inval and the mbarrier.init",
            accesses=(init, inval),
        )

    def slots_reused(self, slots: NDArray[np.int64]) -> None:
        gone = set(slots.tolist())
        self._gone = {place: made for place, made in self._gone.items() if place[0] not in gone}
        self._in_use = {place: uses for place, uses in self._in_use.items() if place[0] not in gone}

    def _report_anew(self, mbarrier: MBarrier, warp: int, slot: int, actor: int, used: Use) -> None:
        """An object is made where another warp may still wait for a phase of the one before."""
        place, waiter = mbarrier.address, self._happens_before.resident_warp(actor)
        init = self._findings.access("initializer", mbarrier.statement, warp, slot=slot, space="shared", address=place)
        use = self._findings.access("waiter", used.statement, waiter, slot=slot, space="shared", address=place)
        self._findings.report(
            mbarriers.MBARRIER_INVAL_RACE,
            mbarrier.statement,
            summary=f"{init} makes {init.place} anew while {use} may still wait for a phase of the one before",
            rule="The two warps have not synchronized since, so that it may wait for a phase of the new mbarrier",
            fix=f"a barrier between line {use.line} and the mbarrier.inval",
            accesses=(init, use),
            cause=frozenset([causes.ended(place)]),
        )

    def _has_seen(self, warp: int, mbarrier: MBarrier, phase: int) -> bool:
        """Whether a wait for a phase that has passed happens before this point of a warp."""
        return any(
            wait.phase == phase and (other == warp or self._happens_before.has_observed(warp, other, wait.clock))
            for other, wait in self._order.of(mbarrier).waits.items()
        )

    def ended_mbarrier_waited(self, warp: int, mbarrier: MBarrier, statement: Statement) -> None:
        if mbarrier.ended_by is not None:
            use = Use(0, statement, mbarrier.phase - 1)
            self._report(mbarrier, None, warp, use, mbarrier.ended_by, self._late.get(mbarrier, "error"))

    def _report(
        self, mbarrier: MBarrier, warp: int | None, user: int, used: Use, statement: Statement, severity: Severity
    ) -> None:
        place = mbarrier.address
        role: Role = "accessor" if used.phase is None else "waiter"
        invalidation = self._findings.access("accessor", statement, warp, space="shared", address=place)
        use = self._findings.access(role, used.statement, user, space="shared", address=place)
        self._findings.report(
            mbarriers.MBARRIER_INVAL_RACE,
            statement,
            summary=f"{invalidation} invalidates {invalidation.place} while {use} may still use it",
            rule="The two warps have not synchronized after the use",
            accesses=(invalidation, use),
            severity=severity,
            cause=frozenset([causes.ended(place)]),
            after=frozenset([causes.ended(place)]) if severity == "advice" else frozenset(),
        )
