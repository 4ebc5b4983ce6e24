"""Running a launch: CTAs begin and end, warps execute blocks as long as any of them can.

`state.warps` has the pcs of lanes, what they wait for and which run next, `state.barriers` the barriers of CTAs and
clusters; `livelock` finds endless loops, `deadlock` reports.

All warps with the same pc run together. A divergent warp runs the lanes with the lowest pc, in execution order
(`load.flow`); the others wait for them, unless nothing else can run: then they do, since independent thread scheduling
promises every lane progress. A launch in which no lane can run and no asynchronous work is left is deadlocked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.device import Access, Status
from ptxgen.emulator.arrays import all_set, any_set
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.registry import launches, tcgen05
from ptxgen.emulator.explore.delays import Delays, Point
from ptxgen.emulator.load.operands import Unmodelled
from ptxgen.emulator.load.program import EXITED, RETURNED, Block, Incomplete, Operation, Program
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.granules import distinct
from ptxgen.emulator.native.steps import Steps
from ptxgen.emulator.schedule.code import Code, Watcher
from ptxgen.emulator.schedule.deadlock import report_deadlock
from ptxgen.emulator.schedule.livelock import Repetition
from ptxgen.emulator.schedule.watchdog import Watchdog
from ptxgen.emulator.state.barriers import ClusterBarriers, CtaBarriers
from ptxgen.emulator.state.convergence import Wait
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import Machine
from ptxgen.emulator.state.tensor_transfers import TensorLoad
from ptxgen.emulator.state.warps import Warps
from ptxgen.instr.model.targets import parse_version
from ptxgen.syntax import Statement

#: The version of PTX from which on a register dependency orders a tcgen05.ld before a use (9.7.16.6.4.5).
_REGISTERS_ORDER_LOADS = (9, 2)
#: Steps without any effect after which work completes that is not due yet, and lanes that wait for convergence run too.
_QUIET_STEPS = 256
#: So few steps without any effect may be enough where a wait for another thread has cost many before; twice as many
#: before work completes that is not due yet.
_LEAST_PATIENCE = 16
#: Steps without any effect after which a program that reads clocks counts as going round for ever. Each lets pass a
#: part of the time that the program has spun, up to this time: 18 minutes at 1 GHz.
_QUIET_LIMIT = 200_000
_QUIET_PART, _LONGEST_DELAY = 32, 2**40
#: Quiet steps after which a loop that counts its rounds, or reads a clock, may wait for something outside the launch.
_ASK_AFTER = 4096
#: Every so many quiet steps the state of the warps is compared.
_LOOK_EVERY = 16


class Scheduler:
    """Runs a program on a machine until the grid is done, or nothing in it can run."""

    def __init__(
        self,
        machine: Machine,
        program: Program,
        progress: Callable[[int, int], None] | None,
        watchdog: Watchdog,
        watchers: Sequence[Watcher] = (),
        held: Point | None = None,
        *,
        explored: bool = False,
        sample: Sequence[int] | None = None,
    ) -> None:
        """`sample`: the numbers of those clusters of the grid that run, in order; None for all."""
        self.machine, self.program, self.progress = machine, program, progress
        self._version = parse_version(program.kernel.module.version or "")
        self._watchdog = watchdog
        clusters = self.clusters = machine.clusters
        #: Numbers of the clusters that run, in order, and how many of them have begun.
        self._order = range(clusters.count) if sample is None else sample
        self._next_cluster = 0
        #: CTAs that run, and how many of them have ended.
        self.ctas, self.finished = len(self._order) * clusters.size, 0
        warps = self.warps = Warps(machine, program)
        #: Threads of each resident CTA that have not left.
        self.left = np.zeros(machine.slots, np.int64)
        self.barriers = CtaBarriers(machine, warps, self.left)
        self.cluster_barriers = ClusterBarriers(machine, warps)
        #: The warps of clusters that do not begin before the others can do no more: with `random` half of them.
        self._late: list[NDArray[np.int64]] = []
        self.instructions = 0
        self.blocked = False
        #: Called when all that can run spins (True), or has had no effect for long (False); True once something outside
        #: the launch has changed what it reads.
        self.outside: Callable[[bool], bool] | None = None
        #: True once that has been so: the launch has not run alone.
        self.had_help = False
        #: The warp that an exploration holds, and the points that warps pass; None outside explorations.
        self.delays = Delays(machine, warps, program, held) if explored else None
        #: The instruction that runs, and the warps that execute it.
        self._operation: Operation | None = None
        self._group: Group | None = None
        self._seen_effects, self._quiet_since, self._gave_up_at = -1, 0, -1
        #: Time at the last effect.
        self._quiet_time = 0
        #: Steps without any effect after which lanes take turns: fewer where some have been spinning before.
        self._patience = _LEAST_PATIENCE if explored else _QUIET_STEPS
        self._look_at, self._give_ups, self.spinning, self._ask_at = 0, 0, False, _ASK_AFTER
        self._traced = machine.events.observes("instruction_issued")
        self.code = Code(program, machine, warps, watchers, single=self._traced)
        #: True: neither time (`Timeline.advance`) nor chance decides which warp runs.
        in_order = machine.timeline.schedule in ("eager", "late") and warps.in_order and not warps.one_by_one
        self._may_skip = in_order and self.delays is None and not self._traced
        self._rounds, self._retries = Repetition(self._state), Repetition(self._state)
        machine.wake, machine.cancel = warps.wake, self._cancel
        self._start(range(clusters.resident))

    # CTAs.

    def _start(self, residents: Sequence[int]) -> None:
        """Start the next clusters of the grid in the slots of these resident ones, all their CTAs together."""
        machine, clusters, first = self.machine, self.clusters, self._next_cluster
        residents = residents[: len(self._order) - first]
        if not len(residents):
            return
        self._next_cluster += len(residents)
        machine.begin_clusters(residents, self._order[first : self._next_cluster])
        begun = np.array(residents, np.int64)[:, None]
        slots = (begun * clusters.size + np.arange(clusters.size)).ravel()
        warps = begun * clusters.warps + np.arange(clusters.warps)
        self.cluster_barriers.begin(residents, warps.ravel())
        clusters.ended[slots] = False
        self.left[slots] = machine.threads
        timeline = machine.timeline
        if timeline.schedule == "random" and self.ctas > clusters.size and not self.warps.one_by_one:
            late = np.array([timeline.random.getrandbits(1) for _ in residents], np.bool_)
            if timeline.starves and len(late) > 1 and all_set(late) == any_set(late):  # some come late, but not all
                late[timeline.random.randrange(len(late))] ^= True
            if any_set(late):
                if not self._late:
                    timeline.last(self._begin_late)
                self._late += list(warps[late])
                warps = warps[~late]
        if len(warps):
            self.warps.begin(warps.ravel(), self.program.entry)

    def _begin_late(self) -> None:
        """Late CTAs start: the effects of others are ordered before them, as they may be."""
        late, self._late = self._late, []
        self.machine.effects += 1
        for warps in late:
            self.warps.begin(warps, self.program.entry)

    def _cancel(self) -> int | None:
        """Cancel a cluster that has not begun (clusterlaunchcontrol); its number, None if there is none."""
        if self._next_cluster >= len(self._order):
            return None
        self.finished += self.clusters.size
        if self.progress is not None:
            self.progress(self.finished, self.ctas)
        self._next_cluster += 1
        return self._order[self._next_cluster - 1]

    def _finish(self, slots: Sequence[int]) -> None:
        """The last threads of these CTAs have left."""
        machine = self.machine
        for slot in slots:
            if machine.tensor.sizes[slot]:
                self._report_allocations(slot)
            if self.barriers.open:
                self.barriers.ends(slot)
            if machine.released:
                machine.released.discard(int(machine.cta_number[slot]))
            self.finished += 1
            if self.progress is not None:
                self.progress(self.finished, self.ctas)
        machine.events.ctas_end(slots)
        self.clusters.ended[slots] = True

    def _report_allocations(self, slot: int) -> None:
        """A CTA ends with tensor memory allocated."""
        tensor = self.machine.tensor
        for start, size in tensor.sizes[slot].items():
            statement = tensor.statements[slot, start]
            allocator = self.machine.findings.access("allocator", statement, slot=slot, space="tensor", address=start)
            self.machine.findings.report(
                tcgen05.TMEM_NOT_FREED,
                statement,
                summary=f"the CTA exits with TMEM columns {start}-{start + size - 1} allocated",
                rule=f"No tcgen05.dealloc frees the allocation of line {statement.line}",
                accesses=(allocator,),
            )

    def _finish_clusters(self, residents: Sequence[int]) -> None:
        """All CTAs of these resident clusters have ended: the next ones take their slots."""
        machine = self.machine
        if not any_set(machine.inflight):
            self._start(residents)
            return
        for resident in residents:
            slots = self.clusters.slots(resident)
            while any_set(machine.inflight[slots.start : slots.stop]) and machine.timeline.jump():
                pass
            self._start([resident])

    def exit(self, group: Group) -> None:
        """All lanes of a group leave the kernel."""
        self.machine.effects += 1
        group.store(self.machine.present, np.asarray(False))
        self.warps.leave(group)
        if self.machine.convergence.any:
            warps = set(group.indices.tolist())
            for key in [key for key in self.warps.waits if isinstance(key, Wait) and key.warp in warps]:
                self.warps.wake(key)
        slots = self.machine.cta_slot[group.indices]
        np.subtract.at(self.left, slots, group.active.sum(axis=1))
        if self.clusters.size > 1 or any_set(self.left[slots]):  # else no warp is left to wait there
            self.cluster_barriers.leave(group)
        here = distinct(slots)
        for slot in here.tolist() if self.barriers.open else ():
            self.barriers.check(slot)
        ended = here[self.left[here] == 0]
        if len(ended):
            self._finish(ended.tolist())
        residents = distinct(slots // self.clusters.size)
        going = (self.left.reshape(-1, self.clusters.size)[residents] != 0).any(axis=1)
        if not any_set(going):
            self._finish_clusters(residents.tolist())
            return
        for resident in residents.tolist():
            if any_set(self.left[self.clusters.slots(resident)]):
                self.cluster_barriers.check(resident)
            else:
                self._finish_clusters([resident])

    # The loop.

    def run(self) -> Status:
        """Run to the end. Findings are in the machine; a fault or incompleteness is added to them."""
        with np.errstate(all="ignore"):
            while (status := self.advance()) is None:
                if self.blocked:
                    report_deadlock(self)
                    return "deadlock"
                if self.code.steps is not None and self._may_skip:
                    self._take_steps(self.code.steps)
        return status

    def _take_steps(self, native: Steps) -> None:
        """Take steps by machine code, up to the next one that is Python's to take: as `_next` and `_step` would."""
        machine, warps, before = self.machine, self.warps, self.warps.steps
        if machine.effects != self._seen_effects or machine.transfers.loads or machine.watched or warps.any_ahead:
            return
        quiet = before - self._quiet_since
        short, longer = self._patience, min(2 * self._patience, _QUIET_STEPS)
        if quiet < short:
            limit = self._quiet_since + short
        elif quiet < longer:
            limit = self._quiet_since + longer
        elif self._look_at and not machine.reads_time:
            limit = self._look_at
            if self.outside is not None:
                limit = min(limit, self._quiet_since + self._ask_at)
        else:
            return
        limit = self._watchdog.allows(before, limit)
        if limit > before:
            self.instructions += native.run(limit, fairly=quiet >= short)
            machine.timeline.now += warps.steps - before

    def _is_helped(self, *, certain: bool) -> bool:
        """Whether something outside the launch lets loops go on that spin, or seem to."""
        if self.outside is None or not self.outside(certain):
            return False
        self.had_help = True
        self.look_again()
        return True

    def close(self) -> None:
        """Take the launch apart, once it has been reported: the memory of its parts, which refer to each other, is free
        for the next launch, and not only when Python looks for cycles.
        """
        for each in (*self.machine.events.observers, self.machine.events, self.machine, self):
            vars(each).clear()

    def limit(self, steps: int) -> None:
        """End the launch as incomplete after so many steps, if that is less than its limit."""
        self._watchdog.max_steps = min(self._watchdog.max_steps, steps)

    def advance(self) -> Status | None:
        """Run one step; the status if the launch ends with it. `blocked` is then whether no lane could run."""
        machine, self.blocked = self.machine, False
        try:
            if not self.warps.steps:
                least = -(-self.clusters.count // self.clusters.resident)
                self._watchdog.require(least, self.ctas, machine.slots)
            if self.finished < self.ctas:
                group = self._next()
                if group is not None and self.delays is not None:
                    group = self.delays.before(group, self.warps.pc_of(group))
                    if group is None:
                        return None
                if group is not None and machine.timeline.starves:
                    self._step_watched(group)
                elif group is not None:
                    self._step(group)
                else:
                    self.blocked = not self._unblock()
                return None
            while machine.timeline.jump():
                pass
        except MemoryFault as fault:
            statement = self._operation.statement if self._operation is not None else None
            if not fault.accesses:
                fault.accesses = self._faulting(fault.statement or statement)
            machine.findings.keep(fault.finding(statement), ends=True, cause=fault.cause)
            return "fault"
        except Unmodelled as reached:
            statement = self._operation.statement if self._operation is not None else None
            machine.findings.report(
                launches.NOT_MODELLED, statement, summary=f"the emulator does not model {reached}", rule="", ends=True
            )
            return "incomplete"
        except Incomplete as reached:
            machine.findings.report(reached.check, reached.statement, summary=str(reached), rule="", ends=True)
            return "incomplete"
        return "findings" if machine.findings.errors else "ok"

    def _faulting(self, statement: Statement | None) -> tuple[Access, ...]:
        """The warp that has executed the instruction that faults, if it is the only one that executes it now."""
        if statement is None:
            return ()
        running, group = self._operation, self._group
        here = running is not None and running.statement is statement and group is not None and group.size == 1
        warp = int(group.indices[0]) if here and group is not None else None
        return (self.machine.findings.access("accessor", statement, warp),)

    @property
    def begun(self) -> int:
        """CTAs that have started, or have been cancelled."""
        return self._next_cluster * self.clusters.size

    @property
    def allows_dependents(self) -> bool:
        """Whether all CTAs have executed griddepcontrol.launch_dependents or ended."""
        return self.finished + len(self.machine.released) >= self.ctas

    def look_again(self) -> None:
        """Another grid has had an effect: loops that spin may find something new."""
        self.spinning, self._seen_effects, self._gave_up_at = False, -1, -1

    def _next(self) -> Group | None:
        """The warps to run next; None when none can, or when all that can only spin."""
        machine = self.machine
        quiet = self.warps.steps - self._quiet_since
        if machine.timeline.paces:
            if self._spins(quiet) and not self._release_parked():
                self.spinning = True
                return None
            chosen = machine.timeline.pick(self.warps.ready, self.warps.current)
            return None if chosen is None else self.warps.group(*chosen)
        if machine.effects != self._seen_effects:
            spun = quiet >= self._patience
            self._patience = (
                max(self._patience // 4, _LEAST_PATIENCE) if spun else min(self._patience + 1, _QUIET_STEPS)
            )
            self._seen_effects, self._quiet_since, self._look_at = machine.effects, self.warps.steps, 0
            self._quiet_time, self._ask_at = machine.timeline.now, _ASK_AFTER
            return self.warps.pick()
        if quiet < self._patience:
            return self.warps.pick()
        if quiet < min(2 * self._patience, _QUIET_STEPS):
            return self.warps.pick_fairly()
        if not self._look_at:
            self._rounds.restart()
            if machine.timeline.jump():
                return self.warps.pick()
        if self.outside is not None and quiet >= self._ask_at:
            self._ask_at = 2 * quiet
            if self._is_helped(certain=False):
                return self.warps.pick()
        if self.warps.steps >= self._look_at and self._all_spin(quiet):
            self._rounds.restart()
            if not machine.timeline.jump() and not self._is_helped(certain=True) and not self._unblock():
                self.spinning = True
                return None
        if machine.reads_time:
            self._let_time_pass()
        return self.warps.pick_fairly()

    def _spins(self, quiet: int) -> bool:
        """Whether no work is under way, and all that can run has returned to an earlier state without any effect."""
        machine = self.machine
        if machine.effects != self._seen_effects or len(machine.timeline):
            self._seen_effects, self._quiet_since, self._look_at = machine.effects, self.warps.steps, 0
            return False
        if quiet < _QUIET_STEPS or self.warps.steps < self._look_at:
            return False
        if not self._look_at:
            self._rounds.restart()
        return self._all_spin(quiet)

    def _let_time_pass(self) -> None:
        """Shorten a delay: a loop that polls a clock would take as many steps as it waits cycles."""
        spun = self.machine.timeline.now - self._quiet_time
        if spun < _LONGEST_DELAY:
            self.machine.timeline.advance(spun // _QUIET_PART)

    def _state(self) -> list[NDArray[Any]]:
        """The state that decides how each warp continues while nothing changes around it."""
        local = self.machine.stack.memory.data.reshape(self.machine.warps, -1)
        return [self.warps.pc, self.warps.held, *self.machine.registers, local]

    def _all_spin(self, quiet: int) -> bool:
        self._look_at = self.warps.steps + _LOOK_EVERY
        if self.machine.reads_time:
            return quiet > _QUIET_LIMIT
        moving = ((self.warps.pc != EXITED) & ~self.warps.held).any(axis=1)
        return all_set(self._rounds.look(self.warps.last_run, self.warps.steps) | ~moving)

    def _step(self, group: Group) -> None:
        """Run one block for a group."""
        machine = self.machine
        self.warps.steps += 1
        self.warps.last_run[group.warps] = self.warps.steps
        rank = self.warps.pc_of(group)
        block = self.code[rank]
        if machine.timeline.paces:
            machine.timeline.runs(group.indices.tolist(), rank)
        first = block.operations[0].statement if block.operations else None
        self._watchdog.step(self.warps.steps, self.finished, self.ctas, first)
        current: Group | None = group
        for whole in block.operations:
            if whole.parts and not machine.transfers.loads and not machine.watched:
                self.instructions += current.size * len(whole.parts)
                whole.run(current)
                continue
            for operation in whole.parts or (whole,):
                self._operation = operation
                if machine.transfers.loads:
                    self._check_pending(current, operation)
                if machine.watched and not operation.reads.isdisjoint(machine.watched):
                    machine.events.registers_read(current.indices, operation.reads & machine.watched)
                self.instructions += current.size
                acting = current
                if operation.guard is not None:
                    acting = current.narrowed(current.full(operation.guard(current)))
                if self._traced:
                    self._emit_issue(current, acting, operation)
                if operation.kind == "terminator":
                    self._end(current, acting, operation, block)
                    machine.timeline.advance(1)
                    return
                if acting is None:
                    continue
                self._group = acting
                if operation.kind == "plain":
                    operation.run(acting)
                    continue
                key, passing = operation.run(acting, self)
                if passing is None:
                    continue
                stopped = acting.narrowed(~passing)
                if stopped is not None:
                    self.warps.hold(stopped, key, operation)
                    current = current.without(stopped)
                    if current is None:
                        machine.timeline.advance(1)
                        return
        if block.following == EXITED:
            self.exit(current)
        elif block.following == RETURNED:
            self.program.calls.leave(current, self.warps)
        else:
            self.warps.move(current, block.following)
        machine.timeline.advance(1)

    def _step_watched(self, group: Group) -> None:
        """Run one block, and note which warps poll: they have gone back and changed nothing since the last time, or
        to the same block of strong accesses, where a stale value counts as a change.

        A store counts also where it changes nothing: else the schedule of a loop that copies uninitialized memory would
        depend on what that holds, and differ in a rerun with other bytes.
        """
        machine, warps, which = self.machine, self.warps, group.indices
        effects, stores, before = machine.effects, machine.stores, warps.current[which]
        self._step(group)
        now = warps.current[which]
        warps.acted[which] |= (machine.effects, machine.stores) != (effects, stores)
        back = now <= before
        idle = back & (~warps.acted[which] | warps.polls_at(before))
        for first, last in {*zip(now[idle].tolist(), before[idle].tolist(), strict=True)}:
            if self.program.may_poll(first, last):
                warps.loop_polls(first, last)
            else:
                idle &= (now != first) | (before != last)
        warps.polling[which] = idle | (warps.polling[which] & warps.polls_at(now) & ~back)
        warps.acted[which] &= ~back

    def _emit_issue(self, group: Group, acting: Group | None, operation: Operation) -> None:
        if acting is group:
            executes = group.active
        else:
            executes = np.zeros((group.size, 32), np.bool_)
            if acting is not None:
                executes[np.isin(group.indices, acting.indices)] = acting.active
        self.machine.events.instruction_issued(group.indices, group.active, executes, operation.statement)

    def _end(self, group: Group, acting: Group | None, operation: Operation, block: Block) -> None:
        """The last instruction of a block: lanes under its guard execute it, the others fall through."""
        if acting is not None and acting.size == group.size and (acting.mask is group.mask or acting.mask is None):
            operation.run(acting, self, block, operation)
            return
        if acting is None:
            self.warps.move(group, block.following)
            return
        others = group.without(acting)
        if others is not None:
            self.warps.move(others, block.following)
        operation.run(acting, self, block, operation)

    def _check_pending(self, group: Group, operation: Operation) -> None:
        """A read of a register that a tcgen05.ld has yet to write waits for it (9.7.16.6.4.5, PTX ISA 9.2).

        The manual says of this dependency that it orders nothing else. CuTe DSL (4.8) has no other wait before another
        warp frees the cells; what overwrites them needs tcgen05.wait::ld (`TensorAccesses.tensor_load_used`). In
        modules of an older version than 9.2 it is advice: CuTe DSL 4.8.1 writes such modules (8.8), and they run.
        """
        if not operation.reads:
            return
        machine = self.machine
        for warp in map(int, group.indices):
            for load in tuple(machine.transfers.loads.get(warp, ())):
                if not load.registers.isdisjoint(operation.reads):
                    load.complete()
                    machine.transfers.remove(warp, load)
                    machine.events.tensor_load_used(warp, load)
                    if self._version < _REGISTERS_ORDER_LOADS:
                        self._advise_wait(warp, load, operation)

    def _advise_wait(self, warp: int, load: TensorLoad, operation: Operation) -> None:
        """Advise a tcgen05.wait::ld between a load and the first instruction that reads one of its registers."""
        findings, (major, minor) = self.machine.findings, self._version
        reader = findings.access("reader", operation.statement, warp, space="reg")
        writer = findings.access("writer", load.statement, warp, space="reg")
        findings.report(
            tcgen05.MISSING_TCGEN05_WAIT,
            operation.statement,
            summary=f"{reader} reads a register of the tcgen05.ld of line {load.statement.line}",
            rule=f"PTX ISA before 9.2 requires tcgen05.wait::ld here, and this module is of version {major}.{minor}; "
            "CuTe DSL 4.8 leaves it out in such modules too, which run",
            fix=f"tcgen05.wait::ld before line {operation.statement.line}, or .version 9.2",
            accesses=(reader, writer),
            cause=causes.UNAWAITED_LOADS,
        )

    def _unblock(self) -> bool:
        """No lane can run: let asynchronous work complete, parked lanes run, timed waits give up."""
        machine = self.machine
        if self.spinning:
            return False
        if machine.timeline.jump():
            return True
        # Before parked lanes: those that they wait for may themselves wait for the warp that is held.
        if self.delays is not None and self.delays.release():
            return True
        if self._release_parked():
            return True
        if not self.warps.waits or self._waits_forever():
            return False
        for key in list(self.warps.waits):
            for warp, _, _ in self.warps.waits[key]:
                self.warps.timed_out[warp] = True
            self.warps.wake(key)
        return True

    def _waits_forever(self) -> bool:
        """Whether giving up has brought every waiting warp back to where it was, with nothing changed."""
        if self._gave_up_at != self.machine.effects:
            self._gave_up_at, self._give_ups = self.machine.effects, 0
            self._retries.restart()
        self._give_ups += 1
        again = self._retries.look(self.warps.last_run, self.warps.steps)
        warps = {warp for waiting in self.warps.waits.values() for warp, _, _ in waiting}
        return all_set(again[sorted(warps)]) if not self.machine.reads_time else self._give_ups > _QUIET_STEPS

    def _release_parked(self) -> bool:
        """Run lanes of divergent warps whose first lanes are held, once."""
        group = self.warps.parked()
        if group is None:
            return False
        self.machine.idle = True
        self._step(group)
        self.machine.idle = False
        return True
