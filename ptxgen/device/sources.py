"""The places of a source that findings name: `k.cu:12:5, inlined at main.cu:40:9`, innermost first."""

from __future__ import annotations

from typing import NamedTuple


class SourcePlace(NamedTuple):
    """A file as the PTX names it, a line from 1, and a column if there is one."""

    name: str
    line: int
    column: int | None = None


def source_places(source: str) -> list[SourcePlace]:
    """The places that a finding's `source` names; empty for an empty one."""
    made: list[SourcePlace] = []
    for part in source.split(", "):
        text = part.removeprefix("inlined at ")
        head, _, last = text.rpartition(":")
        name, _, middle = head.rpartition(":")
        if name and middle.isdecimal() and last.isdecimal():
            made.append(SourcePlace(name, int(middle), int(last)))
        elif head and last.isdecimal():
            made.append(SourcePlace(head, int(last)))
    return made
