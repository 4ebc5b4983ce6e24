"""Local memory: a stack of bytes for each thread, addressed by offsets that mean other bytes in each thread."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_POISON = 0xCD


class LocalMemory:
    """`data[thread, offset]` are the bytes of the threads of all warps, `written` which of them hold a value."""

    def __init__(self, threads: int, size: int) -> None:
        self.pitch = max(-(-size // 32) * 32, 32)
        self.data: NDArray[np.uint8] = np.full((threads, self.pitch), _POISON, np.uint8)
        self.written: NDArray[np.bool_] = np.zeros((threads, self.pitch), np.bool_)

    def clear(self, threads: slice) -> None:
        """Poison the memory of some threads for those that come next."""
        self.data[threads] = _POISON
        self.written[threads] = False
