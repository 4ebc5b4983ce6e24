"""An instruction without what changes when nothing does: register numbers, labels, addresses, branch distances."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ptxgen.sass.listing import Function, Instruction

#: A register in an operand: general, uniform, predicate, uniform predicate; not the constant ones (RZ, URZ, PT, UPT).
REGISTER = re.compile(r"(?<![\w.$])(UR|UP|R|P)(\d+)(?!\w)")
_LABEL = re.compile(r"`\(([^()]*)\)")
_DISTANCE = re.compile(r"\s+(-?0x[0-9a-f]+)$")
#: Subroutines of ptxas itself, such as divisions: counted through the module.
_INTERNAL = re.compile(r"^\$__internal_\d+_\$")
_SYMBOL = re.compile(r"\.L_x_\d+")
#: Register files by the letters of their registers.
FILES = {"R": "GPR", "P": "PRED", "UR": "UGPR", "UP": "UPRED"}
#: Where parameters begin in constant bank 0, by the major version of the target (SASS of ptxas 13.5).
_PARAMETERS = {8: 0x160, 9: 0x210, 10: 0x380, 11: 0x380, 12: 0x380}
_BANK0 = re.compile(r"c\[0x0\]\[(0x[0-9a-f]+)\]")


@dataclass(frozen=True, slots=True)
class Canonical:
    """`key` has all but register numbers and branch targets; `registers` are (file, number) in their order.

    `operands` are the parts of `key` after the mnemonic, `places` the operand of each register: -1 for the guard.
    """

    key: str
    registers: tuple[tuple[str, int], ...]
    operands: tuple[str, ...] = ()
    places: tuple[int, ...] = ()


def canonical(function: Function, target: str) -> list[Canonical]:
    """The instructions of a function in canonical form."""
    returns = _return_addresses(function)
    base = _PARAMETERS.get(int(re.sub(r"\D", "", target) or 0) // 10, 0)
    found = [_canonical(each, function.name, returns, base) for each in function.instructions]
    for each in function.instructions:  # padding
        if each.opcode == "BRA" and [function.labels.get(one) for one in each.targets] == [each.index]:
            found[each.index] = replace(found[each.index], key=f"{found[each.index].key} of itself")
    return found


def _canonical(each: Instruction, name: str, returns: frozenset[int], base: int) -> Canonical:
    operands = list(each.operands)
    if each.opcode in ("BRX", "BRXU"):  # a distance to the next instruction
        operands = [
            _DISTANCE.sub(lambda match: f" {int(match[1], 16) + each.address + 16:#x}", one) for one in operands
        ]
    if each.index in returns:
        operands = ["return address" if re.fullmatch(r"0x[0-9a-f]+", one) else one for one in operands]
    operands = [_without_places(one, name, base) for one in operands]
    named = [
        (place, match) for place, one in enumerate((each.predicate, *operands), -1) for match in REGISTER.finditer(one)
    ]
    shapes = tuple(REGISTER.sub(_file, one) for one in operands)
    return Canonical(
        f"{REGISTER.sub(_file, each.predicate)} {each.mnemonic} {', '.join(shapes)}",
        tuple((FILES[match[1]], int(match[2])) for _, match in named),
        shapes,
        tuple(place for place, _ in named),
    )


def _file(register: re.Match[str]) -> str:
    return register[1]


def _without_places(operand: str, name: str, base: int) -> str:
    """An operand without what depends on where code and parameters are."""
    operand = _LABEL.sub(lambda match: _label(match[1], name), operand)
    operand = _SYMBOL.sub("label", operand).replace(f".text.{name}", "code")
    return _BANK0.sub(lambda match: _parameter(int(match[1], 16), base), operand)


def _label(text: str, name: str) -> str:
    """A label in a branch; a subroutine keeps its name, without the kernel's and without its number in the module."""
    if text.startswith(".L"):
        return "label"
    if text == name:  # a subroutine returns into the kernel
        return "kernel"
    return _INTERNAL.sub("$", text.removeprefix(f"${name}$"))


def _parameter(offset: int, base: int) -> str:
    return f"param[{offset - base:#x}]" if base and offset >= base else f"c[0x0][{offset:#x}]"


def _return_addresses(function: Function) -> frozenset[int]:
    """Moves of the address after a CALL, shortly before it, by index."""
    found: set[int] = set()
    instructions = function.instructions
    for call in instructions:
        if call.opcode != "CALL" or call.index + 1 >= len(instructions):
            continue
        behind = f"0x{instructions[call.index + 1].address:x}"
        for each in instructions[max(call.index - 16, 0) : call.index]:
            if each.opcode in ("MOV", "UMOV", "IMAD") and behind in each.operands:
                found.add(each.index)
    return frozenset(found)
