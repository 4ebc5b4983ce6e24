"""Operands of MMAs against the tensor copies that wrote them: which element of which box an MMA takes for (row, K).

A right kernel may read a tile transposed, in parts, in several boxes, shifted by a few rows or again for another
accumulator: all of that maps rows and K to the box one by one. What cannot be meant, and is reported:

- a row of the operand that continues in the next row of the box: a start address inside a row of the swizzle, or the
  other major;
- a chunk that is two chunks of one operand, where SBO or LBO is not 0 and too small;
- a chunk that is multiplied for two K of the same row and accumulator, by two MMAs: a wrong step of K;
- columns of the box that no MMA ever reads while its rows are multiplied again and again for one accumulator: the
  other major;
- groups of rows between others that nothing ever reads: SBO is too large.

Only copies by a tensormap with the swizzle of the matrix descriptor are compared, and unswizzled ones but for overlaps
alone: memory of threads, and tiles whose layout was made in global memory, may hold anything.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ptxgen.descriptors.tensormap import TiledMap
from ptxgen.device.report import Access, Status
from ptxgen.emulator.arrays import all_set, any_set, count_nonzero
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import descriptors
from ptxgen.emulator.checks.shared.accesses import SharedAccesses
from ptxgen.emulator.checks.shared.operand_types import misfit
from ptxgen.emulator.engines.matrix_operands import MatrixOperand
from ptxgen.emulator.engines.tensor_copies import Box
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.memory.granules import GRANULE, distinct
from ptxgen.emulator.observer import Observer
from ptxgen.layouts.swizzle import SWIZZLES

_MAJORS = {"k": "K-major", "mn": "MN-major"}
#: Where the major is encoded, by instruction and side.
_MAJOR_FIELDS = {
    ("tcgen05", "A"): "a_major (bit 15 of the instruction descriptor)",
    ("tcgen05", "B"): "b_major (bit 16 of the instruction descriptor)",
    ("wgmma", "A"): "imm-trans-a",
    ("wgmma", "B"): "imm-trans-b",
}


@dataclass(eq=False, slots=True)
class _Layout:
    """Where the chunks of a box lie: `position` of each granule from `first` on in the order of the box, -1: none."""

    first: int
    position: NDArray[np.int64]
    #: Chunks of a row.
    chunks: int

    def positions(self, granules: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of chunks of the box, -1 of what is not in it."""
        at = granules - self.first
        inside = (at >= 0) & (at < len(self.position))
        return np.where(inside, self.position[np.where(inside, at, 0)], -1)


@dataclass(eq=False, slots=True)
class _Read:
    """An MMA that read a copy, for an accumulation."""

    operand: MatrixOperand
    work: AsyncWork


@dataclass(eq=False, slots=True)
class _Copy:
    """A box in a CTA's shared memory, and who has read it since."""

    work: AsyncWork
    box: Box
    granules: NDArray[np.int64]
    layout: _Layout
    #: By accumulation and side.
    reads: dict[Hashable, list[_Read]] = field(default_factory=dict)
    #: The operand that has read rows of it again for another row of the same accumulator.
    moved: _Read | None = None


class OperandLayouts(Observer):
    """Compares A and B of each MMA with the boxes that tensor copies wrote there; comes before SharedAccesses."""

    def __init__(self, shared: SharedAccesses, slots: int, findings: Findings) -> None:
        self._shared, self._findings = shared, findings
        self._copies: list[dict[int, _Copy]] = [{} for _ in range(slots)]
        self._layouts: dict[Hashable, _Layout] = {}
        #: By accumulator: how many accumulations have begun there, and the work that began the last.
        self._sums: dict[Hashable, tuple[int, int]] = {}
        #: Number of tcgen05.st so far; an accumulator may begin with their values.
        self._stored = 0
        #: Operands and layouts, and pairs of operands, that have been compared.
        self._rows_agree: set[tuple[MatrixOperand, _Layout]] = set()
        #: Operands, and types of tensormaps by which they may come.
        self._types_agree: set[tuple[MatrixOperand, str]] = set()
        self._pairs: dict[tuple[MatrixOperand, MatrixOperand], str] = {}

    # Copies.

    def work_writes_shared(self, work: AsyncWork, slot: int, granules: NDArray[np.int64]) -> None:
        copies, box = self._copies[slot], work.box
        if copies:
            for number in distinct(self._shared.async_writer[slot, granules]).tolist():
                if number in copies:
                    self._finish(slot, copies.pop(number))
        if box is not None and box.tensormap.interleave == "none":
            copies[work.number] = _Copy(work, box, granules, self._layout(box, granules))

    def _layout(self, box: Box, granules: NDArray[np.int64]) -> _Layout:
        key = (int(granules[0]), len(granules), box.row_bytes, box.tensormap.swizzle)
        found = self._layouts.get(key)
        if found is None:
            first = int(granules.min())
            position = np.full(int(granules.max()) + 1 - first, -1, np.int64)
            position[granules - first] = np.arange(len(granules))
            found = self._layouts[key] = _Layout(first, position, box.row_bytes // GRANULE)
        return found

    def ctas_end(self, slots: Sequence[int]) -> None:
        for slot in slots if self._layouts else ():  # else no copy has a layout
            self._finish_all(slot)

    def slots_reused(self, slots: NDArray[np.int64]) -> None:
        for slot in slots.tolist():
            self._copies[slot].clear()

    def launch_ends(self, status: Status) -> None:
        if status in ("ok", "findings"):
            self.ctas_end(range(len(self._copies)))

    def _finish_all(self, slot: int) -> None:
        for copy in self._copies[slot].values():
            self._finish(slot, copy)
        self._copies[slot].clear()

    # MMAs.

    def operand_read(
        self, work: AsyncWork, slot: int, operand: MatrixOperand, sum: Hashable, *, accumulates: bool
    ) -> None:
        count, begun_by = self._sums.get(sum, (0, 0))
        if not accumulates and begun_by != work.number:
            count += 1
            self._sums[sum] = count, work.number
        copies = self._copies[slot]
        if operand.pattern_line and not operand.descriptor.base_offset:
            self._compare_pattern(work, slot, operand)
        if not copies:
            return
        for number in distinct(self._shared.async_writer[slot, operand.touched]).tolist():
            copy = copies.get(number)
            if copy is None:
                continue
            self._compare_types(work, slot, operand, copy)
            if copy.box.tensormap.swizzle != operand.swizzle:
                continue
            reads = copy.reads.setdefault((sum, count, self._stored, operand.side), [])
            self._compare(work, slot, operand, copy, reads)
            for before in reads:
                if before.operand is not operand and not self._apart(work, slot, operand, before, copy):
                    break
            if all(before.operand is not operand for before in reads):
                reads.append(_Read(operand, work))

    def tensor_stored(self, work: AsyncWork, bands: list[int], columns: range) -> None:
        self._stored += 1

    def work_reads_shared(
        self,
        work: AsyncWork,
        warps: Sequence[int],
        slot: int,
        granules: NDArray[np.int64],
        bytes: NDArray[np.uint16] | np.uint16,
        swizzle: str | None = None,
    ) -> None:
        copies = self._copies[slot]
        if work.what != "bulk reduction" or not copies:
            return
        for number in distinct(self._shared.async_writer[slot, granules]).tolist():
            copy = copies.get(number)
            if copy is not None and copy.box.tensormap.swizzle != "none":
                self._report_reduction(work, slot, granules, copy)

    def _compare_pattern(self, work: AsyncWork, slot: int, operand: MatrixOperand) -> None:
        """Advise on a tile of threads that begins inside the pattern by which the MMA swizzles."""
        if any_set(self._shared.async_writer[slot, operand.touched] != 0):
            return
        line, swizzle = operand.pattern_line, operand.swizzle
        start = operand.descriptor.start_address
        reader = self._findings.access("reader", work.statement, work.warp, slot=slot, space="shared", address=start)
        self._findings.report(
            descriptors.SWIZZLE_MISMATCH,
            work.statement,
            summary=f"{reader} reads {operand.side}, which threads wrote to {reader.place}, with swizzle {swizzle} and "
            "base offset 0",
            rule=f"The MMA swizzles by address bits, so the tile begins in line {line} of the pattern; threads that "
            "swizzle by offsets in the tile write other places",
            fix=f"align the tile to {SWIZZLES[swizzle].period} bytes, swizzle by addresses, or set base_offset (bits "
            f"49-51) to {line}",
            accesses=(reader,),
            severity="advice",
            cause=("pattern", line),
        )

    def _report_reduction(self, work: AsyncWork, slot: int, granules: NDArray[np.int64], copy: _Copy) -> None:
        at = int(granules[(self._shared.async_writer[slot, granules] == copy.work.number).argmax()]) * GRANULE
        reader, writer = self._accesses(work, slot, copy, at)
        swizzle = copy.box.tensormap.swizzle
        self._findings.report(
            descriptors.SWIZZLE_MISMATCH,
            work.statement,
            summary=f"{reader} reduces {reader.place} into global memory in the order of addresses, but {writer} "
            f"wrote it with swizzle {swizzle}",
            rule=f"The chunks of 16 bytes lie in another order there than their elements, by swizzle {swizzle}",
            fix="use cp.reduce.async.bulk.tensor with a tensormap of that swizzle, or load the tile without one",
            accesses=(reader, writer),
            severity="error",
            cause=("bulk reduction", work.statement.line),
        )

    def _compare(
        self, work: AsyncWork, slot: int, operand: MatrixOperand, copy: _Copy, earlier: Sequence[_Read]
    ) -> None:
        """Report chunks that are read twice, and rows that continue in another row of the box.

        `earlier` are reads of the copy for the same accumulation.
        """
        if (operand, copy.layout) in self._rows_agree:
            return
        repeated = operand.repeated
        if len(repeated):
            here = repeated[self._shared.async_writer[slot, repeated] == copy.work.number]
            if len(here):
                self._report_repeated(work, slot, operand, copy, int(here[0]))
            return
        broken = _broken(operand, copy.layout)
        if broken is None:
            self._rows_agree.add((operand, copy.layout))
            return
        places = operand.places[broken[0], broken[1] : broken[1] + 2]
        if all_set(self._shared.async_writer[slot, places] == copy.work.number):
            self._report_broken(work, slot, operand, copy, broken, earlier)

    def _compare_types(self, work: AsyncWork, slot: int, operand: MatrixOperand, copy: _Copy) -> None:
        """Report elements of another type than the MMA multiplies."""
        dtype = copy.box.tensormap.dtype
        if (operand, dtype) in self._types_agree:
            return
        wrong = misfit(dtype, operand)
        if wrong is None:
            self._types_agree.add((operand, dtype))
            return
        rule, fix = wrong
        at = int(operand.touched[0]) * GRANULE
        reader, writer = self._accesses(work, slot, copy, at)
        self._findings.report(
            descriptors.OPERAND_TYPE,
            work.statement,
            summary=f"{reader} multiplies {operand.side} as {operand.type}, but {writer} wrote {dtype} to "
            f"{writer.place}",
            rule=rule,
            fix=fix,
            accesses=(reader, writer),
            cause=("operand type", dtype, operand.type),
        )

    def _apart(self, work: AsyncWork, slot: int, operand: MatrixOperand, before: _Read, copy: _Copy) -> bool:
        """False, and a report, where a chunk is multiplied for two K of a row by two MMAs of an accumulation."""
        pair = (before.operand, operand)
        found = self._pairs.get(pair)
        if found is None:
            found = self._pairs[pair] = _relation(before.operand, operand)
        if found == "moved" and copy.moved is None:
            copy.moved = _Read(operand, work)
        if found != "k":
            return True
        self._report_step(work, slot, operand, before, copy)
        return False

    # What nothing reads.

    def _finish(self, slot: int, copy: _Copy) -> None:
        """Report the unread bytes of a copy that is overwritten or whose CTA has exited."""
        if not copy.reads or copy.box.tensormap.swizzle == "none":
            return
        shared, granules = self._shared, copy.granules
        read = (shared.core_reader[slot, granules] != 0) | (shared.copy_reader[slot, granules] != 0)
        if all_set(read) or any_set(shared.async_writer[slot, granules] != copy.work.number):
            return
        loads = shared.loads.table(slot)
        if loads is not None:
            read |= (loads.mask[:, granules] != 0).any(axis=0)
        box, chunks = copy.box, copy.layout.chunks
        read = read.reshape(-1, chunks)
        inside = (box.used() != 0).reshape(-1, chunks)
        columns = inside.any(axis=0) & ~read.any(axis=0)
        if any_set(columns) and copy.moved is not None:
            self._report_columns(slot, copy, copy.moved, int(columns.argmax()), int(columns.sum()))
            return
        gap = _gap(box, read.any(axis=1), inside.any(axis=1))
        if gap is None:
            return
        for each in (each for reads in copy.reads.values() for each in reads):
            # Blocks that LBO separates may have tails.
            rows = copy.layout.positions(each.operand.places[:, 0]) // chunks
            if count_nonzero((rows[:-1] >= 0) & (rows[:-1] < gap.start) & (rows[1:] >= gap.stop)):
                self._report_gap(slot, copy, each, gap)
                return

    # Messages.

    def _accesses(self, work: AsyncWork, slot: int, copy: _Copy, at: int) -> tuple[Access, Access]:
        """The reader of an address in a CTA's shared memory, and the copy that wrote there."""
        reader = self._findings.access("reader", work.statement, work.warp, slot=slot, space="shared", address=at)
        copied = copy.work
        return reader, self._findings.access(
            "writer", copied.statement, copied.warp, slot=slot, space="shared", address=at
        )

    def _report(
        self,
        work: AsyncWork,
        slot: int,
        operand: MatrixOperand,
        copy: _Copy,
        granule: int,
        what: str,
        rule: str,
        fix: str,
    ) -> None:
        at = granule * GRANULE
        reader, writer = self._accesses(work, slot, copy, at)
        self._findings.report(
            descriptors.OPERAND_LAYOUT,
            work.statement,
            summary=f"{reader} reads {operand.side} as {_MAJORS[operand.major]} from what {writer} wrote to "
            f"{writer.place}: {what}",
            rule=rule,
            fix=fix,
            accesses=(reader, writer),
            cause=frozenset([causes.past_operand(work.statement.line), ("operand layout", operand.side)]),
        )

    def _report_broken(
        self,
        work: AsyncWork,
        slot: int,
        operand: MatrixOperand,
        copy: _Copy,
        broken: tuple[int, int],
        earlier: Sequence[_Read],
    ) -> None:
        line, chunk = broken
        here, there = copy.layout.positions(operand.places[line, chunk : chunk + 2]).tolist()
        chunks, (name, other) = copy.layout.chunks, _axes(operand)
        what = (
            f"{name} {line} begins in row {here // chunks} of the box, but its {other} from "
            f"{(chunk + 1) * 16 * 8 // operand.bits} on are in row {there // chunks}"
        )
        start = operand.descriptor.start_address
        row_bytes = operand.segment * GRANULE
        rule = (
            f"{_major_is(operand)}, so {operand.segment * GRANULE} bytes of {other} follow each other from the start "
            f"address {start:#x}, which is byte {start % row_bytes} of a row of {row_bytes}"
        )
        fits = _fitting_major(operand, copy.layout)
        fix = _major_fix(operand) if fits else f"begin at a start address in which {name} {line} lies in one row"
        if fits and operand.major == "mn" and any(_broken(each.operand, copy.layout) is None for each in earlier):
            # The accumulation began at a whole row: the step of K may be that of the other major.
            fix += f", or {_step_of_k(operand)} if {operand.side} is MN-major"
        self._report(work, slot, operand, copy, int(operand.places[line, chunk + 1]), what, rule, fix)

    def _report_repeated(self, work: AsyncWork, slot: int, operand: MatrixOperand, copy: _Copy, granule: int) -> None:
        places = np.argwhere(operand.places == granule)[:2].tolist()
        (line, chunk), (again, over) = places
        field = operand.repeating_field
        name, value = operand.line_stride if operand.line_stride[0] == field else operand.chunk_stride
        by_line = name == operand.line_stride[0]
        axis, other = _axes(operand)
        per_chunk = 16 * 8 // operand.bits
        what = f"{axis} {line}, {other} {chunk * per_chunk} is read again as {axis} {again}, {other} {over * per_chunk}"
        if not by_line and _fitting_major(operand, copy.layout) and value <= GRANULE:
            fix = _major_fix(operand)
        elif by_line:
            fits = operand.group * operand.segment * GRANULE
            fix = f"set {name} to {fits}: {operand.group} rows of {operand.segment * GRANULE} bytes"
        else:
            rows = copy.box.tensormap.box[1] if isinstance(copy.box.tensormap, TiledMap) else operand.group
            fits = rows * operand.segment * GRANULE
            fix = f"set {name} to {fits}: the box has {rows} rows of {operand.segment * GRANULE} bytes"
        step = f"{operand.group} rows of {axis}" if by_line else f"{operand.segment * GRANULE} bytes of {other}"
        rule = (
            f"{name} of the matrix descriptor {operand.value:#018x} is {value} bytes: {step} and the next "
            f"ones overlap; {_major_is(operand)}"
        )
        self._report(work, slot, operand, copy, granule, what, rule, fix)

    def _report_step(self, work: AsyncWork, slot: int, operand: MatrixOperand, before: _Read, copy: _Copy) -> None:
        common = np.intersect1d(before.operand.touched, operand.touched)
        (rows, k), (rows_before, k_before) = operand.roles(common), before.operand.roles(common)
        at = int(((rows == rows_before) & (k != k_before)).argmax())
        per_row, per_k = (1, 128 // operand.bits) if operand.major == "k" else (128 // operand.bits, 1)
        what = (
            f"row {int(rows[at]) * per_row}, K {int(k[at]) * per_k} of this MMA is row {int(rows_before[at]) * per_row}"
            f", K {int(k_before[at]) * per_k} of the MMA in line {before.work.statement.line} for the same accumulator"
        )
        step = operand.descriptor.start_address - before.operand.descriptor.start_address
        rule = (
            f"The start addresses are {step} bytes apart, less than the {operand.k_bytes * 8 // operand.bits} elements "
            f"of K that an MMA multiplies"
        )
        self._report(work, slot, operand, copy, int(common[at]), what, rule, _step_of_k(operand))

    def _report_columns(self, slot: int, copy: _Copy, read: _Read, column: int, count: int) -> None:
        operand = read.operand
        what = (
            f"nothing reads bytes {column * GRANULE} and up of the rows of the box ({count} of {copy.layout.chunks} "
            f"chunks), but MMAs for one accumulator read its rows as several rows of {operand.side}"
        )
        rule = f"{_major_is(operand)}, so K runs along the rows of {copy.layout.chunks * GRANULE} bytes"
        fix = _major_fix(operand)
        self._report(read.work, slot, operand, copy, int(copy.granules[column]), what, rule, fix)

    def _report_gap(self, slot: int, copy: _Copy, read: _Read, gap: range) -> None:
        operand = read.operand
        name, value = operand.line_stride
        what = f"nothing reads rows {gap.start} to {gap.stop - 1} of the box, between others that the MMA reads"
        fits = operand.group * operand.segment * GRANULE
        rule = f"{name} of the matrix descriptor {operand.value:#018x} is {value} bytes; {_major_is(operand)}"
        fix = f"set {name} to {fits}: {operand.group} rows of {operand.segment * GRANULE} bytes"
        at = int(copy.granules[gap.start * copy.layout.chunks])
        self._report(read.work, slot, operand, copy, at, what, rule, fix)


def _broken(operand: MatrixOperand, layout: _Layout) -> tuple[int, int] | None:
    """(line, chunk) of the operand that the next chunk of its segment does not follow in the box; None if all do."""
    if operand.segment == 1 or getattr(operand.descriptor, "lbo_mode", "relative") == "absolute":
        return None
    positions = layout.positions(operand.places)
    here, there = positions[:, :-1], positions[:, 1:]
    wrong = (here >= 0) & (there >= 0) & ((there != here + 1) | (there % layout.chunks == 0))
    wrong[:, operand.segment - 1 :: operand.segment] = False
    if not count_nonzero(wrong):
        return None
    line, chunk = np.argwhere(wrong)[0].tolist()
    return line, chunk


def _relation(before: MatrixOperand, operand: MatrixOperand) -> str:
    """How two operands share chunks: `k` (one row at two K), `moved` (other rows), or not at all (``).

    A tile and its transposed are two matrices, as in `acc = a @ y; acc += a @ y.T`.
    """
    if before.major != operand.major:
        return ""
    common = np.intersect1d(before.touched, operand.touched, assume_unique=True)
    if not len(common) or not before.one_to_one or not operand.one_to_one:
        return ""
    (rows, k), (rows_before, k_before) = operand.roles(common), before.roles(common)
    if count_nonzero((rows == rows_before) & (k != k_before)):
        return "k"
    return "moved" if count_nonzero(rows != rows_before) else ""


def _gap(box: Box, read: NDArray[np.bool_], inside: NDArray[np.bool_]) -> range | None:
    """Rows of a matrix between others that are read, and are not."""
    if not isinstance(box.tensormap, TiledMap) or any(extent > 1 for extent in box.tensormap.box[2:]):
        return None
    (rows,) = read.nonzero()
    if not len(rows):
        return None
    (missing,) = (~read[rows[0] : rows[-1]] & inside[rows[0] : rows[-1]]).nonzero()
    if not len(missing):
        return None
    first = int(rows[0] + missing[0])
    return range(first, int(rows[rows > first][0]))


def _fitting_major(operand: MatrixOperand, layout: _Layout) -> bool:
    """Whether the other major would read whole rows of the box, each chunk once."""
    other = operand.with_major("k" if operand.major == "mn" else "mn")
    try:
        return not len(other.repeated) and _broken(other, layout) is None
    except ValueError:
        return False


def _axes(operand: MatrixOperand) -> tuple[str, str]:
    """What a line of the operand is, and what runs along it."""
    across = "M" if operand.side == "A" else "N"
    return (across, "K") if operand.major == "k" else ("K", across)


def _step_of_k(operand: MatrixOperand) -> str:
    if operand.major == "k":
        return f"step K by {operand.k_bytes} bytes"
    lines, row_bytes = operand.k_bytes * 8 // operand.bits, operand.segment * GRANULE
    return f"step K by {lines * row_bytes} bytes ({lines} rows of {row_bytes})"


def _major_is(operand: MatrixOperand) -> str:
    where = _MAJOR_FIELDS[operand.instruction, operand.side]
    return f"{where} is {int(operand.major == 'mn')} ({_MAJORS[operand.major]})"


def _major_fix(operand: MatrixOperand) -> str:
    where = _MAJOR_FIELDS[operand.instruction, operand.side]
    return f"set {where} to {int(operand.major == 'k')} ({_MAJORS['mn' if operand.major == 'k' else 'k']})"
