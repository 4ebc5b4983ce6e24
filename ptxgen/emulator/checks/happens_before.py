"""What every warp knows to have happened before, and the conflicts of accesses to shared and tensor memory.

Each warp has a clock that counts its own synchronisations; its knowledge is the latest such count of every warp of its
cluster, and of any other cluster from which it has learnt through global memory, and the asynchronous operations whose
completion it has observed. An access conflicts
with an earlier one to the same bytes (one of them a write) that its issuer does not know. Asynchronous operations take
the knowledge of the thread that issues them, and become known through the mbarrier on which they complete.

Granularity: threads are warps, so an access is never blamed for one of its own warp. Shared memory is kept in units of
16 bytes with a mask of bytes for the loads and stores of threads; a warp's last synchronisation interval alone counts
for each unit. Tensor memory is kept in columns by quarter of the lanes. Global memory is not tracked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.findings import Findings
from ptxgen.layouts.tmem import COLUMNS
from ptxgen.syntax import Statement

UNIT = 16
#: The bytes of some units, one bit each.
Masks = NDArray[np.uint16]
_ALL = np.uint16(0xFFFF)
#: The interval of what its own thread cannot rely on yet: a cp.async or tcgen05.ld that it has not waited for.
PENDING = 2**31 - 1
_QUARTERS = 4
#: Known operations after which those that everybody knows are dropped.
_MANY = 256


@dataclass(slots=True)
class AsyncOperation:
    """An asynchronous operation: what it is (`tensor copy`), where it was issued, for which CTA slot, by which row."""

    number: int
    what: str
    statement: Statement
    slot: int
    swizzle: str | None = None
    row: int | None = None


@dataclass(slots=True)
class Knowledge:
    """A point in happens-before: clocks by warp of the (resident) cluster, and operations known to be complete.

    `foreign` has the clocks of other clusters, by cluster; most programs never learn of any.
    """

    cluster: int
    clocks: NDArray[np.int64]
    operations: set[int] = field(default_factory=set)
    foreign: dict[int, NDArray[np.int64]] = field(default_factory=dict)

    def copy(self) -> Knowledge:
        foreign = {cluster: clocks.copy() for cluster, clocks in self.foreign.items()} if self.foreign else {}
        return Knowledge(self.cluster, self.clocks.copy(), set(self.operations), foreign)

    def join(self, other: Knowledge) -> None:
        self._join_clocks(other.cluster, other.clocks)
        for cluster, clocks in other.foreign.items():
            self._join_clocks(cluster, clocks)
        self.operations |= other.operations

    def _join_clocks(self, cluster: int, clocks: NDArray[np.int64]) -> None:
        mine = self.clocks if cluster == self.cluster else self.foreign.get(cluster)
        if mine is None:
            self.foreign[cluster] = clocks.copy()
        else:
            np.maximum(mine, clocks, out=mine)


class MadeBarrier(Protocol):
    """What the relation needs of an mbarrier: which warp made it, in which interval, and the init's number."""

    made_by: int
    made_at: int
    number: int


class _Table:
    """Last accesses to one CTA's memory by warps `first` and up of its cluster: (warps, units)."""

    __slots__ = ("clock", "first", "latest", "line", "mask")

    def __init__(
        self, first: int, clock: NDArray[np.int32], mask: Masks, line: NDArray[np.int32], latest: NDArray[np.int64]
    ) -> None:
        self.first, self.clock, self.mask, self.line = first, clock, mask, line
        #: The last interval of each warp in which it accessed anything: most questions end here.
        self.latest = latest

    @classmethod
    def empty(cls, warps: int, units: int) -> _Table:
        """One for all warps of a cluster."""
        shape = (warps, units)
        return cls(
            0, np.zeros(shape, np.int32), np.zeros(shape, np.uint16), np.zeros(shape, np.int32),
            np.zeros(warps, np.int64),
        )  # fmt: skip

    def of(self, clocks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The clocks of the table's warps, of those of the cluster."""
        return clocks[self.first : self.first + len(self.latest)]


class ThreadAccesses:
    """Which bytes of each unit every warp has accessed in its last interval that touched the unit, and in which.

    Warps are numbered in their cluster. A slot's table has its own warps until one of a peer comes.
    """

    def __init__(self, slots: int, size: int, warps: int, units: int) -> None:
        self._size, self._warps, self._units = size, warps, units
        self._tables: list[_Table | None] = [None] * slots
        #: The accesses of the CTAs' own warps; only what is touched takes memory.
        shape = (slots, warps, units)
        self.clock, self.mask = np.zeros(shape, np.int32), np.zeros(shape, np.uint16)
        self.line, self.latest = np.zeros(shape, np.int32), np.zeros((slots, warps), np.int64)
        #: Which slots have a table of their own, since a peer's warp came.
        self.apart = np.zeros(slots, np.bool_)

    def table(self, slot: int) -> _Table | None:
        """The accesses to a slot's memory, None if there was none yet."""
        return self._tables[slot]

    def _reach(self, slot: int, warp: int) -> _Table:
        table = self._tables[slot]
        own = slot % self._size * self._warps
        if table is None:
            table = _Table(own, self.clock[slot], self.mask[slot], self.line[slot], self.latest[slot])
            self._tables[slot] = table
        if not table.first <= warp < table.first + len(table.latest):
            whole = _Table.empty(self._size * self._warps, self._units)
            self.apart[slot] = True
            for name in ("clock", "mask", "line", "latest"):
                getattr(whole, name)[own : own + self._warps] = getattr(table, name)
            table = self._tables[slot] = whole
        return table

    def add(self, slot: int, warp: int, units: NDArray[np.int64], masks: Masks, clock: int, line: int) -> None:
        """A warp accesses bytes of these different units, in an instruction of a line."""
        table = self._reach(slot, warp)
        at = warp - table.first
        before = np.where(table.clock[at, units] == clock, table.mask[at, units], np.uint16(0))
        table.mask[at, units] = before | masks
        table.clock[at, units] = clock
        table.line[at, units] = line
        table.latest[at] = max(table.latest[at], clock)

    def add_own(
        self, slots: NDArray[np.int64], warps: NDArray[np.int64], units: NDArray[np.int64], masks: Masks,
        clocks: NDArray[np.int64], line: int,
    ) -> None:  # fmt: skip
        """As `add`, for warps of several CTAs in their own memories, none of which is `apart`."""
        for slot in distinct(slots).tolist():
            self._reach(slot, slot % self._size * self._warps)
        before = np.where(self.clock[slots, warps, units] == clocks, self.mask[slots, warps, units], np.uint16(0))
        self.mask[slots, warps, units] = before | masks
        self.clock[slots, warps, units] = clocks
        self.line[slots, warps, units] = line
        self.latest[slots, warps] = np.maximum(self.latest[slots, warps], clocks)

    def unknown(
        self, slot: int, warp: int, units: NDArray[np.int64], masks: Masks | np.uint16, known: NDArray[np.int64]
    ) -> Iterator[tuple[int, int]]:
        """(other warp, line) of accesses to the same bytes of which `warp`, with these clocks, does not know."""
        table = self._tables[slot]
        if table is None:
            return
        clocks, at = table.of(known), warp - table.first
        others = table.latest > clocks
        if 0 <= at < len(others):
            others[at] = False
        if not others.any():
            return
        late = (table.clock[:, units] > clocks[:, None]) & ((table.mask[:, units] & masks) != 0)
        late &= others[:, None]
        yield from self.lines(slot, units, late)

    def pending(self, slot: int, warp: int, units: NDArray[np.int64], masks: Masks) -> int | None:
        """The line of a cp.async of this warp to some of these bytes, for which it has not waited."""
        table = self._tables[slot]
        at = warp - table.first if table is not None else 0
        if table is None or not 0 <= at < len(table.latest) or table.latest[at] != PENDING:
            return None
        hit = (table.clock[at, units] == PENDING) & ((table.mask[at, units] & masks) != 0)
        return int(table.line[at, units[hit.argmax()]]) if hit.any() else None

    def settle(self, slot: int, warp: int, units: NDArray[np.int64], clock: int) -> None:
        """The warp has waited for its cp.async to these units: they count as stores that it makes now."""
        table = self._reach(slot, warp)
        at = warp - table.first
        table.clock[at, units[table.clock[at, units] == PENDING]] = clock
        table.latest[at] = table.clock[at].max()

    def lines(self, slot: int, units: NDArray[np.int64], chosen: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
        """(warp, line) of the last access by each warp among the chosen units: `chosen` is (warps, units)."""
        table = self._tables[slot]
        assert table is not None
        for at in np.flatnonzero(chosen.any(axis=1)):
            last = np.where(chosen[at], table.clock[at, units], -1).argmax()
            yield int(at) + table.first, int(table.line[at, units[last]])

    def forget(self, slot: int, units: NDArray[np.int64], masks: Masks | np.uint16) -> None:
        """These bytes were overwritten by something that conflicts with whatever comes."""
        table = self._tables[slot]
        if table is not None:
            table.mask[:, units] &= ~masks

    def clear(self, slot: int) -> None:
        if self._tables[slot] is not None:
            self._tables[slot] = None
            self.apart[slot] = False
            for array in (self.clock, self.mask, self.latest):
                array[slot] = 0


def distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The different values of an array, which mostly has one."""
    return values[:1] if len(values) and (values == values[0]).all() else np.unique(values)


class Ordering:
    """Happens-before of all resident CTAs, and the last accesses to each unit of their memories."""

    def __init__(self, slots: int, warps: int, size: int, shared_bytes: int, findings: Findings) -> None:
        #: Warps of a CTA, CTAs of a cluster, warps of a cluster: knowledge is by warp of the cluster.
        self.warps, self.size, self.members = warps, size, warps * size
        self.findings = findings
        self.operations: dict[int, AsyncOperation] = {}
        self._next = 1
        #: What each warp knows of the intervals of the warps of its cluster; `known[row].clocks` is a row of it.
        self.clocks = np.zeros((slots * warps, self.members), np.int64)
        self.known = [Knowledge(row // self.members, self.clocks[row]) for row in range(slots * warps)]
        #: Who has last used an mbarrier of another CTA, by slot: warp of the cluster -> (interval, instruction).
        self._remote: dict[int, dict[int, tuple[int, Statement]]] = {}
        #: What a warp's last releasing fence covers: its relaxed arrivals make this known.
        self.released: dict[int, Knowledge] = {}
        #: Loads (row, interval) and stores (number) of each warp since its last synchronisation, and those after which
        #: it has synchronised without a tcgen05.fence::before_thread_sync: by warp, and all of them.
        self._tensor_accesses: dict[int, set[object]] = {}
        self._leaked_accesses: dict[int, set[object]] = {}
        self._unfenced_accesses: set[object] = set()
        #: Operations whose completion the warp's tcgen05 instructions may rely on (9.7.16.6.4).
        self.known_to_tensor_core: list[set[int]] = [set() for _ in range(slots * warps)]
        units = -(-shared_bytes // UNIT)
        #: The bytes of each unit that have been written, and the last asynchronous operations on it (0: none).
        self.written = np.zeros((slots, units), np.uint16)
        self.async_writer = np.zeros((slots, units), np.int64)
        self.async_reader = np.zeros((slots, units), np.int64)
        #: The bytes of each unit in which mbarriers live.
        self.barriers = np.zeros((slots, units), np.uint16)
        self.stores = ThreadAccesses(slots, size, warps, units)
        self.loads = ThreadAccesses(slots, size, warps, units)
        #: What each warp knew of every warp's intervals, its own included, at its last fence.proxy.async.
        self.fenced = np.zeros((slots * warps, self.members), np.int64)
        #: Lines of the cp.async and st.async instructions that have run.
        self._copy_lines: dict[int, str] = {}
        self.tensor_writer = np.zeros((slots, _QUARTERS, COLUMNS), np.int64)
        #: The last MMA that read A, metadata or scale factors there.
        self.tensor_async_reader = np.zeros((slots, _QUARTERS, COLUMNS), np.int64)
        #: In which of its intervals a warp last loaded a column: `PENDING` until tcgen05.wait::ld.
        self.tensor_reader_clock = np.zeros((slots, warps, COLUMNS), np.int64)
        #: The last tcgen05.ld of a warp in one of its intervals.
        self.tensor_loads: dict[tuple[int, int], Statement] = {}
        for slot in range(slots):
            self._forget(slot)

    def _forget(self, slot: int) -> None:
        """Threads begin to know nothing, in an interval of their own: clocks go on, since others may remember."""
        for row in range(slot * self.warps, (slot + 1) * self.warps):
            member = row % self.members
            clock = self.clocks[row, member] + 1
            self.clocks[row] = 0
            self.clocks[row, member] = clock
            self.known[row] = Knowledge(row // self.members, self.clocks[row])
            self.known_to_tensor_core[row] = set()
            self.before_thread_sync(row)
            self.released.pop(row, None)

    def clear(self, slot: int) -> None:
        """Make a slot ready for the next CTA."""
        self._forget(slot)
        for array in (self.written, self.async_writer, self.async_reader, self.barriers):
            array[slot] = 0
        self.fenced[slot * self.warps : (slot + 1) * self.warps] = 0
        self._remote.pop(slot, None)
        self.stores.clear(slot)
        self.loads.clear(slot)
        self.tensor_writer[slot] = 0
        self.tensor_async_reader[slot] = 0
        self.tensor_reader_clock[slot] = 0
        for number in [n for n, operation in self.operations.items() if operation.slot == slot]:
            del self.operations[number]

    def clock(self, row: int) -> int:
        """The interval in which a warp is: how often it has synchronised."""
        return int(self.known[row].clocks[row % self.members])

    def knows(self, row: int, other: int, clock: int) -> bool:
        """Whether a warp knows what another, of any cluster, did up to an interval of its."""
        known, cluster = self.known[row], other // self.members
        clocks = known.clocks if cluster == known.cluster else known.foreign.get(cluster)
        return clocks is not None and clocks[other % self.members] >= clock

    def intervals(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The interval in which each of these warps is."""
        return self.clocks[rows, rows % self.members]

    def know(self, rows: NDArray[np.int64], others: NDArray[Any], clocks: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Where warps know others of their own cluster up to these intervals."""
        inside = others // self.members == rows // self.members
        return inside & (self.clocks[rows, others % self.members] >= clocks)

    def warp_of(self, row: int, other: int) -> str:
        """A warp as another sees it."""
        if other // self.members == row // self.members:
            return self._warp_name(row, other % self.members)
        return f"warp {other % self.warps} of another {'cluster' if self.size > 1 else 'CTA'}"

    def _own(self, slot: int, clocks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The clocks of a slot's own warps, of those of its cluster."""
        first = slot % self.size * self.warps
        return clocks[first : first + self.warps]

    def _warp_name(self, row: int, member: int) -> str:
        """A warp of a cluster, as another (`row`) of it sees it."""
        rank, warp = divmod(member, self.warps)
        own = row % self.members // self.warps
        return f"warp {warp}" if rank == own else f"warp {warp} of the CTA of rank {rank}"

    # Synchronisation.

    def release(self, row: int) -> Knowledge:
        """What others learn from a warp that synchronises now; its later accesses are not part of it."""
        known = self.known[row]
        given = known.copy()
        known.clocks[row % self.members] += 1
        self._leak(row)
        return given

    def _leak(self, row: int) -> None:
        """A warp synchronises: tensor accesses that no fence has followed are not part of what it releases."""
        fresh = self._tensor_accesses.pop(row, None)
        if fresh:
            self._unfenced_accesses |= fresh
            self._leaked_accesses.setdefault(row, set()).update(fresh)

    def before_thread_sync(self, row: int) -> None:
        """tcgen05.fence::before_thread_sync, and commit: the warp's loads and stores come before what it releases."""
        self._tensor_accesses.pop(row, None)
        self._unfenced_accesses -= self._leaked_accesses.pop(row, set())

    def release_fence(self, row: int) -> None:
        """A fence that releases: what comes before it is known to who synchronises with relaxed operations after it."""
        self.released[row] = self.release(row)

    def release_inits(self, row: int, numbers: Iterable[int]) -> None:
        """fence.mbarrier_init: these inits are known to who synchronises with relaxed operations after it."""
        clocks = np.zeros(self.members, np.int64)
        given = self.released.setdefault(row, Knowledge(row // self.members, clocks))
        given.operations.update(numbers)

    def knows_init(self, row: int, made: MadeBarrier) -> bool:
        """Whether an mbarrier's init has happened before, as a warp knows."""
        return made.number in self.known[row].operations or self.knows(row, made.made_by, made.made_at)

    def acquire(self, row: int, given: Knowledge) -> None:
        """A warp learns what was released to it."""
        if len(given.operations) > _MANY:
            given.operations.intersection_update(self.operations)
        known = self.known[row]
        known.join(given)
        if len(known.operations) > _MANY:
            self._retire(row // self.members)

    def barrier(self, rows: list[int], given: Knowledge | None = None) -> None:
        """All warps of a CTA's barrier learn what all knew, and what those gave that only arrived."""
        together = self.release(rows[0])
        if given is not None:
            together.join(given)
        for row in rows[1:]:
            together.join(self.release(row))
        for row in rows:
            self.known[row].join(together)

    def barrier_of_all(self, slots: NDArray[np.int64]) -> None:
        """As `barrier` for all warps of each of these CTAs."""
        warps = np.arange(self.warps)
        rows = (slots * self.warps)[:, None] + warps
        for row in self._tensor_accesses.keys() & set(rows.ravel().tolist()) if self._tensor_accesses else ():
            self._leak(row)
        for cta in rows.tolist():
            given = [self.known[row] for row in cta]
            if any(known.foreign for known in given):
                self.barrier(cta)
                rows = rows[rows[:, 0] != cta[0]]
                continue
            together = set[int]().union(*(known.operations for known in given))
            for known in given:
                if len(known.operations) < len(together):
                    known.operations |= together
        clocks = self.clocks[rows]
        own = rows % self.members
        mine = clocks[np.arange(len(rows))[:, None], warps, own] + 1
        clocks[:] = clocks.max(axis=1, keepdims=True)
        clocks[np.arange(len(rows))[:, None], warps, own] = mine
        self.clocks[rows] = clocks

    def proxy_fence(self, row: int) -> None:
        """fence.proxy.async: the stores that the warp knows are visible to asynchronous operations after it."""
        known = self.known[row]
        self.fenced[row] = known.clocks
        known.clocks[row % self.members] += 1

    def after_thread_sync(self, row: int) -> None:
        """tcgen05.fence::after_thread_sync: what the warp knows now holds for its tcgen05 instructions too."""
        self.known_to_tensor_core[row] = set(self.known[row].operations)

    def _retire(self, cluster: int) -> None:
        """Drop operations that every warp of the cluster knows: no later access can conflict with them."""
        rows = range(cluster * self.members, (cluster + 1) * self.members)
        common = set.intersection(*(self.known[row].operations for row in rows))
        slots = slice(cluster * self.size, (cluster + 1) * self.size)
        common.difference_update(np.unique(self.tensor_writer[slots]).tolist())
        for row in rows:
            self.known[row].operations -= common
            self.known_to_tensor_core[row] -= common
        for number in common:
            self.operations.pop(number, None)

    def number(self) -> int:
        """A new number for something that completes at one point."""
        self._next += 1
        return self._next - 1

    def operation(
        self, what: str, statement: Statement, slot: int, *, swizzle: str | None = None, row: int | None = None
    ) -> AsyncOperation:
        """A new asynchronous operation."""
        made = AsyncOperation(self.number(), what, statement, slot, swizzle, row)
        self.operations[made.number] = made
        return made

    # The end of a CTA.

    def reaches(self, slot: int, row: int, statement: Statement) -> None:
        """A warp uses an mbarrier in the memory of another CTA of its cluster."""
        self._remote.setdefault(slot, {})[row % self.members] = self.clock(row), statement

    def cta_ends(self, slot: int, executed: Mapping[int, int]) -> None:
        """The last thread of a CTA leaves: whatever uses its shared memory must have happened before, as one of its
        warps knows. `executed` is how far each warp had come when it arrived at the cluster's barrier; also a relaxed
        arrival comes after what it has executed.
        """
        rows = range(slot * self.warps, (slot + 1) * self.warps)
        known = self.clocks[rows.start : rows.stop].max(axis=0)
        for member, clock in executed.items():
            known[member] = max(known[member], clock)
        operations = set[int]().union(*(self.known[row].operations for row in rows))
        for table, verb in ((self.async_writer, "write"), (self.async_reader, "read")):
            for number in np.unique(table[slot][table[slot] != 0]).tolist():
                operation = self.operations.get(number)
                if operation is None or number in operations:
                    continue
                grouped = verb == "read" and ("store" in operation.what or "reduction" in operation.what)
                self.findings.add(
                    "bulk-group-unwaited" if grouped else "cta-exit",
                    f"the CTA ends while the {operation.what} of line {operation.statement.line} may still {verb} its "
                    f"shared memory; {'cp.async.bulk.wait_group' if grouped else 'a wait for it'} is missing",
                    operation.statement,
                    severity="advice" if grouped else "error",
                )
        for member, (clock, statement) in self._remote.get(slot, {}).items():
            if clock > known[member]:
                self._peer_left_behind(rows.start, member, "use an mbarrier in", statement, statement.line)
        for accesses, verb in ((self.stores, "store to"), (self.loads, "load from")):
            table = accesses.table(slot)
            if table is None or len(table.latest) == self.warps:
                continue
            for at in np.flatnonzero((table.latest > known) & (table.latest < PENDING)):
                if int(at) // self.warps != slot % self.size:
                    line = int(table.line[at, int(table.clock[at].argmax())])
                    self._peer_left_behind(rows.start, int(at), verb, None, line)

    def _peer_left_behind(self, row: int, member: int, verb: str, statement: Statement | None, line: int) -> None:
        self.findings.add(
            "cta-exit",
            f"a CTA ends while {self._warp_name(row, member)} may still {verb} its shared memory (line {line}); "
            "barrier.cluster, or a wait for it, is missing before the end",
            statement,
        )

    # Shared memory. `slot` is the CTA whose memory it is, where that is not the operation's or the warp's own.

    def async_write(
        self, operation: AsyncOperation, row: int, units: NDArray[np.int64], slot: int | None = None
    ) -> None:
        """A bulk copy issued by warp `row` overwrites these 16-byte units."""
        slot = operation.slot if slot is None else slot
        self._against_writers(operation, row, slot, units, _ALL, "overwrites")
        self._against_readers(operation, row, slot, units, _ALL)
        self._spare_barriers(operation, slot, units, _ALL)
        self.written[slot, units] = _ALL
        self.async_writer[slot, units] = operation.number
        self.async_reader[slot, units] = 0
        self.stores.forget(slot, units, _ALL)
        self.loads.forget(slot, units, _ALL)

    def async_read(
        self, operation: AsyncOperation, row: int, units: NDArray[np.int64], slot: int | None = None,
        masks: Masks | np.uint16 = _ALL,
    ) -> None:  # fmt: skip
        """A tensor-core operation or bulk store issued by warp `row` reads bytes of these 16-byte units."""
        slot = operation.slot if slot is None else slot
        self._against_writers(operation, row, slot, units, masks, "reads")
        self._require_proxy_fence(operation, row, slot, units)
        self._require_written(operation, slot, units, masks)
        if operation.swizzle is not None:
            for number in distinct(self.async_writer[slot, units]):
                source = self.operations.get(int(number))
                if source is not None and source.swizzle not in (None, operation.swizzle):
                    self.findings.add(
                        "swizzle-mismatch",
                        f"the descriptor says swizzle {operation.swizzle}, but line {source.statement.line} wrote "
                        f"these bytes with swizzle {source.swizzle}",
                        operation.statement,
                        severity="advice",
                    )
        self.async_reader[slot, units] = operation.number

    def read_together(self, operation: AsyncOperation, rows: Sequence[int], units: NDArray[np.int64]) -> None:
        """An operation that several warps of a CTA issue together reads these units: each must know their writers."""
        self.async_read(operation, rows[0], units)
        slot = operation.slot
        writers = {int(number) for number in distinct(self.async_writer[slot, units])} - {0}
        table = self.stores.table(slot)
        for row in rows[1:]:
            known = self.known[row]
            stores = table is not None and bool((table.latest > table.of(known.clocks)).any())
            if stores or not writers <= known.operations:
                self._against_writers(operation, row, slot, units, _ALL, "reads")

    def accesses(
        self, rows: NDArray[np.int64], at: NDArray[np.int64], units: NDArray[np.int64], masks: Masks,
        changed: Masks | None, statement: Statement,
    ) -> bool:  # fmt: skip
        """Loads of many warps from their own CTA's memory, or stores if `changed` is given, as `read` and `write` take
        them: `rows[at]` accesses each of `units`. False where something is to be reported, so that they must be told
        one by one; nothing is kept then.
        """
        slots, warps = rows // self.warps, rows % self.warps
        slot, warp = slots[at], warps[at]
        writes, racing = changed is not None, masks if changed is None else changed
        kinds = (self.stores, self.loads) if writes else (self.stores,)
        if any(kind.apart[slots].any() for kind in (self.stores, self.loads)):
            return False
        if not self._over(self.async_writer[slot, units], rows, at):
            return False
        if writes:
            if (self.barriers[slot, units] & masks).any() or not self._over(self.async_reader[slot, units], rows, at):
                return False
            if len(rows) > 1 and len(np.unique(slot * self.written.shape[1] + units)) < len(units):
                return False  # warps that store to the same unit at once
        elif (masks & ~self.written[slot, units]).any():
            return False
        own = (slots % self.size * self.warps)[:, None] + np.arange(self.warps)
        known, each = self.clocks[rows[:, None], own], np.arange(len(rows))
        if (self.stores.latest[slots, warps] == PENDING).any():
            return False
        for kind in kinds:
            late = kind.latest[slots] > known
            late[each, warps] = False
            if late.any():
                hit = (kind.clock[slot, :, units] > known[at]) & ((kind.mask[slot, :, units] & racing[:, None]) != 0)
                hit[np.arange(len(at)), warp] = False
                if hit.any():
                    return False
        clocks = self.intervals(rows)[at]
        (self.stores if writes else self.loads).add_own(slot, warp, units, masks, clocks, statement.line)
        if writes:
            self.written[slot, units] |= masks
            self.async_writer[slot, units] = 0
            self.async_reader[slot, units] = 0
        return True

    def _over(self, numbers: NDArray[np.int64], rows: NDArray[np.int64], at: NDArray[np.int64]) -> bool:
        """Whether the warps know that these operations (0: none) are over."""
        if not numbers.any():
            return True
        for number in distinct(numbers).tolist():
            if number and number in self.operations:
                asking = rows[distinct(at[numbers == number])]
                if not all(number in self.known[row].operations for row in asking.tolist()):
                    return False
        return True

    def read(
        self, row: int, units: NDArray[np.int64], masks: Masks, statement: Statement, slot: int | None = None
    ) -> None:
        """A warp's own load of some bytes of each unit."""
        slot = row // self.warps if slot is None else slot
        access = AsyncOperation(0, "load", statement, slot)
        self._against_own_copies(access, row, units, masks, "reads")
        self._against_writers(access, row, slot, units, masks, "reads")
        self._require_written(access, slot, units, masks)
        self.loads.add(slot, row % self.members, units, masks, self.clock(row), statement.line)

    def write(
        self, row: int, units: NDArray[np.int64], masks: Masks, statement: Statement, slot: int | None = None,
        changed: Masks | None = None,
    ) -> None:  # fmt: skip
        """A warp's own store to some bytes of each unit. Those of them that are `changed` (all by default) may race:
        writing again what is there is harmless, and compilers do it where several warps hold the same value.
        """
        slot = row // self.warps if slot is None else slot
        access = AsyncOperation(0, "store", statement, slot)
        self._against_own_copies(access, row, units, masks, "overwrites")
        if changed is None or changed.any():
            racing = masks if changed is None else changed
            self._against_writers(access, row, slot, units, racing, "overwrites")
            self._against_readers(access, row, slot, units, racing)
        self._spare_barriers(access, slot, units, masks)
        self.stores.add(slot, row % self.members, units, masks, self.clock(row), statement.line)
        self._overwritten(slot, units, masks)

    def copy(
        self, row: int, units: NDArray[np.int64], masks: Masks, statement: Statement, slot: int | None = None,
        what: str = "cp.async",
    ) -> None:  # fmt: skip
        """A cp.async or st.async begins to write: until someone has waited for it, nobody may touch these bytes."""
        slot = row // self.warps if slot is None else slot
        self._copy_lines[statement.line] = what
        access = AsyncOperation(0, what, statement, slot)
        self._against_own_copies(access, row, units, masks, "overwrites")
        self._against_writers(access, row, slot, units, masks, "overwrites")
        self._against_readers(access, row, slot, units, masks)
        self.stores.add(slot, row % self.members, units, masks, PENDING, statement.line)
        self._overwritten(slot, units, masks)

    def copied(self, row: int, units: NDArray[np.int64], slot: int | None = None, clock: int | None = None) -> None:
        """What a warp's copies wrote to these units is there, as its stores in an interval: the present by default."""
        slot = row // self.warps if slot is None else slot
        self.stores.settle(slot, row % self.members, units, self.clock(row) if clock is None else clock)

    def _against_own_copies(
        self, access: AsyncOperation, row: int, units: NDArray[np.int64], masks: Masks, verb: str
    ) -> None:
        line = self.stores.pending(access.slot, row % self.members, units, masks)
        if line is not None:
            self._race(access, verb, f"the {self._copy_lines.get(line, 'copy')} of line {line}")

    def strong_write(self, row: int, units: NDArray[np.int64], masks: Masks, slot: int | None = None) -> None:
        """A warp's strong store: initialises, and orders rather than races."""
        slot = row // self.warps if slot is None else slot
        self.stores.forget(slot, units, masks)
        self._overwritten(slot, units, masks)

    def _overwritten(self, slot: int, units: NDArray[np.int64], masks: Masks) -> None:
        self.written[slot, units] |= masks
        self.async_writer[slot, units] = 0
        self.async_reader[slot, units] = 0

    def barrier_lives(self, slot: int, offset: int, alive: bool) -> None:
        """From now on there is an mbarrier at an offset of a CTA's memory, or none any more."""
        mask = np.uint16(0xFF << offset % UNIT)
        if alive:
            self.barriers[slot, offset // UNIT] |= mask
        else:
            self.barriers[slot, offset // UNIT] &= ~mask

    def _spare_barriers(
        self, access: AsyncOperation, slot: int, units: NDArray[np.int64], masks: Masks | np.uint16
    ) -> None:
        hit = self.barriers[slot, units] & masks
        if hit.any():
            unit = int(units[int((hit != 0).argmax())])
            self.findings.add(
                "mbarrier-overwritten",
                f"the {access.what} writes to an mbarrier at {unit * UNIT:#x} to {unit * UNIT + UNIT - 1:#x}; "
                "mbarrier.inval must come first",
                access.statement,
            )

    def _require_written(
        self, access: AsyncOperation, slot: int, units: NDArray[np.int64], masks: Masks | np.uint16
    ) -> None:
        missing = masks & ~self.written[slot, units]
        if missing.any():
            first = int(missing.astype(np.bool_).argmax())
            lowest = int(missing[first]) & -int(missing[first])
            at = int(units[first]) * UNIT + lowest.bit_length() - 1
            self.findings.add(
                "uninitialized-shared",
                f"the {access.what} reads shared memory at {at:#x} that nothing has written",
                access.statement,
            )

    def _require_proxy_fence(self, operation: AsyncOperation, row: int, slot: int, units: NDArray[np.int64]) -> None:
        """Stores of threads reach the async proxy by a fence of the storing warp, or of the issuing one."""
        table = self.stores.table(slot)
        if table is None:
            return
        first = row - row % self.members
        visible = table.of(np.maximum(np.diagonal(self.fenced[first : first + self.members]), self.fenced[row]))
        if (table.latest <= visible).all():
            return
        late = (table.clock[:, units] > visible[:, None]) & (table.mask[:, units] != 0)
        # Advice for cp.async: the manual has it in the generic proxy (9.7.9.25.3.1), but Triton leaves the fence out,
        # and its kernels are right on an H200 (driver 580, 2026-11-20).
        lines = [line for line, what in self._copy_lines.items() if what == "cp.async"]
        copied = np.isin(table.line[:, units], lines) if lines else np.zeros_like(late)
        for chosen, what in ((late & ~copied, "store"), (late & copied, "cp.async")):
            for other, line in self.stores.lines(slot, units, chosen):
                self.findings.add(
                    "missing-proxy-fence",
                    f"the {operation.what} reads data of the {what} of line {line} by {self._warp_name(row, other)} "
                    "without a fence.proxy.async between them",
                    operation.statement,
                    severity="error" if what == "store" else "advice",
                )

    def _against_writers(
        self, access: AsyncOperation, row: int, slot: int, units: NDArray[np.int64], masks: Masks | np.uint16,
        verb: str,
    ) -> None:  # fmt: skip
        known = self.known[row]
        for number in distinct(self.async_writer[slot, units]):
            if number and int(number) not in known.operations:
                earlier = self.operations.get(int(number))
                if earlier is not None:
                    self._race(access, verb, f"the {earlier.what} of line {earlier.statement.line}")
        for warp, line in self.stores.unknown(slot, row % self.members, units, masks, known.clocks):
            self._race_with_warp(access, verb, self._warp_name(row, warp), line, "store")

    def _against_readers(
        self, access: AsyncOperation, row: int, slot: int, units: NDArray[np.int64], masks: Masks | np.uint16
    ) -> None:
        known = self.known[row]
        for number in distinct(self.async_reader[slot, units]):
            if number and int(number) not in known.operations:
                earlier = self.operations.get(int(number))
                if earlier is not None:
                    what = f"the {earlier.what} of line {earlier.statement.line}"
                    self._race(access, "overwrites what may still be read by", what)
        for warp, line in self.loads.unknown(slot, row % self.members, units, masks, known.clocks):
            self._race_with_warp(access, "overwrites", self._warp_name(row, warp), line, "load")

    def _race_with_warp(self, access: AsyncOperation, verb: str, warp: str, line: int, what: str) -> None:
        where = f"the {what} of line {line} by {warp}"
        self._report(access, verb, f"{where}, with which its warp has not synchronised")

    def _race(self, access: AsyncOperation, verb: str, what: str) -> None:
        self._report(access, verb, f"{what}, whose completion its thread has not waited for")

    def _report(self, access: AsyncOperation, verb: str, what: str) -> None:
        data = "data of " if verb in ("reads", "overwrites") else ""
        self.findings.add("shared-race", f"the {access.what} {verb} {data}{what}", access.statement)

    # Tensor memory.

    def tensor_write(
        self, operation: AsyncOperation, row: int, quarters: list[int], columns: range, *, accumulates: bool = False,
        slot: int | None = None,
    ) -> None:  # fmt: skip
        """A tcgen05.mma, cp or shift issued by warp `row` writes, or adds to, columns in these quarters of the lanes.

        The tensor core's operations do not conflict with each other: the pipelines of 9.7.16.6.2 order most pairs, and
        CUTLASS and DeepGEMM rely on the order of a cp after the mma whose scale factors it overwrites.
        """
        slot = operation.slot if slot is None else slot
        known = self.known[row]
        span = slice(columns.start, columns.stop)
        if accumulates and (self.tensor_writer[slot, quarters, span] == 0).any():
            self._uninitialised(columns, "adds to", operation.statement)
        for number in np.unique(self.tensor_writer[slot, quarters, span]):
            earlier = self.operations.get(int(number))
            if earlier is None or earlier.what != "tcgen05.st":
                continue
            if earlier.number in known.operations:
                self._advise_fence(row, earlier, operation.what, operation.statement)
                continue
            # Two stores of one warp may be to different lanes of its quarter.
            if operation.what != "tcgen05.st" or earlier.row != row:
                self._unfinished_write(operation, earlier, columns, "has not waited for that store by tcgen05.wait::st")
        if self._unfenced_accesses:
            loaded = self.tensor_reader_clock[slot][:, span].max(axis=1, initial=0)
            for warp in np.flatnonzero(loaded):
                reader, latest = slot * self.warps + int(warp), int(loaded[warp])
                if reader != row and (reader, latest) in self._unfenced_accesses:
                    at = self.tensor_loads.get((reader, latest))
                    self._advise_fence_before("tcgen05.ld", at, operation.what, operation.statement)
        for warp, where in self._unknown_loads(row, slot, quarters, columns):
            self.findings.add(
                "tensor-race",
                f"the {operation.what} takes columns {columns.start}-{columns.stop - 1}, which {warp} may "
                f"still be reading with the {where}",
                operation.statement,
            )
        for quarter in quarters:
            self.tensor_writer[slot, quarter, span] = operation.number

    def _unknown_loads(self, row: int, slot: int, quarters: Sequence[int], columns: range) -> Iterator[tuple[str, str]]:
        """(warp, its load) of loads of a slot's cells that warp `row` does not know to be over."""
        latest = self.tensor_reader_clock[slot][:, columns.start : columns.stop].max(axis=1, initial=0)
        for warp in np.flatnonzero(latest > self._own(slot, self.known[row].clocks)):
            reader, pending = slot * self.warps + int(warp), latest[warp] == PENDING
            if warp % _QUARTERS in quarters and (pending or reader != row):
                earlier = self.tensor_loads.get((reader, int(latest[warp])))
                where = f" of line {earlier.line}" if earlier is not None else ""
                what = f"tcgen05.ld{where}" + (", without a tcgen05.wait::ld" if pending else "")
                yield self._warp_name(row, reader % self.members), what

    def tensor_core_read(
        self, operation: AsyncOperation, row: int, quarters: list[int], columns: range, what: str,
        slot: int | None = None,
    ) -> None:  # fmt: skip
        """A tcgen05.mma or shift issued by warp `row` reads `what` (A, scale factors) in columns of these quarters."""
        slot, span = operation.slot if slot is None else slot, slice(columns.start, columns.stop)
        writers = np.unique(self.tensor_writer[slot, quarters, span])
        if writers[0] == 0:
            self._uninitialised(columns, f"reads {what} in", operation.statement)
        for number in writers:
            earlier = self.operations.get(int(number))
            if earlier is None or earlier.what != "tcgen05.st":
                continue
            if earlier.number in self.known[row].operations:
                self._advise_fence(row, earlier, operation.what, operation.statement)
                continue
            self.findings.add(
                "tensor-race",
                f"the {operation.what} reads {what} in columns {columns.start}-{columns.stop - 1}, which the "
                f"tcgen05.st of line {earlier.statement.line} may still write; its warp has not waited for that "
                "store by tcgen05.wait::st",
                operation.statement,
            )
        self.tensor_async_reader[slot, quarters, span] = operation.number

    def tensor_freed(self, row: int, slot: int, columns: range, statement: Statement) -> None:
        """A warp frees columns: nothing may write or read them any more."""
        span, known = slice(columns.start, columns.stop), self.known[row]
        uses = {int(number): "read" for number in np.unique(self.tensor_async_reader[slot][:, span])}
        uses |= {int(number): "write" for number in np.unique(self.tensor_writer[slot][:, span])}
        for number, verb in uses.items():
            earlier = self.operations.get(number)
            if earlier is not None and number not in known.operations:
                what = f"the {earlier.what} of line {earlier.statement.line} may still {verb}"
                self._freed_in_use(f"{what}; its warp has not waited for it", statement)
        for warp, where in self._unknown_loads(row, slot, range(_QUARTERS), columns):
            self._freed_in_use(f"{warp} may still read with the {where}", statement)
        self.tensor_writer[slot][:, span] = 0
        self.tensor_async_reader[slot][:, span] = 0
        self.tensor_reader_clock[slot][:, span] = 0

    def _freed_in_use(self, what: str, statement: Statement) -> None:
        self.findings.add("tmem-freed-in-use", f"frees columns that {what}", statement)

    def tensor_store(self, operation: AsyncOperation, row: int, columns: range) -> None:
        """A warp's tcgen05.st writes columns of its quarter of the lanes."""
        quarter = row % self.warps % _QUARTERS
        for number in np.unique(self.tensor_writer[operation.slot, quarter, columns.start : columns.stop]):
            earlier = self.operations.get(int(number))
            if earlier is None or earlier.what == "tcgen05.st" or earlier.number in self.known[row].operations:
                continue
            self._unfinished_write(operation, earlier, columns, "has not waited for a tcgen05.commit of it")
        for number in np.unique(self.tensor_async_reader[operation.slot, quarter, columns.start : columns.stop]):
            earlier = self.operations.get(int(number))
            if earlier is not None and earlier.number not in self.known[row].operations:
                self.findings.add(
                    "tensor-race",
                    f"the {operation.what} takes columns {columns.start}-{columns.stop - 1}, which the "
                    f"{earlier.what} of line {earlier.statement.line} may still read; its warp has not waited for a "
                    "tcgen05.commit of it",
                    operation.statement,
                )
        self.tensor_write(operation, row, [quarter], columns)

    def stored(self, row: int, numbers: Sequence[int]) -> None:
        """A warp has waited for its tcgen05.st."""
        self.known[row].operations.update(numbers)
        self.known_to_tensor_core[row].update(numbers)
        self._tensor_accesses.setdefault(row, set()).update(numbers)

    def _unfinished_write(self, operation: AsyncOperation, earlier: AsyncOperation, columns: range, why: str) -> None:
        self.findings.add(
            "tensor-race",
            f"the {operation.what} takes columns {columns.start}-{columns.stop - 1}, which the {earlier.what} of line "
            f"{earlier.statement.line} may still write; its warp {why}",
            operation.statement,
        )

    def tensor_read(self, row: int, columns: range, statement: Statement) -> None:
        """A warp's tcgen05.ld reads columns of its quarter of the lanes."""
        slot, warp = divmod(row, self.warps)
        span = slice(columns.start, columns.stop)
        writers = np.unique(self.tensor_writer[slot, warp % _QUARTERS, span])
        if writers[0] == 0:
            self._uninitialised(columns, "reads", statement)
        for number in writers:
            earlier = self.operations.get(int(number))
            if earlier is None:
                continue
            if earlier.number not in self.known[row].operations:
                stored = earlier.what == "tcgen05.st"
                awaited = "that store by tcgen05.wait::st" if stored else "a tcgen05.commit of that operation"
                self.findings.add(
                    "tensor-race",
                    f"the load reads columns {columns.start}-{columns.stop - 1} that the {earlier.what} of line "
                    f"{earlier.statement.line} writes; its warp has not waited for {awaited}",
                    statement,
                )
            else:
                self._advise_fence(row, earlier, "load", statement)
        self.tensor_reader_clock[slot, warp, span] = PENDING
        self.tensor_loads[row, PENDING] = statement

    def _advise_fence(self, row: int, earlier: AsyncOperation, what: str, statement: Statement) -> None:
        """Advice: the manual asks for the fence (9.7.16.6.4), kernels by CuTe and Triton leave it out in places."""
        if earlier.number not in self.known_to_tensor_core[row]:
            self.findings.add(
                "missing-tcgen05-fence",
                f"tcgen05.fence::after_thread_sync is missing between the wait for the {earlier.what} of line "
                f"{earlier.statement.line} and this {what}",
                statement,
                severity="advice",
            )
        if earlier.number in self._unfenced_accesses and earlier.row != row:
            self._advise_fence_before(earlier.what, earlier.statement, what, statement)

    def _advise_fence_before(self, before: str, at: Statement | None, what: str, statement: Statement) -> None:
        where = f" of line {at.line}" if at is not None else ""
        self.findings.add(
            "missing-tcgen05-fence",
            f"tcgen05.fence::before_thread_sync is missing between the {before}{where} and the synchronisation of its "
            f"warp with that of this {what}",
            statement,
            severity="advice",
        )

    def tensor_loaded(self, row: int, loads: Sequence[tuple[range, Statement]]) -> None:
        """A warp has waited for its tcgen05.ld of these columns."""
        slot, warp = divmod(row, self.warps)
        clock = self.clock(row)
        for columns, statement in loads:
            self.tensor_reader_clock[slot, warp, columns.start : columns.stop] = clock
            self.tensor_loads[row, clock] = statement
        if loads:
            self._tensor_accesses.setdefault(row, set()).add((row, clock))

    def _uninitialised(self, columns: range, verb: str, statement: Statement) -> None:
        where = f"columns {columns.start}-{columns.stop - 1}"
        self.findings.add(
            "uninitialized-tensor", f"{verb} tensor memory in {where} that nothing has written", statement
        )
