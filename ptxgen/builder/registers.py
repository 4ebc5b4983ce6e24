"""Registers and labels of a kernel under construction: unique names, declared types, `.reg` lines."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from typing import Protocol

from ptxgen.instr.model.form import Instruction, InstructionError, errors
from ptxgen.instr.model.operands import Problem, Symbol
from ptxgen.instr.model.special import special_register
from ptxgen.instr.model.symbols import TextureMode
from ptxgen.instr.model.types import TYPES

#: Types of registers. Values of the other formats live in untyped registers of their width.
_KINDS = ("bits", "unsigned", "signed", "float")
REGISTER_TYPES = (
    *(name for name, each in TYPES.items() if each.kind == "predicate" or (each.kind in _KINDS and each.bits >= 8)),
    "f16x2",
)
_NAME = re.compile(r"%?[\w$]+")


class RegisterError(ValueError):
    """A register of a type or name that PTX does not have."""


class Calculates(Protocol):
    """What appends the instructions of arithmetic on registers: `KernelBuilder`."""

    def arithmetic(
        self, operator: str, a: Register | float, b: Register | float, into: Register | None = None
    ) -> Register: ...


@dataclass(frozen=True, slots=True)
class Register:
    """A declared register: `%name` of a PTX type. Typed calls check the type.

    Arithmetic on registers of a KernelBuilder (+ - * // % << >> & | ^ with numbers or registers) appends one
    instruction and gives a new register with its result; `total += value` writes `total` itself, as loops must.
    """

    name: str
    type: str
    owner: Calculates | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.name

    @property
    def symbol(self) -> Symbol:
        """What the name stands for."""
        return Symbol(self.name, "register", TYPES[self.type])

    def _made(self, operator: str, a: Register | float, b: Register | float, into: Register | None = None) -> Register:
        if self.owner is None:
            raise RegisterError(f"{a} {operator} {b}: arithmetic is for registers of a KernelBuilder")
        return self.owner.arithmetic(operator, a, b, into)

    def __add__(self, other: Register | float) -> Register:
        return self._made("+", self, other)

    def __sub__(self, other: Register | float) -> Register:
        return self._made("-", self, other)

    def __mul__(self, other: Register | float) -> Register:
        return self._made("*", self, other)

    def __floordiv__(self, other: Register | float) -> Register:
        return self._made("//", self, other)

    def __mod__(self, other: Register | float) -> Register:
        return self._made("%", self, other)

    def __lshift__(self, other: Register | float) -> Register:
        return self._made("<<", self, other)

    def __rshift__(self, other: Register | float) -> Register:
        return self._made(">>", self, other)

    def __and__(self, other: Register | float) -> Register:
        return self._made("&", self, other)

    def __or__(self, other: Register | float) -> Register:
        return self._made("|", self, other)

    def __xor__(self, other: Register | float) -> Register:
        return self._made("^", self, other)

    def __radd__(self, other: float) -> Register:
        return self._made("+", other, self)

    def __rmul__(self, other: float) -> Register:
        return self._made("*", other, self)

    def __rsub__(self, other: float) -> Register:
        return self._made("-", other, self)

    def __iadd__(self, other: Register | float) -> Register:
        return self._made("+", self, other, self)

    def __isub__(self, other: Register | float) -> Register:
        return self._made("-", self, other, self)

    def __imul__(self, other: Register | float) -> Register:
        return self._made("*", self, other, self)

    def __ilshift__(self, other: Register | float) -> Register:
        return self._made("<<", self, other, self)

    def __irshift__(self, other: Register | float) -> Register:
        return self._made(">>", self, other, self)

    def __iand__(self, other: Register | float) -> Register:
        return self._made("&", self, other, self)

    def __ior__(self, other: Register | float) -> Register:
        return self._made("|", self, other, self)

    def __ixor__(self, other: Register | float) -> Register:
        return self._made("^", self, other, self)


class Registers:
    """The names of one kernel. A register or label whose name is taken gets a number after it."""

    texture_mode: TextureMode = "unified"

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._symbols: dict[str, Symbol] = {}
        self._by_type: dict[str, list[str]] = {}

    def _unique(self, name: str) -> str:
        chosen, number = name, 1
        while chosen in self._taken or special_register(chosen) is not None:
            chosen, number = f"{name}_{number}", number + 1
        self._taken.add(chosen)
        return chosen

    def one(self, type: str, name: str) -> Register:
        """A new register of a type (`u32`, `pred`, ...), called `%name`. Raises RegisterError."""
        _check(type, name)
        made = Register(self._unique("%" + name.removeprefix("%")), type)
        self._symbols[made.name] = made.symbol
        self._by_type.setdefault(type, []).append(made.name)
        return made

    def fixed(self, type: str, name: str) -> Register:
        """The register `%name` itself, declared unless it is. Raises RegisterError if it has another type."""
        _check(type, name)
        made = Register("%" + name.removeprefix("%"), type)
        known = self._symbols.get(made.name)
        if known is None:
            self.define(made.symbol)
            self._by_type.setdefault(type, []).append(made.name)
        elif known.type != made.symbol.type:
            raise RegisterError(f"{made.name} is declared {known.type}; blocks take it as .{type}")
        return made

    def many(self, type: str, name: str, count: int) -> list[Register]:
        """`count` new registers, `%name0` and so on."""
        return [self.one(type, f"{name}{index}") for index in range(count)]

    def label(self, name: str) -> str:
        """A new label."""
        chosen = self._unique("$" + name)
        self._symbols[chosen] = Symbol(chosen, "label")
        return chosen

    def define(self, symbol: Symbol) -> None:
        """Declare a variable or parameter."""
        self._taken.add(symbol.name)
        self._symbols[symbol.name] = symbol

    def __call__(self, name: str) -> Symbol | None:
        """Resolve a name for `ptxgen.instr`."""
        return self._symbols.get(name) or special_register(name)

    def check(self, made: Instruction) -> Instruction:
        """The instruction itself, if each name in it is declared here with a fitting type. Raises InstructionError."""
        problems = errors(made.operand_problems(self))
        if made.guard is not None:
            name = made.guard.lstrip("!")
            symbol = self(name)
            if symbol is None or symbol.type is None or symbol.type.kind != "predicate":
                found = "is not declared" if symbol is None else f"is declared {symbol.type or symbol.kind}"
                problems.append(Problem("guard", f"the guard must be a predicate, but {name} {found}"))
        if problems:
            raise InstructionError(made.form.key, problems)
        return made

    def declarations(self, width: int = 100) -> str:
        """The `.reg` lines, one type after the other."""
        lines: list[str] = []
        for type, names in self._by_type.items():
            line = f"    .reg .{type:<5}"
            for index, name in enumerate(names):
                end = ";" if index == len(names) - 1 else ","
                if len(line) + len(name) + 2 > width:
                    lines.append(line)
                    line = " " * 15
                line += f" {name}{end}"
            lines.append(line)
        return "\n".join(lines)


#: Names of PTX types in other languages.
_ALIASES = {
    "int": "s32",
    "long": "s64",
    "short": "s16",
    "char": "s8",
    "unsigned": "u32",
    "uint": "u32",
    "i1": "pred",
    "float": "f32",
    "double": "f64",
    "half": "b16",
    "bool": "pred",
    "predicate": "pred",
    **{f"int{bits}": f"s{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    **{f"i{bits}": f"s{bits}" for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
}


def meant_type(type: str) -> str:
    """What a type that PTX does not have may mean, as the end of a sentence."""
    bare = type.removeprefix(".").lower()
    if meant := bare if bare in REGISTER_TYPES else _ALIASES.get(bare):
        return f"did you mean {meant}?"
    if near := difflib.get_close_matches(bare, REGISTER_TYPES, n=2):
        return f"did you mean {' or '.join(near)}?"
    return f"there are {', '.join(REGISTER_TYPES)}"


def _check(type: str, name: str) -> None:
    if type not in REGISTER_TYPES:
        known = TYPES.get(type)
        if known is not None and known.kind == "packed" and f"b{known.bits}" in REGISTER_TYPES:
            advice = f"{type} values are held in registers of type b{known.bits}"
        else:
            advice = meant_type(type)
        raise RegisterError(f"PTX has no registers of type {type!r}; {advice}")
    if not _NAME.fullmatch(name):
        raise RegisterError(f"a register's name has letters, digits, _ and $, which {name!r} has not alone")
