"""Where the lanes of all warps stand, which of them wait and for what, and which warps go next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.load.program import EXITED, Operation, Program
from ptxgen.emulator.state.group import Group

if TYPE_CHECKING:
    from ptxgen.emulator.state.machine import Machine

#: A ready warp that others have passed over for so many steps goes first.
_PATIENCE = 256


class Warps:
    """The warps of a machine, by row: the block at which each lane stands, and whether it is held there."""

    def __init__(self, machine: Machine, program: Program) -> None:
        self._machine = machine
        warps = machine.warps
        self.place = np.full((warps, 32), EXITED, np.int64)
        self.held = np.zeros((warps, 32), np.bool_)
        #: The first block in execution order at which lanes of a warp stand: those run, if they are not held.
        self.current = np.full(warps, EXITED, np.int64)
        self.ready = np.zeros(warps, np.bool_)
        #: Whether all lanes of a warp stand there.
        self.uniform = np.zeros(warps, np.bool_)
        #: The steps of the launch, and in which each warp has run last.
        self.steps = 0
        self.last_run = np.zeros(warps, np.int64)
        #: What held lanes wait for: key -> [(row, lanes, operation)].
        self.waits: dict[object, list[tuple[int, NDArray[np.bool_], Operation]]] = {}
        #: Rows whose timed waits give up: mbarrier.try_wait then returns false.
        self.timed_out = np.zeros(warps, np.bool_)
        self._aligned = np.array([block.aligned for block in program.blocks], np.bool_)
        self._separable = np.array([block.separable for block in program.blocks], np.bool_)
        #: Whether lanes of a warp are run apart where they make strong accesses, as hardware may do.
        self._apart = machine.timeline.schedule == "random" and bool(self._separable.any())
        self._fair_place = -1
        #: Lanes that have gone on while others of their warp, who come first, had not caught up.
        self._ahead = np.zeros((warps, 32), np.bool_)
        self._any_ahead = False

    def begin(self, rows: NDArray[np.int64], entry: int) -> None:
        """New CTAs are in these rows: their threads stand at the entry."""
        self.place[rows] = np.where(self._machine.live[rows], entry, EXITED)
        self.held[rows] = False
        self.last_run[rows] = self.steps
        self.refresh(rows)

    def leave(self, group: Group) -> None:
        """All lanes of a group have left the kernel."""
        group.store(self.place, np.asarray(EXITED))
        self.refresh(group.indices)

    def refresh(self, rows: NDArray[np.int64]) -> None:
        """Recompute where these warps stand after their lanes moved or were held or woken."""
        place = self.place[rows]
        current = self._first(rows, place) if self._any_ahead else place.min(axis=1)
        candidates = (place == current[:, None]) & ~self.held[rows]
        self.current[rows] = current
        self.ready[rows] = candidates.any(axis=1) & (current != EXITED)
        self.uniform[rows] = candidates.all(axis=1)

    def _first(self, rows: NDArray[np.int64], place: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where these warps go on: what wants the whole warp waits for others, where lanes came there ahead of them."""
        waits = self._ahead[rows] & self._aligned[np.minimum(place, len(self._aligned) - 1)]
        current = np.where(waits, EXITED, place).min(axis=1)
        current = np.where(current == EXITED, place.min(axis=1), current)
        whole = ((place == current[:, None]) | (place == EXITED)).all(axis=1)
        if whole.any():
            self._ahead[rows[whole]] = False
            self._any_ahead = bool(self._ahead.any())
        return current

    def move(self, group: Group, place: int) -> None:
        """All lanes of a group go to a block."""
        if group.mask is None:
            self.place[group.rows] = place
            if self.uniform[group.rows].all():
                self.current[group.rows] = place
                return
        else:
            group.store(self.place, np.asarray(place))
        self.refresh(group.indices)

    def hold(self, group: Group, key: Callable[[int], object], operation: Operation) -> None:
        """Keep lanes where they are until `wake(key(row))`."""
        group.store(self.held, np.asarray(True))
        active = group.active
        for position, row in enumerate(group.indices):
            self.waits.setdefault(key(int(row)), []).append((int(row), active[position].copy(), operation))
        self.refresh(group.indices)

    def wake(self, key: object) -> None:
        """Let the lanes that wait for a key try again."""
        waiting = self.waits.pop(key, None)
        if not waiting:
            return
        for row, lanes, _ in waiting:
            self.release(row, lanes)
        self.refresh(np.unique([row for row, _, _ in waiting]))

    def release(self, row: int, lanes: NDArray[np.bool_]) -> None:
        """Lanes wait no longer; `refresh` comes next."""
        self.held[row] &= ~lanes

    # Who goes next.

    def pick_fairly(self) -> Group | None:
        """One place after the other, also those whose lanes wait for the rest of their warp to come.

        Except where instructions want the whole warp: there lanes wait on, unless nothing else helps (`parked`).
        """
        free = (self.place != EXITED) & ~self.held
        parked = self.place != self.current[:, None]
        free &= ~(parked & self._aligned[np.minimum(self.place, len(self._aligned) - 1)])
        places = self.place[free]
        if not len(places):
            return None
        later = places[places > self._fair_place]
        self._fair_place = place = int(later.min() if len(later) else places.min())
        mask = free & (self.place == place)
        self._go_ahead(mask & parked)
        rows = np.flatnonzero(mask.any(axis=1))
        mask = mask[rows]
        return Group(self._machine, rows, None if mask.all() else mask)

    def _go_ahead(self, lanes: NDArray[np.bool_]) -> None:
        """Lanes, (warps, 32), go on before others of their warps."""
        if lanes.any():
            self._ahead |= lanes
            self._any_ahead = True

    def pick(self) -> Group | None:
        """The warps to run next: those at the first block, or now and then those that waited longest."""
        ready = self.ready
        if not ready.any():
            return None
        current, timeline = self.current, self._machine.timeline
        if self._apart and not timeline.random.getrandbits(2) and (group := self._some_ahead()) is not None:
            return group
        if timeline.schedule == "random":
            rows = np.flatnonzero(ready)
            place = current[rows[timeline.random.randrange(len(rows))]]
        else:
            place = np.where(ready, current, EXITED).min()
            if self.steps % 64 == 0:
                oldest = int(np.where(ready, self.last_run, self.steps).argmin())
                if ready[oldest] and self.steps - self.last_run[oldest] > _PATIENCE:
                    place = current[oldest]
        rows = np.flatnonzero(ready & (current == place))
        if self._apart and self._separable[place]:
            return self._some_lanes(rows, (self.place[rows] == place) & ~self.held[rows])
        if self.uniform[rows].all():
            return Group(self._machine, rows, None)
        return Group(self._machine, rows, (self.place[rows] == place) & ~self.held[rows])

    def _some_lanes(self, rows: NDArray[np.int64], mask: NDArray[np.bool_]) -> Group:
        """Some of these lanes (warps, 32), at random: the others come later.

        So bar.warp.sync that is missing between strong accesses, which do not race, shows as a wrong result.
        """
        bits = self._machine.timeline.random.getrandbits(32)
        chosen = mask & (bits >> np.arange(32) & 1).astype(np.bool_)
        some = chosen.any(axis=1)
        if not some.any():
            return Group(self._machine, rows, None if mask.all() else mask)
        return Group(self._machine, rows[some], chosen[some])

    def _some_ahead(self) -> Group | None:
        """Lanes that wait for others of their warp to come, at a place where they may make strong accesses before."""
        ahead = (self.place != EXITED) & ~self.held & (self.place > self.current[:, None])
        ahead &= self._separable[np.minimum(self.place, len(self._separable) - 1)]
        places = np.unique(self.place[ahead])
        if not len(places):
            return None
        ahead &= self.place == places[self._machine.timeline.random.randrange(len(places))]
        rows = np.flatnonzero(ahead.any(axis=1))
        return Group(self._machine, rows, ahead[rows])

    def parked(self) -> Group | None:
        """Lanes of divergent warps whose first lanes are held, at one place."""
        free = (self.place != EXITED) & ~self.held & (self.place != self.current[:, None])
        rows = np.flatnonzero(free.any(axis=1))
        if not len(rows):
            return None
        place = np.where(free, self.place, EXITED)[rows].min()
        mask = free[rows] & (self.place[rows] == place)
        chosen = mask.any(axis=1)
        return Group(self._machine, rows[chosen], mask[chosen])
