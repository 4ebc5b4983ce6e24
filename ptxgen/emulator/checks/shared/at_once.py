"""Weak accesses to shared memory of which nothing is to be reported: compared and kept by one call of machine code."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import count_nonzero
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.shared.accesses import SharedAccesses
from ptxgen.emulator.checks.shared.lanes import LaneAccesses
from ptxgen.emulator.memory.located import MemoryAccess
from ptxgen.emulator.native.library import chosen, pointer_to
from ptxgen.emulator.native.shared import WeakAccesses


class AtOnce:
    """Does what `LaneAccesses.access` and `SharedAccesses.accesses` do, for accesses that pass both."""

    def __init__(self, happens_before: HappensBefore, lanes: LaneAccesses, shared: SharedAccesses) -> None:
        self._happens_before, self._lanes, self._shared = happens_before, lanes, shared
        self._native = WeakAccesses()

    @cached_property
    def _overlaps(self) -> NDArray[np.uint16]:
        """Zeros by granule, in which machine code marks what warps store."""
        return np.zeros_like(self._shared.written)

    @cached_property
    def _tables(self) -> tuple[int, ...]:
        """Pointers to the tables by granule."""
        shared = self._shared
        arrays = shared.written, self._overlaps, shared.barriers
        operations = shared.async_writer, shared.core_reader, shared.copy_reader
        return tuple(map(pointer_to, (*arrays, *operations)))

    @cached_property
    def _shape(self) -> tuple[int, int, int, int]:
        order = self._happens_before
        return pointer_to(order.clocks), order.warps, order.size, self._shared.written.shape[1]

    def keep(self, access: MemoryAccess, changing: NDArray[np.bool_] | None) -> bool:
        """Compare and keep loads, or stores; `changing`: lanes whose store changes memory.

        False, and nothing is kept, where machine code does not compare all, or something may be to report.
        """
        warps, mask, _, (_, _, slots, inside), size, statement, _ = access
        order, shared, library = self._happens_before, self._shared, chosen()
        if library is None or slots is None or inside is None or slots.shape[1] > 1:
            return False
        if shared.stores.any_apart or shared.loads.any_apart or shared.strong_stores.any_used:
            return False
        if (changing is None and shared.races.only_copies) or order.any_lagging(warps):
            return False
        again = changing is not None and count_nonzero(changing) < count_nonzero(access.active)
        if again and statement.line not in shared.unchanged:
            return False  # loads race with what stays the same, too
        by_lane = self._lanes.tables(warps, size)
        if by_lane is None:
            return False
        written, overlaps, barriers, *operations = self._tables
        memory = (
            *(written, overlaps, barriers if shared.has_barriers else 0),
            *(operations if shared.any_asynchronous else (0, 0, 0)),
            *(shared.stores.used, shared.loads.used, *self._shape),
        )
        together = changing is None and ".sync" in statement.opcode  # ldmatrix returns when all lanes have loaded
        kept = self._native.keep(
            library,
            (shared.stores.packed, shared.loads.packed),
            memory,
            by_lane,
            np.ascontiguousarray(warps),
            np.ascontiguousarray(inside),
            None if mask is None else np.ascontiguousarray(mask),
            None if changing is None else np.ascontiguousarray(changing),
            size,
            statement.line,
            together=together,
            equal=statement.line in shared.equal,
        )
        if kept:
            order.statements[statement.line] = statement
            if changing is None and not together:
                self._lanes.kept_loads(warps, slots, inside, access.active, size)
        return kept
