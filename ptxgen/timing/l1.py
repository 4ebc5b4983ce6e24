"""The L1 cache of an SM, as loads of global memory by warps use it: lines of 128 bytes, filled by sectors of 32.

What is loaded stays until other lines have taken its place, the least recently used first. Stores write through to the
L2 and allocate nothing. A load of a sector that is still on its way waits for it and fetches nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from math import inf

#: Bytes of a sector and of a line.
SECTOR, LINE = 32, 128
_SECTORS = LINE // SECTOR
#: KB that an SM can set aside as shared memory (CUDA C++ Programming Guide, compute capability 9.0); the rest is L1.
_CARVEOUTS = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)


def carveout(shared_bytes: int) -> int:
    """The least that an SM can set aside to hold so many bytes of shared memory."""
    return next((each << 10 for each in _CARVEOUTS if each << 10 >= shared_bytes), _CARVEOUTS[-1] << 10)


class L1:
    """The lines of a cache of so many bytes, with the cycle at which each of their sectors has come."""

    def __init__(self, size: float) -> None:
        self._most = int(size) // LINE
        self._lines: OrderedDict[int, list[float]] = OrderedDict()

    def lookup(self, sectors: Sequence[int]) -> tuple[list[int], float]:
        """The sectors that are neither here nor on their way, and the cycle at which all others have come."""
        missing, ready = list[int](), 0.0
        for sector in sectors:
            line = self._lines.get(sector // _SECTORS)
            come = inf if line is None else line[sector % _SECTORS]
            if come == inf:
                missing.append(sector)
                continue
            ready = max(ready, come)
            self._lines.move_to_end(sector // _SECTORS)
        return missing, ready

    def fill(self, sectors: Sequence[int], come: float) -> None:
        """Sectors are here from a cycle on."""
        for sector in sectors:
            number = sector // _SECTORS
            line = self._lines.get(number)
            if line is None:
                if not self._most:
                    return
                if len(self._lines) >= self._most:
                    self._lines.popitem(last=False)
                line = self._lines[number] = [inf] * _SECTORS
            line[sector % _SECTORS] = come
