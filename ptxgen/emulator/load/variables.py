"""Addresses of variables: in global and constant memory, in a CTA's shared memory, in the stack frames of threads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from ptxgen import syntax
from ptxgen.emulator.memory.shared_memory import RESERVED_BYTES
from ptxgen.instr.model.types import TYPES

_WORD = re.compile(r"[A-Za-z_$%][\w$]*")
Space = Literal["global", "const", "shared", "local", "param", "code"]


@dataclass(frozen=True, slots=True)
class Location:
    """A variable: its state space and its address there, in bytes. `param` are an entry's parameters.

    Addresses of `local` count from the frame of the function: the variables of a function and its parameters in memory.
    A variable in global memory has the number `symbol` of the module; `Image.addresses` says where it was loaded.
    `element` are the bytes of an element, a vector or a scalar; `unit` those by which an index counts (PTX ISA 6.4.2),
    which are those of the scalar type: 8 for v[2] of .v4 .f32 v[8], 12 for m[3] of .b32 m[4][8] (SASS of ptxas 13.5).
    """

    space: Space
    address: int
    size: int = 0
    symbol: int | None = None
    element: int = 1
    unit: int = 1


def named(variable: syntax.Variable) -> Iterator[tuple[str, int, syntax.Declarator]]:
    """(name, bytes, declarator) of all that a statement declares; 0 bytes is an array without a size."""
    kind = TYPES.get(variable.type)
    if kind is None or kind.kind == "opaque":
        return
    for declarator in variable.declarators:
        element = kind.bytes * (variable.vector or 1)
        dims: list[int] = [extent or 0 for extent in declarator.dims]
        if dims and not dims[0] and isinstance(declarator.initializer, syntax.Initializer):
            dims[0] = len(declarator.initializer.elements)
        if declarator.count is None:
            yield declarator.name, element * prod(dims), declarator
        else:
            for number in range(declarator.count):
                yield f"{declarator.name}{number}", element * prod(dims), declarator


def element_bytes(variable: syntax.Variable) -> int:
    """The size of an element of an array, or of the variable if it is none."""
    kind = TYPES.get(variable.type)
    return (kind.bytes if kind else 1) * (variable.vector or 1)


def scalar_bytes(declared: syntax.Variable | syntax.Parameter) -> int:
    """The size of a scalar of the type of a variable."""
    kind = TYPES.get(declared.type)
    return kind.bytes if kind else 1


def alignment(declared: syntax.Variable | syntax.Parameter) -> int:
    """The alignment of a variable: .align raises that of its type."""
    kind = TYPES.get(declared.type)
    return max(declared.align or 1, (kind.bytes if kind else 1) * (declared.vector or 1))


def up(value: int, multiple: int) -> int:
    """The next multiple."""
    return -(-value // multiple) * multiple


def _words(functions: Sequence[syntax.Function]) -> set[str]:
    """All words in the text of functions."""
    return {word for function in functions for word in _WORD.findall(function.text)}


def _used(module: syntax.Module, functions: Sequence[syntax.Function]) -> Iterator[syntax.Statement]:
    """The items of a module without the sized shared variables that only other functions than these name.

    Like ptxas 13.5, which counts what a kernel and its functions use: `nvcc -rdc=true` puts the shared variables of all
    kernels at the top of the module.
    """
    shared = [item for item in module.items if isinstance(item, syntax.Variable) and item.space.startswith("shared")]
    others = any(each.body is not None and each not in functions for each in module.functions)
    if not shared or not others:
        yield from module.items
        return
    words = _words(functions)
    unused = {id(item) for item in shared if not any(not size or name in words for name, size, _ in named(item))}
    yield from (item for item in module.items if id(item) not in unused)


class Variables:
    """The shared variables of a launch and the stack frames of its functions, the entry first."""

    def __init__(self, module: syntax.Module, functions: Sequence[syntax.Function]) -> None:
        #: The locations of the names that a statement declares (a variable, or the parameters of a function).
        self._locations: dict[int, dict[str, Location]] = {}
        #: Bytes of a function's frame, by its name: a multiple of what any frame is aligned to.
        self.frames: dict[str, int] = {}
        self._frame_alignment = 8
        self._shared_end, self._dynamic_alignment = RESERVED_BYTES, 1
        #: The shared variables with the bytes of their elements; one without a size is the dynamic shared memory.
        self.shared: list[tuple[str, Location, int]] = []
        dynamic: list[tuple[syntax.Variable, str]] = []
        own = (each for function in functions for each in statements_of(function.body))
        for item in (*_used(module, functions), *own):
            if isinstance(item, syntax.Variable) and item.space.startswith("shared"):
                dynamic.extend((item, name) for name in self._share(item))
        #: True: these functions name dynamic shared memory, which nvcc declares at the top of a module for all kernels.
        self.has_dynamic = bool(dynamic) and not _words(functions).isdisjoint(name for _, name in dynamic)
        #: The end of static shared memory, where the dynamic begins.
        self.shared_end = up(self._shared_end, self._dynamic_alignment)
        for item, name in dynamic:
            self._add(item, name, Location("shared", self.shared_end, 0, None, element_bytes(item), scalar_bytes(item)))
            self.shared.append((name, Location("shared", self.shared_end), 1))
        sizes = {function.name: self._frame(function) for function in functions}
        self.frames = {name: up(size, self._frame_alignment) for name, size in sizes.items()}

    def of(self, statement: syntax.Statement) -> Mapping[str, Location]:
        """What a statement declares, by name."""
        return self._locations.get(id(statement), {})

    def _add(self, statement: syntax.Statement, name: str, location: Location) -> None:
        self._locations.setdefault(id(statement), {})[name] = location

    def _share(self, variable: syntax.Variable) -> Iterator[str]:
        """Place shared variables with a size; gives the names of those without."""
        align = alignment(variable)
        for name, size, _ in named(variable):
            if not size:
                self._dynamic_alignment = max(self._dynamic_alignment, align)
                yield name
                continue
            start = up(self._shared_end, align)
            location = Location("shared", start, size, None, element_bytes(variable), scalar_bytes(variable))
            self._add(variable, name, location)
            self.shared.append((name, location, location.element))
            self._shared_end = start + size

    def _frame(self, function: syntax.Function) -> int:
        """Lay out a function's frame: its parameters in memory, then the variables of its blocks."""
        end = 0
        if function.kind == "func":
            for parameter in (*function.returns, *function.parameters):
                if parameter.space == "param":
                    end = self._local(function, parameter.name, end, parameter_bytes(parameter), alignment(parameter))
        return self._block(function.body, end) if function.body is not None else end

    def _block(self, block: syntax.Block, end: int) -> int:
        """Variables of a block; sibling blocks share their bytes."""
        for statement in block.statements:
            if isinstance(statement, syntax.Variable) and statement.space in ("local", "param"):
                for name, size, _ in named(statement):
                    end = self._local(statement, name, end, size, alignment(statement))
        inner = [self._block(each, end) for each in block.statements if isinstance(each, syntax.Block)]
        return max(inner, default=end)

    def _local(self, statement: syntax.Statement, name: str, end: int, size: int, align: int) -> int:
        """Place one in a frame; gives the frame's new end."""
        self._frame_alignment = max(self._frame_alignment, align)
        start = up(end, align)
        if isinstance(statement, syntax.Variable):
            location = Location("local", start, size, None, element_bytes(statement), scalar_bytes(statement))
        else:
            assert isinstance(statement, syntax.Function)
            formal = next(each for each in (*statement.returns, *statement.parameters) if each.name == name)
            location = Location("local", start, size, unit=scalar_bytes(formal))
        self._add(statement, name, location)
        return start + size


def parameter_bytes(parameter: syntax.Parameter) -> int:
    """The size of a parameter in memory."""
    kind = TYPES[parameter.type]
    return kind.bytes * (parameter.vector or 1) * prod(extent or 0 for extent in parameter.array or ())


def statements_of(block: syntax.Block | None) -> Iterator[syntax.Statement]:
    """The statements of a body, those of inner blocks too."""
    return syntax.walk(block.statements) if block is not None else iter(())
