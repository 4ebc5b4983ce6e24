"""Local memory: a stack of bytes for each thread, at offsets that are private to the thread.

A thread has at most 512 KiB of it (CUDA programming guide, table of technical specifications).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.registry.calls import STACK_OVERFLOW
from ptxgen.emulator.memory.faults import MemoryFault
from ptxgen.emulator.memory.global_memory import POISON_BYTE

LIMIT = 512 * 1024


class LocalMemory:
    """`data[thread, offset]` are the bytes of the threads of all warps, `written` which of them hold a value."""

    def __init__(self, threads: int, size: int) -> None:
        self._threads = threads
        self._poison = POISON_BYTE
        self.pitch = max(-(-size // 32) * 32, 32)
        self.data: NDArray[np.uint8] = np.full((threads, self.pitch), POISON_BYTE, np.uint8)
        self.written: NDArray[np.bool_] = np.zeros((threads, self.pitch), np.bool_)

    def poison(self, byte: int) -> None:
        """Set the byte that uninitialized memory holds from now on."""
        self._poison = byte
        self.data[...] = byte

    def grow(self, size: int) -> None:
        """Make room for stacks of `size` bytes. Raises MemoryFault above the limit."""
        if size > LIMIT:
            raise MemoryFault(
                STACK_OVERFLOW,
                f"a thread's stack takes {size} bytes of local memory",
                rule=f"The limit is {LIMIT} bytes",
            )
        if size <= self.pitch:
            return
        pitch = min(max(2 * self.pitch, -(-size // 32) * 32), LIMIT)
        data = np.full((self._threads, pitch), self._poison, np.uint8)
        written = np.zeros((self._threads, pitch), np.bool_)
        data[:, : self.pitch], written[:, : self.pitch] = self.data, self.written
        self.data, self.written, self.pitch = data, written, pitch

    def clear(self, threads: NDArray[np.int64]) -> None:
        """Poison the memory of some threads for those that come next."""
        self.data[threads] = self._poison
        self.written[threads] = False

    def forget(self, threads: NDArray[np.int64], start: NDArray[np.int64], size: int) -> None:
        """New variables of `size` bytes at `start` of each thread hold no value yet."""
        if size:
            places = (threads * self.pitch + start)[:, None] + np.arange(size)
            self.data.reshape(-1)[places] = self._poison
            self.written.reshape(-1)[places] = False
