"""The bytes of an mbarrier's phases: what expect_tx names, what copies send, and what has come. PTX ISA 9.7.13.15.3.

A phase ends once all arrivals have come and its tx-count is zero. The count is right only if every copy that is meant
for the phase is expected before the last arrival: else the phase may end while a copy is on its way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ptxgen.device import Severity
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.findings import Findings, line_list
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import Ordering
    from ptxgen.emulator.checks.order.vector_clock import Knowledge
    from ptxgen.emulator.state.mbarriers import MBarrier


@dataclass(slots=True, eq=False)
class Signal:
    """What an asynchronous operation does to an mbarrier once it is over: `size` bytes come, or, of 0, it arrives.

    `given` is what waiting for it makes known, `operation` its number in the happens-before relation (0: none).
    """

    statement: Statement
    size: int
    given: Knowledge | None = None
    operation: int = 0


@dataclass(slots=True)
class Account:
    """The bytes of one phase, by instruction: (it, bytes). Keys are identities, since equal text is another place."""

    expected: dict[int, tuple[Statement, int]] = field(default_factory=dict)
    came: dict[int, tuple[Statement, int]] = field(default_factory=dict)
    #: Arrivals, counted in the same way.
    arrivals: dict[int, tuple[Statement, int]] = field(default_factory=dict)
    #: The operations whose bytes came.
    operations: list[int] = field(default_factory=list)
    #: Warp and interval of the expects after which no arrival has come yet, as far as is known.
    open: list[tuple[int, int]] = field(default_factory=list)
    #: Whether an arrival has come that knows of an expect.
    closed: bool = False
    #: Whether threads have lowered the count themselves, by mbarrier.complete_tx: then nothing is proved.
    by_hand: bool = False

    def expect(self, statement: Statement, size: int) -> None:
        """An expect_tx."""
        _add(self.expected, statement, size)

    def arrive(self, statement: Statement, count: int) -> None:
        """Arrivals."""
        _add(self.arrivals, statement, count)

    def come(self, statement: Statement, size: int) -> None:
        """Bytes have come."""
        _add(self.came, statement, size)

    @property
    def bytes_expected(self) -> int:
        return sum(size for _, size in self.expected.values())

    @property
    def bytes_come(self) -> int:
        return sum(size for _, size in self.came.values())


def _add(book: dict[int, tuple[Statement, int]], statement: Statement, size: int) -> None:
    before = book.get(id(statement))
    book[id(statement)] = statement, size + (before[1] if before is not None else 0)


def lines(statements: Iterable[Statement]) -> str:
    """`line 4`, or `lines 4, 7`."""
    return line_list(statement.line for statement in statements)


def told(book: dict[int, tuple[Statement, int]]) -> str:
    """Bytes by instruction: `4096 bytes (line 9)`."""
    statements = [statement for statement, _ in book.values()]
    return f"{sum(size for _, size in book.values())} bytes ({lines(statements)})" if statements else "no bytes"


class Transactions:
    """The rules, applied as operations on mbarriers come."""

    def __init__(self, ordering: Ordering, findings: Findings) -> None:
        self._ordering, self._findings = ordering, findings

    def _report(
        self, barrier: MBarrier, message: str, statement: Statement | None, severity: Severity = "error"
    ) -> None:
        """Once for an object: what follows from a phase that went wrong is not told again."""
        if not barrier.miscounted:
            barrier.miscounted = True
            cause = frozenset([causes.DEADLOCK, causes.mbarrier(barrier.address)])
            self._findings.add("expect-tx", message, statement, severity=severity, cause=cause)

    def issued(self, barrier: MBarrier, row: int, signal: Signal) -> None:
        """A copy that will complete on the object is issued by a warp; it is not among those under way yet.

        If nothing expects its bytes here, and a copy of the phase before may still be under way for all that the warp
        knows, both may count in that phase.
        """
        before, now = barrier.previous, barrier.account
        if before is None or not before.operations:
            return
        sent = now.bytes_come + sum(each.size for each in barrier.under_way) + signal.size
        if now.bytes_expected >= sent:
            return
        known, alive = self._ordering.known[row].operations, self._ordering.operations
        if all(number in known or number not in alive for number in before.operations):
            return
        self._report(
            barrier,
            f"nothing expects the {signal.size} bytes of this copy: {barrier.name} expected {told(before.expected)} "
            f"in phase {barrier.phase - 1}, for which this warp has not waited, so they may count there or in the "
            "next phase. expect_tx must name the bytes of all copies of a phase",
            signal.statement,
        )

    def expects(self, barrier: MBarrier, row: int, statement: Statement, *, arrives: bool) -> None:
        """A warp has named bytes, and arrives in the same instruction or not."""
        account = barrier.account
        if arrives:
            account.closed = True
            return
        if not account.closed:
            account.open.append((row, self._ordering.clock(row)))
        if not barrier.pending and barrier.phase_may_have_ended:
            self._late(barrier, statement)

    def arrived(self, barrier: MBarrier, row: int) -> None:
        """A warp has arrived: the phase cannot have ended before what it knows."""
        account = barrier.account
        if not account.closed and account.open:
            knows = self._ordering.knows
            account.closed = any(other == row or knows(row, other, clock) for other, clock in account.open)

    def phase_ends(self, barrier: MBarrier) -> None:
        """All arrivals and as many bytes as were expected have come."""
        account = barrier.account
        on_way = [each for each in barrier.under_way if each.size]
        if on_way:
            size = sum(each.size for each in on_way)
            expected = f"expects {told(account.expected)}, which have come" if account.expected else "expects no bytes"
            blamed = next(iter(account.expected.values()))[0] if account.expected else barrier.last_arrival
            self._report(
                barrier,
                f"phase {barrier.phase} of {barrier.name} {expected}, and ends while {size} bytes more are on their "
                f"way to it ({lines(each.statement for each in on_way)}): expect_tx must name the bytes of all copies "
                f"of a phase, {account.bytes_come + size} here, before its last arrival",
                blamed,
            )
        elif account.open and not account.closed and not account.by_hand:
            self._late(barrier, next(iter(account.expected.values()))[0])

    def _late(self, barrier: MBarrier, statement: Statement) -> None:
        self._report(
            barrier,
            f"expect_tx is late: no arrival on {barrier.name} comes after it, so phase {barrier.phase} may have "
            "ended before, and the bytes then count in the next one. Use mbarrier.arrive.expect_tx, or expect_tx "
            "before the arrival of the same thread",
            statement,
        )

    def ends(self, barrier: MBarrier, how: str) -> None:
        """The object's life is over: `how` is what ends it."""
        account = barrier.account
        if barrier.under_way or not barrier.tx or account.by_hand:
            return
        if barrier.tx < 0:
            statements = [statement for statement, _ in account.came.values()]
            self._report(
                barrier,
                f"{how} although {-barrier.tx} bytes more than expected have come in phase {barrier.phase} of "
                f"{barrier.name} ({lines(statements)}; expected: {told(account.expected)}): nobody can have waited "
                "for them. expect_tx is missing, too small, or came in another phase",
                statements[0],
            )
        else:
            statements = [statement for statement, _ in account.expected.values()]
            self._report(
                barrier,
                f"{how} although {barrier.tx} bytes that {barrier.name} expects in phase {barrier.phase} "
                f"({lines(statements)}) have not come, and no copy of them is under way",
                statements[0],
                "advice",
            )
