"""clusterlaunchcontrol: no request may follow an observed refusal. PTX ISA 9.7.13.17."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.registry import clusters
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.memory.granules import GRANULE
from ptxgen.emulator.observer import Observer


class LaunchControl(Observer):
    """The refusals of each resident cluster."""

    def __init__(self, happens_before: HappensBefore, findings: Findings) -> None:
        self._happens_before, self._findings = happens_before, findings
        #: Numbers of refused requests, by cluster.
        self._refused: dict[int, list[int]] = {}

    def slots_reused(self, slots: NDArray[np.int64]) -> None:
        for slot in slots.tolist() if self._refused else ():
            self._refused.pop(slot // self._happens_before.size, None)

    def response_issued(self, work: AsyncWork, slots: Sequence[int], granules: NDArray[np.int64]) -> None:
        observed = self._happens_before.observed[work.warp].operations
        if not observed.isdisjoint(self._refused.get(work.slot // self._happens_before.size, ())):
            address = int(granules[0]) * GRANULE
            access = self._findings.access("issuer", work.statement, work.warp, space="shared", address=address)
            self._findings.report(
                clusters.CANCEL_AFTER_REFUSAL,
                work.statement,
                summary=f"{access} requests another cluster after a refusal",
                rule="The refusal of an earlier request happens before this one",
                accesses=(access,),
            )

    def response_refuses(self, work: AsyncWork) -> None:
        self._refused.setdefault(work.slot // self._happens_before.size, []).append(work.number)
