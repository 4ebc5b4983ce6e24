"""The lines of the source that PTX was compiled from, as `.file` and `.loc` name them (PTX ISA 11.5.1, 11.5.3)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import replace
from linecache import checkcache, getline
from pathlib import PurePath

from ptxgen import syntax
from ptxgen.device import Finding
from ptxgen.files import source_file

#: Places of an inlined location that are shown: so many of the innermost calls, and of the outermost ones, which are in
#: the user's own code where the inner ones are in a library.
_INNERMOST, _OUTERMOST = 2, 2
#: Mentions of a PTX line in messages.
_LINE = re.compile(r"\bline (\d+)\b")
#: Suffix of a variable's name in messages: its offset, or the number of a stage.
_OFFSET = re.compile(r"[+\[ ]")
_Location = tuple[int, int, int]
#: Comments of LLVM around the text of an asm statement.
_BEGIN, _END = "begin inline asm", "end inline asm"


def _statements(finding: Finding) -> tuple[object, ...]:
    """What the copies of a statement that compilers make have in common: statements of the source, and variables."""
    parties = [(each.role, each.opcode, each.source, _OFFSET.split(each.name)[0]) for each in finding.accesses]
    known = bool(finding.source) and all(each.source for each in finding.accesses)
    return (finding.code, finding.severity, finding.source, *sorted(parties), None if known else finding.line)


def _assembly_lines(module: syntax.Module) -> Callable[[int], bool]:
    """Whether a line lies in the text of an asm statement, after its first line.

    LLVM gives each further line of such a text the next line of the source, where other code is: a `.loc` there says
    nothing (seen in PTX of Triton 3.9, whose loads are the third line of an asm statement).
    """
    begins: list[int] = []
    ends: list[int] = []
    text = str(module)
    if _BEGIN in text:
        first = False
        for number, line in enumerate(text.splitlines(), 1):
            if _BEGIN in line:
                first = True
            elif first and ".loc" in line:  # that of the statement itself
                begins.append(number)
                first = False
            elif _END in line:
                if len(begins) > len(ends):
                    ends.append(number)
                first = False

    def inside(line: int) -> bool:
        index = bisect_right(begins, line - 1) - 1
        return 0 <= index < len(ends) and line < ends[index]

    return inside


class SourceLines:
    """What a module's `.loc` say: each holds for the instructions after it, up to the next or the function's end."""

    def __init__(self, module: syntax.Module) -> None:
        self._files: dict[int, str] = {}
        #: The path of each file as `.file` has it.
        self._paths: dict[int, str] = {}
        self._lines: list[int] = []
        self._locations: list[syntax.Location | None] = []
        #: Of each location, by its index, that of the call into which it was inlined.
        self._callers: dict[int, int] = {}
        latest: dict[_Location, int] = {}
        in_assembly = _assembly_lines(module)
        for item in module.statements():
            if isinstance(item, syntax.FileDirective):
                path = PurePath(item.path)
                # Of a compiler's absolute paths the name is enough; templates have names that say their folder.
                self._paths[item.index] = item.path
                self._files[item.index] = path.name if path.is_absolute() else item.path
            elif isinstance(item, syntax.Function):
                self._lines.append(item.line)
                self._locations.append(None)
                latest.clear()
            elif isinstance(item, syntax.Location) and not in_assembly(item.line):
                self._lines.append(item.line)
                self._locations.append(item)
                # Compilers write the place of a call before what they inline there. The same function may be inlined
                # at several places: then the place of a call inside it stands several times, each with its own caller.
                if item.inlined_at is not None and item.inlined_at in latest:
                    self._callers[len(self._locations) - 1] = latest[item.inlined_at]
                latest[item.source] = len(self._locations) - 1

    def of(self, line: int) -> str:
        """Where an instruction in a line of the PTX comes from: `norm.cu:12:5, inlined at k.cu:40:9`; empty if unknown.

        Compilers write line 0 where they have none.
        """
        index: int | None = bisect_right(self._lines, line) - 1
        places: list[_Location] = []
        while index is not None and index >= 0 and (location := self._locations[index]) is not None:
            if not places:
                places.append(location.source)
            if location.inlined_at is not None:
                places.append(location.inlined_at)
            index = self._callers.get(index)
        if not places or places[0][1] == 0:
            return ""
        names = [self._name(place) for place in places]
        left_out = len(names) - _INNERMOST - _OUTERMOST
        if left_out < 2:
            return ", inlined at ".join(names)
        inner, outer = ", inlined at ".join(names[:_INNERMOST]), ", inlined at ".join(names[-_OUTERMOST:])
        return f"{inner}, ... {left_out} more calls ..., inlined at {outer}"

    def text(self, line: int) -> str:
        """The text of the source line of an instruction in a line of the PTX; empty where its file is not there."""
        index = bisect_right(self._lines, line) - 1
        location = self._locations[index] if index >= 0 else None
        if location is None:
            return ""
        file, number, _ = location.source
        path = source_file(self._paths.get(file, ""))
        if not number or path is None:
            return ""
        checkcache(str(path))
        return getline(str(path), number).strip()

    def all_located(self, findings: Iterable[Finding]) -> list[Finding]:
        """Findings with their source lines, of copies of one statement (those of an unrolled loop) the first alone.

        The others are among its consequences.
        """
        made: list[Finding] = []
        copies: dict[tuple[object, ...], int] = {}
        for finding in map(self.located, findings):
            place = copies.setdefault(_statements(finding), len(made)) if finding.accesses else len(made)
            if place == len(made):
                made.append(finding)
                continue
            first = made[place]
            lines = dict(zip(first.also_lines, first.also_sources, strict=True))
            lines |= dict(zip(finding.also_lines, finding.also_sources, strict=True))
            if finding.line is not None and finding.line != first.line:
                lines[finding.line] = finding.source
            lines.pop(first.line or 0, None)
            made[place] = replace(
                first,
                also_lines=tuple(sorted(lines)),
                also_sources=tuple(lines[line] for line in sorted(lines)),
                consequences=(*first.consequences, replace(finding, consequences=()), *finding.consequences),
            )
        return made

    def located(self, finding: Finding) -> Finding:
        """A finding with the source lines of its instruction and of its accesses, in its texts too."""
        source = "" if finding.line is None else self.of(finding.line)
        made = replace(
            finding,
            source=source,
            source_text=self.text(finding.line) if source and finding.line is not None else "",
            also_sources=tuple(map(self.of, finding.also_lines)),
            accesses=tuple(
                replace(each, source="" if each.line is None else self.of(each.line)) for each in finding.accesses
            ),
            consequences=tuple(map(self.located, finding.consequences)),
        )
        if finding.code == "assertion":  # whose message is the kernel's own
            return made
        summary, rule, fix = (self.named(text, source) for text in (made.summary, made.rule, made.fix))
        return replace(made, summary=summary, rule=rule, fix=fix)

    def named(self, text: str, but: str = "") -> str:
        """A text whose `line 12` are followed by their source lines, that of the text's own subject excepted."""

        def replaced(match: re.Match[str]) -> str:
            source = self.of(int(match[1]))
            return f"{match[0]} ({source})" if source and source != but else match[0]

        return _LINE.sub(replaced, text)

    def _name(self, place: _Location) -> str:
        file, line, column = place
        return f"{self._files.get(file, f'file {file}')}:{line}" + (f":{column}" if column else "")
