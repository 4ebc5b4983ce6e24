"""Uses of mbarriers that come too early after their init, also by the async proxy. PTX ISA 9.7.13.15.9."""

from __future__ import annotations

from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.order.mbarriers import MbarrierOrder
from ptxgen.emulator.checks.registry import mbarriers
from ptxgen.emulator.observer import Observer
from ptxgen.emulator.state.mbarriers import MBarrier
from ptxgen.syntax import Statement


class Initialization(Observer):
    """Reports uses of an mbarrier before its init is visible."""

    def __init__(self, happens_before: HappensBefore, order: MbarrierOrder, findings: Findings) -> None:
        self._happens_before, self._order, self._findings = happens_before, order, findings

    def mbarrier_used(self, warp: int, slot: int, mbarrier: MBarrier, statement: Statement) -> None:
        if warp == mbarrier.made_by:
            return
        happens_before, clocks = self._happens_before, self._order.of(mbarrier)
        if happens_before.has_observed_init(warp, clocks):
            return
        apart = warp // happens_before.warps != mbarrier.made_by // happens_before.warps
        relaxed = happens_before.relaxed.order(warp, mbarrier.made_by, clocks.made_at)
        if relaxed:
            rule = "Only barrier.cluster.arrive.relaxed lies between them, which orders nothing by itself"
            fix = "fence.mbarrier_init.release.cluster before the barrier.cluster.arrive.relaxed"
        else:
            rule = "The two warps have not synchronized since the init"
            fix = f"{'fence.mbarrier_init and barrier.cluster' if apart else 'a barrier'} between the two"
        place = mbarrier.address
        user = self._findings.access("accessor", statement, warp, slot=slot, space="shared", address=place)
        init = self._findings.access(
            "initializer", mbarrier.statement, mbarrier.made_by, slot=slot, space="shared", address=place
        )
        self._findings.report(
            mbarriers.MBARRIER_INIT_RACE,
            statement,
            summary=f"{user} uses {user.place} before {init}{' of a peer CTA' if apart else ''} is visible to it",
            rule=rule,
            fix=fix,
            accesses=(user, init),
            severity="advice" if relaxed else "error",
            cause=frozenset([causes.UNSYNCHRONIZED_INIT]),
            after=frozenset([causes.CLUSTER_BARRIER] if apart else []),
        )

    def copy_signals(self, warp: int, slot: int, mbarrier: MBarrier, statement: Statement) -> None:
        if mbarrier.fenced and self._happens_before.has_observed_init_fence(warp, self._order.of(mbarrier)):
            return
        findings = self._findings
        issuer = findings.access("issuer", statement, warp)
        made = findings.access("initializer", mbarrier.statement, space="shared", slot=slot, address=mbarrier.address)
        ordered = " that is ordered before the copy" if mbarrier.fenced else ""
        findings.report(
            mbarriers.MBARRIER_INIT_PROXY,
            statement,
            summary=f"{issuer} completes on {made.place}, whose init (line {made.line}) no fence.mbarrier_init or "
            f"fence.proxy.async{ordered} has made visible to the async proxy",
            rule="",
            accesses=(issuer, made),
            cause=causes.UNFENCED_INIT,
        )
