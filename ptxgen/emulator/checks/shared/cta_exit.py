"""The end of a CTA: whatever uses its shared memory must have happened before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.order.vector_clock import PENDING
from ptxgen.emulator.checks.shared.accesses import SharedAccesses
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import HappensBefore

#: Commits of a slot after which those that everybody knows are dropped.
_MANY = 256


class CtaExit:
    """Who uses the memory of a CTA, and whether it may still do so when the CTA ends."""

    def __init__(self, happens_before: HappensBefore, shared: SharedAccesses, findings: Findings) -> None:
        self._happens_before, self._shared, self._findings = happens_before, shared, findings
        #: Who has last used an mbarrier of another CTA, by slot: warp of the cluster -> (interval, instruction).
        self._users: dict[int, dict[int, tuple[int, Statement]]] = {}
        #: Commits of other CTAs, by number, that arrive on mbarriers of a slot.
        self._commits: dict[int, list[int]] = {}

    def clear(self, slots: NDArray[np.int64]) -> None:
        """Make slots ready for the next CTAs."""
        for slot in slots.tolist() if self._users or self._commits else ():
            self._users.pop(slot, None)
            self._commits.pop(slot, None)

    def watches(self, slot: int) -> bool:
        """Whether anybody but the CTA itself may still use its shared memory when it ends."""
        return (
            self._happens_before.size > 1
            or self._shared.any_asynchronous
            or slot in self._users
            or slot in self._commits
        )

    def reaches(self, slot: int, row: int, statement: Statement) -> None:
        """A warp uses an mbarrier in the memory of another CTA of its cluster."""
        self._users.setdefault(slot, {})[row % self._happens_before.members] = (
            self._happens_before.clock(row),
            statement,
        )

    def arrives(self, slot: int, number: int) -> None:
        """A commit of another CTA will arrive on an mbarrier in this slot."""
        commits = self._commits.setdefault(slot, [])
        commits.append(number)
        if len(commits) > _MANY:  # most are known to all by now
            commits[:] = [each for each in commits if each in self._happens_before.operations]

    def ends(self, slot: int, executed: Mapping[int, int]) -> None:
        """The last thread of a CTA leaves: whatever uses its shared memory must have happened before, as one of its
        warps knows. `executed` is how far each warp had come when it arrived at the cluster's barrier; also a relaxed
        arrival comes after what it has executed.
        """
        shared = self._shared
        rows = range(slot * self._happens_before.warps, (slot + 1) * self._happens_before.warps)
        known = self._happens_before.clocks[rows.start : rows.stop].max(axis=0)
        for member, clock in executed.items():
            known[member] = max(known[member], clock)
        operations = set[int]().union(*(self._happens_before.known[row].operations for row in rows))
        readers = ((shared.core_reader, "read"), (shared.copy_reader, "read"))
        for table, verb in ((shared.async_writer, "write"), *readers):
            for number in np.unique(table[slot][table[slot] != 0]).tolist():
                operation = self._happens_before.operations.get(number)
                if operation is None or number in operations:
                    continue
                grouped = verb == "read" and ("store" in operation.what or "reduction" in operation.what)
                self._findings.add(
                    "bulk-group-unwaited" if grouped else "cta-exit",
                    f"the CTA ends while the {operation.what} of line {operation.statement.line} may still {verb} its "
                    f"shared memory; {'cp.async.bulk.wait_group' if grouped else 'a wait for it'} is missing",
                    operation.statement,
                    severity="advice" if grouped else "error",
                    cause=operation.cause,
                )
        for number in self._commits.get(slot, ()):
            operation = self._happens_before.operations.get(number)
            if operation is not None and number not in operations:
                self._findings.add(
                    "cta-exit",
                    f"the CTA ends while the tcgen05.commit of line {operation.statement.line}, of a peer, may still "
                    "arrive on its mbarrier; a wait for it, or barrier.cluster after one, is missing before the end",
                    operation.statement,
                )
        for member, (clock, statement) in self._users.get(slot, {}).items():
            if clock > known[member]:
                self._peer_left_behind(rows.start, member, "use an mbarrier in", statement, statement.line)
        for member, line in shared.strong_stores.latest_after(slot, known):
            if member // self._happens_before.warps != slot % self._happens_before.size:
                self._peer_left_behind(rows.start, member, "store to", None, line)
        for accesses, verb in ((shared.stores, "store to"), (shared.loads, "load from")):
            table = accesses.table(slot)
            if table is None or len(table.latest) == self._happens_before.warps:
                continue
            for at in np.flatnonzero((table.latest > known) & (table.latest < PENDING)):
                late = (table.clock[at] > known[at]) & (table.mask[at] != 0)
                if int(at) // self._happens_before.warps != slot % self._happens_before.size and late.any():
                    line = int(table.line[at, int(np.where(late, table.clock[at], 0).argmax())])
                    self._peer_left_behind(rows.start, int(at), verb, None, line)

    def _peer_left_behind(self, row: int, member: int, verb: str, statement: Statement | None, line: int) -> None:
        warp = self._happens_before.member_name(row, member)
        self._findings.add(
            "cta-exit",
            f"a CTA ends while {warp} may still {verb} its shared memory (line {line}); "
            "barrier.cluster, or a wait for it, is missing before the end",
            statement,
        )
