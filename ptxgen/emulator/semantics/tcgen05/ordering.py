"""Completion of tcgen05 operations, and their order with other threads. PTX ISA 9.7.16.11 and 9.7.16.12."""

from __future__ import annotations

from ptxgen import syntax
from ptxgen.emulator.checks.registry import memory
from ptxgen.emulator.load.operands import Binder, Unmodelled
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.semantics.mbarrier import each
from ptxgen.emulator.semantics.tcgen05.pairs import advise_one_lane, pipe_of
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import Machine
from ptxgen.emulator.state.signals import Signal
from ptxgen.instr import tcgen05


@semantics(tcgen05.commit, tcgen05.commit_multicast)
def commit(op: tcgen05.commit | tcgen05.commit_multicast, binder: Binder, statement: syntax.Instruction) -> Plain:
    """One arrival on the mbarrier, or on those at its offset in the CTAs that a multicast mask names."""
    if op.sync_restrict is not None:
        # Such an arrival orders the reads of A alone; that of a whole commit would hide what D and B still lack.
        raise Unmodelled(f"tcgen05.commit.sync_restrict::{op.sync_restrict}")
    address = binder.address(op.mbar)
    mask = binder.source(op.mask, "b32" if op.multicast == "cluster::32b" else "b16") if op.multicast else None

    def run(g: Group) -> None:
        machine = g.machine
        advise_one_lane(g, address(g), statement)
        for warp, lane, (place, chosen) in each(g, address(g), mask(g) if mask is not None else 0):
            slot, offset = _commit_place(machine, warp, place, op.space, statement)
            slots = machine.clusters.multicast(slot, chosen) if mask is not None else [slot]
            _arrive_when_done(machine, warp, lane, op.cta_group, [(each, offset) for each in slots], statement)

    return run


def _commit_place(
    machine: Machine, warp: int, place: int, space: str | None, statement: syntax.Instruction
) -> tuple[int, int]:
    """The mbarrier's slot and offset. A shared address as a generic one works too: UTCBAR takes its low 32 bits (ptxas
    13.5).
    """
    if space is None and place < 1 << 32:
        access = machine.findings.access("issuer", statement, warp, space="shared", address=place & 0xFFFFFF)
        machine.findings.report(
            memory.GENERIC_SHARED_ADDRESS,
            statement,
            summary=f"{access} takes {place:#x}, an address in the shared window",
            rule="Without .shared::cluster the operand is a generic address",
            accesses=(access,),
        )
        space = "shared::cluster"
    return machine.clusters.locate(warp, place, space)


def _arrive_when_done(
    machine: Machine,
    warp: int,
    lane: int,
    cta_group: int,
    places: list[tuple[int, int]],
    statement: syntax.Instruction,
) -> None:
    """Arrive on the mbarriers at (slot, offset) when the earlier operations of the warp's CTA are done."""
    issuer = int(machine.cta_slot[warp])
    signal = Signal(statement, 0)
    barriers = [(slot, machine.promise(slot, offset, warp, signal)) for slot, offset in places]
    pipe = pipe_of(machine, warp, cta_group)
    commits = [(slot, machine.issue("tcgen05.commit", statement, issuer, warp, lane, pipe=pipe)) for slot, _ in places]
    machine.events.tensor_committed(warp, signal, commits, places[0][1])

    def arrive() -> None:
        for slot, barrier in barriers:
            machine.arrive_on(slot, barrier, signal)

    machine.submit(issuer, statement, arrive, pipe=pipe, works=[work for _, work in commits])


@semantics(tcgen05.fence)
def fence(op: tcgen05.fence, binder: Binder, statement: syntax.Instruction) -> Plain:
    def run(g: Group) -> None:
        g.machine.events.tensor_fence(g.indices, g.active, before=op.where == "before_thread_sync")

    return run
