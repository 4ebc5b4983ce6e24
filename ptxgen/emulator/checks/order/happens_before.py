"""The vector clocks of all warps: what happens before what each of them does next.

Each warp counts its own synchronizations. Its vector clock has the latest such count that it has acquired from every
warp of its cluster, and through global memory from warps of other clusters, and the asynchronous operations whose
completion it has observed. Two accesses to the same bytes, one of them a write, race if the earlier one does not happen
before the later one. An asynchronous operation takes the vector clock of the thread that issues it; its completion is
observed through the mbarrier that it signals.

Clocks are kept by warp: what one lane acquires its warp acquires, except that lanes which have not waited themselves
acquire it when the lanes of the warp next synchronize. The trackers of accesses query this module, which does not
depend on them; those that follow synchronization itself are its listeners (`attach`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ptxgen.device.report import Access, Role
from ptxgen.emulator.arrays import all_set, any_set, count_nonzero
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.order.listener import OrderListener
from ptxgen.emulator.checks.order.mbarrier_scope import ClusterScope, Narrow, Scopes
from ptxgen.emulator.checks.order.partial_release import ALL
from ptxgen.emulator.checks.order.relaxed_arrivals import RelaxedArrivals
from ptxgen.emulator.checks.order.remote_clocks import ClusterEpoch, RemoteClocks
from ptxgen.emulator.checks.order.strong_history import StrongRecord
from ptxgen.emulator.checks.order.vector_clock import AsyncOperation, VectorClock
from ptxgen.emulator.checks.order.warp_sync import Lag
from ptxgen.emulator.engines.work import GENERIC, AsyncWork
from ptxgen.emulator.observer import Lanes, Observer, handlers
from ptxgen.emulator.state.convergence import flags_of
from ptxgen.emulator.state.signals import Signal
from ptxgen.syntax import Instruction, Statement

#: Observed operations of a warp beyond which those that every warp has observed are dropped.
_MANY = 256
_OPERATIONS = attrgetter("operations")


class MadeBarrier(Protocol):
    """What happens-before needs of an mbarrier: which warp initialized it, in which interval, and the init's number."""

    made_by: int
    made_at: int
    number: int


class _VectorClocks(dict[int, VectorClock]):
    """The vector clocks of warps, each made when it is first needed."""

    def __init__(self, make: Callable[[int], VectorClock]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, warp: int) -> VectorClock:
        made = self[warp] = self._make(warp)
        return made


class HappensBefore(Observer):
    """Happens-before of all resident CTAs.

    - `slots`: CTA slots, each of `warps` warps, in clusters of `size` CTAs.
    - `clusters`: clusters of the grid; None: no more than are resident.
    """

    def __init__(self, slots: int, warps: int, size: int, findings: Findings, *, clusters: int | None = None) -> None:
        #: Warps of a CTA, CTAs of a cluster, warps of a cluster: clocks are by warp of the cluster.
        self.warps, self.size, self.members = warps, size, warps * size
        self._findings = findings
        #: The instructions of threads that have accessed shared memory, by line.
        self.statements: dict[int, Statement] = {}
        self.operations: dict[int, AsyncOperation] = {}
        #: Numbers of the pending tcgen05 operations.
        self._tensor_operations: set[int] = set()
        self._inits: set[int] = set()
        #: In which intervals the warps of a warpgroup, by the first of them, were when they issued each MMA.
        self._mmas: dict[int, list[tuple[int, ...]]] = {}
        #: True if strong loads may return stale values (`stale_loads`).
        self.sequences = False
        #: The clocks that each warp has acquired of the warps of its cluster; `observed[warp].clocks` is a row of it.
        self.clocks = np.zeros((slots * warps, self.members), np.int64)
        #: The number of each resident cluster, unique in the launch: the names of warps contain it.
        self._clusters = np.arange(slots // size)
        #: True if the grid has more clusters than are resident, so that clusters follow each other in a slot.
        self._follow = clusters is not None and clusters > len(self._clusters)
        #: The same as a list; and of each cluster that has begun, by number, its slot.
        self._numbers, self._slots = self._clusters.tolist(), self._clusters.tolist()
        #: The clusters whose clocks somebody has asked for, by number.
        self._epochs: dict[int, ClusterEpoch] = {}
        self.scopes = ClusterScope(self.clocks)
        self.observed = _VectorClocks(lambda warp: VectorClock(self.epoch(warp), self.clocks[warp]))
        #: By warp: the clock that its last releasing fence covers; relaxed arrivals publish this clock.
        self.released: dict[int, VectorClock] = {}
        #: By warp whose last releasing fence has scope .cta: the clock that its wider fences cover.
        self._released_wide: dict[int, VectorClock] = {}
        #: The clocks of each warp, its own included, at its last fence.proxy.async.
        self.fenced = np.zeros((slots * warps, self.members), np.int64)
        #: By warp, its intervals that a fence.proxy.async has ended.
        self._proxy_fences: defaultdict[int, list[int]] = defaultdict(list)
        #: The warps whose stores to the heap some fence.proxy.async has covered, and up to which interval.
        self._fenced_in_global: RemoteClocks | None = None
        #: By signal of asynchronous work: the clock that a wait for it acquires.
        self.given: WeakKeyDictionary[Signal, VectorClock] = WeakKeyDictionary()
        self.strong = StrongRecord(self, slots * warps)
        self.relaxed = RelaxedArrivals(self, slots * warps)
        #: Each warp's own clock when its lanes last synchronized.
        self._lanes_converged = np.zeros(slots * warps, np.int64)
        #: Warps with only some lanes past a wait: warp -> (vector clock of the other lanes, lanes past the wait).
        self._partly: dict[int, tuple[VectorClock, NDArray[np.bool_]]] = {}
        #: By warp of `_partly`: the lanes (32) that have since exchanged values with a lane that acquired.
        self._handed: dict[int, NDArray[np.bool_]] = {}
        #: By warp, the lanes (32) that have acquired something by a strong load since the warp's lanes converged.
        self._acquiring: dict[int, NDArray[np.bool_]] = {}
        self.attach()
        every = np.arange(slots * warps)
        self.clocks[every, every % self.members] = 1
        self.lanes_converge(every)

    def attach(self, *listeners: OrderListener) -> None:
        """Notify these of synchronization from now on."""
        notify = handlers(OrderListener, listeners)
        self._released, self._intervals_end = notify["released"], notify["intervals_end"]
        self._converged, self._groups_converged = notify["converged"], notify["groups_converged"]
        self._proxy_fenced, self._keep_alive = notify["proxy_fenced"], notify["keep_alive"]
        self._retired = notify["retired"]

    def _begin(self, slot: int) -> None:
        """A cluster becomes resident."""
        self._clusters[slot] = self._numbers[slot] = len(self._slots)
        self._slots.append(slot)

    def lives(self, cta: int) -> bool:
        """Whether a CTA's cluster, whose number is that of its warps' names by the warps of a CTA, has not ended."""
        number = cta // self.size
        return self._numbers[self._slots[number]] == number

    def epoch(self, warp: int) -> ClusterEpoch:
        """The cluster of a warp."""
        return self.epoch_of(self.actor(warp))

    def epoch_of(self, actor: int) -> ClusterEpoch:
        """The cluster of a warp by its name among `actors`."""
        number = actor // self.members
        found = self._epochs.get(number)
        if found is None:
            slot, slots = self._slots[number], len(self._numbers)
            found = self._epochs[number] = ClusterEpoch.begin(number, slot, slots, shared=self._follow)
        return found

    def warps_of(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """The warps of the CTAs in some slots."""
        return (slots[:, None] * self.warps + np.arange(self.warps)).ravel()

    def _forget(self, slots: NDArray[np.int64]) -> None:
        """Threads begin with empty vector clocks, in a new interval: counts go on, since others may still have them."""
        warps = self.warps_of(slots)
        member = warps % self.members
        clocks = self.clocks[warps, member] + 1
        self.clocks[warps] = 0
        self.clocks[warps, member] = clocks
        self.scopes.forget(warps)
        for warp in warps.tolist():
            self.observed.pop(warp, None)
        for table in (self.released, self._released_wide, self._mmas):
            if table:
                for warp in warps.tolist():
                    table.pop(warp, None)
        self.lanes_converge(warps)

    def slots_reused(self, slots: NDArray[np.int64]) -> None:
        for slot in slots.tolist():
            if slot % self.size == 0:
                self._begin(slot // self.size)
        self._forget(slots)
        gone = set(slots.tolist())
        self.relaxed.clear(gone)
        self.fenced[self.warps_of(slots)] = 0
        for warp in self.warps_of(slots).tolist():
            self._proxy_fences.pop(warp, None)
        for number in [n for n, operation in self.operations.items() if operation.slot in gone]:
            del self.operations[number]
        self._tensor_operations &= self.operations.keys()

    def clock(self, warp: int) -> int:
        """The interval in which a warp is: how often it has synchronized."""
        return int(self.observed[warp].clocks[warp % self.members])

    def actors(self, warps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Names of these warps now, which no warp of a later CTA in their slot has."""
        return self._clusters[warps // self.members] * self.members + warps % self.members

    def actor(self, warp: int) -> int:
        """The name of a warp, as `actors` gives it."""
        return self._numbers[warp // self.members] * self.members + warp % self.members

    def resident_warp(self, actor: int) -> int | None:
        """The warp of an actor (`actors`); None if its cluster has ended."""
        number, member = divmod(actor, self.members)
        slot = self._slots[number]
        return slot * self.members + member if self._numbers[slot] == number else None

    def has_observed(self, warp: int, other: int, clock: int) -> bool:
        """Whether a warp has acquired what another, in any slot now, did up to an interval."""
        return self.has_observed_actor(warp, self.actor(other), clock)

    def has_observed_actor(self, warp: int, actor: int, clock: int) -> bool:
        """Whether a warp has acquired what an actor did up to an interval."""
        return self.observed[warp].has_observed(self.epoch_of(actor), actor % self.members, clock)

    def unfenced_side(self, warp: int, actor: int, clock: int) -> str:
        """Which side of a strong access lacks a fence that would order this: `release`, `acquire`, or empty."""
        epoch = self.epoch_of(actor), actor % self.members, clock
        if any(each.has_observed(*epoch) for each in self.observed[warp].unacquired):
            return "acquire"
        return "release" if self.strong.would_order(warp, actor, clock) else ""

    def unfenced_side_of_operation(self, warp: int, number: int) -> str:
        """Which side lacks a fence that would order the completion of an asynchronous operation."""
        if any(number in each.operations for each in self.observed[warp].unacquired):
            return "acquire"
        return "release" if self.strong.would_order_operation(warp, number) else ""

    def narrow_side(self, warp: int, actor: int, clock: int) -> Narrow | None:
        """Which side of the mbarrier that alone orders a warp after what another of its cluster did up to an interval
        has too narrow a scope; None: neither, or nothing orders them.
        """
        if self.epoch_of(actor) is not self.epoch(warp):
            return None
        wide, member = self.scopes.wide(warp, self.warps), actor % self.members
        if wide is None or not int(wide[0, member]) < clock <= int(self.clocks[warp, member]):
            return None
        return "wait" if int(wide[1, member]) >= clock else "arrival"

    def flags(self, warp: int, actor: int, clock: int) -> frozenset[int]:
        """The lines of the strong accesses that would order what another warp did before a warp if all released and
        acquired; of an asynchronous operation (`clock` is its number) with an actor below 0.
        """
        return self.strong.flags(warp, actor, clock)

    def intervals(self, warps: NDArray[np.int64]) -> NDArray[np.int64]:
        """The interval in which each of these warps is."""
        return self.clocks[warps, warps % self.members]

    def have_observed(
        self, warps: NDArray[np.int64], actors: NDArray[Any], clocks: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Where warps have acquired others of their own cluster up to these intervals."""
        inside = actors // self.members == self._clusters[warps // self.members]
        return inside & (self.clocks[warps, actors % self.members] >= clocks)

    def party(
        self, role: Role, line: int, warp: int, member: int, address: int | None = None, lanes: int | None = None
    ) -> Access:
        """An earlier access to shared memory, of an instruction's line, by warp `member` of the cluster of `warp`."""
        other = warp - warp % self.members + member
        found = self._findings.access(
            role, self.statements.get(line), other, lanes=lanes, space="shared", address=address
        )
        return found if found.line is not None else replace(found, line=line or None)

    def of_cta(self, slot: int, clocks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The clocks of a slot's own warps, of those of its cluster."""
        first = slot % self.size * self.warps
        return clocks[first : first + self.warps]

    def member_name(self, warp: int, member: int) -> str:
        """A warp of a cluster, as another (`warp`) of it sees it."""
        rank, warp_id = divmod(member, self.warps)
        own = warp % self.members // self.warps
        return f"warp {warp_id}" if rank == own else f"warp {warp_id} of the CTA of rank {rank}"

    # Synchronization.

    def release(self, warp: int, lanes: int = ALL) -> VectorClock:
        """What lanes (bits) of a warp release now; its later accesses are not part of it."""
        self._released(warp, lanes)
        return self._give(warp)

    def release_covered(self, warp: int, lanes: int) -> None:
        """As `release`, where only what fences have covered is published."""
        self._released(warp, lanes)
        self.end_interval(warp)

    def _give(self, warp: int) -> VectorClock:
        given = self.publish(warp)
        self._intervals_end([warp])
        return given

    def publish(self, warp: int) -> VectorClock:
        """What an operation that a warp issues now publishes; what the warp does later is not part of it."""
        given = self.observed[warp].copy()
        self.observed[warp].clocks[warp % self.members] += 1
        return given

    def end_interval(self, warp: int) -> None:
        """As `end_intervals` of one warp."""
        self.observed[warp].clocks[warp % self.members] += 1
        self._intervals_end([warp])

    def end_intervals(self, warps: NDArray[np.int64]) -> None:
        """What these warps do next is not part of what they have published."""
        self.clocks[warps, warps % self.members] += 1
        self._intervals_end(warps.tolist())

    def release_fence(self, warp: int, lanes: int, *, wide: bool) -> None:
        """A fence that releases, by lanes (bits): relaxed operations after it publish what comes before it, to other
        CTAs if its scope is `wide` enough.
        """
        if wide:
            self._released_wide.pop(warp, None)
        elif warp not in self._released_wide:
            self._released_wide[warp] = self.released.pop(warp, None) or self._nothing(warp)
        self.released[warp] = self.release(warp, lanes)

    def released_to_peers(self, warp: int) -> VectorClock | None:
        """What fences of a warp cover whose scope includes the other CTAs of its cluster."""
        return self._released_wide.get(warp) or self.released.get(warp)

    def _fenced_by(self, warp: int) -> list[VectorClock]:
        """What fences of a warp cover, to add to it."""
        if warp not in self.released:
            self.released[warp] = self._nothing(warp)
        wide = self._released_wide.get(warp)
        return [self.released[warp]] if wide is None else [self.released[warp], wide]

    def _nothing(self, warp: int) -> VectorClock:
        """An empty vector clock of a warp."""
        return VectorClock(self.observed[warp].epoch, np.zeros(self.members, np.int64))

    def release_inits(self, warp: int, numbers: Sequence[int]) -> None:
        """fence.mbarrier_init: relaxed operations after it publish these inits."""
        for given in self._fenced_by(warp):
            given.operations.update(numbers)
        self.acquire_operations(warp, numbers)

    def has_observed_init(self, warp: int, made: MadeBarrier) -> bool:
        """Whether an mbarrier's init happens before this point of a warp."""
        return made.number in self.observed[warp].operations or self.has_observed(warp, made.made_by, made.made_at)

    def same_warpgroup(self, warp: int, member: int) -> bool:
        """Whether a warp of the cluster (`member`) belongs to the warpgroup of another."""
        own, other = divmod(warp % self.members, self.warps), divmod(member, self.warps)
        return own[0] == other[0] and own[1] // 4 == other[1] // 4

    def before_mma(self, warp: int, observed: VectorClock, member: int, clock: int) -> bool:
        """Whether `observed`, the clock of a warp of this cluster, is after an MMA that the warpgroup of `member`
        issued once `member` was past interval `clock`: after it in time, if not in the memory model.
        """
        first = member - member % self.warps % 4
        mmas = self._mmas.get(warp - warp % self.members + first, [])
        for each, after in enumerate(observed.clocks[first : first + 4].tolist()):
            count = bisect_left(mmas, after, key=lambda clocks: clocks[each])
            if count and mmas[count - 1][member - first] >= clock:
                return True
        return False

    def has_observed_init_fence(self, warp: int, made: MadeBarrier) -> bool:
        """Whether a fence that publishes an mbarrier's init to the async proxy happens before this point of a warp."""
        return made.number in self.observed[warp].operations

    def acquire(
        self, warp: int, given: VectorClock, lanes: NDArray[np.bool_] | None = None, scopes: Scopes | None = None
    ) -> None:
        """A warp acquires what was released to it; or some of its lanes do, and the others when they next synchronize.
        `scopes` is the part of it that scopes include.
        """
        if len(given.operations) > _MANY:
            given.operations.intersection_update(self.operations.keys() | self._inits)
        observed = self.observed[warp]
        if lanes is not None and count_nonzero(lanes) < len(lanes):
            self._acquire_partly(warp, lanes)
        elif warp in self._partly:
            self._partly[warp][0].join(given)
        if given.epoch is observed.epoch:
            self.scopes.acquired(warp, given.clocks, scopes)
        observed.join(given)
        if given.epoch is observed.epoch and given.clocks[warp % self.members] >= self._lanes_converged[warp]:
            alone = np.array([warp])  # through a warp that has acquired its clock since
            self._converged(alone, self.intervals(alone))
        if len(observed.operations) > _MANY:
            self._retire(warp // self.members)

    def _acquire_partly(self, warp: int, lanes: NDArray[np.bool_]) -> None:
        """Some lanes of a warp are about to acquire something."""
        before = self._partly.get(warp)
        self._handed.pop(warp, None)
        if before is None:
            self._partly[warp] = self.observed[warp].copy(), lanes.copy()
        else:
            np.logical_or(before[1], lanes, out=before[1])
            if count_nonzero(before[1]) == len(lanes):
                del self._partly[warp]

    def lanes_catch_up(self, warp: int, lanes: NDArray[np.bool_]) -> None:
        """Lanes of a warp acquire by a strong load: they have then observed what others of it have, as polls repeat.

        Which of it they have acquired is not known apart: a race may be missed.
        """
        before = self._acquiring.get(warp)
        self._acquiring[warp] = lanes.copy() if before is None else before | lanes
        partly = self._partly.get(warp)
        if partly is not None:
            np.logical_or(partly[1], lanes, out=partly[1])
            if count_nonzero(partly[1]) == len(lanes):
                del self._partly[warp]

    def acquire_operations(self, warp: int, numbers: Sequence[int], lanes: NDArray[np.bool_] | None = None) -> None:
        """Lanes, (32), observe that these operations are complete; None stands for all lanes of the warp."""
        fresh = set(numbers) - self.observed[warp].operations
        if fresh and lanes is not None and not all_set(lanes):
            self._acquire_partly(warp, lanes)
        elif warp in self._partly:
            self._partly[warp][0].operations.update(numbers)
        self.observed[warp].operations |= fresh

    def lanes_exchange(self, warps: NDArray[np.int64], lanes: NDArray[np.bool_], statement: Instruction) -> None:
        for position, warp in enumerate(warps.tolist()) if self._partly else ():
            partly = self._partly.get(warp)
            if partly is not None and any_set(partly[1] & lanes[position]):
                self._handed[warp] = self._handed.get(warp, partly[1]) | lanes[position]

    def lag(self, warp: int, lanes: NDArray[np.bool_] | None = None) -> Lag:
        """How lanes of a warp, (32), or all that lag behind it, come to do so."""
        partly, handed = self._partly.get(warp), self._handed.get(warp)
        if partly is None:
            return "alone"
        behind = ~partly[1] if lanes is None else lanes
        if handed is not None and not any_set(behind & ~handed):
            return "handed over"
        acquiring = self._acquiring.get(warp)
        return "alone" if acquiring is None or any_set(behind & ~acquiring) else "one by one"

    def lagging(self, warp: int) -> tuple[VectorClock, NDArray[np.bool_]] | None:
        """The vector clock of lanes of a warp that have not acquired what others of it have, and these lanes: (32)."""
        partly = self._partly.get(warp)
        return None if partly is None else (partly[0], ~partly[1])

    def lagging_lanes(self, warps: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """The lanes of some warps that have not acquired what others of the same warp have: (warps, 32); None: none."""
        if not self.any_lagging(warps):
            return None
        found = np.zeros((len(warps), 32), np.bool_)
        for position, warp in enumerate(warps.tolist()):
            if warp in self._partly:
                found[position] = ~self._partly[warp][1]
        return found

    def observed_by(self, warp: int, lane: int | None) -> VectorClock:
        """The vector clock of a lane of a warp; None stands for its lanes together."""
        partly = self._partly.get(warp)
        return self.observed[warp] if partly is None or lane is None or partly[1][lane] else partly[0]

    def any_lagging(self, warps: NDArray[np.int64]) -> bool:
        """Whether lanes of some of these warps have not acquired what others of the same warp have."""
        return bool(self._partly) and not self._partly.keys().isdisjoint(warps.tolist())

    def lanes_converge(self, warps: NDArray[np.int64], *, released: bool = False) -> None:
        """The lanes of each of these warps synchronize: all have observed what some had. With `released` the warps have
        just released that to each other, in the interval before.
        """
        self._lanes_converge(warps, self.intervals(warps), released=released)

    def _lanes_converge(self, warps: NDArray[np.int64], now: NDArray[np.int64], *, released: bool) -> None:
        """The same of warps in these intervals."""
        self._converged(warps, now - released)
        self._lanes_converged[warps] = now
        if self._acquiring:
            for warp in self._acquiring.keys() & warps.tolist():
                del self._acquiring[warp]
        if self._partly:
            for warp in self._partly.keys() & warps.tolist():
                del self._partly[warp]

    def lane_groups_converge(self, warp: int, groups: Sequence[int]) -> None:
        """Only lanes of these groups (bits) of a warp do, those of each with each other."""
        self._groups_converged(warp, groups, int(self.clocks[warp, warp % self.members]))
        partly = self._partly.get(warp)
        if partly is not None:
            for group in map(flags_of, groups):
                if any_set(partly[1] & group):
                    np.logical_or(partly[1], group, out=partly[1])
            if all_set(partly[1]):
                del self._partly[warp]

    def barrier(self, warps: list[int], given: VectorClock | None = None) -> None:
        """All warps of a CTA's barrier acquire the clocks of all, and what those released that only arrived."""
        together = self._joined(warps, given)
        clocks = np.maximum(together.clocks, np.maximum.reduce(self.clocks[warps]))
        self.end_intervals(np.array(warps))
        self.clocks[warps] = np.maximum(self.clocks[warps], clocks)
        for warp in warps:
            self.observed[warp].take(together)
        self.scopes.together(np.array(warps), given.clocks if given is not None else None)
        self.lanes_converge(np.array(warps), released=True)

    def _joined(self, warps: list[int], given: VectorClock | None = None) -> VectorClock:
        """The joined vector clocks of these warps of a cluster, and what is given, at a barrier; of the clocks of the
        cluster only some.
        """
        joined = [self.observed[warps[0]]]
        together = joined[0].copy()
        for warp in warps[1:]:
            observed = self.observed[warp]
            if any(map(observed.is_like, joined)):  # most are: one warp has acquired something
                together.operations |= observed.operations
            else:
                together.join(observed)
                joined.append(observed)
        if given is not None:
            together.join(given)
        if self.sequences and (unacquired := together.join_unacquired()) is not None:
            together.sequence(unacquired)
        return together

    def ctas_synchronize(
        self, slots: NDArray[np.int64], name: int, statement: Instruction, *, threads: int | None
    ) -> None:
        """As `barrier` for all warps of each of these CTAs."""
        warps = (slots * self.warps)[:, None] + np.arange(self.warps)
        listed = warps.reshape(-1).tolist()
        self._intervals_end(listed)
        if not self.observed.keys().isdisjoint(listed):  # else they have only the clocks of their own cluster
            self._join_rest(warps, listed)
        own = warps % self.members
        now = self.clocks[warps, own] + 1
        self.clocks[warps] = np.maximum.reduce(self.clocks[warps], axis=1, keepdims=True)
        self.clocks[warps, own] = now
        self.scopes.together(warps)
        self._lanes_converge(warps.reshape(-1), now.reshape(-1), released=True)

    def _join_rest(self, warps: NDArray[np.int64], listed: Sequence[int]) -> None:
        """The warps of each CTA (CTAs, warps), `listed` together, acquire what the others have besides clocks."""
        every = [self.observed[warp] for warp in listed]
        alike = not any(map(_OPERATIONS, every)) and all(map(every[0].is_like, every))
        for cta in warps.tolist() if not alike or (self.sequences and every[0].unacquired) else ():
            first, *others = given = [self.observed[warp] for warp in cta]
            sequences = self.sequences and first.unacquired
            if sequences or not all(map(first.is_like, others)):
                joined = self._joined(cta)
                for observed in given:
                    observed.take(joined)
                continue
            if any(map(_OPERATIONS, given)):
                together = set().union(*map(_OPERATIONS, given))
                for observed in given:
                    if len(observed.operations) < len(together):
                        observed.operations |= together

    def fence_proxy(self, warp: int, lanes: int, *, shared: bool = True, heap: bool = True) -> None:
        """fence.proxy.async by lanes (bits): the stores to shared memory, and to global memory (`heap`), that happen
        before it are visible to asynchronous operations after it.
        """
        observed = self.observed[warp]
        if shared:
            self._proxy_fenced(warp, lanes)
            self.fenced[warp] = observed.clocks
            self._proxy_fences[warp].append(int(observed.clocks[warp % self.members]))
        if heap:
            covered = self._fenced_in_global
            self._fenced_in_global = observed.outside() if covered is None else covered.joined(observed.outside())
        observed.clocks[warp % self.members] += 1

    def fenced_before(self, warp: int) -> NDArray[np.int64] | None:
        """The intervals of the warps of a warp's cluster that a fence.proxy.async of theirs has ended which happens
        before this point of it; None if all of their fences do.
        """
        first, observed = warp - warp % self.members, self.clocks[warp]
        fenced = np.diagonal(self.fenced[first : first + self.members])
        unseen = np.flatnonzero(fenced > observed)
        if not len(unseen):
            return None
        fenced = fenced.copy()
        for member in unseen.tolist():
            ended = self._proxy_fences[first + member]
            position = bisect_right(ended, int(observed[member]))
            fenced[member] = ended[position - 1] if position else 0
        return fenced

    def fenced_in_global(self, actor: int, clock: int) -> bool:
        """Whether some fence.proxy.async has covered what a warp stored to global memory in an interval."""
        covered = self._fenced_in_global
        return covered is not None and covered.has_observed(self.epoch_of(actor), actor % self.members, clock)

    def before_thread_sync(self, warp: int) -> None:
        """tcgen05.fence::before_thread_sync: relaxed arrivals after it release tcgen05 operations (9.7.16.6.4)."""
        observed = self.observed[warp]
        for given in self._fenced_by(warp):
            if self._tensor_operations:
                given.operations |= observed.operations & self._tensor_operations
            given.join_tensor(observed.epoch, observed.for_tensor_memory)
        observed.clocks[warp % self.members] += 1

    def after_thread_sync(self, warp: int, seen: VectorClock | None) -> None:
        """tcgen05.fence::after_thread_sync: of what relaxed waits have `seen`, it orders tcgen05 operations."""
        observed = self.observed[warp]
        if seen is not None:
            observed.operations |= seen.operations & self._tensor_operations
            observed.join_tensor(seen.epoch, seen.for_tensor_memory)

    def _retire(self, cluster: int) -> None:
        """Drop operations that every warp of the cluster has observed: no later access can conflict with them."""
        warps = range(cluster * self.members, (cluster + 1) * self.members)
        common = set.intersection(*(self.observed[warp].operations for warp in warps))
        common -= self._inits
        self._keep_alive(range(cluster * self.size, (cluster + 1) * self.size), common)
        for warp in warps:
            self.observed[warp].operations -= common
        self._retired(warps, common)
        for number in common:
            self.operations.pop(number, None)
        self._tensor_operations -= common

    def init(self) -> int:
        """A new number below 0 for an mbarrier's init, observed once a fence has published it to the async proxy."""
        self._inits.add(~len(self._inits))
        return -len(self._inits)

    def work_issued(self, work: AsyncWork) -> None:
        if work.what in GENERIC:
            return
        made = AsyncOperation(work.number, work.what, work.statement, work.slot, work.swizzle, work.warp, work.lane)
        self.operations[made.number] = made
        if made.what.startswith("tcgen05"):
            self._tensor_operations.add(made.number)

    def work_signals(self, work: AsyncWork, signal: Signal, offset: int) -> None:
        self.operations[work.number].mbarrier = offset
        given = self.given[signal] = self.publish(work.warp)
        given.operations.add(work.number)

    def work_awaited(self, warp: int, lanes: Lanes, works: Sequence[AsyncWork], *, reads: bool = False) -> None:
        self.acquire_operations(warp, [work.number for work in works], lanes)

    def warpgroup_issues(self, warps: Sequence[int]) -> None:
        """What comes later is in intervals of its own."""
        self._mmas.setdefault(warps[0], []).append(tuple(self.clock(warp) for warp in warps))
        for warp in warps:
            self.end_interval(warp)

    def forget(self, number: int) -> None:
        """Nothing can conflict with an operation."""
        del self.operations[number]
        self._tensor_operations.discard(number)
