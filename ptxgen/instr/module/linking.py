"""Names that a module declares more than once, linkage, and `.alias`. PTX ISA 11.2.3, 11.6."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ptxgen import syntax
from ptxgen.instr.model.scope import signature
from ptxgen.instr.model.special import special_register
from ptxgen.instr.model.symbols import Problem, Signature, Symbol
from ptxgen.instr.model.targets import ALL, Availability
from ptxgen.instr.module.context import Context

_ALIAS = Availability("6.3", "sm_30+")
_WEAK = Availability("3.1", ALL)
_UNIFIED = Availability("8.0", "sm_90+")
#: Functions of the driver, by name or beginning; ptxas takes calls without `.extern` (measured, 13.5).
_SYSTEM_CALLS = frozenset(
    {"vprintf", "vfprintf", "malloc", "free", "__assertfail", "cnpGetParameterBuffer", "cnpLaunchDevice"}
)
_SYSTEM_PREFIX = "__cuda_syscall"
#: Directives that a declaration and the definition of a function must both have.
_SHARED_DIRECTIVES = ("noreturn", "abi_preserve", "abi_preserve_control")


@dataclass(slots=True)
class _Function:
    """What the declarations of a function so far have said."""

    first: syntax.Function
    signature: Signature
    directives: tuple[tuple[str, tuple[str, ...]], ...]
    defined: bool
    alias_of: str | None = None

    @property
    def linkage(self) -> str | None:
        return self.first.linkage


@dataclass(slots=True)
class _Variable:
    """What the declarations of a variable so far have said."""

    statement: syntax.Variable
    dims: tuple[int | None, ...]
    external: bool


class Linker:
    """The functions and variables that a module has declared so far."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.functions: dict[str, _Function] = {}
        self.variables: dict[str, _Variable] = {}

    def function(self, new: syntax.Function) -> Iterator[Problem]:
        """What is wrong with a function beside those before it."""
        name = new.name
        if new.linkage == "weak":
            yield from self.context.lacks(".weak", _WEAK)
        if len(new.attributes) > 1:
            yield Problem("attribute", f"{name} has .unified twice; write it once")
        for attribute in new.attributes:
            if attribute.startswith(".unified"):
                yield from self.context.lacks(".attribute(.unified)", _UNIFIED)
            else:
                yield Problem("attribute", f"{attribute} requires a .global variable, not the function {name}")
        if new.linkage == "extern" and new.body is not None:
            yield Problem("linkage", f"{name} is .extern, so it cannot have a body")
        found = _Function(new, signature(new), _directives(new), new.body is not None)
        if name in self.variables:
            yield Problem("redeclared", f"{name} is a variable already (line {self.variables[name].statement.line})")
        elif name in self.functions:
            yield from self._again(name, self.functions[name], found)
            self.functions[name].defined |= found.defined
            return
        self.functions[name] = found

    def _again(self, name: str, old: _Function, new: _Function) -> Iterator[Problem]:
        line = f"(line {old.first.line})"
        if old.first.kind != new.first.kind:
            yield Problem("redeclared", f"{name} is .{old.first.kind} {line}, it cannot be .{new.first.kind} too")
        elif old.defined:
            yield Problem("redeclared", f"{name} is defined already {line}")
        elif new.linkage != old.linkage and (new.linkage is not None or old.linkage == "extern"):
            before, now = (f".{each}" if each else "no linkage" for each in (old.linkage, new.linkage))
            yield Problem("redeclared", f"{name} was declared with {before} {line}, so not with {now}")
        elif (difference := _difference(old.signature, new.signature)) is not None:
            yield Problem("redeclared", f"{name} was declared with other {difference} {line}")
        elif old.directives != new.directives:
            names = " ".join(f".{each}" for each in _SHARED_DIRECTIVES)
            yield Problem("redeclared", f"{name} must have the same directives as its declaration {line}: {names}")

    def variable(self, new: syntax.Variable) -> Iterator[Problem]:
        """What is wrong with the names of a variable at module scope."""
        for each in new.declarators:
            names = [each.name] if each.count is None else [f"{each.name}{i}" for i in range(min(each.count, 1 << 16))]
            for name in names:
                yield from self._variable(name, each.dims, new)

    def _variable(self, name: str, dims: tuple[int | None, ...], new: syntax.Variable) -> Iterator[Problem]:
        if name in self.functions:
            yield Problem("redeclared", f"{name} is a function already (line {self.functions[name].first.line})")
        elif special_register(name) is not None:
            yield Problem("redeclared", f"{name} is a special register")
        old = self.variables.get(name)
        external = new.linkage == "extern"
        if old is not None:
            yield from self._variable_again(name, old, _Variable(new, dims, external))
        if old is None or old.external:
            self.variables[name] = _Variable(new, dims, external)

    def _variable_again(self, name: str, old: _Variable, new: _Variable) -> Iterator[Problem]:
        line = f"(line {old.statement.line})"
        if not old.external and not new.external:
            yield Problem("redeclared", f"{name} is declared already {line}")
        elif (old.statement.type, old.statement.vector) != (new.statement.type, new.statement.vector):
            yield Problem("redeclared", f"{name} was declared with another type {line}")
        elif len(old.dims) != len(new.dims) or not all(
            one == other or None in (one, other) or (new.external and old.external)
            for one, other in zip(old.dims, new.dims, strict=True)
        ):
            yield Problem("redeclared", f"{name} was declared with another size {line}")
        elif old.external and not new.external and new.statement.linkage is None:
            yield Problem(
                "redeclared", f"{name} is .extern {line}, so its definition must be .visible, .weak or .common"
            )

    def alias(self, new: syntax.Directive) -> Iterator[Problem]:
        """What is wrong with `.alias name, function;`."""
        yield from self.context.lacks(".alias", _ALIAS)
        name, target = new.arguments
        for each in (name, target):
            if each in self.variables:
                yield Problem("alias", f"{each} is a variable; .alias requires a function")
                return
            if each not in self.functions:
                yield Problem("undeclared-name", f"{each} must be declared before .alias")
                return
        alias, function = self.functions[name], self.functions[target]
        if name == target:
            yield Problem("alias", f"{name} cannot be an alias of itself")
        elif "entry" in (alias.first.kind, function.first.kind):
            entry = name if alias.first.kind == "entry" else target
            yield Problem("alias", f"{entry} is an entry; .alias requires a .func")
        elif alias.defined:
            yield Problem("alias", f"{name} has a body (line {alias.first.line}), so it cannot be an alias")
        elif alias.alias_of is not None:
            yield Problem("alias", f"{name} is an alias of {alias.alias_of} already")
        elif function.linkage in ("weak", "extern"):
            yield Problem("alias", f"{target} is .{function.linkage}; only functions of this module have aliases")
        elif (difference := _difference(alias.signature, function.signature)) is not None:
            yield Problem("alias", f"{name} and {target} have other {difference}")
        elif alias.directives != function.directives:
            yield Problem("alias", f"{name} and {target} must have the same directives, such as .noreturn")
        alias.alias_of = target

    def undefined(self) -> Iterator[tuple[syntax.Function, Problem]]:
        """Functions that are only declared, though nothing else can define them."""
        for name, found in self.functions.items():
            if name in _SYSTEM_CALLS or name.startswith(_SYSTEM_PREFIX):
                continue
            if not found.defined and found.linkage != "extern" and found.alias_of is None:
                message = f"{name} is declared, but has no body; declare it .extern if another module has it"
                yield found.first, Problem("undefined-function", message)


def _directives(function: syntax.Function) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple(sorted((each.name, each.arguments) for each in function.directives if each.name in _SHARED_DIRECTIVES))


def _difference(old: Signature, new: Signature) -> str | None:
    """In what two signatures differ; types must be the same, not only hold the same (measured, ptxas 13.5)."""
    for what, before, now in (
        ("return values", old.returns, new.returns),
        ("parameters", old.parameters, new.parameters),
    ):
        if _shapes(before) != _shapes(now):
            return what
    return None


def _shapes(symbols: Sequence[Symbol]) -> list[tuple[object, ...]]:
    return [(each.kind, each.type, each.vector, each.align, each.size) for each in symbols]
