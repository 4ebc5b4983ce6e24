"""Names in scope: registers, variables, parameters, labels and functions of a PTX module (PTX ISA 5.4, 11)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from ptxgen import syntax
from ptxgen.instr.model.special import special_register
from ptxgen.instr.model.symbols import Signature, Symbol, SymbolKind, TextureMode
from ptxgen.instr.model.types import TYPES, Type

_LISTS: dict[str, SymbolKind] = {"branchtargets": "branch targets", "calltargets": "call targets"}


class Scope:
    """The names that one `{ }` declares, and the scope around it. Calling it resolves a name.

    `%r<10>` declares %r0 to %r9 (5.4.7); ptxas takes %r05 for %r5 (measured, 13.5). A label is known in all of its
    block, everything else from its declaration on.
    """

    def __init__(self, outer: Scope | None = None, texture_mode: TextureMode = "unified") -> None:
        self.outer = outer
        self.texture_mode: TextureMode = texture_mode if outer is None else outer.texture_mode
        self.symbols: dict[str, Symbol] = {}
        self.ranges: dict[str, tuple[int, Symbol]] = {}
        self.labels: dict[str, Symbol] = {}
        self._numbered: dict[str, list[int]] = {}
        #: Symbols of one name of a range, by that name, with that of the range.
        self._whole: dict[str, tuple[Symbol, Symbol]] = {}

    def __call__(self, name: str) -> Symbol | None:
        found = self.kind_of(name)
        if found is None or not name[len(found.name) :].isdigit():
            return found
        whole = self._whole.get(name)
        if whole is None or whole[0] is not found:
            whole = self._whole[name] = found, replace(found, name=name)
        return whole[1]

    def kind_of(self, name: str) -> Symbol | None:
        """The symbol of a name, under the name of its range if it is one of many: `%r` for %r7. Quicker."""
        scope: Scope | None = self
        prefix, number = _split(name)
        while scope is not None:
            found = scope.symbols.get(name)
            if found is not None:
                return found
            numbered = scope.ranges.get(prefix)
            if numbered and 0 <= number < numbered[0]:
                return numbered[1]
            found = scope.labels.get(name)
            if found is not None:
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

    def add(self, symbol: Symbol, count: int | None = None) -> str | None:
        """Declare a name, or the names that `count` makes of it; the first of them that was declared before."""
        name = symbol.name
        prefix, number = _split(name)
        if count is not None:
            clash = name if name in self.ranges else None
            clash = clash or next((f"{name}{each}" for each in self._numbered.get(name, ()) if each < count), None)
            self.ranges[name] = (count, symbol)
            return clash
        if number >= 0:
            self._numbered.setdefault(prefix, []).append(number)
        clash = name in self.symbols or 0 <= number < self.ranges.get(prefix, (0,))[0]
        self.symbols[name] = symbol
        return name if clash else None


def _split(name: str) -> tuple[str, int]:
    """A name as prefix and number, which is -1 where there is none."""
    prefix = name.rstrip("0123456789")
    digits = name[len(prefix) :]
    return prefix, int(digits) if 0 < len(digits) < 12 else -1


def symbols_of(scope: Scope, statement: syntax.Statement) -> Iterator[tuple[Symbol, int | None]]:
    """What a statement declares, with the count of `name<count>`. Lists of labels are in `declare_labels`."""
    match statement:
        case syntax.RegisterDeclaration():
            kind = TYPES.get(statement.type)
            for name, count in statement.declarators:
                yield Symbol(name, "register", kind, vector=statement.vector), count
        case syntax.Variable():
            kind = TYPES.get(statement.type)
            for each in statement.declarators:
                symbol = Symbol(
                    each.name,
                    "variable",
                    kind,
                    statement.space,
                    statement.vector,
                    unified=any(attribute.startswith(".unified") for attribute in statement.attributes),
                    align=_alignment(statement.align, kind, statement.vector),
                    size=_bytes(kind, statement.vector, each.dims),
                    signatures=_table(scope, each.initializer),
                )
                yield symbol, each.count
        case syntax.Parameter():
            yield parameter(statement), None
        case syntax.Function():
            yield Symbol(statement.name, "function", signatures=(signature(statement),)), None
        case syntax.Label():
            yield Symbol(statement.name, "label"), None


def _alignment(align: int | None, kind: Type | None, vector: int | None) -> int:
    return max(align or 1, (kind.bytes if kind else 1) * (vector or 1))


def _bytes(kind: Type | None, vector: int | None, dims: Sequence[int | None] | None) -> int | None:
    """The size of an array, 0 if it has none; None for a scalar."""
    if not dims:
        return None
    size = (kind.bytes if kind else 1) * (vector or 1)
    for each in dims:
        size *= each or 0
    return size


def _table(scope: Scope, initializer: syntax.Operand | None) -> tuple[Signature, ...]:
    """The signatures of the functions in the initial value of an array."""
    if not isinstance(initializer, syntax.Initializer):
        return ()
    names = [each.text for each in initializer.elements if isinstance(each, syntax.Name)]
    return tuple(one for name in names if (symbol := scope(name)) is not None for one in symbol.signatures)


def parameter(declared: syntax.Parameter) -> Symbol:
    """The symbol of a parameter, or of a return value."""
    kind = TYPES.get(declared.type)
    if declared.space == "reg":
        size = _bytes(kind, declared.vector, declared.array)
        return Symbol(declared.name, "register", kind, "reg" if size is not None else None, declared.vector, size=size)
    return Symbol(
        declared.name,
        "parameter",
        kind,
        "param",
        declared.vector,
        align=_alignment(declared.align, kind, declared.vector),
        size=_bytes(kind, declared.vector, declared.array),
    )


def signature(function: syntax.Function | syntax.CallPrototype) -> Signature:
    """What a function or call prototype takes and returns."""
    return Signature(
        tuple(map(parameter, function.returns)),
        tuple(map(parameter, function.parameters)),
        isinstance(function, syntax.Function) and function.kind == "entry",
    )


def declare(scope: Scope, *statements: syntax.Statement) -> list[str]:
    """Add what these statements declare; the names that were declared before."""
    clashes = [scope.add(symbol, count) for statement in statements for symbol, count in symbols_of(scope, statement)]
    return [name for name in clashes if name is not None]


def declare_parameters(scope: Scope, function: syntax.Function) -> list[str]:
    """Add the parameters and return values of a function, for its body; the names that were declared before.

    Names in a declaration without a body stand for nothing, and may repeat (measured, ptxas 13.5).
    """
    given: SymbolKind = "parameter" if function.kind == "entry" else "argument"
    clashes = [
        scope.add(symbol if symbol.kind == "register" else replace(symbol, kind=kind))
        for kind, parameters in (("result", function.returns), (given, function.parameters))
        for symbol in map(parameter, parameters)
    ]
    return [name for name in clashes if name is not None] if function.body is not None else []


def declare_labels(scope: Scope, statements: Sequence[syntax.Statement]) -> None:
    """Make the labels of a block known in all of it, but for those of lists, which are declared where they stand."""
    for index, statement in enumerate(statements):
        if type(statement) is syntax.Label and list_behind(statements, index) is None:
            scope.labels[statement.name] = Symbol(statement.name, "label")


def list_behind(statements: Sequence[syntax.Statement], index: int) -> syntax.Directive | syntax.CallPrototype | None:
    """The list, or the prototype, that the label at `index` names."""
    behind = statements[index + 1] if index + 1 < len(statements) else None
    if isinstance(behind, syntax.CallPrototype) or (isinstance(behind, syntax.Directive) and behind.name in _LISTS):
        return behind
    return None


def names_in(statement: syntax.Directive) -> Iterator[str]:
    """The names of a list, `L<3>` as L0, L1 and L2."""
    for argument in statement.arguments:
        name, _, count = argument.partition("<")
        if count:
            yield from (f"{name}{number}" for number in range(int(count[:-1])))
        else:
            yield name


def list_symbol(scope: Scope, name: str, behind: syntax.Directive | syntax.CallPrototype) -> Symbol:
    """The symbol of a label in front of a list or a prototype."""
    if isinstance(behind, syntax.CallPrototype):
        return Symbol(name, "prototype", signatures=(signature(behind),))
    functions = map(scope, names_in(behind)) if behind.name == "calltargets" else ()
    known = takewhile(lambda each: each is not None, functions)  # L<4294967295> names more than can be
    signatures = tuple(one for each in known if each is not None for one in each.signatures)
    return Symbol(name, _LISTS[behind.name], signatures=signatures)
