"""Barriers of a CTA. References from PTX ISA 9.7.13.1 and 9.7.13.2."""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from ptxgen.instr import barrier, control, integer, logic, memory, predicate

_THREADS = 128


def _exchange(draft: Draft, synchronise: Any) -> None:
    """Each thread reads what another warp stored before the barrier."""
    draft.launch(block=_THREADS)
    tid = draft.thread
    box, out = draft.shared(4 * _THREADS), draft.output((np.arange(_THREADS, dtype=np.uint32) ^ 0x60) * 3 + 1)
    value, partner, found = draft.reg("b32"), draft.reg("b32"), draft.reg("b32")

    draft(integer.mad(value, tid, 3, 1, half="lo", type="u32"))
    draft.store(draft.offset(box, tid, 4), value, space="shared")
    synchronise(draft)
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
