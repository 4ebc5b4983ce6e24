"""A loaded module: its global and constant variables in memory, with their initial values.

PTX ISA 5.4.4: what has no initial value is zero. A plain name stands for the address in the variable's own state space,
`generic(name)` for its generic address.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.load.constants import constant
from ptxgen.emulator.load.variables import Location, alignment, element_bytes, named, scalar_bytes, up
from ptxgen.emulator.memory.bank import Bank
from ptxgen.emulator.memory.global_memory import CODE_WINDOW, CONST_WINDOW, Contents, GlobalMemory
from ptxgen.instr.model.types import TYPES, Type

#: Bytes of code that each function seems to have.
_CODE_BYTES = 256


class Layout:
    """The addresses of a module's variables and functions that no device decides: `locations` has them by name.

    Global variables have a symbol, the number under which `Image.addresses` has their address.
    """

    def __init__(self, module: syntax.Module) -> None:
        self.locations: dict[str, Location] = {}
        self.functions = {item.name: item for item in module.functions if item.body is not None}
        for number, name in enumerate(self.functions, 1):
            self.locations[name] = Location("code", CODE_WINDOW + number * _CODE_BYTES, _CODE_BYTES)
        #: The function to which a pointer leads, by its address.
        self.function_at = {self.locations[name].address: name for name in self.functions}
        for item in module.items:
            if isinstance(item, syntax.Directive) and item.name == "alias":
                name, target = item.arguments[0], item.arguments[-1]
                if target in self.functions:
                    self.locations[name] = self.locations[target]
                    self.functions[name] = self.functions[target]
        #: Variables of any body, by where they are declared.
        self._of: dict[tuple[int, int], dict[str, Location]] = {}
        every = (item for item in module.statements() if isinstance(item, syntax.Variable))
        self.variables = [item for item in every if _is_defined(item)]
        self.constant_bytes = symbols = 0
        for variable in self.variables:
            for name, size, _ in named(variable):
                if variable.space == "global":
                    self._add(
                        variable,
                        name,
                        Location("global", 0, size, symbols, element_bytes(variable), scalar_bytes(variable)),
                    )
                    symbols += 1
                else:
                    start = up(self.constant_bytes, alignment(variable))
                    self._add(
                        variable,
                        name,
                        Location("const", start, size, None, element_bytes(variable), scalar_bytes(variable)),
                    )
                    self.constant_bytes = start + size
        for item in module.items:
            self.locations.update(self.of(item))
        nowhere = [0] * symbols
        for variable in self.variables:
            for name, size, declarator in named(variable):
                try:
                    self.initial(variable, declarator, size, nowhere)
                except ValueError:  # it holds the address of an undefined symbol: its use ends as incomplete
                    self.locations.pop(name, None)

    def of(self, statement: syntax.Statement) -> dict[str, Location]:
        """What a statement declares, by name."""
        return self._of.get((statement.line, statement.column), {})

    def _add(self, statement: syntax.Statement, name: str, location: Location) -> None:
        self._of.setdefault((statement.line, statement.column), {})[name] = location

    # Initial values.

    def initial(
        self, variable: syntax.Variable, declarator: syntax.Declarator, size: int, addresses: Sequence[int]
    ) -> bytes:
        """The initial bytes of a variable, empty where all are zero; `addresses` are those of the symbols. Raises
        ValueError.
        """
        if declarator.initializer is None:
            return b""
        data = bytearray(size)
        extents = [*declarator.dims, *([variable.vector] if variable.vector else [])]
        type = TYPES[variable.type]
        elements = _elements(declarator.initializer, [extent or 0 for extent in extents[1:]])
        if variable.type == "f16x2":
            # ptxas 13.5 takes the values, whatever braces are around them, for as many words as there are.
            type = TYPES["b32"]
            elements = itertools.islice(enumerate(value for _, value in elements), size // type.bytes)
        for index, value in elements:
            word = np.asarray(self._value(value, type, addresses)).tobytes()
            data[index * type.bytes : index * type.bytes + len(word)] = word
        return bytes(data)

    def _value(self, value: syntax.Operand, type: Type, addresses: Sequence[int]) -> object:
        """A constant, or an address, as a word of the type."""
        if not isinstance(value, syntax.Name | syntax.Expression):
            return constant(value, type)
        symbols: dict[str, int | float] = {}
        for name, generic in _names(value):
            location = self.locations.get(name)
            if location is not None:
                address = location.address if location.symbol is None else addresses[location.symbol]
                symbols[name] = address + (CONST_WINDOW if generic and location.space == "const" else 0)
        if not symbols and isinstance(value, syntax.Expression):
            return constant(value, type)
        number = value.evaluate(symbols) if isinstance(value, syntax.Expression) else symbols.get(value.text)
        if number is None:
            raise ValueError(f"{value} has no address here")
        return np.array(int(number) & ((1 << type.bits) - 1), f"u{type.bytes}")


class Image:
    """A module that is loaded into a device's memory: the addresses of its symbols, and its constant memory."""

    def __init__(self, layout: Layout, memory: GlobalMemory) -> None:
        #: Where each symbol lies in global memory.
        self.addresses: list[int] = []
        globals = [each for each in layout.variables if each.space == "global"]
        memory.require(sum(size for variable in globals for _, size, _ in named(variable)))
        for variable in globals:
            for name, size, declarator in named(variable):
                contents = _contents(name, size, variable, declarator)
                self.addresses.append(memory.allocate(size, contents, alignment(variable)))
        constants = bytearray(layout.constant_bytes)
        for variable in layout.variables:
            for name, size, declarator in named(variable):
                location = layout.of(variable)[name]
                try:
                    data = layout.initial(variable, declarator, size, self.addresses)
                except ValueError:
                    continue
                if location.symbol is not None:
                    memory.view(self.addresses[location.symbol], size)[:] = np.frombuffer(data, np.uint8) if data else 0
                elif data:
                    constants[location.address : location.address + size] = data
        self.constants = Bank(bytes(constants), "the constant variables")


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
