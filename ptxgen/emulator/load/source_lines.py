"""The lines of the source that PTX was compiled from, as `.file` and `.loc` name them (PTX ISA 11.5.1, 11.5.3)."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import replace
from pathlib import PurePath

from ptxgen import syntax
from ptxgen.device import Finding

#: Nested calls that are shown of an inlined location.
_DEEPEST = 4
#: How messages name a line of the PTX.
_LINE = re.compile(r"\bline (\d+)\b")
_Location = tuple[int, int, int]


class SourceLines:
    """What a module's `.loc` say: each holds for the instructions after it, up to the next or the function's end."""

    def __init__(self, module: syntax.Module) -> None:
        self._files: dict[int, str] = {}
        self._lines: list[int] = []
        self._locations: list[syntax.Location | None] = []
        self._callers: dict[_Location, _Location] = {}
        for item in module.statements():
            if isinstance(item, syntax.FileDirective):
                path = PurePath(item.path)
                # Of a compiler's absolute paths the name is enough; templates have names that say their folder.
                self._files[item.index] = path.name if path.is_absolute() else item.path
            elif isinstance(item, syntax.Location | syntax.Function):
                self._lines.append(item.line)
                self._locations.append(item if isinstance(item, syntax.Location) else None)
                if isinstance(item, syntax.Location) and item.inlined_at is not None:
                    self._callers[item.source] = item.inlined_at

    def of(self, line: int) -> str:
        """Where an instruction in a line of the PTX comes from: `norm.cu:12:5, inlined at k.cu:40:9`; empty if unknown.

        Compilers write line 0 where they have none.
        """
        index = bisect_right(self._lines, line) - 1
        location = self._locations[index] if index >= 0 else None
        if location is None or location.source[1] == 0:
            return ""
        places = [location.source]
        caller = location.inlined_at
        while caller is not None and len(places) < _DEEPEST:
            places.append(caller)
            caller = self._callers.get(caller)
        return ", inlined at ".join(self._name(place) for place in places)

    def located(self, finding: Finding) -> Finding:
        """A finding with the source lines of its instruction and of its accesses, in its texts too."""
        source = "" if finding.line is None else self.of(finding.line)

        def named(match: re.Match[str]) -> str:
            other = self.of(int(match[1]))
            return f"{match[0]} ({other})" if other and other != source else match[0]

        made = replace(
            finding,
            source=source,
            accesses=tuple(
                replace(each, source="" if each.line is None else self.of(each.line)) for each in finding.accesses
            ),
            consequences=tuple(map(self.located, finding.consequences)),
        )
        if finding.code == "assertion":  # whose message is the kernel's own
            return made
        summary, rule, fix = (_LINE.sub(named, text) for text in (made.summary, made.rule, made.fix))
        return replace(made, summary=summary, rule=rule, fix=fix)

    def _name(self, place: _Location) -> str:
        file, line, column = place
        return f"{self._files.get(file, f'file {file}')}:{line}" + (f":{column}" if column else "")
