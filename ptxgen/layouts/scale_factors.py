"""Scale factors of block-scaled MMAs: where they lie in tensor memory, and the 128x4 blocks that memory has.

`scale_cells` maps (row, scale) of one instruction to bytes of tensor memory (PTX ISA 9.7.16.10.7). Memory keeps the
scales in blocks of 128 rows by 4 of K, 512 bytes each (`blocked_offset`; cuBLAS, "1D block scaling factors layout";
CUTLASS sm100_blockscaled_layout.hpp, SfKMajorAtom): read as 32 rows of 16 bytes, a block is what one
tcgen05.cp.32x128b.warpx4 takes to four columns. `to_blocked` and `from_blocked` convert from and to row-major.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptxgen.layouts.swizzle import frozen
from ptxgen.layouts.tmem import WARP_LANES

BLOCK_ROWS = 128
BLOCK_SCALES = 4
BLOCK_BYTES = BLOCK_ROWS * BLOCK_SCALES

SCALES_PER_ROW: dict[tuple[str, int], int] = {
    ("1X", 32): 1,
    ("2X", 64): 2,
    ("4X", 64): 4,
    ("2X", 96): 3,
    ("4X", 96): 6,
    ("1X", 64): 1,
    ("2X", 128): 4,
    ("4X", 128): 8,
}
"""Scales of a row in one instruction, by scale vector and dense K (a sparse A has as many at twice the K)."""


@lru_cache(maxsize=512)
def scale_cells(
    rows: int, scales: int, scale_id: int = 0, *, parts: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return (lane, column, byte) of scale factor (row, scale) in tensor memory, relative to its address.

    Three arrays [4, rows, scales], read-only: one copy for each quarter of the lanes. `rows` counts M of a CTA (SFA)
    or N (SFB); `scale_id` is SFA_ID or SFB_ID of the instruction descriptor. With `parts` 2 (SFB of a pair of CTAs at
    M 128) the first two quarters hold the first half of the rows, the others the second: arrays [2, rows, scales].
    """
    if scales not in (1, 2, 3, 4, 6, 8) or not 0 <= scale_id <= 3:
        raise ValueError(f"a row has 1, 2, 3, 4, 6 or 8 scales from id 0 to 3, not {scales!r} from {scale_id!r}")
    if parts not in (1, 2) or rows % parts:
        raise ValueError(f"rows must split into 1 or 2 parts, not {rows!r} into {parts!r}")
    found = placed_scales(np.arange(rows)[:, None], scale_id + np.arange(scales)[None, :], rows, parts)
    full = (4 // parts, rows, scales)
    return tuple(frozen(np.broadcast_to(each, full)) for each in found)  # type: ignore[return-value]


def placed_scales(
    row: NDArray[np.int64], place: NDArray[np.int64], rows: int, parts: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return (lane, column, byte) of the scale of a row at `place` along K, from the first scale's cell on.

    `row` and `place` broadcast; a leading axis of the arrays counts the copies. `rows` and `parts` as in `scale_cells`.
    """
    copy = np.arange(4 // parts)[:, None, None]
    inner = row % (rows // parts)
    lane = inner % WARP_LANES + WARP_LANES * (copy + 4 // parts * (row // (rows // parts)))
    step = 4 * -(-rows // BLOCK_ROWS)
    return lane, inner // WARP_LANES + step * (place // 4), place % 4


@overload
def blocked_offset(row: int, scale: int, scales: int) -> int: ...
@overload
def blocked_offset(row: NDArray[Any], scale: NDArray[Any], scales: int) -> NDArray[Any]: ...
def blocked_offset(row: int | NDArray[Any], scale: int | NDArray[Any], scales: int) -> int | NDArray[Any]:
    """Return the byte of scale (row, `scale` along K) in blocked memory, for a matrix with `scales` along K.

    >>> from ptxgen.layouts.scale_factors import blocked_offset
    >>> blocked_offset(33, 2, scales=4)
    22
    """
    block = row // BLOCK_ROWS * -(-scales // BLOCK_SCALES) + scale // BLOCK_SCALES
    inner = row % BLOCK_ROWS
    return block * BLOCK_BYTES + inner % 32 * 16 + inner // 32 * 4 + scale % BLOCK_SCALES


def blocked_bytes(rows: int, scales: int) -> int:
    """Return the bytes of the blocks that hold a matrix of scales."""
    return -(-rows // BLOCK_ROWS) * -(-scales // BLOCK_SCALES) * BLOCK_BYTES


@lru_cache(maxsize=64)
def blocked_offsets(rows: int, scales: int) -> NDArray[np.int64]:
    """Return `blocked_offset` of every element: an array [rows, scales], read-only."""
    return frozen(blocked_offset(np.arange(rows)[:, None], np.arange(scales)[None, :], scales))


def to_blocked(scales: ArrayLike, fill: int = 0) -> NDArray[np.uint8]:
    """Return the blocks of a row-major matrix [rows, scales along K] of one-byte scales, as bytes.

    Elements of 8 bits of any type; rows and scales that fill up the last blocks get the byte `fill`. Raises ValueError.
    """
    matrix = np.ascontiguousarray(scales)
    if matrix.ndim != 2 or matrix.dtype.itemsize != 1:
        raise ValueError(f"scales must be a matrix of bytes, not {matrix.ndim}-dimensional of {matrix.dtype}")
    result = np.full(blocked_bytes(*matrix.shape), fill, np.uint8)
    result[blocked_offsets(*matrix.shape)] = matrix.view(np.uint8)
    return result


def from_blocked(blocks: ArrayLike, rows: int, scales: int) -> NDArray[np.uint8]:
    """Return the row-major matrix [rows, scales] of bytes that `to_blocked` made blocks of. Raises ValueError."""
    data = np.ascontiguousarray(blocks)
    if data.dtype.itemsize != 1 or data.size != blocked_bytes(rows, scales):
        wanted = blocked_bytes(rows, scales)
        raise ValueError(f"{rows} by {scales} scales take {wanted} bytes of blocks, not {data.size} of {data.dtype}")
    return data.view(np.uint8).ravel()[blocked_offsets(rows, scales)]
