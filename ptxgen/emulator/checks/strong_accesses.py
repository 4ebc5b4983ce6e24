"""Strong accesses (volatile, relaxed, acquire, release, atomics): what they tell other warps, and whom they reach.

A release pattern on a word, seen by an acquire pattern on it, orders what came before the one before what comes after
the other (PTX ISA 8.8, 8.9.4). A strong access alone does neither: it needs .release or a fence before the store,
.acquire or a fence after the load, in a scope that includes the other thread (8.7). What would be known if strong
accesses did so by themselves is kept apart, as the doubts of a `Knowledge`: a conflict that only such a flag orders is
told as the missing fence that it is.

A fence covers what its own thread did; that counts for a store by another thread too which bar.sync puts after it: with
fence.sc (membar.gl, __threadfence) that follows from the order of such fences (8.9.3), and hardware does the same for
the weaker ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count
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
#: So much is kept apart of what warps have told with a word.
_FEW = 16
#: Instead of a scope: what is known at once, and what no acquiring fence makes known.
_AT_ONCE, _NEVER = -1, GPU + 1


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


#: Who told something (of `Ordering.actors`), within which scope, and whether all that it knew.
_Teller = tuple[int, int, bool]
#: Its number, in the order in which it was told; nobody changes the knowledge any more.
_Given = tuple[_Teller, int, Knowledge]
#: Numbers for what several have told, put together.
_TOGETHER = count(1)


class _Told:
    """What stores to a word have told: by each warp the last, which has all that it told before; from which CTAs
    (one bit for each).
    """

    __slots__ = ("ctas", "given")

    def __init__(self) -> None:
        self.given: dict[_Teller, _Given] = {}
        self.ctas = 0

    def add(self, cta: int, given: _Given) -> None:
        self.given[given[0]] = given
        if len(self.given) > _FEW:
            together = given[2].copy()
            for _, _, known in self.given.values():
                together.join(known)
            teller = (-next(_TOGETHER), GPU, False)
            self.given = {teller: (teller, given[1], together)}
        self.ctas |= 1 << cta


def _has(known: Knowledge | None, other: Knowledge) -> bool:
    """Whether one knows all that the other does."""
    return known is not None and known.has(other) and known.operations >= other.operations


class _Touch(NamedTuple):
    """The last strong access to a word: by which of `Ordering.actors`, and in which of its intervals."""

    actor: int
    clock: int
    level: int
    writes: bool
    statement: Statement


def report_unfenced(findings: Findings, where: str, side: str, statement: Statement) -> None:
    """Only a flag or lock orders an access and that `where`, and its accesses are strong, but nothing more.

    Without an acquire it is advice: CUDA's own samples end so, with bar.sync after an atomic operation.
    """
    missing = (
        "its store does not release: use .release, or fence.acq_rel before it"
        if side == "release"
        else "the load of it does not acquire: use .acquire, or fence.acq_rel after it"
    )
    findings.add(
        "missing-fence",
        f"this access and {where} are ordered by a strong access alone; {missing}, in a scope that includes both "
        "threads",
        statement,
        severity="error" if side == "release" else "advice",
    )


class StrongAccesses:
    """What strong stores have told, by word, and what fences of each warp cover."""

    def __init__(self, ordering: Ordering, findings: Findings) -> None:
        self._ordering, self._findings = ordering, findings
        #: By word: (width of the scope, its CTA or cluster, 0 for the GPU) -> what was told within it.
        self._told: dict[Place, dict[tuple[int, int], _Told]] = {}
        #: Relaxed loads of a warp since its last acquiring fence: what they saw, and the scope that it takes.
        self._seen: dict[int, list[tuple[Knowledge, int]]] = {}
        #: By warp: the number of the last that it has heard, but not acquired, by teller and the scope that it takes.
        self._heard: dict[int, dict[tuple[_Teller, int], int]] = {}
        self._number = 0
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
            self._heard.pop(row, None)
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

    def access(
        self, row: int, places: Sequence[Place], order: Order, statement: Statement, *, reads: bool, writes: bool
    ) -> None:
        """A warp's strong loads (`reads`), stores (`writes`) or atomic operations (both; red only writes) of different
        words, at offsets in CTAs' shared memory or global addresses, in one instruction: all read before any writes.

        What all stores to a word have told counts, also where a load gives an older value.
        """
        self._touch(row, places, order, statement, writes=writes)
        if reads:
            self._hear(row, places, order)
        if writes:
            self._tell(row, places, order)

    def _domain(self, row: int, within: int) -> int:
        """Which CTA or cluster the scope is, as this warp sees it."""
        actor = self._ordering.actor(row)
        return (actor // self._ordering.warps, actor // self._ordering.members, 0)[within]

    def _tell(self, row: int, places: Sequence[Place], order: Order) -> None:
        """What comes before a store is told with the word: all of it if it releases, else what fences cover."""
        cta = self._domain(row, CTA)
        everything = self._ordering.release(row)
        self._number += 1
        in_global = self._given(row, order, everything)
        for place in places:
            told = self._told.get(place)
            if told is None:
                told = self._told[place] = {}
            for domain, given in in_global:
                known = told.get(domain)
                if known is None:
                    known = told[domain] = _Told()
                known.add(cta, given)

    def _given(self, row: int, order: Order, everything: Knowledge) -> list[tuple[tuple[int, int], _Given]]:
        """What a store to global memory tells, by scope and its CTA or cluster."""
        if order.releases:
            told = {order.level: everything}
        else:
            told = {within: known for within, known in everything.covered.items() if within <= order.level}
            told = {within: known for within, known in told.items() if within == GPU or not _has(told.get(GPU), known)}
        if not order.releases or order.level < GPU:
            known = told.get(GPU)
            doubted = known.copy() if known is not None else Knowledge(everything.home, everything.clocks * 0)
            doubted.doubt_release(everything)
            told[GPU] = doubted
        actor = self._ordering.actor(row)
        return [
            ((within, self._domain(row, within)), ((actor, within, known is everything), self._number, known))
            for within, known in told.items()
        ]

    def _hear(self, row: int, places: Sequence[Place], order: Order) -> None:
        """What was told with the words is known if the access acquires; else a fence may do that, or nothing does."""
        domains = [(within, self._domain(row, within)) for within in (CTA, CLUSTER, GPU)]
        #: By teller: the newest of what it told with these words, and the CTAs that it may be of.
        newest: dict[_Teller, tuple[_Given, int]] = {}
        for told in filter(None, map(self._told.get, places)):
            for known in filter(None, map(told.get, domains)):
                for teller, given in known.given.items():
                    before = newest.get(teller)
                    if before is None or before[0][1] < given[1]:
                        newest[teller] = given, known.ctas
        #: What the warp knows by now, and what else there is by the scope that it takes.
        certain: list[_Given] = []
        others: list[tuple[int, _Given]] = []
        heard = self._heard.setdefault(row, {})
        for teller, (given, ctas) in newest.items():
            ctas = ctas if teller[0] < 0 else 1 << teller[0] // self._ordering.warps
            needed = self._needed(domains[CTA][1], ctas)
            if order.acquires and needed <= order.level:
                certain.append(given)
                continue
            enough = needed if needed <= order.level else _NEVER
            if heard.get((teller, enough), 0) < given[1]:
                heard[teller, enough] = given[1]
                others.append((enough, given))
        together: dict[int, Knowledge] = {}
        for enough, (_, _, known) in chain(((_AT_ONCE, given) for given in certain), others):
            if enough in together:
                together[enough].join(known)
            else:
                together[enough] = known.copy()
        for enough, known in together.items():
            if enough == _AT_ONCE:
                self._ordering.acquire(row, known)
                continue
            if enough != _NEVER:
                self._seen.setdefault(row, []).append((known, enough))
            self._ordering.doubt(row, known)

    def _needed(self, cta: int, others: int) -> int:
        """The least scope that includes a CTA and one of others."""
        if others >> cta & 1:
            return CTA
        size = self._ordering.size
        return CLUSTER if others >> (cta - cta % size) & (1 << size) - 1 else GPU

    def _touch(self, row: int, places: Sequence[Place], order: Order, statement: Statement, *, writes: bool) -> None:
        """Two strong accesses of which one writes race unless the scope of each includes the other's thread (8.7)."""
        ordering, touched = self._ordering, self._touched
        warps, actor = ordering.warps, ordering.actor(row)
        now, own = _Touch(actor, ordering.clock(row), order.level, writes, statement), actor // warps
        for place in places:
            before = touched.get(place)
            touched[place] = now
            if before is None or before.actor // warps == own or not (writes or before.writes):
                continue
            needed = CLUSTER if before.actor // ordering.members == actor // ordering.members else GPU
            narrow = min(order.level, before.level)
            if narrow < needed and not ordering.knows_actor(row, before.actor, before.clock):
                self._findings.add(
                    "narrow-scope",
                    f"this access and that of line {before.statement.line} by {ordering.warp_of(row, before.actor)} "
                    f"are to the same word, but the scope of {'this' if order.level == narrow else 'that'} one is "
                    f".{_NAMES[narrow]}, which does not include the other thread: they race; use .{_NAMES[needed]}",
                    statement,
                )
