"""Stale values that strong loads return, where the memory model permits it (PTX ISA 8.10).

A load may read what was in a word before its last strong store, if that store does not precede the load in causality
order (8.10.6), and neither the loading warp nor one whose read precedes the load has read the newer value (8.10.5,
8.9.4). So may an atomic operation that stores what it has found (add of 0, a compare-and-swap that fails or stores the
same): it can come before that store in the modification order. A store of the value already there is a signal too, if
it does not depend on that (exch, st): who reads the value may have read it before.

The schedule `late` has every warp read the stale value once for each such store, `random` some of them, and `eager`
only those before a store that releases or is made by one lane of each warp. A poll whose loop ends with both values
(`poll_loops`) reads the stale one under all of them: it may wait for too few signals. So a flag without its fence,
which races with nothing where the data are volatile too, gives a wrong result; a loop that polls spins once more. Such
a load acquires what was published with the value that it returns: a warp that waits for too few arrivals is not ordered
after the last.

The same holds for the lanes of one warp, which bar.warp.sync and barriers order, and what `lane_accesses` takes for
that besides. After an atomic operation a shuffle or a vote of the whole warp counts too: in NVIDIA's cooperative groups
lane 0 sets a bit and hands on what it found, and all lanes poll that bit.

The fences .sc take effect in the order of their execution, and order all before one with all after a later one (8.9.3).
A strong access that lacks an acquire counts after the next barrier of the CTA: hardware has done the load by then.

Words are kept with the size of their accesses: of 16 bytes that are accessed in several sizes nothing older is read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.device import StaleValue
from ptxgen.emulator.arrays import all_set, any_set
from ptxgen.emulator.checks.order.contributions import Contributions
from ptxgen.emulator.checks.order.strong_history import Word, granule_of, slot_of
from ptxgen.emulator.checks.order.strong_words import StrongWords
from ptxgen.emulator.checks.order.vector_clock import VectorClock
from ptxgen.emulator.engines.timeline import Timeline
from ptxgen.emulator.memory.located import MemoryAccess
from ptxgen.emulator.memory.strong_loads import LastStore, StrongLoads
from ptxgen.syntax import Instruction, Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import HappensBefore
    from ptxgen.emulator.checks.order.poll_loops import PollLoops
    from ptxgen.emulator.checks.order.strong_accesses import Published

_MIXED = -1
#: Opcodes of strong stores that release, and of those that signal also where they store the value already there.
_RELEASES = re.compile(r"\.(release|acq_rel)\b")
#: Opcodes of strong stores of data that CTAs hand to each other.
_DATA = ("st.volatile.global", "st.relaxed.gpu.global", "st.relaxed.sys.global")
_SIGNALS = re.compile(r"^(st|atom)\b(?!.*\.(add|inc|dec|and|or|xor|min|max|cas)\.)")


@dataclass(slots=True)
class Change:
    """The last strong store to a word that has changed it: the bytes before and after, and what was published with the
    word before (`StrongAccesses`), which is all that a load of the stale value acquires.
    """

    old: NDArray[np.uint8]
    new: NDArray[np.uint8]
    published: Published
    #: The warps (`HappensBefore.actors`) that have stored the newer value or read it, and in which of their intervals.
    ordered: dict[int, int]
    #: Of warps that have stored it: in which lane interval, after how many exchanges of all lanes, and the lanes that
    #: have stored or read it since, (32).
    lanes: dict[int, tuple[int, int, NDArray[np.bool_]]]
    #: Of the store.
    line: int
    #: The warps that have made it.
    writers: set[int]
    #: Of an atomic operation by several lanes the turn from which on the others are those of the last warp.
    turn: int | None = None
    #: The store does not depend on what it replaces: it is a signal, and a change, also where it stores the same.
    signals: bool = False
    #: Under `eager`, what is no signal: lanes of the warps that have stored it read the newer value.
    data: bool = False


_ALL = np.ones(32, np.bool_)
_ALL.flags.writeable = False
#: The bytes that vector accesses never tear: within a GPU, on which CUB's tile states rely, and beyond it.
_WHOLE_OF_GPU, _WHOLE = 16, 8
_WITHIN_GPU = re.compile(r"\.(cta|cluster|gpu)\b")


class StaleLoads(StrongLoads):
    """The last change of each word that strong accesses use. Made for programs with strong loads alone."""

    def __init__(
        self,
        happens_before: HappensBefore,
        lane_intervals: NDArray[np.int64],
        timeline: Timeline,
        loops: PollLoops,
        published: Callable[[Word], Published],
    ) -> None:
        super().__init__()
        self._happens_before, self._timeline, self._loops = happens_before, timeline, loops
        #: Clocks published with the present value of each word (`StrongAccesses`).
        self._published = published
        #: Every load returns a stale value that it may, whatever the schedule: for reruns.
        self.always = False
        #: The number of the interval of each warp's lanes now (`LaneAccesses`).
        self._lane_intervals = lane_intervals
        #: Number of exchanges of values between all lanes, by warp.
        self._exchanges: Counter[int] = Counter()
        self._changes: dict[Word, Change] = {}
        #: Changes by instructions under way: word -> (first byte, change).
        self._held: dict[Word, tuple[int, Change]] = {}
        #: Contributions to counters and masks; a stale poll may miss any one.
        self._contributions = Contributions(happens_before, loops)
        #: The size of the accesses to each 16 bytes, by the first of them.
        self._sizes: dict[Word, int] = {}
        #: The clocks that fences .sc have published, by the width of their scope and its CTA or cluster.
        self._sequence: dict[tuple[int, int], VectorClock] = {}
        #: The lane interval in which a warp has executed its last fence .sc.
        self._fenced: dict[int, int] = {}
        #: Clocks published with the stale values that the present load returns, by (warp, word).
        self.taken: dict[tuple[int, Word], Published] = {}
        #: Of the present access: whether what a warp did in an interval precedes it, by (loading warp, warp, interval).
        self._known: dict[tuple[int, int, int], bool] = {}
        #: The words of the last access of each poll.
        self._polls: dict[Statement, StrongWords] = {}
        #: Number of loads that returned the value before a store, by (line of the load, line of the store).
        self._returned: Counter[tuple[int, int]] = Counter()

    def replace(self, access: MemoryAccess, values: Sequence[NDArray[Any]]) -> bool:
        self.taken.clear()
        self._known.clear()
        if not self._changes:
            return False
        active, places, size, statement = access.active, access.places, access.size, access.statement
        words = StrongWords.of(access)
        # Most words are data that nothing stores to: only what has changed may be older.
        changed = set(words.places.tolist()) if words is not None else set[Word]()
        if words is not None:
            self._polls[statement] = words
        changed = {each for each in changed if self.changed(each, size)}
        if words is None or not changed:
            return False
        replaced = False
        parts = _parts(statement, len(values), values[0].dtype.itemsize)
        for position, warp, own, lanes in words.by_warp():
            first = True
            for word, lane in zip(own, lanes, strict=True):
                if word not in changed:
                    continue
                offset = int(places.offsets[position, lane])
                alike = active[position] & (places.offsets[position] == offset)
                older = self.load(warp, alike, word, places.data, offset, statement, torn=parts > 1, first=first)
                first = False
                if older is not None:
                    replaced = True
                    stale = self._stale_elements(len(values), parts)
                    for value, old, is_stale in zip(values, older[0].view(values[0].dtype), stale, strict=True):
                        if is_stale:
                            value[position, older[1]] = old
        return replaced

    def poll(
        self, access: MemoryAccess, found: NDArray[Any], again: Callable[[NDArray[Any]], NDArray[Any]]
    ) -> NDArray[Any] | None:
        self.taken.clear()
        self._known.clear()
        if not self._changes or not _same(again(found), found):
            return None
        words = StrongWords.of(access)
        if words is None or len(np.unique(words.places)) < len(words.places):
            return None
        self._polls[access.statement] = words
        older, replaced = found.copy(), False
        for position, warp, own, lanes in words.by_warp():
            for word, lane in zip(own, lanes, strict=True):
                if not self.changed(word, access.size):
                    continue
                turn, before = int(words.lanes.searchsorted(32 * position + lane)), older.copy()
                before[turn] = self._changes[word].old.view(found.dtype)[0]
                if not _same(again(before)[turn : turn + 1], before[turn : turn + 1]):
                    continue  # it would store something else
                mask, offset = np.arange(32) == lane, int(access.places.offsets[position, lane])
                stale = self.load(warp, mask, word, access.places.data, offset, access.statement, torn=False)
                if stale is not None:
                    before[turn] = stale[0].view(found.dtype)[0]
                    older, replaced = before, True
        return older if replaced else None

    def _stale_elements(self, count: int, parts: int) -> list[bool]:
        """Which elements of a vector are stale: with `random` some of its words of 8 bytes, else all.

        Seeds that starve pollers tear every such load, each of them with another word that is not stale.
        """
        timeline = self._timeline
        if parts == 1 or timeline.schedule != "random":
            return [True] * count
        every = (1 << parts) - 1
        bits = every ^ 1 << (parts - 1 - timeline.seed // 2) % parts
        if not timeline.starves:
            bits = timeline.random.randrange(1, every)
        return [bool(bits >> number * parts // count & 1) for number in range(count)]

    def last_store(self, poll: Statement, warp: int) -> LastStore | None:
        words = self._polls.get(poll)
        for _, other, own, _ in words.by_warp() if words is not None else ():
            change = self._changes.get(own[0]) if other == warp else None
            if change is not None and change.writers:
                value = int.from_bytes(change.new.tobytes(), "little")
                return LastStore(change.line, min(change.writers), value)
        return None

    def returned(self) -> list[StaleValue]:
        return [StaleValue(*lines, times) for lines, times in sorted(self._returned.items())]

    def clear(self, slots: Container[int]) -> None:
        """Make slots ready for the next CTAs."""
        self._contributions.clear(slots)
        for table in (self._changes, self._sizes):
            for word in [word for word in table if slot_of(word) in slots]:
                del table[word]

    def fence(self, warp: int, domains: list[tuple[int, int]]) -> None:
        """A fence .sc of a warp: those before it within the same CTA, cluster or GPU precede it."""
        observed = self._happens_before.observed[warp]
        self._fenced[warp] = int(self._lane_intervals[warp])
        for domain in domains:
            before = self._sequence.setdefault(domain, VectorClock(observed.epoch, observed.clocks * 0))
            before.sequence(observed)
            observed.join(before)

    def follows(self, statement: Instruction, *, alone: bool) -> bool:
        """Whether loads may return what was there before a strong store; `alone`: it is by one lane of each warp.

        With `eager` only signals, which release or are made alone, and data that strong stores leave in global memory
        for other CTAs, but no histograms: who waits for too few signals, or for a value that was there before, shows by
        the value before the last.
        """
        return self._follows_always or _is_signal(statement, alone=alone) or statement.opcode.startswith(_DATA)

    @property
    def _follows_always(self) -> bool:
        return self.always or self._timeline.schedule != "eager"

    def store(
        self,
        warp: int,
        lanes: NDArray[np.bool_],
        word: Word,
        data: NDArray[np.uint8],
        offset: int,
        size: int,
        statement: Instruction,
        published: Published,
        turn: int | None,
        *,
        alone: bool = False,
        signals: bool = False,
    ) -> None:
        """Lanes of a warp are about to change a word by a strong store, or in a turn by an atomic operation: its bytes
        are at an offset. What is `published` with the word is what those before have; `alone`: it is one lane.
        """
        if not self._alike(word, size):
            return
        self._contributions.begin(warp, word, turn if alone else None, statement, published)
        line = statement.line
        held, actor = self._held.get(word), self._happens_before.actor(warp)
        if held is None or (turn is not None and actor not in held[1].ordered):
            old = data[offset : offset + size].copy()
            data_alone = not (self._follows_always or _is_signal(statement, alone=alone))
            made = Change(old, old, published, {}, {}, line, set(), turn, signals, data_alone)
            held = self._held[word] = offset, made
        held[1].ordered.setdefault(actor, self._happens_before.clock(warp))
        held[1].writers.add(actor)
        held[1].lanes[actor] = int(self._lane_intervals[warp]), self._exchanges[warp], lanes

    def stored(self, data: NDArray[np.uint8], found: NDArray[Any] | None) -> None:
        """The held stores have run; atomic operations have `found` these words, by active lane. A warp that stores the
        value already in memory counts as having read it.
        """
        for word, (offset, made) in self._held.items():
            made.new = data[offset : offset + len(made.old)].copy()
            self._contributions.end(word, made.new, found)
            if found is not None and made.turn is not None:
                made.old = np.atleast_1d(found[made.turn]).view(np.uint8)
            before = self._changes.get(word)
            if made.signals or not _same(made.new, made.old):
                self._changes[word] = made
            elif before is not None:
                for actor, clock in made.ordered.items():
                    before.ordered.setdefault(actor, clock)
                for actor, (interval, exchanges, lanes) in made.lanes.items():
                    if actor in before.lanes and before.lanes[actor][0] == interval:
                        before.lanes[actor] = interval, exchanges, before.lanes[actor][2] | lanes
        self._held.clear()

    def changed(self, word: Word, size: int) -> bool:
        """Whether a strong load of this size may find a stale value in a word."""
        return self._alike(word, size) and word in self._changes

    def load(
        self,
        warp: int,
        lanes: NDArray[np.bool_],
        word: Word,
        data: NDArray[np.uint8],
        offset: int,
        statement: Instruction,
        *,
        torn: bool,
        first: bool = True,
    ) -> tuple[NDArray[np.uint8], NDArray[np.bool_]] | None:
        """The stale value that some of these lanes of a warp read by a strong load of a word that has `changed`.

        `torn` says whether only a part of the load may be stale, `first` whether the word is the warp's first one: of
        the others it matters under `random` alone whether the loop ends with both values.
        """
        change, alike = self._changes.get(word), lanes
        if change is None:
            return None
        if not torn and (first or self._timeline.schedule == "random"):
            few = self._too_few(warp, lanes, word, data[offset : offset + len(change.new)], statement)
            if few is not None:
                return few, lanes
        lanes = lanes & self._behind(change, warp, lanes)
        if not any_set(lanes):
            return None
        judged = not torn and (first or self._timeline.schedule == "random")
        enough = judged and self._is_enough(change, warp, lanes, statement)
        if statement.line in self.polled and not (torn or enough):
            return None
        if judged and not enough and self._waits_for_others(statement):
            return None
        new = data[offset : offset + len(change.new)]
        if not _same(new, change.new):  # a weak access or a copy has changed it since
            del self._changes[word]
            return None
        own = self._happens_before.actor(warp)
        ordered = self._precedes_any(warp, own, change.ordered)
        change.ordered.setdefault(own, self._happens_before.clock(warp))  # at most once
        timeline = self._timeline
        may = timeline.schedule == "random" and not (torn and timeline.starves) and change.turn is None
        may = may and not self.always
        if ordered or (may and not enough and timeline.random.getrandbits(1)):
            return None
        self._returned[statement.line, change.line] += not _same(change.old, change.new)
        if not torn and all_set(lanes == alike):
            self.taken[warp, word] = change.published
        if enough:
            self._loops.passed(own, statement.line, change.writers, change.line)
        return change.old, lanes

    def _too_few(
        self, warp: int, lanes: NDArray[np.bool_], word: Word, data: NDArray[np.uint8], poll: Instruction
    ) -> NDArray[np.uint8] | None:
        """The value of a word without contributions of other warps, if the loop around a poll ends with it as well."""
        lacking = self._contributions.lacking(
            warp,
            word,
            data,
            poll,
            self._published(word),
            lambda value: self._loops.ends(poll, warp, lanes, value),
            lambda actor, clock: self._precedes(warp, actor, clock),
        )
        if lacking is None:
            return None
        self._returned[poll.line, lacking.line] += 1
        self.taken[warp, word] = lacking.published
        self._loops.passed(self._happens_before.actor(warp), poll.line, lacking.writers, lacking.line)
        return lacking.value

    def _precedes_any(self, warp: int, own: int, ordered: dict[int, int]) -> bool:
        """Whether something that another warp did in an interval of `ordered` precedes what this one does now."""
        known = self._known
        for actor, clock in ordered.items():
            if actor == own:
                continue
            found = known.get((warp, actor, clock))
            if found is None:
                found = known[warp, actor, clock] = self._precedes(warp, actor, clock)
            if found:
                return True
        return False

    def _is_enough(self, change: Change, warp: int, lanes: NDArray[np.bool_], poll: Instruction) -> bool:
        """Whether the loop around a poll ends with the value before a change as well as with that after it."""
        values = (change.old,) if _same(change.old, change.new) else (change.new, change.old)
        return all(self._loops.ends(poll, warp, lanes, value) for value in values)

    def _waits_for_others(self, poll: Instruction) -> bool:
        """Whether a loop polls several words: the stale value of one matters once those of the others are new."""
        return not self.always and self._loops.is_one_of_several(poll)

    def _behind(self, change: Change, warp: int, lanes: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which lanes of a warp may not have seen a change, as these are about to: (32)."""
        own = self._happens_before.actor(warp)
        if own not in change.ordered:
            return _ALL
        if change.data:
            return np.zeros(32, np.bool_)
        interval, exchanges, ordered = change.lanes.get(own, (-1, 0, lanes))
        if interval != self._lane_intervals[warp] or interval == self._fenced.get(warp):
            return np.zeros(32, np.bool_)
        if change.turn is not None and exchanges != self._exchanges[warp]:
            return np.zeros(32, np.bool_)
        change.lanes[own] = interval, exchanges, ordered | lanes
        return ~ordered

    def exchange(self, warps: NDArray[np.int64], lanes: NDArray[np.bool_]) -> None:
        """Lanes of these warps, (warps, 32), shuffle or vote."""
        self._exchanges.update(warps[lanes.all(axis=1)].tolist())

    def _alike(self, word: Word, size: int) -> bool:
        """Whether all accesses to these 16 bytes have the same size."""
        granule = granule_of(word)
        before = self._sizes.setdefault(granule, size)
        if before != size:
            self._sizes[granule] = _MIXED
        return before == size

    def _precedes(self, warp: int, actor: int, clock: int) -> bool:
        """Whether what a warp did in an interval precedes what this one does now, in causality order."""
        happens_before, sequenced = self._happens_before, self._happens_before.observed[warp].sequenced
        return happens_before.has_observed_actor(warp, actor, clock) or (
            sequenced is not None
            and sequenced.has_observed(happens_before.epoch_of(actor), actor % happens_before.members, clock)
        )


def _is_signal(statement: Instruction, *, alone: bool) -> bool:
    return alone or _RELEASES.search(statement.opcode) is not None


def signals(statement: Instruction) -> bool:
    """Whether a strong store does not depend on what it replaces."""
    return _SIGNALS.search(statement.opcode) is not None


def _same(values: NDArray[Any], others: NDArray[Any]) -> bool:
    return np.ascontiguousarray(values).tobytes() == np.ascontiguousarray(others).tobytes()


def _parts(statement: Instruction, count: int, size: int) -> int:
    """How many parts of a load of `count` elements may be stale each for itself.

    A vector access is a set of scalar accesses in unspecified order (PTX ISA 8.2.2), so that a flag in 16 bytes says
    nothing of the others. NVIDIA's libraries rely on more: NCCL's LL protocol on words of 8 bytes, CUB's tile states
    (ld.relaxed.gpu.v2.u64) on 16 within a GPU; these stay whole. A .b128 is a scalar.
    """
    if ".v" not in statement.opcode.replace(".volatile", ""):
        return 1
    whole = _WHOLE_OF_GPU if _WITHIN_GPU.search(statement.opcode) else _WHOLE
    return max(count * size // whole, 1)
