"""Control flow of a function: basic blocks, natural loops, and which definition a register read sees."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ptxgen.sass.listing import Function, Instruction

#: Opcodes that end a block, and the ones that never fall through unless predicated.
_BRANCHES = frozenset({"BRA", "BRX", "JMP", "JMX", "BRXU", "JMXU", "EXIT", "RET", "BSYNC", "BREAK", "KILL", "RTT"})
_LEAVES = frozenset({"BRA", "BRX", "JMP", "JMX", "BRXU", "JMXU", "EXIT", "RET", "KILL", "RTT"})
#: A definition from outside the function: arguments, and what nothing has written.
ENTRY = -1
Register = tuple[str, int]
#: By register, whether something surely writes it, and which instructions may be the last.
_Made = Mapping[Register, tuple[bool, frozenset[int]]]


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions `start` to `end - 1`, entered at the first alone; the blocks that may follow, by number."""

    number: int
    start: int
    end: int
    following: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop: its header, its blocks, how many loops it lies in, and whether others lie in it."""

    header: int
    blocks: frozenset[int]
    depth: int
    innermost: bool


class Flow:
    """The control-flow graph of a function."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.blocks = _blocks(function)
        self._known: dict[str, Mapping[Register, frozenset[int]]] = {}

    @cached_property
    def before(self) -> list[list[int]]:
        """The blocks from which each block is entered."""
        found: list[list[int]] = [[] for _ in self.blocks]
        for block in self.blocks:
            for each in block.following:
                found[each].append(block.number)
        return found

    @cached_property
    def block_of(self) -> list[int]:
        """The block of each instruction."""
        return [block.number for block in self.blocks for _ in range(block.start, block.end)]

    @cached_property
    def loops(self) -> list[Loop]:
        """Natural loops, outer ones first."""
        dominators = _dominators(self.blocks, self.before)
        bodies: dict[int, set[int]] = {}
        for block in self.blocks:
            for header in block.following:
                if header in dominators[block.number]:
                    bodies.setdefault(header, {header}).update(self._body(header, block.number))
        # What ends in a branch to itself after the last EXIT is padding.
        bodies = {header: body for header, body in bodies.items() if not self._is_padding(header, body)}
        made = []
        for header, body in bodies.items():
            depth = sum(header in other and other > body for other in bodies.values())
            inner = not any(other < body for other in bodies.values())
            made.append(Loop(header, frozenset(body), depth, inner))
        return sorted(made, key=lambda loop: (loop.depth, loop.header))

    def _body(self, header: int, latch: int) -> set[int]:
        body, left = {header}, [latch]
        while left:
            each = left.pop()
            if each not in body:
                body.add(each)
                left += self.before[each]
        return body

    def _is_padding(self, header: int, body: set[int]) -> bool:
        block = self.blocks[header]
        return body == {header} and block.end - block.start == 1 and self.before[header] == [header]

    def instructions(self, loop: Loop) -> list[Instruction]:
        """The instructions of a loop in the order of their addresses."""
        return [
            each
            for number in sorted(loop.blocks)
            for each in self.function.instructions[self.blocks[number].start : self.blocks[number].end]
        ]

    def executed(self, loop: Loop) -> list[Instruction]:
        """The instructions of a loop, with those of the subroutines that it calls once for each call in it."""
        return [one for each in self.instructions(loop) for one in (each, *self.called(each))]

    def called(self, each: Instruction) -> tuple[Instruction, ...]:
        """The instructions of the subroutine that a CALL names, with those that it calls in turn."""
        if each.opcode != "CALL":
            return ()
        return tuple(one for name in each.targets for one in self._subroutine(name, frozenset()))

    def _subroutine(self, name: str, callers: frozenset[str]) -> list[Instruction]:
        """What a subroutine executes; nothing of one that is elsewhere, or calls itself."""
        if name not in self.function.subroutines or name in callers:
            return []
        found: list[Instruction] = []
        for block in sorted(self._reached(name)):
            for each in self.function.instructions[self.blocks[block].start : self.blocks[block].end]:
                found.append(each)
                if each.opcode == "CALL":
                    for inner in each.targets:
                        found += self._subroutine(inner, callers | {name})
        return found

    @cached_property
    def definitions(self) -> list[Mapping[Register, frozenset[int]]]:
        """For each instruction and each register that it reads: the instructions that may have written it.

        Control also goes from a CALL to its subroutine. What a subroutine may have written, with what its caller had,
        follows each of its calls; from a computed call control returns from every RET.
        """
        entering = self._entering()
        found: list[Mapping[Register, frozenset[int]]] = []
        for block, state in zip(self.blocks, entering, strict=True):
            guarded = _Guarded(state)
            for each in self.function.instructions[block.start : block.end]:
                found.append({register: guarded.read(register, each.predicate) for register in each.registers.reads})
                guarded.write(each, self._written(each))
        return found

    def _entering(self) -> list[dict[Register, frozenset[int]]]:
        """The definitions that reach the start of each block."""
        following = [self._ways(block) for block in self.blocks]
        instructions, subroutines = self.function.instructions, self.function.subroutines
        computed: set[int] = set()
        for each in instructions:
            if each.opcode != "CALL":
                continue
            block = self.blocks[self.block_of[each.index]]
            named = [subroutines[name] for name in each.targets if name in subroutines]
            before = self._made_in(block, each.index)
            following[block.number] += [(self.block_of[start], before) for start in named or subroutines.values()]
            if not named and each.index + 1 < len(instructions):
                computed.add(self.block_of[each.index + 1])
        for each in instructions:
            if each.opcode == "RET":
                block = self.blocks[self.block_of[each.index]]
                following[block.number] += self._ways(block, sorted(computed))
        return _solved(following, range(len(self.blocks)))

    def _ways(self, block: Block, targets: Sequence[int] | None = None) -> list[tuple[int, _Made]]:
        """The blocks after a block, with what it writes."""
        made = self._made_in(block)
        return [(target, made) for target in (block.following if targets is None else targets)]

    def _made_in(self, block: Block, end: int | None = None) -> _Made:
        """For each register that a block writes: whether it surely does, and which instructions may be the last."""
        made: dict[Register, tuple[bool, frozenset[int]]] = {}
        for each in self.function.instructions[block.start : block.end if end is None else end]:
            for register, sources in self._written(each).items():
                always, before = made.get(register, (False, _NOTHING))
                some = bool(each.predicate) or ENTRY in sources
                made[register] = (always, before | sources - _OUTSIDE) if some else (True, sources)
        return made

    def _written(self, each: Instruction) -> Mapping[Register, frozenset[int]]:
        """The registers that an instruction writes, with what wrote them: itself, or the subroutine that it calls.

        ENTRY stands for what was there before, where a subroutine does not always write a register.
        """
        named = [name for name in each.targets if name in self.function.subroutines] if each.opcode == "CALL" else []
        if named:
            return self._left(named[0])
        here = frozenset((each.index,))
        return dict.fromkeys(each.registers.writes, here)

    def _left(self, name: str) -> Mapping[Register, frozenset[int]]:
        """The definitions that a subroutine leaves at its returns; ENTRY for those of its caller."""
        if name in self._known:
            return self._known[name]
        self._known[name] = {}  # of one that calls itself
        reached = self._reached(name)
        following = [self._ways(block) if block.number in reached else [] for block in self.blocks]
        entering = _solved(following, sorted(reached))
        found: dict[Register, frozenset[int]] = {}
        first = True
        for number in sorted(reached):
            block = self.blocks[number]
            if self.function.instructions[block.end - 1].opcode == "RET":
                _join(found, _after(entering[number], self._made_in(block)), first=first)
                first = False
        self._known[name] = found
        return found

    def _reached(self, name: str) -> set[int]:
        """The blocks of a subroutine."""
        number = self.block_of[self.function.subroutines[name]]
        reached, left = {number}, [number]
        while left:
            following = set(self.blocks[left.pop()].following) - reached
            reached |= following
            left += following
        return reached


def _solved(
    following: Sequence[Sequence[tuple[int, _Made]]], blocks: Sequence[int]
) -> list[dict[Register, frozenset[int]]]:
    """The definitions that reach each block. `following`: the blocks after each, with what is written on the way."""
    entering: list[dict[Register, frozenset[int]]] = [{} for _ in following]
    seen = [False] * len(following)
    left = deque(blocks)
    queued = [False] * len(following)
    for each in blocks:
        queued[each] = True
    while left:
        number = left.popleft()
        queued[number], seen[number] = False, True
        leaving: dict[int, dict[Register, frozenset[int]]] = {}
        for target, made in following[number]:
            if id(made) not in leaving:
                leaving[id(made)] = _after(entering[number], made)
            if _join(entering[target], leaving[id(made)], first=not seen[target]) and not queued[target]:
                queued[target] = True
                left.append(target)
    return entering


def _after(entering: Mapping[Register, frozenset[int]], made: _Made) -> dict[Register, frozenset[int]]:
    """The definitions after a block."""
    leaving = dict(entering)
    for register, (always, some) in made.items():
        leaving[register] = some if always else leaving.get(register, _OUTSIDE) | some
    return leaving


class _Guarded:
    """The definitions at a place in a block, told apart by the predicates under which they are made and read there.

    What an instruction reads under @P0 it has from the last one under @P0, as long as P0 stays; one under @P0 and one
    under @!P0 leave no other.
    """

    def __init__(self, state: dict[Register, frozenset[int]]) -> None:
        self._state = state
        self._under: dict[str, dict[Register, frozenset[int]]] = {}
        #: Guards that hold whenever another holds: of P1, the conjunction of a comparison with P0, @P0.
        self._implied: dict[str, str] = {}

    def read(self, register: Register, guard: str) -> frozenset[int]:
        while guard:
            if found := self._under.get(guard, {}).get(register):
                return found
            guard = self._implied.get(guard, "")
        return self._state.get(register, _OUTSIDE)

    def write(self, each: Instruction, written: Mapping[Register, frozenset[int]]) -> None:
        """The results of an instruction, with what wrote them; ENTRY stands for what was there before."""
        guard = each.predicate
        against = _negated(guard) if guard else ""
        for register, sources in written.items():
            before = self._state.get(register, _OUTSIDE)
            here = sources - _OUTSIDE | before if ENTRY in sources else sources
            for name, known in self._under.items():
                if not guard:
                    known.pop(register, None)
                elif name != against and register in known:
                    known[register] |= here
            if not guard:
                self._state[register] = here
                continue
            other = self._under.get(against, {}).get(register)
            self._state[register] = here | (other or self._state.get(register, _OUTSIDE))
            self._under.setdefault(guard, {})[register] = here
        for file, number in written:
            if file in _PREDICATES:
                self._forget(f"@{_PREDICATES[file]}{number}")
        if not guard and each.operands and _PREDICATE.fullmatch(each.operands[-1]):
            result, last = each.operands[0], f"@{each.operands[-1]}"
            if "AND" in each.modifiers and result != each.operands[-1]:
                self._implied[f"@{result}"] = last
            elif "OR" in each.modifiers and result != each.operands[-1]:
                self._implied[f"@!{result}"] = _negated(last)

    def _forget(self, guard: str) -> None:
        """A predicate has another value."""
        gone = {guard, _negated(guard)}
        for name in gone:
            self._under.pop(name, None)
        self._implied = {x: y for x, y in self._implied.items() if x not in gone and y not in gone}


def _negated(guard: str) -> str:
    return guard.replace("@", "@!").replace("!!", "")


def _join(target: dict[Register, frozenset[int]], leaving: Mapping[Register, frozenset[int]], *, first: bool) -> bool:
    """Add definitions to those that reach a block; whether any is new. What a path lacks, it has from outside."""
    if first and not target:
        target.update(leaving)
        return True
    changed = False
    for register, sources in leaving.items():
        known = target.get(register, _OUTSIDE)
        if not sources <= known or register not in target:
            target[register] = known | sources
            changed = True
    for register in target.keys() - leaving.keys():
        if ENTRY not in target[register]:
            target[register] |= _OUTSIDE
            changed = True
    return changed


_PREDICATE = re.compile(r"!?U?P\d")
#: Predicates by their file.
_PREDICATES = {"PRED": "P", "UPRED": "UP"}
_NOTHING: frozenset[int] = frozenset()
_OUTSIDE = frozenset((ENTRY,))


def _targets(function: Function, each: Instruction) -> list[int]:
    """Where a branch may go, by instruction; labels of other functions are left out."""
    found = [function.labels[name] for name in each.targets if name in function.labels]
    return [index for index in found if index < len(function.instructions)]


def _blocks(function: Function) -> list[Block]:
    instructions = function.instructions
    starts = {0, *(index for index in function.subroutines.values())}
    for each in instructions:
        if each.opcode in _BRANCHES:
            starts.add(each.index + 1)
        if each.opcode not in ("BSSY", "CALL"):
            starts.update(_targets(function, each))
    # Convergence barriers rejoin at the target of BSSY: code goes on there from BSYNC.
    joins: dict[str, int] = {}
    for each in instructions:
        if each.opcode == "BSSY" and (targets := _targets(function, each)):
            joins[each.operands[0]] = targets[0]
            starts.update(targets)
    ordered = sorted(index for index in starts if index < len(instructions))
    number = {start: position for position, start in enumerate(ordered)}
    blocks = []
    for position, start in enumerate(ordered):
        end = ordered[position + 1] if position + 1 < len(ordered) else len(instructions)
        last = instructions[end - 1]
        following: list[int] = []
        if last.opcode in _BRANCHES - {"BSYNC", "BREAK"}:
            following += [number[target] for target in _targets(function, last)]
        unconditional = last.opcode in _LEAVES and not last.predicate and not _has_condition(last)
        if last.opcode == "BSYNC" and last.operands and (target := _nearest_join(instructions, last, function)):
            following.append(number[target])
        if not unconditional and end < len(instructions):
            following.append(number[end])
        blocks.append(Block(position, start, end, tuple(dict.fromkeys(following))))
    return blocks


def _has_condition(each: Instruction) -> bool:
    """Whether a branch has a predicate among its operands, as BRA.U, BRA.DIV and EXIT may."""
    return (bool(each.operands) and each.operands[0].lstrip("!").startswith(("P", "UP"))) or "DIV" in each.modifiers


def _nearest_join(instructions: tuple[Instruction, ...], sync: Instruction, function: Function) -> int | None:
    """Where BSYNC goes on: the target of the last BSSY before it on the same barrier, if that is not after it."""
    for each in reversed(instructions[: sync.index]):
        if each.opcode == "BSSY" and each.operands[0] == sync.operands[0]:
            found = _targets(function, each)
            return found[0] if found else None
    return None


def _dominators(blocks: list[Block], before: list[list[int]]) -> list[set[int]]:
    everything = {block.number for block in blocks}
    entries = {block.number for block in blocks if not before[block.number]} | {0}
    found = [{block.number} if block.number in entries else set(everything) for block in blocks]
    changed = True
    while changed:
        changed = False
        for block in blocks:
            if block.number in entries:
                continue
            known = [found[each] for each in before[block.number]]
            now = set.intersection(*known) | {block.number}
            if now != found[block.number]:
                found[block.number] = now
                changed = True
    return found
