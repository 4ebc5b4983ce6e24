"""Conflicts of threads' accesses to global memory: with those of other warps, of this CTA or not, and with copies.

A store conflicts with an earlier access, a load with an earlier store, that does not happen before it: through
barriers, mbarriers, or strong accesses (volatile, relaxed, acquire and release, atomics), which do not race with each
other and publish what their warp has observed. Weak accesses race with strong ones, unless the warp has seen what the
strong one stored at that word by a strong load of it (PTX ISA 8.9.5, observation); a strong store after a weak load in
the same CTA is not reported if its warp has executed that load too.

Lanes of one warp conflict that load what another one has stored, or store something else there, before they synchronize
(`lane_accesses` says how). A store after another lane's load is not reported: the value may come from it through
shuffles.

What bulk and tensor copies do is in `global_copies`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import all_set, any_set, count_nonzero
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.changes import changing_lanes
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.global_memory.events import Events, GlobalEvents, does
from ptxgen.emulator.checks.global_memory.grid_races import GridRaces
from ptxgen.emulator.checks.global_memory.lanes import LaneOrder
from ptxgen.emulator.checks.global_memory.shadow import GRANULE, NOBODY, SHIFT, WORD, Entries
from ptxgen.emulator.checks.messages import fixes
from ptxgen.emulator.checks.order.mbarrier_scope import report_narrow
from ptxgen.emulator.checks.order.partial_release import ALL
from ptxgen.emulator.checks.order.vector_clock import PENDING
from ptxgen.emulator.checks.raced_reads import decides_again
from ptxgen.emulator.checks.registry import races
from ptxgen.emulator.checks.shared.lanes import LaneAccesses
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.memory.global_memory import HEAP_BASE, MAP_BYTES
from ptxgen.emulator.memory.granules import starts
from ptxgen.emulator.memory.located import MemoryAccess
from ptxgen.emulator.observer import Observer
from ptxgen.emulator.state.convergence import bits_of
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import HappensBefore

_LANES = np.arange(32, dtype=np.int32)
_ALL = np.full(1, ALL, np.uint32)
#: So many warps and events are compared without looking for equal ones.
_FEW = 64
#: Lanes of accesses, (warps, 32), or all.
Mask = NDArray[np.bool_] | None


class GlobalAccesses(Observer):
    """What threads load and store, against the last events at the same bytes."""

    def __init__(
        self,
        happens_before: HappensBefore,
        lanes: LaneAccesses,
        events: GlobalEvents,
        grids: GridRaces,
        lane_order: LaneOrder,
        findings: Findings,
    ) -> None:
        self._happens_before, self._lanes, self._lane_order = happens_before, lanes, lane_order
        self._events, self._grids, self._findings = events, grids, findings
        #: By word of the heap: True once a strong load has read it.
        self._observed = np.zeros(0, np.bool_)
        #: Bytes of each lane's access at present.
        self._size = 0
        #: Lines of stores that are known to store what another warp stores at any time.
        self._equal: set[int] = set()

    def memory_loads(self, access: MemoryAccess) -> None:
        warps, mask, space, places, size, statement, order = access
        if space != "global":
            return
        if order is None:
            self.access(warps, places.offsets, mask, size, statement)
        else:
            self.strong(warps, places.offsets, mask, size, statement, "strong load", reads=True, writes=False)

    def memory_stores(self, access: MemoryAccess, values: Sequence[NDArray[Any]]) -> None:
        warps, mask, space, places, size, statement, order = access
        if space != "global":
            return
        if order is None:
            same = ~changing_lanes(access.active, places, size, values)
            self.access(warps, places.offsets, mask, size, statement, same)
        else:
            changing = changing_lanes(access.active, places, size, values)
            self.strong(
                warps, places.offsets, mask, size, statement, "strong store", changing, reads=False, writes=True
            )

    def memory_updates(
        self, access: MemoryAccess, turns: NDArray[np.int64] | None, *, returns: bool, uses: bool
    ) -> None:
        warps, mask, space, places, size, statement, _ = access
        if space == "global":
            # Without a use of its result an atom is a red: it may as well come before what it has found.
            returns = returns and self._events.is_used(statement)
            self.strong(
                warps,
                places.offsets,
                mask,
                size,
                statement,
                "atomic operation",
                turns=turns,
                reads=returns,
                writes=True,
            )

    def copies_issued(
        self, works: Sequence[AsyncWork], access: MemoryAccess, sources: NDArray[np.int64], read: NDArray[np.int64]
    ) -> None:
        """Copies that read all of their source do so as loads would; of others nothing is kept."""
        whole = access.active & (read == access.size)
        if any_set(whole):
            offsets, lanes = np.where(whole, sources, 0), None if all_set(whole) else whole
            self.access(access.warps, offsets, lanes, access.size, access.statement, what="cp.async")

    def tensormap_changes(self, warp: int, address: int, statement: Statement) -> None:
        self._write_map(warp, address, statement)

    def tensormap_publishes(self, warp: int, slot: int, offset: int, address: int, statement: Statement) -> None:
        self._write_map(warp, address, statement)

    def heap_grows(self, bytes: int) -> None:
        self._events.grow(bytes)

    def access(
        self,
        warps: NDArray[np.int64],
        offsets: NDArray[np.int64],
        mask: Mask,
        size: int,
        statement: Statement,
        same: NDArray[np.bool_] | None = None,
        what: str = "load",
    ) -> None:
        """Warps load `size` bytes at these offsets (warps, 32) of the heap, or store them, weakly.

        A store gives `same`, (warps, 32): which lanes change nothing. A store of the value already in memory is
        harmless.
        """
        events, self._size = self._events, size
        racing = mask if same is None else ~same if mask is None else mask & ~same
        what = what if same is None else "store"
        grids = self._grids
        if grids.before is not None or grids.after is not None:
            grids.access(warps, offsets, racing, size, statement, what)
        if events.strong.used:
            self._against_strong(warps, offsets, racing, size, statement, what)
            if same is not None:
                self._against_equal_stores(events.strong.at(offsets, size), offsets, warps, mask, same, statement)
            self._against_updates(offsets, warps, mask, racing, size, statement, what)
        again = None
        if events.writer.used:
            before = events.writer.at(offsets, size)
            if count_nonzero(before):
                self._compare(before >> SHIFT, offsets, warps, racing, statement, what)
                if same is not None:
                    self._against_equal_stores(before, offsets, warps, mask, same, statement)
                again = self._between_lanes(before, offsets, warps, mask, racing, statement, what)
                self._lane_order.compare(events, before, offsets, warps, racing, statement, what)
        if same is not None:
            for places in (events.reader, events.earlier):
                if places.used:
                    self._compare(places.at(offsets, size) >> SHIFT, offsets, warps, racing, statement, what)
            if events.strong_reader.used:
                self._against_pollers(warps, offsets, racing, size, statement, what)
        if events.copies:
            # Memory does not hold what a copy in flight will write: all lanes count.
            self._compare(events.copy_writer[_granules(offsets, size)], offsets, warps, mask, statement, what)
            if same is not None:
                self._against_copies_that_read(
                    events.copy_reader[_granules(offsets, size)], offsets, warps, racing, statement, what
                )
        mine = events.of_warps(warps, statement, what)
        entries = mine[:, None] << SHIFT | _LANES
        if same is None:
            self._keep_load(warps, offsets, mask, size, entries)
        else:
            self._keep_store(warps, offsets, mask, size, entries, same, statement, again)
            self._lane_order.stored(warps, _ALL if mask is None else bits_of(mask))

    def strong(
        self,
        warps: NDArray[np.int64],
        offsets: NDArray[np.int64],
        mask: Mask,
        size: int,
        statement: Statement,
        what: str,
        racing: Mask = None,
        *,
        turns: NDArray[np.int64] | None = None,
        reads: bool,
        writes: bool,
    ) -> None:
        """Warps do the same by strong accesses: a load, a store, or an atomic operation, which is both.

        Only the lanes `racing` change memory; all do where it is None. They come in the order of `turns`, by default of
        warps and lanes.
        """
        events, self._size = self._events, size
        grids = self._grids
        racing = mask if racing is None else racing
        if grids.before is not None or grids.after is not None:
            grids.access(warps, offsets, mask, size, statement, what, strong=True)
        active = offsets.ravel() if mask is None else offsets[mask]
        kinds = (events.writer, events.reader, events.earlier) if writes else (events.writer,)
        found = [places for places in kinds if places.used and count_nonzero(places.at(active, size))]
        for places in found:
            overlapping = places.at(offsets, size) >> SHIFT
            if places is not events.writer:
                overlapping[self._loaded_alike(overlapping, warps, racing, statement, what)] = 0
            self._compare(overlapping, offsets, warps, racing, statement, what)
            if places is events.writer:
                self._between_lanes(places.at(offsets, size), offsets, warps, mask, racing, statement, what)
            if what == "strong store" and places is events.writer and racing is not None:
                self._against_equal_stores(places.at(offsets, size), offsets, warps, mask, ~racing, statement)
        if reads:
            if len(self._observed) < len(events.copy_writer) * (GRANULE // WORD):
                missing = len(events.copy_writer) * (GRANULE // WORD) - len(self._observed)
                self._observed = np.r_[self._observed, np.zeros(missing, np.bool_)]
            for part in range(0, size, WORD):
                self._observed[active + part >> 2] = True
        entries = events.of_warps(warps, statement, what)[:, None] << SHIFT | _LANES
        table = events.strong if writes else events.strong_reader
        kept = entries.ravel() if mask is None else entries[mask]
        if what == "atomic operation" and not reads:
            own = entries[:, 0] >> SHIFT
            events.reductions.add(int(events.kind[own[0]]), own, kept >> SHIFT, active)
        table.keep(active, size, kept) if turns is None else table.keep(active[turns], size, kept[turns])
        # Weak accesses stay: those of warps that are unordered with them still race with them.
        if writes and events.copies:
            copies = events.copy_writer[_granules(offsets, size)]
            unordered = self._unordered(copies, warps, mask)
            if unordered is not None:
                adding = [events.adds(event) for event in copies[unordered].tolist()]
                unordered[unordered] = ~np.array(adding)
                self._report_all(unordered, copies, offsets, warps, statement, what)
            self._against_copies_that_read(
                events.copy_reader[_granules(offsets, size)], offsets, warps, mask, statement, what
            )

    def _write_map(self, warp: int, address: int, statement: Statement) -> None:
        """A thread of a warp changes a tensormap, or all its threads together do."""
        granules = (address - HEAP_BASE) // GRANULE + np.arange(MAP_BYTES // GRANULE)
        warps, offsets, events = np.array([warp]), (granules * GRANULE)[None], self._events
        if self._grids.before is not None or self._grids.after is not None:
            self._grids.copy(warp, granules, "change of a tensormap", statement, writes=True)
        for places in (events.writer, events.reader, events.earlier):
            if places.used:
                self._compare(
                    places.at(offsets, GRANULE) >> SHIFT, offsets, warps, None, statement, "change of a tensormap"
                )
        event = events.of_warps(warps, statement, "change of a tensormap")
        events.writer.keep(offsets[0], GRANULE, np.repeat(event << SHIFT | NOBODY, len(granules)))

    # What is remembered.

    def _keep_load(
        self, warps: NDArray[np.int64], offsets: NDArray[np.int64], mask: Mask, size: int, entries: Entries
    ) -> None:
        """Loads replace those that happen before them; others stay as earlier ones."""
        reader, earlier = self._events.reader, self._events.earlier
        before = reader.at(offsets, size) if reader.used else None
        ascending = reader.keep_first(offsets, mask, size, entries)
        if before is not None and count_nonzero(before):
            unordered = self._unordered(before >> SHIFT, warps, mask)
            if unordered is not None:
                earlier.keep_some(offsets, size, before, unordered)
        if len(warps) > 1 and not ascending:
            reader.keep_lost(earlier, offsets, mask, size, entries)  # several warps load the same at once

    def _keep_store(
        self,
        warps: NDArray[np.int64],
        offsets: NDArray[np.int64],
        mask: Mask,
        size: int,
        entries: Entries,
        same: NDArray[np.bool_],
        statement: Statement,
        again: NDArray[np.bool_] | None,
    ) -> None:
        """Where several lanes of a warp store to the same bytes, at once or the same value again, no lane is kept."""
        writer = self._events.writer
        ascending = writer.keep_first(offsets, mask, size, entries)
        if not ascending:
            after = writer.at(offsets, size)
            overlapping = after != entries[..., None]
            if mask is not None:
                overlapping &= mask[..., None]
            if len(warps) > 1 and count_nonzero(overlapping):  # lanes of several warps store to the same bytes at once
                others = np.where(overlapping, after, 0)
                racing = ~same if mask is None else mask & ~same
                self._compare(others >> SHIFT, offsets, warps, racing, statement, "store")
                self._against_equal_stores(others, offsets, warps, mask, same, statement)
            overlapping &= after >> SHIFT == (entries >> SHIFT)[..., None]
            self._forget_lanes(offsets, size, entries, overlapping)
        if again is not None:
            self._forget_lanes(offsets, size, entries, again)

    def _forget_lanes(self, offsets: NDArray[np.int64], size: int, entries: Entries, chosen: NDArray[np.bool_]) -> None:
        if count_nonzero(chosen):
            nobody = np.broadcast_to(entries[..., None] | NOBODY, chosen.shape)
            self._events.writer.keep_some(offsets, size, nobody, chosen)

    def _loaded_alike(
        self, loads: Events, warps: NDArray[np.int64], racing: Mask, statement: Statement, what: str
    ) -> NDArray[np.bool_]:
        """Which of these loads, (warps, 32, places), are by a warp of the same CTA as the one that updates memory now,
        which has executed the same load: Triton's warps load what one of their CTA then changes. If several warps of
        the CTA change it, none is, unless an atomic operation that decides again does.
        """
        found, events = self._of_same_cta(loads, warps) & (loads != 0), self._events
        changing = warps if racing is None else warps[racing.any(axis=1)]
        ctas = (self._happens_before.actors(changing) // self._happens_before.warps).tolist()
        for position in np.flatnonzero(found.any(axis=(1, 2))).tolist():
            actor, here = self._happens_before.actor(int(warps[position])), found[position]
            several = ctas.count(actor // self._happens_before.warps) > 1 or events.by_others(actor, statement, what)
            if several and not decides_again(statement):
                here[:] = False
                continue
            kinds = events.kind[loads[position]]
            others = [each for each in np.unique(kinds[here]).tolist() if not events.has_executed(actor, each)]
            here &= ~np.isin(kinds, others)
        return found

    # What races.

    def _unordered(self, events: Events, warps: NDArray[np.int64], racing: Mask) -> NDArray[np.bool_] | None:
        """Which of these events, (warps, 32, places), by other warps are unordered with `warps`; None: none."""
        suspect = events != 0
        if racing is not None:
            suspect &= racing[..., None]
        (at,) = suspect.reshape(-1).nonzero()
        if not len(at):
            return None
        position, found = at // (events.size // len(warps)), events.reshape(-1)[at]
        actors, others, clocks = (
            self._happens_before.actors(warps),
            self._events.actor[found],
            self._events.clock[found],
        )
        (chosen,) = ((others != actors[position]) | (clocks == PENDING)).nonzero()
        if not len(chosen):
            return None
        at, mine, found, others, clocks = (
            at[chosen],
            warps[position[chosen]],
            found[chosen],
            others[chosen],
            clocks[chosen],
        )
        (chosen,) = (~self._happens_before.have_observed(mine, others, clocks)).nonzero()
        if not len(chosen):
            return None
        pairs = mine[chosen] << 32 | found[chosen]
        begins = starts(pairs)  # most lanes of a warp have the same
        if count_nonzero(begins) > _FEW:
            pairs, place = np.unique(pairs, return_inverse=True)
        else:
            pairs, place = pairs[begins], begins.cumsum() - 1
        event = pairs & 0xFFFFFFFF
        intervals = zip(
            (pairs >> 32).tolist(), self._events.actor[event].tolist(), self._events.clock[event].tolist(), strict=True
        )
        unordered = np.array([not self._happens_before.has_observed_actor(*interval) for interval in intervals])
        if not any_set(unordered):
            return None
        suspect[:] = False
        suspect.reshape(-1)[at[chosen][unordered[place]]] = True
        return suspect

    def _of_same_cta(self, events: Events, warps: NDArray[np.int64]) -> NDArray[np.bool_]:
        per_cta = self._happens_before.warps
        return self._events.actor[events] // per_cta == (self._happens_before.actors(warps) // per_cta)[:, None, None]

    def _compare(
        self,
        events: Events,
        offsets: NDArray[np.int64],
        warps: NDArray[np.int64],
        racing: Mask,
        statement: Statement,
        what: str,
    ) -> None:
        """Report accesses among these events, (warps, 32, places), with which the warps are unordered."""
        if self._happens_before.scopes.any_narrow:
            self._against_scopes(events, offsets, warps, racing, statement, what)
        unordered = self._unordered(events, warps, racing)
        if unordered is not None:
            self._report_all(unordered, events, offsets, warps, statement, what)

    def _against_equal_stores(
        self,
        entries: Entries,
        offsets: NDArray[np.int64],
        warps: NDArray[np.int64],
        mask: Mask,
        same: NDArray[np.bool_],
        statement: Statement,
    ) -> None:
        """Stores among these entries, with which the warps are unordered, to bytes that hold what lanes store `same`.

        Once for each instruction.
        """
        if statement.line in self._equal or not (count_nonzero(same) and count_nonzero(entries)):
            return
        events, changing = entries >> SHIFT, ~same if mask is None else mask & ~same
        unordered = self._unordered(events, warps, same if mask is None else same & mask)
        if unordered is None:
            return
        for position in range(len(warps)):  # where another lane of the warp comes last
            unordered[position] &= ~np.isin(offsets[position], offsets[position][changing[position]])[:, None]
        if self._report_all(unordered, events, offsets, warps, statement, "store", equal=True):
            self._equal.add(statement.line)

    def _against_scopes(
        self,
        events: Events,
        offsets: NDArray[np.int64],
        warps: NDArray[np.int64],
        racing: Mask,
        statement: Statement,
        what: str,
    ) -> None:
        """Report accesses of peer CTAs among these events that only an mbarrier of too narrow a scope orders."""
        happens_before, known = self._happens_before, self._events
        suspect = (events != 0) & ~self._of_same_cta(events, warps)
        if racing is not None:
            suspect &= racing[..., None]
        for position in np.flatnonzero(suspect.any(axis=(1, 2))).tolist():
            warp, here = int(warps[position]), suspect[position]
            peers, first = np.unique(events[position][here], return_index=True)
            lanes = np.nonzero(here)[0][first]
            for event, lane in zip(peers.tolist(), lanes.tolist(), strict=True):
                if known.kind_of(event).what in ("load", "store"):
                    narrow = happens_before.narrow_side(warp, int(known.actor[event]), int(known.clock[event]))
                    if narrow is not None:
                        address = HEAP_BASE + int(offsets[position, lane])
                        found, other = known.parties(warp, event, what, statement, address, 1 << lane)
                        severity = "error" if other.role == "writer" else "advice"
                        now = warp, happens_before.clock(warp)
                        report_narrow(self._findings, found, other, narrow, statement, severity, now)

    def _report_all(
        self,
        chosen: NDArray[np.bool_],
        events: Events,
        offsets: NDArray[np.int64],
        warps: NDArray[np.int64],
        statement: Statement,
        what: str,
        *,
        equal: bool = False,
    ) -> bool:
        """Report accesses that are unordered with events; gives whether a finding was made."""
        found = np.broadcast_to(warps[:, None, None], events.shape)[chosen] << 32 | events[chosen]
        position, lane, _ = np.nonzero(chosen)
        if not equal:
            actors = self._happens_before.actors(warps)[position]
            self._events.note(events[chosen], offsets[position, lane], actors, self._size, statement, what)
        pairs, first = np.unique(found, return_index=True)
        fresh = self._events.count_known(pairs >> 32, pairs & 0xFFFFFFFF, statement, what, equal=equal)
        if fresh is not None:
            pairs, first = pairs[fresh], first[fresh]
        reported = False
        for pair, at in zip(pairs.tolist(), first.tolist(), strict=True):
            address = HEAP_BASE + int(offsets[position[at], lane[at]])
            lanes = 1 << int(lane[at])
            reported |= self._events.report(pair >> 32, pair & 0xFFFFFFFF, what, statement, address, lanes, equal=equal)
        return reported

    def _against_strong(
        self,
        warps: NDArray[np.int64],
        offsets: NDArray[np.int64],
        racing: Mask,
        size: int,
        statement: Statement,
        what: str,
    ) -> None:
        """Strong stores unordered with the warps, which have not observed them at that word either."""
        entries = self._events.strong.at(offsets, size)
        if not count_nonzero(entries):
            return
        if self._events.reductions.used:
            self._against_reductions(entries, warps, offsets, racing, size, statement, what)
        events = entries >> SHIFT
        unordered = self._unordered(events, warps, racing)
        if unordered is not None:
            self._report_strong(unordered, events, warps, offsets, statement, what)

    def _against_reductions(
        self,
        entries: Entries,
        warps: NDArray[np.int64],
        offsets: NDArray[np.int64],
        racing: Mask,
        size: int,
        statement: Statement,
        what: str,
    ) -> None:
        """Reductions before the last ones at the same words, whose `entries` are given."""
        known = self._events
        if not known.reductions.includes(known.kind[entries >> SHIFT]):
            return
        if known.reductions.dropped:
            self._findings.leave_out("races of weak accesses with all but the last reduction of each word")
        places = offsets[..., None] // WORD + np.arange(max(size // WORD, 1))
        there: NDArray[np.bool_] = (entries != 0).any(axis=-1)
        if racing is not None:
            there &= racing
        for position in np.flatnonzero(np.count_nonzero(there, axis=1)).tolist():
            lanes, warp = there[position], int(warps[position])
            for event, words in known.reductions.unordered(warp, places[position][lanes], known.actor, known.clock):
                hit = np.zeros(places.shape, np.bool_)
                hit[position] = np.isin(places[position], words) & lanes[:, None]
                self._report_strong(hit, np.where(hit, event, 0), warps, offsets, statement, what)

    def _report_strong(
        self,
        unordered: NDArray[np.bool_],
        events: Events,
        warps: NDArray[np.int64],
        offsets: NDArray[np.int64],
        statement: Statement,
        what: str,
    ) -> None:
        """Report weak accesses that are unordered with strong stores, (warps, 32, places), unless observed there."""
        observed = self._observed[np.minimum(offsets // WORD, len(self._observed) - 1)] if len(self._observed) else None
        if observed is not None and any_set(unordered & observed[..., None]):
            for position, warp in enumerate(warps.tolist()):
                for event in np.unique(events[position][unordered[position] & observed[position][:, None]]).tolist():
                    if self._happens_before.unfenced_side(
                        warp, int(self._events.actor[event]), int(self._events.clock[event])
                    ):
                        unordered[position] &= (events[position] != event) | ~observed[position][:, None]
        self._report_all(unordered, events, offsets, warps, statement, what)

    def _against_pollers(
        self,
        warps: NDArray[np.int64],
        offsets: NDArray[np.int64],
        racing: Mask,
        size: int,
        statement: Statement,
        what: str,
    ) -> None:
        """Weak stores over what threads of other CTAs load by strong loads, which may still poll it.

        Flags of strong accesses alone count as order here, whether they release and acquire or not.
        """
        events = self._events.strong_reader.at(offsets, size) >> SHIFT
        if not count_nonzero(events):
            return
        events[self._of_same_cta(events, warps)] = 0
        unordered = self._unordered(events, warps, racing)
        if unordered is None:
            return
        for position, warp in enumerate(warps.tolist()):
            for event in np.unique(events[position][unordered[position]]).tolist():
                actor, clock = int(self._events.actor[event]), int(self._events.clock[event])
                if self._happens_before.unfenced_side(warp, actor, clock):
                    unordered[position] &= events[position] != event
        self._report_all(unordered, events, offsets, warps, statement, what)

    def _between_lanes(
        self,
        entries: Entries,
        offsets: NDArray[np.int64],
        warps: NDArray[np.int64],
        mask: Mask,
        racing: Mask,
        statement: Statement,
        what: str,
    ) -> NDArray[np.bool_] | None:
        """Report stores by other lanes of the same warp that are unordered with a lane; gives those that overlap."""
        lane = entries & NOBODY
        overlapping = (lane != _LANES[:, None]) & (lane != NOBODY) & (entries != 0)
        if mask is not None:
            overlapping &= mask[..., None]
        if not count_nonzero(overlapping):
            return None
        lanes, intervals = self._lanes, self._events.lanes[entries >> SHIFT]
        unordered = intervals == lanes.interval[warps][:, None, None]
        if lanes.narrow.any(warps):
            for position, warp in enumerate(warps.tolist()):
                unordered[position] |= lanes.narrow.unordered(
                    warp, _LANES[:, None], intervals[position], lane[position]
                )
        overlapping &= unordered
        found = overlapping if racing is None else overlapping & racing[..., None]
        if count_nonzero(found):
            position, own, place = np.unravel_index(int(found.argmax()), found.shape)
            entry = int(entries[position, own, place])
            found_at, lanes = HEAP_BASE + int(offsets[position, own]), 1 << int(own)
            warp, other_lanes = int(warps[position]), 1 << (entry & NOBODY)
            party, other = self._events.parties(warp, entry >> SHIFT, what, statement, found_at, lanes, other_lanes)
            self._findings.report(
                races.GLOBAL_RACE,
                statement,
                summary=f"{party} {does(party, what)} {party.place}, which {other} of the same warp "
                f"{'reads' if other.role == 'reader' else 'writes'}",
                rule="The lanes have not synchronized by bar.warp.sync or a barrier",
                fix=f"bar.warp.sync{fixes.between(party, other)}",
                accesses=(party, other),
                cause=frozenset([causes.lanes(warp, int(self._lanes.interval[warp]))]),
            )
        return overlapping

    def _against_updates(
        self,
        offsets: NDArray[np.int64],
        warps: NDArray[np.int64],
        mask: Mask,
        racing: Mask,
        size: int,
        statement: Statement,
        what: str,
    ) -> None:
        """Weak accesses of lanes against the strong stores by other lanes of the same warp.

        Left out are weak loads that an atomic operation may check, and those that the warp has executed before: a lane
        may have changed what all have loaded.
        """
        entries, events = self._events.strong.at(offsets, size), self._events
        if not np.count_nonzero(entries):
            return
        mine = events.actor[entries >> SHIFT] == self._happens_before.actors(warps)[:, None, None]
        entries = np.where(mine, entries, 0)
        for event in np.unique(entries >> SHIFT).tolist() if what == "load" else ():
            before = event and events.executed(int(events.actor[event]), statement, what)
            if event and (before or events.may_check(event, statement)):
                entries[entries >> SHIFT == event] = 0
        if np.count_nonzero(entries):
            self._between_lanes(entries, offsets, warps, mask, racing, statement, what)

    def _against_copies_that_read(
        self,
        events: Events,
        offsets: NDArray[np.int64],
        warps: NDArray[np.int64],
        racing: Mask,
        statement: Statement,
        what: str,
    ) -> None:
        """Report copies that may still read the overwritten bytes."""
        suspect = events != 0
        if racing is not None:
            suspect &= racing[..., None]
        if not any_set(suspect):
            return
        operations, observed = self._happens_before.operations, self._happens_before.observed
        found = np.broadcast_to(warps[:, None, None], events.shape)[suspect] << 32 | events[suspect]
        reading = []
        for pair in np.unique(found).tolist():
            number = int(self._events.operation[pair & 0xFFFFFFFF])
            if number in operations and number not in observed[pair >> 32].operations:
                reading.append(pair)
        if reading:
            suspect[suspect] = np.isin(found, reading)
            self._report_all(suspect, events, offsets, warps, statement, what)


def _granules(offsets: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """The granules of accesses, with a last axis."""
    return (
        offsets[..., None] // GRANULE if size <= GRANULE else offsets[..., None] // GRANULE + np.arange(size // GRANULE)
    )
