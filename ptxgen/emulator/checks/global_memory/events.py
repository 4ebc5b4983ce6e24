"""The last accesses to each byte of global memory: what the checks of threads and of copies share.

An event is a warp's accesses by one instruction in one of its intervals, or one asynchronous copy. Threads' accesses
are kept by `ShadowMemory`, those of copies for each granule of 16 bytes, where they touch all of it. Of several loads
since a store two are remembered. So a race may be missed; none is invented.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.device.report import Access, Role
from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.cas_loops import STRONG_LOAD, CasLoops
from ptxgen.emulator.checks.changes import EQUAL, ONE_STORE
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.global_memory.reductions import Reductions
from ptxgen.emulator.checks.global_memory.shadow import GRANULE, ShadowMemory
from ptxgen.emulator.checks.messages import fixes
from ptxgen.emulator.checks.messages.repeated import Repeated
from ptxgen.emulator.checks.order.strong_accesses import report_unfenced
from ptxgen.emulator.checks.order.vector_clock import PENDING
from ptxgen.emulator.checks.order.weak_flags import FlagRace, Party, WeakFlags
from ptxgen.emulator.checks.raced_reads import RacedReads, decides_again
from ptxgen.emulator.checks.registry import races
from ptxgen.emulator.memory.global_memory import HEAP_BASE
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import HappensBefore

Events = NDArray[np.int32]
#: Events after which all is forgotten, so that long kernels do not fill the memory.
_MANY = 1 << 22


#: Kinds of events that only read.
READS = ("load", "cp.async", "strong load", "use of a tensormap", "bulk copy", "tensor copy")


#: Kinds of stores by threads.
STORES = ("store", "strong store", "atomic operation")


def role_of(what: str) -> Role:
    """Whether an access reads only, or writes."""
    return "reader" if what in READS else "writer"


def does(found: Access, what: str) -> str:
    """What an access does to memory, as a verb."""
    if found.role == "reader":
        return "reads"
    return "combines its data with" if "reduction" in what else "overwrites"


class Kind(NamedTuple):
    """What an event's instruction does: "store", "tensor copy", ..."""

    statement: Statement
    what: str


#: After so many races that lack one release, others of the same instructions are taken for such: to search the record
#: of strong accesses takes long.
_SEARCHES = 256


class GlobalEvents:
    """The last writer and reader of each byte, by event; 0 is none."""

    def __init__(
        self,
        happens_before: HappensBefore,
        lane_intervals: NDArray[np.int64],
        bytes: int,
        cas_loops: CasLoops,
        flags: WeakFlags,
        raced: RacedReads,
        findings: Findings,
    ) -> None:
        self._happens_before, self._cas_loops, self._findings = happens_before, cas_loops, findings
        self._flags, self._raced = flags, raced
        #: The number of the interval of each warp's lanes now (`LaneAccesses`).
        self._lane_intervals = lane_intervals
        #: Threads' weak stores, their last weak loads, and earlier weak loads that are unordered with those.
        self.writer, self.reader, self.earlier = (ShadowMemory(bytes) for _ in range(3))
        #: Strong stores and atomic operations; strong loads and uses of tensormaps, which only count for other grids.
        self.strong, self.strong_reader = ShadowMemory(bytes), ShadowMemory(bytes)
        #: Granules that reductions have changed.
        self.reductions = Reductions(happens_before)
        #: Last events of asynchronous copies, by granule of 16 bytes.
        granules = -(-bytes // GRANULE)
        self.copy_writer, self.copy_reader = np.zeros(granules, np.int32), np.zeros(granules, np.int32)
        #: By event: its warp (`HappensBefore.actors`), the interval in which it completes, the interval of its
        #: lanes, its kind, and of a copy to shared memory its number among the asynchronous operations.
        self.actor, self.clock = np.zeros(1024, np.int64), np.zeros(1024, np.int64)
        self.lanes, self.operation = np.zeros(1024, np.int64), np.zeros(1024, np.int64)
        self.kind = np.zeros(1024, np.int32)
        #: True once a copy has read or written global memory.
        self.copies = False
        self._kinds: list[Kind] = []
        self._numbers: dict[tuple[int, str], int] = {}
        self._used = 1
        #: Events that have been forgotten.
        self._before = 0
        #: The last events of each instruction: warps, their intervals and those of their lanes, first event.
        self._last: dict[int, tuple[bytes, bytes, bytes, int]] = {}
        #: Races by their two instructions and kinds, whether both are in one CTA, and whether they store the same.
        self._repeated = Repeated(happens_before, findings)

    @property
    def of_threads(self) -> tuple[ShadowMemory, ...]:
        """What is kept of threads' accesses."""
        return self.writer, self.reader, self.earlier, self.strong, self.strong_reader

    def grow(self, bytes: int) -> None:
        """The heap has become larger."""
        for places in self.of_threads:
            places.grow(bytes)
        missing = np.zeros(max(-(-bytes // GRANULE) - len(self.copy_writer), 0), np.int32)
        self.copy_writer, self.copy_reader = np.r_[self.copy_writer, missing], np.r_[self.copy_reader, missing]

    def forget_granules(self, granules: NDArray[np.int64]) -> None:
        """A copy has written whole granules: later accesses are compared with it."""
        for places in self.of_threads:
            places.forget_granules(granules)
        self.copy_reader[granules] = 0

    # Events.

    def of_warps(self, warps: NDArray[np.int64], statement: Statement, what: str) -> Events:
        """An event for each warp: the same as before where no warp has synchronized since."""
        clocks, lanes = self._happens_before.intervals(warps), self._lane_intervals[warps]
        # Lanes' intervals never come again, so those of a later CTA are others too.
        now, last = (warps.tobytes(), clocks.tobytes(), lanes.tobytes()), self._last.get(id(statement))
        if last is None or last[:3] != now:
            first = self._add(len(warps), statement, what)
            span = slice(first, first + len(warps))
            self.actor[span], self.clock[span], self.lanes[span] = self._happens_before.actors(warps), clocks, lanes
            last = self._last[id(statement)] = *now, first
        return np.arange(last[3], last[3] + len(warps), dtype=np.int32)

    def of_copy(self, warp: int, clock: int, statement: Statement, what: str, operation: int = 0) -> int:
        """An event for an asynchronous copy that a warp has issued."""
        event = self._add(1, statement, what)
        self.actor[event], self.clock[event], self.operation[event] = self._happens_before.actor(warp), clock, operation
        self.copies = True
        return event

    def stamp(self, event: int) -> int:
        """A name of an event that stays its own when events are forgotten; `settle` takes it."""
        return self._before + event

    @property
    def next_stamp(self) -> int:
        """The stamp of the next event."""
        return self.stamp(self._used)

    def settle(self, stamp: int, clock: int) -> None:
        """A warp has waited for one of its copies: it completes in this interval."""
        if stamp >= self._before:
            self.clock[stamp - self._before] = clock

    def kind_of(self, event: int) -> Kind:
        """What an event's instruction is."""
        return self._kinds[int(self.kind[event])]

    def has_executed(self, actor: int, kind: int) -> bool:
        """Whether a warp (`HappensBefore.actors`) has executed the instruction of a kind of events."""
        span = slice(1, self._used)
        return any_set((self.kind[span] == kind) & (self.actor[span] == actor))

    def executed(self, actor: int, statement: Statement, what: str) -> bool:
        """Whether a warp (`HappensBefore.actors`) has executed an instruction."""
        kind = self._numbers.get((id(statement), what))
        return kind is not None and self.has_executed(actor, kind)

    def by_others(self, actor: int, statement: Statement, what: str) -> bool:
        """Whether other warps of a warp's CTA (`HappensBefore.actors`) have executed an instruction."""
        kind, span, per_cta = self._numbers.get((id(statement), what)), slice(1, self._used), self._happens_before.warps
        actors = self.actor[span][self.kind[span] == kind] if kind is not None else np.zeros(0, np.int64)
        return bool(((actors // per_cta == actor // per_cta) & (actors != actor)).any())

    def is_used(self, atomic: Statement) -> bool:
        """Whether an instruction may read the result of an atomic operation."""
        return self._flags.is_used(atomic)

    def adds(self, event: int) -> bool:
        """Whether an event is a copy's reduction, which races neither with others nor with strong accesses."""
        return "reduction" in self.kind_of(event).what

    def may_check(self, event: int, load: Statement) -> bool:
        """Whether an event is a strong store that checks what a weak load has read, so that an older value does."""
        store = self.kind_of(event).statement
        return decides_again(store) or bool(store is not None and self._cas_loops.excuse(load.line, store.line))

    def where(self, granules: NDArray[np.int64], event: int) -> int | None:
        """The address of the first granule with a kept event, among these."""
        for table in self.of_threads:
            granule = table.where(granules, event)
            if granule is not None:
                return HEAP_BASE + granule * GRANULE
        for copies in (self.copy_writer, self.copy_reader):
            hit = copies[granules] == event
            if any_set(hit):
                return HEAP_BASE + int(granules[hit.argmax()]) * GRANULE
        return None

    def parties(
        self,
        warp: int,
        event: int,
        what: str,
        statement: Statement,
        address: int | None,
        lanes: int | None = None,
        other_lanes: int | None = None,
    ) -> tuple[Access, Access]:
        """A warp's access, and the earlier one of an event."""
        earlier, kind = self.kind_of(event)
        other = self._happens_before.resident_warp(int(self.actor[event]))
        return (
            self._findings.access(role_of(what), statement, warp, lanes=lanes, space="global", address=address),
            self._findings.access(role_of(kind), earlier, other, lanes=other_lanes, space="global", address=address),
        )

    def report(
        self,
        warp: int,
        event: int,
        what: str,
        statement: Statement,
        address: int | None = None,
        lanes: int | None = None,
        *,
        equal: bool = False,
    ) -> bool:
        """Report an access of a warp that is unordered with an event: `what` it is, such as "load" or "bulk store".

        That both store `equal` bytes makes it advice. False where an incomplete order of the two says nothing then.
        """
        actor, clock, number = int(self.actor[event]), int(self.clock[event]), int(self.operation[event])
        found, other = self.parties(warp, event, what, statement, address, lanes)
        excuse = self._excuse(what, found, self.kind_of(event).what, other)
        if excuse:
            side = ""
        elif number:
            side = self._happens_before.unfenced_side_of_operation(warp, number)
        else:
            side = self._happens_before.unfenced_side(warp, actor, clock)
        if side and equal:
            return False  # what a flag lacks that orders them shows where other bytes are read
        if side:
            flags = self._happens_before.flags(warp, *((-1, number) if number else (actor, clock)))
            decides = decides_again(statement) or decides_again(self.kind_of(event).statement)
            raced = self._raced_load(event, what, statement) if decides else None
            warps = report_unfenced(self._findings, found, other, side, statement, flags, self._flags.text, raced)
            self._repeated.reported((side, *self._race(warp, event, what, statement, equal=equal)), warps)
            return True
        under_way = bool(number) or clock == PENDING
        order, mine = self._happens_before, self._happens_before.actor(warp)
        per_cta, per_cluster = order.warps, order.members
        distance: fixes.Distance = "grid" if actor // per_cluster != mine // per_cluster else "cluster"
        distance = "cta" if actor // per_cta == mine // per_cta else distance
        kind, between = self.kind_of(event).what, frozenset[Hashable]()
        if address is not None and not under_way and {what, kind} & {"atomic operation", "strong load", "strong store"}:
            between = frozenset([causes.word(address)])
        elif distance != "grid" and not under_way:
            between = frozenset([causes.between(actor, clock, warp, order.clock(warp))])
        fix = None if under_way else fixes.of_threads(found, what, other, kind, distance, self._flags.text)
        flag = self._flag(warp, event, what, statement, address)
        if excuse:
            rule = excuse
        elif flag.rule and not equal:
            rule = flag.rule
        elif number:
            rule = "The warp has not waited for its completion"
            fix = f"wait for the mbarrier on which line {other.line} completes, before line {statement.line}"
        elif clock == PENDING:
            rule = f"No cp.async.bulk.wait_group without .read has waited for {other.opcode}"
            then = {"cta": ", then bar.sync,", "cluster": ", then barrier.cluster.arrive and .wait,"}.get(distance, "")
            fix = f"cp.async.bulk.wait_group 0 by the thread of line {other.line}{then} before line {statement.line}"
            wait = fixes.wait_of_open_group(kind, other.line, self._flags.text) if other.line is not None else None
            if wait is not None:
                rule = fixes.OPEN_GROUP.format(wait=wait, line=other.line)
                fix = f"cp.async.bulk.commit_group by the thread of line {other.line}, before line {wait}"
        else:
            rule = f"The two warps{', of different CTAs,' if distance != 'cta' else ''} have not synchronized"
            half = self._half_ordered(warp, actor) if distance == "grid" else ""
            if half == "release":
                rule += "; another warp of that CTA has released to this one"
                fix = f"bar.sync after line {other.line}, before the thread that releases does"
            elif half == "acquire":
                rule += "; another warp of this CTA has acquired from it"
                fix = f"bar.sync before line {statement.line}, after the thread that acquires has"
            elif distance == "grid" and {what, kind} == {"store", "load"} and self._is_read_before(warp, actor, found):
                rule += f". What {other.opcode} reads was stored before, and nothing orders that load before this store"
                fix = (
                    f"st.release.gpu or red.release.gpu of a flag after line {other.line}, and ld.acquire.gpu of it "
                    f"before line {statement.line}"
                )
        doing = ("may still be reading" if other.role == "reader" else "may still be writing") if under_way else ""
        if equal:
            rule += f". {EQUAL}"
        warps = self._findings.report(
            races.GLOBAL_RACE,
            statement,
            summary=f"{found} {does(found, what)} {found.place or 'global memory'}, which {other} "
            f"{doing or ('reads' if other.role == 'reader' else 'writes')}",
            rule=rule,
            fix=STRONG_LOAD if excuse else ONE_STORE if equal else flag.fix or fix,
            accesses=(found, other),
            severity="advice" if excuse or equal else "error",
            cause=causes.EQUAL_STORES if equal else flag.causes | between or None,
            raced=None if under_way or flag.weak else self._raced_load(event, what, statement),
        )
        if not under_way:
            self._repeated.reported(self._race(warp, event, what, statement, equal=equal), warps)
        return True

    def _is_read_before(self, warp: int, actor: int, found: Access) -> bool:
        """Whether a reader has acquired from the warp that now overwrites what it has read: by its next store."""
        reader = self._happens_before.resident_warp(actor)
        if found.role != "writer" or reader is None:
            return False
        return self._happens_before.has_observed_actor(reader, self._happens_before.actor(warp), 1)

    def _half_ordered(self, warp: int, actor: int) -> str:
        """Which side of a flag lacks its CTA's barrier, where other warps of the two CTAs have synchronized by it:
        "release", "acquire", or empty.
        """
        order = self._happens_before
        first, own = actor - actor % order.warps, warp - warp % order.warps
        if any(order.has_observed_actor(warp, each, 1) for each in range(first, first + order.warps) if each != actor):
            return "release"
        others = (each for each in range(own, own + order.warps) if each != warp)
        return "acquire" if any(order.has_observed_actor(each, actor, 1) for each in others) else ""

    def note(
        self,
        events: Events,
        offsets: NDArray[np.int64],
        actors: NDArray[np.int64],
        size: int,
        statement: Statement,
        what: str,
    ) -> None:
        """Accesses of `size` bytes by `actors` at these offsets race with these events: all arrays are (accesses,)."""
        kinds, plain = self.kind[events], (self.operation[events] == 0) & (self.clock[events] != PENDING)
        for kind in np.unique(kinds[plain]).tolist():
            chosen, (earlier, done) = plain & (kinds == kind), self._kinds[kind]
            at, before = offsets[chosen], self.actor[events[chosen]]
            if what == "load" and done in STORES:
                decides = decides_again(earlier)
                self._raced.add(statement, "global", size, at, before, actors[chosen], decides=decides)
            elif done == "load" and what in STORES:
                decides = decides_again(statement)
                self._raced.add(earlier, "global", size, at, actors[chosen], before, decides=decides)

    def _raced_load(self, event: int, what: str, statement: Statement) -> int | None:
        """The line of the weak load of a race with a store, if a rerun may judge it."""
        earlier, done = self.kind_of(event)
        load = statement if what == "load" and done in STORES else None
        if done == "load" and what in STORES:
            load = earlier
        return load.line if load is not None and self._raced.may_judge(load) else None

    def _race(self, warp: int, event: int, what: str, statement: Statement, *, equal: bool) -> tuple[Hashable, ...]:
        """What makes races the same."""
        per_cta = self._happens_before.warps
        same = int(self.actor[event]) // per_cta == self._happens_before.actor(warp) // per_cta
        return id(statement), what, int(self.kind[event]), same, equal

    def _flag(self, warp: int, event: int, what: str, statement: Statement, address: int | None) -> FlagRace:
        """What a race has to do with a flag."""
        order, (earlier, kind) = self._happens_before, self.kind_of(event)
        found = Party(order.actor(warp), order.clock(warp), statement, what)
        other = Party(int(self.actor[event]), int(self.clock[event]), earlier, kind)
        if found.actor // order.warps == other.actor // order.warps:
            scope = "cta"
        else:
            scope = "cluster" if found.actor // order.members == other.actor // order.members else "gpu"
        return self._flags.race(warp, found, other, address, scope)

    def count_known(
        self, warps: NDArray[np.int64], events: NDArray[np.int64], statement: Statement, what: str, *, equal: bool
    ) -> NDArray[np.bool_] | None:
        """Count races of warps with events that say nothing new to the findings that say the same, and give which are
        left to `report`; None: all are.
        """
        if not self._repeated:
            return None
        per_cta = self._happens_before.warps
        actors, mine, kinds = self.actor[events], self._happens_before.actors(warps), self.kind[events]
        same = actors // per_cta == mine // per_cta
        plain = (self.operation[events] == 0) & (self.clock[events] != PENDING)
        fresh = np.ones(len(events), np.bool_)
        for kind, here in {*zip(kinds.tolist(), same.tolist(), strict=True)}:
            race = (id(statement), what, kind, here, equal)
            fence = ("release", *race)
            if self._repeated.is_known(race) or self._repeated.is_known(fence, _SEARCHES):
                chosen = plain & (kinds == kind) & (same == here)
                fresh &= ~chosen
                known = race if self._repeated.is_known(race) else fence
                self._repeated.count(known, {*actors[chosen].tolist(), *mine[chosen].tolist()})
        return fresh

    def _excuse(self, what: str, found: Access, earlier: str, other: Access) -> str:
        """Why a load and an atomic operation, or a strong store, are but advice; empty if they are not."""
        for load, loads, strong, changes in ((what, found, earlier, other), (earlier, other, what, found)):
            if load == "load" and strong in ("atomic operation", "strong store"):
                return self._cas_loops.excuse(loads.line, changes.line)
        return ""

    def _add(self, count: int, statement: Statement, what: str) -> int:
        if self._used > _MANY:
            self._findings.leave_out(f"races of global accesses that lie more than {_MANY:,} apart")
            for places in self.of_threads:
                places.clear()
            self.copy_writer[:] = self.copy_reader[:] = 0
            self.reductions.clear()
            self._last.clear()
            self._before, self._used = self._before + self._used, 1
        first, self._used = self._used, self._used + count
        while self._used > len(self.actor):
            for name in ("actor", "clock", "lanes", "kind", "operation"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
        key = (id(statement), what)
        if key not in self._numbers:
            self._numbers[key] = len(self._kinds)
            self._kinds.append(Kind(statement, what))
        self.kind[first : self._used] = self._numbers[key]
        return first
