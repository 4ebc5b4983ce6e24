"""mbarrier objects: phases, pending arrivals, tx-counts, and who waits. PTX ISA 9.7.13.15.

An object lives beside the bytes of shared memory that name it: its 64 bits are opaque to PTX.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxgen.emulator.checks.knowledge import Knowledge
from ptxgen.emulator.memory.faults import MemoryFault
from ptxgen.syntax import Statement

#: Range of the tx-count (9.7.13.15.3).
TX_LIMIT = 2**20 - 1


@dataclass(slots=True)
class MBarrier:
    """One object. `phase` counts completed phases; its parity is what the waits name.

    `arriving` collects what this phase's arrivals and operations release, `completed` what the ended phases have.
    """

    address: int
    expected: int
    pending: int
    made_by: int
    statement: Statement
    phase: int = 0
    tx: int = 0
    fenced: bool = False
    made_at: int = 0
    number: int = 0
    arriving: Knowledge | None = None
    completed: Knowledge | None = None
    last_arrival: Statement | None = None
    waiting: list[tuple[int, Statement]] = field(default_factory=list)
    ended_by: Statement | None = None
    #: The last operation of each warp on it: the warp's interval, where, and whether it was a wait that is over.
    users: dict[int, tuple[int, Statement, bool]] = field(default_factory=dict)

    def release(self, given: Knowledge | None) -> None:
        """Add what an arrival or a completed operation makes known."""
        if given is None:
            return
        if self.arriving is None:
            self.arriving = given.copy()
        else:
            self.arriving.join(given)

    def expect(self, size: int) -> None:
        """Raise the tx-count of the phase. Raises MemoryFault when it leaves its range."""
        self.tx += size
        self._check_tx()

    def arrive(self, count: int) -> None:
        """Take arrivals. Raises MemoryFault when there are more than the phase expects."""
        if count > self.pending:
            raise MemoryFault(
                "mbarrier-overflow",
                f"{count} arrivals on the mbarrier at {self.address:#x}, whose phase {self.phase} expects "
                f"{self.pending} more of {self.expected}",
            )
        self.pending -= count

    def drop(self, count: int) -> None:
        """Expect fewer arrivals in later phases. Raises MemoryFault when none is left to drop."""
        if count > self.expected:
            raise MemoryFault(
                "mbarrier-overflow",
                f"{count} arrivals are dropped from the mbarrier at {self.address:#x}, which expects {self.expected}",
            )
        self.expected -= count

    def complete(self, size: int) -> None:
        """Lower the tx-count, as a copy of `size` bytes does when it is done; it may go below zero."""
        self.tx -= size
        self._check_tx()

    def _check_tx(self) -> None:
        if not -TX_LIMIT <= self.tx <= TX_LIMIT:
            raise MemoryFault(
                "mbarrier-tx",
                f"the tx-count of the mbarrier at {self.address:#x} is {self.tx}; its limit is ±{TX_LIMIT}",
            )

    def end_phase(self) -> bool:
        """Begin the next phase if this one is complete."""
        if self.pending or self.tx:
            return False
        self.phase += 1
        self.pending = self.expected
        if self.arriving is not None:
            if self.completed is None:
                self.completed = self.arriving
            else:
                self.completed.join(self.arriving)
            self.arriving = None
        return True

    def parity_done(self, parity: int) -> bool:
        """Whether the phase of this parity has ended: the current phase has the other one."""
        return (self.phase & 1) != (parity & 1)

    def describe(self) -> str:
        """State in words, for a deadlock report."""
        parts = [f"phase {self.phase} (parity {self.phase & 1})", f"{self.pending} of {self.expected} arrivals pending"]
        if self.tx > 0:
            parts.append(f"{self.tx} bytes outstanding")
        elif self.tx < 0:
            parts.append(f"{-self.tx} bytes more than expected have come")
        return ", ".join(parts)
