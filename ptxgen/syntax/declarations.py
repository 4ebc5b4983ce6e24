"""Declarations, directives, functions and the module (PTX ISA 5 and 11): the tree above single statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

from ptxgen.files import unescaped_path
from ptxgen.syntax.lexer import integer_value
from ptxgen.syntax.operands import Operand
from ptxgen.syntax.tree import INDENT, NEWLINE, Block, Spelled, Statement, walk

# Of each directive: what separates its arguments, and what ends it.
_COMMA_SEPARATED = frozenset(
    {"target", "alias", "pragma", "branchtargets", "calltargets", "maxntid", "reqntid", "reqnctapercluster", "language"}
)
_ENDED = frozenset({"alias", "pragma", "branchtargets", "calltargets", "callprototype"})


class Directive(Spelled):
    """A directive without a class of its own: its name and its arguments as text, strings with quotes."""

    __slots__ = ("arguments", "name")
    _fields = ("name", "arguments")

    def __init__(self, name: str, arguments: Iterable[str] = (), *, trivia: str = NEWLINE) -> None:
        super().__init__(trivia)
        self.name = name
        self.arguments = tuple(arguments)

    def _plain(self) -> str:
        separator = ", " if self.name in _COMMA_SEPARATED else " "
        words = " ".join([f".{self.name}", separator.join(self.arguments)]).rstrip()
        return words + ";" if self.name in _ENDED else words


class FileDirective(Directive):
    """`.file index "path"{, timestamp{, size}}`."""

    __slots__ = ()

    @property
    def index(self) -> int:
        return integer_value(self.arguments[0])

    @property
    def path(self) -> str:
        return unescaped_path(self.arguments[1][1:-1])

    def _plain(self) -> str:
        return f".file {self.arguments[0]} {', '.join(self.arguments[1:])}"


class Location(Directive):
    """`.loc file line column {, function_name label {+ offset}, inlined_at file line column}`."""

    __slots__ = ()

    @property
    def source(self) -> tuple[int, int, int]:
        """File index, line and column."""
        file, line, column = self.arguments[:3]
        return integer_value(file), integer_value(line), integer_value(column)

    @property
    def function_name(self) -> str | None:
        """The label, with its offset, in .debug_str that holds the function's name."""
        return self.arguments[4] if len(self.arguments) > 4 else None

    @property
    def inlined_at(self) -> tuple[int, int, int] | None:
        """File index, line and column of the call."""
        if len(self.arguments) <= 4:
            return None
        file, line, column = self.arguments[6:9]
        return integer_value(file), integer_value(line), integer_value(column)

    def _plain(self) -> str:
        place = " ".join([".loc", *self.arguments[:3]])
        if len(self.arguments) <= 4:
            return place
        return f"{place}, {' '.join(self.arguments[3:5])}, {' '.join(self.arguments[5:])}"


class SectionData(Spelled):
    """A line of a section: `.b8 1, 2`; values are integers, labels, `label+4`, `label-label`, as text."""

    __slots__ = ("type", "values")
    _fields = ("type", "values")

    def __init__(self, type: str, values: Iterable[str], *, trivia: str = NEWLINE) -> None:
        super().__init__(trivia)
        self.type = type
        self.values = tuple(values)

    def _plain(self) -> str:
        return f".{self.type} {', '.join(self.values)}"


class Section(Statement):
    """`.section .name { ... }` of DWARF data; `statements` are SectionData and Label."""

    __slots__ = ("_closing", "_head", "name", "statements")
    _fields = ("name", "statements")

    def __init__(self, name: str, statements: Iterable[Statement], *, trivia: str = NEWLINE) -> None:
        super().__init__(trivia)
        self.name = name
        self.statements = tuple(statements)
        self._head = f".section {name} {{"
        self._closing = "\n}"

    @property
    def arguments(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def text(self) -> str:
        return "".join([self._head, *map(str, self.statements), self._closing])

    def children(self) -> Sequence[Statement]:
        return self.statements

    def _copy(self, changes: dict[str, Any]) -> Self:
        node = super()._copy(changes)
        node._closing = self._closing
        if node.name == self.name:
            node._head = self._head
        return node


class RegisterDeclarator(NamedTuple):
    """`name`, or `name<count>`, which declares `name0` to `name{count-1}`."""

    name: str
    count: int | None = None  # pyright: ignore[reportIncompatibleMethodOverride]

    def __str__(self) -> str:
        return self.name if self.count is None else f"{self.name}<{self.count}>"


class RegisterDeclaration(Spelled):
    """`.reg {.attribute(...)} {.align n} {.v2|.v4} .type declarators;`."""

    __slots__ = ("align", "attributes", "declarators", "type", "vector")
    _fields = ("type", "declarators", "vector", "align", "attributes")

    def __init__(
        self,
        type: str,
        declarators: Iterable[tuple[str, int | None]],
        vector: int | None = None,
        align: int | None = None,
        attributes: Iterable[str] = (),
        *,
        trivia: str = INDENT,
    ) -> None:
        super().__init__(trivia)
        self.type = type
        self.declarators = tuple([RegisterDeclarator(name, count) for name, count in declarators])
        self.vector = vector
        self.align = align
        self.attributes = tuple(attributes)

    def _plain(self) -> str:
        words = _qualified(self.align, self.vector, self.type, self.attributes)
        return f".reg {words} {', '.join(map(str, self.declarators))};"


def _qualified(align: int | None, vector: int | None, type: str, attributes: Sequence[str] = ()) -> str:
    words = [f".attribute({', '.join(attributes)})"] if attributes else []
    words += [f".align {align}"] if align is not None else []
    if vector is not None:
        words.append(f".v{vector}")
    return " ".join([*words, f".{type}"])


class Declarator(NamedTuple):
    """`name[dims] = initializer`; None is a dimension without a size. `count` is that of `name<count>`."""

    name: str
    dims: tuple[int | None, ...] = ()
    initializer: Operand | None = None
    count: int | None = None  # pyright: ignore[reportIncompatibleMethodOverride]

    def __str__(self) -> str:
        text = self.name + ("" if self.count is None else f"<{self.count}>")
        text += "".join(["[]" if size is None else f"[{size}]" for size in self.dims])
        return text if self.initializer is None else f"{text} = {self.initializer}"


class Variable(Spelled):
    """A variable in any state space but `.reg` (PTX ISA 5.4).

    `space` has no dot; `bank` is that of the old `.const[n]`; `attributes` are texts such as ".managed".
    """

    __slots__ = ("align", "attributes", "bank", "declarators", "linkage", "space", "type", "vector")
    _fields = ("space", "type", "declarators", "linkage", "align", "vector", "attributes", "bank")

    def __init__(
        self,
        space: str,
        type: str,
        declarators: Iterable[Declarator],
        linkage: str | None = None,
        align: int | None = None,
        vector: int | None = None,
        attributes: Iterable[str] = (),
        bank: int | None = None,
        *,
        trivia: str = NEWLINE,
    ) -> None:
        super().__init__(trivia)
        self.space = space
        self.type = type
        self.declarators = tuple(declarators)
        self.linkage = linkage
        self.align = align
        self.vector = vector
        self.attributes = tuple(attributes)
        self.bank = bank

    def _plain(self) -> str:
        words = [f".{self.linkage}"] if self.linkage else []
        words.append(f".{self.space}" + ("" if self.bank is None else f"[{self.bank}]"))
        words.append(_qualified(self.align, self.vector, self.type, self.attributes))
        return " ".join([*words, ", ".join(map(str, self.declarators))]) + ";"


class Parameter(Spelled):
    """A parameter of a kernel, a function or a call prototype (PTX ISA 5.2, 11.1).

    `array` holds the array's dimension, None inside for `[]`; `size` is its length in elements, None if it is
    no array or has no size.
    """

    __slots__ = (
        "_after",
        "align",
        "array",
        "attributes",
        "name",
        "ptr",
        "ptr_align",
        "ptr_space",
        "space",
        "type",
        "vector",
    )
    _fields = ("name", "type", "align", "array", "ptr", "ptr_space", "ptr_align", "space", "vector", "attributes")

    def __init__(
        self,
        name: str,
        type: str,
        align: int | None = None,
        array: tuple[int | None, ...] | None = None,
        ptr: bool = False,
        ptr_space: str | None = None,
        ptr_align: int | None = None,
        space: str = "param",
        vector: int | None = None,
        attributes: Iterable[str] = (),
        *,
        trivia: str = INDENT,
    ) -> None:
        super().__init__(trivia)
        self.name = name
        self.type = type
        self.align = align
        self.array = array
        self.ptr = ptr
        self.ptr_space = ptr_space
        self.ptr_align = ptr_align
        self.space = space
        self.vector = vector
        self.attributes = tuple(attributes)
        self._after = ""  # trivia before the comma that follows

    @property
    def size(self) -> int | None:
        return self.array[0] if self.array else None

    def _plain(self) -> str:
        words = [f".{self.space}", _qualified(self.align, self.vector, self.type, self.attributes)]
        if self.ptr:
            words.append(".ptr")
        if self.ptr_space:
            words.append(f".{self.ptr_space}")
        if self.ptr_align is not None:
            words.append(f".align {self.ptr_align}")
        dims = "".join(["[]" if size is None else f"[{size}]" for size in self.array or ()])
        return " ".join(words) + f" {self.name}{dims}"

    def _copy(self, changes: dict[str, Any]) -> Self:
        node = super()._copy(changes)
        node._after = self._after
        return node


class ParameterList:
    """`( ... )` with its spelling: trivia before `(`, and before `)`."""

    __slots__ = ("closing", "opening", "parameters")

    def __init__(self, parameters: Iterable[Parameter], opening: str = "", closing: str = "") -> None:
        self.parameters = tuple(parameters)
        self.opening = opening
        self.closing = closing

    def __str__(self) -> str:
        pieces = [self.opening, "("]
        for index, parameter in enumerate(self.parameters):
            if index:
                pieces.append(",")
            pieces += [str(parameter), parameter._after]
        return "".join([*pieces, self.closing, ")"])

    @staticmethod
    def changed(old: ParameterList | None, parameters: Sequence[Parameter], opening: str) -> ParameterList | None:
        """The list that holds `parameters` where `old` stood; None stays None while it is empty."""
        if old is not None:
            return ParameterList(parameters, old.opening, old.closing)
        return ParameterList(parameters, opening) if parameters else None


def _listed(parameters: ParameterList | None) -> str:
    return "" if parameters is None else str(parameters)


class CallPrototype(Spelled):
    """`.callprototype (returns) _ (parameters) directives;` of an indirect call."""

    __slots__ = ("directives", "parameters", "returns")
    _fields = ("returns", "parameters", "directives")
    name = "callprototype"

    def __init__(
        self,
        returns: Iterable[Parameter] = (),
        parameters: Iterable[Parameter] = (),
        directives: Iterable[Directive] = (),
        *,
        trivia: str = " ",
    ) -> None:
        super().__init__(trivia)
        self.returns = tuple(returns)
        self.parameters = tuple(parameters)
        self.directives = tuple(directives)

    def _plain(self) -> str:
        returns = f"({', '.join([item.text for item in self.returns])}) " if self.returns else ""
        parameters = ", ".join([item.text for item in self.parameters])
        directives = "".join([f" {directive.text}" for directive in self.directives])
        return f".callprototype {returns}_ ({parameters}){directives};"


class Function(Statement):
    """A kernel (`kind` "entry") or function ("func") (PTX ISA 11.1); `body` is None if it is only declared."""

    # _head: text up to `.entry` or `.func` with its attributes. _gap: trivia before the name. _end: the `;` of a
    # declaration with the trivia before it, "" where a function's declaration has none.
    __slots__ = (
        "_end",
        "_gap",
        "_head",
        "_parameters",
        "_returns",
        "attributes",
        "body",
        "directives",
        "kind",
        "linkage",
        "name",
    )
    _fields = ("kind", "name", "linkage", "returns", "parameters", "directives", "body", "attributes")

    def __init__(
        self,
        kind: str,
        name: str,
        linkage: str | None = None,
        returns: Iterable[Parameter] = (),
        parameters: Iterable[Parameter] = (),
        directives: Iterable[Directive] = (),
        body: Block | None = None,
        attributes: Iterable[str] = (),
        *,
        trivia: str = NEWLINE,
    ) -> None:
        super().__init__(trivia)
        self.kind = kind
        self.name = name
        self.linkage = linkage
        self._returns = ParameterList.changed(None, tuple(returns), " ")
        self._parameters: ParameterList | None = ParameterList(parameters)
        self.directives = tuple(directives)
        self.body = body
        self.attributes = tuple(attributes)
        self._gap = " "
        self._end = ";"
        self._head = self._plain_head()

    def _plain_head(self) -> str:
        words = [f".{self.linkage}"] if self.linkage else []
        words.append(f".{self.kind}")
        if self.attributes:
            words.append(f".attribute({', '.join(self.attributes)})")
        return " ".join(words)

    @property
    def returns(self) -> tuple[Parameter, ...]:
        return self._returns.parameters if self._returns else ()

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self._parameters.parameters if self._parameters else ()

    @property
    def text(self) -> str:
        end = self._end if self.body is None else str(self.body)
        head = [self._head, _listed(self._returns), self._gap, self.name, _listed(self._parameters)]
        return "".join([*head, *map(str, self.directives), end])

    def children(self) -> Sequence[Statement]:
        """Return parameters, parameters, directives and the body."""
        body = () if self.body is None else (self.body,)
        return (*self.returns, *self.parameters, *self.directives, *body)

    def _copy(self, changes: dict[str, Any]) -> Self:
        node = super()._copy(changes)
        node._returns = ParameterList.changed(self._returns, node.returns, " ")
        node._parameters = ParameterList.changed(self._parameters, node.parameters, "")
        node._gap, node._end = self._gap, self._end
        if changes.keys().isdisjoint({"kind", "linkage", "attributes"}):
            node._head = self._head
        return node


class Module:
    """A whole PTX text. `trailing_trivia` stands after the last item."""

    __slots__ = ("items", "trailing_trivia")

    def __init__(self, items: Iterable[Statement] = (), trailing_trivia: str = NEWLINE) -> None:
        self.items = tuple(items)
        self.trailing_trivia = trailing_trivia

    def __str__(self) -> str:
        return "".join([*map(str, self.items), self.trailing_trivia])

    def __repr__(self) -> str:
        return f"<Module with {len(self.items)} items>"

    def replace(self, **changes: Any) -> Module:
        """A copy with other `items` or `trailing_trivia`."""
        return Module(**{"items": self.items, "trailing_trivia": self.trailing_trivia, **changes})

    def statements(self) -> Iterator[Statement]:
        """Every statement, depth first, in the order of the text."""
        return walk(self.items)

    @property
    def functions(self) -> list[Function]:
        return [item for item in self.items if isinstance(item, Function)]

    @property
    def entries(self) -> list[Function]:
        """The kernels; GCC declares each before it defines it."""
        return [function for function in self.functions if function.kind == "entry" and function.body is not None]

    def _arguments(self, name: str) -> tuple[str, ...]:
        for item in self.items:
            if isinstance(item, Directive) and item.name == name:
                return item.arguments
        return ()

    @property
    def version(self) -> str | None:
        """The PTX version, such as "9.0"."""
        return next(iter(self._arguments("version")), None)

    @property
    def targets(self) -> tuple[str, ...]:
        """All words of `.target`: the architecture and options."""
        return self._arguments("target")

    @property
    def target(self) -> str | None:
        """The architecture, such as "sm_100a"."""
        return next(iter(self.targets), None)

    @property
    def address_size(self) -> int | None:
        """32 or 64."""
        size = self._arguments("address_size")
        return integer_value(size[0]) if size else None
