"""Register fragments against the formulas that the manual prints, written out by hand, and published layouts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from ptxgen.layouts import fragments
from ptxgen.layouts.fragments import Fragment, inverse

#: (groupID, threadID_in_group, i) to the row or the column of element i.
Formula = Callable[[int, int, int], int]


def entries(fragment: Fragment) -> Iterator[tuple[int, int, int, int]]:
    """(thread, element number over all registers, row, column)."""
    row, column = fragment
    threads, registers, per = row.shape
    for thread, register, element in itertools.product(range(threads), range(registers), range(per)):
        place = (thread, register, element)
        yield thread, register * per + element, int(row[place]), int(column[place])


def agrees(fragment: Fragment, row: Formula, column: Formula, rows: int, columns: int) -> None:
    """Every element where the formulas say, each held once; and the inverse finds it."""
    seen = set()
    for thread, i, found_row, found_column in entries(fragment):
        group, inside = thread >> 2, thread % 4
        assert (found_row, found_column) == (row(group, inside, i), column(group, inside, i)), (thread, i)
        seen.add((found_row, found_column))
    assert seen == set(itertools.product(range(rows), range(columns)))
    assert fragment[0].size == rows * columns
    holder = inverse(fragment, rows, columns)
    assert (fragment[0].ravel()[holder] == np.arange(rows)[:, None]).all()
    assert (fragment[1].ravel()[holder] == np.arange(columns)[None, :]).all()


# PTX ISA 9.7.14.5.2 to 9.7.14.5.13: (m, k, bits, row, column) of A as the sections print them.
A: list[tuple[int, int, int, Formula, Formula]] = [
    (8, 4, 64, lambda g, t, i: g, lambda g, t, i: t),
    (8, 16, 8, lambda g, t, i: g, lambda g, t, i: t * 4 + i),
    (8, 32, 4, lambda g, t, i: g, lambda g, t, i: t * 8 + i),
    (8, 128, 1, lambda g, t, i: g, lambda g, t, i: t * 32 + i),
    (16, 4, 32, lambda g, t, i: g if i == 0 else g + 8, lambda g, t, i: t),
    (16, 4, 64, lambda g, t, i: g if i == 0 else g + 8, lambda g, t, i: t),
    (16, 8, 16, lambda g, t, i: g if i < 2 else g + 8, lambda g, t, i: t * 2 + (i & 1)),
    (16, 8, 32, lambda g, t, i: g if i in (0, 2) else g + 8, lambda g, t, i: t if i < 2 else t + 4),
    (16, 8, 64, lambda g, t, i: g if i in (0, 2) else g + 8, lambda g, t, i: t if i < 2 else t + 4),
    (
        16, 16, 16, lambda g, t, i: g if 0 <= i < 2 or 4 <= i < 6 else g + 8,
        lambda g, t, i: t * 2 + (i & 1) + (0 if i < 4 else 8),
    ),
    (
        16, 16, 64, lambda g, t, i: g if i % 2 == 0 else g + 8,
        lambda g, t, i: i * 2 + t if i % 2 == 0 else i * 2 - 2 + t,
    ),
    (16, 16, 8, lambda g, t, i: g if i < 4 else g + 8, lambda g, t, i: t * 4 + (i & 3)),
    (16, 32, 4, lambda g, t, i: g if i < 8 else g + 8, lambda g, t, i: t * 8 + (i & 7)),
    (
        16, 32, 8, lambda g, t, i: g if 0 <= i < 4 or 8 <= i < 12 else g + 8,
        lambda g, t, i: t * 4 + (i & 3) + (0 if i < 8 else 16),
    ),
    (
        16, 64, 4, lambda g, t, i: g if 0 <= i < 8 or 16 <= i < 24 else g + 8,
        lambda g, t, i: t * 8 + (i & 7) + (0 if i < 16 else 32),
    ),
    (16, 128, 1, lambda g, t, i: g if i < 32 else g + 8, lambda g, t, i: t * 32 + (i & 31)),
    (
        16, 256, 1, lambda g, t, i: g if 0 <= i < 32 or 64 <= i < 96 else g + 8,
        lambda g, t, i: t * 32 + (i & 31) + (0 if i < 64 else 128),
    ),
]  # fmt: skip

# The same sections: (k, bits, row) of B, whose column is groupID. The last four are B of sparse products, which the
# manual draws (figures 121, 124, 132 and 142): rows of the same thread, one register after the other.
B: list[tuple[int, int, Formula]] = [
    (4, 64, lambda g, t, i: t),
    (4, 32, lambda g, t, i: t),
    (16, 8, lambda g, t, i: t * 4 + i),
    (32, 4, lambda g, t, i: t * 8 + i),
    (128, 1, lambda g, t, i: t * 32 + i),
    (8, 16, lambda g, t, i: t * 2 + i),
    (8, 32, lambda g, t, i: t if i == 0 else t + 4),
    (8, 64, lambda g, t, i: t if i == 0 else t + 4),
    (16, 16, lambda g, t, i: t * 2 + (i & 1) + (0 if i < 2 else 8)),
    (16, 64, lambda g, t, i: t + i * 4),
    (32, 8, lambda g, t, i: t * 4 + (i & 3) + (0 if i < 4 else 16)),
    (64, 4, lambda g, t, i: t * 8 + (i & 7) + (0 if i < 8 else 32)),
    (256, 1, lambda g, t, i: t * 32 + (i & 31) + (0 if i < 32 else 128)),
    (32, 16, lambda g, t, i: t * 2 + (i & 1) + (0, 8, 16, 24)[i // 2]),
    (16, 32, lambda g, t, i: t + (0, 4, 8, 12)[i]),
    (64, 8, lambda g, t, i: t * 4 + (i & 3) + (0, 16, 32, 48)[i // 4]),
    (128, 4, lambda g, t, i: t * 8 + (i & 7) + (0, 32, 64, 96)[i // 8]),
]


@pytest.mark.parametrize(("m", "k", "bits", "row", "column"), A)
def test_a(m: int, k: int, bits: int, row: Formula, column: Formula) -> None:
    agrees(fragments.a_fragment(m, k, bits), row, column, m, k)


@pytest.mark.parametrize(("k", "bits", "row"), B)
def test_b(k: int, bits: int, row: Formula) -> None:
    agrees(fragments.b_fragment(k, 8, bits), row, lambda g, t, i: g, k, 8)


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_accumulators(bits: int) -> None:
    agrees(
        fragments.accumulator_fragment(16, 8, bits),
        lambda g, t, i: g if i < 2 else g + 8,
        lambda g, t, i: t * 2 + (i & 1),
        16,
        8,
    )
    agrees(fragments.accumulator_fragment(8, 8, bits), lambda g, t, i: g, lambda g, t, i: t * 2 + i, 8, 8)


def test_four_products() -> None:
    """9.7.14.5.1, by thread number; every product is whole."""

    def high(lane: int) -> int:
        return 0 if lane < 16 else 4

    formulas: list[tuple[Fragment, Callable[[int, int], tuple[int, int]], int, int]] = [
        (fragments.quad_a_fragment("row"), lambda lane, i: (lane % 4 + high(lane), i), 8, 4),
        (fragments.quad_a_fragment("col"), lambda lane, i: (i % 4 + high(lane), lane % 4), 8, 4),
        (fragments.quad_b_fragment("row"), lambda lane, i: (lane % 4, i + high(lane)), 4, 8),
        (fragments.quad_b_fragment("col"), lambda lane, i: (i, lane % 4 + high(lane)), 4, 8),
        (fragments.quad_accumulator_fragment(16), lambda lane, i: (lane % 4 + high(lane), i), 8, 8),
        (
            fragments.quad_accumulator_fragment(32),
            lambda lane, i: ((lane & 1) + (i & 2) + high(lane), (i & 4) + (lane & 2) + (i & 1)),
            8,
            8,
        ),
    ]
    product = fragments.quad_products()
    # Table "Threads participating": 0-3 and 16-19, 4-7 and 20-23, 8-11 and 24-27, 12-15 and 28-31.
    assert product.tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4 + [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4
    for fragment, formula, rows, columns in formulas:
        seen: dict[int, set[tuple[int, int]]] = {}
        for lane, i, row, column in entries(fragment):
            assert (row, column) == formula(lane, i)
            seen.setdefault(int(product[lane]), set()).add((row, column))
        assert all(found == set(itertools.product(range(rows), range(columns))) for found in seen.values())


# CuTe layouts of the metadata of a warpgroup, ((thread shape), value shape) : strides, into m + 64 * k
# (CUTLASS, include/cute/atom/mma_traits_sm90_gmma_sparse.hpp, ELayout_64x64, ELayout_64x32, ELayout_64x16). Values are
# columns of A, in the order of the metadata bits.
CUTE: dict[tuple[int, int], tuple[list[int], list[int], list[int], list[int]]] = {
    (64, 8): ([2, 2, 8, 4], [8, 2048, 1, 16], [32], [64]),
    (32, 16): ([2, 2, 8, 4], [1024, 0, 1, 16], [16, 2], [64, 8]),
    (16, 32): ([2, 2, 8, 4], [512, 0, 1, 16], [8, 2], [64, 8]),
}


def cute(index: int, shape: list[int], strides: list[int]) -> int:
    total = 0
    for extent, stride in zip(shape, strides, strict=True):
        total += index % extent * stride
        index //= extent
    return total


@pytest.mark.parametrize(("k", "bits"), CUTE)
def test_metadata_of_a_warpgroup(k: int, bits: int) -> None:
    shape, strides, values, value_strides = CUTE[k, bits]
    columns = int(np.prod(values))
    expected: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for thread in range(128):
        for value in range(columns):
            place = cute(thread, shape, strides) + cute(value, values, value_strides)
            expected.setdefault((place % 64, place // 64), set()).add((thread, value * 32 // columns))
    width = {8: 4, 16: 4, 32: 2}[bits]
    seen = set()
    for selector in range(1 if bits == 8 else 2):
        thread, bit = fragments.metadata_places(k, bits, selector, 64)
        assert thread.shape == (64, k // width)
        for row, chunk in np.ndindex(64, k // width):
            holder = int(thread[row, chunk]), int(bit[row, chunk])
            assert holder in expected[row, chunk * width]
            assert holder[0] % 4 // 2 == selector or bits == 8
            seen.add((*holder, selector))
    assert len(seen) == (128 * 8 if bits == 8 else 64 * 8 * 2)


def test_metadata_of_a_warp() -> None:
    """Figures 119, 122, 129 and 136 of the manual at a few places, and that each bit is used once."""
    thread, bit = fragments.metadata_places(16, 16, 3)
    assert (thread[5, 2], bit[5, 2]) == (4 * 5 + 3, 8)
    assert (thread[13, 2], bit[13, 2]) == (4 * 5 + 3, 24)
    thread, bit = fragments.metadata_places(32, 16, 1)
    assert [(int(thread[r, c]), int(bit[r, c])) for r, c in ((0, 0), (0, 4), (8, 0), (8, 7))] == [
        (2, 0),
        (3, 0),
        (2, 16),
        (3, 28),
    ]
    thread, bit = fragments.metadata_places(32, 8, 1)
    assert [(int(thread[r, c]), int(bit[r, c])) for r, c in ((0, 0), (0, 7), (8, 0), (8, 7))] == [
        (2, 0),
        (2, 28),
        (3, 0),
        (3, 28),
    ]
    for k, bits, selectors in (
        (16, 16, 4),
        (32, 16, 2),
        (8, 32, 4),
        (16, 32, 2),
        (32, 8, 2),
        (64, 8, 1),
        (64, 4, 2),
        (128, 4, 1),
    ):
        used: list[tuple[int, int]] = []
        for selector in range(selectors):
            thread, bit = fragments.metadata_places(k, bits, selector)
            used += zip(thread.ravel().tolist(), bit.ravel().tolist(), strict=True)
        assert sorted(used) == sorted(itertools.product(range(32), range(0, 32, 4))), (k, bits)
        with pytest.raises(ValueError, match="selector"):
            fragments.metadata_places(k, bits, selectors)


def test_scale_factors() -> None:
    """9.7.14.3: a pair of threads of each quad for A, one thread for B."""
    for factors, byte in ((1, 0), (1, 3), (2, 0), (2, 2), (4, 0)):
        for pair in range(2):
            thread, found = fragments.scale_places("a", factors, byte, pair)
            assert (found == np.arange(byte, byte + factors)).all()
            assert all((thread[row] == 4 * (row % 8) + 2 * pair + row // 8).all() for row in range(16))
        for one in range(4):
            thread, found = fragments.scale_places("b", factors, byte, one)
            assert all((thread[column] == 4 * column + one).all() for column in range(8))
    for wrong in (("a", 2, 1, 0), ("a", 1, 0, 2), ("b", 4, 2, 0), ("b", 3, 0, 0), ("b", 1, 0, 4)):
        with pytest.raises(ValueError, match="scale factors"):
            fragments.scale_places(*wrong)  # type: ignore[arg-type]


def test_wgmma() -> None:
    """Figures 148 to 155, by the formulas that were measured for them on an H200 (f16, tf32, 8 bits, .f32 and .s32)."""
    for n in (8, 24, 256):
        row, column = fragments.wgmma_accumulator_fragment(n, 32)
        assert row.shape == (128, n // 2, 1)
        for thread in range(128):
            warp, t = divmod(thread, 32)
            for i in range(n // 2):
                place = (16 * warp + t // 4 + 8 * ((i // 2) & 1), 8 * (i // 4) + 2 * (t % 4) + (i & 1))
                assert (row[thread, i, 0], column[thread, i, 0]) == place
        packed = fragments.wgmma_accumulator_fragment(n, 16)
        assert all((a.reshape(128, -1) == b[..., 0]).all() for a, b in zip(packed, (row, column), strict=True))
        assert (inverse((row, column), 64, n) >= 0).all()
    depth: dict[int, Callable[[int, int, int], int]] = {
        16: lambda t, g, e: 2 * (t % 4) + 8 * (g >> 1) + e,
        32: lambda t, g, e: t % 4 + 4 * (g >> 1),
        8: lambda t, g, e: 4 * (t % 4) + 16 * (g >> 1) + e,
        1: lambda t, g, e: 32 * (t % 4) + 128 * (g >> 1) + e,
    }
    for bits, formula in depth.items():
        row, column = fragments.wgmma_a_fragment(bits)
        for thread, register, element in np.ndindex(row.shape):
            warp, t = divmod(thread, 32)
            assert row[thread, register, element] == 16 * warp + t // 4 + 8 * (register & 1)
            assert column[thread, register, element] == formula(t, register, element)
        assert (inverse((row, column), 64, 256 // bits) >= 0).all()


def test_rows_from_memory() -> None:
    """9.7.14.5.15: matrix by matrix as the sections describe them; the 8-bit ones as CUTLASS has them."""
    for num in (1, 2, 4):
        for trans in (False, True):
            for thread, i, row, element in entries(fragments.load_fragment("m8n8", num, trans)):
                matrix, e = divmod(i, 2)
                # Thread t holds elements 2(t%4) and the next of row t/4, of the transposed matrix with .trans.
                place = (thread // 4, 2 * (thread % 4) + e)
                assert (row - 8 * matrix, element) == (place[::-1] if trans else place)
        for thread, i, row, element in entries(fragments.load_fragment("m8n16", num, False)):
            assert (row, element) == (8 * (i // 4) + thread // 4, 4 * (thread % 4) + i % 4)
        for thread, i, row, element in entries(fragments.store_fragment("m16n8", num, True)):
            # An accumulator of 16x8: rows t/4 and 8 below, columns 2(t%4) and the next; its columns are rows in memory.
            matrix, e = divmod(i, 4)
            assert (element, row - 8 * matrix) == (thread // 4 + 8 * (e // 2), 2 * (thread % 4) + e % 2)
    for num in (1, 2):
        for thread, i, row, element in entries(fragments.load_fragment("m16n16", num, True)):
            # "4 consecutive columns across 2 rows", a register for each row.
            matrix, register, e = i // 8, i // 4 % 2, i % 4
            assert (element, row - 16 * matrix) == (thread // 4 + 8 * register, 4 * (thread % 4) + e)
    # CUTLASS, SM100_U8x8_LDSM_T: bytes 0 1 of both registers make register 0 of a layout whose thread (4, 8) and value
    # (bit, 2, 2, 2) have strides (256, 8) and (1, 128, 64, 1024) into bits, in rows that thread (2, 2, 4) of strides
    # (128, 1024, 256) addresses.
    address = {cute(thread, [2, 2, 4], [128, 1024, 256]) // 128: thread for thread in range(16)}
    row, element = fragments.load_fragment("m16n16", 1, True)
    for thread, (register, byte) in itertools.product(range(32), itertools.product(range(2), range(4))):
        bit = cute(thread, [4, 8], [256, 8]) + cute(byte + 4 * register, [2, 2, 2], [128, 64, 1024])
        source = (byte // 2, byte % 2 + 2 * register)
        assert (address[bit // 128], bit % 128 // 8) == (row[thread][source], element[thread][source])


def test_movmatrix() -> None:
    source, destination = fragments.transpose_fragments()
    for thread in range(32):
        for e in range(2):
            assert (source[0][thread, 0, e], source[1][thread, 0, e]) == (thread // 4, 2 * (thread % 4) + e)
            assert (destination[0][thread, 0, e], destination[1][thread, 0, e]) == (2 * (thread % 4) + e, thread // 4)


WRONG: list[Callable[[], Any]] = [
    lambda: fragments.a_fragment(16, 4, 16),
    lambda: fragments.a_fragment(32, 16, 16),
    lambda: fragments.a_fragment(16, 16, 12),
    lambda: fragments.b_fragment(16, 16, 16),
    lambda: fragments.accumulator_fragment(16, 16, 32),
    lambda: fragments.wgmma_accumulator_fragment(264, 32),
    lambda: fragments.metadata_places(64, 16, 0),
    lambda: fragments.metadata_places(64, 64, 0),
    lambda: fragments.load_fragment("m16n16", 1, False),
    lambda: fragments.load_fragment("m8n16", 1, True),
    lambda: fragments.store_fragment("m16n8", 1, False),
]


@pytest.mark.parametrize("call", WRONG)
def test_what_does_not_exist(call: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        call()
