"""tcgen05.commit, fence and wait: the patterns of PTX ISA 9.7.16.6.4, and every form of commit (9.7.16.12.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness import tensor_layouts as layouts
from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.tensor import LANES, THREADS, Tensor
from microtests.harness.tensor_products import Product
from microtests.tcgen05_copy import shifted
from ptxgen.builder import Register
from ptxgen.instr import atomic, barrier, cluster, fence, integer, logic, mbarrier, memory, predicate, tcgen05


class Pattern:
    """A product of f16 with A in tensor memory, where a copy brings it first; and mbarriers of some threads."""

    def __init__(self, draft: Draft, barriers: int = 1) -> None:
        self.draft = draft
        self.product = Product(kind="f16", a="f16", b="f16", in_tensor=True)
        self.tensor = Tensor(draft, self.product.columns["end"])
        before = self.product.cells[0].copy()
        a = slice(self.product.columns["a"], self.product.columns["a"] + 8)
        before[:, a] = np.random.default_rng(95).integers(0, 2**32, (LANES, 8), dtype=np.uint32)
        self.tensor.fill(before)
        rows = layouts.row_bytes("f16", self.product.left[0], np.random.default_rng(96))
        source = layouts.image(rows, "32B", np.random.default_rng(97))
        described = self.tensor.descriptor(self.tensor.share(source.memory), source.bits)
        place = self.tensor.at(self.product.columns["a"])
        self.copy = tcgen05.cp(f"[{place}]", described, cta_group=1, shape="128x256b")
        (self.multiply,) = self.product.instructions(self.tensor)
        self.barriers = [draft.shared(8, 8) for _ in range(barriers)]
        skip = self.only(0)
        for each in self.barriers:
            draft(mbarrier.init(f"[{each}]", 1, space="shared::cta"))
        draft.rejoin(skip)
        draft(fence.fence_proxy_async())
        self.tensor.between_threads()

    def only(self, thread: int) -> str:
        """Only this thread goes on until the label that this returns is placed."""
        skip = self.draft.label("others")
        self.draft.branch(skip, self.draft.is_thread(thread), negated=True)
        return skip

    def arrive(self, number: int) -> None:
        state = self.draft.reg("b64", "state")
        at = f"[{self.barriers[number]}]"
        self.draft(tcgen05.fence(where="before_thread_sync"))
        self.draft(mbarrier.arrive(state, at, sem="relaxed", scope="cluster", space="shared::cta"))

    def wait(self, number: int) -> None:
        again, done = self.draft.label("again"), self.draft.reg("pred", "done")
        at = f"[{self.barriers[number]}]"
        self.draft.place(again)
        self.draft(mbarrier.try_wait_parity(done, at, 0, sem="relaxed", scope="cluster", space="shared::cta"))
        self.draft.branch(again, done, negated=True)
        self.draft(tcgen05.fence(where="after_thread_sync"))

    def commit(self, number: int) -> None:
        self.draft(tcgen05.commit(f"[{self.barriers[number]}]", cta_group=1, space="shared::cluster"))

    def end(self) -> None:
        self.draft(barrier.bar_warp_sync(0xFFFFFFFF))
        self.product.compare(self.tensor)
        self.tensor.end()


@microtest()
def same_thread_pipelined(draft: Draft) -> None:
    """A copy and a product of one thread need nothing between them; one commit is for both."""
    pattern = Pattern(draft)
    skip = pattern.only(0)
    draft(pattern.copy, pattern.multiply)
    pattern.commit(0)
    draft.rejoin(skip)
    pattern.wait(0)
    pattern.end()


@microtest()
def other_thread_pipelined(draft: Draft) -> None:
    """The product of another thread needs the fences around an arrival, but not the end of the copy."""
    pattern = Pattern(draft, 2)
    skip = pattern.only(0)
    draft(pattern.copy)
    pattern.arrive(0)
    draft.rejoin(skip)
    skip = pattern.only(64)
    pattern.wait(0)
    draft(pattern.multiply)
    pattern.commit(1)
    draft.rejoin(skip)
    pattern.wait(1)
    pattern.end()


@microtest("st_ld", "atom")
def other_thread_by_flag(draft: Draft, way: str) -> None:
    """Strong accesses to a word order tcgen05 operations between the fences as mbarriers do (9.7.16.6.3)."""
    pattern, flag = Pattern(draft, 1), draft.shared(4)
    skip = pattern.only(0)
    draft.store(flag, draft.zero(), space="shared")
    draft.rejoin(skip)
    pattern.tensor.between_threads()
    skip, word = pattern.only(0), draft.reg("b32", "word")
    one = draft.scalar("u32", 1)
    draft(pattern.copy, tcgen05.fence(where="before_thread_sync"))
    options: Any = {"sem": "relaxed", "scope": "cta", "space": "shared", "type": "b32"}
    if way == "atom":
        draft(atomic.atom(word, f"[{flag}]", one, op="exch", **options))
    else:
        draft(memory.st_ordered(f"[{flag}]", one, **options))
    draft.rejoin(skip)
    skip, again, done = pattern.only(64), draft.label("again"), draft.reg("pred", "done")
    draft.place(again)
    draft(memory.ld_ordered(word, f"[{flag}]", **options), predicate.setp(done, word, 1, compare="eq", type="u32"))
    draft.branch(again, done, negated=True)
    draft(tcgen05.fence(where="after_thread_sync"), pattern.multiply)
    pattern.commit(0)
    draft.rejoin(skip)
    pattern.wait(0)
    pattern.end()


@microtest(128, 256)
def relaxed_cluster_barrier(draft: Draft, m: int) -> None:
    """Loads in both CTAs of a pair, and a product over what they loaded: a relaxed barrier between the fences."""
    product = Product(kind="f16", a="f16", b="f16", m=m, ctas=2)
    tensor = product.tensor(draft)
    instructions = product.instructions(tensor)
    draft(fence.fence_proxy_async())
    tensor.between_threads()
    (word,) = registers = draft.regs("b32", 1, "loaded")
    draft(tcgen05.ld(registers, f"[{tensor.mine}]", shape="32x32b", num=1), tcgen05.wait(what="ld"))
    draft(tcgen05.fence(where="before_thread_sync"), cluster.arrive(sem="relaxed", aligned=True))
    draft(cluster.wait(acquire=False, aligned=True), tcgen05.fence(where="after_thread_sync"))
    skip = tensor.one_thread()
    draft(*instructions, tensor.commit())
    draft.rejoin(skip)
    draft.store(draft.offset(draft.output(product.cells[:, :, 0]), tensor.index, 4), word)
    tensor.wait()
    product.compare(tensor)
    tensor.end()


@microtest()
def commit_then_other_thread(draft: Draft) -> None:
    """A product after another thread's copy is known to be done."""
    pattern = Pattern(draft, 2)
    skip = pattern.only(32)
    draft(pattern.copy)
    pattern.commit(0)
    draft.rejoin(skip)
    skip = pattern.only(0)
    pattern.wait(0)
    draft(pattern.multiply)
    pattern.commit(1)
    draft.rejoin(skip)
    pattern.wait(1)
    pattern.end()


@microtest()
def composed(draft: Draft) -> None:
    """One thread waits for the commit and synchronizes with another, which synchronizes with all (9.7.16.6.4.4)."""
    pattern = Pattern(draft, 3)
    skip = pattern.only(0)
    draft(pattern.copy, pattern.multiply)
    pattern.commit(0)
    draft.rejoin(skip)
    for thread in (40, 80):
        skip, number = pattern.only(thread), thread // 40
        pattern.wait(number - 1)
        pattern.arrive(number)
        draft.rejoin(skip)
    pattern.wait(2)
    pattern.end()


@microtest()
def loads_before_a_product(draft: Draft) -> None:
    """What was loaded and waited for does not change when a product of another thread overwrites it."""
    pattern = Pattern(draft, 1)
    tensor, product = pattern.tensor, pattern.product
    registers = draft.regs("b32", 8, "before")
    draft(tcgen05.ld(registers, f"[{tensor.mine}+{product.columns['d']}]", shape="32x32b", num=8))
    draft(tcgen05.wait(what="ld"))
    tensor.between_threads()
    skip = pattern.only(96)
    draft(pattern.copy, pattern.multiply)
    pattern.commit(0)
    draft.rejoin(skip)
    at = draft.offset(draft.output(product.cells[0][:, :8]), draft.thread, 32)
    for number, register in enumerate(registers):
        draft.store(at, register, 4 * number)
    pattern.wait(0)
    pattern.end()


@microtest(2, 5)
def several_commits(draft: Draft, count: int) -> None:
    """Each commit arrives once, also if no MMA is pending; a phase may require several."""
    tensor = Tensor(draft, 32)
    at = draft.shared(8, 8)
    skip = draft.label("ready")
    draft.branch(skip, draft.is_thread(0), negated=True)
    draft(mbarrier.init(f"[{at}]", count, space="shared::cta"))
    draft.rejoin(skip)
    tensor.between_threads()
    skip = tensor.one_thread()
    for _ in range(count):
        draft(tcgen05.commit(f"[{at}]", cta_group=1, space="shared::cluster"))
    draft.wait(at)
    draft(tcgen05.commit(f"[{at}]", cta_group=1, space="shared::cluster"))
    ended = draft.reg("pred", "ended")
    draft(mbarrier.test_wait_parity(ended, f"[{at}]", 0, space="shared::cta"))
    out = draft.output(np.array([1], np.uint32))
    draft.store(out, draft.as_word(ended))
    draft.rejoin(skip)
    tensor.end()


@microtest(*((ctas, multicast) for ctas in (1, 2) for multicast in (False, True)))
def generic_address(draft: Draft, ctas: int, multicast: bool) -> None:
    """Without a state space the mbarrier's address is a generic one."""
    tensor = Tensor(draft, 16, ctas)
    cells = np.random.default_rng(98).integers(0, 2**32, (ctas, LANES, 16), dtype=np.uint32)
    tensor.fill(cells if ctas > 1 else cells[0])
    at = draft.generic(tensor.barrier)
    mask: dict[str, Any] = {"mask": (1 << ctas) - 1, "multicast": True} if multicast else {}
    tensor.between_threads()
    skip = tensor.one_thread()
    draft(tcgen05.shift(f"[{tensor.at(0)}]", cta_group=tensor.group))
    draft(tcgen05.commit(f"[{at}]", cta_group=tensor.group, **mask))
    draft.rejoin(skip)
    if tensor.rank is None or multicast:
        tensor.wait()
    else:
        _wait_where(draft, tensor.barrier, tensor.rank, [0])
        tensor.between_threads()
    after = shifted(cells, 0)
    tensor.dump(after if ctas > 1 else after[0])
    tensor.end()


def _counts(draft: Draft, size: int, group: Any, mask: int | None, issuer: int) -> None:
    """A CTA of a cluster commits; each CTA reports whether its mbarrier's phase has completed."""
    draft.launch(grid=size, block=THREADS, cluster=size)
    rank = draft.special("cluster_ctarank")
    at, place = draft.shared(8, 8), draft.shared(8, 8)
    first = draft.reg("pred", "first")
    draft(predicate.setp(first, draft.thread, 32, compare="lt", type="u32"))
    ready = draft.label("ready")
    draft.branch(ready, first, negated=True)
    draft(tcgen05.alloc(f"[{place}]", 32, cta_group=group, space="shared::cta"))
    draft.branch(ready, draft.is_thread(0), negated=True)
    draft(mbarrier.init(f"[{at}]", 1, space="shared::cta"), fence.fence_mbarrier_init())
    draft.rejoin(ready)
    meet(draft)
    skip, chosen = draft.label("others"), draft.reg("pred", "chosen")
    draft.branch(skip, draft.is_thread(0), negated=True)
    draft(predicate.setp(chosen, rank, issuer, compare="eq", type="u32"))
    draft.branch(skip, chosen, negated=True)
    # The others learn of the arrival from an mbarrier that gets it in any case: the issuer's own, by another commit.
    options: dict[str, Any] = {} if mask is None else {"mask": draft.scalar("u16", mask), "multicast": True}
    draft(tcgen05.commit(f"[{at}]", cta_group=group, space="shared::cluster", **options))
    draft.rejoin(skip)
    reached = [cta for cta in range(size) if (mask >> cta & 1 if mask is not None else cta == issuer)]
    _wait_where(draft, at, rank, reached)
    meet(draft)
    ended = draft.reg("pred", "ended")
    draft(mbarrier.test_wait_parity(ended, f"[{at}]", 0, space="shared::cta"))
    expected = np.array([[int(cta in reached)] * THREADS for cta in range(size)], np.uint32)
    index = draft.reg("b32", "index")
    draft(integer.mad(index, rank, THREADS, draft.thread, half="lo", type="u32"))
    draft.store(draft.offset(draft.output(expected), index, 4), draft.as_word(ended))
    meet(draft)
    freed = draft.label("freed")
    draft.branch(freed, first, negated=True)
    base = draft.reg("b32", "base")
    draft(memory.ld(base, f"[{place}]", space="shared", type="b32"))
    draft(tcgen05.dealloc(base, 32, cta_group=group))
    draft.place(freed)


def meet(draft: Draft) -> None:
    """All threads of the cluster."""
    draft(tcgen05.fence(where="before_thread_sync"))
    draft(cluster.arrive(sem="release", aligned=True), cluster.wait(acquire=True, aligned=True))
    draft(tcgen05.fence(where="after_thread_sync"))


def _wait_where(draft: Draft, at: Register, rank: Register, ctas: list[int]) -> None:
    """The CTAs that are reached wait for it."""
    bits, skip, reached = draft.reg("b32"), draft.label("unreached"), draft.reg("pred", "reached")
    draft(logic.shr(bits, draft.scalar("u32", sum(1 << cta for cta in ctas)), rank, type="u32"))
    draft(logic.and_(bits, bits, 1, type="b32"), predicate.setp(reached, bits, 0, compare="ne", type="u32"))
    draft.branch(skip, reached, negated=True)
    draft.wait(at)
    draft.rejoin(skip)


@microtest(
    *((4, 1, mask, issuer) for mask in (None, 0b0001, 0b1010, 0b1111, 0b0100) for issuer in (0, 3)),
    (2, 1, 0b10, 0),
    (8, 1, 0b10010110, 5),
    *((4, 2, mask, issuer) for mask in (None, 0b0011, 0b1100, 0b1111, 0b0010) for issuer in (0, 3)),
    (2, 2, 0b10, 0),
)
def multicast(draft: Draft, size: int, group: int, mask: int | None, issuer: int) -> None:
    """Arrivals at the mbarriers of the CTAs that the mask names, at the same offset; without one at the own."""
    _counts(draft, size, group, mask, issuer)


@microtest(*((mask, m) for mask in (0b01, 0b10, 0b11) for m in (128, 256)))
def commit_of_a_pair(draft: Draft, mask: int, m: int) -> None:
    """One thread's commit arrives in either CTA of a pair, or both, when an MMA in both is complete."""
    product = Product(kind="f16", a="bf16", b="bf16", m=m, ctas=2)
    tensor = product.tensor(draft)
    (multiply,) = product.instructions(tensor)
    draft(fence.fence_proxy_async())
    tensor.between_threads()
    skip = tensor.one_thread()
    where = f"[{tensor.barrier}]"
    draft(multiply)
    draft(tcgen05.commit(where, mask, cta_group=2, space="shared::cluster", multicast=True))
    draft.rejoin(skip)
    assert tensor.rank is not None
    _wait_where(draft, tensor.barrier, tensor.rank, [cta for cta in range(2) if mask >> cta & 1])
    tensor.between_threads()
    product.compare(tensor)
    tensor.end()
