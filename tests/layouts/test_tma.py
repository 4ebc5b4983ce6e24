"""TMA tiles against explicit loops and against what an H200 wrote."""

import itertools

import numpy as np
import pytest

from ptxgen.layouts.swizzle import SWIZZLES
from ptxgen.layouts.tma import row_pitch, tile_bytes, tile_chunks, tile_footprint, tile_offsets

# 16-byte chunks of a tile of 32-bit elements as an H200 left them in shared memory, from the destination on
# (-1: untouched):
# (swizzle, elements of a row, destination mod 1024, chunks).
H200 = [
    ("32B", 4, 0, [0, -1, 1, -1, 2, -1, 3, -1, -1, 4, -1, 5, -1, 6, -1, 7]),
    ("32B", 4, 128, [-1, 0, -1, 1, -1, 2, -1, 3, 4, -1, 5, -1, 6, -1, 7, -1]),
    ("64B", 8, 0, [0, 1, -1, -1, 2, 3, -1, -1, 5, 4, -1, -1, 7, 6, -1, -1, -1, -1, 8, 9, -1, -1, 10, 11]),
    ("64B", 8, 384, [-1, -1, 1, 0, -1, -1, 3, 2, 4, 5, -1, -1, 6, 7, -1, -1, 9, 8, -1, -1, 11, 10, -1, -1]),
    ("64B", 12, 256, [2, -1, 0, 1, 5, -1, 3, 4, -1, 8, 7, 6, -1, 11, 10, 9, 12, 13, 14, -1, 15, 16, 17, -1]),
    (
        "128B",
        12,
        128,
        [1, 0, -1, 2, -1, -1, -1, -1, 5, -1, 3, 4, -1, -1, -1, -1, -1, 8, 7, 6, -1, -1, -1, -1],
    ),
    ("128B", 16, 512, [-1, -1, -1, -1, 0, 1, 2, 3, -1, -1, -1, -1, 5, 4, 7, 6, -1, -1, -1, -1, 10, 11, 8, 9]),
    ("128B", 24, 0, [0, 1, 2, 3, 4, 5, -1, -1, 7, 6, 9, 8, 11, 10, -1, -1, 14, 15, 12, 13, -1, -1, 16, 17]),
    ("128B", 24, 640, [5, 4, -1, -1, 1, 0, 3, 2, -1, -1, 10, 11, 8, 9, 6, 7, -1, -1, 17, 16, 15, 14, 13, 12]),
]


@pytest.mark.parametrize(("mode", "inner", "phase", "seen"), H200)
def test_narrow_rows_as_measured(mode: str, inner: int, phase: int, seen: list[int]) -> None:
    chunks = tile_chunks([inner, 32], 4, mode, 1024 + phase)
    memory = [-1] * (int(chunks.max()) + 1)
    for chunk, place in enumerate(chunks):
        memory[place] = chunk
    assert memory[: len(seen)] == seen


@pytest.mark.parametrize("mode", sorted(SWIZZLES))
@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_against_loops(mode: str, size: int) -> None:
    width = SWIZZLES[mode].row_bytes if mode != "none" else 48
    for rows, depth, destination, inner in itertools.product((1, 9), (1, 3), (0, 128, 0x1280), {16, width}):
        box = [inner // size, rows, depth]
        offsets = tile_offsets(box, size, mode, destination)
        assert offsets.shape == (depth, rows, inner // size)
        pitch = inner if mode == "none" else width
        for i2, i1, i0 in itertools.product(range(depth), range(rows), range(inner // size)):
            linear = destination + (i2 * rows + i1) * pitch + i0 * size
            assert offsets[i2, i1, i0] == SWIZZLES[mode].apply(linear) - destination
        assert len(np.unique(offsets)) == offsets.size
        lines = -(-tile_footprint(box, size, mode) // 128) * 128
        assert offsets.min() >= 0
        assert offsets.max() + size <= lines
        assert tile_bytes(box, size) == offsets.size * size
        assert row_pitch(box, size, mode) == pitch


def test_full_rows_fill_the_tile() -> None:
    for mode in ("32B", "64B", "128B", "128B_atom_32B"):
        chunks = tile_chunks([SWIZZLES[mode].row_bytes // 2, 64], 2, mode, 0x2000)
        assert sorted(chunks.tolist()) == list(range(64 * SWIZZLES[mode].row_bytes // 16))


def test_cached_and_read_only() -> None:
    first = tile_chunks([64, 64], 2, "128B", 0x400)
    assert tile_chunks([64, 64], 2, "128B", 0x800) is first
    assert not first.flags.writeable


@pytest.mark.parametrize(
    ("box", "size", "mode", "destination", "message"),
    [
        ([3, 4], 4, "none", 0, "a multiple of 16 bytes, not 12"),
        ([32, 4], 4, "64B", 0, "at most 64 bytes for swizzle 64B, not 128"),
        ([16, 4], 4, "64B", 8, "the destination must be a multiple of 16 bytes, not 0x8"),
    ],
)
def test_refusals(box: list[int], size: int, mode: str, destination: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tile_chunks(box, size, mode, destination)
