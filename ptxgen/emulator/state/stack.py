"""The stacks of threads: local memory, the frame of the function that each thread is in, and where calls return to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks.registry import memory
from ptxgen.emulator.load.registers import Register
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.local_memory import LocalMemory
from ptxgen.emulator.state.group import Group


@dataclass(eq=False)
class _Level:
    """What the calls of one depth return to: (warps, 32) each."""

    site: NDArray[np.int64]
    frame: NDArray[np.int64]
    pointer: NDArray[np.int64]
    saved: dict[int, NDArray[Any]] = field(default_factory=dict)


class ThreadStack:
    """Stacks grow upwards from 0, where the entry's frame begins. `frame` and `pointer` are (warps, 32) in bytes."""

    def __init__(self, warps: int, entry_frame: int) -> None:
        self._entry_frame = entry_frame
        self.memory = LocalMemory(warps * 32, entry_frame)
        #: Where the variables of the function begin in which a thread is.
        self.frame: NDArray[np.int64] = np.zeros((warps, 32), np.int64)
        #: The end of what a thread's stack holds.
        self.pointer: NDArray[np.int64] = np.full((warps, 32), entry_frame, np.int64)
        #: The number of the call in which a thread is, 0 in the entry, and how deep in calls it is.
        self.site: NDArray[np.int64] = np.zeros((warps, 32), np.int64)
        self._depth: NDArray[np.int64] = np.zeros((warps, 32), np.int64)
        self._levels: list[_Level] = []

    def clear(self, warps: NDArray[np.int64]) -> None:
        """Empty the stacks of some warps for the threads that come next."""
        self.frame[warps], self.pointer[warps] = 0, self._entry_frame
        self.site[warps], self._depth[warps] = 0, 0
        if self.memory.pitch:
            self.memory.clear((warps[:, None] * 32 + np.arange(32)).ravel())

    def push(self, g: Group, site: int, frame: int, saved: Sequence[Register]) -> None:
        """A call: a frame of so many bytes, and the registers to keep. Raises MemoryFault when the stack is full."""
        for level, part in self._at_depths(g, 0):
            for kept, now in ((level.site, self.site), (level.frame, self.frame), (level.pointer, self.pointer)):
                part.store(kept, now[part.warps])
            for register in saved:
                array = g.machine.registers[register.index]
                part.store(level.saved.setdefault(register.index, np.zeros_like(array)), array[part.warps])
        g.store(self.frame, self.pointer[g.warps])
        g.store(self.site, np.asarray(site))
        g.store(self._depth, self._depth[g.warps] + 1)
        self.extend(g, np.asarray(frame))

    def extend(self, g: Group, size: NDArray[np.int64]) -> None:
        """Take so many bytes of the stack; they hold no values yet. Raises MemoryFault when the stack is full."""
        active = g.active
        start, sizes = self.pointer[g.warps][active], np.broadcast_to(size, active.shape)[active]
        self.memory.grow(int((start + sizes).max(initial=0)))
        threads = (g.indices[:, None] * 32 + np.arange(32))[active]
        for number in np.unique(sizes):
            chosen = sizes == number
            self.memory.forget(threads[chosen], start[chosen], int(number))
        g.store(self.pointer, self.pointer[g.warps] + size)

    def pop(self, g: Group, saved: Sequence[Register]) -> None:
        """A return: back to the frame of the caller, with its registers."""
        for level, part in self._at_depths(g, -1):
            for kept, now in ((level.site, self.site), (level.frame, self.frame), (level.pointer, self.pointer)):
                part.store(now, kept[part.warps])
            for register in saved:
                part.store(g.machine.registers[register.index], level.saved[register.index][part.warps])
        g.store(self._depth, self._depth[g.warps] - 1)

    def _at_depths(self, g: Group, change: int) -> Iterator[tuple[_Level, Group]]:
        """The level for the depth of each lane, plus a change, with its lanes."""
        depths = self._depth[g.warps] + change
        for depth in np.unique(depths[g.active]):
            while depth >= len(self._levels):
                site, frame, pointer = (np.zeros_like(self.site) for _ in range(3))
                self._levels.append(_Level(site, frame, pointer))
            part = g.narrowed(depths == depth)
            assert part is not None
            yield self._levels[int(depth)], part

    def offsets(self, g: Group, addresses: NDArray[np.int64], size: int, what: str) -> NDArray[np.int64]:
        """Checked offsets of accesses of `size` bytes; masked lanes get 0. Raises MemoryFault."""
        offsets = addresses if g.mask is None else np.where(g.mask, addresses, 0)
        outside = (offsets < 0) | (offsets > self.pointer[g.warps] - size)
        if g.mask is not None:
            outside &= g.mask
        bad = outside | ((offsets & (size - 1)) != 0)
        if any_set(bad):
            place = tuple(np.argwhere(bad)[0])
            at, end = int(offsets[place]), int(self.pointer[g.warps][place])
            if at % size:
                raise MemoryFault(
                    memory.MISALIGNED,
                    f"{what} of {size} bytes at local address {at:#x}",
                    rule=f"The address must be a multiple of {size}",
                )
            raise MemoryFault(
                memory.OUT_OF_BOUNDS,
                f"{what} of {size} bytes at local address {at:#x}",
                rule=f"The stack of the thread ends at {end:#x}",
            )
        return offsets
