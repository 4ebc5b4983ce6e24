"""Where an array of a launch lies, so that an element has an address and an address an element."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from ptxgen.device.arrays import DeviceArray

_ELEMENT = re.compile(r"(?P<name>[\w$%]+)\[(?P<index>\s*\d+(?:\s*,\s*\d+)*\s*)\]$")


class ElementError(LookupError):
    """There is no such array, or it has no such element."""


@dataclass(frozen=True)
class Placed:
    """An array from `address` on, whose elements of `itemsize` bytes have `strides` in bytes."""

    name: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @classmethod
    def of(cls, name: str, array: DeviceArray) -> Placed:
        """A whole device array."""
        return cls.packed(name, array.address, array.shape, array.dtype.itemsize)

    @classmethod
    def packed(cls, name: str, address: int, shape: Sequence[int], itemsize: int) -> Placed:
        """A C-contiguous array."""
        strides = tuple(itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape)))
        return cls(name, address, tuple(shape), strides, itemsize)

    @property
    def bytes(self) -> int:
        """From the first byte to the end of the last element."""
        if 0 in self.shape:
            return 0
        return self.itemsize + sum((n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True))

    def address_of(self, index: Sequence[int]) -> int:
        """The first byte of an element. Raises ElementError."""
        if len(index) != len(self.shape) or any(not 0 <= i < n for i, n in zip(index, self.shape, strict=True)):
            raise ElementError(f"{self.name} has shape {self.shape}, and no element {list(index)}")
        return self.address + sum(i * stride for i, stride in zip(index, self.strides, strict=True))

    def index_of(self, address: int) -> tuple[int, ...] | None:
        """The element that has the byte at an address; None outside."""
        rest, index = address - self.address, []
        if not 0 <= rest < self.bytes:
            return None
        for stride in self.strides:
            at, rest = divmod(rest, stride)
            index.append(at)
        return tuple(index)


def parse_element(text: str, arrays: Mapping[str, Placed]) -> tuple[Placed, tuple[int, ...]]:
    """The array and the index of `c[3, 5]`; upper and lower case are the same. Raises ElementError."""
    found = _ELEMENT.match(text.strip())
    if found is None:
        raise ElementError(f"an element is NAME[INDEX, ...], such as c[3,5], not {text!r}")
    known = {name.lower(): each for name, each in arrays.items()}
    if found["name"].lower() not in known:
        raise ElementError(f"there is no array {found['name']!r}; there are {', '.join(arrays) or 'none'}")
    return known[found["name"].lower()], tuple(int(each) for each in found["index"].split(","))
