"""Asynchronous work: operations that outlast their instruction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import count_nonzero
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.engines.tensor_copies import Box

#: All threads of a warp, and each of them alone: masks (32,).
WARP: NDArray[np.bool_] = np.ones(32, np.bool_)
LANE_MASKS: NDArray[np.bool_] = np.eye(32, dtype=np.bool_)


#: Work of the generic proxy: it counts as stores of the warp that has waited for it.
GENERIC = frozenset(["cp.async", "st.async", "red.async"])


@dataclass(frozen=True, slots=True)
class MmaShape:
    """An MMA as tensor cores see it: M×N with K of 32 bytes, of one CTA or of a pair (`ctas`).

    `a_in_shared`: A is read from shared memory, not from registers or tensor memory. `registers`: those of each thread
    that hold the accumulator; 0 where it is in tensor memory.
    """

    m: int
    n: int
    ctas: int = 1
    a_in_shared: bool = True
    registers: int = 0


@dataclass(slots=True, eq=False, weakref_slot=True)
class AsyncWork:
    """A copy, an MMA or another operation, from its issue to its completion.

    `number` counts the work of a launch from 1 on, `what` names its kind (`tcgen05.mma`, `tensor copy`). `slot` is the
    CTA for which it is, `warp` the warp that has issued it and `lanes`, (32,), which of its threads; `pipe` orders work
    (None: nothing does), and `issued` is the virtual time of the issue.
    """

    number: int
    what: str
    statement: Statement
    slot: int
    warp: int
    lanes: NDArray[np.bool_]
    pipe: object
    issued: int
    #: The swizzle with which a copy writes shared memory.
    swizzle: str | None = None
    #: The rows that a tensor copy writes to shared memory, in the order of its granules there.
    box: Box | None = None
    #: Bytes that a copy moves to one destination; how many destinations a multicast has.
    bytes: int = 0
    destinations: int = 1
    #: The shape of an MMA.
    mma: MmaShape | None = None

    @property
    def lane(self) -> int | None:
        """The thread that has issued it, None if several have together."""
        return int(self.lanes.argmax()) if count_nonzero(self.lanes) == 1 else None
