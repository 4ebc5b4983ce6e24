"""The global workspace in which the partial sums of a tile split along K are reduced."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Workspace:
    """A flag and the sums of each consumer warp of each CTA: first all flags, then the sums, 512 bytes per 4 registers.

    A cluster gives the sums of one tile at most: of the one within which its share begins. All flags are 0 before a
    launch, and after it. `slots` are CTAs.
    """

    slots: int
    cluster: tuple[int, int]
    warps: int
    registers: int
    d_type: str

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
