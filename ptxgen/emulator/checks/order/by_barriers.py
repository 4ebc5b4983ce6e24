"""What barriers of the CTA alone order, apart from mbarriers and everything else."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.observer import Observer
from ptxgen.syntax import Instruction


class ByBarriers(Observer):
    """For each warp the epochs of the warps of its cluster that bar.sync orders before it; it comes before `order` in
    the list of observers, since a barrier ends epochs.
    """

    def __init__(self, happens_before: HappensBefore) -> None:
        self._happens_before = happens_before
        self._clocks = np.zeros_like(happens_before.clocks)
        #: By warp, the epoch that the last barrier of the whole CTA ended; and the CTA slots whose `_clocks` lack it,
        #: since few programs need it.
        self._ended = np.zeros(len(self._clocks), np.int64)
        self._lacks = np.zeros(len(self._clocks) // happens_before.warps, np.bool_)

    def slots_reused(self, slots: NDArray[np.int64]) -> None:
        self._clocks[self._happens_before.warps_of(slots)] = 0
        self._lacks[slots] = False

    def ctas_synchronize(
        self, slots: NDArray[np.int64], name: int, statement: Instruction, *, threads: int | None
    ) -> None:
        warps = self._happens_before.warps_of(slots)
        self._ended[warps] = self._happens_before.intervals(warps)
        self._lacks[slots] = True

    def barrier_completes(self, slot: int, name: int, warps: list[int]) -> None:
        if warps:
            self._complete(slot)
            self._join(np.array(warps), self._happens_before.intervals(np.array(warps)))

    def _complete(self, slot: int) -> None:
        """Add what the last barrier of the whole CTA orders, and thus what all before it do."""
        if self._lacks[slot]:
            warps = self._happens_before.warps_of(np.array([slot]))
            self._join(warps, self._ended[warps])
            self._lacks[slot] = False

    def _join(self, warps: NDArray[np.int64], epochs: NDArray[np.int64]) -> None:
        """Warps wait together in these epochs."""
        self._clocks[warps, warps % self._happens_before.members] = epochs
        self._clocks[warps] = np.maximum.reduce(self._clocks[warps])

    def of(self, warp: int) -> NDArray[np.int64]:
        """The epochs (warps of the cluster) that bar.sync orders before a warp, its own among them."""
        self._complete(warp // self._happens_before.warps)
        clocks = self._clocks[warp].copy()
        clocks[warp % self._happens_before.members] = self._happens_before.clock(warp)
        return clocks
