"""Scale factors of A or B: 128x4 blocks in global memory, the same in shared memory, and columns of tensor memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

from ptxgen.descriptors import SmemDescriptor, TensorMap
from ptxgen.descriptors.tensormap import TiledMap
from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.scales import ScaledType
from ptxgen.layouts.scale_factors import BLOCK_BYTES, BLOCK_ROWS, BLOCK_SCALES
from ptxgen.layouts.tmem import WARP_LANES

#: Columns of tensor memory that tcgen05.cp.32x128b.warpx4 fills with a block.
BLOCK_COLUMNS = 4
#: The bytes of a block as the two innermost dimensions of a tensormap: a box has at most 256 elements in each.
_BLOCK_DIMS = (256, BLOCK_BYTES // 256)


@dataclass(frozen=True, slots=True)
class BlockCopy:
    """One tcgen05.cp: from 16-byte units after the start of the stage, to columns after the scales' first."""

    source: int
    column: int


@dataclass(frozen=True, slots=True)
class ScaleStep:
    """Where the scales of one MMA are: columns after the first, and the scale-factor id (PTX ISA 9.7.16.10.7)."""

    column: int
    id: int


@dataclass(frozen=True)
class ScaleOperand:
    """The scales of `rows` rows of A (M of this CTA) or B (N of the whole tile) by `k_tile` of K, one per stage.

    A stage holds `blocks` blocks of 128 rows, each for `words` times 4 scales of K. Both CTAs of a pair need all scales
    of B; with `multicast` one of them loads them for both.
    """

    name: str
    type: ScaledType
    rows: int
    k_tile: int
    mma_k: int
    multicast: bool = False

    def __post_init__(self) -> None:
        if self.rows % WARP_LANES:
            raise PlanError(
                f"{self.name.upper()} has a TMEM column for every {WARP_LANES} rows; the tile must be a multiple of "
                f"that, not {self.rows}"
            )

    @property
    def scales(self) -> int:
        """Scales of a row in a stage."""
        return self.k_tile // self.type.block

    @property
    def words(self) -> int:
        """Words of 4 scales of a row in a stage: blocks along K."""
        return self.scales // BLOCK_SCALES

    @property
    def shift(self) -> int:
        """What the row at which a tile begins in its first block is a multiple of; 128: it is always the first."""
        return gcd(self.rows, BLOCK_ROWS)

    @property
    def blocks(self) -> int:
        """Blocks along the rows that a tile may reach into."""
        return -(-(self.rows + BLOCK_ROWS - self.shift) // BLOCK_ROWS)

    @property
    def bytes(self) -> int:
        """Bytes of a stage."""
        return self.blocks * self.words * BLOCK_BYTES

    @property
    def columns(self) -> int:
        """Columns of tensor memory."""
        return self.blocks * self.words * BLOCK_COLUMNS

    def copies_of(self, step: int) -> tuple[BlockCopy, ...]:
        """The copies to tensor memory of the word of K whose first scales an MMA takes: row blocks side by side."""
        column = self.steps[step].column
        word = column // (self.blocks * BLOCK_COLUMNS)
        return tuple(
            BlockCopy((block * self.words + word) * BLOCK_BYTES // 16, column + block * BLOCK_COLUMNS)
            for block in range(self.blocks)
        )

    @property
    def steps(self) -> tuple[ScaleStep, ...]:
        """What each MMA of a stage takes."""
        taken = self.mma_k // self.type.block
        firsts = range(0, self.scales, taken)
        return tuple(
            ScaleStep(first // BLOCK_SCALES * self.blocks * BLOCK_COLUMNS, first % BLOCK_SCALES) for first in firsts
        )

    @property
    def descriptor(self) -> SmemDescriptor:
        """The matrix descriptor of a block for tcgen05.cp, with start address 0: 32 rows of 16 bytes."""
        return SmemDescriptor(start_address=0, leading_byte_offset=0, stride_byte_offset=8 * 16, swizzle="none")

    def tensormap(self, address: Any, rows: int, k: int) -> TiledMap:
        """The tensormap of all scales of a matrix: bytes of a block (2 dimensions), blocks along K, blocks of rows.

        What lies past the last block is read as zeros.
        """
        along = -(-self.type.scales_of(k) // BLOCK_SCALES)
        down = -(-rows // BLOCK_ROWS)
        return TensorMap.tiled(
            "u8",
            address,
            dims=(*_BLOCK_DIMS, along, down),
            strides=(_BLOCK_DIMS[0], BLOCK_BYTES, along * BLOCK_BYTES),
            box=(*_BLOCK_DIMS, self.words, self.blocks),
            l2_promotion="128B",
        )
