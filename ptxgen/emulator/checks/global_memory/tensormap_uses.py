"""Tensormaps in global memory that a kernel changes while a copy may still read them.

A tensor copy reads its map at some time between its issue and its completion. A thread may change the map once it has
observed the completion of the copy: by its mbarrier, or for its own copies by cp.async.bulk.wait_group, which also says
that the copies have read their maps (9.7.9.25.6.2; CUTLASS's grouped GEMM waits so for its loads).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ptxgen.emulator.arrays import count_nonzero
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.messages import fixes
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.order.weak_flags import WeakFlags
from ptxgen.emulator.checks.registry import races
from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.memory.global_memory import HEAP_BASE
from ptxgen.emulator.memory.located import MemoryAccess
from ptxgen.emulator.observer import Lanes, Observer
from ptxgen.syntax import Instruction, Statement

#: Bytes of a map.
_BYTES = 128


@dataclass(slots=True)
class _Use:
    """A copy that reads a map; `read` is the epoch of its warp from which on the map has certainly been read.

    `closed`: cp.async.bulk.commit_group has followed it, so that cp.async.bulk.wait_group waits for it.
    """

    work: AsyncWork
    read: int | None = None
    closed: bool = False


class TensormapUses(Observer):
    """The copies that may be reading each map, by address."""

    def __init__(self, happens_before: HappensBefore, flags: WeakFlags, findings: Findings) -> None:
        self._happens_before, self._flags, self._findings = happens_before, flags, findings
        self._uses: dict[int, list[_Use]] = {}
        #: The map that the copy uses which a warp is about to issue.
        self._next: tuple[int, int] | None = None

    def tensormap_used(
        self, warp: int, address: int, data: bytes, statement: Statement, *, prefetches: bool = False
    ) -> None:
        if not prefetches:
            self._next = warp, address

    def work_issued(self, work: AsyncWork) -> None:
        if self._next is not None and self._next[0] == work.warp:
            self._uses.setdefault(self._next[1], []).append(_Use(work))
        self._next = None

    def bulk_group_committed(self, warp: int, lanes: Lanes) -> None:
        for use in self._of(warp, lanes):
            use.closed = True

    def bulk_groups_awaited(self, warp: int, lanes: Lanes) -> None:
        clock = self._happens_before.clock(warp)
        for use in self._of(warp, lanes):
            if use.closed and use.read is None:
                use.read = clock

    def _of(self, warp: int, lanes: Lanes) -> Iterator[_Use]:
        """The copies that some of these lanes of a warp have issued."""
        for uses in self._uses.values():
            for use in uses:
                if use.work.warp == warp and count_nonzero(use.work.lanes & lanes):
                    yield use

    def tensormap_changes(self, warp: int, address: int, statement: Instruction) -> None:
        self._changed(warp, address, statement)

    def tensormap_publishes(self, warp: int, slot: int, offset: int, address: int, statement: Instruction) -> None:
        self._changed(warp, address, statement)

    def memory_stores(self, access: MemoryAccess, values: Sequence[NDArray[Any]]) -> None:
        places = access.places
        if access.space != "global" or places.slots is not None:
            return
        for address in self._uses:
            first = address - HEAP_BASE
            hit = (places.offsets >= first) & (places.offsets < first + _BYTES) & access.active
            for warp in access.warps[hit.any(axis=1)].tolist():
                self._changed(warp, address, access.statement)

    def _changed(self, warp: int, address: int, statement: Instruction) -> None:
        """A warp changes a map: it must have observed the completion of all copies that use it."""
        happens_before = self._happens_before
        uses = [use for use in self._uses.get(address, ()) if use.work.number in happens_before.operations]
        for use in uses:
            number, other = use.work.number, use.work.warp
            read = use.read is not None and happens_before.has_observed(warp, other, use.read)
            if not read and number not in happens_before.observed[warp].operations:
                self._report(warp, address, statement, use.work)
                break
        if address in self._uses:
            self._uses[address] = uses

    def _report(self, warp: int, address: int, statement: Instruction, work: AsyncWork) -> None:
        writer = self._findings.access("writer", statement, warp, space="global", address=address)
        reader = self._findings.access("reader", work.statement, work.warp, space="global", address=address)
        line = work.statement.line
        wait = fixes.wait_of_open_group(work.what, line, self._flags.text)
        self._findings.report(
            races.TENSORMAP_IN_USE,
            statement,
            summary=f"{writer} changes the tensormap {writer.place or f'{address:#x}'}, which the copy of line "
            f"{reader.line} may still be reading",
            rule="The thread has not waited for the copy"
            if wait is None
            else fixes.OPEN_GROUP.format(wait=wait, line=line),
            fix=None if wait is None else f"cp.async.bulk.commit_group after line {line}, before line {wait}",
            accesses=(writer, reader),
        )
