"""Lanes of a warp that wait for each other: the .sync instructions with a mask of lanes. PTX ISA 9.7.13.

Mostly all lanes of a mask arrive together. In a divergent warp, those that arrive leave their operands here and wait
until all others that have not exited arrive at an instruction with the same qualifiers and the same mask, which need
not be the same line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import any_set

_LANES = np.arange(32, dtype=np.uint32)

Arrays = list[NDArray[Any]]
#: From the lanes that take part (warps, 32), their masks (warps, 32) and operands (warps, 32) to results (warps, 32).
Compute = Callable[[NDArray[np.bool_], NDArray[np.uint32], Arrays], Arrays]


def bits_of(flags: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Flags of lanes (..., 32) as a mask (...): bit n is lane n."""
    return np.packbits(flags, axis=-1, bitorder="little").view(np.uint32)[..., 0]


def flags_of(mask: Any) -> NDArray[np.bool_]:
    """The inverse: (...) to (..., 32)."""
    return (np.asarray(mask, np.uint32)[..., None] >> _LANES & np.uint32(1)).astype(np.bool_)


class Wait(NamedTuple):
    """What a warp's lanes wait for."""

    kind: str
    warp: int

    def __str__(self) -> str:
        return f"the other lanes that the mask of {self.kind} names"


class Convergence:
    """The operands of lanes that wait, and the results of those that have converged and not run on yet."""

    def __init__(self) -> None:
        #: By warp, signature and mask: which lanes have arrived (32 flags), and their operands (32 each).
        self._open: dict[tuple[int, object, int], tuple[NDArray[np.bool_], Arrays]] = {}
        #: By warp and signature: whose results are there, and the results (32 each).
        self._results: dict[tuple[int, object], tuple[NDArray[np.bool_], Arrays]] = {}

    def exchange(
        self,
        warp: int,
        signature: object,
        here: NDArray[np.bool_],
        present: NDArray[np.bool_],
        masks: NDArray[np.uint32],
        operands: Sequence[NDArray[Any]],
        compute: Compute,
    ) -> tuple[NDArray[np.bool_], Arrays]:
        """The lanes `here` of a warp arrive, or look again. Gives those that may run on, and their results.

        All arrays have an element for each lane. Only lanes of the same `signature` and mask converge.
        """
        known = self._results.get((warp, signature))
        fresh = here if known is None else here & ~known[0]
        for mask in np.unique(masks[fresh]).tolist():
            self._come(warp, signature, fresh & (masks == mask), present, mask, operands, compute)
        done = self._results.get((warp, signature))
        if done is None or not any_set(done[0] & here):
            return np.zeros(32, np.bool_), []
        flags, results = done
        going = flags & here
        flags &= ~here
        if not any_set(flags):
            del self._results[warp, signature]
        return going, results

    def _come(
        self,
        warp: int,
        signature: object,
        lanes: NDArray[np.bool_],
        present: NDArray[np.bool_],
        mask: int,
        operands: Sequence[NDArray[Any]],
        compute: Compute,
    ) -> None:
        key = (warp, signature, mask)
        arrived, kept = self._open.setdefault(key, (np.zeros(32, np.bool_), [np.zeros_like(each) for each in operands]))
        for old, new in zip(kept, operands, strict=True):
            old[lanes] = new[lanes]
        arrived |= lanes
        if any_set(flags_of(mask) & present & ~arrived):
            return
        del self._open[key]
        masks = np.full((1, 32), mask, np.uint32)
        results = [each[0] for each in compute(arrived[None], masks, [each[None] for each in kept])]
        flags, stored = self._results.setdefault(
            (warp, signature), (np.zeros(32, np.bool_), [np.zeros_like(each) for each in results])
        )
        flags |= arrived
        for old, new in zip(stored, results, strict=True):
            old[arrived] = new[arrived]

    def missing(self, warp: int, lanes: NDArray[np.bool_], present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which lanes of a warp these lanes wait for."""
        missing = np.zeros(32, np.bool_)
        for (other, _, mask), (arrived, _) in self._open.items():
            if other == warp and any_set(arrived & lanes):
                missing |= flags_of(mask) & present & ~arrived
        return missing

    @property
    def any(self) -> bool:
        """Whether lanes wait for others, or have results that they have not taken."""
        return bool(self._open or self._results)
