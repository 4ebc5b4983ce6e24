"""How tcgen05 operations are ordered with other threads: fences, commits and waits. PTX ISA 9.7.16.6.4, 9.7.16.12."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.order.waits import WaitClocks
from ptxgen.emulator.checks.tensor.fences import TensorFences
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.observer import Lanes, Observer

if TYPE_CHECKING:
    from ptxgen.emulator.state.signals import Signal

#: Kinds of work that tcgen05.commit tracks.
_BY_CORE = ("tcgen05.mma", "tcgen05.cp", "tcgen05.shift")


class TensorOrder(Observer):
    """Turns synchronization of tcgen05 operations into clocks."""

    def __init__(self, happens_before: HappensBefore, waits: WaitClocks, fences: TensorFences) -> None:
        self._happens_before, self._waits, self._fences = happens_before, waits, fences
        #: By slot and thread (warp, lane): the operations that its commits track, until all warps have observed them.
        self._issued: dict[int, dict[tuple[int, int | None], list[int]]] = {}
        #: By slot and operation: the issuing warp and its interval.
        self._intervals: dict[int, dict[int, tuple[int, int]]] = {}

    def slots_reused(self, slots: NDArray[np.int64]) -> None:
        for slot in slots.tolist() if self._issued else ():
            self._issued.pop(slot, None)
            self._intervals.pop(slot, None)

    def work_issued(self, work: AsyncWork) -> None:
        """An operation of another thread that is ordered before this one precedes it in the pipeline (9.7.16.6.2)."""
        if work.what not in _BY_CORE:
            return
        issued, thread = self._issued.setdefault(work.slot, {}), (work.warp, work.lane)
        own, intervals = issued.setdefault(thread, []), self._intervals.setdefault(work.slot, {})
        if len(issued) > 1:
            own += self._before(
                work.warp, intervals, {number for each in issued.values() for number in each} - set(own)
            )
        own.append(work.number)
        intervals[work.number] = work.warp, self._happens_before.clock(work.warp)

    def _before(self, warp: int, intervals: dict[int, tuple[int, int]], numbers: set[int]) -> list[int]:
        """The operations of other threads whose issue is ordered before what a warp issues now.

        Between the fences of tcgen05 a flag with relaxed accesses orders too (9.7.16.6.3).
        """
        happens_before = self._happens_before
        operations, members = happens_before.operations, happens_before.members
        clocks = happens_before.observed[warp].for_tensor_memory
        found: list[int] = []
        for number in sorted(numbers & operations.keys() & intervals.keys()):
            other, clock = intervals[number]
            observed = other == warp or clocks[other % members] >= clock
            if observed or happens_before.unfenced_side(warp, happens_before.actor(other), clock):
                found.append(number)
        return found

    def tensor_committed(
        self, warp: int, signal: Signal, commits: Sequence[tuple[int, AsyncWork]], offset: int
    ) -> None:
        """All earlier operations of the thread are then complete, those of earlier commits too (9.7.16.12.1)."""
        happens_before, issuer, thread = self._happens_before, commits[0][1].slot, (warp, commits[0][1].lane)
        self._fences.before_thread_sync(warp)  # implied
        given = happens_before.given[signal] = happens_before.release(warp)
        issued = self._issued.setdefault(issuer, {})
        earlier = [number for number in issued.get(thread, ()) if number in happens_before.operations]
        issued[thread] = earlier
        intervals = self._intervals.get(issuer, {})
        for number in [each for each in intervals if each not in happens_before.operations]:
            del intervals[number]
        given.operations.update(earlier)
        for operation in map(happens_before.operations.__getitem__, earlier):
            operation.mbarrier = offset if operation.mbarrier is None else operation.mbarrier
        for slot, work in commits:
            if slot == issuer:
                happens_before.forget(work.number)
            else:
                earlier.append(work.number)  # a wait for this, or a later one, observes its completion
                given.operations.add(work.number)

    def tensor_fence(self, warps: NDArray[np.int64], lanes: Lanes, *, before: bool) -> None:
        for warp in warps.tolist():
            if before:
                self._fences.before_thread_sync(warp)
                self._happens_before.before_thread_sync(warp)
            else:
                self._happens_before.after_thread_sync(warp, self._waits.unfenced.get(warp))
                observed = self._happens_before.observed[warp]
                self._fences.after_thread_sync(warp, observed.operations, observed.for_tensor_memory)
