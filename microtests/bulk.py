"""Bulk copies and reductions of bytes in a row. References from PTX ISA 9.7.9.25.4."""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft, Tolerance
from microtests.tma import Load
from microtests.tma_store import operands, reduced
from ptxgen.builder import Register
from ptxgen.instr import barrier, bulk, cache, cluster, fence, integer, logic, mbarrier, move


def random_bytes(count: int, seed: int = 71) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, count).astype(np.uint8)


@microtest(*((size, dst) for size in (16, 48, 1024, 4096 + 16, 32768) for dst in ("shared::cta", "shared::cluster")))
def load(draft: Draft, size: int, dst: Any) -> None:
    """Any multiple of 16 bytes, to an address that is one."""
    data = random_bytes(size)
    kernel = Load(draft, size + 64)
    expected = kernel.before.copy()
    expected[48 : 48 + size] = data
    source = draft.input(data)

    def copy(place: Register, bar: Register) -> None:
        count = draft.scalar("u32", size)
        draft(bulk.load(f"[{place}+48]", f"[{source}]", count, f"[{bar}]", dst=dst))

    kernel.run(size, copy, expected)


@microtest()
def load_hint(draft: Draft) -> None:
    """A cache policy changes no result."""
    data = random_bytes(256)
    kernel = Load(draft, 256)
    expected = kernel.before.copy()
    expected[:256] = data
    source, policy = draft.input(data), draft.reg("b64", "policy")
    draft(cache.createpolicy_fractional(policy, 1.0, first="evict_first"))
    kernel.run(
        256,
        lambda to, bar: draft(
            bulk.load(f"[{to}]", f"[{source}]", 256, f"[{bar}]", policy=policy, dst="shared::cluster", hint=True)
        ),
        expected,
    )


@microtest(*(((size, tuple(to)),) for size, to in ((2, (0, 1)), (4, (1, 3)), (8, (0, 2, 5, 7)))))
def load_multicast(draft: Draft, which: Any) -> None:
    """One load for several CTAs, each with its own barrier."""
    ctas, receivers = which
    data = random_bytes(512)
    kernel = Load(draft, 1024, ctas=ctas, receivers=receivers)
    image = kernel.before.copy()
    image[256:768] = data
    expected = np.array([image if rank in receivers else kernel.before for rank in range(ctas)])
    source, mask = draft.input(data), draft.reg("b16", "mask")
    draft(move.mov(mask, sum(1 << rank for rank in receivers), type="u16"))
    kernel.run(
        512,
        lambda to, bar: draft(
            bulk.load(
                f"[{to}+256]", f"[{source}]", 512, f"[{bar}]", mask=mask, dst="shared::cluster", multicast="cluster"
            )
        ),
        expected,
    )


def to_global(
    draft: Draft,
    initial: np.ndarray,
    expected: np.ndarray,
    memory_: np.ndarray,
    copy: Any,
    tolerance: Tolerance | None = None,
) -> None:
    """Shared memory of known bytes; thread 0 copies it and waits for the group."""
    draft.launch(block=128)
    assert draft.thread
    place = draft.shared(len(memory_), 128)
    out = draft.output(expected, initial=initial, tolerance=tolerance)
    draft.copy_in(place, memory_)
    draft(fence.fence_proxy_async(space="shared::cta"), barrier.bar_sync(0))
    end = draft.label("end")
    draft.branch(end, draft.is_thread(0), negated=True)
    copy(out, place)
    draft(bulk.commit_group(), bulk.wait_group(0))
    draft.place(end)


@microtest(16, 80, 4096, 16384 + 32)
def store(draft: Draft, size: int) -> None:
    """To any multiple of 16 bytes."""
    memory_, initial = random_bytes(size + 32), random_bytes(size + 64, 72)
    expected = initial.copy()
    expected[48 : 48 + size] = memory_[16 : 16 + size]
    count = draft.scalar("u32", size)
    to_global(draft, initial, expected, memory_, lambda to, of: draft(bulk.store(f"[{to}+48]", f"[{of}+16]", count)))


@microtest(0x0001, 0x8000, 0x5A3C, 0xFFFF, 0x0000)
def store_masked(draft: Draft, mask: int) -> None:
    """Of each 16 bytes, those whose bits are set."""
    memory_, initial = random_bytes(256), random_bytes(256, 73)
    chosen = np.array([bool(mask >> (at % 16) & 1) for at in range(256)])
    register = draft.reg("b16", "mask")
    draft(move.mov(register, mask, type="u16"))
    to_global(
        draft,
        initial,
        np.where(chosen, memory_, initial),
        memory_,
        lambda to, of: draft(bulk.store(f"[{to}]", f"[{of}]", 256, byte_mask=register, cp_mask=True)),
    )


TYPES = {
    "add": ("u32", "s32", "u64", "f16", "bf16", "f32", "f64"),
    "min": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "max": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
}


@microtest(*((op, kind) for op, kinds in TYPES.items() for kind in kinds))
def reduce(draft: Draft, op: Any, kind: Any) -> None:
    """Every operation with its types."""
    plain = kind.replace("b", "u") if kind != "bf16" else kind
    size = 2 if plain in ("f16", "bf16") else int(plain[1:]) // 8
    memory_, initial = operands(plain, 1024 // size, 74), operands(plain, 1024 // size, 75)
    expected = reduced(op, plain, initial.reshape(-1, size), memory_.reshape(-1, size)).reshape(-1)
    noftz = op == "add" and kind in ("f16", "bf16")
    to_global(
        draft,
        initial,
        expected,
        memory_,
        lambda to, of: draft(bulk.reduce(f"[{to}]", f"[{of}]", 1024, op=op, noftz=noftz, type=kind)),
    )


@microtest(False, True)
def groups(draft: Draft, read: bool) -> None:
    """Three groups, waited for one after the other, until the sources are read or all is written."""
    memory_, initial = random_bytes(768), np.zeros(768, np.uint8)
    draft.launch(block=128)
    assert draft.thread
    place, out = draft.shared(768, 128), draft.output(memory_, initial=initial)
    draft.copy_in(place, memory_)
    draft(fence.fence_proxy_async(), barrier.bar_sync(0))
    end = draft.label("end")
    draft.branch(end, draft.is_thread(0), negated=True)
    for number in range(3):
        draft(bulk.store(f"[{out}+{256 * number}]", f"[{place}+{256 * number}]", 256), bulk.commit_group())
    for pending in (2, 1, 0):
        draft(bulk.wait_group(pending, read=read))
    draft(bulk.wait_group(0))
    draft.place(end)


@microtest()
def prefetch(draft: Draft) -> None:
    """A hint: nothing changes."""
    draft.launch(block=32)
    out = draft.offset(draft.output(np.arange(32, dtype=np.uint32)), draft.thread, 4)
    draft(bulk.prefetch(f"[{draft.input(random_bytes(1024))}]", 1024))
    draft.store(out, draft.thread)


# Between the CTAs of a cluster: CTA i copies to CTA i + 1.


def between(draft: Draft, size: int, memory_: np.ndarray, before: np.ndarray, expected: np.ndarray, copy: Any) -> None:
    """`memory_` and `before` are [ctas, size]: what each CTA sends, and has at the destination; `expected` after."""
    ctas = len(memory_)
    draft.launch(grid=ctas, block=128, cluster=ctas)
    assert draft.thread
    rank, next_ = draft.special("cluster_ctarank"), draft.reg("b32", "next")
    source, target, bar = draft.shared(size, 128), draft.shared(size, 128), draft.shared(8, 8)
    for place, values in ((source, memory_), (target, before)):
        draft.copy_in_at(place, draft.offset(draft.input(values), rank, size), size)
    ready = draft.label("ready")
    draft.branch(ready, draft.is_thread(0), negated=True)
    draft(mbarrier.init(f"[{bar}]", 1, space="shared::cta"), fence.fence_mbarrier_init())
    draft(mbarrier.arrive_expect_tx("_", f"[{bar}]", size, space="shared::cta"))
    draft.place(ready)
    draft(fence.fence_proxy_async(), cluster.arrive(), cluster.wait())
    draft(integer.add(next_, rank, 1, type="u32"), logic.and_(next_, next_, ctas - 1, type="b32"))
    places = []
    for place in (target, bar):
        remote = draft.reg("b32", "remote")
        draft(cluster.mapa(remote, place, next_, space="shared::cluster", type="u32"))
        places.append(remote)
    issued = draft.label("issued")
    draft.branch(issued, draft.is_thread(0), negated=True)
    copy(places[0], source, places[1])
    draft.place(issued)
    draft.wait(bar)
    out = draft.offset(draft.output(expected), rank, size)
    draft.copy_out(target, out, size)
    draft(cluster.arrive(), cluster.wait())


@microtest(16, 512, 8192)
def copy_to_peer(draft: Draft, size: int) -> None:
    """Shared memory to that of another CTA, whose barrier gets the bytes."""
    data, before = (random_bytes(4 * size, seed).reshape(4, size) for seed in (71, 76))
    between(
        draft,
        size,
        data,
        before,
        np.roll(data, 1, 0),
        lambda to, of, bar: draft(bulk.copy(f"[{to}]", f"[{of}]", size, f"[{bar}]")),
    )


_SHARED = {
    "add": ("u32", "s32", "u64"),
    "min": ("u32", "s32"),
    "max": ("u32", "s32"),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("b32",),
    "or": ("b32",),
    "xor": ("b32",),
}


@microtest(*((op, kind) for op, kinds in _SHARED.items() for kind in kinds))
def reduce_to_peer(draft: Draft, op: Any, kind: Any) -> None:
    """Every operation with its types, into the shared memory of another CTA."""
    plain = kind.replace("b", "u")
    size = int(plain[1:]) // 8
    data, before = (operands(plain, 4 * 512 // size, seed).reshape(4, 512) for seed in (77, 78))
    sent = np.roll(data, 1, 0)
    expected = np.array(
        [
            reduced(op, plain, old.reshape(-1, size), new.reshape(-1, size)).reshape(-1)
            for old, new in zip(before, sent, strict=True)
        ]
    )
    between(
        draft,
        512,
        data,
        before,
        expected,
        lambda to, of, bar: draft(bulk.reduce_shared(f"[{to}]", f"[{of}]", 512, f"[{bar}]", op=op, type=kind)),
    )
