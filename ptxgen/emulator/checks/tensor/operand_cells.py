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

#: Contents of a cell: anything, the low half of tcgen05.st.unpack::16b, an accumulator of 32 bits, or elements of 16 or
#: 8 bits that an MMA has read as A.
_ANY, _HALF, _WORD, _PACKED = range(4)
_WORDS = ("f32", "s32")
#: MMAs whose A has elements of 32 bits.
_WIDE = ".kind::tf32"


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
        #: The MMAs that wrote words and those that read packed elements, by slot and first column.
        self._accumulated: dict[tuple[int, int], AsyncWork] = {}
        self._multiplied: dict[tuple[int, int], AsyncWork] = {}
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
        self._changed(work, work.slot, bands, columns, _HALF if halves else _ANY, starts=True)

    def tensor_operand_read(self, work: AsyncWork, slot: int, bands: list[int], columns: range, what: str) -> None:
        if work.what != "tcgen05.mma" or what != "A":
            return
        self._a = work.number, slot, _Read(frozenset(bands), columns, work)
        if _WIDE not in work.statement.text:
            self._read_packed(work, slot, bands, columns)
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
        if accumulates and not self._moves_a(work, slot, columns):
            self._accumulate(work, slot, bands, columns)
        self._changed(work, slot, bands, columns, _ANY, starts=work.what != "tcgen05.mma")

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
        self._accumulated[slot, columns.start] = work

    def _read_packed(self, work: AsyncWork, slot: int, bands: list[int], columns: range) -> None:
        """An MMA reads A with elements of 16 or 8 bits: none of it may be an accumulator of 32 bits."""
        cells = self._cells[slot]
        held = cells[bands, columns.start : columns.stop]
        words = np.flatnonzero((held == _WORD).any(axis=0))
        if len(words):
            first, last = columns.start + int(words[0]), columns.start + int(words[-1])
            writer = self._last(self._accumulated, slot, first)
            parties = [self._findings.access("reader", work.statement, work.warp)]
            if writer is not None:
                parties.append(self._findings.access("writer", writer.statement, writer.warp))
            by = f" by {parties[1]}" if len(parties) > 1 else ""
            self._findings.report(
                tcgen05.OPERAND_CELLS,
                work.statement,
                summary=f"{parties[0]} reads A in columns {columns.start}-{columns.stop - 1}, of which columns {first}-"
                f"{last} hold 32-bit elements accumulated{by}",
                rule="A of this kind has elements of 16 or 8 bits, and nothing has been stored there since",
                fix=f"store A to columns {first}-{last} by tcgen05.st, or correct the address of A",
                accesses=tuple(parties),
                cause="words of A",
            )
            return
        held[held == _ANY] = _PACKED
        cells[bands, columns.start : columns.stop] = held
        self._multiplied[slot, columns.start] = work

    def _moves_a(self, work: AsyncWork, slot: int, columns: range) -> bool:
        """Whether an MMA with .ashift writes its A, whose rows it moves, and not its accumulator."""
        return ".ashift" in work.statement.text and self._multiplied.get((slot, columns.start)) is work

    def _accumulate(self, work: AsyncWork, slot: int, bands: list[int], columns: range) -> None:
        """An MMA adds to what is in its accumulator: that must be no A of another MMA."""
        held = self._cells[slot][bands, columns.start : columns.stop]
        packed = np.flatnonzero((held == _PACKED).any(axis=0))
        if not len(packed):
            return
        first, last = columns.start + int(packed[0]), columns.start + int(packed[-1])
        reader = self._last(self._multiplied, slot, first)
        parties = [self._findings.access("writer", work.statement, work.warp)]
        if reader is not None:
            parties.append(self._findings.access("reader", reader.statement, reader.warp))
        of = f", which {parties[1]} reads" if len(parties) > 1 else ""
        self._findings.report(
            tcgen05.OPERAND_CELLS,
            work.statement,
            summary=f"{parties[0]} adds to its accumulator in columns {columns.start}-{columns.stop - 1}, of which "
            f"columns {first}-{last} hold A of 16- or 8-bit elements{of}",
            rule="enable-input-d is true, so the packed elements count as numbers of 32 bits",
            fix="pass false for enable-input-d to the first MMA of the accumulation",
            accesses=tuple(parties),
            cause="packed accumulator",
        )

    @staticmethod
    def _last(works: dict[tuple[int, int], AsyncWork], slot: int, column: int) -> AsyncWork | None:
        """The work at the last first column up to a column."""
        return max(
            ((first, work) for (of_slot, first), work in works.items() if of_slot == slot and first <= column),
            key=lambda each: each[0],
            default=(0, None),
        )[1]

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

    def _changed(
        self, work: AsyncWork, slot: int, bands: list[int], columns: range, holds: int, *, starts: bool = False
    ) -> None:
        """Cells get other contents; what other instructions than MMAs put into an accumulator `starts` a new sum."""
        cells = self._cells[slot]
        first, stop = columns.start, columns.stop
        cells[bands, first:stop] = holds
        if holds == _HALF:
            self._writers[slot, first] = work
        changed = frozenset(bands)
        for (of_slot, first_of_sum, band), reads in self._sums.items():
            if of_slot != slot:
                continue
            if starts and first_of_sum in columns and band in changed:
                reads.clear()
            elif any(each.overlaps(changed, columns) for each in reads):
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
