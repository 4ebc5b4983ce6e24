"""Shared-memory banks: which bank a byte is in, and how many cycles one access of a warp takes.

32 banks of 4 bytes, address bits 2 to 6 (CUDA C++ Programming Guide, "Shared Memory"). Threads that read the same word
share it. Accesses of 8 bytes a thread go by half warps, those of 16 bytes by quarter warps, each a cycle of its own at
least (the guide says so of compute capability 5.x and later for 64 bits; 128 bits are inferred from 128 bytes a cycle,
and agree with what Nsight Compute counts as wavefronts).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

BANKS = 32
BANK_BYTES = 4
LINE_BYTES = BANKS * BANK_BYTES


@dataclass(frozen=True, slots=True)
class Access:
    """One access of a warp to shared memory.

    `wavefronts` is the cycles it takes, `ideal` what it would take without conflicts, `ways` how many different words
    the worst bank has to give in one of them, `load` how many words each of the 32 banks gives in all.
    """

    wavefronts: int
    ideal: int
    ways: int
    load: tuple[int, ...]

    @property
    def conflicts(self) -> int:
        """Cycles lost."""
        return self.wavefronts - self.ideal


def bank(address: int) -> int:
    """The bank of a byte address."""
    return address // BANK_BYTES % BANKS


def access(addresses: Sequence[int], width: int) -> Access:
    """The access in which thread i reads or writes `width` bytes at `addresses[i]`.

    At most 32 threads; `width` 1, 2, 4, 8 or 16, which addresses are multiples of. Raises ValueError.
    """
    if width not in (1, 2, 4, 8, 16):
        raise ValueError(f"a thread reads 1, 2, 4, 8 or 16 bytes, not {width!r}")
    if not 0 < len(addresses) <= 32:
        raise ValueError(f"a warp has 1 to 32 threads, not {len(addresses)}")
    if wrong := [each for each in addresses if each % width]:
        raise ValueError(f"addresses must be multiples of the {width} bytes of the access, not {wrong[0]:#x}")
    step = 32 * BANK_BYTES // max(width, BANK_BYTES)  # threads whose bytes fill one cycle
    load = [0] * BANKS
    wavefronts = ideal = ways = 0
    for start in range(0, len(addresses), step):
        words = {
            (address + offset) // BANK_BYTES
            for address in addresses[start : start + step]
            for offset in range(0, max(width, BANK_BYTES), BANK_BYTES)
        }
        count = [0] * BANKS
        for word in words:
            count[word % BANKS] += 1
        load = [a + b for a, b in zip(load, count, strict=True)]
        wavefronts += max(count)
        ideal += -(-len(words) // BANKS)
        ways = max(ways, max(count))
    return Access(wavefronts, ideal, ways, tuple(load))
