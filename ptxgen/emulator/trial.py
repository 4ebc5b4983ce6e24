"""Whether anything depends on what a launch should not have read.

Right kernels read memory that nothing has written, or that a copy is overwriting, and drop what they get: an MMA takes
more rows than a small tile has, a warp transposes the scale factors of a whole tile whose edge is missing (DeepGEMM),
copies that shall but fill the L2 cache go to one place that nobody reads (CUTLASS).
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
#: then, in most, a small positive number, a large one and a large negative one. Each is lost somewhere: NaN and what is
#: small in a maximum, what is large in a minimum.
_BYTES = (0xFF, 0x31, 0x7B, 0xFB)
#: Launches on more global memory than this many bytes are not repeated: the copy would cost too much each time.
_MOST = 1 << 26
#: What is told with findings that a trial has shown to be harmless.
HARMLESS = "; nothing depends on it: with other bytes there the launch does and leaves the same"
#: Places in shared memory that each asynchronous operation, by number, accesses at a wrong time: (CTA slot, units of 16
#: bytes).
Places = dict[int, list[tuple[int, NDArray[np.int64]]]]


@dataclass(frozen=True)
class Disturbance:
    """What a trial puts into memory: `byte` where nothing has been written yet, and in place of what operations read
    while it is being written, or write while others write it.
    """

    byte: int
    reads: Places
    writes: Places

    @contextmanager
    def during(self, machine: Machine, numbers: Sequence[int]) -> Iterator[None]:
        """While these operations read: the bytes are back afterwards."""
        kept: list[tuple[NDArray[np.complex128], NDArray[np.int64], NDArray[np.complex128]]] = []
        for number in numbers:
            for slot, units in self.reads.get(number, ()):
                memory = machine.shared.data[slot].view(np.complex128)
                kept.append((memory, units, memory[units]))
                memory[units] = self._unit()
        yield
        for memory, units, before in reversed(kept):
            memory[units] = before

    def after(self, machine: Machine, number: int) -> None:
        """Once this operation has written."""
        for slot, units in self.writes.get(number, ()):
            machine.shared.data[slot].view(np.complex128)[units] = self._unit()

    def metadata(self, nibbles: NDArray[np.uint8], wrong: NDArray[np.bool_], legal: Sequence[int]) -> NDArray[np.uint8]:
        """Metadata of a sparse matrix, some of which mean nothing, with legal ones in their place."""
        return np.where(wrong, np.uint8(legal[(self.byte >> 1) % len(legal)]), nibbles)

    def _unit(self) -> NDArray[np.complex128]:
        return np.full(UNIT, self.byte, np.uint8).view(np.complex128)


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
    shared = machine.ordering.shared
    for byte in _BYTES:
        again = begin(before.copy(), Disturbance(byte, shared.read_too_early, shared.written_at_once))
        if again.run() not in ("ok", "findings"):
            return False
        same = again.instructions == done.instructions and again.machine.printed == machine.printed
        if not same or not np.array_equal(again.machine.memory.written(), after):
            return False
    return True
