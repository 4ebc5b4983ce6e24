"""Uses of mbarriers that do not happen before their mbarrier.inval. PTX ISA 9.7.13.15.10."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ptxgen.device.report import Role, Severity
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
    of Triton 3.9 invalidates so, and its kernels run. A relaxed arrival at the cluster's barrier is enough order for
    such a wait, which nothing has to see.
    """

    def __init__(self, happens_before: HappensBefore, order: MbarrierOrder, findings: Findings) -> None:
        self._happens_before, self._order, self._findings = happens_before, order, findings
        #: The severity of waits for the last phase that come after the object's end.
        self._late: WeakKeyDictionary[MBarrier, Severity] = WeakKeyDictionary()

    def mbarrier_invalidated(self, warp: int, slot: int, mbarrier: MBarrier, statement: Statement) -> None:
        last = mbarrier.phase - 1
        late: Severity = "advice" if self._has_seen(warp, mbarrier, last) else "error"
        self._late[mbarrier] = late
        for other, use in self._order.of(mbarrier).users.items():
            if other == warp or self._happens_before.has_observed(warp, other, use.clock):
                continue
            waits = use.phase is not None and use.phase <= last
            if not (waits and self._happens_before.ordered_by_relaxed_arrival(warp, other, use.clock)):
                self._report(mbarrier, warp, other, use, statement, late if waits else "error")

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
        )
