"""mbarrier objects: phases, pending arrivals, tx-counts and waits. PTX ISA 9.7.13.15.

An object is kept apart from its bytes in shared memory: its 64 bits are opaque to PTX.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.registry import mbarriers
from ptxgen.emulator.memory.faults import MemoryFault
from ptxgen.emulator.state.signals import Account, Signal, lines
from ptxgen.syntax import Statement

#: Range of the tx-count (9.7.13.15.3).
TX_LIMIT = 2**20 - 1
#: Copies in flight whose sizes are combined to see when a phase may end.
_COMBINED = 12


class Wait(NamedTuple):
    """A wait that passed: its phase and instruction. Before phase 0, phase -1 counts as complete."""

    phase: int
    statement: Statement


@dataclass(slots=True, eq=False, weakref_slot=True)
class MBarrier:
    """One object. `phase` counts completed phases; its parity is what the waits name."""

    address: int
    expected: int
    pending: int
    made_by: int
    statement: Statement
    layout: str = "v0"
    phase: int = 0
    tx: int = 0
    fenced: bool = False
    last_arrival: Statement | None = None
    ended_by: Statement | None = None
    #: The last wait of each warp that passed.
    waits: dict[int, Wait] = field(default_factory=dict)
    #: Copies and commits that have been issued for it and are not complete.
    under_way: list[Signal] = field(default_factory=list)
    #: The bytes of this phase, and of the one before.
    account: Account = field(default_factory=Account)
    previous: Account | None = None
    #: Its name, if it has one: a variable or a region of the plan.
    called: str = ""
    #: True once a byte count was found wrong.
    miscounted: bool = False
    #: True: a phase may have completed while a waiter was a phase behind.
    behind: bool = False
    #: By warp, the first wait that passed for the phase of the one before by the same instruction, after which the warp
    #: had released something.
    repeats: dict[int, Wait] = field(default_factory=dict)

    def over(self, signal: Signal) -> None:
        """An operation that signals it is complete."""
        if signal in self.under_way:  # not if the object has been made anew since
            self.under_way.remove(signal)
        self.last_arrival = signal.statement

    def expect(self, size: int, statement: Statement) -> None:
        """Raise the tx-count of the phase. Raises MemoryFault when it leaves its range."""
        self.tx += size
        self.account.expect(statement, size)
        self._check_tx()

    def arrive(self, count: int, statement: Statement) -> None:
        """Count arrivals. Raises MemoryFault when there are more than the phase expects."""
        if count > self.pending:
            had = self.expected - self.pending
            came = f" ({lines(each for each, _ in self.account.arrivals.values())})" if self.account.arrivals else ""
            raise MemoryFault(
                mbarriers.MBARRIER_OVERFLOW,
                f"{count} arrival{'s' if count > 1 else ''} on {self.name} in phase {self.phase}",
                rule=f"The phase expects {self.expected} and already has {had}{came}. The init count is too small, or "
                "the arrival is for the next phase and a wait before it is missing or has the wrong parity",
                fix="",
                cause=frozenset([causes.mbarrier(self.address)]),
            )
        self.pending -= count
        self.account.arrive(statement, count)

    def drop(self, count: int) -> None:
        """Expect fewer arrivals in later phases. Raises MemoryFault when none is left to drop."""
        if count > self.expected:
            raise MemoryFault(
                mbarriers.MBARRIER_OVERFLOW,
                f"mbarrier.arrive_drop of {count} on {self.name}",
                rule=f"Only {self.expected} expected arrivals are left to drop",
                fix="",
            )
        self.expected -= count

    def complete(self, size: int, statement: Statement, operation: int = 0) -> None:
        """Lower the tx-count, as a copy of `size` bytes does when it is done; it may go below zero."""
        self.tx -= size
        self.account.receive(statement, size)
        if operation:
            self.account.operations.append(operation)
        self._check_tx()

    def _check_tx(self) -> None:
        if not -TX_LIMIT <= self.tx <= TX_LIMIT:
            raise MemoryFault(
                mbarriers.MBARRIER_TX,
                f"the tx-count of {self.name} is {self.tx}",
                rule=f"It must stay within ±{TX_LIMIT}",
            )

    @property
    def phase_may_have_ended(self) -> bool:
        """Whether the outstanding bytes, or those of some of the copies in flight, are what this phase lacks."""
        sums = {0}
        for size in [each.size for each in self.under_way[-_COMBINED:]]:
            sums |= {total + size for total in sums}
        return self.tx in sums

    @property
    def is_complete(self) -> bool:
        """Whether all expected arrivals and bytes have arrived."""
        return not self.pending and not self.tx

    def end_phase(self) -> None:
        """Complete this phase and start the next."""
        self.phase += 1
        self.previous, self.account = self.account, Account()
        self.pending = self.expected

    def waited(self, warp: int, statement: Statement) -> None:
        """A warp's wait has passed: it was for the phase before the current one."""
        self.waits[warp] = Wait(self.phase - 1, statement)

    def parity_done(self, parity: int) -> bool:
        """Whether the phase of this parity is complete: the current phase has the other parity."""
        return (self.phase & 1) != (parity & 1)

    @property
    def name(self) -> str:
        """What messages call it: `full[2] (0x8410, init in line 48)`."""
        if self.called:
            return f"{self.called} ({self.address:#x}, init in line {self.statement.line})"
        return f"the mbarrier at {self.address:#x} (init in line {self.statement.line})"


class Polled(NamedTuple):
    """A test that found its phase incomplete: the CTA slot, the object and the instruction."""

    slot: int
    barrier: MBarrier
    statement: Statement
