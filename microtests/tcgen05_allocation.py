"""tcgen05.alloc, dealloc and relinquish_alloc_permit. References from PTX ISA 9.7.16.7.

Which columns an allocation gets is open: what is put into it must stay, whatever is put into others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.tensor import LANES
from ptxgen.builder import Register
from ptxgen.instr import barrier, cluster, control, integer, logic, memory, predicate, tcgen05

_THREADS = 128


class Allocations:
    """A CTA of four warps, or a pair, whose allocations are made one by one."""

    def __init__(self, draft: Draft, ctas: int = 1) -> None:
        self.draft, self.ctas, self.group = draft, ctas, ctas
        draft.launch(grid=ctas, block=_THREADS, cluster=ctas if ctas > 1 else None)
        self.tid = draft.thread
        self.place = draft.shared(16)
        self.index = self.tid
        if ctas > 1:
            rank, self.index = draft.special("cluster_ctarank"), draft.reg("b32", "index")
            draft(integer.mad(self.index, rank, _THREADS, self.tid, half="lo", type="u32"))
        self.lanes = draft.reg("b32", "lanes")
        draft(logic.and_(self.lanes, self.tid, 0x60, type="b32"), logic.shl(self.lanes, self.lanes, 16, type="b32"))

    def by_warp(self, warp: int) -> str:
        """Only the threads of a warp go on until the label that this returns is placed."""
        skip, number, chosen = self.draft.label("others"), self.draft.reg("b32"), self.draft.reg("pred")
        self.draft(logic.shr(number, self.tid, 5, type="u32"))
        self.draft(predicate.setp(chosen, number, warp, compare="eq", type="u32"))
        self.draft.branch(skip, chosen, negated=True)
        return skip

    def meet(self) -> None:
        self.draft(tcgen05.fence(where="before_thread_sync"))
        if self.ctas > 1:
            self.draft(cluster.arrive(sem="release", aligned=True), cluster.wait(acquire=True, aligned=True))
        else:
            self.draft(barrier.bar_sync(0))
        self.draft(tcgen05.fence(where="after_thread_sync"))

    def alloc(self, columns: Any, warp: int = 0, generic: bool = False, exclusive: bool = False) -> Register:
        """The address of a new allocation, which a warp makes."""
        at = self.draft.generic(self.place) if generic else self.place
        skip = self.by_warp(warp)
        self.draft(
            tcgen05.alloc(
                f"[{at}]",
                columns,
                cta_group=self.group,  # type: ignore[arg-type]
                space=None if generic else "shared::cta",
                exclusive=exclusive,
            )
        )
        self.draft.place(skip)
        self.meet()
        found = self.draft.reg("b32", "base")
        self.draft(memory.ld(found, f"[{self.place}]", space="shared", type="b32"))
        self.meet()
        return found

    def dealloc(self, base: Register, columns: Any, warp: int = 0, exclusive: bool = False) -> None:
        self.meet()
        skip = self.by_warp(warp)
        self.draft(tcgen05.dealloc(base, columns, cta_group=self.group, exclusive=exclusive))  # type: ignore[arg-type]
        self.draft.place(skip)

    def relinquish(self, warp: int = 0) -> None:
        skip = self.by_warp(warp)
        self.draft(tcgen05.relinquish_alloc_permit(cta_group=self.group))  # type: ignore[arg-type]
        self.draft.place(skip)

    def mark(self, base: Register, column: int, value: int) -> None:
        """Put value + thread into a column of an allocation."""
        word = self.draft.reg("b32")
        self.draft(integer.add(word, self.index, value, type="u32"))
        self.draft(tcgen05.st(self._cell(base, column), [word], shape="32x32b", num=1), tcgen05.wait(what="st"))

    def _cell(self, base: Register, column: int) -> str:
        at = self.draft.reg("b32")
        self.draft(integer.add(at, base, self.lanes, type="u32"))
        return f"[{at}+{column}]"

    def see(self, base: Register, column: int, value: int) -> None:
        """The column must hold value + thread."""
        (word,) = words = self.draft.regs("b32", 1)
        self.draft(tcgen05.ld(words, self._cell(base, column), shape="32x32b", num=1), tcgen05.wait(what="ld"))
        self.out(word, value + np.arange(self.ctas * _THREADS))

    def out(self, word: Register, expected: np.ndarray) -> None:
        self.draft.store(self.draft.offset(self.draft.output(expected.astype(np.uint32)), self.index, 4), word)


_SIZES = ((512,), (256, 256), (256, 128, 128), (256, 128, 64, 32, 32), (128, 32, 32), (32,) * 16)


@microtest(*((sizes, ctas) for sizes in _SIZES for ctas in (1, 2)))
def alloc(draft: Draft, sizes: tuple[int, ...], ctas: int) -> None:
    """Allocations of all sizes have no column in common; addresses are of lane 0 and multiples of 32 columns."""
    made = Allocations(draft, ctas)
    bases = [made.alloc(size) for size in sizes]
    made.relinquish()
    for number, (base, size) in enumerate(zip(bases, sizes, strict=True)):
        for column in (0, size - 1):
            made.mark(base, column, 1000 * number + column)
    aligned = draft.reg("b32", "aligned")
    draft(logic.or_(aligned, bases[0], bases[-1], type="b32"), logic.and_(aligned, aligned, 0xFFFF001F, type="b32"))
    made.out(aligned, np.zeros(ctas * LANES))
    for number, (base, size) in enumerate(zip(bases, sizes, strict=True)):
        for column in (0, size - 1):
            made.see(base, column, 1000 * number + column)
    for base, size in zip(bases, sizes, strict=True):
        made.dealloc(base, size)


@microtest(*((warp, ctas) for warp in (1, 3) for ctas in (1, 2)))
def by_other_warps(draft: Draft, warp: int, ctas: int) -> None:
    """Any warp may allocate; another may free, and say that no more comes."""
    made = Allocations(draft, ctas)
    base = made.alloc(64, warp)
    made.mark(base, 63, 5)
    made.see(base, 63, 5)
    made.relinquish(2)
    made.dealloc(base, 64, warp=(warp + 1) % 4)


@microtest(1, 2)
def generic_address(draft: Draft, ctas: int) -> None:
    """Without a state space the address of an allocation goes to a generic address; the size is in a register."""
    made = Allocations(draft, ctas)
    size = draft.scalar("u32", 128)
    base = made.alloc(size, generic=True)
    made.mark(base, 127, 9)
    made.see(base, 127, 9)
    made.dealloc(base, size)


@microtest(1, 2)
def again(draft: Draft, ctas: int) -> None:
    """What was freed may be allocated again: more in all than there is."""
    made = Allocations(draft, ctas)
    kept = made.alloc(256)
    made.mark(kept, 100, 1)
    for number in range(3):
        base = made.alloc(256)
        made.mark(base, 255, 100 * number)
        made.see(base, 255, 100 * number)
        made.dealloc(base, 256)
    made.see(kept, 100, 1)
    made.dealloc(kept, 256)


@microtest(*((size, ctas) for size in (32, 96, 512) for ctas in (1, 2)))
def exclusive(draft: Draft, size: int, ctas: int) -> None:
    """.exclusive takes all columns, whatever the size says (newer than the manual: measured, ptxas 13.5)."""
    _exclusive(draft, size, ctas, generic=False)


@microtest(1, 2)
def exclusive_generic_address(draft: Draft, ctas: int) -> None:
    """The same without a state space."""
    _exclusive(draft, 64, ctas, generic=True)


def _exclusive(draft: Draft, size: int, ctas: int, *, generic: bool) -> None:
    made = Allocations(draft, ctas)
    base = made.alloc(size, generic=generic, exclusive=True)
    for column in (0, 511):
        made.mark(base, column, 10 * column)
    for column in (0, 511):
        made.see(base, column, 10 * column)
    made.dealloc(base, size, exclusive=True)


@microtest(512, 256, 32)
def blocks(draft: Draft, size: int) -> None:
    """An allocation waits until another warp has freed enough; that orders no memory, so the word is polled."""
    made = Allocations(draft)
    base = made.alloc(512)
    flag, later = draft.shared(4), draft.shared(4)
    for place in (flag, later):
        draft.store(place, draft.zero(), space="shared")
    made.meet()
    first = made.by_warp(0)
    word = draft.reg("b32")
    draft(integer.add(word, draft.zero(), 77, type="u32"))
    draft(memory.st_ordered(f"[{flag}]", word, sem="release", scope="cta", space="shared", type="b32"))
    draft(tcgen05.dealloc(base, 512, cta_group=1))
    draft.place(first)
    second, seen = made.by_warp(1), draft.reg("b32", "seen")
    draft(tcgen05.alloc(f"[{made.place}]", size, cta_group=1, space="shared::cta"))
    again, unset = draft.label("again"), draft.reg("pred", "unset")
    draft.place(again)
    draft(memory.ld_ordered(seen, f"[{flag}]", sem="acquire", scope="cta", space="shared", type="b32"))
    draft(predicate.setp(unset, seen, 0, compare="eq", type="u32"), control.bra(again).when(unset))
    draft(memory.st(f"[{later}]", seen, space="shared", type="b32"))
    draft.place(second)
    made.meet()
    draft(memory.ld(seen, f"[{later}]", space="shared", type="b32"))
    made.out(seen, np.full(_THREADS, 77))
    draft(memory.ld(base, f"[{made.place}]", space="shared", type="b32"))
    made.mark(base, size - 1, 3)
    made.see(base, size - 1, 3)
    made.dealloc(base, size)
