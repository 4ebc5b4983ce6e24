"""Telling a loop that never ends from a long one: warps that come back to a state in which they have been before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Repetition:
    """Compares warps with what they were at an earlier look, an ever older one (Brent's cycle detection).

    As long as nothing changes around a warp, what it does follows from its registers and from where its lanes stand: if
    these repeat after it has run, it goes round for ever.
    """

    def __init__(self, state: Sequence[NDArray[Any]]) -> None:
        self._state = state
        self._copy: list[NDArray[Any]] | None = None
        self._seen: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._taken_at, self._looks, self._next = 0, 0, 1

    def restart(self) -> None:
        """Something changed: forget."""
        self._copy, self._looks, self._next = None, 0, 1

    def look(self, last_run: NDArray[np.int64], step: int) -> NDArray[np.bool_]:
        """Which warps have come back to an earlier state; `last_run` says in which step each has run last."""
        if self._copy is not None:
            same = last_run > self._taken_at
            for array, copy in zip(self._state, self._copy, strict=True):
                candidates = np.flatnonzero(same & ~self._seen)
                if not len(candidates):
                    break
                now, then = array[candidates], copy[candidates]
                same[candidates] = (now == then).reshape(len(candidates), -1).all(axis=1)
            self._seen |= same
        self._looks += 1
        if self._copy is None or self._looks > self._next:
            self._next *= 2
            self._copy = [array.copy() for array in self._state]
            self._taken_at = step
            if self._looks == 1:
                self._seen = np.zeros(len(last_run), np.bool_)
        return self._seen
