"""The last strong store, or atomic operation, to each word of shared memory, by lane.

Events are those of `lanes`: the number of a warp's lane interval, and in the low bits the lane, or that several lanes
have changed the word.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Events = NDArray[np.int64]


class LaneUpdates:
    """What lanes have changed by strong accesses since their warp's lanes last synchronized."""

    def __init__(self, warps: int, words: int) -> None:
        self._words = words
        #: Events and lines by word; made at the first strong store.
        self._events, self._lines = np.zeros(0, np.int64), np.zeros(0, np.int32)
        #: The last interval of each warp's lanes with a strong store.
        self.last = np.zeros(warps, np.int64)

    @property
    def used(self) -> bool:
        """Whether any lane has made a strong store."""
        return len(self._events) > 0

    def at(self, words: NDArray[np.int64]) -> Events:
        """The events of words; 0 where there is none."""
        return self._events[words]

    def line(self, word: int) -> int:
        """The line of the event of a word."""
        return int(self._lines[word])

    def put(
        self,
        words: NDArray[np.int64],
        events: Events,
        line: int,
        *,
        several: int,
        observes: bool,
    ) -> None:
        """Strong stores to words, (lanes, words), in their order, with events (lanes, 1). Where other lanes of the warp
        have changed the word in this interval, too, the event stands for `several`, unless each access `observes`
        those before it: then it is that of the last one.
        """
        if not self.used:
            self._events, self._lines = np.zeros(self._words, np.int64), np.zeros(self._words, np.int32)
        given = np.broadcast_to(events, words.shape).copy()
        if not observes:
            self._merge(given, self._events[words], several)
        self._events[words] = given
        if not observes:
            self._merge(given, self._events[words], several)
            self._events[words] = given
        self._lines[words] = line

    @staticmethod
    def _merge(given: Events, others: Events, several: int) -> None:
        """Make events stand for several lanes where others of the same warp are at the same words."""
        difference = others ^ given
        alike = (difference < 2 * several) & (difference != 0)
        given[alike] = given[alike] & -several | several

    def forget(self, words: NDArray[np.int64]) -> None:
        """Weak stores have replaced what these words held, or loads have observed it."""
        if self.used:
            self._events[words] = 0

    def divide(self, parts: int) -> None:
        """Each word becomes so many smaller ones."""
        self._words *= parts
        if self.used:
            self._events, self._lines = self._events.repeat(parts), self._lines.repeat(parts)
