"""Lanes of a warp that release, or fence, while others of it have accessed shared memory and do not.

An mbarrier.arrive releases what its own thread has done and observed (PTX ISA 8.8), and a fence.proxy.async fences
that: what other lanes have stored is among it if the lanes have synchronized before. Where a lane has done so at any
time in an interval of its warp, all that it does in the interval counts as covered: a race may be missed, none is
invented.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.memory.granules import distinct
from ptxgen.syntax import Statement

#: The lanes of a warp, one bit each.
ALL = 2**32 - 1
#: Intervals that are kept; beyond, the oldest are dropped.
_MOST = 256
_STEPS = 8


#: Exchanges of all lanes of a warp, and the words of its loads since the first of them, the oldest first.
Exchanged = tuple[Statement | NDArray[np.int64], ...]


class Step(NamedTuple):
    """The warp's clock when some lanes do it, the lanes (bits) that have done it by then, and the exchanges before."""

    clock: int
    lanes: int
    exchanged: Exchanged = ()


_NO_STEP = Step(0, 0)


@dataclass(slots=True)
class Part:
    """An interval in which only some lanes of a warp have done it: bits of the lanes, the warp's clock when the first
    did while others were behind, and when its lanes converged again (None: they have not).
    """

    warp: int
    lanes: int
    begin: int
    end: int | None = None
    #: Each time that some lanes do it; beyond the first few only the last.
    steps: list[Step] = field(default_factory=list)

    def lacks(self, lanes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these lanes have not done it."""
        return (self.lanes >> lanes & 1) == 0

    def until(self, observed: Callable[[int], bool]) -> Step:
        """The last step whose clock is observed."""
        return next((step for step in reversed(self.steps) if observed(step.clock)), _NO_STEP)


class PartialReleases:
    """The lanes of each warp that have done it since its lanes last converged, and by number of interval where others
    were behind.
    """

    def __init__(self) -> None:
        self._done: dict[int, int] = {}
        self._open: dict[int, Part] = {}
        self.parts: dict[int, Part] = {}

    def done(
        self, warp: int, lanes: int, *, accessed: int, interval: int, clock: int, exchanged: Exchanged = ()
    ) -> None:
        """Lanes of a warp release or fence, in an interval in which lanes have `accessed` something."""
        lanes |= self._done.get(warp, 0)
        self._done[warp] = lanes
        part = self._open.get(warp)
        if part is not None:
            part.lanes = lanes
            if len(part.steps) == _STEPS:
                part.steps.pop()
            part.steps.append(Step(clock, lanes, exchanged))
        elif accessed & ~lanes:
            self._open[warp] = self.parts[interval] = Part(warp, lanes, clock, steps=[Step(clock, lanes, exchanged)])
            if len(self.parts) > _MOST:
                del self.parts[next(iter(self.parts))]

    def forget_exchanges(self) -> None:
        """Words have other numbers from now on."""
        for part in self.parts.values():
            part.steps = [step._replace(exchanged=()) for step in part.steps]

    def among(self, intervals: NDArray[np.int64]) -> list[tuple[int, Part]]:
        """The kept intervals among these numbers, in ascending order."""
        if not self.parts:
            return []
        recent = intervals[intervals >= min(self.parts)]  # numbers grow: most accesses are older than all parts
        found = distinct(recent).tolist() if len(recent) else []
        return [(number, self.parts[number]) for number in found if number in self.parts]

    def converge(self, warps: NDArray[np.int64], clocks: NDArray[np.int64]) -> None:
        """The lanes of each of these warps converge: all that they did happens before what acquires this clock."""
        if not self._done:
            return
        converging = warps.tolist()
        for warp in self._done.keys() & converging:
            del self._done[warp]
            if (part := self._open.pop(warp, None)) is not None:
                part.end = int(clocks[converging.index(warp)])
