"""Scale factors in tensor memory and in 128x4 blocks, against loops from the manual and cuBLAS's description."""

import numpy as np
import pytest

from ptxgen.layouts.scale_factors import blocked_bytes, blocked_offset, from_blocked, scale_cells, to_blocked


@pytest.mark.parametrize(("rows", "scales"), [(128, 4), (256, 8), (1, 1), (130, 5), (384, 12)])
def test_blocks(rows: int, scales: int) -> None:
    rng = np.random.default_rng(rows + scales)
    matrix = rng.integers(0, 256, (rows, scales), dtype=np.uint8)
    blocks = to_blocked(matrix, fill=0xEE)
    # Block after block along K, then the next 128 rows; a block is 32 rows of 16 bytes: four scales of row r, of row
    # r + 32, of r + 64, of r + 96.
    expected = []
    for first_row in range(0, rows, 128):
        for first_scale in range(0, scales, 4):
            for r in range(32):
                for group in range(4):
                    for k in range(4):
                        row, scale = first_row + 32 * group + r, first_scale + k
                        expected.append(int(matrix[row, scale]) if row < rows and scale < scales else 0xEE)
    assert blocks.tolist() == expected
    assert (from_blocked(blocks, rows, scales) == matrix).all()
    assert len(blocks) == blocked_bytes(rows, scales)


def test_block_offsets_of_cublas() -> None:
    # cuBLAS 12.8 and later, figure of the 128x4 tile: offset = (outer % 32) * 16 + (outer / 32) * 4 + inner.
    assert [blocked_offset(*at, 4) for at in ((0, 3), (1, 0), (31, 0), (32, 0), (33, 1), (127, 3))] == [
        3,
        16,
        496,
        4,
        21,
        511,
    ]
    assert blocked_offset(128, 0, 8) == 1024


def test_block_refusals() -> None:
    with pytest.raises(ValueError, match="must be a matrix of bytes, not 2-dimensional of float32"):
        to_blocked(np.zeros((4, 4), np.float32))
    with pytest.raises(ValueError, match="take 512 bytes of blocks, not 100"):
        from_blocked(np.zeros(100, np.uint8), 4, 4)


@pytest.mark.parametrize(("scales", "ids"), [(1, (0, 1, 2, 3)), (2, (0, 2)), (4, (0,))])
@pytest.mark.parametrize("rows", [8, 64, 128, 192, 256])
def test_cells(rows: int, scales: int, ids: tuple[int, ...]) -> None:
    for scale_id in ids:
        lane, column, byte = scale_cells(rows, scales, scale_id)
        assert lane.shape == column.shape == byte.shape == (4, rows, scales)
        for quarter in range(4):
            for row in range(rows):
                for scale in range(scales):
                    at = quarter, row, scale
                    assert (lane[at], column[at]) == (32 * quarter + row % 32, row // 32)
                    assert byte[at] == scale_id + scale


def test_halves_of_a_pair() -> None:
    """SFB of a pair at M 128: 64 rows of a copy hold 0..127 in lanes 0-31 and 32-63, 128..255 in the others."""
    lane, column, byte = scale_cells(256, 4, parts=2)
    assert lane.shape == (2, 256, 4)
    for copy in range(2):
        for row in range(256):
            half, inner = divmod(row, 128)
            assert (lane[copy, row] == 64 * half + 32 * copy + inner % 32).all()
            assert (column[copy, row] == inner // 32).all()
            assert byte[copy, row].tolist() == [0, 1, 2, 3]


def test_scales_of_k_96() -> None:
    """Scales that do not fit into a word go on in the next one along K."""
    lane, column, byte = scale_cells(128, 3, 2)
    assert byte[0, 0].tolist() == [2, 3, 0]
    assert column[0, 40].tolist() == [1, 1, 5]
    assert lane[3, 40].tolist() == [104, 104, 104]
    assert scale_cells(256, 6, 0)[1][0, 0].tolist() == [0, 0, 0, 0, 8, 8]


def test_a_block_copied_by_warpx4_is_what_the_product_reads() -> None:
    """Row r of the 32 x 16 bytes of a block goes to lane r of each quarter, byte b to column b // 4."""
    blocks = np.arange(512).reshape(32, 16)
    for row in range(128):
        for scale in range(4):
            lane, column, byte = (int(each[2, row, scale]) for each in scale_cells(128, 4))
            assert blocks[lane - 64, 4 * column + byte] == blocked_offset(row, scale, 4)


def test_cell_refusals() -> None:
    with pytest.raises(ValueError, match="a row has 1, 2, 3, 4, 6 or 8 scales"):
        scale_cells(128, 5)
    with pytest.raises(ValueError, match="rows must split"):
        scale_cells(127, 4, parts=2)
