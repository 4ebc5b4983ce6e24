"""Tokens of PTX text: white space and comments, names, numbers, operators (PTX ISA 4.2 to 4.5).

Only shapes are known here; which token may stand where is the parsers' part.
"""

from __future__ import annotations

import re
from typing import NoReturn

from ptxgen.syntax.errors import PtxSyntaxError, quoted

# The quantifiers of characters are possessive, those of groups in atomic groups, so that no text makes a match back up:
# lexing stays linear. A possessive group is wrong in CPython 3.11.2 (Debian 12): it keeps what a pass takes that fails.
COMMENT = r"//[^\n]*+|/\*[^*]*+\*++(?>(?:[^/*][^*]*+\*++)*)/"
# What the preprocessor writes of lines: `# 1 "a.cu" 2`, or `#line 1 "a.cu"`, up to the end of the line.
LINE_MARKER = (
    r'\#[ \t\f]*+(?>(?:line)?)[ \t\f]*+[0-9]++[ \t\f]++"[^"\n]*+"(?>(?:[ \t]++[0-9]{1,9}+)*)[ \t\r\f\x1a]*+(?=\n)'
)
# White space: also line markers, lines that begin with "#" (PTX ISA 4.2), and Ctrl-Z, DOS's end of a file.
TRIVIA = (
    r"(?>(?:\A[ \t\r\f\x1a]*+\#[^\n]*+)?)"
    rf"(?>(?:\n[ \t\r\f\x1a]*+(?>(?:\#[^\n]*+)?)|[ \t\r\f\x1a]++|{COMMENT}|{LINE_MARKER})*)"
)
NAME = r"(?:[A-Za-z][\w$]*+|[_$%][\w$]++)"
# `.sp::2:4` alone has a single colon.
MODIFIER = r"\.\w++(?>(?:::\w++(?>(?::[0-9]++)?))*)"
OPCODE = rf"(?:[A-Za-z]\w*+|_\w++)(?>(?:{MODIFIER})*)(?!\$)"
FLOAT_BITS = r"0(?:[fF][0-9A-Fa-f]{8}|[dD][0-9A-Fa-f]{16})"
# Integers have 64 bits; of longer ones the assembler says "Constant overflow", from about these lengths on.
HEXADECIMAL = r"0[xX](?:0*+[1-9A-Fa-f][0-9A-Fa-f]{0,19}+|0++)"
COUNT = r"(?:[1-9][0-9]{0,24}+|0)"
# "2.reqntid" is the float "2." and a name, but "0x2.reqntid" an integer and a directive.
INTEGER = (
    rf"(?:(?:{HEXADECIMAL}|0[bB](?:0*+1[01]{{0,63}}+|0++))U?+"
    r"|(?:[1-9][0-9]{0,24}+|0++(?>(?:[1-7][0-7]{0,26}+)?))(?:U|(?!\.)))"
)
DECIMAL = r"(?:[0-9]++\.[0-9]*+|\.[0-9]++)(?>(?:[eE][+-]?+[0-9]++)?)|[0-9]++[eE][+-]?+[0-9]++"
NUMBER = rf"(?:{FLOAT_BITS}|{DECIMAL}|{INTEGER})(?![\w$])"
STRING = r'"(?>(?:[^"\\\n]|\\.)*)"'
OPERATOR = r"<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%~!&|^<>?:;,=@(){}\[\]]"

TRIVIA_PATTERN = re.compile(TRIVIA, re.ASCII)
_TOKEN = re.compile(
    rf"(?P<name>{NAME}|_(?![\w$]))|(?P<number>{NUMBER})|(?P<dot>\.[A-Za-z_][\w$]*+(?>(?:::\w++)*))"
    rf"|(?P<string>{STRING})|(?P<operator>{OPERATOR})",
    re.ASCII,
)
#: The constant, the sink, and words of `.loc`, which ptxas takes nowhere else.
RESERVED = frozenset({"WARP_SZ", "_", "function_name", "inlined_at"})
_BAD_WORD = re.compile(r"[\w$.%]+|.", re.ASCII | re.DOTALL)
OPCODE_PATTERN = re.compile(OPCODE, re.ASCII)
SPACED_MODIFIER = re.compile(rf"{TRIVIA}({MODIFIER})", re.ASCII)


class Lexer:
    """One token of lookahead over `text`.

    `trivia` stands before the token; `kind` is "name", "number", "dot" (a word with its leading dot),
    "string", "operator", "end" or "bad"; `token` is its text, `start` and `end` its place.
    """

    __slots__ = ("end", "kind", "start", "text", "token", "trivia")

    def __init__(self, text: str, offset: int = 0) -> None:
        self.text = text
        self.seek(offset)

    def seek(self, offset: int) -> None:
        """Read the token at or after `offset`."""
        text = self.text
        trivia_end = TRIVIA_PATTERN.match(text, offset).end()  # type: ignore[union-attr]
        self.trivia = text[offset:trivia_end]
        self.start = trivia_end
        match = _TOKEN.match(text, trivia_end)
        if match is not None:
            self.kind = match.lastgroup or ""
            self.token = match.group()
            self.end = match.end()
            return
        self.kind = "end" if trivia_end >= len(text) else "bad"
        word = _BAD_WORD.match(text, trivia_end)
        self.token = word.group() if word else ""
        self.end = word.end() if word else trivia_end

    def advance(self) -> str:
        """Step over the token and return its text."""
        token = self.token
        self.seek(self.end)
        return token

    def at(self, token: str) -> bool:
        return self.token == token and self.kind != "string"

    def accept(self, token: str) -> bool:
        """Step over `token` if it stands here."""
        if self.token == token and self.kind != "string":
            self.seek(self.end)
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.accept(token):
            self.fail(quoted(token))

    def expect_kind(self, kind: str, expected: str) -> str:
        if self.kind != kind:
            self.fail(expected)
        return self.advance()

    def expect_name(self, expected: str) -> str:
        """A declared or used name."""
        if self.kind != "name" or self.token in RESERVED:
            self.fail(expected)
        return self.advance()

    def expect_integer(self, expected: str) -> str:
        """An unsigned integer literal or WARP_SZ, as text; a name may follow at once, as in `.align 8x`."""
        if self.kind == "bad" and (match := _INTEGER_BEFORE_NAME.match(self.text, self.start)):
            self.seek(match.end())
            return match.group()
        if self.token != "WARP_SZ" and (self.kind != "number" or not is_integer(self.token)):
            self.fail(expected)
        return self.advance()

    def fail(self, expected: str) -> NoReturn:
        """Raise the error that `expected` was wanted where the token stands."""
        raise PtxSyntaxError.at(self.text, self.start, expected, self.found())

    def found(self) -> str:
        if self.kind == "end":
            return "the end of the text"
        if self.text.startswith("/*", self.start):
            return "a comment that is never closed"
        if self.token == '"':
            return "a string that is never closed"
        return quoted(self.token)


#: Value of the constant WARP_SZ, in threads.
WARP_SIZE = 32
_INTEGER_ONLY = re.compile(INTEGER, re.ASCII)

_INTEGER_BEFORE_NAME = re.compile(rf"{INTEGER}(?=[A-Za-z_$%])", re.ASCII)


def is_integer(number: str) -> bool:
    return _INTEGER_ONLY.fullmatch(number) is not None


_INTEGER_MASK = (1 << 64) - 1
_SIGN, _WORD_MASK = 1 << 63, (1 << 32) - 1


def integer_value(number: str) -> int:
    """The value of an integer literal or of WARP_SZ, in 64 bits as ptxas keeps it; a leading 0 is octal, as in C."""
    return _value(number) & _INTEGER_MASK


def word_value(number: str) -> int:
    """The value of an integer literal in a place of 32 bits, such as a count, an alignment or a number of threads.

    ptxas 13.5 compares a signed integer with 2^32 and keeps the low 32 bits: from 2^63 on it takes what it should
    refuse. Values from 2^32 to 2^63 are returned as they are; the caller refuses them.
    """
    value = integer_value(number)
    return value & _WORD_MASK if value >= _SIGN else value


def _value(number: str) -> int:
    if number == "WARP_SZ":
        return WARP_SIZE
    digits = number[:-1] if number[-1] == "U" else number
    head = digits[:2]
    if head in ("0x", "0X"):
        return int(digits[2:], 16)
    if head in ("0b", "0B"):
        return int(digits[2:], 2)
    if digits[0] == "0":
        return int(digits, 8)
    return int(digits)
