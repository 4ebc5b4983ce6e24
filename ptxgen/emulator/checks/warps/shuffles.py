"""Values that shuffles take from lanes that take no part. PTX ISA 9.7.9.6."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import barriers
from ptxgen.emulator.observer import Lanes, Observer
from ptxgen.emulator.state.convergence import bits_of
from ptxgen.emulator.state.perturbation import shuffled_by
from ptxgen.syntax import Instruction, Statement


class Shuffles(Observer):
    """Such values are suspect: a rerun shows whether anything depends on them. `live` are the lanes that exist,
    `present` those that have not exited.
    """

    def __init__(self, live: NDArray[np.bool_], present: NDArray[np.bool_], findings: Findings) -> None:
        self._live, self._present, self._findings = live, present, findings
        self._reported: set[Statement] = set()

    def shuffle_undefined(
        self, warps: NDArray[np.int64], lanes: Lanes, sources: NDArray[np.int64], statement: Instruction
    ) -> None:
        if statement in self._reported:
            return
        self._reported.add(statement)
        position = int(lanes.any(axis=1).argmax())
        warp, here = int(warps[position]), lanes[position]
        first = int(here.argmax())
        lane = int(sources[position][first])
        reader = self._findings.access("reader", statement, warp, lanes=int(bits_of(here)))
        found = barriers.SHUFFLE_SOURCE.finding(
            statement,
            summary=f"{reader} gives lane {first} the value of lane {lane}, which {self._why(warp, lane)}",
            rule="The value is undefined",
            accesses=(reader,),
        )
        source = shuffled_by(statement)
        self._findings.suspects.report(source, found, plain=False, cause=(source,), copied="error")

    def _why(self, warp: int, lane: int) -> str:
        """Why a lane takes no part in a shuffle."""
        if not self._live[warp, lane]:
            return "the CTA does not have"
        return "is not in the mask" if self._present[warp, lane] else "has exited"
