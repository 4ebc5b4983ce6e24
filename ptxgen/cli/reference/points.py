"""`ptxgen layout KIND at=3,5` and `thread=7 register=2`: one element of a layout, in one line or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxgen.cli.errors import OK, InputError

if TYPE_CHECKING:
    from ptxgen.pictures.kinds import Declared
    from ptxgen.pictures.points.model import Index

#: Rows that are printed; JSON has all of them.
_SHOWN = 64


@dataclass(frozen=True)
class Query:
    """A question: the kind of layout, its words, the index of an element, and the columns that were given."""

    kind: str
    words: list[str]
    at: tuple[Index, ...] | None
    given: dict[str, Index]


def query_of(kind: str, words: Sequence[str]) -> Query | None:
    """The question that words ask; None where they only draw. Raises InputError for numbers that are none.

    `at` asks unless the words count an access, of which it is the byte; other words ask where they name a column.
    """
    from ptxgen.pictures.points import MAPS

    if kind not in MAPS:
        return None
    located = MAPS[kind]
    own = {each.name for each in located.parameters}
    split = [(*word.partition("="), word) for word in joined(located, words)]
    access = any(name == "access" and value for name, _, value, _ in split)
    at: tuple[Index, ...] | None = None
    kept: list[str] = []
    given: dict[str, Index] = {}
    for name, equals, value, word in split:
        if name == "at" and equals and not (access and "," not in value):
            at = tuple(_number("at", each) for each in value.split(","))
        elif equals and name in located.names and name not in own:
            given[name] = _number(name, value)
        else:
            kept.append(word)
    return None if at is None and not given else Query(kind, kept, at, given)


def joined(known: Declared, words: Sequence[str]) -> list[str]:
    """The words with `--name value` written as `name=value`, and `--switch` as `switch`."""
    switches = {each.name for each in known.parameters if each.type is bool}
    made: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name = word.lstrip("-")
        if not word.startswith("-") or not name[:1].isalpha():
            made.append(word)
        elif "=" in name or name.replace("-", "_") in switches:
            made.append(name)
        elif rest:
            made.append(f"{name}={rest.pop(0)}")
        else:
            raise InputError(f"{word} needs a value (see 'ptxgen layout')")
    return made


def _number(name: str, word: str) -> Index:
    """The number of a word, or the range of FIRST-LAST."""
    first, dash, end = word.partition("-") if word[:1].isdigit() else (word, "", "")
    try:
        return range(int(first, 0), int(end, 0) + 1) if dash else int(first, 0)
    except ValueError:
        raise InputError(f"{name} must be a number or FIRST-LAST, not {word[:40]!r}") from None


def query(asked: Query, as_json: bool) -> int:
    """Print where an element lies."""
    from ptxgen.pictures.points import answer

    found = answer(asked.kind, asked.words, asked.at, **asked.given)
    if as_json:
        data = {"title": found.map.title, "bits": found.map.bits, "notes": found.map.notes, "found": found.rows}
        print(json.dumps(data, indent=2))
        return OK
    print(found.map.title)
    lines = found.lines()
    print(*(f"  {line}" for line in lines[:_SHOWN]), sep="\n")
    if len(lines) > _SHOWN:
        print(f"  ... and {len(lines) - _SHOWN} more (--json has all)")
    for note in found.map.notes:
        print(f"  {note}")
    return OK
