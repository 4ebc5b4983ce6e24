"""Barriers of CTAs and clusters: arrivals, and reductions. PTX ISA 9.7.13.1, 9.7.13.3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.device.report import line_list
from ptxgen.emulator.arrays import all_set, any_set
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.registry import barriers
from ptxgen.emulator.state.cluster_barrier import report_unwaited_arrival
from ptxgen.emulator.state.group import Group
from ptxgen.syntax import Instruction, Statement

if TYPE_CHECKING:
    from ptxgen.emulator.load.program import Block, Operation
    from ptxgen.emulator.state.machine import Machine
    from ptxgen.emulator.state.warps import Warps


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

    warp: int
    lanes: NDArray[np.bool_]
    reduction: Reduction
    position: int
    waits: bool


class CtaBarrier:
    """The arrivals at one of a CTA's sixteen barriers."""

    def __init__(self, threads: int | None, operation: Operation, reduces: bool) -> None:
        self.threads, self.operation, self.reduces = threads, operation, reduces
        #: The arrival that said so.
        self.first = operation
        self.arrived: list[Arrival] = []

    def arrive(self, warp: int, lanes: NDArray[np.bool_], reduction: Reduction, position: int, *, waits: bool) -> None:
        self.arrived.append(Arrival(warp, lanes, reduction, position, waits))

    def has(self, warp: int) -> bool:
        """Whether lanes of a warp have arrived."""
        return any(arrival.warp == warp for arrival in self.arrived)

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
                group = Group(arrival.reduction.group.machine, np.array([arrival.warp]), arrival.lanes[None])
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
        """Lanes arrive at barrier `name`. Except for `arrive` they wait at the block after it for the others."""
        machine = self._machine
        if reduction.kind == "sync" and self._complete_at_once(group, name, threads, operation.statement):
            self._warps.move(group, block.following)
            return
        waits = reduction.kind != "arrive"
        # Threads that wait have no effect: a CTA may spin with a barrier in its loop, as CUTLASS's Semaphore does.
        machine.effects += not waits
        group.store(self._warps.pc, np.asarray(block.following))
        if waits:
            group.store(self._warps.held, np.asarray(True))
        active = group.active
        for position, warp in enumerate(group.indices):
            warp = int(warp)
            key = (int(machine.cta_slot[warp]), name)
            barrier = self.open.get(key)
            if barrier is None:
                barrier = self.open[key] = CtaBarrier(threads, operation, reduction.reduces)
            elif barrier.threads != threads or barrier.reduces != reduction.reduces:
                self._mismatch(warp, name, barrier, threads, operation)
            lanes = active[position].copy()
            machine.events.barrier_arrives(*key, warp, lanes, operation.statement, waits=waits, threads=threads)
            barrier.arrive(warp, lanes, reduction, position, waits=waits)
            if waits:
                barrier.operation = operation
            self._try(key)  # warp by warp: those after the last expected one begin anew
        self._warps.refresh(group.indices)

    def _complete_at_once(self, group: Group, name: int, threads: int | None, statement: Instruction) -> bool:
        """Whether whole CTAs arrive together, so that no warp waits."""
        machine, warps, per_cta = self._machine, group.indices, self._machine.warps_per_cta
        if len(warps) % per_cta or threads not in (None, 32 * per_cta):
            return False
        slots = machine.cta_slot[warps[::per_cta]]
        if any_set(warps.reshape(-1, per_cta) != (slots * per_cta)[:, None] + np.arange(per_cta)):
            return False
        present = machine.present[group.warps]
        if not all_set(present) if group.mask is None else any_set(present != group.mask):
            return False
        if self.open and any((slot, name) in self.open for slot in slots.tolist()):
            return False
        machine.events.ctas_synchronize(slots, name, statement, threads=threads)
        return True

    def _mismatch(self, warp: int, name: int, barrier: CtaBarrier, threads: int | None, operation: Operation) -> None:
        """Warps that arrive at a barrier must agree on its count, and on whether it reduces (9.7.13.1)."""
        there = barrier.first.statement
        if barrier.threads != threads:
            here, other = (f"{count}" if count is not None else "all" for count in (threads, barrier.threads))
            rule = f"The thread count is {here} here and {other} in line {there.line}"
        else:
            rule = f"Only one of them is a reduction ({line_list([operation.statement.line, there.line])})"
        findings = self._machine.findings
        accesses = findings.access("arriver", operation.statement, warp), findings.access("arriver", there)
        findings.report(
            barriers.BARRIER_MISMATCH,
            operation.statement,
            summary=f"{accesses[0]} and {accesses[1]} arrive at barrier {name}",
            rule=rule,
            accesses=accesses,
            cause=frozenset([causes.barrier(name)]),
        )

    def _try(self, key: tuple[int, int]) -> None:
        barrier = self.open.get(key)
        if barrier is None or self.count(barrier) < self.expected(key[0], barrier):
            return
        del self.open[key]
        waiting = sorted({arrival.warp for arrival in barrier.arrived if arrival.waits})
        self._machine.events.barrier_completes(*key, waiting)
        barrier.reduce()
        for arrival in barrier.arrived:
            if arrival.waits:
                self._warps.release(arrival.warp, arrival.lanes)
        if waiting:
            self._warps.refresh(np.array(waiting))

    def expected(self, slot: int, barrier: CtaBarrier) -> int:
        """Threads that a barrier waits for."""
        return barrier.threads if barrier.threads is not None else int(self._left[slot])

    def count(self, barrier: CtaBarrier) -> int:
        """Threads that have arrived. With a thread count, missing lanes of a warp count too (9.7.13, bar)."""
        count = sum(int(arrival.lanes.sum()) for arrival in barrier.arrived)
        if barrier.threads is not None:
            for warp in {arrival.warp for arrival in barrier.arrived}:
                times = np.sum([arrival.lanes for arrival in barrier.arrived if arrival.warp == warp], axis=0)
                # Lanes that have exited since they arrived are not missing.
                missing = ~self._machine.present[warp] & (times == 0)
                count += int(missing.sum() * times.max())
        return count


class ClusterBarriers:
    """The barrier of each resident cluster, and how often each thread has arrived and waited there."""

    def __init__(self, machine: Machine, warps: Warps) -> None:
        self._machine, self._warps, self._clusters = machine, warps, machine.clusters
        #: By resident cluster, how many phases of its barrier have completed.
        self.phases = [0] * machine.clusters.resident
        self._arrivals = np.zeros((machine.warps, 32), np.int64)
        self._waits = np.zeros((machine.warps, 32), np.int64)
        #: True once a thread has arrived.
        self._used = False

    def begin(self, clusters: Sequence[int], warps: NDArray[np.int64]) -> None:
        """New clusters start in these warps."""
        if self._used:
            self._arrivals[warps] = self._waits[warps] = 0
            for cluster in clusters:
                self.phases[cluster] = 0

    def arrive(self, group: Group, statement: Statement, *, relaxed: bool) -> None:
        """Threads arrive at their cluster's barrier and do not wait. Arriving twice in a phase is a finding."""
        machine, active, self._used = self._machine, group.active, True
        machine.effects += 1
        for position, warp in enumerate(group.indices):
            warp = int(warp)
            phase = self.phases[self._clusters.of(int(machine.cta_slot[warp]))]
            lanes = active[position]
            unwaited = any_set((self._arrivals[warp] > self._waits[warp])[lanes])
            self._arrivals[warp, lanes] += 1
            early = any_set(self._arrivals[warp] > phase + 1)
            if early:
                report_unwaited_arrival(machine.findings, warp, statement)
            machine.events.cluster_arrives(warp, lanes, phase, statement, relaxed=relaxed, unwaited=bool(unwaited))
        for cluster in np.unique(machine.cta_slot[group.indices] // self._clusters.size):
            self.check(int(cluster))

    def leave(self, group: Group) -> None:
        """Threads exit: the barrier does not wait for them. A phase that completes without them is after their exit."""
        machine, active = self._machine, group.active
        if not machine.events.observes("cluster_leaves"):
            return
        for position, warp in enumerate(group.indices):
            warp, lanes = int(warp), active[position]
            phase = self.phases[self._clusters.of(int(machine.cta_slot[warp]))]
            if all_set(self._arrivals[warp, lanes] <= phase):
                machine.events.cluster_leaves(warp, lanes)

    def passing(self, group: Group, statement: Statement) -> NDArray[np.bool_]:
        """Which threads may pass barrier.cluster.wait: those whose last arrival's phase is complete."""
        machine, active = self._machine, group.active
        passing = np.ones((group.size, 32), np.bool_)
        for position, warp in enumerate(group.indices):
            warp, lanes = int(warp), active[position]
            phase = self.phases[self._clusters.of(int(machine.cta_slot[warp]))]
            if any_set((self._waits[warp] >= self._arrivals[warp])[lanes]):
                wait = machine.findings.access("waiter", statement, warp)
                machine.findings.report(
                    barriers.CLUSTER_BARRIER_ORDER,
                    statement,
                    summary=f"{wait} waits at the cluster barrier without having arrived",
                    rule="No barrier.cluster.arrive precedes it",
                    fix=f"barrier.cluster.arrive before line {statement.line}",
                    accesses=(wait,),
                    cause=frozenset([causes.CLUSTER_BARRIER]),
                )
            done = self._arrivals[warp] <= phase
            passing[position] = done
            self._waits[warp, lanes & done] = self._arrivals[warp, lanes & done]
            if any_set(lanes & done):
                last = int(self._arrivals[warp, lanes & done].max()) - 1
                machine.events.cluster_waits(warp, lanes & done, last, statement)
        return passing

    def check(self, cluster: int) -> None:
        """Complete the phase if every thread of the cluster has arrived or exited."""
        arrived, expected = self.count(cluster)
        if not arrived or arrived < expected:
            return
        self.phases[cluster] += 1
        self._machine.events.cluster_phase_ends(cluster)
        self._warps.wake(("cluster", cluster))

    def count(self, cluster: int) -> tuple[int, int]:
        """Threads that have arrived in this phase, and those that have not exited."""
        warps = slice(cluster * self._clusters.warps, (cluster + 1) * self._clusters.warps)
        present = self._machine.present[warps]
        here = (self._arrivals[warps] > self.phases[cluster]) & present
        return int(here.sum()), int(present.sum())
