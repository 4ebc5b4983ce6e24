"""Bulk copies from shared memory, in the groups in which warps wait for them. PTX ISA 9.7.9.25.4."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.engines.work import AsyncWork


@dataclass(slots=True, eq=False)
class BulkStore:
    """A copy to global memory: the lanes (32,) that issued it, whether it has read its source and is complete."""

    lanes: NDArray[np.bool_]
    work: AsyncWork
    read: bool = False
    done: bool = False


class BulkGroups:
    """The bulk stores of each warp by group."""

    def __init__(self) -> None:
        #: Of each warp, the open group last.
        self.groups: dict[int, list[list[BulkStore]]] = {}

    def add(self, warp: int, store: BulkStore) -> None:
        """A warp issues a copy: it belongs to the open group."""
        self.groups.setdefault(warp, [[]])[-1].append(store)

    def commit(self, warp: int) -> None:
        """The open group is closed, empty or not."""
        self.groups.setdefault(warp, [[]]).append([])

    def awaited(self, warp: int, pending: int) -> list[list[BulkStore]]:
        """The groups before the latest `pending`."""
        groups = self.groups.get(warp, [[]])
        return groups[: max(len(groups) - 1 - pending, 0)]

    def retire(self, warp: int, count: int) -> None:
        """The first `count` groups are complete and waited for."""
        groups = self.groups.get(warp)
        if groups is not None:
            del groups[:count]
