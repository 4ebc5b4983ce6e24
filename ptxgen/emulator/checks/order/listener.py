"""The events of the vector clocks, for trackers of accesses that listen to them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class OrderListener:
    """Follows the synchronization of warps and their lanes; every method is empty here."""

    def released(self, warp: int, lanes: int) -> None:
        """Lanes (bits) of a warp release what they have done."""

    def intervals_end(self, warps: Sequence[int]) -> None:
        """These warps synchronize: their later accesses are in new intervals."""

    def converged(self, warps: NDArray[np.int64], clocks: NDArray[np.int64]) -> None:
        """All lanes of each of these warps synchronize: all their accesses happen before what acquires this clock."""

    def groups_converged(self, warp: int, groups: Sequence[int], clock: int) -> None:
        """Only lanes of these groups (bits) of a warp synchronize, those of each with each other."""

    def proxy_fenced(self, warp: int, lanes: int) -> None:
        """Lanes (bits) of a warp execute a fence.proxy.async that covers shared memory."""

    def keep_alive(self, slots: range, numbers: set[int]) -> None:
        """Take out of `numbers` the operations that tables of these CTA slots still name."""

    def retired(self, warps: range, numbers: set[int]) -> None:
        """Nothing can conflict with these operations any more: every warp (warps) of the cluster has observed them."""
