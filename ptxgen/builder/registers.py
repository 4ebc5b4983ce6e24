"""Registers and labels of a kernel under construction: unique names, declared types, `.reg` lines."""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.instr.model.operands import Symbol
from ptxgen.instr.model.special import special_register
from ptxgen.instr.model.symbols import TextureMode
from ptxgen.instr.model.types import TYPES


@dataclass(frozen=True, slots=True)
class Register:
    """A declared register: `%name` of a PTX type."""

    name: str
    type: str

    def __str__(self) -> str:
        return self.name


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
        """A new register of a type (`u32`, `pred`, ...)."""
        chosen = self._unique("%" + name)
        self._symbols[chosen] = Symbol(chosen, "register", TYPES[type])
        self._by_type.setdefault(type, []).append(chosen)
        return Register(chosen, type)

    def many(self, type: str, name: str, count: int) -> list[Register]:
        """`count` new registers, `%name0` and so on."""
        return [self.one(type, f"{name}{index}") for index in range(count)]

    def label(self, name: str) -> str:
        """A new label."""
        chosen = self._unique("$" + name)
        self._symbols[chosen] = Symbol(chosen, "label")
        return chosen

    def define(self, symbol: Symbol) -> None:
        """Make a variable or parameter known."""
        self._taken.add(symbol.name)
        self._symbols[symbol.name] = symbol

    def __call__(self, name: str) -> Symbol | None:
        """Resolve a name, as `ptxgen.instr` asks for it."""
        return self._symbols.get(name) or special_register(name)

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
