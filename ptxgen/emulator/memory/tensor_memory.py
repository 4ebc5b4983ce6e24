"""Tensor memory (TMEM) of the resident CTAs: 128 lanes of 512 cells of 32 bits, allocated by columns.

PTX ISA 9.7.16.1 and 9.7.16.7: allocations are a power of two of columns from 32, all lanes together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.device.report import Access
from ptxgen.emulator.arrays import all_set, any_set
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.registry.tcgen05 import (
    TMEM_ALLOCATION,
    TMEM_DEALLOC,
    TMEM_OUT_OF_ALLOCATION,
    TMEM_OUT_OF_BOUNDS,
    TMEM_RELINQUISHED,
)
from ptxgen.emulator.memory.faults import MemoryFault
from ptxgen.layouts.tmem import COLUMNS, LANES
from ptxgen.syntax import Statement

_UNIT = 32
#: Fill of cells before anything is written: a NaN that is easy to recognize.
POISON = 0x7FC0DEAD


class _Freed(NamedTuple):
    """Columns that a tcgen05.dealloc of a warp has freed."""

    columns: range
    statement: Statement
    warp: int

    def __str__(self) -> str:
        """The end of a summary."""
        columns = f"columns {self.columns.start}-{self.columns.stop - 1}"
        return f"; tcgen05.dealloc (line {self.statement.line}, warp {self.warp}) freed {columns}"


class TensorMemory:
    """`cells[slot, lane, column]` as 32-bit words, `allocated[slot, column]` says which columns are in use."""

    def __init__(self, slots: int, poison: int = POISON) -> None:
        self._slots, self._poison = slots, poison
        self.allocated: NDArray[np.bool_] = np.zeros((slots, COLUMNS), np.bool_)
        self.sizes: list[dict[int, int]] = [{} for _ in range(slots)]
        #: Which instruction made an allocation: (slot, first column) -> statement.
        self.statements: dict[tuple[int, int], Statement] = {}
        #: Freed allocations of each CTA, in order: columns, and the instruction and warp that freed them.
        self.freed: list[list[_Freed]] = [[] for _ in range(slots)]
        self.relinquished = np.zeros(slots, np.bool_)
        #: The request of a warp of one CTA of a pair: slot -> (warp, columns, statement).
        self._requests: dict[int, tuple[int, int, Statement]] = {}
        #: The allocation that the later request of the peer's warp got for it: slot -> (warp, first column).
        self._granted: dict[int, tuple[int, int]] = {}
        #: True once any CTA has requested an allocation.
        self._used = False
        #: Columns of the last allocation of each CTA, 0 before the first.
        self.last_size = np.zeros(slots, np.int64)
        #: Warps that have freed columns of a pair and wait for the peer to do so.
        self.freeing: set[int] = set()

    @cached_property
    def cells(self) -> NDArray[np.uint32]:
        """The words of all lanes and columns: 256 KiB for each slot, made for kernels that use them."""
        return np.full((self._slots, LANES, COLUMNS), self._poison, np.uint32)

    def clear(self, slots: NDArray[np.int64]) -> None:
        """Clear slots for the next CTAs; before the first allocation of the launch there is nothing to clear."""
        if not self._used:
            return
        for slot in slots.tolist():
            self.cells[slot] = self._poison
            self.allocated[slot] = False
            self.sizes[slot] = {}
            self.freed[slot] = []
            self.relinquished[slot] = False
            self.last_size[slot] = 0
            self._requests.pop(slot, None)
            self._granted.pop(slot, None)

    def allocate(self, slots: Sequence[int], slot: int, warp: int, columns: int, statement: Statement) -> int | None:
        """The first column of a new allocation in a CTA's slot, None when it must wait. Raises MemoryFault if illegal.

        `slots` are the CTA, or the pair, which gets the same columns in both once a `warp` of each allocates.
        """
        self._used = True
        if columns not in (32, 64, 128, 256, 512):
            raise MemoryFault(TMEM_ALLOCATION, f"tcgen05.alloc of {columns} columns")
        if self.relinquished[slot]:
            raise MemoryFault(TMEM_RELINQUISHED, "tcgen05.alloc after tcgen05.relinquish_alloc_permit of the same CTA")
        if len(slots) == 1:
            start = self._room(slots, columns)
            if start is not None:
                self._take(slot, start, columns, statement)
            return start
        granted = self._granted.get(slot)
        if granted is not None and granted[0] == warp:
            del self._granted[slot]
            return granted[1]
        request = self._requests.setdefault(slot, (warp, columns, statement))
        peer = slots[0] + slots[1] - slot
        other = self._requests.get(peer)
        if request[0] != warp or other is None:
            return None
        if other[1] != columns:
            raise MemoryFault(
                TMEM_ALLOCATION,
                f"the CTAs of a pair allocate {columns} and {other[1]} columns",
                rule="Both must allocate the same number",
                accesses=(Access("allocator", other[2].line, other[2].text.strip(), space="tensor"),),
            )
        start = self._room(slots, columns)
        if start is None:
            return None
        for each in (slot, peer):
            self._take(each, start, columns, self._requests.pop(each)[2])
        self._granted[peer] = other[0], start
        return start

    def _room(self, slots: Sequence[int], columns: int) -> int | None:
        """The first column from which so many are free in all these slots."""
        for start in range(0, COLUMNS - columns + 1, _UNIT):
            if not any_set(self.allocated[list(slots), start : start + columns]):
                return start
        return None

    def _take(self, slot: int, start: int, columns: int, statement: Statement) -> None:
        self.allocated[slot, start : start + columns] = True
        self.sizes[slot][start] = columns
        self.statements[slot, start] = statement

    def describe(self, slot: int) -> str:
        """What an alloc or dealloc waits for in a CTA, or in the pair whose even CTA it is; for a deadlock report."""
        held = ", ".join(f"{size} columns at {start}" for start, size in self.sizes[slot].items()) or "none"
        requested = [f"{self._requests[each][1]} columns" for each in (slot, slot + 1) if each in self._requests]
        what = "columns of tensor memory" + (", or the peer of the pair" if requested or self.freeing else "")
        return f"{what}: allocated {held}" + (f"; one CTA requests {requested[0]}" if requested else "")

    def free(self, slot: int, address: int, columns: int, statement: Statement, warp: int) -> None:
        """A warp frees an allocation. Raises MemoryFault unless address and size are those of one."""
        column = address & 0xFFFF
        found = self.sizes[slot].get(column)
        if address >> 16 or found is None or found != columns:
            held = ", ".join(f"{size} columns at {start}" for start, size in self.sizes[slot].items()) or "none"
            raise MemoryFault(
                TMEM_DEALLOC,
                f"tcgen05.dealloc of {columns} columns at {address:#x}",
                rule=f"The allocations of this CTA are: {held}",
                accesses=(
                    Access("allocator", statement.line, statement.text.strip(), space="tensor", address=address),
                ),
            )
        del self.sizes[slot][column]
        self.allocated[slot, column : column + columns] = False
        self.freed[slot].append(_Freed(range(column, column + columns), statement, warp))

    def require(self, slot: int, lanes: range, columns: range, what: str) -> None:
        """Raise MemoryFault unless the cells are inside TMEM and allocated."""
        if lanes.start < 0 or lanes.stop > LANES or columns.start < 0 or columns.stop > COLUMNS:
            raise MemoryFault(
                TMEM_OUT_OF_BOUNDS,
                f"{what} reaches lanes {lanes.start}-{lanes.stop - 1}, columns {columns.start}-{columns.stop - 1}",
                rule=f"TMEM has lanes 0-{LANES - 1}, columns 0-{COLUMNS - 1}",
            )
        if not all_set(self.allocated[slot, columns.start : columns.stop]):
            held = ", ".join(f"{start}-{start + size - 1}" for start, size in self.sizes[slot].items()) or "none"
            freed = self._freed(slot, columns)
            raise MemoryFault(
                TMEM_OUT_OF_ALLOCATION,
                f"{what} reaches columns {columns.start}-{columns.stop - 1}{freed or ''}",
                rule=f"Allocated columns: {held}",
                cause=frozenset([causes.freed(freed.statement.line)]) if freed is not None else None,
            )

    def _freed(self, slot: int, columns: range) -> _Freed | None:
        """Which tcgen05.dealloc freed any of these columns last."""
        overlapping = (
            each
            for each in reversed(self.freed[slot])
            if max(each.columns.start, columns.start) < min(each.columns.stop, columns.stop)
        )
        return next(overlapping, None)
