"""The blocks of a program as one machine runs them: with the watchers of their instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import is_
from typing import Any

from ptxgen.emulator.load.program import Block, Operation, Program
from ptxgen.emulator.load.unused import Unused
from ptxgen.emulator.native.library import Library, library
from ptxgen.emulator.native.runs import code_of_block, with_runs
from ptxgen.emulator.native.steps import Steps
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import Machine
from ptxgen.emulator.state.warpgroups import is_move
from ptxgen.emulator.state.warps import Warps

#: Makes of an operation one that is watched.
Watcher = Callable[[Operation], Operation]
#: To have a block as machine code takes as long as so many times of it without.
_SELDOM = 3


class Code:
    """Blocks by rank. Each is watched when it runs first: most of a large program never does.

    What has run some times, in this launch or earlier ones, does so by machine code (`native`) from then on where there
    is some, but not where each instruction is an event of its own (`single`).
    """

    def __init__(
        self, program: Program, machine: Machine, warps: Warps, watchers: Sequence[Watcher], *, single: bool = False
    ) -> None:
        self._program, self._machine, self._warps = program, machine, warps
        #: Takes steps by machine code alone, once there is a block that is nothing else.
        self.steps: Steps | None = None
        #: Instructions that nothing executes, as only data depend on them.
        self._unused = frozenset[Operation]() if machine.timeline.computes else Unused.of(program).operations
        self._library = None if single else library()
        #: True once a block no longer changes.
        self._settled = [self._library is None] * len(program.blocks)
        self._blocks: list[Block | None] = [None] * len(program.blocks)
        self._watchers = [*watchers, *([self._watch_accumulators] if program.accumulators else [])]

    def __getitem__(self, rank: int) -> Block:
        found = self._blocks[rank]
        if found is None:
            found = self._blocks[rank] = self._watched(self._executed(rank))
        if not self._settled[rank] and self._library is not None:
            times = self._program.native.times
            times[rank] += 1
            if times[rank] > _SELDOM:
                self._settled[rank] = True
                found = self._blocks[rank] = self._native(rank, found, self._library)
        return found

    def _native(self, rank: int, block: Block, library: Library) -> Block:
        program, native = self._program, self._program.native
        is_watched = block is not program.blocks[rank]
        made = None if is_watched else native.unwatched[rank]
        if made is None:
            original = self._executed(rank).operations
            made = replace(block, operations=with_runs(block.operations, original, native, library))
            whole = code_of_block(made, original, native, library)
            if not is_watched:
                native.unwatched[rank], native.whole[rank] = made, whole
        else:
            whole = native.whole[rank]
        if whole is not None:
            if self.steps is None:
                self.steps = Steps(self._machine, self._warps, library)
            self.steps.add(rank, whole)
        return made

    def _executed(self, rank: int) -> Block:
        """A block of the program without the instructions that nothing executes."""
        block = self._program.blocks[rank]
        if self._unused.isdisjoint(block.operations):
            return block
        return replace(block, operations=[each for each in block.operations if each not in self._unused])

    def _watched(self, block: Block) -> Block:
        if not self._watchers:
            return block
        operations = block.operations
        for watch in self._watchers:
            operations = [watch(operation) for operation in operations]
        if all(map(is_, operations, block.operations)):  # its machine code is that of all launches
            return block
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
