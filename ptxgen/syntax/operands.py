"""Operands of instructions and of initializers (PTX ISA 4.5 constants, 6 operands).

Values: immutable, hashable, equal when they mean the same tree whatever the spelling. `str()` gives the exact
source spelling of a parsed operand. What an instruction makes of an operand is left to the instruction's
declaration.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import ClassVar

from ptxgen.syntax.lexer import integer_value, is_integer

WARP_SIZE = 32
_SIGNED_LIMIT = 1 << 63
_MASK = (1 << 64) - 1
#: Bits of a shift count that ptxas uses (measured, 13.5); the manual is silent on 64 and more.
_COUNT = 63

Number = int | float
Symbols = Mapping[str, Number]


class NoValueError(ValueError):
    """An operand has no value that the text alone gives: it names a register or symbol, or divides by zero."""


class Operand:
    """Base of all operands. `spelling` is the exact text where it differs from the plain one."""

    __slots__ = ("_text",)
    _fields: ClassVar[tuple[str, ...]] = ()
    _text: str

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(repr(getattr(self, name)) for name in self._fields)})"

    def _key(self) -> tuple[object, ...]:
        return tuple([getattr(self, name) for name in self._fields])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Operand):
            return NotImplemented
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def _joined(operands: tuple[Operand, ...]) -> str:
    return ", ".join([str(operand) for operand in operands])


class Name(Operand):
    """A register, variable, label, function, special register (`%tid.x`) or the sink `_`."""

    __slots__ = ("text",)
    _fields = ("text",)

    def __init__(self, text: str, *, spelling: str | None = None) -> None:
        self.text = text
        self._text = text if spelling is None else spelling

    @property
    def base(self) -> str:
        """The name without a component or a video selector: `%v` of `%v.x`."""
        return self.text.partition(".")[0]

    @property
    def component(self) -> str | None:
        """What follows the dot: `x` of `%v.x`, `b0` of `%r1.b0`."""
        return self.text.partition(".")[2] or None


class Immediate(Operand):
    """A literal: `5`, `-1`, `0x10U`, `0b101`, `017`, `1.5e-3`, `0f3F800000`, `0d...`, `WARP_SZ`."""

    __slots__ = ("text",)
    _fields = ("text",)

    def __init__(self, text: str, *, spelling: str | None = None) -> None:
        self.text = text
        self._text = text if spelling is None else spelling

    @property
    def bits(self) -> int | None:
        """The raw bits of a `0f` or `0d` literal."""
        return int(self.text[2:], 16) if self.text[:2] in ("0f", "0F", "0d", "0D") else None

    @property
    def width(self) -> int | None:
        """32 for `0f`, 64 for `0d`, else None."""
        return {"0f": 32, "0d": 64}.get(self.text[:2].lower())

    @property
    def is_float(self) -> bool:
        return isinstance(self.value, float)

    @property
    def value(self) -> Number:
        """The number written; `-1` is -1. What 64 bits do not hold wraps around: `-18446744073709551615` is 1."""
        text = self.text
        if text == "WARP_SZ":
            return WARP_SIZE
        bits = self.bits
        if bits is not None:
            if self.width == 32:
                return struct.unpack("<f", bits.to_bytes(4, "little"))[0]
            return struct.unpack("<d", bits.to_bytes(8, "little"))[0]
        negative = text.startswith("-")
        digits = text[1:] if negative else text
        value = integer_value(digits) if is_integer(digits) else float(digits)
        if not negative:
            return value
        return _wrap(-value, unsigned=False)[0] if isinstance(value, int) else -value

    def evaluate(self, symbols: Symbols | None = None) -> Number:
        return self.value


class Negation(Operand):
    """`!p`, or `-r` as the video instructions take it (`operator` says which)."""

    __slots__ = ("operand", "operator")
    _fields = ("operand", "operator")

    def __init__(self, operand: Operand, operator: str = "!", *, spelling: str | None = None) -> None:
        self.operand = operand
        self.operator = operator
        self._text = f"{operator}{operand}" if spelling is None else spelling


class Pair(Operand):
    """`d|p`: a destination and a predicate destination."""

    __slots__ = ("first", "second")
    _fields = ("first", "second")

    def __init__(self, first: Operand, second: Operand, *, spelling: str | None = None) -> None:
        self.first = first
        self.second = second
        self._text = f"{first}|{second}" if spelling is None else spelling


class Vector(Operand):
    """`{a, b}`."""

    __slots__ = ("elements",)
    _fields = ("elements",)

    def __init__(self, elements: tuple[Operand, ...], *, spelling: str | None = None) -> None:
        self.elements = elements
        self._text = f"{{{_joined(elements)}}}" if spelling is None else spelling


class Arguments(Operand):
    """`(a, b)` of a call; may be empty."""

    __slots__ = ("elements",)
    _fields = ("elements",)

    def __init__(self, elements: tuple[Operand, ...] = (), *, spelling: str | None = None) -> None:
        self.elements = elements
        self._text = f"({_joined(elements)})" if spelling is None else spelling


class Subscript(Operand):
    """`array[index]`: an element of a variable."""

    __slots__ = ("base", "index")
    _fields = ("base", "index")

    def __init__(self, base: Name, index: Operand, *, spelling: str | None = None) -> None:
        self.base = base
        self.index = index
        self._text = f"{base}[{index}]" if spelling is None else spelling


class Address(Operand):
    """`[base + offset]`, `[base, more...]` or `[number]`.

    `offset` is in bytes, 0 when none is written; `has_offset` distinguishes `[a+0]` from `[a]`. `more` holds what
    follows a comma: texture sampler, tensor coordinates. `unified` distinguishes `[a].unified` from `[a]`.
    """

    __slots__ = ("base", "has_offset", "more", "offset", "unified")
    _fields = ("base", "offset", "more", "has_offset", "unified")

    def __init__(
        self,
        base: Operand,
        offset: int = 0,
        more: tuple[Operand, ...] = (),
        has_offset: bool | None = None,
        unified: bool = False,
        *,
        spelling: str | None = None,
    ) -> None:
        self.unified = unified
        self.base = base
        self.offset = offset
        self.more = more
        self.has_offset = offset != 0 if has_offset is None else has_offset
        if spelling is None:
            written = f"+{offset}" if self.has_offset else ""
            spelling = f"[{_joined((base, *more))}]" if more else f"[{base}{written}]"
            spelling += ".unified" if unified else ""
        self._text = spelling


class Initializer(Operand):
    """`{...}` of a variable's initial value: elements are constants, addresses, or nested braces."""

    __slots__ = ("elements",)
    _fields = ("elements",)

    def __init__(self, elements: tuple[Operand, ...] = (), *, spelling: str | None = None) -> None:
        self.elements = elements
        self._text = f"{{{_joined(elements)}}}" if spelling is None else spelling


class Expression(Operand):
    """A constant expression (PTX ISA 4.5.4, 4.5.5).

    `operator` is a C operator ("+", "<<", "?:", ...), "()" for parentheses, ".s64" or ".u64" for a cast,
    "generic" for `generic(symbol)`, "mask" for `0xFF(symbol)`, "=" for `key=value` of a sampler; one operand
    makes "+", "-", "!" and "~" unary.
    """

    __slots__ = ("operands", "operator")
    _fields = ("operator", "operands")

    def __init__(self, operator: str, operands: tuple[Operand, ...], *, spelling: str | None = None) -> None:
        self.operator = operator
        self.operands = operands
        self._text = self._plain() if spelling is None else spelling

    def _plain(self) -> str:
        parts = [str(operand) for operand in self.operands]
        match self.operator, parts:
            case "()", [inner]:
                return f"({inner})"
            case (".s64" | ".u64") as cast, [inner]:
                return f"({cast}){inner}"
            case "generic", [symbol]:
                return f"generic({symbol})"
            case "mask", [mask, symbol]:
                return f"{mask}({symbol})"
            case "?:", [condition, first, second]:
                return f"{condition} ? {first} : {second}"
            case operator, [inner]:
                return f"{operator}{inner}"
            case operator, [left, right]:
                return f"{left}{operator}{right}" if operator in "+-=" else f"{left} {operator} {right}"
        raise ValueError(f"operator '{self.operator}' must not have {len(parts)} operands")

    def evaluate(self, symbols: Symbols | None = None) -> Number:
        """The value by the manual's rules: 64-bit, `.s64` unless an operand is `.u64`, or `.f64`.

        `symbols` gives the value of each name. Raises ValueError for a name without a value, a division by
        zero or an integer operator on a float.
        """
        value, _ = _evaluate(self, symbols or {})
        return value


def _wrap(value: int, unsigned: bool) -> tuple[int, bool]:
    value &= _MASK
    if not unsigned and value >= _SIGNED_LIMIT:
        value -= 1 << 64
    return value, unsigned


def _evaluate(operand: Operand, symbols: Symbols) -> tuple[Number, bool]:
    """Value, and whether its type is .u64."""
    if isinstance(operand, Immediate):
        value = operand.value
        if isinstance(value, float):
            return value, False
        return _wrap(value, operand.text.endswith("U") or value >= _SIGNED_LIMIT)
    if isinstance(operand, Name):
        if operand.text not in symbols:
            raise NoValueError(f"symbol '{operand.text}' has no value here")
        return symbols[operand.text], False
    if not isinstance(operand, Expression):
        raise ValueError(f"'{operand}' is no constant")
    operator, operands = operand.operator, operand.operands
    if operator in ("()", "generic"):
        return _evaluate(operands[0], symbols)
    if operator == "?:":
        values = [_evaluate(inner, symbols) for inner in operands]
        condition, first, second = (_integer(value, operator) for value, _ in values)
        unsigned = values[1][1] or values[2][1]
        return _wrap(first if condition else second, unsigned)[0], unsigned
    if operator == "mask":
        mask, _ = _evaluate(operands[0], symbols)
        address, _ = _evaluate(operands[1], symbols)
        mask, address = _integer(mask, "mask"), _integer(address, "mask")
        return (address & mask) // (mask & -mask) if mask else 0, True
    values = [_evaluate(inner, symbols) for inner in operands]
    if len(values) == 1:
        return _unary(operator, *values[0])
    return _binary(operator, values[0], values[1])


def _integer(value: Number, operator: str) -> int:
    if isinstance(value, float):
        raise ValueError(f"operator '{operator}' takes integers, not the float {value}")
    return value


def _unary(operator: str, value: Number, unsigned: bool) -> tuple[Number, bool]:
    if operator == "-":
        return (-value, False) if isinstance(value, float) else _wrap(-value, unsigned)
    if operator == "+":
        return value, unsigned
    whole = _integer(value, operator)
    match operator:
        case "!":
            return int(not whole), False
        case "~":
            return _wrap(~whole, True)
        case ".s64" | ".u64":
            return _wrap(whole, operator == ".u64")
    raise ValueError(f"unknown unary operator '{operator}'")


#: Operators that take floats as well as integers.
_MIXABLE = frozenset({"<", ">", "<=", ">=", "==", "!=", "+", "-", "*", "/"})


def _compare(operator: str, a: Number, b: Number) -> bool:
    return {"<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b, "==": a == b, "!=": a != b}[operator]


def _binary(operator: str, left: tuple[Number, bool], right: tuple[Number, bool]) -> tuple[Number, bool]:
    (a, a_unsigned), (b, b_unsigned) = left, right
    floating = isinstance(a, float)
    if floating != isinstance(b, float) and operator in _MIXABLE:
        raise ValueError(f"operator '{operator}' takes two integers or two floats, not {a} and {b}")
    unsigned = a_unsigned or b_unsigned
    if not floating and unsigned:
        a, b = int(a) & _MASK, int(b) & _MASK
    if operator in ("<", ">", "<=", ">=", "==", "!="):
        return int(_compare(operator, a, b)), False
    if operator in ("/", "%") and b == 0:
        raise NoValueError("division by zero in a constant expression")
    if operator in ("+", "-", "*", "/"):
        return _arithmetic(operator, a, b, unsigned, floating)
    a, b = _integer(a, operator), _integer(b, operator)
    match operator:
        case "&&":
            return int(bool(a) and bool(b)), False
        case "||":
            return int(bool(a) or bool(b)), False
        case "%":
            return _wrap((a & _MASK) % (b & _MASK), False)
        case "&":
            return _wrap(a & b, True)
        case "|":
            return _wrap(a | b, True)
        case "^":
            return _wrap(a ^ b, True)
        case "<<":
            return _wrap(a << (b & _COUNT), a_unsigned)
        case ">>":
            value, _ = _wrap(a, a_unsigned)
            return _wrap(value >> (b & _COUNT), a_unsigned)
    raise ValueError(f"unknown operator '{operator}'")


def _arithmetic(operator: str, a: Number, b: Number, unsigned: bool, floating: bool) -> tuple[Number, bool]:
    if operator == "+":
        value = a + b
    elif operator == "-":
        value = a - b
    elif operator == "*":
        value = a * b
    elif floating:
        value = a / b
    else:
        value = abs(int(a)) // abs(int(b)) * (1 if (a < 0) == (b < 0) else -1)
    return (float(value), False) if floating else _wrap(int(value), unsigned)
