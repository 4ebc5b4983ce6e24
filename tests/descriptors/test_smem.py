"""Shared-memory matrix descriptors against golden values, the bit tables of the manual, and each refusal."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxgen.descriptors import DescriptorError, SmemDescriptor, WgmmaDescriptor
from ptxgen.layouts.swizzle import SWIZZLES

TCGEN05_CODES = {"none": 0, "128B_atom_32B": 1, "128B": 2, "64B": 4, "32B": 6}
WGMMA_CODES = {"none": 0, "128B": 1, "64B": 2, "32B": 3}

units = st.integers(0, (1 << 14) - 1)


def by_hand(start: int, lbo: int, sbo: int, base: int, swizzle: int, low: int, fixed: int) -> int:
    """Place the fields as the manual's table lists them."""
    return start >> 4 | (lbo >> 4) << 16 | (sbo >> 4) << 32 | fixed << 46 | base << 49 | swizzle << low


def test_golden_values() -> None:
    fields = {
        "start_address": 0x400,
        "leading_byte_offset": 16,
        "stride_byte_offset": 1024,
        "swizzle": "128B",
    }
    assert SmemDescriptor(**fields).encode() == 0x4000404000010040
    assert WgmmaDescriptor(**fields).encode() == 0x4000004000010040


@given(units, units, units, st.integers(0, 7), st.sampled_from(sorted(TCGEN05_CODES)))
def test_tcgen05_round_trip_and_bits(start: int, lbo: int, sbo: int, base: int, swizzle: str) -> None:
    value = SmemDescriptor(
        start_address=start * 16,
        leading_byte_offset=lbo * 16,
        stride_byte_offset=sbo * 16,
        base_offset=base,
        swizzle=swizzle,
    )
    assert value.encode() == by_hand(start * 16, lbo * 16, sbo * 16, base, TCGEN05_CODES[swizzle], 61, 1)
    assert SmemDescriptor.decode(value.encode()) == value
    assert eval(repr(value)) == value


@given(units, units, units, st.integers(0, 7), st.sampled_from(sorted(WGMMA_CODES)))
def test_wgmma_round_trip_and_bits(start: int, lbo: int, sbo: int, base: int, swizzle: str) -> None:
    value = WgmmaDescriptor(
        start_address=start * 16,
        leading_byte_offset=lbo * 16,
        stride_byte_offset=sbo * 16,
        base_offset=base,
        swizzle=swizzle,
    )
    assert value.encode() == by_hand(start * 16, lbo * 16, sbo * 16, base, WGMMA_CODES[swizzle], 62, 0)
    assert WgmmaDescriptor.decode(value.encode()) == value
    assert eval(repr(value)) == value


@given(units, units, st.sampled_from(["", "mma", "cp", "scales"]), st.sampled_from(["", "k"]))
def test_absolute_lbo_and_facts_that_are_not_encoded(start: int, lbo: int, use: str, major: str) -> None:
    fields = {"start_address": start * 16, "leading_byte_offset": lbo * 16, "stride_byte_offset": 1024}
    value = SmemDescriptor(**fields, lbo_mode="absolute", swizzle="128B", use=use, major=major)  # type: ignore[arg-type]
    assert value.encode() == by_hand(start * 16, lbo * 16, 1024, 0, 2, 61, 1) | 1 << 52
    assert SmemDescriptor.decode(value.encode(), use=use, major=major) == value
    assert eval(repr(value)) == value


@given(st.integers(0, (1 << 64) - 1))
def test_what_decodes_encodes_back(bits: int) -> None:
    for format in (SmemDescriptor, WgmmaDescriptor):
        try:
            value = format.decode(bits)
        except DescriptorError:
            continue
        assert value.encode() == bits


def test_absolute_lbo() -> None:
    value = SmemDescriptor(start_address=0, leading_byte_offset=0x800, lbo_mode="absolute", swizzle="128B")
    assert value.encode() >> 52 & 1 == 1
    assert any("sm_103a" in text for text in value.warnings())
    with pytest.raises(DescriptorError, match='lbo_mode must be "relative" unless swizzle is "128B"'):
        SmemDescriptor(start_address=0, lbo_mode="absolute", swizzle="64B")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"start_address": 8},
            "start_address must be a multiple of 16 from 0 to 233456 bytes (shared memory has 228 KiB), not 8",
        ),
        (
            {"start_address": 1 << 18},
            "start_address must be a multiple of 16 from 0 to 233456 bytes (shared memory has 228 KiB), not 262144",
        ),
        (
            {"start_address": -16},
            "start_address must be a multiple of 16 from 0 to 233456 bytes (shared memory has 228 KiB), not -16",
        ),
        ({"start_address": True}, "not True (a bool)"),
        ({"start_address": np.True_}, "(a bool)"),
        ({"start_address": 16.0}, "not 16.0 (a float)"),
        ({"start_address": "16"}, "not '16'"),
        ({"start_address": None}, "not None (a NoneType)"),
        ({"start_address": 1 << 100_000}, "not a number of 100001 bits"),
        (
            {"leading_byte_offset": 4},
            "leading_byte_offset must be a multiple of 16 from 0 to 262128 bytes, not 4",
        ),
        (
            {"stride_byte_offset": 1025},
            "stride_byte_offset must be a multiple of 16 from 0 to 262128 bytes, not 1025",
        ),
        ({"base_offset": 8}, "base_offset must be an integer from 0 to 7, not 8"),
        ({"swizzle": "96B"}, "swizzle must be one of none, 128B_atom_32B, 128B, 64B, 32B, not '96B'"),
        ({"swizzle": 2}, "not 2"),
        ({"lbo_mode": "near"}, "lbo_mode must be relative or absolute, not 'near'"),
    ],
)
def test_refusals(fields: dict[str, object], message: str) -> None:
    with pytest.raises(DescriptorError) as caught:
        SmemDescriptor(**{"start_address": 0, **fields})  # type: ignore[arg-type]
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("bits", "message"),
    [
        (0, "bits 46-48 must be 0b1 (fixed), not 0b0"),
        (1 << 46 | 1 << 14, "reserved bits must be 0, not 1 in bit 14"),
        (1 << 46 | 0xFF << 53, "reserved bits must be 0, not 1 in bits 53-60"),
        (1 << 46 | 3 << 61, "swizzle must be one of 0 (none)"),
        (1 << 64, "SmemDescriptor must be an unsigned 64-bit number"),
        (-1, "not -1"),
        (False, "not False (a bool)"),
    ],
)
def test_illegal_patterns(bits: int, message: str) -> None:
    with pytest.raises(DescriptorError) as caught:
        SmemDescriptor.decode(bits)
    assert message in str(caught.value)


def test_wgmma_has_no_tcgen05_swizzle_and_no_version() -> None:
    with pytest.raises(DescriptorError, match="swizzle must be one of none, 128B, 64B, 32B"):
        WgmmaDescriptor(start_address=0, swizzle="128B_atom_32B")
    with pytest.raises(DescriptorError, match="bit 46"):
        WgmmaDescriptor.decode(1 << 46)


def test_numpy_integers_become_ints() -> None:
    value = SmemDescriptor(start_address=np.uint32(64), swizzle="128b")  # type: ignore[arg-type]
    assert type(value.start_address) is int
    assert value.swizzle == "128B"
    assert hash(value) == hash(SmemDescriptor(start_address=64, swizzle="128B"))


def test_frozen() -> None:
    with pytest.raises(AttributeError):
        SmemDescriptor(start_address=0).start_address = 16  # type: ignore[misc]
    assert SmemDescriptor(start_address=0).replace(start_address=16).encode() & 0x3FFF == 1
    with pytest.raises(DescriptorError):
        SmemDescriptor(start_address=0).replace(start_address=15)


def test_explain() -> None:
    text = SmemDescriptor(start_address=0x480, leading_byte_offset=64, swizzle="128B").explain()
    lines = text.splitlines()
    assert lines[0].startswith("SmemDescriptor 0x40004000000")
    assert any(line.split()[:4] == ["bits", "0-13", "start_address", "0x48"] for line in lines)
    assert "warning: LBO is ignored for swizzled K-major layouts (it counts for MN-major ones)" in lines
    assert any("128 bytes past a 1024-byte pattern boundary" in line for line in lines)
    assert any("base_offset: measured: H200" in line for line in lines)
    plain = WgmmaDescriptor(start_address=0x400, leading_byte_offset=128)
    assert plain.warnings() == ()


def test_swizzle_names_are_those_of_the_layouts() -> None:
    assert set(TCGEN05_CODES) | set(WGMMA_CODES) <= set(SWIZZLES)


@pytest.mark.parametrize(
    ("lbo", "sbo", "swizzle", "major", "named"),
    [
        (16, 1024, "128B", "k", ()), (16, 512, "64B", "k", ()), (0, 4096, "128B", "k", ()),
        (8192, 1024, "128B", "mn", ()), (1024, 4096, "128B", "mn", ()), (2048, 128, "none", "k", ()),
        (128, 2048, "none", "k", ()), (0, 128, "none", "", ()), (4096, 512, "128B_atom_32B", "mn", ()),
        (16 * 16, 1024 * 16, "128B", "k", ("SBO",)), (0, 512 * 16, "64B", "k", ("SBO",)),
        (0, 256 * 16, "32B", "", ("SBO",)), (8192 * 16, 1024 * 16, "128B", "mn", ("LBO", "SBO")),
        (2048 * 16, 128 * 16, "none", "k", ("LBO", "SBO")), (128 * 16, 256 * 16, "none", "mn", ("LBO", "SBO")),
        (0, 512 * 16, "128B_atom_32B", "mn", ("SBO",)), (8192 * 16, 1024, "128B", "mn", ("LBO",)),
        (8192 * 16, 1024, "128B", "k", ()), (32768, 1024, "128B", "mn", ()),
    ],
)  # fmt: skip
def test_offsets_in_bytes_are_noticed(lbo: int, sbo: int, swizzle: str, major: str, named: tuple[str, ...]) -> None:
    """A field that has the byte offset of a compact tile; offsets of tiles that kernels use say nothing."""
    made = SmemDescriptor(
        start_address=0, leading_byte_offset=lbo, stride_byte_offset=sbo, swizzle=swizzle, major=major
    )
    found = [each for each in made.warnings() if "units of 16 bytes" in each]
    assert [each.split()[0] for each in found] == list(named)
    for each in found:
        size = lbo if each.startswith("LBO") else sbo
        assert each.endswith(
            f"if {size // 16} bytes were meant, the field must be {size // 256}, in units of 16 bytes, not {size // 16}"
        )


def test_an_address_in_bytes_that_passes_its_field_is_named() -> None:
    (problem,) = SmemDescriptor.read(1 << 46 | 2 << 61 | 64 << 32 | 0x4400).problems
    assert problem.endswith(": fields take units of 16 bytes; was the start address 0x4400 written in bytes?")
    (problem,) = SmemDescriptor.read(1 << 46 | 0x8000 << 16 | 64).problems
    assert problem.endswith("was LBO 0x8000 written in bytes?")
    (problem,) = SmemDescriptor.read(1 << 46 | 0x4001).problems
    assert "bytes" not in problem


def test_offsets_in_bytes_are_noticed_beside_missing_fixed_bits() -> None:
    for bits in (1024 << 32 | 2 << 61 | 64, 1 << 46 | 1 << 15 | 1024 << 32 | 2 << 61 | 64):
        reading = SmemDescriptor.read(bits)
        assert len(reading.problems) == 1
        assert [each.split(":")[0] for each in reading.warnings] == ["SBO is 16384 bytes"]


@pytest.mark.parametrize(
    ("format", "sbo", "swizzle", "asked"),
    [
        (SmemDescriptor, 1024, "64B", "128B"), (SmemDescriptor, 512, "32B", "64B"),
        (SmemDescriptor, 1024, "32B", "128B"),
        (WgmmaDescriptor, 1024, "64B", "128B"), (WgmmaDescriptor, 1024, "32B", "128B"),
        (SmemDescriptor, 1024, "128B", ""), (SmemDescriptor, 512, "64B", ""), (SmemDescriptor, 2048, "64B", ""),
        (WgmmaDescriptor, 256, "32B", ""), (SmemDescriptor, 1024, "none", ""),
        (SmemDescriptor, 512, "128B_atom_32B", ""),
    ],
)  # fmt: skip
def test_the_offset_of_another_swizzle_is_noticed(
    format: type[SmemDescriptor | WgmmaDescriptor], sbo: int, swizzle: str, asked: str
) -> None:
    """A compact tile has 8 rows of the swizzle between its groups: 1024, 512 and 256 bytes for 128B, 64B and 32B."""
    notes = format.read(format(start_address=0, stride_byte_offset=sbo, swizzle=swizzle).encode()).notes
    assert [each for each in notes if "was the swizzle" in each] == (
        [f"SBO is {int(swizzle[:-1]) * 8} bytes in a compact {swizzle} tile; {sbo} is that of {asked}: "
         f"was the swizzle meant to be {asked}?"] if asked else []
    )  # fmt: skip


def test_the_swizzle_of_a_tensormap_is_named() -> None:
    (problem,) = SmemDescriptor.read(1 << 46 | 3 << 61 | 64 << 32 | 64).problems
    assert problem.endswith("not 3; a tensormap's code of 128B is 3, a descriptor's is 2")
