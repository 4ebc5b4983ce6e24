"""What a launch accesses of global memory, byte by byte.

The host's happens-before compares operations of streams by it (`ptxgen.driver`), and processes that share a launch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.device import Kernel
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.load.calls import reachable
from ptxgen.emulator.memory.global_memory import HEAP_BASE
from ptxgen.emulator.memory.granules import GRANULE
from ptxgen.emulator.memory.located import MemoryAccess
from ptxgen.emulator.observer import Observer
from ptxgen.syntax import Statement

#: Flags of accesses to a byte (as in native/order.c): weak, strong, and strong with .sys scope.
READ, WRITE, STRONG_READ, STRONG_WRITE, SYSTEM_READ, SYSTEM_WRITE = 1, 2, 4, 8, 16, 32
#: Beside SYSTEM_WRITE: the write may release, so that the program that reads it sees what came before.
RELEASE = 64
#: Parts of memory that are sent for a launch; nothing is claimed of one that accesses more.
_MOST_PARTS = 4096
#: Bytes of a part.
PART_BYTES = 16
_SYSTEM = re.compile(r"\.(sys|volatile|mmio)\b")
_RELEASES = re.compile(r"\b(membar|fence(\.sc|\.acq_rel|\.release)?)\.sys\b|\.(release|acq_rel)\b[\w.:]*\.sys\b")
_REPEATED = {size: int.from_bytes(b"\1" * size, "little") for size in (1, 2, 4, 8)}


def may_release(kernel: Kernel) -> bool:
    """Whether a kernel has a release in the scope of the system, or a fence that makes one."""
    if "releases to the system" not in kernel.cache:
        functions = reachable(kernel.module, kernel.entry)
        kernel.cache["releases to the system"] = any(_RELEASES.search(each.text) for each in functions)
    return bool(kernel.cache["releases to the system"])


class Footprint(Observer):
    """Flags of each byte of the heap that a launch has accessed; `releases` as `may_release` says of its kernel."""

    def __init__(self, bytes: int, releases: bool = False) -> None:
        self._releases = releases
        self._how = np.zeros(bytes, np.uint8)  # pages that are not touched take no memory
        self._low, self._high = bytes, 0
        #: Strong loads and atomic operations so far.
        self.strong = 0

    def heap_grows(self, bytes: int) -> None:
        if bytes > len(self._how):
            self._how = np.concatenate([self._how, np.zeros(bytes - len(self._how), np.uint8)])

    def memory_loads(self, access: MemoryAccess) -> None:
        self._threads(access, reads=True, writes=False)

    def memory_stores(self, access: MemoryAccess, values: Sequence[NDArray[Any]]) -> None:
        self._threads(access, reads=False, writes=True)

    def memory_updates(
        self, access: MemoryAccess, turns: NDArray[np.int64] | None, *, returns: bool, uses: bool
    ) -> None:
        self._threads(access, reads=True, writes=True, strong=True)

    def copies_issued(
        self, works: Sequence[AsyncWork], access: MemoryAccess, sources: NDArray[np.int64], read: NDArray[np.int64]
    ) -> None:
        for size in np.unique(read[access.active]).tolist():
            some = sources[access.active & (read == size)]
            if size == access.size:
                self._mark(some, size, READ)
            else:
                self._mark((some[:, None] + np.arange(size)).ravel(), 1, READ)

    def work_reads_global(self, work: AsyncWork, granules: NDArray[np.int64]) -> None:
        self._mark(granules * GRANULE, GRANULE, READ)

    def work_writes_global(self, work: AsyncWork, granules: NDArray[np.int64]) -> None:
        self._mark(granules * GRANULE, GRANULE, WRITE)

    def _threads(self, access: MemoryAccess, *, reads: bool, writes: bool, strong: bool = False) -> None:
        if access.space != "global":
            return
        scale = 1
        if strong or access.order is not None:
            self.strong += 1
            scale = 16 if _SYSTEM.search(access.statement.text) else 4
        how = scale * (READ * reads | WRITE * writes)
        if self._releases and how & SYSTEM_WRITE:
            how |= RELEASE
        offsets = access.places.offsets
        chosen = offsets.ravel() if access.mask is None else offsets[access.mask]
        self._mark(chosen, access.size, how)

    def _mark(self, offsets: NDArray[np.int64], size: int, how: int) -> None:
        """Accesses of `size` bytes at these offsets, multiples of it."""
        inside = offsets[(offsets >= 0) & (offsets < len(self._how))]
        if not len(inside):
            return
        self._low, self._high = min(self._low, int(inside.min())), max(self._high, int(inside.max()) + size)
        unit = min(size, 8)
        words = self._how.view(f"u{unit}")
        for part in range(0, size, unit):
            words[(inside + part) // unit] |= np.array(how * _REPEATED[unit], words.dtype)

    def tensormap_used(
        self, warp: int, address: int, data: bytes, statement: Statement, *, prefetches: bool = False
    ) -> None:
        self._mark(address - HEAP_BASE + np.arange(0, len(data), PART_BYTES), PART_BYTES, READ)

    @property
    def accessed(self) -> NDArray[np.bool_]:
        """By byte of the heap, whether it was."""
        return self._how != 0

    @property
    def written(self) -> NDArray[np.bool_]:
        """By byte of the heap, whether it was."""
        return self._how & (WRITE | STRONG_WRITE | SYSTEM_WRITE) != 0

    def polled(self) -> NDArray[np.int64]:
        """Offsets of the bytes that strong loads have read, of all bytes that were read if there are none."""
        how = self._how[self._low : self._high]
        for mask in (STRONG_READ | SYSTEM_READ, READ):
            if len(found := np.flatnonzero(how & mask)):
                return found + self._low
        return np.zeros(0, np.int64)

    def parts(self) -> bytes:
        """Runs of bytes that are accessed alike, by address: pairs of 64-bit numbers (struct Part of order.c)."""
        how = self._how[self._low : self._high]
        if not len(how):
            return b""
        edges = np.flatnonzero(np.diff(how)) + 1
        if len(edges) > 2 * _MOST_PARTS:
            return b""
        starts = np.concatenate([[0], edges])
        ends = np.concatenate([edges, [len(how)]])
        flags = how[starts].astype(np.uint64)
        used = np.flatnonzero(flags)
        made = np.empty((len(used), 2), np.uint64)
        made[:, 0] = (starts[used] + self._low + HEAP_BASE).astype(np.uint64)
        made[:, 1] = (ends[used] - starts[used]).astype(np.uint64) | flags[used] << np.uint64(56)
        return made.tobytes() if len(used) <= _MOST_PARTS else b""
