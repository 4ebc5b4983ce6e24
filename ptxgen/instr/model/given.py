"""What a typed call was given for its operands: the nodes of the text, and what its registers are declared as."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from ptxgen.instr.model import operands as specs
from ptxgen.instr.model.operands import Specification, type_of
from ptxgen.instr.model.special import special_register
from ptxgen.instr.model.symbols import Declared, Subject, Symbol, TextureMode
from ptxgen.instr.model.types import TYPES, Type
from ptxgen.syntax import Address, Arguments, Immediate, Name, Negation, Operand, Pair, Vector, parse_operand

#: What a typed call takes as an operand: PTX text, a number, a list (vector), a syntax node, or a builder's register.
OperandLike = Any


def node(value: OperandLike) -> Operand:
    """A syntax node of what a typed call was given."""
    if isinstance(value, Operand):
        return value
    if isinstance(value, bool):
        return Immediate(str(int(value)))
    if isinstance(value, int):
        return Immediate(str(value))
    if _is_float(value):
        return float_constant(float(value), None)
    if isinstance(value, list | tuple):
        return Vector(tuple(node(item) for item in value))
    return parse_operand(str(value))


def coerced(value: OperandLike, spec: Specification, form: Subject) -> Operand | None:
    """The node of an operand; adds brackets and parentheses, and spells a float constant for its type."""
    if value is None or isinstance(value, Arguments):
        return value
    if isinstance(spec, specs.ArgumentsSpec):
        return Arguments(tuple(node(item) for item in (value if isinstance(value, list | tuple) else [value])))
    if _is_float(value) and isinstance(spec, specs.SourceSpec):
        return float_constant(float(value), type_of(spec.type, form))
    if isinstance(spec, specs.AccumulatorSpec) and isinstance(value, list | tuple):
        width = TYPES["b64"] if type_of(spec.type, form).bits == 64 else None
        return Vector(tuple(float_constant(float(each), width) if _is_float(each) else node(each) for each in value))
    made = node(value)
    if isinstance(spec, specs.AddressSpec) and not isinstance(made, Address):
        return parse_operand(f"[{made}]")
    return made


def _is_float(value: OperandLike) -> bool:
    """Whether it is a Python or NumPy float."""
    return isinstance(value, Real) and not isinstance(value, Integral)


def float_constant(value: float, type: Type | None) -> Immediate:
    """A float as PTX text: as given for .f32 and .f64, in bits (`0f`, `0d`) where PTX takes or has no decimal for it.

    Raises ValueError where it does not fit.
    """
    is_double = type is not None and type.bits == 64
    bits = _bits("0d", ">d", value) if is_double else _bits("0f", ">f", value)
    # ptxas refuses subnormal doubles in decimals (measured, ptxas 13.5).
    plain = math.isfinite(value) and (value == 0 or abs(value) >= 2.0**-1022)
    return Immediate(repr(value) if type is not None and type.kind == "float" and plain else bits)


def _bits(prefix: str, format: str, value: float) -> str:
    try:
        return prefix + struct.pack(format, value).hex().upper()
    except OverflowError:
        raise ValueError(f"{value} does not fit .f32") from None


class Declarations:
    """The declarations of the registers that a typed call was given; names that came as text are unknown."""

    texture_mode: TextureMode = "unified"

    def __init__(self, values: Iterable[OperandLike]) -> None:
        self._symbols: dict[str, Symbol] = {}
        for value in values:
            self._add(value)

    def _add(self, value: OperandLike) -> None:
        if isinstance(value, list | tuple):
            for each in value:
                self._add(each)
        elif not isinstance(value, str | int | float | Operand) and isinstance(value, Declared):
            self._symbols[value.symbol.name] = value.symbol

    def __bool__(self) -> bool:
        return bool(self._symbols)

    def __call__(self, name: str) -> Symbol | None:
        return self._symbols.get(name) or special_register(name)

    def cover(self, operand: Operand) -> bool:
        """Whether the operand has names, and each is declared."""
        names = set(_names(operand))
        return bool(names) and all(self(name) is not None for name in names)


def _names(operand: Operand) -> Iterable[str]:
    match operand:
        case Name():
            yield operand.text
        case Vector() | Arguments():
            for each in operand.elements:
                yield from _names(each)
        case Negation():
            yield from _names(operand.operand)
        case Pair():
            yield from _names(operand.first)
            yield from _names(operand.second)
        case Address():
            yield from _names(operand.base)
            for each in operand.more:
                yield from _names(each)
