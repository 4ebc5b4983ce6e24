"""What strong loads return: the value in memory, or a stale one that the memory model permits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

from ptxgen.device import StaleValue
from ptxgen.emulator.memory.located import MemoryAccess


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

    def returned(self) -> list[StaleValue]:
        """The stale values that loads have returned, by line."""
        return []
