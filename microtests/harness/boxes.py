"""Boxes of tensors as TMA copies them: references from PTX ISA 5.5 and 9.7.9.25.5, by plain loops over elements.

The functions name elements by index into the flat tensor, or -1 outside of it, in the order in which they lie in
shared memory; `spread` says at which bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]

#: Per swizzle: bytes of a row of the pattern, the lowest bit that changes, how many do. The source is bit 7 and up.
SWIZZLES = {
    "none": (0, 4, 0),
    "32b": (32, 4, 1),
    "64b": (64, 4, 2),
    "96b": (96, 4, 1),
    "128b": (128, 4, 3),
    "128b_atom_32b": (128, 5, 2),
    "128b_atom_64b": (128, 6, 1),
}


def flat(dims: Sequence[int], place: Sequence[int]) -> int:
    """The number of an element, -1 outside; the innermost dimension is the first."""
    if any(not 0 <= at < size for at, size in zip(place, dims, strict=True)):
        return -1
    number = 0
    for at, size in zip(reversed(place), reversed(dims), strict=True):
        number = number * size + at
    return number


def tile(
    dims: Sequence[int], start: Sequence[int], box: Sequence[int], strides: Sequence[int] | None = None
) -> Indices:
    """[rows, elements] of a box; with element strides every so-manieth element of it."""
    steps = strides or [1] * len(dims)
    counts = [-(-size // step) for size, step in zip(box, steps, strict=True)]
    rows = []
    for outer in itertools.product(*(range(count) for count in reversed(counts[1:]))):
        upper = [at + step * number for at, step, number in zip(start[1:], steps[1:], reversed(outer), strict=True)]
        rows.append([flat(dims, [start[0] + steps[0] * x, *upper]) for x in range(counts[0])])
    return np.array(rows, np.int64)


def rows_of(dims: Sequence[int], column: int, rows: Sequence[int], width: int) -> Indices:
    """[rows, elements] of gather4 and scatter4."""
    return np.array([[flat(dims, [column + x, row]) for x in range(width)] for row in rows], np.int64)


def pixels(
    dims: Sequence[int],
    start: Sequence[int],
    lower: Sequence[int],
    upper: Sequence[int],
    offsets: Sequence[int],
    channels: int,
    count: int,
    steps: Sequence[int] | None = None,
) -> Indices:
    """[pixels, channels] of im2col: dims are (C, W[, H[, D]], N).

    The base runs over the box from `lower` to the last position plus `upper`, innermost first, then on to the next
    image; the filter's element is at `offsets` from it.
    """
    spatial = len(dims) - 2
    moves = list(steps or [1] * spatial)
    base, batch = list(start[1 : 1 + spatial]), start[-1]
    found = []
    for _ in range(count):
        place = [at + offset for at, offset in zip(base, offsets, strict=True)]
        found.append([flat(dims, [start[0] + c, *place, batch]) for c in range(channels)])
        for axis in range(spatial):
            base[axis] += moves[axis]
            if base[axis] <= dims[1 + axis] - 1 + upper[axis]:
                break
            base[axis] = lower[axis]
        else:
            batch += 1
    return np.array(found, np.int64)


def wide_pixels(
    dims: Sequence[int],
    start: Sequence[int],
    lower: int,
    upper: int,
    offset: int,
    channels: int,
    count: int,
    step: int = 1,
    *,
    halo: int = 0,
    halos: int = 1,
) -> Indices:
    """[pixels, channels] of im2col::w: along the width, from the end of its box on to the next image.

    Then the `halo` pixels that follow each of the `halos` equal parts: the first pixel of each part's halo, then the
    second of each.
    """
    at, batch, walk = start[1], start[-1], []
    for _ in range(count + halo):
        walk.append([flat(dims, [start[0] + c, at + offset, *start[2:-1], batch]) for c in range(channels)])
        at += step
        if at > dims[1] - 1 + upper:
            at, batch = lower, batch + 1
    found = walk[:count]
    for number in range(halo):
        for part in range(1, halos + 1):
            found.append(walk[part * count // halos + number])
    return np.array(found, np.int64)


def spread(shape: tuple[int, int], size: int, swizzle: str, start: int = 0, *, packed: bool = False) -> Indices:
    """The byte of each byte [row, column * size] in shared memory, from a 1024-byte boundary on.

    Rows narrower than a swizzle have its pitch, but not `packed` ones (measured, docs/hardware.md).
    """
    period, lowest, bits = SWIZZLES[swizzle]
    rows, columns = shape
    pitch = columns * size if packed else max(columns * size, period)
    place = np.arange(rows)[:, None] * pitch + np.arange(columns * size)[None, :] + start
    return place ^ ((place >> 7) & ((1 << bits) - 1)) << lowest


def loaded(
    memory: NDArray[np.uint8],
    tensor: NDArray[np.uint8],
    indices: Indices,
    swizzle: str,
    fill: bytes,
    start: int = 0,
    *,
    packed: bool = False,
) -> NDArray[np.uint8]:
    """Shared memory after a load; `tensor` is [elements, bytes]."""
    size = tensor.shape[1]
    values = tensor[np.maximum(indices, 0)]
    values[indices < 0] = np.frombuffer(fill, np.uint8)
    after = memory.copy()
    after[spread(indices.shape, size, swizzle, start, packed=packed)] = values.reshape(indices.shape[0], -1)
    return after


def stored(
    tensor: NDArray[np.uint8],
    memory: NDArray[np.uint8],
    indices: Indices,
    swizzle: str,
    start: int = 0,
    *,
    packed: bool = False,
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """(numbers of the elements that a store writes, their bytes)."""
    size = tensor.shape[1]
    values = memory[spread(indices.shape, size, swizzle, start, packed=packed)].reshape(*indices.shape, size)
    inside = indices >= 0
    return indices[inside], values[inside]
