"""What each instruction computes from which results, as a graph: the same whatever the order and the registers are.

Opcodes between which ptxas chooses to balance its pipes are one family: MOV and IMAD.MOV, IADD3 and VIADD, SHF.L and
IMAD.SHL, LEA and IMAD by a power of two. Spilled registers are followed through local memory: a slot of the stack
counts as a register.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ptxgen.sass.canonical import Canonical
from ptxgen.sass.classes import width_of
from ptxgen.sass.counters import constant_of
from ptxgen.sass.flow import ENTRY, Flow, Register
from ptxgen.sass.listing import Instruction

#: Opcodes with two factors or terms whose order does not matter, and with any number of them.
_TWO = re.compile(r"[FDH](?:FMA|MUL|ADD|MNMX)2?|U?IMAD|V?I?MNMX|U?IMNMX")
_ALL = re.compile(r"U?IADD3?|VIADD")
_MOVE = re.compile(r"MOV|IMAD\.MOV(?:\.U32)?|IMAD\.U32")
_ADD = re.compile(r"VIADD|IADD3?|IMAD\.IADD(?:\.U32)?")
_SHIFT = re.compile(r"SHF\.L\.U32|IMAD\.SHL(?:\.U32)?|SHL")
_NOTHING = re.compile(r"-?U?RZ|!?U?PT")
_PREDICATE = re.compile(r"!?U?P(?:\d|T)?")
_SPILL = re.compile(r"\[R1(?:\+(0x[0-9a-f]+))?\]")
#: The register file of stack slots, numbered by their distance from R1.
_LOCAL = "LOCAL"
#: The slot of what is read without being named in an operand.
_IMPLICIT = -2


@dataclass(frozen=True, slots=True)
class Read:
    """What an operand reads: which result of an instruction (its operand), or a register from outside the function.

    `shift`: where the operand's first register lies in the result, from its first one on.
    """

    slot: int
    source: int
    result: str
    shift: int


@dataclass(frozen=True, slots=True)
class Code:
    """An instruction without what ptxas chooses: the family of its opcode, and `key`, all of it but registers.

    `slots` are the names of its operands by position; those whose order does not matter share one.
    """

    family: str
    key: str
    slots: tuple[str, ...]


class Dataflow:
    """The graph of a function: what each instruction reads, and by which it is read."""

    def __init__(self, flow: Flow, canonical: Sequence[Canonical]) -> None:
        self.flow = flow
        self.definitions = _with_spills(flow).definitions
        self.canonical = canonical
        instructions = flow.function.instructions
        self.codes = [_code(each, code) for each, code in zip(instructions, canonical, strict=True)]
        self._results = [_results(each, code) for each, code in zip(instructions, canonical, strict=True)]

    @cached_property
    def reads(self) -> list[frozenset[Read]]:
        """What each instruction reads."""
        return [frozenset(self._reads(each)) for each in self.flow.function.instructions]

    @cached_property
    def origins(self) -> list[frozenset[Read]]:
        """What each instruction reads, where moves and spills pass it on: what they move."""
        known: dict[tuple[int, Register], frozenset[tuple[int, Register]]] = {}
        found: list[frozenset[Read]] = []
        moves = {index for index in range(len(self.codes)) if self.moves(index)}
        for each in self.flow.function.instructions:
            if not any(read.source in moves for read in self.reads[each.index]):
                found.append(self.reads[each.index])
                continue
            reads: set[Read] = set()
            for register, sources in self.definitions[each.index].items():
                made = [origin for source in sources for origin in self._origins(source, register, known)]
                for place, at in self._places(each, register):
                    reads.update(self._edge(place, at, name, source) for source, name in made)
            found.append(frozenset(reads))
        return found

    def moves(self, index: int) -> bool:
        """Whether an instruction only passes a register on."""
        each = self.flow.function.instructions[index]
        if each.predicate or len(each.operands) < 2:
            return False
        if self.codes[index].family == "move":
            return len(each.registers.reads) == len(each.registers.writes) == 1
        return each.opcode in ("STL", "LDL") and _spilled(each) is not None

    def _origins(
        self, source: int, register: Register, known: dict[tuple[int, Register], frozenset[tuple[int, Register]]]
    ) -> frozenset[tuple[int, Register]]:
        """The instructions that made what another wrote to a register, and their registers."""
        here = frozenset({(source, register)})
        if source == ENTRY or not self.moves(source):
            return here
        if (source, register) in known:
            return known[source, register]
        known[source, register] = frozenset()  # a loop of moves makes nothing
        moved = self._moved(source, register)
        made = (
            [self._origins(each, moved, known) for each in self.definitions[source].get(moved, frozenset())]
            if moved is not None
            else []
        )
        known[source, register] = frozenset[tuple[int, Register]]().union(*made) if made else here
        return known[source, register]

    def _moved(self, index: int, register: Register) -> Register | None:
        """The register that a move or a spill passes on as another."""
        each = self.flow.function.instructions[index]
        if each.opcode not in ("STL", "LDL"):
            return next(iter(each.registers.reads), None)
        address, number = _spilled(each), register[1]
        data = next((name for name in self.canonical[index].registers if name != ("GPR", 1)), None)
        if address is None or data is None:
            return None
        if each.opcode == "STL":  # the slot was written
            return data[0], data[1] + (number - address) // 4
        return _LOCAL, address + 4 * (number - data[1])

    @cached_property
    def read(self) -> frozenset[tuple[int, Register]]:
        """The results that some instruction reads: (instruction, register)."""
        definitions = self.definitions
        return frozenset((one, name) for each in definitions for name, sources in each.items() for one in sources)

    def named(self, index: int, read: Read) -> tuple[str, str, int]:
        """An edge without its ends; operands whose order does not matter are one."""
        slots = self.codes[index].slots
        return slots[read.slot] if read.slot >= 0 else str(read.slot), read.result, read.shift

    def _reads(self, each: Instruction) -> set[Read]:
        found: set[Read] = set()
        for register, sources in self.definitions[each.index].items():
            for place, at in self._places(each, register):
                found.update(self._edge(place, at, register, source) for source in sources)
        return found

    def _places(self, each: Instruction, register: Register) -> list[tuple[int, int]]:
        """The operands by which a register is read, and where it lies in them."""
        code, results = self.canonical[each.index], self._results[each.index].values()
        named = zip(code.places, code.registers, range(len(code.places)), strict=True)
        below = [one for one in named if one[1][0] == register[0] and one[1][1] <= register[1]]
        below = [one for one in below if one[2] not in results] or below
        nearest = max((one[1][1] for one in below), default=0)
        places = [(place, register[1] - nearest) for place, name, _ in below if name[1] == nearest]
        if not places and each.opcode == "CALL":  # the instructions of the subroutine read them
            return []
        return places or [(_IMPLICIT, 0)]

    def _edge(self, slot: int, at: int, register: Register, source: int) -> Read:
        """The edge on which register `at` of an operand comes from an instruction."""
        if source == ENTRY:
            return Read(slot, ENTRY, f"{register[0]}{register[1]}", at)
        code = self.canonical[source]
        first = max((n for file, n in self._results[source] if file == register[0] and n <= register[1]), default=None)
        if first is None:  # written without being named, as by CALL
            return Read(slot, source, f"{register[0]}{register[1]}", at)
        place = code.places[self._results[source][register[0], first]]
        return Read(slot, source, str(place), register[1] - first - at)


def _with_spills(flow: Flow) -> Flow:
    """The flow in which slots of the stack are registers that STL writes and LDL reads."""
    function = flow.function
    if not any(each.opcode == "STL" for each in function.instructions):
        return flow
    made: list[Instruction] = []
    for each in function.instructions:
        address = _spilled(each) if each.opcode in ("STL", "LDL") else None
        if address is not None:
            slots = frozenset((_LOCAL, address + 4 * each_word) for each_word in range(max(width_of(each) // 32, 1)))
            registers = each.registers
            each = (
                replace(each, registers=replace(registers, writes=registers.writes | slots))
                if each.opcode == "STL"
                else replace(each, registers=replace(registers, reads=registers.reads | slots))
            )
        made.append(each)
    return Flow(replace(function, instructions=tuple(made)))


def _spilled(each: Instruction) -> int | None:
    """The slot of the stack that an instruction loads or stores, by its distance from R1."""
    found = next((match for operand in each.operands if (match := _SPILL.fullmatch(operand))), None)
    return int(found[1] or "0", 16) if found else None


def _results(each: Instruction, code: Canonical) -> dict[Register, int]:
    """The operands that are results, by their position in the code: the first of each predicate that is written.

    Of general and of uniform registers only one operand is a result, of several registers in a row.
    """
    found: dict[Register, int] = {}
    files: set[str] = set()
    for position, (place, register) in enumerate(zip(code.places, code.registers, strict=True)):
        if place >= 0 and register in each.registers.writes and register not in found and register[0] not in files:
            found[register] = position
            if register[0] in ("GPR", "UGPR"):
                files.add(register[0])
    return found


def _code(each: Instruction, canonical: Canonical) -> Code:
    guard = canonical.key.partition(" ")[0]
    sources = canonical.operands[1:]
    value = constant_of(replace(each, predicate="")) if len(each.registers.writes) == 1 else None
    if value is not None:  # by MOV, IMAD.MOV, HFMA2
        return Code("move", f"{guard} move {value:#x}", ("move",) * len(canonical.operands))
    for family, pattern in (("move", _MOVE), ("add", _ADD), ("shift", _SHIFT)):
        if pattern.fullmatch(each.mnemonic):
            values = [one for one in sources if not _NOTHING.fullmatch(one)]
            if family == "add" and each.opcode == "IMAD" and "0x1" in values:
                values.remove("0x1")  # the factor
            if family == "shift":
                values = [_shifted(one) if each.opcode == "IMAD" else one for one in values]
            if not any(_PREDICATE.fullmatch(one) for one in values):  # carries
                slots = tuple(f"{family} {one}" for one in canonical.operands)
                return Code(family, f"{guard} {family} {', '.join(sorted(values))}", slots)
    if (scaled := _scaled(each, canonical)) is not None:
        return scaled
    slots = [str(place) for place in range(len(canonical.operands))]
    alike = _alike(each, canonical)
    for place in alike:
        slots[place] = canonical.operands[place]
    key = canonical.key
    if alike:
        rest = [one for place, one in enumerate(canonical.operands) if place not in alike]
        key = f"{guard} {each.mnemonic} {', '.join(rest)}; {', '.join(sorted(slots[one] for one in alike))}"
    return Code(each.opcode, key, tuple(slots))


def _scaled(each: Instruction, canonical: Canonical) -> Code | None:
    """LEA and IMAD by a power of two: a register, shifted, and another; None for other instructions."""
    operands = canonical.operands
    if len(operands) != 4 or each.mnemonic not in ("LEA", "IMAD") or any(_PREDICATE.fullmatch(one) for one in operands):
        return None
    if each.opcode == "LEA":
        first, second, shift = operands[1:]
        slots = ("result", f"scaled {first}", f"plus {second}", "shift")
    else:
        first, factor, second = operands[1:]
        if not re.fullmatch("0x0*[1248]0*", factor):
            return None
        shift = _shifted(factor)
        slots = ("result", f"scaled {first}", "shift", f"plus {second}")
    return Code("scaled", f"{canonical.key.partition(' ')[0]} scaled {first}, {shift}, {second}", slots)


def _alike(each: Instruction, canonical: Canonical) -> list[int]:
    """The operands whose order does not matter, by position."""
    values = [place for place, one in enumerate(canonical.operands) if place and not re.fullmatch(r"!?U?P(?:T)?", one)]
    if _TWO.fullmatch(each.opcode):
        return values[:2]
    return values if _ALL.fullmatch(each.opcode) else []


def _shifted(factor: str) -> str:
    """The distance of a shift that is written as a factor."""
    try:
        return hex(int(factor, 16).bit_length() - 1)
    except ValueError:
        return factor
