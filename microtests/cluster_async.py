"""What CTAs of a cluster send each other without waiting: stores and reductions that an mbarrier counts.

References from PTX ISA 9.7.9.12, 9.7.13.7 and 9.7.13.15. CTA i of a cluster works on the memory of CTA i + 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.cluster import THREADS, Ring
from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.script import like
from microtests.mbarrier import Word
from ptxgen.builder import Register
from ptxgen.instr import atomic, conversion, integer, mbarrier, memory, move, predicate


def _filled(draft: Draft, box: Register, count: int, value: int) -> None:
    """A warp fills words of shared memory."""
    word = draft.reg("b32")
    draft(integer.add(word, draft.zero(), value, type="u32"))
    for offset in range(count):
        draft(memory.st(f"[{box}+{4 * offset}]", word, space="shared", type="b32"))


_STORED = ("b32", "b64", "u32", "u64", "s32", "s64", "f32", "f64")


@microtest(
    *((vec, kind) for vec in (None, "v2", "v4") for kind in _STORED),
    only_if=lambda vec, kind: not (vec == "v4" and kind.endswith("64")),
)
def st_async(draft: Draft, vec: Any, kind: Any) -> None:
    """Each thread stores to the neighbor, whose mbarrier gets the bytes."""
    _st_async(draft, vec, kind, "shared::cluster", None)


@microtest(
    *(
        (space, order)
        for space in (None, "shared::cluster")
        for order in (None, "weak", "cluster")
        if space is None or order
    )
)
def st_async_orders(draft: Draft, space: Any, order: Any) -> None:
    """Orders, and generic addresses."""
    _st_async(draft, "v2", "u32", space, order)


def _st_async(draft: Draft, vec: Any, kind: Any, space: Any, order: Any) -> None:
    ring = Ring(draft, 4)
    size, count = int(kind[1:]) // 8, int(vec[1:]) if vec else 1
    step = 16 if size * count > 8 else 8
    box = draft.offset(draft.shared(step * THREADS), ring.tid, step)
    at = ring.barrier(1)
    ready = draft.label("ready")
    draft.branch(ready, draft.is_thread(0), negated=True)
    draft(mbarrier.arrive_expect_tx("_", f"[{at}]", size * count * THREADS, space="shared::cta"))
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
    draft(
        memory.st_async(
            f"[{to}]", values if vec else values[0], f"[{mbar}]", vec=vec, space=space, type=kind, **options
        )
    )
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
    box, at = draft.offset(draft.shared(16 * THREADS), ring.tid, 16), ring.barrier(1)
    ready = draft.label("ready")
    draft.branch(ready, draft.is_thread(0), negated=True)
    draft(mbarrier.arrive_expect_tx("_", f"[{at}]", 16 * THREADS, space="shared::cta"))
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
    "inc": "u32",
    "dec": "u32",
    "min": "u32 s32",
    "max": "u32 s32",
    "add": "u32 s32 u64 s64",
    "and": "b32",
    "or": "b32",
    "xor": "b32",
}


@microtest(*((op, kind) for op, kinds in _REDUCTIONS.items() for kind in kinds.split()))
def red_async(draft: Draft, op: Any, kind: Any) -> None:
    """All threads of a CTA reduce into one word of the neighbor."""
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
    draft(mbarrier.arrive_expect_tx("_", f"[{at}]", size * THREADS, space="shared::cta"))
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
    for tid in range(THREADS):
        other = 45 if bound else tid + 3
        value = {
            "inc": 0 if value >= other else value + 1,
            "dec": other if value == 0 or value > other else value - 1,
            "min": min(value, other),
            "max": max(value, other),
            "add": value + other,
            "and": value & other,
            "or": value | other,
            "xor": value ^ other,
        }[op]
    draft.store(ring.out(np.full((8, THREADS), value)), found)
    ring.meet()


_AT_ONCE = (
    mbarrier.arrive_multicast,
    mbarrier.arrive_drop_multicast,
    mbarrier.arrive_expect_tx_multicast,
    mbarrier.arrive_drop_expect_tx_multicast,
    mbarrier.expect_tx_multicast,
    mbarrier.complete_tx_multicast,
)


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
    draft.store(ring.out(np.repeat(expected[:, None], THREADS, 1)), draft.as_word(ended))
    ring.meet()
