"""What mbarriers order: arrivals release, and waits for their phase acquire. PTX ISA 9.7.13.15."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.order.mbarrier_scope import Reach, Scopes, widen
from ptxgen.emulator.checks.order.vector_clock import VectorClock
from ptxgen.emulator.observer import Observer
from ptxgen.emulator.state.mbarriers import MBarrier, Wait
from ptxgen.emulator.state.signals import Signal
from ptxgen.syntax import Instruction, Statement


class Use(NamedTuple):
    """The last operation of a warp on an mbarrier: its interval, where, and if it was a wait the phase waited for."""

    clock: int
    statement: Statement
    phase: int | None

    @property
    def arrived(self) -> bool:
        """Whether the operation is an arrival."""
        return isinstance(self.statement, Instruction) and self.statement.opcode.startswith("mbarrier.arrive")


class LastWait(NamedTuple):
    """The phase of a warp's last wait that passed, its interval, where, and whether the one before was for the same
    phase.
    """

    phase: int
    clock: int
    statement: Statement
    again: bool


@dataclass(slots=True, eq=False)
class MbarrierClocks:
    """The state of one mbarrier: `made_by` which warp in which interval, and the number of its init.

    `arriving` collects what the arrivals and completed operations of this phase release, `completed` what those of
    the phases that have ended have released.
    """

    made_by: int
    made_at: int
    number: int
    arriving: VectorClock | None = None
    completed: VectorClock | None = None
    #: Clocks published by arrivals, per wait scope; None while all arrivals have cluster scope.
    scopes: Scopes | None = None
    users: dict[int, Use] = field(default_factory=dict)
    waits: dict[int, LastWait] = field(default_factory=dict)

    def release(self, given: VectorClock | None, reach: Reach = "cta") -> None:
        """Add what an arrival or a completed operation releases."""
        if given is None:
            return
        if self.scopes is None and reach != "cta":
            self.scopes = np.zeros((2, len(given.clocks)), np.int64)
            for before in (self.completed, self.arriving):
                if before is not None:
                    widen(self.scopes, before.clocks, "cta")
        if self.scopes is not None:
            widen(self.scopes, given.clocks, reach)
        if self.arriving is None:
            self.arriving = given.copy()
        else:
            self.arriving.join(given)

    def end_phase(self) -> None:
        """Begin the next phase."""
        if self.arriving is not None:
            if self.completed is None:
                self.completed = self.arriving
            else:
                self.completed.join(self.arriving)
            self.arriving = None


class MbarrierOrder(Observer):
    """The clocks of all mbarriers."""

    def __init__(self, happens_before: HappensBefore) -> None:
        self._happens_before = happens_before
        self._clocks: WeakKeyDictionary[MBarrier, MbarrierClocks] = WeakKeyDictionary()
        #: Clock that the arrivals of the present instruction release, to their own CTA and to peer CTAs.
        self._releasing: VectorClock | None = None
        self._releasing_to_peers: VectorClock | None = None

    def of(self, mbarrier: MBarrier) -> MbarrierClocks:
        """The state of an mbarrier."""
        return self._clocks[mbarrier]

    def mbarrier_initialized(self, warp: int, slot: int, mbarrier: MBarrier) -> None:
        happens_before = self._happens_before
        self._clocks[mbarrier] = MbarrierClocks(warp, happens_before.clock(warp), happens_before.init())

    def mbarrier_init_fence(self, warp: int, mbarriers: Sequence[MBarrier]) -> None:
        self._happens_before.release_inits(warp, [self.of(made).number for made in mbarriers])

    def mbarriers_updated(
        self, warp: int, lanes: int, slot: int, statement: Statement, *, arrives: bool, relaxed: bool
    ) -> None:
        """A relaxed arrival releases what a fence has released."""
        if arrives:
            order = self._happens_before
            self._releasing = order.released.get(warp) if relaxed else order.release(warp, lanes)
            self._releasing_to_peers = order.released_to_peers(warp) if relaxed else self._releasing

    def mbarrier_updated(
        self,
        warp: int,
        slot: int,
        mbarrier: MBarrier,
        statement: Statement,
        *,
        expects: bool,
        arrives: bool,
        scope: str | None,
    ) -> None:
        clocks = self.of(mbarrier)
        clocks.users[warp] = Use(self._happens_before.clock(warp), statement, None)
        if arrives:
            own = slot == warp // self._happens_before.warps
            reach: Reach = "cta" if own else "cluster" if scope == "cluster" else "none"
            if own or self._releasing is self._releasing_to_peers:
                clocks.release(self._releasing, reach)
            else:
                clocks.release(self._releasing, "none")
                clocks.release(self._releasing_to_peers, reach)

    def signal_arrives(self, mbarrier: MBarrier, signal: Signal) -> None:
        self.of(mbarrier).release(self._happens_before.given.get(signal))

    def mbarrier_phase_ends(self, mbarrier: MBarrier) -> None:
        self.of(mbarrier).end_phase()

    def mbarrier_polled(self, warp: int, mbarrier: MBarrier, statement: Statement) -> None:
        self.of(mbarrier).users[warp] = Use(self._happens_before.clock(warp), statement, mbarrier.phase)

    def waited(self, warp: int, mbarrier: MBarrier, statement: Statement) -> None:
        """A wait of a warp has passed: it was for the phase before the present one."""
        clocks, now, phase = self.of(mbarrier), self._happens_before.clock(warp), mbarrier.phase - 1
        clocks.users[warp] = Use(now, statement, phase)
        last = clocks.waits.get(warp)
        again = last is not None and last.phase == phase and (last.again or last.clock != now)
        if again and last is not None and last.statement is statement and last.clock != now:
            mbarrier.repeats.setdefault(warp, Wait(phase, statement))
        clocks.waits[warp] = LastWait(phase, now, statement, again)
