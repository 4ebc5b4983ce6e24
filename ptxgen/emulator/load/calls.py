"""Calls of functions: which a kernel can reach, how arguments are passed, and where threads return to.

PTX ISA 7 (the ABI), 9.7.12.5. A call takes the lanes to the first block of the function; their `ret` takes them back. A
function has one set of registers for all calls, since a thread is in one call of it at a time; functions that can
reach themselves keep those of the outer call on the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.checks.registry import calls as registry
from ptxgen.emulator.load.operands import Binder, Unmodelled, numpy_type
from ptxgen.emulator.load.registers import Register
from ptxgen.emulator.load.variables import Location, statements_of
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.state.group import Group
from ptxgen.instr import control, move
from ptxgen.instr.model.types import TYPES, Type

if TYPE_CHECKING:
    from ptxgen.emulator.load.names import Names

#: Bytes of stack that a call takes at least.
_LEAST_FRAME = 256
#: The opcode of instructions that take the address of a function.
_MOVE = move.mov.form.opcode


class Passed(NamedTuple):
    """The bytes of a value, (warps, 32, bytes), and which of them were ever written (None: all)."""

    data: NDArray[np.uint8]
    written: NDArray[np.bool_] | None = None


Give = Callable[[Group], Passed]
Take = Callable[[Group, Passed], None]


@dataclass(eq=False)
class Callee:
    """A function as calls see it. `rank` is that of its first block, `saved` are the registers to keep in recursion."""

    function: syntax.Function
    names: Names
    frame: int
    rank: int = 0
    saved: list[Register] = field(default_factory=list)


@dataclass(slots=True)
class Site:
    """A call site: how arguments go in and results come out, and the pc to which the lanes return."""

    callee: Callee
    give: list[Give]
    take: list[Take]
    give_back: list[Give]
    take_back: list[Take]
    following: int


# Which functions a kernel reaches.


def reachable(module: syntax.Module, entry: syntax.Function) -> list[syntax.Function]:
    """The entry, and the functions that it can reach by name or through pointers."""
    bodies = {function.name: function for function in module.functions if function.body and function.kind == "func"}
    if not bodies:
        return [entry]
    for item in module.items:
        if isinstance(item, syntax.Directive) and item.name == "alias":
            name, target = item.arguments[0], item.arguments[-1]
            if target in bodies:
                bodies[name] = bodies[target]
    tables = [name for item in module.items if isinstance(item, syntax.Variable) for name in _initial_names(item)]
    found, waiting = {entry.name: entry}, [entry]
    names: Iterable[str] = tables
    while waiting:
        for name in (*names, *mentioned(waiting.pop())):
            function = bodies.get(name)
            if function is not None and function.name not in found:
                found[function.name] = function
                waiting.append(function)
        names = ()
    return list(found.values())


def mentioned(function: syntax.Function) -> Iterator[str]:
    """Names in calls, moves and lists of call targets: those of functions are among them."""
    for statement in statements_of(function.body):
        if isinstance(statement, syntax.Instruction):
            if statement.is_call or statement.opcode.partition(".")[0] == _MOVE:
                yield from (operand.text for operand in statement.operands if isinstance(operand, syntax.Name))
        elif isinstance(statement, syntax.Directive) and statement.name == "calltargets":
            yield from statement.arguments


def _initial_names(variable: syntax.Variable) -> Iterator[str]:
    waiting = [each.initializer for each in variable.declarators]
    while waiting:
        value = waiting.pop()
        if isinstance(value, syntax.Name):
            yield value.text
        elif isinstance(value, syntax.Initializer):
            waiting.extend(value.elements)


def callees_first(functions: Sequence[syntax.Function]) -> tuple[list[str], set[str]]:
    """The functions' names, each after those that it calls as far as can be, and which of them can reach themselves.

    A call may reach every function but the entry, which is the first; one through a pointer may reach all of them.
    """
    names = {function.name for function in functions}
    others = [function.name for function in functions[1:]]
    calls = {
        function.name: [name for name in mentioned(function) if name in others]
        + (others if _calls_pointer(function) else [])
        for function in functions
    }
    order: list[str] = []
    seen: set[str] = set()

    def visit(name: str) -> None:
        if name not in seen:
            seen.add(name)
            for called in calls[name]:
                visit(called)
            order.append(name)

    for function in functions:
        visit(function.name)
    recursive = {name for name in names if name in _reach(calls, name)}
    return order, recursive


def _calls_pointer(function: syntax.Function) -> bool:
    """Whether it has a call with two names: the pointer, and its signature."""
    for each in statements_of(function.body):
        if type(each) is not syntax.Instruction or not each.is_call:
            continue
        if sum(isinstance(operand, syntax.Name) for operand in each.operands) > 1:
            return True
    return False


def _reach(calls: dict[str, list[str]], name: str) -> set[str]:
    found: set[str] = set()
    waiting = list(calls[name])
    while waiting:
        called = waiting.pop()
        if called not in found:
            found.add(called)
            waiting.extend(calls[called])
    return found


# Values.


def elements(operand: syntax.Operand | None) -> tuple[syntax.Operand, ...]:
    """The arguments in a list, which may be missing."""
    return operand.elements if isinstance(operand, syntax.Arguments) else ()


def giver(binder: Binder, operand: syntax.Operand, formal: syntax.Parameter) -> Give:
    """Reads an argument: a register, a vector of them, a constant or a variable on the stack."""
    location = binder.location(operand)
    if location is not None:
        return _from_stack(location)
    if isinstance(operand, syntax.Name) and operand.text == "_":
        raise Unmodelled(f"the argument {operand}")
    given, type = _parts(binder, operand, formal)
    sources = [binder.source(each, type) for each in given]

    def give(g: Group) -> Passed:
        parts = [np.asarray(source(g)) for source in sources]
        whole = [np.ascontiguousarray(each if each.ndim == 3 else g.full(each)) for each in parts]
        return Passed(np.concatenate([_bytes(each, g.size, type) for each in whole], axis=-1))

    return give


def _bytes(values: NDArray[Any], warps: int, type: Type) -> NDArray[np.uint8]:
    """The bytes of each lane's value."""
    return values.view(np.uint8).reshape(warps, 32, type.bytes)


def taker(binder: Binder, operand: syntax.Operand, formal: syntax.Parameter) -> Take:
    """Writes a parameter or a result to a register, a vector of them or a variable on the stack."""
    location = binder.location(operand)
    if location is not None:
        return _to_stack(location)
    parts, type = _parts(binder, operand, formal)
    dtype, size = numpy_type(type), type.bytes
    destinations = [binder.destination(each, type) for each in parts]

    def take(g: Group, passed: Passed) -> None:
        for number, destination in enumerate(destinations):
            part = np.ascontiguousarray(passed.data[..., number * size : (number + 1) * size])
            words = part.view(dtype)
            destination(g, words if type.bits == 128 else words[..., 0])

    return take


def _parts(
    binder: Binder, operand: syntax.Operand, formal: syntax.Parameter
) -> tuple[tuple[syntax.Operand, ...], Type]:
    """The registers of an argument or result, and their type: that of the parameter, or untyped bits of another width.

    A vector register of other elements than the parameter's passes its bits (`.reg .v2 .b32` for `.b64`).
    """
    type = TYPES[formal.type]
    if formal.array is not None:
        raise Unmodelled(f"the argument {operand}")
    if isinstance(operand, syntax.Name) and operand.text == "_":
        return (operand,), type
    found, wanted = binder.vector(operand), formal.vector or 1
    if len(found) == wanted:
        return found, type
    name = f"b{type.bits * wanted // len(found)}"
    if name not in TYPES:
        raise Unmodelled(f"the argument {operand}")
    return found, TYPES[name]


def _on_stack(g: Group, location: Location) -> NDArray[np.int64]:
    """The offsets of the bytes of a variable on the stack of each active lane: (lanes, bytes).

    The frame of an inactive lane is that of another function, so the variable may not fit after it.
    """
    stack, active = g.machine.stack, g.active
    threads = (g.indices[:, None] * 32 + np.arange(32))[active]
    start = threads * stack.memory.pitch + stack.frame[g.warps][active] + location.address
    return start[:, None] + np.arange(location.size)


def _from_stack(location: Location) -> Give:
    if location.space != "local":
        raise Unmodelled(f"an argument in .{location.space}")

    def give(g: Group) -> Passed:
        at, memory, active = _on_stack(g, location), g.machine.stack.memory, g.active
        data = np.zeros((*active.shape, location.size), np.uint8)
        written = np.zeros(data.shape, np.bool_)
        data[active], written[active] = memory.data.reshape(-1)[at], memory.written.reshape(-1)[at]
        return Passed(data, written)

    return give


def _to_stack(location: Location) -> Take:
    def take(g: Group, passed: Passed) -> None:
        at, memory, active = _on_stack(g, location), g.machine.stack.memory, g.active
        memory.data.reshape(-1)[at] = passed.data[active]
        memory.written.reshape(-1)[at] = True if passed.written is None else passed.written[active]

    return take


# Calling and returning.


class MovesLanes(Protocol):
    """What sets the pc of the lanes of a group (`state.warps`)."""

    def move(self, group: Group, pc: int) -> None: ...


class Calls:
    """The functions of a program by name, and their call sites."""

    def __init__(self) -> None:
        self.callees: dict[str, Callee] = {}
        self._sites: list[Site] = []

    def site(self, binder: Binder, op: control.call | control.call_pointer, callee: Callee, following: int) -> int:
        """The number of a new call site. Raises Unmodelled if arguments and parameters do not match."""
        function = callee.function
        given, wanted = elements(op.arguments), elements(op.returns)
        if len(given) != len(function.parameters) or len(wanted) != len(function.returns):
            raise Unmodelled(f"a call of {function.name} with other arguments than it has")
        inside = Binder(binder.program, callee.names, in_entry=False)
        formals = [syntax.Name(each.name) for each in function.parameters]
        results = [syntax.Name(each.name) for each in function.returns]
        made = Site(
            callee,
            [giver(binder, *pair) for pair in zip(given, function.parameters, strict=True)],
            [taker(inside, *pair) for pair in zip(formals, function.parameters, strict=True)],
            [giver(inside, *pair) for pair in zip(results, function.returns, strict=True)],
            [taker(binder, *pair) for pair in zip(wanted, function.returns, strict=True)],
            following,
        )
        self._sites.append(made)
        return len(self._sites) - 1

    def enter(self, g: Group, number: int, warps: MovesLanes) -> None:
        """The lanes call a function. Raises MemoryFault when their stack is full."""
        site = self._sites[number]
        passed = [give(g) for give in site.give]
        g.machine.stack.push(g, number, max(site.callee.frame, _LEAST_FRAME), site.callee.saved)
        for take, value in zip(site.take, passed, strict=True):
            take(g, value)
        warps.move(g, site.callee.rank)

    def leave(self, g: Group, warps: MovesLanes) -> None:
        """The lanes return from their functions, each to where it was called."""
        numbers = g.machine.stack.site[g.warps].copy()
        for number in np.unique(numbers[g.active]):
            part = g.narrowed(numbers == number)
            assert part is not None
            site = self._sites[int(number)]
            passed = [give(part) for give in site.give_back]
            g.machine.stack.pop(part, site.callee.saved)
            for take, value in zip(site.take_back, passed, strict=True):
                take(part, value)
            warps.move(part, site.following)

    def through_pointer(
        self, functions: Mapping[int, str], addresses: NDArray[np.int64], active: NDArray[np.bool_]
    ) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """(function, lanes) of a call by address; `functions` are the names by address. Raises MemoryFault."""
        for address in np.unique(addresses[active]):
            name = functions.get(int(address))
            if name is None or name not in self.callees:
                raise MemoryFault(
                    registry.BAD_CALL, f"call to {int(address):#x}", rule="This is not the address of a function"
                )
            yield name, active & (addresses == address)
