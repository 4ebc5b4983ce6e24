"""Weak loads of words that change once: from one value, by an atomic compare-and-swap that expects it.

Hash tables probe so: `k = table[i]; if (k == key) return; if (k == EMPTY) old = atomicCAS(&table[i], EMPTY, key)`.
Whatever the load gets besides EMPTY is final, as each change is a compare-and-swap that expects EMPTY. Where the load
still gets EMPTY, a compare-and-swap of the same word decides again. So a strong load would leave the same program.

What the text must show, where the load gets EMPTY: before anything else depends on it, a compare-and-swap at the
same address expects EMPTY, and nothing uses the loaded value afterwards. A key is not EMPTY: comparisons of the value
with something else than EMPTY find a difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ptxgen.emulator.checks.rechecked_loads import Called, Place, RecheckedLoads, is_leap, is_plain, is_strong
from ptxgen.emulator.load.registers import Register
from ptxgen.syntax import Immediate, Name

if TYPE_CHECKING:
    from ptxgen.emulator.load.program import Operation, Program

#: Steps of one search.
_STEPS = 2000
#: Widths of types, in bits.
_WIDTHS = frozenset(["8", "16", "32", "64"])
#: A function without atomic operations.
_NOTHING = Called(frozenset(), {}, True, frozenset())


class WriteOnceLoads:
    """Finds such loads of one program."""

    def __init__(self, program: Program, loads: RecheckedLoads) -> None:
        self._program, self._loads = program, loads
        #: By what compare-and-swaps expect, their lines.
        self._swaps: dict[Place, set[int]] = {}
        #: The blocks of functions that do nothing but a compare-and-swap.
        self._inside = frozenset[int]().union(
            *(_called_swap(loads, rank).blocks for rank in range(len(program.blocks)))
        )
        outside = [block for rank, block in enumerate(program.blocks) if rank not in self._inside]
        for block in outside:
            for operation in block.operations:
                expected = self._expected(operation)
                if expected is not None and loads.is_uniform(operation, operation.statement.operands[2]):
                    self._swaps.setdefault(expected, set()).add(operation.statement.line)
        for lines, arguments in self._functions().items():
            for each in arguments:
                self._swaps.setdefault(each, set()).update(lines)

    def swaps_after(self, load: Operation, rank: int, index: int) -> frozenset[int]:
        """The lines of the compare-and-swaps that alone may change what a weak load reads; empty if it matters more."""
        if is_strong(load) or load.guard is not None:
            return frozenset()
        return next(
            (
                frozenset(lines)
                for expected, lines in self._swaps.items()
                if _Search(self._program, self._loads, expected, load).settles(rank, index)
            ),
            frozenset(),
        )

    def _functions(self) -> dict[frozenset[int], frozenset[Place]]:
        """By the lines of the compare-and-swaps of a function: the uniform arguments of all calls (builds without
        inlining).
        """
        found: dict[frozenset[int], frozenset[Place]] = {}
        for rank, block in enumerate(self._program.blocks):
            lines = frozenset(_called_swap(self._loads, rank).atomics)
            if lines and rank not in self._inside:
                uniform = {
                    value
                    for store in block.operations
                    if store.statement.opcode.startswith("st.param")
                    and self._loads.is_uniform(store, store.statement.operands[1])
                    and (value := _argument(self._loads, store)) is not None
                }
                found[lines] = found.get(lines, frozenset(uniform)) & uniform
        return found

    def _expected(self, operation: Operation) -> Place | None:
        """What a compare-and-swap expects; None for other instructions."""
        return _compared(self._loads, operation) if _swaps(operation) else None


@dataclass(frozen=True)
class _Path:
    """A path on which a load got the expected value."""

    rank: int
    index: int
    #: Registers that hold the value, and those computed from it.
    held: frozenset[int]
    made: frozenset[int] = frozenset()
    #: Predicates that follow from the value.
    known: frozenset[tuple[int, bool]] = frozenset()
    #: True once a branch depends on the value; then once a compare-and-swap has decided.
    decided: bool = False
    swapped: bool = False
    #: Contents of registers written since the block of the load began.
    sums: tuple[tuple[int, Place], ...] = ()

    @property
    def uses(self) -> frozenset[int]:
        """All registers that depend on the value."""
        return self.held | self.made | {register for register, _ in self.known}

    def without(self, registers: frozenset[int]) -> _Path:
        """The path after these registers have been overwritten."""
        return replace(
            self,
            held=self.held - registers,
            made=self.made - registers,
            known=frozenset(each for each in self.known if each[0] not in registers),
        )


class _Search:
    """The paths from one load on which it gets what compare-and-swaps expect."""

    def __init__(self, program: Program, loads: RecheckedLoads, expected: Place, load: Operation) -> None:
        self._program, self._loads, self._expected, self._load = program, loads, expected, load
        #: Values so far that have a name of their own.
        self._fresh = 0
        #: True once a path has come to a compare-and-swap.
        self._swapped = False

    def settles(self, rank: int, index: int) -> bool:
        """Whether a compare-and-swap decides on each path from the load, at an index of a block."""
        sums: dict[int, Place] = {}
        for operation in self._program.blocks[rank].operations[:index]:
            self._compute(operation, sums)
        with self._loads.knowing(sums):
            address = self._loads.place(self._load)
        if address is None:
            return False
        self._compute(self._load, sums)
        start = _Path(rank, index + 1, self._load.writes, sums=tuple(sums.items()))
        todo, seen, steps = [start], {start}, 0
        while todo:
            path = todo.pop()
            after = self._follow(path, address)
            if after is None:
                return False
            for each in after:
                steps += 1
                if steps > _STEPS:
                    return False
                if each not in seen and (each.uses or (each.decided and not each.swapped)):
                    seen.add(each)
                    todo.append(each)
        return self._swapped

    def _follow(self, path: _Path, address: Place) -> list[_Path] | None:
        """The starts of the blocks after that of a path; None if something else depends on the value."""
        if path.rank >= len(self._program.blocks):
            return None if path.decided and not path.swapped else []
        sums = dict(path.sums)
        ways = [True, False]
        for operation in self._program.blocks[path.rank].operations[path.index :]:
            if operation is self._load:
                return None if path.decided and not path.swapped else []
            guards = operation.guard_reads & path.uses
            used = (operation.reads - operation.guard_reads) & path.uses
            if path.swapped:
                if guards or used:
                    return None
                path = path.without(operation.writes if operation.guard is None else frozenset())
                if not path.uses:
                    return []
                continue
            taken = self._guard(operation, path) if guards else None
            if guards and taken is False:
                if is_leap(operation):
                    path, ways = replace(path, decided=True), [False]
                continue
            if is_leap(operation):
                if used:
                    return None
                if guards:
                    path, ways = replace(path, decided=True), [True] if taken else ways
                continue
            if guards and not is_plain(operation):
                path = replace(path, decided=True)
            with self._loads.knowing(sums):
                swap = self._calls_swap(operation, path, address) or (
                    _swaps(operation)
                    and (operation.guard is None or taken is True)
                    and self._loads.place(operation) == address
                    and _is_expected(operation, self._expected, _compared(self._loads, operation), path)
                )
                if swap:
                    path, self._swapped = replace(path.without(operation.writes), swapped=True), True
                elif used and is_plain(operation):
                    path = self._derive(operation, path)
                elif used:
                    return None
                elif guards and taken is None:
                    path = replace(path, made=path.made | operation.writes)
                elif path.decided and not (is_plain(operation) or _leaves_nothing(operation)):
                    return None
                elif operation.guard is None or taken:
                    path = path.without(operation.writes)
            self._compute(operation, sums)
        path = replace(path, sums=() if path.swapped else tuple(sums.items()))
        return [replace(path, rank=each, index=0) for each in self._next(path.rank, ways)]

    def _calls_swap(self, call: Operation, path: _Path, address: Place) -> bool:
        """Whether a block ends with a call of a compare-and-swap at an address that expects the value."""
        if call.traits is None or call.traits.control != "call" or not _called_swap(self._loads, path.rank).updates:
            return False
        stores = [
            each
            for each in self._program.blocks[path.rank].operations
            if each.statement.opcode.startswith("st.param") and not each.reads & path.uses
        ]
        return {address, self._expected} <= {_argument(self._loads, each) for each in stores}

    def _next(self, rank: int, ways: list[bool]) -> Iterator[int]:
        block = self._program.blocks[rank]
        last = block.operations[-1] if block.operations else None
        if last is not None and is_leap(last) and len(ways) == 1 and last.guard is not None:
            found = [each for each in self._loads.successors(rank) if (each != block.following) == ways[0]]
            yield from found or ([block.following] if block.following in self._loads.successors(rank) else [])
        else:
            yield from self._loads.successors(rank)

    def _guard(self, operation: Operation, path: _Path) -> bool | None:
        """Whether a guard that depends on the value holds; None if that is open."""
        guard = operation.statement.guard
        known = dict(path.known)
        register = operation.names(guard.register) if guard is not None else None
        if guard is None or not isinstance(register, Register) or register.index not in known:
            return None
        return known[register.index] != guard.negated

    def _derive(self, operation: Operation, path: _Path) -> _Path:
        """The path after an arithmetic instruction that uses the value."""
        name, *parts = operation.statement.opcode.split(".")
        operands = operation.statement.operands
        if operation.guard is not None or len(operation.writes) != 1:
            return replace(path, made=path.made | operation.writes)
        (target,) = operation.writes
        left = path.without(operation.writes)
        if name in ("mov", "cvt") and self._index(operation, operands[1]) in path.held:
            return replace(left, held=left.held | {target})
        truth = self._truth(operation, name, parts, path)
        if truth is not None:
            return replace(left, known=left.known | {(target, truth)})
        return replace(left, made=left.made | {target})

    def _truth(self, operation: Operation, name: str, parts: list[str], path: _Path) -> bool | None:
        """The predicate that an instruction computes, as far as the value decides it."""
        operands = operation.statement.operands
        known = dict(path.known)
        if name == "setp":
            answer = self._compare(operation, parts[0], path)
            other = known.get(self._index(operation, operands[3])) if len(operands) > 3 else None
            return _combined(parts[1] if len(operands) > 3 else "", answer, other)
        values = [known.get(self._index(operation, each)) for each in operands[1:]]
        if name in ("and", "or") and "pred" in parts:
            return _combined(name, *values)
        if name in ("not", "mov") and "pred" in parts and values[0] is not None:
            return values[0] != (name == "not")
        return None

    def _compare(self, operation: Operation, relation: str, path: _Path) -> bool | None:
        """What a comparison of the value for equality finds."""
        if relation not in ("eq", "ne"):
            return None
        left, right = operation.statement.operands[1:3]
        if self._index(operation, left) not in path.held | path.made:
            left, right = right, left
        if self._index(operation, right) in path.uses or self._index(operation, left) not in path.held | path.made:
            return None
        other = self._loads.operand(operation, right)
        if other is None:
            return None
        bits = _bits(operation)
        if self._index(operation, left) in path.held:
            return (_masked(other, bits) == _masked(self._expected, bits)) == (relation == "eq")
        # A part of the value, which is that of no key.
        return None if isinstance(right, Immediate) or not other[0] else relation == "ne"

    def _index(self, operation: Operation, operand: object) -> int:
        place = operation.names(operand.text) if isinstance(operand, Name) else None
        return place.index if isinstance(place, Register) else -1

    def _compute(self, operation: Operation, sums: dict[int, Place]) -> None:
        """Add what an instruction writes to what registers hold."""
        for register in operation.writes:
            self._fresh += 1
            itself: Place = frozenset([((register, id(self), self._fresh), 1)]), 0
            if is_plain(operation) and operation.guard is None and len(operation.writes) == 1:
                with self._loads.knowing(sums):
                    itself = self._loads.made(operation, itself)
            sums[register] = itself


def _combined(name: str, first: bool | None, second: bool | None) -> bool | None:
    """A predicate and another, or one alone; None stands for what is open."""
    if not name:
        return first
    if name not in ("and", "or"):
        return None
    decides = name == "or"
    if decides in (first, second):
        return decides
    return None if first is None or second is None else not decides


def _swaps(operation: Operation) -> bool:
    parts = operation.statement.opcode.split(".")
    return parts[0] == "atom" and "cas" in parts


def _compared(loads: RecheckedLoads, swap: Operation) -> Place | None:
    found = loads.operand(swap, swap.statement.operands[2])
    return None if found is None else _masked(found, _bits(swap))


def _is_expected(swap: Operation, expected: Place, compared: Place | None, path: _Path) -> bool:
    """Whether a compare-and-swap on a path expects the value, by its name or by a register that holds it."""
    value = swap.statement.operands[2]
    place = swap.names(value.text) if isinstance(value, Name) else None
    others = (swap.reads - swap.guard_reads) & path.uses
    by_register = isinstance(place, Register) and place.index in path.held and others == {place.index}
    return by_register or (compared == expected and not others)


def _bits(operation: Operation) -> int:
    digits = operation.statement.opcode.split(".")[-1].lstrip("busf")
    return int(digits) if digits in _WIDTHS else 64


def _masked(place: Place, bits: int) -> Place:
    return place if place[0] else (place[0], place[1] & ((1 << bits) - 1))


def _called_swap(loads: RecheckedLoads, rank: int) -> Called:
    """The function that a block calls if it does nothing but compare-and-swaps, else an empty one."""
    block = loads.blocks[rank]
    call = block.operations[-1] if block.operations else None
    if call is None or call.traits is None or call.traits.control != "call":
        return _NOTHING
    function = loads.called(rank, call)
    if function is None or not all("cas" in opcode.split(".") for opcode in function.atomics.values()):
        return _NOTHING
    return function


def _argument(loads: RecheckedLoads, store: Operation) -> Place | None:
    """What a st.param passes to a function."""
    value = loads.operand(store, store.statement.operands[1])
    return None if value is None else _masked(value, _bits(store))


def _leaves_nothing(operation: Operation) -> bool:
    """Whether an instruction leaves nothing behind but registers and arguments."""
    return operation.statement.opcode.startswith(("ld.", "ldu.", "st.param"))
