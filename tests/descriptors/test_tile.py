"""Descriptors of tiles: what TMA writes box by box is what the descriptors read, at every step along K."""

import itertools
from typing import Any

import numpy as np
import pytest

from ptxgen.descriptors import DescriptorError, OperandTile
from ptxgen.layouts.operands import operand_addresses
from ptxgen.layouts.tma import tile_offsets

START = 0x2400

CASES = [
    (major, swizzle, bits)
    for major, swizzle, bits in itertools.product(
        ("k", "mn"), ("none", "32B", "64B", "128B", "128B_atom_32B"), (8, 16, 32)
    )
    if major == "k" or (bits == 32) == (swizzle == "128B_atom_32B")
]


@pytest.mark.parametrize(("major", "swizzle", "bits"), CASES)
def test_descriptors_read_what_tma_wrote(major: Any, swizzle: str, bits: int) -> None:
    tile = OperandTile(element_bits=bits, major=major, swizzle=swizzle, rows=128, k=128)
    size = bits // 8
    # Where TMA puts element (row, k): box after box, each with its own swizzle.
    where = np.full((tile.rows, tile.k), -1)
    inner, lines = tile.box
    for slab in range(tile.slabs):
        at = START + slab * tile.slab_bytes
        offsets = at + tile_offsets((inner, lines), size, swizzle, at)
        part = slice(slab * inner, (slab + 1) * inner)
        if major == "k":
            where[:, part] = offsets
        else:
            where[part, :] = offsets.T
    assert sorted(where.ravel()) == list(range(START, START + tile.bytes, size)), "every byte once"
    assert np.array_equal(tile.addresses(START), where), "the same function for all of the tile"
    step = 256 // bits  # elements of K in one instruction
    for k in range(0, tile.k, step):
        read = operand_addresses(tile.smem_descriptor(START, k), major, tile.rows, step, bits)
        assert np.array_equal(read, where[:, k : k + step]), k
        if swizzle != "128B_atom_32B":
            assert np.array_equal(read, operand_addresses(tile.wgmma_descriptor(START, k), major, 128, step, bits))


#: Strides by hand: the manual's examples (PTX ISA 9.7.15.5.1.2.1) and CUTLASS's canonical 128-byte rows.
@pytest.mark.parametrize(
    ("fields", "strides", "second"),
    [
        ({"element_bits": 16, "major": "k", "swizzle": "128B", "rows": 128, "k": 64}, (0, 1024), 32),
        ({"element_bits": 16, "major": "k", "swizzle": "128B", "rows": 128, "k": 128}, (0, 1024), 32),
        ({"element_bits": 8, "major": "k", "swizzle": "64B", "rows": 64, "k": 64}, (0, 512), 32),
        ({"element_bits": 16, "major": "k", "swizzle": "none", "rows": 64, "k": 64}, (1024, 128), 2048),
        ({"element_bits": 16, "major": "mn", "swizzle": "64B", "rows": 64, "k": 16}, (1024, 512), None),
        ({"element_bits": 16, "major": "mn", "swizzle": "none", "rows": 64, "k": 16}, (128, 256), None),
        ({"element_bits": 4, "major": "k", "swizzle": "128B", "rows": 128, "k": 256}, (0, 1024), 32),
    ],
)
def test_strides(fields: dict[str, Any], strides: tuple[int, int], second: int | None) -> None:
    tile = OperandTile(**fields)
    assert (tile.leading_byte_offset, tile.stride_byte_offset) == strides
    if second is not None:
        assert tile.advance(256 // fields["element_bits"]) == second


def test_the_next_slab_follows_the_rows_of_the_first() -> None:
    tile = OperandTile(element_bits=16, major="k", swizzle="128B", rows=128, k=128)
    assert [tile.advance(k) for k in range(0, 128, 16)] == [0, 32, 64, 96, 16384, 16416, 16448, 16480]


BASE: dict[str, Any] = {"element_bits": 16, "major": "k", "swizzle": "128B", "rows": 128, "k": 64}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"element_bits": 6}, "element_bits must be 4, 8, 16 or 32, not 6"),
        ({"major": "m"}, "major must be k or mn, not 'm'"),
        (
            {"swizzle": "128B_atom_64B"},
            "swizzle must be one of none, 32B, 64B, 128B, 128B_atom_32B, not '128B_atom_64B'",
        ),
        ({"major": "mn", "element_bits": 4}, "major must be k for elements of 4 bits, not mn"),
        (
            {"major": "mn", "element_bits": 32},
            "swizzle must be 128B_atom_32B for MN-major elements of 32 bits, not 128B",
        ),
        ({"k": 96}, "k must be a positive multiple of 64 for K-major elements of 16 bits with swizzle 128B, not 96"),
        ({"rows": 12}, "rows must be a positive multiple of 8"),
        ({"rows": -8}, "rows must be a positive multiple of 8"),
        ({"rows": 1 << 20}, "a tile must fit 256 KiB of shared memory"),
    ],
)
def test_refusals(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DescriptorError) as caught:
        OperandTile(**{**BASE, **changes})
    assert message in str(caught.value)


def test_places_where_no_descriptor_can_begin() -> None:
    with pytest.raises(DescriptorError, match="k must be a multiple of 8, not 4"):
        OperandTile(**BASE).advance(4)
    with pytest.raises(DescriptorError, match="k must be a multiple of 8 for MN-major operands, not 4"):
        OperandTile(**{**BASE, "major": "mn"}).advance(4)
    with pytest.raises(DescriptorError, match="k must be 0 to 63, not 64"):
        OperandTile(**BASE).advance(64)


def test_two_elements_of_4_bits_share_a_byte() -> None:
    tile = OperandTile(element_bits=4, major="k", swizzle="128B", rows=16, k=512)
    bytes_of = OperandTile(element_bits=8, major="k", swizzle="128B", rows=16, k=256).addresses(START)
    assert np.array_equal(tile.addresses(START), np.repeat(bytes_of, 2, axis=1))


@pytest.mark.parametrize(("major", "swizzle", "bits"), CASES)
def test_back_from_descriptors(major: Any, swizzle: str, bits: int) -> None:
    tile = OperandTile(element_bits=bits, major=major, swizzle=swizzle, rows=128, k=128)
    size: dict[str, Any] = {"element_bits": bits, "major": major, "rows": tile.rows, "k": tile.k}
    made = tile.smem_descriptor(START)
    assert OperandTile.of(made, **size) == tile
    with pytest.raises(DescriptorError, match=f"SBO must be {tile.stride_byte_offset} for a packed"):
        OperandTile.of(made.replace(stride_byte_offset=made.stride_byte_offset + 16), **size)
    ignored = major == "k" and swizzle != "none"
    other = made.replace(leading_byte_offset=made.leading_byte_offset + 16)
    if ignored:
        assert OperandTile.of(other, **size) == tile
    else:
        with pytest.raises(DescriptorError, match="LBO must be"):
            OperandTile.of(other, **size)
