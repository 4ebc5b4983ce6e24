"""Operands of one tcgen05 operation in tensor memory that overlap its own accumulator, or each other."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import tcgen05
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.observer import Observer
from ptxgen.layouts.tmem import BAND, COLUMNS, LANES
from ptxgen.syntax import Statement


class _Operand(NamedTuple):
    slot: int
    bands: frozenset[int]
    columns: range
    what: str

    def shared(self, slot: int, bands: frozenset[int], columns: range) -> range:
        """The columns that it has in common with something else."""
        found = range(max(self.columns.start, columns.start), min(self.columns.stop, columns.stop))
        return found if self.slot == slot and not self.bands.isdisjoint(bands) else range(0)

    @property
    def is_scales(self) -> bool:
        return self.what.startswith("the scale factors")


def _named(columns: range) -> str:
    return f"columns {columns.start}-{columns.stop - 1}" if len(columns) > 1 else f"column {columns.start}"


class _Writes:
    """Which columns of a CTA have been written twice in a row, by two instructions, with nothing read between."""

    def __init__(self) -> None:
        #: The line of the last write since the last read, 0 for none; and whether another was lost by it.
        self.unread = np.zeros((LANES // BAND, COLUMNS), np.int64)
        self.lost = np.zeros((LANES // BAND, COLUMNS), np.bool_)

    def written(self, bands: list[int], columns: range, statement: Statement) -> None:
        cells = np.ix_(bands, columns)
        before = self.unread[cells]
        self.lost[cells] = (before != 0) & (before != statement.line)
        self.unread[cells] = statement.line

    def read(self, bands: list[int], columns: range) -> None:
        self.unread[np.ix_(bands, columns)] = 0


class OperandOverlaps(Observer):
    """Compares what an operation writes with the operands that it has just been found to read, and these operands."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        #: The number of the operation, and its operands.
        self._number = 0
        self._operands: list[_Operand] = []
        self._writes: dict[int, _Writes] = {}

    def slots_reused(self, slots: NDArray[np.int64]) -> None:
        for slot in slots.tolist() if self._writes else ():
            self._writes.pop(slot, None)

    def tensor_operand_read(self, work: AsyncWork, slot: int, bands: list[int], columns: range, what: str) -> None:
        if work.number != self._number:
            self._number, self._operands = work.number, []
        self._operands.append(_Operand(slot, frozenset(bands), columns, what))

    def tensor_stored(self, work: AsyncWork, bands: list[int], columns: range) -> None:
        self._writes.setdefault(work.slot, _Writes()).written(bands, columns, work.statement)

    def tensor_written(
        self, work: AsyncWork, slot: int, bands: list[int], columns: range, *, accumulates: bool = False
    ) -> None:
        if work.number == self._number and self._operands:
            self._compare(work, slot, frozenset(bands), columns)
            self._compare_operands(work, slot)
        if work.what == "tcgen05.cp":
            self._writes.setdefault(slot, _Writes()).written(bands, columns, work.statement)

    def _compare(self, work: AsyncWork, slot: int, bands: frozenset[int], columns: range) -> None:
        """With the accumulator."""
        for each in self._operands:
            shared = each.shared(slot, bands, columns)
            if shared and each.columns != columns:  # the columns of A itself: .ashift moves its rows
                issuer = self._findings.access("issuer", work.statement, work.warp)
                self._findings.report(
                    tcgen05.TMEM_OVERLAP,
                    work.statement,
                    summary=f"{issuer} reads {each.what} from TMEM {_named(each.columns)} and writes D to "
                    f"{_named(columns)}",
                    rule=f"D overwrites {_named(shared)} of the operand",
                    accesses=(issuer,),
                )

    def _compare_operands(self, work: AsyncWork, slot: int) -> None:
        """With each other: scale factors that begin at one address may be the same ones, such as only ones, unless
        something has been written there that something else has replaced unread.
        """
        writes = self._writes.get(slot)
        own = [each for each in self._operands if each.slot == slot]
        for one, other in combinations(own, 2):
            shared = one.shared(slot, other.bands, other.columns)
            if not shared:
                continue
            cells = np.ix_(sorted(one.bands & other.bands), shared)
            equal = one.is_scales and other.is_scales and one.columns.start == other.columns.start
            if equal and (writes is None or not any_set(writes.lost[cells])):
                continue
            issuer = self._findings.access("issuer", work.statement, work.warp)
            self._findings.report(
                tcgen05.TMEM_OVERLAP,
                work.statement,
                summary=f"{issuer} reads {one.what} from TMEM {_named(one.columns)} and {other.what} from "
                f"{_named(other.columns)}",
                rule=f"{_named(shared).capitalize()} cannot hold both",
                accesses=(issuer,),
            )
        if writes is not None:
            for each in own:
                writes.read(sorted(each.bands), each.columns)
