"""Walks back from an element to the stores, MMAs and copies that produced it: `ptxgen run --why c[3,5]`.

Memory is followed as the launch accessed it, registers by the text: all instructions of the kernel that write a source
register may have made its value, so that a register which is used for several things shows more than one origin.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from ptxgen.device.placed import Placed
from ptxgen.device.report import line_list
from ptxgen.emulator.memory.global_memory import HEAP_BASE
from ptxgen.emulator.memory.granules import GRANULE
from ptxgen.emulator.observers.operand_elements import Cell, OperandElements, cell_of
from ptxgen.emulator.observers.provenance import LaneAccess, Provenance, TensorAccess, WorkAccess, WorkRecord
from ptxgen.layouts.fragments import wgmma_accumulator_fragment
from ptxgen.layouts.tmem import LoadShape, load_cells
from ptxgen.syntax import Instruction, Statement
from ptxgen.syntax.operands import Name, Operand, Vector

if TYPE_CHECKING:
    from ptxgen.emulator.load.program import Operation, Program

#: Steps below a step, instructions of a chain of registers, and steps from the element on.
_CHILDREN, _CHAIN, _DEPTH = 6, 400, 24


@dataclass
class Step:
    """What happened, in words, and what its sources are."""

    text: str
    sources: list[Step] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(self._lines(0))

    def _lines(self, depth: int) -> Iterator[str]:
        yield "  " * depth + self.text
        for each in self.sources:
            yield from each._lines(depth + 1)

    def add(self, sources: Iterable[Step]) -> Step:
        """The step with sources, the same ones once and at most a few."""
        for each in sources:
            if str(each) not in map(str, self.sources):
                self.sources.append(each)
        if len(self.sources) > _CHILDREN:
            left = len(self.sources) - _CHILDREN
            self.sources = [*self.sources[:_CHILDREN], Step(f"... and {left} more")]
        return self


#: A register, and which quarters of it matter.
_Value = tuple[int, frozenset[int]]
_ALL_QUARTERS = frozenset(range(4))
#: Conversions of two numbers to the halves of a register.
_PACKS = re.compile(r"cvt\.(\w+\.)*b?f16x2\.f32$")


#: The shape and the number of tcgen05.ld.
_LOAD_SHAPES = re.compile(r"\.(32x32b|16x64b|16x128b|16x256b)\.x(\d+)\.")


@dataclass(frozen=True)
class _Thread:
    """A lane of a warp at a time; lane None: any of them."""

    warp: int
    lane: int | None
    order: int


class Reaching:
    """Which instructions may have written a register that another reads, by the control flow of the text."""

    def __init__(self, program: Program) -> None:
        self._blocks = program.blocks
        self._places = {
            id(operation): (number, index)
            for number, block in enumerate(program.blocks)
            for index, operation in enumerate(block.operations)
        }
        self._before: dict[int, list[int]] = {}
        for number, block in enumerate(program.blocks):
            for after in {*block.targets, block.following}:
                self._before.setdefault(after, []).append(number)

    def writers(self, register: int, user: Operation) -> list[Operation]:
        """The last instructions before `user` that write a register, on each way to it."""
        found: list[Operation] = []
        number, index = self._places[id(user)]
        waiting, seen = [(number, index)], set[int]()
        while waiting:
            number, index = waiting.pop()
            for operation in reversed(self._blocks[number].operations[:index]):
                if register in operation.use.writes:
                    if operation not in found:
                        found.append(operation)
                    if not operation.use.guarded:
                        break
            else:
                for before in self._before.get(number, []):
                    if before not in seen:
                        seen.add(before)
                        waiting.append((before, len(self._blocks[before].operations)))
        return found


class Why:
    """Explains elements of the launch that a Provenance has recorded; `arrays` name global memory."""

    def __init__(self, history: Provenance, arrays: Mapping[str, Placed]) -> None:
        if history.machine is None:
            raise LookupError("no launch has been recorded yet")
        self._history, self._machine, self._arrays = history, history.machine, arrays
        self._program = cast("Program", history.program)
        self._operations = {id(each.statement): each for each in self._program.operations}
        self._reaching = Reaching(self._program)
        self._elements_of_operands = OperandElements(history, arrays)

    def explain(self, array: Placed, index: Sequence[int]) -> Step:
        """Where an element's value comes from. Raises ElementError for an element that there is not."""
        address = array.address_of(index)
        root = Step(f"{array.name}[{', '.join(map(str, index))}] ({address:#x})")
        found = self._history.last_global(address)
        if found is None:
            cut = f"; only the first {self._history.most} events were recorded" if self._history.truncated else ""
            return root.add([Step(f"no recorded write of this launch{cut}")])
        return root.add([self._written(found, None, address - HEAP_BASE, _DEPTH)])

    # Memory.

    def _written(self, found: LaneAccess | WorkAccess, slot: int | None, offset: int, depth: int) -> Step:
        """A write of a byte, and what it wrote."""
        made = Step(str(self._history.write(found, slot, offset)))
        if depth <= 0:
            return made.add([Step("...")])
        if isinstance(found, LaneAccess):
            position, lane = found.lanes_at(slot, offset)[-1]
            thread = _Thread(int(found.warps[position]), lane, found.order)
            copied = [each for each in self._history.loads.get(id(found.statement), []) if each.order == found.order]
            if copied:  # cp.async
                source = int(copied[0].offsets[position, lane]) + offset - int(found.offsets[position, lane])
                return made.add(self._global(source, source + 1, found.order, depth - 1))
            part = (offset - int(found.offsets[position, lane])) / found.size
            return made.add(self._registers(found.statement, part, thread, depth - 1))
        record = self._history.works[found.work.number]
        return made.add(self._copied(record, found, offset, depth - 1))

    def _copied(self, record: WorkRecord, written: WorkAccess, offset: int, depth: int) -> Iterator[Step]:
        """The sources of a copy, those of the byte's granule where source and destination have as many."""
        for read in record.reads:
            if not isinstance(read, WorkAccess):
                continue
            granules = read.granules
            if len(granules) == len(written.granules):
                granules = granules[written.granules == offset // GRANULE][:1]
            yield from self._granules(read.slot, granules, read.order, depth, offset % GRANULE)

    def _granules(
        self, slot: int | None, granules: NDArray[np.int64], order: int, depth: int, byte: int = 0
    ) -> list[Step]:
        """The writers of granules of a CTA, or of a byte of one; or which elements granules of the heap are."""
        if not len(granules):
            return []
        if slot is None:
            return self._global(int(granules.min()) * GRANULE, (int(granules.max()) + 1) * GRANULE, order, depth)
        place, _ = self._machine.shared_names.name(int(granules.min()) * GRANULE)
        last = self._machine.shared_names.name(int(granules.max()) * GRANULE)[0]
        first, rest = place.partition("+")[0], last.partition("+")[0]
        where = (first if first == rest else f"{place} to {last}") or f"shared memory at {int(granules.min()) * 16:#x}"
        below: list[Step] = []
        left = np.unique(granules)
        while len(left) and len(below) <= _CHILDREN:
            offset = int(left[0]) * GRANULE + (byte if len(granules) == 1 else 0)
            found = self._history.last_shared(slot, offset, order)
            if found is None:
                below.append(Step(f"{where}: {offset:#x} is uninitialized"))
                break
            below.append(self._written(found, slot, offset, depth - 1))
            if isinstance(found, WorkAccess):
                left = np.setdiff1d(left, found.granules)
            else:
                assert found.slots is not None
                here = found.mask & (found.slots == slot)
                left = np.setdiff1d(left, found.offsets[here] // GRANULE)
        return [Step(f"{where} of CTA {self._cta(slot, order)}").add(below)]

    def _cta(self, slot: int, order: int) -> str:
        cta = self._history.cta(slot, order)
        return str(cta if any(cta[1:]) else cta[0])

    def _global(self, start: int, end: int, order: int, depth: int) -> list[Step]:
        """Bytes of the heap: elements of arrays, and their writers where this launch wrote them."""
        name = self._elements(start + HEAP_BASE, end + HEAP_BASE)
        found = self._history.last_global(start + HEAP_BASE, order)
        made = Step(f"{name}, {'an input' if found is None else 'which this launch wrote'}")
        return [made if found is None else made.add([self._written(found, None, start, depth - 1)])]

    def _elements(self, start: int, end: int) -> str:
        for each in self._arrays.values():
            first, last = each.index_of(start), each.index_of(min(end, each.address + each.bytes) - 1)
            if first is not None and last is not None:
                return f"{each.name}[{_ranges(first, last)}]"
        return self._machine.memory.element(start) or f"global memory at {start:#x}"

    # Registers.

    @staticmethod
    def _stored(operation: Operation, part: float) -> list[_Value]:
        """The register, and its quarter, that makes `part` of what a store writes; or all values that it takes."""
        names, last = operation.names.in_scope(), operation.statement.operands[-1]
        operands: Sequence[Operand] = last.elements if isinstance(last, Vector) else [last]
        place = part * len(operands)
        chosen = operands[min(int(place), len(operands) - 1)]
        whole = operation.use.writes or operation.statement.opcode.startswith(("stmatrix", "tcgen05.st"))
        if isinstance(chosen, Name) and str(chosen) in names and not whole:
            return [(names[str(chosen)].index, frozenset([min(int(place % 1 * 4), 3)]))]
        return [(each, _ALL_QUARTERS) for each in sorted(_values(operation))]

    def _registers(self, statement: Statement, part: float, thread: _Thread, depth: int) -> list[Step]:
        """The loads and MMAs that made what a store writes, through whatever computes."""
        user = self._operations.get(id(statement))
        if user is None:
            return []
        values = self._stored(user, part)
        if user.statement.opcode.startswith("stmatrix"):  # the row of a lane comes from registers of others
            values, thread = self._stored_matrix(user, values, part, thread)
        found: dict[object, list[Step]] = {}
        waiting = [(register, quarters, user, thread) for register, quarters in values]
        asked: set[object] = set()
        while waiting and len(asked) < _CHAIN:
            register, wanted, user, who = waiting.pop(0)
            for operation in self._reaching.writers(register, user):
                steps = self._made(operation, register, who, depth)
                if steps is not None:  # of one lane, or later of all
                    found[operation if ".ld." not in operation.statement.opcode else (operation, register)] = steps
                    continue
                # A shuffle takes the values of other lanes.
                lane = None if operation.statement.opcode.startswith("shfl") else who.lane
                for source, quarters in _read_by(operation, register, wanted):
                    key = source, operation, lane, quarters
                    if key not in asked:
                        asked.add(key)
                        waiting.append((source, quarters, operation, replace(who, lane=lane)))
        steps = [step for made in found.values() for step in made]
        return steps or [Step("computed from parameters, constants and special registers")]

    @staticmethod
    def _stored_matrix(
        user: Operation, values: list[_Value], part: float, thread: _Thread
    ) -> tuple[list[_Value], _Thread]:
        """The register and the lane of stmatrix of 16 bits that make `part` of the row of a lane; else any lane."""
        statement, lane = user.statement, thread.lane
        vector = statement.operands[-1]
        elements: Sequence[Operand] = vector.elements if isinstance(vector, Vector) else [vector]
        names = user.names.in_scope()
        known = ".m8n8." in statement.opcode and statement.opcode.endswith(".b16") and lane is not None
        if not known or lane is None or lane // 8 >= len(elements) or str(elements[lane // 8]) not in names:
            return values, replace(thread, lane=None)
        row, byte = lane % 8, int(part * 16)
        column = byte // 2
        if ".trans" in statement.opcode:
            row, column = column, row
        quarter = column % 2 * 2 + byte % 2
        register = names[str(elements[lane // 8])].index
        return [(register, frozenset([quarter]))], replace(thread, lane=4 * row + column // 2)

    def _made(self, operation: Operation, register: int, thread: _Thread, depth: int) -> list[Step] | None:
        """How an instruction made a register from memory or by MMAs; None if only from other registers."""
        statement, traits = operation.statement, operation.traits
        if traits is None or (not traits.effects and not traits.multiplies):
            return None
        if (thread.warp, id(statement)) in self._history.tensor_loads:
            return self._tensor_load(operation, register, thread, depth)
        if statement.opcode.startswith("wgmma.mma_async"):
            return self._wgmma(operation, register, thread, depth)
        loads = self._history.loads.get(id(statement))
        if loads is None:
            return [] if traits.effects else None
        before = [each for each in loads if each.order < thread.order and thread.warp in each.warps]
        if not before:
            return []
        each = before[-1]
        position = int(np.flatnonzero(each.warps == thread.warp)[0])
        lanes, lane = each.mask[position], thread.lane
        if lane is not None and lanes[lane]:
            lanes = np.arange(32) == lane
        access = self._history.access(statement, thread.warp, each.order, lane)
        times = f", the last of {len(before)} times" if len(before) > 1 else ""
        offsets = each.offsets[position][lanes]
        if each.slots is None:
            below = self._global(int(offsets.min()), int(offsets.max()) + each.size, each.order, depth - 1)
        else:
            slot = int(each.slots[position][lanes][0])
            below = self._granules(
                slot, np.unique(offsets // GRANULE), each.order, depth - 1, int(offsets[0]) % GRANULE
            )
        return [Step(f"{access}{times}").add(below)]

    def _tensor_load(self, operation: Operation, register: int, thread: _Thread, depth: int) -> list[Step]:
        loads = self._history.tensor_loads[thread.warp, id(operation.statement)]
        read = next((each for each in reversed(loads) if each.order < thread.order), None)
        if read is None:
            return []
        if ".16x32bx2" in operation.statement.opcode and thread.lane is not None and thread.lane < 16:
            # Two reads; these lanes have the first.
            read = next((each for each in loads if each.order == read.order - 1), read)
        lanes, columns = _cells(operation, register, read, thread)
        access = self._history.access(operation.statement, thread.warp, read.order)
        cell = f"lane {lanes.start}" if len(lanes) == 1 else f"lanes {lanes.start}-{lanes.stop - 1}"
        cell += f", column {columns.start}" if len(columns) == 1 else f", columns {columns.start}-{columns.stop - 1}"
        made = Step(f"{access} of tensor memory, {cell}")
        writers = self._history.tensor_writers(read.slot, lanes, columns, read.order)
        if not writers:
            return [made.add([Step("uninitialized")])]
        records = [self._history.works[each.work.number] for each in writers if each.work is not None]
        cells = [
            cell_of(each, read.slot, lanes.start, columns.start) if len(lanes) == len(columns) == 1 else None
            for each in records
        ]
        return [made.add(self._multiplied(records, depth - 1, adds=writers[0].accumulates, cells=cells))]

    def _wgmma(self, operation: Operation, register: int, thread: _Thread, depth: int) -> list[Step]:
        first = thread.warp - thread.warp % self._machine.warps_per_cta % 4
        every = [each for each in self._history.warpgroups.get(first, []) if each.order < thread.order]
        accumulator = self._operations[id(operation.statement)].use.writes
        records: list[WorkRecord] = []
        for each in reversed(every):
            other = self._operations.get(id(each.work.statement))
            if other is None or accumulator.isdisjoint(other.use.writes):
                continue
            records.append(each)
            if not each.accumulates:
                break
        if not records:
            return []
        cells = [self._cell_of_wgmma(each, register, thread) for each in records[::-1]]
        return self._multiplied(records[::-1], depth - 1, adds=records[-1].accumulates, cells=cells)

    def _cell_of_wgmma(self, record: WorkRecord, register: int, thread: _Thread) -> Cell | None:
        """Row and column of D in a register of a thread; None where that has two, or another MMA wrote it."""
        statement = record.work.statement
        operation = self._operations.get(id(statement))
        vector = statement.operands[0] if isinstance(statement, Instruction) else None
        if operation is None or not isinstance(vector, Vector) or thread.lane is None:
            return None
        names = operation.names.in_scope()
        written = [names[str(each)].index if str(each) in names else -1 for each in vector.elements]
        b = next((operand for _, operand in record.matrices if operand.side == "B"), None)
        if register not in written or b is None or len(written) * 2 != b.rows:
            return None
        rows, columns = wgmma_accumulator_fragment(b.rows, 32)
        first = record.work.warp
        place = (thread.warp - first) * 32 + thread.lane, written.index(register), 0
        return Cell(record.work.slot, int(rows[place]), int(columns[place]))

    def _multiplied(
        self,
        records: Sequence[WorkRecord],
        depth: int,
        *,
        adds: bool,
        cells: Sequence[Cell | None] = (),
    ) -> list[Step]:
        """MMAs, or other work, of the same kind together, with all that they read; `cells` are the elements of D."""
        places = dict(zip((each.work.number for each in records), cells, strict=False))
        kinds: dict[str, list[WorkRecord]] = {}
        for each in records:
            kinds.setdefault(each.work.what, []).append(each)
        found: list[Step] = []
        for what, works in kinds.items():
            last = works[-1]
            access = self._history.access(last.work.statement, last.work.warp, last.order, last.work.lane)
            lines = line_list(each.work.statement.line for each in works)
            count = f"{len(works)} of them ({lines})" if len(works) > 1 else what
            begins = "the first adds to what was there" if adds else "the first overwrites"
            made = Step(f"{access}, {count}{f', {begins}' if len(works) > 1 else ''}")
            elements = self._elements_of_operands.lines([(each, places.get(each.work.number)) for each in works])
            made.add([Step(each) for each in elements])
            made.add(self._operands(works, depth))
            found.append(made)
        return found

    def _operands(self, works: Sequence[WorkRecord], depth: int) -> Iterator[Step]:
        """What MMAs read: by operand (the first, second, ... that they read), the copies of all of them together."""
        if depth <= 0:
            yield Step("...")
            return
        shared: dict[str, list[tuple[WorkRecord, WorkAccess]]] = {}
        for record in works:
            names = iter(record.operands)
            for read in record.reads:
                if isinstance(read, WorkAccess):
                    offset = int(read.granules.min()) * GRANULE if len(read.granules) else 0
                    name = self._machine.shared_names.name(offset)[0]
                    region = name.partition("+")[0].partition(" stage")[0].partition("[")[0]
                    shared.setdefault(region, []).append((record, read))
                elif record is works[-1]:
                    yield self._tensor_operand(next(names, "an operand"), read, depth - 1)
                else:
                    next(names, None)
        for region, reads in shared.items():
            yield Step(region or "shared memory").add(self._filled(reads, depth - 1))

    def _tensor_operand(self, name: str, read: TensorAccess, depth: int) -> Step:
        lanes = range(16 * min(read.bands, default=0), 16 * (max(read.bands, default=0) + 1))
        writers = self._history.tensor_writers(read.slot, lanes, read.columns, read.order)
        made = Step(f"{name} in tensor memory, columns {read.columns.start}-{read.columns.stop - 1}")
        records = [self._history.works[each.work.number] for each in writers if each.work is not None]
        stores = [each for each in records if each.work.what == "tcgen05.st"]
        if stores:
            thread = _Thread(stores[-1].work.warp, None, stores[-1].order)
            access = self._history.access(stores[-1].work.statement, thread.warp, thread.order)
            below = self._registers(stores[-1].work.statement, 0.0, thread, depth - 1)
            return made.add([Step(str(access)).add(below)])
        return made.add(self._multiplied(records, depth, adds=False) if records else [Step("uninitialized")])

    def _filled(self, reads: Sequence[tuple[WorkRecord, WorkAccess]], depth: int) -> Iterator[Step]:
        """The writers of what MMAs read of one region of shared memory: copies of one instruction together."""
        copies: dict[int, list[WorkRecord]] = {}
        others: dict[int, tuple[LaneAccess, int, int]] = {}
        for _, read in reads:
            left = np.unique(read.granules)
            while len(left):
                offset = int(left[0]) * GRANULE
                slot = cast("int", read.slot)
                found = self._history.last_shared(slot, offset, read.order)
                if isinstance(found, WorkAccess):
                    record = self._history.works[found.work.number]
                    known = copies.setdefault(id(found.work.statement), [])
                    if record not in known:
                        known.append(record)
                    left = np.setdiff1d(left, found.granules)
                elif found is not None:
                    others.setdefault(id(found.statement), (found, slot, offset))
                    assert found.slots is not None
                    left = np.setdiff1d(left, found.offsets[found.mask & (found.slots == slot)] // GRANULE)
                else:
                    yield Step(f"{self._machine.names.place('shared', offset)} is uninitialized")
                    break
        for records in copies.values():
            yield self._copies(records, depth)
        for found, slot, offset in others.values():
            yield self._written(found, slot, offset, depth)

    def _copies(self, records: Sequence[WorkRecord], depth: int) -> Step:
        """Copies of one instruction, from the first element that they read to the last."""
        last = records[-1]
        write = self._history.write(last.writes[0])
        many = f"{len(records)} times, the last {last.signals}" if len(records) > 1 else write.signals
        sources = [each.granules for record in records for each in record.reads if isinstance(each, WorkAccess)]
        heap = [
            each.granules
            for record in records
            for each in record.reads
            if isinstance(each, WorkAccess) and each.slot is None and len(each.granules)
        ]
        made = Step(f"{write.access}{f', {many}' if many else ''}")
        if heap:
            low, high = min(int(each.min()) for each in heap), max(int(each.max()) for each in heap)
            return made.add([Step(f"{self._box(low, high, heap)}, an input")])
        if sources:
            read = next(each for each in last.reads if isinstance(each, WorkAccess))
            return made.add(self._granules(read.slot, read.granules, read.order, depth - 1))
        return made

    def _box(self, low: int, high: int, heap: Sequence[NDArray[np.int64]]) -> str:
        """The elements in granules of the heap: a box of an array."""
        for each in self._arrays.values():
            if each.index_of(low * GRANULE + HEAP_BASE) is None:
                continue
            places = np.unique(np.concatenate(heap))[:, None] * GRANULE + np.array([0, GRANULE - 1])
            rest = np.clip(places.ravel() + HEAP_BASE - each.address, 0, each.bytes - 1)
            first: list[int] = []
            last: list[int] = []
            for extent, stride in zip(each.shape, each.strides, strict=True):
                at = np.minimum(rest // stride, extent - 1)
                first.append(int(at.min()))
                last.append(int(at.max()))
                rest = rest % stride
            return f"{each.name}[{_ranges(first, last)}]"
        return self._elements(low * GRANULE + HEAP_BASE, (high + 1) * GRANULE + HEAP_BASE)


def _values(operation: Operation) -> frozenset[int]:
    """What an instruction reads that is no address or guard."""
    return operation.use.reads - operation.use.vital - operation.guard_reads


def _read_by(operation: Operation, register: int, quarters: frozenset[int]) -> list[_Value]:
    """The source registers of these quarters of a register that an instruction writes."""
    known = operation.use.quarters.get(register)
    if _PACKS.match(operation.statement.opcode) and len(operation.statement.operands) == 3:
        names = operation.names.in_scope()  # the first source is the upper half
        halves = [str(each) for each in operation.statement.operands[:0:-1]]
        chosen = {names[halves[quarter // 2]].index for quarter in quarters if halves[quarter // 2] in names}
        return [(each, _ALL_QUARTERS) for each in sorted(chosen)]
    if known is None:
        return [(each, _ALL_QUARTERS) for each in sorted(_values(operation))]
    found: dict[int, set[int]] = {}
    for quarter in quarters:
        for source, part in known[quarter]:
            found.setdefault(source, set()).add(part)
    return [(source, frozenset(parts)) for source, parts in found.items()]


def _ranges(first: Sequence[int], last: Sequence[int]) -> str:
    """`3, 0:64` from the first and the last element of a box."""
    return ", ".join(str(a) if a == b else f"{a}:{b + 1}" for a, b in zip(first, last, strict=True))


def _cells(operation: Operation, register: int, read: TensorAccess, thread: _Thread) -> tuple[range, range]:
    """The cells of tensor memory from which a register of a lane comes: one, or all that are read where the
    instruction packs, or has two parts.
    """
    lanes = range(16 * min(read.bands), 16 * (max(read.bands) + 1))
    destination = operation.statement.operands[0]
    shape = _LOAD_SHAPES.search(f"{operation.statement.opcode}.")
    if shape is None or ".pack::16b" in operation.statement.opcode:
        return lanes, read.columns
    elements: Sequence[Operand] = destination.elements if isinstance(destination, Vector) else [destination]
    names = operation.names.in_scope()
    indices = [names[str(each)].index if str(each) in names else -1 for each in elements]
    if register not in indices or thread.lane is None:
        return lanes, read.columns
    lane, column = (
        int(cell[thread.lane, indices.index(register)])
        for cell in load_cells(cast("LoadShape", shape[1]), int(shape[2]))
    )
    return range(lanes.start + lane, lanes.start + lane + 1), range(
        read.columns.start + column, read.columns.start + column + 1
    )
