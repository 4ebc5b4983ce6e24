"""cp.async: words from global to shared memory. References from PTX ISA 9.7.9.25.3."""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from ptxgen.builder import Register
from ptxgen.instr import async_copy, barrier, cache, fence, logic, mbarrier, memory, predicate

_THREADS = 64
_SIZES = ((4, "ca"), (8, "ca"), (16, "ca"), (16, "cg"))


def _source(size: int, copies: int = 1) -> np.ndarray:
    return np.random.default_rng(61).integers(0, 256, (copies, _THREADS, size)).astype(np.uint8)


def _run(draft: Draft, size: int, copies: int, expected: np.ndarray, copy: Any, wait: Any) -> None:
    """Each thread copies `size` bytes, `copies` times; `wait` is for what it did; the memory is dumped."""
    draft.launch(block=_THREADS)
    tid = draft.thread
    total = copies * _THREADS * size
    box = draft.shared(total, 128)
    draft.copy_in(box, np.full(total, 0xA5, np.uint8))
    source, to = draft.offset(draft.input(_source(size, copies)), tid, size), draft.offset(box, tid, size)
    for number in range(copies):
        step = number * _THREADS * size
        copy(f"[{to}+{step}]", f"[{source}+{step}]", number)
    wait()
    draft.copy_out(box, draft.output(expected.reshape(-1)), total)


@microtest(*((size, cop, wait) for size, cop in _SIZES for wait in ("all", "group")))
def copy(draft: Draft, size: int, cop: Any, wait: str) -> None:
    """Every size, past the L1 cache or through it."""

    def waits() -> None:
        if wait == "all":
            draft(async_copy.wait_all())
        else:
            draft(async_copy.commit_group(), async_copy.wait_group(0))

    _run(
        draft,
        size,
        1,
        _source(size),
        lambda to, of, _: draft(async_copy.copy(to, of, size=size, cop=cop, dst_space="shared::cta")),
        waits,
    )


@microtest(*((size, cop, part) for size, cop in _SIZES for part in (0, 1, size // 2, size - 1, size)))
def source_size(draft: Draft, size: int, cop: Any, part: int) -> None:
    """Of the source only the first bytes are read; zeros stand for the others."""
    expected = _source(size).copy()
    expected[:, :, part:] = 0
    count = draft.scalar("u32", part)
    _run(
        draft,
        size,
        1,
        expected,
        lambda to, of, _: draft(async_copy.copy(to, of, size=size, src_size=count, cop=cop, dst_space="shared")),
        lambda: draft(async_copy.wait_all()),
    )


@microtest(*_SIZES)
def ignore(draft: Draft, size: int, cop: Any) -> None:
    """Where the predicate holds, zeros are written."""
    expected = _source(size).copy()
    expected[:, 1::2] = 0
    draft.launch(block=_THREADS)
    bit, odd = draft.reg("b32"), draft.reg("pred")
    draft(logic.and_(bit, draft.thread, 1, type="b32"), predicate.setp(odd, bit, 1, compare="eq", type="u32"))
    _run(
        draft,
        size,
        1,
        expected,
        lambda to, of, _: draft(
            async_copy.copy_ignore(to, of, size=size, ignore=odd, cop=cop, dst_space="shared::cta")
        ),
        lambda: draft(async_copy.wait_all()),
    )


@microtest("64B", "128B", "256B", "hint")
def prefetching(draft: Draft, which: str) -> None:
    """Hints change nothing."""
    options: dict[str, Any] = {"prefetch": f"L2::{which}"}
    if which == "hint":
        policy = draft.reg("b64", "policy")
        draft(cache.createpolicy_fractional(policy, 1.0, first="evict_last"))
        options = {"hint": True, "policy": policy}
    _run(
        draft,
        16,
        1,
        _source(16),
        lambda to, of, _: draft(async_copy.copy(to, of, size=16, cop="cg", dst_space="shared::cta", **options)),
        lambda: draft(async_copy.wait_all()),
    )


@microtest(0, 1, 2)
def groups(draft: Draft, pending: Any) -> None:
    """Three groups, of which the latest may be under way when the others are read."""
    draft.launch(block=_THREADS)
    tid = draft.thread
    values = _source(16, 3)
    box = draft.offset(draft.shared(3 * _THREADS * 16, 128), tid, 16)
    source = draft.offset(draft.input(values), tid, 16)
    out = draft.offset(draft.output(np.ascontiguousarray(values[: 3 - pending])), tid, 16)
    for number in range(3):
        step = number * _THREADS * 16
        draft(async_copy.copy(f"[{box}+{step}]", f"[{source}+{step}]", size=16, cop="cg", dst_space="shared::cta"))
        draft(async_copy.commit_group())
    draft(async_copy.wait_group(pending))
    for number in range(3 - pending):
        step = number * _THREADS * 16
        words = draft.regs("b32", 4)
        draft(memory.ld(words, f"[{box}+{step}]", space="shared", vec="v4", type="b32"))
        draft(memory.st(f"[{out}+{step}]", words, space="global", vec="v4", type="b32"))


@microtest(*((noinc, space) for noinc in (False, True) for space in (None, "shared", "shared::cta")))
def mbarrier_arrive(draft: Draft, noinc: bool, space: Any) -> None:
    """The mbarrier's phase ends when all threads' copies are there."""
    draft.launch(block=_THREADS)
    tid = draft.thread
    bar, ready = draft.shared(8, 8), draft.label("ready")
    total = _THREADS * 16
    box = draft.shared(total, 128)
    draft.branch(ready, draft.is_thread(0), negated=True)
    # Without noinc the phase expects one arrival more for each; the threads' own arrivals are these then.
    draft(mbarrier.init(f"[{bar}]", _THREADS, space="shared::cta"), fence.fence_mbarrier_init())
    draft.place(ready)
    draft(barrier.bar_sync(0))
    source, to = draft.offset(draft.input(_source(16)), tid, 16), draft.offset(box, tid, 16)
    draft(async_copy.copy(f"[{to}]", f"[{source}]", size=16, cop="cg", dst_space="shared::cta"))
    place: Register = bar if space else draft.generic(bar)
    draft(mbarrier.cp_async_arrive(f"[{place}]", noinc=noinc, space=space))
    if not noinc:
        draft(mbarrier.arrive("_", f"[{bar}]", space="shared::cta"))
    draft.wait(bar)
    draft.copy_out(box, draft.output(_source(16).reshape(-1)), total)


@microtest(
    *(
        (form, dst, which)
        for form in ("copy", "copy_ignore")
        for dst in ("shared", "shared::cta")
        for which in ("L1::32B", "L2::64B", "L2::128B", "L2::256B", "hint")
    )
)
def hints(draft: Draft, form: str, dst: Any, which: str) -> None:
    """Of both forms, in both spellings of the destination."""
    expected = _source(8).copy()
    options: dict[str, Any] = {"prefetch": which}
    draft.launch(block=_THREADS)
    if form == "copy_ignore":
        expected[:, 40:] = 0
        late = draft.reg("pred")
        draft(predicate.setp(late, draft.thread, 40, compare="ge", type="u32"))
        options["ignore"] = late
    if which == "hint":
        policy = draft.reg("b64", "policy")
        draft(cache.createpolicy_fractional(policy, 1.0, first="evict_last"))
        options.update(prefetch=None, hint=True, policy=policy)
    _run(
        draft,
        8,
        1,
        expected,
        lambda to, of, _: draft(getattr(async_copy, form)(to, of, size=8, cop="ca", dst_space=dst, **options)),
        lambda: draft(async_copy.wait_all()),
    )
