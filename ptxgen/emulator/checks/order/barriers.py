"""What barriers of CTAs and clusters order. PTX ISA 9.7.13.1, 9.7.13.3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.order.vector_clock import VectorClock
from ptxgen.emulator.observer import Lanes, Observer
from ptxgen.emulator.state.cluster_barrier import report_unwaited_arrival
from ptxgen.syntax import Instruction, Statement


class CtaBarrierClocks(Observer):
    """Orders the warps that wait at a CTA's barrier after each other, and after those that only arrive."""

    def __init__(self, happens_before: HappensBefore) -> None:
        self._happens_before = happens_before
        #: By slot and barrier: the clock released by warps that arrive without waiting.
        self._released: dict[tuple[int, int], VectorClock] = {}

    def ctas_end(self, slots: Sequence[int]) -> None:
        if self._released:
            self._released = {key: clock for key, clock in self._released.items() if key[0] not in slots}

    def barrier_arrives(
        self,
        slot: int,
        name: int,
        warp: int,
        lanes: Lanes,
        statement: Instruction,
        *,
        waits: bool,
        threads: int | None,
    ) -> None:
        if waits:
            return
        released = self._happens_before.release(warp)
        before = self._released.get((slot, name))
        if before is None:
            self._released[slot, name] = released
        else:
            before.join(released)

    def barrier_completes(self, slot: int, name: int, warps: list[int]) -> None:
        released = self._released.pop((slot, name), None)
        if warps:
            self._happens_before.barrier(warps, released)


@dataclass(slots=True)
class _Phases:
    """The barrier of a resident cluster: what the arrivals of this phase have released, and those of ended ones."""

    arriving: VectorClock | None = None
    completed: VectorClock | None = None
    #: By slot: the clock that relaxed arrivals release to their own CTA alone, covered by fences of scope .cta.
    arriving_in_cta: dict[int, VectorClock] = field(default_factory=dict)
    completed_in_cta: dict[int, VectorClock] = field(default_factory=dict)
    #: The interval of each warp of the cluster when it arrived, in this phase and in the last completed one.
    arrivals: dict[int, int] = field(default_factory=dict)
    executed: dict[int, int] = field(default_factory=dict)

    def release(self, released: VectorClock) -> None:
        """Waits for this phase acquire this."""
        if self.arriving is None:
            self.arriving = released.copy()
        else:
            self.arriving.join(released)


def _join(clocks: dict[int, VectorClock], slot: int, clock: VectorClock) -> None:
    """Add a clock to the one of a slot."""
    if slot in clocks:
        clocks[slot].join(clock)
    else:
        clocks[slot] = clock.copy()


class ClusterBarrierClocks(Observer):
    """Orders waits for a phase of a cluster's barrier after the arrivals that release."""

    def __init__(self, happens_before: HappensBefore, findings: Findings) -> None:
        self._happens_before, self._findings = happens_before, findings
        #: State of the cluster barrier, by resident cluster.
        self._phases: dict[int, _Phases] = {}

    def _of(self, warp: int) -> _Phases:
        """The barrier of a warp's cluster."""
        return self._phases.setdefault(warp // self._happens_before.members, _Phases())

    def executed(self, slot: int) -> Mapping[int, int]:
        """The interval of each warp of a slot's cluster when it arrived in the last completed phase."""
        phases = self._phases.get(slot // self._happens_before.size)
        return {} if phases is None else phases.executed

    def slots_reused(self, slots: NDArray[np.int64]) -> None:
        for slot in slots.tolist() if self._phases else ():
            self._phases.pop(slot // self._happens_before.size, None)

    def cluster_arrives(
        self, warp: int, lanes: Lanes, phase: int, statement: Statement, *, relaxed: bool, unwaited: bool
    ) -> None:
        """A relaxed arrival releases what the warp's last fence has. To arrive without having waited is legal if the
        warp has otherwise observed that all have arrived in the last phase.
        """
        happens_before, members = self._happens_before, self._happens_before.members
        phases, first = self._of(warp), warp - warp % members
        if unwaited and not all(
            happens_before.has_observed(warp, first + member, clock) for member, clock in phases.executed.items()
        ):
            report_unwaited_arrival(self._findings, warp, statement)
        phases.arrivals[warp % members] = happens_before.clock(warp)
        released = happens_before.released_to_peers(warp) if relaxed else happens_before.release(warp)
        if relaxed:
            happens_before.relaxed.arrives(warp, phase, statement)
        if released is not None:
            phases.release(released)
        fenced = happens_before.released.get(warp)
        if relaxed and fenced is not None and fenced is not released:
            _join(phases.arriving_in_cta, warp // happens_before.warps, fenced)

    def cluster_leaves(self, warp: int, lanes: Lanes) -> None:
        self._of(warp).release(self._happens_before.release(warp))

    def cluster_phase_ends(self, cluster: int) -> None:
        phases = self._phases.setdefault(cluster, _Phases())
        phases.executed = dict(phases.arrivals)
        if phases.arriving is not None:
            if phases.completed is None:
                phases.completed = phases.arriving
            else:
                phases.completed.join(phases.arriving)
            phases.arriving = None
        for slot, clock in phases.arriving_in_cta.items():
            _join(phases.completed_in_cta, slot, clock)
        phases.arriving_in_cta.clear()

    def cluster_waits(self, warp: int, lanes: Lanes, phase: int, statement: Statement) -> None:
        happens_before = self._happens_before
        happens_before.relaxed.waits(warp, phase, statement)
        phases = self._of(warp)
        completed, in_cta = phases.completed, phases.completed_in_cta.get(warp // happens_before.warps)
        acquired = [each for each in (completed, in_cta) if each is not None]
        for clock in acquired:
            happens_before.acquire(warp, clock)
        if acquired:
            happens_before.lanes_converge(np.array([warp]))
