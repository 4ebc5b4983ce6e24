"""All pairs of conflicting accesses to shared memory, for the proof that a mutant is equivalent.

The emulator's checks keep the last accesses to each unit of shared memory; here all are kept, so that nothing can hide
behind a later one, also between the lanes of a warp. A kernel without a pair of conflicting accesses that nothing
orders has results that do not depend on timing: if that holds with a barrier or wait left out, others order whatever it
orders, and the mutant is equivalent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks import observers
from ptxgen.emulator.checks.order.vector_clock import PENDING, AsyncOperation
from ptxgen.emulator.checks.shared.accesses import SharedAccesses
from ptxgen.emulator.checks.shared.instructions import SharedInstructions
from ptxgen.emulator.checks.shared.lanes import LaneAccesses
from ptxgen.emulator.memory.granules import GRANULE
from ptxgen.emulator.memory.located import MemoryAccess

#: Who accesses: a warp, in one of its intervals, or an asynchronous operation (warp -1) by its number.
_Actor = tuple[int, int]
_ALL = np.uint16(0xFFFF)
#: Prefix of reports on strong accesses by the lanes of a warp: they do not race, but a barrier may order them.
STRONG = "strong accesses"


class AllPairs(SharedAccesses):
    """Shared accesses that are compared with every earlier one; `unordered` lists the unordered pairs."""

    unordered: list[str]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        #: (slot, unit) -> (actor, writes) -> bytes, line.
        self._history: dict[tuple[int, int], dict[tuple[_Actor, bool], tuple[int, int]]] = {}

    def slots_reused(self, slots: NDArray[np.int64]) -> None:
        super().slots_reused(slots)
        gone = set(slots.tolist())
        for place in [place for place in self._history if place[0] in gone]:
            del self._history[place]

    def _compared(
        self,
        slot: int,
        granules: NDArray[np.int64],
        masks: Any,
        warp: int,
        actor: _Actor,
        line: int,
        *,
        writes: bool,
        racing: Any = None,
    ) -> None:
        """Compare an access by `actor`, with the vector clock of `warp`, with all earlier ones; record it.

        What is ordered before a write is compared no more: whatever is ordered after the write is ordered after that
        too, and the rest is compared with the write.
        """
        known: dict[_Actor, bool] = {}  # most granules have the same history
        touched = np.broadcast_to(np.asarray(masks, np.int64), granules.shape).tolist()
        fighting = touched if racing is None else np.asarray(racing, np.int64).tolist()
        now = actor, writes
        for granule, mask, bites in zip(granules.tolist(), touched, fighting, strict=True):
            history = self._history.get((slot, granule))
            if history is None:
                self._history[slot, granule] = {now: (mask, line)}
                continue
            overwritten: list[tuple[_Actor, bool]] = []
            for key, (bytes, at) in history.items():
                earlier, wrote = key
                conflicts = (writes or wrote) and bytes & bites
                if not (conflicts or writes):
                    continue
                ordered = known.get(earlier)
                if ordered is None:
                    ordered = known[earlier] = self._is_ordered(earlier, warp)
                if conflicts and not ordered:
                    self.unordered.append(f"lines {at} and {line} at unit {granule}")
                if writes and ordered and not bytes & ~mask:
                    overwritten.append(key)
            for key in overwritten:
                del history[key]
            before = history.get(now)
            history[now] = mask if before is None else before[0] | mask, line

    def _is_ordered(self, earlier: _Actor, warp: int) -> bool:
        """Whether what a warp does now is ordered after an access."""
        other, clock = earlier
        if other < 0:
            return (
                clock in self._happens_before.observed[warp].operations or clock not in self._happens_before.operations
            )
        return clock != PENDING and (other == warp or self._happens_before.has_observed(warp, other, clock))

    def _warp(self, warp: int) -> _Actor:
        return warp, self._happens_before.clock(warp)

    def accesses(
        self, warps: Any, at: Any, granules: Any, masks: Any, changed: Any, statement: Any, *, copies: bool = False
    ) -> bool:
        """One by one, so that each is compared."""
        return False

    def read(self, warp: int, granules: Any, masks: Any, statement: Any, slot: int | None = None, *rest: Any) -> None:
        where = warp // self._happens_before.warps if slot is None else slot
        self._compared(where, granules, masks, warp, self._warp(warp), statement.line, writes=False)
        super().read(warp, granules, masks, statement, slot, *rest)

    def write(
        self,
        warp: int,
        granules: Any,
        masks: Any,
        statement: Any,
        slot: int | None = None,
        changed: Any = None,
        *rest: Any,
    ) -> None:
        where = warp // self._happens_before.warps if slot is None else slot
        self._compared(where, granules, masks, warp, self._warp(warp), statement.line, writes=True, racing=changed)
        super().write(warp, granules, masks, statement, slot, changed, *rest)

    def copy(
        self, warp: int, granules: Any, masks: Any, statement: Any, slot: int | None = None, what: str = "cp.async"
    ) -> None:
        where = warp // self._happens_before.warps if slot is None else slot
        self._compared(where, granules, masks, warp, (warp, PENDING), statement.line, writes=True)
        super().copy(warp, granules, masks, statement, slot, what)

    def copied(self, warp: int, granules: Any, slot: int | None = None, clock: int | None = None) -> None:
        where = warp // self._happens_before.warps if slot is None else slot
        for granule in granules.tolist():
            history = self._history.get((where, granule), {})
            pending = history.pop(((warp, PENDING), True), None)
            if pending is not None:
                actor = warp, self._happens_before.clock(warp) if clock is None else clock
                before, _ = history.get((actor, True), (0, 0))
                history[actor, True] = before | pending[0], pending[1]
        super().copied(warp, granules, slot, clock)

    def async_write(self, operation: AsyncOperation, warp: int, granules: Any, slot: int | None = None) -> None:
        where, line = operation.slot if slot is None else slot, operation.statement.line
        self._compared(where, granules, _ALL, warp, (-1, operation.number), line, writes=True)
        super().async_write(operation, warp, granules, slot)

    def async_read(
        self, operation: AsyncOperation, warp: int, granules: Any, slot: int | None = None, masks: Any = _ALL
    ) -> None:
        where, line = operation.slot if slot is None else slot, operation.statement.line
        self._compared(where, granules, masks, warp, (-1, operation.number), line, writes=False)
        super().async_read(operation, warp, granules, slot, masks)


class _Bytes:
    """Which lanes of a warp have loaded and stored each byte of shared memory in an interval."""

    def __init__(self, size: int) -> None:
        self._interval = -1
        self._loads, self._stores = np.zeros(size, np.uint32), np.zeros(size, np.uint32)
        self._touched: list[NDArray[np.int64]] = []

    def conflict(self, interval: int, places: NDArray[np.int64], lanes: NDArray[np.int64], *, writes: bool) -> bool:
        """Lanes access bytes (indices over all slots), one lane for each: whether others have, and one writes."""
        if self._interval != interval:
            for touched in self._touched:
                self._loads[touched] = self._stores[touched] = 0
            self._interval, self._touched = interval, []
        self._touched.append(places)
        bits = np.uint32(1) << lanes.astype(np.uint32)
        against = self._stores[places] | (self._loads[places] if writes else np.uint32(0))
        np.bitwise_or.at(self._stores if writes else self._loads, places, bits)
        return bool((against & ~bits).any())


class AllLanes(LaneAccesses):
    """Accesses by the lanes of warps, compared with every earlier one of the same interval between synchronizations:
    weak ones with each other, and all.
    """

    unordered: list[str]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._weak: dict[int, _Bytes] = {}
        self._all: dict[int, _Bytes] = {}

    def _compared(
        self, warp: int, places: NDArray[np.int64], lanes: NDArray[np.int64], line: int, *, writes: bool, strong: bool
    ) -> None:
        """Lanes access bytes, one lane for each (places: indices of bytes over all slots), at once."""
        for tables, what in ((self._all, STRONG), (self._weak, "accesses")):
            if strong and tables is self._weak:
                continue
            table = tables.setdefault(warp, _Bytes(len(self._writer) * self._word))
            if table.conflict(int(self.interval[warp]), places, lanes, writes=writes):
                self.unordered.append(f"{what} by lanes of a warp, at line {line}")

    def tell(
        self, warps: Any, slots: Any, inside: Any, chosen: Any, size: int, statement: Any, *, writes: bool, strong: bool
    ) -> None:
        """Lanes `chosen`, (warps, 32), load `size` bytes each, or store to them."""
        places = np.broadcast_to(slots, inside.shape) * self._words * self._word + inside
        for position, warp in enumerate(warps.tolist()):
            lanes = np.flatnonzero(chosen[position])
            at = (places[position, lanes][:, None] + np.arange(size)).ravel()
            self._compared(warp, at, lanes.repeat(size), statement.line, writes=writes, strong=strong)

    def access(
        self, warps: Any, slots: Any, inside: Any, active: Any, size: int, statement: Any, changing: Any
    ) -> None:
        collective = changing is None and ".sync" in statement.opcode
        if not collective:
            chosen = active if changing is None else active & changing
            writes = changing is not None
            self.tell(warps, slots, inside, chosen, size, statement, writes=writes, strong=False)
        super().access(warps, slots, inside, active, size, statement, changing)

    def asynchronous(self, operation: AsyncOperation, warp: int, slot: int, granules: Any, *, writes: bool) -> None:
        if operation.lane is not None:
            places = ((slot * self._words * self._word + granules * GRANULE)[:, None] + np.arange(GRANULE)).ravel()
            lanes = np.full(len(places), operation.lane)
            self._compared(warp, places, lanes, operation.statement.line, writes=writes, strong=False)
        super().asynchronous(operation, warp, slot, granules, writes=writes)


class AllInstructions(SharedInstructions):
    """Accesses of instructions that also report the lanes of strong ones; atomic operations count as stores."""

    def strong(self, access: MemoryAccess, active: Any, what: Any, changing: Any = None, **how: Any) -> None:
        if isinstance(self._lanes, AllLanes):
            chosen, writes, places = active if changing is None else changing, what != "strong load", access.places
            self._lanes.tell(
                access.warps,
                places.slots,
                places.inside,
                chosen,
                access.size,
                access.statement,
                writes=writes,
                strong=True,
            )
        super().strong(access, active, what, changing, **how)


@contextlib.contextmanager
def all_pairs(unordered: list[str] | None = None) -> Iterator[list[str]]:
    """Launches in this context compare all pairs; adds what nothing orders to the list, and gives it."""
    unordered = [] if unordered is None else unordered
    made = type("AllPairs", (AllPairs,), {"unordered": unordered})
    lanes = type("AllLanes", (AllLanes,), {"unordered": unordered})
    with (
        mock.patch.object(observers, "SharedAccesses", made),
        mock.patch.object(observers, "LaneAccesses", lanes),
        mock.patch.object(observers, "SharedInstructions", AllInstructions),
    ):
        yield unordered
