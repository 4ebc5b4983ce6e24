"""Which tile a CTA computes, and which next."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from ptxgen.gemm.errors import PlanError


@dataclass(frozen=True)
class TileScheduler:
    """The grid has one CTA per tile, M first. With `clc` a CTA that runs takes over tiles whose CTAs have not begun.

    With `static` the grid has at most `slots` CTAs, each of which goes on to the tile that many further on. With
    `stream` (stream-K) it has `slots`, all of which must run at once. The tiles of the last wave, if it is not full,
    and of the wave before it are split into even shares of K blocks; the cluster with the first K blocks of a tile adds
    the sums of the others to its own and stores the tile.

    With `order` hilbert the kernel reads where the tile of a number is from a table in global memory. Else, with
    `panel` > 0: tiles go along N `panel` at a time before the next row of tiles, so that those that run at the same
    time share more of A and B. `cluster` is CTAs along M and N. `batched`: the tiles of a batch come after those of the
    one before, in the third dimension of the grid or in one row of numbers. `split_k`: CTAs of a cluster that share a
    tile, side by side in the third dimension; `k_clusters`: clusters that do. `extents`: the entry's parameters with M
    and N. `backward`: along M from the last tile to the first, as later rows take longer; a static kernel takes a later
    tile and its mirror image one after the other, so that all CTAs have about as much to do.

    `grouped`, as mixtures of experts need it: with contiguous B has a matrix for each group of rows of A, and a table
    in global memory names that of each row; with masked the table has how many rows of each batch count, and tiles that
    begin past them are skipped.
    """

    kind: str
    rows: int
    columns: int
    cluster: tuple[int, int] = (1, 1)
    panel: int = 0
    slots: int = 0
    batched: bool = False
    order: str = "panels"
    split_k: int = 1
    grouped: str = "none"
    extents: tuple[str, str] = ("m", "n")
    backward: bool = False
    k_clusters: int = 1

    def __post_init__(self) -> None:
        if self.kind in ("static", "stream") and self.slots < self.cluster_ctas:
            raise PlanError(f"slots must be at least {self.cluster_ctas}, the CTAs of a cluster, not {self.slots}")

    @property
    def persistent(self) -> bool:
        return self.kind != "grid"

    @property
    def folded(self) -> bool:
        """Whether a CTA takes tiles in pairs, one as far from the last row as the other from the first."""
        return self.backward and self.kind == "static"

    @property
    def cluster_ctas(self) -> int:
        return self.cluster[0] * self.cluster[1]

    @property
    def cluster_size(self) -> int:
        """CTAs of a cluster, those that share a tile included."""
        return self.cluster_ctas * self.split_k

    @property
    def parts(self) -> int:
        """CTAs that share a tile, each with its share of K."""
        return self.split_k * self.k_clusters

    @property
    def masked(self) -> bool:
        return self.grouped == "masked"

    @property
    def group_rows(self) -> int:
        """Rows of A that must be of one group, or are skipped together: those of a cluster's tiles."""
        return self.rows * self.cluster[0]

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
            x = -(-x // 2) if self.folded else x
            clusters = min(x * y * batches, self.slots) // self.cluster_ctas
            return max(clusters, 1) * self.cluster[0], self.cluster[1], 1
        if self.splits:
            return self.slots // self.cluster_ctas * self.cluster[0], self.cluster[1], 1
        if y > 65535:
            raise PlanError(f"N = {n} makes {y} tiles of {self.columns}; a grid has at most 65535 in y")
        if batches * self.parts > 65535:
            split = f", {self.parts} CTAs each," if self.parts > 1 else ""
            raise PlanError(f"{batches} batches{split} do not fit: a grid has at most 65535 in z")
        return x, y, batches * self.parts

    def tiles(self, m: int, n: int) -> int:
        """Tiles of clusters of one batch."""
        return prod(
            -(-extent // (tile * ctas))
            for extent, tile, ctas in zip((m, n), (self.rows, self.columns), self.cluster, strict=True)
        )

    def equal_tiles(self, m: int, n: int, batches: int = 1) -> int:
        """The tiles over which the clusters of a static scheduler walk, if all take as long; else 0."""
        if self.kind != "static" or self.folded or self.grouped != "none":
            return 0
        return self.tiles(m, n) * batches

    @property
    def splits(self) -> bool:
        """Whether tiles may be split along K."""
        return self.kind == "stream"

    @property
    def hilbert(self) -> bool:
        return self.order == "hilbert"

    def table(self, m: int, n: int) -> npt.NDArray[np.uint32] | None:
        """Where each tile of a problem is, x + 65536·y in clusters, in the order of a Hilbert curve; None for panels.

        The curve fills the smallest square of a power of two that holds all tiles; what lies outside is left out.
        Raises PlanError for more tiles along M or N than such a word has.
        """
        if not self.hilbert:
            return None
        x, y = (
            -(-extent // (tile * ctas))
            for extent, tile, ctas in zip((m, n), (self.rows, self.columns), self.cluster, strict=True)
        )
        if max(x, y) > 65536:
            raise PlanError(f"order=hilbert takes at most 65536 tiles along M and N, not {x}×{y}")
        at_x, at_y = (each.ravel() for each in np.meshgrid(np.arange(x), np.arange(y), indexing="ij"))
        ranks = _hilbert_ranks(at_x, at_y, 1 << (max(x, y) - 1).bit_length())
        return (at_x + 65536 * at_y)[np.argsort(ranks)].astype(np.uint32)

    def explain(self) -> str:
        static = f"persistent, at most {self.slots} CTAs"
        words = {
            "grid": "one tile per CTA",
            "clc": "persistent, cluster launch control",
            "static": static,
            "stream": f"persistent, {self.slots} CTAs with even shares of K blocks",
        }[self.kind]
        if self.hilbert:
            words += ", along a Hilbert curve"
        else:
            words += f", panels of {self.panel} tiles along N" if self.panel else ", along M"
        words += ", batch after batch" if self.batched else ""
        words += ", a late tile and its mirror image one after the other" if self.folded else ""
        words += f", groups of {self.group_rows} rows or multiples" if self.grouped == "contiguous" else ""
        words += ", tiles past the rows of a batch skipped" if self.masked else ""
        if self.cluster_ctas > 1:
            words += f", clusters of {self.cluster[0]}×{self.cluster[1]} CTAs"
        if self.parts > 1:
            clusters = f"{self.k_clusters} " if self.k_clusters > 1 else ""
            words += f", K split over {clusters}" + (f"clusters of {self.split_k} CTAs" if self.split_k > 1 else "CTAs")
        return words


def _hilbert_ranks(x: npt.NDArray[np.int64], y: npt.NDArray[np.int64], side: int) -> npt.NDArray[np.int64]:
    """How far along the Hilbert curve of a square each point is; `side` is a power of two."""
    ranks = np.zeros_like(x)
    half = side // 2
    while half:
        right, upper = (x & half) > 0, (y & half) > 0
        ranks += half * half * ((3 * right) ^ upper)
        # Each quarter holds a curve that is turned so that its ends meet those of its neighbors.
        mirrored = right & ~upper
        x, y = np.where(mirrored, half - 1 - (x & (half - 1)), x), np.where(mirrored, half - 1 - (y & (half - 1)), y)
        x, y = np.where(upper, x, y), np.where(upper, y, x)
        half //= 2
    return ranks
