"""What only relaxed arrivals at the barrier of a cluster order, which release nothing (PTX ISA 9.7.13.4).

An arrival counts as a strong store, and a wait for its phase as a load of the same word: what would be ordered if each
such store released explains a race.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ptxgen.emulator.checks.order.strong_history import StrongRecord
from ptxgen.emulator.checks.order.vector_clock import VectorClock
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import HappensBefore


class RelaxedArrivals:
    """The relaxed arrivals of all resident clusters, and the waits for their phases."""

    def __init__(self, happens_before: HappensBefore, warps: int) -> None:
        self._happens_before = happens_before
        self._record = StrongRecord(happens_before, warps)

    def clear(self, slots: Iterable[int]) -> None:
        """The CTAs in these slots have ended."""
        self._record.clear(slots)

    def arrives(self, warp: int, phase: int, statement: Statement) -> None:
        """A warp arrives at its cluster's barrier, and releases nothing."""
        self._add(warp, phase, statement, arrives=True)
        self._happens_before.end_interval(warp)

    def waits(self, warp: int, phase: int, statement: Statement) -> None:
        """A warp has waited for a phase of its cluster's barrier, in which there may be relaxed arrivals."""
        if self._record.end:
            self._add(warp, phase, statement, arrives=False)

    def _add(self, warp: int, phase: int, statement: Statement, *, arrives: bool) -> None:
        words = np.array([self._happens_before.actor(warp) // self._happens_before.members << 32 | phase])
        self._record.add(
            np.array([warp]), np.zeros(1, np.int64), words, 0, statement, reads=not arrives, writes=arrives
        )

    def order(self, warp: int, other: int, clock: int) -> bool:
        """Whether only relaxed arrivals order what another warp did up to an interval before a warp."""
        return self._record.would_order(warp, self._happens_before.actor(other), clock)

    def order_before(self, given: VectorClock, other: int, clock: int) -> bool:
        """Whether only relaxed arrivals order what another warp did before a released vector clock."""
        return self._record.would_order_before(given, self._happens_before.actor(other), clock)

    def lines(self, warp: int, actor: int, clock: int) -> frozenset[int]:
        """The lines of the arrivals and waits that would order what an actor did in an interval before a warp."""
        return self._record.flags(warp, actor, clock)
