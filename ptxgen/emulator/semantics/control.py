"""Control flow. PTX ISA 9.7.12."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ptxgen import syntax
from ptxgen.emulator.group import Group
from ptxgen.emulator.registers import Binder
from ptxgen.emulator.semantics import meaning
from ptxgen.instr import control

if TYPE_CHECKING:
    from ptxgen.emulator.program import Block, Operation
    from ptxgen.emulator.scheduler import Scheduler

_End = Callable[[Group, "Scheduler", "Block", "Operation"], None]


@meaning(control.bra, kind="end", leaves=True)
def branch(op: Any, binder: Binder, statement: syntax.Instruction, block: Block) -> _End:
    return lambda g, scheduler, block, operation: scheduler.move(g, block.target)


@meaning(control.ret, control.exit, kind="end", leaves=True)
def leave(op: Any, binder: Binder, statement: syntax.Instruction, block: Block) -> _End:
    return lambda g, scheduler, block, operation: scheduler.exit(g)
