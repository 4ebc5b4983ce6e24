"""The global workspace in which the partial sums of a tile split along K are reduced."""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.gemm.errors import PlanError

#: Room for the counters of split tiles, at the start of a workspace.
COUNTER_BYTES = 65536


@dataclass(frozen=True)
class Workspace:
    """A flag and the sums of each consumer warp of each CTA: first all flags, then the sums, 512 bytes per 4 registers.

    A cluster gives the sums of one tile at most: of the one within which its share begins. All flags are 0 before a
    launch, and after it. `slots` are CTAs. `loaded`: registers of a thread that hold sums of
    another cluster, all in flight at once.
    """

    slots: int
    cluster: tuple[int, int]
    warps: int
    registers: int
    d_type: str
    loaded: int = 32

    @property
    def flag_bytes(self) -> int:
        return -(-self.slots * self.warps * 4 // 256) * 256

    @property
    def warp_bytes(self) -> int:
        return self.registers * 32 * 4

    @property
    def cluster_flags(self) -> int:
        """Bytes from a warp's flag to that of its counterpart in the next cluster."""
        return self.cluster[0] * self.cluster[1] * self.warps * 4

    @property
    def cluster_bytes(self) -> int:
        """The same for its sums."""
        return self.cluster[0] * self.cluster[1] * self.warps * self.warp_bytes

    @property
    def bytes(self) -> int:
        return self.flag_bytes + self.slots * self.warps * self.warp_bytes


@dataclass(frozen=True)
class SplitWorkspace:
    """Counters and sums of tiles, each split along K over `clusters` that need not run at once.

    First a counter for each of the `warps` consumer warps of a tile, in the same place whatever the kernel and the
    problem; then for each tile the sums of its clusters, warp by warp, 512 bytes per 4 registers. All counters are 0
    before a launch, and after it: one workspace serves all launches of a stream. `cluster_parts`: CTAs of a cluster
    that share the tile. `loaded`: registers of a thread that hold sums of another cluster, all in flight at once.
    """

    clusters: int
    warps: int
    registers: int
    d_type: str
    cluster_parts: int = 1
    loaded: int = 32
    counter_bytes: int = COUNTER_BYTES

    @property
    def parts(self) -> int:
        """CTAs that share a tile."""
        return self.clusters * self.cluster_parts

    @property
    def even(self) -> bool:
        """Whether the parts are a power of two."""
        return self.parts & (self.parts - 1) == 0

    @property
    def warp_bytes(self) -> int:
        return self.registers * 32 * 4

    @property
    def part_bytes(self) -> int:
        """Bytes of the sums of a cluster."""
        return self.warps * self.warp_bytes

    @property
    def tile_bytes(self) -> int:
        return self.clusters * self.part_bytes

    def bytes_of(self, tiles: int) -> int:
        """Bytes for a problem of so many tiles. Raises PlanError for more than there are counters."""
        if 4 * self.warps * tiles > self.counter_bytes:
            most = self.counter_bytes // 4 // self.warps
            raise PlanError(f"k_clusters has counters for {most} tiles of {self.warps} warps, not for {tiles}")
        return self.counter_bytes + tiles * self.tile_bytes
