"""Where an access finds its bytes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.memory.order import Order
from ptxgen.syntax import Instruction

#: All lanes of warps.
_EVERY = np.ones((1024, 32), np.bool_)
_EVERY.flags.writeable = False


class Bytes(NamedTuple):
    """The bytes of an access: in `data` (flat) at `offsets` (warps, 32), checked; masked lanes are somewhere legal.

    Of shared memory also in which slots, (warps, 1) where each warp stays in its own CTA, and where inside. Offsets in
    global memory count from the beginning of the heap.
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    slots: NDArray[np.int64] | None = None
    inside: NDArray[np.int64] | None = None


class MemoryAccess(NamedTuple):
    """What one instruction of several warps accesses in one state space, for the events that it causes.

    The lanes of `mask` (warps, 32), all where it is None, access `size` bytes each. A strong access (volatile, relaxed,
    acquire, release, atomic) has an order.
    """

    warps: NDArray[np.int64]
    mask: NDArray[np.bool_] | None
    space: str
    places: Bytes
    size: int
    statement: Instruction
    order: Order | None = None

    @property
    def active(self) -> NDArray[np.bool_]:
        """The lanes that take part: (warps, 32)."""
        return lanes_of(self.warps, self.mask)


def lanes_of(warps: NDArray[np.int64], mask: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    """The lanes of an event's warps that take part, (warps, 32): those of the mask, all where it is None."""
    if mask is not None:
        return mask
    return _EVERY[: len(warps)] if len(warps) <= len(_EVERY) else np.ones((len(warps), 32), np.bool_)
