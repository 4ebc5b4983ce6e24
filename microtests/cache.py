"""What is said to the caches. Hints change no values (PTX ISA 9.7.9.15 to 9.7.9.18).

The bits of policies are in no manual: those of CUTLASS's constants, and otherwise what ptxas computes and an H200 gave.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.mbarrier import Word
from microtests.tma import strides_of, tensor_of
from ptxgen.descriptors import TensorMap
from ptxgen.instr import address, barrier, cache, memory, move

_THREADS = 32


def _unchanged(draft: Draft, made: Any) -> None:
    """A line of memory is as before after an instruction on its address; `made(address)` is that."""
    draft.launch(block=_THREADS)
    tid, value = draft.thread, draft.reg("b32")
    words = np.random.default_rng(5).integers(0, 2**32, _THREADS, dtype=np.uint32)
    line, out = draft.input(words), draft.output(words)
    draft(made(line), memory.ld(value, f"[{draft.offset(line, tid, 4)}]", space="global", type="b32"))
    draft.store(draft.offset(out, tid, 4), value)


@microtest(*(Word(made) for made in cache.prefetch.variants()))
def prefetch(draft: Draft, word: Any) -> None:
    """Into either cache; of .local memory too."""
    if word.made.space != "local":
        _unchanged(draft, lambda line: cache.prefetch(f"[{line}]", space=word.made.space, level=word.made.level))
        return
    draft.launch(block=_THREADS)
    tid, place, value = draft.thread, draft.reg("b64"), draft.reg("b32")
    draft(move.mov(place, draft.variable("local", ".align 4 .b32 NAME[2]", "kept"), type="u64"))
    draft.store(place, tid, space="local")
    draft(cache.prefetch(f"[{place}]", space="local", level=word.made.level))
    draft(memory.ld(value, f"[{place}]", space="local", type="b32"))
    draft.store(draft.offset(draft.output(np.arange(_THREADS, dtype=np.uint32)), tid, 4), value)


@microtest(*(Word(made) for made in cache.prefetch_keep.variants()))
def prefetch_keep(draft: Draft, word: Any) -> None:
    """With a priority."""
    _unchanged(draft, lambda line: cache.prefetch_keep(f"[{line}]", space=word.made.space, priority=word.made.priority))


@microtest()
def prefetchu(draft: Draft) -> None:
    """Into the uniform cache."""
    _unchanged(draft, lambda line: cache.prefetchu(f"[{line}]"))


@microtest(None, "global")
def applypriority(draft: Draft, space: Any) -> None:
    """The normal priority again."""
    _unchanged(draft, lambda line: cache.applypriority(f"[{line}]", 128, space=space))


@microtest(None, "param")
def prefetch_tensormap(draft: Draft, space: Any) -> None:
    """Of a map among the parameters, by its generic address and by that in .param."""
    draft.launch(block=_THREADS)
    tid, dims = draft.thread, (64, 16)
    place = draft.tensormap(
        lambda array: TensorMap.tiled("bf16", array, dims, strides_of(dims, 2), (32, 8)), tensor_of(dims, 2)
    )
    if space:
        generic, place = place, draft.reg("b64")
        draft(address.cvta_to(place, generic, space="param", size="u64"))
    draft(cache.prefetch_tensormap(f"[{place}]", space=space))
    draft.store(draft.offset(draft.output(np.arange(_THREADS, dtype=np.uint32)), tid, 4), tid)


@microtest()
def prefetch_constant_tensormap(draft: Draft) -> None:
    """Of a map in constant memory."""
    draft.launch(block=_THREADS)
    tid, place = draft.thread, draft.reg("b64", "map")
    made = TensorMap.tiled("bf16", 0x7F0000000000, (64, 16), (128,), (32, 8)).encode()
    data = ", ".join(str(byte) for byte in made)
    draft(move.mov(place, draft.variable("const", f".align 128 .b8 NAME[128] = {{{data}}}", "map"), type="u64"))
    draft(cache.prefetch_tensormap(f"[{place}]", space="const"))
    draft.store(draft.offset(draft.output(np.arange(_THREADS, dtype=np.uint32)), tid, 4), tid)


@microtest(None, "global")
def discard(draft: Draft, space: Any) -> None:
    """The line may hold anything then, until it is written again; the lines beside it stay."""
    draft.launch(block=_THREADS)
    tid, before = draft.thread, np.random.default_rng(6).integers(0, 2**32, 96, dtype=np.uint32)
    after = before.copy()
    after[32:64] = np.arange(32)
    out, end = draft.output(after, initial=before), draft.label("end")
    draft.branch(end, draft.is_thread(0), negated=True)
    draft(cache.discard(f"[{out}+128]", 128, space=space))
    draft.place(end)
    draft(barrier.bar_sync(0))
    draft.store(draft.offset(out, tid, 4), tid, 128)


_FIRST = {"evict_unchanged": 0x10, "evict_first": 0x12, "evict_last": 0x14, "evict_normal": 0x16}
_SECOND = {None: 0, "evict_unchanged": 0, "evict_first": 1}


def _fractional(first: str, second: str | None, fraction: float) -> int:
    """CUTLASS has 0x12F0000000000000 and 0x14F0000000000000: evict_first and evict_last of all accesses."""
    return (_FIRST[first] | _SECOND[second]) << 56 | int(fraction * 15.99) << 52


@microtest(
    *((first, second, fraction) for first in _FIRST for second in _SECOND for fraction in (None, 1.0, 0.5, 0.25, 0.03))
)
def createpolicy_fractional(draft: Draft, first: Any, second: Any, fraction: Any) -> None:
    """Two priorities and the part of the first, in sixteenths."""
    draft.launch(block=_THREADS)
    tid, made = draft.thread, draft.reg("b64", "policy")
    given = [] if fraction is None else [fraction]
    draft(cache.createpolicy_fractional(made, *given, first=first, second=second))
    value = _fractional(first, second, 1.0 if fraction is None else fraction)
    draft.store(draft.offset(draft.output(np.full(_THREADS, value, np.uint64)), tid, 8), made)


def _range(start: int, first: str, second: str | None, primary: int, total: int) -> int:
    """Blocks of at least 4 KiB, of which 128 hold the total: where the primary ones begin, and how many they are."""
    shift = max((total - 1).bit_length() - 7, 12)
    begin, end = start >> shift, (start + primary - 1 >> shift) + 1
    high = (0x180 + ((_FIRST[first] - 0x10 | _SECOND[second]) << 4) | shift - 12) << 20
    return (high | (begin & 0x7F) << 12 | min(end - begin, 0x7F) << 5) << 32


@microtest(
    *(
        (space, first, second, primary, total)
        for space, first, second in (
            ("global", "evict_last", None),
            (None, "evict_first", "evict_unchanged"),
            ("global", "evict_normal", "evict_first"),
            ("global", "evict_unchanged", None),
        )
        for primary, total in ((4096, 8192), (65536, 1 << 20), (100, 3000), (1 << 20, 1 << 26))
    )
)
def createpolicy_range(draft: Draft, space: Any, first: Any, second: Any, primary: int, total: int) -> None:
    """Of a range of addresses; nothing is read there."""
    draft.launch(block=_THREADS)
    tid, made, start = draft.thread, draft.reg("b64", "policy"), 0x7F0012345000
    draft(
        cache.createpolicy_range(
            made,
            f"[{draft.scalar('u64', start)}]",
            draft.scalar("u32", primary),
            draft.scalar("u32", total),
            space=space,
            first=first,
            second=second,
        )
    )
    value = _range(start, first, second, primary, total)
    draft.store(draft.offset(draft.output(np.full(_THREADS, value, np.uint64)), tid, 8), made)


@microtest()
def createpolicy_cvt(draft: Draft) -> None:
    """What the CUDA API calls an access property is a policy already."""
    draft.launch(block=_THREADS)
    tid, made, value = draft.thread, draft.reg("b64", "policy"), 0x12F0000000000000
    draft(cache.createpolicy_cvt(made, draft.scalar("u64", value)))
    draft.store(draft.offset(draft.output(np.full(_THREADS, value, np.uint64)), tid, 8), made)
