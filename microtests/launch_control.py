"""Cluster launch control: a CTA takes over one that has not started. References from PTX ISA 9.7.13.17, .18.

However many requests succeed, each CTA's work is done once: by itself, or by the one that took it over.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.questions import question
from ptxgen.builder import Register
from ptxgen.instr import atomic, barrier, cluster, control, fence, integer, logic, mbarrier, memory, predicate

#: More CTAs than a machine runs at once.
_GRID = 6000


def _first(draft: Draft, response: Register, how: str) -> Register:
    """Where the work is that was taken over; y and z of it are 0."""
    x, y, z, found = draft.regs("b32", 4)
    if how == "vector":
        draft(cluster.get_first_ctaid_vector([x, y, z, "_"], response))
    else:
        for register, dimension in ((x, "x"), (y, "y"), (z, "z")):
            which: Any = dimension
            draft(cluster.get_first_ctaid(register, response, dimension=which))
    draft(integer.add(found, x, y, type="u32"), integer.add(found, found, z, type="u32"))
    return found


@microtest(*((how, space, size) for how in ("scalar", "vector") for space in (None, "shared::cta") for size in (1, 2)))
def try_cancel(draft: Draft, how: str, space: Any, size: int) -> None:
    """A loop until a request is refused; in a cluster of two, one CTA issues it and both get the response."""
    draft.launch(grid=_GRID, block=32, cluster=size if size > 1 else None)
    tid, work, rank = draft.thread, draft.special("ctaid.x"), draft.special("cluster_ctarank")
    ones = np.ones(_GRID, np.uint32)
    out = draft.output(ones, initial=np.zeros(_GRID, np.uint32))
    box, bar = draft.shared(16), draft.shared(8, 8)
    first, asks = draft.is_thread(0), draft.reg("pred", "asks")
    draft(mbarrier.init(f"[{bar}]", 1, space="shared::cta").when(first), fence.fence_mbarrier_init())
    draft(predicate.setp(asks, rank, 0, compare="eq", type="u32", combine="and", c=first))

    def meet() -> None:
        draft(fence.fence_proxy_async(), barrier.bar_warp_sync(0xFFFFFFFF))
        if size > 1:
            draft(cluster.arrive(), cluster.wait())

    parity, again, granted = draft.reg("b32", "parity"), draft.label("again"), draft.reg("pred", "granted")
    draft(integer.add(parity, draft.zero(), 0, type="u32"))
    draft.place(again)
    done = draft.offset(out, work, 4)
    draft(atomic.red(f"[{done}]", 1, space="global", op="add", type="u32").when(first))
    draft(mbarrier.arrive_expect_tx("_", f"[{bar}]", 16, space="shared::cta").when(first))
    meet()
    places = [each if space else draft.generic(each) for each in (box, bar)]
    draft(cluster.try_cancel(f"[{places[0]}]", f"[{places[1]}]", space=space, multicast=size > 1).when(asks))
    waits, over = draft.label("waits"), draft.reg("pred")
    draft.place(waits)
    draft(mbarrier.try_wait_parity(over, f"[{bar}]", parity, space="shared::cta"))
    draft.branch(waits, over, negated=True)
    response = draft.reg("b128", "response")
    draft(memory.ld(response, f"[{box}]", space="shared", type="b128"))
    draft(cluster.is_canceled(granted, response))
    end = draft.label("end")
    draft.branch(end, granted, negated=True)
    draft(integer.add(work, _first(draft, response, how), rank, type="u32"))
    draft(logic.xor(parity, parity, 1, type="b32"))
    meet()
    draft.branch(again)
    draft.place(end)
    if size > 1:
        draft(cluster.arrive(), cluster.wait())
    draft(control.exit())
    assert tid


#: The words of all responses with a CTA, put together by or, less what its number accounts for; and of those without.
_LAYOUTS = {
    "x in word 0, y and z in the halves of word 1, bit 0 of word 2; refused: zeros": (0, 0, 1, 0, 0, 0, 0, 0),
    "the same; refused: anything but bit 0 of word 2": (0, 0, 1, 0, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF),
}


@question("Where in its 16 bytes has a response of cluster launch control what?", tuple(_LAYOUTS))
def response(draft: Draft, rule: str) -> None:
    """Every response's words, those with a CTA less its number, put together by or."""
    draft.launch(grid=(20, 15, 20), block=32)
    expected = np.array(_LAYOUTS[rule], np.uint32)
    out = draft.output(expected, initial=np.zeros(8, np.uint32))
    box, bar = draft.shared(16), draft.shared(8, 8)
    first, parity, again, waits = draft.is_thread(0), draft.reg("b32", "parity"), draft.label("again"), draft.label()
    draft(mbarrier.init(f"[{bar}]", 1, space="shared::cta").when(first), fence.fence_mbarrier_init())
    draft(integer.add(parity, draft.zero(), 0, type="u32"))
    draft.place(again)
    draft(mbarrier.arrive_expect_tx("_", f"[{bar}]", 16, space="shared::cta").when(first))
    draft(fence.fence_proxy_async(), barrier.bar_warp_sync(0xFFFFFFFF))
    draft(cluster.try_cancel(f"[{box}]", f"[{bar}]", space="shared::cta").when(first))
    over, granted, answer = draft.reg("pred"), draft.reg("pred"), draft.reg("b128")
    draft.place(waits)
    draft(mbarrier.try_wait_parity(over, f"[{bar}]", parity, space="shared::cta"))
    draft.branch(waits, over, negated=True)
    words = draft.regs("b32", 4)
    draft(memory.ld(answer, f"[{box}]", space="shared", type="b128"))
    draft(memory.ld(words, f"[{box}]", space="shared", vec="v4", type="b32"))
    draft(cluster.is_canceled(granted, answer))
    refused = draft.label("refused")
    draft.branch(refused, granted, negated=True)
    x, y, z = draft.regs("b32", 3)
    draft(cluster.get_first_ctaid_vector([x, y, z, "_"], answer), logic.shl(z, z, 16, type="b32"))
    draft(logic.xor(words[0], words[0], x, type="b32"), logic.or_(y, y, z, type="b32"))
    draft(logic.xor(words[1], words[1], y, type="b32"), logic.xor(parity, parity, 1, type="b32"))
    for index, word in enumerate(words):
        draft(atomic.red(f"[{out}+{4 * index}]", word, space="global", op="or", type="b32").when(first))
    draft.branch(again)
    draft.place(refused)
    for index, word in enumerate(words):
        draft(atomic.red(f"[{out}+{16 + 4 * index}]", word, space="global", op="or", type="b32").when(first))
    draft(control.exit())
