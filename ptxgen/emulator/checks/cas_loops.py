"""Weak loads that only feed an atom.cas: the loop of CUDA's atomicAdd for types that hardware does not add.

`assumed = *address; do old = atomicCAS(address, assumed, assumed + value); while (old != assumed)`: the load races by
the manual's words (8.7), yet its value counts only where the compare-and-swap finds it in memory. nvcc compiles the
CUDA programming guide's example to a weak load, and so does LLVM lower atomic operations that it has to build.

The value may also decide that no swap is needed: `while (value > old)` around it is how Warp and others build the
maximum of floats. The decision is that of the moment of the load, which nothing orders with the other accesses anyway.
A function that returns the old value then returns what was loaded in place of what the swap found.

Where the value goes through local memory or a call, as in builds for debugging, nothing follows it: the load counts as
one of these once a thread has swapped at the address from which that load of its has read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.load.registers import Register
from ptxgen.emulator.load.variables import Location
from ptxgen.emulator.memory.located import MemoryAccess
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
#: In place of the line of a swap: where the value goes is unknown, or it is used elsewhere.
_UNKNOWN, _ELSEWHERE = 0, -1

STRONG_LOAD = "make the load strong: ld.relaxed with the scope of the atom.cas"


class CasLoops(Observer):
    """Finds which loads of the program these are, on first use."""

    def __init__(self) -> None:
        self._program: Program | None = None
        #: The addresses from which each thread has last read by loads of unknown use: a pair of state space and, for
        #: (warps, 32), the address, by line.
        self._read: dict[int, tuple[str, dict[int, NDArray[np.int64]]]] = {}
        #: By the line of such loads, that of a swap at the same address by the same thread.
        self._swapped: dict[int, int] = {}

    def launch_begins(self, machine: MachineView, program: ProgramView) -> None:
        self._program = program  # type: ignore[assignment]

    def memory_loads(self, access: MemoryAccess) -> None:
        line = access.statement.line
        if access.order is None and line in self._unknown and line not in self._swapped:
            _, read = self._read.setdefault(line, (access.space, {}))
            addresses = np.where(access.active, access.places.offsets, -1)
            read.update(zip(access.warps.tolist(), addresses, strict=True))

    def memory_updates(
        self, access: MemoryAccess, turns: NDArray[np.int64] | None, *, returns: bool, uses: bool
    ) -> None:
        if not self._read or ".cas." not in access.statement.opcode:
            return
        active = access.active
        for line, (space, read) in list(self._read.items()):
            for position, warp in enumerate(access.warps.tolist()):
                before = read.get(warp) if space[:6] == access.space[:6] else None
                if before is not None and (active[position] & (access.places.offsets[position] == before)).any():
                    self._swapped[line] = access.statement.line
                    del self._read[line]
                    break

    def excuse(self, load: int | None) -> str:
        """Why a weak load of a line is harmless beside atomic operations; empty if it is not."""
        line = self._lines.get(load, self._swapped.get(load)) if load is not None else None
        return _RULE.format(line=line) if line is not None else ""

    @property
    def _lines(self) -> dict[int, int]:
        """By the line of each such load, that of its atom.cas; lines with another load are left out."""
        return self._analysis[0]

    @property
    def _unknown(self) -> set[int]:
        """The lines of weak loads whose value goes where nothing follows it."""
        return self._analysis[1]

    @cached_property
    def _analysis(self) -> tuple[dict[int, int], set[int]]:
        found: dict[int, set[int]] = {}
        if any(_is_swap(operation) for block in self._blocks for operation in block.operations):
            for rank, block in enumerate(self._blocks):
                for index, operation in enumerate(block.operations):
                    if operation.statement.opcode.startswith("ld."):
                        found.setdefault(operation.statement.line, set()).add(self._swap(operation, rank, index))
        return (
            {load: max(lines) for load, lines in found.items() if min(lines) > 0},
            {load for load, lines in found.items() if min(lines) == _UNKNOWN},
        )

    def _swap(self, load: Operation, rank: int, index: int) -> int:
        """The line of the atom.cas that alone uses what is loaded, or `_UNKNOWN` or `_ELSEWHERE`."""
        address, line = self._place(load), _ELSEWHERE
        if address is None or _is_strong(load) or load.statement.opcode.startswith(("ld.param", "ld.local")):
            return _ELSEWHERE
        todo = [(rank, index + 1, load.writes, frozenset[int]())]
        seen = set(todo)
        while todo:
            rank, index, held, joins = todo.pop()
            for operation in self._blocks[rank].operations[index:]:
                used = held & (operation.reads | operation.guard_reads)
                if used and _is_swap(operation):
                    if self._place(operation) != address or not _compares(operation, held):
                        return _ELSEWHERE
                    line, held = operation.statement.line, frozenset[int]()
                elif used and _is_plain(operation):
                    held |= operation.writes
                elif used and _is_branch(operation) and (join := self._joins_without_swap(rank, address)) is not None:
                    joins |= {join}  # what is used from there on stands for what a swap would have found
                elif used:
                    return _UNKNOWN if self._hides(operation, rank, address) else _ELSEWHERE
                elif operation.guard is None:
                    held -= operation.writes
                if not held:
                    break
            for next in set(self._successors(rank)) - joins if held else ():
                if (state := (next, 0, held, joins)) not in seen:
                    seen.add(state)
                    todo.append(state)
        return line

    def _hides(self, operation: Operation, rank: int, address: Place) -> bool:
        """Whether a value that an instruction uses goes on in local memory or in a function, or decides on a call."""
        name, *parts = operation.statement.opcode.split(".")
        if _is_branch(operation):
            decided = (each for block in self._walk(rank, None, address) for each in self._blocks[block].operations)
            return any(each.traits is not None and each.traits.control == "call" for each in decided)
        if name == "call" or (name == "st" and {"local", "param"} & set(parts)):
            return True
        target = operation.statement.operands[0] if name == "st" else None
        if not isinstance(target, Address) or not isinstance(target.base, Name):
            return False
        at = operation.names(target.base.text)
        return isinstance(at, Register) and at.index in self._local

    @cached_property
    def _local(self) -> frozenset[int]:
        """Registers with addresses of local variables: copies of them, and sums with anything."""
        found: set[int] = set()
        for operation in (operation for block in self._blocks for operation in block.operations):
            name, terms = operation.statement.opcode.split(".")[0], operation.statement.operands[1:]
            if name in ("mov", "cvta", "add") and terms and isinstance(terms[0], Name):
                place = operation.names(terms[0].text)
                copies = isinstance(place, Register) and place.index in found
                if copies or (isinstance(place, Location) and place.space == "local"):
                    found |= operation.writes
        return frozenset(found)

    def _joins_without_swap(self, rank: int, address: Place) -> int | None:
        """The block in which the paths of a branch join again, if until then they decide nothing but whether swaps at
        an address are tried, and leave no values for what comes after but what a swap finds; None otherwise.
        """
        reached = self._walk(rank, None, address)
        return next(
            (join for join in sorted(reached) if self._is_bypass(self._walk(rank, join, address), join, address)), None
        )

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
        left = frozenset[int]().union(*(operation.writes for operation in inside)) - _found_by_swaps(inside)
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


def _found_by_swaps(operations: Sequence[Operation]) -> frozenset[int]:
    """Registers that some instructions write with what their swaps have found, and copies of these."""
    found = frozenset[int]().union(*(each.writes for each in operations if _is_swap(each)))
    moves = [each for each in operations if each.statement.opcode.startswith("mov.") and each.guard is None]
    for _ in moves:
        found = found.union(*(each.writes for each in moves if each.reads and each.reads <= found))
    others = (each.writes for each in operations if not _is_swap(each) and each not in moves)
    return found.difference(*others)


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
