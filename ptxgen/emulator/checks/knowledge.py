"""What a warp knows to have happened before: the clocks of warps, and the asynchronous operations that are complete."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ptxgen.syntax import Statement

#: The interval of what its own thread cannot rely on yet: a cp.async or tcgen05.ld that it has not waited for.
PENDING = 2**31 - 1


@dataclass(slots=True)
class AsyncOperation:
    """An asynchronous operation: what it is (`tensor copy`), where it was issued, for which CTA slot, by which row."""

    number: int
    what: str
    statement: Statement
    slot: int
    swizzle: str | None = None
    row: int | None = None


@dataclass(slots=True)
class Knowledge:
    """A point in happens-before: clocks by warp of the (resident) cluster, and operations known to be complete.

    `foreign` has the clocks of other clusters, by cluster; most programs never learn of any. `tensor` has clocks that
    count for accesses to tensor memory alone, which relaxed synchronisation between tcgen05.fence orders.
    """

    cluster: int
    clocks: NDArray[np.int64]
    operations: set[int] = field(default_factory=set)
    foreign: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    tensor: NDArray[np.int64] | None = None

    def copy(self) -> Knowledge:
        foreign = {cluster: clocks.copy() for cluster, clocks in self.foreign.items()} if self.foreign else {}
        return Knowledge(self.cluster, self.clocks.copy(), set(self.operations), foreign, self.tensor)

    @property
    def for_tensor_memory(self) -> NDArray[np.int64]:
        """The clocks that count for accesses to tensor memory."""
        return self.clocks if self.tensor is None else np.maximum(self.clocks, self.tensor)

    def join(self, other: Knowledge) -> None:
        self._join_clocks(other.cluster, other.clocks)
        for cluster, clocks in other.foreign.items():
            self._join_clocks(cluster, clocks)
        self.operations |= other.operations
        if other.tensor is not None:
            self.join_tensor(other.cluster, other.tensor)

    def join_tensor(self, cluster: int, clocks: NDArray[np.int64]) -> None:
        """Learn clocks that count for tensor memory alone; that of other clusters is out of reach."""
        if cluster == self.cluster:
            self.tensor = clocks.copy() if self.tensor is None else np.maximum(self.tensor, clocks)

    def _join_clocks(self, cluster: int, clocks: NDArray[np.int64]) -> None:
        mine = self.clocks if cluster == self.cluster else self.foreign.get(cluster)
        if mine is None:
            self.foreign[cluster] = clocks.copy()
        else:
            np.maximum(mine, clocks, out=mine)
