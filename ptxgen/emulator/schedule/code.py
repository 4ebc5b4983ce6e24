"""The blocks of a program as one machine runs them: with the watchers of their instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ptxgen.emulator.load.program import Block, Operation, Program
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import Machine
from ptxgen.emulator.state.warpgroups import is_move

#: Makes of an operation one that is watched.
Watcher = Callable[[Operation], Operation]


class Code:
    """Blocks by rank. Each is watched when it runs first: most of a large program never does."""

    def __init__(self, program: Program, machine: Machine, watchers: Sequence[Watcher]) -> None:
        self._program, self._machine = program, machine
        self._blocks: list[Block | None] = [None] * len(program.blocks)
        self._watchers = [*watchers, *([self._watch_accumulators] if program.accumulators else [])]

    def __getitem__(self, rank: int) -> Block:
        found = self._blocks[rank]
        if found is None:
            found = self._blocks[rank] = self._watched(self._program.blocks[rank])
        return found

    def _watched(self, block: Block) -> Block:
        if not self._watchers:
            return block
        operations = list(block.operations)
        for watch in self._watchers:
            operations = [watch(operation) for operation in operations]
        return replace(block, operations=operations)

    def _watch_accumulators(self, operation: Operation) -> Operation:
        """Without checks only moves, which wait for accumulators."""
        if not self._machine.findings.checks and not is_move(operation.traits):
            return operation
        watch = self._machine.warpgroups.watched(
            operation.reads, operation.writes, operation.statement, operation.traits
        )
        if watch is None:
            return operation
        run = operation.run

        def watched(group: Group, *rest: Any) -> Any:
            watch(group.indices)
            return run(group, *rest)

        return replace(operation, run=watched)
