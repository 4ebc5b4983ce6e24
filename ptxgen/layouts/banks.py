"""Shared-memory banks: which bank a byte is in, and how many cycles one access of a warp takes.

32 banks of 4 bytes, address bits 2 to 6 (CUDA C++ Programming Guide, "Shared Memory"). Threads that read the same word
share it. Accesses of 8 bytes a thread go by half warps, those of 16 bytes by quarter warps, each a cycle of its own at
least (the guide says so of compute capability 5.x and later for 64 bits; 128 bits are inferred from 128 bytes a cycle,
and agree with what Nsight Compute counts as wavefronts).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    """The bank of a byte address.

    >>> from ptxgen.layouts.banks import bank
    >>> bank(0x1A2)
    8
    """
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
    count = _words_per_bank(np.array([addresses], np.int64), np.ones((1, len(addresses)), np.bool_), width)[0]
    used, ideal = _cycles(count)
    return Access(int(used), int(ideal), int(count.max()), tuple(count.sum(axis=0).tolist()))


def wavefronts(
    addresses: NDArray[np.int64], active: NDArray[np.bool_], width: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The cycles that each of many accesses takes, and what it would take without conflicts, as `access` has them.

    `addresses` and `active`, both (accesses, 32), have the byte address of each thread, and whether it takes part.
    """
    return _cycles(_words_per_bank(addresses, active, width))


def _cycles(count: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cycles with and without conflicts, of words by bank: (..., parts of the warp, 32)."""
    return count.max(axis=-1).sum(axis=-1), (-(-count.sum(axis=-1) // BANKS)).sum(axis=-1)


def _words_per_bank(addresses: NDArray[np.int64], active: NDArray[np.bool_], width: int) -> NDArray[np.int64]:
    """How many different words each bank gives to each part of the warp that goes together: (accesses, parts, 32)."""
    each = max(width // BANK_BYTES, 1)  # words of a thread
    together = 32 // each  # threads whose bytes fill one cycle
    accesses, threads = addresses.shape
    parts = -(-threads // together)
    words = np.full((accesses, parts * together, each), -1, np.int64)
    first = np.where(active, addresses // BANK_BYTES, -each)
    words[:, :threads] = first[..., None] + np.arange(each)
    words = np.sort(words.reshape(accesses * parts, -1), axis=1)
    new = words >= 0
    new[:, 1:] &= words[:, 1:] != words[:, :-1]
    banks = np.arange(len(words))[:, None] * BANKS + words % BANKS
    return np.bincount(banks[new], minlength=len(words) * BANKS).reshape(accesses, parts, BANKS)
