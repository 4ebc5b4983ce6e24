"""What an instruction is, in words: its parts, where it is legal, who issues it, what completes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ptxgen import syntax
from ptxgen.instr.model.call import generic_call, python_call, signature_text
from ptxgen.instr.model.difference import opcode_problems
from ptxgen.instr.model.form import Instruction
from ptxgen.instr.model.glossary import meaning
from ptxgen.instr.model.nearest import nearest_opcode
from ptxgen.instr.model.operands import Problem
from ptxgen.instr.model.recognize import Unrecognized, candidates, recognize
from ptxgen.instr.model.targets import TARGETS, parse_target, parse_version


@dataclass(frozen=True, slots=True)
class Part:
    """One modifier or operand: its text, the name of its place in the syntax line, and what it means or must be."""

    text: str
    name: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of one instruction. `problems` is empty where it is legal on some target."""

    text: str
    key: str
    summary: str
    syntax: str
    section: str
    issued_by: str
    completed_by: str
    fences: str
    ptx: str
    targets: tuple[str, ...]
    modifiers: tuple[Part, ...]
    operands: tuple[Part, ...]
    problems: tuple[Problem, ...]
    nearest: str
    #: The Python call that builds it, and what it takes.
    call: str = ""
    signature: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def explain(text: str) -> list[Explanation]:
    """Explanations of one instruction: one, or for an opcode without operands one for each of its syntax lines.

    `text` is PTX with or without the closing `;`. Names need no declaration. Raises PtxSyntaxError on text that is no
    instruction.
    """
    statement = _statement(text)
    found = recognize(statement)
    if isinstance(found, Instruction):
        problems = tuple(found.operand_problems(None))
        return [_explanation(str(statement).strip(), found, statement.operands, problems)]
    if not statement.operands and (bound := candidates(statement.opcode)):
        return [_explanation(made.opcode_text, made, (), ()) for made in bound]
    return [_unknown(statement, found)]


def _statement(text: str) -> syntax.Instruction:
    head = ".version 8.0\n.target sm_80\n.func f() {\n"
    body = text.strip().rstrip(";")
    try:
        module = syntax.parse(f"{head}{body};\n}}\n")
    except syntax.PtxSyntaxError as error:
        line = error.line - head.count("\n")
        raise syntax.PtxSyntaxError(line, error.column, error.expected, error.found, error.source_line) from None
    (function,) = module.functions
    assert function.body is not None
    statements = [each for each in function.body.statements if isinstance(each, syntax.Instruction)]
    if len(statements) != 1 or len(function.body.statements) != 1:
        raise ValueError(f"one instruction is wanted, not {body[:60]!r}")
    return statements[0]


def _explanation(
    text: str, made: Instruction, operands: Sequence[syntax.Operand], problems: tuple[Problem, ...]
) -> Explanation:
    form = made.form
    version = max(
        [form.availability.ptx, *(form.needs[condition].ptx for condition in made.demands())], key=parse_version
    )
    newest = (99, 0)
    return Explanation(
        text=text,
        key=form.key,
        summary=form.summary,
        syntax=form.syntax,
        section=form.section,
        issued_by=_issued_by(made),
        completed_by=form.completed_by,
        fences=form.fences,
        ptx=version,
        targets=tuple(each for each in TARGETS if not made.availability_problems(parse_target(each), newest)),
        modifiers=tuple(_modifiers(made)),
        operands=tuple(_operands(made, bool(operands))),
        problems=problems,
        nearest="",
        call=python_call(made) if operands else generic_call(made),
        signature=signature_text(type(made)),
    )


def _issued_by(made: Instruction) -> str:
    """Who issues it; tcgen05 instructions of a pair of CTAs by the warps or the thread of PTX ISA 9.7.16.5."""
    issuer = made.form.issued_by
    if not made.form.opcode.startswith("tcgen05.") or getattr(made, "cta_group", None) != 2:
        return issuer
    return {"warp": "warp, one in each CTA of the pair", "thread": "thread, of one CTA of the pair"}.get(issuer, issuer)


def _modifiers(made: Instruction) -> list[Part]:
    parts = []
    for slot in made.form.slots:
        if slot.field is None:
            parts += [Part(f".{token}", "", meaning(made.form.key, "", token)) for token in slot.tokens]
            continue
        value = getattr(made, slot.field)
        if value is not None and value is not False:
            token = slot.spelled[value]
            parts.append(Part(f".{token}", slot.field, meaning(made.form.key, slot.field, token)))
    return parts


def _operands(made: Instruction, given: bool) -> list[Part]:
    """The operands that are there; where none are given, all that can be."""
    parts = []
    for name, spec in made.form.operands.items():
        operand = getattr(made, name)
        if operand is not None:
            parts.append(Part(str(operand), name, spec.explain(made)))
        elif not given and (not spec.when or spec.wanted(made.__dict__)):
            parts.append(Part("", name, spec.explain(made) + (", optional" if spec.optional and not spec.when else "")))
    return parts


def _unknown(statement: syntax.Instruction, found: Unrecognized) -> Explanation:
    return Explanation(
        text=str(statement).strip(),
        key="",
        summary="",
        syntax="",
        section="",
        issued_by="",
        completed_by="",
        fences="",
        ptx="",
        targets=(),
        modifiers=(),
        operands=(),
        problems=tuple(opcode_problems(statement, found)),
        nearest="" if found.bound else nearest_opcode(statement.opcode, len(statement.operands) or None) or "",
    )
