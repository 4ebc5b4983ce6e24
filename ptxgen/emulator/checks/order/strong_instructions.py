"""What strong loads, stores and atomic operations of threads release and acquire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.order.stale_loads import signals
from ptxgen.emulator.checks.order.strong_accesses import StrongAccesses
from ptxgen.emulator.checks.order.strong_words import StrongWords
from ptxgen.emulator.checks.order.weak_flags import WeakFlags
from ptxgen.emulator.memory.located import MemoryAccess
from ptxgen.emulator.memory.order import Order
from ptxgen.emulator.observer import Observer
from ptxgen.emulator.state.convergence import bits_of


class StrongInstructions(Observer):
    """Passes on what strong loads, stores and atomic operations release and acquire."""

    def __init__(self, strong: StrongAccesses, flags: WeakFlags) -> None:
        self._strong, self._flags = strong, flags

    def memory_loads(self, access: MemoryAccess) -> None:
        warps, _, _, _, _, statement, order = access
        words = StrongWords.of(access) if order is not None else None
        if order is None or words is None:
            return
        if not self._strong.together(warps, words.positions, words.places, order, statement, reads=True, writes=False):
            active = access.active
            for position, warp, own, _ in words.by_warp():
                self._strong.access(warp, own, order, active[position], 0, reads=True, writes=False)

    def memory_stores(self, access: MemoryAccess, values: Sequence[NDArray[Any]]) -> None:
        if access.order is not None:
            self._change(access, access.order, None, reads=False, atomic=False)

    def memory_updates(
        self, access: MemoryAccess, turns: NDArray[np.int64] | None, *, returns: bool, uses: bool
    ) -> None:
        assert access.order is not None
        reads = returns and self._flags.is_used(access.statement)
        self._change(access, access.order, turns, reads=reads, atomic=True)

    def _change(
        self, access: MemoryAccess, order: Order, turns: NDArray[np.int64] | None, *, reads: bool, atomic: bool
    ) -> None:
        """Lanes store, or with `turns` one after the other: each reads, then stores. A red does not count as reading,
        nor does an atom whose result nothing uses.
        """
        warps, _, _, places, size, statement, _ = access
        active, strong, words = access.active, self._strong, StrongWords.of(access)
        if words is None:
            return
        if turns is None or len(warps) == 1:
            turns, actors, positions, at = None, warps, words.positions, words.places
        else:
            actors, positions, at = warps[words.positions[turns]], np.arange(len(turns)), words.places[turns]
        stale = strong.stale
        if stale is not None and not stale.follows(statement, alone=words.one_lane_each):
            stale = None
        if strong.together(actors, positions, at, order, statement, reads=reads, writes=True, stale=stale is not None):
            return
        bits = bits_of(active).tolist()
        for position, warp, own, firsts in words.by_warp() if turns is None else words.by_turn(turns):
            if stale is not None:
                for word, lane in zip(own, firsts, strict=True):
                    offset = int(places.offsets[position, lane])
                    alike = active[position] & (places.offsets[position] == offset)
                    turn = int(words.lanes.searchsorted(32 * position + lane)) if atomic else None
                    published = strong.published(word)
                    stale.store(
                        warp,
                        alike,
                        word,
                        places.data,
                        offset,
                        size,
                        statement,
                        published,
                        turn,
                        alone=words.one_lane_each,
                        signals=signals(statement),
                    )
            strong.access(warp, own, order, active[position], bits[position], reads=reads, writes=True)

    def strong_stores_done(self, data: NDArray[np.uint8], found: NDArray[Any] | None) -> None:
        if self._strong.stale is not None:
            self._strong.stale.stored(data, found)
