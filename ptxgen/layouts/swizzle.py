"""Shared-memory swizzles: one XOR of address bits a mode, the same for TMA, wgmma and tcgen05.

PTX ISA 5.5.7 (TMA swizzle modes), 9.7.15.5.1 (wgmma) and 9.7.16.4.1 (tcgen05). The XOR reads the absolute
shared-memory address (measured on an H200 for 32B, 64B and 128B); the flip variant of the 32-byte atom is not
here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

SOURCE_SHIFT = 7
"""Every mode takes its XOR source from address bit 7 up: one 128-byte line a step."""


@dataclass(frozen=True, slots=True)
class Swizzle:
    """One swizzle mode: address bits `target_bit`.. are XORed with bits 7.., `width` bits wide.

    `row_bytes` is the width of a matrix row in this mode (16 without swizzle); `alignment` the boundary in
    bytes on which the pattern starts, where a matrix descriptor's base offset is 0 (PTX ISA 9.7.16.4.1).
    """

    name: str
    width: int
    target_bit: int
    row_bytes: int
    alignment: int

    @property
    def period(self) -> int:
        """Bytes after which the XOR pattern repeats (16 without swizzle)."""
        return 1 << (SOURCE_SHIFT + self.width) if self.width else 16

    @property
    def atom_bytes(self) -> int:
        """Bytes that stay together: the smallest unit that moves."""
        return 1 << self.target_bit

    @overload
    def apply(self, address: int, base_offset: int = 0) -> int: ...
    @overload
    def apply(self, address: NDArray[Any], base_offset: int = 0) -> NDArray[Any]: ...
    def apply(self, address: int | NDArray[Any], base_offset: int = 0) -> int | NDArray[Any]:
        """Return the absolute byte address where the byte of the unswizzled absolute `address` lies.

        With base offset 0 it is its own inverse. A matrix descriptor's `base_offset` (0..7) shifts the
        pattern by that many 128-byte lines: for tiles that do not start on the pattern boundary (measured on
        an H200, wgmma 128B).
        """
        if not self.width:
            return address
        mask = (1 << self.width) - 1
        line = (address >> SOURCE_SHIFT) - base_offset
        return address ^ ((line & mask) << self.target_bit)


SWIZZLES: dict[str, Swizzle] = {
    s.name: s
    for s in (
        Swizzle("none", 0, 4, 16, 16),
        Swizzle("32B", 1, 4, 32, 256),
        Swizzle("64B", 2, 4, 64, 512),
        Swizzle("128B", 3, 4, 128, 1024),
        Swizzle("128B_atom_32B", 2, 5, 128, 1024),
        Swizzle("128B_atom_64B", 1, 6, 128, 1024),
    )
}
"""All modes by the name that descriptors use."""


def swizzle(name: str | Swizzle) -> Swizzle:
    """Return the mode called `name`; ValueError lists the modes when there is none.

    >>> from ptxgen.layouts.swizzle import swizzle
    >>> swizzle("128B").width
    3
    """
    if isinstance(name, Swizzle):
        return name
    try:
        return SWIZZLES[name]
    except KeyError:
        raise ValueError(f"swizzle must be one of {', '.join(SWIZZLES)}, not {name!r}") from None


def frozen(array: NDArray[Any]) -> NDArray[np.int64]:
    """Return `array` as read-only int64: cached index arrays are shared between callers."""
    result = np.ascontiguousarray(array, dtype=np.int64)
    result.flags.writeable = False
    return result
