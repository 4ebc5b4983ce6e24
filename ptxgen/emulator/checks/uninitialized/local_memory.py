"""Loads of local memory that its thread has not written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from ptxgen.emulator.arrays import all_set
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import uninitialized
from ptxgen.emulator.memory.local_memory import LocalMemory
from ptxgen.emulator.memory.located import MemoryAccess
from ptxgen.emulator.observer import Observer


class LocalAccesses(Observer):
    """Keeps which bytes of the threads' stacks hold a value; `LocalMemory` drops that with their variables."""

    def __init__(self, memory: LocalMemory, findings: Findings) -> None:
        self._memory, self._findings = memory, findings

    def memory_stores(self, access: MemoryAccess, values: Sequence[NDArray[Any]]) -> None:
        _, mask, space, places, size, _, _ = access
        if space == "local":
            chosen = places.offsets if mask is None else places.offsets[mask]
            self._memory.written.reshape(-1, size)[chosen // size] = True

    def memory_loads(self, access: MemoryAccess) -> None:
        """Report loads without a stored byte; a load with some is a struct copy that reads padding."""
        _, mask, space, places, size, statement, _ = access
        if space != "local":
            return
        chosen = places.offsets if mask is None else places.offsets[mask]
        some = self._memory.written.reshape(-1, size)[chosen // size].any(axis=-1)
        if not all_set(some):
            at = int(chosen[~some][0]) % self._memory.pitch
            reader = self._findings.access("reader", statement, space="local", address=at)
            found = uninitialized.UNINITIALIZED_LOCAL.finding(
                statement,
                summary=f"{reader} reads local memory at {at:#x}",
                rule="The thread has written none of these bytes",
                accesses=(reader,),
            )
            self._findings.suspects.report("local", found, plain=True)
