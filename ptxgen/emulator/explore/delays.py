"""Hold one warp, or all warps of a CTA, at one point of its way until nothing else can proceed.

A point is the moment before a block that synchronizes: a release, an arrival, a wait, a strong access, an atomic, or
the issue of asynchronous work. The program of an exploration is divided at each of them (`Program.of(divided=True)`).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptxgen.emulator.arrays import all_set, count_nonzero
from ptxgen.emulator.load.program import EXITED
from ptxgen.emulator.state.group import Group

if TYPE_CHECKING:
    from ptxgen.emulator.load.program import Block, Program
    from ptxgen.emulator.state.machine import Machine
    from ptxgen.emulator.state.warps import Warps


class Point(NamedTuple):
    """A moment at which a warp can be held: before it executes a block for the n-th time."""

    #: %ctaid, linear, and the warp within the CTA; -1 stands for all warps of the CTA, at its beginning.
    cta: int
    warp: int
    #: Rank of the block.
    block: int
    #: Counts from 1.
    occurrence: int


#: The key of held warps in `Warps.waits`.
_HELD = "held by an exploration"


class Delays:
    """Counts the points that warps pass, and holds what is to be held at one of them (`held`; None: nothing)."""

    def __init__(self, machine: Machine, warps: Warps, program: Program, held: Point | None = None) -> None:
        self._machine, self._warps, self._held = machine, warps, held
        self._entry = program.entry
        self._blocks = program.blocks
        self._is_point = np.array([_synchronizes(block) for block in program.blocks], np.bool_)
        self._is_point[program.entry] = True
        self._passed: Counter[tuple[int, int, int]] = Counter()
        #: The points in the order in which warps came to them.
        self.points: list[Point] = []
        #: Points at which nothing but the warp itself could proceed: to hold it there changes nothing.
        self.alone: set[Point] = set()
        #: Warps that are held now.
        self.holding: set[int] = set()
        self.reached = False

    def before(self, group: Group, pc: int) -> Group | None:
        """The warps of a group that may execute a block now; those that are to be held stay before it."""
        if not self._is_point[pc]:
            return group
        stopped: list[int] = []
        alone = group.size == 1 and not self._others_proceed(int(group.indices[0]))
        for warp in group.indices.tolist():
            point = self._point(warp, pc)
            if not self.points or self.points[-1] != point:
                self.points.append(point)
            if alone:
                self.alone.add(point)
            if self._is_held(point):
                stopped.append(warp)
        return self._hold(group, stopped, pc) if stopped else group

    def _others_proceed(self, warp: int) -> bool:
        """Whether another warp can run, or asynchronous work is left."""
        ready = self._warps.ready
        return bool(count_nonzero(ready) > bool(ready[warp])) or len(self._machine.timeline) > 0

    def _point(self, warp: int, pc: int) -> Point:
        """The point to which a warp has come: the same as before where it polls and no other warp has come to any."""
        cta = int(self._machine.cta_number[self._machine.cta_slot[warp]])
        key = cta, warp % self._machine.warps_per_cta, pc
        last = self.points[-1] if self.points else None
        if last is None or key != (last.cta, last.warp, last.block):
            self._passed[key] += 1
        return Point(*key, self._passed[key])

    def _is_held(self, point: Point) -> bool:
        if self._held is None or (self.reached and self._held.warp >= 0):
            return False
        if self._held.warp < 0:
            return point.cta == self._held.cta and point.block == self._entry and point.occurrence == 1
        return point == self._held

    def _hold(self, group: Group, stopped: list[int], pc: int) -> Group | None:
        """Keep whole warps where they are, lanes that wait for others of their warp included."""
        self.reached = True
        self.holding.update(stopped)
        for warp in stopped:
            lanes = (self._warps.pc[warp] != EXITED) & ~self._warps.held[warp]
            whole = Group(self._machine, np.array([warp]), None if all_set(lanes) else lanes[None])
            self._warps.hold(whole, lambda _: _HELD, self._blocks[pc].operations[0])
        rest = ~np.isin(group.indices, stopped)
        return group.narrowed(np.broadcast_to(rest[:, None], (group.size, 32)))

    def release(self) -> bool:
        """Nothing else can proceed: let the held warps go on. False if there are none."""
        if not self.holding:
            return False
        self.holding.clear()
        self._warps.wake(_HELD)
        return True


def _synchronizes(block: Block) -> bool:
    """Whether order with other warps matters before this block."""
    traits = (each.traits for each in block.operations)
    return block.strong or any(each is not None and (each.synchronizes or each.asynchronous) for each in traits)
