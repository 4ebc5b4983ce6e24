"""Running a launch: which warps go next, what waits for what, and how a launch ends.

All warps that stand at the same block run together. A warp with divergent lanes runs those in the first block in
execution order (`flow`); the others wait for them there, unless nothing else can go on: then they do, since
independent thread scheduling promises every lane progress. A launch in which nobody can go on and no asynchronous work
is left is deadlocked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ptxgen.device import Status
from ptxgen.emulator.barriers import ClusterBarrier, CtaBarrier, Reduction
from ptxgen.emulator.checks.thread_accesses import distinct
from ptxgen.emulator.deadlock import report_deadlock
from ptxgen.emulator.group import Group
from ptxgen.emulator.machine import Machine
from ptxgen.emulator.meetings import Wait
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.program import EXITED, RETURNED, Block, Incomplete, Operation, Program
from ptxgen.emulator.progress import Repetition
from ptxgen.emulator.registers import Unmodelled
from ptxgen.syntax import Statement

#: Steps without any effect after which work completes that is not due yet, and lanes that wait to be met run too.
_QUIET_STEPS = 256
#: So few steps without any effect may be enough where a wait for another thread has cost many before; twice as many
#: before work completes that is not due yet.
_LEAST_PATIENCE = 16
#: Steps without any effect after which a program that reads clocks counts as going round for ever.
_QUIET_LIMIT = 200_000
#: Every so many quiet steps the state of the warps is compared.
_LOOK_EVERY = 16
#: A ready warp that others have passed over for so many steps goes first.
_PATIENCE = 256


class Scheduler:
    """Runs a program on a machine until the grid is done or cannot go on."""

    def __init__(
        self,
        machine: Machine,
        program: Program,
        progress: Callable[[int, int], None] | None,
        max_steps: int,
    ) -> None:
        self.machine, self.program, self.progress = machine, program, progress
        self.max_steps = max_steps
        clusters = self.clusters = machine.clusters
        #: Clusters of the grid that have not begun.
        self.pending = deque(range(clusters.count))
        #: CTAs of the grid, and how many of them have ended.
        self.ctas, self.finished = clusters.count * clusters.size, 0
        warps = machine.warps
        self.place = np.full((warps, 32), EXITED, np.int64)
        self.held = np.zeros((warps, 32), np.bool_)
        self.current = np.full(warps, EXITED, np.int64)
        self.ready = np.zeros(warps, np.bool_)
        self.uniform = np.zeros(warps, np.bool_)
        self.last_run = np.zeros(warps, np.int64)
        self.left = np.zeros(machine.slots, np.int64)
        #: What held lanes wait for: key -> [(row, lanes, operation)].
        self.waits: dict[object, list[tuple[int, NDArray[np.bool_], Operation]]] = {}
        self.barriers: dict[tuple[int, int], CtaBarrier] = {}
        self.cluster_barriers = [ClusterBarrier() for _ in range(clusters.resident)]
        #: How often each thread has arrived at its cluster's barrier, and waited there.
        self.cluster_arrivals = np.zeros((warps, 32), np.int64)
        self.cluster_waits = np.zeros((warps, 32), np.int64)
        #: Rows whose timed waits give up: mbarrier.try_wait then returns false.
        self.timed_out = np.zeros(warps, np.bool_)
        self.instructions = 0
        self.blocked = False
        self._operation: Operation | None = None
        self.steps = 0
        self._seen_effects, self._quiet_since, self._gave_up_at = -1, 0, -1
        #: Steps without any effect after which lanes take turns: fewer where some have been spinning before.
        self._patience = _QUIET_STEPS
        self._fair_place, self._look_at, self._give_ups, self.spinning = -1, 0, 0, False
        self._aligned = np.array([block.aligned for block in program.blocks], np.bool_)
        state = [self.place, self.held, *machine.registers]
        self._rounds, self._retries = Repetition(state), Repetition(state)
        machine.wake, machine.cancel = self.wake, self._cancel
        for cluster in range(clusters.resident):
            self._start(cluster)

    # CTAs.

    def _start(self, cluster: int) -> None:
        """Begin the next cluster of the grid, all its CTAs together."""
        if not self.pending:
            return
        machine = self.machine
        machine.begin_cluster(cluster, self.pending.popleft())
        rows = np.arange(cluster * self.clusters.warps, (cluster + 1) * self.clusters.warps)
        self.place[rows] = np.where(machine.live[rows], self.program.entry, EXITED)
        self.held[rows] = False
        self.cluster_arrivals[rows] = self.cluster_waits[rows] = 0
        self.cluster_barriers[cluster] = ClusterBarrier()
        self.clusters.ended[self.clusters.slots(cluster)] = False
        for slot in self.clusters.slots(cluster):
            self.left[slot] = machine.threads
        self.last_run[rows] = self.steps
        self._refresh(rows)

    def _cancel(self) -> int | None:
        """Take a cluster that has not begun out of the grid, for whoever asked."""
        if not self.pending:
            return None
        self.finished += self.clusters.size
        if self.progress is not None:
            self.progress(self.finished, self.ctas)
        return self.pending.popleft()

    def _finish(self, slot: int) -> None:
        """The last thread of a CTA has left."""
        machine = self.machine
        for start, size in machine.tensor.sizes[slot].items():
            machine.findings.add(
                "tmem-not-freed",
                f"a CTA ends with {size} columns of tensor memory at column {start} allocated; "
                "tcgen05.dealloc is missing",
                machine.tensor.statements[slot, start],
            )
        if machine.transactions is not None:
            for mbarrier in machine.mbarriers[slot].values():
                machine.transactions.ends(mbarrier, "the CTA ends")
        self.barriers = {key: barrier for key, barrier in self.barriers.items() if key[0] != slot}
        if machine.ordering is not None:
            cluster = self.clusters.of(slot)
            machine.ordering.exits.ends(slot, self.cluster_barriers[cluster].executed)
        self.clusters.ended[slot] = True
        self.finished += 1
        machine.released.discard(int(machine.cta_number[slot]))
        if self.progress is not None:
            self.progress(self.finished, self.ctas)

    def _finish_cluster(self, cluster: int) -> None:
        """All CTAs of a cluster have ended: the next one begins in their place."""
        machine, slots = self.machine, self.clusters.slots(cluster)
        while machine.inflight[slots.start : slots.stop].any() and machine.timeline.jump():
            pass
        self._start(cluster)

    # State of warps.

    def _refresh(self, rows: NDArray[np.int64]) -> None:
        """Recompute where these warps stand after their lanes moved or were held or woken."""
        place = self.place[rows]
        current = place.min(axis=1)
        candidates = (place == current[:, None]) & ~self.held[rows]
        self.current[rows] = current
        self.ready[rows] = candidates.any(axis=1) & (current != EXITED)
        self.uniform[rows] = candidates.all(axis=1)

    def move(self, group: Group, place: int) -> None:
        """All lanes of a group go to a block."""
        if group.mask is None:
            self.place[group.rows] = place
            if self.uniform[group.rows].all():
                self.current[group.rows] = place
                return
        else:
            group.store(self.place, np.asarray(place))
        self._refresh(group.indices)

    def exit(self, group: Group) -> None:
        """All lanes of a group leave the kernel."""
        self.machine.effects += 1
        group.store(self.place, np.asarray(EXITED))
        group.store(self.machine.present, np.asarray(False))
        self._refresh(group.indices)
        if self.machine.meetings.any:
            rows = set(group.indices.tolist())
            for key in [key for key in self.waits if isinstance(key, Wait) and key.row in rows]:
                self.wake(key)
        slots = self.machine.row_slot[group.indices]
        np.subtract.at(self.left, slots, group.active.sum(axis=1))
        for slot in np.unique(slots).tolist():
            for key in [key for key in self.barriers if key[0] == slot]:
                self._try_barrier(key)
            if self.left[slot] == 0:
                self._finish(int(slot))
        for cluster in distinct(slots // self.clusters.size):
            own = self.clusters.slots(int(cluster))
            if not self.left[own.start : own.stop].any():
                self._finish_cluster(int(cluster))
            elif self.clusters.size > 1:
                self._try_cluster_barrier(int(cluster))

    def hold(self, group: Group, key: Callable[[int], object], operation: Operation) -> None:
        """Keep lanes where they are until `wake(key(row))`."""
        group.store(self.held, np.asarray(True))
        active = group.active
        for position, row in enumerate(group.indices):
            self.waits.setdefault(key(int(row)), []).append((int(row), active[position].copy(), operation))
        self._refresh(group.indices)

    def wake(self, key: object) -> None:
        """Let the lanes that wait for a key try again."""
        waiting = self.waits.pop(key, None)
        if not waiting:
            return
        for row, lanes, _ in waiting:
            self.held[row] &= ~lanes
        self._refresh(np.unique([row for row, _, _ in waiting]))

    # Barriers of the CTA.

    def arrive_at_barrier(
        self, group: Group, block: Block, name: int, threads: int | None, operation: Operation, reduction: Reduction
    ) -> None:
        """Lanes arrive at barrier `name`. They wait at the block after it for the others, except to `arrive`."""
        machine = self.machine
        if reduction.kind == "sync" and self._meet_at_once(group, name, threads):
            self.move(group, block.following)
            return  # no effect: a CTA may spin with a barrier in its loop
        machine.effects += 1
        group.store(self.place, np.asarray(block.following))
        waits = reduction.kind != "arrive"
        if waits:
            group.store(self.held, np.asarray(True))
        active = group.active
        for position, row in enumerate(group.indices):
            row = int(row)
            key = (int(machine.row_slot[row]), name)
            barrier = self.barriers.get(key)
            if barrier is None:
                barrier = self.barriers[key] = CtaBarrier(threads, operation, reduction.reduces)
            elif barrier.threads != threads or barrier.reduces != reduction.reduces:
                self._mismatch(name, barrier, threads, operation)
            given = machine.ordering.release(row) if machine.ordering is not None and not waits else None
            barrier.arrive(row, active[position].copy(), reduction, position, waits=waits, given=given)
            barrier.operation = operation
            self._try_barrier(key)  # warp by warp: those after the last expected one begin anew
        self._refresh(group.indices)

    def _meet_at_once(self, group: Group, name: int, threads: int | None) -> bool:
        """Whether whole CTAs have come together, so that nobody waits; what their warps know is then shared."""
        machine, rows, warps = self.machine, group.indices, self.machine.warps_per_cta
        if len(rows) % warps or threads not in (None, 32 * warps):
            return False
        slots = machine.row_slot[rows[::warps]]
        if (rows.reshape(-1, warps) != (slots * warps)[:, None] + np.arange(warps)).any():
            return False
        present = machine.present[group.rows]
        if not present.all() if group.mask is None else (present != group.mask).any():
            return False
        if self.barriers and any((slot, name) in self.barriers for slot in slots.tolist()):
            return False
        if machine.ordering is not None:
            machine.ordering.barrier_of_all(slots)
        return True

    def _mismatch(self, name: int, barrier: CtaBarrier, threads: int | None, operation: Operation) -> None:
        """Warps that meet at a barrier must agree on its count, and on whether it reduces (9.7.13.1)."""
        there = barrier.operation.statement
        if barrier.threads != threads:
            here, other = (f"{count}" if count is not None else "all" for count in (threads, barrier.threads))
            what = f"is for {here} threads here and for {other} in line {there.line}"
        else:
            what = f"reduces only here or only in line {there.line}"
        self.machine.findings.add("barrier-mismatch", f"barrier {name} {what}", operation.statement)

    def _try_barrier(self, key: tuple[int, int]) -> None:
        barrier = self.barriers.get(key)
        if barrier is None or self.count_at(barrier) < self.expected_at(key[0], barrier):
            return
        del self.barriers[key]
        waiting = sorted({arrival.row for arrival in barrier.arrived if arrival.waits})
        if self.machine.ordering is not None and waiting:
            self.machine.ordering.barrier(waiting, barrier.given)
        barrier.reduce()
        for arrival in barrier.arrived:
            if arrival.waits:
                self.held[arrival.row] &= ~arrival.lanes
        if waiting:
            self._refresh(np.array(waiting))

    def expected_at(self, slot: int, barrier: CtaBarrier) -> int:
        return barrier.threads if barrier.threads is not None else int(self.left[slot])

    def count_at(self, barrier: CtaBarrier) -> int:
        """Threads that have arrived. Where the barrier names a number, lanes that a warp lacks count (9.7.13, bar)."""
        count = sum(int(arrival.lanes.sum()) for arrival in barrier.arrived)
        if barrier.threads is not None:
            for row in {arrival.row for arrival in barrier.arrived}:
                here = int(self.machine.present[row].sum())
                arrived = sum(int(arrival.lanes.sum()) for arrival in barrier.arrived if arrival.row == row)
                count += (32 - here) * -(-arrived // max(here, 1))
        return count

    # The barrier of a cluster.

    def arrive_at_cluster(self, group: Group, statement: Statement, *, relaxed: bool) -> None:
        """Threads arrive at their cluster's barrier and go on. Arriving twice in a phase is a finding."""
        machine, active = self.machine, group.active
        machine.effects += 1
        for position, row in enumerate(group.indices):
            row = int(row)
            barrier = self.cluster_barriers[self.clusters.of(int(machine.row_slot[row]))]
            lanes = active[position]
            unwaited = (self.cluster_arrivals[row] > self.cluster_waits[row])[lanes].any()
            self.cluster_arrivals[row, lanes] += 1
            early = (self.cluster_arrivals[row] > barrier.phase + 1).any()
            if early or (unwaited and machine.ordering is not None and not barrier.ended_for(machine.ordering, row)):
                machine.findings.add(
                    "cluster-barrier-order",
                    "arrives at the cluster's barrier again without knowing that its last phase has ended: "
                    "barrier.cluster.wait is missing between the arrivals",
                    statement,
                )
            barrier.arrive(machine.ordering, row, relaxed=relaxed)
            barrier.statement = statement
        for cluster in np.unique(machine.row_slot[group.indices] // self.clusters.size):
            self._try_cluster_barrier(int(cluster))

    def pass_cluster(self, group: Group, statement: Statement) -> NDArray[np.bool_]:
        """Which threads may pass barrier.cluster.wait: those whose last arrival's phase has ended."""
        machine, active = self.machine, group.active
        passing = np.ones((group.size, 32), np.bool_)
        for position, row in enumerate(group.indices):
            row, lanes = int(row), active[position]
            barrier = self.cluster_barriers[self.clusters.of(int(machine.row_slot[row]))]
            if (self.cluster_waits[row] >= self.cluster_arrivals[row])[lanes].any():
                machine.findings.add(
                    "cluster-barrier-order",
                    "waits at the cluster's barrier without having arrived: barrier.cluster.arrive is missing",
                    statement,
                )
            done = self.cluster_arrivals[row] <= barrier.phase
            passing[position] = done
            self.cluster_waits[row, lanes & done] = self.cluster_arrivals[row, lanes & done]
            if machine.ordering is not None and barrier.completed is not None and (lanes & done).any():
                machine.ordering.acquire(row, barrier.completed)
                machine.ordering.lanes_meet(np.array([row]))
        return passing

    def _try_cluster_barrier(self, cluster: int) -> None:
        """End the phase if every thread of the cluster has arrived or left."""
        barrier = self.cluster_barriers[cluster]
        arrived, expected = self.cluster_count(cluster)
        if not arrived or arrived < expected:
            return
        barrier.end_phase()
        self.wake(("cluster", cluster))

    def cluster_count(self, cluster: int) -> tuple[int, int]:
        """Threads that have arrived in this phase, and those that are there."""
        rows = slice(cluster * self.clusters.warps, (cluster + 1) * self.clusters.warps)
        present = self.machine.present[rows]
        here = (self.cluster_arrivals[rows] > self.cluster_barriers[cluster].phase) & present
        return int(here.sum()), int(present.sum())

    # The loop.

    def run(self) -> Status:
        """Run to the end. Findings are in the machine; a fault or incompleteness is added to them."""
        with np.errstate(all="ignore"):
            while (status := self.advance()) is None:
                if self.blocked:
                    report_deadlock(self)
                    return "deadlock"
        return status

    def advance(self) -> Status | None:
        """Go one step on; the status if the launch ends with it. `blocked` then tells whether nobody could go on."""
        machine, self.blocked = self.machine, False
        try:
            if self.finished < self.ctas:
                group = self._next()
                if group is not None:
                    self._step(group)
                else:
                    self.blocked = not self._unblock()
                return None
            while machine.timeline.jump():
                pass
        except MemoryFault as fault:
            statement = self._operation.statement if self._operation is not None else None
            machine.findings.add(fault.code, str(fault), fault.statement or statement, ends=True)
            return "fault"
        except Unmodelled as reached:
            statement = self._operation.statement if self._operation is not None else None
            machine.findings.add("not-modelled", f"the emulator does not model {reached}", statement, ends=True)
            return "incomplete"
        except Incomplete as reached:
            machine.findings.add("not-modelled", str(reached), reached.statement, ends=True)
            return "incomplete"
        return "findings" if machine.findings.errors else "ok"

    @property
    def allows_dependents(self) -> bool:
        """Whether all CTAs have executed griddepcontrol.launch_dependents or ended."""
        return self.finished + len(self.machine.released) >= self.ctas

    def look_again(self) -> None:
        """Another grid has done something: what went round without end may find something new."""
        self._spinning, self._seen_effects, self._gave_up_at = False, -1, -1

    def _next(self) -> Group | None:
        """Who goes next; None when nobody can, or when all that can only go round."""
        machine = self.machine
        quiet = self.steps - self._quiet_since
        if machine.effects != self._seen_effects:
            spun = quiet >= self._patience
            self._patience = (
                max(self._patience // 4, _LEAST_PATIENCE) if spun else min(self._patience + 1, _QUIET_STEPS)
            )
            self._seen_effects, self._quiet_since, self._look_at = machine.effects, self.steps, 0
            return self._pick()
        if quiet < self._patience:
            return self._pick()
        if quiet < min(2 * self._patience, _QUIET_STEPS):
            return self._pick_fairly()
        if not self._look_at:
            self._rounds.restart()
            if machine.timeline.jump():
                return self._pick()
        if self.steps >= self._look_at and self._all_go_round(quiet):
            self._rounds.restart()
            if not self._unblock():
                self.spinning = True
                return None
        return self._pick_fairly()

    def _all_go_round(self, quiet: int) -> bool:
        self._look_at = self.steps + _LOOK_EVERY
        if self.machine.reads_time:
            return quiet > _QUIET_LIMIT
        moving = ((self.place != EXITED) & ~self.held).any(axis=1)
        return bool((self._rounds.look(self.last_run, self.steps) | ~moving).all())

    def _pick_fairly(self) -> Group | None:
        """One place after the other, also those whose lanes wait for the rest of their warp to come.

        Except where instructions want the whole warp: there lanes wait on, unless nothing else helps (`_unblock`).
        """
        free = (self.place != EXITED) & ~self.held
        parked = self.place > self.current[:, None]
        free &= ~(parked & self._aligned[np.minimum(self.place, len(self._aligned) - 1)])
        places = self.place[free]
        if not len(places):
            return None
        later = places[places > self._fair_place]
        self._fair_place = place = int(later.min() if len(later) else places.min())
        mask = free & (self.place == place)
        rows = np.flatnonzero(mask.any(axis=1))
        mask = mask[rows]
        return Group(self.machine, rows, None if mask.all() else mask)

    def _pick(self) -> Group | None:
        """The warps to run next: those at the first block, or now and then those that waited longest."""
        ready = self.ready
        if not ready.any():
            return None
        current = self.current
        if self.machine.timeline.schedule == "random":
            rows = np.flatnonzero(ready)
            place = current[rows[self.machine.timeline.random.randrange(len(rows))]]
        else:
            place = np.where(ready, current, EXITED).min()
            if self.steps % 64 == 0:
                oldest = int(np.where(ready, self.last_run, self.steps).argmin())
                if ready[oldest] and self.steps - self.last_run[oldest] > _PATIENCE:
                    place = current[oldest]
        rows = np.flatnonzero(ready & (current == place))
        if self.uniform[rows].all():
            return Group(self.machine, rows, None)
        return Group(self.machine, rows, (self.place[rows] == place) & ~self.held[rows])

    def _step(self, group: Group) -> None:
        """Run one block for a group."""
        machine = self.machine
        self.steps += 1
        self.last_run[group.rows] = self.steps
        place = int(self.place[group.indices[0], int(group.active[0].argmax())])
        block = self.program.blocks[place]
        if self.steps > self.max_steps:
            raise Incomplete(
                block.operations[0].statement if block.operations else None,
                f"the launch has not ended after {self.max_steps} steps, and is here; Emulator(max_steps=) sets more",
            )
        current: Group | None = group
        for operation in block.operations:
            self._operation = operation
            if machine.pending_loads:
                self._check_pending(current, operation)
            if machine.unread and not operation.reads.isdisjoint(machine.unread):
                machine.learn(current.indices, operation.reads)
            self.instructions += current.size
            acting = current
            if operation.guard is not None:
                acting = current.narrowed(current.full(operation.guard(current)))
            if operation.kind == "end":
                self._end(current, acting, operation, block)
                machine.timeline.advance(1)
                return
            if acting is None:
                continue
            if operation.kind == "plain":
                operation.run(acting)
                continue
            key, passing = operation.run(acting, self)
            if passing is None:
                continue
            stopped = acting.narrowed(~passing)
            if stopped is not None:
                self.hold(stopped, key, operation)
                rest = current.active.copy()
                rest[np.isin(current.indices, stopped.indices)] &= ~stopped.active
                current = current.narrowed(rest)
                if current is None:
                    machine.timeline.advance(1)
                    return
        if block.following == EXITED:
            self.exit(current)
        elif block.following == RETURNED:
            self.program.calls.leave(current, self)
        else:
            self.move(current, block.following)
        machine.timeline.advance(1)

    def _end(self, group: Group, acting: Group | None, operation: Operation, block: Block) -> None:
        """The last instruction of a block: lanes under its guard do it, the others go on."""
        if acting is not None and acting.size == group.size and (acting.mask is group.mask or acting.mask is None):
            operation.run(acting, self, block, operation)
            return
        if acting is None:
            self.move(group, block.following)
            return
        rest = group.active.copy()
        rest[np.isin(group.indices, acting.indices)] &= ~acting.active
        others = group.narrowed(rest)
        if others is not None:
            self.move(others, block.following)
        operation.run(acting, self, block, operation)

    def _check_pending(self, group: Group, operation: Operation) -> None:
        """A register that a tcgen05.ld has yet to write is waited for by who reads it (9.7.16.6.4.5, PTX ISA 9.2).

        The manual says of this dependency that it orders nothing else, but a load that has brought its values has read
        the cells: CuTe DSL (4.8) lets no other warp wait for more before it frees them or has the next product there.
        """
        if not operation.reads:
            return
        machine = self.machine
        for row in map(int, group.indices):
            for load in tuple(machine.pending_loads.get(row, ())):
                if not load.registers.isdisjoint(operation.reads):
                    load.complete()
                    machine.pending_loads[row].remove(load)
                    if not machine.pending_loads[row]:
                        del machine.pending_loads[row]
                    if machine.ordering is not None:
                        machine.ordering.tensor.loaded(row, [load])
                    machine.findings.add(
                        "missing-tcgen05-wait",
                        f"reads a register of the tcgen05.ld of line {load.statement.line} before tcgen05.wait::ld; "
                        "editions of the manual before 9.2 ask for it, and without it the cells may be read later",
                        operation.statement,
                        severity="advice",
                    )

    def _unblock(self) -> bool:
        """Nobody can go on: let asynchronous work complete, parked lanes run, timed waits give up."""
        machine = self.machine
        if self.spinning:
            return False
        if machine.timeline.jump() or self._release_parked():
            return True
        if not self.waits or self._waits_for_ever():
            return False
        for key in list(self.waits):
            for row, _, _ in self.waits[key]:
                self.timed_out[row] = True
            self.wake(key)
        return True

    def _waits_for_ever(self) -> bool:
        """Whether giving up has brought every waiting warp back to where it was, with nothing changed."""
        if self._gave_up_at != self.machine.effects:
            self._gave_up_at, self._give_ups = self.machine.effects, 0
            self._retries.restart()
        self._give_ups += 1
        again = self._retries.look(self.last_run, self.steps)
        rows = {row for waiting in self.waits.values() for row, _, _ in waiting}
        return bool(again[sorted(rows)].all()) if not self.machine.reads_time else self._give_ups > _QUIET_STEPS

    def _release_parked(self) -> bool:
        """Run the lanes of divergent warps whose first lanes are held, once."""
        free = (self.place != EXITED) & ~self.held & (self.place > self.current[:, None])
        rows = np.flatnonzero(free.any(axis=1))
        if not len(rows):
            return False
        place = np.where(free, self.place, EXITED)[rows].min()
        mask = free[rows] & (self.place[rows] == place)
        chosen = mask.any(axis=1)
        self._step(Group(self.machine, rows[chosen], mask[chosen]))
        return True
