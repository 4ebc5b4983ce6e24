"""The writers of each byte: a record of the stores, copies and MMAs of a launch, by the memory that they write and
read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.device import Access
from ptxgen.device.report import Role
from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.engines.matrix_operands import MatrixOperand
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.memory.global_memory import HEAP_BASE
from ptxgen.emulator.memory.granules import GRANULE
from ptxgen.emulator.memory.located import MemoryAccess
from ptxgen.emulator.observer import Lanes, MachineView, Observer, ProgramView
from ptxgen.emulator.state.signals import Signal
from ptxgen.syntax import Instruction, Statement

#: Events that are kept of a launch; what comes after is not recorded.
MOST_EVENTS = 2_000_000
#: Lanes of a band of tensor memory.
_BAND = 16


@dataclass(slots=True, eq=False)
class LaneAccess:
    """Lanes of warps access `size` bytes each: at offsets (warps, 32) of the heap, or of CTAs in `slots`."""

    order: int
    statement: Instruction
    warps: NDArray[np.int64]
    mask: Lanes
    slots: NDArray[np.int64] | None
    offsets: NDArray[np.int64]
    size: int

    def lanes_at(self, slot: int | None, offset: int) -> list[tuple[int, int]]:
        """The (warp position, lane) whose access has a byte, the one whose store wins last."""
        here = self.mask & (self.offsets <= offset) & (offset < self.offsets + self.size)
        if slot is not None:
            assert self.slots is not None
            here &= self.slots == slot
        return [(int(position), int(lane)) for position, lane in np.argwhere(here)]


@dataclass(slots=True, eq=False)
class WorkAccess:
    """Asynchronous work accesses granules of the heap, or of a CTA in `slot`."""

    order: int
    work: AsyncWork
    slot: int | None
    granules: NDArray[np.int64]


@dataclass(slots=True, eq=False)
class TensorAccess:
    """Work, or a warp's tcgen05.ld, accesses columns of bands of 16 lanes of a CTA's tensor memory."""

    order: int
    work: AsyncWork | None
    warp: int
    statement: Statement
    slot: int
    bands: Sequence[int]
    columns: range
    accumulates: bool = False

    def has(self, slot: int, lanes: range, columns: range) -> bool:
        """Whether it touches one of these cells."""
        return (
            self.slot == slot
            and max(self.columns.start, columns.start) < min(self.columns.stop, columns.stop)
            and any(lanes.start < _BAND * (band + 1) and _BAND * band < lanes.stop for band in self.bands)
        )


@dataclass(slots=True, eq=False)
class WorkRecord:
    """What asynchronous work reads and writes, and the phase of the mbarrier that it completes."""

    work: AsyncWork
    order: int
    warps: list[int]
    reads: list[WorkAccess | TensorAccess] = field(default_factory=list)
    #: Name of each operand in tensor memory.
    operands: list[str] = field(default_factory=list)
    writes: list[WorkAccess] = field(default_factory=list)
    signals: str = ""
    #: Of wgmma: whether it adds to its accumulator.
    accumulates: bool = True
    #: A and B in shared memory, by CTA slot in the order of the pair.
    matrices: list[tuple[int, MatrixOperand]] = field(default_factory=list)
    #: By CTA slot: where D of tcgen05.mma begins, (lane, column), and the cells of its elements from there.
    accumulators: dict[int, tuple[tuple[int, int], tuple[NDArray[np.int64], NDArray[np.int64]]]] = field(
        default_factory=dict
    )


@dataclass(frozen=True)
class Write:
    """The writer of a byte: the instruction with its warp, lane and CTA; `signals` the phase that a copy completes."""

    access: Access
    what: str
    signals: str = ""

    def __str__(self) -> str:
        return f"{self.access}{f', {self.what}' if self.what else ''}{f', {self.signals}' if self.signals else ''}"


class Provenance(Observer):
    """Records the writers and readers of memory in the last launch, in the order of issue: `Emulator(observers=[...])`.

    `writer_of_global`, `writer_of_shared` and `writer_of_tensor` name the last writer of a byte;
    `ptxgen.emulator.observers.why` walks back from there. A launch of more than `most` events is recorded up to there:
    `truncated` says so.
    """

    def __init__(self, most: int = MOST_EVENTS) -> None:
        self.most = most
        self.machine: MachineView | None = None
        self.program: ProgramView | None = None
        self._clear()

    def _clear(self) -> None:
        self.order = 0
        self.global_writes: list[LaneAccess | WorkAccess] = []
        self.shared_writes: list[LaneAccess | WorkAccess] = []
        self.tensor_writes: list[TensorAccess] = []
        self.loads: dict[int, list[LaneAccess]] = {}
        self.tensor_loads: dict[tuple[int, int], list[TensorAccess]] = {}
        self.works: dict[int, WorkRecord] = {}
        #: Works of wgmma by the first warp that issues them.
        self.warpgroups: dict[int, list[WorkRecord]] = {}
        self._begins: dict[int, list[tuple[int, tuple[int, int, int]]]] = {}

    @property
    def truncated(self) -> bool:
        return self.order >= self.most

    # What happens.

    def launch_begins(self, machine: MachineView, program: ProgramView) -> None:
        self._clear()
        self.machine, self.program = machine, program

    def ctas_begin(self, slots: NDArray[np.int64]) -> None:
        assert self.machine is not None
        self.order += 1
        for slot in slots.tolist():
            self._begins.setdefault(slot, []).append((self.order, self.machine.names.cta(slot)))

    def _lanes(self, access: MemoryAccess) -> LaneAccess | None:
        warps, _, space, places, size, statement, _ = access
        if (space != "global" and not space.startswith("shared")) or self.truncated:
            return None
        self.order += 1
        offsets = places.offsets if places.inside is None else places.inside
        shape = (len(warps), 32)
        return LaneAccess(
            self.order,
            statement,
            warps,
            access.active.copy(),
            None if places.slots is None else np.broadcast_to(places.slots, shape),
            np.broadcast_to(offsets, shape),
            size,
        )

    def memory_loads(self, access: MemoryAccess) -> None:
        made = self._lanes(access)
        if made is not None:
            self.loads.setdefault(id(access.statement), []).append(made)

    def memory_stores(self, access: MemoryAccess, values: Sequence[NDArray[Any]]) -> None:
        made = self._lanes(access)
        if made is not None:
            (self.global_writes if made.slots is None else self.shared_writes).append(made)

    def memory_updates(
        self, access: MemoryAccess, turns: NDArray[np.int64] | None, *, returns: bool, uses: bool
    ) -> None:
        made = self._lanes(access)
        if made is not None:
            (self.global_writes if made.slots is None else self.shared_writes).append(made)

    def copies_issued(
        self, works: Sequence[AsyncWork], access: MemoryAccess, sources: NDArray[np.int64], read: NDArray[np.int64]
    ) -> None:
        made = self._lanes(access)
        if made is not None:
            self.shared_writes.append(made)
            source = LaneAccess(
                made.order, access.statement, access.warps, made.mask & (read > 0), None, sources, access.size
            )
            self.loads.setdefault(id(access.statement), []).append(source)

    def work_issued(self, work: AsyncWork) -> None:
        if not self.truncated:
            self.order += 1
            self.works[work.number] = WorkRecord(work, self.order, [work.warp])

    def work_signals(self, work: AsyncWork, signal: Signal, offset: int) -> None:
        assert self.machine is not None
        record = self.works.get(work.number)
        mbarrier = self.machine.mbarriers[work.slot].get(offset)
        if record is not None and mbarrier is not None:
            name = self.machine.shared_names.name(offset)[0] or f"the mbarrier at {offset:#x}"
            record.signals = f"completes on phase {mbarrier.phase} of {name}"

    def work_reads_shared(
        self,
        work: AsyncWork,
        warps: Sequence[int],
        slot: int,
        granules: NDArray[np.int64],
        bytes: NDArray[np.uint16] | np.uint16,
        swizzle: str | None = None,
    ) -> None:
        record = self.works.get(work.number)
        if record is None:
            return
        record.reads.append(WorkAccess(record.order, work, slot, granules))
        if work.what == "wgmma.mma_async" and len(warps) > 1 and record.warps != list(warps):
            record.warps = list(warps)
            record.accumulates = self._adds(work)
            self.warpgroups.setdefault(warps[0], []).append(record)

    def _adds(self, work: AsyncWork) -> bool:
        """Whether the scale-d of a wgmma is true: its fourth operand, after D and both descriptors."""
        assert self.machine is not None
        assert self.program is not None
        statement = work.statement
        assert isinstance(statement, Instruction)
        text = str(statement.operands[3]) if len(statement.operands) > 3 else "1"
        negated, name = text.startswith("!"), text.lstrip("!").strip()
        register = self.program.registers_at(statement.line).get(name)
        if register is None:
            return text != "0"
        return bool(self.machine.registers[register.index][work.warp][0]) != negated

    def work_writes_shared(self, work: AsyncWork, slot: int, granules: NDArray[np.int64]) -> None:
        self._written(work, slot, granules, self.shared_writes)

    def work_reads_global(self, work: AsyncWork, granules: NDArray[np.int64]) -> None:
        record = self.works.get(work.number)
        if record is not None:
            record.reads.append(WorkAccess(record.order, work, None, granules))

    def work_writes_global(self, work: AsyncWork, granules: NDArray[np.int64]) -> None:
        self._written(work, None, granules, self.global_writes)

    def _written(
        self,
        work: AsyncWork,
        slot: int | None,
        granules: NDArray[np.int64],
        writes: list[LaneAccess | WorkAccess],
    ) -> None:
        record = self.works.get(work.number)
        if record is not None:
            made = WorkAccess(record.order, work, slot, granules)
            record.writes.append(made)
            writes.append(made)

    def async_store_issued(self, work: AsyncWork, offsets: NDArray[np.int64], size: int, signal: Signal) -> None:
        self._written(work, work.slot, np.unique(offsets // GRANULE), self.shared_writes)

    def tensor_read(self, warp: int, bands: list[int], columns: range, statement: Statement) -> None:
        if self.truncated:
            return
        assert self.machine is not None
        self.order += 1
        slot = int(self.machine.cta_slot[warp])
        made = TensorAccess(self.order, None, warp, statement, slot, bands, columns)
        self.tensor_loads.setdefault((warp, id(statement)), []).append(made)

    def tensor_stored(self, work: AsyncWork, bands: list[int], columns: range) -> None:
        self.tensor_written(work, work.slot, bands, columns)

    def tensor_written(
        self, work: AsyncWork, slot: int, bands: list[int], columns: range, *, accumulates: bool = False
    ) -> None:
        record = self.works.get(work.number)
        if record is not None:
            made = TensorAccess(record.order, work, work.warp, work.statement, slot, bands, columns, accumulates)
            self.tensor_writes.append(made)

    def operand_read(
        self, work: AsyncWork, slot: int, operand: MatrixOperand, sum: Hashable, *, accumulates: bool
    ) -> None:
        record = self.works.get(work.number)
        if record is not None:
            record.matrices.append((slot, operand))

    def accumulator_written(
        self,
        work: AsyncWork,
        slot: int,
        bands: list[int],
        columns: range,
        type: str,
        place: tuple[int, int],
        cells: tuple[NDArray[np.int64], NDArray[np.int64]],
    ) -> None:
        record = self.works.get(work.number)
        if record is not None:
            record.accumulators[slot] = place, cells

    def tensor_operand_read(self, work: AsyncWork, slot: int, bands: list[int], columns: range, what: str) -> None:
        record = self.works.get(work.number)
        if record is not None:
            record.reads.append(TensorAccess(record.order, work, work.warp, work.statement, slot, bands, columns))
            record.operands.append(what)

    # The writer.

    def slot_of(self, cta: tuple[int, int, int] | int) -> tuple[int, int]:
        """The slot of a CTA of the grid, and an order after its last event. Raises LookupError."""
        wanted = (cta, 0, 0) if isinstance(cta, int) else cta
        for slot, begins in self._begins.items():
            for number, (_, found) in enumerate(begins):
                if found == wanted:
                    return slot, begins[number + 1][0] if number + 1 < len(begins) else self.order + 1
        raise LookupError(f"no CTA {wanted} has begun in this launch")

    def begin(self, slot: int, order: int) -> int:
        """When the CTA began that was in a slot at a time."""
        begins = self._begins.get(slot, [])
        index = bisect_right(begins, order, key=lambda each: each[0]) - 1
        return begins[index][0] if index >= 0 else 0

    def cta(self, slot: int, order: int) -> tuple[int, int, int]:
        """%ctaid of that CTA."""
        begins = self._begins.get(slot, [])
        index = bisect_right(begins, order, key=lambda each: each[0]) - 1
        return begins[max(index, 0)][1] if begins else (0, 0, 0)

    def last_global(self, address: int, before: int | None = None) -> LaneAccess | WorkAccess | None:
        """What wrote a byte of global memory last, before a time."""
        return next(self._writes(self.global_writes, None, address - HEAP_BASE, before), None)

    def last_shared(self, slot: int, offset: int, before: int) -> LaneAccess | WorkAccess | None:
        """What wrote a byte of a CTA's shared memory last, before a time, since the CTA began."""
        return next(self._writes(self.shared_writes, slot, offset, before), None)

    def last_writers(self, slot: int, granules: Sequence[int], before: int) -> list[LaneAccess | WorkAccess | None]:
        """What wrote the first byte of each of these granules of a CTA last, before a time."""
        begin, found = self.begin(slot, before - 1), dict[int, LaneAccess | WorkAccess]()
        left = set(granules)
        for number in range(bisect_left(self.shared_writes, before, key=lambda each: each.order) - 1, -1, -1):
            each = self.shared_writes[number]
            if each.order < begin or not left:
                break
            if isinstance(each, WorkAccess):
                here = left.intersection(each.granules.tolist()) if each.slot == slot else set[int]()
            else:
                here = {granule for granule in left if each.lanes_at(slot, granule * GRANULE)}
            found.update(dict.fromkeys(here, each))
            left -= here
        return [found.get(granule) for granule in granules]

    def _writes(
        self, writes: Sequence[LaneAccess | WorkAccess], slot: int | None, offset: int, before: int | None
    ) -> Iterator[LaneAccess | WorkAccess]:
        begin = self.begin(slot, before - 1) if slot is not None and before is not None else 0
        for each in reversed(writes):
            if before is not None and each.order >= before:
                continue
            if each.order < begin:
                return
            if isinstance(each, WorkAccess):
                if each.slot == slot and any_set(each.granules == offset // GRANULE):
                    yield each
            elif each.lanes_at(slot, offset):
                yield each

    def tensor_writers(self, slot: int, lanes: range, columns: range, before: int) -> list[TensorAccess]:
        """What wrote cells last, before a time: the last work that did not add to them, and what has added since."""
        found: list[TensorAccess] = []
        begin = self.begin(slot, before - 1)
        for each in reversed(self.tensor_writes):
            if each.order < before and each.has(slot, lanes, columns):
                if each.order < begin:
                    break
                found.append(each)
                if not each.accumulates:
                    break
        return found[::-1]

    def write(self, found: LaneAccess | WorkAccess | TensorAccess, slot: int | None = None, offset: int = 0) -> Write:
        """An event in words; of a store the lane that wrote the byte at `offset`."""
        if isinstance(found, LaneAccess):
            position, lane = found.lanes_at(slot, offset)[-1]
            return Write(self.access(found.statement, int(found.warps[position]), found.order, lane), "")
        if found.work is None:
            return Write(self.access(found.statement, found.warp, found.order), "")
        work = found.work
        record = self.works[work.number]
        return Write(self.access(work.statement, work.warp, found.order, work.lane), work.what, record.signals)

    def access(self, statement: Statement, warp: int, order: int, lane: int | None = None) -> Access:
        """The instruction of a warp at a time, as findings name it."""
        assert self.machine is not None
        role: Role = "writer"
        slot = int(self.machine.cta_slot[warp])
        lanes = None if lane is None else 1 << lane
        warp_id = warp % self.machine.warps_per_cta
        return Access(role, statement.line, statement.text.strip(), warp_id, lanes, self.cta(slot, order))

    def writer_of_global(self, address: int) -> Write | None:
        """The last writer of a byte of global memory; None if the launch has not written it."""
        found = self.last_global(address)
        return None if found is None else self.write(found, None, address - HEAP_BASE)

    def writer_of_shared(self, offset: int, cta: tuple[int, int, int] | int = 0) -> Write | None:
        """The last writer of a byte of a CTA's shared memory, at an offset as findings and views have it."""
        slot, before = self.slot_of(cta)
        found = self.last_shared(slot, offset, before)
        return None if found is None else self.write(found, slot, offset)

    def writer_of_tensor(self, lane: int, column: int, cta: tuple[int, int, int] | int = 0) -> Write | None:
        """The last writer of a cell of a CTA's tensor memory."""
        slot, before = self.slot_of(cta)
        found = self.tensor_writers(slot, range(lane, lane + 1), range(column, column + 1), before)
        return self.write(found[-1]) if found else None
