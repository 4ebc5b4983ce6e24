"""Memory that a kernel can only read: its parameters, and constant variables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import count_nonzero
from ptxgen.emulator.checks.registry.memory import MISALIGNED, OUT_OF_BOUNDS
from ptxgen.emulator.memory.faults import MemoryFault


class Bank:
    """The bytes of a state space from address 0 on; `name` says what they are, for messages."""

    def __init__(self, data: bytes, name: str) -> None:
        self.size, self.name = len(data), name
        self.data: NDArray[np.uint8] = np.frombuffer(bytearray(data) + bytes(-len(data) % 32 + 32), np.uint8)

    def offsets(
        self, addresses: NDArray[np.int64], size: int, mask: NDArray[np.bool_] | None, what: str
    ) -> NDArray[np.int64]:
        """Checked offsets of accesses of `size` bytes; masked lanes get 0. Raises MemoryFault."""
        offsets = addresses if mask is None else np.where(mask, addresses, 0)
        outside = (offsets < 0) | (offsets > self.size - size)
        if mask is not None:
            outside &= mask
        bad = outside | ((offsets & (size - 1)) != 0)
        if count_nonzero(bad):
            at = int(offsets[tuple(np.argwhere(bad)[0])])
            if at % size:
                raise MemoryFault(
                    MISALIGNED,
                    f"{what} of {size} bytes at byte {at} of {self.name}",
                    rule=f"The address must be a multiple of {size}",
                )
            raise MemoryFault(
                OUT_OF_BOUNDS,
                f"{what} of {size} bytes at byte {at} of {self.name}",
                rule=f"Its size is {self.size} bytes",
            )
        return offsets
