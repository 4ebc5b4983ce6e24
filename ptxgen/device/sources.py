"""The places of a source that findings name: `k.cu:12:5, inlined at main.cu:40:9`, innermost first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ptxgen.device.report import Finding

#: Two instructions of one line of the source.
_TWICE = re.compile(r"\bbar\.sync between (\S+) and \1(?![\w:])")
_IN_ONE_LINE = (
    r"bar.sync between the two accesses of \1, in statements of their own; or an atomic operation, if threads update "
    "the same element"
)
#: Mentions of a PTX line in messages, with the source line that it comes from.
_LINE = re.compile(r"\bline (\d+)(?: \(([^()]+:\d+[^()]*)\))?")
#: Where compilers and libraries have their headers: what is inlined from there is called by the author's line.
_HEADERS = re.compile(r"/(include|site-packages|dist-packages)/")


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


def authors(source: str, files: Mapping[str, str]) -> str:
    """The place of a finding's `source` that its author wrote: the innermost one outside headers of libraries.

    `files` are the paths of the PTX by name.
    """
    for each in source_places(source):
        if not _HEADERS.search(files.get(each.name, each.name)):
            column = "" if each.column is None else f":{each.column}"
            return f"{each.name}:{each.line}{column}"
    return source.partition(", inlined at ")[0]


def by_source_lines(text: str, finding: Finding, files: Mapping[str, str]) -> str:
    """A text of a finding for people who wrote its source: their lines in place of those of the PTX."""
    if not finding.source:
        return text
    sources = {each.line: each.source for each in finding.accesses} | {finding.line: finding.source}

    def located(match: re.Match[str]) -> str:
        return authors(match[2] or sources.get(int(match[1])) or "", files) or match[0]

    return _TWICE.sub(_IN_ONE_LINE, _LINE.sub(located, text))
