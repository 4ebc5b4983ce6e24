"""Clusters: addresses of peers, the cluster's barrier, dependent grids, taking over clusters that have not begun.

PTX ISA 9.7.9.23, 9.7.9.24, 9.7.13.3, 9.7.13.13, 9.7.13.17, 9.7.13.18.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.arrays import all_set, any_set
from ptxgen.emulator.checks.registry import clusters as registry
from ptxgen.emulator.checks.registry import memory
from ptxgen.emulator.load.operands import Binder
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.global_memory import POISON_BYTE, SHARED_WINDOW, WINDOW_BYTES
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.barrier import require_whole_warps
from ptxgen.emulator.semantics.kinds import Blocking, Passing, Plain
from ptxgen.emulator.semantics.mbarrier import each
from ptxgen.emulator.state.clusters import OFFSET_MASK, RANK_SHIFT
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import GRIDS_BEFORE, Machine
from ptxgen.emulator.state.signals import Signal
from ptxgen.instr import cluster

if TYPE_CHECKING:
    from ptxgen.emulator.schedule.scheduler import Scheduler


#: The highest rank that fits into an address of the shared window; no cluster has it.
_NOBODY = 0xFF


def _window(g: Group, addresses: NDArray[np.int64], space: str | None) -> NDArray[np.int64]:
    """Where the shared window begins among these addresses. Raises MemoryFault for others."""
    base = 0 if space is not None else SHARED_WINDOW
    inside = (addresses >= base) & (addresses < base + WINDOW_BYTES)
    if not all_set(inside | ~g.active):
        at = int(addresses[g.active & ~inside][0])
        raise MemoryFault(memory.NOT_SHARED, f"address {at:#x} is not in shared memory")
    return np.asarray(base, np.int64)


@semantics(cluster.mapa)
def map_address(op: cluster.mapa, binder: Binder, statement: syntax.Instruction) -> Plain:
    a, rank, d = binder.source(op.a, op.type), binder.source(op.cta, "u32"), binder.destination(op.d, op.type)
    word = np.uint32 if op.type == "u32" else np.uint64

    def run(g: Group) -> None:
        addresses, ranks = g.full(a(g)).astype(np.int64), g.full(rank(g)).astype(np.int64)
        base = _window(g, addresses, op.space)
        # CuTe DSL (4.8) has each lane of a warp map the rank of its number: only the use of the address matters.
        named = np.minimum(ranks, _NOBODY)
        d(g, (base | named << RANK_SHIFT | (addresses & OFFSET_MASK)).astype(word))

    return run


@semantics(cluster.getctarank)
def rank_of_address(op: cluster.getctarank, binder: Binder, statement: syntax.Instruction) -> Plain:
    a, d = binder.source(op.a, op.type), binder.destination(op.d, "u32")

    def run(g: Group) -> None:
        addresses = g.full(a(g)).astype(np.int64)
        base = _window(g, addresses, op.space)
        d(g, ((addresses - base) >> RANK_SHIFT).astype(np.uint32))

    return run


@semantics(cluster.arrive, kind="blocking")
def arrive(op: cluster.arrive, binder: Binder, statement: syntax.Instruction) -> Blocking:
    """Always passes; blocking because the scheduler counts the arrivals."""

    def run(g: Group, scheduler: Scheduler) -> Passing:
        if op.aligned:
            require_whole_warps(g, statement)
        scheduler.cluster_barriers.arrive(g, statement, relaxed=op.sem == "relaxed")
        return None, None

    return run


@semantics(cluster.wait, kind="blocking")
def wait(op: cluster.wait, binder: Binder, statement: syntax.Instruction) -> Blocking:
    def run(g: Group, scheduler: Scheduler) -> Passing:
        if op.aligned:
            require_whole_warps(g, statement)
        passing = scheduler.cluster_barriers.passing(g, statement)
        clusters = g.machine.clusters
        return lambda warp: ("cluster", clusters.of(int(clusters.cta_slot[warp]))), None if all_set(
            passing
        ) else passing

    return run


@semantics(cluster.griddepcontrol, kind="blocking")
def dependent_grids(op: cluster.griddepcontrol, binder: Binder, statement: syntax.Instruction) -> Blocking:
    """`schedule.grids` decides when the next grid begins, and when those before it have ended."""
    waits = op.action == "wait"

    def run(g: Group, scheduler: Scheduler) -> Passing:
        machine = g.machine
        if waits and machine.waits_for_grids():
            return lambda warp: GRIDS_BEFORE, np.zeros((g.size, 32), np.bool_)
        if waits:
            machine.events.grids_waited(g.indices)
        else:
            machine.released.update(machine.cta_number[machine.cta_slot[g.indices]].tolist())
            machine.releases = True
            machine.events.grid_released(g.indices)
        return None, None

    return run


#: Bytes of a response: x in word 0, y and z in the halves of word 1, in bit 0 of word 2 whether there is one. The
#: manual keeps it opaque (9.7.13.17); ptxas's code for query_cancel reads it so (SASS of ptxas 13.0 and 13.5).
_RESPONSE = 16


@semantics(cluster.try_cancel)
def try_cancel(op: cluster.try_cancel, binder: Binder, statement: syntax.Instruction) -> Plain:
    address, barrier = binder.address(op.addr), binder.address(op.mbar)

    def run(g: Group) -> None:
        machine, clusters = g.machine, g.machine.clusters
        for warp, _, (place, mbar) in each(g, address(g), barrier(g)):
            slot, offset = clusters.locate(warp, place, op.space)
            barrier_slot, barrier_offset = clusters.locate(warp, mbar, op.space)
            own = int(machine.cta_slot[warp])
            if slot != own or barrier_slot != own:
                raise MemoryFault(
                    registry.NOT_OWN_SHARED,
                    "clusterlaunchcontrol.try_cancel with an address in a peer CTA",
                    rule="Both addresses must be in the CTA's own shared memory",
                )
            slots = list(clusters.slots(clusters.of(own))) if op.multicast else [own]
            _request(machine, warp, slots, offset, barrier_offset, statement)

    return run


def _request(
    machine: Machine, warp: int, slots: list[int], offset: int, barrier: int, statement: syntax.Instruction
) -> None:
    """Queue the request; each slot gets the response at `offset`, and 16 bytes complete on its mbarrier."""
    machine.shared.require(offset, _RESPONSE, _RESPONSE, "clusterlaunchcontrol.try_cancel")
    own, signal = int(machine.cta_slot[warp]), Signal(statement, _RESPONSE)
    for slot in slots:
        machine.promise(slot, barrier, warp, signal)
    work = machine.issue("launch-control response", statement, own, warp)
    signal.operation = work.number
    machine.events.work_signals(work, signal, barrier)
    machine.events.response_issued(work, slots, np.array([offset // _RESPONSE]))

    def complete() -> None:
        taken = machine.cancel()
        words = np.zeros(4, np.uint32)
        if taken is not None:
            x, y, z = machine.clusters.ctas([taken])[0].tolist()
            words[:3] = x, y | z << 16, 1
        else:
            machine.events.response_refuses(work)
        for slot in slots:
            machine.shared.data[slot, offset : offset + _RESPONSE] = words.view(np.uint8)
            machine.complete_on(slot, barrier, signal)

    machine.submit(own, statement, complete, works=[work])


def _response(binder: Binder, operand: syntax.Operand) -> Callable[[Group], NDArray[np.uint32]]:
    """The words of a response: (warps, 32, 4)."""
    read = binder.source(operand, "b128")
    return lambda g: np.ascontiguousarray(read(g)).view(np.uint32).reshape(g.size, 32, 4)


@semantics(cluster.is_canceled)
def is_canceled(op: cluster.is_canceled, binder: Binder, statement: syntax.Instruction) -> Plain:
    response, p = _response(binder, op.response), binder.destination(op.p, "pred")
    return lambda g: p(g, _granted(response(g)))


def _granted(words: NDArray[np.uint32]) -> NDArray[np.bool_]:
    return (words[..., 2] & 1) == 1


def _first(g: Group, words: NDArray[np.uint32], statement: syntax.Instruction) -> NDArray[np.uint32]:
    """The coordinates, poison where the request was refused: only advice, since Gluon (Triton 3.9) reads them before
    is_canceled and discards them.
    """
    refused = ~_granted(words)
    if any_set(refused & g.active):
        g.machine.findings.report(
            registry.CANCEL_REFUSED,
            statement,
            summary=f"{statement.opcode.split('::')[0]} reads the CTA of a refusal",
            rule="Its value is undefined",
            severity="advice",
        )
    coordinates = np.stack([words[..., 0], words[..., 1] & 0xFFFF, words[..., 1] >> 16], axis=-1)
    return np.where(refused[..., None], np.uint32(0x01010101 * POISON_BYTE), coordinates)


@semantics(cluster.get_first_ctaid)
def first_coordinate(op: cluster.get_first_ctaid, binder: Binder, statement: syntax.Instruction) -> Plain:
    response, d, axis = _response(binder, op.response), binder.destination(op.d, "b32"), "xyz".index(op.dimension)
    return lambda g: d(g, _first(g, response(g), statement)[..., axis])


@semantics(cluster.get_first_ctaid_vector)
def first_cta(op: cluster.get_first_ctaid_vector, binder: Binder, statement: syntax.Instruction) -> Plain:
    response = _response(binder, op.response)
    destinations = [binder.destination(element, "b32") for element in binder.vector(op.d)]

    def run(g: Group) -> None:
        words = _first(g, response(g), statement)
        for axis, d in enumerate(destinations):
            d(g, words[..., axis] if axis < 3 else np.zeros_like(words[..., 0]))

    return run
