"""Conflicts of accesses to shared memory: by threads, by bulk and tensor copies, by the tensor core.

Shared memory is kept in granules of 16 bytes with a mask of bytes for the loads and stores of threads; a warp's last
synchronization interval alone counts for each granule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import any_set, count_nonzero
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.order.vector_clock import PENDING, AsyncOperation, VectorClock
from ptxgen.emulator.checks.registry import descriptors, mbarriers, uninitialized
from ptxgen.emulator.checks.shared.collaborators import Collaborators
from ptxgen.emulator.checks.shared.proxy_fences import ProxyFences
from ptxgen.emulator.checks.shared.races import SharedRaces
from ptxgen.emulator.checks.shared.strong_stores import StrongStores
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.memory.granules import (
    ALL_BYTES,
    GRANULE,
    Masks,
    by_granule,
    distinct,
    first_byte,
    granules_of,
    in_a_row,
    starts,
)
from ptxgen.emulator.memory.shared_memory import GROUPS_BYTES
from ptxgen.emulator.native.library import chosen
from ptxgen.emulator.native.shared import Touched
from ptxgen.emulator.observer import MachineView, Observer, ProgramView
from ptxgen.emulator.state.mbarriers import MBarrier
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.raced_reads import RacedReads

#: Groups of warps that are kept.
_GROUPS = 1024
#: Copies by which threads fill a stage again.
_COPIES = frozenset(["tensor copy", "bulk copy"])


class _Group(NamedTuple):
    """Warps of a group: the CTA slot of each, its number in its CTA and in its cluster; the numbers in the cluster of
    all warps of its CTA, and which of these it is not, (warps, warps of a CTA).
    """

    slots: NDArray[np.int64]
    warp_ids: NDArray[np.int64]
    members: NDArray[np.int64]
    own: NDArray[np.int64]
    others: NDArray[np.bool_]


class SharedAccesses(Observer):
    """The last accesses to each granule of the resident CTAs' shared memories.

    `slot` is the CTA whose memory it is, where that is not the operation's or the warp's own.
    """

    def __init__(self, given: Collaborators, slots: int, bytes: int) -> None:
        self._happens_before, self._waits, self._lanes = given.happens_before, given.waits, given.lanes
        self._findings = given.findings
        granules = -(-bytes // GRANULE)
        #: Number of granules, from 0, that hold zeros when a CTA begins (cooperative groups).
        self._zeros = 0
        #: The bytes of each granule that have been written, and the last asynchronous operations on it (0: none).
        self.written = np.zeros((slots, granules), np.uint16)
        self.async_writer = np.zeros((slots, granules), np.int64)
        #: Readers of two kinds, since the tensor core's and those of copies complete by different waits.
        self.core_reader = np.zeros((slots, granules), np.int64)
        self.copy_reader = np.zeros((slots, granules), np.int64)
        #: True once any asynchronous operation has accessed shared memory.
        self._asynchronous = False
        #: The bytes of each granule in which mbarriers live; `has_barriers` is True once one has been initialized.
        self.barriers = np.zeros((slots, granules), np.uint16)
        self.has_barriers = False
        #: Lines of stores that are known to store what another warp stores at any time.
        self.equal: set[int] = set()
        #: Lines of stores that are known to store again what other warps have loaded.
        self.unchanged: set[int] = set()
        #: Groups of warps that accessed memory together, by the bytes of their numbers.
        self._groups: dict[bytes, _Group] = {}
        #: Last weak accesses of threads, shared with `LaneAccesses`, which looks up lines here.
        self.stores, self.loads = given.lanes.stores, given.lanes.loads
        self.strong_stores = StrongStores(slots, given.happens_before.members, bytes)
        self.races = self._races = SharedRaces(given)
        self.fences = ProxyFences(given, self.strong_stores, self._races.copy_lines)

    @property
    def raced(self) -> RacedReads:
        """What weak loads read while other warps may store it."""
        return self._races.raced

    @property
    def read_too_early(self) -> dict[int, list[tuple[int, NDArray[np.int64]]]]:
        """What MMAs, by number, have read while it may be overwritten: (CTA slot, granules)."""
        return self._races.read_too_early

    @property
    def written_at_once(self) -> dict[int, list[tuple[int, NDArray[np.int64]]]]:
        """What copies, by number, have written while another copy may be writing it: (CTA slot, granules)."""
        return self._races.written_at_once

    def launch_begins(self, machine: MachineView, program: ProgramView) -> None:
        self._zeros = GROUPS_BYTES // GRANULE if program.uses_reserved_shared else 0
        self.written[:, : self._zeros] = ALL_BYTES

    def slots_reused(self, slots: NDArray[np.int64]) -> None:
        for array in (self.written, self.async_writer, self.core_reader, self.copy_reader, self.barriers):
            array[slots] = 0
        self.written[slots, : self._zeros] = ALL_BYTES
        for slot in slots.tolist():
            self.stores.clear(slot)
            self.loads.clear(slot)
            self.strong_stores.clear(slot)

    @property
    def any_asynchronous(self) -> bool:
        """Whether any asynchronous operation has accessed shared memory."""
        return self._asynchronous

    def work_reads_shared(
        self,
        work: AsyncWork,
        warps: Sequence[int],
        slot: int,
        granules: NDArray[np.int64],
        bytes: NDArray[np.uint16] | np.uint16,
        swizzle: str | None = None,
    ) -> None:
        operation = self._happens_before.operations[work.number]
        operation.swizzle, before = swizzle or operation.swizzle, operation.swizzle
        if len(warps) > 1:
            self.read_together(operation, warps, granules)
        else:
            self.async_read(operation, warps[0], granules, slot, bytes)
        operation.swizzle = before

    def work_writes_shared(self, work: AsyncWork, slot: int, granules: NDArray[np.int64]) -> None:
        operation = self._happens_before.operations[work.number]
        if work.what in _COPIES and slot == work.warp // self._happens_before.warps:
            # A stage: what an earlier copy has filled. Triton reads other words there without a fence.
            filled = granules[self.async_writer[slot, granules] != 0]
            if len(filled):
                self.fences.require_after_loads(operation, work.warp, filled, slot, response=False)
        self.async_write(operation, work.warp, granules, slot)

    def response_issued(self, work: AsyncWork, slots: Sequence[int], granules: NDArray[np.int64]) -> None:
        operation = self._happens_before.operations[work.number]
        for slot in slots:
            self.fences.require_after_loads(operation, work.warp, granules, slot, response=True)
            self.async_write(operation, work.warp, granules, slot)

    def shared_stored(
        self, warp: int, granules: NDArray[np.int64], bytes: NDArray[np.uint16], statement: Statement
    ) -> None:
        self.write(warp, granules, bytes, statement)

    def async_write(
        self, operation: AsyncOperation, warp: int, granules: NDArray[np.int64], slot: int | None = None
    ) -> None:
        """A bulk copy issued by `warp` overwrites these 16-byte granules."""
        slot = operation.slot if slot is None else slot
        self._lanes.asynchronous(operation, warp, slot, granules, writes=True)
        self._against_writers(operation, warp, slot, granules, ALL_BYTES, "overwrites")
        self._against_readers(operation, warp, slot, granules, ALL_BYTES)
        self._spare_barriers(operation, warp, slot, granules, ALL_BYTES)
        self._asynchronous, here = True, in_a_row(granules)
        self.written[slot, here] = ALL_BYTES
        self.async_writer[slot, here] = operation.number
        self.core_reader[slot, here] = 0
        self.copy_reader[slot, here] = 0
        self.stores.forget_all(slot, here)
        self.loads.forget_all(slot, here)
        self.strong_stores.forget(slot, granules, ALL_BYTES)

    def async_read(
        self,
        operation: AsyncOperation,
        warp: int,
        granules: NDArray[np.int64],
        slot: int | None = None,
        masks: Masks | np.uint16 = ALL_BYTES,
    ) -> None:
        """A tensor-core operation or bulk store issued by `warp` reads bytes of these 16-byte granules."""
        slot = operation.slot if slot is None else slot
        self._lanes.asynchronous(operation, warp, slot, granules, writes=False)
        self._against_writers(operation, warp, slot, granules, masks, "reads")
        self.fences.require(operation, warp, slot, granules)
        self._require_written(operation, warp, slot, granules, masks)
        if operation.swizzle is not None:
            for number in distinct(self.async_writer[slot, granules]):
                source = self._happens_before.operations.get(int(number))
                if source is not None and source.swizzle not in (None, operation.swizzle):
                    self._report_swizzle(operation, source, warp, slot, granules)
        by_core = operation.what.startswith(("tcgen05", "wgmma"))
        (self.core_reader if by_core else self.copy_reader)[slot, granules] = operation.number
        self._asynchronous = True

    def _report_swizzle(
        self, operation: AsyncOperation, source: AsyncOperation, warp: int, slot: int, granules: NDArray[np.int64]
    ) -> None:
        at = int(granules[(self.async_writer[slot, granules] == source.number).argmax()]) * GRANULE
        reader = self._findings.access("reader", operation.statement, warp, space="shared", address=at)
        writer = self._findings.access("writer", source.statement, source.warp, space="shared", address=at)
        self._findings.report(
            descriptors.SWIZZLE_MISMATCH,
            operation.statement,
            summary=f"{reader} reads {reader.place} with swizzle {operation.swizzle}, but {writer} wrote it with "
            f"swizzle {source.swizzle}",
            accesses=(reader, writer),
            severity="advice",
        )

    def read_together(self, operation: AsyncOperation, warps: Sequence[int], granules: NDArray[np.int64]) -> None:
        """An operation that several warps of a CTA issue together reads these granules, after all their writers."""
        self.async_read(operation, warps[0], granules)
        slot = operation.slot
        writers = {int(number) for number in distinct(self.async_writer[slot, granules])} - {0}
        table = self.stores.table(slot)
        for warp in warps[1:]:
            observed = self._happens_before.observed[warp]
            stores = table is not None and any_set(table.latest > table.of(observed.clocks))
            stores |= any_set(self.strong_stores.latest[slot] > observed.clocks)
            if stores or not writers <= observed.operations:
                self._against_writers(operation, warp, slot, granules, ALL_BYTES, "reads")

    def accesses(
        self,
        warps: NDArray[np.int64],
        at: NDArray[np.int64],
        granules: NDArray[np.int64],
        masks: Masks,
        changed: Masks | None,
        statement: Statement,
        *,
        copies: bool = False,
    ) -> bool:
        """Loads of many warps from their own CTA's memory, or stores if `changed` is given, as `read` and `write` take
        them: `warps[at]` accesses each of `granules`. With `copies` the stores are cp.async, as `copy` takes them.
        False where something is to be reported, and the caller checks them one by one; nothing is kept then.
        """
        order, group = self._happens_before, self._group(warps)
        slots = group.slots
        slot = slots[at]
        place = slot * self.written.shape[1] + granules
        writes, racing = changed is not None, masks if changed is None else changed
        if self.stores.apart(slots) or self.loads.apart(slots):
            return False
        written = self.written.reshape(-1)
        fresh = count_nonzero(masks & ~written[place])
        if (fresh or self._races.only_copies) and not writes:
            return False
        if self._asynchronous:
            for table in (self.async_writer, self.core_reader, self.copy_reader) if writes else (self.async_writer,):
                if not self._over(table.reshape(-1)[place], warps, at):
                    return False
        if writes:
            if self.has_barriers and count_nonzero(self.barriers.reshape(-1)[place] & masks):
                return False
            if len(warps) > 1 and _overlap(place, masks):
                return False
        clocks = order.clocks[warps]
        if self.strong_stores.any_used and self.strong_stores.any_unordered(
            slot, group.members[at], granules, racing, clocks, at
        ):
            return False
        compared = masks if statement.line not in self.equal else racing
        shape = order.warps, order.size, self.written.shape[1]
        touched = Touched(np.ascontiguousarray(warps), slots, at, granules, masks, shape, order.clocks)
        overwritten = racing if statement.line in self.unchanged else masks
        if not self._ordered(touched, group, compared, overwritten if writes else None):
            return False
        if copies:
            self._races.copy_lines[statement.line] = "cp.async"
        order.statements[statement.line] = statement
        intervals = np.full(len(warps), PENDING) if copies else order.intervals(warps)
        (self.stores if writes else self.loads).add_own(touched, intervals, statement.line)
        if writes:
            if fresh:
                np.bitwise_or.at(written, place, masks)
            if self._asynchronous:
                for table in (self.async_writer, self.core_reader, self.copy_reader):
                    table.reshape(-1)[place] = 0
        return True

    def _ordered(self, touched: Touched, group: _Group, compared: Masks, changed: Masks | None) -> bool:
        """Whether accesses, as `accesses` takes them, are ordered after all weak stores of others to the bytes of
        `compared`, and if `changed` is given after all weak loads of its bytes.
        """
        library = chosen()
        if library is not None:
            loads = self.loads.packed if changed is not None else None
            return touched.ordered(library, self.stores.packed, compared, loads, changed, PENDING)
        order, slots, warps = self._happens_before, group.slots, touched.warps
        at, granules, masks = touched.at, touched.granules, touched.bytes
        slot = slots[at]
        if self._races.copy_lines and count_nonzero(self.stores.latest[slots, group.members] == PENDING):
            mine = slot, group.warp_ids[at], granules
            if count_nonzero((self.stores.clock[mine] == PENDING) & ((self.stores.mask[mine] & masks) != 0)):
                return False
        own = slice(None) if order.size == 1 else group.own
        observed = order.clocks[warps] if order.size == 1 else order.clocks[warps[:, None], own]
        for kind, bits in ((self.stores, compared), (self.loads, changed)):
            if bits is None:
                continue
            latest = kind.latest[slots] if order.size == 1 else kind.latest[slots[:, None], own]
            if count_nonzero((latest > observed) & group.others):
                hit = (kind.clock[slot, :, granules] > observed[at]) & (
                    (kind.mask[slot, :, granules] & bits[:, None]) != 0
                )
                hit[np.arange(len(at)), group.warp_ids[at]] = False
                if count_nonzero(hit):
                    return False
        return True

    def _group(self, warps: NDArray[np.int64]) -> _Group:
        key = warps.tobytes()
        found = self._groups.get(key)
        if found is None:
            if len(self._groups) >= _GROUPS:
                self._groups.clear()
            per_cta, warp_ids = self._happens_before.warps, np.arange(self._happens_before.warps)
            slots, ids = np.divmod(warps, per_cta)
            first = slots % self._happens_before.size * per_cta
            found = _Group(slots, ids, first + ids, first[:, None] + warp_ids, ids[:, None] != warp_ids)
            self._groups[key] = found
        return found

    def _over(self, numbers: NDArray[np.int64], warps: NDArray[np.int64], at: NDArray[np.int64]) -> bool:
        """Whether the warps have observed the completion of these operations (0: none)."""
        if not count_nonzero(numbers):
            return True
        operations, observed = self._happens_before.operations, self._happens_before.observed
        for asked in distinct(numbers * len(warps) + at).tolist():
            number, position = divmod(asked, len(warps))
            if number in operations and number not in observed[int(warps[position])].operations:
                return False
        return True

    def read(
        self, warp: int, granules: NDArray[np.int64], masks: Masks, statement: Statement, slot: int | None = None
    ) -> None:
        """A warp's own load of some bytes of each granule."""
        slot = warp // self._happens_before.warps if slot is None else slot
        access = AsyncOperation(0, "load", statement, slot)
        self._happens_before.statements[statement.line] = statement
        self._races.against_own_copies(access, warp, granules, masks, "reads")
        self._against_writers(access, warp, slot, granules, masks, "reads")
        self._require_written(access, warp, slot, granules, masks)
        self.loads.add(
            slot, warp % self._happens_before.members, granules, masks, self._happens_before.clock(warp), statement.line
        )

    def write(
        self,
        warp: int,
        granules: NDArray[np.int64],
        masks: Masks,
        statement: Statement,
        slot: int | None = None,
        changed: Masks | None = None,
    ) -> None:
        """A warp's own store to some bytes of each granule. Those of them that are `changed` (all by default) may race:
        that others store the value already in memory is but advice, since compilers let warps that hold the same do it.
        """
        slot = warp // self._happens_before.warps if slot is None else slot
        access = AsyncOperation(0, "store", statement, slot)
        self._happens_before.statements[statement.line] = statement
        self._races.against_own_copies(access, warp, granules, masks, "overwrites")
        if changed is None or any_set(changed):
            racing = masks if changed is None else changed
            self._against_writers(access, warp, slot, granules, racing, "overwrites")
            self._against_readers(access, warp, slot, granules, racing)
        if changed is not None and statement.line not in self.equal and count_nonzero(masks & ~changed):
            self._against_equal_stores(access, warp, slot, granules, masks & ~changed)
        if changed is not None and statement.line not in self.unchanged and count_nonzero(masks & ~changed):
            self._against_equal_loads(access, warp, slot, granules, masks & ~changed)
        self._spare_barriers(access, warp, slot, granules, masks)
        self.stores.add(
            slot, warp % self._happens_before.members, granules, masks, self._happens_before.clock(warp), statement.line
        )
        self._overwritten(slot, granules, masks)

    def lagging(
        self,
        warp: int,
        granules: NDArray[np.int64],
        masks: Masks,
        statement: Statement,
        slot: int,
        observed: VectorClock,
        *,
        writes: bool,
    ) -> None:
        """Lanes of a warp with the clock `observed` access bytes; `read` or `write` follows for all its lanes."""
        access = AsyncOperation(0, "store" if writes else "load", statement, slot)
        self._against_writers(access, warp, slot, granules, masks, "overwrites" if writes else "reads", observed)
        if writes:
            self._against_readers(access, warp, slot, granules, masks, observed)

    def copy(
        self,
        warp: int,
        granules: NDArray[np.int64],
        masks: Masks,
        statement: Statement,
        slot: int | None = None,
        what: str = "cp.async",
    ) -> None:
        """A cp.async or st.async begins to write: no thread may access these bytes before a wait for it."""
        slot = warp // self._happens_before.warps if slot is None else slot
        self._races.copy_lines[statement.line] = what
        self._happens_before.statements[statement.line] = statement
        access = AsyncOperation(0, what, statement, slot)
        self._races.against_own_copies(access, warp, granules, masks, "overwrites")
        self._against_writers(access, warp, slot, granules, masks, "overwrites")
        self._against_readers(access, warp, slot, granules, masks)
        self.stores.add(slot, warp % self._happens_before.members, granules, masks, PENDING, statement.line)
        self._overwritten(slot, granules, masks)

    def reduce(self, warp: int, granules: NDArray[np.int64], masks: Masks, statement: Statement, slot: int) -> None:
        """A red.async begins: it does not race with others, but no thread may load before a wait for it."""
        self._races.copy_lines[statement.line] = "red.async"
        self._happens_before.statements[statement.line] = statement
        self.reduce_later(granules, masks, slot)
        self.stores.add(slot, warp % self._happens_before.members, granules, masks, PENDING, statement.line)

    def copied(self, warp: int, granules: NDArray[np.int64], slot: int | None = None, clock: int | None = None) -> None:
        """A warp's copies have written to these granules, as its stores in an interval: the present by default."""
        slot = warp // self._happens_before.warps if slot is None else slot
        clock = self._happens_before.clock(warp) if clock is None else clock
        self.stores.settle(slot, warp % self._happens_before.members, granules, clock)

    def strong(
        self,
        warps: NDArray[np.int64],
        slots: NDArray[np.int64],
        inside: NDArray[np.int64],
        size: int,
        changing: NDArray[np.bool_],
        access: AsyncOperation,
        *,
        reads: bool,
        writes: bool,
        observes: bool,
    ) -> None:
        """Lanes of these warps make strong accesses of `size` bytes at offsets of slots' memories, and where they write
        some are `changing` it. All arrays are (lanes,), in the order of the accesses: the last lane to write counts.
        A load, or an atomic operation with a result, `observes` what others have written. The slot of `access` does not
        count.
        """
        self._happens_before.statements.setdefault(access.statement.line, access.statement)
        self._strong_races(warps, slots, inside, size, changing, access, writes=writes)
        at, granules, masks, _ = by_granule(slots, inside, size, changing)
        if reads and any_set(masks & ~self.written[at, granules]):
            for pair in distinct(warps * len(self.written) + slots).tolist():
                warp, slot = divmod(pair, len(self.written))
                touched = granules_of(inside[(warps == warp) & (slots == slot)], size)
                self._require_written(replace(access, slot=slot), warp, slot, *touched)
        members = warps % self._happens_before.members
        if writes:
            begins = np.flatnonzero(starts(at)).tolist()
            for begin, end in zip(begins, [*begins[1:], len(at)], strict=True):
                slot, touched, bits = int(at[begin]), granules[begin:end], masks[begin:end]
                self._spare_barriers(access, None, slot, touched, bits)
                self.stores.forget(slot, touched, bits)
                self._overwritten(slot, touched, bits)
            clocks = self._happens_before.intervals(warps)
            line = access.statement.line
            reduces = access.what == "atomic operation" and not observes
            self.strong_stores.add(
                slots, members, inside, size, clocks, changing, line, observes=observes, reduces=reduces
            )
        elif observes:
            self.strong_stores.observe(slots, members, inside, size)

    def _strong_races(
        self,
        warps: NDArray[np.int64],
        slots: NDArray[np.int64],
        inside: NDArray[np.int64],
        size: int,
        changing: NDArray[np.bool_],
        access: AsyncOperation,
        *,
        writes: bool,
    ) -> None:
        """Strong accesses race with weak ones alone (8.7), among them those of copies and MMAs."""
        members, memories, place = self._happens_before.members, len(self.written), (slots, inside // GRANULE)
        copies = (self.async_writer, self.core_reader, self.copy_reader) if writes else (self.async_writer,)
        numbers = [found for found in (table[place] for table in copies) if any_set(found)]
        pairs = distinct(warps * memories + slots)
        actors, owners = pairs // memories, pairs % memories
        late = np.zeros(len(pairs), np.bool_)
        if numbers:
            distinct_warps, at = np.unique(warps, return_inverse=True)
            late |= not all(self._over(each, distinct_warps, at) for each in numbers)
        late |= self.stores.latest[owners, actors % members] == PENDING
        for accesses in (self.stores, self.loads) if writes else (self.stores,):
            newer = accesses.latest[owners] > self._happens_before.clocks[actors]
            newer[np.arange(len(pairs)), actors % members] = False
            late |= newer.any(axis=1)
        for warp, slot in zip(actors[late].tolist(), owners[late].tolist(), strict=True):
            its, named = (warps == warp) & (slots == slot), replace(access, slot=slot)
            _, granules, touched, masks = by_granule(slots[its], inside[its], size, changing[its])
            if writes and access.statement.line not in self.equal and count_nonzero(touched & ~masks):
                self._against_equal_stores(named, warp, slot, granules, touched & ~masks, weak=True)
            if not count_nonzero(masks):
                continue
            granules, masks = granules[masks != 0], masks[masks != 0]
            observed = self._happens_before.observed[warp]
            verb = "overwrites" if writes else "reads"
            self._races.against_own_copies(named, warp, granules, masks, verb)
            self._against_writers(named, warp, slot, granules, masks, verb, observed, weak=True)
            if writes:
                self._against_readers(named, warp, slot, granules, masks, observed)

    def reduce_later(self, granules: NDArray[np.int64], masks: Masks, slot: int) -> None:
        """A red.async is on its way: initializes, and orders rather than races."""
        self.stores.forget(slot, granules, masks)
        self.strong_stores.forget(slot, granules, masks)
        self._overwritten(slot, granules, masks)

    def _overwritten(self, slot: int, granules: NDArray[np.int64], masks: Masks) -> None:
        self.written[slot][granules] |= masks
        if self._asynchronous:
            for table in (self.async_writer, self.core_reader, self.copy_reader):
                table[slot][granules] = 0

    def mbarrier_initialized(self, warp: int, slot: int, mbarrier: MBarrier) -> None:
        self.has_barriers = True
        self.barriers[slot, mbarrier.address // GRANULE] |= np.uint16(0xFF << mbarrier.address % GRANULE)

    def mbarrier_invalidated(self, warp: int, slot: int, mbarrier: MBarrier, statement: Statement) -> None:
        """The bytes may be used again once the inval is ordered before: it counts as a store to them."""
        granule, mask = mbarrier.address // GRANULE, np.uint16(0xFF << mbarrier.address % GRANULE)
        self.barriers[slot, granule] &= ~mask
        self._happens_before.statements.setdefault(statement.line, statement)
        member, clock = warp % self._happens_before.members, self._happens_before.clock(warp)
        self.stores.add(slot, member, np.array([granule]), np.array([mask]), clock, statement.line)

    def _spare_barriers(
        self,
        access: AsyncOperation,
        warp: int | None,
        slot: int,
        granules: NDArray[np.int64],
        masks: Masks | np.uint16,
    ) -> None:
        if not self.has_barriers:
            return
        hit = self.barriers[slot, granules] & masks
        if count_nonzero(hit):
            granule = int(granules[int((hit != 0).argmax())])
            at = granule * GRANULE
            if not int(hit[(hit != 0).argmax()]) & 0xFF:
                at += GRANULE // 2
            writer = self._findings.access("writer", access.statement, warp, space="shared", address=at)
            self._findings.report(
                mbarriers.MBARRIER_OVERWRITTEN,
                access.statement,
                summary=f"{writer} writes to the mbarrier {writer.place}",
                accesses=(writer,),
            )

    def _require_written(
        self, access: AsyncOperation, warp: int, slot: int, granules: NDArray[np.int64], masks: Masks | np.uint16
    ) -> None:
        missing = masks & ~self.written[slot, granules]
        if count_nonzero(missing):
            first = int(missing.astype(np.bool_).argmax())
            at = int(granules[first]) * GRANULE + first_byte(missing[first])
            # CUB's merges read an element past the last one, and drop it.
            adjacent = access.what == "load" and count_nonzero(missing) == 1 and self._is_written(slot, at - 1)
            rule = self._waits.hint(warp)
            if adjacent:
                rule = "It lies right after what is written: harmless if the value is not used"
            reader = self._findings.access("reader", access.statement, warp, slot=slot, space="shared", address=at)
            self._findings.report(
                uninitialized.UNINITIALIZED_SHARED,
                access.statement,
                summary=f"{reader} reads {reader.place}, which is uninitialized",
                rule=rule,
                accesses=(reader,),
                severity="advice" if adjacent else "error",
                reads=True,
                cause=self._waits.missed(warp)
                | self._waits.unwaited(warp)
                | {causes.past_operand(access.statement.line)},
                after=self._waits.waited_on(warp),
            )

    def _is_written(self, slot: int, at: int) -> bool:
        return bool(self.written[slot, at // GRANULE] >> np.uint16(at % GRANULE) & np.uint16(1))

    def _against_writers(
        self,
        access: AsyncOperation,
        warp: int,
        slot: int,
        granules: NDArray[np.int64],
        masks: Masks | np.uint16,
        verb: str,
        observed: VectorClock | None = None,
        *,
        weak: bool = False,
    ) -> None:
        """All writers there, or the `weak` accesses alone."""
        observed = self._happens_before.observed_by(warp, access.lane) if observed is None else observed
        if self._asynchronous:
            writers = self.async_writer[slot, granules]
            self._races.against_operations(access, warp, slot, granules, writers, verb, observed)
        for stores in (self.stores,) if weak else (self.stores, self.strong_stores):
            self._races.against_warps(access, warp, stores, slot, granules, masks, verb, observed)

    def _against_equal_stores(
        self,
        access: AsyncOperation,
        warp: int,
        slot: int,
        granules: NDArray[np.int64],
        masks: Masks,
        *,
        weak: bool = False,
    ) -> None:
        """Unordered stores of what the warp stores too: all of them, or the `weak` ones alone."""
        for stores in (self.stores,) if weak else (self.stores, self.strong_stores):
            if self._races.against_equal_stores(access, warp, stores, slot, granules, masks):
                self.equal.add(access.statement.line)

    def _against_equal_loads(
        self, access: AsyncOperation, warp: int, slot: int, granules: NDArray[np.int64], masks: Masks
    ) -> None:
        """Unordered loads of others of what the warp stores there again."""
        if self._races.against_equal_loads(access, warp, self.loads, slot, granules, masks):
            self.unchanged.add(access.statement.line)

    def _against_readers(
        self,
        access: AsyncOperation,
        warp: int,
        slot: int,
        granules: NDArray[np.int64],
        masks: Masks | np.uint16,
        observed: VectorClock | None = None,
    ) -> None:
        observed = self._happens_before.observed_by(warp, access.lane) if observed is None else observed
        verb = "overwrites what may still be read by"
        for readers in (self.core_reader, self.copy_reader) if self._asynchronous else ():
            self._races.against_operations(access, warp, slot, granules, readers[slot, granules], verb, observed)
        self._races.against_warps(access, warp, self.loads, slot, granules, masks, "overwrites", observed, loads=True)


def _overlap(places: NDArray[np.int64], masks: Masks) -> bool:
    """Whether the same byte of a granule is in two of these masks."""
    if not count_nonzero(places[1:] <= places[:-1]):
        return False
    order = places.argsort()
    places, bytes = places[order], masks[order].astype(np.int64)
    (first,) = starts(places).nonzero()
    if len(first) == len(places):
        return False
    return any_set(np.add.reduceat(bytes, first) != np.bitwise_or.reduceat(bytes, first))
