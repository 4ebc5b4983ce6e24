"""Reading any bit pattern field by field, comparing two, and the facts beside them."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ptxgen.descriptors import (
    BlockScaledInstructionDescriptor,
    DescriptorError,
    InstructionDescriptor,
    OperandTile,
    SmemDescriptor,
    TensorAddress,
    TensorMap,
    WgmmaDescriptor,
    ZeroColumnMask,
    facts,
)
from ptxgen.descriptors.instruction import meanings, read_instruction
from ptxgen.descriptors.mma_kinds import KINDS, SCALED_KINDS
from ptxgen.descriptors.reading import diff_dict, diff_text, differences
from tests.support.paths import DOCS

FORMATS: list[tuple[Any, dict[str, Any]]] = [
    (SmemDescriptor, {}),
    (SmemDescriptor, {"use": "scales"}),
    (SmemDescriptor, {"use": "cp", "major": "k"}),
    (SmemDescriptor, {"major": "mn"}),
    (WgmmaDescriptor, {}),
    (ZeroColumnMask, {"m": 32}),
    (TensorAddress, {}),
    *((InstructionDescriptor, {"kind": kind, "cta_group": 2}) for kind in KINDS),
    *((BlockScaledInstructionDescriptor, {"kind": kind}) for kind in SCALED_KINDS),
]


def flipped(seed: int, total: int) -> int:
    """Half of the patterns are sparse, so that some are legal."""
    mask = (1 << total) - 1
    return seed & seed >> total & mask if seed & 1 else seed >> 3 & mask


@given(st.integers(0, (1 << 128) - 1), st.sampled_from(FORMATS))
@example(0x4000404000010040 << 3, FORMATS[0])
def test_a_pattern_is_read_whether_legal_or_not(seed: int, format: tuple[Any, dict[str, Any]]) -> None:
    cls, context = format
    bits = flipped(seed, cls.total_bits)
    reading = cls.read(bits, **context)
    try:
        value = cls.decode(bits, **context)
    except DescriptorError:
        assert reading.problems
        with pytest.raises(DescriptorError) as caught:
            cls.decode(bits, **context)
        assert all(problem in str(caught.value) for problem in reading.problems)
    else:
        assert not reading.problems
        assert value.encode() == bits
        assert reading.text() == value.explain()
    assert json.loads(json.dumps(reading.as_dict()))["legal"] == (not reading.problems)
    # Every bit is shown by some field: the raw numbers put back in place give the pattern.
    shown = 0
    for row in reading.rows:
        spans = [part.split()[-1].split("-") for part in row.bits.split(", ")]
        if row.name == "reserved":
            shown |= bits & cls.reserved_mask
        else:
            shown |= row.raw << int(spans[0][0])
    assert shown == bits


@pytest.mark.parametrize("bits", [-1, 1 << 64, 1 << 5000, 1.5, "1", None, True, b"123456789"])
def test_what_is_no_pattern(bits: Any) -> None:
    with pytest.raises(DescriptorError, match="SmemDescriptor must be an unsigned 64-bit number"):
        SmemDescriptor.read(bits)


@pytest.mark.parametrize("context", [{"use": "tma"}, {"major": "n"}, {"major": 1}, {"use": None}])
def test_what_is_no_context(context: dict[str, Any]) -> None:
    with pytest.raises(DescriptorError, match='must be one of "", '):
        SmemDescriptor.read(1 << 46, **context)


def test_bytes_are_read_little_endian() -> None:
    assert SmemDescriptor.read((0x4000404000010040).to_bytes(8, "little")) == SmemDescriptor.read(0x4000404000010040)


def test_the_words_of_strides_follow_major_and_swizzle() -> None:
    def words(swizzle: str, major: str) -> list[str]:
        value = SmemDescriptor(start_address=0, leading_byte_offset=16, swizzle=swizzle, major=major)
        return [row.meaning for row in SmemDescriptor.read(value.encode(), major=major).rows[1:3]]

    assert words("128B", "k") == ["16 bytes  (LBO: ignored)", "0 bytes  (SBO: between groups of 8 rows)"]
    blocks, groups, chunks = "between row-wide blocks of MN", "between groups of 8 K", "between 16-byte chunks of MN"
    assert words("128B", "mn") == [f"16 bytes  (LBO: {blocks})", f"0 bytes  (SBO: {groups})"]
    assert words("none", "mn") == [f"16 bytes  (LBO: {groups})", f"0 bytes  (SBO: {chunks})"]
    assert "K-major ignored, MN-major between row-wide blocks" in words("64B", "")[0]


@pytest.mark.parametrize(
    ("fields", "warning"),
    [
        ({"leading_byte_offset": 64, "swizzle": "128B"}, "LBO is ignored for swizzled K-major layouts (it counts"),
        ({"leading_byte_offset": 64, "swizzle": "128B", "major": "k"}, "LBO is ignored for swizzled K-major layouts"),
        ({"stride_byte_offset": 512, "swizzle": "128B"}, "SBO 512 steps over less than 1024 bytes"),
        ({"swizzle": "64B", "major": "mn"}, "LBO 0 reads the same 64 bytes of MN again"),
        ({"leading_byte_offset": 16, "stride_byte_offset": 128, "use": "scales"}, "LBO is ignored for scale factors"),
        ({"stride_byte_offset": 256, "use": "scales"}, "SBO is 128 (8 rows of 16 bytes)"),
        ({"swizzle": "128B", "use": "scales"}, "stores scale factors without swizzle"),
    ],
)
def test_warnings_by_use(fields: dict[str, Any], warning: str) -> None:
    assert any(warning in text for text in SmemDescriptor(start_address=0, **fields).warnings())


def test_base_offset_of_wgmma() -> None:
    """CUTLASS include/cute/arch/mma_sm90_desc.hpp: "Valid only for SWIZZLE_128B and SWIZZLE_64B"."""
    for swizzle, count in (("128B", 0), ("64B", 0), ("32B", 1), ("none", 1)):
        assert len(WgmmaDescriptor(start_address=0x400, base_offset=1, swizzle=swizzle).warnings()) == count


def test_no_warning_for_what_mn_major_needs() -> None:
    value = SmemDescriptor(
        start_address=0, leading_byte_offset=8192, stride_byte_offset=1024, swizzle="128B", major="mn", use="mma"
    )
    assert value.warnings() == ()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"lbo_mode": "absolute", "swizzle": "128B", "major": "mn"}, "the operand K-major"),
        ({"lbo_mode": "absolute", "swizzle": "128B", "base_offset": 1}, "base_offset is 0"),
        ({"use": "cp", "major": "mn"}, 'major must be "k" for tcgen05.cp'),
    ],
)
def test_what_the_context_forbids(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DescriptorError, match=message):
        SmemDescriptor(start_address=0, **fields)


def test_differences() -> None:
    first, second = SmemDescriptor.read(0x4000404000010000), SmemDescriptor.read(0x8000402000010040)
    assert [each.name for each in differences(first, second)] == ["start_address", "stride_byte_offset", "swizzle"]
    text = diff_text(first, second)
    assert "3 of 7 fields differ" in text
    assert diff_text(first, first).endswith("the same in every field")
    assert diff_dict(first, second)["differences"][2]["second"]["value"] == "64B"
    # Formats with other fields: what only one has is shown too.
    other = WgmmaDescriptor.read(0x4000004000010000)
    assert {"version", "lbo_mode"} <= {each.name for each in differences(first, other) if each.second is None}


def test_illegal_patterns_in_a_diff() -> None:
    text = diff_text(SmemDescriptor.read(1 << 46), SmemDescriptor.read(3 << 61))
    assert "+ error: bits 46-48 must be 0b1 (fixed), not 0b0" in text
    assert "- error" not in text


def test_all_meanings_of_an_instruction_descriptor() -> None:
    found = {(each.kind, each.cta_group, getattr(each, "ws", False)) for each in meanings(0x08200490)}
    assert ("f16", 1, False) in found
    assert ("f8f6f4", 2, False) in found  # e5m2 by the same codes
    assert not {kind for kind, _, _ in found} & {"tf32", "i8", *SCALED_KINDS}
    assert [each.kind for each in meanings(0x08A00000)] == ["mxf8f6f4", "mxf8f6f4"]
    assert meanings(0x08200490, kind="mxf4") == []
    assert read_instruction(0x08200490, kind="mxf4").problems == ("scale_type must be 1 (ue8m0), not 0",)
    with pytest.raises(DescriptorError, match=r"kind must be one of f16, tf32, f8f6f4, i8, ti16 with .ws"):
        meanings(0, kind="mxf4", ws=True)
    with pytest.raises(DescriptorError, match="kind must be one of f16"):
        meanings(0, kind="f32")


def test_facts_are_named_and_found() -> None:
    names = [each.name for each in facts.FACTS]
    assert len(set(names)) == len(names)
    for wanted in (
        "lbo-scale-factors",
        "sfb-both-ctas",
        "scale-copy-warpx4",
        "tma-and-mma-swizzle-agree",
        "tensormap-bits",
    ):
        assert wanted in names
    assert next(each.name for each in facts.find("warpx4")) == "scale-copy-warpx4"
    both = facts.find("absolute swizzle")
    assert both
    assert set(both) <= set(facts.find("swizzle")) & set(facts.find("absolute"))
    assert set(facts.find("tensor copies")) >= {each for each in facts.FACTS if each.subject == "tensor copies"}
    with pytest.raises(KeyError):
        facts.fact("nothing")


def test_facts_stand_beside_what_they_concern() -> None:
    assert "fact lbo-scale-factors (inferred): " in SmemDescriptor.scale_factors(0).explain()
    pair = BlockScaledInstructionDescriptor(
        a_type="e4m3", b_type="e4m3", m=128, n=64, scale_type="ue8m0", dense_k=32, cta_group=2
    )
    assert "fact sfb-both-ctas" in pair.explain()
    assert "fact sfb-split-m128" in pair.explain()


def test_the_page_of_facts_is_fresh() -> None:
    page = DOCS / "facts.md"
    assert page.read_text() == facts.markdown(), "ptxgen explain facts --markdown > docs/facts.md"


def test_speed() -> None:
    """Decoding and explaining take under 200 µs each on an idle machine; the limit here leaves room for a busy one."""
    tensormap = TensorMap.tiled("bf16", 0, (512, 512), (1024,), (64, 128), swizzle="128B").encode()
    for read in (lambda: SmemDescriptor.read(0x4000404000010000).text(), lambda: TensorMap.read(tensormap).text()):
        best = 1.0
        for _ in range(50):
            began = time.perf_counter()
            read()
            best = min(best, time.perf_counter() - began)
        assert best < 1e-3


JUNK: list[Any] = [None, "", "x", -1, 1 << 70, 1 << 100_000, 1.5, float("nan"), True, [], {}, b"1", object()]


@pytest.mark.parametrize(
    ("cls", "legal"),
    [
        (SmemDescriptor, {"start_address": 0}),
        (WgmmaDescriptor, {"start_address": 0}),
        (InstructionDescriptor, {"d_type": "f32", "a_type": "f16", "b_type": "f16", "m": 128, "n": 64}),
        (
            BlockScaledInstructionDescriptor,
            {"a_type": "e4m3", "b_type": "e4m3", "m": 128, "n": 64, "scale_type": "ue8m0", "dense_k": 32},
        ),
        (ZeroColumnMask, {"skip_span": 1, "use_span": 1}),
        (OperandTile, {"element_bits": 16, "major": "k", "swizzle": "128B", "rows": 8, "k": 64}),
    ],
)
def test_junk_is_one_short_error(cls: Any, legal: dict[str, Any]) -> None:
    names = [*getattr(cls, "contexts", ()), *getattr(cls, "bit_fields", legal)]
    for name in names:
        for junk in JUNK:
            if name in ("ws", "sparse", "saturate", "negate_a", "negate_b", "enabled") or "first_zero" in name:
                if junk is True:
                    continue
            elif junk == "" and name in ("use", "major", "scale_vec"):
                continue
            with pytest.raises(DescriptorError) as caught:
                cls(**{**legal, name: junk})
            assert len(str(caught.value)) < 400
            assert name in str(caught.value)


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: type(junk).__name__)
def test_junk_for_methods(junk: Any) -> None:
    with pytest.raises(DescriptorError):
        ZeroColumnMask(skip_span=1, use_span=1).mask(junk)
    with pytest.raises(DescriptorError):
        OperandTile(element_bits=16, major="k", swizzle="128B", rows=8, k=64).advance(junk)
    with pytest.raises(DescriptorError):
        meanings(junk)
