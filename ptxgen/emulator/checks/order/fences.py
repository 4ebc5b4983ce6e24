"""What fences of threads order: fence, membar, fence.proxy.async and fence.mbarrier_init. PTX ISA 9.7.13."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.order.strong_accesses import StrongAccesses
from ptxgen.emulator.checks.order.waits import WaitClocks
from ptxgen.emulator.memory.order import CTA, level
from ptxgen.emulator.observer import Lanes, Observer
from ptxgen.emulator.state.convergence import bits_of


class FenceClocks(Observer):
    """From an acquiring fence on relaxed waits and loads count, and from a releasing one what precedes it for relaxed
    arrivals and stores, in the scope of the fence.
    """

    def __init__(self, happens_before: HappensBefore, waits: WaitClocks, strong: StrongAccesses) -> None:
        self._happens_before, self._waits, self._strong = happens_before, waits, strong

    def fence(
        self,
        warps: NDArray[np.int64],
        lanes: Lanes,
        *,
        acquires: bool,
        releases: bool,
        sequences: bool,
        proxy: bool,
        scope: str | None,
    ) -> None:
        happens_before, strong, width = self._happens_before, self._strong, level(scope)
        for warp, lane_bits in zip(warps.tolist(), bits_of(lanes).tolist(), strict=True):
            if acquires:
                self._waits.acquire(warp, wide=width > CTA)
                strong.acquire_fence(warp, width)
            if sequences:
                strong.sequence_fence(warp, width)
            if proxy:
                happens_before.fence_proxy(warp, lane_bits, heap=False)
            if releases:
                happens_before.release_fence(warp, lane_bits, wide=width > CTA)
                strong.release_fence(warp, width)

    def proxy_fence(self, warps: NDArray[np.int64], lanes: Lanes, *, shared: bool, heap: bool) -> None:
        for warp, lane_bits in zip(warps.tolist(), bits_of(lanes).tolist(), strict=True):
            self._happens_before.fence_proxy(warp, lane_bits, shared=shared, heap=heap)
