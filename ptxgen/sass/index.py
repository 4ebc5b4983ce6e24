"""How PTX becomes SASS: for declared forms the instructions that ptxas makes of them, on Hopper and Blackwell.

Recorded by `make sass-index` (tools/certify/emitted.py): each form alone in a kernel at -O3, with register operands of
which ptxas has no information. In a real kernel constants, neighbors and uniform values change the SASS.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

TARGETS = ("sm_90a", "sm_100a")
_FILE = "index.json"
#: Sequences of a declaration that are shown where a form itself was not recorded.
_SHOWN = 3
_NOTHING = "nothing (ptxas drops it)"


@dataclass(frozen=True)
class Index:
    """`forms`: by declaration, target and spelling (opcode with modifiers) the SASS mnemonics.

    A text is empty where ptxas makes nothing of the line.
    """

    ptxas: str
    date: str
    forms: Mapping[str, Mapping[str, Mapping[str, str]]]


@cache
def index() -> Index:
    """The recorded index."""
    kept = json.loads(resources.files("ptxgen.sass").joinpath(_FILE).read_text(encoding="utf-8"))
    forms = {
        key: {target: _spelled(groups) for target, groups in targets.items()} for key, targets in kept["forms"].items()
    }
    return Index(kept["ptxas"], kept["date"], forms)


def _spelled(groups: Mapping[str, list[str]]) -> dict[str, str]:
    return {spelling: text for text, spellings in groups.items() for spelling in spellings}


def write(made: Index) -> None:
    """Record an index in the source tree: spellings by what is made of them, a declaration a line."""
    rows: list[str] = []
    for key, targets in sorted(made.forms.items()):
        grouped: dict[str, dict[str, list[str]]] = {}
        for target, spellings in sorted(targets.items()):
            for spelling, text in sorted(spellings.items()):
                grouped.setdefault(target, {}).setdefault(text, []).append(spelling)
        rows.append(f"{json.dumps(key)}: {json.dumps(grouped)}")
    head = f'"ptxas": {json.dumps(made.ptxas)}, "date": {json.dumps(made.date)}'
    text = "{" + head + ', "forms": {\n' + ",\n".join(rows) + "\n}}\n"
    Path(__file__).with_name(_FILE).write_text(text, encoding="utf-8")
    index.cache_clear()


def emitted(key: str, spelling: str) -> dict[str, str]:
    """By target what ptxas makes of a form; where it was not recorded, of forms of its declaration with like modifiers.

    `spelling` is the opcode with its modifiers. Targets that have no such form are left out.
    """
    found: dict[str, str] = {}
    for target, forms in index().forms.get(key, {}).items():
        if spelling in forms:
            found[target] = forms[spelling] or _NOTHING
            continue
        by_text: dict[str, str] = {}
        for other in sorted(forms, key=lambda each: _distance(each, spelling)):
            by_text.setdefault(forms[other] or _NOTHING, other)
        shown = [f"{text} (for {other})" for text, other in list(by_text.items())[:_SHOWN]]
        more = len(by_text) - len(shown)
        found[target] = "; ".join(shown) + (f"; and {more} more" if more > 0 else "")
    return found


def _distance(one: str, other: str) -> int:
    """How many modifiers only one of two spellings has."""
    return (Counter(one.split(".")) - Counter(other.split("."))).total() + (
        Counter(other.split(".")) - Counter(one.split("."))
    ).total()


def recorded(opcode: str) -> str:
    """An opcode with as many of its modifiers as a form has: `LDTM` of `LDTM.x32`; empty where no form has it."""
    while opcode and not sources(opcode):
        opcode = opcode.rpartition(".")[0]
    return opcode


def sources(opcode: str) -> dict[str, dict[str, str]]:
    """By declaration and target a form whose SASS has an opcode (`UTMALDG`): the one with the fewest instructions.

    Modifiers of the opcode count, in order: `USETMAXREG.TRY_ALLOC`.
    """
    wanted = re.compile(rf"(^|[ ,]){re.escape(opcode)}(?=[. ,]|$)")
    found: dict[str, dict[str, str]] = {}
    for key, targets in index().forms.items():
        for target, forms in targets.items():
            having = [each for each in forms if wanted.search(forms[each])]
            if having:
                found.setdefault(key, {})[target] = min(having, key=lambda each: (forms[each].count(","), len(each)))
    least = {key: min(_size(key, target, each) for target, each in made.items()) for key, made in found.items()}
    return {key: found[key] for key in sorted(found, key=lambda key: (least[key], key))}


def _size(key: str, target: str, spelling: str) -> int:
    return index().forms[key][target][spelling].count(",")
