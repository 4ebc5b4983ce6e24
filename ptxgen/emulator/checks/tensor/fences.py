"""tcgen05.fence: which accesses to tensor memory a synchronization releases and acquires. 9.7.16.6.4."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.order.listener import OrderListener
from ptxgen.emulator.observer import Observer


class TensorFences(OrderListener, Observer):
    """What fences before and after synchronization of threads cover; a CTA has `per_cta` warps.

    An access is a load (warp, interval) or a store (number of the operation).
    """

    def __init__(self, per_cta: int) -> None:
        self._per_cta = per_cta
        #: Accesses of each warp since its last synchronization, and those after which it has synchronized without a
        #: tcgen05.fence::before_thread_sync: by warp, and all of them.
        self._fresh: dict[int, set[object]] = {}
        self._leaked: dict[int, set[object]] = {}
        self.unfenced: set[object] = set()
        #: By warp: operations whose completion its tcgen05 instructions may rely on.
        self.observed: defaultdict[int, set[int]] = defaultdict(set)
        #: By warp: clocks of the cluster's warps on whose loads its tcgen05 instructions may rely.
        self._clocks: dict[int, NDArray[np.int64]] = {}

    def slots_reused(self, slots: NDArray[np.int64]) -> None:
        for warp in (slots[:, None] * self._per_cta + np.arange(self._per_cta)).ravel().tolist():
            self.observed.pop(warp, None)
            self._clocks.pop(warp, None)
            if self._fresh or self._leaked:
                self.before_thread_sync(warp)

    def accessed(self, warp: int, accesses: Iterable[object]) -> None:
        """A warp has waited for its loads or stores."""
        self._fresh.setdefault(warp, set()).update(accesses)

    def intervals_end(self, warps: Sequence[int]) -> None:
        """Accesses that no fence has followed are not part of what these warps release."""
        if not self._fresh:
            return
        for warp in self._fresh.keys() & set(warps):
            fresh = self._fresh.pop(warp)
            self.unfenced |= fresh
            self._leaked.setdefault(warp, set()).update(fresh)

    def retired(self, warps: range, numbers: set[int]) -> None:
        for warp in self.observed.keys() & set(warps):
            self.observed[warp] -= numbers

    def before_thread_sync(self, warp: int) -> None:
        """tcgen05.fence::before_thread_sync, and commit: the warp's loads and stores come before what it releases."""
        self._fresh.pop(warp, None)
        self.unfenced -= self._leaked.pop(warp, set())

    def after_thread_sync(self, warp: int, operations: set[int], clocks: NDArray[np.int64]) -> None:
        """tcgen05.fence::after_thread_sync: the warp's tcgen05 instructions come after all that happens before it, the
        completed `operations` and what other warps have loaded (`clocks`).
        """
        self.observed[warp] = set(operations)
        self._clocks[warp] = clocks.copy()

    def follows(self, warp: int, member: int, clock: int) -> bool:
        """Whether the warp has executed tcgen05.fence::after_thread_sync since it observed a load of another, `member`
        of its cluster, in an interval.
        """
        clocks = self._clocks.get(warp)
        return clocks is not None and bool(clocks[member] >= clock)
