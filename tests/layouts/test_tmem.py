"""TMEM cells against hand-written loops and fragments, every map inverted."""

from typing import Any

import numpy as np
import pytest

from ptxgen.layouts.tmem import (
    MAX_REPEAT,
    LoadShape,
    accumulator_cells,
    accumulator_layout,
    copy_lanes,
    load_cells,
    metadata_cells,
    operand_lanes,
    operand_place,
    packed_cells,
    register_count,
    shift_lanes,
    split_address,
    tmem_address,
    warp_lanes,
)

WIDTH = {"32x32b": 1, "16x64b": 2, "16x128b": 4, "16x256b": 8, "16x32bx2": 1}
"""Columns that one repeat covers (of each half for 16x32bx2)."""


def repeats(shape: str) -> list[int]:
    return [n for n in (1, 2, 4, 8, 16, 32, 64, 128) if n <= MAX_REPEAT[shape]]


@pytest.mark.parametrize("shape", sorted(WIDTH))
def test_each_cell_belongs_to_one_register(shape: LoadShape) -> None:
    for num in repeats(shape):
        half = 64 * num if shape == "16x32bx2" else 0
        lane, column = load_cells(shape, num, half)
        assert lane.shape == column.shape == (32, register_count(shape, num))
        cells = set(zip(lane.ravel().tolist(), column.ravel().tolist(), strict=True))
        width = WIDTH[shape] * num
        columns = [*range(width), *(range(half, half + width) if half else ())]
        lanes = range(32 if shape == "32x32b" else 16)
        assert cells == {(a, b) for a in lanes for b in columns}
        assert len(cells) == lane.size


def by_figure(shape: str, lane: int, column: int) -> tuple[int, int]:
    """The manual's figures the other way round: which (thread, register) holds a cell."""
    row, half = lane % 8, lane // 8
    if shape == "32x32b":
        return lane, column
    if shape == "16x64b":  # 8 rows of four threads: two columns, upper half in the odd threads
        return 4 * row + 2 * (column % 2) + half, column // 2
    if shape == "16x128b":  # four threads a row, one column each
        return 4 * row + column % 4, 2 * (column // 4) + half
    return 4 * row + column % 8 // 2, 4 * (column // 8) + 2 * half + column % 2  # 16x256b: as an mma accumulator


@pytest.mark.parametrize("shape", ["32x32b", "16x64b", "16x128b", "16x256b"])
def test_against_the_figures(shape: LoadShape) -> None:
    num = 4
    lane, column = load_cells(shape, num)
    for a in range(32 if shape == "32x32b" else 16):
        for b in range(WIDTH[shape] * num):
            thread, register = by_figure(shape, a, b)
            assert (lane[thread, register], column[thread, register]) == (a, b)


def test_two_halves() -> None:
    lane, column = load_cells("16x32bx2", 2, 10)
    assert lane[:, 0].tolist() == [*range(16), *range(16)]
    assert column[0].tolist() == [0, 1]
    assert column[16].tolist() == [10, 11]


@pytest.mark.parametrize(
    ("shape", "num", "half", "message"),
    [
        ("16x32b", 1, 0, "shape must be one of 32x32b"),
        ("16x256b", 64, 0, "16x256b repeats a power of two from 1 to 32 times, not 64"),
        ("32x32b", 3, 0, "not 3"),
        ("32x32b", 1, 4, "only 16x32bx2 takes a half offset"),
    ],
)
def test_load_refusals(shape: Any, num: int, half: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_cells(shape, num, half)


def test_addresses_and_lane_rights() -> None:
    assert tmem_address(32, 5) == 0x00200005
    assert split_address(0x007F01FF) == (127, 511)
    assert [warp_lanes(w).start for w in range(6)] == [0, 32, 64, 96, 0, 32]
    assert sorted(lane for w in range(4) for lane in warp_lanes(w)) == list(range(128))
    for lane, column in ((128, 0), (0, 512), (-1, 0)):
        with pytest.raises(ValueError, match="a TMEM cell has lane"):
            tmem_address(lane, column)


def loop(letter: str, m: int, n: int, row: int, col: int) -> tuple[int, int]:
    """The manual's data-path layouts, case by case; `row` counts inside the CTA."""
    match letter:
        case "A" | "D":
            return row, col
        case "B" | "E":
            return (row, col) if col < n // 2 else (row + 64, col - n // 2)
        case "C" | "F":
            return (0, 32, 64, 96)[row // 16] + row % 16, col
        case _:
            quarter = n // 4
            return row + 32 * (col // quarter), col % quarter


LAYOUTS = [
    ("D", 128, 256, {}),
    ("D", 128, 64, {"ws": True}),
    ("F", 64, 40, {}),
    ("E", 64, 128, {"ws": True}),
    ("G", 32, 64, {"ws": True}),
    ("A", 256, 256, {"cta_group": 2}),
    ("B", 128, 96, {"cta_group": 2}),
    ("C", 128, 96, {"cta_group": 2, "sparse": True}),
]
COLUMNS = {"A": 1, "C": 1, "D": 1, "F": 1, "B": 2, "E": 2, "G": 4}


@pytest.mark.parametrize(("letter", "m", "n", "how"), LAYOUTS)
def test_accumulators(letter: str, m: int, n: int, how: dict[str, Any]) -> None:
    assert accumulator_layout(m, **how) == letter
    group = how.get("cta_group", 1)
    for rank in range(group):
        lane, column = accumulator_cells(m, n, **how, cta_rank=rank)
        assert lane.shape == column.shape == (m // group, n)
        for row in range(m // group):
            for col in range(n):
                assert (lane[row, col], column[row, col]) == loop(letter, m, n, row, col)
        assert len(np.unique(lane * 512 + column)) == lane.size
        assert lane.max() < 128
        assert column.max() + 1 == n // COLUMNS[letter]


@pytest.mark.parametrize(
    ("m", "n", "how", "message"),
    [
        (32, 64, {}, "no accumulator layout for M 32"),
        (64, 64, {"cta_group": 2}, "no accumulator layout for M 64, cta_group 2"),
        (256, 64, {"cta_group": 2, "cta_rank": 2}, "cta_rank must be below cta_group 2, not 2"),
        (32, 66, {"ws": True}, "layout G splits N in 4"),
    ],
)
def test_accumulator_refusals(m: int, n: int, how: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        accumulator_cells(m, n, **how)


def test_cached_and_read_only() -> None:
    lane, _ = accumulator_cells(128, 256)
    assert accumulator_cells(128, 256)[0] is lane
    with pytest.raises(ValueError, match="read-only"):
        lane[0, 0] = 1


@pytest.mark.parametrize("shape", sorted(WIDTH))
def test_packed_cells(shape: LoadShape) -> None:
    """Each register has two neighboring columns, the even one in its low half."""
    half = 40 if shape == "16x32bx2" else 0
    lane, column = packed_cells(shape, 2, half)
    plain_lane, plain = load_cells(shape, 2)
    for thread in range(32):
        for register in range(plain.shape[1]):
            far = half if thread >= 16 and half else 0
            assert (lane[thread, register] == plain_lane[thread, register]).all()
            first = 2 * plain[thread, register] + far
            assert column[thread, register].tolist() == [first, first + 1]


@pytest.mark.parametrize(("letter", "m", "n", "how"), LAYOUTS)
def test_lanes_of_a(letter: str, m: int, n: int, how: dict[str, Any]) -> None:
    """A lies on the lanes of D, once for each part of N."""
    lanes = operand_lanes(m, **how)
    rows = m // how.get("cta_group", 1)
    copies = COLUMNS[letter]
    assert lanes.shape == (copies, rows)
    for copy in range(copies):
        for row in range(rows):
            assert lanes[copy, row] == loop(letter, m, n, row, copy * n // copies)[0]


def test_places_of_a() -> None:
    assert [operand_place(k, 16) for k in (0, 1, 2, 15)] == [(0, 0), (0, 16), (1, 0), (7, 16)]
    assert [operand_place(k, 8) for k in (3, 4, 31)] == [(0, 24), (1, 0), (7, 24)]
    assert [operand_place(k, 4) for k in (1, 9, 63)] == [(0, 4), (1, 4), (7, 28)]
    assert operand_place(7, 32) == (7, 0)
    with pytest.raises(ValueError, match="fill 4, 8, 16 or 32 bits, not 6"):
        operand_place(0, 6)


@pytest.mark.parametrize(("letter", "m", "n", "how"), [each for each in LAYOUTS if each[0] != "B"])
@pytest.mark.parametrize("kind", ["f16", "tf32", "i8", "mxf4"])
def test_metadata(kind: str, letter: str, m: int, n: int, how: dict[str, Any]) -> None:
    """16- and 32-bit kinds: CUTLASS's ((8, 2, m), (16, 2)) : ((1, 2048, 16), (128, 8)) bits; others: row by row."""
    how = {key: value for key, value in how.items() if key != "sparse"}
    wide = kind in ("f16", "tf32")
    selector = 3 if wide else 0
    lane, column, bit = metadata_cells(kind, m, selector=selector, **how)
    rows = m // how.get("cta_group", 1)
    assert lane.shape == (COLUMNS[letter], rows, 8 if wide else 16)
    seen = set()
    for copy in range(lane.shape[0]):
        for row in range(rows):
            own = loop(letter, m, n, row, copy * n // COLUMNS[letter])[0]
            for chunk in range(lane.shape[2]):
                at = copy, row, chunk
                if wide:  # 16 lanes hold 16 rows: rows 0-7 in the low halves, K's first half in the first 8 lanes
                    expected = own // 16 * 16 + row % 8 + 8 * (chunk // 4), 3, 16 * (row % 16 // 8) + 4 * (chunk % 4)
                else:
                    expected = own, chunk // 8, 4 * (chunk % 8)
                assert (lane[at], column[at], bit[at]) == expected
                seen.add(expected)
    assert len(seen) == lane.size


def test_metadata_refusals() -> None:
    with pytest.raises(ValueError, match="kind must be one of"):
        metadata_cells("f64", 128)
    with pytest.raises(ValueError, match="sparsity selector of kind::i8 is 0"):
        metadata_cells("i8", 128, selector=1)
    with pytest.raises(ValueError, match="selector is 0 to 3"):
        metadata_cells("f16", 128, selector=4)


@pytest.mark.parametrize(
    ("shape", "multicast", "expected"),
    [
        ("128x256b", None, lambda r: [r]),
        ("128x128b", None, lambda r: [r]),
        ("4x256b", None, lambda r: [(0, 32, 64, 96)[r]]),
        # Each warp of a pair receives half of the rows: 0 and 1 get different halves of what 2 and 3 get too.
        ("64x128b", "warpx2::02_13", lambda r: [r, 64 + r]),
        ("64x128b", "warpx2::01_23", lambda r: [r, 32 + r] if r < 32 else [32 + r, 64 + r]),
        ("32x128b", "warpx4", lambda r: [r, r + 32, r + 64, r + 96]),
    ],
)
def test_copies(shape: str, multicast: str | None, expected: Any) -> None:
    lanes = copy_lanes(shape, multicast)
    for row in range(int(shape.split("x")[0])):
        assert sorted(lanes[:, row].tolist()) == expected(row)


def test_copy_refusals() -> None:
    with pytest.raises(ValueError, match="no 64x128b with multicast None"):
        copy_lanes("64x128b")
    with pytest.raises(ValueError, match="shape must be one of"):
        copy_lanes("64x256b")


def test_shift() -> None:
    """What a B200 answered: in each quarter row r has what row r + 1 had, the last row stays."""
    to, source = shift_lanes()
    rows = list(range(128))
    after = rows.copy()
    for a, b in zip(to.tolist(), source.tolist(), strict=True):
        after[a] = rows[b]
    assert after == [row if row % 32 == 31 else row + 1 for row in rows]
