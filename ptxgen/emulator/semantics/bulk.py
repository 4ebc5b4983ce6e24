"""Bulk copies: contiguous bytes between global and shared memory. PTX ISA 9.7.9.25.4 and 9.7.9.25.6."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.arrays import all_set, any_set
from ptxgen.emulator.checks.registry.memory import BULK_IGNORE, BULK_SIZE, MISALIGNED
from ptxgen.emulator.engines.bulk_copies import Destination, deliver, destinations, each_store, keep_in_group
from ptxgen.emulator.load.operands import Binder, Reader, Unmodelled
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.global_memory import HEAP_BASE, POISON_BYTE
from ptxgen.emulator.memory.granules import GRANULE
from ptxgen.emulator.memory.reductions import Combine, combiner
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Blocking, Passing, Plain
from ptxgen.emulator.semantics.mbarrier import each
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import Machine
from ptxgen.instr import bulk
from ptxgen.instr.model.types import TYPES

if TYPE_CHECKING:
    from ptxgen.emulator.schedule.scheduler import Scheduler


def _require_size(size: int, what: str) -> None:
    if size % GRANULE:
        raise MemoryFault(
            BULK_SIZE,
            f"{what} of {size} bytes",
            rule=f"The size of a bulk copy must be a multiple of {GRANULE} bytes",
            fix=f"copy {size - size % GRANULE} or {size + -size % GRANULE} bytes, and announce as many by expect_tx: "
            "move the rest by loads and stores, or pad both arrays",
        )


def _global_offset(machine: Machine, address: int, size: int, what: str, *, before: int = 0, after: int = 0) -> int:
    """The heap offset of `size` bytes; the first `before` and the last `after` may lie outside.

    Raises MemoryFault.
    """
    if address % GRANULE:
        raise MemoryFault(
            MISALIGNED,
            f"{what} at global address {address:#x}",
            rule=f"The address of a bulk copy must be a multiple of {GRANULE}",
        )
    offset = address - HEAP_BASE
    machine.memory.require_mapped(range(offset + before, offset + size - after), what)
    return offset


def _granules(machine: Machine, offset: int, size: int, what: str) -> NDArray[np.int64]:
    machine.shared.require(offset, size, GRANULE, what)
    return np.arange(offset // GRANULE, (offset + size) // GRANULE, dtype=np.int64)


def _whole_granules(start: int, stop: int) -> NDArray[np.int64]:
    """The 16-byte granules of the heap that a copy touches whole."""
    return np.arange(-(-start // GRANULE), stop // GRANULE, dtype=np.int64)


@semantics(bulk.load)
def load(op: bulk.load, binder: Binder, statement: syntax.Instruction) -> Plain:
    if op.report not in (None, "disabled"):
        raise Unmodelled(f"mbarrier::report::{op.report}")
    destination, source = binder.address(op.dst_mem), binder.address(op.src_mem)
    size, barrier = binder.source(op.size, "u32"), binder.address(op.mbar)
    mask = binder.source(op.mask, "u32" if op.multicast == "cluster::32b" else "u16") if op.multicast else None
    sides = [binder.source(each, "u32") for each in (op.ignore_left, op.ignore_right)] if op.ignore_oob else []

    def run(g: Group) -> None:
        machine = g.machine
        chosen = mask(g) if mask is not None else 0
        ignored = [side(g) for side in sides] or [0, 0]
        for warp, lane, (place, where, count, mbar, ranks, left, right) in each(
            g, destination(g), source(g), size(g), barrier(g), chosen, *ignored
        ):
            _require_size(count, "a bulk copy")
            if left > 15 or right > 15:
                raise MemoryFault(BULK_IGNORE, f".ignore_oob with {left} bytes on the left and {right} on the right")
            copies = destinations(machine, warp, statement, place, mbar, ranks if mask is not None else None, op.dst)
            granules = _granules(machine, copies[0].offset, count, "a bulk copy")
            start = _global_offset(machine, where, count, "a bulk copy", before=left, after=right)

            inside = slice(left, count - right)

            def act(
                start: int = start, count: int = count, inside: slice = inside, copies: list[Destination] = copies
            ) -> None:
                data = machine.memory.data[start : start + count]
                if sides:
                    given, data = data, np.full(count, POISON_BYTE, np.uint8)  # what is ignored is undefined
                    data[inside] = given[inside]
                for copy in copies:
                    machine.shared.data[copy.slot, copy.offset : copy.offset + count] = data

            heap = _whole_granules(start + left, start + count - right)
            deliver(machine, warp, lane, statement, copies, granules, count, "bulk copy", act, heap=heap)

    return run


@semantics(bulk.copy, bulk.reduce_shared)
def copy(op: bulk.copy | bulk.reduce_shared, binder: Binder, statement: syntax.Instruction) -> Plain:
    """From this CTA's shared memory to that of another, or combined with it."""
    destination, source = binder.address(op.dst_mem), binder.address(op.src_mem)
    size, barrier = binder.source(op.size, "u32"), binder.address(op.mbar)
    reduces = isinstance(op, bulk.reduce_shared)
    combine, word = (combiner(op.op, op.type), f"u{TYPES[op.type].bytes}") if reduces else (None, "u1")
    what = "bulk copy"

    def run(g: Group) -> None:
        machine = g.machine
        for warp, lane, (place, where, count, mbar) in each(g, destination(g), source(g), size(g), barrier(g)):
            _require_size(count, f"a {what}")
            slot, start = machine.clusters.locate(warp, where, "shared::cta")
            copies = destinations(machine, warp, statement, place, mbar, None, "shared::cluster")
            read = _granules(machine, start, count, f"a {what}")
            granules = _granules(machine, copies[0].offset, count, f"a {what}")

            def act(slot: int = slot, start: int = start, count: int = count, to: Destination = copies[0]) -> None:
                given = machine.shared.data[slot, start : start + count].view(word)
                target = machine.shared.data[to.slot, to.offset : to.offset + count].view(word)
                target[:] = given if combine is None else combine(target, given)

            deliver(machine, warp, lane, statement, copies, granules, count, what, act, source=(slot, read))

    return run


_Reduction = bulk.reduce | bulk.multimem_reduce
_Store = bulk.store | bulk.multimem_store


@semantics(*get_args(_Store | _Reduction))
def store(op: _Store | _Reduction, binder: Binder, statement: syntax.Instruction) -> Plain:
    """From shared to global memory, or combined with it; a byte mask repeats every 16 bytes.

    A multimem address is that of the one device that there is.
    """
    destination, source = binder.address(op.dst_mem), binder.address(op.src_mem)
    size = binder.source(op.size, "u32")
    mask: Reader | None = binder.source(op.byte_mask, "u16") if isinstance(op, _Store) and op.cp_mask else None
    combine: Combine | None = None
    word, what = "u1", "bulk store"
    if isinstance(op, _Reduction):
        # An .add of .f32 flushes nothing (measured), whatever .noftz says.
        combine, word, what = combiner(op.op, op.type), f"u{TYPES[op.type].bytes}", "bulk reduction"

    def run(g: Group) -> None:
        machine = g.machine
        values = destination(g), source(g), size(g), mask(g) if mask is not None else 0xFFFF
        for warp, lanes, (to, place, count, bits) in each_store(g, values, merge=combine is None):
            _require_size(count, f"a {what}")
            slot, start = machine.clusters.locate(warp, place, "shared::cta")
            granules = _granules(machine, start, count, f"a {what}")
            offset = _global_offset(machine, to, count, f"a {what}")
            keep = np.tile((bits >> np.arange(GRANULE) & 1).astype(np.bool_), count // GRANULE)

            def read(slot: int = slot, start: int = start, count: int = count) -> NDArray[np.uint8]:
                return machine.shared.data[slot, start : start + count].copy()

            def write(
                data: NDArray[np.uint8], offset: int = offset, count: int = count, keep: NDArray[np.bool_] = keep
            ) -> None:
                target = machine.memory.data[offset : offset + count].view(word)
                if combine is not None:
                    target[:] = combine(target, data.view(word))
                else:
                    target[keep] = data[keep]

            heap = _whole_granules(offset, offset + count if all_set(keep) else offset)
            keep_in_group(machine, warp, lanes, statement, slot, granules, what, heap, read, write)

    return run


@semantics(bulk.prefetch, bulk.applypriority)
def prefetch(op: bulk.prefetch | bulk.applypriority, binder: Binder, statement: syntax.Instruction) -> Plain:
    """A hint."""
    return lambda g: None


@semantics(bulk.commit_group)
def commit_group(op: bulk.commit_group, binder: Binder, statement: syntax.Instruction) -> Plain:
    def run(g: Group) -> None:
        for position, warp in enumerate(g.indices.tolist()):
            g.machine.bulk_groups.commit(warp)
            g.machine.events.bulk_group_committed(warp, g.active[position])

    return run


@semantics(bulk.wait_group, kind="blocking")
def wait_group(op: bulk.wait_group, binder: Binder, statement: syntax.Instruction) -> Blocking:
    """All but the latest `pending` groups must be complete, or with .read have read their sources."""
    pending, reads = max(int(op.pending.evaluate()), 0), op.read

    def run(g: Group, scheduler: Scheduler) -> Passing:
        machine = g.machine
        passing = np.ones((g.size, 32), np.bool_)
        for position, warp in enumerate(g.indices):
            warp, awaited = int(warp), machine.bulk_groups.awaited(int(warp), pending)
            if not all(store.done or (reads and store.read) for group in awaited for store in group):
                passing[position] = False
                continue
            for store in (store for group in awaited for store in group):
                lanes = store.lanes & g.active[position]
                if any_set(lanes):
                    machine.events.work_awaited(warp, lanes, [store.work], reads=reads)
            if not pending:
                machine.events.bulk_groups_awaited(warp, g.active[position])
            if not reads:
                machine.bulk_groups.retire(warp, len(awaited))
        return lambda warp: ("bulk group", warp), None if all_set(passing) else passing

    return run
