"""Which parts of a tensor a copy of the TMA takes, and where they land in shared memory.

PTX ISA 5.5.2 (tiled mode) and 5.5.7 (swizzle). Box rows follow each other at the row pitch: the row itself
without swizzle, the full swizzle row with one, even when the box is narrower (then the gaps are left alone
and not counted in the transfer; measured on an H200 with 32-bit rows of 16 to 128 bytes at destinations 0 to
640 mod 1024). The XOR then acts on the absolute address. Rows of interleaved tensors are slices of 16 or 32 bytes,
and follow each other without gaps, whatever the swizzle (measured on an H100, both sizes; no swizzle, 32B and 128B).
The 96-byte swizzle packs rows of 96 bytes (fact tma-swizzle-96b).

Which rows a copy takes: `tile_rows` (5.5.3) and `pixel_rows` (5.5.4). What the manual leaves open was measured on an
H100 (driver 580, 2026-11-22) with 200 copies of boxes and columns, strided and interleaved, all of whose bytes agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from ptxgen.layouts.swizzle import Swizzle, frozen, swizzle

CHUNK = 16
"""Bytes of the unit that every swizzle mode keeps whole."""

#: A mode of tensormaps alone, which no matrix descriptor has (sm_103a).
_SWIZZLE_96 = Swizzle("96B", 1, 4, 96, 256)


def _mode(name: str) -> Swizzle:
    """The swizzle of a tensormap, without a flip of 8 bytes."""
    return _SWIZZLE_96 if name == _SWIZZLE_96.name else swizzle(name)


def tile_bytes(box: Sequence[int], element_bytes: int) -> int:
    """Return the bytes that a box (elements, innermost first) transfers: the tx-count of an mbarrier.

    >>> from ptxgen.layouts.tma import tile_bytes
    >>> tile_bytes((64, 8), element_bytes=2)
    1024
    """
    return prod(box) * element_bytes


def row_pitch(box: Sequence[int], element_bytes: int, mode: str) -> int:
    """Return the bytes from one box row to the next in shared memory.

    Raises ValueError when the row is no multiple of 16 bytes or wider than the swizzle row (rules of
    cuTensorMapEncodeTiled).
    """
    kind = _mode(mode)
    inner = box[0] * element_bytes
    if inner % CHUNK:
        raise ValueError(f"the inner box row must be a multiple of 16 bytes, not {inner}")
    if kind.width and inner > kind.row_bytes:
        raise ValueError(f"the inner box row must be at most {kind.row_bytes} bytes for swizzle {mode}, not {inner}")
    return kind.row_bytes if kind.width else inner


def tile_footprint(box: Sequence[int], element_bytes: int, mode: str) -> int:
    """Return the shared-memory bytes of a tile, gaps of narrow rows included; errors as `row_pitch`."""
    return prod(box[1:]) * row_pitch(box, element_bytes, mode)


def tile_chunks(box: Sequence[int], element_bytes: int, mode: str, destination: int) -> NDArray[np.int64]:
    """Return where each 16-byte chunk of the box lands: its chunk number relative to `destination`.

    Entry c belongs to bytes 16c..16c+15 of the box in linear order; shape [tile_bytes / 16], read-only,
    cached. `destination` is the absolute shared-memory byte address of the tile, a multiple of 16. Errors as
    `row_pitch`.
    """
    pitch = row_pitch(box, element_bytes, mode)
    if destination % CHUNK:
        raise ValueError(f"the destination must be a multiple of 16 bytes, not {destination:#x}")
    return _chunks(prod(box[1:]), box[0] * element_bytes // CHUNK, pitch, mode, destination % _mode(mode).period)


@lru_cache(maxsize=256)
def _chunks(rows: int, row_chunks: int, pitch: int, mode: str, phase: int) -> NDArray[np.int64]:
    row = np.arange(rows, dtype=np.int64)[:, None] * pitch
    unswizzled = (row + np.arange(row_chunks, dtype=np.int64) * CHUNK).ravel() + phase
    return frozen((_mode(mode).apply(unswizzled) - phase) // CHUNK)


def tile_offsets(box: Sequence[int], element_bytes: int, mode: str, destination: int = 0) -> NDArray[np.int64]:
    """Return the byte offset, relative to `destination`, of every element of the box.

    The shape is the box reversed, so index [.., i1, i0] as NumPy orders it. A swizzle stays within its
    128-byte lines: at a `destination` that is a multiple of 128 no offset is negative. Errors as
    `tile_chunks`.
    """
    chunks = tile_chunks(box, element_bytes, mode, destination)
    linear = np.arange(prod(box), dtype=np.int64) * element_bytes
    return (chunks[linear // CHUNK] * CHUNK + linear % CHUNK).reshape(tuple(box)[::-1])


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows of a copy, in the order in which they lie in shared memory.

    `offsets`: bytes from the tensor's address to the beginning of each row's line; `inside`: whether the row is in the
    tensor (a row that is not has offset 0).
    """

    offsets: NDArray[np.int64]
    inside: NDArray[np.bool_]


def tile_rows(dims: Sequence[int], strides: Sequence[int], indices: Sequence[NDArray[np.int64]]) -> Rows:
    """The rows of a box: `indices` are the positions that it takes in each dimension, the fastest first.

    `dims` and `strides` (in bytes) are those of the same dimensions, which are all but the one along a row.
    """
    offsets, inside = np.zeros(1, np.int64), np.ones(1, np.bool_)
    for size, stride, index in reversed(list(zip(dims, strides, indices, strict=True))):
        valid = (index >= 0) & (index < size)
        offsets = (offsets[:, None] + np.where(valid, index * stride, 0)).ravel()
        inside = (inside[:, None] & valid).ravel()
    return Rows(np.where(inside, offsets, 0), inside)


def steps(start: int, extent: int, stride: int) -> NDArray[np.int64]:
    """The positions that a box takes in a dimension: every `stride`-th of its `extent` (rounded up, as measured)."""
    return np.arange(start, start + extent, stride, dtype=np.int64)


@lru_cache(maxsize=1024)
def pixel_positions(
    sizes: tuple[int, ...],
    lower: tuple[int, ...],
    upper: tuple[int, ...],
    strides: tuple[int, ...],
    start: tuple[int, ...],
    count: int,
) -> NDArray[np.int64]:
    """Where a column of `count` pixels walks: shape (count, spatial dimensions + 1), width first, images last.

    From `start` (its last number is the image) in steps of `strides`, the width fastest; from the end of the box
    (size - 1 + `upper`) back to its beginning (`lower`), and on in the next dimension, at last to the next image. The
    walk begins anew at `lower`, whatever the stride leaves over, and images are stepped by their stride too (measured).
    """
    position, walked = list(start), []
    last = [size - 1 + corner for size, corner in zip(sizes, upper, strict=True)]
    for _ in range(count):
        walked.append(tuple(position))
        for axis, stride in enumerate(strides[:-1]):
            position[axis] += stride
            if position[axis] <= last[axis]:
                break
            position[axis] = lower[axis]
        else:
            position[-1] += strides[-1]
    return frozen(np.array(walked).reshape(count, len(start)))


def pixel_rows(dims: Sequence[int], strides: Sequence[int], positions: NDArray[np.int64]) -> Rows:
    """The rows of pixels at positions (pixels, dimensions) in dimensions with these sizes and strides in bytes."""
    inside: NDArray[np.bool_] = np.logical_and.reduce((positions >= 0) & (positions < np.array(dims)), axis=1)
    return Rows(np.where(inside, positions @ np.array(strides, np.int64), 0), inside)


def row_chunks(rows: int, row_bytes: int, mode: str, destination: int, *, packed: bool = False) -> NDArray[np.int64]:
    """Where each 16-byte chunk of some rows lands: its chunk number relative to `destination`; see `tile_chunks`.

    `packed` rows follow each other without gaps (interleaved tensors).
    """
    pitch = row_bytes if packed else row_pitch((row_bytes,), 1, mode)
    return _chunks(rows, row_bytes // CHUNK, pitch, mode, destination % _mode(mode).period)
