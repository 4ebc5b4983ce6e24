"""Which lanes of a store change memory: unordered stores of the same bytes are but advice.

That holds between warps. Lanes of one warp that store the same bytes in one instruction make one store.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import addressof, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import count_nonzero
from ptxgen.emulator.memory.granules import starts
from ptxgen.emulator.memory.located import Bytes
from ptxgen.emulator.native.library import Library, chosen, pointer_to
from ptxgen.emulator.state.group import spread

#: Why unordered stores of the same bytes are but advice, and what to do.
EQUAL = "Both store the same bytes, so their order changes nothing"
#: Why a store that leaves the bytes as they are races with loads of others.
UNCHANGED = "It stores the bytes that are there already, so that this launch shows nothing: with other data it does"
ONE_STORE = "let one warp store, or put a barrier between the two stores"

_WORDS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def _by_machine_code(
    library: Library, active: NDArray[np.bool_], places: Bytes, part: int, values: Sequence[NDArray[Any]]
) -> NDArray[np.bool_] | None:
    """The same, for words of `part` bytes, one a lane; None unless their offsets ascend by lane."""
    offsets = places.offsets
    for value in values:
        if value.shape != offsets.shape or value.itemsize != part or not value.flags.c_contiguous:
            return None
    if not offsets.flags.c_contiguous or not active.flags.c_contiguous:
        return None
    found = np.empty(offsets.shape, np.bool_)
    pointers = (c_void_p * len(values))(*map(pointer_to, values))
    given = pointer_to(places.data), pointer_to(offsets), pointer_to(active), offsets.size, part, len(values)
    return found if library.changing(*given, addressof(pointers), pointer_to(found)) else None


def changing_lanes(
    active: NDArray[np.bool_], places: Bytes, size: int, values: Sequence[NDArray[Any]]
) -> NDArray[np.bool_]:
    """Which active lanes store something else than is in memory, or than a warp before them in the group stores there.

    Where lanes of one warp store to the same bytes, the last one counts: the values of the others are never visible.
    """
    part = size // len(values)
    word = _WORDS[part]
    if (library := chosen()) is not None and (
        found := _by_machine_code(library, active, places, part, values)
    ) is not None:
        return found
    index = places.offsets >> part.bit_length() - 1
    each = [np.ascontiguousarray(value).view(word) for value in values]
    each = [spread(value, index.shape) for value in each]
    memory = places.data.view(word)
    if len(values) == 1:
        old = memory[index]
        changing = each[0] != old
        new, old = each[0][..., None], old[..., None]
    else:
        new, old = np.stack(each, axis=-1), memory[index[..., None] + np.arange(len(values))]
        changing = (new != old).any(axis=-1)
    (every,) = active.reshape(-1).nonzero()
    places_of = index.reshape(-1)[every]
    if not count_nonzero(places_of[1:] <= places_of[:-1]):
        return active & changing
    order = np.argsort(places_of, kind="stable")
    every, places_of = every[order], places_of[order]
    begins = starts(places_of)
    if count_nonzero(begins) == len(begins):
        return active & changing
    # Lanes by byte, then by warp: the last of each warp there, and that of the first warp for all others.
    last = np.r_[begins[1:] | (every[1:] // 32 != every[:-1] // 32), True]
    every, place = every[last], (np.cumsum(begins) - 1)[last]
    before = every[np.searchsorted(place, place)]
    apart = before // 32 != every // 32
    flat = new.reshape(-1, len(values))
    old.reshape(-1, len(values))[every[apart]] = flat[before[apart]]
    changing = (new != old).any(axis=-1)
    wins = np.zeros(changing.shape, np.bool_)
    wins.reshape(-1)[every] = True
    return changing & wins
