"""Device memory that the emulator shares with programs: one heap, at the same address in each process."""

from __future__ import annotations

import bisect
import mmap
import os
from collections import deque
from dataclasses import dataclass

import numpy as np

from ptxgen.device.launch import LaunchError
from ptxgen.driver.protocol import Kind
from ptxgen.emulator.memory.global_memory import HEAP_BASE, POISON_BYTE, Allocation, Contents, GlobalMemory

_MIB = 1 << 20
#: Alignments as on a GPU: programs that place arrays of their own rely on them.
_SMALL_ALIGNMENT, _LARGE_ALIGNMENT = 512, 2 * _MIB
#: Bytes between allocations that belong to none.
_GAP = 4096
#: The heap grows in steps of so many bytes.
_STEP = 16 * _MIB
#: Allocations from so many bytes on stay untouched, hence zero, until something is written there.
_LAZY = 64 * _MIB
#: Freed memory is used again once so many bytes have been freed after it, so that a late access is still found.
_QUARANTINE = 64 * _MIB
_NAMES = {
    Kind.DEVICE: "allocation",
    Kind.PINNED: "pinned allocation",
    Kind.MANAGED: "managed allocation",
    Kind.REGISTERED: "registered memory",
    Kind.VARIABLE: "variable",
}


@dataclass(slots=True)
class HostAllocation(Allocation):
    """An allocation of the program; it stays known after it was freed, until its memory is used again."""

    kind: Kind = Kind.DEVICE
    number: int = 0
    freed: bool = False

    def place_of(self, address: int) -> str:
        """An address in or near the allocation."""
        if self.kind is Kind.VARIABLE:
            return Allocation.place_of(self, address)
        name = f"{_NAMES[self.kind]} {self.number}"
        described = f"{name}, {self.bytes} bytes at {self.address:#x}"
        past = address - self.address
        if past < 0:
            return f"{address:#x} is {-past} bytes before {described}"
        if past < self.bytes:
            verb = "was in" if self.freed else "is in"
            rest = ", which has been freed" if self.freed else ""
            return f"{address:#x} {verb} {described}{rest} (byte {past})"
        beyond = past - self.bytes
        where = "just past its end" if beyond == 0 else f"{beyond} bytes past its end"
        return f"{address:#x} is {where}: {described}"


class SharedMemory(GlobalMemory):
    """Global memory in a file of its own (`descriptor`), which programs map at HEAP_BASE."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.descriptor = os.memfd_create("ptxgen-device-memory", os.MFD_CLOEXEC)
        os.ftruncate(self.descriptor, limit)
        self._map = mmap.mmap(self.descriptor, limit)
        self._all = np.frombuffer(self._map, np.uint8)
        self._kinds = np.zeros(limit, np.uint8)  # untouched pages of it take no memory
        self._end = _GAP
        self._numbers = 0
        self._quarantine: deque[HostAllocation] = deque()
        self._quarantined = 0
        #: Ranges that may be used again, by address: (offset, bytes).
        self._free: list[tuple[int, int]] = []
        self._show(_STEP)

    def keep_apart(self) -> None:
        self._map = mmap.mmap(self.descriptor, self.limit, mmap.MAP_PRIVATE)
        self._all = np.frombuffer(self._map, np.uint8)
        self.data = self._all[: len(self.data)]

    def close(self) -> None:
        """Give the memory back."""
        os.close(self.descriptor)

    def _show(self, size: int) -> None:
        """Let the emulator see the heap up to an offset: its checks keep tables of that size."""
        size = min(-(-size // _STEP) * _STEP, self.limit)
        self.data, self.kind = self._all[:size], self._kinds[:size]

    def allocate(self, size: int, contents: Contents | None = None, alignment: int = 1) -> int:
        """The address of `size` new bytes, for what the emulator keeps there. Raises LaunchError."""
        return self._place(size, Kind.VARIABLE, contents or Contents("", "bytes", 1, (size,)), alignment)

    def allocate_for_program(self, size: int, kind: Kind) -> int:
        """The address of `size` new bytes of a program. Raises LaunchError."""
        return self._place(size, kind, Contents("", "bytes", 1, (size,)), 1)

    def _place(self, size: int, kind: Kind, contents: Contents, alignment: int) -> int:
        alignment = max(alignment, _LARGE_ALIGNMENT if size >= _MIB else _SMALL_ALIGNMENT)
        offset = self._reuse(size, alignment)
        if offset is None:
            offset = -(-self._end // alignment) * alignment
            self.require(size, offset)
            self._end = offset + size + _GAP
            if self._end > len(self.data):
                self._show(max(self._end, min(2 * len(self.data), len(self.data) + 16 * _STEP)))
        if size < _LAZY:
            self._all[offset : offset + size] = POISON_BYTE
        self._kinds[offset : offset + size] = 1
        self._layout += 1
        self._numbers += kind is not Kind.VARIABLE
        made = HostAllocation(HEAP_BASE + offset, size, contents, kind, self._numbers)
        self._allocations.insert(self._before(made.address) + 1, made)
        return made.address

    def _reuse(self, size: int, alignment: int) -> int | None:
        """A range of freed memory that is large enough, taken out of the list; its allocations are forgotten."""
        needed = size + _GAP
        for index, (start, available) in enumerate(self._free):
            offset = -(-start // alignment) * alignment
            if offset + needed > start + available:
                continue
            rest = [(start, offset - start), (offset + needed, start + available - offset - needed)]
            self._free[index : index + 1] = [each for each in rest if each[1] >= _SMALL_ALIGNMENT + _GAP]
            low, high = HEAP_BASE + offset, HEAP_BASE + offset + needed
            self._allocations = [
                each
                for each in self._allocations
                if not (getattr(each, "freed", False) and each.address < high and each.address + each.bytes > low)
            ]
            return offset
        return None

    def free(self, address: int) -> None:
        """Free an allocation: accesses to it are out of bounds from now on. Raises MemoryFault."""
        super().free(address)
        found = self._allocations[self._before(address)]
        assert isinstance(found, HostAllocation)
        found.freed = True
        self._quarantine.append(found)
        self._quarantined += found.bytes + _GAP
        while self._quarantined > _QUARANTINE and len(self._quarantine) > 1:
            self._release(self._quarantine.popleft())

    def _release(self, allocation: HostAllocation) -> None:
        """Let the memory of a freed allocation be used again; its pages go back to the system."""
        size, offset = allocation.bytes + _GAP, allocation.address - HEAP_BASE
        self._quarantined -= size
        place = bisect.bisect_left(self._free, (offset, 0))
        if place < len(self._free) and self._free[place][0] == offset + size:
            size += self._free.pop(place)[1]
        if place and sum(self._free[place - 1]) == offset:
            before = self._free.pop(place - 1)
            offset, size = before[0], before[1] + size
            place -= 1
        self._free.insert(place, (offset, size))

    def find(self, address: int) -> HostAllocation | None:
        """The allocation in use that has the byte at an address."""
        index = self._before(address)
        found = self._allocations[index] if index >= 0 else None
        if not isinstance(found, HostAllocation) or found.freed or address >= found.address + max(found.bytes, 1):
            return None
        return found

    def fits(self, size: int) -> None:
        """Raise LaunchError unless an allocation of so many bytes is possible at all."""
        if size > self.limit - 2 * _LARGE_ALIGNMENT:
            raise LaunchError(f"{size} bytes do not fit into the {self.limit} bytes of emulated memory (--memory)")
