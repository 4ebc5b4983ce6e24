"""tcgen05.fence: which accesses to tensor memory a synchronization releases and acquires. 9.7.16.6.4."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


class TensorFences:
    """What fences before and after synchronization of threads cover, by warp.

    An access is a load (row, interval) or a store (number of the operation).
    """

    def __init__(self, rows: int) -> None:
        #: Accesses of each warp since its last synchronization, and those after which it has synchronized without a
        #: tcgen05.fence::before_thread_sync: by warp, and all of them.
        self._fresh: dict[int, set[object]] = {}
        self._leaked: dict[int, set[object]] = {}
        self.unfenced: set[object] = set()
        #: Operations whose completion the warp's tcgen05 instructions may rely on.
        self.known: list[set[int]] = [set() for _ in range(rows)]

    def clear(self, rows: NDArray[np.int64]) -> None:
        """Warps of other CTAs begin."""
        for row in rows.tolist():
            if self.known[row]:
                self.known[row] = set()
            if self._fresh or self._leaked:
                self.before_thread_sync(row)

    def accessed(self, row: int, accesses: Iterable[object]) -> None:
        """A warp has waited for its loads or stores."""
        self._fresh.setdefault(row, set()).update(accesses)

    def waiting(self, rows: Iterable[int]) -> set[int]:
        """Those of these warps that have accesses which no fence has followed yet."""
        return self._fresh.keys() & set(rows) if self._fresh else set()

    def synchronized(self, row: int) -> None:
        """A warp synchronizes: accesses that no fence has followed are not part of what it releases."""
        fresh = self._fresh.pop(row, None)
        if fresh:
            self.unfenced |= fresh
            self._leaked.setdefault(row, set()).update(fresh)

    def before_thread_sync(self, row: int) -> None:
        """tcgen05.fence::before_thread_sync, and commit: the warp's loads and stores come before what it releases."""
        self._fresh.pop(row, None)
        self.unfenced -= self._leaked.pop(row, set())

    def after_thread_sync(self, row: int, operations: set[int]) -> None:
        """tcgen05.fence::after_thread_sync: the warp's tcgen05 instructions come after all that happens before it."""
        self.known[row] = set(operations)
