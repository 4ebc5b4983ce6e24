"""Fences: what a thread stored before one is seen by a thread that has seen a later flag. PTX ISA 9.7.13.4.

A fence of memory cannot be seen in the values of one thread; here one thread hands data to another, and the proxy
fences stand where copies through other proxies need them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.mbarrier import Word
from microtests.tma import Load
from ptxgen.builder import Register
from ptxgen.instr import barrier, bulk, cluster, fence, integer, memory, predicate
from ptxgen.instr.model.form import Instruction

_THREADS = 64


def _wait_for(draft: Draft, flag: Register, scope: Any) -> None:
    """Until the flag is set."""
    again, seen, value = draft.label("again"), draft.reg("pred"), draft.reg("b32")
    draft.place(again)
    draft(memory.ld_ordered(value, f"[{flag}]", sem="relaxed", scope=scope, space="global", type="b32"))
    draft(predicate.setp(seen, value, 1, compare="eq", type="u32"))
    draft.branch(again, seen, negated=True)


def _hand_over(draft: Draft, before: Instruction, after: Instruction, scope: Any) -> None:
    """The first warp of the last CTA stores words and a flag; one of another warp, or CTA, waits for it and reads."""
    wide = scope != "cta"
    draft.launch(grid=2 if wide else 1, block=_THREADS, cluster=2 if scope == "cluster" else None)
    tid, end, reads = draft.thread, draft.label("end"), draft.label("reads")
    data, words = draft.input(np.zeros(32, np.uint32)), np.arange(32, dtype=np.uint32) * 13 + 5
    out, flag = draft.output(words), draft.output(np.ones(1, np.uint32), initial=np.zeros(1, np.uint32))
    lane, writer = draft.masked(tid, 5), draft.reg("pred", "writer")
    place, value = draft.offset(data, lane, 4), draft.reg("b32")
    if wide:
        draft(predicate.setp(writer, tid, 32, compare="ge", type="u32"))
        draft.branch(end, writer)
        draft(predicate.setp(writer, draft.special("ctaid.x"), 1, compare="eq", type="u32"))
    else:
        draft(predicate.setp(writer, tid, 32, compare="ge", type="u32"))
    draft.branch(reads, writer, negated=True)
    draft(integer.mad(value, lane, 13, 5, half="lo", type="u32"))
    draft.store(place, value)
    draft(before, barrier.bar_warp_sync(0xFFFFFFFF))
    first = draft.reg("pred")
    draft(predicate.setp(first, lane, 0, compare="eq", type="u32"))
    draft(memory.st_ordered(f"[{flag}]", 1, sem="relaxed", scope=scope, space="global", type="u32").when(first))
    draft.branch(end)
    draft.place(reads)
    _wait_for(draft, flag, scope)
    draft(after, memory.ld(value, f"[{place}]", space="global", type="b32"))
    draft.store(draft.offset(out, lane, 4), value)
    draft.place(end)
    if scope == "cluster":
        draft(cluster.arrive(), cluster.wait())


@microtest(
    *((sem, scope) for sem in (None, "sc", "acq_rel", "release+acquire") for scope in ("cta", "cluster", "gpu", "sys"))
)
def thread(draft: Draft, sem: Any, scope: Any) -> None:
    """fence, in every scope: of both kinds at once, or one that releases and one that acquires."""
    given: list[Any] = (sem or "").split("+")
    before, after = (fence.fence(sem=each or None, scope=scope) for each in (given[0], given[-1]))
    _hand_over(draft, before, after, scope)


@microtest("cta", "gl", "sys")
def membar(draft: Draft, level: Any) -> None:
    """The older fences."""
    _hand_over(draft, fence.membar(level=level), fence.membar(level=level), {"gl": "gpu"}.get(level, level))


@microtest()
def shared_of_the_cluster(draft: Draft) -> None:
    """Release and acquire for shared memory alone: a store to the own CTA's, which the peer reads."""
    draft.launch(grid=2, block=32, cluster=2)
    tid, peer, value = draft.thread, draft.reg("b32", "peer"), draft.reg("b32")
    rank = draft.special("cluster_ctarank")
    draft(integer.sub(peer, 1, rank, type="u32"), integer.mad(value, rank, 100, tid, half="lo", type="u32"))
    place, remote = draft.offset(draft.shared(128), tid, 4), draft.reg("b32")
    draft.store(place, value, space="shared")
    draft(fence.fence_release_shared(), cluster.arrive(sem="relaxed"), cluster.wait(), fence.fence_acquire_shared())
    draft(cluster.mapa(remote, place, peer, space="shared::cluster", type="u32"))
    draft(memory.ld(value, f"[{remote}]", space="shared::cluster", type="b32"))
    at = draft.offset(draft.output(np.array([100 + np.arange(32), np.arange(32)]).astype(np.uint32)), rank, 128)
    draft.store(draft.offset(at, tid, 4), value)
    draft(cluster.arrive(), cluster.wait())


_ALONE: tuple[type[Instruction], ...] = (
    fence.fence_proxy_alias,
    fence.fence_proxy_alias_ordered,
    fence.fence_proxy_async_acquire,
    fence.fence_proxy_async_release,
    fence.fence_proxy_async_release_reads,
    fence.fence_proxy_tensormap_release,
    fence.fence_release_reads,
    fence.membar_proxy,
)


@microtest(*(Word(made) for form in _ALONE for made in form.variants()))
def alone(draft: Draft, word: Word) -> None:
    """Fences whose effect needs aliases, or other agents: the kernel around one does what it does without."""
    draft.launch(block=_THREADS)
    tid, value = draft.thread, draft.reg("b32")
    place = draft.offset(draft.output(np.arange(_THREADS, dtype=np.uint32) * 5), tid, 4)
    draft(integer.mul(value, tid, 5, half="lo", type="u32"))
    draft.store(place, value)
    draft(word.made, memory.ld(value, f"[{place}]", space="global", type="b32"))
    draft.store(place, value)


@microtest(None, "global")
def before_a_load(draft: Draft, space: Any) -> None:
    """fence.proxy.async between stores to global memory and a bulk copy that reads them."""
    kernel = Load(draft, 1024)
    words = (np.arange(256, dtype=np.uint32) * 7 + 1).view(np.uint8)
    data, value = draft.input(np.zeros(256, np.uint32)), draft.reg("b32")
    for number in (0, 128):
        draft(integer.mad(value, kernel.tid, 7, 1 + 7 * number, half="lo", type="u32"))
        draft.store(draft.offset(data, kernel.tid, 4), value, 4 * number)
    draft(fence.fence_proxy_async(space=space), barrier.bar_sync(0))
    kernel.run(
        1024, lambda to, bar: draft(bulk.load(f"[{to}]", f"[{data}]", 1024, f"[{bar}]", dst="shared::cluster")), words
    )


@microtest(None, "shared::cta", "shared::cluster")
def before_a_store(draft: Draft, space: Any) -> None:
    """fence.proxy.async between stores to shared memory and a bulk copy that reads them."""
    draft.launch(block=_THREADS)
    tid, value, end = draft.thread, draft.reg("b32"), draft.label("end")
    box, out = draft.shared(256, 128), draft.output(np.arange(_THREADS, dtype=np.uint32) * 3)
    draft(integer.mul(value, tid, 3, half="lo", type="u32"))
    draft.store(draft.offset(box, tid, 4), value, space="shared")
    draft(fence.fence_proxy_async(space=space), barrier.bar_sync(0))
    draft.branch(end, draft.is_thread(0), negated=True)
    draft(bulk.store(f"[{out}]", f"[{box}]", 256), bulk.commit_group(), bulk.wait_group(0))
    draft.place(end)
