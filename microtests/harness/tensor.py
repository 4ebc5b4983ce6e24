"""`Tensor`: the kernel of a CTA of four warps, or of a pair of them, that has tensor memory.

It fills tensor memory and shared memory, lets one thread issue what is tested, waits for it, and dumps tensor memory.
Thread t of a CTA fills and dumps lane t by the shape 32x32b. Columns count from the first that is allocated.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtests.harness.draft import Draft, Tolerance
from ptxgen.builder import Register
from ptxgen.instr import barrier, cluster, conversion, fence, integer, logic, mbarrier, memory, predicate, tcgen05
from ptxgen.instr.model.form import Instruction

Array = NDArray[Any]
LANES, COLUMNS, THREADS = 128, 512, 128
_VECTORS: dict[int, Any] = {1: None, 2: "v2", 4: "v4", 8: "v8"}


def pieces(columns: int) -> list[tuple[int, int]]:
    """(first, count) of columns in powers of two of at most 128."""
    found, first = [], 0
    while first < columns:
        count = min(128, 1 << ((columns - first).bit_length() - 1))
        found.append((first, count))
        first += count
    return found


class Tensor:
    """Allocates tensor memory in a draft's kernel; `end` frees it.

    `columns` are those that are used; `ctas` 2 makes a pair, whose instructions have .cta_group::2 and whose arrays
    have an axis of CTAs in front.
    """

    def __init__(self, draft: Draft, columns: int, ctas: int = 1) -> None:
        self.draft, self.ctas = draft, ctas
        self.group: Any = ctas
        self.allocated = max(32, 1 << (columns - 1).bit_length())
        assert self.allocated <= COLUMNS, f"tensor memory has no {columns} columns"
        draft.launch(grid=ctas, block=THREADS, cluster=ctas if ctas > 1 else None)
        tid = draft.thread
        self.rank = draft.special("cluster_ctarank") if ctas > 1 else None
        self.barrier = draft.shared(8, 16)
        place = draft.shared(16)
        self.first_warp = draft.reg("pred", "first_warp")
        draft(predicate.setp(self.first_warp, tid, 32, compare="lt", type="u32"))
        ready = draft.label("ready")
        draft.branch(ready, self.first_warp, negated=True)
        draft(tcgen05.alloc(f"[{place}]", self.allocated, cta_group=self.group, space="shared::cta"))
        draft(tcgen05.relinquish_alloc_permit(cta_group=self.group))
        draft.branch(ready, draft.is_thread(0), negated=True)
        draft(mbarrier.init(f"[{self.barrier}]", 1, space="shared::cta"), fence.fence_mbarrier_init())
        draft.rejoin(ready)
        self.between_threads()
        self.base, self.mine = draft.reg("b32", "base"), draft.reg("b32", "mine")
        draft(memory.ld(self.base, f"[{place}]", space="shared", type="b32"))
        draft(logic.and_(self.mine, tid, 0x60, type="b32"), logic.shl(self.mine, self.mine, 16, type="b32"))
        draft(integer.add(self.mine, self.mine, self.base, type="u32"))
        index = tid
        if self.rank is not None:
            index = draft.reg("b32", "index")
            draft(integer.mad(index, self.rank, THREADS, tid, half="lo", type="u32"))
        self.index = index
        #: The CTA of a pair that issues.
        self.leader = 0
        self._phase = 0

    # Threads.

    def meet(self) -> None:
        """All threads of the CTA, or of the pair."""
        if self.ctas == 1:
            self.draft(barrier.bar_sync(0))
        else:
            self.draft(cluster.arrive(sem="release", aligned=True), cluster.wait(acquire=True, aligned=True))

    def between_threads(self) -> None:
        """What goes between tcgen05 operations of different threads."""
        self.draft(tcgen05.fence(where="before_thread_sync"))
        self.meet()
        self.draft(tcgen05.fence(where="after_thread_sync"))

    def one_thread(self) -> str:
        """Only thread 0 of the CTA that issues goes on until the label that this returns is placed."""
        skip = self.draft.label("issued")
        self.draft.branch(skip, self.draft.is_thread(0), negated=True)
        if self.rank is not None:
            leader = self.draft.reg("pred", "leader")
            self.draft(predicate.setp(leader, self.rank, self.leader, compare="eq", type="u32"))
            self.draft.branch(skip, leader, negated=True)
        return skip

    def commit(self) -> Instruction:
        """An arrival on the mbarrier of every CTA."""
        where = f"[{self.barrier}]"
        if self.ctas == 1:
            return tcgen05.commit(where, cta_group=1, space="shared::cluster")
        return tcgen05.commit(where, 3, cta_group=2, space="shared::cluster", multicast=True)

    def wait(self) -> None:
        """All threads wait for the next commit."""
        self.draft.wait(self.barrier, self._phase)
        self._phase ^= 1
        self.draft(barrier.bar_warp_sync(0xFFFFFFFF), tcgen05.fence(where="after_thread_sync"))

    def issue(self, *instructions: Instruction) -> None:
        """One thread issues tcgen05 operations on what all have filled; all wait until they are done."""
        self.draft(fence.fence_proxy_async())
        self.between_threads()
        skip = self.one_thread()
        self.draft(*instructions, self.commit())
        self.draft.rejoin(skip)
        self.wait()

    # Memory.

    def at(self, column: int, lane: int = 0) -> Register:
        """A register with the address of a cell."""
        found = self.draft.reg("b32", "cell")
        self.draft(integer.add(found, self.base, lane << 16 | column, type="u32"))
        return found

    def _mine(self, array: Register, width: int) -> Register:
        """This thread's row of an array of (CTAs,) lanes, `width` bytes."""
        return self.draft.offset(array, self.index, width)

    def fill(self, cells: Array, column: int = 0) -> None:
        """Fill all lanes of columns with words [(CTAs,) 128, columns]."""
        words = cells.astype(np.uint32)
        width = words.shape[-1]
        assert words.size == self.ctas * LANES * width, f"{words.shape} are not the cells of {self.ctas} CTAs"
        at = self._mine(self.draft.input(words), 4 * width)
        for first, count in pieces(width):
            registers = self.draft.regs("b32", count, "cell")
            self._vectors(registers, at, first, width, load=True)
            self.draft(
                tcgen05.st(f"[{self.mine}+{column + first}]", registers, shape="32x32b", num=count)  # type: ignore[arg-type]
            )
        self.draft(tcgen05.wait(what="st"))

    def dump(self, expected: Array, column: int = 0, *, low: bool = False, tolerance: Tolerance | None = None) -> None:
        """All lanes of columns must hold these words [(CTAs,) 128, columns]; `low`: their lower halves, as 16 bits."""
        width = expected.shape[-1]
        kind = np.uint16 if low else np.uint32
        at = self._mine(self.draft.output(expected.astype(kind), tolerance=tolerance), width * kind().itemsize)
        words = width // 2 if low else width
        for first, count in pieces(words):
            registers = self.draft.regs("b32", count, "cell")
            start = column + first * (2 if low else 1)
            self.draft(
                tcgen05.ld(registers, f"[{self.mine}+{start}]", shape="32x32b", num=count, pack=low),  # type: ignore[arg-type]
                tcgen05.wait(what="ld"),
            )
            self._vectors(registers, at, first, words, load=False)

    def _vectors(self, registers: list[Register], at: Register, first: int, width: int, *, load: bool) -> None:
        """Between registers and words of a row of `width` in global memory, by vectors where they are aligned."""
        step = math.gcd(len(registers), first, width, 8)
        for start in range(0, len(registers), step):
            some: Any = registers[start : start + step] if step > 1 else registers[start]
            place, vec = f"[{at}+{4 * (first + start)}]", _VECTORS[step]
            self.draft(
                memory.ld(some, place, space="global", vec=vec, type="b32")
                if load
                else memory.st(place, some, space="global", vec=vec, type="b32")
            )

    def share(self, images: Array, alignment: int = 1024) -> Register:
        """The address of shared memory that holds an image, [bytes] or [CTAs, bytes]: each CTA has its own."""
        size = images.shape[-1]
        box = self.draft.shared(size, alignment)
        pointer = self.draft.input(np.broadcast_to(images, (self.ctas, size)))
        if self.rank is not None:
            pointer = self.draft.offset(pointer, self.rank, size)
        self.draft.copy_in_at(box, pointer, size)
        return box

    def descriptor(self, box: Register, bits: int, start: int = 0, following: int | None = None) -> Register:
        """A shared-memory descriptor: these bits, and the address `start` bytes into a box (table 40).

        `following`: an address, so many bytes into the box, in the place of the leading-dimension offset.
        """
        draft = self.draft
        found = draft.reg("b64", "descriptor")
        draft(conversion.cvt(found, self._encoded(box, start), dtype="u64", atype="u32"))
        draft(logic.or_(found, found, bits, type="b64"))
        if following is not None:
            address, wide = self._encoded(box, following), draft.reg("b64")
            draft(conversion.cvt(wide, address, dtype="u64", atype="u32"), logic.shl(wide, wide, 16, type="b64"))
            draft(logic.or_(found, found, wide, type="b64"))
        return found

    def _encoded(self, box: Register, start: int) -> Register:
        """matrix-descriptor-encode of an address in a box."""
        found = self.draft.reg("b32", "encoded")
        self.draft(integer.add(found, box, start, type="u32"), logic.and_(found, found, 0x3FFFF, type="b32"))
        self.draft(logic.shr(found, found, 4, type="b32"))
        return found

    def end(self) -> None:
        """Free the tensor memory."""
        self.draft(tcgen05.fence(where="before_thread_sync"))
        self.meet()
        done = self.draft.label("freed")
        self.draft.branch(done, self.first_warp, negated=True)
        self.draft(tcgen05.dealloc(self.base, self.allocated, cta_group=self.group))
        self.draft.place(done)
