"""Allocation of tensor memory. PTX ISA 9.7.16.7."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.arrays import all_set
from ptxgen.emulator.checks.registry import tcgen05 as tcgen05_checks
from ptxgen.emulator.load.operands import Binder
from ptxgen.emulator.memory.granules import GRANULE
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.barrier import require_whole_warps
from ptxgen.emulator.semantics.kinds import Blocking, Passing, Plain
from ptxgen.emulator.semantics.tcgen05.pairs import require_one_value, slots_of
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import Machine
from ptxgen.instr import tcgen05
from ptxgen.layouts.tmem import COLUMNS

if TYPE_CHECKING:
    from ptxgen.emulator.schedule.scheduler import Scheduler


@semantics(tcgen05.alloc, kind="blocking")
def alloc(op: tcgen05.alloc, binder: Binder, statement: syntax.Instruction) -> Blocking:
    """Warps block until there is room and, in a pair, until a warp of the peer allocates too.

    .exclusive takes all columns, whatever the operand says (SASS of ptxas 13.5).
    """
    destination, columns = binder.address(op.dst), binder.source(op.columns, "b32")

    def run(g: Group, scheduler: Scheduler) -> Passing:
        machine = g.machine
        require_whole_warps(g, statement)
        places, wanted = g.full(destination(g)), g.full(columns(g))
        require_one_value(g, wanted, "the number of columns", statement)
        passing = np.ones((g.size, 32), np.bool_)
        for warp in g.indices.tolist() if op.cta_group == 2 else ():
            slot = int(machine.cta_slot[warp])
            peer = next(each for each in slots_of(machine, warp, 2) if each != slot)
            machine.events.pair_allocates(warp, peer, statement)

        def served(position: int) -> bool:
            warp = int(g.indices[position])
            lanes = g.active[position]
            slots = slots_of(machine, warp, op.cta_group)
            size = COLUMNS if op.exclusive else int(wanted[position, lanes][0])
            column = machine.tensor.allocate(slots, int(machine.cta_slot[warp]), warp, size, statement)
            if column is None:
                return False
            _advise_size(machine, int(machine.cta_slot[warp]), size, statement)
            _write_address(machine, warp, int(places[position, lanes][0]), op.space, column, statement)
            machine.wake(("tmem", slots[0]))
            return True

        # Twice: warps that are not held yet cannot be woken, and an allocation serves the peer, tried before it, too.
        waiting = [position for position in range(g.size) if not served(position)]
        waiting = [position for position in waiting if not served(position)]
        passing[waiting] = False
        return lambda warp: ("tmem", slots_of(machine, warp, op.cta_group)[0]), None if all_set(passing) else passing

    return run


def _advise_size(machine: Machine, slot: int, size: int, statement: syntax.Instruction) -> None:
    """The number of columns should not increase between two allocations of a CTA (9.7.16.7.1)."""
    before = int(machine.tensor.last_size[slot])
    if 0 < before < size:
        machine.findings.report(
            tcgen05_checks.TMEM_ALLOCATION_GROWS,
            statement,
            summary=f"the CTA allocates {size} columns after {before}",
            rule="Allocations of a CTA should not grow, or CTAs may wait for each other",
        )
    machine.tensor.last_size[slot] = size


def _write_address(
    machine: Machine, warp: int, place: int, space: str | None, column: int, statement: syntax.Instruction
) -> None:
    """Write the address of an allocation to the CTA's shared memory."""
    slot, offset = machine.clusters.locate(warp, place, space)
    machine.shared.require(offset, 4, 4, "tcgen05.alloc")
    machine.shared.data[slot, offset : offset + 4].view(np.uint32)[0] = column
    mask = np.array([0xF << offset % GRANULE], np.uint16)
    machine.events.shared_stored(warp, np.array([offset // GRANULE]), mask, statement)
    machine.effects += 1


@semantics(tcgen05.dealloc, kind="blocking")
def dealloc(op: tcgen05.dealloc, binder: Binder, statement: syntax.Instruction) -> Blocking:
    """In a pair, a warp may have to wait for the peer's (9.7.16.7.1): here it does, except under `eager`."""
    address, columns = binder.source(op.taddr, "b32"), binder.source(op.columns, "b32")

    def run(g: Group, scheduler: Scheduler) -> Passing:
        machine = g.machine
        require_whole_warps(g, statement)
        places, wanted = g.full(address(g)), g.full(columns(g))
        require_one_value(g, places, "the address", statement)
        require_one_value(g, wanted, "the number of columns", statement)
        passing = np.ones((g.size, 32), np.bool_)
        for position, warp in enumerate(g.indices):
            warp = int(warp)
            lanes = g.active[position]
            slot = int(machine.cta_slot[warp])
            pair = _pair(machine, slot, op.cta_group)
            place, size = int(places[position, lanes][0]), int(wanted[position, lanes][0])
            size = COLUMNS if op.exclusive else size
            column = place & 0xFFFF
            if warp not in machine.tensor.freeing:
                machine.tensor.free(slot, place, size, statement, warp % machine.warps_per_cta)
                for peer in pair:
                    if peer != slot:
                        machine.events.pair_frees(warp, peer, range(column, column + size), statement)
                machine.events.tensor_freed(warp, slot, range(column, column + size), statement)
                machine.effects += 1
                machine.wake(("tmem", pair[0]))
        # Only now: the peer may be one of these warps, and warps that are not held yet cannot be woken.
        for position, warp in enumerate(g.indices):
            warp = int(warp)
            pair = _pair(machine, int(machine.cta_slot[warp]), op.cta_group)
            column = int(places[position, g.active[position]][0]) & 0xFFFF
            if machine.timeline.schedule != "eager" and any(column in machine.tensor.sizes[each] for each in pair):
                machine.tensor.freeing.add(warp)
                passing[position] = False
            else:
                machine.tensor.freeing.discard(warp)
        return lambda warp: ("tmem", _pair(machine, int(machine.cta_slot[warp]), op.cta_group)[0]), (
            None if all_set(passing) else passing
        )

    return run


def _pair(machine: Machine, slot: int, cta_group: int) -> Sequence[int]:
    return (slot,) if cta_group == 1 else machine.clusters.pair(slot)


@semantics(tcgen05.relinquish_alloc_permit)
def relinquish(op: tcgen05.relinquish_alloc_permit, binder: Binder, statement: syntax.Instruction) -> Plain:
    def run(g: Group) -> None:
        require_whole_warps(g, statement)
        g.machine.tensor.relinquished[g.machine.cta_slot[g.indices]] = True

    return run
