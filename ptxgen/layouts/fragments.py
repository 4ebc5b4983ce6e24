"""Register fragments: which element of a matrix each thread holds, for every warp- and warpgroup-wide instruction.

mma.sync dense, sparse and block-scaled (PTX ISA 9.7.14.3, 9.7.14.5, 9.7.14.6), ldmatrix, stmatrix and movmatrix
(9.7.14.5.15 to 9.7.14.5.17), wgmma (9.7.15.5.1.1, 9.7.15.6.2). A fragment is a pair of arrays (row, column) of shape
[threads, registers, elements]: element 0 is in the lowest bits of a register. `inverse` turns it round.

The manual gives formulas for mma.sync and pictures for the rest. The pictures of sparse metadata were read with the
help of CUTLASS, which states the same maps as layouts (include/cute/atom/mma_traits_sm90_gmma_sparse.hpp, ELayout_64xK;
examples/15_ampere_sparse_tensorop_gemm, reorder_meta), those of the matrices with elements of 8 bits too
(include/cute/arch/copy_sm100.hpp and include/cute/atom/copy_traits_sm100.hpp). What sm_90a has of all this agrees with
an H200: microtests/recordings of mma, wgmma and matrix, sparse metadata among them. The rest (scale factors, matrices
with elements of 8 bits) is not measured.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ptxgen.layouts.swizzle import frozen

WARP = 32
WARPGROUP = 128
#: Rows of a warpgroup's matrices that each of its warps holds.
WARP_ROWS = 16

#: (row, column) of each element: two read-only arrays [threads, registers, elements].
Fragment = tuple[NDArray[np.int64], NDArray[np.int64]]
MatrixShape = Literal["m8n8", "m8n16", "m16n16", "m16n8"]


def elements_per_register(bits: int) -> int:
    """How many elements of so many bits a register holds: of 32 bits, or of 64 for elements of 64."""
    if bits not in (1, 4, 8, 16, 32, 64):
        raise ValueError(f"an element of a fragment has 1, 4, 8, 16, 32 or 64 bits, not {bits!r}")
    return max(32 // bits, 1)


def _grid(threads: int, registers: int, elements: int) -> tuple[NDArray[np.int64], ...]:
    """Thread, register and element numbers, each along its own axis."""
    return (
        np.arange(threads)[:, None, None],
        np.arange(registers)[None, :, None],
        np.arange(elements)[None, None, :],
    )


def _whole(row: NDArray[np.int64], column: NDArray[np.int64], shape: tuple[int, int, int]) -> Fragment:
    return frozen(np.broadcast_to(row, shape)), frozen(np.broadcast_to(column, shape))


def _registers(elements: int, per_register: int, what: str) -> int:
    count, rest = divmod(elements, WARP * per_register)
    if rest or not count:
        raise ValueError(f"{what} does not fill whole registers of {WARP} threads")
    return count


@lru_cache(maxsize=256)
def a_fragment(m: int, k: int, bits: int) -> Fragment:
    """A of mma.sync, [m, k] with m 8 or 16: arrays [32, registers, elements].

    A sparse A is stored as a dense one of half as many columns: give `k` as that half (or all of K for what is stored).
    Not m8n8k4 of .f16, which is `quad_a_fragment`.
    """
    per = elements_per_register(bits)
    halves = _halves(m)
    count = halves * _registers(8 * k, per, f"a matrix A of {m}x{k} elements of {bits} bits")
    t, r, e = _grid(WARP, count, per)
    return _whole(t // 4 + 8 * (r % halves), per * (t % 4) + e + 4 * per * (r // halves), (WARP, count, per))


@lru_cache(maxsize=256)
def b_fragment(k: int, n: int, bits: int) -> Fragment:
    """B of mma.sync, [k, n] with n 8: arrays [32, registers, elements]; row counts K, column counts N."""
    if n != 8:
        raise ValueError(f"mma.sync has 8 columns of B, not {n}")
    per = elements_per_register(bits)
    count = _registers(k * n, per, f"a matrix B of {k}x{n} elements of {bits} bits")
    t, r, e = _grid(WARP, count, per)
    return _whole(per * (t % 4) + e + 4 * per * r, t // 4, (WARP, count, per))


@lru_cache(maxsize=256)
def accumulator_fragment(m: int, n: int, bits: int) -> Fragment:
    """C and D of mma.sync, [m, n] with m 8 or 16, n 8: arrays [32, registers, elements]; bits 16, 32 or 64."""
    if n != 8:
        raise ValueError(f"mma.sync has 8 columns of C and D, not {n}")
    return _accumulator(m, n, bits)


def _accumulator(m: int, n: int, bits: int) -> Fragment:
    """8 columns after the other, in each of them row t/4, then the row 8 below it; two columns a thread."""
    per = elements_per_register(bits)
    count = _registers(m * n, per, f"an accumulator of {m}x{n} elements of {bits} bits")
    t, r, e = _grid(WARP, count, per)
    place = per * r + e
    halves = _halves(m)
    row = t // 4 + 8 * (place // 2 % halves)
    return _whole(row, 2 * (t % 4) + place % 2 + 8 * (place // (2 * halves)), (WARP, count, per))


def _halves(m: int) -> int:
    if m not in (8, 16):
        raise ValueError(f"a warp's matrices have 8 or 16 rows, not {m}")
    return m // 8


# mma.m8n8k4 with .f16: four products at once (9.7.14.5.1).


@lru_cache(maxsize=1)
def quad_products() -> NDArray[np.int64]:
    """Which of the four products of mma.m8n8k4 with .f16 each thread takes part in: array [32], read-only."""
    return frozen(np.arange(WARP) % 16 // 4)


@lru_cache(maxsize=2)
def quad_a_fragment(layout: Literal["row", "col"]) -> Fragment:
    """A of each product of mma.m8n8k4 with .f16, [8, 4]: arrays [32, 2, 2]."""
    t, r, e = _grid(WARP, 2, 2)
    i, high = 2 * r + e, 4 * (t // 16)
    return _whole(*((t % 4 + high, i) if layout == "row" else (i + high, t % 4)), (WARP, 2, 2))


@lru_cache(maxsize=2)
def quad_b_fragment(layout: Literal["row", "col"]) -> Fragment:
    """B of each product of mma.m8n8k4 with .f16, [4, 8]: arrays [32, 2, 2]."""
    row, column = quad_a_fragment("col" if layout == "row" else "row")
    return column, row


@lru_cache(maxsize=2)
def quad_accumulator_fragment(bits: int) -> Fragment:
    """C and D of each product of mma.m8n8k4 with .f16, [8, 8]: arrays [32, 4, 2] of 16 bits, [32, 8, 1] of 32."""
    per = elements_per_register(bits)
    t, r, e = _grid(WARP, 8 // per, per)
    i, high = per * r + e, 4 * (t // 16)
    if bits == 16:
        return _whole(t % 4 + high, i, (WARP, 8 // per, per))
    return _whole((t & 1) + (i & 2) + high, (i & 4) + (t & 2) + (i & 1), (WARP, 8 // per, per))


# Sparse A and scale factors.


@lru_cache(maxsize=64)
def metadata_places(
    k: int, bits: int, selector: int, m: int = WARP_ROWS
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the metadata of a sparse A lie: (thread, lowest bit) of each chunk, two arrays [m, chunks], read-only.

    `k` counts the columns of A with its zeros. A chunk is 4 columns (2 of 32 bits, 8 of 4 bits), which 4 bits of
    metadata describe. `m` is 16, or 64 for a warpgroup: then thread counts its 128 threads. Raises ValueError for a
    selector that names no threads.
    """
    width = chunk_columns(bits)
    chunks = k // width
    # A thread holds 8 chunks: 4 of a row and 4 of that 8 below it; of types of 8 and 4 bits all 8 are of one row.
    span = 4 if bits >= 16 else 8
    threads = chunks // span * (1 if bits >= 16 else 2)
    if k % (width * span) or threads not in ((1, 2) if bits >= 16 else (2, 4)):
        raise ValueError(f"no sparse matrix has {k} columns of {bits} bits")
    if not 0 <= selector < 4 // threads:
        raise ValueError(f"the sparsity selector is 0 to {4 // threads - 1}, not {selector}")
    row, chunk = np.arange(m)[:, None], np.arange(chunks)[None, :]
    warp, half, group = row // WARP_ROWS, row // 8 % 2, row % 8
    if bits >= 16:
        within, bit = chunk // span, 16 * half + 4 * (chunk % span)
    else:
        within, bit = 2 * (chunk // span) + half, 4 * (chunk % span)
    thread = WARP * warp + 4 * group + threads * selector + within
    return frozen(np.broadcast_to(thread, (m, chunks))), frozen(np.broadcast_to(bit, (m, chunks)))


def chunk_columns(bits: int) -> int:
    """Columns of a sparse A that 4 bits of metadata describe, half of them zeros: 4, of 32 bits 2, of 4 bits 8."""
    try:
        return {32: 2, 16: 4, 8: 4, 4: 8}[bits]
    except KeyError:
        raise ValueError(f"a sparse matrix has elements of 4, 8, 16 or 32 bits, not {bits!r}") from None


@lru_cache(maxsize=64)
def scale_places(
    operand: Literal["a", "b"], factors: int, byte: int, thread: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where mma.sync takes its scale factors from: (thread, byte of the register), each [rows, factors], read-only.

    Rows are the 16 rows of A or the 8 columns of B; `byte` and `thread` are the selector. Which of a pair of threads
    has the lower 8 rows of A is from CUTLASS (include/cute/atom/mma_traits_sm120.hpp, SFALayout).
    """
    rows = {"a": WARP_ROWS, "b": 8}[operand]
    if factors not in (1, 2, 4) or byte not in range(0, 4, factors) or thread not in range(2 if operand == "a" else 4):
        raise ValueError(f"no {factors} scale factors of {operand} begin at byte {byte} of thread {thread}")
    row = np.arange(rows)[:, None]
    lane = 4 * (row % 8) + (2 * thread + row // 8 if operand == "a" else thread)
    shape = (rows, factors)
    return frozen(np.broadcast_to(lane, shape)), frozen(np.broadcast_to(byte + np.arange(factors)[None, :], shape))


# wgmma.


def _by_warps(fragment: Fragment) -> Fragment:
    """A fragment of a warpgroup, whose warps hold 16 rows each."""
    row, column = fragment
    warps = WARPGROUP // WARP
    rows = np.concatenate([row + WARP_ROWS * warp for warp in range(warps)])
    return frozen(rows), frozen(np.concatenate([column] * warps))


@lru_cache(maxsize=64)
def wgmma_accumulator_fragment(n: int, bits: int) -> Fragment:
    """D of wgmma.mma_async, [64, n]: arrays [128, registers, elements]; bits 16 or 32.

    >>> from ptxgen.layouts.fragments import wgmma_accumulator_fragment
    >>> row, column = wgmma_accumulator_fragment(n=64, bits=32)
    >>> row.shape, int(row[45, 17, 0]), int(column[45, 17, 0])
    ((128, 32, 1), 19, 35)
    """
    if n % 8 or not 8 <= n <= 256:
        raise ValueError(f"wgmma has 8 to 256 columns in steps of 8, not {n}")
    return _by_warps(_accumulator(WARP_ROWS, n, bits))


@lru_cache(maxsize=8)
def wgmma_a_fragment(bits: int) -> Fragment:
    """A of wgmma.mma_async in registers, [64, 256 / bits]: arrays [128, 4, elements]; bits 1, 8, 16 or 32.

    A sparse A is stored the same way, with half of its columns.
    """
    return _by_warps(a_fragment(WARP_ROWS, 256 // bits, bits))


# wmma.


@lru_cache(maxsize=64)
def wmma_elements(lines: int, depth: int, bits: int, registers: int) -> NDArray[np.int64]:
    """Which element of a matrix [lines, depth] each place of a wmma fragment holds: numbers, [32, registers, elements].

    The manual leaves this open (PTX ISA 9.7.14.4.1); here threads hold neighboring elements of a line, one thread
    after the other, and begin anew where there are more places than elements. Hardware has other layouts.
    """
    per = elements_per_register(bits)
    return frozen(np.arange(WARP * registers * per).reshape(WARP, registers, per) % (lines * depth))


# ldmatrix, stmatrix, movmatrix.


@lru_cache(maxsize=32)
def load_fragment(shape: MatrixShape, num: int, trans: bool) -> Fragment:
    """What ldmatrix puts where: (row, element of the row), arrays [32, registers, elements].

    Row r is the 16 bytes at the address of thread r. Elements have 16 bits with m8n8, else 8 bits (after unpacking).
    m8n8 with stmatrix is the same map; `store_fragment` has its other shape.
    """
    if shape == "m8n8":
        t, r, e = _grid(WARP, num, 2)
        places = (2 * (t % 4) + e, t // 4) if trans else (t // 4, 2 * (t % 4) + e)
        return _whole(8 * r + places[0], places[1], (WARP, num, 2))
    if shape == "m8n16" and not trans:
        t, r, e = _grid(WARP, num, 4)
        return _whole(8 * r + t // 4, 4 * (t % 4) + e, (WARP, num, 4))
    if shape == "m16n16" and trans:
        t, r, e = _grid(WARP, 2 * num, 4)
        return _whole(16 * (r // 2) + 4 * (t % 4) + e, t // 4 + 8 * (r % 2), (WARP, 2 * num, 4))
    raise ValueError(f"ldmatrix has no .{shape} {'with' if trans else 'without'} .trans")


@lru_cache(maxsize=32)
def store_fragment(shape: MatrixShape, num: int, trans: bool) -> Fragment:
    """What stmatrix puts where: (row, element of the row), arrays [32, registers, elements], as `load_fragment`.

    m16n8 is stored transposed: its 8 columns are the rows in memory, of 16 elements of 8 bits.
    """
    if shape == "m8n8":
        return load_fragment(shape, num, trans)
    if shape == "m16n8" and trans:
        t, r, e = _grid(WARP, num, 4)
        return _whole(8 * r + 2 * (t % 4) + e % 2, t // 4 + 8 * (e // 2), (WARP, num, 4))
    raise ValueError(f"stmatrix has no .{shape} {'with' if trans else 'without'} .trans")


@lru_cache(maxsize=32)
def row_threads(instruction: Literal["ldmatrix", "stmatrix"], shape: MatrixShape, num: int) -> NDArray[np.int64]:
    """Which thread supplies the address of each row of memory: array [matrices, rows], read-only.

    The addresses of further threads are ignored (PTX ISA 9.7.14.5.15 and 9.7.14.5.16). A row has 16 bytes.

    >>> from ptxgen.layouts.fragments import row_threads
    >>> int(row_threads("ldmatrix", "m8n8", 4)[2, 3])
    19
    """
    shapes = ("m8n8", "m8n16", "m16n16") if instruction == "ldmatrix" else ("m8n8", "m16n8")
    if shape not in shapes:
        raise ValueError(f"{instruction} has no .{shape}")
    rows = 16 if shape == "m16n16" else 8
    if num not in (1, 2, 4) or rows * num > WARP:
        raise ValueError(
            f"{instruction}.{shape} has {'.x1 and .x2' if rows == 16 else '.x1, .x2 and .x4'}, not .x{num}"
        )
    return frozen(np.arange(num * rows).reshape(num, rows))


def regrouped(fragment: Fragment, moved: int, bits: int) -> Fragment:
    """A fragment of elements of `moved` bits as one of elements of `bits` bits, which lie one after the other in a row.

    ldmatrix and stmatrix move elements of 16 or 8 bits whatever these hold: four of 8 bits, or one of 32 in a register
    of m8n8. Raises ValueError where a register would hold parts of two elements.
    """
    row, column = fragment
    if bits == moved:
        return fragment
    if bits not in (1, 4, 8, 16, 32):
        raise ValueError(f"a register of ldmatrix or stmatrix holds elements of 1, 4, 8, 16 or 32 bits, not {bits}")
    if bits < moved:
        per = moved // bits
        within = np.arange(row.shape[2] * per)
        return frozen(row[..., within // per]), frozen(column[..., within // per] * per + within % per)
    per = bits // moved
    rows, columns = (each.reshape(*each.shape[:2], -1, per) for each in fragment)
    neighbors = (rows == rows[..., :1]) & (columns == columns[..., :1] + np.arange(per))
    if not neighbors.all() or (columns[..., 0] % per).any():
        raise ValueError(f"registers of it hold parts of elements of {bits} bits, whose other parts are elsewhere")
    return frozen(rows[..., 0].copy()), frozen(columns[..., 0] // per)


def transpose_fragments() -> tuple[Fragment, Fragment]:
    """movmatrix: the elements of the matrix that the source and the destination hold, each [32, 1, 2]."""
    return load_fragment("m8n8", 1, False), load_fragment("m8n8", 1, True)


#: Bits of the elements of a packed row of 16: element i begins at bit i times that; the rest of 16 bytes is padding.
PACKED_BITS = {"b6x16_p32": 6, "b4x16_p64": 4}


# All of them.


def inverse(fragment: Fragment, rows: int, columns: int) -> NDArray[np.int64]:
    """Who holds each element: flat indexes into [threads, registers, elements], array [rows, columns], read-only.

    Of an element that several hold, one is named; -1 marks elements that none holds.
    """
    row, column = fragment
    found = np.full((rows, columns), -1, np.int64)
    found[row.ravel(), column.ravel()] = np.arange(row.size)
    return frozen(found)
