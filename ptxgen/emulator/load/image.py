"""What a module's variables are in memory once it is loaded: global and constant ones, with their initial values.

PTX ISA 5.4.4: what has no initial value is zero. A plain name stands for the address in the variable's own state space,
`generic(name)` for its generic address.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.load.operands import constant
from ptxgen.emulator.load.variables import Place, alignment, named, up
from ptxgen.emulator.memory.bank import Bank
from ptxgen.emulator.memory.global_memory import CODE_WINDOW, CONST_WINDOW, Contents, GlobalMemory
from ptxgen.instr.model.types import TYPES, Type

#: Bytes of code that each function seems to have.
_CODE_BYTES = 256


class Image:
    """A loaded module: `places` has its variables and functions by name, `constants` its constant memory."""

    def __init__(self, module: syntax.Module, memory: GlobalMemory) -> None:
        self.places: dict[str, Place] = {}
        self.functions = {item.name: item for item in module.functions if item.body is not None}
        for number, name in enumerate(self.functions, 1):
            self.places[name] = Place("code", CODE_WINDOW + number * _CODE_BYTES, _CODE_BYTES)
        self._function_at = {self.places[name].address: name for name in self.functions}
        for item in module.items:
            if isinstance(item, syntax.Directive) and item.name == "alias":
                name, target = item.arguments[0], item.arguments[-1]
                if target in self.functions:
                    self.places[name] = self.places[target]
                    self.functions[name] = self.functions[target]
        #: Variables of any body, by where they are declared.
        self._of: dict[tuple[int, int], dict[str, Place]] = {}
        every = (item for item in module.statements() if isinstance(item, syntax.Variable))
        variables = [item for item in every if _is_defined(item)]
        constant_end = 0
        for variable in variables:
            for name, size, declarator in named(variable):
                if variable.space == "global":
                    address = memory.allocate(size, _contents(name, size, variable, declarator), alignment(variable))
                    self._add(variable, name, Place("global", address, size))
                else:
                    start = up(constant_end, alignment(variable))
                    self._add(variable, name, Place("const", start, size))
                    constant_end = start + size
        for item in module.items:
            self.places.update(self.of(item))
        constants = bytearray(constant_end)
        for variable in variables:
            for name, size, declarator in named(variable):
                place = self.of(variable)[name]
                try:
                    data = self._initial(variable, declarator, size)
                except ValueError:  # it holds the address of what is defined elsewhere: its use ends as incomplete
                    self.places.pop(name, None)
                    continue
                if place.space == "global":
                    memory.view(place.address, size)[:] = np.frombuffer(data, np.uint8)
                else:
                    constants[place.address : place.address + size] = data
        self.constants = Bank(bytes(constants), "the constant variables")

    def of(self, statement: syntax.Statement) -> dict[str, Place]:
        """What a statement declares, by name."""
        return self._of.get((statement.line, statement.column), {})

    def _add(self, statement: syntax.Statement, name: str, place: Place) -> None:
        self._of.setdefault((statement.line, statement.column), {})[name] = place

    def function_at(self, address: int) -> str | None:
        """The function to which a pointer leads."""
        return self._function_at.get(address)

    # Initial values.

    def _initial(self, variable: syntax.Variable, declarator: syntax.Declarator, size: int) -> bytes:
        data = bytearray(size)
        if declarator.initializer is not None:
            extents = [*declarator.dims, *([variable.vector] if variable.vector else [])]
            type = TYPES[variable.type]
            for index, value in _elements(declarator.initializer, [extent or 0 for extent in extents[1:]]):
                word = np.asarray(self._value(value, type)).tobytes()
                data[index * type.bytes : index * type.bytes + len(word)] = word
        return bytes(data)

    def _value(self, value: syntax.Operand, type: Type) -> object:
        """A constant, or an address, as a word of the type."""
        if not isinstance(value, syntax.Name | syntax.Expression):
            return constant(value, type)
        symbols: dict[str, int | float] = {}
        for name, generic in _names(value):
            place = self.places.get(name)
            if place is not None:
                symbols[name] = place.address + (CONST_WINDOW if generic and place.space == "const" else 0)
        if not symbols and isinstance(value, syntax.Expression):
            return constant(value, type)
        number = value.evaluate(symbols) if isinstance(value, syntax.Expression) else symbols.get(value.text)
        if number is None:
            raise ValueError(f"{value} has no address here")
        return np.array(int(number) & ((1 << type.bits) - 1), f"u{type.bytes}")


def _contents(name: str, size: int, variable: syntax.Variable, declarator: syntax.Declarator) -> Contents:
    element = TYPES[variable.type].bytes * (variable.vector or 1)
    shape = (size // element // prod(extent or 1 for extent in declarator.dims[1:]), *declarator.dims[1:])
    vector = f".v{variable.vector} " if variable.vector else ""
    return Contents(name, f"{vector}.{variable.type}", element, tuple(extent or 1 for extent in shape))


def _is_defined(item: syntax.Variable) -> bool:
    return item.space in ("global", "const") and item.linkage != "extern"


def _elements(value: syntax.Operand, inner: list[int]) -> Iterator[tuple[int, syntax.Operand]]:
    """(index, value) of the elements that nested braces give; `inner` are the extents inside the outermost."""
    if not isinstance(value, syntax.Initializer):
        yield 0, value
        return
    stride = prod(inner)
    for position, element in enumerate(value.elements):
        for index, each in _elements(element, inner[1:]):
            yield position * stride + index, each


def _names(value: syntax.Operand, generic: bool = False) -> Iterator[tuple[str, bool]]:
    """The names in an initial value, and whether they are in generic()."""
    if isinstance(value, syntax.Name):
        yield value.text, generic
    elif isinstance(value, syntax.Expression):
        for operand in value.operands:
            yield from _names(operand, generic or value.operator == "generic")
