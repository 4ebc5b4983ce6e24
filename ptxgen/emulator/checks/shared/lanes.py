"""Conflicts of accesses to shared memory among the lanes of one warp.

A warp is in one lane interval after the other. The next begins where its lanes synchronize, by bar.warp.sync
(9.7.13.2) or a barrier of the CTA or the cluster, and where the warp acquires what it has itself released in this
one. shfl.sync, vote.sync, match.sync, redux.sync, elect.sync and the collective .sync.aligned instructions wait for all
lanes, but order no memory accesses. Two lanes conflict that access the same word in one interval, in different
instructions, one of them storing something new there. So does an asynchronous operation that one lane issues with what
other lanes have accessed.

Where only some lanes synchronize, by a narrower mask, the warp begins another interval too, but the others stay
unordered with the one before (`warp_sync`).

Kept for each word: the last store and the last load, and the last strong store or atomic operation, which conflicts
with weak accesses alone. A word has four bytes, or once there are narrower accesses as few
as the narrowest. So a race may be missed; none is invented.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.device.report import Role
from ptxgen.emulator.arrays import all_set, any_set, count_nonzero
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.cas_loops import CasLoops
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.messages import fixes
from ptxgen.emulator.checks.order.listener import OrderListener
from ptxgen.emulator.checks.order.partial_release import Exchanged, Part, PartialReleases
from ptxgen.emulator.checks.order.vector_clock import AsyncOperation
from ptxgen.emulator.checks.order.warp_sync import MaskedSyncs
from ptxgen.emulator.checks.raced_reads import decides_again
from ptxgen.emulator.checks.registry import Check, races
from ptxgen.emulator.checks.shared.exchanges import Exchanges
from ptxgen.emulator.checks.shared.lane_events import SEVERAL, SHIFT, Conflict, by_others, lane_of
from ptxgen.emulator.checks.shared.lane_updates import LaneUpdates
from ptxgen.emulator.checks.shared.last_accesses import ThreadAccesses
from ptxgen.emulator.memory.granules import GRANULE
from ptxgen.emulator.native.library import chosen, pointer_to
from ptxgen.emulator.native.shared import Words
from ptxgen.emulator.state.convergence import bits_of
from ptxgen.syntax import Instruction, Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import HappensBefore

#: Of a store after other lanes' loads, with an exchange of all lanes in between.
_EXCHANGED = (
    "The lanes have exchanged values by a shuffle, vote or redux.sync in between, which PTX does not count as "
    "synchronization; NVIDIA's cooperative groups rely on it"
)

#: Of a load whose value all lanes have exchanged before one of them arrives.
_CONSUMED = (
    ". A shuffle, vote or redux.sync of the loaded values in between waits until all lanes have theirs, which PTX does "
    "not count as synchronization"
)


class LaneAccesses(OrderListener):
    """The last accesses to each word of the resident CTAs' shared memories, by lane."""

    def __init__(
        self, happens_before: HappensBefore, slots: int, bytes: int, cas_loops: CasLoops, findings: Findings
    ) -> None:
        self._happens_before, self._findings, warps = happens_before, findings, happens_before.warps
        self._cas_loops = cas_loops
        #: The accesses of warps by granules, where their lines are found.
        granules = -(-bytes // GRANULE)
        self.stores = ThreadAccesses(slots, happens_before.size, warps, granules)
        self.loads = ThreadAccesses(slots, happens_before.size, warps, granules)
        #: The bytes of a word, and a memory's words.
        self._word, self._shift = 4, 2
        self._words = -(-bytes // GRANULE) * GRANULE // self._word
        self._writer, self._reader = (np.zeros(slots * self._words, np.int64) for _ in range(2))
        #: Pointers to them.
        self._tables = pointer_to(self._writer), pointer_to(self._reader)
        #: The number of each warp's interval, which no other warp ever has, and the last in which it accessed words.
        self.interval = np.arange(1, slots * warps + 1)
        self._stored, self._loaded = np.zeros(slots * warps, np.int64), np.zeros(slots * warps, np.int64)
        self._next = slots * warps + 1
        #: The lanes that have stored in the interval of `_stored`, as bits.
        self._storers = np.zeros(slots * warps, np.uint32)
        #: The lanes that have loaded since their warp last waited for an MMA, and in which interval.
        self._loaders, self._loading = np.zeros(slots * warps, np.uint32), np.zeros(slots * warps, np.int64)
        by_warp = self.interval, self._stored, self._loaded, self._loading, self._storers, self._loaders
        #: Pointers to the tables by warp.
        self._by_warp = tuple(map(pointer_to, by_warp))
        self._releases, self._fences, self._returns = PartialReleases(), PartialReleases(), PartialReleases()
        self._updates = LaneUpdates(slots * warps, slots * self._words)
        self.narrow = MaskedSyncs()
        self.exchanges = Exchanges()

    def released(self, warp: int, lanes: int) -> None:
        interval, clock = int(self.interval[warp]), self._happens_before.clock(warp)
        stored = int(self._storers[warp]) if self._stored[warp] == interval else 0
        loaded = int(self._loaders[warp]) if self._loading[warp] == interval else 0
        self._releases.done(warp, lanes, accessed=stored, interval=interval, clock=clock)
        exchanged = self.exchanges.of(warp)
        self._returns.done(warp, lanes, accessed=loaded, interval=interval, clock=clock, exchanged=exchanged)

    def proxy_fenced(self, warp: int, lanes: int) -> None:
        interval, clock = int(self.interval[warp]), self._happens_before.clock(warp)
        stored = int(self._storers[warp]) if self._stored[warp] == interval else 0
        self._fences.done(warp, lanes, accessed=stored, interval=interval, clock=clock)

    def converged(self, warps: NDArray[np.int64], clocks: NDArray[np.int64]) -> None:
        self.narrow.clear(warps)
        self._converge(warps, clocks)

    def groups_converged(self, warp: int, groups: Sequence[int], clock: int) -> None:
        self.narrow.groups_synchronize(warp, int(self.interval[warp]), groups)
        self._converge(np.array([warp]), np.array([clock]))

    def _converge(self, warps: NDArray[np.int64], clocks: NDArray[np.int64]) -> None:
        self._releases.converge(warps, clocks)
        self._fences.converge(warps, clocks)
        self._returns.converge(warps, clocks)
        self.exchanges.forget(warps)
        self.interval[warps] = np.arange(self._next, self._next + len(warps))
        self._next += len(warps)

    def access(
        self,
        warps: NDArray[np.int64],
        slots: NDArray[np.int64],
        inside: NDArray[np.int64],
        active: NDArray[np.bool_],
        size: int,
        statement: Instruction,
        changing: NDArray[np.bool_] | None,
    ) -> None:
        """Active lanes load `size` bytes at offsets `inside` of slots' memories; or store, and `changing` says which of
        them something new: all (warps, 32), but slots also (warps, 1).
        """
        if self._updates.used and self._recent(self._updates.last, warps):
            self._against_updates(warps, slots, inside, active, size, statement, changing)
        if self._by_machine_code(warps, slots, inside, active, size, statement, changing):
            return
        (lanes,) = active.reshape(-1).nonzero()
        words = self._words_of(slots, inside, lanes, size)
        events = ((self.interval[warps] << SHIFT)[lanes >> 5] | lanes & 31)[:, None]
        if changing is None:
            self._load(warps, words, events, statement, bits_of(active))
        else:
            self._store(warps, words, events, statement, changing.reshape(-1)[lanes], bits_of(active))

    def tables(self, warps: NDArray[np.int64], size: int) -> tuple[int, ...] | None:
        """Pointers and sizes that `AtOnce` needs for accesses of `size` bytes. None where more is to be compared."""
        if self._updates.used or self._releases.parts or self._returns.parts or self.narrow.any(warps):
            return None
        if size < self._word:
            self._divide(size)
        return *self._tables, self._words, self._shift, *self._by_warp

    def kept_loads(
        self,
        warps: NDArray[np.int64],
        slots: NDArray[np.int64],
        inside: NDArray[np.int64],
        active: NDArray[np.bool_],
        size: int,
    ) -> None:
        """`AtOnce` has kept loads."""
        if self.exchanges.any:
            self.exchanges.load(warps, self._words_of(slots, inside, active.reshape(-1).nonzero()[0], size))

    def _by_machine_code(
        self,
        warps: NDArray[np.int64],
        slots: NDArray[np.int64],
        inside: NDArray[np.int64],
        active: NDArray[np.bool_],
        size: int,
        statement: Instruction,
        changing: NDArray[np.bool_] | None,
    ) -> bool:
        """The same by machine code; False where that cannot be, or something is to be reported."""
        library = chosen()
        if library is None or slots.shape[1] > 1 or self._releases.parts or self._returns.parts:
            return False
        if self.narrow.any(warps):
            return False
        if size < self._word:
            self._divide(size)
        mask = None if all_set(active) else np.ascontiguousarray(active)
        intervals = self.interval[warps]
        words = Words(
            slots[:, 0] * self._words, intervals, np.ascontiguousarray(inside), mask, self._shift, size >> self._shift
        )
        stored = bool(count_nonzero(self._stored[warps] == intervals))
        if changing is None:
            together = ".sync" in statement.opcode  # ldmatrix returns when all lanes have loaded
            if not words.load(library, self._tables[0], None if together else self._tables[1], stored=stored):
                return False
            if together:
                return True
            if self.exchanges.any:
                self.exchanges.load(warps, self._words_of(slots, inside, active.reshape(-1).nonzero()[0], size))
            self._loaded[warps] = intervals
            self._accesses_of(warps, bits_of(active), self._loading, self._loaders)
            return True
        loaded = bool(count_nonzero(self._loaded[warps] == intervals))
        new = np.ascontiguousarray(changing)
        if not words.store(library, *self._tables, new, stored=stored, loaded=loaded):
            return False
        self._stores_of(warps, bits_of(active))
        return True

    def _against_updates(
        self,
        warps: NDArray[np.int64],
        slots: NDArray[np.int64],
        inside: NDArray[np.int64],
        active: NDArray[np.bool_],
        size: int,
        statement: Instruction,
        changing: NDArray[np.bool_] | None,
    ) -> None:
        """Weak accesses, as `access` takes them, against the strong stores of other lanes."""
        (lanes,) = active.reshape(-1).nonzero()
        words, events = self._events_of(warps, slots, inside, lanes, size)
        chosen = None if changing is None else changing.reshape(-1)[lanes]
        found = self._conflict(warps, words, events, self._updates.at(words), chosen)
        if found is not None:
            update = self._happens_before.statements.get(self._updates.line(found.word))
            if changing is not None or not self._decides_again(statement.line, update):
                self._report_update(found, "reader" if changing is None else "writer", statement)
        if changing is not None:
            self._updates.forget(words)

    def strong(
        self,
        warps: NDArray[np.int64],
        slots: NDArray[np.int64],
        inside: NDArray[np.int64],
        lanes: NDArray[np.int64],
        size: int,
        statement: Instruction,
        changing: NDArray[np.bool_],
        *,
        writes: bool,
        observes: bool,
    ) -> None:
        """Lanes (32 numbers to a warp) make strong accesses; those that are `changing` memory store something new. They
        conflict with weak accesses of other lanes. If they are stores, a later access to the words no longer conflicts
        with earlier weak ones.
        """
        words, events = self._events_of(warps, slots, inside, lanes, size)
        chosen = changing if writes else None
        role: Role = "writer" if writes else "reader"
        if self._recent(self._stored, warps):
            found = self._conflict(warps, words, events, self._writer[words], chosen)
            if found is not None:
                self._report(found, role, "writer", self.stores, statement)
        if not writes:
            if observes:
                self._updates.forget(words)
            return
        if self._recent(self._loaded, warps):
            found = self._conflict(warps, words, events, self._reader[words], chosen)
            if found is not None and not self._decides_again(self._line(found, self.loads), statement):
                self._report(found, "writer", "reader", self.loads, statement)
        self._writer[words] = self._reader[words] = 0
        if changing.any():
            self._updates.put(words[changing], events[changing], statement.line, several=SEVERAL, observes=observes)
            self._updates.last[warps] = self.interval[warps]

    def _decides_again(self, load: int, update: Statement | None) -> bool:
        """Whether a weak load of a line may read an older value, as the strong store after or before it checks."""
        return decides_again(update) or (update is not None and bool(self._cas_loops.excuse(load, update.line)))

    def _events_of(
        self,
        warps: NDArray[np.int64],
        slots: NDArray[np.int64],
        inside: NDArray[np.int64],
        lanes: NDArray[np.int64],
        size: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The words of lanes' accesses, (lanes, words), and their events, (lanes, 1)."""
        events = ((self.interval[warps] << SHIFT)[lanes >> 5] | lanes & 31)[:, None]
        return self._words_of(slots, inside, lanes, size), events

    def access_granules(
        self, warp: int, lane: int, slot: int, granules: NDArray[np.int64], statement: Instruction, *, writes: bool
    ) -> None:
        """One lane loads these whole granules of a slot's memory, or stores to them."""
        warps = np.array([warp])
        words = self._of_granules(slot, granules).reshape(1, -1)
        events = np.full((1, 1), int(self.interval[warp]) << SHIFT | lane)
        if writes:
            self._store(warps, words, events, statement, np.ones(1, np.bool_), np.array([1 << lane], np.uint32))
        else:
            self._load(warps, words, events, statement, np.array([1 << lane], np.uint32))

    def load_together(self, warp: int, slot: int, granules: NDArray[np.int64], statement: Instruction) -> None:
        """All lanes of a warp load these whole granules by one .sync.aligned instruction, which waits for them: Triton
        left out the bar.warp.sync before it until 3.9 (triton-lang/triton#11480), so that is advice.
        """
        warps = np.array([warp])
        if self._recent(self._stored, warps):
            words = self._of_granules(slot, granules)
            event = np.full(words.shape, int(self.interval[warp]) << SHIFT | SEVERAL)
            found = self._conflict(warps, words, event, self._writer[words], None)
            if found is not None:
                self._report(found, "reader", "writer", self.stores, statement, together=True)

    def product_awaited(self, warp: int) -> None:
        """All lanes of a warp have waited for a wgmma.mma_async together, so all their loads for it are complete:
        DeepGEMM's kernels let one lane give the stage back then.
        """
        self._loading[warp] = 0

    def copied(self, warp: int, slot: int, lanes: NDArray[np.int64], offsets: NDArray[np.int64], size: int) -> None:
        """Each of these lanes of a warp has observed its cp.async complete: it counts as a store of the lane."""
        words = (slot * self._words + offsets // self._word)[:, None] + np.arange(size // self._word)
        self._writer[words] = (int(self.interval[warp]) << SHIFT | lanes)[:, None]
        self._stores_of(np.array([warp]), np.bitwise_or.reduce(np.left_shift(np.uint32(1), lanes.astype(np.uint32))))

    def _stores_of(self, warps: NDArray[np.int64], lanes: NDArray[np.uint32]) -> None:
        """Lanes of each of these warps store."""
        self._accesses_of(warps, lanes, self._stored, self._storers)

    def _accesses_of(
        self,
        warps: NDArray[np.int64],
        lanes: NDArray[np.uint32],
        last: NDArray[np.int64],
        accessors: NDArray[np.uint32],
    ) -> None:
        now = self.interval[warps]
        accessors[warps] = accessors[warps] * (last[warps] == now) | lanes
        last[warps] = now

    def asynchronous(
        self, operation: AsyncOperation, warp: int, slot: int, granules: NDArray[np.int64], *, writes: bool
    ) -> None:
        """An operation that a warp, or one lane of it, issues reads these granules, or writes them."""
        if self._releases.parts or (writes and self._returns.parts):
            words = self._of_granules(slot, granules)
            self._unreleased(np.array([warp]), words, None, writes, operation.statement)
        if operation.lane is None:
            return
        warps = np.array([warp])
        stored, loaded = self._recent(self._stored, warps), self._recent(self._loaded, warps)
        if not (stored or loaded):
            return
        words = self._of_granules(slot, granules)
        event = np.full(words.shape, int(self.interval[warp]) << SHIFT | operation.lane)
        if stored:
            found = self._conflict(warps, words, event, self._writer[words], None)
            if found is not None:
                role: Role = "writer" if writes else "reader"
                self._report(found, role, "writer", self.stores, operation.statement)
        if writes and loaded:
            found = self._conflict(warps, words, event, self._reader[words], None)
            if found is not None:
                self._report(found, "writer", "reader", self.loads, operation.statement)

    def _of_granules(self, slot: int, granules: NDArray[np.int64]) -> NDArray[np.int64]:
        per_unit = GRANULE // self._word
        return (slot * self._words + granules * per_unit)[:, None] + np.arange(per_unit)

    def _words_of(
        self, slots: NDArray[np.int64], inside: NDArray[np.int64], lanes: NDArray[np.int64], size: int
    ) -> NDArray[np.int64]:
        """The words of each of these lanes, 32 numbers to a warp: (lanes, words)."""
        if size < self._word:
            self._divide(size)
        slot = slots.reshape(-1)[lanes >> 5 if slots.shape[1] == 1 else lanes]
        words = (slot * self._words + (inside.reshape(-1)[lanes] >> self._shift))[:, None]
        return words + np.arange(size >> self._shift) if size > self._word else words

    def _divide(self, size: int) -> None:
        """Words have so many bytes from now on."""
        parts = self._word // size
        self.exchanges.clear()
        self._returns.forget_exchanges()
        for name in ("_writer", "_reader"):
            before: NDArray[np.int64] = getattr(self, name)
            after, kept = np.zeros(len(before) * parts, np.int64), np.flatnonzero(before)
            after[kept[:, None] * parts + np.arange(parts)] = before[kept, None]
            setattr(self, name, after)
        self._updates.divide(parts)
        self._tables = pointer_to(self._writer), pointer_to(self._reader)
        self._word, self._shift, self._words = size, size.bit_length() - 1, self._words * parts

    def _load(
        self,
        warps: NDArray[np.int64],
        words: NDArray[np.int64],
        events: NDArray[np.int64],
        statement: Instruction,
        lanes: NDArray[np.uint32],
    ) -> None:
        if self._recent(self._stored, warps):
            found = self._conflict(warps, words, events, self._writer[words], None)
            if found is not None:
                self._report(found, "reader", "writer", self.stores, statement)
        if self._releases.parts:
            self._unreleased(warps, words, events, False, statement)
        if ".sync" in statement.opcode:  # ldmatrix returns when all lanes have loaded
            return
        self.exchanges.load(warps, words)
        before = self._reader[words]
        shared = by_others(before, events)
        given = np.where(shared, events & -SEVERAL | SEVERAL, events) if count_nonzero(shared) else events
        self._reader[words] = given
        other = by_others(self._reader[words], given)  # lanes of a warp that load the same word at once
        if count_nonzero(other):
            several = given & -SEVERAL | SEVERAL
            self._reader[words[other]] = (
                several[other] if several.shape == words.shape else np.broadcast_to(several, words.shape)[other]
            )
        self._loaded[warps] = self.interval[warps]
        self._accesses_of(warps, lanes, self._loading, self._loaders)

    def _store(
        self,
        warps: NDArray[np.int64],
        words: NDArray[np.int64],
        events: NDArray[np.int64],
        statement: Instruction,
        changing: NDArray[np.bool_],
        lanes: NDArray[np.uint32],
    ) -> None:
        before = self._writer[words]
        if (self._releases.parts or self._returns.parts) and any_set(changing):
            self._unreleased(warps, words[changing], events[changing], True, statement)
        if self._recent(self._stored, warps):
            found = self._conflict(warps, words, events, before, changing)
            if found is not None:
                self._report(found, "writer", "writer", self.stores, statement)
        if self._recent(self._loaded, warps):
            found = self._conflict(warps, words, events, self._reader[words], changing)
            if found is not None:
                self._report(found, "writer", "reader", self.loads, statement)
        again = by_others(before, events)  # the same
        given = np.where(again, 0, events) if count_nonzero(again) else events
        self._writer[words] = given
        other = self._writer[words] != given
        if count_nonzero(other):  # several lanes store to the same word at once: no lane counts
            self._writer[words[other]] = 0
        self._stores_of(warps, lanes)

    def _recent(self, accessed: NDArray[np.int64], warps: NDArray[np.int64]) -> bool:
        """Whether lanes of some of these warps may be unordered with accesses by others of the same warp."""
        return bool(count_nonzero(accessed[warps] == self.interval[warps])) or self.narrow.any(warps)

    def _conflict(
        self,
        warps: NDArray[np.int64],
        words: NDArray[np.int64],
        events: NDArray[np.int64],
        before: NDArray[np.int64],
        chosen: NDArray[np.bool_] | None,
    ) -> Conflict | None:
        """The first event by another lane with which one of the chosen lanes is unordered."""
        hit = by_others(before, events)
        if self.narrow.any(warps):
            lanes, intervals, others = events & SEVERAL - 1, before >> SHIFT, before & (1 << SHIFT) - 1
            for warp in warps.tolist():
                mine = events >> SHIFT == self.interval[warp]
                hit |= mine & self.narrow.unordered(warp, lanes, intervals, others)
        if chosen is not None:
            hit &= chosen[:, None]
        if not count_nonzero(hit):
            return None
        at = np.unravel_index(int(hit.argmax()), hit.shape)
        event = int(np.broadcast_to(events, hit.shape)[at])
        warp = int(warps[(self.interval[warps] == event >> SHIFT).argmax()])
        return Conflict(warp, event & (1 << SHIFT) - 1, int(words[at]), int(before[at]))

    def _unreleased(
        self,
        warps: NDArray[np.int64],
        words: NDArray[np.int64],
        events: NDArray[np.int64] | None,
        writes: bool,
        statement: Statement,
    ) -> None:
        """Find stores, and what is overwritten loads, by lanes of other warps that others of their lanes alone have
        released; without events one warp accesses all words.
        """
        self._released_alone(self._releases, self._writer, "writer", warps, words, events, writes, statement)
        if writes:
            self._released_alone(self._returns, self._reader, "reader", warps, words, events, writes, statement)

    def _released_alone(
        self,
        releases: PartialReleases,
        table: NDArray[np.int64],
        other: Role,
        warps: NDArray[np.int64],
        words: NDArray[np.int64],
        events: NDArray[np.int64] | None,
        writes: bool,
        statement: Statement,
    ) -> None:
        if not releases.parts:
            return
        before = table[words]
        numbers = before >> SHIFT
        for number, part in releases.among(numbers):
            lanes = before & (1 << SHIFT) - 1
            for warp in warps.tolist():
                observed = partial(self._happens_before.has_observed, warp, part.warp)
                if warp == part.warp or not observed(part.begin) or (part.end is not None and observed(part.end)):
                    continue
                step = part.until(observed)
                done = step.lanes
                # Several lanes are more than one: not all of them have released if one alone has.
                lacking = np.where(lanes == SEVERAL, done.bit_count() == 1, done >> (lanes & SEVERAL - 1) & 1 == 0)
                mine = (numbers == number) & lacking
                if events is not None:
                    mine &= events >> SHIFT == self.interval[warp]
                if not any_set(mine):
                    continue
                raced, events_there = words[mine], before[mine]
                consumed = self._consumed(part.warp, step.exchanged, raced) if other == "reader" else None
                first = int(consumed.argmin()) if consumed is not None else 0  # one that is not, if there is any
                self._report_lone_lane(
                    warp,
                    part,
                    int(raced[first]),
                    int(events_there[first]),
                    "writer" if writes else "reader",
                    "the arrival",
                    races.SHARED_RACE,
                    statement,
                    other,
                    consumed=consumed is not None and bool(consumed[first]),
                )

    def _consumed(self, warp: int, exchanged: Exchanged, words: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which words' loads by a warp are followed by one of the exchanges that has the value as operand."""

        def line(word: int) -> int:
            slot, inside = divmod(word, self._words)
            return self.loads.last_line(slot, warp, inside * self._word // GRANULE)

        return self.exchanges.consume(exchanged, words, line)

    def unfenced(self, operation: AsyncOperation, warp: int, slot: int, granules: NDArray[np.int64]) -> None:
        """Find what lanes have stored in these granules and others of their warp alone have fenced, before `warp`
        issues an asynchronous operation that reads them.
        """
        if not self._fences.parts:
            return
        words = self._of_granules(slot, granules)
        before = self._writer[words]
        numbers = before >> SHIFT
        fenced, members = self._happens_before.fenced, self._happens_before.members
        for number, part in self._fences.among(numbers):
            hit = (numbers == number) & part.lacks(before & SEVERAL - 1)
            member = part.warp % members
            own, issuer = fenced[part.warp, member], fenced[warp, member]
            if part.end is None:
                covered = warp == part.warp  # which `asynchronous` reports
            else:
                covered = own >= part.end
            if any_set(hit) and not covered and (warp == part.warp or issuer < part.begin):
                self._report_lone_lane(
                    warp,
                    part,
                    int(words[hit][0]),
                    int(before[hit][0]),
                    "reader",
                    "fence.proxy.async",
                    races.MISSING_PROXY_FENCE,
                    operation.statement,
                )

    def _report_lone_lane(
        self,
        warp: int,
        part: Part,
        word: int,
        event: int,
        role: Role,
        what: str,
        check: Check,
        statement: Statement,
        earlier: Role = "writer",
        *,
        consumed: bool = False,
    ) -> None:
        slot, inside = divmod(word, self._words)
        accesses = self.stores if earlier == "writer" else self.loads
        line = accesses.last_line(slot, part.warp, inside * self._word // GRANULE)
        address, lanes = inside * self._word, lane_of(event & (1 << SHIFT) - 1)
        found = self._findings.access(role, statement, warp, space="shared", address=address)
        member = part.warp % self._happens_before.members
        other = self._happens_before.party(earlier, line, warp, member, address, lanes)
        does = ("write", "store") if earlier == "writer" else ("read", "load")
        self._findings.report(
            check,
            statement,
            summary=f"{found} {'reads' if role == 'reader' else 'overwrites'} {found.place}, which {other} {does[0]}s",
            rule=f"After the {does[1]} only other lanes of that warp execute {what}{_CONSUMED if consumed else ''}",
            fix=f"bar.warp.sync between the {does[1]} and {what}",
            accesses=(found, other),
            severity="advice" if consumed else None,
        )

    def _report(
        self,
        found: Conflict,
        role: Role,
        other_role: Role,
        accesses: ThreadAccesses,
        statement: Statement,
        *,
        together: bool = False,
    ) -> None:
        slot, word = divmod(found.word, self._words)
        granule, line = word * self._word // GRANULE, self._line(found, accesses)
        copied = "cp.async" in self._opcode(line) and accesses.is_pending(slot, found.warp, granule)
        address, lanes = word * self._word, lane_of(found.event & (1 << SHIFT) - 1)
        party = self._findings.access(
            role, statement, found.warp, lanes=lane_of(found.lane), space="shared", address=address
        )
        member = found.warp % self._happens_before.members
        other = self._happens_before.party(other_role, line, found.warp, member, address, lanes)
        exchanged = role == "writer" and other_role == "reader" and self.exchanges.follow(found.warp, found.word)
        self._findings.report(
            races.SHARED_RACE,
            statement,
            summary=f"{party} {'reads' if role == 'reader' else 'overwrites'} {party.place}, which {other} of the same "
            f"warp {'reads' if other_role == 'reader' else 'writes'}",
            rule=".sync makes the lanes wait for each other, but orders no memory accesses"
            if together
            else _EXCHANGED
            if exchanged
            else "The lanes have not synchronized by bar.warp.sync or a barrier",
            fix=fixes.of_cp_async(party, "warp") if copied else f"bar.warp.sync{fixes.between(party, other)}",
            accesses=(party, other),
            severity="advice" if together or exchanged else "error",
            cause=frozenset([causes.lanes(found.warp, int(self.interval[found.warp]))]),
        )

    def _report_update(self, found: Conflict, role: Role, statement: Statement) -> None:
        """Report a weak access to what another lane has changed by a strong one."""
        address = found.word % self._words * self._word
        party = self._findings.access(
            role, statement, found.warp, lanes=lane_of(found.lane), space="shared", address=address
        )
        member, lanes = found.warp % self._happens_before.members, lane_of(found.event & (1 << SHIFT) - 1)
        line = self._updates.line(found.word)
        other = self._happens_before.party("writer", line, found.warp, member, address, lanes)
        self._findings.report(
            races.SHARED_RACE,
            statement,
            summary=f"{party} {'reads' if role == 'reader' else 'overwrites'} {party.place}, which {other} of the same "
            "warp writes",
            rule=f"The lanes have not synchronized by bar.warp.sync or a barrier, and {party.opcode} is weak",
            fix=f"bar.warp.sync{fixes.between(party, other)}",
            accesses=(party, other),
            cause=frozenset([causes.lanes(found.warp, int(self.interval[found.warp]))]),
        )

    def _line(self, found: Conflict, accesses: ThreadAccesses) -> int:
        """The line of the earlier access of a conflict."""
        slot, word = divmod(found.word, self._words)
        return accesses.last_line(slot, found.warp, word * self._word // GRANULE)

    def _opcode(self, line: int) -> str:
        """The opcode of the instruction of a line that has accessed shared memory."""
        statement = self._happens_before.statements.get(line)
        return statement.opcode if isinstance(statement, Instruction) else ""
