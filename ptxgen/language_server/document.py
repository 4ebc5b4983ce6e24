"""PTX text in an editor: what is wrong with it, what is under the cursor, and what can follow there.

Lines and columns count from 0, as in editors.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from ptxgen import syntax
from ptxgen.device.accept import Accept, AcceptError
from ptxgen.device.inline import MARK
from ptxgen.instr.model.analyze import Analysis, Step
from ptxgen.instr.model.check import Diagnostic, check
from ptxgen.instr.model.explain import Explanation, explain
from ptxgen.instr.model.scope import Scope
from ptxgen.instr.model.symbols import Severity, Symbol
from ptxgen.language_server.completion import Item, names, opcodes
from ptxgen.syntax import PtxSyntaxError, parse

#: Name of the text in messages about its comments.
_NAME = "PTX"
_OF_COMMENT = re.compile(rf"{_NAME}:(\d+): (.*)", re.DOTALL)
#: Syntax errors that one look passes over, each at the cost of another parse.
_PASSED_OVER = 6
_COMMENT = re.compile(r"//.*|/\*.*?\*/")
#: Text before an opcode: braces, a label, a guard.
_BEFORE = r"(?:[{}]\s*)*(?:[\w$%]+\s*:(?!:)\s*)?(?:@!?[\w$%]+\s+)?"
_OPCODE = re.compile(rf"\s*{_BEFORE}((?:[a-z_][\w.:]*)?)")
_GUARD = re.compile(r"(?:^|[\s{}:])@!?([\w$%]*)$")
_WORD = re.compile(r"[%$\w][\w$]*(?:\.[xyzwrgba]\b)?")
_TYPED = re.compile(r"[%$\w][\w$.]*$|$")


class Mark(NamedTuple):
    """A diagnostic: characters `begin` to `end` of a line, and what is wrong there."""

    line: int
    begin: int
    end: int
    severity: Severity
    code: str
    message: str


class Document:
    """One state of a text. `before` is the state before it, whose names are offered while this one does not parse.

    `target` replaces the module's own; `accept` are reviewed diagnostics besides those that comments accept.
    """

    def __init__(
        self, text: str, before: Document | None = None, target: str | None = None, accept: Sequence[Accept] = ()
    ) -> None:
        self.lines = text.replace("\r\n", "\n").split("\n")
        self._target = target
        self._accept = accept
        self._errors: list[PtxSyntaxError] = []
        self._module = self._parsed()
        self._analysis = Analysis(self._module) if self._module is not None else None
        self._stale = before.steps if before is not None and self._module is None else []

    def _parsed(self) -> syntax.Module | None:
        """The module without statements that do not parse; None where even the rest does not."""
        lines = list(self.lines)
        for _ in range(_PASSED_OVER):
            try:
                return parse("\n".join(lines))
            except PtxSyntaxError as error:
                if all(error.line != each.line for each in self._errors):
                    self._errors.append(error)
                at = min(error.line, len(lines)) - 1
                first = _first_line(lines, at)
                # An unfinished statement is noticed in the next one, which may be fine.
                last = at if first == at else at - 1
                if not any(each.strip() for each in lines[first : last + 1]):
                    break
                lines[first : last + 1] = [""] * (last + 1 - first)
        del self._errors[1:]
        return None

    @cached_property
    def steps(self) -> list[Step]:
        """The statements in order, with their scopes; those of the state before while the text does not parse."""
        return list(self._analysis.steps()) if self._analysis is not None else self._stale

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        return [(step.statement.line - 1, step.statement.column - 1) for step in self.steps]

    def diagnostics(self) -> list[Mark]:
        """Syntax errors, and what `ptxgen.check` says of the rest."""
        found = [
            Mark(
                each.line - 1,
                each.column - 1,
                max(each.column, min(len(each.source_line), each.column - 1 + len(each.found.strip("'")))),
                "error",
                "syntax",
                f"expected {each.expected}, found {each.found}",
            )
            for each in self._errors
        ]
        if self._module is not None:
            diagnostics = check(self._module, self._target, analysis=self._analysis)
            try:
                diagnostics = self._not_accepted(self._module, diagnostics)
            except AcceptError as error:
                said = _OF_COMMENT.fullmatch(str(error))
                line = int(said[1]) - 1 if said else 0
                found.append(Mark(line, 0, len(self.lines[line]), "error", "accept", said[2] if said else str(error)))
            for each in diagnostics:
                if self._errors and each.code == "undeclared-name":
                    continue  # its declaration may be what does not parse
                end = max(each.column, each.end_column - 1)
                found.append(Mark(each.line - 1, each.column - 1, end, each.severity, each.code, each.message))
        return found

    def _not_accepted(self, module: syntax.Module, found: Sequence[Diagnostic]) -> Sequence[Diagnostic]:
        """Those that nobody has reviewed. Raises AcceptError for a comment that cannot be used."""
        text = "\n".join(self.lines)
        if not self._accept and MARK not in text:
            return found
        from ptxgen.reports.convert import checked  # which takes as long to import as all the rest

        return checked(_NAME, text, module, "", found, self._accept).diagnostics

    def hover(self, line: int, column: int) -> str | None:
        """Markdown: what a name under the cursor stands for, and all of the instruction that it is in."""
        step = self._step_at(line, column)
        if step is None:
            return None
        word = next((each[0] for each in _WORD.finditer(self.lines[line]) if each.start() <= column < each.end()), "")
        symbol = step.scope(word)
        parts = [f"`{word}`: {described(symbol)}"] if symbol is not None else []
        if isinstance(step.statement, syntax.Instruction):
            parts += map(_markdown, explain(step.statement.text))
        return "\n\n---\n\n".join(parts) or None

    def completions(self, line: int, column: int) -> list[Item]:
        """What can stand at the cursor: opcodes and their modifiers, or names in scope."""
        if line >= len(self.lines) or "//" in self.lines[line][:column]:
            return []
        before = self.lines[line][:column]
        begun = [_COMMENT.sub(" ", each) for each in [*self.lines[_first_line(self.lines, line) : line], before]]
        begun = " ".join(begun).rpartition(";")[2]
        if (guard := _GUARD.search(begun)) is not None:
            return [*names(self._scope(line, column), guard[1], "guard")]
        head = _OPCODE.match(begun)
        if head is None or begun.lstrip().startswith("."):
            return []
        if head.end() == len(begun):
            return opcodes(head[1], *self.target)
        if not head[1]:
            return []
        typed = _TYPED.search(before)
        place = "branch" if head[1].split(".")[0] in ("bra", "brx") else "operand"
        return [*names(self._scope(line, column), typed[0] if typed else "", place, *self.target)]

    @property
    def target(self) -> tuple[str, str]:
        """The target and the `.version` of the text; empty where it has none."""
        found = {"target": "", "version": ""}
        for text in self.lines:
            match = re.match(r"\s*\.(target|version)\s+([\w.]+)", text)
            if match is not None:
                found[match[1]] = match[2]
            if all(found.values()):
                break
        return self._target or found["target"], found["version"]

    def _scope(self, line: int, column: int) -> Scope | None:
        index = bisect_right(self._places, (line, column)) - 1
        return self.steps[index].scope if index >= 0 else None

    def _step_at(self, line: int, column: int) -> Step | None:
        """The statement under the cursor."""
        index = bisect_right(self._places, (line, column)) - 1
        if index < 0 or self._module is None or line >= len(self.lines):
            return None
        step = self.steps[index]
        if isinstance(step.statement, syntax.Function):
            return step if line == self._places[index][0] else None
        first, begin = self._places[index]
        *above, last = step.statement.text.split("\n")
        end = (first + len(above), len(last) + (0 if above else begin))
        return step if (line, column) < end else None


def described(symbol: Symbol) -> str:
    """`register .b32`, `variable .shared .b8, 1024 bytes`."""
    words: list[str] = ["special register" if symbol.kind == "special" else symbol.kind]
    if symbol.space and symbol.space != "param":
        words.append(f".{symbol.space}")
    if symbol.vector:
        words.append(f".v{symbol.vector}")
    if symbol.type is not None:
        words.append(str(symbol.type))
    text = " ".join(words)
    if symbol.size:
        text += f", {symbol.size} bytes"
    if symbol.availability is not None:
        text += f", since PTX ISA {symbol.availability.ptx} on {symbol.availability.where}"
    return text


def _first_line(lines: list[str], at: int) -> int:
    """The line in which the statement begins that reaches into line `at`."""
    first = at
    for number in range(at - 1, -1, -1):
        text = _COMMENT.sub("", lines[number]).rstrip()
        if text.endswith((";", "{", "}", ":", "*/")):
            break
        if text:
            if re.match(r"\s*\.(version|target|address_size|file|loc)\b", text):
                break
            first = number
    return first


def _markdown(found: Explanation) -> str:
    return "\n".join(_sections(found))


def _sections(found: Explanation) -> Iterator[str]:
    for problem in found.problems:
        yield f"**{problem.severity}**: {problem.message} [{problem.code}]\n"
    if found.nearest:
        yield f"The nearest legal form is `{found.nearest}`\n"
    if not found.key:
        return
    yield f"{found.summary}\n\n```ptx\n{found.syntax}\n```\n"
    parts = [*found.modifiers, *found.operands]
    if parts:
        yield "| | | |\n|---|---|---|"
        for part in parts:
            cells = (f"`{part.text}`" if part.text else "", part.name, part.meaning)
            yield f"| {' | '.join(cell.replace('|', chr(92) + '|').replace(chr(10), ' ') for cell in cells)} |"
        yield ""
    yield f"- PTX ISA {found.section}, since {found.ptx}, on {' '.join(found.targets) or 'no target'}"
    yield f"- issued by {found.issued_by}; completed by {found.completed_by}; fences: {found.fences or 'none'}"
    yield f"\n```python\n{found.call}\n```"
