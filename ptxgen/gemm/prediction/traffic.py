"""The order in which a kernel's tiles run, and the bytes that it moves: from L2 to the SMs, and from memory to L2."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ptxgen.gemm.concepts.tile_scheduler import TileScheduler


def cluster_tiles(scheduler: TileScheduler, m: int, n: int) -> tuple[int, int]:
    """Clusters along M and N that a problem takes, one tile per CTA."""
    return (
        -(-m // (scheduler.rows * scheduler.cluster[0])),
        -(-n // (scheduler.columns * scheduler.cluster[1])),
    )


@lru_cache(maxsize=4)
def tile_order(scheduler: TileScheduler, m: int, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each cluster is along M and N, in the order in which they run (kernels/blocks/scheduler.j2)."""
    table = scheduler.table(m, n)
    if table is not None:
        return table.astype(np.int64) & 0xFFFF, table.astype(np.int64) >> 16
    x, y = cluster_tiles(scheduler, m, n)
    number = np.arange(x * y)
    if not scheduler.panel:
        return number % x, number // x
    first = number // (x * scheduler.panel) * scheduler.panel
    width = np.minimum(y - first, scheduler.panel)
    inside = number - first * x
    return inside // width, first + inside % width


def l2_load_bytes(scheduler: TileScheduler, m: int, n: int, row_bytes: tuple[int, int]) -> int:
    """Bytes of A and B that leave the L2; a cluster reads each row of its tile once (multicast, or pairs).

    `row_bytes`: those of a row of A and of B, along K.
    """
    x, y = cluster_tiles(scheduler, m, n)
    return y * m * row_bytes[0] + x * n * row_bytes[1]


def copies_in_l2(scheduler: TileScheduler, m: int, n: int, row_bytes: tuple[int, int]) -> int:
    """Bytes of A and B that arrive in the two halves of the L2: each half holds what its SMs read.

    Two neighboring CTAs, or those of a cluster, are in one half; others may be in the other.
    """
    steps = (scheduler.rows * scheduler.cluster[0], scheduler.columns * scheduler.cluster[1])
    total = 0
    for tiles, step, extent, each in zip(tile_order(scheduler, m, n), steps, (m, n), row_bytes, strict=True):
        sizes = np.minimum(step, extent - np.arange(0, extent, step)) * each
        readers = np.bincount(tiles, minlength=len(sizes))
        if scheduler.cluster_size == 1:
            second = tiles[1::2]
            readers -= np.bincount(second[second == tiles[: 2 * len(second) : 2]], minlength=len(sizes))
        total += int((sizes * np.minimum(readers, 2)).sum())
    return total


def least_load_bytes(
    scheduler: TileScheduler, m: int, n: int, row_bytes: tuple[int, int], slots: int, capacity: float
) -> float:
    """Bytes of A and B that come from memory in any order of the tiles: a bound of `hbm_load_bytes`, without a walk.

    A full wave needs at least what a square of as many tiles does, and finds at most `capacity` of it in the L2.
    """
    area = slots * scheduler.rows * scheduler.cluster[0] * scheduler.columns * scheduler.cluster[1]
    full = m * n // area
    wave = 2 * (area * row_bytes[0] * row_bytes[1]) ** 0.5
    return max(m * row_bytes[0] + n * row_bytes[1], full * wave - max(full - 1, 0) * capacity)


def hbm_load_bytes(
    scheduler: TileScheduler, m: int, n: int, row_bytes: tuple[int, int], slots: int, capacity: float
) -> int:
    """Bytes of A and B that come from memory: `slots` clusters run at once and go through K together.

    What a wave needs comes from memory once. What the waves before it needed is still there as far as `capacity` bytes
    reach, the last used first.
    """
    at = tile_order(scheduler, m, n)
    steps = (scheduler.rows * scheduler.cluster[0], scheduler.columns * scheduler.cluster[1])
    sizes = [
        np.minimum(step, extent - np.arange(0, extent, step)) * each
        for step, extent, each in zip(steps, (m, n), row_bytes, strict=True)
    ]
    if m * row_bytes[0] + n * row_bytes[1] <= capacity:
        return m * row_bytes[0] + n * row_bytes[1]
    size = np.concatenate(sizes)
    resident, loaded = np.zeros(len(size), bool), 0
    used = np.full(len(size), -1)
    numbers = (at[0], len(sizes[0]) + at[1])
    for wave, start in enumerate(range(0, len(at[0]), slots)):
        needed = np.zeros(len(size), bool)
        for each in numbers:
            needed[each[start : start + slots]] = True
        loaded += int(size[needed & ~resident].sum())
        used[needed] = wave
        latest = np.argsort(-used, kind="stable")
        resident[:] = False
        resident[latest[: np.searchsorted(np.cumsum(size[latest]), capacity, side="right")]] = True
        resident &= used >= 0
    return loaded
