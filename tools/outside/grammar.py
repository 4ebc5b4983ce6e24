"""The manual's notation: `add{.rnd}{.ftz}.f32 d, a, b;` with `.rnd = { .rn, .rz };`."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tools.outside.statements import SKIPPED, without_comments

#: Forms of one syntax line that are drawn when it has more.
PER_LINE = 40

_RULE = re.compile(r"^((?:\.|::)[\w:.]+(?:\s*:\s*\w+)?(?:\s*=\s*(?:\.|::)[\w:.]+)*)\s*=\s*\{(.*)\}$", re.S)
_SYNTAX = re.compile(r"^([a-z][a-z0-9_]*)((?:\.|\{\s*\.|::)\S.*)?$", re.S)


@dataclass(frozen=True, slots=True)
class Template:
    """An opcode with its modifiers, and its operands as the notation names them."""

    opcode: str
    operands: tuple[str, ...]

    @property
    def shape(self) -> tuple[str, ...]:
        """For each operand its brackets: "[" a memory operand, "{" a vector, "" anything else."""
        return tuple("[" if each.startswith("[") else "{" if each.startswith("{") else "" for each in self.operands)


def extract(text: str, markdown: bool = False) -> Iterator[Template]:
    """All forms of a grammar file, or PER_LINE of each syntax line, drawn by their hash."""
    for block in _blocks(text, markdown):
        lines, rules = _parse(block)
        for head, operands in lines:
            yield from _forms(head, operands, rules)


def _blocks(text: str, markdown: bool) -> list[str]:
    """The parts of a file that share rules: in Markdown what is fenced, or between the headings of the manual."""
    if not markdown:
        return re.split(r"^-{5,}$|^\s*// https[^\n]*$", text, flags=re.M)
    fenced = re.findall(r"```[^\n]*\n(.*?)```", text, re.S)
    return fenced or re.findall(r"^Syntax\s*$(.*?)^(?:Description|Semantics)\s*$", text, re.S | re.M)


def _parse(block: str) -> tuple[list[tuple[str, str]], dict[str, list[str]]]:
    lines: list[tuple[str, str]] = []
    rules: dict[str, list[str]] = {}
    # A grammar in Rust ends a syntax line with the code that it stands for.
    plain = re.sub(
        r"=>\s*\{(?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*\})*\}", ";", without_comments(block)
    )
    for piece in plain.split(";"):
        chunk = " ".join(piece.split())
        rule = _RULE.match(chunk)
        if rule:
            choices = _choices(rule[2])
            for name in re.split(r"\s*=\s*", rule[1]):
                rules[re.sub(r"\s*:\s*[A-Z]\w*$", "", name)] = choices
            continue
        head, operands = _split_operands(chunk)
        if head and head.split(".")[0].split("{")[0] not in SKIPPED:
            lines.append((head, operands))
    return lines, rules


def _choices(text: str) -> list[str]:
    """`.a, .b{::c, ::d}, .e*` as a list, footnote marks removed."""
    found: list[str] = []
    for each in re.findall(r"(?:\.|::)[\w:.]+(?:\{[^}]*\})?|(?<![\w.])\w+", text):
        base, _, inner = each.partition("{")
        found.append(base)
        found += [base + suffix.strip() for suffix in inner.rstrip("}").split(",") if suffix.strip()]
    return found


def _split_operands(chunk: str) -> tuple[str, str]:
    """`ld{.weak}.type d, [a]` as head and operands; ("", "") for what is no syntax line."""
    depth = 0
    for position, letter in enumerate(chunk):
        depth += (letter == "{") - (letter == "}")
        if letter == " " and depth == 0:
            rest = chunk[position + 1 :].lstrip()
            # The manual sometimes leaves blanks between modifiers.
            if rest.startswith((".", "{.")):
                joined, operands = _split_operands(rest)
                return (chunk[:position] + joined, operands) if _SYNTAX.match(chunk[:position]) else ("", "")
            head = chunk[:position]
            return (head, rest) if re.match(r"[a-z.{]", head) else ("", "")
    return (chunk, "") if _SYNTAX.match(chunk) else ("", "")


def _forms(head: str, operands: str, rules: dict[str, list[str]]) -> Iterator[Template]:
    match = re.match(r"[a-z][a-z0-9_]*", head)
    if match is None:
        return
    slots = _slots(head[match.end() :], rules)
    if slots is None:
        return
    shapes = _operand_choices(operands)
    total = len(shapes)
    for slot in slots:
        total *= len(slot)
    seen: set[Template] = set()
    for picked, shape in _drawn(slots, shapes, total, head):
        made = Template(match[0] + "".join(picked), shape)
        if made not in seen:
            seen.add(made)
            yield made


def _slots(text: str, rules: dict[str, list[str]], depth: int = 0) -> list[list[str]] | None:
    """The choices for each part of the modifiers."""
    slots: list[list[str]] = []
    for part in re.findall(r"\{[^{}]*\}|(?:\.|::)[^\s.{}]+", text):
        inner = part.strip("{}").strip()
        alternatives = [""] if part.startswith("{") else []
        for each in re.split(r"\s*,\s*", inner) if "," in inner else [inner]:
            expanded = _expanded(each, rules, depth)
            if expanded is None:
                return None
            alternatives += expanded
        slots.append(alternatives)
    return slots


def _expanded(modifiers: str, rules: dict[str, list[str]], depth: int) -> list[str] | None:
    """What a part such as `.type`, `.level::hint` or `.op.noftz` may stand for."""
    if depth > 4:
        return None
    if modifiers in rules:
        found: list[str] = []
        for choice in rules[modifiers]:
            found += (_expanded(choice, rules, depth + 1) if choice != modifiers else [choice]) or []
        return found
    for name in sorted(rules, key=len, reverse=True):
        if name.startswith("::") and name in modifiers:
            return [
                each
                for choice in rules[name]
                for each in _expanded(modifiers.replace(name, choice, 1), rules, depth + 1) or []
            ]
    parts = re.findall(r"\.[^.]+", modifiers)
    if len(parts) > 1:
        each_of = [_expanded(part, rules, depth + 1) for part in parts]
        if any(each is None for each in each_of):
            return None
        return [
            "".join(picked) for picked in itertools.islice(itertools.product(*(each or [] for each in each_of)), 200)
        ]
    return [modifiers.rstrip("*")]


def _operand_choices(text: str) -> list[tuple[str, ...]]:
    """Operand lists with each bracketed optional part taken or left out."""
    optional = re.findall(r"\{\s*,[^{}]*\}|\{\s*[|][^{}]*\}|\{!\}|\{-\}|\{\s*\w+\s*,\s*\}|\{\.\w+\}", text)
    found: list[tuple[str, ...]] = []
    for taken in itertools.product((False, True), repeat=min(len(optional), 4)):
        plain = text
        for part, take in zip(optional, taken, strict=False):
            plain = plain.replace(part, part[1:-1] if take and part not in ("{!}", "{-}") else "", 1)
        pieces = tuple(_top_level(plain))
        if pieces not in found:
            found.append(pieces)
    return found


def _top_level(text: str) -> list[str]:
    pieces, depth, now = [], 0, ""
    for letter in text:
        depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and depth == 0:
            pieces.append(now.strip())
            now = ""
        else:
            now += letter
    return [each for each in [*pieces, now.strip()] if each]


def _drawn(
    slots: Sequence[Sequence[str]], shapes: Sequence[tuple[str, ...]], total: int, seed: str
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    if total <= PER_LINE:
        for every in itertools.product(*slots):
            yield from ((every, shape) for shape in shapes)
        return
    for count in range(PER_LINE):
        digits = int.from_bytes(hashlib.sha256(f"{seed} {count}".encode()).digest(), "big")
        picked: list[str] = []
        for slot in slots:
            digits, index = divmod(digits, len(slot))
            picked.append(slot[index])
        yield tuple(picked), shapes[digits % len(shapes)]
