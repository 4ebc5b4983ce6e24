"""Where in its statement the part stands that breaks a rule: an operand, an element of one, a modifier, the guard."""

from __future__ import annotations

import re

from ptxgen import syntax
from ptxgen.instr.model.form import Instruction
from ptxgen.instr.model.recognize import Unrecognized
from ptxgen.instr.model.symbols import Problem

#: Start and end of a part in the text of its statement, the end after the last character.
Span = tuple[int, int]

#: What messages of rules say of the modifier at fault.
_REFUSED = re.compile(r"\b(?:no|not) \.([\w:]+)")


def blamed(statement: syntax.Statement, problem: Problem, found: Instruction | Unrecognized | None = None) -> Span:
    """The span of what breaks the rule on the first line of the statement; all of this line if that is not known."""
    text = statement.text
    first_line = len(text.partition("\n")[0].rstrip())
    whole = 0, first_line
    if not isinstance(statement, syntax.Instruction):
        return whole
    span = _part(statement, problem, found, text)
    return span if span is not None and span[1] <= first_line else whole


def _part(
    statement: syntax.Instruction, problem: Problem, found: Instruction | Unrecognized | None, text: str
) -> Span | None:
    guard, opcode, operands = statement.spans()
    if problem.operand == "guard":
        return guard
    if problem.operand:
        place = _position(found, problem.operand) if isinstance(found, Instruction) else None
        if place is None or place >= len(operands):
            return None
        return _word(text, problem.part, operands[place]) or operands[place]
    if problem.part and not problem.part.startswith("."):
        return _word(text, problem.part, (operands[0][0], operands[-1][1])) if operands else None
    placed = problem.occurrence >= 0
    refused = _REFUSED.search(problem.message) if isinstance(found, Unrecognized) and not placed else None
    said = _word(text, f".{refused[1]}", opcode) if refused else None
    return said or _word(text, problem.part, opcode, problem.occurrence)


def _position(found: Instruction, name: str) -> int | None:
    """Which of the operands in the text the operand `name` of a declaration is, or is a part of."""
    position = 0
    for pattern in found.form.patterns:
        if any(spec.name == name for spec in pattern.fields):
            return position
        position += getattr(found, pattern.fields[0].name) is not None
    return None


def _word(text: str, part: str, within: Span, occurrence: int = -1) -> Span | None:
    """Where a part stands between two places of a text, as a word of its own; of several by default the last."""
    if not part:
        return None
    pattern = rf"(?<![\w$%]){re.escape(part)}(?![\w$:])" if part[0] != "." else rf"{re.escape(part)}(?![\w:])"
    hits = list(re.compile(pattern).finditer(text, *within))
    return hits[occurrence if occurrence < len(hits) else -1].span() if hits else None
