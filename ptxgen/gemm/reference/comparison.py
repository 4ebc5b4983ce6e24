"""C against the reference, element by element, and words for where the wrong elements are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ptxgen.gemm.types import TYPES

#: Fill of C and its surroundings before the launch, byte by byte.
POISON = 0xCD
#: Rows and columns of C that are compared at once.
BLOCK = 1024


@dataclass(frozen=True)
class Element:
    """One element of C: what it holds, what it should, and how far these may be apart."""

    row: int
    column: int
    got: float
    expected: float
    tolerance: float

    def __str__(self) -> str:
        return (
            f"C[{self.row}, {self.column}] is {self.got:.6g}, expected {self.expected:.6g} with a tolerance of "
            f"{self.tolerance:.3g}"
        )


@dataclass(frozen=True)
class Comparison:
    """C against the reference, element by element.

    `largest_error` is the largest distance (infinite for NaN) at `largest_at`, where `tolerance` is allowed; `ratio`
    is the largest share of its own tolerance that any element takes: above 1 is wrong. `unwritten` counts the wrong
    elements that still hold the poison. `pattern` says where in the tiles the wrong elements are.
    """

    elements: int
    wrong: int
    unwritten: int
    largest_error: float
    largest_at: tuple[int, int]
    tolerance: float
    ratio: float
    first_wrong: Element | None
    pattern: str


def compare(
    c: np.ndarray,
    expect: Callable[[slice, slice], tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]],
    tile: tuple[int, int],
) -> Comparison:
    """Compare C with what `expect` gives for rows and columns: values, and what each may be off by.

    An element that must be NaN or infinite must be just that.
    """
    m, n = c.shape
    wrong = np.zeros((m, n), dtype=bool)
    unwritten = 0
    largest, largest_at, tolerance, ratio = -1.0, (0, 0), 0.0, 0.0
    first: Element | None = None
    for top in range(0, m, BLOCK):
        for left in range(0, n, BLOCK):
            rows, columns = slice(top, min(top + BLOCK, m)), slice(left, min(left + BLOCK, n))
            expected, allowed = expect(rows, columns)
            part = c[rows, columns]
            values = part.astype(np.float64)
            with np.errstate(invalid="ignore"):  # NaN and infinity in C are wrong, not a warning
                errors = np.abs(values - expected)
            same = (values == expected) | (np.isnan(values) & np.isnan(expected))
            errors = np.where(same, 0.0, np.where(np.isnan(errors), np.inf, errors))
            bad = ~(errors <= allowed)
            wrong[rows, columns] = bad
            unwritten += int(np.count_nonzero(bad & _is_poison(part)))
            with np.errstate(divide="ignore", invalid="ignore"):
                shares = np.where((errors == 0) | np.isinf(allowed), 0.0, errors / allowed)
            ratio = max(ratio, float(shares.max()))
            row, column = np.unravel_index(int(errors.argmax()), errors.shape)
            if errors[row, column] > largest:
                largest, tolerance = float(errors[row, column]), float(allowed[row, column])
                largest_at = (top + int(row), left + int(column))
            if bad.any() and (first is None or first.row >= top):
                row, column = np.unravel_index(int(bad.argmax()), bad.shape)
                place = (top + int(row), left + int(column))
                found = Element(
                    *place, float(values[row, column]), float(expected[row, column]), float(allowed[row, column])
                )
                if first is None or (found.row, found.column) < (first.row, first.column):
                    first = found
    pattern = describe_pattern(wrong, *tile)
    count = int(np.count_nonzero(wrong))
    return Comparison(wrong.size, count, unwritten, largest, largest_at, tolerance, ratio, first, pattern)


def merged(batches: list[Comparison]) -> Comparison:
    """One comparison of all batches: counts of all, the largest error of any, and where the first wrong batch is."""
    if len(batches) == 1:
        return batches[0]
    largest = max(batches, key=lambda each: each.largest_error)
    first, number = next(((each, i) for i, each in enumerate(batches) if each.wrong), (batches[0], 0))
    bad = sum(1 for each in batches if each.wrong)
    pattern = f"in batch {number}, the first of {bad} of {len(batches)} that are wrong: {first.pattern}" if bad else ""
    return replace(
        largest,
        elements=sum(each.elements for each in batches),
        wrong=sum(each.wrong for each in batches),
        unwritten=sum(each.unwritten for each in batches),
        ratio=max(each.ratio for each in batches),
        first_wrong=first.first_wrong,
        pattern=pattern,
    )


def half_ulp(values: npt.NDArray[np.float64], dtype: str) -> npt.NDArray[np.float64]:
    """Half the distance between neighbors of `dtype` ("bf16" or "f16") at the size of each value, which is >= 0.

    Numbers of 2^e to 2^(e+1) with p significant bits are 2^(e-p+1) apart, so that rounding to nearest is off by at
    most 2^(e-p): 2^-p relative at worst (p is 8 for bf16, 11 for f16). Subnormal numbers are as far apart as the
    smallest normal ones.
    """
    bits, smallest = TYPES[dtype].digits, TYPES[dtype].smallest
    _, exponents = np.frexp(values)
    return np.ldexp(1.0, np.maximum(np.where(values == 0, smallest, exponents - 1), smallest) - bits)


def describe_pattern(wrong: npt.NDArray[np.bool_], m_tile: int, n_tile: int) -> str:
    """Where the wrong elements are: which tiles, and which rows and columns within them. Empty if there are none."""
    rows, columns = np.nonzero(wrong)
    if not rows.size:
        return ""
    tiles = sorted(set(zip((rows // m_tile).tolist(), (columns // n_tile).tolist(), strict=True)))
    in_tile_rows, in_tile_columns = np.unique(rows % m_tile), np.unique(columns % n_tile)
    tile_height, tile_width = min(m_tile, wrong.shape[0]), min(n_tile, wrong.shape[1])
    every_row, every_column = in_tile_rows.size == tile_height, in_tile_columns.size == tile_width
    if rows.size == wrong.size:
        return "every element is wrong"
    # How many elements the tiles concerned have at these rows and columns: are they all wrong, or some?
    mask_rows = np.isin(np.arange(wrong.shape[0]) % m_tile, in_tile_rows)
    mask_columns = np.isin(np.arange(wrong.shape[1]) % n_tile, in_tile_columns)
    possible = sum(
        int(np.count_nonzero(mask_rows[i * m_tile : (i + 1) * m_tile]))
        * int(np.count_nonzero(mask_columns[j * n_tile : (j + 1) * n_tile]))
        for i, j in tiles
    )
    places = []
    if not every_row:
        places.append(f"row{'s' * (in_tile_rows.size > 1)} {number_list(in_tile_rows.tolist())}")
    if not every_column:
        places.append(f"column{'s' * (in_tile_columns.size > 1)} {number_list(in_tile_columns.tolist())}")
    where = _which_tiles(tiles, -(-wrong.shape[0] // m_tile), -(-wrong.shape[1] // n_tile))
    if not places and possible == rows.size:
        return f"they are all elements {where}"
    share = ""
    if 2 * rows.size >= possible > rows.size:
        share = f" (all there but {possible - rows.size})"
    elif rows.size < possible:
        share = f" ({100 * rows.size / possible:.2g} % of the elements there)"
    if not places:
        return f"the wrong elements are spread over all rows and columns {where}{share}"
    return f"all wrong elements are in {' and '.join(places)} {where}{share}"


def _which_tiles(tiles: list[tuple[int, int]], rows: int, columns: int) -> str:
    """Which of rows × columns tiles these are, in ascending order, as the end of "elements ..."."""
    if len(tiles) == rows * columns:
        return "of each tile" if len(tiles) > 1 else "of the only tile"
    tile_rows, tile_columns = sorted({i for i, _ in tiles}), sorted({j for _, j in tiles})
    if len(tile_rows) * columns == len(tiles):
        return f"of the tiles in tile row{'s' * (len(tile_rows) > 1)} {number_list(tile_rows)} of {rows}"
    if len(tile_columns) * rows == len(tiles):
        return f"of the tiles in tile column{'s' * (len(tile_columns) > 1)} {number_list(tile_columns)} of {columns}"
    shown = ", ".join(f"({i}, {j})" for i, j in tiles[:4]) + (", ..." if len(tiles) > 4 else "")
    return f"of {len(tiles)} of {rows * columns} tiles (row, column): {shown}"


def number_list(numbers: list[int], limit: int = 6) -> str:
    """Ascending numbers, shortened: "0-31", "3, 7-9", "0, 8, ..., 120 (every 8th)", "1, 4, 6, ... 90 (17 in all)"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    if len(runs) <= limit:
        return ", ".join(texts)
    steps = {after - before for before, after in pairwise(numbers)}
    if len(steps) == 1:
        step = steps.pop()
        suffix = {2: "nd", 3: "rd"}.get(step, "th")
        return f"{numbers[0]}, {numbers[1]}, ..., {numbers[-1]} (every {step}{suffix})"
    return f"{', '.join(texts[: limit - 1])}, ... {texts[-1]} ({len(numbers)} in all)"


def line_list(lines: tuple[int, ...]) -> str:
    """Lines of a text as words: "line 7", "lines 7, 9", "no line"."""
    if not lines:
        return "no line"
    return f"line{'s' * (len(lines) > 1)} {number_list(sorted(lines))}"


def _is_poison(values: np.ndarray) -> npt.NDArray[np.bool_]:
    data = np.ascontiguousarray(values)
    return (data.view(np.uint8).reshape(*data.shape, data.dtype.itemsize) == POISON).all(axis=-1)
