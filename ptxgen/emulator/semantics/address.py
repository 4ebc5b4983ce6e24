"""Generic addresses. PTX ISA 9.7.9.19 and 9.7.9.20."""

from __future__ import annotations

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.load.operands import Binder
from ptxgen.emulator.memory.access import WINDOWS, in_window
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.state.group import Group
from ptxgen.instr import address


@semantics(address.isspacep, address.isspacep_32)
def in_space(op: address.isspacep | address.isspacep_32, binder: Binder, statement: syntax.Instruction) -> Plain:
    """The window of parameters lies in that of global memory (9.7.9.19)."""
    narrow = isinstance(op, address.isspacep_32)
    a, p, space = (
        binder.source(op.a, "u32" if narrow else "u64"),
        binder.destination(op.p, "pred"),
        op.space.split("::")[0],
    )

    def run(g: Group) -> None:
        addresses = np.asarray(a(g)).astype(np.int64)
        inside = in_window(addresses, space)
        p(g, inside | in_window(addresses, "param") if space == "global" else inside)

    return run


@semantics(address.cvta, address.cvta_to)
def convert_address(op: address.cvta | address.cvta_to, binder: Binder, statement: syntax.Instruction) -> Plain:
    base = np.uint64(WINDOWS[op.space.split("::")[0]])
    a, d = binder.source(op.a, op.size), binder.destination(op.d, op.size)
    if isinstance(op, address.cvta):
        return lambda g: d(g, np.asarray(a(g)).astype(np.uint64) + base)
    return lambda g: d(g, np.asarray(a(g)).astype(np.uint64) - base)
