"""Clusters: addresses of peer CTAs, their shared memory, remote mbarriers, the cluster's barrier.

References from PTX ISA 9.7.9.23, 9.7.9.24, 9.7.13.3 and 9.7.13.15. CTA i of a cluster works on the memory of CTA i + 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.script import like
from microtests.mbarrier import Word, each
from ptxgen.builder import Register
from ptxgen.instr import atomic, cluster, conversion, fence, integer, logic, mbarrier, memory

THREADS = 64


class Ring:
    """A grid of two clusters whose CTAs each have a neighbor."""

    def __init__(self, draft: Draft, size: int) -> None:
        self.draft, self.size = draft, size
        draft.launch(grid=2 * size, block=THREADS, cluster=size)
        self.tid = draft.thread
        self.rank, self.cta = draft.special("cluster_ctarank"), draft.special("ctaid.x")
        self.next = draft.reg("b32", "next")
        draft(integer.add(self.next, self.rank, 1, type="u32"))
        draft(integer.rem(self.next, self.next, size, type="u32"))

    def remote(self, place: Register) -> Register:
        """The address of a place in the neighbor's shared memory."""
        found = self.draft.reg("b32", "remote")
        self.draft(cluster.mapa(found, place, self.next, space="shared::cluster", type="u32"))
        return found

    def generic(self, place: Register) -> Register:
        """The generic address of a place in the neighbor's shared memory."""
        found = self.draft.reg("b64", "remote")
        self.draft(cluster.mapa(found, self.draft.generic(place), self.next, type="u64"))
        return found

    def meet(self) -> None:
        """The barrier of the cluster."""
        self.draft(cluster.arrive(sem="release", aligned=True), cluster.wait(acquire=True, aligned=True))

    def value(self, factor: int) -> Register:
        """A number that identifies CTA and thread: cta * 1000 + tid * factor."""
        made = self.draft.reg("b32", "value")
        self.draft(integer.mul(made, self.cta, 1000, half="lo", type="u32"))
        self.draft(integer.mad(made, self.tid, factor, made, half="lo", type="u32"))
        return made

    def out(self, expected: np.ndarray) -> Register:
        """The address of this thread's word of an output of (CTAs, threads)."""
        assert expected.shape == (2 * self.size, THREADS)
        index = self.draft.reg("b32", "index")
        self.draft(integer.mad(index, self.cta, THREADS, self.tid, half="lo", type="u32"))
        return self.draft.offset(self.draft.output(expected.astype(np.uint32)), index, 4)

    def barrier(self, count: int) -> Register:
        """An mbarrier in each CTA, initialized and visible to the cluster."""
        at, ready = self.draft.shared(8, 8), self.draft.label("ready")
        self.draft.branch(ready, self.draft.is_thread(0), negated=True)
        self.draft(mbarrier.init(f"[{at}]", count, space="shared::cta"))
        self.draft.place(ready)
        self.meet()
        return at

    def from_before(self, compute: Any) -> np.ndarray:
        """For each CTA and thread a function of the CTA before it in its cluster, and of the thread."""
        ctas = np.arange(2 * self.size)
        before = ctas // self.size * self.size + (ctas % self.size - 1) % self.size
        return np.array([[compute(int(cta), tid) for tid in range(THREADS)] for cta in before])


@microtest(1, 2, 4, 8)
def special_registers(draft: Draft, size: int) -> None:
    """Ranks and sizes."""
    ring = Ring(draft, size)
    packed = draft.reg("b32", "packed")
    draft(integer.mul(packed, ring.rank, 1, half="lo", type="u32"))
    for name, factor in (
        ("cluster_nctarank", 10),
        ("cluster_ctaid.x", 100),
        ("cluster_nctaid.x", 1000),
        ("clusterid.x", 10000),
        ("nclusterid.x", 100000),
    ):
        draft(integer.mad(packed, draft.special(name), factor, packed, half="lo", type="u32"))
    ctas = np.arange(2 * size)
    expected = ctas % size * 101 + size * 1010 + ctas // size * 10000 + 2 * 100000
    draft.store(ring.out(np.repeat(expected[:, None], THREADS, 1)), packed)


def _meaningful(made: Any) -> bool:
    """Generic addresses have 64 bits; a form of each declaration is enough where both do the same."""
    return made.space is not None or made.type == "u64"


@microtest(*(word for word in each(cluster.mapa, cluster.getctarank) if _meaningful(word.made)))
def mapa_getctarank(draft: Draft, word: Any) -> None:
    """The rank of an address that mapa made is what it was made with."""
    ring = Ring(draft, 4)
    wide = word.made.type == "u64"  # type: ignore[attr-defined]
    generic = word.made.space is None  # type: ignore[attr-defined]
    at: Any = draft.shared(16)
    if generic:
        at = draft.generic(at)
    elif wide:
        long = draft.reg("b64")
        draft(conversion.cvt(long, at, dtype="u64", atype="u32"))
        at = long
    found, rank = draft.reg("b64" if wide else "b32"), draft.reg("b32")
    space, type = word.made.space, word.made.type  # type: ignore[attr-defined]
    draft(cluster.mapa(found, at, ring.next, space=space, type=type))
    draft(cluster.getctarank(rank, found, space=space, type=type))
    expected = (np.arange(8) % 4 + 1) % 4
    draft.store(ring.out(np.repeat(expected[:, None], THREADS, 1)), rank)


@microtest(2, 4, 8)
def store_remote(draft: Draft, size: int) -> None:
    """st.shared::cluster writes the neighbor's memory."""
    ring = Ring(draft, size)
    box = draft.offset(draft.shared(4 * THREADS), ring.tid, 4)
    ring.meet()
    draft(memory.st(f"[{ring.remote(box)}]", ring.value(3), space="shared::cluster", type="b32"))
    ring.meet()
    found = draft.reg("b32")
    draft(memory.ld(found, f"[{box}]", space="shared", type="b32"))
    draft.store(ring.out(ring.from_before(lambda cta, tid: cta * 1000 + tid * 3)), found)


@microtest(2, 4, 8)
def load_remote(draft: Draft, size: int) -> None:
    """ld.shared::cluster reads the neighbor's memory."""
    ring = Ring(draft, size)
    box = draft.offset(draft.shared(4 * THREADS), ring.tid, 4)
    draft.store(box, ring.value(5), space="shared")
    ring.meet()
    found = draft.reg("b32")
    draft(memory.ld(found, f"[{ring.remote(box)}]", space="shared::cluster", type="b32"))
    ctas = np.arange(2 * size)
    after = ctas // size * size + (ctas + 1) % size
    draft.store(ring.out(after[:, None] * 1000 + np.arange(THREADS) * 5), found)
    ring.meet()


@microtest("add", "max", "and", "exch")
def atomic_remote(draft: Draft, op: Any) -> None:
    """Atomics on the neighbor's memory: all its threads on one word."""
    ring = Ring(draft, 4)
    box = draft.shared(4)
    start = {"and": 0xFFFFFFFF}.get(op, 7)
    ready = draft.label("ready")
    draft.branch(ready, draft.is_thread(0), negated=True)
    initial = draft.reg("b32")
    draft(integer.add(initial, draft.zero(), start, type="u32"))
    draft.store(box, initial, space="shared")
    draft.place(ready)
    ring.meet()
    operand = draft.reg("b32")
    if op == "and":
        draft(logic.or_(operand, ring.tid, 0xFFFFFF80, type="b32"))
    elif op == "exch":
        draft(integer.add(operand, ring.cta, 50, type="u32"))
    else:
        draft(integer.add(operand, ring.tid, ring.cta, type="u32"))
    old = draft.reg("b32")
    draft(
        atomic.atom(
            old,
            f"[{ring.remote(box)}]",
            operand,
            sem="relaxed",
            scope="cluster",
            space="shared::cluster",
            op=op,
            type="b32" if op in ("and", "exch") else "u32",
        )
    )
    ring.meet()
    found = draft.reg("b32")
    draft(memory.ld(found, f"[{box}]", space="shared", type="b32"))

    def final(cta: int, tid: int) -> int:
        threads = range(THREADS)
        return {
            "add": 7 + sum(t + cta for t in threads),
            "max": max(7, THREADS - 1 + cta),
            "and": 0xFFFFFF80,
            "exch": cta + 50,
        }[op]

    draft.store(ring.out(ring.from_before(final)), found)


@microtest(*each(cluster.arrive))
def arrive(draft: Draft, word: Any) -> None:
    """Every form of arrival at the cluster's barrier; where it is relaxed, a fence makes stores visible."""
    ring = Ring(draft, 2)
    box = draft.offset(draft.shared(4 * THREADS), ring.tid, 4)
    ring.meet()
    draft(memory.st(f"[{ring.remote(box)}]", ring.value(7), space="shared::cluster", type="b32"))
    if word.made.sem == "relaxed":  # type: ignore[attr-defined]
        draft(fence.fence(sem="acq_rel", scope="cluster"))
    draft(word.made, cluster.wait(acquire=True))
    found = draft.reg("b32")
    draft(memory.ld(found, f"[{box}]", space="shared", type="b32"))
    draft.store(ring.out(ring.from_before(lambda cta, tid: cta * 1000 + tid * 7)), found)


@microtest(*each(cluster.wait))
def wait(draft: Draft, word: Any) -> None:
    """Every form of waiting."""
    ring = Ring(draft, 2)
    box = draft.offset(draft.shared(4 * THREADS), ring.tid, 4)
    ring.meet()
    draft(memory.st(f"[{ring.remote(box)}]", ring.value(9), space="shared::cluster", type="b32"))
    draft(cluster.arrive(), word.made)
    found = draft.reg("b32")
    draft(memory.ld(found, f"[{box}]", space="shared", type="b32"))
    draft.store(ring.out(ring.from_before(lambda cta, tid: cta * 1000 + tid * 9)), found)


_REMOTE = (
    mbarrier.arrive_remote,
    mbarrier.arrive_expect_tx_remote,
    mbarrier.arrive_drop_remote,
    mbarrier.arrive_drop_expect_tx_remote,
)


@microtest(*(word for word in each(*_REMOTE) if word.made.scope != "cta"))  # type: ignore[attr-defined]
def remote_arrive(draft: Draft, word: Word) -> None:
    """All threads of a CTA arrive at the neighbor's mbarrier, after stores to its memory."""
    made: Any = word.made
    per = 2 if getattr(made, "count", None) is not None else 1
    ring = Ring(draft, 4)
    box = draft.offset(draft.shared(4 * THREADS), ring.tid, 4)
    at = ring.barrier(per * THREADS)
    draft(memory.st(f"[{ring.remote(box)}]", ring.value(11), space="shared::cluster", type="b32"))
    expecting = "expect_tx" in made.form.key
    operands = [2] if per == 2 else [16] if expecting else []
    target = ring.remote(at)
    if made.sem == "relaxed":
        draft(fence.fence(sem="acq_rel", scope="cluster"))
    draft(like(made, "_", f"[{target}]", *operands))
    if expecting:
        draft(mbarrier.complete_tx(f"[{target}]", 16, sem="relaxed", scope="cluster", space="shared::cluster"))
    again, done = draft.label("again"), draft.reg("pred")
    draft.place(again)
    draft(mbarrier.try_wait_parity(done, f"[{at}]", 0, sem="acquire", scope="cluster", space="shared::cta"))
    draft.branch(again, done, negated=True)
    found = draft.reg("b32")
    draft(memory.ld(found, f"[{box}]", space="shared", type="b32"))
    draft.store(ring.out(ring.from_before(lambda cta, tid: cta * 1000 + tid * 11)), found)
    ring.meet()


@microtest(16)
def large_cluster(draft: Draft, size: int) -> None:
    """Sixteen CTAs, which need leave of the launch."""
    ring = Ring(draft, size)
    box = draft.offset(draft.shared(4 * THREADS), ring.tid, 4)
    draft.store(box, ring.value(5), space="shared")
    ring.meet()
    found = draft.reg("b32")
    draft(memory.ld(found, f"[{ring.remote(box)}]", space="shared::cluster", type="b32"))
    ctas = np.arange(2 * size)
    after = ctas // size * size + (ctas + 1) % size
    draft.store(ring.out(after[:, None] * 1000 + np.arange(THREADS) * 5), found)
    ring.meet()
