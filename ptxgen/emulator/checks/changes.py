"""Which lanes of a store change memory: a store of the value already in memory races with nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.memory.granules import starts
from ptxgen.emulator.memory.located import Bytes


def changing_lanes(
    active: NDArray[np.bool_], places: Bytes, size: int, values: Sequence[NDArray[Any]]
) -> NDArray[np.bool_]:
    """Which active lanes store something else than is in memory, or than a warp before them in the group stores there.

    Where lanes of one warp store to the same bytes, the last one counts: the values of the others are never visible.
    """
    part = size // len(values)
    word = np.dtype(f"u{part}")
    index = places.offsets // part
    each = [np.broadcast_to(np.ascontiguousarray(value).view(word), index.shape) for value in values]
    if len(values) == 1:
        new, old = each[0][..., None], places.data.view(word)[index[..., None]]
    else:
        new, old = np.stack(each, axis=-1), places.data.view(word)[index[..., None] + np.arange(len(values))]
    every = np.flatnonzero(active)
    places_of = index.reshape(-1)[every]
    if (places_of[1:] > places_of[:-1]).all():
        return active & (new != old).any(axis=-1)
    order = np.argsort(places_of, kind="stable")
    every, places_of = every[order], places_of[order]
    begins = starts(places_of)
    if begins.all():
        return active & (new != old).any(axis=-1)
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
