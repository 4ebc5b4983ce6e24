"""Global memory: one growing heap of arrays with guard gaps, and the windows of the generic address space."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ptxgen.device.launch import LaunchError
from ptxgen.emulator.arrays import all_set, any_set, count_nonzero
from ptxgen.emulator.checks.registry.calls import BAD_FREE
from ptxgen.emulator.checks.registry.memory import MISALIGNED, OUT_OF_BOUNDS
from ptxgen.emulator.memory.faults import MemoryFault, first
from ptxgen.emulator.native.library import Library, chosen, pointer_to
from ptxgen.limits import EMULATED_MEMORY

#: Bytes of a tensormap.
MAP_BYTES = 128
#: First address of global memory (the value is ours). Linux places no program, library, heap or stack near it, even at
#: random, so that `ptxgen exec` can map the same memory at the same address into the process of a program.
HEAP_BASE = 0x1000_0000_0000
#: Generic addresses of the shared window: base + CTA rank in the cluster << 24 + offset.
SHARED_WINDOW = 0x7E00_0000_0000
#: Generic addresses of the kernel's parameters.
PARAM_WINDOW = 0x7D00_0000_0000
#: Generic addresses of a thread's local memory.
LOCAL_WINDOW = 0x7C00_0000_0000
#: Generic addresses of constant variables.
CONST_WINDOW = 0x7B00_0000_0000
#: Addresses of functions, which function pointers hold.
CODE_WINDOW = 0x7A00_0000_0000
#: Size of a window, in bytes.
WINDOW_BYTES = 1 << 32

#: Fill of memory and registers before anything is written.
POISON_BYTE = 0xCD

_ALIGNMENT = 256
_GAP = 4096
#: The size of all memory is a multiple of so many bytes.
_STEP = 1 << 16
_PAGE = 4096
_UNMAPPED, _WRITABLE = 0, 1
#: An address so far from every array is none of an element.
_FAR = 1 << 32


@dataclass(frozen=True, slots=True)
class Contents:
    """What an array is, for messages: `name` is empty where it has none, `element` the bytes of an element."""

    name: str
    type: str
    element: int
    shape: tuple[int, ...]


@dataclass(slots=True)
class Allocation:
    """One array: its first address, its size in bytes, and what it is."""

    address: int
    bytes: int
    contents: Contents

    def place_of(self, address: int) -> str:
        """An address in or near the array as one of its elements."""
        contents = self.contents
        name = f"`{contents.name}`" if contents.name else "the array"
        described = f"{name} at {self.address:#x} ({contents.type}, shape {contents.shape})"
        past = address - self.address
        if past < 0:
            return f"{address:#x} is {_count(-past, 'byte')} before {described}"
        number, byte = divmod(past, contents.element)
        index: list[int] = []
        for extent in reversed(contents.shape[1:]):
            number, at = divmod(number, extent or 1)
            index.insert(0, at)
        place = f"element {[number, *index]}" + (f" (its byte {byte})" if byte else "")
        if past < self.bytes:
            return f"{address:#x} is {place} of {described}"
        beyond = (past - self.bytes) // contents.element + 1
        where = "one past its end" if beyond == 1 else f"{beyond} elements past its end"
        return f"{address:#x} would be {place} of {described}, {where}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


class GlobalMemory:
    """Bytes of all arrays, at most `limit`, and for each byte whether it belongs to one."""

    def __init__(self, limit: int = EMULATED_MEMORY) -> None:
        self.limit = limit
        self.data: NDArray[np.uint8] = np.zeros(_STEP, np.uint8)
        self.kind: NDArray[np.uint8] = np.zeros(_STEP, np.uint8)
        self._end = _GAP
        self._allocations: list[Allocation] = []
        #: Number of changes of arrays, made and freed.
        self._layout = 0
        #: The `kind` that was last copied here, and its `_layout` then.
        self._copied: tuple[NDArray[np.uint8], int] | None = None

    @property
    def used(self) -> int:
        """Up to which offset there may be arrays."""
        return self._end

    @property
    def extent(self) -> int:
        """Bytes that the tables of checks cover: all arrays, in whole pages."""
        return -(-self._end // _PAGE) * _PAGE

    def keep_apart(self) -> None:
        """What this process, which has just been forked, writes from now on is not seen by others."""

    def written(self) -> NDArray[np.uint8]:
        """All bytes up to there, as a view."""
        return self.data[: self._end]

    def parts(self) -> list[slice]:
        """The arrays, as parts of `written()`."""
        begins = ((each.address - HEAP_BASE, each.bytes) for each in self._allocations)
        return [slice(begin, begin + size) for begin, size in begins]

    def copy(self, before: GlobalMemory | None = None) -> GlobalMemory:
        """The same arrays with the same bytes; in the place of a copy of `before`, which nobody uses any more."""
        size = min(-(-self._end // _STEP) * _STEP, self.limit)
        if before is not None and len(before.data) == size:
            made = before
            made.data[:] = self.data[:size]
        else:
            made = GlobalMemory(self.limit)
            made.data = self.data[:size].copy()
        copied = made._copied
        if copied is None or copied[0] is not self.kind or copied[1] != self._layout:
            made.kind, made._copied = self.kind[:size].copy(), (self.kind, self._layout)
        made._end, made._allocations = self._end, self._allocations.copy()
        return made

    def allocate(self, size: int, contents: Contents | None = None, alignment: int = 1) -> int:
        """The address of `size` new bytes, aligned to 256 bytes or more, with gaps around that belong to no array.

        Raises LaunchError where they do not fit.
        """
        alignment = max(alignment, _ALIGNMENT)
        offset = -(-self._end // alignment) * alignment
        end = offset + size + _GAP
        self.require(size, offset)
        if end > len(self.data):
            capacity = max(min(2 * len(self.data), self.limit), -(-end // _STEP) * _STEP)
            try:
                self.data = np.concatenate([self.data, np.zeros(capacity - len(self.data), np.uint8)])
                self.kind = np.concatenate([self.kind, np.zeros(capacity - len(self.kind), np.uint8)])
            except MemoryError:
                raise LaunchError(f"this machine has no memory for {capacity} bytes of the emulated GPU") from None
        self._end, self._layout = end, self._layout + 1
        self.data[offset : offset + size] = POISON_BYTE
        self.kind[offset : offset + size] = _WRITABLE
        self._allocations.append(Allocation(HEAP_BASE + offset, size, contents or Contents("", "bytes", 1, (size,))))
        return HEAP_BASE + offset

    def require(self, size: int, offset: int | None = None) -> None:
        """Raise LaunchError unless so many bytes more fit, from an offset on."""
        if (self._end if offset is None else offset) + size > self.limit:
            raise LaunchError(
                f"{size} bytes of global memory do not fit: {self._end} of {self.limit} bytes are used (memory_bytes)"
            )

    def free(self, address: int) -> None:
        """Free an array. Raises MemoryFault unless one begins there."""
        index = self._before(address)
        array = self._allocations[index] if index >= 0 else None
        if array is None or array.address != address or self.kind[address - HEAP_BASE] == _UNMAPPED:
            raise MemoryFault(BAD_FREE, f"free of {address:#x}", rule="No array in use begins at this address")
        self.kind[address - HEAP_BASE : address - HEAP_BASE + array.bytes] = _UNMAPPED
        self._layout += 1

    def name(self, address: int, name: str, *, rename: bool = True) -> None:
        """Name the array that begins at an address, for messages; one that has a name only with `rename`."""
        index = self._before(address)
        found = self._allocations[index] if index >= 0 else None
        if found is None or found.address != address or found.contents.name == name:
            return
        if rename or not found.contents.name:
            found.contents = replace(found.contents, name=name)

    def _before(self, address: int) -> int:
        """The last array that begins at an address or before it, -1 if there is none."""
        return bisect.bisect_right(self._allocations, address, key=lambda a: a.address) - 1

    def view(self, address: int, size: int) -> NDArray[np.uint8]:
        """The bytes of an array, as a view; valid until the next allocation."""
        offset = address - HEAP_BASE
        return self.data[offset : offset + size]

    def element(self, address: int) -> str:
        """The element at an address by name, `c[3, 4]`; empty outside arrays, and of one without a name."""
        index = self._before(address)
        array = self._allocations[index] if index >= 0 else None
        if array is None or not array.contents.name or address >= array.address + array.bytes:
            return ""
        places = np.unravel_index((address - array.address) // array.contents.element, array.contents.shape)
        return f"{array.contents.name}[{', '.join(str(int(each)) for each in places)}]"

    def describe(self, address: int) -> str:
        """An address for messages: as an element of the nearest array."""
        index = self._before(address)
        near = [self._allocations[at] for at in (index, index + 1) if 0 <= at < len(self._allocations)]
        if not near:
            return f"{address:#x} is in no array; there are none"
        distance = [max(each.address - address, address - each.address - each.bytes + 1, 0) for each in near]
        if min(distance) > _FAR:
            return f"{address:#x} is not near any array"
        return near[distance.index(min(distance))].place_of(address)

    def offsets(
        self, addresses: NDArray[np.uint64], size: int, mask: NDArray[np.bool_] | None, what: str
    ) -> NDArray[np.int64]:
        """Heap offsets of accesses of `size` bytes; masked lanes get an offset inside the leading gap.

        Raises MemoryFault where an access is misaligned or touches bytes of no array.
        """
        library = chosen()
        if library is not None and (found := self._offsets(library, addresses, size, mask)) is not None:
            return found
        offsets = (addresses - np.uint64(HEAP_BASE)).view(np.int64)
        if mask is not None:
            offsets = np.where(mask, offsets, 0)
        outside = (offsets < 0) | (offsets > len(self.data) - size)
        bad = outside | ((offsets & (size - 1)) != 0)
        if count_nonzero(bad):
            place = first(bad)
            at = int(addresses[place])
            if at % size:
                raise MemoryFault(
                    MISALIGNED,
                    f"{what} of {size} bytes at {at:#x}",
                    place,
                    rule=f"The address must be a multiple of {size}",
                )
            raise MemoryFault(
                OUT_OF_BOUNDS,
                f"{what} of {size} bytes at {at:#x}, outside global memory",
                place,
                rule=self.describe(at),
            )
        bad = (self.kind[offsets] == _UNMAPPED) | (self.kind[offsets + (size - 1)] == _UNMAPPED)
        if mask is not None:
            bad &= mask
        if count_nonzero(bad):
            place = first(bad)
            at = int(addresses[place])
            raise MemoryFault(
                OUT_OF_BOUNDS, f"{what} of {size} bytes at {at:#x}, outside every array", place, rule=self.describe(at)
            )
        return offsets

    def _offsets(
        self, library: Library, addresses: NDArray[np.uint64], size: int, mask: NDArray[np.bool_] | None
    ) -> NDArray[np.int64] | None:
        """The same by machine code; None where there is something to raise."""
        given = np.ascontiguousarray(addresses)
        lanes = None if mask is None else np.ascontiguousarray(mask)
        made = np.empty(given.shape, np.int64)
        bad = library.offsets(
            pointer_to(given),
            None if lanes is None else pointer_to(lanes),
            given.size,
            HEAP_BASE,
            len(self.data),
            size,
            pointer_to(self.kind),
            pointer_to(made),
        )
        return None if bad else made

    def require_mapped(self, offsets: NDArray[np.int64] | range, what: str) -> None:
        """Raise MemoryFault unless every heap offset is inside an array; a range has steps of 1."""
        if not len(offsets):
            return
        if isinstance(offsets, range):
            if offsets.start >= 0 and offsets.stop <= len(self.data):
                kinds = self.kind[offsets.start : offsets.stop]
                if not count_nonzero(kinds == _UNMAPPED):
                    return
            offsets = np.arange(offsets.start, offsets.stop)
        inside = (offsets >= 0) & (offsets < len(self.data))
        if not all_set(inside) or any_set(self.kind[offsets] == _UNMAPPED):
            bad = ~inside
            if not any_set(bad):
                bad = self.kind[offsets] == _UNMAPPED
            at = HEAP_BASE + int(offsets[bad][0])
            raise MemoryFault(OUT_OF_BOUNDS, f"{what} at {at:#x}, outside every array", rule=self.describe(at))
