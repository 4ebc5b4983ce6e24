"""Livelocks: warps that return to an earlier state spin forever, unlike those in a long loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Repetition:
    """Compares the state of warps with that of an earlier look (Brent's cycle detection).

    While nothing changes around a warp, its execution follows from its registers, its local memory and the pcs of its
    lanes: if these repeat after it has run, it spins forever. `state` gives them: arrays by warp.
    """

    def __init__(self, state: Callable[[], Sequence[NDArray[Any]]]) -> None:
        self._state = state
        self._copy: list[NDArray[Any]] | None = None
        self._seen: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._taken_at, self._looks, self._next = 0, 0, 1

    def restart(self) -> None:
        """Something changed: forget."""
        self._copy, self._looks, self._next = None, 0, 1

    def look(self, last_run: NDArray[np.int64], step: int) -> NDArray[np.bool_]:
        """Which warps have returned to an earlier state; `last_run` says in which step each has run last."""
        if self._copy is not None:
            same = last_run > self._taken_at
            for array, copy in zip(self._state(), self._copy, strict=True):
                candidates = np.flatnonzero(same & ~self._seen)
                if not len(candidates):
                    break
                now, then = array[candidates], copy[candidates]
                if now.shape != then.shape:  # local memory has grown
                    same[candidates] = False
                    break
                same[candidates] = (now == then).reshape(len(candidates), -1).all(axis=1)
            self._seen |= same
        self._looks += 1
        if self._copy is None or self._looks > self._next:
            self._next *= 2
            self._copy = [array.copy() for array in self._state()]
            self._taken_at = step
            if self._looks == 1:
                self._seen = np.zeros(len(last_run), np.bool_)
        return self._seen
