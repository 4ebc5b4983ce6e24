"""Clusters: addresses of other CTAs, their shared memory, remote mbarriers, the cluster's barrier.

References from PTX ISA 9.7.9.23, 9.7.9.24, 9.7.13.3 and 9.7.13.15. CTA i of a cluster works on the memory of CTA i + 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.script import like
from microtests.mbarrier import Word, each
from ptxgen.build import Register
from ptxgen.instr import atomic, cluster, conversion, fence, integer, logic, mbarrier, memory, move, predicate

_THREADS = 64


class Ring:
    """A grid of two clusters whose CTAs each have a neighbour."""

    def __init__(self, draft: Draft, size: int) -> None:
        self.draft, self.size = draft, size
        draft.launch(grid=2 * size, block=_THREADS, cluster=size)
        self.tid = draft.thread
        self.rank, self.cta = draft.special("cluster_ctarank"), draft.special("ctaid.x")
        self.next = draft.reg("b32", "next")
        draft(integer.add(self.next, self.rank, 1, type="u32"))
        draft(integer.rem(self.next, self.next, size, type="u32"))

    def remote(self, place: Register) -> Register:
        """The address of a place in the neighbour's shared memory."""
        found = self.draft.reg("b32", "remote")
        self.draft(cluster.mapa(found, place, self.next, space="shared::cluster", type="u32"))
        return found

    def generic(self, place: Register) -> Register:
        """The generic address of a place in the neighbour's shared memory."""
        found = self.draft.reg("b64", "remote")
        self.draft(cluster.mapa(found, self.draft.generic(place), self.next, type="u64"))
        return found

    def meet(self) -> None:
        """The barrier of the cluster."""
        self.draft(cluster.arrive(sem="release", aligned=True), cluster.wait(acquire=True, aligned=True))

    def value(self, factor: int) -> Register:
        """A number that tells CTA and thread: cta * 1000 + tid * factor."""
        made = self.draft.reg("b32", "value")
        self.draft(integer.mul(made, self.cta, 1000, half="lo", type="u32"))
        self.draft(integer.mad(made, self.tid, factor, made, half="lo", type="u32"))
        return made

    def out(self, expected: np.ndarray) -> Register:
        """The address of this thread's word of an output of (CTAs, threads)."""
        assert expected.shape == (2 * self.size, _THREADS)
        index = self.draft.reg("b32", "index")
        self.draft(integer.mad(index, self.cta, _THREADS, self.tid, half="lo", type="u32"))
        return self.draft.offset(self.draft.output(expected.astype(np.uint32)), index, 4)

    def barrier(self, count: int) -> Register:
        """An mbarrier in each CTA, initialised and visible to the cluster."""
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
        return np.array([[compute(int(cta), tid) for tid in range(_THREADS)] for cta in before])


@microtest(1, 2, 4, 8)
def special_registers(draft: Draft, size: int) -> None:
    """Ranks and sizes."""
    ring = Ring(draft, size)
    packed = draft.reg("b32", "packed")
    draft(integer.mul(packed, ring.rank, 1, half="lo", type="u32"))
    for name, factor in (("cluster_nctarank", 10), ("cluster_ctaid.x", 100), ("cluster_nctaid.x", 1000),
                         ("clusterid.x", 10000), ("nclusterid.x", 100000)):  # fmt: skip
        draft(integer.mad(packed, draft.special(name), factor, packed, half="lo", type="u32"))
    ctas = np.arange(2 * size)
    expected = ctas % size * 101 + size * 1010 + ctas // size * 10000 + 2 * 100000
    draft.store(ring.out(np.repeat(expected[:, None], _THREADS, 1)), packed)


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
    draft.store(ring.out(np.repeat(expected[:, None], _THREADS, 1)), rank)


@microtest(2, 4, 8)
def store_remote(draft: Draft, size: int) -> None:
    """st.shared::cluster writes the neighbour's memory."""
    ring = Ring(draft, size)
    box = draft.offset(draft.shared(4 * _THREADS), ring.tid, 4)
    ring.meet()
    draft(memory.st(f"[{ring.remote(box)}]", ring.value(3), space="shared::cluster", type="b32"))
    ring.meet()
    found = draft.reg("b32")
    draft(memory.ld(found, f"[{box}]", space="shared", type="b32"))
    draft.store(ring.out(ring.from_before(lambda cta, tid: cta * 1000 + tid * 3)), found)


@microtest(2, 4, 8)
def load_remote(draft: Draft, size: int) -> None:
    """ld.shared::cluster reads the neighbour's memory."""
    ring = Ring(draft, size)
    box = draft.offset(draft.shared(4 * _THREADS), ring.tid, 4)
    draft.store(box, ring.value(5), space="shared")
    ring.meet()
    found = draft.reg("b32")
    draft(memory.ld(found, f"[{ring.remote(box)}]", space="shared::cluster", type="b32"))
    ctas = np.arange(2 * size)
    after = ctas // size * size + (ctas + 1) % size
    draft.store(ring.out(after[:, None] * 1000 + np.arange(_THREADS) * 5), found)
    ring.meet()


@microtest("add", "max", "and", "exch")
def atomic_remote(draft: Draft, op: Any) -> None:
    """Atomics on the neighbour's memory: all its threads on one word."""
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
        atomic.atom(old, f"[{ring.remote(box)}]", operand, sem="relaxed", scope="cluster", space="shared::cluster",
                    op=op, type="b32" if op in ("and", "exch") else "u32")
    )  # fmt: skip
    ring.meet()
    found = draft.reg("b32")
    draft(memory.ld(found, f"[{box}]", space="shared", type="b32"))

    def final(cta: int, tid: int) -> int:
        threads = range(_THREADS)
        return {
            "add": 7 + sum(t + cta for t in threads), "max": max(7, _THREADS - 1 + cta),
            "and": 0xFFFFFF80, "exch": cta + 50,
        }[op]  # fmt: skip

    draft.store(ring.out(ring.from_before(final)), found)


@microtest(*each(cluster.arrive))
def arrive(draft: Draft, word: Any) -> None:
    """Every form of arrival at the cluster's barrier; where it is relaxed, a fence makes stores visible."""
    ring = Ring(draft, 2)
    box = draft.offset(draft.shared(4 * _THREADS), ring.tid, 4)
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
    box = draft.offset(draft.shared(4 * _THREADS), ring.tid, 4)
    ring.meet()
    draft(memory.st(f"[{ring.remote(box)}]", ring.value(9), space="shared::cluster", type="b32"))
    draft(cluster.arrive(), word.made)
    found = draft.reg("b32")
    draft(memory.ld(found, f"[{box}]", space="shared", type="b32"))
    draft.store(ring.out(ring.from_before(lambda cta, tid: cta * 1000 + tid * 9)), found)


_REMOTE = (
    mbarrier.arrive_remote, mbarrier.arrive_expect_tx_remote, mbarrier.arrive_drop_remote,
    mbarrier.arrive_drop_expect_tx_remote,
)  # fmt: skip


@microtest(*(word for word in each(*_REMOTE) if word.made.scope != "cta"))  # type: ignore[attr-defined]
def remote_arrive(draft: Draft, word: Word) -> None:
    """All threads of a CTA arrive at the neighbour's mbarrier, after stores to its memory."""
    made: Any = word.made
    per = 2 if getattr(made, "count", None) is not None else 1
    ring = Ring(draft, 4)
    box = draft.offset(draft.shared(4 * _THREADS), ring.tid, 4)
    at = ring.barrier(per * _THREADS)
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


def _filled(draft: Draft, box: Register, count: int, value: int) -> None:
    """A warp fills words of shared memory."""
    word = draft.reg("b32")
    draft(integer.add(word, draft.zero(), value, type="u32"))
    for offset in range(count):
        draft(memory.st(f"[{box}+{4 * offset}]", word, space="shared", type="b32"))


_STORED = ("b32", "b64", "u32", "u64", "s32", "s64", "f32", "f64")


@microtest(*((vec, kind) for vec in (None, "v2", "v4") for kind in _STORED),
           only_if=lambda vec, kind: not (vec == "v4" and kind.endswith("64")))  # fmt: skip
def st_async(draft: Draft, vec: Any, kind: Any) -> None:
    """Each thread stores to the neighbour, whose mbarrier gets the bytes."""
    _st_async(draft, vec, kind, "shared::cluster", None)


@microtest(*((space, order) for space in (None, "shared::cluster") for order in (None, "weak", "cluster")
             if space is None or order))  # fmt: skip
def st_async_orders(draft: Draft, space: Any, order: Any) -> None:
    """Orders, and generic addresses."""
    _st_async(draft, "v2", "u32", space, order)


def _st_async(draft: Draft, vec: Any, kind: Any, space: Any, order: Any) -> None:
    ring = Ring(draft, 4)
    size, count = int(kind[1:]) // 8, int(vec[1:]) if vec else 1
    step = 16 if size * count > 8 else 8
    box = draft.offset(draft.shared(step * _THREADS), ring.tid, step)
    at = ring.barrier(1)
    ready = draft.label("ready")
    draft.branch(ready, draft.is_thread(0), negated=True)
    draft(mbarrier.arrive_expect_tx("_", f"[{at}]", size * count * _THREADS, space="shared::cta"))
    draft.place(ready)
    values = []
    for index in range(count):
        word = draft.reg("b32")
        draft(integer.add(word, ring.value(13), index, type="u32"))
        if size == 8:
            long = draft.reg("b64")
            draft(conversion.cvt(long, word, dtype="u64", atype="u32"))
            word = long
        values.append(word)
    to, mbar = (ring.remote(each) if space else ring.generic(each) for each in (box, at))
    options: dict[str, Any] = {"order": order} if order else {}
    draft(memory.st_async(f"[{to}]", values if vec else values[0], f"[{mbar}]", vec=vec, space=space, type=kind,
                          **options))  # fmt: skip
    draft.wait(at)
    total = draft.reg("b32")
    draft(integer.add(total, draft.zero(), 0, type="u32"))
    for index in range(count):
        word = draft.reg("b32")
        draft(memory.ld(word, f"[{box}+{index * size}]", space="shared", type="b32"))
        draft(integer.mad(total, word, index + 1, total, half="lo", type="u32"))

    def expected(cta: int, tid: int) -> int:
        return sum((cta * 1000 + tid * 13 + index) * (index + 1) for index in range(count))

    draft.store(ring.out(ring.from_before(expected)), total)
    ring.meet()


@microtest()
def st_async_b128(draft: Draft) -> None:
    """128 bits at once."""
    ring = Ring(draft, 4)
    box, at = draft.offset(draft.shared(16 * _THREADS), ring.tid, 16), ring.barrier(1)
    ready = draft.label("ready")
    draft.branch(ready, draft.is_thread(0), negated=True)
    draft(mbarrier.arrive_expect_tx("_", f"[{at}]", 16 * _THREADS, space="shared::cta"))
    draft.place(ready)
    whole = draft.reg("b128")
    draft(move.mov_pack4(whole, [ring.value(factor) for factor in (3, 5, 7, 11)], type="b128"))
    draft(memory.st_async(f"[{ring.remote(box)}]", whole, f"[{ring.remote(at)}]", space="shared::cluster", type="b128"))
    draft.wait(at)
    words, total = draft.regs("b32", 4), draft.reg("b32")
    draft(memory.ld(words, f"[{box}]", space="shared", vec="v4", type="b32"))
    draft(integer.add(total, draft.zero(), 0, type="u32"))
    for number, word in enumerate(words):
        draft(integer.mad(total, word, number + 1, total, half="lo", type="u32"))
    factor = 3 + 2 * 5 + 3 * 7 + 4 * 11
    draft.store(ring.out(ring.from_before(lambda cta, tid: cta * 10000 + tid * factor)), total)
    ring.meet()


_REDUCTIONS = {
    "inc": "u32", "dec": "u32", "min": "u32 s32", "max": "u32 s32", "add": "u32 s32 u64 s64", "and": "b32", "or": "b32",
    "xor": "b32",
}  # fmt: skip


@microtest(*((op, kind) for op, kinds in _REDUCTIONS.items() for kind in kinds.split()))
def red_async(draft: Draft, op: Any, kind: Any) -> None:
    """All threads of a CTA reduce into one word of the neighbour."""
    _red_async(draft, op, kind, "shared::cluster")


@microtest()
def red_async_generic(draft: Draft) -> None:
    """By generic addresses."""
    _red_async(draft, "add", "u32", None)


def _red_async(draft: Draft, op: Any, kind: Any, space: Any) -> None:
    ring = Ring(draft, 4)
    size = int(kind[1:]) // 8
    box = draft.shared(8, 8)
    ready = draft.label("ready")
    draft.branch(ready, draft.is_thread(0), negated=True)
    _filled(draft, box, 2, 20)
    draft.place(ready)
    at = ring.barrier(1)
    armed = draft.label("armed")
    draft.branch(armed, draft.is_thread(0), negated=True)
    draft(mbarrier.arrive_expect_tx("_", f"[{at}]", size * _THREADS, space="shared::cta"))
    draft.place(armed)
    word = draft.reg("b32")
    bound = op in ("inc", "dec")
    draft(integer.add(word, draft.zero() if bound else ring.tid, 45 if bound else 3, type="u32"))
    operand: Any = word
    if size == 8:
        operand = draft.reg("b64")
        draft(conversion.cvt(operand, word, dtype="u64", atype="u32"))
    to, mbar = (ring.remote(each) if space else ring.generic(each) for each in (box, at))
    draft(atomic.red_async(f"[{to}]", operand, f"[{mbar}]", space=space, op=op, type=kind))
    draft.wait(at)
    found = draft.reg("b32")
    draft(memory.ld(found, f"[{box}]", space="shared", type="b32"))
    value = 20
    for tid in range(_THREADS):
        other = 45 if bound else tid + 3
        value = {
            "inc": 0 if value >= other else value + 1, "dec": other if value == 0 or value > other else value - 1,
            "min": min(value, other), "max": max(value, other), "add": value + other, "and": value & other,
            "or": value | other, "xor": value ^ other,
        }[op]  # fmt: skip
    draft.store(ring.out(np.full((8, _THREADS), value)), found)
    ring.meet()


@microtest(16)
def large_cluster(draft: Draft, size: int) -> None:
    """Sixteen CTAs, which need leave of the launch."""
    ring = Ring(draft, size)
    box = draft.offset(draft.shared(4 * _THREADS), ring.tid, 4)
    draft.store(box, ring.value(5), space="shared")
    ring.meet()
    found = draft.reg("b32")
    draft(memory.ld(found, f"[{ring.remote(box)}]", space="shared::cluster", type="b32"))
    ctas = np.arange(2 * size)
    after = ctas // size * size + (ctas + 1) % size
    draft.store(ring.out(after[:, None] * 1000 + np.arange(_THREADS) * 5), found)
    ring.meet()


_AT_ONCE = (
    mbarrier.arrive_multicast, mbarrier.arrive_drop_multicast, mbarrier.arrive_expect_tx_multicast,
    mbarrier.arrive_drop_expect_tx_multicast, mbarrier.expect_tx_multicast, mbarrier.complete_tx_multicast,
)  # fmt: skip


@microtest(*(Word(made) for form in _AT_ONCE for made in form.variants()))
def mbarriers_at_once(draft: Draft, word: Any) -> None:
    """One thread works on the mbarriers of several CTAs: the phase ends in those of the mask, in no other."""
    made, mask, size = word.made, 0b1010, 16
    name = type(made).__name__
    ring = Ring(draft, 4)
    counted = getattr(made, "count", None) is not None
    at = ring.barrier(2 if counted else 1)
    end, first = draft.label("end"), draft.reg("pred")
    draft(predicate.setp(first, ring.rank, 2, compare="eq", type="u32"))
    draft.branch(end, first, negated=True)
    draft.branch(end, draft.is_thread(0), negated=True)
    place, bits = f"[{at if made.space else draft.generic(at)}]", draft.scalar("u32", mask)

    def others(form: Any, *operands: Any) -> None:
        draft(form(*operands[:1], f"[{at}]", *operands[1:], mask=bits, space="shared::cluster"))

    def tx(form: Any) -> None:
        draft(form(f"[{at}]", size, mask=bits, space="shared::cluster"))

    if name == "complete_tx_multicast":
        draft(like(made, place, size, bits))
        others(mbarrier.arrive_expect_tx_multicast, "_", size)
    elif name == "expect_tx_multicast":
        draft(like(made, place, size, bits))
        others(mbarrier.arrive_multicast, "_")
        tx(mbarrier.complete_tx_multicast)
    else:
        given = [size] if "expect_tx" in name else []
        draft(like(made, "_", place, *given, mask=bits, **({"count": 2} if counted else {})))
        if given:
            tx(mbarrier.complete_tx_multicast)
    draft.place(end)
    ring.meet()
    ended = draft.reg("pred")
    draft(mbarrier.test_wait_parity(ended, f"[{at}]", 0, sem="acquire", scope="cluster", space="shared::cta"))
    expected = np.array([mask >> cta % 4 & 1 for cta in range(8)])
    draft.store(ring.out(np.repeat(expected[:, None], _THREADS, 1)), draft.as_word(ended))
    ring.meet()
