"""Weak loads whose value only decides whether an atomic operation at the same address is tried: what the text shows.

`if (!visited[v]) if (!atomicExch(&visited[v], 1)) ...`, `if (x > *most) atomicMax(most, x)`, the test of a lock before
its atomicCAS, and the loops around atomicCAS that build other operations. Whatever such a load gets, the atomic
operation decides again, so a strong load in its place would leave the same program. What that takes:

- Besides plain arithmetic, the value goes to branches, to guards of the atomic operation and to its compare operand.
- The paths of such a branch join again, and until then change nothing that the atomic operation has not decided.
- Where the atomic operation finds that another thread came first, the path goes to the same place as if nothing had
  been tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ptxgen.emulator.load.program import EXITED
from ptxgen.emulator.load.registers import Register
from ptxgen.emulator.load.variables import Location
from ptxgen.syntax import Address, Immediate, Name

if TYPE_CHECKING:
    from ptxgen.emulator.load.program import Block, Operation, Program

#: An address, as a sum: registers and names, each with its factor, and an offset. A register may change in between,
#: which compilers do not do.
Place = tuple[frozenset[tuple[Hashable, int]], int]
Registers = frozenset[int]

#: Types of instructions that compute addresses.
_ADDRESSES = ("s64", "u64", "b64", "s32", "u32", "b32")
_NONE: Registers = frozenset()
#: In place of the line of an atomic operation: the value is used elsewhere.
ELSEWHERE = -3
#: The same where the text does not show it: the value goes to a function or through local memory, or it decides whether
#: a function is called.
HIDDEN, CALLED = -2, -1
#: Steps of one search; blocks where the paths of a branch may join, and blocks up to there, that are tried.
_STEPS, _JOINS, _BLOCKS = 2000, 32, 200
#: Atomic operations that do nothing where another thread has done the same before.
_IDEMPOTENT = frozenset(["cas", "min", "max", "or", "and"])
#: Instructions besides plain arithmetic that change nothing.
_WITHOUT_EFFECT = ("ld", "ldu", "fence", "membar", "nanosleep", "prefetch", "isspacep", "activemask", "pmevent")


class RecheckedLoads:
    """Finds such loads of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        #: First register with the same content or computation (sums aside), by register.
        self._sums: dict[int, Place] = {}
        self._alike: dict[Hashable, Place] = {}
        #: Contents of registers at one point of the program, where they differ from a single instruction's result.
        self._known: Mapping[int, Place] = {}

    @property
    def blocks(self) -> Sequence[Block]:
        """The blocks of the program."""
        return self._program.blocks

    def _operations(self, rank: int) -> Sequence[Operation]:
        return self.blocks[rank].operations if rank < len(self.blocks) else ()

    def atomic_after(self, load: Operation, rank: int, index: int) -> int:
        """The line of the atomic operation that alone uses what is loaded, or `ELSEWHERE`, `HIDDEN` or `CALLED`."""
        if is_strong(load) or load.statement.opcode.startswith(("ld.param", "ld.local")):
            return ELSEWHERE
        address = self.place(load)
        if address is None:
            return ELSEWHERE
        line, doubt, steps = ELSEWHERE, 0, _STEPS
        todo = [_Path(rank, index + 1, load.writes)]
        seen = set(todo)
        while todo:
            path = todo.pop()
            held, found, joins, tried = path.held, path.found, path.joins, path.tried
            for operation in self._operations(path.rank)[path.index :]:
                steps -= 1
                used, guards = held & (operation.reads - operation.guard_reads), held & operation.guard_reads
                atomic = self.is_atomic_at(operation, address)
                if atomic and used:
                    if not _compares(operation, held):
                        return ELSEWHERE
                    line, held = operation.statement.line, _NONE
                elif atomic:
                    if guards and not (self.is_idempotent(operation) or operation.writes):
                        return ELSEWHERE
                    line, tried = (operation.statement.line if guards else line), True
                elif used and not guards and is_plain(operation):
                    decided = "and" in operation.statement.opcode.split(".") and operation.reads & found
                    held = held - operation.writes if decided else held | operation.writes
                elif guards and not used and is_plain(operation):
                    held |= operation.writes
                elif guards and not used and is_leap(operation):
                    join, checks = self._join(path.rank, operation, address)
                    if join is None:
                        return ELSEWHERE
                    joins, line, doubt = joins | {join}, max(line, checks), doubt or (CALLED if checks == CALLED else 0)
                elif used or guards:
                    where = self._hides(operation)
                    if where == ELSEWHERE:
                        return ELSEWHERE
                    doubt = HIDDEN if HIDDEN in (where, doubt) else where
                elif operation.guard is None:
                    held -= operation.writes
                if operation.traits is not None and operation.traits.control == "call":
                    function = self.called(path.rank, operation)
                    tried = tried or function is None or (function.updates and address in function.places)
                found = _found_after(operation, found, atomic=atomic, tried=False)
                if not held:
                    break
            for next in self.successors(path.rank) if held else ():
                if next in joins and not tried:
                    continue  # what is used from there on stands for what the atomic operation would have found
                state = _Path(next, 0, held, found, joins - {next}, tried and next not in joins)
                if state not in seen:
                    seen.add(state)
                    todo.append(state)
            if steps < 0:
                return ELSEWHERE
        return doubt or line

    # Where paths join again.

    def _join(self, rank: int, branch: Operation, address: Place) -> tuple[int | None, int]:
        """The block in which the paths of a branch join again, and the line of the atomic operation that is tried in
        between (`CALLED`: a function may contain it); None if something else depends on the branch.
        """
        candidates = self._reached(rank)
        if not _is_branch(branch):
            candidates = [EXITED]
        for join in candidates:
            region = _Region(self, join, address)
            settled = all(region.settles(_Step(each)) for each in self.successors(rank))
            if settled and region.checks != ELSEWHERE:
                left = region.left
                if not left or not self._reads_any(join, left):
                    return join, region.checks
        return None, ELSEWHERE

    def _reached(self, rank: int) -> list[int]:
        """The blocks that follow a branch, the nearest first, and the end of the thread."""
        found, todo = dict.fromkeys(self.successors(rank)), self.successors(rank)
        for block in todo:
            if len(found) >= _JOINS:
                break
            fresh = [each for each in self.successors(block) if each not in found]
            found.update(dict.fromkeys(fresh))
            todo += fresh
        return list(dict.fromkeys([*found, EXITED]))

    def _reads_any(self, rank: int, registers: Registers) -> bool:
        """Whether anything from a block on may read one of these registers as it is there."""
        todo = [(rank, registers)]
        seen = set(todo)
        while todo:
            rank, held = todo.pop()
            for operation in self._operations(rank):
                if held & (operation.reads | operation.guard_reads):
                    return True
                if operation.guard is None:
                    held -= operation.writes
            for next in self.successors(rank) if held else ():
                if (next, held) not in seen:
                    seen.add((next, held))
                    todo.append((next, held))
            if len(seen) > _STEPS:
                return True
        return False

    # What instructions access.

    def is_atomic_at(self, operation: Operation, address: Place) -> bool:
        """Whether an instruction is an atomic operation at an address."""
        return _is_atomic(operation) and self.place(operation) == address

    def place(self, operation: Operation) -> Place | None:
        """What a load or an atomic operation accesses."""
        address = next((each for each in operation.statement.operands if isinstance(each, Address)), None)
        if address is None or not isinstance(address.base, Name):
            return None
        places, offset = self._sum(operation.names(address.base.text))
        return places, offset + address.offset

    def _sum(self, value: object) -> Place:
        """What a register or a name holds, as a sum: conversions between state spaces and widths change nothing."""
        if isinstance(value, Location):
            return frozenset([((value.space, value.address), 1)]), 0
        if not isinstance(value, Register):
            return frozenset([(value, 1)]), 0
        if value.index in self._known:
            return self._known[value.index]
        found = self._sums.get(value.index)
        if found is None:
            itself: Place = frozenset([(value.index, 1)]), 0
            self._sums[value.index] = itself  # if it is computed from itself
            made = self._computed.get(value.index)
            with self.knowing({}):
                found = self._sums[value.index] = itself if made is None else self.made(made, itself)
        return found

    @contextmanager
    def knowing(self, registers: Mapping[int, Place]) -> Iterator[None]:
        """Take what these registers hold from here."""
        before, self._known = self._known, registers
        try:
            yield
        finally:
            self._known = before

    def made(self, operation: Operation, itself: Place) -> Place:
        """What an instruction computes, as a sum, or `itself`; what is computed alike is the same."""
        name, *parts = operation.statement.opcode.split(".")
        operands = operation.statement.operands[1:]
        if name == "ld":  # builds for debugging load an index again; compilers do not where it may change
            place = self.place(operation)
            return self._alike.setdefault((operation.statement.opcode, place), itself) if place is not None else itself
        terms = [self.operand(operation, each) for each in operands]
        if None in terms:
            return itself
        known = [each for each in terms if each is not None]
        numbers = [offset if not places else None for places, offset in known]
        factor = next((each for each in numbers[1:2] if each is not None), None)
        if name in ("mov", "cvta", "cvt") and len(known) == 1 and parts[-1] in _ADDRESSES:
            return known[0]
        if name in ("add", "sub") and len(known) == 2:
            return _added(known[0], _scaled(known[1], -1 if name == "sub" else 1))
        if name == "shl" and factor is not None and 0 <= factor < 64:
            return _scaled(known[0], 1 << factor)
        if name in ("mul", "mad") and factor is not None and not {"lo", "wide"}.isdisjoint(parts):
            scaled = _scaled(known[0], factor)
            return scaled if name == "mul" else _added(scaled, known[2])
        return self._alike.setdefault((operation.statement.opcode, *known), itself)

    def operand(self, operation: Operation, operand: object) -> Place | None:
        """The value of an operand, as a sum."""
        if isinstance(operand, Immediate):
            return (frozenset(), int(operand.value)) if isinstance(operand.value, int) else None
        if not isinstance(operand, Name):
            return None
        place = operation.names(operand.text)
        return self._sum(place if isinstance(place, Register | Location) else operand.text)

    @cached_property
    def _computed(self) -> dict[int, Operation]:
        """The arithmetic instruction or weak load that alone writes a register."""
        return {
            register: operation
            for block in self.blocks
            for operation in block.operations
            if is_plain(operation) or (operation.statement.opcode.startswith("ld.") and not is_strong(operation))
            if operation.guard is None and len(operation.writes) == 1
            for register in operation.writes
            if self._writes[register] == 1
        }

    @cached_property
    def _writes(self) -> Counter[int]:
        """How many instructions write each register."""
        return Counter(each for block in self.blocks for operation in block.operations for each in operation.writes)

    def is_idempotent(self, operation: Operation) -> bool:
        """Whether an atomic operation changes nothing where another thread has done the same before."""
        parts, operands = operation.statement.opcode.split("."), operation.statement.operands
        if "exch" in parts:
            return self.is_uniform(operation, operands[2])
        return not _IDEMPOTENT.isdisjoint(parts)

    def called(self, rank: int, call: Operation) -> Called | None:
        """What a function does that a block calls; None: it does more than atomic operations."""
        arguments = [each for each in self.blocks[rank].operations if each.statement.opcode.startswith("st.param")]
        todo, opcodes = self._functions(call), dict[int, str]()
        seen = set(todo)
        for block in todo:
            fresh = self.successors(block)
            for each in self._operations(block):
                opcode = each.statement.opcode
                if _is_atomic(each):
                    opcodes[each.statement.line] = opcode
                elif each.traits is not None and each.traits.control == "call":
                    fresh += self._functions(each)
                elif not (_changes_nothing(each) or is_leap(each)):
                    return None
            todo += [each for each in fresh if each not in seen]
            seen.update(fresh)
        places, uniform = set[Place](), True
        for each in arguments:
            value = each.statement.operands[1]
            if isinstance(value, Name) and each.statement.opcode.endswith("64"):
                places.add(self._sum(each.names(value.text)))
            else:
                uniform = uniform and self.is_uniform(each, value)
        repeatable = all(
            uniform if "exch" in parts else not _IDEMPOTENT.isdisjoint(parts)
            for parts in (opcode.split(".") for opcode in opcodes.values())
        )
        return Called(frozenset(places), opcodes, repeatable, frozenset(seen))

    def _functions(self, call: Operation) -> list[int]:
        """The first blocks of the functions that a call names."""
        callees = self._program.calls.callees
        names = [each.text for each in call.statement.operands if isinstance(each, Name)]
        return [callees[name].rank for name in names if name in callees]

    def is_uniform(self, operation: Operation, value: object) -> bool:
        """Whether all threads have the same in an operand."""
        place = operation.names(value.text) if isinstance(value, Name) else None
        return isinstance(value, Immediate) or (isinstance(place, Register) and place.index in self._uniform)

    @cached_property
    def _uniform(self) -> Registers:
        """Registers in which all threads have the same: made of numbers and parameters alone."""
        found: set[int] = set()
        for _ in range(4):
            for each in (operation for block in self.blocks for operation in block.operations):
                names = [operand for operand in each.statement.operands[1:] if isinstance(operand, Name)]
                known = all(isinstance(each.names(name.text), Register) for name in names)
                same = each.statement.opcode.startswith("ld.param") or (is_plain(each) and known)
                if (
                    each.guard is None
                    and same
                    and each.reads <= found
                    and all(self._writes[at] == 1 for at in each.writes)
                ):
                    found |= each.writes
        return frozenset(found)

    @cached_property
    def _local(self) -> Registers:
        """Registers with addresses of local variables: copies of them, and sums with anything."""
        found: set[int] = set()
        for operation in (operation for block in self.blocks for operation in block.operations):
            name, terms = operation.statement.opcode.split(".")[0], operation.statement.operands[1:]
            if name in ("mov", "cvta", "add") and terms and isinstance(terms[0], Name):
                place = operation.names(terms[0].text)
                copies = isinstance(place, Register) and place.index in found
                if copies or (isinstance(place, Location) and place.space == "local"):
                    found |= operation.writes
        return frozenset(found)

    def _hides(self, operation: Operation) -> int:
        """`HIDDEN` if a value that an instruction uses goes to a function or to local memory, else `ELSEWHERE`."""
        name, *parts = operation.statement.opcode.split(".")
        if name == "call" or (name == "st" and "param" in parts):
            return HIDDEN
        target = operation.statement.operands[0] if name == "st" else None
        if not isinstance(target, Address) or not isinstance(target.base, Name):
            return ELSEWHERE
        at = operation.names(target.base.text)
        return HIDDEN if "local" in parts or (isinstance(at, Register) and at.index in self._local) else ELSEWHERE

    def successors(self, rank: int) -> list[int]:
        """The blocks that come after one in its function, `EXITED` or beyond where it ends."""
        if rank >= len(self.blocks):
            return []
        block = self.blocks[rank]
        last = block.operations[-1] if block.operations else None
        control = last.traits.control if last is not None and last.traits is not None else None
        if control == "call":
            return [block.following]
        falls = last is None or last.guard is not None or control is None
        leaves = [EXITED] if control in ("return", "exit") else []
        return [min(each, EXITED) for each in (*block.targets, *leaves, *([block.following] if falls else []))]


class Called(NamedTuple):
    """A call of a function: where its arguments point, its atomic operations by line, whether it may be repeated, and
    its blocks.
    """

    places: frozenset[Place]
    atomics: Mapping[int, str]
    is_idempotent: bool
    blocks: frozenset[int]

    @property
    def updates(self) -> bool:
        """Whether it has atomic operations."""
        return bool(self.atomics)


class _Step(NamedTuple):
    """The start of a block in a region: the registers with what the atomic operation found, whether it has been tried,
    and whether it has changed memory in any case while nothing has asked for its result yet (`owed`).
    """

    rank: int
    found: Registers = _NONE
    tried: bool = False
    owed: bool = False


@dataclass(frozen=True)
class _Path:
    """A path from a load: where it is, the registers made of the value, those of what the atomic operation found, the
    blocks where branches join that the value decides, and True once the atomic operation has been tried.
    """

    rank: int
    index: int
    held: Registers
    found: Registers = _NONE
    joins: Registers = _NONE
    tried: bool = False


@dataclass
class _Region:
    """The paths of a branch up to a block (`join`), as far as no atomic operation at `address` has decided."""

    loads: RecheckedLoads
    join: int
    address: Place
    #: The line of an atomic operation there.
    checks: int = ELSEWHERE
    #: Registers that are written before the atomic operation is tried, and afterwards without regard to its result.
    _before: set[int] = field(default_factory=set)
    _after: set[int] = field(default_factory=set)
    #: Registers with what it found, at the end of all paths that try it; None: no such path has ended.
    _results: Registers | None = None
    _seen: dict[_Step, bool] = field(default_factory=dict)

    @property
    def left(self) -> Registers:
        """Registers in which the join finds something else if the atomic operation is not tried."""
        return frozenset(self._after | (self._before - (self._results or _NONE)))

    def settles(self, step: _Step) -> bool:
        """Whether all paths from the start of a block on come to the join, and change nothing until then but what the
        atomic operation decides.
        """
        if step.rank == self.join:
            if step.tried:
                self._results = step.found if self._results is None else self._results & step.found
            return not step.owed
        if step.rank >= len(self.loads.blocks) or len(self._seen) > _BLOCKS:
            return False
        if step not in self._seen:
            self._seen[step] = True  # a loop that comes back here
            self._seen[step] = self._settles_after(step)
        return self._seen[step]

    def _settles_after(self, step: _Step) -> bool:
        rank, found, tried, owed = step
        for operation in self.loads.blocks[rank].operations:
            atomic = self.loads.is_atomic_at(operation, self.address)
            called = operation.traits is not None and operation.traits.control == "call"
            if operation.guard_reads & found:
                if is_leap(operation):
                    return self._decides([_Step(each, found, True, False) for each in self.loads.successors(rank)])
                found, owed = found | operation.writes, False
                continue
            function = self.loads.called(rank, operation) if called else None
            if atomic or (called and (function is None or function.updates)):
                self.checks = max(self.checks, operation.statement.line if atomic or function else CALLED)
                if function is not None and self.address not in function.places:
                    return False
                again = function is None or function.is_idempotent if called else self.loads.is_idempotent(operation)
                tried, owed = True, owed or not again
            elif not (called or is_leap(operation) or _changes_nothing(operation)):
                return False
            found = _found_after(operation, found, atomic=atomic, tried=tried)
            (self._after if tried else self._before).update(operation.writes - found)
        return all(self.settles(_Step(each, found, tried, owed)) for each in self.loads.successors(rank))

    def _decides(self, arms: Sequence[_Step]) -> bool:
        """Whether one of the arms of a branch on the result, for threads that come second, settles."""
        tried = [replace(self, _before=set(), _after=set(), _results=None, _seen=dict(self._seen)) for _ in arms]
        lost = [region for region, arm in zip(tried, arms, strict=True) if region.settles(arm)]
        if not lost:
            return False
        chosen = min(lost, key=lambda region: len(region._after))
        self._before |= chosen._before
        self._after |= chosen._after
        if chosen._results is not None:
            found = chosen._results
            self._results = found if self._results is None else self._results & found
        return True


def _found_after(operation: Operation, found: Registers, *, atomic: bool, tried: bool) -> Registers:
    """The registers with what atomic operations found, after an instruction; functions may return it."""
    returned = tried and operation.statement.opcode.startswith("ld.param")
    if atomic or returned or (operation.reads & found and is_plain(operation)):
        return found | operation.writes
    return found - operation.writes if operation.guard is None else found


def is_strong(load: Operation) -> bool:
    """Whether a load is strong (PTX ISA 8.4)."""
    return not {".volatile", ".relaxed", ".acquire", ".mmio"}.isdisjoint(
        load.statement.opcode.replace(".", " .").split()
    )


def is_plain(operation: Operation) -> bool:
    """Whether an instruction only computes registers of its own lane."""
    return operation.use.lanewise and operation.kind == "plain"


def is_leap(operation: Operation) -> bool:
    """Whether an instruction may go elsewhere than to the next, other than to a function."""
    return operation.traits is not None and operation.traits.control in ("branch", "return", "exit")


def _is_branch(operation: Operation) -> bool:
    return operation.traits is not None and operation.traits.control == "branch"


def _is_atomic(operation: Operation) -> bool:
    return operation.statement.opcode.startswith(("atom.", "red."))


def _changes_nothing(operation: Operation) -> bool:
    """Whether an instruction leaves nothing behind but registers, arguments and local variables."""
    name, *parts = operation.statement.opcode.split(".")
    private = name == "st" and not {"local", "param"}.isdisjoint(parts)
    return private or name in _WITHOUT_EFFECT or is_plain(operation)


def _scaled(place: Place, factor: int) -> Place:
    return frozenset((each, count * factor) for each, count in place[0]), place[1] * factor


def _added(place: Place, other: Place) -> Place:
    counts: Counter[Hashable] = Counter()
    for each, count in (*place[0], *other[0]):
        counts[each] += count
    return frozenset((each, count) for each, count in counts.items() if count), place[1] + other[1]


def _compares(swap: Operation, held: Registers) -> bool:
    """Whether an atomic operation compares with one of these registers, and its address is not made of them."""
    if "cas" not in swap.statement.opcode.split("."):
        return False
    compare = swap.statement.operands[2]
    register = swap.names(compare.text) if isinstance(compare, Name) else None
    return isinstance(register, Register) and register.index in held and held.isdisjoint(swap.use.vital)
