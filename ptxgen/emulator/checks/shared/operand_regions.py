"""Matrix descriptors that take an MMA out of the variable in which its operand begins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import descriptors
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.load.shared_names import SharedPart
from ptxgen.emulator.memory.granules import GRANULE
from ptxgen.emulator.observer import Observer

_PRODUCTS = frozenset(["tcgen05.mma", "wgmma.mma_async"])


class OperandRegions(Observer):
    """Compares the bytes that products read with the variables and regions of shared memory."""

    def __init__(self, parts: Sequence[SharedPart], findings: Findings) -> None:
        self._parts, self._findings = parts, findings
        #: First and last bytes of operands that lie in one part.
        self._right: set[tuple[int, int]] = set()

    def work_reads_shared(
        self,
        work: AsyncWork,
        warps: Sequence[int],
        slot: int,
        granules: NDArray[np.int64],
        bytes: NDArray[np.uint16] | np.uint16,
        swizzle: str | None = None,
    ) -> None:
        if work.what not in _PRODUCTS or not len(granules):
            return
        first, last = int(granules.min()) * GRANULE, int(granules.max()) * GRANULE + GRANULE - 1
        if (first, last) in self._right:
            return
        begins = [each for each in self._parts if each.start <= first < each.start + each.size]
        if not begins or any(last < each.start + each.size for each in begins):
            self._right.add((first, last))
            return
        part = min(begins, key=lambda each: each.size)
        reader = self._findings.access("reader", work.statement, work.warp, slot=slot, space="shared", address=first)
        self._findings.report(
            descriptors.OPERAND_REGION,
            work.statement,
            summary=f"{reader} reads an operand from {first:#x} to {last:#x}, which begins in {part.name}",
            rule=f"{part.name} ends at {part.start + part.size - 1:#x}; the rest is "
            f"{self._findings.name('shared', part.start + part.size)}",
            accesses=(reader,),
            cause=frozenset([causes.behind(work.statement.line)]),
        )
