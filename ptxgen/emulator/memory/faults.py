"""The error of an access that hardware would refuse."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxgen.syntax import Statement


class MemoryFault(Exception):
    """An access outside memory, misaligned, or to memory of the wrong kind.

    `place` is the first lane at fault among those that access memory together: the position of its warp, and its lane.
    """

    def __init__(self, code: str, message: str, place: tuple[int, int] | None = None) -> None:
        self.code, self.place = code, place
        #: Where it belongs, when that is not the instruction that runs now.
        self.statement: Statement | None = None
        super().__init__(message)


def first(bad: NDArray[np.bool_]) -> tuple[int, int]:
    """The position and lane of the first access that is bad: (warps, 32)."""
    position, lane = np.argwhere(bad)[0].tolist()
    return position, lane
