"""Arrays in global memory of a device."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Extent = int | np.integer | Sequence[int]


class DeviceArrayError(ValueError):
    """Values written to a device array do not have its shape or dtype."""


class DeviceArray(ABC):
    """A C-contiguous array in a device's global memory.

    `.address` is its first byte as kernels see it, `.nbytes` its size in bytes. A device derives from this
    class and moves raw bytes; shapes and dtypes are handled here.
    """

    def __init__(self, address: int, shape: Extent, dtype: npt.DTypeLike) -> None:
        self.address = address
        self.shape = array_shape(shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.size = math.prod(self.shape)
        self.nbytes = self.size * self.dtype.itemsize

    @abstractmethod
    def read_bytes(self) -> bytes:
        """All `.nbytes` bytes as they are now on the device."""

    @abstractmethod
    def write_bytes(self, data: bytes) -> None:
        """Replace all bytes; `data` has exactly `.nbytes` of them."""

    def numpy(self) -> np.ndarray:
        """A new array on the host with the values that the device holds now."""
        if self.nbytes == 0:
            return np.empty(self.shape, self.dtype)
        return np.frombuffer(bytearray(self.read_bytes()), dtype=self.dtype).reshape(self.shape)

    def write(self, values: npt.ArrayLike) -> None:
        """Replace all values. Shape and dtype must be those of this array: DeviceArrayError if not."""
        given = np.asarray(values)
        if given.shape != self.shape or given.dtype != self.dtype:
            raise DeviceArrayError(
                f"a device array of shape {self.shape} and dtype {self.dtype} takes exactly these, but the "
                f"values have shape {given.shape} and dtype {given.dtype}; reshape or convert them first"
            )
        self.write_bytes(given.tobytes())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(address={self.address:#x}, shape={self.shape}, dtype={self.dtype})"


def array_shape(shape: Extent) -> tuple[int, ...]:
    """A shape as a tuple; one number is one dimension. Raises DeviceArrayError."""
    extents = whole_numbers(shape)
    if extents is None or min(extents, default=0) < 0:
        raise DeviceArrayError(f"a shape is a number of elements, or several, all 0 or more, not {shape!r}")
    return extents


def whole_numbers(given: object) -> tuple[int, ...] | None:
    """One whole number or several of them; None if it is anything else."""
    parts = list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else [given]
    whole = [int(part) for part in parts if isinstance(part, int | np.integer)]
    return tuple(whole) if len(whole) == len(parts) else None
