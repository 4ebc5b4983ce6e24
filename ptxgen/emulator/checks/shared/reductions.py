"""Reductions (red) by several warps at the same words of shared memory.

A red observes nothing, so that each of those at a word must happen before a weak access there, not the last one alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_WORD = 4
#: Accesses in one CTA's memory that are kept before those of a warp that come before others of it are dropped.
_MANY = 1 << 14


@dataclass(slots=True)
class _Made:
    """Reductions by lanes: (lanes,) each. Members are warps of the cluster; words count four bytes."""

    members: NDArray[np.int64]
    words: NDArray[np.int64]
    clocks: NDArray[np.int64]
    lines: NDArray[np.int64]

    def chosen(self, mask: NDArray[np.bool_]) -> _Made:
        """Some of them."""
        return _Made(self.members[mask], self.words[mask], self.clocks[mask], self.lines[mask])


class SharedReductions:
    """The reductions at each CTA slot's words, of each warp the last."""

    def __init__(self) -> None:
        self._made: dict[int, list[_Made]] = {}
        self._sizes: dict[int, int] = {}

    def add(
        self,
        slots: NDArray[np.int64],
        members: NDArray[np.int64],
        inside: NDArray[np.int64],
        clocks: NDArray[np.int64],
        line: int,
    ) -> None:
        """Lanes reduce words at offsets of slots' memories; all are one-dimensional."""
        made = _Made(members, inside // _WORD, clocks, np.full(len(members), line))
        for slot in np.unique(slots).tolist():
            mine = slots == slot
            self._made.setdefault(slot, []).append(made if mine.all() else made.chosen(mine))
            self._sizes[slot] = self._sizes.get(slot, 0) + int(np.count_nonzero(mine))
            if self._sizes[slot] > _MANY:
                self._shorten(slot)

    def forget(self, slot: int, words: NDArray[np.int64], but: NDArray[np.int64] | None = None) -> None:
        """Drop reductions of these words; with `but` not those of the warps, by word."""
        if slot not in self._made:
            return
        made = self._all(slot)
        hit = np.isin(made.words, words)
        if but is not None:
            hit &= ~np.isin(made.words << 16 | made.members, words << 16 | but)
        self._keep(slot, made.chosen(~hit))

    def clear(self, slot: int) -> None:
        """Make a slot ready for the next CTA."""
        self._made.pop(slot, None)
        self._sizes.pop(slot, None)

    def unordered(
        self, slot: int, warp: int, words: NDArray[np.int64], observed: NDArray[np.int64]
    ) -> Iterator[tuple[int, int, int, int]]:
        """(other warp, line, interval, offset) of reductions at words unordered with `warp`, given its clocks."""
        if slot not in self._made:
            return
        made = self._all(slot)
        late = (made.clocks > observed[made.members]) & (made.members != warp)
        if late.any():
            late &= np.isin(made.words, words)
        for member in np.unique(made.members[late]).tolist():
            (mine,) = (late & (made.members == member)).nonzero()
            at = mine[made.clocks[mine].argmax()]
            yield member, int(made.lines[at]), int(made.clocks[at]), int(made.words[at]) * _WORD

    def any_unordered(
        self,
        slots: NDArray[np.int64],
        warps: NDArray[np.int64],
        words: NDArray[np.int64],
        observed: NDArray[np.int64],
        at: NDArray[np.int64],
    ) -> bool:
        """Whether `unordered` has something for any of many accesses: by access the slot, the warp, the word, and which
        of the `observed` clocks are its.
        """
        for slot in np.unique(slots).tolist() if self._made else ():
            mine = slots == slot
            for position in np.unique(at[mine]).tolist() if slot in self._made else ():
                its = mine & (at == position)
                if next(self.unordered(slot, int(warps[its][0]), words[its], observed[position]), None) is not None:
                    return True
        return False

    def _all(self, slot: int) -> _Made:
        parts = self._made[slot]
        if len(parts) > 1:
            made = _Made(
                np.concatenate([each.members for each in parts]),
                np.concatenate([each.words for each in parts]),
                np.concatenate([each.clocks for each in parts]),
                np.concatenate([each.lines for each in parts]),
            )
            self._made[slot] = [made]
            return made
        return parts[0]

    def _shorten(self, slot: int) -> None:
        """Keep the last reduction of each warp at each word."""
        made = self._all(slot)
        _, last = np.unique((made.words << 16 | made.members)[::-1], return_index=True)
        kept = np.zeros(len(made.words), np.bool_)
        kept[len(made.words) - 1 - last] = True
        self._keep(slot, made.chosen(kept))

    def _keep(self, slot: int, made: _Made) -> None:
        if len(made.words):
            self._made[slot], self._sizes[slot] = [made], len(made.words)
        else:
            self.clear(slot)
