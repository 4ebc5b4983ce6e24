"""Tensormaps against what an H200's driver answered, and each rule against a map that breaks it alone."""

import gzip
import json
import math
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxgen.descriptors import DescriptorError, TensorMap
from ptxgen.descriptors.tensormap import TYPES, Im2colMap, TiledMap
from tests.support.paths import DATA

RECORDING = DATA / "tensormap" / "h200_driver580.jsonl.gz"

BASE: dict[str, Any] = {
    "dtype": "bf16",
    "array_or_address": 0x7F1200000000,
    "dims": [4096, 4096],
    "strides": [8192],
    "box": [64, 128],
    "swizzle": "128B",
}
THREE: dict[str, Any] = {"dims": [4096, 64, 64], "strides": [8192, 1 << 20], "box": [64, 8, 8]}


def make(**arguments: Any) -> TensorMap:
    return TensorMap.tiled(**{**BASE, **arguments})


@cache
def recorded() -> list[dict[str, Any]]:
    with gzip.open(RECORDING, "rt") as lines:
        return [json.loads(line) for line in lines]


def from_record(record: dict[str, Any], **more: Any) -> TensorMap:
    first = (record["data_type"], record["address"], record["dims"], record["strides"])
    more |= {name: record[name] for name in ("element_strides", "interleave", "swizzle", "l2_promotion", "oob_fill")}
    if record["kind"] == "tiled":
        return TensorMap.tiled(*first, record["box"], **more)
    column = (record["channels_per_pixel"], record["pixels_per_column"])
    corners = (record["pixel_box_lower"], record["pixel_box_upper"])
    if record["kind"] == "im2col":
        return TensorMap.im2col(*first, *corners, *column, **more)
    return TensorMap.im2col_wide(*first, *corners, *column, wide_mode=record["wide_mode"], **more)


def test_every_recorded_call() -> None:
    """Every byte and every refusal of an H200's driver, rank 1 with its null pointers too."""
    counts: Counter[tuple[str, bool]] = Counter()
    for record in recorded():
        counts[record["kind"], record["result"] == 0] += 1
        if record["result"]:
            with pytest.raises(DescriptorError):
                from_record(record, target="sm_90a")
            continue
        made = from_record(record, target="sm_90a")
        assert made.encode().hex() == record["bytes"], record
        decoded = TensorMap.decode(made.encode())
        assert decoded == made
        assert eval(repr(made)) == made
    assert counts == {
        ("tiled", True): 871,
        ("tiled", False): 2730,
        ("im2col", True): 745,
        ("im2col", False): 336,
        ("im2col_wide", True): 250,
        ("im2col_wide", False): 138,
    }


def test_decoded_records_have_the_arguments() -> None:
    for record in recorded():
        if record["result"]:
            continue
        made = TensorMap.decode(bytes.fromhex(record["bytes"]))
        names = tuple(TYPES)
        assert (made.dtype, made.rank, made.address) == (names[record["data_type"]], record["rank"], record["address"])
        for name in ("dims", "strides", "element_strides"):
            assert getattr(made, name) == tuple(record[name])
        if isinstance(made, TiledMap):
            assert (record["kind"], made.box) == ("tiled", tuple(record["box"]))
            continue
        assert isinstance(made, Im2colMap)
        corners = [record["pixel_box_lower"], record["pixel_box_upper"]]
        if record["kind"] == "im2col_wide":
            corners = [[corner] + [0] * (record["rank"] - 3) for corner in corners]
        assert [made.pixel_box_lower, made.pixel_box_upper] == [tuple(corner) for corner in corners]
        assert made.channels_per_pixel == record["channels_per_pixel"]
        assert made.pixels_per_column == record["pixels_per_column"]


def test_without_target_only_blackwell_is_accepted_beyond_the_recording() -> None:
    for record in recorded():
        try:
            from_record(record)
        except DescriptorError:
            assert record["result"], record
        else:
            assert record["result"] == 0 or record["data_type"] >= 13 or record["swizzle"] >= 4, record


def test_rank_1_is_legal() -> None:
    # The H200's driver, given a strides pointer that is not null, wrote these words.
    made = make(dims=[4096], strides=[0], box=[64], swizzle="none")
    words = np.frombuffer(made.encode(), dtype="<u4")
    expected = {1: 0x7F12, 2: 0x500, 8: 0xFFF, 13: 0x3F << 24, 16: 128, 18: 16}
    assert {i: int(w) for i, w in enumerate(words) if w} == expected
    # The number stands for a pointer that is not read; an array needs none.
    assert make(dims=[4096], strides=[8200], box=[64], swizzle="none") == made
    assert make(array_or_address=Array(), dims=[4096], strides=[], box=[64], swizzle="none") == made
    assert made.strides == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dims": []}, "dims must be a sequence of 1 to 5 integers (the rank), not 0"),
        ({"dims": [64], "strides": [], "box": [64]}, "strides must be a list of one number, such as [0], with rank 1"),
        ({"dims": [64], "strides": [16, 16], "box": [64]}, "strides must be empty, or one number that is not read"),
        ({"dims": [8] * 6}, "dims must be a sequence of 1 to 5 integers (the rank), not 6"),
        ({"dims": 4096}, "dims must be a sequence of integers, not 4096"),
        ({"strides": []}, "strides must be a sequence of 1 numbers (rank 2), not ()"),
        (
            {"strides": [8200]},
            "stride of dimension 1 must be a multiple of 16 bytes (32 with 32-byte interleave)",
        ),
        ({"strides": [8200]}, "not 8200"),
        ({"strides": [1 << 40]}, "below 2^40, not 1099511627776"),
        ({"strides": [-16]}, "not -16"),
        ({"box": [64]}, "box must be a sequence of 2 numbers (rank 2)"),
        ({"box": [64, 0]}, "box dimension 1 must be an integer from 1 to 256 elements, not 0"),
        ({"box": [64, 257]}, "box dimension 1 must be an integer from 1 to 256 elements, not 257"),
        (
            {"box": [12, 8]},
            "the innermost box row must be a multiple of 16 bytes, not 24 (12 elements of 16 bits)",
        ),
        ({"box": [128, 8]}, "the innermost box row must be at most 128 bytes with swizzle 128B, not 256"),
        ({"swizzle": "32B"}, "the innermost box row must be at most 32 bytes with swizzle 32B, not 128"),
        ({"swizzle": "64B"}, "the innermost box row must be at most 64 bytes with swizzle 64B, not 128"),
        ({**THREE, "box": [64, 64, 32]}, "the box must be at most 233472 bytes"),
        ({**THREE, "box": [64, 64, 32]}, "not 262144"),
        ({"dims": [0, 4096]}, "dimension 0 must be an integer from 1 to 2^32 elements, not 0"),
        (
            {"dims": [(1 << 32) + 1, 4096]},
            "dimension 0 must be an integer from 1 to 2^32 elements, not 4294967297",
        ),
        ({"element_strides": [1, 9]}, "element stride of dimension 1 must be an integer from 1 to 8, not 9"),
        ({"element_strides": [0, 1]}, "element stride of dimension 0 must be an integer from 1 to 8, not 0"),
        ({"array_or_address": 0x1008}, "address must be a multiple of 16"),
        ({"array_or_address": 1 << 57}, "below 2^57, not 144115188075855872"),
        ({"array_or_address": True}, "not True (a bool)"),
        ({"array_or_address": 4096.0}, "not 4096.0 (a float)"),
        ({"interleave": "16B"}, "rank must be 3 to 5 with interleave 16B, not 2"),
        (
            {**THREE, "interleave": "32B", "array_or_address": 0x1010},
            "address must be a multiple of 32 with 32-byte interleave, not 4112",
        ),
        (
            {**THREE, "interleave": "32B", "strides": [8208, 1 << 20]},
            "stride of dimension 1 must be a multiple of 32 bytes with 32-byte interleave, not 8208",
        ),
        ({"dtype": "u16", "oob_fill": "nan"}, "oob_fill must be \"none\" for u16, no float type, not 'nan'"),
        ({"dtype": "bf15"}, "dtype must be one of u8, u16"),
        ({"dtype": 16}, "or the driver's number 0 to 15, not 16"),
        ({"swizzle": 7}, "or the driver's number 0 to 6, not 7"),
        ({"dtype": True}, "not True (a bool)"),
        ({"swizzle": "256B"}, "swizzle must be one of none, 32B"),
        ({"l2_promotion": 4}, "l2_promotion must be one of none, 64B, 128B, 256B"),
        ({"oob_fill": 2}, "oob_fill must be none or nan"),
        ({"interleave": -1}, "interleave must be one of none, 16B, 32B"),
        (
            {"dtype": "16u4_align8b", "dims": [4095, 8]},
            "dimension 0 must be a multiple of 2 for 16u4_align8b",
        ),
        (
            {"dtype": "16u4_align16b", "dims": [64, 8]},
            "dimension 0 must be a multiple of 128 for 16u4_align16b",
        ),
        ({"dtype": "16u4_align16b", "box": [64, 8]}, "box dimension 0 must be 128 for 16u4_align16b, not 64"),
        (
            {"dtype": "16u6_align16b", "box": [128, 8], "swizzle": "64B"},
            "swizzle must be one of none, 128B, 128B_atom_32B, 128B_atom_64B for 16u6_align16b, not '64B'",
        ),
        ({"target": "sm_90a", "dtype": "16u4_align8b"}, "dtype must be no packed type for sm_90a"),
        (
            {"target": "sm_90a", "swizzle": "128B_atom_32B"},
            "swizzle must be one of none, 32B, 64B, 128B for sm_90a",
        ),
        ({"target": "sm_80"}, "target must be sm_90 or later"),
    ],
)
def test_refusals(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DescriptorError) as caught:
        make(**arguments)
    assert message in str(caught.value)


PIXELS: dict[str, Any] = {
    "dtype": "f16",
    "array_or_address": 0x7F1200000000,
    "dims": [64, 9, 14, 64],
    "strides": [128, 1152, 16128],
    "pixel_box_lower": [-1, -1],
    "pixel_box_upper": [-1, -1],
    "channels_per_pixel": 8,
    "pixels_per_column": 64,
}


def pixels(**arguments: Any) -> Im2colMap:
    return TensorMap.im2col(**{**PIXELS, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pixel_box_lower": [-129, -1]}, "lower corner in width must be an integer from -128 to 127 pixels, not -129"),
        ({"pixel_box_upper": [-1, 128]}, "upper corner in height must be an integer from -128 to 127 pixels, not 128"),
        ({"pixel_box_lower": [-1]}, "pixel_box_lower must be a sequence of 2 numbers (rank 4), not (-1,)"),
        ({"pixel_box_lower": -1}, "pixel_box_lower must be a sequence of integers, not -1"),
        ({"pixel_box_lower": [-1, True]}, "not True (a bool)"),
        ({"pixel_box_lower": [4, 0], "pixel_box_upper": [-5, 0]}, "the pixel box in width must be at least one pixel"),
        ({"pixel_box_lower": [4, 0], "pixel_box_upper": [-5, 0]}, "from 4 to 9 - 1 + -5, not 0"),
        ({"channels_per_pixel": 0}, "channels_per_pixel must be an integer from 1 to 256 elements, not 0"),
        ({"channels_per_pixel": 257}, "not 257"),
        ({"channels_per_pixel": 12}, "the channels of a pixel must be a multiple of 16 bytes, not 24"),
        ({"channels_per_pixel": 32, "swizzle": "32B"}, "the channels of a pixel must be at most 32 bytes"),
        ({"pixels_per_column": 0}, "pixels_per_column must be an integer from 1 to 1024 pixels, not 0"),
        ({"pixels_per_column": 1025}, "not 1025"),
        ({"channels_per_pixel": 256, "pixels_per_column": 457}, "the box must be at most 233472 bytes"),
        ({"dims": [64, 9], "strides": [128]}, "rank must be 3, 4 or 5 for im2col, not 2"),
        ({"dims": [64], "strides": []}, "rank must be 3, 4 or 5 for im2col, not 1"),
        ({"dims": [64, 9, 14, 64, 2, 2]}, "dims must be a sequence of 1 to 5 integers (the rank), not 6"),
        ({"dtype": "u16", "oob_fill": 1}, 'oob_fill must be "none" for u16'),
        ({"strides": [128, 1160, 16128]}, "stride of dimension 2 must be a multiple of 16 bytes"),
    ],
)
def test_refusals_of_pixels(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DescriptorError) as caught:
        pixels(**arguments)
    assert message in str(caught.value)


@pytest.mark.parametrize("mode", ["w", "w128", 0, 1])
def test_wide_maps_are_pixels_in_a_row(mode: str | int) -> None:
    wide = {**PIXELS, "pixel_box_lower": -2, "pixel_box_upper": 1, "wide_mode": mode}
    assert TensorMap.im2col_wide(**wide) == pixels(pixel_box_lower=[-2, 0], pixel_box_upper=[1, 0])
    for changes, message in (
        ({"wide_mode": "h"}, "wide_mode must be w or w128, or the driver's number 0 to 1, not 'h'"),
        ({"interleave": 1}, "interleave must be none for the wide modes"),
        ({"pixel_box_lower": 200}, "lower corner in width must be an integer from -128 to 127"),
        ({"pixel_box_lower": [1]}, "lower corner in width"),
        ({"dims": [64], "strides": []}, "rank must be 3, 4 or 5 for im2col, not 1"),
    ):
        with pytest.raises(DescriptorError) as caught:
            TensorMap.im2col_wide(**{**wide, **changes})
        assert message in str(caught.value)


@pytest.mark.parametrize("rank", [1, 2])
def test_pixels_have_three_dimensions(rank: int) -> None:
    words = np.frombuffer(pixels().encode(), dtype="<u4").copy()
    words[2] = words[2] & ~np.uint32(7 << 4) | np.uint32((rank - 1) << 4)
    words[[3, 4, 5, 7, 9, 10, 11, 14]] = 0
    if rank == 2:
        words[[3, 9]] = 8
    with pytest.raises(DescriptorError, match="rank must be 3, 4 or 5"):
        TensorMap.decode(words.tobytes())


def test_pixels_are_explained() -> None:
    text = pixels().explain()
    assert text.startswith("TensorMap im2col, f16, 64 pixels of 8 channels")
    lines = [line.split() for line in text.splitlines()]
    assert ["word", "14", "bits", "24-31", "pixel_box_upper[1]", "0xff", "-1", "pixels"] in lines
    assert ["word", "15", "pixels_per_column", "0x3f", "64", "pixels"] in lines


@pytest.mark.parametrize(
    ("word", "bits", "message"),
    [
        (14, 1 << 15, "reserved bits must be 0, not 1 in word 14 bit 15"),
        (14, 1 << 31, "reserved bits must be 0, not 1 in word 14 bit 31"),
        (15, 1 << 10, "pixels_per_column must be an integer from 1 to 1024 pixels, not 1087"),
        (17, 1, "reserved bits must be 0, not 1 in word 17 bit 0"),
    ],
)
def test_decode_names_what_is_illegal_in_pixels(word: int, bits: int, message: str) -> None:
    five = pixels(
        dims=[64, 9, 14, 6, 64], strides=[128, 1152, 16128, 1 << 20], pixel_box_lower=[0] * 3, pixel_box_upper=[0] * 3
    )
    words = np.frombuffer(five.encode(), dtype="<u4").copy()
    words[word] |= bits
    with pytest.raises(DescriptorError) as caught:
        TensorMap.decode(words.tobytes())
    assert message in str(caught.value)


SIZES = {name: kind.bits // 8 for name, kind in TYPES.items() if not kind.packed_bits}
ROWS = {"none": 4096, "32B": 32, "64B": 64, "128B": 128, "128B_atom_32B": 128, "128B_atom_64B": 128}
BOX_LIMIT = 233472


@st.composite
def legal(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A call that the driver's documents allow, from the whole space of it."""
    kind = draw(st.sampled_from(["tiled", "im2col"]))
    dtype = draw(st.sampled_from(sorted(SIZES)))
    size = SIZES[dtype]
    rank = draw(st.integers(1 if kind == "tiled" else 3, 5))
    swizzle = draw(st.sampled_from(sorted(ROWS)))
    interleave = draw(st.sampled_from(["none", "16B", "32B"])) if rank >= 3 else "none"
    aligned = 32 if interleave == "32B" else 16
    row = draw(st.integers(1, max(min(ROWS[swizzle], 256 * size), 16) // 16)) * 16 // size
    made: dict[str, Any] = {
        "dtype": dtype,
        "array_or_address": aligned * draw(st.integers(0, (1 << 57) // aligned - 1)),
        "dims": draw(st.lists(st.integers(300, 1 << 32), min_size=rank, max_size=rank)),
        "strides": [aligned * draw(st.integers(0, (1 << 40) // aligned - 1)) for _ in range(max(rank - 1, 1))],
        "element_strides": draw(st.lists(st.integers(1, 8), min_size=rank, max_size=rank)),
        "interleave": interleave,
        "swizzle": swizzle,
        "l2_promotion": draw(st.integers(0, 3)),
        "oob_fill": draw(st.integers(0, 1)) if dtype[0] in "fbt" else 0,
    }
    if kind == "tiled":
        made["box"] = [row]
        left = BOX_LIMIT // (row * size)
        for _ in range(rank - 1):
            made["box"].append(draw(st.integers(1, max(min(256, left), 1))))
            left //= made["box"][-1]
        return kind, made
    top = {3: 1 << 15, 4: 1 << 7, 5: 1 << 4}[rank]
    corner = st.lists(st.integers(-min(top, 140), min(top, 140) - 1), min_size=rank - 2, max_size=rank - 2)
    made["pixel_box_lower"], made["pixel_box_upper"] = draw(corner), draw(corner)
    made["channels_per_pixel"] = row
    made["pixels_per_column"] = draw(st.integers(1, min(1024, BOX_LIMIT // (row * size))))
    return kind, made


@given(legal())
def test_legal_maps_round_trip(call: tuple[str, dict[str, Any]]) -> None:
    kind, arguments = call
    made = getattr(TensorMap, kind)(**arguments)
    decoded = TensorMap.decode(made.encode())
    assert decoded == made
    assert decoded.encode() == made.encode()
    assert decoded.explain() == made.explain()
    for name in ("dims", "element_strides", *(("box",) if kind == "tiled" else ("pixel_box_lower", "pixel_box_upper"))):
        assert getattr(decoded, name) == tuple(arguments[name])
    assert decoded.strides == tuple(arguments["strides"] if made.rank > 1 else ())
    assert decoded.address == arguments["array_or_address"]


junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.lists(st.one_of(st.integers(-5, 1 << 41), st.none(), st.floats()), max_size=6),
)


@given(legal(), st.integers(0, 30), junk)
def test_junk_in_any_argument_is_one_error(call: tuple[str, dict[str, Any]], which: int, value: Any) -> None:
    kind, arguments = call
    name = sorted(arguments)[which % len(arguments)]
    try:
        made = getattr(TensorMap, kind)(**{**arguments, name: value})
    except DescriptorError:
        return
    assert TensorMap.decode(made.encode()) == made


@pytest.mark.parametrize(
    "arguments",
    [
        {"dims": [1 << 32, 4096]},
        {"strides": [(1 << 40) - 16]},
        {"strides": [0]},
        {"array_or_address": (1 << 57) - 16},
        {**THREE, "box": [64, 57, 32]},  # 233472 bytes
        {"box": [64, 256], "element_strides": [8, 8]},
        {**THREE, "interleave": "16B", "box": [256, 8, 8], "swizzle": "32B"},
        {**THREE, "interleave": "32B", "swizzle": "none"},
        {"dtype": "16u6_align16b", "box": [128, 8]},
        {"dtype": "16u4_align8b", "box": [128, 8]},
        {"swizzle": "128B_atom_64B", "target": "sm_100a"},
    ],
)
def test_edges_that_are_legal(arguments: dict[str, Any]) -> None:
    made = make(**arguments)
    assert TensorMap.decode(made.encode()) == made


@pytest.mark.parametrize(
    ("name", "number", "driver"),
    [("BF16", 9, "bfloat16"), ("f32", 7, "FLOAT32"), ("s64", 5, "int64"), ("tf32_ftz", 12, "tfloat32_ftz")],
)
def test_names_numbers_and_case(name: str, number: int, driver: str) -> None:
    box = [16, 8]
    assert make(dtype=name, box=box) == make(dtype=number, box=box) == make(dtype=driver, box=box)
    assert make(swizzle="128b") == make(swizzle=3) == make(swizzle="128B") == make(swizzle=np.int32(3))


class Array:
    """Stands for a device array."""

    address = 0x7F1200000000


def test_array_with_address_and_numpy_shapes() -> None:
    shape = np.array([4096, 4096], dtype=np.uint64)
    assert make(array_or_address=Array(), dims=shape) == make()
    assert type(make(dims=shape).dims[0]) is int


bits = st.integers(0, 1023)


@given(st.lists(bits, min_size=1, max_size=3), st.integers(0, 120))
def test_flipped_bits_decode_to_themselves_or_are_refused(flips: list[int], pick: int) -> None:
    seeds = (make(), make(**THREE, interleave=1), make(dtype="tf32", box=[32, 8], oob_fill="nan"), pixels())
    data = int.from_bytes(seeds[pick % 4].encode(), "little")
    for bit in flips:
        data ^= 1 << bit
    raw = data.to_bytes(128, "little")
    try:
        value = TensorMap.decode(raw)
    except DescriptorError:
        return
    assert value.encode() == raw


@pytest.mark.parametrize(
    ("word", "bits", "message"),
    [
        (2, 1 << 1, "reserved bits must be 0, not 1 in word 2 bit 1"),
        (2, 7 << 4, "rank must be an integer from 1 to 5, not 7"),
        (2, 1 << 16, "dtype must be one of 0 (u8)"),
        (2, 1 << 22, "swizzle must be one of 0 (none)"),
        (2, 7 << 23, "reserved bits must be 0, not 1 in word 2 bits 23-25"),
        (15, 1, "reserved bits must be 0, not 1 in word 15 bit 0"),
        (10, 5, "dimension 2 must be 0 beyond rank 2, not 5"),
        (31, 0xFFFFFFFF, "reserved bits must be 0, not 1 in word 31"),
    ],
)
def test_decode_names_what_is_illegal(word: int, bits: int, message: str) -> None:
    words = np.frombuffer(make().encode(), dtype="<u4").copy()
    words[word] |= bits
    with pytest.raises(DescriptorError) as caught:
        TensorMap.decode(words.tobytes())
    assert message in str(caught.value)


@pytest.mark.parametrize("data", [b"", bytes(127), "0" * 128, None, 5])
def test_decode_wants_128_bytes(data: Any) -> None:
    with pytest.raises(DescriptorError, match="a tensormap must be 128 bytes"):
        TensorMap.decode(data)


def test_driver_notes_survive_and_are_remarked() -> None:
    words = np.frombuffer(make().encode(), dtype="<u4").copy()
    words[16] = words[18] = 0  # a map made by tensormap.replace has none
    value = TensorMap.decode(words.tobytes())
    assert value.encode() == words.tobytes()
    assert value.box_bytes == 0
    assert value.derived_box_bytes == 16384
    assert any("the driver's note says 0" in text for text in value.warnings())
    assert value.replace(box=(64, 64)).box_bytes == 8192


def test_box_bytes_round_down() -> None:
    made = make(box=[64, 100], element_strides=[1, 3])
    assert made.box_bytes == 64 * 2 * 33
    assert any("rounds down" in text for text in made.warnings())


def test_explain() -> None:
    text = make().explain()
    assert text.startswith("TensorMap tiled, bf16, box 64 x 128 (innermost first)")
    assert any(
        line.split() == ["word", "14", "bits", "0-7", "box[1]", "0x7f", "128", "elements"] for line in text.splitlines()
    )
    assert "measured: H200, driver 580.159.04" in text
    assert "Blackwell only: inferred" in make(swizzle=4).explain()
    assert "accepts none too" in make(**THREE, interleave=2, swizzle="none").explain()


class _Array:
    """What a map asks of an array."""

    def __init__(self, dtype: str, shape: tuple[int, ...]) -> None:
        self.address, self.dtype, self.shape = 0x1000, np.dtype(dtype), shape
        self.nbytes = math.prod(shape) * self.dtype.itemsize


def test_an_array_of_another_type() -> None:
    """A map of floats takes floats of its type, or unsigned integers."""
    for dtype in ("uint16", "uint8"):
        TensorMap.tiled("bf16", _Array(dtype, (64, 128)), (64, 64), (128,), (64, 8))
    TensorMap.tiled("f16", _Array("float16", (64, 64)), (64, 64), (128,), (64, 8))
    TensorMap.tiled("tf32", _Array("float32", (64, 64)), (64, 64), (256,), (32, 8))
    for map_type, dtype in (("bf16", "float16"), ("f32", "float16"), ("f16", "float32"), ("f32", "float64")):
        with pytest.raises(DescriptorError, match=f"a map of {map_type} takes an array of .* not one of {dtype}"):
            TensorMap.tiled(map_type, _Array(dtype, (64, 64)), (32, 32), (128,), (8, 8))


def test_a_map_larger_than_its_array() -> None:
    TensorMap.tiled("u16", _Array("uint16", (64, 64)), (64, 64), (128,), (64, 8))
    for dims, strides in (((64, 65), (128,)), ((64, 64), (144,)), ((64, 64, 2), (128, 128))):
        with pytest.raises(DescriptorError, match=r"the map reaches \d+ bytes .* has 8192"):
            TensorMap.tiled("u16", _Array("uint16", (64, 64)), dims, strides, (64,) + (1,) * (len(dims) - 1))
