"""Barriers of CTAs and clusters: who has arrived, what arrivals make known, reductions. PTX ISA 9.7.13.1, 9.7.13.3."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks import Knowledge, Ordering
from ptxgen.emulator.group import Group
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.program import Operation


class ClusterBarrier:
    """A cluster's barrier: completed phases, and what they and the arrivals of this one make known."""

    def __init__(self) -> None:
        self.phase = 0
        self.arriving: Knowledge | None = None
        self.completed: Knowledge | None = None
        #: How far each warp of the cluster had come when it arrived, in this phase and in the last completed one.
        self.arrivals: dict[int, int] = {}
        self.executed: dict[int, int] = {}
        self.statement: Statement | None = None

    def arrive(self, ordering: Ordering | None, row: int, *, relaxed: bool) -> None:
        """Add what a warp's arrival releases; a relaxed one what its last fence has."""
        given = None
        if ordering is not None:
            self.arrivals[row % ordering.members] = ordering.clock(row)
            given = ordering.released.get(row) if relaxed else ordering.release(row)
        if given is None:
            return
        if self.arriving is None:
            self.arriving = given.copy()
        else:
            self.arriving.join(given)

    def ended_for(self, ordering: Ordering, row: int) -> bool:
        """Whether a warp knows, without having waited, that all have arrived in the last completed phase."""
        first = row - row % ordering.members
        return all(ordering.knows(row, first + member, clock) for member, clock in self.executed.items())

    def end_phase(self) -> None:
        self.phase += 1
        self.executed = dict(self.arrivals)
        if self.arriving is not None:
            if self.completed is None:
                self.completed = self.arriving
            else:
                self.completed.join(self.arriving)
            self.arriving = None


class Reduction:
    """What an arrival brings to a barrier, and what it gets: `values` (warps, 32) of a group that arrives together."""

    def __init__(
        self, kind: str, group: Group, values: NDArray[np.bool_] | None = None, write: Callable[..., None] | None = None
    ) -> None:
        #: "sync", "arrive", "popc", "and" or "or".
        self.kind = kind
        self.group, self.values, self.write = group, values, write

    @property
    def reduces(self) -> bool:
        return self.values is not None


@dataclass(slots=True)
class Arrival:
    """Lanes of a warp at a barrier, as part of a group that arrived together."""

    row: int
    lanes: NDArray[np.bool_]
    reduction: Reduction
    position: int
    waits: bool


class CtaBarrier:
    """Who has arrived at one of a CTA's sixteen barriers, and what those make known that do not wait."""

    def __init__(self, threads: int | None, operation: Operation, reduces: bool) -> None:
        self.threads, self.operation, self.reduces = threads, operation, reduces
        self.arrived: list[Arrival] = []
        self.given: Knowledge | None = None

    def arrive(
        self, row: int, lanes: NDArray[np.bool_], reduction: Reduction, position: int, *, waits: bool,
        given: Knowledge | None,
    ) -> None:  # fmt: skip
        self.arrived.append(Arrival(row, lanes, reduction, position, waits))
        if given is not None:
            if self.given is None:
                self.given = given
            else:
                self.given.join(given)

    def reduce(self) -> None:
        """Give every waiting thread the count of true predicates, or whether all or any are."""
        if not self.reduces:
            return
        total = threads = 0
        for arrival in self.arrived:
            values = arrival.reduction.values
            threads += int(arrival.lanes.sum())
            total += int((values[arrival.position] & arrival.lanes).sum()) if values is not None else 0
        results = {"popc": total, "and": total == threads, "or": total > 0}
        for arrival in self.arrived:
            if arrival.reduction.write is not None:
                group = Group(arrival.reduction.group.machine, np.array([arrival.row]), arrival.lanes[None])
                arrival.reduction.write(group, np.asarray(results[arrival.reduction.kind]))
