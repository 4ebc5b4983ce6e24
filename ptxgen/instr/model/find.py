"""Finding declarations by the beginning of an opcode, a word in it, a Python name, or something like one of them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ptxgen.instr import FAMILIES, load_all
from ptxgen.instr.model.call import generic_call, plainest, signature_text, spellings
from ptxgen.instr.model.form import REGISTRY, Instruction
from ptxgen.instr.model.syntax_line import Slot
from ptxgen.instr.model.targets import TARGETS, parse_target, parse_version


@dataclass(frozen=True)
class Found:
    """One declaration that `find` has found: its opcode, syntax line, Python name, and how to write it.

    `lacks` are the modifiers that the text searched for has not and that must be there, with their values; `spellings`
    are two legal opcodes, or as many as there are.
    """

    key: str
    opcode: str
    syntax: str
    summary: str
    section: str
    lacks: tuple[str, ...]
    spellings: tuple[str, ...]
    signature: str
    call: str
    #: The PTX ISA and the targets, in words, of the plainest legal opcode; other modifiers may require more.
    since: str = ""
    where: str = ""

    def __str__(self) -> str:
        return f"{self.key}: {self.syntax}"

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


class Search(list[Found]):
    """The declarations found. `meant` is the opcode that was searched for instead of one that there is not."""

    def __init__(self, found: Iterable[Found], text: str, meant: str = "") -> None:
        super().__init__(found)
        self.text, self.meant = text, meant

    def groups(self) -> Iterator[tuple[str, list[Found]]]:
        """The opcodes in order, each with its declarations."""
        for opcode in dict.fromkeys(each.opcode for each in self):
            yield opcode, [each for each in self if each.opcode == opcode]


def find(text: str) -> Search:
    """The declarations whose opcodes begin with a text: `tcgen05.ld`, `ld.global`, `wgmma`, `mbarrier.try`.

    If none does: those whose opcode or Python name (`tma.load`) has it as a part; if there are none either, those of
    the opcode that is spelled most like it, which `meant` of the result then names. Empty if nothing is near.
    """
    load_all()
    wanted = text.strip().rstrip(";. ").lstrip(".")
    every = [form for forms in REGISTRY.values() for form in forms]
    if not wanted:
        return Search((), text)
    found = [form for form in every if _begins(form, wanted)]
    if not found:
        word = wanted.lower()
        found = [form for form in every if word in form.form.opcode or form.form.key.startswith(word)]
    meant = ""
    if not found:
        meant = _nearest(wanted, every)
        found = [form for form in every if meant and _begins(form, meant)]
    tokens = (meant or wanted).split(".")
    # The opcode itself comes first, then longer ones by name.
    opcode = meant or wanted
    found.sort(
        key=lambda form: (not f"{opcode}.".startswith(f"{form.form.opcode}."), form.form.opcode, form.__module__)
    )
    return Search([_found(form, tokens) for form in found], text, meant)


def suggestion(name: str, family: str = "") -> str:
    """`; did you mean tma.load?`: families and instructions that are called like it; empty where nothing is."""
    load_all()
    every = [form.form for forms in REGISTRY.values() for form in forms]
    keys = sorted(form.key for form in every)
    # The manual's opcode with underscores: barrier.cluster_arrive is cluster.arrive here.
    opcode = f"{family}.{name.replace('_', '.')}"
    spelled = sorted(form.key for form in every if form.opcode == opcode)
    own = {key.partition(".")[2]: key for key in keys if key.startswith(f"{family}.")}
    close = [own[each] for each in difflib.get_close_matches(name, own, n=2, cutoff=0.5)]
    same = [key for key in keys if key.partition(".")[2].rstrip("_") == name.rstrip("_")]
    near = difflib.get_close_matches(name, FAMILIES, n=2, cutoff=0.5)
    found = same[:3] or spelled[:2] or close or ([] if family else near)
    return f"; did you mean {' or '.join(found)}?" if found else ""


def _begins(form: type[Instruction], text: str) -> bool:
    """Whether an opcode with modifiers of a declaration can begin with a text."""
    opcode = form.form.opcode
    if opcode.startswith(text):
        return True
    if not text.startswith(f"{opcode}."):
        return False
    *whole, last = text[len(opcode) + 1 :].split(".")
    slots = list(form.form.slots)
    for token in whole:
        taken = next((slot for slot in slots if token in slot.tokens), None)
        if taken is None:
            return False
        slots.remove(taken)
    return any(token.startswith(last) for slot in slots for token in slot.tokens)


def _nearest(text: str, every: list[type[Instruction]]) -> str:
    """The beginning of an opcode that is spelled most like a text; empty if none is near."""
    names: dict[str, None] = {}
    for form in every:
        words = form.form.opcode.split(".")
        for count in range(1, len(words) + 1):
            names[".".join(words[:count])] = None
    wanted = text.lower()
    for attempt in (wanted, re.sub(r"[\s_/-]+", ".", wanted), ".".join(wanted.split(".")[:2]), wanted.split(".")[0]):
        if attempt in names:
            return attempt
        if close := difflib.get_close_matches(attempt, names, n=1, cutoff=0.7):
            return close[0]
    return ""


def _found(form: type[Instruction], tokens: list[str]) -> Found:
    declared = form.form
    free, given = list(declared.slots), dict[str, Any]()
    for token in tokens[len(declared.opcode.split(".")) :]:
        slot = next((each for each in free if token in each.tokens), None)
        if slot is not None:
            free.remove(slot)
            if slot.field is not None:
                given[slot.field] = slot.tokens[token]
    legal = spellings(form, given)
    plain = plainest(form, given)
    since, where = _availability(plain[0]) if plain else (declared.availability.ptx, declared.availability.where)
    return Found(
        declared.key,
        declared.opcode,
        declared.syntax,
        declared.summary.partition("\n\n")[0].replace("\n", " "),
        declared.section,
        tuple(dict.fromkeys(_spelled(slot) for slot in free if not slot.optional)),
        tuple(legal),
        signature_text(form),
        generic_call(plain[0]) if plain else "",
        since,
        where,
    )


def _spelled(slot: Slot) -> str:
    """`.f32`, or `.num (.x1 .x2 .x4)` of a modifier with several values."""
    if slot.field is None or len(slot.tokens) == 1:
        return f".{next(iter(slot.tokens))}"
    return f".{slot.field} ({' '.join(f'.{token}' for token in slot.tokens)})"


def _availability(made: Instruction) -> tuple[str, str]:
    """The PTX ISA that an instruction requires, and its targets in words."""
    form = made.form
    optional = {name for name, spec in form.operands.items() if spec.optional}  # which it does without
    demands = (each for each in made.demands() if optional.isdisjoint(each.split()))
    found = [form.availability, *(form.needs[condition] for condition in demands)]
    targets = [parse_target(name) for name in TARGETS]
    # A modifier usually narrows what the opcode has; where neither includes the other both are named.
    sets = [(each, {target for target in targets if each.has_target(target)}) for each in found]
    least = [each.where for each, has in sets if not any(other < has for _, other in sets)]
    return max((each.ptx for each in found), key=parse_version), " and ".join(dict.fromkeys(least))
