"""Control flow. PTX ISA 9.7.12."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.checks.registry import calls as registry
from ptxgen.emulator.load.calls import elements
from ptxgen.emulator.load.operands import Binder, Unmodelled
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Terminator
from ptxgen.emulator.semantics.system_calls import system_call
from ptxgen.emulator.state.group import Group
from ptxgen.instr import control

if TYPE_CHECKING:
    from ptxgen.emulator.load.program import Block, Operation
    from ptxgen.emulator.schedule.scheduler import Scheduler


@semantics(control.bra, kind="terminator", leaves=True)
def branch(op: control.bra, binder: Binder, statement: syntax.Instruction) -> Terminator:
    target = binder.targets[0]
    return lambda g, scheduler, block, operation: scheduler.warps.move(g, target)


@semantics(control.brx_idx, kind="terminator", leaves=True)
def branch_by_index(op: control.brx_idx, binder: Binder, statement: syntax.Instruction) -> Terminator:
    """An index past the list is undefined (9.7.12.4): a fault here."""
    index, targets = binder.source(op.index, "u32"), binder.targets

    def run(g: Group, scheduler: Scheduler, block: Block, operation: Operation) -> None:
        numbers = g.full(index(g))
        for number in np.unique(numbers[g.active]):
            if number >= len(targets):
                raise MemoryFault(
                    registry.BRANCH_INDEX, f"brx.idx with index {number} of a list of {len(targets)} labels"
                )
            part = g.narrowed(numbers == number)
            if part is not None:
                scheduler.warps.move(part, targets[int(number)])

    return run


@semantics(control.ret, kind="terminator", leaves=True)
def go_back(op: control.ret, binder: Binder, statement: syntax.Instruction) -> Terminator:
    calls = binder.program.calls
    if binder.in_entry:
        return leave(op, binder, statement)
    return lambda g, scheduler, block, operation: calls.leave(g, scheduler.warps)


@semantics(control.exit, kind="terminator", leaves=True)
def leave(op: control.exit | control.ret, binder: Binder, statement: syntax.Instruction) -> Terminator:
    return lambda g, scheduler, block, operation: scheduler.exit(g)


@semantics(control.call, kind="terminator")
def call(op: control.call, binder: Binder, statement: syntax.Instruction) -> Terminator:
    calls, name = binder.program.calls, str(op.function)
    function = binder.program.layout.functions.get(name)
    if function is None:
        run = system_call(op, binder, name)

        def serve(g: Group, scheduler: Scheduler, block: Block, operation: Operation) -> None:
            run(g)
            scheduler.warps.move(g, binder.following)

        return serve
    site = calls.site(binder, op, calls.callees[function.name], binder.following)
    return lambda g, scheduler, block, operation: calls.enter(g, site, scheduler.warps)


@semantics(control.call_pointer, kind="terminator")
def call_pointer(op: control.call_pointer, binder: Binder, statement: syntax.Instruction) -> Terminator:
    """Calls the function whose address the register holds, if its parameters match."""
    calls, pointer = binder.program.calls, binder.source(op.pointer, "u64")
    names = binder.program.layout.function_at
    shape = len(elements(op.arguments)), len(elements(op.returns))
    sites: dict[str, int] = {}
    for name, callee in calls.callees.items():
        if shape == (len(callee.function.parameters), len(callee.function.returns)):
            with contextlib.suppress(Unmodelled):
                sites[name] = calls.site(binder, op, callee, binder.following)

    def run(g: Group, scheduler: Scheduler, block: Block, operation: Operation) -> None:
        addresses = g.full(pointer(g)).astype(np.int64)
        for name, lanes in calls.through_pointer(names, addresses, g.active):
            part = g.narrowed(lanes)
            assert part is not None
            if name not in sites:
                raise MemoryFault(
                    registry.BAD_CALL,
                    f"call to {name} through a pointer",
                    rule="Its arguments do not match the declaration",
                )
            calls.enter(part, sites[name], scheduler.warps)

    return run
