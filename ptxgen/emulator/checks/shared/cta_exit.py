"""The end of a CTA: whatever uses its shared memory must have happened before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.device.report import Role
from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.order.barriers import ClusterBarrierClocks
from ptxgen.emulator.checks.registry import races
from ptxgen.emulator.checks.shared.accesses import SharedAccesses
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.memory.granules import GRANULE
from ptxgen.emulator.observer import Observer
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import HappensBefore
    from ptxgen.emulator.state.signals import Signal

#: Commits of a slot after which those that have completed are dropped.
_MANY = 256


class CtaExit(Observer):
    """Which warps and operations use the memory of a CTA, and whether they may still do so when it exits."""

    def __init__(
        self,
        happens_before: HappensBefore,
        barriers: ClusterBarrierClocks,
        shared: SharedAccesses,
        findings: Findings,
    ) -> None:
        self._happens_before, self._barriers, self._shared = happens_before, barriers, shared
        self._findings = findings
        #: Who has last used an mbarrier of another CTA, by slot: warp of the cluster -> (interval, instruction).
        self._users: dict[int, dict[int, tuple[int, Statement]]] = {}
        #: Commits of other CTAs, by number, that arrive on mbarriers of a slot, and the offset of each mbarrier.
        self._commits: dict[int, dict[int, int]] = {}

    def slots_reused(self, slots: NDArray[np.int64]) -> None:
        for slot in slots.tolist() if self._users or self._commits else ():
            self._users.pop(slot, None)
            self._commits.pop(slot, None)

    def _watches(self, slot: int) -> bool:
        """Whether threads or copies of other CTAs may still use a CTA's shared memory when it ends."""
        return (
            self._happens_before.size > 1
            or self._shared.any_asynchronous
            or slot in self._users
            or slot in self._commits
        )

    def mbarriers_updated(
        self, warp: int, lanes: int, slot: int, statement: Statement, *, arrives: bool, relaxed: bool
    ) -> None:
        if relaxed or slot == warp // self._happens_before.warps:
            return
        self._users.setdefault(slot, {})[warp % self._happens_before.members] = (
            self._happens_before.clock(warp),
            statement,
        )

    def tensor_committed(
        self, warp: int, signal: Signal, commits: Sequence[tuple[int, AsyncWork]], offset: int
    ) -> None:
        for slot, work in commits:
            if slot == work.slot:
                continue
            numbers = self._commits.setdefault(slot, {})
            numbers[work.number] = offset
            if len(numbers) > _MANY:  # most have completed by now
                for each in [each for each in numbers if each not in self._happens_before.operations]:
                    del numbers[each]

    def ctas_end(self, slots: Sequence[int]) -> None:
        for slot in slots:
            if self._watches(slot):
                self._end(slot)

    def _end(self, slot: int) -> None:
        """The last thread of a CTA leaves: whatever uses its shared memory must have happened before, for one of its
        warps. A relaxed arrival at the cluster's barrier, too, comes after what the warp has executed.
        """
        shared = self._shared
        warps = range(slot * self._happens_before.warps, (slot + 1) * self._happens_before.warps)
        observed = np.maximum.reduce(self._happens_before.clocks[warps.start : warps.stop])
        for member, clock in self._barriers.executed(slot).items():
            observed[member] = max(observed[member], clock)
        operations = set().union(*(self._happens_before.observed[warp].operations for warp in warps))
        readers = ((shared.core_reader, "read"), (shared.copy_reader, "read"))
        for table, verb in ((shared.async_writer, "write"), *readers):
            numbers = table[slot][table[slot] != 0]
            for number in np.unique(numbers).tolist() if len(numbers) else ():
                operation = self._happens_before.operations.get(number)
                if operation is None or number in operations:
                    continue
                grouped = verb == "read" and ("store" in operation.what or "reduction" in operation.what)
                at = int((table[slot] == number).argmax()) * GRANULE
                role: Role = "reader" if verb == "read" else "writer"
                party = self._findings.access(role, operation.statement, operation.warp, space="shared", address=at)
                barrier = operation.mbarrier
                on = f" on {self._findings.name('shared', barrier)}" if barrier is not None else ""
                self._findings.report(
                    races.BULK_GROUP_UNWAITED if grouped else races.CTA_EXIT,
                    operation.statement,
                    summary=f"the CTA exits while {party} may still {verb} {party.place} in its shared memory",
                    rule="No cp.async.bulk.wait_group waits for it"
                    if grouped
                    else f"No warp of the CTA has waited for its completion{on}",
                    accesses=(party,),
                    severity="advice" if grouped else "error",
                    cause=operation.cause | operation.cause_in_tensor_memory,
                )
        for number, offset in self._commits.get(slot, {}).items():
            operation = self._happens_before.operations.get(number)
            if operation is not None and number not in operations:
                party = self._findings.access("arriver", operation.statement, operation.warp)
                self._findings.report(
                    races.CTA_EXIT,
                    operation.statement,
                    summary=f"the CTA exits while {party} of a peer CTA may still arrive on its mbarrier",
                    rule="No warp of the CTA has waited for the commit",
                    fix="before the exit wait for it, or use barrier.cluster after a wait of the peer",
                    accesses=(party,),
                    cause=operation.cause | {causes.mbarrier(offset)},
                )
        for member, (clock, statement) in self._users.get(slot, {}).items():
            if clock > observed[member]:
                self._report_peer(warps.start, member, "use an mbarrier in", statement, statement.line)
        for member, line, at in shared.strong_stores.latest_after(slot, observed):
            if member // self._happens_before.warps != slot % self._happens_before.size:
                self._report_peer(warps.start, member, "store to", None, line, at)
        for accesses, verb in ((shared.stores, "store to"), (shared.loads, "load from")):
            table = accesses.table(slot)
            if table is None or len(table.latest) == self._happens_before.warps:
                continue
            for member in np.flatnonzero(table.latest > observed).tolist():
                late = (table.clock[member] > observed[member]) & (table.mask[member] != 0)
                if member // self._happens_before.warps != slot % self._happens_before.size and any_set(late):
                    granule = int(np.where(late, table.clock[member], 0).argmax())
                    line = int(table.line[member, granule])
                    self._report_peer(warps.start, member, verb, None, line, granule * GRANULE)

    def _report_peer(
        self, warp: int, member: int, verb: str, statement: Statement | None, line: int, at: int | None = None
    ) -> None:
        """A warp (`member`) of a peer CTA may still use the memory of the CTA that begins at `warp`."""
        role: Role = "writer" if verb == "store to" else "reader" if verb == "load from" else "accessor"
        if statement is not None:
            first = warp - warp % self._happens_before.members
            party = self._findings.access(role, statement, first + member, space="shared", address=at)
        else:
            party = self._happens_before.party(role, line, warp, member, at)
        self._findings.report(
            races.CTA_EXIT,
            statement or self._happens_before.statements.get(line),
            summary=f"the CTA exits while {party} of a peer CTA may still {verb} its shared memory",
            rule="Nothing orders the exit after that access",
            fix="barrier.cluster before the exit",
            accesses=(party,),
            cause=frozenset([causes.PEER_EXIT]),
            after=frozenset([causes.CLUSTER_BARRIER]),
        )
