"""Tensor memory (TMEM) of the resident CTAs: 128 lanes of 512 cells of 32 bits, allocated by columns.

PTX ISA 9.7.16.1 and 9.7.16.7: allocations are a power of two of columns from 32, all lanes together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.memory.faults import MemoryFault
from ptxgen.layouts.tmem import COLUMNS, LANES
from ptxgen.syntax import Statement

_UNIT = 32
#: What cells hold before anything is written: a NaN that is easy to recognise.
POISON = 0x7FC0DEAD


class TensorMemory:
    """`cells[slot, lane, column]` as 32-bit words, `allocated[slot, column]` tells which columns are in use."""

    def __init__(self, slots: int) -> None:
        self.cells: NDArray[np.uint32] = np.full((slots, LANES, COLUMNS), POISON, np.uint32)
        self.allocated: NDArray[np.bool_] = np.zeros((slots, COLUMNS), np.bool_)
        self.sizes: list[dict[int, int]] = [{} for _ in range(slots)]
        #: Which instruction made an allocation: (slot, first column) -> statement.
        self.statements: dict[tuple[int, int], Statement] = {}
        self.relinquished = np.zeros(slots, np.bool_)

    def clear(self, slot: int) -> None:
        """Make a slot ready for the next CTA."""
        self.cells[slot] = POISON
        self.allocated[slot] = False
        self.sizes[slot] = {}
        self.relinquished[slot] = False

    def allocate(self, slot: int, columns: int, statement: Statement) -> int | None:
        """The first column of a new allocation, None when there is no room now. Raises MemoryFault if illegal."""
        if columns not in (32, 64, 128, 256, 512):
            raise MemoryFault("tmem-allocation", f"tcgen05.alloc takes 32, 64, 128, 256 or 512 columns, not {columns}")
        if self.relinquished[slot]:
            raise MemoryFault("tmem-relinquished", "tcgen05.alloc after tcgen05.relinquish_alloc_permit in this CTA")
        for start in range(0, COLUMNS - columns + 1, _UNIT):
            if not self.allocated[slot, start : start + columns].any():
                self.allocated[slot, start : start + columns] = True
                self.sizes[slot][start] = columns
                self.statements[slot, start] = statement
                return start
        return None

    def free(self, slot: int, address: int, columns: int) -> None:
        """Free an allocation. Raises MemoryFault unless address and size are those of one."""
        column = address & 0xFFFF
        found = self.sizes[slot].get(column)
        if address >> 16 or found is None or found != columns:
            held = ", ".join(f"{size} columns at {start}" for start, size in self.sizes[slot].items()) or "none"
            raise MemoryFault(
                "tmem-dealloc", f"tcgen05.dealloc of {columns} columns at {address:#x}; this CTA holds {held}"
            )
        del self.sizes[slot][column]
        self.allocated[slot, column : column + columns] = False

    def require(self, slot: int, lanes: range, columns: range, what: str) -> None:
        """Raise MemoryFault unless the cells are inside TMEM and allocated."""
        if lanes.start < 0 or lanes.stop > LANES or columns.start < 0 or columns.stop > COLUMNS:
            raise MemoryFault(
                "tmem-out-of-bounds",
                f"{what} reaches lanes {lanes.start}-{lanes.stop - 1}, columns {columns.start}-{columns.stop - 1}; "
                f"TMEM has lanes 0-{LANES - 1}, columns 0-{COLUMNS - 1}",
            )
        if not self.allocated[slot, columns.start : columns.stop].all():
            held = ", ".join(f"{start}-{start + size - 1}" for start, size in self.sizes[slot].items()) or "none"
            raise MemoryFault(
                "tmem-out-of-allocation",
                f"{what} reaches columns {columns.start}-{columns.stop - 1}; allocated columns: {held}",
            )
