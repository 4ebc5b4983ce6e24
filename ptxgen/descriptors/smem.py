"""Shared-memory matrix descriptors: `SmemDescriptor` of tcgen05 and `WgmmaDescriptor` of wgmma, 64 bits each.

PTX ISA 9.7.16.4.1 (table 40) and 9.7.15.5.1.2.2; CUTLASS include/cute/arch/mma_sm100_desc.hpp and
mma_sm90_desc.hpp name the same bits. Where an operand's elements lie is in `ptxgen.layouts.operands`.
"""

from __future__ import annotations

from typing import Self

from ptxgen.descriptors.bits import BitStruct, DescriptorError, constant, field
from ptxgen.descriptors.evidence import documented, measured
from ptxgen.layouts.swizzle import SWIZZLES

_TABLE_40 = documented("PTX ISA 9.7.16.4.1, table 40")
_WGMMA = documented("PTX ISA 9.7.15.5.1.2.2")
_XOR = measured("H200 with wgmma: chunk ^= (address >> 7) - base_offset; tcgen05 by analogy")

ADDRESS_MASK = 0x3FFFF
"""The address bits that a descriptor keeps: a shared::cluster address loses its CTA rank."""


class _Matrix:
    """What both formats say about their values."""

    start_address: int
    leading_byte_offset: int
    base_offset: int
    swizzle: str

    def _remarks(self) -> list[str]:
        mode = SWIZZLES[self.swizzle]
        remarks = []
        if mode.width and self.leading_byte_offset > 16:
            remarks.append("LBO is ignored for swizzled K-major layouts (it counts for MN-major ones)")
        phase = self.start_address % mode.alignment
        if mode.width and phase and phase % 128 == 0 and self.base_offset == 0:
            remarks.append(
                f"the start address lies {phase} bytes past a {mode.alignment}-byte pattern boundary: "
                "base_offset 0 reads data swizzled by absolute address, as TMA writes it"
            )
        if self.base_offset and not mode.width:
            remarks.append("base_offset has no effect without swizzle")
        return remarks


class SmemDescriptor(_Matrix, BitStruct, bits=64):
    """The matrix descriptor of tcgen05.mma and tcgen05.cp; offsets and addresses in bytes, multiples of 16.

    A shared::cluster address is given masked with 0x3FFFF. Raises DescriptorError for values that do not fit.
    """

    start_address: int = field(0, 13, scale=16, unit="bytes", evidence=_TABLE_40)
    leading_byte_offset: int = field(16, 29, default=0, scale=16, unit="bytes", doc="LBO", evidence=_TABLE_40)
    stride_byte_offset: int = field(32, 45, default=0, scale=16, unit="bytes", doc="SBO", evidence=_TABLE_40)
    version = constant(46, 48, 0b001, "fixed")
    base_offset: int = field(49, 51, default=0, doc="pattern lines of 128 bytes", evidence=_XOR)
    lbo_mode: str = field(
        52,
        52,
        default="relative",
        values={"relative": 0, "absolute": 1},
        doc="absolute: sm_103a",
        evidence=_TABLE_40,
    )
    swizzle: str = field(
        61,
        63,
        default="none",
        values={"none": 0, "128B_atom_32B": 1, "128B": 2, "64B": 4, "32B": 6},
        evidence=_TABLE_40,
    )

    def _check(self) -> None:
        if self.lbo_mode == "absolute" and (self.swizzle != "128B" or self.base_offset):
            raise DescriptorError(
                'lbo_mode must be "relative" unless swizzle is "128B" and base_offset is 0, '
                f"not absolute with {self.swizzle!r} and {self.base_offset} (PTX ISA 9.7.16.3.1.2)"
            )

    def warnings(self) -> tuple[str, ...]:
        """Return remarks on values that hardware ignores or that no source has verified."""
        remarks = self._remarks()
        if self.swizzle == "128B_atom_32B":
            remarks.append("128B_atom_32B is verified for 32-bit MN-major operands only; K-major is unverified")
        if self.lbo_mode == "absolute":
            remarks.append("the absolute LBO mode exists on sm_103a only; LBO then is a shared-memory address")
        return tuple(remarks)

    def encode(self) -> int:
        """Return the 64-bit descriptor."""
        return self._encode()

    @classmethod
    def decode(cls, encoded: int) -> Self:
        """Return the value of a 64-bit descriptor; DescriptorError lists reserved bits and illegal codes."""
        return cls._decode(encoded)


class WgmmaDescriptor(_Matrix, BitStruct, bits=64):
    """The matrix descriptor of wgmma.mma_async (sm_90a); offsets and addresses in bytes, multiples of 16.

    A shared::cluster address is given masked with 0x3FFFF. Raises DescriptorError for values that do not fit.
    """

    start_address: int = field(0, 13, scale=16, unit="bytes", evidence=_WGMMA)
    leading_byte_offset: int = field(16, 29, default=0, scale=16, unit="bytes", doc="LBO", evidence=_WGMMA)
    stride_byte_offset: int = field(32, 45, default=0, scale=16, unit="bytes", doc="SBO", evidence=_WGMMA)
    base_offset: int = field(
        49,
        51,
        default=0,
        doc="pattern lines of 128 bytes",
        evidence=measured("H200: chunk ^= (address >> 7) - base_offset"),
    )
    swizzle: str = field(62, 63, default="none", values={"none": 0, "128B": 1, "64B": 2, "32B": 3}, evidence=_WGMMA)

    def warnings(self) -> tuple[str, ...]:
        """Return remarks on values that hardware ignores."""
        return tuple(self._remarks())

    def encode(self) -> int:
        """Return the 64-bit descriptor."""
        return self._encode()

    @classmethod
    def decode(cls, encoded: int) -> Self:
        """Return the value of a 64-bit descriptor; DescriptorError lists reserved bits and illegal codes."""
        return cls._decode(encoded)
