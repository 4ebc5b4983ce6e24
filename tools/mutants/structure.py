"""The structure of a kernel's text: kernels that differ only in sizes have the same.

It is the sequence of opcodes, guards and branches without operands, and of what repeats one copy: tiles of other sizes
unroll loops to other lengths. Three things are left out, as no mutation but their own leaving out concerns them: the
hints for the L2 (createpolicy, .L2::cache_hint), griddepcontrol, and the width of a wgmma.
"""

from __future__ import annotations

import re

from ptxgen import syntax
from ptxgen.syntax import Instruction, Label, Statement, walk

_LEFT_OUT = ("griddepcontrol", "createpolicy")
#: The longest sequence of which repetitions are found, in instructions.
_LONGEST = 80


def structure(text: str) -> tuple[str, ...]:
    """That of all functions of a text."""
    bodies = [function.body for function in syntax.parse(text).functions if function.body is not None]
    return tuple(each for body in bodies for each in _once(_opcodes(list(walk(body.statements)))))


def _opcodes(statements: list[Statement]) -> list[str]:
    labels = {each.name: number for number, each in enumerate(statements) if isinstance(each, Label)}
    found: list[str] = []
    for number, each in enumerate(statements):
        if isinstance(each, Label):
            found.append(":")
        elif isinstance(each, Instruction) and not each.opcode.startswith(_LEFT_OUT):
            opcode = re.sub(r"(?<=m64)n\d+(?=k)", "nN", each.opcode).replace(".L2::cache_hint", "")
            if opcode.startswith("bra"):
                opcode += " back" if labels.get(str(each.operands[-1]).strip(), number) < number else " on"
            found.append("@" * bool(each.guard) + opcode)
    return found


def _once(opcodes: list[str]) -> list[str]:
    """The sequence with a single copy of what follows itself, until there is nothing more of that."""
    while True:
        before = len(opcodes)
        for length in range(1, _LONGEST + 1):
            opcodes = _without_repetitions(opcodes, length)
        if len(opcodes) == before:
            return opcodes


def _without_repetitions(opcodes: list[str], length: int) -> list[str]:
    """The sequence without parts of a length that the next part repeats."""
    kept: list[str] = []
    number = 0
    while number < len(opcodes):
        after = number + length
        if opcodes[number:after] == opcodes[after : after + length]:
            number = after
        else:
            kept.append(opcodes[number])
            number += 1
    return kept
