"""Loads from shared memory whose values reach an operand of a shuffle, vote or reduction of a warp, by the text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.load.program import Block, Operation, Program


class ConsumedLoads:
    """The lines of such loads, by instruction that exchanges values."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._lines: dict[Statement, frozenset[int]] = {}
        self._predecessors: list[list[int]] | None = None

    def by(self, exchange: Statement) -> frozenset[int]:
        """The lines of the loads whose values, or what is computed of them, an instruction has as operands."""
        if exchange not in self._lines:
            self._lines[exchange] = frozenset(self._search(exchange))
        return self._lines[exchange]

    def _search(self, exchange: Statement) -> Iterator[int]:
        """Go back from an instruction, on all paths on which it is not executed in between."""
        blocks = self._program.blocks
        #: Registers whose values the instruction depends on, at the end of each block.
        needed: dict[int, frozenset[int]] = {}
        waiting = list[tuple[int, frozenset[int]]]()
        for rank, block in enumerate(blocks):
            operations = list(_operations(block))
            for index, operation in enumerate(operations):
                if operation.statement is exchange:
                    registers, lines = _before(operations[:index], operation.reads, exchange)
                    yield from lines
                    waiting += [(each, registers) for each in self._before(rank)]
        while waiting:
            rank, registers = waiting.pop()
            known = needed.get(rank, frozenset())
            if registers <= known:
                continue
            needed[rank] = known | registers
            registers, lines = _before(list(_operations(blocks[rank])), needed[rank], exchange)
            yield from lines
            waiting += [(each, registers) for each in self._before(rank)]

    def _before(self, rank: int) -> list[int]:
        """The blocks after which a block may come."""
        if self._predecessors is None:
            self._predecessors = [[] for _ in self._program.blocks]
            for each, successors in enumerate(self._program.successors):
                for following in successors:
                    self._predecessors[following].append(each)
        return self._predecessors[rank]


def _operations(block: Block) -> Iterator[Operation]:
    for operation in block.operations:
        yield from operation.parts or (operation,)


def _before(
    operations: list[Operation], registers: frozenset[int], exchange: Statement
) -> tuple[frozenset[int], list[int]]:
    """The registers that some registers depend on before operations, and the lines of loads in between."""
    lines = list[int]()
    for operation in reversed(operations):
        if operation.statement is exchange:
            return frozenset(), lines
        if registers.isdisjoint(operation.writes):
            continue
        if operation.statement.opcode.startswith("ld."):
            lines.append(operation.statement.line)
        if operation.guard is None:
            registers -= operation.writes
        registers |= operation.reads
    return registers, lines
