"""When tcgen05 operations are done, and what they are ordered with. PTX ISA 9.7.16.11 and 9.7.16.12."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxgen import syntax
from ptxgen.emulator.group import Group
from ptxgen.emulator.machine import Machine
from ptxgen.emulator.registers import Binder, Unmodelled
from ptxgen.emulator.semantics import meaning
from ptxgen.emulator.semantics.mbarrier import each
from ptxgen.emulator.semantics.tcgen05.pairs import one_cta
from ptxgen.instr import tcgen05

_Run = Callable[[Group], None]


@meaning(tcgen05.commit)
def commit(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    one_cta(op.cta_group)
    if op.multicast:
        raise Unmodelled("multicast")
    address = binder.address(op.mbar)

    def run(g: Group) -> None:
        machine = g.machine
        for row, _, (place,) in each(g, address(g)):
            _arrive_when_done(machine, row, _commit_place(machine, row, place, op.space, statement), statement)

    return run


def _commit_place(
    machine: Machine, row: int, place: int, space: str | None, statement: syntax.Instruction
) -> tuple[int, int]:
    """The mbarrier's slot and offset. A shared address as a generic one works too: UTCBAR takes its low 32 bits (ptxas
    13.5).
    """
    if space is None and place < 1 << 32:
        machine.findings.add(
            "generic-shared-address",
            f"{place:#x} is an address in shared memory, but without .shared::cluster the operand is a generic address",
            statement,
            severity="advice",
        )
        space = "shared::cluster"
    return machine.clusters.locate(row, place, space)


def _arrive_when_done(machine: Machine, row: int, place: tuple[int, int], statement: syntax.Instruction) -> None:
    """Arrive on the mbarrier at `place` (slot, offset) when the earlier operations of the warp's CTA are done."""
    issuer, (slot, offset) = int(machine.row_slot[row]), place
    barrier = machine.mbarrier(slot, offset, row, statement)
    given = None
    if machine.ordering is not None:
        given = machine.ordering.release(row)
        # All earlier operations, those of earlier commits too (9.7.16.12.1); what everybody knows is dropped.
        earlier = [n for n in machine.tensor_operations.get(issuer, ()) if n in machine.ordering.operations]
        machine.tensor_operations[issuer] = earlier
        given.operations.update(earlier)

    def arrive() -> None:
        barrier.release(given)
        barrier.arrive(1)
        barrier.last_arrival = statement
        machine.settle(slot, barrier)

    machine.submit(issuer, statement, arrive, pipe=("tensor core", issuer))


@meaning(tcgen05.fence)
def fence(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    def run(g: Group) -> None:
        ordering = g.machine.ordering
        if ordering is not None and op.where == "after_thread_sync":
            for row in g.indices:
                ordering.after_thread_sync(int(row))

    return run
