"""The elements of A and B that MMAs multiplied for one element of D, by their places in global memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ptxgen.device.placed import Placed
from ptxgen.emulator.memory.global_memory import HEAP_BASE
from ptxgen.emulator.memory.granules import GRANULE
from ptxgen.emulator.observers.provenance import LaneAccess, Provenance, WorkAccess, WorkRecord

#: MMAs, and runs of elements, that are shown at most.
_MMAS, _RUNS = 512, 8


@dataclass(frozen=True)
class Cell:
    """An element of D: CTA slot, and row and column of the instruction's result."""

    slot: int
    row: int
    column: int


@dataclass
class _Run:
    """Elements of an array from `first` to `last`, or in words where they are of none."""

    name: str
    first: tuple[int, ...]
    last: tuple[int, ...]

    def follows(self, other: _Run) -> bool:
        """Whether the run goes on where another ends, in one dimension."""
        if self.name != other.name or len(self.first) != len(other.first):
            return False
        apart = [
            axis
            for axis in range(len(self.first))
            if (self.first[axis], self.last[axis]) != (other.first[axis], other.last[axis])
        ]
        return not apart or (len(apart) == 1 and bool(self.first[apart[0]] == other.last[apart[0]] + 1))

    def __str__(self) -> str:
        if not self.first:
            return self.name
        index = (str(a) if a == b else f"{a}:{b + 1}" for a, b in zip(self.first, self.last, strict=True))
        return f"{self.name}[{', '.join(index)}]"


def cell_of(record: WorkRecord, slot: int, lane: int, column: int) -> Cell | None:
    """The element of D that a tcgen05.mma has in a cell of tensor memory."""
    found = record.accumulators.get(slot)
    if found is None:
        return None
    (first_lane, first_column), (lanes, columns) = found
    hits = np.argwhere((lanes + first_lane == lane) & (columns + first_column == column))
    return Cell(slot, int(hits[0, 0]), int(hits[0, 1])) if len(hits) else None


class OperandElements:
    """Follows the chunks of operands to the copies that wrote them; `arrays` name global memory."""

    def __init__(self, history: Provenance, arrays: Mapping[str, Placed]) -> None:
        self._history, self._arrays = history, arrays

    def lines(self, cells: Sequence[tuple[WorkRecord, Cell | None]]) -> list[str]:
        """`row 3 of A: a[3, 0:64]`, and the same of B, along K of all these MMAs."""
        known = [(record, cell) for record, cell in cells[-_MMAS:] if cell is not None]
        found: list[str] = []
        for side in "AB":
            runs: list[_Run] = []
            number = None
            for record, cell in known:
                number = cell.row if side == "A" else cell.column
                for run in self._runs(record, side, cell):
                    if runs and run.follows(runs[-1]) and run.first != runs[-1].first:
                        runs[-1] = _Run(run.name, runs[-1].first, run.last)
                    else:
                        runs.append(run)
            if runs:
                shown = ", ".join(map(str, runs[:_RUNS]))
                more = f", ... and {len(runs) - _RUNS} more" if len(runs) > _RUNS else ""
                found.append(f"{'row' if side == 'A' else 'column'} {number} of {side} along K: {shown}{more}")
        return found

    def _runs(self, record: WorkRecord, side: str, cell: Cell) -> list[_Run]:
        """The elements of one MMA."""
        matrices = [(slot, operand) for slot, operand in record.matrices if operand.side == side]
        number = cell.row if side == "A" else cell.column
        for slot, operand in matrices:
            if side == "A" and slot != cell.slot:
                continue
            if number >= operand.rows:  # of a pair of CTAs, each has half of B
                number -= operand.rows
                continue
            size = max(operand.bits // 8, 1)
            if operand.major == "k":
                granules, byte, size = operand.places[number], 0, GRANULE
            else:
                granules, byte = operand.places[:, number * size // GRANULE], number * size % GRANULE
            writers = self._history.last_writers(slot, granules.tolist(), record.order)
            return [
                self._run(found, granule, byte, size) for found, granule in zip(writers, granules.tolist(), strict=True)
            ]
        return []

    def _run(self, found: LaneAccess | WorkAccess | None, granule: int, byte: int, size: int) -> _Run:
        """The elements in bytes of a granule, by what wrote it."""
        if found is None:
            return _Run("uninitialized", (), ())
        if isinstance(found, LaneAccess):
            return _Run(f"what {found.statement.opcode.split('.')[0]} of line {found.statement.line} wrote", (), ())
        address = self._source(found, granule)
        if address is None:
            return _Run("zeros outside the tensor", (), ())
        for each in self._arrays.values():
            first, last = each.index_of(address + byte), each.index_of(address + byte + size - 1)
            if first is not None and last is not None:
                return _Run(each.name, first, last)
        return _Run(f"global memory at {address + byte:#x}", (), ())

    def _source(self, found: WorkAccess, granule: int) -> int | None:
        """The global address from which a copy has filled a granule; None of what it filled itself."""
        at = int((found.granules == granule).argmax())
        box = found.work.box
        if box is not None:
            row, chunk = divmod(at, box.row_bytes // GRANULE)
            inside = box.used().reshape(len(box.rows.offsets), -1)[row, chunk]
            return box.tensormap.address + int(box.rows.offsets[row]) + box.start + chunk * GRANULE if inside else None
        reads = self._history.works[found.work.number].reads
        heap = next((each for each in reads if isinstance(each, WorkAccess) and each.slot is None), None)
        if heap is None or len(heap.granules) != len(found.granules):
            return None
        return int(heap.granules[at]) * GRANULE + HEAP_BASE
