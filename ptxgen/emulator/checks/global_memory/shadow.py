"""Shadow memory of global memory: the last accesses by threads to each two bytes, and to single ones where needed.

An entry names an event (`events`) and the lane of its warp; 0 is none.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import any_set, count_nonzero
from ptxgen.emulator.native.library import chosen, pointer_to

Entries = NDArray[np.int32]
HALF, WORD, GRANULE = 2, 4, 16
#: The low bits of an entry have the lane, the others the event.
SHIFT = 6
#: For a lane: several of the warp, so that it says nothing.
NOBODY = (1 << SHIFT) - 1
#: An entry at both halves of a word.
_BOTH = np.int64(1 << 32 | 1)


class ShadowMemory:
    """The last entry of each two bytes, or of a single one."""

    def __init__(self, bytes: int) -> None:
        self._length = -(-bytes // GRANULE) * (GRANULE // HALF)
        #: Entries by byte, made at the first access of a single byte; wider accesses are in `_halves`.
        self._bytes: Entries | None = None
        #: True once an entry has been kept.
        self.used = False

    @cached_property
    def _halves(self) -> Entries:
        return np.zeros(self._length, np.int32)

    def grow(self, bytes: int) -> None:
        """The heap has become larger."""
        missing = -(-bytes // GRANULE) * (GRANULE // HALF) - self._length
        if missing > 0:
            self._halves = np.concatenate([self._halves, np.zeros(missing, np.int32)])
            self._length += missing
            if self._bytes is not None:
                self._bytes = np.concatenate([self._bytes, np.zeros(missing * HALF, np.int32)])

    def at(self, offsets: NDArray[np.int64], size: int) -> Entries:
        """The entries of the bytes that accesses of `size` bytes touch: the shape of `offsets`, and a last axis, of
        length 1 where each access has one entry.
        """
        library = chosen()
        if library is not None and offsets.flags.c_contiguous:
            found = np.empty((*offsets.shape, 1), np.int32)
            if (
                library.shadow_at(
                    pointer_to(self._halves), pointer_to(offsets), offsets.size, size // WORD, pointer_to(found)
                )
                > 1
            ):
                found = self._each(offsets, size)
        elif size < WORD:
            found = self._halves[offsets // HALF][..., None]
        else:
            found = self._each(offsets, size)
        if self._bytes is None:
            return found
        single = self._bytes[offsets[..., None] + np.arange(size)]
        if not count_nonzero(single):
            return found
        each = np.broadcast_to(found, (*offsets.shape, max(size // HALF, 1)))
        return np.concatenate([each, single], axis=-1)

    def _each(self, offsets: NDArray[np.int64], size: int) -> Entries:
        """As `at`, of whole words."""
        words = (offsets >> 2)[..., None]
        if size > WORD:
            words = words + np.arange(size // WORD)
        pairs = self._halves.view(np.int64)[words]
        first = pairs[..., :1].astype(np.int32)
        return pairs.view(np.int32) if count_nonzero(pairs != first * _BOTH) else first

    def keep_first(
        self, offsets: NDArray[np.int64], mask: NDArray[np.bool_] | None, size: int, entries: Entries
    ) -> bool:
        """Put entries of lanes, (warps, 32): of those that overlap the first stays. Whether none do, as they ascend."""
        library = chosen()
        if size >= HALF and library is not None and self._bytes is None and offsets.flags.c_contiguous:
            lanes = None if mask is None else np.ascontiguousarray(mask)
            given = np.ascontiguousarray(entries, np.int32)
            self.used = True
            return bool(
                library.shadow_keep(
                    pointer_to(self._halves),
                    pointer_to(offsets),
                    None if lanes is None else pointer_to(lanes),
                    pointer_to(given),
                    offsets.size,
                    size // WORD,
                )
            )
        at, given = (offsets.ravel(), entries.ravel()) if mask is None else (offsets[mask], entries[mask])
        self.keep(at[::-1], size, given[::-1])
        return not count_nonzero(at[1:] <= at[:-1])

    def keep_lost(
        self,
        earlier: ShadowMemory,
        offsets: NDArray[np.int64],
        mask: NDArray[np.bool_] | None,
        size: int,
        entries: Entries,
    ) -> None:
        """Put entries of lanes, (warps, 32), to `earlier` where this has the entry of another event instead."""
        library = chosen()
        if size >= HALF and library is not None and self._bytes is None and earlier._bytes is None:
            lanes = None if mask is None else np.ascontiguousarray(mask)
            at, given = np.ascontiguousarray(offsets), np.ascontiguousarray(entries, np.int32)
            if library.shadow_lost(
                pointer_to(self._halves),
                pointer_to(earlier._halves),
                pointer_to(at),
                None if lanes is None else pointer_to(lanes),
                pointer_to(given),
                at.size,
                size // WORD,
                SHIFT,
            ):
                earlier.used = True
            return
        after = self.at(offsets, min(size, WORD))[..., 0 if size > 1 else -1]
        lost = (after ^ entries) >> SHIFT != 0
        if mask is not None:
            lost &= mask
        if count_nonzero(lost):
            earlier.keep(offsets[lost], size, entries[lost])

    def keep(self, offsets: NDArray[np.int64], size: int, entries: Entries) -> None:
        """Put entries, one for each access of `size` bytes, instead of those that were there: the last one stays."""
        self.used = True
        if size == 1:
            if self._bytes is None:
                self._bytes = np.zeros(len(self._halves) * HALF, np.int32)
            self._bytes[offsets] = entries
            return
        if self._bytes is not None:
            self._bytes[offsets[:, None] + np.arange(size)] = 0
        library = chosen()
        if library is not None:
            at, kept = np.ascontiguousarray(offsets), np.ascontiguousarray(entries, np.int32)
            library.shadow_put(pointer_to(self._halves), pointer_to(at), pointer_to(kept), len(at), size // WORD)
            return
        if size == HALF:
            self._halves[offsets // HALF] = entries
            return
        words, pairs = self._halves.view(np.int64), entries * _BOTH
        if size == WORD:
            words[offsets >> 2] = pairs
        else:
            words[offsets[:, None] // WORD + np.arange(size // WORD)] = pairs[:, None]

    def keep_some(self, offsets: NDArray[np.int64], size: int, entries: Entries, chosen: NDArray[np.bool_]) -> None:
        """Put the chosen ones of entries as `at` gives them, instead of those that were there."""
        self.used = True
        halves = max(size // HALF, 1)
        if entries.shape[-1] == 1 < size:
            self.keep(offsets[chosen[..., 0]], size, entries[chosen])
            return
        if size > 1:
            places = offsets[..., None] // HALF + np.arange(halves)
            some = chosen[..., :halves]
            self._halves[places[some]] = entries[..., :halves][some]
        if entries.shape[-1] > halves and any_set(some := chosen[..., halves:]):
            if self._bytes is None:
                self._bytes = np.zeros(len(self._halves) * HALF, np.int32)
            self._bytes[(offsets[..., None] + np.arange(size))[some]] = entries[..., halves:][some]

    def forget(self, offsets: NDArray[np.int64], size: int) -> None:
        """Drop what is kept of these bytes; of a single one, what is kept of its neighbor stays."""
        if not self.used:
            return
        if size > 1:
            self.keep(offsets, size, np.zeros(len(offsets), np.int32))
        elif self._bytes is not None:
            self._bytes[offsets] = 0

    def events(self, granules: NDArray[np.int64]) -> Entries:
        """The different events in whole granules."""
        if not self.used:
            return np.zeros(0, np.int32)
        words = self._halves.view(np.int64).reshape(-1, GRANULE // WORD)[granules]
        found = words.view(np.int32).ravel() if any_set(words) else np.zeros(0, np.int32)
        if self._bytes is not None:
            found = np.concatenate([found, self._bytes.reshape(-1, GRANULE)[granules].ravel()])
        return distinct_events(found >> SHIFT)

    def where(self, granules: NDArray[np.int64], event: int) -> int | None:
        """The first of these granules that has an event; None if none has."""
        if not self.used:
            return None
        words = self._halves.view(np.int64).reshape(-1, GRANULE // WORD)[granules]
        hit = (words.view(np.int32).reshape(len(granules), -1) >> SHIFT == event).any(axis=1)
        if self._bytes is not None:
            hit |= (self._bytes.reshape(-1, GRANULE)[granules] >> SHIFT == event).any(axis=1)
        return int(granules[hit.argmax()]) if any_set(hit) else None

    def forget_granules(self, granules: NDArray[np.int64]) -> None:
        """Drop what is kept of whole granules."""
        if not self.used:
            return
        self._halves.view(np.int64).reshape(-1, GRANULE // WORD)[granules] = 0
        if self._bytes is not None:
            self._bytes.reshape(-1, GRANULE)[granules] = 0

    def clear(self) -> None:
        """Drop everything."""
        if self.used:
            self._halves[:] = 0
        self._bytes = None
        self.used = False


def distinct_events(events: Entries) -> Entries:
    """The different events, or entries, among some, without 0."""
    found = np.unique(events)
    return found[1:] if len(found) and found[0] == 0 else found
