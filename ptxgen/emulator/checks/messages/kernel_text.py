"""What the text of a kernel says about two lines: a barrier or a loop between them, a load and store of one word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from ptxgen.syntax import Address

if TYPE_CHECKING:
    from ptxgen.emulator.load.program import Operation, Program

#: Opcodes of barriers for which threads wait.
_BARRIERS = ("bar.sync", "bar.red", "barrier.sync", "barrier.red", "barrier.cta.sync", "barrier.cluster.wait")


class KernelText:
    """Questions about a program's text, by line."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def has_barrier(self, first: int, last: int) -> bool:
        """Whether a barrier stands between two lines."""
        return any(first < line < last for line in self._barriers)

    def comes_back(self, last: int, first: int) -> bool:
        """Whether a path leads from a line back to one before it."""
        ranks, operations = self._ranks, self._operations
        if last not in ranks or first not in ranks:
            return False
        successors = self._program.successors[ranks[last]]
        return any(self._program.leads_to(each, operations[first].statement) for each in successors)

    def comes_back_without_barrier(self, last: int, first: int) -> bool:
        """Whether a path leads from a line back to one before it on which no barrier stands."""
        return any(operation.statement.line == first for operation in self._until(last, _BARRIERS))

    def waits_before_commit(self, line: int) -> int | None:
        """The line of a wait_group that follows a bulk copy before the commit_group of its group; None if none does."""
        for operation in self._until(line, ("cp.async.bulk.commit_group",)):
            if operation.statement.opcode.startswith("cp.async.bulk.wait_group"):
                return operation.statement.line
        return None

    def _until(self, line: int, ends: tuple[str, ...]) -> Iterator[Operation]:
        """The instructions that paths from after a line reach, each path up to an opcode that begins like `ends`."""
        if line not in self._ranks:
            return
        blocks, rank = self._program.blocks, self._ranks[line]
        index = next(at for at, each in enumerate(blocks[rank].operations) if each.statement.line == line)
        pending, seen = [(rank, index + 1)], set[int]()
        while pending:
            rank, index = pending.pop()
            for operation in blocks[rank].operations[index:]:
                if operation.statement.opcode.startswith(ends):
                    break
                yield operation
            else:
                fresh = [each for each in self._program.successors[rank] if each not in seen]
                seen.update(fresh)
                pending += [(each, 0) for each in fresh]

    def accesses(self, lines: Iterable[int], opcodes: tuple[str, ...]) -> list[int]:
        """The lines among these whose opcode begins so, in ascending order."""
        found = ((line, self._operations.get(line)) for line in sorted(lines))
        return [line for line, each in found if each is not None and each.statement.opcode.startswith(opcodes)]

    def swaps(self, line: int) -> bool:
        """Whether the instruction of a line is a compare-and-swap."""
        return line in self._operations and ".cas" in self._operations[line].statement.opcode

    def updates(self, load: int, store: int) -> bool:
        """Whether a line stores what it makes of a line's load to the address of that load: a read-modify-write."""
        ranks, operations = self._ranks, self._operations
        if load not in ranks or ranks.get(store) != ranks[load] or load >= store:
            return False
        reads, writes = operations[load], operations[store]
        if not reads.statement.opcode.startswith("ld.") or not writes.statement.opcode.startswith("st."):
            return False
        if _address(reads) != _address(writes):
            return False
        made = set(reads.writes)
        for operation in self._program.blocks[ranks[load]].operations:
            if load < operation.statement.line < store and not made.isdisjoint(operation.reads):
                made |= operation.writes
        return not made.isdisjoint(writes.reads)

    @cached_property
    def _operations(self) -> dict[int, Operation]:
        return {each.statement.line: each for block in self._program.blocks for each in block.operations}

    @cached_property
    def _ranks(self) -> dict[int, int]:
        return {
            each.statement.line: rank for rank, block in enumerate(self._program.blocks) for each in block.operations
        }

    @cached_property
    def _barriers(self) -> list[int]:
        return [line for line, each in self._operations.items() if each.statement.opcode.startswith(_BARRIERS)]


def _address(operation: Operation) -> str:
    """The text of the first address among the operands."""
    return next((str(each) for each in operation.statement.operands if isinstance(each, Address)), "")
