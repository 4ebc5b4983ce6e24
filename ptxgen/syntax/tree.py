"""The tree of a PTX module: statements with their trivia, and how they print (PTX ISA 4.3, 5, 10.1, 11).

Every node prints from its own pieces: `str(node)` is its leading white space and comments and then its text,
and `node.text` is the text alone. Nodes are values: `replace` gives a changed copy, whose unchanged pieces
keep their spelling. What a directive or an instruction means is left to others. Declarations are in
`declarations`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, ClassVar, Self

from ptxgen.syntax.lexer import Lexer
from ptxgen.syntax.operand_parser import operands_of, split_operands
from ptxgen.syntax.operands import Operand

NEWLINE = "\n"
INDENT = "\n\t"


class LineTable:
    """Offsets at which the lines of a parsed text start."""

    __slots__ = ("starts",)

    def __init__(self, text: str = "") -> None:
        self.starts = [0, *accumulate([len(line) + 1 for line in text.split("\n")])]

    def locate(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1


_NOWHERE = LineTable()


class Statement:
    """Base of all nodes. A node that was not parsed stands at line 0, column 0."""

    __slots__ = ("_at", "_lines", "trivia")
    _fields: ClassVar[tuple[str, ...]] = ()
    trivia: str
    _at: int
    _lines: LineTable

    def __init__(self, trivia: str) -> None:
        self.trivia = trivia
        self._at = -1
        self._lines = _NOWHERE

    @property
    def line(self) -> int:
        """Line of the first token, from 1, in the text that was parsed."""
        return 0 if self._at < 0 else self._lines.locate(self._at)[0]

    @property
    def column(self) -> int:
        """Column of the first token, from 1; a tab is one column."""
        return 0 if self._at < 0 else self._lines.locate(self._at)[1]

    @property
    def text(self) -> str:
        """The exact text without the leading trivia."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.trivia + self.text

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._fields)
        return f"{type(self).__name__}({shown})"

    def replace(self, **changes: Any) -> Self:
        """A copy with other field values. Raises TypeError for a field that the node does not have."""
        unknown = changes.keys() - {"trivia", *self._fields}
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        return self._copy(changes)

    def _copy(self, changes: dict[str, Any]) -> Self:
        values = {name: getattr(self, name) for name in ("trivia", *self._fields)}
        node = type(self)(**{**values, **changes})
        return self._keep_place(node)

    def _keep_place(self, node: Self) -> Self:
        node._at = self._at
        node._lines = self._lines
        return node

    def children(self) -> Sequence[Statement]:
        """The statements directly inside."""
        return ()


class Spelled(Statement):
    """A statement that keeps the spelling of its own tokens until a field changes."""

    __slots__ = ("_spelling",)
    _spelling: str | None

    def __init__(self, trivia: str) -> None:
        super().__init__(trivia)
        self._spelling = None

    @property
    def text(self) -> str:
        return self._plain() if self._spelling is None else self._spelling

    def _plain(self) -> str:
        """The text in the usual spelling."""
        raise NotImplementedError

    def _copy(self, changes: dict[str, Any]) -> Self:
        node = super()._copy(changes)
        if changes.keys() <= {"trivia"}:
            node._spelling = self._spelling
        return node


class Guard:
    """`@p` or `@!p`."""

    __slots__ = ("negated", "register")

    def __init__(self, register: str, negated: bool = False) -> None:
        self.register = register
        self.negated = negated

    def __str__(self) -> str:
        return f"@{'!' if self.negated else ''}{self.register}"

    def __repr__(self) -> str:
        return f"Guard({self.register!r}, {self.negated})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Guard):
            return NotImplemented
        return (self.register, self.negated) == (other.register, other.negated)

    def __hash__(self) -> int:
        return hash((self.register, self.negated))


class Instruction(Statement):
    """A guard, an opcode with all its modifiers, and operands.

    The parser has checked the operand text, and `operands` is parsed from it on first access: most
    instructions of a large file are only ever printed.
    """

    # _guard: the spelling of the guard with the space after it. _written: the spelling of an opcode that has
    # trivia inside, else None. _rest: everything between the opcode and the `;`.
    __slots__ = ("_guard", "_operands", "_rest", "_written", "opcode")
    _fields = ("opcode", "operands", "guard")
    opcode: str

    def __init__(
        self,
        opcode: str,
        operands: Iterable[Operand] = (),
        guard: Guard | None = None,
        *,
        trivia: str = INDENT,
    ) -> None:
        super().__init__(trivia)
        self.opcode = opcode
        self._guard = f"{guard} " if guard else ""
        self._written: str | None = None
        self._operands: tuple[Operand, ...] | None = tuple(operands)
        self._rest = " " + ", ".join([str(operand) for operand in self._operands]) if self._operands else ""

    @property
    def is_call(self) -> bool:
        return self.opcode.startswith("call") and self.opcode[4:5] in ("", ".")

    @property
    def operands(self) -> tuple[Operand, ...]:
        if self._operands is None:
            self._operands = operands_of(self._rest, self.is_call) if self._rest else ()
        return self._operands

    @property
    def guard(self) -> Guard | None:
        text = self._guard
        if not text:
            return None
        guard = _guards.get(text)
        if guard is None:
            guard = _read_guard(text)
            if len(_guards) > 4096:
                _guards.clear()
            _guards[text] = guard
        return guard

    @property
    def text(self) -> str:
        return f"{self._guard}{self._written or self.opcode}{self._rest};"

    def spans(self) -> tuple[tuple[int, int], tuple[int, int], list[tuple[int, int]]]:
        """Start and end in `text` of the guard, of the opcode with its modifiers, and of each operand."""
        begin = len(self._guard)
        end = begin + len(self._written or self.opcode)
        operands, gaps = split_operands(self._rest, self.is_call) if self._rest else ((), [])
        spans, at = [], end
        for gap, operand in zip(gaps, operands, strict=False):
            at += len(gap)
            spans.append((at, at + len(str(operand))))
            at = spans[-1][1]
        return (0, len(self._guard.rstrip())), (begin, end), spans

    def __str__(self) -> str:
        return f"{self.trivia}{self._guard}{self._written or self.opcode}{self._rest};"

    def _copy(self, changes: dict[str, Any]) -> Self:
        node = self._keep_place(type(self)(self.opcode, trivia=changes.get("trivia", self.trivia)))
        node._guard, node._written = self._guard, self._written
        node._rest, node._operands = self._rest, self._operands
        if changes.get("opcode", self.opcode) != self.opcode:
            node.opcode, node._written = changes["opcode"], None
        if "guard" in changes and changes["guard"] != self.guard:
            node._guard = f"{changes['guard']} " if changes["guard"] else ""
        if "operands" in changes:
            node._operands = tuple(changes["operands"])
            node._rest = self._respell(node._operands)
        return node

    def _respell(self, operands: tuple[Operand, ...]) -> str:
        """The text of other operands, with the white space and comments that stood between the old."""
        _, gaps = split_operands(self._rest, self.is_call)
        if not operands:
            return gaps[-1] if len(gaps) > 1 else "".join(gaps)
        between = gaps[1:-1]
        pieces = [gaps[0] if gaps[0] and len(gaps) > 1 else " "]
        for index, operand in enumerate(operands):
            if index:
                pieces.append(between[index - 1] if index <= len(between) else ", ")
            pieces.append(str(operand))
        return "".join(pieces) + gaps[-1]


_guards: dict[str, Guard] = {}


def _read_guard(text: str) -> Guard:
    lexer = Lexer(text)
    lexer.expect("@")
    negated = lexer.accept("!")
    return Guard(lexer.token, negated)


class Label(Spelled):
    """`name:`."""

    __slots__ = ("name",)
    _fields = ("name",)

    def __init__(self, name: str, *, trivia: str = NEWLINE) -> None:
        super().__init__(trivia)
        self.name = name

    def _plain(self) -> str:
        return f"{self.name}:"


class Block(Statement):
    """`{ ... }`. `closing_trivia` stands before the closing brace."""

    __slots__ = ("closing_trivia", "statements")
    _fields = ("statements", "closing_trivia")

    def __init__(
        self, statements: Iterable[Statement] = (), *, closing_trivia: str = NEWLINE, trivia: str = INDENT
    ) -> None:
        super().__init__(trivia)
        self.statements = tuple(statements)
        self.closing_trivia = closing_trivia

    @property
    def text(self) -> str:
        return "".join(["{", *map(str, self.statements), self.closing_trivia, "}"])

    def children(self) -> Sequence[Statement]:
        return self.statements


def walk(statements: Iterable[Statement]) -> Iterator[Statement]:
    """Every statement, depth first, in the order of the text."""
    stack = [iter(statements)]
    while stack:
        for statement in stack[-1]:
            yield statement
            inner = statement.children()
            if inner:
                stack.append(iter(inner))
                break
        else:
            stack.pop()
