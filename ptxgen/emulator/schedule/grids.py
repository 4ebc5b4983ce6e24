"""Programmatic dependent launch: launches in a stream that may begin before the one before has ended.

PTX ISA 9.7.13.13 (griddepcontrol) and the CUDA programming guide: a grid may begin once all CTAs of the one before have
executed griddepcontrol.launch_dependents or ended; its griddepcontrol.wait waits until all grids before have ended and
their memory is visible. The schedule decides when it begins: with `eager` only after the end of the one before,
as it may, with `late` as soon as it is allowed, and then ahead of the one before; with `random` at random.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from ptxgen.device import Status
from ptxgen.emulator.engines.timeline import Schedule
from ptxgen.emulator.schedule.deadlock import report_deadlock
from ptxgen.emulator.schedule.scheduler import Scheduler
from ptxgen.emulator.state.machine import GRIDS_BEFORE


class Grids:
    """Runs grids that are begun by `begin` one after the other, and gives the status of each.

    The first is a programmatic dependent of an `earlier` grid if there is one, which has ended.
    """

    def __init__(
        self,
        begin: Sequence[Callable[[], Scheduler]],
        schedule: Schedule,
        seed: int,
        earlier: Scheduler | None = None,
    ) -> None:
        self._earlier = earlier
        self._begin, self._schedule, self._seed = list(begin), schedule, seed
        self.begun: list[Scheduler] = []
        self.statuses: list[Status | None] = [None] * len(begin)
        #: Grids that cannot go on before another one does something.
        self._blocked: set[int] = set()

    @cached_property
    def _random(self) -> random.Random:
        return random.Random(self._seed)

    def run(self) -> list[Status | None]:
        """Run all to their end; None for those that did not reach it because another one failed."""
        if len(self._begin) == 1:
            self.begun = [self._begin[0]()]
            if self._earlier is not None:
                self.begun[0].machine.events.grid_follows(self._earlier.machine.events)
            return [self.begun[0].run()]
        with np.errstate(all="ignore"):
            while None in self.statuses:
                self._begin_next()
                running = [number for number in range(len(self.begun)) if self.statuses[number] is None]
                free = [number for number in running if number not in self._blocked]
                if not free:
                    self._give_up(running)
                    break
                number = self._random.choice(free) if self._schedule == "random" else free[-1]
                self._advance(number)
                if self.statuses[number] not in (None, "ok", "findings"):
                    break
        return self.statuses

    def _begin_next(self) -> None:
        number = len(self.begun)
        if number == len(self._begin) or (number and not self._allows(number - 1)):
            return
        scheduler = self._begin[number]()
        scheduler.machine.waits_for_grids = lambda: None in self.statuses[:number]
        if number:
            before = self.begun[-1].machine
            if before.releases:
                scheduler.machine.events.grid_follows(before.events)
        self.begun.append(scheduler)

    def _allows(self, number: int) -> bool:
        """Whether the grid after this one may begin; `eager` waits for the end of this one."""
        if self.statuses[number] is not None:
            return True
        return self._schedule != "eager" and self.begun[number].allows_dependents

    def _advance(self, number: int) -> None:
        scheduler = self.begun[number]
        before = scheduler.machine.effects
        self.statuses[number] = scheduler.advance()
        ended = self.statuses[number] is not None
        if scheduler.blocked:
            self._blocked.add(number)
        elif ended or scheduler.machine.effects != before:
            for other in self._blocked - {number}:
                self.begun[other].look_again()
            self._blocked.clear()
        if ended:
            for later in self.begun[number + 1 :]:
                later.warps.wake(GRIDS_BEFORE)

    def _give_up(self, running: Sequence[int]) -> None:
        for number in running:
            report_deadlock(self.begun[number])
            self.statuses[number] = "deadlock"
