"""Names in scope: registers, variables, parameters, labels and functions of a PTX module (PTX ISA 5.4, 11)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ptxgen import syntax
from ptxgen.instr.operands import Symbol, SymbolKind
from ptxgen.instr.special import special_register
from ptxgen.instr.symbols import TextureMode
from ptxgen.instr.types import TYPES


class Scope:
    """The names that one `{ }` declares, and the scope around it. Calling it resolves a name."""

    def __init__(self, outer: Scope | None = None, texture_mode: TextureMode = "unified") -> None:
        self.outer = outer
        self.texture_mode: TextureMode = texture_mode if outer is None else outer.texture_mode
        self.symbols: dict[str, Symbol] = {}
        self.ranges: dict[str, tuple[int, Symbol]] = {}

    def __call__(self, name: str) -> Symbol | None:
        scope: Scope | None = self
        prefix = name.rstrip("0123456789")
        number = name[len(prefix) :]
        while scope is not None:
            found = scope.symbols.get(name)
            if found is not None:
                return found
            numbered = scope.ranges.get(prefix)
            # `%r<10>` declares %r0 to %r9 (5.4.7); ptxas takes %r05 for %r5 (measured, 13.5).
            if numbered and number and int(number) < numbered[0]:
                symbol = numbered[1]
                scope.symbols[name] = found = Symbol(name, symbol.kind, symbol.type, symbol.space, symbol.vector)
                return found
            scope = scope.outer
        found = special_register(name)
        if found is None and "." in name:  # a component of a vector register: v.x, v.r
            base, _, part = name.rpartition(".")
            whole = self(base)
            if whole is not None and whole.vector and part in ("x", "y", "z", "w", "r", "g", "b", "a"):
                return Symbol(name, whole.kind, whole.type)
        if found is None and "::" in name:  # ld.param::entry style names
            return self(name.split("::")[0])
        return found


def declare(scope: Scope, *statements: syntax.Statement) -> None:
    """Add what these statements declare."""
    symbols = scope.symbols
    for statement in statements:
        if isinstance(statement, syntax.RegisterDeclaration):
            kind = TYPES.get(statement.type)
            vector = statement.vector
            for name, count in statement.declarators:
                symbol = Symbol(name, "register", kind, vector=vector)
                if count is None:
                    symbols[name] = symbol
                else:
                    scope.ranges[name] = (count, symbol)
        elif isinstance(statement, syntax.Variable):
            unified = any(each.startswith(".unified") for each in statement.attributes)
            for declarator in statement.declarators:
                symbols[declarator.name] = Symbol(
                    declarator.name,
                    "variable",
                    TYPES.get(statement.type),
                    statement.space,
                    statement.vector,
                    unified=unified,
                )
        elif isinstance(statement, syntax.Parameter):
            kind = TYPES.get(statement.type)
            if statement.space == "reg":
                symbols[statement.name] = Symbol(statement.name, "register", kind, vector=statement.vector)
            else:
                symbols[statement.name] = Symbol(statement.name, "parameter", kind, "param")
        elif isinstance(statement, syntax.Label):
            symbols[statement.name] = Symbol(statement.name, "label")
        elif isinstance(statement, syntax.Function):
            symbols[statement.name] = Symbol(statement.name, "function")


def declare_parameters(scope: Scope, function: syntax.Function) -> None:
    """Add the parameters and return values of a function, for its body."""
    _declare_as(scope, function.parameters, "parameter" if function.kind == "entry" else "argument")
    _declare_as(scope, function.returns, "result")


def _declare_as(scope: Scope, parameters: Iterable[syntax.Parameter], kind: SymbolKind) -> None:
    declare(scope, *parameters)
    for parameter in parameters:
        symbol = scope.symbols[parameter.name]
        if symbol.kind == "parameter":
            scope.symbols[parameter.name] = replace(symbol, kind=kind)
