"""Where an access finds its bytes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Bytes(NamedTuple):
    """The bytes of an access: in `data` (flat) at `offsets` (warps, 32), checked; masked lanes are somewhere legal.

    Of shared memory also in which slots, (warps, 1) where each warp stays in its own CTA, and where inside. Offsets in
    global memory count from the beginning of the heap.
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    slots: NDArray[np.int64] | None = None
    inside: NDArray[np.int64] | None = None


def lanes_of(rows: NDArray[np.int64], mask: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    """The lanes of an event's warps that take part, (warps, 32): those of the mask, all where it is None."""
    return np.ones((len(rows), 32), np.bool_) if mask is None else mask
