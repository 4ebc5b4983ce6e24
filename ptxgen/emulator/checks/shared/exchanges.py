"""Loads of a warp's lanes before a shuffle, vote or reduction of the whole warp, and stores after it.

Such an instruction makes the lanes wait for each other, so what a lane has loaded before it comes before what another
stores after it in time. PTX does not count that as synchronization (9.7.9), but NVIDIA's cooperative groups rely on it:
all lanes load the result of a reduction, and the next reduction stores its own there after a redux.sync.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.observer import Observer

#: Loads of a warp since its last exchange that are kept; with more, none is known to come before it.
_MOST = 64


class Exchanges(Observer):
    """The words that each warp has loaded since all its lanes last exchanged values; none of a warp that has not."""

    def __init__(self) -> None:
        self._loaded: dict[int, list[NDArray[np.int64]]] = {}

    @property
    def any(self) -> bool:
        """Whether loads of some warp are kept."""
        return bool(self._loaded)

    def lanes_exchange(self, warps: NDArray[np.int64], lanes: NDArray[np.bool_]) -> None:
        for warp in warps[lanes.all(axis=1)].tolist():
            self._loaded[warp] = []

    def load(self, warps: NDArray[np.int64], words: NDArray[np.int64]) -> None:
        """Lanes of these warps load words of shared memory."""
        for warp in warps.tolist() if self._loaded else ():
            loaded = self._loaded.get(warp)
            if loaded is not None and len(loaded) < _MOST:
                loaded.append(words)
            elif loaded is not None:
                del self._loaded[warp]

    def follow(self, warp: int, word: int) -> bool:
        """Whether all loads of a word by lanes of a warp come before its last exchange."""
        loaded = self._loaded.get(warp)
        return loaded is not None and not any(any_set(words == word) for words in loaded)

    def forget(self, warps: NDArray[np.int64]) -> None:
        """The lanes of these warps synchronize."""
        for warp in warps.tolist() if self._loaded else ():
            self._loaded.pop(warp, None)

    def clear(self) -> None:
        """Words have other numbers from now on."""
        self._loaded.clear()
