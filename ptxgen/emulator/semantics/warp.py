"""Warp-level communication. PTX ISA 9.7.13."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.group import Group
from ptxgen.emulator.registers import Binder
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
