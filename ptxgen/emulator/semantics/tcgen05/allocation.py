"""Allocation of tensor memory. PTX ISA 9.7.16.7."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.checks.happens_before import UNIT
from ptxgen.emulator.group import Group
from ptxgen.emulator.registers import Binder, Unmodelled
from ptxgen.emulator.semantics import meaning
from ptxgen.emulator.semantics.barrier import require_whole_warps
from ptxgen.emulator.semantics.tcgen05.pairs import one_cta
from ptxgen.instr import tcgen05

if TYPE_CHECKING:
    from ptxgen.emulator.scheduler import Scheduler

_Run = Callable[[Group], None]


@meaning(tcgen05.alloc, kind="gate")
def alloc(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> Callable[..., Any]:
    one_cta(op.cta_group)
    _no_exclusive(op)
    destination, columns = binder.address(op.dst), binder.source(op.columns, "b32")

    def run(g: Group, scheduler: Scheduler) -> tuple[Callable[[int], object], NDArray[np.bool_] | None]:
        machine = g.machine
        require_whole_warps(g, statement)
        places, wanted = g.full(destination(g)), g.full(columns(g))
        passing = np.ones((g.size, 32), np.bool_)
        for position, row in enumerate(g.indices):
            row = int(row)
            lanes = g.active[position]
            slot = int(machine.row_slot[row])
            column = machine.tensor.allocate(slot, int(wanted[position, lanes][0]), statement)
            if column is None:
                passing[position] = False
                continue
            offset = machine.clusters.locate(row, int(places[position, lanes][0]), op.space)[1]
            machine.shared.require(offset, 4, 4, "tcgen05.alloc")
            machine.shared.data[slot, offset : offset + 4].view(np.uint32)[0] = column
            if machine.ordering is not None:
                mask = np.array([0xF << offset % UNIT], np.uint16)
                machine.ordering.write(row, np.array([offset // UNIT]), mask, statement)
            machine.effects += 1
        return lambda row: ("tmem", int(machine.row_slot[row])), None if passing.all() else passing

    return run


@meaning(tcgen05.dealloc)
def dealloc(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    one_cta(op.cta_group)
    _no_exclusive(op)
    address, columns = binder.source(op.taddr, "b32"), binder.source(op.columns, "b32")

    def run(g: Group) -> None:
        machine = g.machine
        require_whole_warps(g, statement)
        places, wanted = g.full(address(g)), g.full(columns(g))
        for position, row in enumerate(g.indices):
            row = int(row)
            lanes = g.active[position]
            slot = int(machine.row_slot[row])
            place, size = int(places[position, lanes][0]), int(wanted[position, lanes][0])
            machine.tensor.free(slot, place, size)
            if machine.ordering is not None:
                column = place & 0xFFFF
                machine.ordering.tensor_freed(row, slot, range(column, column + size), statement)
            machine.effects += 1
            machine.wake(("tmem", slot))

    return run


@meaning(tcgen05.relinquish_alloc_permit)
def relinquish(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    one_cta(op.cta_group)

    def run(g: Group) -> None:
        require_whole_warps(g, statement)
        g.machine.tensor.relinquished[g.machine.row_slot[g.indices]] = True

    return run


def _no_exclusive(op: Any) -> None:
    if op.exclusive:
        raise Unmodelled(".exclusive")
