"""Tensormaps against what an H200's driver answered, and each rule against a map that breaks it alone."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxgen.descriptors import DescriptorError, TensorMap

RECORDING = Path(__file__).parents[1] / "data" / "tensormap" / "h200_tiled.jsonl.gz"

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


def recorded() -> list[dict[str, Any]]:
    with gzip.open(RECORDING, "rt") as lines:
        return [json.loads(line) for line in lines]


def from_record(record: dict[str, Any], **more: Any) -> TensorMap:
    return TensorMap.tiled(
        record["data_type"],
        record["address"],
        record["dims"],
        record["strides"],
        record["box"],
        element_strides=record["element_strides"],
        interleave=record["interleave"],
        swizzle=record["swizzle"],
        l2_promotion=record["l2_promotion"],
        oob_fill=record["oob_fill"],
        **more,
    )


def test_every_recorded_call() -> None:
    accepted = refused = 0
    for record in recorded():
        if record["result"]:
            refused += 1
            with pytest.raises(DescriptorError):
                from_record(record, target="sm_90a")
            continue
        accepted += 1
        made = from_record(record, target="sm_90a")
        assert made.encode().hex() == record["bytes"], record
        assert TensorMap.decode(made.encode()) == made
        assert eval(repr(made)) == made
    assert (accepted, refused) == (559, 402)


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
    words = np.frombuffer(make(dims=[4096], strides=[], box=[64], swizzle="none").encode(), dtype="<u4")
    expected = {1: 0x7F12, 2: 0x500, 8: 0xFFF, 13: 0x3F << 24, 16: 128, 18: 16}
    assert {i: int(w) for i, w in enumerate(words) if w} == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dims": []}, "dims must be a sequence of 1 to 5 integers (the rank), not 0"),
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
    seeds = (make(), make(**THREE, interleave=1), make(dtype="tf32", box=[32, 8], oob_fill="nan"))
    data = int.from_bytes(seeds[pick % 3].encode(), "little")
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
        (2, 1, "mode must be 0 (tiled), not 1"),
        (2, 1 << 1, "reserved bits must be 0, not 1 in word 2 bit 1"),
        (2, 7 << 4, "rank must be an integer from 1 to 5, not 7"),
        (2, 1 << 16, "dtype must be one of 0 (u8)"),
        (2, 1 << 19 | 1 << 21, "swizzle must be one of 0 (none)"),
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
