"""`.file`, `.loc` and `.section`. PTX ISA 11.5."""

from __future__ import annotations

from collections.abc import Iterator

from ptxgen import syntax
from ptxgen.instr.model.symbols import Problem
from ptxgen.instr.model.targets import ALL, Availability
from ptxgen.instr.module.context import Context, non_ascii
from ptxgen.syntax.lexer import integer_value, word_value

_SECTION = Availability("2.0", ALL)
_SIZES = Availability("3.2", ALL)
_LABELS = Availability("7.0", ALL)
_INLINED = Availability("7.0", ALL)
_SUMS = Availability("3.2", ALL)
_DIFFERENCES = Availability("7.5", ALL)
_NEGATIVE = Availability("7.5", ALL)
_LIMIT = 2**32


class Debugging:
    """The files, places and labels that a module has named so far."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.files: set[int] = set()
        self.places: set[tuple[int, int, int]] = set()
        self.labels: set[str] = set()
        self.wanted: list[tuple[syntax.Location, str]] = []

    def file(self, statement: syntax.FileDirective) -> Iterator[Problem]:
        """What is wrong with a `.file`."""
        index = word_value(statement.arguments[0])
        if index >= _LIMIT:
            yield Problem("file-index", f"the index of a .file must be less than 2^32, not {index}")
        elif index in self.files:
            yield Problem("redeclared", f".file {index} is declared already")
        self.files.add(index)
        yield from non_ascii(statement.arguments[1])
        if len(statement.arguments) > 2:
            yield from self.context.lacks("the time stamp of .file", _SIZES)

    def location(self, statement: syntax.Location) -> Iterator[Problem]:
        """What is wrong with a `.loc`; called for every one, so it does little."""
        if statement.inlined_at is not None:
            yield from self.context.lacks("inlined_at", _INLINED)
            if statement.inlined_at not in self.places:
                place = " ".join(map(str, statement.inlined_at))
                yield Problem("location", f"inlined_at {place} must be the position of an earlier .loc")
            name = (statement.function_name or "").partition("+")[0]
            self.wanted.append((statement, name))
        self.places.add(statement.source)
        if any(len(text) > 9 and word_value(text) >= _LIMIT for text in statement.arguments[:3]):
            place = " ".join(statement.arguments[:3])
            yield Problem("location", f"the numbers of .loc must be less than 2^32, not {place}")

    def section(self, statement: syntax.Section) -> Iterator[tuple[syntax.Statement, Problem]]:
        """What is wrong with the data of a section."""
        if statement.name == ".debug_str":  # the only section that function_name may be (measured, ptxas 13.5)
            self.labels.add(statement.name)
        for problem in self.context.lacks(".section", _SECTION):
            yield statement, problem
        for each in statement.statements:
            if isinstance(each, syntax.SectionData):
                for problem in self._data(each):
                    yield each, problem
            elif isinstance(each, syntax.Label):
                if each.name in self.labels:
                    yield each, Problem("redeclared", f"the label {each.name} is declared already")
                self.labels.add(each.name)
                for problem in self.context.lacks("a label in a section", _LABELS):
                    yield each, problem

    def _data(self, each: syntax.SectionData) -> Iterator[Problem]:
        first = each.values[0]
        if not first.lstrip("-")[:1].isdigit():
            if each.type not in ("b32", "b64"):
                yield Problem("variable-type", f"the address {first} requires .b32 or .b64, not .{each.type}")
            if "+" in first:
                yield from self.context.lacks(f"the sum {first} in a section", _SUMS)
            elif "-" in first:
                yield from self.context.lacks(f"the difference {first} in a section", _DIFFERENCES)
            return
        bits = int(each.type[1:])
        low, high = -(1 << (bits - 1)), 1 << bits
        for text in each.values:
            if text[0] == "-":
                yield from self.context.lacks(f"the negative number {text} in a section", _NEGATIVE)
                value = integer_value(text[1:])
                value = -value if value < 2**63 else -(2**64)  # too small for any type
            elif bits >= 32 or len(text) < 3:  # ptxas cuts wider numbers (measured, 13.5)
                continue
            else:
                value = integer_value(text) % _LIMIT  # ptxas compares the low 32 bits
            if not low <= value < high:
                yield Problem("data-range", f"a .{each.type} is {low} to {high - 1}, not {text}")

    def unresolved(self, module: syntax.Module) -> Iterator[tuple[syntax.Statement, Problem]]:
        """Names of functions in `.loc` that stand for no label or section, where the `.loc` has code."""
        missing = [(statement, name) for statement, name in self.wanted if name not in self.labels]
        holds = set(map(id, _with_code(module))) if missing else set[int]()
        for statement, name in missing:
            if id(statement) in holds:
                what = f"the label {name} of function_name is in no section"
                if name.startswith("."):
                    what = f"function_name must be a label or .debug_str, not {name}"
                yield statement, Problem("undeclared-name", what)


def _with_code(module: syntax.Module) -> Iterator[syntax.Location]:
    """Each `.loc` that stands before an instruction, which no other replaces."""
    last: syntax.Location | None = None
    for statement in module.statements():
        if isinstance(statement, syntax.Location):
            last = statement
        elif isinstance(statement, syntax.Instruction) and last is not None:
            yield last
            last = None
        elif isinstance(statement, syntax.Function):
            last = None
