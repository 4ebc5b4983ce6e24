"""Weak loads that only feed an atom.cas: the loop of CUDA's atomicAdd for types that hardware does not add.

`assumed = *address; do old = atomicCAS(address, assumed, assumed + value); while (old != assumed)`: the load races by
the manual's words (8.7), yet its value counts only where the compare-and-swap finds it in memory. nvcc compiles the
CUDA programming guide's example to a weak load, and so does LLVM lower atomic operations that it has to build.

The value may also decide that no swap is needed: `while (value > old)` around it is how Warp and others build the
maximum of floats. The decision is that of the moment of the load, which nothing orders with the other accesses anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ptxgen.emulator.load.registers import Register
from ptxgen.emulator.observer import Observer
from ptxgen.syntax import Address, Immediate, Name

if TYPE_CHECKING:
    from ptxgen.emulator.load.program import Block, Operation, Program
    from ptxgen.emulator.observer import MachineView, ProgramView

_RULE = (
    "The load is weak and the other access is strong, so they race; but its value only feeds the compare and the new "
    "value of the atom.cas of line {line}, which checks it"
)

#: What is accessed: a register or a name, and an offset. The register may change in between, which compilers do not do.
Place = tuple[object, int]

#: A branch around a swap skips fewer blocks than these.
_FEW = 16

STRONG_LOAD = "make the load strong: ld.relaxed with the scope of the atom.cas"


class CasLoops(Observer):
    """Finds which loads of the program these are, on first use."""

    def __init__(self) -> None:
        self._program: Program | None = None

    def launch_begins(self, machine: MachineView, program: ProgramView) -> None:
        self._program = program  # type: ignore[assignment]

    def excuse(self, load: int | None) -> str:
        """Why a weak load of a line is harmless beside atomic operations; empty if it is not."""
        line = self._lines.get(load) if load is not None else None
        return _RULE.format(line=line) if line is not None else ""

    @cached_property
    def _lines(self) -> dict[int, int]:
        """By the line of each such load, that of its atom.cas; lines with another load are left out."""
        found: dict[int, int] = {}
        wrong: set[int] = set()
        for rank, block in enumerate(self._blocks):
            for index, operation in enumerate(block.operations):
                if operation.statement.opcode.startswith("ld."):
                    line = self._swap(operation, rank, index)
                    if line is None:
                        wrong.add(operation.statement.line)
                    else:
                        found[operation.statement.line] = line
        return {load: line for load, line in found.items() if load not in wrong}

    def _swap(self, load: Operation, rank: int, index: int) -> int | None:
        """The line of the atom.cas that alone uses what is loaded; None if anything else does."""
        address, line = self._place(load), None
        if address is None or _is_strong(load):
            return None
        todo = [(rank, index + 1, load.writes)]
        seen = set(todo)
        while todo:
            rank, index, held = todo.pop()
            for operation in self._blocks[rank].operations[index:]:
                used = held & (operation.reads | operation.guard_reads)
                if used and _is_swap(operation):
                    if self._place(operation) != address or not _compares(operation, held):
                        return None
                    line, held = operation.statement.line, frozenset[int]()
                elif used and _is_plain(operation):
                    held |= operation.writes
                elif used and not (_is_branch(operation) and self._only_skips_swaps(rank, address)):
                    return None
                elif operation.guard is None:
                    held -= operation.writes
                if not held:
                    break
            for next in self._successors(rank) if held else ():
                if (state := (next, 0, held)) not in seen:
                    seen.add(state)
                    todo.append(state)
        return line

    def _only_skips_swaps(self, rank: int, address: Place) -> bool:
        """Whether the branch at the end of a block decides nothing but whether swaps at an address are tried: its paths
        join again, and until then do no more than that, nor leave values for what comes after.
        """
        reached = self._walk(rank, None, address)
        return any(self._is_bypass(self._walk(rank, join, address), join, address) for join in sorted(reached))

    def _walk(self, rank: int, join: int | None, address: Place) -> set[int]:
        """The blocks between a branch and a block where its paths may join; without one, up to those that do more."""
        found: set[int] = set()
        todo = self._successors(rank)
        while todo and len(found) < _FEW:
            if (block := todo.pop()) not in found and block != join:
                found.add(block)
                todo += self._successors(block) if self._is_harmless(block, address) else ()
        return found

    def _is_bypass(self, blocks: set[int], join: int, address: Place) -> bool:
        if len(blocks) >= _FEW or not all(self._is_harmless(block, address) for block in blocks):
            return False
        inside = [operation for block in blocks for operation in self._blocks[block].operations]
        left = frozenset[int]().union(*(operation.writes for operation in inside))
        return any(map(_is_swap, inside)) and all(
            left.isdisjoint(operation.reads | operation.guard_reads)
            for block, each in enumerate(self._blocks)
            if block not in blocks
            for operation in each.operations
        )

    def _is_harmless(self, block: int, address: Place) -> bool:
        """Whether a block only computes, branches, and swaps at an address."""
        return all(
            _is_plain(operation) or _is_branch(operation) or (_is_swap(operation) and self._place(operation) == address)
            for operation in self._blocks[block].operations
        )

    def _place(self, operation: Operation) -> Place | None:
        """What a load or an atomic operation accesses."""
        address = next((each for each in operation.statement.operands if isinstance(each, Address)), None)
        if address is None or not isinstance(address.base, Name):
            return (address, 0) if address is not None else None
        base, offset = operation.names(address.base.text), address.offset
        while isinstance(base, Register) and (made := self._definitions.get(base.index)) is not None:
            base, offset = made[0], offset + made[1]
        return base, offset

    @cached_property
    def _definitions(self) -> dict[int, tuple[Register, int]]:
        """Of registers that are written once, as the sum of another and a number: these."""
        found: dict[int, tuple[Register, int]] = {}
        counts: Counter[int] = Counter()
        for operation in (operation for block in self._blocks for operation in block.operations):
            counts.update(operation.writes)
            if (sum := _sum(operation)) is not None:
                (register,) = operation.writes
                found[register] = sum
        return {register: sum for register, sum in found.items() if counts[register] == 1}

    @property
    def _blocks(self) -> Sequence[Block]:
        return self._program.blocks if self._program is not None else ()

    def _successors(self, rank: int) -> list[int]:
        block = self._blocks[rank]
        last = block.operations[-1] if block.operations else None
        control = last.traits.control if last is not None and last.traits is not None else None
        falls = last is None or last.guard is not None or control in (None, "call")
        return [each for each in (*block.targets, *((block.following,) if falls else ())) if each < len(self._blocks)]


def _is_strong(load: Operation) -> bool:
    return not {".volatile", ".relaxed", ".acquire", ".mmio"}.isdisjoint(
        load.statement.opcode.replace(".", " .").split()
    )


def _is_plain(operation: Operation) -> bool:
    return operation.use.lanewise and operation.kind == "plain"


def _is_branch(operation: Operation) -> bool:
    return operation.traits is not None and operation.traits.control == "branch"


def _is_swap(operation: Operation) -> bool:
    opcode = operation.statement.opcode
    return opcode.startswith("atom.") and ".cas." in opcode


def _sum(operation: Operation) -> tuple[Register, int] | None:
    """The register and the number that an instruction adds, as far as that says where something is: 64 bits without a
    guard, or the same address in another register.
    """
    name, *parts = operation.statement.opcode.split(".")
    if operation.guard is not None or not parts or parts[-1] not in ("s64", "u64", "b64") or len(operation.writes) != 1:
        return None
    terms = operation.statement.operands[1:]
    moves = name == "mov" or (name == "cvta" and "global" in parts)
    if not isinstance(terms[0], Name) or not (moves or (name == "add" and isinstance(terms[1], Immediate))):
        return None
    register = operation.names(terms[0].text)
    number = 0 if moves else int(terms[1].value)  # type: ignore[attr-defined]
    return (register, number) if isinstance(register, Register) else None


def _compares(swap: Operation, held: frozenset[int]) -> bool:
    """Whether the compare value of an atom.cas is among these registers, and its address is not made of them."""
    compare = swap.statement.operands[2]
    register = swap.names(compare.text) if isinstance(compare, Name) else None
    return isinstance(register, Register) and register.index in held and held.isdisjoint(swap.use.vital)
