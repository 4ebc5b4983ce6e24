"""Changes of instruction words: bits are flipped, and nvdisasm's raw listing says what each flip means.

The raw listing (`nvdisasm --binary`) knows nothing of cubins, line tables or our parser, so it judges independently
that a change is one. Words that it refuses are dropped.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ptxgen.sass import Function
from ptxgen.toolchain import find_nvdisasm

KINDS = ("opcode", "modifier", "predicate", "register", "immediate", "constant", "branch target", "control")
_CONTROL = range(105, 126)
_ILLEGAL = re.compile(r"at address 0x([0-9a-f]+)")
_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s*(.*?)\s*;", re.M)
_REGISTER = re.compile(r"\b(?:UR|UP|R|P)(?:\d+|Z|T)\b|\bURZ\b|\bUPT\b|\bRZ\b|\bPT\b")
_BRANCH = re.compile(r"^(?:@!?U?P\w+ )?(?:BRA|BSSY|CALL|JMP|WARPSYNC)\b")
_HEX = re.compile(r"-?0x[0-9a-f]+")


@dataclass(frozen=True)
class Change:
    """One instruction of a function with another word; `before` and `after` are nvdisasm's raw text of both."""

    kind: str
    index: int
    word: int
    before: str
    after: str


def decode(words: Sequence[int], target: str, folder: Path) -> list[str | None]:
    """What nvdisasm makes of each word, at the address 16 times its index; None for those that it refuses."""
    path = folder / "words.bin"
    kept = list(words)
    refused: set[int] = set()
    nop = 0x000FC00000000000_0000000000007918
    while True:
        path.write_bytes(b"".join(word.to_bytes(16, "little") for word in kept))
        command = [str(find_nvdisasm()), "-b", target.replace("sm_", "SM"), "-ndf", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        bad = {int(match[1], 16) // 16 for match in _ILLEGAL.finditer(done.stderr)} - refused
        if not bad:
            break
        refused |= bad
        for index in bad:
            kept[index] = nop
    if done.returncode:
        raise RuntimeError(f"nvdisasm refuses words and names none: {done.stderr[:300]}")
    texts = {int(match[1], 16) // 16: match[2] for match in _LINE.finditer(done.stdout)}
    return [None if index in refused else texts.get(index) for index in range(len(words))]


def draw(function: Function, target: str, rng: random.Random, folder: Path, tries: int) -> list[Change]:
    """Changes of a function: `tries` bit flips, without those that nvdisasm refuses or prints alike."""
    listed = [each for each in function.instructions if each.opcode != "NOP"]
    branches = [each for each in listed if each.targets]
    drawn: list[tuple[int, int]] = []
    for number in range(tries):
        pool = branches if branches and number % 12 == 0 else listed
        each = rng.choice(pool)
        drawn.append((each.index, each.word ^ _bits(rng, each.word, number)))
    before = decode([function.instructions[index].word for index, _ in drawn], target, folder)
    after = decode([word for _, word in drawn], target, folder)
    found: list[Change] = []
    for position, ((index, word), old, new) in enumerate(zip(drawn, before, after, strict=True)):
        if old is None or new is None:
            continue
        if (word ^ function.instructions[index].word) >> _CONTROL.start:
            found.append(Change("control", index, word, old, new))
        elif kind := kind_of(old, new, position * 16, function, index):
            found.append(Change(kind, index, word, old, new))
    return found


def _bits(rng: random.Random, word: int, number: int) -> int:
    """The bits to flip: opcode, predicate, an operand, a modifier or the control code."""
    ranges = (range(12), range(12, 16), range(16, 24), range(24, 32), range(32, 64), range(64, 72), range(72, 105))
    if number % 8 == 7:
        return 1 << rng.choice(_CONTROL)
    if number % 12 == 0:
        return 1 << rng.choice((*range(18, 24), *range(34, 42)))
    flip = 1 << rng.choice(rng.choice(ranges))
    return flip | (1 << rng.choice(rng.choice(ranges)) if rng.random() < 0.1 else 0)


def kind_of(old: str, new: str, address: int, function: Function, index: int) -> str | None:
    """Which part of the text differs; None where nothing does, or a branch leaves its function."""
    if old == new:
        return None
    (old_guard, old_name, old_operands), (new_guard, new_name, new_operands) = _parts(old), _parts(new)
    if old_name.split(".")[0] != new_name.split(".")[0]:
        return "opcode"
    if _BRANCH.match(old) and old_operands != new_operands and (match := _HEX.search(new_operands)):
        place = int(match[0], 16) - address + index * 16
        if place % 16 or not 0 <= place < 16 * len(function.instructions):
            return None
        return "branch target"
    if old_name != new_name:
        return "modifier"
    if old_guard != new_guard:
        return "predicate"
    if _REGISTER.sub("R", old_operands) == _REGISTER.sub("R", new_operands):
        return "register"
    if "c[" in old_operands and _HEX.sub("", old_operands) == _HEX.sub("", new_operands):
        return "constant"
    return "immediate" if re.search(r"[-+]?\b(0x[0-9a-f]+|\d+(\.\d+)?)\b", new_operands) else "modifier"


def _parts(text: str) -> tuple[str, str, str]:
    guard, _, rest = text.partition(" ") if text.startswith("@") else ("", "", text)
    name, _, operands = rest.strip().partition(" ")
    return guard, name, operands.strip()


def spread(changes: Sequence[Change], count: int) -> Iterator[Change]:
    """`count` changes, of every kind as many as there are, each place once where possible."""
    by_kind = {kind: [each for each in changes if each.kind == kind] for kind in KINDS}
    left = count
    while left and any(by_kind.values()):
        for kind in KINDS:
            if left and by_kind[kind]:
                yield by_kind[kind].pop()
                left -= 1
