"""What barriers of the CTA alone order, apart from mbarriers and everything else."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.observer import Observer


class ByBarriers(Observer):
    """For each warp the epochs of the warps of its cluster that bar.sync orders before it; it comes before `order` in
    the list of observers, since a barrier ends epochs.
    """

    def __init__(self, happens_before: HappensBefore) -> None:
        self._happens_before = happens_before
        self._clocks = np.zeros_like(happens_before.clocks)

    def slots_reused(self, slots: NDArray[np.int64]) -> None:
        self._clocks[self._happens_before.warps_of(slots)] = 0

    def ctas_synchronize(self, slots: NDArray[np.int64]) -> None:
        self._join(self._happens_before.warps_of(slots).reshape(len(slots), -1))

    def barrier_completes(self, slot: int, name: int, warps: list[int]) -> None:
        if warps:
            self._join(np.array([warps]))

    def _join(self, warps: NDArray[np.int64]) -> None:
        """Warps wait together: those of each barrier, (barriers, warps)."""
        clocks, members = self._clocks[warps], warps % self._happens_before.members
        barrier, warp = np.arange(len(warps))[:, None], np.arange(warps.shape[1])
        own = clocks[barrier, warp, members]
        clocks[barrier, warp, members] = np.maximum(own, self._happens_before.intervals(warps))
        self._clocks[warps] = clocks.max(axis=1, keepdims=True)

    def of(self, warp: int) -> NDArray[np.int64]:
        """The epochs (warps of the cluster) that bar.sync orders before a warp, its own among them."""
        clocks = self._clocks[warp].copy()
        clocks[warp % self._happens_before.members] = self._happens_before.clock(warp)
        return clocks
