"""Shared memory in granules of 16 bytes, each with a mask of its bytes: what accesses of lanes touch there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import count_nonzero
from ptxgen.emulator.native import shared as native
from ptxgen.emulator.native.library import chosen

#: The bytes of a granule.
GRANULE = 16
_SHIFT = 4
#: By size of an access, a power of two, and its offset in a granule: the bytes that it touches.
_BYTES = {
    size: np.array([((1 << size) - 1 << at) & 0xFFFF for at in range(GRANULE)], np.uint16) for size in (1, 2, 4, 8, 16)
}
#: The bytes of some granules, one bit each.
Masks = NDArray[np.uint16]
ALL_BYTES = np.uint16(0xFFFF)


def granules_of(offsets: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], NDArray[np.uint16]]:
    """The granules of shared memory that accesses touch, and which bytes of each.

    An access is aligned to its size, at most 16 bytes: it lies in one granule.
    """
    granules, place = np.unique(offsets // GRANULE, return_inverse=True)
    masks = np.zeros(len(granules), np.uint16)
    np.bitwise_or.at(masks, place, _BYTES[size][offsets & GRANULE - 1])
    return granules, masks


def by_granule(
    owners: NDArray[np.int64], offsets: NDArray[np.int64], size: int, new: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint16], NDArray[np.uint16]]:
    """The granules that each owner accesses: owners, granules, and the bytes of each touched, and those `new` (all by
    default).
    """
    granules, bits = offsets >> _SHIFT, _BYTES[size][offsets & GRANULE - 1]
    keys = owners * (int(granules.max()) + 1) + granules
    changed = bits if new is None else bits * new
    if count_nonzero(keys[1:] < keys[:-1]):
        order = keys.argsort()
        keys, owners, granules = keys[order], owners[order], granules[order]
        bits, changed = bits[order], changed[order]
    (first,) = starts(keys).nonzero()
    masks = np.bitwise_or.reduceat(bits, first)
    return owners[first], granules[first], masks, masks if new is None else np.bitwise_or.reduceat(changed, first)


def by_warp(
    offsets: NDArray[np.int64], mask: NDArray[np.bool_] | None, size: int, new: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint16], NDArray[np.uint16]]:
    """The same of the lanes of `mask` of warps, all (warps, 32): the owners are the positions of the warps."""
    library = chosen()
    if library is not None:
        rows = np.ascontiguousarray(offsets)
        fresh = None if new is None else np.ascontiguousarray(new)
        return native.granules(library, rows, None if mask is None else np.ascontiguousarray(mask), fresh, size)
    flat, changed = offsets.reshape(-1), new.reshape(-1) if new is not None else None
    if mask is None:
        lanes = np.arange(offsets.size)
    else:
        (lanes,) = mask.reshape(-1).nonzero()
        flat, changed = flat[lanes], changed[lanes] if changed is not None else None
    return by_granule(lanes >> 5, flat, size, changed)


def first_byte(mask: int | np.uint16) -> int:
    """The first of some bytes of a granule; 0 of none."""
    bits = int(mask)
    return max((bits & -bits).bit_length() - 1, 0)


def starts(values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Where in an ascending array a value begins: (values,)."""
    found = np.empty(len(values), np.bool_)
    found[:1] = True
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found


def in_a_row(granules: NDArray[np.int64]) -> NDArray[np.int64] | slice:
    """Granules as a slice, if they follow each other: arrays are accessed faster by it."""
    if not len(granules):
        return granules
    first, last = int(granules[0]), int(granules[-1])
    if last - first + 1 != len(granules) or (len(granules) > 2 and count_nonzero(granules[1:] - granules[:-1] != 1)):
        return granules
    return slice(first, last + 1)


def distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The different values of an array, which mostly has one."""
    return values[:1] if len(values) and not count_nonzero(values != values[0]) else np.unique(values)
