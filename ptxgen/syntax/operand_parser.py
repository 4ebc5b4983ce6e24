"""Reads operands and constant expressions (PTX ISA 4.5 and 6) from text."""

from __future__ import annotations

import math
import re

from ptxgen.syntax.errors import PtxSyntaxError, quoted
from ptxgen.syntax.lexer import COUNT, FLOAT_BITS, HEXADECIMAL, NAME, TRIVIA_PATTERN, Lexer
from ptxgen.syntax.operands import (
    Address,
    Arguments,
    Expression,
    Immediate,
    Initializer,
    Name,
    Negation,
    Operand,
    Pair,
    Subscript,
    Vector,
)

# In units of Python's own call depth, about: a pair of parentheses counts 4.
MAX_EXPRESSION_DEPTH = 200
_CACHE_LIMIT = 1 << 16

# The everyday operands, which need no tree to be known as well formed. Whatever these patterns do not match
# goes to OperandParser; they accept nothing that it refuses (tested).
_NAME = rf"(?!WARP_SZ(?![\w$])){NAME}"
_COMPONENT = r"\.[A-Za-z_]\w*+"
_REGISTER = rf"{_NAME}(?>(?:{_COMPONENT})?)"
# Floats that no double can hold are longer.
_SHORT_DECIMAL = (
    r"(?:[0-9]{1,40}+\.[0-9]{0,40}+|\.[0-9]{1,40}+)(?>(?:[eE][+-]?+[0-9]{1,2}+)?)"
    r"|[0-9]{1,40}+[eE][+-]?+[0-9]{1,2}+"
)
_CONSTANT = rf"(?:WARP_SZ|{FLOAT_BITS}|-?+(?:{_SHORT_DECIMAL}|(?:{HEXADECIMAL}|{COUNT})U?+))(?![\w$.])"
_ITEM = rf"(?:{_REGISTER}|{_CONSTANT})"
_SLOT = rf"(?:{_REGISTER}|_(?![\w$])|{_CONSTANT})"
_VECTOR = rf"\{{ ?+{_SLOT}(?>(?: ?, ?+{_SLOT})*) ?+\}}"
_BRACKET = rf"\[ ?+{_NAME}(?>(?: ?\+ ?-?+{COUNT}(?![\w.])|, ?+{_VECTOR})?) ?+\]"
_PREDICATE = rf" ?\| ?+(?:_(?![\w$])|{NAME})"
_FIRST = rf"(?:_(?![\w$])|{_VECTOR})(?>(?:{_PREDICATE})?)|{_NAME}(?>(?:{_PREDICATE}|{_COMPONENT})?)"
_DESTINATION = rf"{_FIRST}|{_CONSTANT}|{_BRACKET}"
_SOURCE = rf"{_ITEM}|{_BRACKET}|{_VECTOR}|!{_REGISTER}"
COMMON_OPERANDS = rf"(?:{_DESTINATION}|!{_REGISTER})(?>(?:[ \t]*+,[ \t\r\n]*+(?:{_SOURCE}))*)"

_COMMON_OPERAND = re.compile(rf"{_DESTINATION}|{_SOURCE}", re.ASCII)
_COMMON_LIST = re.compile(COMMON_OPERANDS, re.ASCII)

_BINARY = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_PRECEDENCE = {operator: level for level, operators in enumerate(_BINARY) for operator in operators}
_PLAIN_VECTOR = re.compile(r"\{%\w+(?:, %\w+)*\}", re.ASCII)
_PLAIN_ADDRESS = re.compile(r"\[(%\w+)(?:\+([1-9]\d{0,17}))?\]", re.ASCII)

_cache: dict[str, Operand] = {}


class OperandParser(Lexer):
    """A lexer that also reads operands and constants."""

    __slots__ = ("_depth",)

    def __init__(self, text: str, offset: int = 0) -> None:
        self._depth = 0
        super().__init__(text, offset)

    def _spelling(self, start: int) -> str:
        """The text from `start` to the end of the token before this one."""
        return self.text[start : self.start - len(self.trivia)]

    def _deeper(self, by: int) -> None:
        self._depth += by
        if self._depth > MAX_EXPRESSION_DEPTH:
            self.fail("an expression that is nested less deeply")

    def operands(self, is_call: bool) -> tuple[list[Operand], list[str]]:
        """Operands up to the `;`, and the text before, between and after them."""
        if self.at(";"):
            return [], [self.trivia]
        operands: list[Operand] = []
        gaps = [self.trivia]
        while True:
            operands.append(self._call_operand(operands) if is_call else self._operand(first=not operands))
            if not self.at(","):
                gaps.append(self.trivia)
                return operands, gaps
            comma = self.trivia + ","
            self.advance()
            gaps.append(comma + self.trivia)

    def _call_operand(self, before: list[Operand]) -> Operand:
        """The next of `{(returns),} function {, (arguments)} {, prototype}`."""
        names = sum(isinstance(operand, Name) for operand in before)
        if self.at("(") and (not before or (names == 1 and isinstance(before[-1], Name))):
            return self._arguments()
        if names >= 2:
            self.fail("';' after the call prototype")
        return Name(self.expect_name("a call prototype" if names else "a function or a register to call"))

    def _arguments(self) -> Arguments:
        start = self.start
        self.expect("(")
        elements: list[Operand] = []
        if not self.at(")"):
            elements.append(self._plain_item("an argument"))
            while self.accept(","):
                elements.append(self._plain_item("an argument"))
        self.expect(")")
        return Arguments(tuple(elements), spelling=self._spelling(start))

    def _plain_item(self, expected: str) -> Operand:
        """A name, the sink or a constant; no component."""
        if self.kind == "name" and self.token != "WARP_SZ":
            return Name(self.advance())
        return self.constant(expected)

    def _vector(self) -> Vector:
        start = self.start
        self.expect("{")
        elements = [self._element()]
        while self.accept(","):
            elements.append(self._element())
        self.expect("}")
        return Vector(tuple(elements), spelling=self._spelling(start))

    def _element(self) -> Operand:
        if self.kind == "name" and self.token != "WARP_SZ":
            return self._register()
        return self.constant("a vector element")

    def _register(self) -> Name:
        """A name with an optional component: `%r1`, `%tid.x`, `r1.b0`."""
        start = self.start
        text = self.expect_kind("name", "a name")
        if self.kind == "dot" and text != "_":
            if "::" in self.token:
                self.fail("a vector component")
            text += self.advance()
        return _name(text, self._spelling(start))

    def _operand(self, first: bool) -> Operand:
        start = self.start
        if self.at("{"):
            return self._paired(self._vector(), start, first)
        if self.at("["):
            return self._address()
        if self.kind == "name" and self.token != "WARP_SZ":
            if self.token == "_" and not first:
                self.fail("an operand; '_' stands only for a destination")
            register = self._register()
            if self.at("["):
                return self._subscript(register, start)
            if self.at("+") and register.component is None:
                return self._sum(register, start)
            return self._paired(register, start, first)
        if self.at("!") or self.at("-"):
            operator = self.token
            after = self.end
            inner = OperandParser(self.text, after)
            if inner.kind == "name" and inner.token not in ("WARP_SZ", "_"):
                self.advance()
                operand: Operand = self._register()
                if self.at("["):
                    operand = self._subscript(operand, inner.start)
                return Negation(operand, operator, spelling=self._spelling(start))
        return self.constant("an operand")

    def _paired(self, first_part: Operand, start: int, first: bool) -> Operand:
        if not (first and self.at("|")):
            return first_part
        if isinstance(first_part, Name) and first_part.component is not None:
            self.fail("',' or ';'")
        self.advance()
        second = Name(self.expect_kind("name", "a predicate after '|'"))
        return Pair(first_part, second, spelling=self._spelling(start))

    def _subscript(self, base: Operand, start: int) -> Subscript:
        if not isinstance(base, Name) or base.component is not None or base.text == "_":
            self.fail("',' or ';'")
        self.expect("[")
        if self.kind == "name" and self.token != "WARP_SZ":
            index_start = self.start
            index: Operand = _plain_name(self)
            if self.at("+"):
                index = self._sum(index, index_start)
        else:
            index = self.constant("a subscript")
        self.expect("]")
        return Subscript(base, index, spelling=self._spelling(start))

    def _sum(self, base: Operand, start: int) -> Expression:
        """`symbol + constant`, the symbol already read."""
        self.expect("+")
        constant = self._whole("a constant after '+'")
        return Expression("+", (base, constant), spelling=self._spelling(start))

    def _address(self) -> Address:
        start = self.start
        self.expect("[")
        if self.kind != "name" or self.token == "WARP_SZ":
            base = self.constant("an address")
            unified = self._bracket_end()
            return Address(base, unified=unified, spelling=self._spelling(start))
        base_start = self.start
        base = _plain_name(self)
        if self.at("["):
            base = self._subscript(base, base_start)
            unified = self._bracket_end()
            return Address(base, unified=unified, spelling=self._spelling(start))
        if self.at("+") or self.at("-"):
            offset = self._offset()
            unified = self._bracket_end()
            return Address(base, offset, (), True, unified, spelling=self._spelling(start))
        more: list[Operand] = []
        while self.accept(","):
            if not self.at("{"):
                more.append(self._coordinate())
                continue
            more.append(self._vector())
            if isinstance(more[0], Vector):  # more follows only in [tensormap, address, {sizes}, ..., {coordinates}]
                break
        unified = self._bracket_end()
        return Address(base, 0, tuple(more), unified=unified, spelling=self._spelling(start))

    def _bracket_end(self) -> bool:
        """The end of an address, and whether `.unified` follows it."""
        self.expect("]")
        return self.accept(".unified")

    def _coordinate(self) -> Operand:
        if self.kind != "name" or self.token == "_":
            self.fail("a name or '{' after ','")
        return Name(self.advance())

    def _offset(self) -> int:
        negative = self.advance() == "-"
        at = self.start
        offset = self._whole("an offset")
        try:
            value = offset.evaluate() if isinstance(offset, Expression | Immediate) else 0.0
        except ValueError as error:
            raise PtxSyntaxError.at(self.text, at, "an integer offset", str(error)) from None
        if isinstance(value, float):
            raise PtxSyntaxError.at(self.text, at, "an integer offset", quoted(str(offset)))
        return -value if negative else value

    def _whole(self, expected: str) -> Operand:
        """A constant without floats, as what is added to a symbol must be."""
        start = self.start
        constant = self.constant(expected)
        if _has_float(constant):
            raise PtxSyntaxError.at(self.text, start, "an integer offset", quoted(str(constant)))
        return constant

    def constant(self, expected: str) -> Operand:
        """A constant expression without symbols."""
        before = self._depth
        self._deeper(4)
        operand = self._ternary(expected)
        self._depth = before
        return operand

    def _ternary(self, expected: str) -> Operand:
        start = self.start
        condition = self._binary_from(0, expected)
        if not self.at("?"):
            return condition
        self.advance()
        first = self.constant("a constant")
        self.expect(":")
        second = self.constant("a constant")
        return Expression("?:", (condition, first, second), spelling=self._spelling(start))

    def _binary_from(self, level: int, expected: str) -> Operand:
        start = self.start
        left = self._unary(expected)
        # A float of 32 bits is a whole constant by itself: the assembler has no operators on one.
        if isinstance(left, Immediate) and left.width == 32:
            return left
        before = self._depth
        while self.kind == "operator":
            precedence = _PRECEDENCE.get(self.token, -1)
            if precedence < level:
                break
            self._deeper(1)  # each step makes the tree one deeper
            operator = self.advance()
            right = self._binary_from(precedence + 1, "a constant")
            if isinstance(right, Immediate) and right.width == 32:
                expected = "a decimal float inside an expression"
                raise PtxSyntaxError.at(self.text, start, expected, quoted(str(right)))
            left = Expression(operator, (left, right), spelling=self._spelling(start))
        self._depth = before
        return left

    def _unary(self, expected: str) -> Operand:
        start = self.start
        if self.kind == "number":
            number = Immediate(self.token)
            if number.bits is None and isinstance(number.value, float) and math.isinf(number.value):
                self.fail("a number that a double can hold")
            self.advance()
            return number
        if self.token == "WARP_SZ":
            return Immediate(self.advance())
        if self.token in ("-", "+", "!", "~") and self.kind == "operator":
            return self._signed(start)
        if not self.at("("):
            self.fail(expected)
        self.advance()
        if self.token in (".s64", ".u64"):
            cast = self.advance()
            self.expect(")")
            self._deeper(2)
            inner = self._unary("a constant")
            self._depth -= 2
            return Expression(cast, (inner,), spelling=self._spelling(start))
        inner = self.constant("a constant")
        self.expect(")")
        return Expression("()", (inner,), spelling=self._spelling(start))

    def _signed(self, start: int) -> Operand:
        operator = self.advance()
        if self.kind == "number" and self.token[:2] in ("0f", "0F"):
            self.fail("a decimal constant after a sign")
        self._deeper(2)
        inner = self._unary("a constant")
        self._depth -= 2
        spelling = self._spelling(start)
        if operator == "-" and isinstance(inner, Immediate) and inner.text[0] not in "-W" and inner.bits is None:
            return Immediate(f"-{inner.text}", spelling=spelling)
        return Expression(operator, (inner,), spelling=spelling)

    def initializer(self) -> Operand:
        """An initial value: a constant, `symbol+4`, `generic(symbol)+4`, `0xFF(symbol)`, or braces."""
        start = self.start
        if self.at("{"):
            self._deeper(2)
            self.advance()
            elements: list[Operand] = []
            if not self.at("}"):
                elements.append(self.initializer())
                while self.accept(","):
                    elements.append(self.initializer())
            self.expect("}")
            self._depth -= 2
            return Initializer(tuple(elements), spelling=self._spelling(start))
        if self.kind == "name" and self.token not in ("WARP_SZ", "_"):
            return self._symbol(in_mask=False)
        constant = self.constant("an initial value")
        if self.at("(") and isinstance(constant, Immediate):
            self.advance()
            symbol = self._symbol(in_mask=True)
            self.expect(")")
            return Expression("mask", (constant, symbol), spelling=self._spelling(start))
        return constant

    def _symbol(self, in_mask: bool) -> Operand:
        """`symbol`, `symbol+4`, `generic(symbol)`, `generic(symbol)+4`, or `key=value` of a sampler."""
        start = self.start
        operand: Operand = Name(self.expect_name("a symbol"))
        if str(operand) == "generic" and self.at("("):
            self.advance()
            symbol = Name(self.expect_name("a symbol"))
            self.expect(")")
            operand = Expression("generic", (symbol,), spelling=self._spelling(start))
        elif self.at("=") and not in_mask:
            self.advance()
            value = self._plain_item("a value")
            return Expression("=", (operand, value), spelling=self._spelling(start))
        return self._sum(operand, start) if self.at("+") else operand


def _has_float(constant: Operand) -> bool:
    """Whether a constant is a float, or mixes floats and integers; a comparison of two floats is an integer."""
    if isinstance(constant, Immediate):
        return constant.is_float
    floats = [_has_float(each) for each in constant.operands] if isinstance(constant, Expression) else []
    compares = isinstance(constant, Expression) and constant.operator in _COMPARISONS
    return any(floats) and not (compares and all(floats))


def _name(text: str, spelling: str) -> Name:
    return Name(text) if text == spelling else Name(text, spelling=spelling)


def _plain_name(parser: OperandParser) -> Name:
    return Name(parser.expect_name("a name"))


def split_operands(text: str, is_call: bool) -> tuple[tuple[Operand, ...], list[str]]:
    """The operands of an instruction's operand text, and the text before, between and after them."""
    operands, gaps = OperandParser(text + ";").operands(is_call)
    return tuple(operands), gaps


def operands_of(text: str, is_call: bool) -> tuple[Operand, ...]:
    """The operands of a text that is known to be well formed."""
    stripped = text.strip(" \t\r\n")
    if not is_call and _COMMON_LIST.fullmatch(stripped):
        return tuple([_cached(operand) for operand in _COMMON_OPERAND.findall(stripped)])
    return split_operands(text, is_call)[0]


def _cached(text: str) -> Operand:
    """The operand of `text`, shared between all its uses."""
    operand = _cache.get(text)
    if operand is None:
        operand = _simple(text) or parse_operand(text)
        if len(_cache) >= _CACHE_LIMIT:
            _cache.clear()
        _cache[text] = operand
    return operand


def _simple(text: str) -> Operand | None:
    """Registers, addresses in them and vectors of them as compilers spell them; None for other operands.

    The text is one of `_COMMON_OPERAND`.
    """
    if text[0] == "%":
        return Name(text) if "|" not in text else None
    if text[0] == "{":
        elements = text[1:-1].split(", ")
        return Vector(tuple(map(_cached, elements))) if _PLAIN_VECTOR.fullmatch(text) else None
    found = _PLAIN_ADDRESS.fullmatch(text)
    if found is None:
        return None
    base, offset = found.groups()
    return Address(_cached(base), int(offset)) if offset else Address(_cached(base))


def parse_operand(text: str) -> Operand:
    """The one operand that `text` spells. Raises PtxSyntaxError.

    >>> from ptxgen.syntax import parse_operand
    >>> address = parse_operand("[%rd1+16]")
    >>> str(address), address.offset
    ('[%rd1+16]', 16)
    """
    parser = OperandParser(text, TRIVIA_PATTERN.match(text).end())  # type: ignore[union-attr]
    operand = parser._operand(first=True)
    if parser.kind != "end":
        parser.fail("the end of the operand")
    return operand
