"""Mutations of forms: most are illegal, and both judges must say so of the same ones."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from tools.certify.cases import POOL

#: Parts of an operand list at its top level.
_OPERAND = re.compile(r"(?:\[[^\]]*\]|\{[^}]*\}|[^,\[\]{}])+")


def parts(line: str) -> tuple[str, list[str], list[str]]:
    """Opcode, modifiers and operands of a line."""
    head, _, rest = line.rstrip(";").partition(" ")
    root, *modifiers = head.split(".")
    return root, modifiers, [each.strip() for each in _OPERAND.findall(rest) if each.strip()]


def join(root: str, modifiers: Sequence[str], operands: Sequence[str]) -> str:
    return ".".join([root, *modifiers]) + (f" {', '.join(operands)};" if operands else ";")


def _dropped(modifiers: list[str], operands: list[str], words: Sequence[str], rng: random.Random) -> None:
    del words, operands
    del modifiers[rng.randrange(len(modifiers))]


def _swapped(modifiers: list[str], operands: list[str], words: Sequence[str], rng: random.Random) -> None:
    del words, operands
    at = rng.randrange(len(modifiers))
    other = rng.randrange(len(modifiers))
    modifiers[at], modifiers[other] = modifiers[other], modifiers[at]


def _repeated(modifiers: list[str], operands: list[str], words: Sequence[str], rng: random.Random) -> None:
    del words, operands
    at = rng.randrange(len(modifiers))
    modifiers.insert(rng.randint(0, len(modifiers)), modifiers[at])


def _replaced(modifiers: list[str], operands: list[str], words: Sequence[str], rng: random.Random) -> None:
    del operands
    modifiers[rng.randrange(len(modifiers))] = rng.choice(words)


def _added(modifiers: list[str], operands: list[str], words: Sequence[str], rng: random.Random) -> None:
    del operands
    modifiers.insert(rng.randint(0, len(modifiers)), rng.choice(words))


def _operand(modifiers: list[str], operands: list[str], words: Sequence[str], rng: random.Random) -> None:
    del modifiers, words
    if operands:
        operands[rng.randrange(len(operands))] = rng.choice(POOL)


def _operand_dropped(modifiers: list[str], operands: list[str], words: Sequence[str], rng: random.Random) -> None:
    del modifiers, words
    if operands:
        del operands[rng.randrange(len(operands))]


KINDS: dict[str, Callable[[list[str], list[str], Sequence[str], random.Random], None]] = {
    "modifier dropped": _dropped,
    "modifiers swapped": _swapped,
    "modifier repeated": _repeated,
    "modifier replaced": _replaced,
    "modifier added": _added,
    "operand replaced": _operand,
    "operand dropped": _operand_dropped,
}


def mutations(line: str, words: Sequence[str], count: int) -> list[str]:
    """`count` mutations of a line, the same in each run; `words`: modifiers that forms of its opcode have."""
    rng = random.Random(line)
    found: list[str] = []
    for _ in range(4 * count):
        if len(found) == count:
            break
        root, modifiers, operands = parts(line)
        kind = rng.choice(list(KINDS))
        if modifiers or kind.startswith("operand") or kind == "modifier added":
            KINDS[kind](modifiers, operands, words or ["bogus"], rng)
        made = join(root, modifiers, operands)
        if made != line and made not in found:
            found.append(made)
    return found
