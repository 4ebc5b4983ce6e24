"""Specifications of what texture and surface instructions take: opaque variables, samplers, coordinates.

PTX ISA 5.3 (opaque types), 9.7.10.1 (texture modes). A texture, sampler or surface is a variable of an opaque type, or
a 64-bit register with the address of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ptxgen.instr.model.operands.compound import AddressSpec, VectorSpec
from ptxgen.instr.model.operands.specification import (
    EXAMPLE_OPAQUE,
    RegisterSpec,
    SourceSpec,
    Specification,
    type_of,
    type_problem,
)
from ptxgen.instr.model.symbols import Problem, Resolver, Subject, TextureMode
from ptxgen.instr.model.types import TYPES, Type, holds
from ptxgen.syntax import Address, Name, Operand, Vector


def _opaque_problems(spec: Specification, base: Operand, type: str, resolve: Resolver | None) -> Iterator[Problem]:
    """Rules for a name that stands for an opaque variable of this type."""
    what = f"{spec.name} must be a .{type} variable or a 64-bit register with the address of one"
    if not isinstance(base, Name):
        yield Problem("operand-kind", f"{what}, not {base}")
    elif resolve is not None:
        symbol = resolve(base.text)
        if symbol is None:
            yield Problem("undeclared-name", f"{base} is not declared; {what}")
        elif symbol.kind == "register":
            assert symbol.type is not None
            if symbol.vector is not None or not holds(symbol.type, TYPES["u64"]):
                yield Problem("operand-type", f"{what}, but {base} is declared {symbol.type}")
        elif symbol.type is None or symbol.type.name != type:
            found = f"a {symbol.kind}" if symbol.type is None else f"a {symbol.kind} of type {symbol.type}"
            yield Problem("operand-kind", f"{what}, but {base} is {found}")


@dataclass(kw_only=True, slots=True)
class OpaqueSpec(AddressSpec):
    """`[a]` with an opaque variable, or with a register that holds the address of one.

    `unified_type` is the type instead of `type` in the unified texture mode. `sampler` names the operand which
    independent mode requires, and unified mode has not.
    """

    type: str
    unified_type: str | None = None
    sampler: str | None = None

    def problems(self, operand: Operand, form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        assert isinstance(operand, Address)
        mode: TextureMode = resolve.texture_mode if resolve is not None else "unified"
        wanted = self.unified_type or self.type if mode == "unified" else self.type
        if operand.has_offset or operand.unified:
            yield Problem("operand-kind", f"{self.name} must be [{operand.base}] alone, not {operand}")
        yield from _opaque_problems(self, operand.base, wanted, resolve)
        if self.sampler is not None and resolve is not None:
            given = getattr(form, self.sampler) is not None
            if given and mode == "unified":
                rule = "in the unified texture mode the .texref holds the sampler: [texture, coordinates]"
                yield Problem("texture-mode", f"{rule}; a separate sampler requires .target texmode_independent")
            elif not given and mode == "independent":
                rule = "in .target option texmode_independent the sampler is an operand"
                yield Problem("texture-mode", f"{rule}: [texture, sampler, coordinates]")

    def example(self, form: Subject, position: int) -> str:
        return f"[{EXAMPLE_OPAQUE[self.type]}]"

    def describe(self) -> str:
        return "a texture or surface in brackets"


@dataclass(kw_only=True, slots=True)
class SamplerSpec(Specification):
    """The sampler between texture and coordinates, in the independent texture mode."""

    def fits(self, operand: Operand) -> bool:
        return isinstance(operand, Name)

    def problems(self, operand: Operand, form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        yield from _opaque_problems(self, operand, "samplerref", resolve)

    def example(self, form: Subject, position: int) -> str:
        return EXAMPLE_OPAQUE["samplerref"]

    def describe(self) -> str:
        return "a sampler"


def _kind(item: Operand, resolve: Resolver) -> str | None:
    """What an element is: "constant", "special", "register", ..."""
    if not isinstance(item, Name):
        return "constant"
    symbol = resolve(item.text)
    return symbol.kind if symbol is not None else None


@dataclass(kw_only=True, slots=True)
class CoordinatesSpec(VectorSpec):
    """`{x, y}`: 1, 2 or 4 elements, at least `count`; the others are ignored.

    One coordinate may stand without braces. With `layered`, an integer stands first: the layer of an array.
    """

    layered: Callable[[Any], bool]

    def problems(self, operand: Operand, form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        needed = self.length(form)
        if isinstance(operand, Vector):
            found = len(operand.elements)
            if found < needed or found not in (1, 2, 4):
                yield self._length_problem(needed, f"{found}")
            else:
                yield from self._parts(operand.elements, form, resolve)
            return
        symbol = resolve(operand.text) if resolve is not None and isinstance(operand, Name) else None
        if symbol is not None and symbol.kind == "register" and symbol.vector is not None:
            if symbol.vector < needed:
                yield self._length_problem(needed, f"the {symbol.vector} of {operand}")
            elif problem := type_problem(self, operand, symbol, self._held(form), wide=False, vector=symbol.vector):
                yield problem
        elif needed > 1:
            if resolve is not None:
                yield self._length_problem(needed, f"{operand}")
        else:
            yield from RegisterSpec(name=self.name, type=self.type).problems(operand, form, resolve)

    def _length_problem(self, needed: int, found: str) -> Problem:
        legal = " or ".join(str(count) for count in (1, 2, 4) if count >= needed)
        return Problem("vector-length", f"{self.name} must have {legal} elements, not {found}")

    def _held(self, form: Subject) -> Type:
        """The type of the registers: those of floats, and those after a layer, may be any of 32 bits (measured)."""
        wanted = type_of(self.type, form)
        return TYPES["b32"] if wanted.kind == "float" or self.layered(form) else wanted

    def _parts(self, elements: Sequence[Operand], form: Subject, resolve: Resolver | None) -> Iterator[Problem]:
        if resolve is not None and len({_kind(item, resolve) for item in elements} & {"constant", "special"}) > 1:
            yield Problem("operand-kind", f"{self.name} cannot hold a special register and a constant at once")
        if self.layered(form):
            layer = SourceSpec(name=f"the layer of {self.name}", type="u32", special=True)
            yield from layer.problems(elements[0], form, resolve)
            elements = elements[1:]
        declared: list[Type] = []
        spec = SourceSpec(name=self.name, type=self.type, special=True)
        for item in elements:
            symbol = resolve(item.text) if resolve is not None and isinstance(item, Name) else None
            if symbol is None or symbol.vector is not None or symbol.kind not in ("register", "special"):
                yield from spec.problems(item, form, resolve)
            elif symbol.type is not None:
                special = symbol.kind == "special"
                declared.append(TYPES[f"b{max(symbol.widths)}"] if special else symbol.type)
        yield from self._element_types(declared, (), self._held(form))

    def example(self, form: Subject, position: int) -> str:
        held = VectorSpec(type=self._held(form).name, count=self.count)
        return held.example(form, position)
