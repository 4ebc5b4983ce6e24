"""Operands of one tcgen05 operation in tensor memory that overlap its own accumulator."""

from __future__ import annotations

from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import tcgen05
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.observer import Observer


class OperandOverlaps(Observer):
    """Compares what an operation writes with the operands that it has just been found to read."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        #: The number of the operation, and of each operand: CTA slot, bands, columns, name.
        self._number = 0
        self._operands: list[tuple[int, frozenset[int], range, str]] = []

    def tensor_operand_read(self, work: AsyncWork, slot: int, bands: list[int], columns: range, what: str) -> None:
        if work.number != self._number:
            self._number, self._operands = work.number, []
        self._operands.append((slot, frozenset(bands), columns, what))

    def tensor_written(
        self, work: AsyncWork, slot: int, bands: list[int], columns: range, *, accumulates: bool = False
    ) -> None:
        if work.number != self._number:
            return
        for where, lanes, read, what in self._operands:
            shared = range(max(read.start, columns.start), min(read.stop, columns.stop))
            if where != slot or not shared or lanes.isdisjoint(bands) or read == columns:
                continue  # the columns of A itself: .ashift moves its rows
            issuer = self._findings.access("issuer", work.statement, work.warp)
            self._findings.report(
                tcgen05.TMEM_OVERLAP,
                work.statement,
                summary=f"{issuer} reads {what} from TMEM columns {read.start}-{read.stop - 1} and writes D to columns "
                f"{columns.start}-{columns.stop - 1}",
                rule=f"D overwrites columns {shared.start}-{shared.stop - 1} of the operand",
                accesses=(issuer,),
            )
