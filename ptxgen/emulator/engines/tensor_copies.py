"""The bytes of one tensor copy: parts of a tensor in global memory, and where they go in shared memory.

PTX ISA 5.5 and 9.7.9.25.5. Facts that the manual does not have were measured on an H100 (driver 580.159.04, 2026-11-22;
docs/hardware.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ptxgen.descriptors.tensormap import Im2colMap, TiledMap
from ptxgen.descriptors.tensormap.tables import TYPES
from ptxgen.emulator.arrays import all_set
from ptxgen.emulator.checks.registry.descriptors import TENSORMAP_BOX, TENSORMAP_PIXEL
from ptxgen.emulator.checks.registry.memory import MISALIGNED
from ptxgen.emulator.memory import GlobalMemory, MemoryFault
from ptxgen.emulator.memory.global_memory import HEAP_BASE
from ptxgen.emulator.memory.reductions import Combine
from ptxgen.layouts.tma import CHUNK, Rows, pixel_positions, pixel_rows, row_chunks, steps, tile_rows

#: Fill of elements outside a float tensor with oob_fill "nan": 0x7ff7 in every 16 bits (measured, all float types).
_NAN_FILL = bytes.fromhex("f77f")
_SLICES = {"16B": 16, "32B": 32}
_FLIP = "_flip_8B"
#: Pixels of an im2col::w::128 copy, and of how many groups each has a halo.
_WIDE, _WIDE_GROUPS = 128, 4
#: Bits that a tf32 map drops of a number, and its NaN (measured).
_TF32_DROPPED = 13
_TF32_NAN = 0x7FFFE000


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """One copy: its rows, the elements along a row that are inside the tensor, and the map that it was made by.

    `start` is the byte of a row's line at which its elements begin, `valid` says for each piece of a row, of
    `piece` bytes in global memory, whether it is inside. Padded types have pieces of 8 or 12 bytes, which take 16 in
    shared memory.
    """

    tensormap: TiledMap | Im2colMap
    rows: Rows
    start: int
    piece: int
    valid: NDArray[np.bool_]
    apart: int = 1
    """How many groups of rows there are that may name the same elements (the rows of scatter4)."""

    @property
    def row_bytes(self) -> int:
        """Bytes of a row in shared memory."""
        return len(self.valid) * (CHUNK if self._padded else self.piece)

    @property
    def bytes(self) -> int:
        """Bytes that the copy moves, fill included: the tx-count. The gaps of padded types do not count."""
        return len(self.rows.offsets) * len(self.valid) * self.piece

    @property
    def _padded(self) -> bool:
        return TYPES[self.tensormap.dtype].padded

    # Shared memory.

    def granules(self, start: int) -> NDArray[np.int64]:
        """The 16-byte granules of shared memory that hold the rows, in their order, for a destination at `start`."""
        mode = self.tensormap.swizzle.removesuffix(_FLIP)
        packed = self.tensormap.interleave != "none"
        chunks = row_chunks(len(self.rows.offsets), self.row_bytes, mode, start, packed=packed)
        return chunks + start // CHUNK

    def used(self) -> NDArray[np.uint16]:
        """The bytes of each of these granules that elements inside the tensor have, as masks: what a store needs."""
        inside = self.rows.inside[:, None] & self.valid
        piece = np.uint16((1 << self.piece) - 1)
        if self._padded:
            return inside.ravel() * piece
        places = np.arange(0, CHUNK, self.piece, dtype=np.uint16)
        return np.bitwise_or.reduce(inside.reshape(-1, len(places)) * (piece << places), axis=1, dtype=np.uint16)

    def put(self, shared: NDArray[np.uint8], granules: NDArray[np.int64], data: NDArray[np.uint8]) -> None:
        """Write gathered rows to these granules of a CTA's shared memory."""
        if self._padded:  # the gaps stay as they are
            shared.reshape(-1, CHUNK)[granules, : self.piece] = data
            return
        if self.tensormap.swizzle.endswith(_FLIP):
            halves = data.reshape(-1, CHUNK).view(np.uint64)
            odd = (granules >> 3 & 1).astype(np.bool_)
            data = np.where(odd[:, None], halves[:, ::-1], halves)
        shared.view(np.complex128)[granules] = data.reshape(-1).view(np.complex128)

    # Global memory.

    def stored(self) -> Box:
        """What a store or a reduction writes of it: whole 16-byte units of global memory (fact tma-store-units)."""
        if self._padded or self.piece == CHUNK:
            return self
        return replace(self, piece=CHUNK, valid=self.valid.reshape(-1, CHUNK // self.piece).any(axis=1))

    def _places(self, memory: GlobalMemory) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Heap offsets of the pieces in order, and which are inside the tensor. Raises MemoryFault."""
        along = self.start + np.arange(len(self.valid), dtype=np.int64) * self.piece
        mask = (self.rows.inside[:, None] & self.valid).ravel()
        where = (self.tensormap.address - HEAP_BASE + self.rows.offsets[:, None] + along).ravel()
        memory.require_mapped(where[mask], "the tensor copy")
        memory.require_mapped(where[mask] + (self.piece - 1), "the tensor copy")
        return np.where(mask, where, 0), mask

    def heap_granules(self) -> NDArray[np.int64]:
        """The 16-byte granules of the heap that the copy covers whole; none of padded types, which have gaps."""
        if self._padded:
            return np.zeros(0, np.int64)
        along = self.start + np.flatnonzero(self.valid) * self.piece
        first = self.tensormap.address - HEAP_BASE + self.rows.offsets[self.rows.inside]
        where = (first[:, None] + along).ravel() // CHUNK
        if self.piece == CHUNK:
            return where
        granules, pieces = np.unique(where, return_counts=True)
        return granules[pieces * self.piece == CHUNK]

    def gather(self, memory: GlobalMemory) -> NDArray[np.uint8]:
        """The rows from global memory, with what fills them: (pieces, bytes of a piece). Raises MemoryFault."""
        where, mask = self._places(memory)
        if self._padded:
            raw = memory.data[where[:, None] + np.arange(self.piece)]
            raw[~mask] = 0
            return raw
        words = memory.data.view(np.complex128 if self.piece == CHUNK else f"u{self.piece}")
        raw = words[where // self.piece].view(np.uint8).reshape(-1, self.piece)
        if self.tensormap.dtype.startswith("tf32"):
            raw = _to_tf32(raw)
        if not all_set(mask):
            fill = _NAN_FILL * (self.piece // 2) if self.tensormap.oob_fill == "nan" else bytes(self.piece)
            raw[~mask] = np.frombuffer(fill, np.uint8)
        return raw

    def scatter(self, memory: GlobalMemory, data: NDArray[np.uint8]) -> None:
        """Write the rows, as they were in shared memory, to global memory; pieces outside are dropped."""
        where, mask = self._places(memory)
        if self._padded:
            packed = _pack_six_bits(data.reshape(-1, CHUNK))
            memory.data[where[mask][:, None] + np.arange(self.piece)] = packed[mask]
            return
        words = memory.data.view(np.complex128 if self.piece == CHUNK else f"u{self.piece}")
        words[where[mask] // self.piece] = data.view(words.dtype)[mask]

    def reduce(self, memory: GlobalMemory, data: NDArray[np.uint8], combine: Combine) -> None:
        """Combine the rows with global memory, element by element; pieces outside are dropped."""
        size = self.tensormap.element_bits // 8
        where, mask = self._places(memory)
        words, given = memory.data.view(f"u{size}"), data.view(f"u{size}").reshape(-1, self.piece // size)
        for part in np.array_split(np.arange(len(where)), self.apart):
            chosen = part[mask[part]]
            place = (where[chosen, None] // size + np.arange(self.piece // size)).ravel()
            words[place] = combine(words[place], given[chosen].ravel())


def _to_tf32(raw: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Numbers rounded to nearest even, subnormals too; every NaN becomes one (measured, tf32 and tf32_ftz alike)."""
    words = raw.reshape(-1).view(np.uint32).astype(np.uint64)
    low = np.uint64((1 << _TF32_DROPPED) - 1)
    rounded = (words + (low >> np.uint64(1)) + (words >> np.uint64(_TF32_DROPPED) & np.uint64(1))) & ~low
    is_nan = (words & np.uint64(0x7FFFFFFF)) > 0x7F800000
    return np.where(is_nan, np.uint64(_TF32_NAN), rounded).astype(np.uint32).view(np.uint8).reshape(raw.shape)


def _pack_six_bits(chunks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Sixteen bytes with six bits each, to twelve bytes: .b6p2x16 (5.5.1.1)."""
    fours = (chunks & 0x3F).reshape(-1, 4).astype(np.uint32)
    words = fours[:, 0] | fours[:, 1] << 6 | fours[:, 2] << 12 | fours[:, 3] << 18
    return words.view(np.uint8).reshape(-1, 4)[:, :3].reshape(-1, 12)


# Boxes and columns.


def tile(tensormap: TiledMap, coords: Sequence[int]) -> Box:
    """The box of a tiled map that begins at `coords`."""
    if tensormap.interleave != "none":
        return _slices(tensormap, _interleaved_rows(tensormap, coords))
    across = range(1, tensormap.rank)
    indices = [steps(coords[k], tensormap.box[k], tensormap.element_strides[k]) for k in across]
    return _along(tensormap, coords[0], tile_rows(tensormap.dims[1:], tensormap.strides, indices))


def _interleaved_rows(tensormap: TiledMap, coords: Sequence[int]) -> Rows:
    """Interleaved tensors: (depth, height,) width of slices, then slices of channels, then images (5.5.6).

    A copy takes one slice of the channels, whatever the box says of them (measured).
    """
    slices = tensormap.rank - 2
    strides = (_SLICES[tensormap.interleave], *tensormap.strides)
    indices = [
        steps(coords[k], 1 if k == slices else tensormap.box[k], 1 if k == slices else tensormap.element_strides[k])
        for k in range(tensormap.rank)
    ]
    return tile_rows(tensormap.dims, strides, indices)


def four_rows(tensormap: TiledMap, coords: Sequence[int]) -> Box:
    """The rows of gather4 and scatter4: a column, and four rows (5.5.3.4). Raises MemoryFault."""
    if tensormap.interleave != "none":
        raise MemoryFault(
            TENSORMAP_BOX,
            f"gather4 or scatter4 uses a map with interleave {tensormap.interleave}",
            rule="gather4 and scatter4 require a map without interleave",
        )
    if tensormap.box[1] != 1:
        raise MemoryFault(
            TENSORMAP_BOX,
            f"gather4 or scatter4 uses a map whose box has {tensormap.box[1]} rows",
            rule="gather4 and scatter4 require boxes of one row (5.5.3.4.1)",
        )
    rows = tile_rows(tensormap.dims[1:], tensormap.strides, [np.array(coords[1:], np.int64)])
    return _along(tensormap, coords[0], rows, apart=4)


def pixels(tensormap: Im2colMap, coords: Sequence[int], offsets: Sequence[int]) -> Box:
    """The column of an im2col map for a filter at `coords`, whose element is `offsets` away. Raises MemoryFault."""
    first = 1 if tensormap.interleave == "none" else 0
    spatial = slice(first, first + tensormap.rank - 2)
    start = (*coords[spatial], coords[-1])
    for axis, size in enumerate(tensormap.spatial_dims):
        low, high = tensormap.pixel_box_lower[axis], size - 1 + tensormap.pixel_box_upper[axis]
        if not low <= start[axis] <= high:
            # Measured: the kernel ends with an illegal-instruction error.
            raise MemoryFault(
                TENSORMAP_PIXEL,
                f"coordinate {start[axis]} of dimension {first + axis} is outside the map's pixel box",
                rule=f"The pixel box of this map allows {low} to {high} there (5.5.4.1)",
            )
    walked = pixel_positions(
        tensormap.spatial_dims,
        tensormap.pixel_box_lower,
        tensormap.pixel_box_upper,
        (*tensormap.element_strides[spatial], tensormap.element_strides[-1]),
        start,
        tensormap.pixels_per_column,
    )
    return _column(tensormap, coords, walked + np.array([*offsets, 0]))


def wide_pixels(tensormap: Im2colMap, coords: Sequence[int], halo: int, offset: int, *, fixed: bool) -> Box:
    """The column of an im2col::w copy, or im2col::w::128 (`fixed`): along the width alone (5.5.5).

    `halo` more pixels of the walk follow the column; of im2col::w::128 as many for each 32 pixels, the first of all
    four, then the second (fact tma-wide-halo). Raises MemoryFault.
    """
    if tensormap.interleave != "none":
        raise MemoryFault(
            TENSORMAP_BOX,
            f"im2col::w uses a map with interleave {tensormap.interleave}",
            rule="im2col::w requires a map without interleave (5.5.6)",
        )
    if tensormap.swizzle == "none" or tensormap.swizzle.endswith(_FLIP):
        raise MemoryFault(
            TENSORMAP_BOX,
            f"im2col::w uses a map with swizzle {tensormap.swizzle}",
            rule="im2col::w requires a map with a 32, 64 or 128-byte swizzle without flip (5.5.5)",
        )
    for name, value, limit in (("wHalo", halo, 32 if fixed else 512), ("wOffset", offset, 32)):
        if value >= limit:
            raise MemoryFault(
                TENSORMAP_PIXEL, f"{name} is {value}", rule=f"{name} must be below {limit} (9.7.9.25.5.2)"
            )
    last = tensormap.dims[1] - 1 + tensormap.pixel_box_upper[0]
    if coords[1] > last:
        raise MemoryFault(
            TENSORMAP_PIXEL,
            f"coordinate {coords[1]} of dimension 1 is past the end of the map's pixel box",
            rule=f"The pixel box of this map ends at {last} there (5.5.5.1)",
        )
    # wOffset moves the box with the first pixel, so that the walk is the same, `offset` further on (5.5.5.4).
    count, groups = (_WIDE, _WIDE_GROUPS) if fixed else (tensormap.pixels_per_column, 1)
    along = pixel_positions(
        tensormap.dims[1:2],
        tensormap.pixel_box_lower[:1],
        tensormap.pixel_box_upper[:1],
        (tensormap.element_strides[1], tensormap.element_strides[-1]),
        (coords[1], coords[-1]),
        count + halo,
    )
    ends = count // groups * np.arange(1, groups + 1)
    along = np.concatenate([along[:count], along[(ends + np.arange(halo)[:, None]).ravel()]])
    walked = np.empty((len(along), tensormap.rank - 1), np.int64)
    walked[:, 0], walked[:, 1:-1], walked[:, -1] = along[:, 0] + offset, np.array(coords[2:-1]), along[:, 1]
    return _column(tensormap, coords, walked)


def _column(tensormap: Im2colMap, coords: Sequence[int], walked: NDArray[np.int64]) -> Box:
    if tensormap.interleave == "none":
        return _along(tensormap, coords[0], pixel_rows(tensormap.dims[1:], tensormap.strides, walked))
    # One slice of the channels a pixel, whatever the map says of them (measured).
    slices = tensormap.rank - 2
    where = np.insert(walked, slices, coords[slices], axis=1)
    return _slices(tensormap, pixel_rows(tensormap.dims, (_SLICES[tensormap.interleave], *tensormap.strides), where))


def _slices(tensormap: TiledMap | Im2colMap, rows: Rows) -> Box:
    """Rows that are whole slices of an interleaved tensor."""
    return Box(tensormap, rows, 0, CHUNK, np.ones(_SLICES[tensormap.interleave] // CHUNK, np.bool_))


def _along(tensormap: TiledMap | Im2colMap, first: int, rows: Rows, apart: int = 1) -> Box:
    """Rows from an element of the innermost dimension on. Raises MemoryFault where it is misaligned."""
    kind = TYPES[tensormap.dtype]
    if kind.padded and first % tensormap.row_elements:
        raise MemoryFault(
            MISALIGNED,
            f"the first coordinate of the tensor copy is {first}",
            rule=f"With {tensormap.dtype} the first coordinate must be a multiple of {tensormap.row_elements}",
        )
    if first * kind.global_bits % (8 * CHUNK) and not kind.padded:
        # Measured: the copy ends the kernel with an illegal-instruction error.
        raise MemoryFault(
            MISALIGNED,
            f"the first coordinate of the tensor copy is {first}, byte {first * kind.global_bits / 8:g} of a row",
            rule=f"The first coordinate must be on a multiple of {CHUNK} bytes",
        )
    piece, valid = _pieces(tensormap.dtype, first, tensormap.row_elements, tensormap.dims[0])
    return Box(tensormap, rows, first * kind.global_bits // 8, piece, valid, apart)


@lru_cache(maxsize=256)
def _pieces(dtype: str, first: int, count: int, size: int) -> tuple[int, NDArray[np.bool_]]:
    """The bytes of a piece, and which pieces of a row of `count` elements are inside: as large as 16 bytes."""
    kind = TYPES[dtype]
    bits = kind.global_bits
    per_piece = 16 if kind.padded else max(8 // bits, 1)
    index = np.arange(first, first + count, per_piece, dtype=np.int64)
    inside = (index >= 0) & (index < size)
    bytes_each = per_piece * bits // 8
    if not kind.padded:
        groups = inside.reshape(-1, CHUNK // bytes_each)
        if all_set(groups.all(axis=1) | ~groups.any(axis=1)):
            return CHUNK, groups[:, 0]
    return bytes_each, inside
