"""Calls of shared.c: the last accesses to shared memory, by lane and by warp. All arrays are contiguous."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.native.library import Library, pointer_to

Longs = NDArray[np.int64]
Masks = NDArray[np.uint16]
#: `struct memories` after its first two parts, `struct words`, `struct accesses` and `struct touched` of shared.c.
_MEMORIES = struct.Struct("=9Q3q2Q2q6Q")
_WORDS, _ACCESSES, _TOUCHED = struct.Struct("=4Q3q"), struct.Struct("=4Q"), struct.Struct("=5Q5qQ")
_LANES = 32


def _pointer(array: NDArray[Any] | None) -> int:
    return 0 if array is None else pointer_to(array)


def granules(
    library: Library, offsets: Longs, mask: NDArray[np.bool_] | None, fresh: NDArray[np.bool_] | None, size: int
) -> tuple[Longs, Longs, Masks, Masks]:
    """The granules that lanes of warps touch; offsets and `fresh` are (warps, 32).

    By granule: the position of its warp, its number, a mask of the bytes touched, and of the bytes of fresh lanes.
    """
    longs, shorts, most = np.empty((2, offsets.size), np.int64), np.empty((2, offsets.size), np.uint16), offsets.size
    given = pointer_to(offsets), _pointer(mask), _pointer(fresh), most // _LANES, size
    at, bytes = pointer_to(longs), pointer_to(shorts)
    count = library.granules(*given, at, at + 8 * most, bytes, bytes + 2 * most)
    touched = shorts[0, :count]
    return longs[0, :count], longs[1, :count], touched, touched if fresh is None else shorts[1, :count]


class Words(NamedTuple):
    """The words that lanes access: `parts` of each lane, from `bases` of its warp and its offset >> `shift` on; the
    offsets are (warps, 32), the bases and the numbers of the warps' intervals (warps,). The tables of the last stores
    and loads are given by their pointers.
    """

    bases: Longs
    intervals: Longs
    offsets: Longs
    mask: NDArray[np.bool_] | None
    shift: int
    parts: int

    def _packed(self) -> bytes:
        arrays = map(_pointer, (self.bases, self.intervals, self.offsets, self.mask))
        return _WORDS.pack(*arrays, len(self.bases), self.shift, self.parts)

    def load(self, library: Library, writer: int, reader: int | None, *, stored: bool) -> bool:
        """Keep loads in a `reader`; False, and nothing is kept, where one conflicts with a store of its interval."""
        given = np.empty(self.offsets.size * self.parts if reader is not None else 0, np.int64)
        return not library.lane_loads(self._packed(), writer, reader, stored, pointer_to(given))

    def store(
        self,
        library: Library,
        writer: int,
        reader: int,
        changing: NDArray[np.bool_],
        *,
        stored: bool,
        loaded: bool,
    ) -> bool:
        """Keep stores in `writer`; False, and nothing is kept, where one that is `changing` its word conflicts."""
        given = np.empty(self.offsets.size * self.parts, np.int64)
        tables = writer, reader, pointer_to(changing)
        return not library.lane_stores(self._packed(), *tables, stored, loaded, pointer_to(given))


def packed_accesses(clock: NDArray[np.int32], mask: Masks, line: NDArray[np.int32], latest: Longs) -> bytes:
    """The last weak accesses of one kind (`ThreadAccesses`), as shared.c has them; the arrays must live as long."""
    return _ACCESSES.pack(*map(pointer_to, (clock, mask, line, latest)))


class Touched:
    """Granules that warps touch in their own CTAs' memories, as `SharedAccesses.accesses` takes them; `per_cta` warps,
    `per_cluster` CTAs, `pitch` granules of a memory, and the clocks of all warps.
    """

    __slots__ = ("at", "bytes", "granules", "packed", "slots", "warps")

    def __init__(
        self, warps: Longs, slots: Longs, at: Longs, granules: Longs, bytes: Masks, shape: Sequence[int], clocks: Longs
    ) -> None:
        self.warps, self.slots, self.at, self.granules, self.bytes = warps, slots, at, granules, bytes
        arrays = map(pointer_to, (warps, slots, at, granules, bytes))
        #: This as shared.c has it.
        self.packed = _TOUCHED.pack(*arrays, len(warps), len(at), *shape, pointer_to(clocks))

    def ordered(
        self, library: Library, stores: bytes, compared: Masks, loads: bytes | None, changed: Masks | None, pending: int
    ) -> bool:
        """Whether each warp has observed all `stores` of others to bytes of `compared`, and all `loads` of bytes that
        are `changed`, and has no copy with the clock `pending` there.
        """
        return bool(
            library.shared_ordered(self.packed, stores, pointer_to(compared), loads, _pointer(changed), pending)
        )

    def keep(self, library: Library, last: bytes, clocks: Longs, line: int) -> None:
        """These are the last accesses of their warps, in these intervals, in an instruction of a line."""
        library.shared_keep(self.packed, last, pointer_to(clocks), line)


class WeakAccesses:
    """Weak accesses of warps to their own CTAs' memories that have nothing to report."""

    def __init__(self) -> None:
        self._given: tuple[tuple[int, ...], tuple[int, ...]] | None = None
        self._packed = b""
        self._room = np.empty(0, np.int64)

    def keep(
        self,
        library: Library,
        accesses: tuple[bytes, bytes],
        memory: tuple[int, ...],
        lanes: tuple[int, ...],
        warps: Longs,
        offsets: Longs,
        mask: NDArray[np.bool_] | None,
        changing: NDArray[np.bool_] | None,
        size: int,
        line: int,
        *,
        together: bool,
        equal: bool,
    ) -> bool:
        """Keep loads, or stores whose `changing` lanes change memory; keep nothing and return False if one may race.

        `accesses`, `memory` and `lanes` are the members of `struct memories`.
        """
        given = memory, lanes
        if given != self._given:
            self._given, self._packed = given, b"".join(accesses) + _MEMORIES.pack(*memory, *lanes)
        shift = lanes[3]
        room = 3 * offsets.size + 4 * len(warps) + offsets.size * (size >> shift)
        if len(self._room) < room:
            self._room = np.empty(room, np.int64)
        lanes_of = _pointer(mask), _pointer(changing)
        where = pointer_to(warps), len(warps), pointer_to(offsets)
        return not library.weak(self._packed, *where, *lanes_of, size, line, together, equal, pointer_to(self._room))
