"""Tensor memory: its geometry, the cells of tcgen05.ld/st shapes, and the accumulator layouts of tcgen05.mma.

PTX ISA 9.7.16.1 (addressing), 9.7.16.8 (load and store), 9.7.16.10.5 (data paths, layouts A to G). All lanes
and columns are relative to the base address. Scale factors, sparse metadata and A operands in TMEM are not
here. The cell maps come from the manual's figures, with which CUTLASS's copy traits agree; nothing here was
measured.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ptxgen.layouts.swizzle import frozen

LANES = 128
COLUMNS = 512
WARP_LANES = 32
CELL_BYTES = 4

LoadShape = Literal["32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"]
Cells = tuple[NDArray[np.int64], NDArray[np.int64]]

REGISTERS_PER_REPEAT: dict[str, int] = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
"""Registers a thread at `.x1`, by shape (PTX ISA tables 49 and 50)."""

MAX_REPEAT: dict[str, int] = {"32x32b": 128, "16x64b": 128, "16x128b": 64, "16x256b": 32, "16x32bx2": 128}
"""The largest `.xN`, by shape."""


def tmem_address(lane: int, column: int) -> int:
    """Return the 32-bit TMEM address of a cell: lane in bits 31-16, column in bits 15-0."""
    if not 0 <= lane < LANES or not 0 <= column < COLUMNS:
        raise ValueError(f"a TMEM cell has lane 0..127 and column 0..511, not lane {lane}, column {column}")
    return lane << 16 | column


def split_address(address: int) -> tuple[int, int]:
    """Return (lane, column) of a TMEM address; neither is checked against the 128 lanes and 512 columns."""
    return address >> 16 & 0xFFFF, address & 0xFFFF


def warp_lanes(warp: int) -> range:
    """Return the lanes that warp `warp` of a CTA may load and store: 32 * (warp % 4) and the 31 after it."""
    start = WARP_LANES * (warp % 4)
    return range(start, start + WARP_LANES)


def register_count(shape: LoadShape, num: int) -> int:
    """Return the 32-bit registers a thread of `shape.xnum`, without .pack::16b, or raise ValueError."""
    if shape not in REGISTERS_PER_REPEAT:
        raise ValueError(f"shape must be one of {', '.join(REGISTERS_PER_REPEAT)}, not {shape!r}")
    if num not in (1, 2, 4, 8, 16, 32, 64, 128) or num > MAX_REPEAT[shape]:
        raise ValueError(f"{shape} repeats a power of two from 1 to {MAX_REPEAT[shape]} times, not {num!r}")
    return REGISTERS_PER_REPEAT[shape] * num


@lru_cache(maxsize=512)
def load_cells(shape: LoadShape, num: int, half_offset: int = 0) -> Cells:
    """Return (lane, column) of each register for tcgen05.ld and st: two arrays [32, registers], read-only.

    Relative to the instruction's address. `half_offset` is the immediate of 16x32bx2, in columns: where its
    second half (threads 16 to 31) starts. No other shape takes one.
    """
    registers = register_count(shape, num)
    if half_offset and shape != "16x32bx2":
        raise ValueError(f"only 16x32bx2 takes a half offset, not {shape}")
    t = np.arange(32)[:, None]
    r = np.arange(registers)[None, :]
    lane, column = {
        "32x32b": lambda: (t, r),
        "16x64b": lambda: (t // 4 + 8 * (t % 2), t // 2 % 2 + 2 * r),
        "16x128b": lambda: (t // 4 + 8 * (r % 2), t % 4 + 4 * (r // 2)),
        "16x256b": lambda: (t // 4 + 8 * (r // 2 % 2), 2 * (t % 4) + r % 2 + 8 * (r // 4)),
        "16x32bx2": lambda: (t % 16, r + half_offset * (t // 16)),
    }[shape]()
    full = (32, registers)
    return frozen(np.broadcast_to(lane, full)), frozen(np.broadcast_to(column, full))


AccumulatorLayout = Literal["A", "B", "C", "D", "E", "F", "G"]

_LAYOUTS: dict[tuple[int, bool, int, bool | None], AccumulatorLayout] = {
    (1, False, 64, None): "F",
    (1, False, 128, None): "D",
    (1, True, 32, None): "G",
    (1, True, 64, None): "E",
    (1, True, 128, None): "D",
    (2, False, 128, False): "B",
    (2, False, 128, True): "C",
    (2, False, 256, None): "A",
}
"""(cta_group, .ws, M, sparse; None: either) to the manual's letter (PTX ISA 9.7.16.10.5)."""


def accumulator_layout(m: int, *, cta_group: int = 1, ws: bool = False, sparse: bool = False) -> AccumulatorLayout:
    """Return the manual's letter of the accumulator layout; ValueError when the combination has none."""
    for key in ((cta_group, ws, m, None), (cta_group, ws, m, sparse)):
        if key in _LAYOUTS:
            return _LAYOUTS[key]
    raise ValueError(f"no accumulator layout for M {m}, cta_group {cta_group}, ws {ws}")


@lru_cache(maxsize=512)
def accumulator_cells(
    m: int, n: int, *, cta_group: int = 1, ws: bool = False, sparse: bool = False, cta_rank: int = 0
) -> Cells:
    """Return (lane, column) of accumulator element (row, n): two arrays [rows of this CTA, n], read-only.

    `m` and `n` are the instruction's, totals of the pair with cta_group 2; then CTA `cta_rank` (0: the even
    one) owns rows cta_rank*m/2 and up, row 0 of the arrays being the first of them, and both CTAs hold their
    rows at the same cells. A 16-bit accumulator fills the low half of its cell. For layouts C and F add 16 to
    the lane when the base is 16.
    """
    letter = accumulator_layout(m, cta_group=cta_group, ws=ws, sparse=sparse)
    if not 0 <= cta_rank < cta_group:
        raise ValueError(f"cta_rank must be below cta_group {cta_group}, not {cta_rank}")
    parts = {"B": 2, "E": 2, "G": 4}.get(letter, 1)
    if n % parts:
        raise ValueError(f"layout {letter} splits N in {parts}: N must be a multiple of it, not {n}")
    rows = m // cta_group
    row = np.arange(rows)[:, None]
    col = np.arange(n)[None, :]
    if letter in ("C", "F"):
        lane, column = 32 * (row // 16) + row % 16, col
    else:
        span = n // parts
        lane, column = row + rows * (col // span), col % span
    return frozen(np.broadcast_to(lane, (rows, n))), frozen(np.broadcast_to(column, (rows, n)))
