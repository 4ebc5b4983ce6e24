"""Common parts of bulk copies: destinations, completion, and the groups in which threads wait for them.

PTX ISA 9.7.9.25.2 to 9.7.9.25.6. A copy to shared memory completes on an mbarrier, one from it in the bulk group of the
thread that issued it; groups are kept by warp: the copies of its threads are waited for together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks.registry.clusters import COPY_MBARRIER_CTA
from ptxgen.emulator.engines.tensor_copies import Box
from ptxgen.emulator.memory.granules import GRANULE
from ptxgen.emulator.state.bulk_groups import BulkStore
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import Machine
from ptxgen.emulator.state.signals import Signal

_ALL = np.uint16(0xFFFF)


@dataclass(frozen=True, slots=True)
class Destination:
    """A CTA's slot and the offset in its shared memory that gets the data, and the mbarrier's."""

    slot: int
    offset: int
    barrier_slot: int
    barrier: int


def destinations(
    machine: Machine,
    warp: int,
    statement: syntax.Instruction,
    place: int,
    mbar: int,
    mask: int | None,
    space: str,
    cta_group: int = 1,
) -> list[Destination]:
    """The destinations of a copy of `warp`: `mask` has the ranks of a multicast. Raises MemoryFault.

    The mbarrier is in the CTA that gets the data; with `cta_group` 2 it may be in its peer, and a multicast signals, of
    every destination and its peer, the CTA whose rank has the parity of the mbarrier's own (9.7.9.25.5.2).
    """
    clusters = machine.clusters
    slot, offset = clusters.locate(warp, place, space)
    barrier_slot, barrier = clusters.locate(warp, mbar, "shared::cluster" if cta_group == 2 else space)
    odd = barrier_slot % clusters.size & 1
    if mask is None:
        if cta_group == 2 and barrier_slot in clusters.pair(slot):
            return [Destination(slot, offset, barrier_slot, barrier)]
        if slot != barrier_slot:
            _report_mbarrier(machine, warp, statement, slot, barrier_slot, barrier, cta_group)
        return [Destination(slot, offset, slot, barrier)]
    found = clusters.multicast(int(machine.cta_slot[warp]), mask)
    signalled = [clusters.pair(each)[odd] if cta_group == 2 else each for each in found]
    return [Destination(each, offset, to, barrier) for each, to in zip(found, signalled, strict=True)]


def _report_mbarrier(
    machine: Machine,
    warp: int,
    statement: syntax.Instruction,
    slot: int,
    barrier_slot: int,
    barrier: int,
    cta_group: int,
) -> None:
    """The mbarrier of a copy is in another CTA than its data. The copy continues with that of the data's CTA.

    On Hopper that is what hardware does (measured, H200, driver 580.159.04, 2026-11-23: bulk and tensor copies, address
    of rank 1 with bit 24 cleared, of a peer, and with multicast), so it is advice there.
    """
    size = machine.clusters.size
    issuer = machine.findings.access("issuer", statement, warp, slot=barrier_slot, space="shared", address=barrier)
    allowed = "or in its peer" if cta_group == 2 else "; .cta_group::2 allows its peer"
    machine.findings.report(
        COPY_MBARRIER_CTA,
        statement,
        summary=f"{issuer} writes to the CTA of rank {slot % size}, and names {issuer.place} in the CTA of rank "
        f"{barrier_slot % size} as its mbarrier",
        rule=f"The mbarrier of a copy must be in the CTA that receives the data{allowed}",
        accesses=(issuer,),
        severity="advice" if machine.target.major == 9 else "error",
    )


def deliver(
    machine: Machine,
    warp: int,
    lane: int,
    statement: syntax.Instruction,
    copies: Sequence[Destination],
    granules: NDArray[np.int64],
    size: int,
    what: str,
    act: Callable[[], None],
    swizzle: str | None = None,
    masks: NDArray[np.uint16] | np.uint16 = _ALL,
    source: tuple[int, NDArray[np.int64]] | None = None,
    heap: NDArray[np.int64] | None = None,
    box: Box | None = None,
) -> None:
    """Queue a copy to these granules of the destinations: `act` does it, then `size` bytes complete on each mbarrier.

    `source` are the slot and the granules that it reads, if that is shared memory too; `heap` those of global memory. A
    tensor copy writes `box`.
    """
    signal = Signal(statement, size)
    for copy in copies:
        barrier = machine.promise(copy.barrier_slot, copy.barrier, warp, signal)
        machine.events.copy_signals(warp, copy.barrier_slot, barrier, statement)
    work = machine.issue(what, statement, copies[0].slot if source is None else source[0], warp, lane, swizzle=swizzle)
    work.box, work.bytes, work.destinations = box, size, len(copies)
    signal.operation, events = work.number, machine.events
    events.work_signals(work, signal, copies[0].barrier)
    if source is not None:
        events.work_reads_shared(work, [warp], work.slot, source[1], _ALL)
    if heap is not None:
        events.work_reads_global(work, heap)
    for copy in copies:
        events.work_writes_shared(work, copy.slot, granules)

    def complete() -> None:
        if machine.timeline.computes:
            act()
        machine.has_written(signal.operation)
        for copy in copies:
            machine.complete_on(copy.barrier_slot, copy.barrier, signal)

    slots = sorted({copy.slot for copy in copies} | {copy.barrier_slot for copy in copies})
    machine.submit(np.array(slots) if len(slots) > 1 else slots[0], statement, complete, works=[work])


def each_store(
    g: Group, values: Sequence[Any], *, merge: bool
) -> Iterator[tuple[int, NDArray[np.bool_], tuple[int, ...]]]:
    """(warp, lanes, values) of the copies to global memory that warps issue; `lanes` (32,) are the issuing ones.

    With `merge`, lanes of a warp that issue the same are one copy: they store the same bytes to the same address, and
    ptxas (13.5) makes one instruction of them, where it loops over the lanes of a reduction. In CuTe DSL's
    epilogues whole warps issue.
    """
    full = np.stack([g.full(value).astype(np.int64, copy=False) for value in values], axis=-1)
    for position, warp in enumerate(map(int, g.indices)):
        left = g.active[position].copy()
        while any_set(left):
            first = int(left.argmax())
            lanes = left & (full[position] == full[position, first]).all(axis=-1) if merge else np.arange(32) == first
            left &= ~lanes
            yield warp, lanes, tuple(full[position, first].tolist())


def keep_in_group(
    machine: Machine,
    warp: int,
    lanes: NDArray[np.bool_],
    statement: syntax.Instruction,
    slot: int,
    granules: NDArray[np.int64],
    what: str,
    heap: NDArray[np.int64],
    read: Callable[[], Any],
    write: Callable[[Any], None],
    swizzle: str | None = None,
    masks: NDArray[np.uint16] | None = None,
) -> None:
    """Queue a copy from these granules of shared memory to those of the heap, in the warp's open group.

    `masks` are the bytes of each granule that it needs, where these are not all.

    First it reads its source, which a wait with .read waits for, then it writes.
    """
    work, events = machine.issue(what, statement, slot, warp, lanes, swizzle=swizzle), machine.events
    work.bytes = GRANULE * len(granules)
    if masks is None:
        events.work_reads_shared(work, [warp], slot, granules, _ALL)
    elif any_set(masks):
        events.work_reads_shared(work, [warp], slot, granules[masks != 0], masks[masks != 0])
    events.work_writes_global(work, heap)
    pending = BulkStore(lanes, work)
    machine.bulk_groups.add(warp, pending)

    def first() -> None:
        data = read() if machine.timeline.computes else None
        pending.read = True
        machine.wake(("bulk group", warp))

        def second() -> None:
            if machine.timeline.computes:
                write(data)
            pending.done = True
            machine.wake(("bulk group", warp))

        machine.submit(slot, statement, second, works=[work])

    machine.submit(slot, statement, first, reading=[work])
