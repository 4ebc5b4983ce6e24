"""`ptxgen.check`: whether PTX text is legal, statement by statement, and what is wrong where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ptxgen import syntax
from ptxgen.instr.operands import Problem
from ptxgen.instr.recognise import Unrecognised, recognise
from ptxgen.instr.scope import Scope, declare
from ptxgen.instr.targets import Target, TargetError, parse_target, parse_version

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding of `check`: where (1-based line and column), a stable code, and a sentence that says the rule."""

    line: int
    column: int
    code: str
    severity: Severity
    message: str

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.severity}: {self.message} [{self.code}]"


def check(text_or_module: str | syntax.Module, target: str | None = None) -> list[Diagnostic]:
    """Diagnostics of PTX text or of a parsed module; no errors among them means that the text is legal.

    `target` (`sm_100a`) replaces the module's own `.target`. A `warning` with code `not-declared` marks an instruction
    that ptxgen does not know yet. Raises PtxSyntaxError on text that does not parse.
    """
    module = syntax.parse(text_or_module) if isinstance(text_or_module, str) else text_or_module
    return list(_Checker(module, target).run())


class _Checker:
    def __init__(self, module: syntax.Module, target: str | None) -> None:
        self.module = module
        self.wanted_target = target

    def run(self) -> Iterator[Diagnostic]:
        try:
            written = self.wanted_target or self.module.target
            self.target: Target | None = parse_target(written) if written else None
            self.version = parse_version(self.module.version) if self.module.version else (99, 0)
        except TargetError as error:
            yield Diagnostic(1, 1, "target", "error", str(error))
            return
        scope = Scope()
        for item in self.module.items:
            declare(scope, item)
        for function in self.module.functions:
            if function.body is not None:
                inner = Scope(scope)
                declare(inner, *function.returns, *function.parameters)
                yield from self._block(function.body, inner)

    def _block(self, block: syntax.Block, outer: Scope) -> Iterator[Diagnostic]:
        scope = Scope(outer)
        declare(scope, *block.statements)
        for statement in block.statements:
            if isinstance(statement, syntax.Block):
                yield from self._block(statement, scope)
            elif isinstance(statement, syntax.Instruction):
                for problem in self.instruction(statement, scope):
                    severity: Severity = "warning" if problem.code == "not-declared" else "error"
                    yield Diagnostic(statement.line, statement.column, problem.code, severity, problem.message)

    def instruction(self, statement: syntax.Instruction, scope: Scope) -> Iterator[Problem]:
        guard = statement.guard
        if guard is not None:
            symbol = scope(guard.register)
            if symbol is None:
                yield Problem(
                    "undeclared-name", f"the guard {guard.register} is not declared; it must be a .pred register"
                )
            elif symbol.type is None or symbol.type.kind != "predicate":
                yield Problem(
                    "operand-type", f"the guard must be a .pred register, but {guard.register} is {symbol.type}"
                )
        found = recognise(statement)
        if isinstance(found, Unrecognised):
            yield from found.problems
            return
        yield from found.operand_problems(scope)
        if self.target is not None:
            yield from found.availability_problems(self.target, self.version)
