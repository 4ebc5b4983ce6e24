"""Warp-level communication. PTX ISA 9.7.13."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.group import Group
from ptxgen.emulator.registers import Binder, Unmodelled
from ptxgen.emulator.semantics import meaning
from ptxgen.instr import warp

_LANES = np.arange(32, dtype=np.uint32)


@meaning(warp.elect)
def elect(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> Callable[[Group], None]:
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
def shuffle(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> Callable[[Group], None]:
    """The manual's algorithm: segments of lanes by the mask in bits 8-12 of c, clamped by its bits 0-4."""
    a, b, c = (binder.source(operand, "b32") for operand in (op.a, op.b, op.c))
    d = binder.destination(op.d, "b32")
    p = binder.destination(op.p, "pred") if op.p is not None else None
    mask = binder.source(op.mask, "u32")
    lane = _LANES.astype(np.int64)

    def run(g: Group) -> None:
        # Lanes that are named but not here would have to be waited for; lanes that are not named give anything.
        here = (g.active * (np.int64(1) << lane)).sum(axis=1, keepdims=True)
        if ((g.full(mask(g)).astype(np.int64) != here) & g.active).any():
            raise Unmodelled("shfl.sync by other lanes than its mask names")
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
