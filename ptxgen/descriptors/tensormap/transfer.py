"""How much one tensor copy moves: the rows that it takes, their bytes in shared memory, and its tx-count.

PTX ISA 5.5.2 to 5.5.6. Of a strided dimension a box takes size / stride positions, rounded up, along a row every
element (fact tma-strided-rows); the driver's note about the box counts otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ptxgen.descriptors.errors import DescriptorError, refuse
from ptxgen.descriptors.tensormap.tables import TYPES
from ptxgen.layouts.swizzle import frozen
from ptxgen.layouts.tma import CHUNK, row_chunks

if TYPE_CHECKING:
    from ptxgen.descriptors.tensormap.value import TensorMap

CopyMode = Literal["tile", "tile::gather4", "im2col", "im2col::w", "im2col::w::128"]
#: Bytes of a slice of an interleaved tensor, which is a row of a copy.
SLICES = {"16B": 16, "32B": 32}
FLIP = "_flip_8B"
#: Exclusive upper bound of a halo.
_HALO = {"im2col::w": 512, "im2col::w::128": 32}


@dataclass(frozen=True, slots=True)
class Transfer:
    """The rows of one copy.

    extents: positions in each dimension but the one along a row, innermost first; pixels of a column.
    row_bytes: bytes of a row in shared memory, the gaps of padded types included.
    moved: bytes of a row that are moved and counted.
    swizzle: the map's swizzle, with the flip of 8 bytes.
    packed: rows follow each other without gaps, whatever the swizzle (interleaved tensors).
    padded: every 16 bytes end with a gap that stays as it is.
    """

    extents: tuple[int, ...]
    row_bytes: int
    moved: int
    swizzle: str
    packed: bool = False
    padded: bool = False

    @property
    def rows(self) -> int:
        """How many rows the copy has."""
        return prod(self.extents)

    @property
    def bytes(self) -> int:
        """The tx-count of the copy: the bytes that expect_tx must announce, fill outside the tensor included."""
        return self.rows * self.moved

    def offsets(self, start: int = 0) -> NDArray[np.int64]:
        """Where each moved byte lands: its shared-memory address for a copy to `start`, array [rows, moved]."""
        mode = self.swizzle.removesuffix(FLIP)
        chunks = start + CHUNK * row_chunks(self.rows, self.row_bytes, mode, start, packed=self.packed)
        per_chunk = self.moved * CHUNK // self.row_bytes
        within = np.arange(per_chunk)[None, :]
        if self.swizzle.endswith(FLIP):
            within = within ^ np.where(chunks[:, None] & 0x80, 8, 0)
        return frozen((chunks[:, None] + within).reshape(self.rows, self.moved))


def transfer(tensormap: TensorMap, mode: CopyMode | None = None, halo: int = 0) -> Transfer:
    """The rows of one copy through a map, by default of its plainest mode. Raises DescriptorError for another's mode.

    `halo` is that of the instruction, of im2col::w in pixels, of im2col::w::128 in pixels for each 32.
    """
    tiled = tensormap.mode == "tiled"
    chosen = mode or ("tile" if tiled else "im2col")
    if tiled != chosen.startswith("tile"):
        kind = "im2col" if tiled else "tiled"
        raise DescriptorError(f"mode {chosen} requires a map of mode {kind}, not {tensormap.mode}")
    if halo and chosen not in _HALO:
        refuse("halo", f"0 with mode {chosen}", halo)
    if chosen not in ("tile", "im2col") and tensormap.interleave != "none":
        refuse("interleave", f"none with mode {chosen}", tensormap.interleave)
    if chosen in _HALO:
        _check_wide(tensormap, chosen, halo)
    if tensormap.interleave != "none":
        row = moved = SLICES[tensormap.interleave]
    else:
        row, moved = tensormap.inner_bytes, tensormap.row_elements * TYPES[tensormap.dtype].global_bits // 8
    return Transfer(
        tensormap.positions(chosen, halo),
        row,
        moved,
        tensormap.swizzle,
        packed=tensormap.interleave != "none",
        padded=TYPES[tensormap.dtype].padded,
    )


def _check_wide(tensormap: TensorMap, mode: str, halo: int) -> None:
    if tensormap.swizzle == "none" or tensormap.swizzle.endswith(FLIP):
        refuse("swizzle", f"one of 32, 64 or 128 bytes without flip with mode {mode}", tensormap.swizzle)
    if not 0 <= halo < _HALO[mode]:
        refuse("halo", f"0 to {_HALO[mode] - 1} with mode {mode}", halo)
