"""Reads PTX text into a Module (PTX ISA 4.3, 10.1, 11). What the text means is left to the checker."""

from __future__ import annotations

import re
from typing import NoReturn, cast

from ptxgen.collection import paused_collection
from ptxgen.files import looks_like_path
from ptxgen.syntax.declarations import Directive, Function, Location, Module, ParameterList
from ptxgen.syntax.directive_parser import LINKAGES, MODULE_STARTS, NAMELESS, SPACES, DirectiveParser
from ptxgen.syntax.errors import PtxSyntaxError, quoted
from ptxgen.syntax.lexer import COUNT, NAME, OPCODE, OPCODE_PATTERN, RESERVED, SPACED_MODIFIER, TRIVIA, TRIVIA_PATTERN
from ptxgen.syntax.operand_parser import COMMON_OPERANDS
from ptxgen.syntax.tree import Block, Instruction, Label, LineTable, Statement

MAX_BLOCK_DEPTH = 100

# The shapes that make up nearly all of a compiler's output: each is one match, whose groups are the pieces of
# the node. What no shape matches is read token by token, with the same result, or is an error that is found
# there.
_INSTRUCTION = re.compile(
    rf"({TRIVIA})(?>(@ ?+!? ?+{NAME}[ \t]++)?)(?!call\b)({OPCODE})([ \t]*+(?!\.)(?>(?:{COMMON_OPERANDS})?)[ \t]*+);",
    re.ASCII,
)
_LABEL = re.compile(rf"({TRIVIA})(?!(?:{'|'.join(sorted(RESERVED))}):)({NAME}):", re.ASCII)
_PLACE = rf"({COUNT})[ \t]++({COUNT})[ \t]++({COUNT})(?![\w$.])"
_LOCATION = re.compile(
    rf"({TRIVIA})(\.loc[ \t]++{_PLACE}(?>(?:, function_name ({NAME}), inlined_at {_PLACE})?))(?={TRIVIA}[^,+])",
    re.ASCII,
)
_HEADERS = (".version", ".target", ".address_size")


def parse(text: str) -> Module:
    """The tree of a PTX text; `str()` of it is the text again. Raises PtxSyntaxError, TypeError for what is no text.

        >>> from ptxgen.syntax import parse
        >>> text = ".version 8.6\\n.target sm_90a\\n.visible .entry k() { ret; }  // kept\\n"
        >>> module = parse(text)
        >>> [entry.name for entry in module.entries], str(module) == text
        (['k'], True)

    NUL characters at its end are kept: NVRTC and Warp hand out C strings.
    """
    if not isinstance(cast("object", text), str):
        raise TypeError(
            f"PTX is given as its text, not as {type(text).__name__}; read a file with Path(...).read_text()"
        )
    if looks_like_path(text):
        found = f"{quoted(text.strip())}, which looks like a path: Path(...).read_text() reads a file"
        raise PtxSyntaxError.at(text, 0, "PTX text", found)
    body = text.rstrip("\0")
    with paused_collection():
        return _Parser(body).module(text[len(body) :])


class _Parser(DirectiveParser):
    __slots__ = ()

    def __init__(self, text: str) -> None:
        self.lines = LineTable(text)
        super().__init__(text)

    def module(self, behind: str) -> Module:
        """All of the text, `behind` which these characters stand."""
        items: list[Statement] = []
        while self.kind != "end":
            items.append(self._item(items))
        return Module(items, self.trivia + behind)

    # --- module level --------------------

    def _item(self, before: list[Statement]) -> Statement:
        trivia = self.trivia
        token = self.token if self.kind == "dot" else ""
        if token in _HEADERS:
            return self._header(before, trivia)
        match token:
            case ".file":
                return self.file(trivia)
            case ".section":
                return self.section(trivia)
            case ".pragma":
                return self.pragma(trivia)
            case ".alias":
                return self.alias(trivia)
            case ".reg":
                return self.registers(trivia)
        start = self.start
        linkage = self.advance()[1:] if token in LINKAGES else None
        if linkage != "common" and (self.at(".entry") or self.at(".func")):
            return self._function(trivia, start, linkage)
        if linkage is None and token not in SPACES and token not in NAMELESS and token != ".attribute":
            self.fail("a directive of the module, a variable or a function")
        return self.variable(trivia, start, linkage)

    def _header(self, before: list[Statement], trivia: str) -> Directive:
        """`.version`, `.target` and `.address_size` open the module, in this order; `.target` may come again."""
        if before:
            last = before[-1]
            name = f".{last.name}" if isinstance(last, Directive) else ""
            if name not in _HEADERS or _HEADERS.index(name) + (name != ".target") > _HEADERS.index(self.token):
                self._misplaced_header(before)
        return self.header(trivia)

    def _misplaced_header(self, before: list[Statement]) -> NoReturn:
        """Blame what stands in the place of `.version` or `.target`; of a second one, or `.address_size`, itself."""
        names = [f".{each.name}" if isinstance(each, Directive) else "" for each in before]
        if self.token in names or self.token == ".address_size":
            self.fail("a directive of the module, a variable or a function")
        ahead = _HEADERS[: _HEADERS.index(self.token)]
        intruder = next((each for each, name in zip(before, names, strict=True) if name not in ahead), before[0])
        found = self.text[intruder._at :].split(None, 1)[0]
        raise PtxSyntaxError.at(self.text, intruder._at, f"{quoted(self.token)} before anything else", quoted(found))

    def _function(self, trivia: str, start: int, linkage: str | None) -> Function:
        kind = self.advance()[1:]
        attributes: list[str] = []
        while kind == "func" and self.at(".attribute"):
            attributes += self._attributes()
        head = self._spelling(start)
        returns: ParameterList | None = None
        if kind == "func" and self.at("("):
            returns = self.parameter_list()
        gap = self.trivia
        name = self.expect_name("a function name")
        parameters = self.parameter_list() if self.at("(") else None
        directives = self.function_directives(is_entry=kind == "entry")
        node = Function(kind, name, linkage, (), (), directives, None, attributes, trivia=trivia)
        node._head, node._returns, node._gap, node._parameters = head, returns, gap, parameters
        self.place(node, start)
        if self.at(";"):
            node._end = f"{self.trivia};"
            self.advance()
        elif self.at("{"):
            node.body = self._body()
        elif kind == "func" and (self.kind == "end" or self.token in MODULE_STARTS):
            node._end = ""
        else:
            self.fail("'{' or ';'")
        return node

    # --- function bodies --------------------

    def _body(self) -> Block:
        """A block and all blocks inside it, without recursion."""
        open_blocks: list[tuple[Block, list[Statement]]] = []
        while True:
            if self.at("{"):
                if len(open_blocks) >= MAX_BLOCK_DEPTH:
                    self.fail(f"blocks nested at most {MAX_BLOCK_DEPTH} deep")
                block = Block((), trivia=self.trivia)
                self.place(block, self.start)
                open_blocks.append((block, []))
                self._common_statements(open_blocks[-1][1], self.end)
            elif self.at("}"):
                block, statements = open_blocks.pop()
                block.closing_trivia = self.trivia
                block.statements = tuple(statements)
                if not open_blocks:
                    self.advance()
                    return block
                open_blocks[-1][1].append(block)
                self._common_statements(open_blocks[-1][1], self.end)
            else:
                statements = open_blocks[-1][1]
                statements.append(self._statement(statements))
                self._common_statements(statements, self.start - len(self.trivia))

    def _common_statements(self, statements: list[Statement], position: int) -> None:
        """Read statements of the common shapes from `position` on, then the token after them.

        This loop is the parser's speed: it makes nodes without calling their constructors.
        """
        text, lines = self.text, self.lines
        match_instruction, match_label, match_location = _INSTRUCTION.match, _LABEL.match, _LOCATION.match
        append, new = statements.append, object.__new__
        while True:
            match = match_instruction(text, position)
            if match is not None:
                node = new(Instruction)
                trivia, guard, opcode, rest = match.groups()
                node.trivia = trivia
                node._at = position + len(trivia)
                node._lines = lines
                node._guard = guard or ""
                node.opcode = opcode
                node._written = None
                node._rest = rest
                node._operands = None
                append(node)
                position = match.end()
                continue
            match = match_label(text, position)
            if match is not None:
                trivia, name = match.groups()
                node = Label(name, trivia=trivia)
                node._spelling = name + ":"
            else:
                match = match_location(text, position)
                if match is None:
                    break
                trivia, spelling, file, line, column, label, *call = match.groups()
                node = Location("loc", (file, line, column), trivia=trivia)
                if label is not None:
                    node.arguments = (file, line, column, "function_name", label, "inlined_at", *call)
                node._spelling = spelling
            node._at = position + len(trivia)
            node._lines = lines
            append(node)
            position = match.end()
        self.seek(position)

    def _statement(self, before: list[Statement]) -> Statement:
        trivia = self.trivia
        if self.kind == "dot":
            return self._directive(trivia, before)
        start = self.start
        if self.kind == "name" and self.token not in RESERVED:
            after = TRIVIA_PATTERN.match(self.text, self.end).end()  # type: ignore[union-attr]
            if self.text.startswith(":", after):
                label = Label(self.advance(), trivia=trivia)
                self.advance()
                self.finish(label, start)
                return label
        guard = self._guard() if self.at("@") else ""
        return self._instruction(trivia, start, guard)

    def _directive(self, trivia: str, before: list[Statement]) -> Statement:
        match self.token:
            case ".reg":
                return self.registers(trivia)
            case ".loc":
                return self.location(trivia)
            case ".pragma":
                return self.pragma(trivia)
            case ".target":  # ptxas takes it anywhere in a body (measured, 13.5)
                return self.header(trivia)
            case ".branchtargets" | ".calltargets" | ".callprototype" as name:
                if not (before and isinstance(before[-1], Label)):
                    self.fail(f"a label before '{name}'")
                return self.prototype(trivia) if name == ".callprototype" else self.targets(trivia)
        if self.token not in SPACES and self.token not in NAMELESS and self.token != ".attribute":
            self.fail("an instruction, a label, a declaration or '}'")
        return self.variable(trivia, self.start, None)

    def _guard(self) -> str:
        """`@p` or `@!p` with the trivia after it, as text."""
        start = self.start
        self.advance()
        self.accept("!")
        self.expect_name("a predicate register")
        return self.text[start : self.start]

    def _instruction(self, trivia: str, start: int, guard: str) -> Instruction:
        expected = "an instruction" if guard else "an instruction, a label, a declaration or '}'"
        match = OPCODE_PATTERN.match(self.text, self.start)
        if self.kind != "name" or self.token == "_" or match is None:
            self.fail(expected)
        opcode, opcode_end = match.group(), match.end()
        # The assembler takes white space before a modifier.
        while (spaced := SPACED_MODIFIER.match(self.text, opcode_end)) is not None:
            opcode += spaced.group(1)
            opcode_end = spaced.end()
        node = Instruction(opcode, trivia=trivia)
        written = self.text[match.start() : opcode_end]
        node._written = None if written == opcode else written
        self.seek(opcode_end)
        if self.kind == "bad" and self.token.startswith("."):
            self.fail("a modifier after '.'")
        if self.kind == "operator" and self.token == ":":
            self.fail(f"an operand or ';' after {quoted(opcode)}")
        self.operands(node.is_call)
        if not self.at(";"):
            self.fail("',' or ';'")
        node._guard = guard
        node._rest = self.text[opcode_end : self.start]
        node._operands = None
        self.place(node, start)
        self.advance()
        return node
