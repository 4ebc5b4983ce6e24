"""The bytes of an mbarrier's phases: what expect_tx announces, what has arrived. PTX ISA 9.7.13.15.3.

A phase completes once no arrival is pending and its tx-count is zero. That is right only if expect_tx announces every
copy of the phase before the last arrival: else the phase may complete while a copy is in flight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ptxgen.device.report import Access, Role, Severity
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import mbarriers
from ptxgen.emulator.observer import Observer
from ptxgen.emulator.state.signals import Signal, byte_list, lines
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import HappensBefore
    from ptxgen.emulator.state.mbarriers import MBarrier


@dataclass(slots=True)
class _Announced:
    """The expect_tx of a phase, by warp and its interval, and whether an arrival is ordered after one of them."""

    open: list[tuple[int, int]] = field(default_factory=list)
    closed: bool = False
    #: The arrivals of the phase before by warp, without bytes of their own; and an expect_tx by one of these warps,
    #: which has not waited for that phase, with its arrival.
    before: dict[int, Statement] = field(default_factory=dict)
    behind: tuple[int, Statement, Statement] | None = None


class Transactions(Observer):
    """The rules, applied at each operation on an mbarrier."""

    def __init__(
        self, happens_before: HappensBefore, mbarriers: Sequence[Mapping[int, MBarrier]], findings: Findings
    ) -> None:
        self._happens_before, self._mbarriers, self._findings = happens_before, mbarriers, findings
        #: Accounts of the present phase, by mbarrier.
        self._announced: WeakKeyDictionary[MBarrier, _Announced] = WeakKeyDictionary()
        #: Arrivals in the present phase, by mbarrier and warp.
        self._arrived: WeakKeyDictionary[MBarrier, dict[int, Statement]] = WeakKeyDictionary()

    def ctas_end(self, slots: Sequence[int]) -> None:
        for slot in slots:
            for mbarrier in self._mbarriers[slot].values():
                self._ends(mbarrier, "the CTA exits")

    def _report(
        self,
        barrier: MBarrier,
        role: Role,
        statement: Statement | None,
        *,
        summary: str,
        rule: str,
        fix: str | None = None,
        warp: int | None = None,
        copies: Iterable[Statement] = (),
        severity: Severity = "error",
    ) -> None:
        """Once for an object, since a phase with a wrong count makes later phases wrong too."""
        if barrier.miscounted:
            return
        barrier.miscounted = True
        reported = self._access(barrier, role, statement, warp)
        issuers = [self._access(barrier, "issuer", each) for each in dict.fromkeys(copies)]
        self._findings.report(
            mbarriers.EXPECT_TX,
            statement,
            summary=summary,
            rule=rule,
            fix=fix,
            accesses=(reported, *issuers),
            severity=severity,
            cause=causes.of_miscounted(barrier.address),
        )

    def _access(self, barrier: MBarrier, role: Role, statement: Statement | None, warp: int | None = None) -> Access:
        return self._findings.access(
            role, statement, warp, space="shared", address=barrier.address, phase=barrier.phase
        )

    def signal_promised(self, warp: int, mbarrier: MBarrier, signal: Signal) -> None:
        """A warp issues a copy that will complete on the object; it is not in `under_way` yet.

        If no expect_tx of this phase covers its bytes, and the warp has not waited for the copies of the phase before,
        both may be credited to that phase.
        """
        barrier, before, now = mbarrier, mbarrier.previous, mbarrier.account
        if before is None or not before.operations or not signal.size:
            return
        sent = now.bytes_come + sum(each.size for each in barrier.under_way) + signal.size
        if now.bytes_expected >= sent:
            return
        observed, alive = self._happens_before.observed[warp].operations, self._happens_before.operations
        if all(number in observed or number not in alive for number in before.operations):
            return
        copy = self._access(barrier, "issuer", signal.statement, warp)
        self._report(
            barrier,
            "issuer",
            signal.statement,
            warp=warp,
            summary=f"no expect_tx covers the {signal.size} bytes of {copy} on {barrier.name}",
            rule=f"They may be credited to phase {barrier.phase - 1} or phase {barrier.phase}, since this warp has not "
            f"waited for phase {barrier.phase - 1}, which expects {byte_list(before.expected)}",
        )

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
        """A warp announces bytes, or arrives: what happens before that comes before the end of the phase."""
        announced = self._announced.setdefault(mbarrier, _Announced())
        if expects and arrives:
            announced.closed = True
        elif expects:
            if not announced.closed:
                announced.open.append((warp, self._happens_before.clock(warp)))
                last = mbarrier.waits.get(warp)
                if warp in announced.before and (last is None or last.phase < mbarrier.phase - 1):
                    announced.behind = warp, statement, announced.before[warp]
            if not mbarrier.pending and mbarrier.phase_may_have_ended:
                self._late(mbarrier, statement)
        if arrives and not expects:
            self._arrived.setdefault(mbarrier, {})[warp] = statement
        if arrives and not announced.closed and announced.open:
            has_observed = self._happens_before.has_observed
            announced.closed = any(other == warp or has_observed(warp, other, clock) for other, clock in announced.open)

    def signal_arrives(self, mbarrier: MBarrier, signal: Signal) -> None:
        if not signal.size:
            self._announced.setdefault(mbarrier, _Announced()).closed = True

    def mbarrier_phase_ends(self, mbarrier: MBarrier) -> None:
        """No arrival is pending, and as many bytes as expected have arrived."""
        barrier, account = mbarrier, mbarrier.account
        expected = self._announced.pop(mbarrier, None)
        arrived = self._arrived.pop(mbarrier, None)
        if arrived and not account.expected:
            self._announced[mbarrier] = _Announced(before=arrived)
        in_flight = [each for each in barrier.under_way if each.size]
        if in_flight:
            size = sum(each.size for each in in_flight)
            announced = f"announces {byte_list(account.expected)}" if account.expected else "announces no bytes"
            blamed = next(iter(account.expected.values()))[0] if account.expected else barrier.last_arrival
            self._report(
                barrier,
                "arriver",
                blamed,
                summary=f"phase {barrier.phase} of {barrier.name} completes early: {size} bytes are still in flight",
                rule=f"expect_tx {announced} but the copies of the phase transfer {account.bytes_come + size}",
                fix=f"announce {account.bytes_come + size} bytes by expect_tx before the last arrival of the phase",
            )
        elif expected is not None and expected.open and not expected.closed and not account.by_hand:
            self._late(barrier, next(iter(account.expected.values()))[0])

    def _late(self, barrier: MBarrier, statement: Statement) -> None:
        self._report(
            barrier,
            "arriver",
            statement,
            summary=f"expect_tx is late: no arrival on {barrier.name} follows it",
            rule=f"Phase {barrier.phase} may complete before it, and the bytes then count in phase {barrier.phase + 1}",
            fix="mbarrier.arrive.expect_tx, or expect_tx before the arrival of the same thread",
        )

    def _after_its_arrival(self, barrier: MBarrier, warp: int, expects: Statement, arrives: Statement) -> None:
        """A thread has arrived and announced bytes thereafter, for which no arrival has come."""
        phase = barrier.phase - 1
        self._report(
            barrier,
            "arriver",
            expects,
            warp=warp,
            summary=f"expect_tx (line {expects.line}) is late: phase {phase} of {barrier.name} completes by the "
            f"arrival of line {arrives.line}, without its bytes",
            rule=f"They count in phase {barrier.phase}, in which nobody arrives, so no wait covers the copies",
            fix="mbarrier.arrive.expect_tx, or expect_tx before the arrival of the same thread",
        )

    def mbarrier_invalidated(self, warp: int, slot: int, mbarrier: MBarrier, statement: Statement) -> None:
        self._ends(mbarrier, "mbarrier.inval ends the mbarrier")

    def _ends(self, barrier: MBarrier, how: str) -> None:
        """The object is gone: `how` says why, as `the CTA exits`."""
        account, announced = barrier.account, self._announced.get(barrier)
        if announced is not None and announced.behind is not None and not account.arrivals and not account.by_hand:
            self._after_its_arrival(barrier, *announced.behind)
            return
        if announced is not None and announced.open and not announced.closed and (account.came or barrier.under_way):
            if not account.by_hand:
                self._late(barrier, next(iter(account.expected.values()))[0])
            return
        in_flight = [each for each in barrier.under_way if each.size]
        sent = account.bytes_come + sum(each.size for each in in_flight)
        if in_flight and not account.expected and not account.by_hand:
            self._report(
                barrier,
                "issuer",
                in_flight[0].statement,
                summary=f"{how} while {sent} bytes are on their way to phase {barrier.phase} of {barrier.name}, which "
                "no expect_tx announces",
                rule="The phase before has completed without them, so no wait covers them",
                copies=[each.statement for each in in_flight[1:]],
            )
        if barrier.under_way or not barrier.tx or account.by_hand:
            return
        if barrier.tx < 0:
            statements = [statement for statement, _ in account.came.values()]
            self._report(
                barrier,
                "issuer",
                statements[0],
                summary=f"{how} after {-barrier.tx} bytes more than expected arrived in phase {barrier.phase} of "
                f"{barrier.name}",
                rule=f"Copies transferred {byte_list(account.came)}, expect_tx announced "
                f"{byte_list(account.expected)}. No wait covers the difference: expect_tx is "
                "missing, too small, or in another phase",
                copies=statements[1:],
            )
        else:
            statements = [statement for statement, _ in account.expected.values()]
            self._report(
                barrier,
                "arriver",
                statements[0],
                summary=f"{how} while phase {barrier.phase} of {barrier.name} still expects {barrier.tx} bytes "
                f"({lines(statements)})",
                rule="No copy of them is in flight",
                severity="advice",
            )
