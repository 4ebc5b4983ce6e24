"""Functions that the driver provides: vprintf, malloc, free, __assertfail (CUDA programming guide), and the condition
of a graph's node, cudaGraphSetConditional.

The output of a kernel appears when the launch ends, as on a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.device import LaunchError
from ptxgen.emulator.checks.registry import calls
from ptxgen.emulator.load.calls import Passed, elements, giver, taker
from ptxgen.emulator.load.operands import Binder, Unmodelled
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.access import locate, parts_of
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import Machine
from ptxgen.instr import control

#: A lane's arguments to what the function returns.
_Function = Callable[["Lane", list[int]], int]

_LONGEST = 4096
_CONVERSION = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+)?)?(hh|h|ll|l|j|z|t|L)?([diouxXcsfFeEgGaAp%])")
_WIDTHS = {"hh": 1, "h": 2, "l": 8, "ll": 8, "j": 8, "z": 8, "t": 8}


class Lane:
    """A thread that calls the system, and how it reads memory."""

    def __init__(self, machine: Machine, warp: int, lane: int) -> None:
        self.machine = machine
        mask = np.zeros((1, 32), np.bool_)
        mask[0, lane] = True
        self._group, self._lane = Group(machine, np.array([warp]), mask), lane

    def read(self, address: int, size: int) -> bytes:
        """Bytes at a generic address. Raises MemoryFault."""
        found = bytearray()
        for at in range(address, address + size):
            addresses = np.full((1, 32), at, np.int64)
            for part in parts_of(self._group, None, addresses):
                places = locate(part.group, part.space, part.addresses, 1, "a read of the system")
                found.append(int(places.data[places.offsets[0, self._lane]]))
        return bytes(found)

    def write(self, address: int, data: bytes) -> None:
        """Store bytes at a generic address. Raises MemoryFault."""
        for at, byte in enumerate(data, address):
            addresses = np.full((1, 32), at, np.int64)
            for part in parts_of(self._group, None, addresses):
                places = locate(part.group, part.space, part.addresses, 1, "a write of the system")
                places.data[places.offsets[0, self._lane]] = byte

    def text(self, address: int) -> str:
        """The string at a generic address."""
        found = bytearray()
        while len(found) < _LONGEST and (byte := self.read(address + len(found), 1)) != b"\0":
            found += byte
        return found.decode("utf-8", "replace")


def system_call(op: control.call, binder: Binder, name: str) -> Callable[[Group], None]:
    """Runs a call of a function that the module declares and does not define. Raises Unmodelled if it is unknown."""
    function = _FUNCTIONS.get(name)
    if function is None:
        raise Unmodelled(f"the function {name}, which the module does not define,")
    parameters, returns = function[1], function[2]
    given, wanted = elements(op.arguments), elements(op.returns)
    if len(given) != len(parameters) or len(wanted) > len(returns):
        raise Unmodelled(f"a call of {name} with other arguments than it has")
    gives = [giver(binder, each, _parameter(type)) for each, type in zip(given, parameters, strict=True)]
    takes = [taker(binder, each, _parameter(type)) for each, type in zip(wanted, returns, strict=False)]

    def run(g: Group) -> None:
        values = [_numbers(give(g)) for give in gives]
        results = np.zeros((g.size, 32), np.uint64)
        for position, lane in np.argwhere(g.active):
            caller = Lane(g.machine, int(g.indices[position]), int(lane))
            results[position, lane] = function[0](caller, [int(value[position, lane]) for value in values]) % 2**64
        for take, type in zip(takes, returns, strict=False):
            size = int(type[1:]) // 8
            take(g, Passed(np.ascontiguousarray(results).view(np.uint8).reshape(g.size, 32, 8)[..., :size]))

    return run


def _parameter(type: str) -> syntax.Parameter:
    return syntax.Parameter("value", type)


def _numbers(passed: Passed) -> NDArray[np.uint64]:
    wide = np.zeros((*passed.data.shape[:2], 8), np.uint8)
    wide[..., : passed.data.shape[2]] = passed.data
    return wide.view(np.uint64)[..., 0]


def _allocate(lane: Lane, arguments: list[int]) -> int:
    machine = lane.machine
    try:
        address = machine.memory.allocate(arguments[0])
    except LaunchError:  # malloc returns a null pointer
        return 0
    machine.events.heap_grows(machine.memory.extent)
    return address


def _free(lane: Lane, arguments: list[int]) -> int:
    if arguments[0]:
        lane.machine.memory.free(arguments[0])
    return 0


def _set_condition(lane: Lane, arguments: list[int]) -> int:
    """A handle of a condition is the address of its word (driver/native/graph_nodes.c)."""
    handle, value = arguments
    lane.write(handle, value.to_bytes(4, "little"))
    return 0


def _fail(lane: Lane, arguments: list[int]) -> int:
    message, file, line, function, _ = arguments
    where = f"{lane.text(file)}:{line}: {lane.text(function)}"
    raise MemoryFault(calls.ASSERTION, f"{where}: the assertion `{lane.text(message)}` does not hold", rule="")


def _print(lane: Lane, arguments: list[int]) -> int:
    template, buffer = lane.text(arguments[0]), arguments[1]
    values = _Values(lane, buffer)
    lane.machine.printed.append(_CONVERSION.sub(lambda match: _converted(match, values, lane), template))
    return values.count


class _Values:
    """The arguments of a printf, each on a multiple of its size."""

    def __init__(self, lane: Lane, address: int) -> None:
        self._lane, self._start, self._at, self.count = lane, address, 0, 0

    def take(self, size: int) -> bytes:
        self._at = -(-self._at // size) * size
        self._at += size
        self.count += 1
        return self._lane.read(self._start + self._at - size, size)

    def integer(self, size: int, signed: bool) -> int:
        """An integer that was promoted to an int at least."""
        return int.from_bytes(self.take(max(size, 4))[:size], "little", signed=signed)


def _converted(match: re.Match[str], values: _Values, lane: Lane) -> str:
    flags, width, precision, length, kind = match.groups()
    if kind == "%":
        return "%"
    width, precision = (str(values.integer(4, True)) if each == "*" else each for each in (width, precision))
    shape = f"%{flags}{width or ''}{f'.{precision or 0}' if '.' in match[0] else ''}"
    if kind == "s":
        return (shape + "s") % lane.text(values.integer(8, False))
    if kind == "p":
        return f"{values.integer(8, False):#x}"
    if kind == "c":
        return (shape + "c") % chr(values.integer(1, False))
    if kind in "fFeEgGaA":
        number = float(np.frombuffer(values.take(8), np.float64)[0])
        return number.hex() if kind in "aA" else (shape + kind) % number
    size = _WIDTHS.get(length or "", 4)
    return (shape + {"i": "d", "u": "d"}.get(kind, kind)) % values.integer(size, kind in "di")


#: The functions, with the types of their arguments and results.
_FUNCTIONS: dict[str, tuple[_Function, tuple[str, ...], tuple[str, ...]]] = {
    "vprintf": (_print, ("b64", "b64"), ("b32",)),
    "malloc": (_allocate, ("b64",), ("b64",)),
    "free": (_free, ("b64",), ()),
    "cudaGraphSetConditional": (_set_condition, ("b64", "b32"), ()),
    "__assertfail": (_fail, ("b64", "b64", "b32", "b64", "b64"), ()),
}
