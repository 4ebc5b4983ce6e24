"""Accesses of lanes as numbers: the interval of their warp, and in the low bits the lane, or `SEVERAL`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: The bits of the lane, and what stands there for several lanes.
SHIFT = 6
SEVERAL = 32


class Conflict(NamedTuple):
    """Where an access conflicts: its warp and first lane, its word, and the event there."""

    warp: int
    lane: int
    word: int
    event: int


def by_others(before: NDArray[np.int64], events: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Where the event before is of the same interval, but not of the same lane."""
    difference = before ^ events
    return (difference < 1 << SHIFT) & (difference != 0)


def lane_of(lane: int) -> int | None:
    """The bit of an event's lane; None where it stands for several."""
    return None if lane == SEVERAL else 1 << lane
