"""Finds the descriptors that a compiler put into PTX: what reaches an operand, with unknown parts (the address) as 0.

It reads text with regular expressions and knows nothing of ptxgen, so that it stands as a witness of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_DEFINITION = re.compile(r"^\s*(?:@!?%\w+\s+)?([a-z][\w.]*)\s+(\{[^}]*\}|%\w+)(?:\|%\w+)?\s*,\s*(.*?);", re.MULTILINE)
_USE = re.compile(r"\b(tcgen05\.mma[\w.:]*|tcgen05\.cp[\w.:]*|wgmma\.mma_async[\w.:]*)\s+([^;]*);")
_MASK_64 = (1 << 64) - 1


@dataclass(frozen=True, order=True)
class Constant:
    """A descriptor in PTX: its format ("smem", "wgmma", "idesc"), the opcode that uses it, and its constant bits."""

    format: str
    opcode: str
    bits: int


def constants(text: str) -> Iterator[Constant]:
    """The descriptors of one PTX file, those that are registers with a constant part."""
    made: dict[str, list[tuple[str, str, str]]] = {}
    for match in _DEFINITION.finditer(text):
        opcode, target, sources = match.groups()
        for register in re.findall(r"%\w+", target):
            made.setdefault(register, []).append((opcode, target, sources))
    for opcode, operands in _USE.findall(text):
        words = _operands(operands)
        if opcode.startswith("tcgen05.cp"):
            found = [("smem", words[1])]
        elif opcode.startswith("wgmma"):
            found = [("wgmma", each) for each in words if each.startswith("%rd")]
        else:
            found = [("smem", each) for each in words[1:3] if each.startswith("%")] + [("idesc", words[3])]
        for format, register in found:
            for bits in _values(register, made, 8):
                if bits >> (46 if format == "smem" else 17):
                    yield Constant(format, opcode, bits)


def _operands(text: str) -> list[str]:
    """The operands, with braces and brackets kept whole."""
    return [each.strip() for each in re.split(r",(?![^{\[]*[}\]])", text)]


def _values(word: str, made: dict[str, list[tuple[str, str, str]]], depth: int) -> set[int]:
    """What a register may hold: or, add, mov and joins of constants; anything else counts as 0."""
    if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", word):
        return {int(word, 0) & _MASK_64}
    if depth == 0 or word not in made:
        return {0}
    found: set[int] = set()
    for opcode, target, sources in made[word]:
        words = _operands(sources)
        parts = [_values(each, made, depth - 1) for each in words if not each.startswith("{")]
        if re.match(r"(or\.b|add\.s|add\.u)", opcode):
            found |= {(a + b if opcode.startswith("add") else a | b) & _MASK_64 for a in parts[0] for b in parts[1]}
        elif opcode.startswith("mov.b64") and target.startswith("{"):  # a half of a 64-bit value
            half = [each.strip() for each in target.strip("{}").split(",")].index(word)
            found |= {each >> 32 * half & 0xFFFFFFFF for each in parts[0]}
        elif opcode.startswith("mov.b64") and words[0].startswith("{"):  # two halves
            low, high = (_values(each.strip(), made, depth - 1) for each in words[0].strip("{}").split(","))
            found |= {a & 0xFFFFFFFF | (b & 0xFFFFFFFF) << 32 for a in low for b in high}
        elif opcode.startswith("mov."):
            found |= parts[0]
        else:
            found.add(0)
    return found
