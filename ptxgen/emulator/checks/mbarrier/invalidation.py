"""Uses of mbarriers that do not happen before their mbarrier.inval. PTX ISA 9.7.13.15.10."""

from __future__ import annotations

from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.order.mbarriers import MbarrierOrder
from ptxgen.emulator.checks.registry import mbarriers
from ptxgen.emulator.observer import Observer
from ptxgen.emulator.state.mbarriers import MBarrier
from ptxgen.syntax import Statement


class Invalidation(Observer):
    """Reports uses that may come after the object is gone.

    Of waits for a completed phase it is advice: Gluon of Triton 3.9 invalidates so, and its kernels run. A relaxed
    arrival at the cluster's barrier is enough order for such a wait, which nothing has to see.
    """

    def __init__(self, happens_before: HappensBefore, order: MbarrierOrder, findings: Findings) -> None:
        self._happens_before, self._order, self._findings = happens_before, order, findings

    def mbarrier_invalidated(self, warp: int, slot: int, mbarrier: MBarrier, statement: Statement) -> None:
        for other, use in self._order.of(mbarrier).users.items():
            if other == warp or self._happens_before.has_observed(warp, other, use.clock):
                continue
            if not (use.waited and self._happens_before.ordered_by_relaxed_arrival(warp, other, use.clock)):
                self._report(mbarrier, warp, other, use.statement, statement, waited=use.waited)

    def ended_mbarrier_waited(self, warp: int, mbarrier: MBarrier, statement: Statement) -> None:
        if mbarrier.ended_by is not None:
            self._report(mbarrier, None, warp, statement, mbarrier.ended_by, waited=True)

    def _report(
        self, mbarrier: MBarrier, warp: int | None, user: int, used: Statement, statement: Statement, *, waited: bool
    ) -> None:
        place = mbarrier.address
        invalidation = self._findings.access("accessor", statement, warp, space="shared", address=place)
        use = self._findings.access("waiter" if waited else "accessor", used, user, space="shared", address=place)
        self._findings.report(
            mbarriers.MBARRIER_INVAL_RACE,
            statement,
            summary=f"{invalidation} invalidates {invalidation.place} while {use} may still use it",
            rule="The two warps have not synchronized after the use",
            accesses=(invalidation, use),
            severity="advice" if waited else "error",
        )
