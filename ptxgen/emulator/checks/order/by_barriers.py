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
        self._clocks[self._happens_before.rows_of(slots)] = 0

    def ctas_synchronize(self, slots: NDArray[np.int64]) -> None:
        self._join(self._happens_before.rows_of(slots).reshape(len(slots), -1))

    def barrier_completes(self, slot: int, name: int, rows: list[int]) -> None:
        if rows:
            self._join(np.array([rows]))

    def _join(self, rows: NDArray[np.int64]) -> None:
        """Warps wait together: those of each barrier, (barriers, warps)."""
        clocks, members = self._clocks[rows], rows % self._happens_before.members
        barrier, warp = np.arange(len(rows))[:, None], np.arange(rows.shape[1])
        own = clocks[barrier, warp, members]
        clocks[barrier, warp, members] = np.maximum(own, self._happens_before.intervals(rows))
        self._clocks[rows] = clocks.max(axis=1, keepdims=True)

    def of(self, row: int) -> NDArray[np.int64]:
        """The epochs (warps of the cluster) that bar.sync orders before a warp, its own among them."""
        clocks = self._clocks[row].copy()
        clocks[row % self._happens_before.members] = self._happens_before.clock(row)
        return clocks
