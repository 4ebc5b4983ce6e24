"""Special registers, control flow, and what only takes time. References from PTX ISA 9.7.12, 9.7.19 and 10."""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from ptxgen.instr import cluster, control, integer, logic, miscellaneous, predicate

_THREADS = 96


def _all(draft: Draft, expected: np.ndarray, register: Any) -> None:
    """A word of each thread of three CTAs."""
    index = draft.reg("b32", "index")
    draft(integer.mad(index, draft.special("ctaid.x"), _THREADS, draft.thread, half="lo", type="u32"))
    draft.store(draft.offset(draft.output(expected.astype(np.uint32)), index, 4), register)


_SPECIAL = {
    "tid.x": lambda cta, tid: tid,
    "tid.y": lambda cta, tid: 0,
    "ntid.x": lambda cta, tid: _THREADS,
    "ntid.z": lambda cta, tid: 1,
    "ctaid.x": lambda cta, tid: cta,
    "nctaid.x": lambda cta, tid: 3,
    "nctaid.y": lambda cta, tid: 1,
    "laneid": lambda cta, tid: tid % 32,
    "lanemask_eq": lambda cta, tid: 1 << tid % 32,
    "lanemask_lt": lambda cta, tid: (1 << tid % 32) - 1,
    "lanemask_le": lambda cta, tid: (2 << tid % 32) - 1,
    "lanemask_gt": lambda cta, tid: ~((2 << tid % 32) - 1) & 0xFFFFFFFF,
    "lanemask_ge": lambda cta, tid: ~((1 << tid % 32) - 1) & 0xFFFFFFFF,
    "cluster_ctarank": lambda cta, tid: 0,
    "cluster_nctarank": lambda cta, tid: 1,
}


@microtest(*_SPECIAL)
def special(draft: Draft, name: str) -> None:
    """Special registers whose values are defined."""
    draft.launch(grid=3, block=_THREADS)
    assert draft.thread
    expected = np.array([[_SPECIAL[name](cta, tid) for tid in range(_THREADS)] for cta in range(3)])
    _all(draft, expected, draft.special(name))


@microtest()
def nanosleep(draft: Draft) -> None:
    """Time passes; nothing else happens."""
    draft.launch(grid=3, block=_THREADS)
    assert draft.thread
    draft(miscellaneous.nanosleep(100), miscellaneous.nanosleep(draft.scalar("u32", 50)))
    _all(draft, np.tile(np.arange(_THREADS), (3, 1)), draft.thread)


@microtest()
def setmaxnreg(draft: Draft) -> None:
    """A warpgroup gives registers up and takes them again."""
    draft.launch(block=128)
    tid = draft.thread
    draft(miscellaneous.setmaxnreg(40, action="dec"), miscellaneous.setmaxnreg(64, action="inc"))
    draft.store(draft.offset(draft.output(np.arange(128, dtype=np.uint32)), tid, 4), tid)


@microtest()
def branches(draft: Draft) -> None:
    """Lanes diverge four ways, loop as often as their numbers say, and reconverge."""
    draft.launch(grid=3, block=_THREADS)
    tid, way = draft.thread, draft.reg("b32", "way")
    total, count, more = draft.reg("b32", "total"), draft.reg("b32", "count"), draft.reg("pred", "more")
    draft(logic.and_(way, tid, 3, type="b32"), integer.add(total, draft.zero(), 0, type="u32"))
    meet = draft.label("meet")
    for which in range(3):
        other, this = draft.label("other"), draft.reg("pred", "this")
        draft(predicate.setp(this, way, which, compare="eq", type="u32"))
        draft.branch(other, this, negated=True)
        draft(integer.add(total, total, 100 * (which + 1), type="u32"), control.bra(meet))
        draft.place(other)
    draft(integer.add(total, total, 7, type="u32"))
    draft.place(meet)
    draft(logic.and_(count, tid, 31, type="b32"))
    again = draft.label("again")
    draft.place(again)
    draft(integer.add(total, total, count, type="u32"), integer.sub(count, count, 1, type="s32"))
    draft(predicate.setp(more, count, 0, compare="gt", type="s32"))
    draft.branch(again, more)
    lanes = np.arange(_THREADS)
    ways = np.array([100, 200, 300, 7])[lanes % 4]
    loops = np.array([sum(range(1, lane % 32 + 1)) for lane in lanes])
    _all(draft, np.tile(ways + loops, (3, 1)), total)


@microtest("pmevent", "mask", "mark")
def events(draft: Draft, which: str) -> None:
    """Performance events: nobody looks at them."""
    draft.launch(grid=3, block=_THREADS)
    assert draft.thread
    draft(
        {
            "pmevent": lambda: miscellaneous.pmevent(7),
            "mask": lambda: miscellaneous.pmevent_mask(0x8001),
            "mark": lambda: miscellaneous.mark(12),
        }[which]()
    )
    _all(draft, np.tile(np.arange(_THREADS), (3, 1)), draft.thread)


@microtest("launch_dependents", "wait", "both")
def griddepcontrol(draft: Draft, which: str) -> None:
    """A grid that depends on none, and on which none depends, is not held up."""
    draft.launch(grid=3, block=_THREADS)
    assert draft.thread
    actions: tuple[Any, ...] = ("wait", "launch_dependents") if which == "both" else (which,)
    draft(*(cluster.griddepcontrol(action=action) for action in actions))
    _all(draft, np.tile(np.arange(_THREADS), (3, 1)), draft.thread)


@microtest((24, 240), (40, 232), (104, 200), (160, 168))
def setmaxnreg_of_three(draft: Draft, low: int, high: int) -> None:
    """A warpgroup gives up what two others take, which wait for it; their values stay."""
    draft.launch(block=384)
    tid, taker, end = draft.thread, draft.label("taker"), draft.label("end")
    first, value = draft.reg("pred"), draft.reg("b32")
    draft(integer.mul(value, tid, 5, half="lo", type="u32"))
    draft(predicate.setp(first, tid, 128, compare="lt", type="u32"))
    draft.branch(taker, first, negated=True)
    draft(miscellaneous.setmaxnreg(low, action="dec"))
    draft.branch(end)
    draft.place(taker)
    draft(miscellaneous.setmaxnreg(high, action="inc"))
    draft.place(end)
    draft.store(draft.offset(draft.output(np.arange(384, dtype=np.uint32) * 5), tid, 4), value)
