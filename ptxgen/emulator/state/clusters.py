"""Clusters: which CTAs form one, and the CTA and offset of an address in their shared memories. PTX ISA 2.2.2, 5.1.7.

The CTAs of a cluster are resident together, in consecutive slots by rank. An address in the shared window holds the
CTA's rank in bits 24 and up and an offset below, also for a CTA's own variables: kernels clear a bit of it to reach the
even CTA of a pair (CUTLASS, Triton), and ptxas makes it of the rank and the offset (SASS of sm_90 and sm_100).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks.registry import clusters, memory, races, tcgen05
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.global_memory import SHARED_WINDOW, WINDOW_BYTES

Dims = tuple[int, int, int]

#: The first bit of the rank in a shared address.
RANK_SHIFT = 24
OFFSET_MASK = (1 << RANK_SHIFT) - 1
#: A shared address has 32 bits, and wider registers are truncated (6.4.1): a generic address of shared memory will do.
_ADDRESS_MASK = WINDOW_BYTES - 1


class Clusters:
    """The clusters of a launch; without clusters each CTA is its own. `slots` is a multiple of `size`."""

    def __init__(self, grid: Dims, dims: Dims | None, slots: int, warps_per_cta: int) -> None:
        #: True: the launch specifies clusters.
        self.explicit = dims is not None
        self.dims: Dims = dims or (1, 1, 1)
        self.size = prod(self.dims)
        self.grid = grid
        self.grid_clusters: Dims = tuple(g // d for g, d in zip(grid, self.dims, strict=True))  # type: ignore[assignment]
        self.count = prod(self.grid_clusters)
        self.resident = slots // self.size
        self.warps_per_cta = warps_per_cta
        #: Warps of a cluster.
        self.warps = self.size * warps_per_cta
        self.slot_rank = np.arange(slots) % self.size
        self.cta_slot = np.repeat(np.arange(slots), warps_per_cta)
        self.cta_rank = self.slot_rank[self.cta_slot]
        #: Which slots hold a CTA that has ended while others of its cluster go on.
        self.ended = np.zeros(slots, np.bool_)

    # CTAs.

    def ctas(self, numbers: Sequence[int]) -> NDArray[np.int64]:
        """%ctaid of the CTAs of clusters of the grid, [CTAs, 3], those of a cluster by rank (x runs fastest)."""
        x, y, _ = self.grid_clusters
        number = np.array(numbers, np.int64)
        first = np.empty((len(number), 3), np.int64)
        first[:, 0], first[:, 1], first[:, 2] = number % x, number // x % y, number // (x * y)
        if self.size == 1:
            return first
        inside = np.array([self.place(rank) for rank in range(self.size)])
        return (first[:, None] * self.dims + inside).reshape(-1, 3)

    def place(self, rank: int) -> Dims:
        """%cluster_ctaid of a rank."""
        x, y, _ = self.dims
        return rank % x, rank // x % y, rank // (x * y)

    def slots(self, cluster: int) -> range:
        """The slots of a resident cluster."""
        return range(cluster * self.size, (cluster + 1) * self.size)

    def of(self, slot: int) -> int:
        """The resident cluster to which a slot belongs."""
        return slot // self.size

    def peer(self, slot: int, rank: int) -> int:
        """The slot of the CTA of a rank, in the cluster of `slot`. Raises MemoryFault if there is none."""
        if not 0 <= rank < self.size:
            raise MemoryFault(
                clusters.CLUSTER_RANK,
                f"access to the CTA of rank {rank}",
                rule=f"The cluster has {self.size} CTA{'s' if self.size > 1 else ''}",
            )
        peer = slot - slot % self.size + rank
        if self.ended[peer]:
            raise MemoryFault(
                races.CTA_EXIT,
                f"access to shared memory of the CTA of rank {rank}",
                rule="That CTA has exited, and its shared memory is gone",
            )
        return peer

    def multicast(self, slot: int, mask: int) -> list[int]:
        """The slots that a multicast mask names, in the cluster of `slot`: bit i is rank i. Raises MemoryFault."""
        if not mask or mask >> self.size:
            wrong = f"ranks outside the cluster (size {self.size})" if mask else "no CTA"
            raise MemoryFault(
                clusters.MULTICAST_MASK,
                f"multicast mask {mask:#x} selects {wrong}",
            )
        return [self.peer(slot, rank) for rank in range(self.size) if mask >> rank & 1]

    def pair(self, slot: int) -> tuple[int, int]:
        """The slots of the pair of CTAs (.cta_group::2) of `slot`, the even rank first. Raises MemoryFault."""
        even = slot - slot % self.size % 2
        if slot % self.size // 2 * 2 + 2 > self.size:
            raise MemoryFault(
                tcgen05.CTA_PAIR,
                f".cta_group::2 in the CTA of rank {slot % self.size}",
                rule=f"This CTA has no peer in a cluster of {self.size}",
            )
        return even, even + 1

    # Addresses.

    def own(self, warp: int, offset: int) -> int:
        """The shared address of an offset in a warp's own CTA."""
        return int(self.cta_rank[warp]) << RANK_SHIFT | offset

    def locate(self, warp: int, address: int, space: str | None) -> tuple[int, int]:
        """(slot, offset) of a shared address as `warp` uses it, generic if `space` is None. Raises MemoryFault."""
        if space is None:
            if not SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_BYTES:
                raise MemoryFault(memory.NOT_SHARED, f"generic address {address:#x} is not in shared memory")
            address, space = address - SHARED_WINDOW, "shared::cluster"
        address &= _ADDRESS_MASK
        slot = int(self.cta_slot[warp])
        rank = address >> RANK_SHIFT
        if space != "shared::cluster":
            if rank in (0, slot % self.size):
                return slot, address & OFFSET_MASK
            self._not_own(address)
        return self.peer(slot, rank), address & OFFSET_MASK

    def locate_all(
        self, warps: NDArray[np.int64], addresses: NDArray[np.int64], mask: NDArray[np.bool_] | None, space: str
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """(slots, offsets) of the shared addresses of some warps: addresses (warps, 32), slots (warps, 1) where each
        warp stays in its own CTA, else (warps, 32). Masked lanes stay in their own CTA. Raises MemoryFault.
        """
        own = self.cta_slot[warps][:, None]
        addresses = addresses & _ADDRESS_MASK
        if self.size == 1:
            return own, addresses
        ranks = addresses >> RANK_SHIFT
        if mask is not None:
            ranks = np.where(mask, ranks, own % self.size)
        offsets = addresses & OFFSET_MASK
        if space != "shared::cluster":
            remote = (ranks != 0) & (ranks != own % self.size)
            if any_set(remote):
                self._not_own(int(addresses[tuple(np.argwhere(remote)[0])]))
            return own, offsets
        if any_set((ranks < 0) | (ranks >= self.size)):
            bad = (ranks < 0) | (ranks >= self.size)
            self.peer(0, int(ranks[tuple(np.argwhere(bad)[0])]))
        slots = own - own % self.size + ranks
        if any_set(self.ended) and any_set(self.ended[slots]):
            reached = self.ended[slots] if mask is None else self.ended[slots] & mask
            for slot in slots[reached]:
                self.peer(int(slot), int(slot) % self.size)
        return slots, offsets

    def _not_own(self, address: int) -> None:
        raise MemoryFault(
            clusters.NOT_OWN_SHARED,
            f"shared address {address:#x} belongs to the CTA of rank {address >> RANK_SHIFT}",
            rule=".shared::cta reaches only the CTA's own shared memory",
        )
