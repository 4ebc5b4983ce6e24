"""Signals of asynchronous work to mbarriers, and the bytes of a phase. PTX ISA 9.7.13.15.3."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ptxgen.device.report import line_list
from ptxgen.syntax import Statement


@dataclass(slots=True, eq=False, weakref_slot=True)
class Signal:
    """What an asynchronous operation does to an mbarrier when done: complete_tx of `size` bytes, or, of 0, an arrival.

    `operation` is the number of the work that signals (0: none).
    """

    statement: Statement
    size: int
    operation: int = 0


@dataclass(slots=True)
class Account:
    """The bytes of one phase by instruction: (instruction, bytes). Keys are identities, as text may repeat."""

    expected: dict[int, tuple[Statement, int]] = field(default_factory=dict)
    came: dict[int, tuple[Statement, int]] = field(default_factory=dict)
    #: Arrivals, counted in the same way.
    arrivals: dict[int, tuple[Statement, int]] = field(default_factory=dict)
    #: The operations whose bytes arrived.
    operations: list[int] = field(default_factory=list)
    #: True: threads have lowered tx-count themselves by mbarrier.complete_tx; nothing is reported then.
    by_hand: bool = False

    def expect(self, statement: Statement, size: int) -> None:
        """An expect_tx."""
        _add(self.expected, statement, size)

    def arrive(self, statement: Statement, count: int) -> None:
        """Arrivals."""
        _add(self.arrivals, statement, count)

    def receive(self, statement: Statement, size: int) -> None:
        """Bytes have arrived."""
        _add(self.came, statement, size)

    @property
    def statements(self) -> list[Statement]:
        """What has arrived, announced or transferred anything."""
        return [statement for book in (self.expected, self.came, self.arrivals) for statement, _ in book.values()]

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


def byte_list(book: dict[int, tuple[Statement, int]]) -> str:
    """Bytes by instruction: `4096 bytes (line 9)`."""
    statements = [statement for statement, _ in book.values()]
    return f"{sum(size for _, size in book.values())} bytes ({lines(statements)})" if statements else "no bytes"
