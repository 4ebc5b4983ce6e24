"""Generic addresses. PTX ISA 9.7.9.20."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.group import Group
from ptxgen.emulator.memory.global_memory import PARAM_WINDOW, SHARED_WINDOW
from ptxgen.emulator.registers import Binder, Unmodelled
from ptxgen.emulator.semantics import meaning
from ptxgen.instr import address

_Run = Callable[[Group], None]

#: Where state spaces lie in the generic address space. Global addresses are generic addresses.
WINDOWS = {
    "global": 0, "shared": SHARED_WINDOW, "shared::cta": SHARED_WINDOW, "shared::cluster": SHARED_WINDOW,
    "param": PARAM_WINDOW, "param::entry": PARAM_WINDOW,
}  # fmt: skip


@meaning(address.cvta, address.cvta_to)
def convert_address(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    if op.space not in WINDOWS:
        raise Unmodelled(f"the generic address of .{op.space}")
    base = np.uint64(WINDOWS[op.space])
    a, d = binder.source(op.a, op.size), binder.destination(op.d, op.size)
    if isinstance(op, address.cvta):
        return lambda g: d(g, np.asarray(a(g)).astype(np.uint64) + base)
    return lambda g: d(g, np.asarray(a(g)).astype(np.uint64) - base)
