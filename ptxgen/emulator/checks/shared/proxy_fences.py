"""Whether a fence.proxy.async stands between accesses of threads to shared memory and asynchronous operations.

PTX ISA 8.6: threads access memory in the generic proxy, copies and the tensor core in the async proxy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import count_nonzero
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.order.vector_clock import AsyncOperation
from ptxgen.emulator.checks.registry import races
from ptxgen.emulator.checks.shared.collaborators import Collaborators
from ptxgen.emulator.checks.shared.last_accesses import ThreadAccesses
from ptxgen.emulator.checks.shared.strong_stores import StrongStores

if TYPE_CHECKING:
    pass


class ProxyFences:
    """The fences between the accesses that `SharedAccesses` keeps and operations that come after them."""

    def __init__(self, given: Collaborators, strong_stores: StrongStores, copy_lines: Mapping[int, str]) -> None:
        self._happens_before, self._lanes, self._strong_stores = given.happens_before, given.lanes, strong_stores
        self._by_barriers, self._findings = given.by_barriers, given.findings
        self._stores, self._loads = given.lanes.stores, given.lanes.loads
        #: Lines that lack one fence.
        self._groups = causes.Groups()
        #: Lines of the cp.async and st.async instructions that have run.
        self._copy_lines = copy_lines

    def require(self, operation: AsyncOperation, warp: int, slot: int, granules: NDArray[np.int64]) -> None:
        """Stores of threads reach the async proxy by a fence of the storing warp, or of the issuing one."""
        visible = self._visible(warp)
        late = _unfenced(self._stores, visible, slot, granules)
        rule = "No fence.proxy.async comes between them"
        before = self._happens_before.fenced_before(warp)
        if before is not None:
            # A fence after the arrival that orders a store before this: it comes in time only by luck.
            before = np.maximum(before, self._happens_before.fenced[warp])
            lucky = _unfenced(self._stores, before, slot, granules, self._happens_before.clocks[warp])
            if late is None:
                rule = "The fence.proxy.async follows the arrival that orders them, and may come after the read"
            late = lucky if late is None else late if lucky is None else late | lucky
        strong = [(*each, "store") for each in self._strong_stores.unfenced(slot, granules, visible)]
        if late is None and not strong:
            self._lanes.unfenced(operation, warp, slot, granules)
            return
        # Advice for cp.async: the manual has it in the generic proxy (9.7.9.25.3.1), but Triton leaves the fence out,
        # and its kernels are right on an H200 (driver 580, 2026-11-20).
        weak = []
        if late is not None:
            table = self._stores.table(slot)
            assert table is not None
            lines = [line for line, what in self._copy_lines.items() if what == "cp.async"]
            copied = np.isin(table.line[:, granules], lines) if lines else np.zeros_like(late)
            for chosen, what in ((late & ~copied, "store"), (late & copied, "cp.async")):
                weak += [(*each, what) for each in self._stores.lines(slot, granules, chosen)]
        for member, line, clock, at, what in (*weak, *strong):
            reader = self._findings.access("reader", operation.statement, warp, space="shared", address=at)
            writer = self._happens_before.party("writer", line, warp, member, at)
            self._findings.report(
                races.MISSING_PROXY_FENCE,
                operation.statement,
                summary=f"{reader} reads {reader.place}, which {writer} writes through the generic proxy",
                rule=rule,
                fix="fence.proxy.async.shared::cta after the stores, before the synchronization",
                accesses=(reader, writer),
                severity="error" if what == "store" else "advice",
                cause=self._groups.of(("read by", operation.statement.line), ("stored", line), (slot, member, clock)),
            )

    def require_after_loads(
        self, operation: AsyncOperation, warp: int, granules: NDArray[np.int64], slot: int, *, response: bool
    ) -> None:
        """Loads of threads come before an asynchronous write, to which `async_write` comes next, by a proxy fence too.

        Advice, of responses of launch control: the manual's example has the fences (9.7.13.17). Of copies only where
        the warp itself has loaded, or barriers alone order the load: where an mbarrier gives a stage back CUTLASS
        leaves the fence out.
        """
        late = _unfenced(self._loads, self._visible(warp), slot, granules)
        if late is None:
            return
        if not response:
            table = self._loads.table(slot)
            assert table is not None
            late &= table.clock[:, granules] <= table.of(self._by_barriers.of(warp))[:, None]
        for member, line, _, at in self._loads.lines(slot, granules, late):
            writer = self._findings.access("writer", operation.statement, warp, space="shared", address=at)
            reader = self._happens_before.party("reader", line, warp, member, at)
            self._findings.report(
                races.MISSING_PROXY_FENCE,
                operation.statement,
                summary=f"{writer} overwrites {writer.place}, which {reader} reads through the generic proxy",
                rule="No fence.proxy.async comes between them",
                fix=f"fence.proxy.async.shared::cta after line {line}, before the synchronization",
                accesses=(writer, reader),
                severity="advice",
                cause=self._groups.of(("loaded", line), ("overwritten by", operation.statement.line)),
            )

    def _visible(self, warp: int) -> NDArray[np.int64]:
        """The intervals of its cluster's warps that a fence.proxy.async has followed, of theirs or of this warp."""
        members, fenced = self._happens_before.members, self._happens_before.fenced
        first = warp - warp % members
        return np.maximum(np.diagonal(fenced[first : first + members]), fenced[warp])


def _unfenced(
    accesses: ThreadAccesses,
    visible: NDArray[np.int64],
    slot: int,
    granules: NDArray[np.int64],
    observed: NDArray[np.int64] | None = None,
) -> NDArray[np.bool_] | None:
    """Which accesses (warps, granules) come after what is visible of their warps; None if none do.

    Of those that are not `observed`, none: they are races.
    """
    table = accesses.table(slot)
    if table is None:
        return None
    seen = table.of(visible)
    if not count_nonzero(table.latest > seen):
        return None
    late = (table.clock[:, granules] > seen[:, None]) & (table.mask[:, granules] != 0)
    if observed is not None:
        late &= table.clock[:, granules] <= table.of(observed)[:, None]
    return late if count_nonzero(late) else None
