"""Barriers of a CTA. References from PTX ISA 9.7.13.1 and 9.7.13.2."""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from ptxgen.instr import barrier, control, integer, logic, memory, move, predicate

_THREADS = 128


def _exchange(draft: Draft, synchronize: Any) -> None:
    """Each thread reads what another warp stored before the barrier."""
    draft.launch(block=_THREADS)
    tid = draft.thread
    box, out = draft.shared(4 * _THREADS), draft.output((np.arange(_THREADS, dtype=np.uint32) ^ 0x60) * 3 + 1)
    value, partner, found = draft.reg("b32"), draft.reg("b32"), draft.reg("b32")

    draft(integer.mad(value, tid, 3, 1, half="lo", type="u32"))
    draft.store(draft.offset(box, tid, 4), value, space="shared")
    synchronize(draft)
    draft(logic.xor(partner, tid, 0x60, type="b32"))
    draft(memory.ld(found, f"[{draft.offset(box, partner, 4)}]", space="shared", type="b32"))
    draft.store(draft.offset(out, tid, 4), found)


@microtest(*((cta, number) for cta in (False, True) for number in (0, 7, 15)))
def bar_sync(draft: Draft, cta: bool, number: int) -> None:
    """All threads; every form of the name, constant and in a register."""
    _exchange(draft, lambda d: d(barrier.bar_sync(number, cta=cta)))


@microtest()
def bar_sync_register(draft: Draft) -> None:
    """The name and the number of threads in registers."""
    name, count = draft.scalar("u32", 3), draft.scalar("u32", _THREADS)
    _exchange(draft, lambda d: d(barrier.bar_sync(name, count)))


@microtest(False, True)
def barrier_sync(draft: Draft, aligned: bool) -> None:
    """barrier.sync, which need not be aligned."""
    _exchange(draft, lambda d: d(barrier.barrier_sync(1, _THREADS, aligned=aligned)))


@microtest("bar", "barrier", "aligned")
def arrive(draft: Draft, which: str) -> None:
    """Two warps arrive and go on, two wait: what the former stored is there."""
    draft.launch(block=_THREADS)

    tid = draft.thread
    box = draft.shared(4 * 64)
    out = draft.output(np.arange(64, dtype=np.uint32) * 5 + 2)
    consumer, index, value = draft.reg("pred"), draft.reg("b32"), draft.reg("b32")
    draft(predicate.setp(consumer, tid, 64, compare="ge", type="u32"))
    draft(logic.and_(index, tid, 63, type="b32"))
    wait, end = draft.label("wait"), draft.label("end")
    draft.branch(wait, consumer)
    draft(integer.mad(value, index, 5, 2, half="lo", type="u32"))
    draft.store(draft.offset(box, index, 4), value, space="shared")
    if which == "bar":
        draft(barrier.bar_arrive(2, _THREADS))
    else:
        draft(barrier.barrier_arrive(2, _THREADS, aligned=which == "aligned"))
    draft(control.bra(end))
    draft.place(wait)
    if which == "bar":
        draft(barrier.bar_sync(2, _THREADS))
    else:
        draft(barrier.barrier_sync(2, _THREADS, aligned=which == "aligned"))
    draft(memory.ld(value, f"[{draft.offset(box, index, 4)}]", space="shared", type="b32"))
    draft.store(draft.offset(out, index, 4), value)
    draft.place(end)


def _thirds(draft: Draft) -> Any:
    """A predicate that holds in every third thread."""

    rest, found = draft.reg("b32"), draft.reg("pred")
    draft(integer.rem(rest, draft.thread, 3, type="u32"), predicate.setp(found, rest, 0, compare="eq", type="u32"))
    return found


@microtest("bar", "barrier", "aligned")
def red_popc(draft: Draft, which: str) -> None:
    """How many threads' predicates hold."""
    draft.launch(block=_THREADS)
    tid, given, found = draft.thread, _thirds(draft), draft.reg("b32")
    out = draft.output(np.full(_THREADS, len(range(0, _THREADS, 3)), np.uint32))
    if which == "bar":
        draft(barrier.bar_red_popc(found, 1, given))
    else:
        draft(barrier.barrier_red_popc(found, 1, given, aligned=which == "aligned"))
    draft.store(draft.offset(out, tid, 4), found)


@microtest(*((which, op, every) for which in ("bar", "barrier") for op in ("and", "or") for every in (False, True)))
def red(draft: Draft, which: str, op: Any, every: bool) -> None:
    """Whether all, or any, predicates hold; also where all do."""
    draft.launch(block=_THREADS)
    tid, found = draft.thread, draft.reg("pred")
    given = _thirds(draft)
    if every:
        draft(predicate.setp(given, tid, 1000, compare="lt", type="u32"))
    expected = 1 if every or op == "or" else 0
    out = draft.output(np.full(_THREADS, expected, np.uint32))
    if which == "bar":
        draft(barrier.bar_red(found, 4, given, op=op))
    else:
        draft(barrier.barrier_red(found, 4, given, op=op))
    draft.store(draft.offset(out, tid, 4), draft.as_word(found))


@microtest()
def bar_warp_sync(draft: Draft) -> None:
    """Lanes of a warp see what the others stored before it."""
    draft.launch(block=32)

    tid, box = draft.thread, draft.shared(128)
    out = draft.output((31 - np.arange(32, dtype=np.uint32)) * 7)
    value, other = draft.reg("b32"), draft.reg("b32")
    draft(integer.mul(value, tid, 7, half="lo", type="u32"))
    draft.store(draft.offset(box, tid, 4), value, space="shared")
    draft(barrier.bar_warp_sync(0xFFFFFFFF))
    draft(logic.xor(other, tid, 31, type="b32"))
    draft(memory.ld(value, f"[{draft.offset(box, other, 4)}]", space="shared", type="b32"))
    draft.store(draft.offset(out, tid, 4), value)


@microtest(*(0xFFFF, 0x55555555, 0x00000001))
def bar_warp_sync_parts(draft: Draft, first: int) -> None:
    """Lanes of a mask wait for no others: the rest spin behind their own barrier until the first ones are past theirs.

    Then all synchronize, and each lane reads the value stored by the opposite one.
    """
    draft.launch(block=32)
    tid, box, flag = draft.thread, draft.shared(128), draft.shared(4)
    out = draft.output((31 - np.arange(32, dtype=np.uint32)) * 7)
    value, other, bit, is_first = (draft.reg(kind) for kind in ("b32", "b32", "b32", "pred"))
    zero, seen, again = draft.reg("b32"), draft.reg("b32"), draft.reg("pred")
    parted, spin, join = draft.label("parted"), draft.label("spin"), draft.label("join")
    draft(move.mov(zero, 0, type="b32"), memory.st_volatile(f"[{flag}]", zero, space="shared", type="b32"))
    draft(barrier.bar_warp_sync(0xFFFFFFFF))
    draft(integer.mul(value, tid, 7, half="lo", type="u32"))
    draft.store(draft.offset(box, tid, 4), value, space="shared")
    draft(logic.shr(bit, first, tid, type="b32"), logic.and_(bit, bit, 1, type="b32"))
    draft(predicate.setp(is_first, bit, 1, compare="eq", type="u32"))
    draft.branch(parted, is_first, negated=True)
    draft(barrier.bar_warp_sync(first))
    draft(memory.st_volatile(f"[{flag}]", bit, space="shared", type="b32"))
    draft.branch(join)
    draft.place(parted)
    draft(barrier.bar_warp_sync(~first & 0xFFFFFFFF))
    draft.place(spin)
    draft(memory.ld_volatile(seen, f"[{flag}]", space="shared", type="b32"))
    draft(predicate.setp(again, seen, 1, compare="ne", type="u32"))
    draft.branch(spin, again)
    draft.place(join)
    draft(barrier.bar_warp_sync(0xFFFFFFFF))
    draft(logic.xor(other, tid, 31, type="b32"))
    draft(memory.ld(value, f"[{draft.offset(box, other, 4)}]", space="shared", type="b32"))
    draft.store(draft.offset(out, tid, 4), value)


@microtest(*((cta, some) for cta in (False, True) for some in (False, True)))
def barrier_sync_forms(draft: Draft, cta: bool, some: bool) -> None:
    """barrier.sync with its scope written out, and without the number of threads."""
    given = [_THREADS] if some else []
    _exchange(draft, lambda d: d(barrier.barrier_sync(2, *given, cta=cta)))


@microtest(
    *(
        (form, cta, aligned)
        for form in ("bar_red_popc", "bar_red", "barrier_red_popc", "barrier_red")
        for cta in (False, True)
        for aligned in (False, True)
        if form.startswith("barrier") or not aligned
    )
)
def red_of_some(draft: Draft, form: str, cta: bool, aligned: bool) -> None:
    """Of the three warps that take part; the fourth passes by."""
    draft.launch(block=_THREADS)
    tid, given, outside, end = draft.thread, _thirds(draft), draft.reg("pred"), draft.label("end")
    is_count = form.endswith("popc")
    expected = np.full(96, 32 if is_count else 1, np.uint32)
    out = draft.output(expected)
    draft(predicate.setp(outside, tid, 96, compare="ge", type="u32"))
    draft.branch(end, outside)
    options: dict[str, Any] = {"cta": cta} | ({"aligned": aligned} if form.startswith("barrier") else {})
    if not is_count:
        options["op"] = "or"
    found = draft.reg("b32" if is_count else "pred")
    draft(getattr(barrier, form)(found, 5, given, threads=96, **options))
    draft.store(draft.offset(out, tid, 4), found if is_count else draft.as_word(found))
    draft.place(end)


@microtest(*((form, cta) for form in ("bar_arrive", "barrier_arrive") for cta in (False, True)))
def arrive_scope(draft: Draft, form: str, cta: bool) -> None:
    """The scope of arrivals written out: a warp arrives, another waits for what it stored."""
    draft.launch(block=64)
    tid, lane = draft.thread, draft.masked(draft.thread, 5)
    box, out = draft.shared(128), draft.output(np.arange(32, dtype=np.uint32) * 3 + 64)
    first, value = draft.reg("pred"), draft.reg("b32")
    wait, end = draft.label("wait"), draft.label("end")
    draft(predicate.setp(first, tid, 32, compare="lt", type="u32"))
    draft.branch(wait, first, negated=True)
    draft(integer.mad(value, tid, 3, 64, half="lo", type="u32"))
    draft.store(draft.offset(box, lane, 4), value, space="shared")
    draft(getattr(barrier, form)(6, 64, cta=cta), control.bra(end))
    draft.place(wait)
    draft(barrier.barrier_sync(6, 64, cta=cta))
    draft(memory.ld(value, f"[{draft.offset(box, lane, 4)}]", space="shared", type="b32"))
    draft.store(draft.offset(out, lane, 4), value)
    draft.place(end)
