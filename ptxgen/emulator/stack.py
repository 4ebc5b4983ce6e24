"""The stacks of threads: local memory, the frame of the function that each thread is in, and where calls return to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.group import Group
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.local_memory import LocalMemory


class ThreadStack:
    """Stacks grow upwards from 0, where the entry's frame begins. `frame` and `pointer` are (warps, 32) in bytes."""

    def __init__(self, warps: int, entry_frame: int) -> None:
        self._entry_frame = entry_frame
        self.memory = LocalMemory(warps * 32, entry_frame)
        #: Where the variables of the function begin in which a thread is.
        self.frame: NDArray[np.int64] = np.zeros((warps, 32), np.int64)
        #: The end of what a thread's stack holds.
        self.pointer: NDArray[np.int64] = np.full((warps, 32), entry_frame, np.int64)

    def clear(self, rows: slice) -> None:
        """Empty the stacks of some warps for the threads that come next."""
        self.frame[rows], self.pointer[rows] = 0, self._entry_frame
        self.memory.clear(slice(rows.start * 32, rows.stop * 32))

    def offsets(self, g: Group, addresses: NDArray[np.int64], size: int, what: str) -> NDArray[np.int64]:
        """Checked offsets of accesses of `size` bytes; masked lanes get 0. Raises MemoryFault."""
        offsets = addresses if g.mask is None else np.where(g.mask, addresses, 0)
        outside = (offsets < 0) | (offsets > self.pointer[g.rows] - size)
        if g.mask is not None:
            outside &= g.mask
        bad = outside | ((offsets & (size - 1)) != 0)
        if bad.any():
            place = tuple(np.argwhere(bad)[0])
            at, end = int(offsets[place]), int(self.pointer[g.rows][place])
            if at % size:
                raise MemoryFault("misaligned", f"{what} of {size} bytes at local address {at:#x}, no multiple of it")
            raise MemoryFault(
                "out-of-bounds", f"{what} of {size} bytes at local address {at:#x}; the thread's stack ends at {end:#x}"
            )
        return offsets

    def mark_written(self, g: Group, offsets: NDArray[np.int64], size: int) -> None:
        """Stores of `size` bytes at these places of `memory.data`."""
        chosen = offsets if g.mask is None else offsets[g.mask]
        self.memory.written.reshape(-1, size)[chosen // size] = True

    def require_written(self, g: Group, offsets: NDArray[np.int64], size: int, statement: syntax.Statement) -> None:
        """Report loads of which no byte was ever stored: copies of a struct read its padding too."""
        chosen = offsets if g.mask is None else offsets[g.mask]
        some = self.memory.written.reshape(-1, size)[chosen // size].any(axis=-1)
        if not some.all():
            at = int(chosen[~some][0]) % self.memory.pitch
            g.machine.findings.add(
                "uninitialized-local",
                f"the load reads local memory at {at:#x} that its thread has not written",
                statement,
                severity="advice",
            )
