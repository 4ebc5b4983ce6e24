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

#: What commits wait for.
_BY_CORE = ("tcgen05.mma", "tcgen05.cp", "tcgen05.shift")


class TensorOrder(Observer):
    """Turns synchronization of tcgen05 operations into clocks."""

    def __init__(self, happens_before: HappensBefore, waits: WaitClocks, fences: TensorFences) -> None:
        self._happens_before, self._waits, self._fences = happens_before, waits, fences
        #: By slot and thread (row, lane), the operations that it has issued and that not everybody has observed.
        self._issued: dict[int, dict[tuple[int, int | None], list[int]]] = {}

    def slots_reused(self, slots: NDArray[np.int64]) -> None:
        for slot in slots.tolist() if self._issued else ():
            self._issued.pop(slot, None)

    def work_issued(self, work: AsyncWork) -> None:
        if work.what in _BY_CORE:
            self._issued.setdefault(work.slot, {}).setdefault((work.row, work.lane), []).append(work.number)

    def tensor_committed(self, row: int, signal: Signal, commits: Sequence[tuple[int, AsyncWork]], offset: int) -> None:
        """All earlier operations of the thread are over then, those of earlier commits too (9.7.16.12.1)."""
        happens_before, issuer, thread = self._happens_before, commits[0][1].slot, (row, commits[0][1].lane)
        self._fences.before_thread_sync(row)  # implied
        given = happens_before.given[signal] = happens_before.release(row)
        issued = self._issued.setdefault(issuer, {})
        earlier = [number for number in issued.get(thread, ()) if number in happens_before.operations]
        issued[thread] = earlier
        given.operations.update(earlier)
        for operation in map(happens_before.operations.__getitem__, earlier):
            operation.mbarrier = offset if operation.mbarrier is None else operation.mbarrier
        for slot, work in commits:
            if slot == issuer:
                happens_before.forget(work.number)
            else:
                earlier.append(work.number)  # who waits for this, or a later one, has observed that it has come
                given.operations.add(work.number)

    def tensor_fence(self, rows: NDArray[np.int64], lanes: Lanes, *, before: bool) -> None:
        for row in rows.tolist():
            if before:
                self._fences.before_thread_sync(row)
                self._happens_before.before_thread_sync(row)
            else:
                self._happens_before.after_thread_sync(row, self._waits.unfenced.get(row))
                self._fences.after_thread_sync(row, self._happens_before.known[row].operations)
