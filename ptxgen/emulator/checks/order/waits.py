"""What waits on mbarriers order: later accesses once the program looks at the result, or executes a fence."""

from __future__ import annotations

from collections.abc import Set

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.mbarrier.stale_waits import StaleWaits
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.order.mbarrier_scope import Scopes
from ptxgen.emulator.checks.order.mbarriers import MbarrierOrder
from ptxgen.emulator.checks.order.vector_clock import VectorClock
from ptxgen.emulator.observer import Lanes, Observer
from ptxgen.emulator.state.mbarriers import MBarrier
from ptxgen.syntax import Statement


class WaitClocks(Observer):
    """Waits that have succeeded and do not order anything yet; `watched` takes the registers whose reading matters."""

    def __init__(
        self, happens_before: HappensBefore, mbarriers: MbarrierOrder, waits: StaleWaits, watched: set[int]
    ) -> None:
        self._happens_before, self._mbarriers, self._waits, self._watched = happens_before, mbarriers, waits, watched
        #: By predicate register and warp: the clock that lanes acquire when they read the result, and its scopes.
        self._unread: dict[int, dict[int, tuple[VectorClock, Lanes, Scopes | None]]] = {}
        #: By warp: the clock that its relaxed waits have seen since its last acquiring fence.
        self.unfenced: dict[int, VectorClock] = {}
        #: By warp: scopes of the `unfenced` clock, for an acquiring fence of scope .cta and for a wider one.
        self._unfenced_scopes: dict[int, tuple[Scopes, Scopes]] = {}

    def slots_reused(self, slots: NDArray[np.int64]) -> None:
        for table in (self.unfenced, self._unfenced_scopes, *self._unread.values()):
            if table:
                for warp in self._happens_before.warps_of(slots).tolist():
                    table.pop(warp, None)
        for warp in self._happens_before.warps_of(slots).tolist():
            self._waits.forget(warp)

    def mbarrier_waited(
        self,
        warp: int,
        lanes: Lanes,
        mbarrier: MBarrier,
        statement: Statement,
        *,
        relaxed: bool,
        cluster: bool,
        result: int,
    ) -> None:
        """A relaxed wait orders later accesses only after a fence, others only in a program that reads the result."""
        self._mbarriers.waited(warp, mbarrier, statement)
        self._waits.waited(warp, mbarrier)
        clocks = self._mbarriers.of(mbarrier)
        completed, scopes = clocks.completed, clocks.scopes
        if completed is None:
            return
        if relaxed:
            self._awaits_fence(warp, completed, scopes, cluster=cluster)
            return
        unread = self._unread.setdefault(result, {})
        self._watched.add(result)
        before = unread.get(warp)
        unread[warp] = (
            completed,
            lanes if before is None else lanes | before[1],
            scopes[1:] if (scopes is not None and cluster) else scopes,
        )

    def registers_read(self, warps: NDArray[np.int64], registers: Set[int]) -> None:
        for predicate in registers & self._unread.keys():
            waiting = self._unread[predicate]
            for warp in warps.tolist():
                acquired = waiting.pop(warp, None)
                if acquired is not None:
                    self._happens_before.acquire(warp, *acquired)
            if not waiting:
                del self._unread[predicate]
                self._watched.discard(predicate)

    def _awaits_fence(self, warp: int, completed: VectorClock, scopes: Scopes | None, *, cluster: bool) -> None:
        """A relaxed wait has passed."""
        before = self.unfenced.get(warp)
        if scopes is not None or warp in self._unfenced_scopes:
            now = np.stack([completed.clocks] * 2) if scopes is None else scopes
            pair = now.copy(), np.broadcast_to(now[1:], now.shape) if cluster else now
            if before is not None:
                earlier = self._unfenced_scopes.get(warp) or (before.clocks, before.clocks)
                pair = np.maximum(pair[0], earlier[0]), np.maximum(pair[1], earlier[1])
            self._unfenced_scopes[warp] = pair
        if before is None:
            self.unfenced[warp] = completed.copy()
        else:
            before.join(completed)

    def acquire(self, warp: int, *, wide: bool) -> None:
        """A warp executes a fence that acquires, also from other CTAs if its scope is `wide` enough."""
        seen, scopes = self.unfenced.pop(warp, None), self._unfenced_scopes.pop(warp, None)
        if seen is not None:
            self._happens_before.acquire(warp, seen, None, scopes[wide] if scopes is not None else None)
