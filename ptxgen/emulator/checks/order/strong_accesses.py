"""Strong accesses (volatile, relaxed, acquire, release, atomics): what they publish, and in which scope.

A release pattern on a word, seen by an acquire pattern on it, orders what came before the one before what comes after
the other (PTX ISA 8.8, 8.9.4). A strong access alone does neither: it needs .release or a fence before the store,
.acquire or a fence after the load, in a scope that includes the other thread (8.7). The order that would
hold if every strong access released and acquired decides how a conflict is reported: one that only such a flag orders
is a missing fence. What lacks an acquire is kept in `VectorClock.unacquired`; what lacks a release is searched
for when there is a conflict (`strong_history`).

A fence covers what its own thread did; that counts for a store by another thread too which bar.sync puts after it: with
fence.sc (membar.gl, __threadfence) that follows from the order of such fences (8.9.3), and hardware does the same for
the weaker ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.device.report import Access
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.order.strong_history import Accesses, Word, slot_of, slots_of
from ptxgen.emulator.checks.order.vector_clock import VectorClock
from ptxgen.emulator.checks.registry import races
from ptxgen.emulator.memory.order import CLUSTER, CTA, GPU, SCOPES, Order
from ptxgen.emulator.observer import Observer
from ptxgen.emulator.state.convergence import bits_of
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import HappensBefore
    from ptxgen.emulator.checks.order.remote_clocks import ClusterEpoch
    from ptxgen.emulator.checks.order.stale_loads import StaleLoads

#: The publications of so many warps are kept apart for a word.
_FEW = 3
#: Instead of a scope: acquired at once, and acquired by no fence.
_AT_ONCE, _NEVER = -1, GPU + 1


#: Who published something (of `HappensBefore.actors`), within which scope, and whether all that it had observed.
_Publisher = tuple[int, int, bool]
#: The width of a scope and its CTA or cluster, 0 for the GPU.
_Domain = tuple[int, int]
#: Numbers for what several have published, put together.
_TOGETHER = count(1)
_NUMBER = attrgetter("number")


class _Publication:
    """What stores of one instruction by a warp have published, within scopes; the clocks are not changed any more."""

    __slots__ = ("actor", "clock", "ctas", "domain", "number", "parts")

    def __init__(
        self,
        actor: int,
        clock: int,
        number: int,
        ctas: frozenset[int],
        parts: dict[_Publisher, tuple[_Domain, VectorClock]],
    ) -> None:
        #: The warp and its interval: a clock that includes it includes all parts. Below 0 if there are several warps.
        self.actor, self.clock = actor, clock
        #: In the order in which they came.
        self.number = number
        #: The CTAs that it comes from.
        self.ctas = ctas
        self.parts = parts
        domains = {domain for domain, _ in parts.values()}
        #: The scope of all parts, None if they are several.
        self.domain = domains.pop() if len(domains) == 1 else None

    def after(self, before: _Publication) -> _Publication:
        """This, and what the same warp has published before and not again."""
        missing = {publisher: part for publisher, part in before.parts.items() if publisher not in self.parts}
        return (
            _Publication(self.actor, self.clock, self.number, self.ctas, {**self.parts, **missing}) if missing else self
        )


#: The last publication of each warp, with all that it published before; of many warps by a number below 0.
_Published = dict[int, _Publication]


def _has(vclock: VectorClock | None, other: VectorClock) -> bool:
    """Whether one includes the other."""
    return vclock is not None and vclock.has(other) and vclock.operations >= other.operations


class _Touch(NamedTuple):
    """The last strong access to a word: by which of `HappensBefore.actors`, and in which of its intervals."""

    actor: int
    clock: int
    level: int
    writes: bool
    statement: Statement


def report_unfenced(findings: Findings, found: Access, other: Access, side: str, statement: Statement) -> None:
    """Report that only a flag or lock orders two accesses, and that one `side` of it lacks a fence.

    Without an acquire it is advice: CUDA's own samples end so, with bar.sync after an atomic operation.
    """
    does = "reads" if found.role == "reader" else "overwrites"
    where = f" {found.place}" if found.place else f" {found.space} memory"
    if side == "release":
        rule, fix = "The store of the flag does not release", "use .release, or put fence.acq_rel before that store"
    else:
        rule, fix = "The load of the flag does not acquire", "use .acquire, or put fence.acq_rel after that load"
    findings.report(
        races.MISSING_FENCE,
        statement,
        summary=f"{found} {does}{where}; only a relaxed flag orders it after {other}",
        rule=f"{rule} in a scope that includes both threads",
        fix=fix,
        accesses=(found, other),
        severity="error" if side == "release" else "advice",
        cause=frozenset([("unfenced flag", side, other.line)]),
    )


class StrongAccesses(Observer):
    """What strong stores have published, by word, and what fences of each warp cover."""

    def __init__(self, happens_before: HappensBefore, findings: Findings) -> None:
        self._happens_before, self._findings = happens_before, findings
        self._published: dict[Word, _Published] = {}
        #: By warp, what its relaxed loads since its last acquiring fence saw, by the scope that it takes and the
        #: cluster from which it comes.
        self._seen: dict[int, dict[tuple[int, ClusterEpoch], VectorClock]] = {}
        #: By warp: the last number that it has observed, but not acquired, by the scope that it takes and publisher.
        self._observed: dict[int, dict[int, dict[_Publisher, int]]] = {}
        self._number = 0
        #: The last accesses to each word, from the record up to an entry; whether they are needed, since the scope of
        #: some access does not include all threads that could reach its word.
        self._touched: dict[Word, _Touch] = {}
        self._touched_up_to = 0
        self._narrow = False
        #: Stale values that loads may return; None where nothing does.
        self.stale: StaleLoads | None = None

    def slots_reused(self, slots: NDArray[np.int64]) -> None:
        gone = set(slots.tolist())
        for word in [word for word in self._published if slot_of(word) in gone]:
            del self._published[word]
        self._happens_before.strong.clear(gone)
        for warp in self._happens_before.warps_of(slots).tolist() if self._seen or self._observed else ():
            self._seen.pop(warp, None)
            self._observed.pop(warp, None)
        if self.stale is not None:
            self.stale.clear(gone)

    # Fences.

    def release_fence(self, warp: int, level: int) -> None:
        """A fence that releases, after `HappensBefore.release_fence`."""
        covered = self._happens_before.released[warp].certain()
        for within in range(level + 1):
            self._happens_before.observed[warp].cover(within, covered)

    def acquire_fence(self, warp: int, level: int) -> None:
        """A fence that acquires: it synchronizes with the releases that relaxed loads before it have read.

        Also with those read by other warps that bar.sync orders before it.
        """
        seen = self._happens_before.observed[warp].unacquired
        if level == GPU and seen is not None:
            self._happens_before.acquire(warp, seen)
            self._happens_before.observed[warp].unacquired = None
        seen = self._seen.get(warp, {})
        for each in [each for each in seen if each[0] <= level]:
            self._happens_before.acquire(warp, seen.pop(each))

    def sequence_fence(self, warp: int, level: int) -> None:
        """A fence .sc, after it has acquired and before it releases."""
        if self.stale is not None:
            self.stale.fence(warp, [(within, self._domain(warp, within)) for within in range(level + 1)])

    # Accesses.

    def together(
        self,
        warps: NDArray[np.int64],
        positions: NDArray[np.int64],
        words: NDArray[np.int64],
        order: Order,
        statement: Statement,
        *,
        reads: bool,
        writes: bool,
    ) -> bool:
        """Lanes make strong loads (`reads`), stores (`writes`) or atomic operations (both; red only writes) in one
        instruction, one after the other: those of `warps[positions]`, which ascend. A warp may come several times.

        False where `access` must follow for each warp, since something is published or observed, or is stored where
        loads may return stale values.
        """
        made = self._happens_before.strong.add(
            warps, positions, words, order.level, statement, reads=reads, writes=writes
        )
        self._touch(warps, made)
        if writes and self.stale is not None:
            return False
        vclock = self._happens_before.observed
        if writes and (order.releases or any(vclock[warp].covered for warp in warps.tolist())):
            return False
        if reads and self._published and not self._published.keys().isdisjoint(words.tolist()):
            return False
        if writes:
            self._happens_before.end_intervals(warps)
        return True

    def access(
        self, warp: int, words: Sequence[Word], order: Order, lanes: NDArray[np.bool_], *, reads: bool, writes: bool
    ) -> None:
        """Lanes (32) of a warp make the strong accesses that `together` has recorded, to different words: all read
        before any writes.

        What all stores to a word have published counts, also where a load returns a stale value.
        """
        if reads:
            if order.acquires:
                self._happens_before.lanes_catch_up(warp, lanes)
            self._observe(warp, words, order, lanes)
        if writes:
            self._publish(warp, words, order, lanes, acquired=reads and order.acquires)

    def _domain(self, warp: int, within: int) -> int:
        """Which CTA or cluster the scope is, as this warp sees it."""
        actor = self._happens_before.actor(warp)
        return (actor // self._happens_before.warps, actor // self._happens_before.members, 0)[within]

    def _publish(
        self, warp: int, words: Sequence[Word], order: Order, lanes: NDArray[np.bool_], *, acquired: bool
    ) -> None:
        """What comes before a store is published with the word: all of it if it releases, else what fences cover.

        What a warp that releases has itself observed need not be published by others too; `acquired`: it has just
        acquired that.
        """
        if not order.releases and not self._happens_before.observed[warp].covered:
            self._happens_before.end_intervals(np.array([warp]))
            return
        actor, clock, everything = (
            self._happens_before.actor(warp),
            self._happens_before.clock(warp),
            self._happens_before.release(warp, int(bits_of(lanes))),
        )
        self._number += 1
        parts = self._given(warp, order, everything)
        if not parts:
            return
        publication = _Publication(actor, clock, self._number, frozenset([self._domain(warp, CTA)]), parts)
        domain = order.level, self._domain(warp, order.level)
        redundant: dict[_Publication, bool] = {}  # most words have the same
        mine = self._happens_before.observed[warp]
        for word in words:
            published = self._published.get(word)
            if published is None:
                self._published[word] = {actor: publication}
                continue
            if order.releases:
                for each in published.values():
                    if each not in redundant:
                        redundant[each] = each.domain == domain and (acquired or self._has_observed(each, mine))
                published = {publisher: each for publisher, each in published.items() if not redundant[each]}
                self._published[word] = published
            before = published.get(actor)
            published[actor] = (
                publication
                if before is None or before.parts.keys() <= publication.parts.keys()
                else publication.after(before)
            )
            if len(published) > _FEW:
                self._published[word] = self._together(published)

    def _together(self, published: _Published) -> _Published:
        """The same as of one publisher in each scope, of and for those CTAs that are still resident."""
        joined: dict[_Domain, VectorClock] = {}
        ctas: set[int] = set()
        for publication in published.values():
            ctas |= publication.ctas
            for domain, vclock in publication.parts.values():
                if domain in joined:
                    joined[domain].join(vclock)
                elif self._lives(domain):
                    joined[domain] = vclock.copy()
        parts: dict[_Publisher, tuple[_Domain, VectorClock]] = {
            (-next(_TOGETHER), GPU, False): (domain, vclock) for domain, vclock in joined.items()
        }
        actor = -next(_TOGETHER)
        return {actor: _Publication(actor, 0, self._number, frozenset(filter(self._happens_before.lives, ctas)), parts)}

    def _lives(self, domain: _Domain) -> bool:
        """Whether a thread within a scope may yet observe it."""
        within, number = domain
        return within == GPU or self._happens_before.lives(
            number * (self._happens_before.size if within == CLUSTER else 1)
        )

    def _given(self, warp: int, order: Order, everything: VectorClock) -> dict[_Publisher, tuple[_Domain, VectorClock]]:
        """What a store publishes, by scope."""
        if order.releases:
            published = {order.level: everything}
        else:
            published = {within: vclock for within, vclock in everything.covered.items() if within <= order.level}
            published = {
                within: vclock
                for within, vclock in published.items()
                if within == GPU or not _has(published.get(GPU), vclock)
            }
        actor = self._happens_before.actor(warp)
        return {
            (actor, within, vclock is everything): ((within, self._domain(warp, within)), vclock)
            for within, vclock in published.items()
        }

    def _observe(self, warp: int, words: Sequence[Word], order: Order, lanes: NDArray[np.bool_]) -> None:
        """What was published with the words is acquired if the access acquires; else by a later fence, or never."""
        publications = {
            publication
            for published in map(self._published.get, words)
            if published
            for publication in published.values()
        }
        if not publications:
            return
        own, mine = self._happens_before.actor(warp), self._happens_before.observed[warp]
        cta, cluster = own // self._happens_before.warps, own // self._happens_before.members
        domains = {CTA: cta, CLUSTER: cluster, GPU: 0}
        #: What the warp acquires now or would acquire, by the scope that this requires.
        together: dict[int, VectorClock] = {}
        observed, publishers = self._observed.setdefault(warp, {}), set[_Publisher]()
        for publication in sorted(publications, key=_NUMBER, reverse=True):
            needed = CTA if cta in publication.ctas else self._needed(cta, publication.ctas)
            enough = (
                _AT_ONCE if order.acquires and needed <= order.level else needed if needed <= order.level else _NEVER
            )
            fresh: list[VectorClock] = []
            for publisher, ((within, number), vclock) in publication.parts.items():
                if domains[within] != number or publisher in publishers:
                    continue
                publishers.add(publisher)  # the newest that it published with these words
                if enough != _AT_ONCE:
                    numbers = observed.setdefault(enough, {})
                    if numbers.get(publisher, 0) >= publication.number:
                        continue
                    numbers[publisher] = publication.number
                fresh.append(vclock)
            if not fresh or (publication.actor != own and self._has_observed(publication, mine, together.get(enough))):
                continue
            for vclock in fresh:
                if enough == _AT_ONCE:
                    self._happens_before.acquire(warp, vclock, lanes)
                elif enough in together:
                    together[enough].join(vclock)
                else:
                    together[enough] = vclock.copy()
        for enough, vclock in sorted(together.items(), key=lambda each: each[0]):
            if enough != _NEVER:
                seen = self._seen.setdefault(warp, {})
                if (before := seen.get((enough, vclock.epoch))) is None:
                    seen[enough, vclock.epoch] = vclock.copy()
                else:
                    before.join(vclock)
            mine.add_unacquired(vclock.certain() if vclock.apart else vclock)

    def _has_observed(self, publication: _Publication, vclock: VectorClock, others: VectorClock | None = None) -> bool:
        """Whether a warp with this clock, or `others` that it observes too, has already observed a publication of a
        warp that still runs.
        """
        happens_before, actor = self._happens_before, publication.actor
        if actor < 0 or not happens_before.lives(actor // happens_before.warps):
            return False
        epoch = happens_before.epoch_of(actor), actor % happens_before.members, publication.clock
        return vclock.has_observed(*epoch) or (others is not None and others.has_observed(*epoch))

    def _needed(self, cta: int, others: frozenset[int]) -> int:
        """The least scope that includes a CTA and one of others, which it is not."""
        size = self._happens_before.size
        return CLUSTER if size > 1 and any(other // size == cta // size for other in others) else GPU

    def _touch(self, warps: NDArray[np.int64], made: Accesses) -> None:
        """Two strong accesses of which one writes race unless the scope of each includes the other's thread (8.7)."""
        if not self._narrow:
            others = CTA if self._happens_before.size == 1 else CLUSTER
            self._narrow = made.level < others or (made.level < GPU and bool((slots_of(made.words) < 0).any()))
            if not self._narrow:
                return
        for entry in self._happens_before.strong.since(self._touched_up_to):
            if isinstance(entry, Accesses):
                self._touch_words(entry, warps.tolist() if entry is made else None)
            else:
                for word in [word for word in self._touched if slot_of(word) == entry]:
                    del self._touched[word]
        self._touched_up_to = self._happens_before.strong.end

    def _touch_words(self, accesses: Accesses, warps: Sequence[int] | None) -> None:
        """Without `warps`, of accesses in the past, which do not race with each other."""
        happens_before, touched, level, statement = (
            self._happens_before,
            self._touched,
            accesses.level,
            accesses.statement,
        )
        per_cta = happens_before.warps
        for position, actor in enumerate(accesses.actors):
            now = _Touch(actor, accesses.clocks[position], level, accesses.writes, statement)
            for word in accesses.of(position):
                before = touched.get(word)
                touched[word] = now
                if warps is None or before is None or before.actor // per_cta == actor // per_cta:
                    continue
                needed = CLUSTER if before.actor // happens_before.members == actor // happens_before.members else GPU
                narrow = min(level, before.level)
                if narrow >= needed or not (accesses.writes or before.writes):
                    continue
                warp = warps[position]
                if not happens_before.has_observed_actor(warp, before.actor, before.clock):
                    found, earlier = self._parties(warp, word, accesses, before)
                    shown = f", {found.place}" if found.place else ""
                    narrower = "this access" if level == narrow else f"the access of line {before.statement.line}"
                    self._findings.report(
                        races.NARROW_SCOPE,
                        statement,
                        summary=f"{found} and {earlier} access the same word{shown}",
                        rule=f"They race: the scope of {narrower} is .{SCOPES[narrow]}, which does not include the "
                        "other thread",
                        fix=f"use .{SCOPES[needed]} for both",
                        accesses=(found, earlier),
                    )

    def _parties(self, warp: int, word: Word, accesses: Accesses, before: _Touch) -> tuple[Access, Access]:
        """A warp's strong access to a word, and the one before it."""
        slot = slot_of(word)
        space, address = ("shared", word & 0xFFFFFFFF) if slot >= 0 else ("global", word)
        found = self._findings.access(
            "writer" if accesses.writes else "reader", accesses.statement, warp, space=space, address=address
        )
        other = self._happens_before.resident_warp(before.actor)
        role = "writer" if before.writes else "reader"
        return found, self._findings.access(role, before.statement, other, space=space, address=address)
