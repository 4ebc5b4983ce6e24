"""Strong accesses (volatile, relaxed, acquire, release, atomics): what they tell other warps, and whom they reach.

A release pattern on a word, seen by an acquire pattern on it, orders what came before the one before what comes after
the other (PTX ISA 8.8, 8.9.4). A strong access alone does neither: it needs .release or a fence before the store,
.acquire or a fence after the load, in a scope that includes the other thread (8.7). What would be known if strong
accesses did so by themselves is kept apart, as the doubts of a `Knowledge`: a conflict that only such a flag orders is
told as the missing fence that it is.

A fence covers what its own thread did; that counts for a store by another thread too which bar.sync puts after it: with
fence.sc (membar.gl, __threadfence) that follows from the order of such fences (8.9.3), and hardware does the same for
the weaker ones.

Within shared memory strong accesses order by themselves here: a missing fence between warps of a CTA is not seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.knowledge import Knowledge
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.happens_before import Ordering
    from ptxgen.emulator.checks.stale_loads import StaleLoads

CTA, CLUSTER, GPU = range(3)
_LEVELS = {"cta": CTA, "cluster": CLUSTER, "gpu": GPU, "sys": GPU, "gl": GPU}
_NAMES = ("cta", "cluster", "gpu")
#: CTAs by name that are kept of those that stored to a word; more count as all.
_FEW = 8


def level(scope: str | None) -> int:
    """The width of a scope, of `membar` too; by default that of the GPU."""
    return GPU if scope is None else _LEVELS[scope.lstrip(".")]


class Order(NamedTuple):
    """What a strong access does besides: acquire, release; and for whom."""

    acquires: bool
    releases: bool
    level: int


def order_of(op: Any) -> Order:
    """The order of a strong access. Volatile and mmio accesses are relaxed in the scope of the system (8.4)."""
    sem, scope = getattr(op, "sem", None), getattr(op, "scope", None)
    return Order(sem in ("acquire", "acq_rel"), sem in ("release", "acq_rel"), level(scope))


#: (CTA slot, -1 for global memory; state space; address).
Place = tuple[int, str, int]


@dataclass(slots=True)
class _Told:
    """What stores to a word have told, and from which CTAs (slots); None if from too many to keep."""

    knowledge: Knowledge
    slots: set[int] | None = field(default_factory=set)


class _Touch(NamedTuple):
    """The last strong access to a word: by which of `Ordering.actors`, and in which of its intervals."""

    actor: int
    clock: int
    level: int
    writes: bool
    statement: Statement


class StrongAccesses:
    """What strong stores have told, by word, and what fences of each warp cover."""

    def __init__(self, ordering: Ordering, findings: Findings) -> None:
        self._ordering, self._findings = ordering, findings
        #: By word: (width of the scope, its CTA or cluster, 0 for the GPU) -> what was told within it.
        self._told: dict[Place, dict[tuple[int, int], _Told]] = {}
        #: Relaxed loads of a warp since its last acquiring fence: what they saw, and the scope that it takes.
        self._seen: dict[int, list[tuple[Knowledge, int]]] = {}
        self._touched: dict[Place, _Touch] = {}
        #: Older values that loads may return; None where nothing does.
        self.stale: StaleLoads | None = None

    def clear(self, slot: int) -> None:
        """Make a slot ready for the next CTA."""
        for words in (self._told, self._touched):
            for place in [place for place in words if place[0] == slot]:
                del words[place]
        for row in range(slot * self._ordering.warps, (slot + 1) * self._ordering.warps):
            self._seen.pop(row, None)
        if self.stale is not None:
            self.stale.clear(slot)

    # Fences.

    def release_fence(self, row: int, level: int) -> None:
        """A fence that releases: `Ordering.release_fence` has been told."""
        for within in range(level + 1):
            self._ordering.known[row].cover(within, self._ordering.released[row])

    def acquire_fence(self, row: int, level: int) -> None:
        """A fence that acquires: what relaxed loads before it have seen is known from here on.

        Also those of other warps that bar.sync puts before it.
        """
        seen = self._ordering.known[row].unacquired
        if level == GPU and seen is not None:
            self._ordering.acquire(row, seen)
            self._ordering.known[row].unacquired = None
        waiting = []
        for known, needed in self._seen.pop(row, ()):
            if needed <= level:
                self._ordering.acquire(row, known)
            else:
                waiting.append((known, needed))
        if waiting:
            self._seen[row] = waiting

    def sequence_fence(self, row: int, level: int) -> None:
        """A fence .sc, after it has acquired and before it releases."""
        if self.stale is not None:
            self.stale.fence(row, [(within, self._domain(row, within)) for within in range(level + 1)])

    # Accesses.

    def store(self, row: int, place: Place, order: Order, statement: Statement) -> None:
        """A strong store or atomic operation of a warp, at an offset in a CTA's shared memory or a global address."""
        self._touch(row, place, order, True, statement)
        everything = self._ordering.release(row)
        if order.releases or place[0] >= 0:
            within = GPU if place[0] >= 0 else order.level
            self._tell(row, place, within, everything)
        else:
            for within, known in everything.covered.items():
                if within <= order.level:
                    self._tell(row, place, within, known)
            within = -1
        if within < GPU:
            doubted = Knowledge(everything.cluster, everything.clocks * 0, unreleased=everything)
            self._tell(row, place, GPU, doubted)

    def _domain(self, row: int, within: int) -> int:
        """Which CTA or cluster the scope is, as this warp sees it."""
        actor = self._ordering.actor(row)
        return (actor // self._ordering.warps, actor // self._ordering.members, 0)[within]

    def _tell(self, row: int, place: Place, within: int, given: Knowledge) -> None:
        told = self._told.setdefault(place, {})
        key = within, self._domain(row, within)
        known = told.get(key)
        if known is None:
            known = told[key] = _Told(given.copy())
        else:
            known.knowledge.join(given)
        if known.slots is not None:
            known.slots.add(self._ordering.actor(row) // self._ordering.warps)
            if len(known.slots) > _FEW:
                known.slots = None

    def load(self, row: int, place: Place, order: Order, statement: Statement, *, atomic: bool = False) -> None:
        """A strong load of a warp, or what an atomic operation (but not red) reads.

        What all stores to the word have told counts, also where the load gives an older value.
        """
        if not atomic:
            self._touch(row, place, order, False, statement)
        told = self._told.get(place)
        if told is None:
            return
        for within in (CTA, CLUSTER, GPU):
            known = told.get((within, self._domain(row, within)))
            if known is None:
                continue
            needed = self._needed(row, known.slots)
            if place[0] >= 0 or (order.acquires and needed <= order.level):
                self._ordering.acquire(row, known.knowledge)
            else:
                if needed <= order.level:
                    self._seen.setdefault(row, []).append((known.knowledge.copy(), needed))
                self._ordering.doubt(row, known.knowledge)

    def _needed(self, row: int, slots: set[int] | None) -> int:
        """The least scope that includes the warp and one of those who have told something; of too many, the GPU's."""
        own, size = self._ordering.actor(row) // self._ordering.warps, self._ordering.size
        if slots is None:
            return GPU
        if own in slots:
            return CTA
        return CLUSTER if all(slot // size == own // size for slot in slots) else GPU

    def _touch(self, row: int, place: Place, order: Order, writes: bool, statement: Statement) -> None:
        """Two strong accesses of which one writes race unless the scope of each includes the other's thread (8.7)."""
        ordering, before = self._ordering, self._touched.get(place)
        actor = ordering.actor(row)
        self._touched[place] = _Touch(actor, ordering.clock(row), order.level, writes, statement)
        if before is None or before.actor // ordering.warps == actor // ordering.warps or not (writes or before.writes):
            return
        needed = CLUSTER if before.actor // ordering.members == actor // ordering.members else GPU
        narrow = min(order.level, before.level)
        if narrow < needed and not ordering.knows_actor(row, before.actor, before.clock):
            self._findings.add(
                "narrow-scope",
                f"this access and that of line {before.statement.line} by {ordering.warp_of(row, before.actor)} are to "
                f"the same word, but the scope of {'this' if order.level == narrow else 'that'} one is "
                f".{_NAMES[narrow]}, which does not include the other thread: they race; use .{_NAMES[needed]}",
                statement,
            )
