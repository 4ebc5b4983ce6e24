"""Where a TMA tile lands in shared memory: box index to byte offset, without interleave.

PTX ISA 5.5.2 (tiled mode) and 5.5.7 (swizzle). Box rows follow each other at the row pitch: the row itself
without swizzle, the full swizzle row with one, even when the box is narrower (then the gaps are left alone
and not counted in the transfer; measured on an H200 with 32-bit rows of 16 to 128 bytes at destinations 0 to
640 mod 1024). The XOR then acts on the absolute address. Global addresses, out-of-bounds fill, im2col and
interleaved layouts are not here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from ptxgen.layouts.swizzle import frozen, swizzle

CHUNK = 16
"""Bytes of the unit that every swizzle mode keeps whole."""


def tile_bytes(box: Sequence[int], element_bytes: int) -> int:
    """Return the bytes that a box (elements, innermost first) transfers: the tx-count of an mbarrier."""
    return prod(box) * element_bytes


def row_pitch(box: Sequence[int], element_bytes: int, mode: str) -> int:
    """Return the bytes from one box row to the next in shared memory.

    Raises ValueError when the row is no multiple of 16 bytes or wider than the swizzle row (rules of
    cuTensorMapEncodeTiled).
    """
    kind = swizzle(mode)
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
    return _chunks(prod(box[1:]), box[0] * element_bytes // CHUNK, pitch, mode, destination % swizzle(mode).period)


@lru_cache(maxsize=256)
def _chunks(rows: int, row_chunks: int, pitch: int, mode: str, phase: int) -> NDArray[np.int64]:
    row = np.arange(rows, dtype=np.int64)[:, None] * pitch
    unswizzled = (row + np.arange(row_chunks, dtype=np.int64) * CHUNK).ravel() + phase
    return frozen((swizzle(mode).apply(unswizzled) - phase) // CHUNK)


def tile_offsets(box: Sequence[int], element_bytes: int, mode: str, destination: int = 0) -> NDArray[np.int64]:
    """Return the byte offset, relative to `destination`, of every element of the box.

    The shape is the box reversed, so index [.., i1, i0] as NumPy orders it. A swizzle stays within its
    128-byte lines: at a `destination` that is a multiple of 128 no offset is negative. Errors as
    `tile_chunks`.
    """
    chunks = tile_chunks(box, element_bytes, mode, destination)
    linear = np.arange(prod(box), dtype=np.int64) * element_bytes
    return (chunks[linear // CHUNK] * CHUNK + linear % CHUNK).reshape(tuple(box)[::-1])
