"""The pc of every lane, which lanes wait and for what, and which warps run next."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import all_set, any_set, count_nonzero
from ptxgen.emulator.load.program import EXITED, Operation, Program
from ptxgen.emulator.native.library import Library, chosen, pointer_to
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import GRIDS_BEFORE

if TYPE_CHECKING:
    from ptxgen.emulator.state.machine import Machine

#: Warps that are left behind stay so for fewer steps than this.
_LEFT_BEHIND = 128
#: A ready warp that others have passed over for so many steps goes first.
_PATIENCE = 256
#: Every so many steps the scheduler looks for one.
_LOOK = 64


class Warps:
    """The warps of a machine: the pc of each lane, and whether it is held there.

    A pc is the rank of a block in execution order (`Program.blocks`), or EXITED.
    """

    def __init__(self, machine: Machine, program: Program) -> None:
        self._machine = machine
        warps = machine.warps
        self.pc = np.full((warps, 32), EXITED, np.int64)
        self.held = np.zeros((warps, 32), np.bool_)
        #: The lowest pc of each warp: the lanes that are there run, if they are not held.
        self.current = np.full(warps, EXITED, np.int64)
        self.ready = np.zeros(warps, np.bool_)
        #: True: all lanes of the warp are active, none is held.
        self.uniform = np.zeros(warps, np.bool_)
        #: The steps of the launch, and in which each warp has run last.
        self.steps = 0
        self.last_run = np.zeros(warps, np.int64)
        #: Waits of held lanes: key -> [(warp, lanes, operation)].
        self.waits: dict[object, list[tuple[int, NDArray[np.bool_], Operation]]] = {}
        #: Rows whose timed waits give up: mbarrier.try_wait then returns false.
        self.timed_out = np.zeros(warps, np.bool_)
        #: By block, whether it requires the whole warp.
        self.aligned = np.array([block.aligned for block in program.blocks], np.bool_)
        self._separable = np.array([block.separable for block in program.blocks], np.bool_)
        #: True: lanes of a warp may run separately at strong accesses, as on hardware.
        self._apart = machine.timeline.schedule == "random" and any_set(self._separable)
        #: Blocks before which warps may be left behind, if the schedule does so.
        self._resumes = np.array([block.resumes for block in program.blocks], np.bool_)
        self._leaves_behind = machine.timeline.schedule == "random" and any_set(self._resumes)
        #: Warps that lag, and the step until which only they run.
        self._behind, self._behind_until = np.zeros(warps, np.bool_), -1
        #: Where `pick_fairly` has been last.
        self.fair_pc = -1
        #: Blocks of loops that poll; the warps that are in one again, and those that have had an effect since they went
        #: back in the program.
        self._blocks, self._polls = program.blocks, np.zeros(len(program.blocks), np.bool_)
        if machine.timeline.starves:
            for rank, block in enumerate(program.blocks):
                if block.strong and rank in block.targets:
                    self.loop_polls(rank, rank)
        self.polling, self.acted = np.zeros(warps, np.bool_), np.zeros(warps, np.bool_)
        #: Lanes that have run ahead of others of their warp with a lower pc.
        self._ahead = np.zeros((warps, 32), np.bool_)
        self.any_ahead = False
        #: All lanes of some warps that have just moved together, and where to; None once anything else has changed.
        self._together: tuple[Group, int] | None = None
        #: True: no random choice decides which warps run next.
        self.in_order = machine.timeline.schedule != "random" and not machine.timeline.starves
        #: Of a rerun whose warps run one after the other (`Perturbation`): in which order, and which runs now.
        self.one_by_one = machine.perturbation.one_by_one if machine.perturbation is not None else ""
        self._alone = 0

    def begin(self, warps: NDArray[np.int64], entry: int) -> None:
        """New CTAs start in these warps: the pc of their threads is the entry."""
        self.pc[warps] = np.where(self._machine.live[warps], entry, EXITED)
        self.held[warps] = False
        self.last_run[warps] = self.steps
        self.refresh(warps)

    def leave(self, group: Group) -> None:
        """All lanes of a group have left the kernel."""
        if group.mask is None and not self.any_ahead:
            which, self._together = group.warps, None
            self.pc[which] = self.current[which] = EXITED
            self.ready[which], self.uniform[which] = False, True
            return
        group.store(self.pc, np.asarray(EXITED))
        self.refresh(group.indices)

    def refresh(self, warps: NDArray[np.int64]) -> None:
        """Recompute the pc and readiness of these warps after their lanes moved or were held or woken."""
        self._together = None
        library = chosen()
        if library is not None and not self.any_ahead:
            which = np.ascontiguousarray(warps)
            pc, held, current, *rest = self._pointers
            library.refresh(pc, held, pointer_to(which), len(which), EXITED, current, *rest)
            return
        pc = self.pc[warps]
        current = self._first(warps, pc) if self.any_ahead else pc.min(axis=1)
        candidates = (pc == current[:, None]) & ~self.held[warps]
        self.current[warps] = current
        self.ready[warps] = candidates.any(axis=1) & (current != EXITED)
        self.uniform[warps] = candidates.all(axis=1)

    @cached_property
    def _pointers(self) -> tuple[int, int, int, int, int]:
        """The tables of all warps, for machine code."""
        pc, held, current, ready, uniform = map(
            pointer_to, (self.pc, self.held, self.current, self.ready, self.uniform)
        )
        return pc, held, current, ready, uniform

    def _lowest(self, library: Library) -> Group:
        """The ready warps with the lowest pc: one at least."""
        warps = np.empty(len(self.ready), np.int64)
        count = library.lowest(*self._pointers[2:], len(warps), pointer_to(warps))
        warps = warps[: abs(count)]
        if count > 0:
            return Group(self._machine, warps, None)
        pc = self.current[warps[0]]
        return Group(self._machine, warps, (self.pc[warps] == pc) & ~self.held[warps])

    def _first(self, warps: NDArray[np.int64], pc: NDArray[np.int64]) -> NDArray[np.int64]:
        """The pc at which these warps run next: lanes that ran ahead wait at `.aligned` instructions for the others."""
        waits = self._ahead[warps] & self.aligned[np.minimum(pc, len(self.aligned) - 1)]
        current = np.where(waits, EXITED, pc).min(axis=1)
        current = np.where(current == EXITED, pc.min(axis=1), current)
        whole = ((pc == current[:, None]) | (pc == EXITED)).all(axis=1)
        if any_set(whole):
            self._ahead[warps[whole]] = False
            self.any_ahead = any_set(self._ahead)
        return current

    def moved(self) -> None:
        """Machine code has moved warps."""
        self._together = None

    def move(self, group: Group, pc: int) -> None:
        """All lanes of a group go to a block."""
        if group.mask is None:
            self.pc[group.warps] = pc
            if count_nonzero(self.uniform[group.warps]) == group.size:
                self.current[group.warps] = pc
                self._together = group, pc
                return
        else:
            group.store(self.pc, np.asarray(pc))
        self.refresh(group.indices)

    def pc_of(self, group: Group) -> int:
        """Where the lanes of a group are."""
        if self._together is not None and self._together[0] is group:
            return self._together[1]
        lane = 0 if group.mask is None else int(group.mask[0].argmax())
        return int(self.pc[group.indices[0], lane])

    def hold(self, group: Group, key: Callable[[int], object], operation: Operation) -> None:
        """Keep lanes where they are until `wake(key(warp))`."""
        group.store(self.held, np.asarray(True))
        active = group.active
        timeline = self._machine.timeline
        for position, warp in enumerate(group.indices):
            waited = key(int(warp))
            self.waits.setdefault(waited, []).append((int(warp), active[position].copy(), operation))
            timeline.blocks(int(warp), waited, operation.statement)
        self.refresh(group.indices)

    def wake(self, key: object) -> None:
        """Let the lanes that wait for a key try again."""
        waiting = self.waits.pop(key, None)
        if not waiting:
            return
        timeline = self._machine.timeline
        for warp, lanes, _ in waiting:
            self.release(warp, lanes)
            timeline.wakes(warp, key)
        self.refresh(np.unique([warp for warp, _, _ in waiting]))

    def release(self, warp: int, lanes: NDArray[np.bool_]) -> None:
        """Lanes wait no longer; `refresh` comes next."""
        self.held[warp] &= ~lanes

    # Who goes next.

    def pick_fairly(self) -> Group | None:
        """One pc after the other, also where lanes wait for the rest of their warp to converge.

        Except where instructions require the whole warp: there lanes keep waiting, unless nothing else runs (`parked`).
        """
        free = (self.pc != EXITED) & ~self.held
        parked = self.pc != self.current[:, None]
        free &= ~(parked & self.aligned[np.minimum(self.pc, len(self.aligned) - 1)])
        pcs = self.pc[free]
        if not len(pcs):
            return None
        later = pcs[pcs > self.fair_pc]
        self.fair_pc = pc = int(later.min() if len(later) else pcs.min())
        mask = free & (self.pc == pc)
        self._go_ahead(mask & parked)
        warps = np.flatnonzero(mask.any(axis=1))
        mask = mask[warps]
        return Group(self._machine, warps, None if all_set(mask) else mask)

    def _go_ahead(self, lanes: NDArray[np.bool_]) -> None:
        """Lanes, (warps, 32), run ahead of others of their warps."""
        if any_set(lanes):
            self._ahead |= lanes
            self.any_ahead = True

    def pick(self) -> Group | None:
        """The warps to run next: those with the lowest pc, or now and then those that waited longest."""
        ready = self.ready
        count = count_nonzero(ready)
        if not count:
            return None
        if self.in_order and not self.one_by_one:
            if self._together is not None and self._together[0].size == count:
                return self._together[0]  # no other warp is ready
            if self.steps % _LOOK and (library := chosen()) is not None:
                return self._lowest(library)
        current, timeline = self.current, self._machine.timeline
        if self.one_by_one:
            if not ready[self._alone]:
                self._alone = int(np.flatnonzero(ready)[0 if self.one_by_one == "ascending" else -1])
            return self.group(np.array([self._alone]), int(current[self._alone]))
        if timeline.starves and self.steps % _PATIENCE:
            ready = self._starving(ready)
        if self._leaves_behind:
            ready = self._not_behind(ready)
        if self._apart and not timeline.random.getrandbits(2) and (group := self._some_ahead()) is not None:
            return group
        if timeline.schedule == "random":
            warps = np.flatnonzero(ready)
            pc = current[warps[timeline.random.randrange(len(warps))]]
        else:
            pc = np.where(ready, current, EXITED).min()
            if self.steps % _LOOK == 0:
                oldest = int(np.where(ready, self.last_run, self.steps).argmin())
                if ready[oldest] and self.steps - self.last_run[oldest] > _PATIENCE:
                    pc = current[oldest]
        warps = np.flatnonzero(ready & (current == pc))
        if self._leaves_behind and self._resumes[pc] and not any_set(self._behind):
            warps = self._some_warps(warps)
            if not len(warps):
                return self.pick()
        if self._apart and self._separable[pc]:
            return self._some_lanes(warps, (self.pc[warps] == pc) & ~self.held[warps])
        return self.group(warps, int(pc))

    def group(self, warps: NDArray[np.int64], pc: int) -> Group:
        """The lanes of these warps that stand at a pc and are not held."""
        if count_nonzero(self.uniform[warps]) == len(warps):
            return Group(self._machine, warps, None)
        return Group(self._machine, warps, (self.pc[warps] == pc) & ~self.held[warps])

    def polls_at(self, pcs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether blocks are in loops that poll."""
        return self._polls[np.minimum(pcs, len(self._polls) - 1)]

    def loop_polls(self, first: int, last: int) -> None:
        """These blocks, which are neighbors in execution order, are a loop that polls."""
        if last < len(self._polls) and not all_set(self._polls[first : last + 1]):
            self._polls[first : last + 1] = True
            polled = (each for block in self._blocks[first : last + 1] for each in block.operations)
            self._machine.strong_loads.polled.update(each.statement.line for each in polled)

    def _starving(self, ready: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Of the ready warps those that do not poll; else some of those that come to poll, or of all that do."""
        polls = self.polling | self.polls_at(self.current)
        if any_set(others := ready & ~polls):
            return others
        fresh = ready & ~self.polling
        found = np.flatnonzero(fresh if any_set(fresh) else ready)
        random = self._machine.timeline.random
        some = np.zeros_like(ready)
        some[[warp for warp in found if random.getrandbits(1)] or found] = True
        return some

    def _not_behind(self, ready: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Of the ready warps those that are not left behind; all of them once none is, or it has been long enough."""
        others = ready & ~self._behind
        if self.steps < self._behind_until and any_set(others):
            return others
        self._behind[:] = False
        return ready

    def _some_warps(self, warps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Half of the time all of these, else some at random: the others come later, and see what these do meanwhile.

        So an arrival at a barrier of the grid may be separated from the load that follows it.
        """
        random = self._machine.timeline.random
        if random.getrandbits(1):
            return warps
        chosen = np.array([random.getrandbits(1) for _ in warps], np.bool_)
        self._behind[warps[~chosen]] = True
        self._behind_until = self.steps + random.randrange(_LEFT_BEHIND)
        return warps[chosen]

    def _some_lanes(self, warps: NDArray[np.int64], mask: NDArray[np.bool_]) -> Group:
        """Some of these lanes (warps, 32), at random: the others come later.

        So a bar.warp.sync that is missing between strong accesses, which do not race, shows as a wrong result.
        """
        bits = self._machine.timeline.random.getrandbits(32)
        chosen = mask & (bits >> np.arange(32) & 1).astype(np.bool_)
        some = chosen.any(axis=1)
        if not any_set(some):
            return Group(self._machine, warps, None if all_set(mask) else mask)
        return Group(self._machine, warps[some], chosen[some])

    def _some_ahead(self) -> Group | None:
        """Lanes that wait for others of their warp to converge, at one pc where they may make strong accesses first."""
        ahead = (self.pc != EXITED) & ~self.held & (self.pc > self.current[:, None])
        ahead &= self._separable[np.minimum(self.pc, len(self._separable) - 1)]
        pcs = np.unique(self.pc[ahead])
        if not len(pcs):
            return None
        ahead &= self.pc == pcs[self._machine.timeline.random.randrange(len(pcs))]
        warps = np.flatnonzero(ahead.any(axis=1))
        return Group(self._machine, warps, ahead[warps])

    def parked(self) -> Group | None:
        """Lanes of divergent warps whose first lanes are held, at one pc.

        Lanes that wait for the grids before will go on: instructions that require the whole warp wait for them.
        """
        free = (self.pc != EXITED) & ~self.held & (self.pc != self.current[:, None])
        for warp, _, _ in self.waits.get(GRIDS_BEFORE, ()):
            free[warp] &= ~self.aligned[np.minimum(self.pc[warp], len(self.aligned) - 1)]
        warps = np.flatnonzero(free.any(axis=1))
        if not len(warps):
            return None
        pc = np.where(free, self.pc, EXITED)[warps].min()
        mask = free[warps] & (self.pc[warps] == pc)
        chosen = mask.any(axis=1)
        return Group(self._machine, warps[chosen], mask[chosen])
