"""Whether anything depends on what a launch should not have read.

Right kernels read memory that nothing has written, or that a copy is overwriting, and drop what they get: an MMA takes
more rows than a small tile has, a warp transposes the scale factors of a whole tile whose edge is missing (DeepGEMM).
No rule about the accesses tells such a kernel from one that uses the values. So the launch is repeated with other bytes
there. If it does the same and leaves the same in global memory, what it has read is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.units import UNIT

if TYPE_CHECKING:
    from ptxgen.emulator.machine import Machine
    from ptxgen.emulator.memory.global_memory import GlobalMemory
    from ptxgen.emulator.scheduler import Scheduler

#: What is put in place of the bytes, one after the other: NaN in every format of floating point that has them and -1,
#: then a small positive number in most.
_BYTES = (0xFF, 0x31)
#: Launches on more global memory than this many bytes are not repeated: the copy would cost too much each time.
_MOST = 1 << 26
#: What is told with findings that a trial has shown to be harmless.
HARMLESS = "; nothing depends on it: with other bytes there the launch does and leaves the same"
#: What each asynchronous operation, by number, reads while it is being written: (CTA slot, units of 16 bytes).
Reads = dict[int, list[tuple[int, NDArray[np.int64]]]]


@dataclass(frozen=True)
class Disturbance:
    """What a trial puts into memory: `byte` where nothing has been written yet, and into what operations read."""

    byte: int
    reads: Reads

    @contextmanager
    def during(self, machine: Machine, numbers: Sequence[int]) -> Iterator[None]:
        """While these operations read: the bytes are back afterwards."""
        kept: list[tuple[NDArray[np.complex128], NDArray[np.int64], NDArray[np.complex128]]] = []
        for number in numbers:
            for slot, units in self.reads.get(number, ()):
                memory = machine.shared.data[slot].view(np.complex128)
                kept.append((memory, units, memory[units]))
                memory[units] = np.full(UNIT, self.byte, np.uint8).view(np.complex128)
        yield
        for memory, units, before in reversed(kept):
            memory[units] = before


def snapshot(memory: GlobalMemory) -> GlobalMemory | None:
    """Global memory as it is before a launch; None if it is too large to be kept."""
    return memory.copy() if memory.used <= _MOST else None


def is_harmless(done: Scheduler, before: GlobalMemory, begin: Callable[[GlobalMemory, Disturbance], Scheduler]) -> bool:
    """Whether a launch that is `done` does and leaves the same with other bytes where it should not have read.

    `begin` begins it anew on some memory. One that has left nothing in global memory cannot be judged so.
    """
    machine = done.machine
    assert machine.ordering is not None
    after = machine.memory.written()
    if np.array_equal(after[: before.used], before.written()):
        return False
    for byte in _BYTES:
        again = begin(before.copy(), Disturbance(byte, machine.ordering.shared.read_too_early))
        if again.run() not in ("ok", "findings"):
            return False
        same = again.instructions == done.instructions and again.machine.printed == machine.printed
        if not same or not np.array_equal(again.machine.memory.written(), after):
            return False
    return True
