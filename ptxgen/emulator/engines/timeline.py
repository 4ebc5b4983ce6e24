"""Virtual time: when asynchronous work completes.

Time counts executed block steps. Work is queued with a delay that the schedule decides: `eager` completes it as early
as legal (at once), `late` as late as legal (only when no thread can run), `random` after a seeded random delay. Work
in the same pipe completes in the order of its issue. What strong loads return follows the schedule too
(`checks.order.stale_loads`). With `machine` time counts cycles of a described machine (`ptxgen.timing.schedule`): a
subclass says when work completes and which warp issues next.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ptxgen.emulator.engines.work import AsyncWork
    from ptxgen.syntax import Instruction

Schedule = Literal["eager", "late", "random", "machine"]
Action = Callable[[], None]

#: Upper end of random delays, in block steps: enough for a CTA to run a K tile ahead or behind.
_RANDOM_SPAN = 400
#: Of so many timed waits one ends before its phase completes.
_GIVES_UP = 8


class Timeline:
    """Queued work in the order of its virtual time."""

    #: True: this schedule decides which warp issues next (`pick`).
    paces = False
    #: False: MMAs and copies move no data, where no instruction reads what they produce.
    computes = True

    def __init__(self, schedule: Schedule, seed: int) -> None:
        self.schedule: Schedule = schedule
        self.seed = seed
        #: True: threads that poll memory run last; every second seed lets others run as far as they can.
        self.starves = schedule == "random" and bool(seed & 1)
        self.now = 0
        self._queue: list[tuple[float, int, Action]] = []
        self._sequence = 0
        self._pipes: dict[object, float] = {}

    @cached_property
    def random(self) -> random.Random:
        """What `random` decides by."""
        return random.Random(self.seed)

    @cached_property
    def _timed_waits(self) -> random.Random:
        return random.Random(f"timed waits {self.seed}")

    def submit(self, action: Action, *, pipe: object = None, works: Sequence[AsyncWork] = ()) -> None:
        """Queue the completion of `works`, issued now; `pipe` keeps the order among work of the same pipe."""
        if self.schedule == "eager":
            action()
            return
        if self.schedule == "late":
            due = float("inf")
        else:
            due = self.now + self.random.randrange(_RANDOM_SPAN)
            if pipe is not None:
                due = self._pipes[pipe] = max(due, self._pipes.get(pipe, 0.0))
        self._sequence += 1
        heapq.heappush(self._queue, (due, self._sequence, action))

    def pick(self, ready: NDArray[np.bool_], current: NDArray[np.int64]) -> tuple[NDArray[np.int64], int] | None:
        """The warps that issue next, of the ready ones, and their pc; None where none is. Of schedules that pace.

        Both arrays (warps,) change where work completes meanwhile.
        """
        raise NotImplementedError

    def runs(self, warps: Sequence[int], rank: int) -> None:
        """Warps begin to execute a block. Of schedules that pace."""

    def blocks(self, warp: int, key: object, statement: Instruction) -> None:
        """A warp begins to wait at an instruction for what `key` names."""

    def wakes(self, warp: int, key: object) -> None:
        """What a warp has waited for has come: it executes its instruction again."""

    def gives_up(self) -> bool:
        """Whether a timed wait (mbarrier.try_wait) reaches its time limit at once: now and then with `random`."""
        return self.schedule == "random" and not self._timed_waits.randrange(_GIVES_UP)

    def last(self, action: Action) -> None:
        """Queue work that is done only when no thread can run."""
        self._sequence += 1
        heapq.heappush(self._queue, (float("inf"), self._sequence, action))

    def advance(self, steps: int) -> None:
        """Let time pass, and do what falls due."""
        self.now += steps
        while self._queue and self._queue[0][0] <= self.now:
            heapq.heappop(self._queue)[2]()

    def jump(self) -> bool:
        """Advance to the next piece of work and do it: no thread can run before. False if there is none."""
        if not self._queue:
            return False
        due, _, action = heapq.heappop(self._queue)
        if due != float("inf"):
            self.now = max(self.now, int(due))
        action()
        return True

    def __len__(self) -> int:
        return len(self._queue)
