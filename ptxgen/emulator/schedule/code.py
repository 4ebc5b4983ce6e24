"""The blocks of a program as one machine runs them: with what the checks of registers have to see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ptxgen.emulator.checks.uninitialized.registers import Unwritten
from ptxgen.emulator.load.program import Block, Operation, Program
from ptxgen.emulator.state.machine import Machine
from ptxgen.emulator.state.warpgroups import is_move


class Code:
    """Blocks by rank. Each is watched when it runs first: most of a large program never does."""

    def __init__(self, program: Program, machine: Machine) -> None:
        self._program, self._machine = program, machine
        self._blocks: list[Block | None] = [None] * len(program.blocks)
        self._watch: list[Callable[[Operation], Operation]] = []
        if machine.happens_before is not None and program.register_flow.followed:
            self._watch.append(Unwritten(machine, program.register_flow).watch)
        if program.accumulators:
            self._watch.append(self._watch_accumulators)

    def __getitem__(self, rank: int) -> Block:
        found = self._blocks[rank]
        if found is None:
            found = self._blocks[rank] = self._watched(self._program.blocks[rank])
        return found

    def _watched(self, block: Block) -> Block:
        if not self._watch:
            return block
        operations = list(block.operations)
        for watch in self._watch:
            operations = [watch(operation) for operation in operations]
        return replace(block, operations=operations)

    def _watch_accumulators(self, operation: Operation) -> Operation:
        """Without checks only moves, which wait for accumulators."""
        if self._machine.happens_before is None and not is_move(operation.statement):
            return operation
        watched = self._machine.warpgroups.watched
        return replace(operation, run=watched(operation.run, operation.reads, operation.writes, operation.statement))
