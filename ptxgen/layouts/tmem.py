"""Tensor memory: its geometry, and where the matrices of tcgen05 lie in it.

`load_cells` (registers of tcgen05.ld and st), `accumulator_cells` (D), `operand_lanes` and `operand_place` (A),
`metadata_cells` (which elements a sparse A keeps), `copy_lanes` (tcgen05.cp), `shift_lanes` (tcgen05.shift); scale
factors are in `ptxgen.layouts.scale_factors`. Each maps indexes of a matrix to cells; all lanes and columns are
relative to the base address.

PTX ISA 9.7.16.1 (addressing), 9.7.16.8 (load and store), 9.7.16.9 (copies), 9.7.16.10.4 (packing), 9.7.16.10.5 (data
paths, layouts A to G), 9.7.16.10.8 (metadata). The maps come from the manual's figures, with which CUTLASS's traits
agree; nothing here was measured by us. What no text states is in `ptxgen.descriptors.facts`, under tensor memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ptxgen.layouts.swizzle import frozen

LANES = 128
COLUMNS = 512
#: Lanes of a band: those of an accumulator of 64 rows in a warp's quarter.
BAND = 16
WARP_LANES = 32
CELL_BYTES = 4

LoadShape = Literal["32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"]
Cells = tuple[NDArray[np.int64], NDArray[np.int64]]

REGISTERS_PER_REPEAT: dict[str, int] = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
"""Registers a thread at `.x1`, by shape (PTX ISA tables 49 and 50)."""

MAX_REPEAT: dict[str, int] = {"32x32b": 128, "16x64b": 128, "16x128b": 64, "16x256b": 32, "16x32bx2": 128}
"""The largest `.xN`, by shape."""


def tmem_address(lane: int, column: int) -> int:
    """Return the 32-bit TMEM address of a cell: lane in bits 31-16, column in bits 15-0.

    >>> from ptxgen.layouts.tmem import tmem_address
    >>> hex(tmem_address(lane=32, column=4))
    '0x200004'
    """
    if not 0 <= lane < LANES or not 0 <= column < COLUMNS:
        raise ValueError(f"a TMEM cell has lane 0..127 and column 0..511, not lane {lane}, column {column}")
    return lane << 16 | column


def split_address(address: int) -> tuple[int, int]:
    """Return (lane, column) of a TMEM address; neither is checked against the 128 lanes and 512 columns."""
    return address >> 16 & 0xFFFF, address & 0xFFFF


def warp_lanes(warp: int) -> range:
    """Return the lanes that warp `warp` of a CTA may load and store: 32 * (warp % 4) and the 31 after it.

    >>> from ptxgen.layouts.tmem import warp_lanes
    >>> warp_lanes(6)
    range(64, 96)
    """
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


@lru_cache(maxsize=512)
def packed_cells(shape: LoadShape, num: int, half_offset: int = 0) -> Cells:
    """Return (lane, column) of both halves of each register with .pack::16b (ld) or .unpack::16b (st).

    Two arrays [32, registers, 2], read-only; the low half of a register is in the low half of the first cell.
    The shape covers twice as many columns as without packing.
    """
    lane, column = load_cells(shape, num)
    first = 2 * column
    if half_offset:
        if shape != "16x32bx2":
            raise ValueError(f"only 16x32bx2 takes a half offset, not {shape}")
        first = first + half_offset * (np.arange(32)[:, None] // 16)
    return frozen(np.stack([lane, lane], axis=-1)), frozen(np.stack([first, first + 1], axis=-1))


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
    if ws and cta_group == 2:
        raise ValueError("no accumulator layout with .ws and cta_group 2: .ws has cta_group 1 only")
    *others, last = dict.fromkeys(f"{each[2]}" for each in _LAYOUTS if each[:2] == (cta_group, ws))
    raise ValueError(
        f"no accumulator layout for M {m}, cta_group {cta_group}, ws {ws}; M must be {', '.join(others)} or {last} "
        "(PTX ISA 9.7.16.10.5)"
    )


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
    parts = _copies(letter)
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


def _copies(letter: AccumulatorLayout) -> int:
    """How many parts of N the lanes hold side by side, and so how often they need the rows of A."""
    return {"B": 2, "E": 2, "G": 4}.get(letter, 1)


@lru_cache(maxsize=64)
def operand_lanes(m: int, *, cta_group: int = 1, ws: bool = False, sparse: bool = False) -> NDArray[np.int64]:
    """Return the lane of each row of A in TMEM: an array [copies, rows of a CTA], read-only.

    A lies on the lanes of D, its rows once for every part of N that the lanes hold (layouts B, E and G; see
    `accumulator_cells`). For layouts C and F add 16 when the base is 16.
    """
    letter = accumulator_layout(m, cta_group=cta_group, ws=ws, sparse=sparse)
    copies = _copies(letter)
    cells, _ = accumulator_cells(m, 8 * copies, cta_group=cta_group, ws=ws, sparse=sparse)
    return frozen(cells[:, ::8].T)


def operand_place(k: int, container_bits: int) -> tuple[int, int]:
    """Return (column, first bit) of element `k` of a row of A in TMEM.

    `container_bits`: 32 (tf32), 16, 8 (also 4- and 6-bit elements of f8f6f4 and mxf8f6f4), 4 (mxf4, mxf4nvf4). Of a
    sparse A, `k` counts the elements that are stored. One instruction reads 8 columns.
    """
    if container_bits not in (4, 8, 16, 32):
        raise ValueError(f"elements of A fill 4, 8, 16 or 32 bits, not {container_bits!r}")
    return k * container_bits // 32, k * container_bits % 32


METADATA_CHUNKS: dict[str, tuple[int, int]] = {
    "tf32": (2, 8),
    "f16": (4, 8),
    "ti16": (4, 8),
    "f8f6f4": (4, 16),
    "i8": (4, 16),
    "mxf8f6f4": (4, 16),
    "mxf4": (8, 16),
    "mxf4nvf4": (8, 16),
}
"""(elements of K in a chunk, chunks in an instruction): each chunk of a row of A has 4 bits of metadata."""


@lru_cache(maxsize=128)
def metadata_cells(
    kind: str, m: int, *, selector: int = 0, cta_group: int = 1, ws: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return (lane, column, first bit) of the 4 bits of metadata of (row, chunk of K) of a sparse A.

    Three arrays [copies, rows of a CTA, chunks], read-only; copies as in `operand_lanes`. `selector` is the
    instruction descriptor's sparsity selector, for kinds f16, ti16 and tf32 only.
    """
    if kind not in METADATA_CHUNKS:
        raise ValueError(f"kind must be one of {', '.join(METADATA_CHUNKS)}, not {kind!r}")
    chunks = METADATA_CHUNKS[kind][1]
    lanes = operand_lanes(m, cta_group=cta_group, ws=ws, sparse=True)[:, :, None]
    chunk = np.arange(chunks)[None, None, :]
    if chunks == 16:
        if selector:
            raise ValueError(f"the sparsity selector of kind::{kind} is 0, not {selector!r}")
        lane, column, bit = lanes, chunk // 8, 4 * (chunk % 8)
    else:
        if selector not in (0, 1, 2, 3):
            raise ValueError(f"the sparsity selector is 0 to 3, not {selector!r}")
        lane = lanes - lanes % 16 + lanes % 8 + 8 * (chunk // 4)
        column, bit = np.array(selector), 16 * (lanes % 16 // 8) + 4 * (chunk % 4)
    full = (*lanes.shape[:2], chunks)
    return tuple(frozen(np.broadcast_to(each, full)) for each in (lane, column, bit))  # type: ignore[return-value]


COPY_SHAPES: dict[str, tuple[int, int]] = {
    "128x256b": (128, 256),
    "4x256b": (4, 256),
    "128x128b": (128, 128),
    "64x128b": (64, 128),
    "32x128b": (32, 128),
}
"""(rows, bits of a row) that a tcgen05.cp reads, by shape."""


@lru_cache(maxsize=16)
def copy_lanes(shape: str, multicast: str | None = None) -> NDArray[np.int64]:
    """Return the lanes to which tcgen05.cp takes each row of its source: an array [copies, rows], read-only.

    Byte b of a row goes to byte b % 4 of column b // 4. `multicast` is "warpx2::02_13", "warpx2::01_23" (64x128b) or
    "warpx4" (32x128b). ValueError for a pair that the instruction does not have.
    """
    if shape not in COPY_SHAPES:
        raise ValueError(f"shape must be one of {', '.join(COPY_SHAPES)}, not {shape!r}")
    row = np.arange(COPY_SHAPES[shape][0])[None, :]
    match shape, multicast:
        case ("128x256b" | "128x128b", None):
            lanes = row
        case ("4x256b", None):
            lanes = 32 * row
        case ("64x128b", "warpx2::02_13"):
            lanes = row + 64 * np.arange(2)[:, None]
        case ("64x128b", "warpx2::01_23"):
            lanes = 64 * (row // 32) + row % 32 + 32 * np.arange(2)[:, None]
        case ("32x128b", "warpx4"):
            lanes = row + 32 * np.arange(4)[:, None]
        case _:
            raise ValueError(f"tcgen05.cp has no {shape} with multicast {multicast}")
    return frozen(lanes)


def shift_lanes() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (to, from) of tcgen05.shift: lanes, arrays [124], 8 columns each.

    One shift moves all four quarters; the last lane of each keeps what it has (fact shift-direction). `.ashift` does
    the same to A's lanes, after the MMA.
    """
    lanes = np.arange(LANES).reshape(-1, WARP_LANES)
    return frozen(lanes[:, :-1].reshape(-1)), frozen(lanes[:, 1:].reshape(-1))


def bands_of(lanes: NDArray[np.int64] | Sequence[int]) -> list[int]:
    """The bands of 16 lanes that have some of these: two accumulators of 64 rows may share columns."""
    bands = np.asarray(lanes, np.int64) // BAND
    return np.flatnonzero(np.bincount(bands.ravel())).tolist()
