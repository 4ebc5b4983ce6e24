"""Loads of a warp's lanes before a shuffle, vote or reduction of the whole warp, and what comes after it.

Such an instruction makes the lanes wait for each other, so what a lane has loaded before it comes before what another
stores after it in time. PTX does not count that as synchronization (9.7.9), but NVIDIA's cooperative groups rely on it:
all lanes load the result of a reduction, and the next reduction stores its own there after a redux.sync.

The same holds where one lane then arrives on an mbarrier for which another warp waits, if the loaded value, or what is
computed of it, is an operand of the exchange (`ConsumedLoads`): the exchange waits until all lanes have their values.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks.order.partial_release import Exchanged
from ptxgen.emulator.checks.shared.consumed_loads import ConsumedLoads
from ptxgen.emulator.observer import MachineView, Observer, ProgramView
from ptxgen.syntax import Instruction, Statement

if TYPE_CHECKING:
    from collections.abc import Callable

#: Exchanges and loads of a warp that are kept: a load older than these counts as followed by no exchange.
_MOST = 64


class Exchanges(Observer):
    """The last exchanges of all lanes of each warp, and the words of its loads since the first of them."""

    def __init__(self) -> None:
        self._kept: dict[int, deque[Statement | NDArray[np.int64]]] = {}
        self._consumed: ConsumedLoads | None = None

    def launch_begins(self, machine: MachineView, program: ProgramView) -> None:
        self._consumed = ConsumedLoads(program)  # type: ignore[arg-type]

    @property
    def any(self) -> bool:
        """Whether loads of some warp are kept."""
        return bool(self._kept)

    def lanes_exchange(self, warps: NDArray[np.int64], lanes: NDArray[np.bool_], statement: Instruction) -> None:
        for warp in warps[lanes.all(axis=1)].tolist():
            self._kept.setdefault(warp, deque(maxlen=_MOST)).append(statement)

    def load(self, warps: NDArray[np.int64], words: NDArray[np.int64]) -> None:
        """Lanes of these warps load words of shared memory."""
        for warp in warps.tolist() if self._kept else ():
            kept = self._kept.get(warp)
            if kept is not None:
                kept.append(words)

    def follow(self, warp: int, word: int) -> bool:
        """Whether all loads of a word by lanes of a warp come before its last exchange."""
        for each in reversed(self._kept.get(warp, ())):
            if isinstance(each, Statement):
                return True
            if any_set(each == word):
                return False
        return False

    def of(self, warp: int) -> Exchanged:
        """The exchanges of a warp that are kept, and the loads between them, the oldest first."""
        return tuple(self._kept.get(warp, ()))

    def consume(self, exchanged: Exchanged, words: NDArray[np.int64], line: Callable[[int], int]) -> NDArray[np.bool_]:
        """Which of these words, each last loaded in its `line`, an exchange follows that has the value as operand."""
        found = np.zeros(words.shape, np.bool_)
        waiting = np.ones(words.shape, np.bool_)
        after: set[Statement] = set()
        for each in reversed(exchanged):
            if isinstance(each, Statement):
                after.add(each)
                continue
            here = waiting & np.isin(words, each)
            if any_set(here):
                found[here] = self._follow_loads(words[here], after, line)
                waiting &= ~here
        found[waiting] = self._follow_loads(words[waiting], after, line)
        return found

    def _follow_loads(
        self, words: NDArray[np.int64], after: set[Statement], line: Callable[[int], int]
    ) -> NDArray[np.bool_]:
        """Which words' loads are consumed by one of these exchanges."""
        if not after or self._consumed is None:
            return np.zeros(words.shape, np.bool_)
        consumed = frozenset[int]().union(*(self._consumed.by(each) for each in after))
        return np.array([line(word) in consumed for word in words.tolist()], np.bool_)

    def forget(self, warps: NDArray[np.int64]) -> None:
        """The lanes of these warps synchronize."""
        for warp in warps.tolist() if self._kept else ():
            self._kept.pop(warp, None)

    def clear(self) -> None:
        """Words have other numbers from now on."""
        self._kept.clear()
