"""Shared memory of the resident CTAs: one row of bytes per CTA slot, addressed by 32-bit window offsets.

A CTA's variables start at 1024: sm_90 and later reserve the first KiB for the system (measured from cubins of ptxas
13.0). Bits 24 and up of an address hold the CTA's rank in its cluster.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import count_nonzero
from ptxgen.emulator.checks.registry.memory import MISALIGNED, OUT_OF_BOUNDS
from ptxgen.emulator.memory.faults import MemoryFault, first
from ptxgen.emulator.memory.global_memory import POISON_BYTE

RESERVED_BYTES = 1024
#: The part of it, from 0, that cooperative groups may use (measured: %reserved_smem_offset_1 and _end).
GROUPS_BYTES = 288


class SharedMemory:
    """`data[slot, offset]` are the bytes, `poison` where nothing has been written; `size` is the end of a CTA's.

    With `groups` the first bytes of what the system reserves are accessible too, and zero when a CTA begins: CUDA's
    cooperative groups (13.0, details/memory.h) initialize theirs only where there is no such memory.
    """

    def __init__(
        self,
        slots: int,
        size: int,
        poison: int = POISON_BYTE,
        *,
        groups: bool = False,
        dynamic: int | None = None,
    ) -> None:
        self.size, self._poison, self._groups = size, poison, groups
        #: Bytes of dynamic shared memory that the launch passes; None if the kernel declares none.
        self._dynamic = dynamic
        self.pitch = -(-size // 1024) * 1024
        self.data: NDArray[np.uint8] = np.full((slots, self.pitch), poison, np.uint8)
        if groups:
            self.data[:, :GROUPS_BYTES] = 0

    def clear(self, slots: NDArray[np.int64]) -> None:
        """Poison slots for the next CTAs."""
        self.data[slots] = self._poison
        if self._groups:
            self.data[slots, :GROUPS_BYTES] = 0

    def offsets(
        self, addresses: NDArray[np.int64], size: int, mask: NDArray[np.bool_] | None, what: str
    ) -> NDArray[np.int64]:
        """Checked offsets of accesses of `size` bytes; masked lanes get the first legal offset.

        Raises MemoryFault where an access is misaligned or outside the CTA's memory.
        """
        offsets = addresses
        if mask is not None:
            offsets = np.where(mask, offsets, 0 if self._groups else RESERVED_BYTES)
        early = offsets < RESERVED_BYTES
        if self._groups:
            early &= (offsets < 0) | (offsets > GROUPS_BYTES - size)
        bad = early | (offsets > self.size - size) | ((offsets & (size - 1)) != 0)
        if count_nonzero(bad):
            place = first(bad)
            self._fault(int(offsets[place]), size, what, place)
        return offsets

    def require(self, address: int, size: int, alignment: int, what: str) -> None:
        """Raise MemoryFault unless `size` bytes at `address` lie inside, on a multiple of `alignment`."""
        if address % alignment:
            raise MemoryFault(
                MISALIGNED,
                f"{what} at shared address {address:#x}",
                rule=f"The address must be a multiple of {alignment}",
            )
        if address < RESERVED_BYTES or address + size > self.size:
            self._fault(address, size, what)

    def _fault(self, address: int, size: int, what: str, place: tuple[int, int] | None = None) -> None:
        if RESERVED_BYTES <= address <= self.size - size:
            raise MemoryFault(
                MISALIGNED,
                f"{what} of {size} bytes at shared address {address:#x}",
                place,
                rule=f"The address must be a multiple of {size}",
            )
        summary = f"{what} of {size} bytes at shared address {address:#x}"
        if self._dynamic is not None and address >= self.size - self._dynamic:
            begin = self.size - self._dynamic
            raise MemoryFault(
                OUT_OF_BOUNDS,
                summary,
                place,
                rule=f"The launch passes {self._dynamic} bytes of dynamic shared memory, which begins at {begin:#x}; "
                f"this access ends at byte {address + size - begin}",
                fix="pass the size of the kernel's dynamic shared memory at launch (shared_bytes=, or the third "
                "argument of <<<>>>), or guard the access",
            )
        has = f"The CTA has {RESERVED_BYTES:#x} to {self.size - 1:#x}"
        if self.size == RESERVED_BYTES:
            has = "The kernel declares no shared memory, and the launch passes none"
        raise MemoryFault(OUT_OF_BOUNDS, summary, place, rule=has)
