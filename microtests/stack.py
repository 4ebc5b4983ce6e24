"""Memory on the stack of a thread. References from PTX ISA 9.7.17."""

from __future__ import annotations

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from ptxgen.builder import Register
from ptxgen.instr import integer, logic, memory, predicate, stack

_THREADS = 64


def _fill(draft: Draft, place: Register, words: int, value: Register) -> None:
    """value, value + 1, ... in words of .local memory."""
    for number in range(words):
        word = draft.reg("b32")
        draft(integer.add(word, value, number, type="u32"))
        draft(memory.st(f"[{place}+{4 * number}]", word, space="local", type="b32"))


def _sum(draft: Draft, place: Register, words: int, total: Register) -> None:
    for number in range(words):
        word = draft.reg("b32")
        draft(memory.ld(word, f"[{place}+{4 * number}]", space="local", type="b32"))
        draft(integer.mad(total, word, number + 1, total, half="lo", type="u32"))


@microtest(None, 8, 16, 64, 512)
def alloca(draft: Draft, align: int | None) -> None:
    """Two pieces, whose sizes differ from lane to lane: each holds what is stored in it, at a multiple of `align`."""
    draft.launch(block=_THREADS)
    tid = draft.thread
    size, first, second = draft.reg("b64", "size"), draft.reg("b64", "first"), draft.reg("b64", "second")
    draft(integer.mul_wide(size, draft.masked(tid, 2), 16, type="u32"), integer.add(size, size, 32, type="u64"))
    given = [] if align is None else [align]
    draft(stack.alloca(first, size, *given, type="u64"), stack.alloca(second, 32, *given, type="u64"))
    _fill(draft, first, 8, tid)
    doubled = draft.reg("b32")
    draft(integer.add(doubled, tid, tid, type="u32"))
    _fill(draft, second, 8, doubled)
    total, rest, aligned = draft.reg("b32"), draft.reg("b64"), draft.reg("pred")
    draft(integer.add(total, draft.zero(), 0, type="u32"))
    _sum(draft, first, 8, total)
    _sum(draft, second, 8, total)
    draft(logic.or_(rest, first, second, type="b64"), logic.and_(rest, rest, (align or 8) - 1, type="b64"))
    draft(predicate.setp(aligned, rest, 0, compare="eq", type="u64"))
    threads = np.arange(_THREADS)
    expected = sum((threads + number) * (number + 1) + (2 * threads + number) * (number + 1) for number in range(8))
    out = draft.offset(draft.output(np.stack([expected, np.ones(_THREADS)], 1).astype(np.uint32)), tid, 8)
    draft.store(out, total)
    draft.store(out, draft.as_word(aligned), 4)


@microtest()
def save_and_restore(draft: Draft) -> None:
    """What was taken after the save is free again: the next piece is where the one before it was."""
    draft.launch(block=_THREADS)
    tid = draft.thread
    kept, saved, other, first, again = (draft.reg("b64") for _ in range(5))
    total, same = draft.reg("b32"), draft.reg("pred")
    draft(stack.alloca(kept, 32, type="u64"))
    _fill(draft, kept, 8, tid)
    draft(stack.stacksave(saved, type="u64"), stack.alloca(first, 256, type="u64"))
    _fill(draft, first, 8, tid)
    draft(stack.stackrestore(saved, type="u64"), stack.stacksave(other, type="u64"))
    draft(stack.alloca(again, 256, type="u64"), predicate.setp(same, first, again, compare="eq", type="u64"))
    draft(integer.add(total, draft.zero(), 0, type="u32"))
    _sum(draft, kept, 8, total)
    threads = np.arange(_THREADS)
    expected = [sum((threads + number) * (number + 1) for number in range(8)), np.ones(_THREADS), np.ones(_THREADS)]
    out = draft.offset(draft.output(np.stack(expected, 1).astype(np.uint32)), tid, 12)
    draft.store(out, total)
    draft.store(out, draft.as_word(same), 4)
    draft(predicate.setp(same, saved, other, compare="eq", type="u64"))
    draft.store(out, draft.as_word(same), 8)
