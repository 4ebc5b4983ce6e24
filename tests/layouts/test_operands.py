"""Operand layouts against CuTe layouts, evaluated here on their own, and against tiles that TMA writes."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ptxgen.descriptors import SmemDescriptor, WgmmaDescriptor
from ptxgen.layouts.operands import Major, operand_addresses, operand_offsets
from ptxgen.layouts.swizzle import SWIZZLES
from ptxgen.layouts.tma import tile_offsets

Nested = int | Sequence["Nested"]


def crd2idx(index: int, shape: Any, stride: Any) -> int:
    """CuTe: split `index` over a nested shape, first mode fastest, and sum coordinate times stride."""
    if isinstance(shape, int):
        return index * stride
    total = 0
    for sub_shape, sub_stride in zip(shape, stride, strict=True):
        size = int(np.prod(np.array(flat(sub_shape))))
        total += crd2idx(index % size, sub_shape, sub_stride)
        index //= size
    return total


def flat(shape: Any) -> list[int]:
    return [shape] if isinstance(shape, int) else [x for part in shape for x in flat(part)]


def canonical(major: Major, swizzle: str, bits: int, lbo: int, sbo: int) -> tuple[Any, Any, Any, Any]:
    """The manual's canonical layouts, strides in elements: (MN shape, MN stride, K shape, K stride)."""
    t = 128 // bits
    one, two = lbo * 8 // bits, sbo * 8 // bits
    s = {"none": 1, "32B": 2, "64B": 4, "128B": 8, "128B_atom_32B": 8}[swizzle]
    many = 1 << 20
    if major == "k" and swizzle == "none":
        return (8, many), (t, two), (t, many), (1, one)
    if major == "k":
        return (8, many), (s * t, two), (t, many), (1, t)
    if swizzle == "none":
        return (t, many), (1, two), (8, many), (t, one)
    if swizzle == "128B_atom_32B":
        return (t, 8, many), (1, t, one), (4, many), (8 * t, two)
    return (t, s, many), (1, t, one), (8, many), (s * t, two)


CASES = [
    (major, swizzle, bits)
    for major, swizzle, bits in itertools.product(("k", "mn"), SWIZZLES, (8, 16, 32))
    if swizzle != "128B_atom_64B" and (major == "k" or (bits == 32) == (swizzle == "128B_atom_32B"))
]


@pytest.mark.parametrize(("major", "swizzle", "bits"), CASES)
def test_against_cute(major: Major, swizzle: str, bits: int) -> None:
    k = 256 // bits
    for rows, lbo, sbo in itertools.product((8, 64, 128), (16, 4096, 8208), (128, 1024, 2064)):
        offsets = operand_offsets(
            major=major,
            swizzle=swizzle,
            leading_byte_offset=lbo,
            stride_byte_offset=sbo,
            rows=rows,
            k=k,
            element_bits=bits,
        )
        mn_shape, mn_stride, k_shape, k_stride = canonical(major, swizzle, bits, lbo, sbo)
        by_row = [crd2idx(r, mn_shape, mn_stride) for r in range(rows)]
        by_k = [crd2idx(i, k_shape, k_stride) for i in range(k)]
        assert offsets.tolist() == [[(r + i) * bits // 8 for i in by_k] for r in by_row]


@pytest.mark.parametrize("swizzle", ["32B", "64B", "128B"])
@pytest.mark.parametrize("line", [0, 1, 5])
def test_k_major_reads_the_tile_that_tma_wrote(swizzle: str, line: int) -> None:
    start, row = 0x4000 + 128 * line, SWIZZLES[swizzle].row_bytes
    tile = tile_offsets([row // 2, 64], 2, swizzle, start) + start
    for step in range(row // 32):
        for kind in (SmemDescriptor, WgmmaDescriptor):
            descriptor = kind(start_address=start + 32 * step, stride_byte_offset=8 * row, swizzle=swizzle)
            addresses = operand_addresses(descriptor, "k", 64, 16, 16)
            assert np.array_equal(addresses, tile[:, 16 * step : 16 * step + 16])


@pytest.mark.parametrize("swizzle", ["32B", "64B", "128B"])
def test_mn_major_reads_the_tiles_that_tma_wrote(swizzle: str) -> None:
    row, k = SWIZZLES[swizzle].row_bytes, 32
    block = row * k  # each TMA box: one swizzle row of MN by k
    tiles = [tile_offsets([row // 2, k], 2, swizzle, 0x8000 + b * block) + 0x8000 + b * block for b in range(2)]
    whole = np.concatenate(tiles, axis=1).T  # [mn, k]
    for step in range(k // 16):
        descriptor = SmemDescriptor(
            start_address=0x8000 + 16 * step * row,
            leading_byte_offset=block,
            stride_byte_offset=8 * row,
            swizzle=swizzle,
        )
        addresses = operand_addresses(descriptor, "mn", row, 16, 16)
        assert np.array_equal(addresses, whole[:, 16 * step : 16 * step + 16])


def test_base_offset_restarts_the_pattern_at_the_tile() -> None:
    def addresses(start: int, base: int) -> np.ndarray:
        fields = {"stride_byte_offset": 1024, "swizzle": "128B", "base_offset": base}
        return operand_addresses(WgmmaDescriptor(start_address=start, **fields), "k", 64, 16, 16)  # type: ignore[arg-type]

    assert np.array_equal(addresses(0x400 + 3 * 128, 3) - 3 * 128, addresses(0x400, 0))
    assert not np.array_equal(addresses(0x400 + 3 * 128, 0) - 3 * 128, addresses(0x400, 0))


@pytest.mark.parametrize(("major", "swizzle", "bits"), CASES)
def test_compact_operands_have_distinct_addresses(major: Major, swizzle: str, bits: int) -> None:
    row = SWIZZLES[swizzle].row_bytes
    group = 4 if swizzle == "128B_atom_32B" and major == "mn" else 8
    k = 256 // bits
    descriptor = SmemDescriptor(
        start_address=0x1000,
        leading_byte_offset=0x2000 if swizzle != "none" else 128 * 16,
        stride_byte_offset=group * row if (major, swizzle) != ("mn", "none") else 128,
        swizzle=swizzle,
    )
    addresses = operand_addresses(descriptor, major, 64, k, bits)
    assert len(np.unique(addresses)) == 64 * k
    assert (addresses % (bits // 8) == 0).all()


def test_cached_and_read_only() -> None:
    descriptor = SmemDescriptor(start_address=0, stride_byte_offset=1024, swizzle="128B")
    first = operand_addresses(descriptor, "k", 128, 16, 16)
    assert operand_addresses(SmemDescriptor.decode(descriptor.encode()), "k", 128, 16, 16) is first
    assert not first.flags.writeable


@pytest.mark.parametrize(
    ("major", "swizzle", "k", "bits", "message"),
    [
        ("m", "none", 16, 16, 'major must be "k" or "mn", not \'m\''),
        ("k", "none", 16, 4, "element_bits must be 8, 16 or 32, not 4"),
        ("k", "32B", 64, 16, "a swizzled K-major row holds 32 bytes of K, not 128"),
        ("k", "64B", 64, 16, "a swizzled K-major row holds 64 bytes of K, not 128"),
        ("k", "128B_atom_64B", 16, 16, "128B_atom_64B is a TMA mode"),
        ("mn", "128B", 8, 32, "32-bit MN-major operands must use 128B_atom_32B, not '128B'"),
        ("mn", "128B_atom_32B", 16, 16, "MN-major 128B_atom_32B takes 32-bit elements only"),
        ("k", "96B", 16, 16, "swizzle must be one of"),
    ],
)
def test_refusals(major: Any, swizzle: str, k: int, bits: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        operand_offsets(
            major=major,
            swizzle=swizzle,
            leading_byte_offset=16,
            stride_byte_offset=128,
            rows=8,
            k=k,
            element_bits=bits,
        )


@pytest.mark.parametrize("step", range(8))
def test_absolute_lbo_follows_three_tiles_of_a_ring(step: int) -> None:
    """CUTLASS's SM103 mainloop: eight products of 48 bytes of K over three tiles with rows of 128 bytes.

    Product i starts in tile 48i / 128 at byte 48i % 128; LBO is the start of the tile in which it ends.
    """
    tiles, sbo, rows = (0x8000, 0x1C000, 0x4000), 1024, 32
    first, last = 48 * step, 48 * step + 47
    descriptor = SmemDescriptor(
        start_address=tiles[first // 128] + first % 128,
        leading_byte_offset=tiles[last // 128],
        stride_byte_offset=sbo,
        swizzle="128B",
        lbo_mode="absolute",
    )
    found = operand_addresses(descriptor, "k", rows, 48, 8)
    for row in range(rows):
        for byte in range(48):
            at = first + byte
            plain = tiles[at // 128] + row % 8 * 128 + row // 8 * sbo + at % 128
            assert found[row, byte] == plain ^ (plain >> 7 & 7) << 4


def test_absolute_lbo_refusals() -> None:
    descriptor = SmemDescriptor(start_address=112, lbo_mode="absolute", swizzle="128B")
    with pytest.raises(ValueError, match="for K-major operands with 128B swizzle"):
        operand_addresses(descriptor, "mn", 64, 16, 16)
    with pytest.raises(ValueError, match="160 elements of 8 bits pass the end of the second row"):
        operand_addresses(descriptor, "k", 8, 160, 8)


def test_halves_of_k_in_rows_of_32_bytes() -> None:
    """As an H200 reads B of a sparse wgmma: the second 32 bytes of K are LBO on, wherever that is."""
    offsets = operand_offsets(
        major="k", swizzle="32B", leading_byte_offset=512, stride_byte_offset=768, rows=16, k=64, element_bits=8
    )
    assert [int(offsets[9, k]) for k in (0, 31, 32, 63)] == [800, 831, 1312, 1343]
