"""Communication among the lanes of a warp. PTX ISA 9.7.9.6 and 9.7.13.9 to 14."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.arithmetic.single import NAN
from ptxgen.emulator.group import Group
from ptxgen.emulator.registers import Binder, Unmodelled
from ptxgen.emulator.semantics import meaning
from ptxgen.instr import warp

_Run = Callable[[Group], None]

_LANES = np.arange(32, dtype=np.uint32)
_BITS = np.uint32(1) << _LANES


def lanes_of(flags: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Flags of lanes (..., 32) as a mask (...): bit n is lane n."""
    return np.bitwise_or.reduce(np.where(flags, _BITS, np.uint32(0)), axis=-1)


class Members:
    """The lanes that execute an instruction together: for each lane those that its mask names."""

    def __init__(self, g: Group, mask: NDArray[np.uint32], statement: syntax.Instruction) -> None:
        here = lanes_of(g.active)[:, None]
        if ((mask != here) & g.active).any():
            raise Unmodelled(f"{statement.opcode.split('.')[0]}.sync by other lanes than its mask names")
        self.mask = mask & here
        self.active = g.active

    def reduce(self, function: np.ufunc, values: NDArray[Any], neutral: Any) -> NDArray[Any]:
        """A combination of the members' values (warps, 32), in every lane."""
        filled = np.where(self.active, values, np.asarray(neutral, values.dtype))
        return np.broadcast_to(function.reduce(filled, axis=1, keepdims=True, dtype=values.dtype), filled.shape)


def _members(binder: Binder, op: Any, statement: syntax.Instruction) -> Callable[[Group], Members]:
    mask = binder.source(op.mask, "u32")
    return lambda g: Members(g, g.full(mask(g), np.uint32), statement)


@meaning(warp.elect)
def elect(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    """The first lane of the mask; which one it is, PTX leaves open."""
    mask = binder.source(op.mask, "b32")
    d, p = binder.destination(op.d, "b32"), binder.destination(op.p, "pred")

    def run(g: Group) -> None:
        members = (np.asarray(mask(g)) >> _LANES) & np.uint32(1)
        inside = np.broadcast_to(members != 0, (g.size, 32)) & g.active
        leader = inside.argmax(axis=1).astype(np.uint32)[:, None]
        d(g, np.broadcast_to(leader, (g.size, 32)))
        p(g, (leader == _LANES) & inside)

    return run


@meaning(warp.shfl)
def shuffle(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    """The manual's algorithm: segments of lanes by the mask in bits 8-12 of c, clamped by its bits 0-4."""
    a, b, c = (binder.source(operand, "b32") for operand in (op.a, op.b, op.c))
    d = binder.destination(op.d, "b32")
    p = binder.destination(op.p, "pred") if op.p is not None else None
    members = _members(binder, op, statement)
    lane = _LANES.astype(np.int64)

    def run(g: Group) -> None:
        # Lanes that are named but not here would have to be waited for; lanes that are not named give anything.
        members(g)
        offset, control = (g.full(value(g)).astype(np.int64) for value in (b, c))
        offset, clamp, segment = offset & 31, control & 31, control >> 8 & 31
        highest = (lane & segment) | (clamp & ~segment)
        if op.mode == "up":
            wanted, inside = lane - offset, lane - offset >= highest
        else:
            wanted = {
                "down": lane + offset, "bfly": lane ^ offset, "idx": (lane & segment) | (offset & ~segment),
            }[op.mode]  # fmt: skip
            inside = wanted <= highest
        chosen = np.where(inside, wanted, lane)
        values = g.full(a(g))
        d(g, np.take_along_axis(values, chosen, axis=1))
        if p is not None:
            p(g, inside)

    return run


#: The operations of redux with the value that changes nothing.
_REDUCTIONS: dict[str, tuple[np.ufunc, dict[str, int]]] = {
    "add": (np.add, {"u32": 0, "s32": 0}),
    "min": (np.minimum, {"u32": 2**32 - 1, "s32": 2**31 - 1}),
    "max": (np.maximum, {"u32": 0, "s32": -(2**31)}),
    "and": (np.bitwise_and, {"u32": 2**32 - 1}),
    "or": (np.bitwise_or, {"u32": 0}),
    "xor": (np.bitwise_xor, {"u32": 0}),
}


@meaning(warp.redux, warp.redux_bits)
def reduce(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    type = getattr(op, "type", "u32")
    function, neutral = _REDUCTIONS[op.op]
    a, d, members = binder.source(op.a, type), binder.destination(op.d, type), _members(binder, op, statement)
    return lambda g: d(g, members(g).reduce(function, g.full(a(g)), neutral[type]))


@meaning(warp.redux_float)
def reduce_float(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    """Compared as integers, in which -0 is less than +0; NaNs win or do not count."""
    a, d, members = binder.source(op.a, "f32"), binder.destination(op.d, "f32"), _members(binder, op, statement)
    smaller = op.op == "min"
    function = np.minimum if smaller else np.maximum
    limit = np.int32(2**31 - 1) if smaller else np.int32(-(2**31))

    def run(g: Group) -> None:
        present = members(g)
        value = g.full(a(g))
        if op.abs:
            value = np.abs(value)
        nan = np.isnan(value)
        word = np.ascontiguousarray(value).view(np.int32)
        ordered = np.where(word < 0, word ^ np.int32(0x7FFFFFFF), word)
        best = present.reduce(function, np.where(nan, limit, ordered), limit)
        result = np.where(best < 0, best ^ np.int32(0x7FFFFFFF), best).view(np.float32)
        none = present.reduce(np.logical_or if op.NaN else np.logical_and, nan, not op.NaN)
        d(g, np.where(none, NAN, result))

    return run


@meaning(warp.vote)
def vote(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    a, d, members = binder.predicate(op.a), binder.destination(op.d, "pred"), _members(binder, op, statement)

    def run(g: Group) -> None:
        present, value = members(g), g.full(a(g))
        some, every = present.reduce(np.logical_or, value, False), present.reduce(np.logical_and, value, True)
        d(g, {"any": some, "all": every, "uni": some == every}[op.mode])

    return run


@meaning(warp.vote_ballot)
def ballot(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    a, d, members = binder.predicate(op.a), binder.destination(op.d, "b32"), _members(binder, op, statement)

    def run(g: Group) -> None:
        bits = np.where(g.full(a(g)), _BITS, np.uint32(0))
        d(g, members(g).reduce(np.bitwise_or, bits, 0))

    return run


@meaning(warp.activemask)
def active_mask(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    """The lanes that the emulator runs together here; which they are, PTX leaves open."""
    d = binder.destination(op.d, "b32")
    return lambda g: d(g, np.broadcast_to(lanes_of(g.active)[:, None], (g.size, 32)))
