"""Which tile a CTA computes, and which next."""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.gemm.errors import PlanError


@dataclass(frozen=True)
class TileScheduler:
    """The grid has one CTA per tile, M first. With `clc` a CTA that runs takes over tiles whose CTAs have not begun.

    With `static` the grid has at most `slots` CTAs, each of which goes on to the tile that many further on.

    `panel` > 0: tiles go along N `panel` at a time before the next row of tiles, so that those that run at the same
    time share more of A and B. `cluster` is CTAs along M and N. `batched`: the tiles of a batch come after those of the
    one before, in the third dimension of the grid or in one row of numbers.
    """

    kind: str
    rows: int
    columns: int
    cluster: tuple[int, int]
    panel: int
    slots: int = 0
    batched: bool = False

    @property
    def persistent(self) -> bool:
        return self.kind != "grid"

    @property
    def cluster_ctas(self) -> int:
        return self.cluster[0] * self.cluster[1]

    @property
    def row_mask(self) -> int:
        """Bits of the CTAs of the first row of the cluster, along M."""
        return (1 << self.cluster[0]) - 1

    def column_mask(self, cta_group: int) -> int:
        """Bits of the CTAs of the first column of the cluster, along N; two columns of a pair."""
        return sum((1 << cta_group) - 1 << (y * self.cluster[0]) for y in range(self.cluster[1]))

    def grid(self, m: int, n: int, batches: int = 1) -> tuple[int, int, int]:
        """CTAs of a problem; whole clusters. Raises PlanError for more than a grid has."""
        x, y = (
            -(-extent // (tile * ctas)) * ctas
            for extent, tile, ctas in zip((m, n), (self.rows, self.columns), self.cluster, strict=True)
        )
        if self.kind == "static":
            clusters = min(x * y * batches, self.slots) // self.cluster_ctas
            return max(clusters, 1) * self.cluster[0], self.cluster[1], 1
        if y > 65535:
            raise PlanError(f"N = {n} makes {y} tiles of {self.columns}; a grid has at most 65535 in y")
        if batches > 65535:
            raise PlanError(f"{batches} batches do not fit: a grid has at most 65535 in z")
        return x, y, batches

    def explain(self) -> str:
        static = f"persistent, at most {self.slots} CTAs"
        words = {"grid": "one tile per CTA", "clc": "persistent, cluster launch control", "static": static}[self.kind]
        words += f", panels of {self.panel} tiles along N" if self.panel else ", along M"
        words += ", batch after batch" if self.batched else ""
        if self.cluster_ctas > 1:
            words += f", clusters of {self.cluster[0]}×{self.cluster[1]} CTAs"
        return words
