"""What strong loads return: the value in memory, or a stale one that the memory model permits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from ptxgen.device import StaleValue
from ptxgen.emulator.memory.located import MemoryAccess
from ptxgen.syntax import Statement


class LastStore(NamedTuple):
    """The last strong store to a word: its line, one of its warps (`HappensBefore.actors`), and what it has left."""

    line: int
    actor: int
    value: int


class StrongLoads:
    """Every strong load returns the value in memory."""

    def __init__(self) -> None:
        #: Lines of loops that poll, where the schedule starves them: a stale value would let them pass.
        self.polled: set[int] = set()

    def replace(self, access: MemoryAccess, values: Sequence[NDArray[Any]]) -> bool:
        """May replace loaded values by stale ones, and says whether it has. `values` are the neighboring words of each
        lane, (warps, 32).
        """
        return False

    def poll(
        self, access: MemoryAccess, found: NDArray[Any], again: Callable[[NDArray[Any]], NDArray[Any]]
    ) -> NDArray[Any] | None:
        """What the active lanes of an atomic operation that changes nothing find in place of `found`, where it may as
        well come before the last change of the word; None: the same. `again` does the operation on other words.
        """
        return None

    def last_store(self, poll: Statement, warp: int) -> LastStore | None:
        """The last strong store to a word that a warp has polled by a load or atomic operation; None: unknown."""
        return None

    def returned(self) -> list[StaleValue]:
        """The stale values that loads have returned, by line."""
        return []
