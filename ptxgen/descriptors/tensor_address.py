"""Addresses in tensor memory, which tcgen05.alloc writes and tcgen05 instructions take (PTX ISA 9.7.16.1.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from ptxgen.descriptors.bits import BitStruct
from ptxgen.descriptors.fields import field

_LANES_OF_WARP = 32
_WARPS = 4


class TensorAddress(BitStruct, bits=32):
    """An address in tensor memory: a lane of 128 and a column of 512, each cell of 32 bits.

        >>> from ptxgen.descriptors import TensorAddress
        >>> hex(TensorAddress(column=128, lane=32).encode())
        '0x200080'

    A column more is 1 more, a lane more is 0x10000 more. Raises DescriptorError for a cell that does not exist.
    """

    column: int = field(0, 15, maximum=511, doc="of 32 bits")
    lane: int = field(16, 31, default=0, maximum=127)

    def notes(self) -> tuple[str, ...]:
        """Return the warp that reaches the lane by tcgen05.ld and st."""
        warp = self.lane // _LANES_OF_WARP
        first = warp * _LANES_OF_WARP
        return (
            f"warp {warp} of a warpgroup (warp index % {_WARPS}) reaches lanes {first}-{first + _LANES_OF_WARP - 1} "
            "by tcgen05.ld and st",
        )

    @classmethod
    def _concerns(cls, values: Mapping[str, Any]) -> tuple[str, ...]:
        return ("tmem-lane-field",)

    def encode(self) -> int:
        """Return the 32-bit address."""
        return self._encode()

    @classmethod
    def decode(cls, encoded: int) -> Self:
        """Return the lane and column of a 32-bit address; DescriptorError where there is no such cell."""
        return cls._decode(encoded)
