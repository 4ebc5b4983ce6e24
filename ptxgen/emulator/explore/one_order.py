"""One run of an exploration: its report, the points that its warps passed, and what it left in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxgen.device import LaunchReport
from ptxgen.emulator.explore.delays import Delays
from ptxgen.emulator.explore.orders import OrderOfAccesses
from ptxgen.emulator.memory.global_memory import HEAP_BASE
from ptxgen.emulator.schedule.scheduler import Scheduler


@dataclass(frozen=True)
class OneOrder:
    """A launch that has run in one order."""

    report: LaunchReport
    scheduler: Scheduler
    accesses: OrderOfAccesses

    @property
    def delays(self) -> Delays:
        """The points that warps passed."""
        assert self.scheduler.delays is not None
        return self.scheduler.delays

    @property
    def memory(self) -> NDArray[np.uint8]:
        """Global memory after the launch."""
        return self.scheduler.machine.memory.written()

    def place(self, offset: int) -> str:
        """An offset of the heap by name: `c[3, 4]`."""
        memory = self.scheduler.machine.memory
        return memory.element(HEAP_BASE + offset) or memory.describe(HEAP_BASE + offset)

    def line_of(self, block: int) -> int | None:
        """The line of the first instruction of a block."""
        operations = self.scheduler.program.blocks[block].operations
        return operations[0].statement.line if operations else None
