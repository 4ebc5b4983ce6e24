"""The forms of all lists: each a line to judge, or several candidates where the list names no operands."""

from __future__ import annotations

import hashlib
import heapq
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ptxgen.instr import load_all
from ptxgen.instr.model.form import REGISTRY
from tools.outside import asm, clones, grammar, llvm, table, text
from tools.outside.grammar import Template
from tools.outside.sources import SOURCES, Source
from tools.outside.statements import IMMEDIATE, Statement, statements

#: One form in so many is held out: nobody looks at it while the declarations are completed.
HELD_OUT = 5
#: Operand lists tried for an opcode whose list names none.
TRIES = 12
#: Values tried for an immediate that the source computes.
IMMEDIATES = ("1", "0", "2", "4", "8", "16", "24", "32", "64", "128")


@dataclass(slots=True)
class Form:
    """One form: candidates of which the first that ptxas accepts stands for it, and the lists that have it."""

    key: str
    candidates: tuple[str, ...]
    sources: set[str] = field(default_factory=set)

    @property
    def held_out(self) -> bool:
        return hashlib.sha256(self.key.encode()).digest()[0] % HELD_OUT == 0


@dataclass(slots=True)
class Tally:
    """What one source gave."""

    source: Source
    commit: str = ""
    files: int = 0
    forms: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


Found = Statement | Template | str


def gather(
    folder: Path, sources: Iterable[Source] = SOURCES, limit: int | None = None
) -> tuple[list[Form], list[Tally]]:
    """All forms of the clones in a folder, and what each source gave; `limit`: forms of one source, by their hash."""
    whole: dict[str, Form] = {}
    open_ones: dict[str, set[str]] = defaultdict(set)
    donors: dict[str, set[Statement]] = defaultdict(set)
    templates: dict[str, Template] = {}
    tallies: list[Tally] = []
    for source in sources:
        clone = clones.find(folder, source.repository)
        tally = Tally(source)
        tallies.append(tally)
        if clone is None:
            continue
        tally.commit = clone.commit()
        found = _limited(set(_extracted(source, clone, tally)), limit)
        tally.forms = len(found)
        for each in found:
            if isinstance(each, Statement):
                donors[each.root].add(each)
                whole.setdefault(str(each), Form(str(each), _valued(str(each)))).sources.add(source.repository)
            else:
                key = each if isinstance(each, str) else f"{each.opcode} {', '.join(each.operands)}"
                templates[key] = Template(each, ()) if isinstance(each, str) else each
                open_ones[key].add(source.repository)
    prepared = {
        root: _donors(donors[root] | set(_declared(root)))
        for root in {each.opcode.split(".")[0] for each in templates.values()}
    }
    for key, repositories in sorted(open_ones.items()):
        made = templates[key]
        candidates = _candidates(made, prepared[made.opcode.split(".")[0]], exact_shape=" " in key)
        if candidates:
            whole[key] = Form(key, candidates, repositories)
    return sorted(whole.values(), key=lambda form: form.key), tallies


def _limited(found: set[Found], limit: int | None) -> list[Found]:
    def order(each: Found) -> bytes:
        return hashlib.sha256(str(each).encode()).digest()

    ordered = sorted(found, key=order)
    return ordered if limit is None else ordered[:limit]


def _extracted(source: Source, clone: clones.Clone, tally: Tally) -> Iterator[Found]:
    if source.syntax == "table":
        for line in table.texts(clone.files(source.paths)):
            yield from asm.extract(line, tally.left_out)
        tally.files = 1
        return
    if source.syntax == "printer":
        load_all()
        for _, content in clone.files(source.paths):
            tally.files += 1
            yield from text.extract_printer(content, REGISTRY.keys())
        return
    readers: dict[str, Callable[[str], Iterator[Found]]] = {
        "asm": lambda read: asm.extract(read, tally.left_out),
        "ptx": lambda read: text.extract_ptx(read, tally.left_out),
        "checks": lambda read: text.extract_checks(read, tally.left_out),
        "quoted": lambda read: text.extract_quoted(read, tally.left_out),
        "llvm": lambda read: llvm.extract_python(read, tally.left_out),
        "grammar": lambda read: grammar.extract(read, markdown=source.paths[0].endswith(".md")),
    }
    for path, content in clone.files(source.paths):
        if source.syntax in ("asm", "llvm") and b"asm" not in content.lower():
            continue
        tally.files += 1
        reader = llvm.extract_text if source.syntax == "llvm" and not path.endswith(".py") else None
        read = content.decode(errors="replace")
        yield from reader(read, tally.left_out) if reader else readers[source.syntax](read)


def _valued(line: str) -> tuple[str, ...]:
    """A line with an immediate of unknown value, once for each value to try."""
    return tuple(line.replace(IMMEDIATE, value) for value in IMMEDIATES) if IMMEDIATE in line else (line,)


def _declared(root: str) -> Iterator[Statement]:
    """Operand lists of our own declarations, to be tried on opcodes for which a list names none."""
    load_all()
    rng = random.Random(0)
    for form in REGISTRY.get(root, ()):
        for made in form.sample(40, rng):
            # Registers of the examples have the comparison's names already.
            opcode, _, operands = str(made).rstrip(";").partition(" ")
            yield Statement(opcode, operands)


_REGISTERS = (
    (re.compile(r"(pred)$"), "pred"),
    (re.compile(r"f(32|64)$"), "f{}"),
    (re.compile(r"[bus](8|16|32|64|128)$"), "b{}"),
    (re.compile(r"(?:f16|bf16|e\dm\dx2|e2m1x4|ue8m0x2|s2f6x2)$"), "b16"),
    (re.compile(r"(?:b?f16x2|tf32|[us]16x2|[us]8x4|e\dm\dx4)$"), "b32"),
    (re.compile(r"f32x2$"), "b64"),
)


def _register(modifier: str) -> str | None:
    for pattern, register in _REGISTERS:
        match = pattern.match(modifier)
        if match:
            return register.format(*match.groups())
    return None


@dataclass(frozen=True, slots=True)
class _Donor:
    """An operand list, and the modifiers of the statement that has it."""

    operands: str
    modifiers: frozenset[str]
    shape: tuple[str, ...]


def _donors(statements: Iterable[Statement]) -> list[_Donor]:
    """One donor for each operand list and set of modifiers; at most a few hundred for one operand list."""
    found = {(each.operands, frozenset(each.modifiers)) for each in statements}
    return [_Donor(operands, modifiers, _shape(operands)) for operands, modifiers in sorted(found, key=str)]


def _candidates(made: Template, donors: Sequence[_Donor], exact_shape: bool) -> tuple[str, ...]:
    """Lines of an opcode with the operands of the most similar statements of its root."""
    modifiers = frozenset(made.opcode.split(".")[1:])
    types = [each for each in map(_register, made.opcode.split(".")[1:]) if each]
    fitting = [donor for donor in donors if not exact_shape or donor.shape == made.shape]
    nearest = heapq.nsmallest(60, fitting, key=lambda donor: len(modifiers ^ donor.modifiers))
    found: list[str] = []
    for donor in nearest:
        versions = [donor.operands]
        if types and not donor.operands.startswith("["):
            versions.append(re.sub(r"%x_(?!pred|v\d)\w+?_(?=\d)", f"%x_{types[-1]}_", donor.operands))
        for operands in versions:
            for line in _valued(f"{made.opcode} {operands};" if operands else f"{made.opcode};")[:3]:
                if line not in found:
                    found.append(line)
        if len(found) >= TRIES:
            break
    if not found and not made.operands:
        found = [f"{made.opcode};"]
    return tuple(found[:TRIES])


def _shape(operands: str) -> tuple[str, ...]:
    parts, depth, now = [], 0, ""
    for letter in operands + ",":
        depth += (letter in "[{") - (letter in "]}")
        if letter == "," and depth == 0:
            parts.append(now.strip())
            now = ""
        else:
            now += letter
    return tuple("[" if each[:1] == "[" else "{" if each[:1] == "{" else "" for each in parts if each)


def from_text(body: str) -> list[Form]:
    """Forms of a PTX text by itself, for tests and single questions."""
    return [Form(str(each), _valued(str(each))) for each in statements(body, text.conventional)]
