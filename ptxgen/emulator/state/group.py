"""A group: the warps that execute one instruction together, and which of their lanes."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import count_nonzero

if TYPE_CHECKING:
    from ptxgen.emulator.state.machine import Machine


class Group:
    """`warps` index the machine's warps (a slice when it is all of them), `mask` (warps, 32) is None for all lanes."""

    __slots__ = ("_indices", "machine", "mask", "size", "warps")

    def __init__(self, machine: Machine, indices: NDArray[np.int64], mask: NDArray[np.bool_] | None) -> None:
        self.machine = machine
        self._indices = indices
        self.size = len(indices)
        self.warps: slice | NDArray[np.int64] = slice(None) if self.size == machine.warps else indices
        self.mask = mask

    @property
    def indices(self) -> NDArray[np.int64]:
        """The warps as numbers."""
        return self._indices

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which lanes take part: (warps, 32), not to be written to."""
        return _all_lanes(self.size) if self.mask is None else self.mask

    def narrowed(self, keep: NDArray[np.bool_]) -> Group | None:
        """The lanes of this group that `keep` (warps, 32) marks; None if there are none."""
        mask = keep if self.mask is None else keep & self.mask
        lanes = int(count_nonzero(mask))
        if lanes == mask.size:
            return Group(self.machine, self._indices, None)
        if not lanes:
            return None
        warps = mask.any(axis=1)
        if count_nonzero(warps) == self.size:
            return Group(self.machine, self._indices, mask)
        mask = mask[warps]
        return Group(self.machine, self._indices[warps], None if lanes == mask.size else mask)

    def without(self, part: Group) -> Group | None:
        """The lanes of this group that are not in `part`, some of its lanes; None if there are none."""
        rest = ~part.active
        if part.size < self.size:
            others = np.ones((self.size, 32), np.bool_)
            others[np.searchsorted(self._indices, part.indices)] = rest  # both ascend
            rest = others
        return self.narrowed(rest)

    def full(self, value: Any, dtype: Any = None) -> NDArray[Any]:
        """A value, scalar or array, as an array of shape (warps, 32)."""
        return spread(np.asarray(value, dtype), (self.size, 32))

    def store(self, array: NDArray[Any], value: NDArray[Any]) -> None:
        """Write a register where lanes are active."""
        if self.mask is None:
            array[self.warps] = value
        elif isinstance(self.warps, slice):
            np.copyto(array, value, where=self.mask if array.ndim == 2 else self.mask[..., None])
        else:
            mask = self.mask if array.ndim == 2 else self.mask[..., None]
            array[self.warps] = np.where(mask, value, array[self.warps])


def spread(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """`np.broadcast_to`, which takes 5 µs, for values that already have the shape, scalars and columns, (warps, 1)."""
    if values.shape == shape:
        return values
    if values.dtype.isbuiltin != 1 or not values.flags.c_contiguous:
        return np.broadcast_to(values, shape)
    if values.ndim == 0:
        made = np.ndarray(shape, values.dtype, values.data, 0, (0,) * len(shape))
    elif len(shape) == 2 and values.shape == (shape[0], 1):
        made = np.ndarray(shape, values.dtype, values.data, 0, (values.strides[0], 0))
    else:
        return np.broadcast_to(values, shape)
    made.flags.writeable = False
    return made


@lru_cache(maxsize=256)
def _all_lanes(warps: int) -> NDArray[np.bool_]:
    """A read-only mask (warps, 32) of all lanes."""
    lanes = np.ones((warps, 32), np.bool_)
    lanes.flags.writeable = False
    return lanes
