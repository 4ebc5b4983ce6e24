"""Lanes of a warp that store different values to one location by one instruction.

Floats that differ in rounding only are left: after a butterfly of shuffles each lane holds the same sum, added up in
another order, and Triton lets all of them store it (triton-lang/triton#7264, #11614). Any of the values is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import count_nonzero
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.registry import races
from ptxgen.emulator.memory.global_memory import HEAP_BASE
from ptxgen.emulator.memory.located import MemoryAccess
from ptxgen.emulator.native.library import chosen, pointer_to
from ptxgen.emulator.observer import Observer
from ptxgen.syntax import Instruction

#: Floats that differ by no more than this, relative to them, count as one result that was rounded in other ways.
_ROUNDING = 1e-4
_CHECKS = {"shared": races.SHARED_RACE, "global": races.GLOBAL_RACE}


class LaneStores(Observer):
    """Compares what the lanes of each warp store: which of two different values stays is undefined."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def memory_stores(self, access: MemoryAccess, values: Sequence[NDArray[Any]]) -> None:
        warps, _, space, places, _, statement, order = access
        name = "shared" if places.slots is not None else space
        if order is not None or name not in _CHECKS:
            return
        library, mask = chosen(), access.mask
        if library is not None and places.offsets.flags.c_contiguous and (mask is None or mask.flags.c_contiguous):
            lanes_of = None if mask is None else pointer_to(mask)
            if library.ascending(pointer_to(places.offsets), lanes_of, places.offsets.size):
                return
        offsets, inside = places.offsets.reshape(-1), places.offsets if places.inside is None else places.inside
        (lanes,) = access.active.reshape(-1).nonzero()
        if len(lanes) < len(offsets):
            offsets = offsets[lanes]
        if not count_nonzero(offsets[1:] <= offsets[:-1]):
            return
        sorting = np.lexsort((offsets, lanes // 32))
        lanes, offsets = lanes[sorting], offsets[sorting]
        same = np.flatnonzero((offsets[1:] == offsets[:-1]) & (lanes[1:] // 32 == lanes[:-1] // 32))
        for value in values if len(same) else ():
            word = np.ascontiguousarray(np.broadcast_to(value, places.offsets.shape)).reshape(-1)
            bits = word.view(f"u{word.dtype.itemsize}")
            different = same[bits[lanes[same]] != bits[lanes[same + 1]]]
            if len(different):
                different = different[~_rounded(bits[lanes[different]], bits[lanes[different + 1]])]
            if len(different):
                at = different[0]
                address = (
                    HEAP_BASE + int(offsets[at])
                    if name == "global"
                    else int(np.broadcast_to(inside, places.offsets.shape).reshape(-1)[lanes[at]])
                )
                warp, two = int(warps[lanes[at] // 32]), lanes[at : at + 2] % 32
                mine = offsets[lanes // 32 == lanes[at] // 32]
                self._report(name, address, warp, two, statement, several=bool(mine.min() != mine.max()))
                return

    def _report(
        self,
        space: str,
        address: int,
        warp: int,
        lanes: NDArray[np.int64],
        statement: Instruction,
        *,
        several: bool,
    ) -> None:
        """Report two lanes that store to one address; `several`: the warp stores to others, too."""
        first, second = (
            self._findings.access("writer", statement, warp, lanes=1 << lane, space=space, address=address)
            for lane in lanes.tolist()
        )
        self._findings.report(
            _CHECKS[space],
            statement,
            summary=f"{first} stores to {first.place}, to which lane {lanes[1]} stores another value in the same "
            "instruction",
            rule="One of the two stores takes effect; which one is undefined",
            fix="let one lane store, or use an atomic operation"
            + (", or, if each lane has an element of its own, correct the address" if several else ""),
            accesses=(first, second),
        )


def _rounded(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.bool_]:
    """Which pairs of words, each of floats of 32 bits, differ in rounding only."""
    if first.dtype.itemsize < 4:
        return np.zeros(len(first), np.bool_)
    one, other = (each.view(np.float32).reshape(len(first), -1).astype(np.float64) for each in (first, second))
    close = np.abs(one - other) <= _ROUNDING * np.minimum(np.abs(one), np.abs(other))
    normal = np.minimum(np.abs(one), np.abs(other)) >= np.finfo(np.float32).tiny
    return (close & normal | (one == other)).all(axis=1)
