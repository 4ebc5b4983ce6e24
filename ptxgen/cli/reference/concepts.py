"""`ptxgen explain CONCEPT` and `explain concepts`: what the words of the manual mean, in text, JSON and Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from ptxgen.cli.errors import OK, InputError, nearest

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ptxgen.concepts import Concept

_PAGE = """# Concepts

What the words of the PTX manual mean: five lines, the reason, the rule that people break, an example, and where to
read on. `ptxgen explain NAME` prints one, `ptxgen explain concepts [WORD]` lists them. Sections are those of the PTX
ISA 9.2.

Written by `ptxgen explain concepts --markdown` from `ptxgen/concepts/*.toml`, where one is added or corrected.
"""
#: Concepts that a line of links names at most.
_LINKS = 6


def explain_concepts(word: str, as_json: bool, as_markdown: bool) -> int:
    """All concepts, or those about a word. Raises InputError if there are none."""
    from ptxgen import concepts

    if as_markdown:
        print(markdown(concepts.concepts().values()), end="")
        return OK
    found = concepts.search(word)
    if not found:
        near = nearest(concepts.normalized(word), concepts.names())
        raise InputError(f"no concept is called or about {word!r}{near}; 'ptxgen explain concepts' lists all")
    if as_json:
        print(json.dumps([each.as_dict() for each in found], indent=2))
        return OK
    _list(found)
    return OK


def show(found: Concept, out: Console) -> None:
    """One concept."""
    from rich.padding import Padding
    from rich.text import Text

    from ptxgen.cli.common.terminal import grid

    others = f"  {', '.join(found.aliases)}" if found.aliases else ""
    out.print(Text(found.name, style="bold").append(others, style="dim"))
    table = grid("cyan", "")
    table.add_row("what", Text(_flowing(found.what)))
    table.add_row("why", Text(found.why))
    table.add_row("rule", Text(found.rule))
    out.print(Padding(table, (0, 0, 0, 2)))
    for line in (*found.picture.splitlines(), *found.ptx):
        out.print(Text(f"    {line}", style="green"), soft_wrap=True)
    more = grid("dim", "")
    for name, words in _references(found):
        more.add_row(name, Text(words))
    out.print(Padding(more, (0, 0, 0, 2)))


def _references(found: Concept) -> list[tuple[str, str]]:
    """What a concept leads to, by the name of the row."""
    rows = [
        ("try", "\n".join(found.commands)),
        ("manual", f"PTX ISA {', '.join(found.sections)}" if found.sections else ""),
        ("instructions", ", ".join(found.instructions)),
        ("checks", ", ".join(found.checks)),
        ("layouts", ", ".join(found.layouts)),
        ("facts", ", ".join(found.facts)),
        ("see", ", ".join(found.see)),
    ]
    return [(name, words) for name, words in rows if words]


def _flowing(text: str) -> str:
    """A text whose lines run on, as a terminal of another width needs."""
    return " ".join(text.split())


def link(found: Iterable[Concept], most: int = _LINKS) -> str:
    """The names of concepts, and how to read one; empty for none."""
    names = [each.name for each in found]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more} (ptxgen explain NAME)" if names else ""


def add_links(table: Table, kind: str, name: str) -> None:
    """A row with the concepts that name a check, layout, fact or instruction, where there are any."""
    from rich.text import Text

    from ptxgen import concepts

    if words := link(concepts.about(kind, name)):
        table.add_row("concepts", Text(words))


def _list(found: Iterable[Concept]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from ptxgen.cli.common.terminal import NARROW, grid, output

    with output() as out:
        for room, each in groupby(sorted(found, key=lambda concept: concept.room), key=lambda concept: concept.room):
            out.print(Text(room, style="bold"))
            table = grid("cyan", "")
            for concept in each:
                first = _flowing(concept.what).split(". ")[0].rstrip(".")
                if out.width < NARROW:
                    out.print(Text(f"  {concept.name}", style="cyan"))
                    out.print(Padding(first, (0, 0, 0, 4)))
                else:
                    table.add_row(f"  {concept.name}", Text(first))
            if table.row_count:
                out.print(table)


def markdown(found: Iterable[Concept]) -> str:
    """The page docs/concepts.md."""
    parts = [_PAGE]
    for room, each in groupby(found, key=lambda concept: concept.room):
        parts.append(f"\n## {room[:1].upper()}{room[1:]}\n")
        parts += [_entry(concept) for concept in each]
    return "".join(parts)


def _entry(found: Concept) -> str:
    lines = [f"\n### {found.name}", "", _escaped(found.what), "", f"**Why.** {_escaped(found.why)}", ""]
    lines += [f"**Rule.** {_escaped(found.rule)}", ""]
    if example := [*found.picture.splitlines(), *found.ptx]:
        lines += ["```", *example, "```", ""]
    if found.commands:
        lines += ["```sh", *found.commands, "```", ""]
    kept = (row for row in _references(found) if row[0] != "try")
    lines += [f"*{'; '.join(f'{name}: {words}' for name, words in kept)}.*".replace("*manual: ", "*"), ""]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return text.replace("*", "\\*").replace("<", "&lt;")
