"""From a tile of a matrix operand to its descriptors: strides, alignment, the advance along K, the TMA boxes.

The layouts are the canonical ones of `ptxgen.layouts.operands` (PTX ISA 9.7.15.5.1.2 and 9.7.16.3), packed without gaps
the way TMA writes boxes of the same swizzle: slab after slab, each one swizzle row wide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ptxgen.descriptors.errors import DescriptorError, as_int, choices, refuse, require, show
from ptxgen.descriptors.smem import ADDRESS_MASK, SmemDescriptor, WgmmaDescriptor
from ptxgen.layouts.operands import Major, operand_addresses
from ptxgen.layouts.swizzle import SWIZZLES, Swizzle

_CHUNK = 16
_NAMES = ("none", "32B", "64B", "128B", "128B_atom_32B")


@dataclass(frozen=True, kw_only=True)
class OperandTile:
    """A tile of A (`rows` counts M) or B (N) in shared memory, `k` elements deep, elements of 4 to 32 bits.

        >>> from ptxgen.descriptors import OperandTile
        >>> tile = OperandTile(element_bits=16, major="k", swizzle="128B", rows=128, k=64)
        >>> hex(tile.addresses(0x400)[5, 8])
        '0x6c0'

    `major` is "k" or "mn", `swizzle` a mode of a matrix descriptor. Elements of 4 bits are packed two to a byte
    (kind::mxf4). Raises DescriptorError, with the rule and the values, for a tile that no descriptor can describe.
    """

    element_bits: int
    major: Major
    swizzle: str
    rows: int
    k: int

    def __post_init__(self) -> None:
        for name in ("element_bits", "rows", "k"):
            number = as_int(getattr(self, name))
            if number is None:
                refuse(name, "an integer", getattr(self, name))
            object.__setattr__(self, name, number)
        require(self.element_bits in (4, 8, 16, 32), "element_bits", "4, 8, 16 or 32", self.element_bits)
        require(self.major in ("k", "mn"), "major", "k or mn", self.major)
        require(self.swizzle in _NAMES, "swizzle", choices(_NAMES), self.swizzle)
        if self.major == "mn":
            if self.element_bits == 4:
                raise DescriptorError("major must be k for elements of 4 bits, not mn (PTX ISA table 54)")
            if (self.element_bits == 32) != (self.swizzle == "128B_atom_32B"):
                raise DescriptorError(
                    f"swizzle must be {'128B_atom_32B' if self.element_bits == 32 else 'another mode'} for MN-major "
                    f"elements of {self.element_bits} bits, not {self.swizzle} (PTX ISA table 54)"
                )
        across, along = ("k", "rows") if self.major == "k" else ("rows", "k")
        unit = self.mode.row_bytes * 8 // self.element_bits
        group = self._group
        for name, step in ((across, unit), (along, group)):
            value = getattr(self, name)
            where = f"{self.major.upper()}-major elements of {self.element_bits} bits with swizzle {self.swizzle}"
            require(value > 0 and value % step == 0, name, f"a positive multiple of {step} for {where}", value)
        if self.leading_byte_offset > ADDRESS_MASK or self.bytes > ADDRESS_MASK + 1:
            raise DescriptorError(
                f"a tile must fit 256 KiB of shared memory, but rows {show(self.rows)} and k {show(self.k)} make "
                f"{show(self.bytes)} bytes"
            )

    @property
    def mode(self) -> Swizzle:
        """The swizzle mode."""
        return SWIZZLES[self.swizzle]

    @property
    def _group(self) -> int:
        """Lines of one core matrix or swizzle atom: rows if K-major, elements of K if MN-major."""
        return 4 if self.swizzle == "128B_atom_32B" and self.major == "mn" else 8

    @property
    def _lines(self) -> int:
        """Lines of a slab: rows if K-major, elements of K if MN-major."""
        return self.rows if self.major == "k" else self.k

    @property
    def slab_bytes(self) -> int:
        """Bytes of one slab: all lines, one swizzle row wide (16 bytes without swizzle)."""
        return self._lines * self.mode.row_bytes

    @property
    def bytes(self) -> int:
        """Bytes of the tile."""
        return self.rows * self.k * self.element_bits // 8

    @property
    def alignment(self) -> int:
        """Bytes: where the tile must start for base offset 0."""
        return max(self.mode.alignment, _CHUNK)

    @property
    def leading_byte_offset(self) -> int:
        """LBO in bytes; 0 where it is ignored (swizzled K-major).

        Between 16-byte chunks of K (K-major, none), blocks of MN (MN-major, swizzled), groups of 8 K (MN-major, none).
        """
        if self.mode.width:
            return 0 if self.major == "k" else self.slab_bytes
        return self.slab_bytes if self.major == "k" else 8 * _CHUNK

    @property
    def stride_byte_offset(self) -> int:
        """SBO in bytes: between groups of 8 rows (K-major), groups of K (MN-major, swizzled), chunks of MN (none)."""
        if self.major == "mn" and not self.mode.width:
            return self.slab_bytes
        return self._group * self.mode.row_bytes

    @property
    def box(self) -> tuple[int, int]:
        """The box of TMA that writes one slab, in elements, innermost first; `slabs` such boxes make the tile."""
        return self.mode.row_bytes * 8 // self.element_bits, self._lines

    @property
    def slabs(self) -> int:
        """How many boxes the tile takes."""
        return self.bytes // self.slab_bytes

    def advance(self, k: int) -> int:
        """Bytes to add to the start address to begin at element `k` of the K dimension.

        Raises DescriptorError where no descriptor can begin: inside 16 bytes of a K-major row, or of a group of K.
        """
        number = as_int(k)
        if number is None or not 0 <= number < self.k:
            refuse("k", f"0 to {self.k - 1}", k)
        k = number
        if self.major == "k":
            inner = k * self.element_bits // 8
            if k * self.element_bits % (8 * _CHUNK):
                raise DescriptorError(
                    f"k must be a multiple of {8 * _CHUNK // self.element_bits}, not {k}: a descriptor starts at "
                    "multiples of 16 bytes"
                )
            return inner // self.mode.row_bytes * self.slab_bytes + inner % self.mode.row_bytes
        if k % self._group:
            raise DescriptorError(f"k must be a multiple of {self._group} for MN-major operands, not {k}")
        return k * self.mode.row_bytes

    def addresses(self, start_address: int) -> NDArray[np.int64]:
        """The byte address of element (row, k) of the tile: shape [rows, k]; of 4-bit elements two have the same.

        `start_address` is a multiple of 16; the swizzle acts on the absolute address.
        """
        bits = max(self.element_bits, 8)
        depth = self.k * self.element_bits // bits  # pairs of 4-bit elements are bytes
        inner = self.mode.row_bytes * 8 // bits if self.major == "k" and self.mode.width else depth
        slabs = [
            operand_addresses(
                self.smem_descriptor(start_address + slab * self.slab_bytes), self.major, self.rows, inner, bits
            )
            for slab in range(depth // inner)
        ]
        whole = np.concatenate(slabs, axis=1)
        return np.repeat(whole, bits // self.element_bits, axis=1)

    @classmethod
    def of(
        cls, descriptor: SmemDescriptor | WgmmaDescriptor, *, element_bits: int, major: Major, rows: int, k: int
    ) -> Self:
        """The tile that a descriptor describes from its first element on.

        Raises DescriptorError where the strides are not those of a packed tile of this size.
        """
        tile = cls(element_bits=element_bits, major=major, swizzle=descriptor.swizzle, rows=rows, k=k)
        wanted = [("SBO", tile.stride_byte_offset, descriptor.stride_byte_offset)]
        if tile.leading_byte_offset:
            wanted.append(("LBO", tile.leading_byte_offset, descriptor.leading_byte_offset))
        for name, packed, given in wanted:
            if packed != given:
                raise DescriptorError(
                    f"{name} must be {packed} for a packed {major.upper()}-major tile of {rows}×{k} elements of "
                    f"{element_bits} bits with swizzle {tile.swizzle}, not {given}"
                )
        return tile

    def smem_descriptor(self, start_address: int, k: int = 0) -> SmemDescriptor:
        """The tcgen05 descriptor of the tile at a shared-memory address, from element `k` of K on."""
        return SmemDescriptor(
            start_address=(start_address + self.advance(k)) & ADDRESS_MASK,
            leading_byte_offset=self.leading_byte_offset,
            stride_byte_offset=self.stride_byte_offset,
            swizzle=self.swizzle,
        )

    def wgmma_descriptor(self, start_address: int, k: int = 0) -> WgmmaDescriptor:
        """The wgmma descriptor of the tile at a shared-memory address, from element `k` of K on."""
        return WgmmaDescriptor(
            start_address=(start_address + self.advance(k)) & ADDRESS_MASK,
            leading_byte_offset=self.leading_byte_offset,
            stride_byte_offset=self.stride_byte_offset,
            swizzle=self.swizzle,
        )
