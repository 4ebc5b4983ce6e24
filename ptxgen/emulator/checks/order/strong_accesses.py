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

from collections.abc import Hashable, Sequence
from itertools import count, repeat
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.device.report import Access
from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.findings import Findings, line_list
from ptxgen.emulator.checks.messages.kernel_text import KernelText
from ptxgen.emulator.checks.messages.repeated import Repeated
from ptxgen.emulator.checks.order.strong_history import Accesses, Word, slot_of, slots_of
from ptxgen.emulator.checks.order.vector_clock import VectorClock
from ptxgen.emulator.checks.registry import races
from ptxgen.emulator.memory.order import CLUSTER, CTA, GPU, SCOPES, Order
from ptxgen.emulator.observer import Observer
from ptxgen.syntax import Instruction, Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import HappensBefore
    from ptxgen.emulator.checks.order.remote_clocks import ClusterEpoch
    from ptxgen.emulator.checks.order.stale_loads import StaleLoads

#: The publications of so many warps are kept apart for a word.
_FEW = 6
#: Instead of a scope: acquired at once, and acquired by no fence.
_AT_ONCE, _NEVER = -1, GPU + 1


#: Who published something (of `HappensBefore.actors`), within which scope, and whether all that it had observed.
_Publisher = tuple[int, int, bool]
#: The width of a scope and its CTA or cluster, 0 for the GPU.
_Domain = tuple[int, int]
#: Published clocks by publisher.
_Parts = dict[_Publisher, tuple[_Domain, VectorClock]]
#: Numbers for what several have published, put together.
_TOGETHER = count(1)
_NUMBER = attrgetter("number")


class Publication:
    """What stores of one instruction by a warp have published, within scopes; the clocks are not changed any more."""

    __slots__ = ("actor", "clock", "ctas", "domain", "number", "parts")

    def __init__(
        self,
        actor: int,
        clock: int,
        number: int,
        ctas: frozenset[int],
        parts: _Parts,
    ) -> None:
        #: The warp and its interval: a clock that includes it includes all parts. Below 0 if there are several warps.
        self.actor, self.clock = actor, clock
        #: In the order in which they came.
        self.number = number
        #: The CTAs that it comes from.
        self.ctas = ctas
        self.parts = parts
        domains = [domain for domain, _ in parts.values()]
        #: The scope of all parts, None if they are several.
        self.domain = domains[0] if domains and domains.count(domains[0]) == len(domains) else None

    def after(self, before: Publication) -> Publication:
        """This, and what the same warp has published before and not again."""
        missing = {publisher: part for publisher, part in before.parts.items() if publisher not in self.parts}
        return (
            Publication(self.actor, self.clock, self.number, self.ctas, {**self.parts, **missing}) if missing else self
        )


#: The last publication of each warp, with all that it published before; of many warps by a number below 0. Words share
#: it, and it is not changed.
Published = dict[int, Publication]
_NOTHING: Published = {}


class _Put(NamedTuple):
    """What a warp's relaxed stores publish while its fences cover the same, within a scope, and at which words they
    have published it.
    """

    level: int
    covered: dict[int, VectorClock]
    parts: _Parts
    words: set[Word]


def _has(vclock: VectorClock | None, other: VectorClock) -> bool:
    """Whether one includes the other."""
    return vclock is not None and (vclock is other or (vclock.has(other) and vclock.operations >= other.operations))


class _Touch(NamedTuple):
    """The last strong access to a word: by which of `HappensBefore.actors`, and in which of its intervals."""

    actor: int
    clock: int
    level: int
    writes: bool
    statement: Statement


#: Opcodes of the accesses that set a flag, and of those that read it.
_STORES, _LOADS = ("st.", "atom.", "red."), ("ld.", "atom.")


def report_unfenced(
    findings: Findings,
    found: Access,
    other: Access,
    side: str,
    statement: Statement,
    flags: frozenset[int],
    text: KernelText | None = None,
    raced: int | None = None,
) -> set[Hashable] | None:
    """Report that only a flag or lock orders two accesses, and that one `side` of it lacks a fence; `flags` are the
    lines of its accesses in the kernel's `text`, `raced` is as for `Findings.report`.

    Without an acquire it is advice: CUDA's own samples end so, with bar.sync after an atomic operation. Gives what
    `Findings.report` does.
    """
    does = "reads" if found.role == "reader" else "overwrites"
    where = f" {found.place}" if found.place else f" {found.space} memory"
    if side == "release":
        rule, opcodes, what, beside = "The store of the flag does not release", _STORES, "store", "before"
    else:
        rule, opcodes, what, beside = "The load of the flag does not acquire", _LOADS, "load", "after"
    lines = text.accesses(flags, opcodes) if text is not None else []
    # The swap that takes a lock stores too, but what gives it back is what must release.
    if side == "release" and text is not None:
        lines = [line for line in lines if not text.swaps(line)] or lines
    which, it = (f" in {line_list(lines)}", line_list(lines)) if lines else ("", f"that {what}")
    where_to = f"use .{side}{which}, or put fence.acq_rel {beside} {it}"
    return findings.report(
        races.MISSING_FENCE,
        statement,
        summary=f"{found} {does}{where}; only a relaxed flag orders it after {other}",
        rule=f"{rule} in a scope that includes both threads",
        fix=f"{where_to}, with scope .gpu (.cluster within a cluster)",
        accesses=(found, other),
        severity="error" if side == "release" else "advice",
        cause=frozenset(
            [("unfenced flag", side, other.line), causes.unordered(found.line, other.line), *map(causes.flag, flags)]
        ),
        raced=raced,
    )


class StrongAccesses(Observer):
    """What strong stores have published, by word, and what fences of each warp cover."""

    def __init__(self, happens_before: HappensBefore, findings: Findings) -> None:
        self._happens_before, self._findings = happens_before, findings
        self._published: dict[Word, Published] = {}
        #: By warp, what its relaxed loads since its last acquiring fence saw, by the scope that it takes and the
        #: cluster from which it comes.
        self._seen: dict[int, dict[tuple[int, ClusterEpoch], VectorClock]] = {}
        #: By warp: the last number that it has observed, but not acquired, by the scope that it takes and publisher.
        self._observed: dict[int, dict[int, dict[_Publisher, int]]] = {}
        self._number = 0
        #: By warp (`HappensBefore.actors`), what its relaxed stores publish at present.
        self._put: dict[int, _Put] = {}
        #: The last accesses to each word, from the record up to an entry; whether they are needed, since the scope of
        #: some access does not include all threads that could reach its word.
        self._touched: dict[Word, _Touch] = {}
        self._touched_up_to = 0
        self._narrow = False
        #: Races by their two instructions, and the scopes that they have and need.
        self._repeated = Repeated(happens_before, findings)
        #: Stale values that loads may return; None where nothing does.
        self.stale: StaleLoads | None = None

    def slots_reused(self, slots: NDArray[np.int64]) -> None:
        gone = set(slots.tolist())
        for word in [word for word in self._published if slot_of(word) in gone]:
            del self._published[word]
        self._put.clear()
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
        observed = self._happens_before.observed[warp]
        if level == GPU and (unacquired := observed.join_unacquired()) is not None:
            self._happens_before.acquire(warp, unacquired)
            observed.unacquired = {}
        seen = self._seen.get(warp, {})
        for each in [each for each in seen if each[0] <= level]:
            self._happens_before.acquire(warp, seen.pop(each))

    def lanes_exchange(self, warps: NDArray[np.int64], lanes: NDArray[np.bool_], statement: Instruction) -> None:
        if self.stale is not None:
            self.stale.exchange(warps, lanes)

    def sequence_fence(self, warp: int, level: int) -> None:
        """A fence .sc, after it has acquired and before it releases."""
        if self.stale is not None:
            actor = self._happens_before.actor(warp)
            self.stale.fence(warp, [(within, self._domain(actor, within)) for within in range(level + 1)])

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
        stale: bool = False,
    ) -> bool:
        """Lanes make strong loads (`reads`), stores (`writes`) or atomic operations (both; red only writes) in one
        instruction, one after the other: those of `warps[positions]`, which ascend. A warp may come several times.

        False where `access` must follow for each warp, since something is published or observed, or is stored where
        loads may return `stale` values.
        """
        seen, at = positions, words
        if self.stale is not None and self.stale.taken:
            # What a load of a stale value has not seen would not be ordered before it by more fences.
            taken = self.stale.taken
            fresh = [
                (warp, word) not in taken for warp, word in zip(warps[positions].tolist(), words.tolist(), strict=True)
            ]
            seen, at = positions[fresh], words[fresh]
        made = self._happens_before.strong.add(warps, seen, at, order.level, statement, reads=reads, writes=writes)
        self._touch(warps, made)
        if stale:
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
        self,
        warp: int,
        words: Sequence[Word],
        order: Order,
        lanes: NDArray[np.bool_],
        bits: int,
        *,
        reads: bool,
        writes: bool,
    ) -> None:
        """Lanes (32, and as bits) of a warp make the strong accesses that `together` has recorded, to different words:
        all read before any writes.

        What all stores to a word have published counts, also where a load returns a stale value.
        """
        if reads:
            if order.acquires:
                self._happens_before.lanes_catch_up(warp, lanes)
            self._observe(warp, words, order, lanes)
        if writes:
            self._publish(warp, words, order, bits, acquired=reads and order.acquires)

    def _domain(self, actor: int, within: int) -> int:
        """Which CTA or cluster the scope is, as a warp sees it."""
        if within == GPU:
            return 0
        return actor // (self._happens_before.warps if within == CTA else self._happens_before.members)

    def _publish(self, warp: int, words: Sequence[Word], order: Order, bits: int, *, acquired: bool) -> None:
        """What comes before a store is published with the word: all of it if it releases, else what fences cover.

        What a warp that releases has itself observed need not be published by others too; `acquired`: it has just
        acquired that.
        """
        happens_before, level = self._happens_before, order.level
        actor, clock = happens_before.actor(warp), happens_before.clock(warp)
        domain, cta = (level, self._domain(actor, level)), self._domain(actor, CTA)
        if order.releases:
            parts: _Parts = {(actor, level, True): (domain, happens_before.release(warp, bits))}
        elif covered := happens_before.observed[warp].covered:
            happens_before.release_covered(warp, bits)
            put = self._put.get(actor)
            if put is None or put.covered is not covered or put.level != level:
                put = self._put[actor] = _Put(level, covered, self._given(actor, level, covered), set())
            parts, words = put.parts, [word for word in words if word not in put.words]  # which others have already
            put.words.update(words)
        else:
            happens_before.end_interval(warp)
            return
        self._number += 1
        if not parts or not words:
            return
        publication = Publication(actor, clock, self._number, frozenset([cta]), parts)
        mine = happens_before.observed[warp]
        redundant: dict[Publication, bool] = {}

        def kept(published: Published) -> list[Publication]:
            if not order.releases:
                return list(published.values())
            for each in published.values():
                if each not in redundant:
                    redundant[each] = each.domain == domain and (acquired or self._has_observed(each, mine))
            return [each for each in published.values() if not redundant[each]]

        if len(words) == 1:
            rest = kept(self._published.get(words[0], _NOTHING))
            self._published[words[0]] = self._after(rest, publication)
        else:
            before = list(map(self._published.get, words, repeat(_NOTHING)))
            numbers = list(map(id, before))
            after: dict[tuple[Publication, ...], Published] = {}
            replaced: dict[int, Published] = {}
            for number, published in dict(zip(numbers, before, strict=True)).items():  # most words have the same
                rest = kept(published)
                if (key := tuple(rest)) not in after:
                    after[key] = self._after(rest, publication)
                replaced[number] = after[key]
            self._published.update(zip(words, map(replaced.__getitem__, numbers), strict=True))
        if self._put and any(redundant.values()):
            self._put.clear()

    def _after(self, kept: list[Publication], publication: Publication) -> Published:
        """These publications at a word and then one more."""
        made = {each.actor: each for each in kept}
        before = made.get(publication.actor)
        made[publication.actor] = (
            publication
            if before is None or before.parts.keys() <= publication.parts.keys()
            else publication.after(before)
        )
        return self._together(made) if len(made) > _FEW else made

    def _together(self, published: Published) -> Published:
        """The same as of one publisher in each scope, of and for those CTAs that are still resident."""
        apart: dict[_Domain, list[VectorClock]] = {}
        ctas: set[int] = set()
        for publication in published.values():
            ctas |= publication.ctas
            for domain, vclock in publication.parts.values():
                apart.setdefault(domain, []).append(vclock)
        joined: dict[_Domain, VectorClock] = {}
        for domain, (first, *others) in apart.items():
            if self._lives(domain):
                joined[domain] = first.copy()
                joined[domain].join_all(others)
        parts: _Parts = {(-next(_TOGETHER), GPU, False): (domain, vclock) for domain, vclock in joined.items()}
        actor = -next(_TOGETHER)
        return {actor: Publication(actor, 0, self._number, frozenset(filter(self._happens_before.lives, ctas)), parts)}

    def _lives(self, domain: _Domain) -> bool:
        """Whether a thread within a scope may yet observe it."""
        within, number = domain
        return within == GPU or self._happens_before.lives(
            number * (self._happens_before.size if within == CLUSTER else 1)
        )

    def _given(self, actor: int, level: int, covered: dict[int, VectorClock]) -> _Parts:
        """What a relaxed store publishes, by scope."""
        everywhere = covered.get(GPU) if level == GPU else None
        return {
            (actor, within, False): ((within, self._domain(actor, within)), vclock)
            for within, vclock in covered.items()
            if within <= level and (within == GPU or not _has(everywhere, vclock))
        }

    def _published_with(self, warp: int, words: Sequence[Word]) -> list[Publication]:
        """The publications at these words that a warp observes, the newest first: with a stale value older ones."""
        taken = self.stale.taken if self.stale is not None else {}
        if len(words) == 1:
            now = self._published.get(words[0], _NOTHING)
            publications = list(taken.get((warp, words[0]), now).values())
        else:
            found = list(map(self._published.get, words, repeat(_NOTHING)))
            if taken:
                found = [taken.get((warp, word), now) for word, now in zip(words, found, strict=True)]
            every = dict(zip(map(id, found), found, strict=True)).values()
            publications = list(dict.fromkeys(each for published in every for each in published.values()))
        publications.sort(key=_NUMBER, reverse=True)
        return publications

    def published(self, word: Word) -> Published:
        """What is published with a word now: `StaleLoads` keeps it for the loads of a stale value."""
        return self._published.get(word, _NOTHING)

    def _observe(self, warp: int, words: Sequence[Word], order: Order, lanes: NDArray[np.bool_]) -> None:
        """What was published with the words is acquired if the access acquires; else by a later fence, or never."""
        publications = self._published_with(warp, words)
        if not publications:
            return
        own, mine = self._happens_before.actor(warp), self._happens_before.observed[warp]
        cta, cluster = own // self._happens_before.warps, own // self._happens_before.members
        domains = {CTA: cta, CLUSTER: cluster, GPU: 0}
        #: Clocks that the warp acquires by a later fence, or never, by the scope required.
        later: dict[int, list[VectorClock]] = {}
        observed = self._observed.setdefault(warp, {})
        publishers: set[_Publisher] = set()
        for publication in publications:
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
            if not fresh or (publication.actor != own and self._has_observed(publication, mine)):
                continue
            if enough == _AT_ONCE:
                for vclock in fresh:
                    self._happens_before.acquire(warp, vclock, lanes)
            else:
                later.setdefault(enough, []).extend(fresh)
        for enough, (first, *others) in sorted(later.items()):
            vclock = first.copy()
            vclock.join_all(others)
            if enough != _NEVER:
                seen = self._seen.setdefault(warp, {})
                if (before := seen.get((enough, vclock.epoch))) is None:
                    seen[enough, vclock.epoch] = vclock.copy()
                else:
                    before.join(vclock)
            mine.add_unacquired({vclock.certain() if vclock.apart else vclock: None})

    def _has_observed(self, publication: Publication, vclock: VectorClock) -> bool:
        """Whether a warp with this clock has already observed a publication of a warp that still runs."""
        happens_before, actor = self._happens_before, publication.actor
        if actor < 0 or not happens_before.lives(actor // happens_before.warps):
            return False
        epoch = happens_before.epoch_of(actor), actor % happens_before.members, publication.clock
        return vclock.has_observed(*epoch)

    def _needed(self, cta: int, others: frozenset[int]) -> int:
        """The least scope that includes a CTA and one of others, which it is not."""
        size = self._happens_before.size
        return CLUSTER if size > 1 and any(other // size == cta // size for other in others) else GPU

    def _touch(self, warps: NDArray[np.int64], made: Accesses) -> None:
        """Two strong accesses, one a write, race unless the scope of each includes the other's thread (8.7)."""
        if not self._narrow:
            others = CTA if self._happens_before.size == 1 else CLUSTER
            self._narrow = made.level < others or (made.level < GPU and any_set(slots_of(made.words) < 0))
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
                if happens_before.has_observed_actor(warp, before.actor, before.clock):
                    continue
                kind = id(statement), id(before.statement), narrow, needed
                if self._repeated.is_known(kind):
                    self._repeated.count(kind, (actor, before.actor))
                    continue
                found, earlier = self._parties(warp, word, accesses, before)
                parties = [(level, found, statement), (before.level, earlier, before.statement)]
                parties.sort(key=lambda each: (each[0], each[1].role != "writer", each[2].line))
                (_, first, narrowest), (_, second, _) = parties
                shown = f", {first.place}" if first.place else ""
                found_of = self._findings.report(
                    races.NARROW_SCOPE,
                    narrowest,
                    summary=f"{first} and {second} access the same word{shown}",
                    rule=f"They race: the scope of the access of line {narrowest.line} is .{SCOPES[narrow]}, which "
                    "does not include the other thread",
                    fix=f"use .{SCOPES[needed]} for both",
                    accesses=(first, second),
                    cause=frozenset([causes.flag(narrowest.line)]),
                )
                self._repeated.reported(kind, found_of)

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
