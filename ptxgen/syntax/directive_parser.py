"""Reads declarations and directives (PTX ISA 5 and 11) at a parser's current token."""

from __future__ import annotations

import re
from collections.abc import Callable

from ptxgen.syntax.declarations import (
    CallPrototype,
    Declarator,
    Directive,
    FileDirective,
    Location,
    Parameter,
    ParameterList,
    RegisterDeclaration,
    RegisterDeclarator,
    Section,
    SectionData,
    Variable,
)
from ptxgen.syntax.lexer import COUNT, NAME, TRIVIA, integer_value, word_value
from ptxgen.syntax.operand_parser import OperandParser
from ptxgen.syntax.tree import Label, LineTable, Spelled, Statement

# One line of a section; what follows must not continue it.
_VALUES = rf"{COUNT}(?>(?: ?, ?{COUNT})*)|{NAME}|\.[A-Za-z_]\w*+"
#: Versions beyond these lengths are none, and their numbers could exceed what Python reads.
_VERSION = re.compile(r"\d{1,4}\.\d{1,4}", re.ASCII)
_SECTION_DATA = re.compile(rf"({TRIVIA})(\.(b8|b16|b32|b64)[ \t]++({_VALUES})(?![\w$.:]))(?={TRIVIA}[^,+-])", re.ASCII)
TYPES = frozenset(
    {f".{kind}{width}" for kind in "bus" for width in (8, 16, 32, 64)}
    | {".b128", ".f16", ".f16x2", ".f32", ".f64", ".pred", ".texref", ".samplerref", ".surfref"}
)
SPACES = frozenset({".const", ".global", ".local", ".param", ".shared", ".sreg", ".tex"})
VECTORS = {".v2": 2, ".v4": 4, ".v8": 8}
#: Beginning of a declaration of nothing, `.b32;`, which needs no state space.
NAMELESS = TYPES | VECTORS.keys() | {".align"}
LINKAGES = frozenset({".visible", ".extern", ".weak", ".common"})
POINTER_SPACES = frozenset({".const", ".global", ".local", ".shared"})
SECTION_TYPES = frozenset({".b8", ".b16", ".b32", ".b64"})
#: Tokens that may follow a function declaration without its `;`, as nvopencc wrote it and ptxas takes it.
MODULE_STARTS = LINKAGES | (SPACES - {".param", ".sreg"}) | {
    ".entry", ".func", ".file", ".section", ".alias", ".pragma", ".attribute",
}  # fmt: skip
# How many integers each directive of a function takes.
FUNCTION_DIRECTIVES = {
    ".maxnreg": (1, 1),
    ".maxntid": (1, 3),
    ".reqntid": (1, 3),
    ".minnctapersm": (1, 1),
    ".maxnctapersm": (1, 1),
    ".noreturn": (0, 0),
    ".explicitcluster": (0, 0),
    ".reqnctapercluster": (1, 3),
    ".maxclusterrank": (1, 1),
    ".blocksareclusters": (0, 0),
    ".abi_preserve": (1, 1),
    ".abi_preserve_control": (1, 1),
    ".local_maxnreg": (1, 1),
    ".language": (1, 99),
    ".minperctamemory": (1, 1),
}
#: Words of the language that cannot name a section.
NO_SECTIONS = TYPES | SPACES | LINKAGES | VECTORS.keys() | MODULE_STARTS | {
    ".align", ".branchtargets", ".calltargets", ".callprototype", ".loc", ".ptr", ".reg", ".target", ".address_size",
    ".managed", ".unified", *FUNCTION_DIRECTIVES,
}  # fmt: skip


class DirectiveParser(OperandParser):
    """A parser that also reads what starts with a dot."""

    __slots__ = ("lines",)
    lines: LineTable

    def place(self, node: Statement, start: int) -> None:
        node._at = start
        node._lines = self.lines

    def finish(self, node: Spelled, start: int) -> None:
        """Give `node` its place and its spelling: from `start` to the end of the token before this one."""
        self.place(node, start)
        node._spelling = self._spelling(start)

    def _integer(self, expected: str) -> int:
        return word_value(self.expect_integer(expected))

    def _list(self, item: Callable[[], str]) -> list[str]:
        items = [item()]
        while self.accept(","):
            items.append(item())
        return items

    def _string(self) -> str:
        return self.expect_kind("string", "a string")

    def _label(self) -> str:
        return self.expect_name("a label")

    # --- declarations --------------------

    def _attributes(self) -> list[str]:
        """`.attribute(.managed, .unified(1, 2))`, the keyword already seen."""
        self.advance()
        self.expect("(")
        attributes = self._list(self._attribute)
        self.expect(")")
        return attributes

    def _attribute(self) -> str:
        if self.accept(".managed"):
            return ".managed"
        if not self.accept(".unified"):
            self.fail("'.managed' or '.unified'")
        self.expect("(")
        first = self.expect_integer("a UUID half")
        self.expect(",")
        second = self.expect_integer("a UUID half")
        self.expect(")")
        return f".unified({first}, {second})"

    def _aligns(self, attributes: list[str] | None = None) -> int | None:
        """Any number of attributes and of `.align n`; the last alignment holds."""
        align = None
        while True:
            if self.accept(".align"):
                align = self._integer("an alignment in bytes")
            elif attributes is not None and self.at(".attribute"):
                attributes += self._attributes()
            else:
                return align

    def _vector_type(self) -> tuple[int | None, str]:
        vector = VECTORS.get(self.token)
        if vector is not None:
            self.advance()
        if self.token not in TYPES:
            self.fail("a type such as '.b32'")
        return vector, self.advance()[1:]

    def _dims(self) -> tuple[int | None, ...]:
        """`[4][8]`; only the first may be empty."""
        dims: list[int | None] = []
        while self.accept("["):
            unsized = not dims and self.at("]")
            dims.append(None if unsized else integer_value(self.expect_integer("an array size")))
            self.expect("]")
        return tuple(dims)

    def _count(self) -> int | None:
        """`<10>` of a parameterised name."""
        if not self.accept("<"):
            return None
        count = self._integer("a count of names")
        self.expect(">")
        return count

    def registers(self, trivia: str) -> RegisterDeclaration:
        """`.reg ...;`."""
        start = self.start
        self.expect(".reg")
        attributes: list[str] = []
        align = self._aligns(attributes)
        vector, type_name = self._vector_type()
        declarators: list[RegisterDeclarator] = []
        if not self.at(";"):
            declarators.append(RegisterDeclarator(self.expect_name("a register name"), self._count()))
            while self.accept(","):
                declarators.append(RegisterDeclarator(self.expect_name("a register name"), self._count()))
        self.expect(";")
        node = RegisterDeclaration(type_name, declarators, vector, align, attributes, trivia=trivia)
        self.finish(node, start)
        return node

    def variable(self, trivia: str, start: int, linkage: str | None) -> Variable:
        """A variable, from what follows its linkage."""
        attributes: list[str] = []
        while self.at(".attribute"):
            attributes += self._attributes()
        declares = self.token in SPACES
        if not declares and self.token not in NAMELESS:
            self.fail("a state space such as '.global'")
        space = self.advance()[1:] if declares else ""
        bank = None
        if space == "const" and self.accept("["):
            bank = self._integer("a constant bank")
            self.expect("]")
        align = self._aligns(attributes)
        vector, type_name = self._vector_type()
        declarators: list[Declarator] = []
        if declares and not self.at(";"):
            declarators.append(self._declarator())
            while self.accept(","):
                declarators.append(self._declarator())
        self.expect(";")
        node = Variable(space, type_name, declarators, linkage, align, vector, attributes, bank, trivia=trivia)
        self.finish(node, start)
        return node

    def _declarator(self) -> Declarator:
        name = self.expect_name("a variable name")
        count = self._count()
        dims = self._dims() if count is None else ()
        initializer = self.initializer() if self.accept("=") else None
        return Declarator(name, dims, initializer, count)

    # --- parameters --------------------

    def parameter_list(self) -> ParameterList:
        """`( ... )`, may be empty."""
        opening = self.trivia
        self.expect("(")
        parameters: list[Parameter] = []
        if not self.at(")"):
            parameters.append(self._parameter())
            while self.at(","):
                parameters[-1]._after = self.trivia
                self.advance()
                parameters.append(self._parameter())
        closing = self.trivia
        self.expect(")")
        return ParameterList(parameters, opening, closing)

    def _parameter(self) -> Parameter:
        trivia, start = self.trivia, self.start
        attributes: list[str] = []
        while self.at(".attribute"):
            attributes += self._attributes()
        if self.token not in (".param", ".reg"):
            self.fail("'.param' or '.reg'")
        space = self.advance()[1:]
        align = self._aligns(attributes)
        vector, type_name = self._vector_type()
        pointer = self.accept(".ptr")
        pointer_space = pointer_align = None
        if pointer:
            if self.token in POINTER_SPACES:
                pointer_space = self.advance()[1:]
            if self.accept(".align"):
                pointer_align = self._integer("an alignment in bytes")
        name = self.advance() if self.at("_") else self.expect_name("a parameter name")
        dims = None
        if self.at("["):
            self.advance()
            dims = (None if self.at("]") else word_value(self.expect_integer("an array size")),)
            self.expect("]")
        node = Parameter(
            name,
            type_name,
            align,
            dims,
            pointer,
            pointer_space,
            pointer_align,
            space,
            vector,
            attributes,
            trivia=trivia,
        )
        self.finish(node, start)
        return node

    # --- directives --------------------

    def function_directives(self, is_entry: bool) -> list[Directive]:
        """Performance and ABI directives between the parameters and the body."""
        found: list[Directive] = []
        while self.kind == "dot":
            trivia, start = self.trivia, self.start
            if self.at(".pragma") and is_entry:
                found.append(self.pragma(trivia))
                continue
            if not is_entry and self.token in MODULE_STARTS:
                break
            if self.token not in FUNCTION_DIRECTIVES:
                self.fail("a directive of a function, '{' or ';'")
            least, most = FUNCTION_DIRECTIVES[self.token]
            name = self.advance()[1:]
            arguments = [self._argument(name)] if least else []
            while arguments and len(arguments) < most and self.accept(","):
                arguments.append(self._argument(name))
            node = Directive(name, arguments, trivia=trivia)
            self.finish(node, start)
            found.append(node)
        return found

    def _argument(self, name: str) -> str:
        if name == "language" and self.kind == "string":
            return self.advance()
        return self.expect_integer(f"an integer after '.{name}'")

    def pragma(self, trivia: str) -> Directive:
        start = self.start
        self.advance()
        strings = self._list(self._string)
        self.expect(";")
        node = Directive("pragma", strings, trivia=trivia)
        self.finish(node, start)
        return node

    def header(self, trivia: str) -> Directive:
        """`.version`, `.target` or `.address_size`."""
        start = self.start
        name = self.advance()[1:]
        if name == "version":
            if self.kind != "number" or not _VERSION.fullmatch(self.token):
                self.fail("a version such as '9.0'")
            arguments = [self.advance()]
        elif name == "target":
            arguments = self._list(lambda: self.expect_name("a target such as 'sm_100a'"))
        else:
            if self.token not in ("32", "64"):
                self.fail("'32' or '64'")
            arguments = [self.advance()]
        node = Directive(name, arguments, trivia=trivia)
        self.finish(node, start)
        return node

    def file(self, trivia: str) -> FileDirective:
        start = self.start
        self.advance()
        arguments = [self.expect_integer("a file index"), self._string()]
        if self.accept(","):
            arguments.append(self.expect_integer("a time stamp"))
            if self.accept(","):
                arguments.append(self.expect_integer("a file size"))
        node = FileDirective("file", arguments, trivia=trivia)
        self.finish(node, start)
        return node

    def location(self, trivia: str) -> Location:
        start = self.start
        self.advance()
        arguments = self._source_place()
        if self.accept(","):
            if not self.accept("function_name"):
                self.fail("'function_name'")
            label = self._section_name() if self.kind == "dot" else self._label()
            if self.accept("+"):
                label = f"{label}+{self._literal('an offset')}"
            self.expect(",")
            if not self.accept("inlined_at"):
                self.fail("'inlined_at'")
            arguments += ["function_name", label, "inlined_at", *self._source_place()]
        node = Location("loc", arguments, trivia=trivia)
        self.finish(node, start)
        return node

    def _source_place(self) -> list[str]:
        names = ("a file index", "a line number", "a column number")
        return [self.expect_integer(name) for name in names]

    def alias(self, trivia: str) -> Directive:
        start = self.start
        self.advance()
        name = self.expect_name("a function name")
        self.expect(",")
        arguments = [name, self.expect_name("a function name")]
        self.expect(";")
        node = Directive("alias", arguments, trivia=trivia)
        self.finish(node, start)
        return node

    def targets(self, trivia: str) -> Directive:
        """`.branchtargets` or `.calltargets`."""
        start = self.start
        name = self.advance()[1:]
        arguments = self._list(self._counted_label)
        self.expect(";")
        node = Directive(name, arguments, trivia=trivia)
        self.finish(node, start)
        return node

    def _counted_label(self) -> str:
        """A label, or `L<3>` for L0, L1 and L2."""
        label, count = self._label(), self._count()
        return label if count is None else f"{label}<{count}>"

    def prototype(self, trivia: str) -> CallPrototype:
        start = self.start
        self.advance()
        returns = self.parameter_list().parameters if self.at("(") else ()
        self.expect("_")
        parameters = self.parameter_list().parameters if self.at("(") else ()
        directives = self.function_directives(is_entry=False)
        self.expect(";")
        node = CallPrototype(returns, parameters, directives, trivia=trivia)
        self.finish(node, start)
        return node

    # --- sections --------------------

    def section(self, trivia: str) -> Section:
        start = self.start
        self.advance()
        name = self._section_name()
        self.expect("{")
        head = self._spelling(start)
        statements: list[Statement] = []
        self._common_lines(statements)
        while not self.at("}"):
            statements.append(self._section_line())
            self._common_lines(statements)
        closing = self.trivia + self.advance()
        node = Section(name, statements, trivia=trivia)
        node._head, node._closing = head, closing
        self.place(node, start)
        return node

    def _section_name(self) -> str:
        if self.kind != "dot" or self.token in NO_SECTIONS or self.token.startswith("._"):
            self.fail("a section name such as '.debug_info'")
        return self.advance()

    def _common_lines(self, statements: list[Statement]) -> None:
        """Read lines of the usual shape, plain values, in one match each."""
        position = self.start - len(self.trivia)
        while (match := _SECTION_DATA.match(self.text, position)) is not None:
            trivia, spelling, type_name, values = match.groups()
            if values in NO_SECTIONS:
                break
            node = object.__new__(SectionData)  # debug information is tens of thousands of these lines
            node.trivia, node.type, node.values = trivia, type_name, tuple(values.replace(" ", "").split(","))
            node._at, node._lines, node._spelling = position + len(trivia), self.lines, spelling
            statements.append(node)
            position = match.end()
        self.seek(position)

    def _section_line(self) -> Statement:
        trivia, start = self.trivia, self.start
        if self.kind == "name":
            label = Label(self._label(), trivia=trivia)
            self.expect(":")
            self.finish(label, start)
            return label
        if self.token not in SECTION_TYPES:
            self.fail("'.b8', '.b16', '.b32', '.b64', a label or '}'")
        type_name = self.advance()[1:]
        if self.kind in ("name", "dot"):
            values = [self._section_address()]
        else:
            values = self._list(self._section_integer)
        node = SectionData(type_name, values, trivia=trivia)
        self.finish(node, start)
        return node

    def _section_integer(self) -> str:
        sign = "-" if self.accept("-") else ""
        return sign + self._literal("an integer" if sign else "an integer, a label or a section name")

    def _literal(self, expected: str) -> str:
        """An integer that is not WARP_SZ, which sections do not have."""
        if self.kind not in ("number", "bad"):
            self.fail(expected)
        return self.expect_integer(expected)

    def _section_address(self) -> str:
        """A label or a section, `label + 4`, or `label - label`."""
        is_label = self.kind == "name"
        value = self._label() if is_label else self._section_name()
        if self.accept("+"):
            return f"{value}+{self._literal('an offset')}"
        if is_label and self.accept("-"):
            return f"{value}-{self._label()}"
        return value
