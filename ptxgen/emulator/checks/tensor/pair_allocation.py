"""tcgen05.alloc.cta_group::2 of a CTA whose peer may not have started. PTX ISA 9.7.16.7.1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.registry import tcgen05
from ptxgen.emulator.observer import Lanes, Observer
from ptxgen.syntax import Instruction, Statement


class PairAllocation(Observer):
    """Follows which CTAs have observed that the others of their cluster have started."""

    def __init__(self, happens_before: HappensBefore, findings: Findings) -> None:
        self._happens_before, self._findings = happens_before, findings
        #: CTA slots with a warp past barrier.cluster.wait.
        self._synchronized: set[int] = set()

    def slots_reused(self, slots: NDArray[np.int64]) -> None:
        self._synchronized.difference_update(slots.tolist())

    def cluster_waits(self, warp: int, lanes: Lanes, phase: int, statement: Statement) -> None:
        self._synchronized.add(warp // self._happens_before.warps)

    def pair_allocates(self, warp: int, peer: int, statement: Instruction) -> None:
        happens_before = self._happens_before
        first = peer % happens_before.size * happens_before.warps
        observed = any_set(happens_before.clocks[warp, first : first + happens_before.warps])
        if observed or warp // happens_before.warps in self._synchronized:
            return
        allocator = self._findings.access("allocator", statement, warp)
        self._findings.report(
            tcgen05.PAIR_NOT_STARTED,
            statement,
            summary=f"{allocator} allocates for a pair of CTAs before it has synchronized with its peer",
            accesses=(allocator,),
            cause=("pair not started", statement.line),
        )
