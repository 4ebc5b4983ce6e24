"""Tensor memory of an attention kernel: scores and output of each tile of 128 queries."""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.gemm.concepts.accumulator import ColumnRegion
from ptxgen.layouts.tmem import COLUMNS
from ptxgen.options import PlanError


@dataclass(frozen=True)
class TensorMemory:
    """The scores of `tiles` tiles side by side, `keys` columns each, then their outputs, `values` columns each.

    The exponentials of a tile take the place of its scores, two in a column. The MMAs of a thread execute in order:
    those that overwrite exponentials with the next scores come after those that read them.
    """

    tiles: int
    keys: int
    values: int
    cta_group: int = 1

    def __post_init__(self) -> None:
        if self._end > COLUMNS:
            raise PlanError(
                f"{self.tiles} tiles of queries need {self._end} TMEM columns ({self.tiles} x {self.keys} for scores + "
                f"{self.tiles} x {self.values} for O); there are {COLUMNS}"
            )

    @property
    def _end(self) -> int:
        return self.tiles * (self.keys + self.values)

    @property
    def columns(self) -> int:
        """Allocated columns: a power of two of at least 32 (PTX ISA 9.7.16.7.1)."""
        return max(32, 1 << (self._end - 1).bit_length())

    def output(self, tile: int) -> int:
        """The first column of a tile's output."""
        return self.tiles * self.keys + tile * self.values

    @property
    def regions(self) -> tuple[ColumnRegion, ...]:
        """The map of tensor memory."""
        tiles = range(self.tiles)
        return (
            *(ColumnRegion(f"scores {i}", i * self.keys, self.keys, "scores, exponentials") for i in tiles),
            *(ColumnRegion(f"output {i}", self.output(i), self.values, "output") for i in tiles),
        )

    def explain(self) -> str:
        return f"{self.columns} of {COLUMNS} TMEM columns: {', '.join(each.explain() for each in self.regions)}"
