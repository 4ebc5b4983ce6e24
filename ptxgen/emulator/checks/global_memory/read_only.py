"""ld.global.nc, and fetches of textures, of what the same kernel has written. PTX ISA 9.7.9.9 and 9.7.10."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import races
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.memory.global_memory import HEAP_BASE
from ptxgen.emulator.memory.granules import GRANULE
from ptxgen.emulator.memory.located import MemoryAccess
from ptxgen.emulator.observer import Observer
from ptxgen.syntax import Statement


class ReadOnlyLoads(Observer):
    """What the launch has written of the heap, of `size` bytes, by bytes, for loads through the read-only path."""

    def __init__(self, size: int, findings: Findings) -> None:
        self._findings = findings
        #: By byte: number of the instruction that wrote it, 0 if none.
        self._writer = np.zeros(size, np.uint16)
        self._numbers: dict[int, int] = {}
        self._statements: list[Statement] = []

    def heap_grows(self, bytes: int) -> None:
        self._writer = np.concatenate([self._writer, np.zeros(max(bytes - len(self._writer), 0), np.uint16)])

    def _number(self, statement: Statement) -> int:
        number = self._numbers.get(id(statement))
        if number is None:
            self._statements.append(statement)
            number = self._numbers[id(statement)] = len(self._statements)
        return number

    def memory_stores(self, access: MemoryAccess, values: Sequence[NDArray[Any]]) -> None:
        self._write(access)

    def memory_updates(
        self, access: MemoryAccess, turns: NDArray[np.int64] | None, *, returns: bool, uses: bool
    ) -> None:
        self._write(access)

    def _write(self, access: MemoryAccess) -> None:
        if access.space == "global" and access.places.slots is None:
            offsets = access.places.offsets[access.active]
            self._writer[offsets[:, None] + np.arange(access.size)] = self._number(access.statement)

    def work_writes_global(self, work: AsyncWork, granules: NDArray[np.int64]) -> None:
        inside = granules[(granules >= 0) & (granules < len(self._writer) // GRANULE)]
        self._writer[inside[:, None] * GRANULE + np.arange(GRANULE)] = self._number(work.statement)

    def memory_loads(self, access: MemoryAccess) -> None:
        warps, _, space, places, size, statement, _ = access
        read_only = ".nc" in statement.opcode or statement.opcode.startswith(("tex.", "tld4."))
        if space != "global" or places.slots is not None or not read_only:
            return
        lanes = np.flatnonzero(access.active)
        offsets = places.offsets.reshape(-1)[lanes]
        writers = self._writer[offsets[:, None] + np.arange(size)].max(axis=1, initial=0)
        if not any_set(writers):
            return
        first = int((writers != 0).argmax())
        warp, lane = divmod(int(lanes[first]), 32)
        address = HEAP_BASE + int(offsets[first])
        reader = self._findings.access(
            "reader", statement, int(warps[warp]), lanes=1 << lane, space="global", address=address
        )
        writer = self._findings.access(
            "writer", self._statements[int(writers[first]) - 1], space="global", address=address
        )
        self._findings.report(
            races.NC_LOAD,
            statement,
            summary=f"{reader} reads {reader.place}, which {writer} of the same kernel writes",
            rule="The read-only path is not coherent: it may return what was there before",
            accesses=(reader, writer),
        )
