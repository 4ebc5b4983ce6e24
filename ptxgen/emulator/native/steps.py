"""Steps of a launch by machine code alone, for blocks that it executes as a whole (`runs.code_of_block`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.load.program import EXITED, BlockCode
from ptxgen.emulator.native.library import Library, pointer_to
from ptxgen.emulator.state.machine import Machine
from ptxgen.emulator.state.warps import Warps


class Steps:
    """The tables of one launch as blocks.c has them."""

    def __init__(self, machine: Machine, warps: Warps, library: Library) -> None:
        self._warps, self._run = warps, library.steps
        self._blocks = np.zeros((len(warps.aligned), 7), np.int64)
        self._counts = np.zeros(2, np.int64)
        room: tuple[NDArray[Any], ...] = (np.empty(machine.warps, np.int64), np.empty((machine.warps, 32), np.uint8))
        tables = (
            warps.pc, warps.held, warps.current, warps.ready, warps.uniform, warps.last_run, self._blocks,
            warps.aligned, *room,
        )  # fmt: skip
        self._launch = np.array(
            [machine.register_addresses, *map(pointer_to, tables), machine.warps, EXITED], np.uint64
        )
        self._room, self._pointers = room, (pointer_to(self._launch), pointer_to(self._counts))

    def add(self, rank: int, code: BlockCode) -> None:
        """A block that machine code executes from now on."""
        self._blocks[rank] = code

    def run(self, limit: int, *, fairly: bool) -> int:
        """Take steps up to number `limit`, or to a block that is not machine code: how many instructions of warps.

        `fairly`: as `Warps.pick_fairly` chooses them, else as `pick` does.
        """
        warps, (launch, counts) = self._warps, self._pointers
        self._counts[0], self._counts[1] = warps.fair_pc, 0
        before = warps.steps
        warps.steps = self._run(launch, before, limit, counts if fairly else None, counts + 8)
        if warps.steps == before:
            return 0
        warps.moved()
        warps.fair_pc = int(self._counts[0])
        return int(self._counts[1])
