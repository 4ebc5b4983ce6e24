"""The strong accesses that have run, in their order, so that a conflict can be explained by them.

A store that does not release publishes nothing (PTX ISA 8.8), and no correct program depends on what it would have
published. So nothing of the kind is kept up to date: when a conflict has been found, the record is searched for the
warps after which an access would be ordered if every strong store released. The order passes from a strong store to
each warp that later reads the word by a strong access, and on through all synchronization.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.order.vector_clock import VectorClock
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import HappensBefore
    from ptxgen.emulator.checks.order.remote_clocks import ClusterEpoch

#: A word: a global address, or above all those a CTA slot and the offset in its shared memory.
Word = int
_SHARED, _SLOT_BITS = 1 << 62, 32
#: So much is kept, in accesses of lanes and what an instruction takes besides. Beyond, the oldest are dropped, and what
#: only they explain is reported as a race.
_MOST, _BESIDES = 1 << 23, 32
#: Searches that are kept, to be continued where the record goes on.
_SEARCHES = 16


def in_shared_memory(slots: NDArray[np.int64], inside: NDArray[np.int64]) -> NDArray[np.int64]:
    """The words at offsets in the shared memory of CTA slots."""
    return slots << _SLOT_BITS | inside | _SHARED


def slots_of(words: NDArray[np.int64]) -> NDArray[np.int64]:
    """The CTA slots of words in shared memory, -1 for global memory."""
    return np.where(words & _SHARED, (words ^ _SHARED) >> _SLOT_BITS, -1)


def slot_of(word: Word) -> int:
    """The same of one."""
    return (word ^ _SHARED) >> _SLOT_BITS if word & _SHARED else -1


def granule_of(word: Word) -> Word:
    """The first of the 16 bytes that contain a word."""
    return word & -16


class Accesses(NamedTuple):
    """Strong accesses by warps in one instruction, one after the other; `begins` is where the words of each begin."""

    #: By access: its warp (`HappensBefore.actors`), interval, and the clock that the warp had observed.
    actors: list[int]
    clocks: list[int]
    observed: list[VectorClock]
    words: NDArray[np.int64]
    begins: list[int]
    level: int
    reads: bool
    writes: bool
    statement: Statement

    def of(self, position: int) -> list[Word]:
        """The words of one of the warps, each lane's."""
        return self.words[self.begins[position] : self.begins[position + 1]].tolist()


class StrongRecord:
    """The strong accesses of warps, each with the vector clock of its warp at that time."""

    def __init__(self, happens_before: HappensBefore, warps: int) -> None:
        self._happens_before = happens_before
        #: The accesses, or a slot whose CTA has ended; how many have been dropped before them, and what they take.
        self._entries: list[Accesses | int] = []
        self._dropped, self._size = 0, 0
        #: Loads since the last store, by warps and words: warps that poll need no entry each time.
        self._loads: dict[tuple[bytes, bytes], Accesses] = {}
        #: The vector clock of each warp at its last access; one copy while it does not change.
        self._last: list[VectorClock | None] = [None] * warps
        self._clocks = np.zeros((warps, happens_before.members), np.int64)
        self._searches: dict[tuple[int, int], _Search] = {}

    @property
    def end(self) -> int:
        """The number of the entry that comes next."""
        return self._dropped + len(self._entries)

    def since(self, number: int) -> list[Accesses | int]:
        """The entries from one on, as far as they have not been dropped."""
        return self._entries[max(number - self._dropped, 0) :]

    def clear(self, slots: Iterable[int]) -> None:
        """The CTAs in these slots have ended."""
        warps = self._happens_before.warps
        self._loads.clear()
        if not self._entries:
            return
        for slot in slots:
            self._last[slot * warps : (slot + 1) * warps] = [None] * warps
            self._entries.append(slot)

    def add(
        self,
        warps: NDArray[np.int64],
        positions: NDArray[np.int64],
        words: NDArray[np.int64],
        level: int,
        statement: Statement,
        *,
        reads: bool,
        writes: bool,
    ) -> Accesses:
        """Lanes access these words, those of `warps[positions]`, which ascend; not all warps need have some."""
        key = warps.tobytes(), words.tobytes()
        if not writes and (before := self._loads.get(key)) is not None and before.statement is statement:
            return before
        begins = positions.searchsorted(np.arange(len(warps) + 1)).tolist()
        made = Accesses(
            self._happens_before.actors(warps).tolist(),
            self._happens_before.intervals(warps).tolist(),
            self._snapshots(warps),
            words,
            begins,
            level,
            reads,
            writes,
            statement,
        )
        if writes:
            self._loads.clear()
        else:
            self._loads[key] = made
        self._entries.append(made)
        self._size += len(words) + _BESIDES
        if self._size > _MOST:
            self._drop()
        return made

    def _drop(self) -> None:
        """Forget the older half."""
        half = len(self._entries) // 2
        gone = [each for each in self._entries[:half] if isinstance(each, Accesses)]
        self._size -= sum(len(each.words) + _BESIDES for each in gone)
        del self._entries[:half]
        self._dropped += half
        self._searches.clear()

    def _snapshots(self, warps: NDArray[np.int64]) -> list[VectorClock]:
        """The vector clock of each warp now, without its own interval."""
        now = self._happens_before.clocks[warps]
        now[np.arange(len(warps)), warps % self._happens_before.members] = 0
        news = np.logical_or.reduce(now != self._clocks[warps], axis=1).tolist()
        found: list[VectorClock] = []
        for position, warp in enumerate(warps.tolist()):
            kept, observed = self._last[warp], self._happens_before.observed[warp]
            if (
                kept is None
                or news[position]
                or kept.remote is not observed.remote
                or kept.operations != observed.operations
            ):
                kept = self._last[warp] = observed.certain()
                self._clocks[warp] = now[position]
            found.append(kept)
        return found

    def would_order(self, warp: int, actor: int, clock: int) -> bool:
        """Whether a warp would be ordered after an interval of another if all strong stores released."""
        search = self._search(actor, clock)
        return search is not None and search.reaches(warp)

    def would_order_before(self, given: VectorClock, actor: int, clock: int) -> bool:
        """The same of what has been released with a vector clock."""
        search = self._search(actor, clock)
        return search is not None and search.reaches_release(given)

    def would_order_operation(self, warp: int, number: int) -> bool:
        """The same of the completion of an asynchronous operation."""
        search = self._search(-1, number)
        return search is not None and search.reaches(warp)

    def flags(self, warp: int, actor: int, clock: int) -> frozenset[int]:
        """The lines of the strong accesses that would order it."""
        search = self._search(actor, clock)
        return frozenset(search.lines) if search is not None and search.reaches(warp) else frozenset()

    def _search(self, actor: int, clock: int) -> _Search | None:
        if not self._entries:
            return None
        found = self._searches.get((actor, clock))
        if found is None:
            if len(self._searches) >= _SEARCHES:
                del self._searches[next(iter(self._searches))]
            begin = 0 if actor < 0 else self._before(actor, clock)
            found = self._searches[actor, clock] = _Search(self._happens_before, self, actor, clock, begin)
        return found

    def _before(self, actor: int, clock: int) -> int:
        """An entry before which a warp's interval had not begun."""
        for number in range(len(self._entries) - 1, -1, -1):
            entry = self._entries[number]
            if not isinstance(entry, Accesses) or actor not in entry.actors:
                continue
            if entry.clocks[entry.actors.index(actor)] < clock:
                return self._dropped + number
        return self._dropped


class _Search:
    """The warps that would be ordered after an interval of a warp, or after an operation if `actor` is below 0."""

    def __init__(self, happens_before: HappensBefore, record: StrongRecord, actor: int, clock: int, begin: int) -> None:
        self._happens_before, self._record, self._next = happens_before, record, begin
        self._operation = clock if actor < 0 else None
        #: The first interval of each warp that would be ordered after it, in the order in which they were found.
        self._ordered: dict[int, int] = {}
        self._epochs: list[tuple[ClusterEpoch, int, int]] = []
        #: Words that publish it, and the lines of the accesses that publish it or read them.
        self._published: set[Word] = set()
        self.lines: set[int] = set()
        #: Vector clocks that have been searched, and how many of `_epochs` there were then; -1: it has one of them.
        self._seen: dict[int, int] = {}
        if actor >= 0:
            self._becomes_ordered(actor, clock)

    def reaches(self, warp: int) -> bool:
        """Whether this warp would be ordered after it by now."""
        actor, clock = self._happens_before.actor(warp), self._happens_before.clock(warp)
        while True:
            if self._is_ordered(actor, clock) or self._has(self._happens_before.observed[warp], 0):
                return True
            if self._next >= self._record.end:
                return False
            for entry in self._record.since(self._next):
                self._next += 1
                if isinstance(entry, Accesses):
                    self._read(entry)
                    if actor in self._ordered:
                        break
                elif self._published:
                    self._published = {word for word in self._published if slot_of(word) != entry}

    def reaches_release(self, given: VectorClock) -> bool:
        """Whether what has been released with a vector clock would be ordered after it."""
        for entry in self._record.since(self._next):
            self._next += 1
            if isinstance(entry, Accesses):
                self._read(entry)
            elif self._published:
                self._published = {word for word in self._published if slot_of(word) != entry}
        return self._has(given, 0)

    def _becomes_ordered(self, actor: int, clock: int) -> None:
        self._ordered[actor] = clock
        self._epochs.append((self._happens_before.epoch_of(actor), actor % self._happens_before.members, clock))

    def _is_ordered(self, actor: int, clock: int) -> bool:
        return self._ordered.get(actor, clock + 1) <= clock

    def _has(self, observed: VectorClock, first: int) -> bool:
        """Whether a vector clock is ordered after one of `_epochs`, from a number on."""
        if self._operation is not None and self._operation in observed.operations:
            return True
        return any(observed.has_observed(*epoch) for epoch in self._epochs[first:])

    def _had(self, observed: VectorClock) -> bool:
        """The same for the vector clock of a warp at an access, searched once."""
        before = self._seen.get(id(observed), 0)
        if before < 0:
            return True
        has = self._has(observed, before)
        self._seen[id(observed)] = -1 if has else len(self._epochs)
        return has

    def _read(self, entry: Accesses) -> None:
        for position, actor in enumerate(entry.actors):
            clock = entry.clocks[position]
            ordered = self._is_ordered(actor, clock) or self._had(entry.observed[position])
            if not ordered and entry.reads and self._published and not self._published.isdisjoint(entry.of(position)):
                ordered = True
                self.lines.add(entry.statement.line)
            if ordered:
                if actor not in self._ordered:
                    self._becomes_ordered(actor, clock)
                if entry.writes:
                    self._published.update(entry.of(position))
                    self.lines.add(entry.statement.line)
