"""When tcgen05 operations are done, and what they are ordered with. PTX ISA 9.7.16.11 and 9.7.16.12."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxgen import syntax
from ptxgen.emulator.checks.mbarrier.transactions import Signal
from ptxgen.emulator.checks.registry import memory
from ptxgen.emulator.load.operands import Binder
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.mbarrier import each
from ptxgen.emulator.semantics.tcgen05.pairs import advise_one_lane, pipe_of
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import Machine
from ptxgen.instr import tcgen05

_Run = Callable[[Group], None]


@semantics(tcgen05.commit)
def commit(op: Any, binder: Binder, statement: syntax.Instruction) -> _Run:
    """One arrival on the mbarrier, or on those at its offset in the CTAs that a multicast mask names."""
    address = binder.address(op.mbar)
    mask = binder.source(op.mask, "b16") if op.multicast else None

    def run(g: Group) -> None:
        machine = g.machine
        advise_one_lane(g, address(g), statement)
        for row, _, (place, chosen) in each(g, address(g), mask(g) if mask is not None else 0):
            slot, offset = _commit_place(machine, row, place, op.space, statement)
            slots = machine.clusters.multicast(slot, chosen) if mask is not None else [slot]
            _arrive_when_done(machine, row, op.cta_group, [(each, offset) for each in slots], statement)

    return run


def _commit_place(
    machine: Machine, row: int, place: int, space: str | None, statement: syntax.Instruction
) -> tuple[int, int]:
    """The mbarrier's slot and offset. A shared address as a generic one works too: UTCBAR takes its low 32 bits (ptxas
    13.5).
    """
    if space is None and place < 1 << 32:
        access = machine.findings.access("issuer", statement, row, space="shared", address=place & 0xFFFFFF)
        machine.findings.report(
            memory.GENERIC_SHARED_ADDRESS,
            statement,
            summary=f"{access} takes {place:#x}, an address in the shared window",
            rule="Without .shared::cluster the operand is a generic address",
            accesses=(access,),
        )
        space = "shared::cluster"
    return machine.clusters.locate(row, place, space)


def _arrive_when_done(
    machine: Machine, row: int, cta_group: int, places: list[tuple[int, int]], statement: syntax.Instruction
) -> None:
    """Arrive on the mbarriers at (slot, offset) when the earlier operations of the warp's CTA are done."""
    issuer = int(machine.row_slot[row])
    signal = Signal(statement, 0)
    barriers = [(slot, machine.promise(slot, offset, row, signal)) for slot, offset in places]
    if machine.happens_before is not None:
        machine.happens_before.tensor_fences.before_thread_sync(row)  # implied (9.7.16.12.1)
        signal.given = machine.happens_before.release(row)
        # All earlier operations, those of earlier commits too (9.7.16.12.1); what everybody knows is dropped.
        earlier = [n for n in machine.tensor_operations.get(issuer, ()) if n in machine.happens_before.operations]
        machine.tensor_operations[issuer] = earlier
        signal.given.operations.update(earlier)
        for each in map(machine.happens_before.operations.__getitem__, earlier):
            each.mbarrier = places[0][1] if each.mbarrier is None else each.mbarrier
        for slot, _ in places:
            if slot != issuer:
                operation = machine.happens_before.operation("tcgen05.commit", statement, issuer)
                machine.happens_before.exits.arrives(slot, operation.number)
                earlier.append(operation.number)  # who waits for this, or a later one, knows that it has come
                signal.given.operations.add(operation.number)

    def arrive() -> None:
        for slot, barrier in barriers:
            machine.arrive_on(slot, barrier, signal)

    machine.submit(issuer, statement, arrive, pipe=pipe_of(machine, row, cta_group))


@semantics(tcgen05.fence)
def fence(op: Any, binder: Binder, statement: syntax.Instruction) -> _Run:
    def run(g: Group) -> None:
        happens_before = g.machine.happens_before
        if happens_before is None:
            return
        for row in map(int, g.indices):
            if op.where == "after_thread_sync":
                happens_before.after_thread_sync(row, g.machine.unfenced_waits.get(row))
            else:
                happens_before.before_thread_sync(row)

    return run
