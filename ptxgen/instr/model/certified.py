"""What was compared with ptxas, and when: the record that `python -m tools.certify --record` writes.

A certificate holds for the declaration with the same digest: a declaration that changed is
uncertified until it is compared again.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import textwrap
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from ptxgen.instr.model.form import Instruction
from ptxgen.instr.model.operands import Specification

FILE = "certified.json"

#: Fields of operands on spellings that no enumerated form has: tests/instr/lines judges these.
_SPELLINGS = frozenset({"float_sums", "indexed", "nameless", "plain", "register_sums", "short", "sums", "word"})
#: Fields of operands that say what an instruction does, or what older ptxas releases refuse, not what is legal.
_TRAITS = frozenset({"memory", "memory_space", "constant_since"})


@dataclass(frozen=True, slots=True)
class Certificate:
    """One declaration: its legal `forms`, `assemblies` of them on their targets, and `neighbors`, mostly illegal.

    `disagreements` counts the lines on which ptxas and `ptxgen.check` differed, `excused` those on which they differ
    for a reason that `tools/certify/irreconcilable.py` states.
    """

    key: str
    digest: str
    forms: int
    assemblies: int
    neighbors: int
    excused: int
    disagreements: int
    ptxas: str
    date: str


def digest(form: type[Instruction]) -> str:
    """A short hash of all that a declaration says about what is legal."""
    declared = form.form
    parts: list[object] = [
        declared.opcode,
        declared.syntax,
        declared.availability,
        declared.leading,
        [(slot.field, sorted(slot.tokens), slot.optional) for slot in declared.slots],
        [(pattern.shape, [spec.name for spec in pattern.fields], pattern.optional) for pattern in declared.patterns],
        [(type(spec).__name__, _declared(spec)) for spec in declared.operands.values()],
        sorted((condition, str(availability)) for condition, availability in declared.needs.items()),
        [(rule.code, _said(rule.check)) for rule in declared.rules],
    ]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def _declared(spec: Specification) -> list[tuple[str, str]]:
    """What a specification says about what is legal, by the names of its fields."""
    left_out = _TRAITS | _SPELLINGS
    return [(each.name, _said(getattr(spec, each.name))) for each in fields(spec) if each.name not in left_out]


def _said(value: Any) -> str:
    """A value as text, a function as what it decides."""
    if isinstance(value, Specification):
        return repr(_declared(value))
    return _decisions(inspect.getsource(value)) if callable(value) else repr(value)


class _WithoutWords(ast.NodeTransformer):
    """Drops docstrings, and the words of messages that a rule returns: neither decides what is legal."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:]
        node.name = ""
        return self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if node.value is not None:
            node.value = self._outcome(node.value)
        return node

    def _outcome(self, value: ast.expr) -> ast.expr:
        if isinstance(value, ast.IfExp):
            value.body, value.orelse = self._outcome(value.body), self._outcome(value.orelse)
            return value
        is_text = isinstance(value, ast.JoinedStr) or (isinstance(value, ast.Constant) and isinstance(value.value, str))
        return ast.Constant("message") if is_text else value


def _decisions(source: str) -> str:
    """The syntax tree of a function without its words; the source where it is part of a longer expression."""
    try:
        tree = ast.parse(textwrap.dedent(source))
    except SyntaxError:
        return " ".join(source.split())
    return ast.dump(_WithoutWords().visit(tree))


@cache
def certificates() -> dict[str, Certificate]:
    """The recorded certificates by declaration."""
    path = resources.files("ptxgen.instr.model").joinpath(FILE)
    if not path.is_file():
        return {}
    return {row["key"]: Certificate(**row) for row in json.loads(path.read_text(encoding="utf-8"))}


def write_certificates(made: Iterable[Certificate], declared: Iterable[str]) -> None:
    """Record certificates in the source tree; those of other declarations stay, of ones that are gone do not."""
    every = {**certificates(), **{each.key: each for each in made}}
    known = set(declared)
    rows = [json.dumps(asdict(every[key])) for key in sorted(every) if key in known]
    Path(__file__).with_name(FILE).write_text("[\n" + ",\n".join(rows) + "\n]\n")
    certificates.cache_clear()
