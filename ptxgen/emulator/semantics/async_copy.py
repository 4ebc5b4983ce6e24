"""Copies of single words from global to shared memory. PTX ISA 9.7.9.25.3, and 9.7.13.15.15 for their arrival on an
mbarrier.

They belong to the generic proxy: copies that a thread has waited for count as its own stores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.arrays import all_set, any_set
from ptxgen.emulator.checks.registry.memory import COPY_SIZE, MISALIGNED
from ptxgen.emulator.engines.cp_async import Copy, WarpCopies
from ptxgen.emulator.load.operands import Binder
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.access import locate
from ptxgen.emulator.memory.global_memory import HEAP_BASE
from ptxgen.emulator.memory.located import Bytes, MemoryAccess
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Blocking, Passing, Plain
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import Machine
from ptxgen.emulator.state.mbarriers import MBarrier
from ptxgen.emulator.state.signals import Signal
from ptxgen.instr import async_copy, mbarrier

if TYPE_CHECKING:
    from ptxgen.emulator.schedule.scheduler import Scheduler

#: Of each lane that copies, the offsets in shared memory and on the heap, and how many bytes it reads.
_Lanes = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


@semantics(async_copy.copy, async_copy.copy_ignore)
def copy(op: async_copy.copy | async_copy.copy_ignore, binder: Binder, statement: syntax.Instruction) -> Plain:
    size = int(op.size.evaluate())
    destination, source = binder.address(op.dst), binder.address(op.src)
    ignore = binder.predicate(op.ignore) if isinstance(op, async_copy.copy_ignore) else None
    given = op.src_size if isinstance(op, async_copy.copy) else None
    wanted = binder.source(given, "u32") if given is not None else None

    def run(g: Group) -> None:
        read = g.full(size if wanted is None else wanted(g)).astype(np.int64)
        if ignore is not None:
            read = np.where(ignore(g), 0, read)
        if any_set(read[g.active] > size):
            most = int(read[g.active].max())
            raise MemoryFault(COPY_SIZE, f"cp.async of {size} bytes has a src-size of {most} bytes")
        targets = np.ascontiguousarray(g.full(destination(g)))
        sources = _checked(g, np.ascontiguousarray(g.full(source(g))), read, size)
        places = locate(g, "shared", targets, size, "cp.async")
        _issue(g, places, sources, read, size, statement)

    return run


def _checked(g: Group, addresses: NDArray[np.int64], read: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Heap offsets of the sources. Whole copies are checked as loads are, others only in the bytes that they read."""
    machine = g.machine
    reading = g.narrowed(read > 0)
    offsets = addresses - HEAP_BASE
    if reading is None:
        return offsets
    chosen = np.isin(g.indices, reading.indices)
    misaligned = (addresses & (size - 1) != 0) & g.active & (read > 0)
    if any_set(misaligned):
        at = int(addresses[misaligned][0])
        raise MemoryFault(
            MISALIGNED,
            f"cp.async of {size} bytes reads from {at:#x}",
            rule=f"The source address must be a multiple of {size}",
        )
    whole = g.narrowed(read == size)
    if whole is not None:
        machine.memory.offsets(
            addresses[np.isin(g.indices, whole.indices)].view(np.uint64), size, whole.mask, "cp.async"
        )
    lanes = reading.active
    first, last = offsets[chosen][lanes], (offsets + read - 1)[chosen][lanes]
    machine.memory.require_mapped(first, "cp.async")
    machine.memory.require_mapped(last, "cp.async")
    return offsets


def _issue(
    g: Group,
    places: Bytes,
    sources: NDArray[np.int64],
    read: NDArray[np.int64],
    size: int,
    statement: syntax.Instruction,
) -> None:
    """Queue the copies of each warp; all at once where the schedule lets them complete at once."""
    machine, active = g.machine, g.active
    shared, offsets, inside = places.data, places.offsets, places.inside
    assert inside is not None
    events = machine.events
    written = MemoryAccess(g.indices, g.mask, "shared", places, size, statement)
    events.memory_requested(written)
    if events.observes("memory_requested") and any_set(reading := active & (read > 0)):
        source = Bytes(machine.memory.data, sources)
        events.memory_requested(MemoryAccess(g.indices, reading, "global", source, size, statement))
    at_once = machine.timeline.schedule == "eager"
    if at_once:
        _move(machine, shared, size, (offsets[active], sources[active], read[active]))
        machine.effects += 1
    works = [
        machine.issue("cp.async", statement, int(machine.cta_slot[warp]), warp, active[position].copy())
        for position, warp in enumerate(g.indices.tolist())
    ]
    events.copies_issued(works, written, sources, read)
    for position, work in enumerate(works):
        made = Copy(work, done=at_once)
        machine.copies.setdefault(work.warp, WarpCopies()).add(made)
        if at_once:
            events.work_completed(work)
        else:
            lanes = work.lanes
            where = (offsets[position][lanes], sources[position][lanes], read[position][lanes])
            _queue(machine, made, shared, where, size)


def _queue(machine: Machine, made: Copy, shared: NDArray[np.uint8], where: _Lanes, size: int) -> None:
    work = made.work

    def complete() -> None:
        _move(machine, shared, size, where)
        made.done = True
        machine.copies[work.warp].notice()
        machine.wake(("cp.async", work.warp))

    machine.submit(work.slot, work.statement, complete, works=[work])


def _move(machine: Machine, shared: NDArray[np.uint8], size: int, lanes: _Lanes) -> None:
    """Copy the bytes that are read, and zeros after them."""
    places, sources, read = lanes
    if all_set(read == size):
        words, kind = machine.memory.data, {4: np.uint32, 8: np.uint64, 16: np.complex128}[size]
        shared.view(kind)[places // size] = words.view(kind)[sources // size]
        return
    step = np.arange(size)
    wanted = step < read[:, None]
    data = machine.memory.data[np.where(wanted, sources[:, None] + step, 0)]
    shared[places[:, None] + step] = np.where(wanted, data, 0)


# Waiting.


@semantics(async_copy.commit_group)
def commit_group(op: async_copy.commit_group, binder: Binder, statement: syntax.Instruction) -> Plain:
    def run(g: Group) -> None:
        active = g.active
        for position, warp in enumerate(map(int, g.indices)):
            g.machine.copies.setdefault(warp, WarpCopies()).commit(active[position].copy())

    return run


def _wait(pending: int, commits: bool) -> Blocking:
    def run(g: Group, scheduler: Scheduler) -> Passing:
        machine, active = g.machine, g.active
        passing = np.ones((g.size, 32), np.bool_)
        for position, warp in enumerate(map(int, g.indices)):
            mine = machine.copies.get(warp)
            if mine is None:
                continue
            if commits and mine.open:
                mine.commit(active[position].copy())
            awaited = mine.awaited(active[position], pending)
            copies = [each_copy for group in awaited for each_copy in group.copies]
            if not all(each_copy.done for each_copy in copies):
                passing[position] = False
                continue
            signaled = [each_copy.work for each_copy in copies if each_copy.signaled]
            works = [each_copy.work for each_copy in copies if not each_copy.signaled]
            machine.events.copies_awaited(warp, works, signaled)
            mine.forget(awaited)
        return lambda warp: ("cp.async", warp), None if all_set(passing) else passing

    return run


@semantics(async_copy.wait_group, kind="blocking")
def wait_group(op: async_copy.wait_group, binder: Binder, statement: syntax.Instruction) -> Blocking:
    return _wait(max(int(op.count.evaluate()), 0), commits=False)


@semantics(async_copy.wait_all, kind="blocking")
def wait_all(op: async_copy.wait_all, binder: Binder, statement: syntax.Instruction) -> Blocking:
    """As a commit and a wait for all groups (9.7.9.25.3.3)."""
    return _wait(0, commits=True)


@semantics(mbarrier.cp_async_arrive)
def arrive_when_done(op: mbarrier.cp_async_arrive, binder: Binder, statement: syntax.Instruction) -> Plain:
    """Each lane arrives once its copies so far are done. Without .noinc the phase expects one arrival more for it."""
    address = binder.address(op.addr)

    def run(g: Group) -> None:
        machine, active, addresses = g.machine, g.active, g.full(address(g))
        for position, warp in enumerate(map(int, g.indices)):
            for at in np.unique(addresses[position][active[position]]):
                lanes = active[position] & (addresses[position] == at)
                slot, offset = machine.clusters.locate(warp, int(at), op.space)
                barrier = machine.mbarrier(slot, offset, warp, statement)
                machine.events.mbarrier_counts_copies(warp, slot, barrier, statement, increments=not op.noinc)
                if not op.noinc:
                    barrier.pending += int(lanes.sum())
                _arrive_later(machine, warp, lanes, slot, barrier, statement)

    return run


def _arrive_later(
    machine: Machine, warp: int, lanes: NDArray[np.bool_], slot: int, barrier: MBarrier, statement: syntax.Instruction
) -> None:
    mine = machine.copies.setdefault(warp, WarpCopies())
    copies, signal = mine.of(lanes), Signal(statement, 0)
    machine.events.copies_arrive_later(warp, [each_copy.work for each_copy in copies], signal)
    barrier.under_way.append(signal)

    def arrive() -> None:
        fresh = [each_copy for each_copy in copies if not each_copy.signaled]  # earlier arrivals signaled the others
        machine.events.copies_arrive(warp, [each_copy.work for each_copy in fresh])
        for each_copy in fresh:
            each_copy.signaled = True
        machine.lanes_arrive_on(slot, barrier, signal, warp, int(lanes.sum()))

    if all(each_copy.done for each_copy in copies):
        machine.submit(int(machine.cta_slot[warp]), statement, arrive)
    else:
        mine.when_done(copies, arrive)
