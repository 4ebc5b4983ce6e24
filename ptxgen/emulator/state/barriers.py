"""Barriers of CTAs and clusters: who has arrived, what arrivals release, reductions. PTX ISA 9.7.13.1, 9.7.13.3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.device.report import line_list
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.order.vector_clock import VectorClock
from ptxgen.emulator.checks.registry import barriers
from ptxgen.emulator.state.group import Group
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.load.program import Block, Operation
    from ptxgen.emulator.state.machine import Machine
    from ptxgen.emulator.state.warps import Warps


class ClusterBarrier:
    """A cluster's barrier: completed phases, and what they and the arrivals of this one release."""

    def __init__(self) -> None:
        self.phase = 0
        self.arriving: VectorClock | None = None
        self.completed: VectorClock | None = None
        #: The epoch of each warp of the cluster when it arrived, in this phase and in the last completed one.
        self.arrivals: dict[int, int] = {}
        self.executed: dict[int, int] = {}
        self.statement: Statement | None = None

    def arrive(self, happens_before: HappensBefore | None, row: int, statement: Statement, *, relaxed: bool) -> None:
        """Add what a warp's arrival releases; a relaxed one what its last fence has."""
        given, self.statement = None, statement
        if happens_before is not None:
            self.arrivals[row % happens_before.members] = happens_before.clock(row)
            given = happens_before.released.get(row) if relaxed else happens_before.release(row)
            if relaxed:
                happens_before.arrives_relaxed(row, self.phase, statement)
        if given is not None:
            self.release(given)

    def release(self, given: VectorClock) -> None:
        """Those who wait for this phase acquire this."""
        if self.arriving is None:
            self.arriving = given.copy()
        else:
            self.arriving.join(given)

    def ended_for(self, happens_before: HappensBefore, row: int) -> bool:
        """Whether all arrivals of the last completed phase happen before a warp that has not waited."""
        first = row - row % happens_before.members
        return all(happens_before.has_observed(row, first + member, clock) for member, clock in self.executed.items())

    def end_phase(self) -> None:
        self.phase += 1
        self.executed = dict(self.arrivals)
        if self.arriving is not None:
            if self.completed is None:
                self.completed = self.arriving
            else:
                self.completed.join(self.arriving)
            self.arriving = None


class Reduction:
    """What an arrival brings to a barrier, and what it gets: `values` (warps, 32) of a group that arrives together."""

    def __init__(
        self, kind: str, group: Group, values: NDArray[np.bool_] | None = None, write: Callable[..., None] | None = None
    ) -> None:
        #: "sync", "arrive", "popc", "and" or "or".
        self.kind = kind
        self.group, self.values, self.write = group, values, write

    @property
    def reduces(self) -> bool:
        return self.values is not None


@dataclass(slots=True)
class Arrival:
    """Lanes of a warp at a barrier, as part of a group that arrived together."""

    row: int
    lanes: NDArray[np.bool_]
    reduction: Reduction
    position: int
    waits: bool


class CtaBarrier:
    """Who has arrived at one of a CTA's sixteen barriers, and what the arrivals release that do not wait."""

    def __init__(self, threads: int | None, operation: Operation, reduces: bool) -> None:
        self.threads, self.operation, self.reduces = threads, operation, reduces
        #: The arrival that said so.
        self.first = operation
        self.arrived: list[Arrival] = []
        self.given: VectorClock | None = None

    def arrive(
        self, row: int, lanes: NDArray[np.bool_], reduction: Reduction, position: int, *, waits: bool,
        given: VectorClock | None,
    ) -> None:  # fmt: skip
        self.arrived.append(Arrival(row, lanes, reduction, position, waits))
        if given is not None:
            if self.given is None:
                self.given = given
            else:
                self.given.join(given)

    def reduce(self) -> None:
        """Give every waiting thread the count of true predicates, or whether all or any are."""
        if not self.reduces:
            return
        total = threads = 0
        for arrival in self.arrived:
            values = arrival.reduction.values
            threads += int(arrival.lanes.sum())
            total += int((values[arrival.position] & arrival.lanes).sum()) if values is not None else 0
        results = {"popc": total, "and": total == threads, "or": total > 0}
        for arrival in self.arrived:
            if arrival.reduction.write is not None:
                group = Group(arrival.reduction.group.machine, np.array([arrival.row]), arrival.lanes[None])
                arrival.reduction.write(group, np.asarray(results[arrival.reduction.kind]))


class CtaBarriers:
    """The barriers at which threads of the resident CTAs have arrived; `left` counts the threads of each CTA."""

    def __init__(self, machine: Machine, warps: Warps, left: NDArray[np.int64]) -> None:
        self._machine, self._warps, self._left = machine, warps, left
        #: By slot and number.
        self.open: dict[tuple[int, int], CtaBarrier] = {}

    def ends(self, slot: int) -> None:
        """A CTA has exited."""
        if self.open:
            self.open = {key: barrier for key, barrier in self.open.items() if key[0] != slot}

    def check(self, slot: int) -> None:
        """Threads of a CTA have exited: barriers do not wait for them."""
        if self.open:
            for key in [key for key in self.open if key[0] == slot]:
                self._try(key)

    def arrive(
        self, group: Group, block: Block, name: int, threads: int | None, operation: Operation, reduction: Reduction
    ) -> None:
        """Lanes arrive at barrier `name`. They wait at the block after it for the others, except to `arrive`."""
        machine = self._machine
        if reduction.kind == "sync" and self._complete_at_once(group, name, threads):
            self._warps.move(group, block.following)
            return  # no effect: a CTA may spin with a barrier in its loop
        machine.effects += 1
        group.store(self._warps.place, np.asarray(block.following))
        waits = reduction.kind != "arrive"
        if waits:
            group.store(self._warps.held, np.asarray(True))
        active = group.active
        for position, row in enumerate(group.indices):
            row = int(row)
            key = (int(machine.row_slot[row]), name)
            barrier = self.open.get(key)
            if barrier is None:
                barrier = self.open[key] = CtaBarrier(threads, operation, reduction.reduces)
            elif barrier.threads != threads or barrier.reduces != reduction.reduces:
                self._mismatch(row, name, barrier, threads, operation)
            given = machine.happens_before.release(row) if machine.happens_before is not None and not waits else None
            barrier.arrive(row, active[position].copy(), reduction, position, waits=waits, given=given)
            barrier.operation = operation
            self._try(key)  # warp by warp: those after the last expected one begin anew
        self._warps.refresh(group.indices)

    def _complete_at_once(self, group: Group, name: int, threads: int | None) -> bool:
        """Whether whole CTAs arrive together, so that no warp waits; their warps then synchronize with each other."""
        machine, rows, warps = self._machine, group.indices, self._machine.warps_per_cta
        if len(rows) % warps or threads not in (None, 32 * warps):
            return False
        slots = machine.row_slot[rows[::warps]]
        if (rows.reshape(-1, warps) != (slots * warps)[:, None] + np.arange(warps)).any():
            return False
        present = machine.present[group.rows]
        if not present.all() if group.mask is None else (present != group.mask).any():
            return False
        if self.open and any((slot, name) in self.open for slot in slots.tolist()):
            return False
        if machine.happens_before is not None:
            machine.happens_before.barrier_of_all(slots)
        return True

    def _mismatch(self, row: int, name: int, barrier: CtaBarrier, threads: int | None, operation: Operation) -> None:
        """Warps that arrive at a barrier must agree on its count, and on whether it reduces (9.7.13.1)."""
        there = barrier.first.statement
        if barrier.threads != threads:
            here, other = (f"{count}" if count is not None else "all" for count in (threads, barrier.threads))
            rule = f"The thread count is {here} here and {other} in line {there.line}"
        else:
            rule = f"Only one of them is a reduction ({line_list([operation.statement.line, there.line])})"
        findings = self._machine.findings
        accesses = findings.access("arriver", operation.statement, row), findings.access("arriver", there)
        findings.report(
            barriers.BARRIER_MISMATCH,
            operation.statement,
            summary=f"{accesses[0]} and {accesses[1]} arrive at barrier {name}",
            rule=rule,
            accesses=accesses,
        )

    def _try(self, key: tuple[int, int]) -> None:
        barrier = self.open.get(key)
        if barrier is None or self.count(barrier) < self.expected(key[0], barrier):
            return
        del self.open[key]
        waiting = sorted({arrival.row for arrival in barrier.arrived if arrival.waits})
        if self._machine.happens_before is not None and waiting:
            self._machine.happens_before.barrier(waiting, barrier.given)
        barrier.reduce()
        for arrival in barrier.arrived:
            if arrival.waits:
                self._warps.release(arrival.row, arrival.lanes)
        if waiting:
            self._warps.refresh(np.array(waiting))

    def expected(self, slot: int, barrier: CtaBarrier) -> int:
        """Threads that a barrier waits for."""
        return barrier.threads if barrier.threads is not None else int(self._left[slot])

    def count(self, barrier: CtaBarrier) -> int:
        """Threads that have arrived. Where the barrier names a number, lanes that a warp lacks count (9.7.13, bar)."""
        count = sum(int(arrival.lanes.sum()) for arrival in barrier.arrived)
        if barrier.threads is not None:
            for row in {arrival.row for arrival in barrier.arrived}:
                here = int(self._machine.present[row].sum())
                arrived = sum(int(arrival.lanes.sum()) for arrival in barrier.arrived if arrival.row == row)
                count += (32 - here) * -(-arrived // max(here, 1))
        return count


class ClusterBarriers:
    """The barrier of each resident cluster, and how often each thread has arrived and waited there."""

    def __init__(self, machine: Machine, warps: Warps) -> None:
        self._machine, self._warps, self._clusters = machine, warps, machine.clusters
        self.barriers = [ClusterBarrier() for _ in range(machine.clusters.resident)]
        self._arrivals = np.zeros((machine.warps, 32), np.int64)
        self._waits = np.zeros((machine.warps, 32), np.int64)

    def begin(self, clusters: Sequence[int], rows: NDArray[np.int64]) -> None:
        """New clusters are there, in these rows."""
        self._arrivals[rows] = self._waits[rows] = 0
        for cluster in clusters:
            self.barriers[cluster] = ClusterBarrier()

    def arrive(self, group: Group, statement: Statement, *, relaxed: bool) -> None:
        """Threads arrive at their cluster's barrier and go on. Arriving twice in a phase is a finding."""
        machine, active = self._machine, group.active
        machine.effects += 1
        for position, row in enumerate(group.indices):
            row = int(row)
            barrier = self.barriers[self._clusters.of(int(machine.row_slot[row]))]
            lanes = active[position]
            unwaited = (self._arrivals[row] > self._waits[row])[lanes].any()
            self._arrivals[row, lanes] += 1
            early = (self._arrivals[row] > barrier.phase + 1).any()
            if early or (
                unwaited and machine.happens_before is not None and not barrier.ended_for(machine.happens_before, row)
            ):
                arrival = machine.findings.access("arriver", statement, row)
                machine.findings.report(
                    barriers.CLUSTER_BARRIER_ORDER,
                    statement,
                    summary=f"{arrival} arrives at the cluster barrier again before its last phase completes",
                    rule="No barrier.cluster.wait separates the two arrivals",
                    accesses=(arrival,),
                )
            barrier.arrive(machine.happens_before, row, statement, relaxed=relaxed)
        for cluster in np.unique(machine.row_slot[group.indices] // self._clusters.size):
            self.check(int(cluster))

    def leave(self, group: Group) -> None:
        """Threads exit, for which the barrier does not wait: a phase that ends without their arrival comes after it."""
        happens_before, active = self._machine.happens_before, group.active
        if happens_before is None:
            return
        for position, row in enumerate(group.indices):
            row = int(row)
            barrier = self.barriers[self._clusters.of(int(self._machine.row_slot[row]))]
            if (self._arrivals[row, active[position]] <= barrier.phase).all():
                barrier.release(happens_before.release(row))

    def passing(self, group: Group, statement: Statement) -> NDArray[np.bool_]:
        """Which threads may pass barrier.cluster.wait: those whose last arrival's phase has ended."""
        machine, active = self._machine, group.active
        passing = np.ones((group.size, 32), np.bool_)
        for position, row in enumerate(group.indices):
            row, lanes = int(row), active[position]
            barrier = self.barriers[self._clusters.of(int(machine.row_slot[row]))]
            if (self._waits[row] >= self._arrivals[row])[lanes].any():
                wait = machine.findings.access("waiter", statement, row)
                machine.findings.report(
                    barriers.CLUSTER_BARRIER_ORDER,
                    statement,
                    summary=f"{wait} waits at the cluster barrier without having arrived",
                    rule="No barrier.cluster.arrive precedes it",
                    fix=f"barrier.cluster.arrive before line {statement.line}",
                    accesses=(wait,),
                )
            done = self._arrivals[row] <= barrier.phase
            passing[position] = done
            self._waits[row, lanes & done] = self._arrivals[row, lanes & done]
            if machine.happens_before is not None and (lanes & done).any():
                phase = int(self._arrivals[row, lanes & done].max()) - 1
                machine.happens_before.waits_for_relaxed(row, phase, statement)
                if barrier.completed is not None:
                    machine.happens_before.acquire(row, barrier.completed)
                    machine.happens_before.lanes_converge(np.array([row]))
        return passing

    def check(self, cluster: int) -> None:
        """End the phase if every thread of the cluster has arrived or left."""
        barrier = self.barriers[cluster]
        arrived, expected = self.count(cluster)
        if not arrived or arrived < expected:
            return
        barrier.end_phase()
        self._warps.wake(("cluster", cluster))

    def count(self, cluster: int) -> tuple[int, int]:
        """Threads that have arrived in this phase, and those that are there."""
        rows = slice(cluster * self._clusters.warps, (cluster + 1) * self._clusters.warps)
        present = self._machine.present[rows]
        here = (self._arrivals[rows] > self.barriers[cluster].phase) & present
        return int(here.sum()), int(present.sum())
