"""A in tensor memory: columns that the MMAs of one accumulation read, and how 16-bit elements lie in the cells."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import all_set, any_set
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import tcgen05
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.observer import Observer
from ptxgen.layouts.tmem import BAND, COLUMNS, LANES
from ptxgen.syntax import Statement

#: What a cell holds: anything, the low half of tcgen05.st.unpack::16b, or 32 bits of an accumulator.
_ANY, _HALF, _WORD = range(3)
_WORDS = ("f32", "s32")


class _Read(NamedTuple):
    """A of an MMA: bands of lanes, and columns."""

    bands: frozenset[int]
    columns: range
    work: AsyncWork

    def overlaps(self, bands: frozenset[int], columns: range) -> bool:
        """Whether some cells are in both."""
        return (
            not self.bands.isdisjoint(bands) and self.columns.start < columns.stop and columns.start < self.columns.stop
        )


def _no_cells() -> NDArray[np.uint8]:
    """What a CTA's cells hold at first."""
    return np.full((LANES // BAND, COLUMNS), _ANY, np.uint8)


class OperandCells(Observer):
    """Reports K that is multiplied twice for one accumulator, and 16-bit elements packed for another reader."""

    def __init__(self, cta_slot: NDArray[np.int64], findings: Findings) -> None:
        self._cta_slot, self._findings = cta_slot, findings
        #: By slot of a CTA, what its cells hold, by band and column.
        self._cells: defaultdict[int, NDArray[np.uint8]] = defaultdict(_no_cells)
        #: The work that wrote halves or words, by slot and first column; and the number of the MMA whose A comes next.
        self._writers: dict[tuple[int, int], AsyncWork] = {}
        #: A of the MMAs of the present accumulation, by CTA slot and accumulator.
        self._sums: dict[tuple[int, int, int], list[_Read]] = {}
        self._a: tuple[int, int, _Read] | None = None

    def ctas_end(self, slots: Sequence[int]) -> None:
        for slot in slots:
            self._cells.pop(slot, None)
            for key in [key for key in self._sums if key[0] == slot]:
                del self._sums[key]

    def tensor_stored(self, work: AsyncWork, bands: list[int], columns: range) -> None:
        halves = ".unpack::16b" in work.statement.text
        self._changed(work, work.slot, bands, columns, _HALF if halves else _ANY)

    def tensor_operand_read(self, work: AsyncWork, slot: int, bands: list[int], columns: range, what: str) -> None:
        if work.what != "tcgen05.mma" or what != "A":
            return
        self._a = work.number, slot, _Read(frozenset(bands), columns, work)
        if any_set(self._cells[slot][np.ix_(bands, columns)] == _HALF):
            writer = self._writer(slot, columns)
            written = f", which {self._name('writer', writer)} wrote" if writer is not None else ""
            self._findings.report(
                tcgen05.OPERAND_CELLS,
                work.statement,
                summary=f"{self._name('reader', work)} reads A in columns {columns.start}-{columns.stop - 1}{written} "
                "with .unpack::16b",
                rule="A in tensor memory has two elements of 16 bits in each column; .unpack::16b leaves one there, "
                "with zeros above it",
                fix="store A without .unpack::16b, two elements in each register",
                accesses=(self._findings.access("reader", work.statement, work.warp),),
                cause=("halves", work.statement.line),
            )

    def tensor_written(
        self, work: AsyncWork, slot: int, bands: list[int], columns: range, *, accumulates: bool = False
    ) -> None:
        number, of_slot, read = self._a or (0, 0, None)
        if read is not None and number == work.number and of_slot == slot:
            self._a = None
            self._compare(slot, bands, columns, read, accumulates=accumulates)
        self._changed(work, slot, bands, columns, _ANY)

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
        self._changed(work, slot, bands, columns, _WORD if type in _WORDS else _ANY)

    def tensor_read(self, warp: int, bands: list[int], columns: range, statement: Statement) -> None:
        if ".pack::16b" not in statement.text:
            return
        slot = int(self._cta_slot[warp])
        if all_set(self._cells[slot][np.ix_(bands, columns)] == _WORD):
            reader = self._findings.access("reader", statement, warp)
            self._findings.report(
                tcgen05.OPERAND_CELLS,
                statement,
                summary=f"{reader} packs columns {columns.start}-{columns.stop - 1}, in which an MMA has accumulated "
                "32 bits",
                rule=".pack::16b keeps the low 16 bits of each column: of an accumulator of f32 or s32 the upper half "
                "is lost",
                fix="load without .pack::16b, and convert",
                accesses=(reader,),
                # Which halves a load takes may be what a kernel is after.
                severity="advice",
                cause=("words", statement.line),
            )

    def _changed(self, work: AsyncWork, slot: int, bands: list[int], columns: range, holds: int) -> None:
        cells = self._cells[slot]
        first, stop = columns.start, columns.stop
        cells[bands, first:stop] = holds
        if holds == _HALF:
            self._writers[slot, first] = work
        changed = frozenset(bands)
        for (of_slot, _, _), reads in self._sums.items():
            if of_slot == slot and any(each.overlaps(changed, columns) for each in reads):
                reads[:] = [each for each in reads if not each.overlaps(changed, columns)]

    def _compare(self, slot: int, bands: list[int], columns: range, read: _Read, *, accumulates: bool) -> None:
        """Report columns of A that an earlier MMA of the accumulation has multiplied as other K."""
        key = (slot, columns.start, min(bands))
        reads = self._sums.setdefault(key, [])
        if not accumulates:
            reads.clear()
        for before in reads:
            if before.columns != read.columns and before.overlaps(read.bands, read.columns):
                self._report_step(before, read)
                break
        if all(before.columns != read.columns for before in reads):
            reads.append(read)

    def _report_step(self, before: _Read, read: _Read) -> None:
        work, columns, other = read.work, read.columns, before.columns
        self._findings.report(
            tcgen05.OPERAND_CELLS,
            work.statement,
            summary=f"{self._name('reader', work)} reads A in columns {columns.start}-{columns.stop - 1}, and the MMA "
            f"of line {before.work.statement.line} for the same accumulator in columns {other.start}-{other.stop - 1}",
            rule=f"An MMA takes {len(columns)} columns of A, 32 bits each; {columns.start - other.start} columns "
            "further on some elements are multiplied again, by other rows of B",
            fix=f"step the address of A by {len(columns)} columns",
            accesses=(self._findings.access("reader", work.statement, work.warp),),
            cause=("columns of A", read.work.slot),
        )

    def _writer(self, slot: int, columns: range) -> AsyncWork | None:
        return next((work for (at, first), work in self._writers.items() if at == slot and first in columns), None)

    def _name(self, role: str, work: AsyncWork) -> str:
        access = self._findings.access("writer" if role == "writer" else "reader", work.statement, work.warp)
        return str(access)
