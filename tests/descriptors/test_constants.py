"""Descriptors that other people published or that compilers wrote: each decodes to something legal and sensible."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ptxgen.descriptors import (
    BlockScaledInstructionDescriptor,
    InstructionDescriptor,
    SmemDescriptor,
    WgmmaDescriptor,
    ZeroColumnMask,
)
from ptxgen.descriptors.instruction import meanings, read_instruction
from tests.support.descriptor_constants import Constant, constants
from tests.support.paths import DATA
from tools.recorded.files import compiled

SWIZZLE_ROW = {"none": 16, "32B": 32, "64B": 64, "128B": 128, "128B_atom_32B": 128}


def recorded() -> list[Constant]:
    lines = [line.split() for line in (DATA / "descriptors.txt").read_text().splitlines() if line[0] != "#"]
    return sorted({Constant(format, opcode, int(bits, 16)) for format, bits, opcode, _ in lines})


def written() -> list[Constant]:
    return sorted({each for path in compiled() for each in constants(path.read_text())})


def test_the_collector_finds_all_formats() -> None:
    assert {each.format for each in written()} == {"smem", "wgmma", "idesc"}
    assert len(recorded()) > 60


@pytest.mark.parametrize("found", [*recorded(), *written()], ids=lambda each: f"{each.format} {each.bits:#x}")
def test_what_compilers_wrote(found: Constant) -> None:
    if found.format == "idesc":
        check_instruction(found)
        return
    value: SmemDescriptor | WgmmaDescriptor
    if found.format == "wgmma":
        value = WgmmaDescriptor.decode(found.bits)
    else:
        value = SmemDescriptor.decode(found.bits, use="scales" if "tcgen05.cp" in found.opcode else "mma")
    assert value.encode() == found.bits
    # The address is not constant (or only what is added to it), so warnings about it do not count.
    assert not [text for text in value.replace(start_address=0).warnings() if "LBO" not in text]
    row = SWIZZLE_ROW[value.swizzle]
    if "tcgen05.cp" in found.opcode:
        assert (value.swizzle, value.stride_byte_offset, value.leading_byte_offset) == ("none", 128, 0)
    else:
        assert value.stride_byte_offset >= 8 * row, "groups of eight rows do not overlap"
        assert value.stride_byte_offset % (8 * row) == 0


def check_instruction(found: Constant) -> None:
    opcode = found.opcode
    kind = re.search(r"kind::(\w+)", opcode)[1]  # type: ignore[index]
    group = int(re.search(r"cta_group::(\d)", opcode)[1])  # type: ignore[index]
    scale = re.search(r"scale_vec::(\w+)|(block\d\d)", opcode)
    (value,) = meanings(
        found.bits,
        kind=kind,
        cta_group=group,
        ws=False if not scale else None,
        scale_vec=(scale[1] or scale[2]) if scale else "",
    )
    assert value.encode() == found.bits
    assert value.kind == kind
    assert value.m == 128 * group or value.m == 64
    assert value.n in (32, 64, 128, 256)
    assert not value.warnings()


#: CUTLASS include/cute/arch/mma_sm100_desc.hpp and mma_sm90_desc.hpp: bit positions of the unions, as numbers.
CUTLASS_SMEM = {
    "start_address": (0, 14),
    "leading_byte_offset": (16, 14),
    "stride_byte_offset": (32, 14),
    "version": (46, 2),
    "base_offset": (49, 3),
    "lbo_mode": (52, 1),
    "swizzle": (61, 3),
}
CUTLASS_GMMA = {
    "start_address": (0, 14),
    "leading_byte_offset": (16, 14),
    "stride_byte_offset": (32, 14),
    "base_offset": (49, 3),
    "swizzle": (62, 2),
}
CUTLASS_INSTR = {
    "sparsity_selector": (0, 2),
    "sparse": (2, 1),
    "saturate": (3, 1),
    "d_type": (4, 2),
    "a_type": (7, 3),
    "b_type": (10, 3),
    "negate_a": (13, 1),
    "negate_b": (14, 1),
    "a_major": (15, 1),
    "b_major": (16, 1),
    "n": (17, 6),
    "m": (24, 5),
    "max_shift": (30, 2),
}
#: InstrDescriptorBlockScaled; M is M >> 4 in 5 bits there, which is our M >> 7 three bits further up.
CUTLASS_SCALED = {
    "sparse": (2, 1),
    "sfb_id": (4, 2),
    "a_type": (7, 3),
    "b_type": (10, 3),
    "negate_a": (13, 1),
    "negate_b": (14, 1),
    "a_major": (15, 1),
    "b_major": (16, 1),
    "n": (17, 6),
    "scale_type": (23, 1),
    "m": (27, 2),
    "sfa_id": (29, 2),
    "dense_k": (31, 1),
}
CUTLASS_MASK = {
    **{f"start_count_{i}": (8 * i, 8) for i in range(4)},
    **{f"first_zero_{i}": (32 + i, 1) for i in range(4)},
    "enabled": (39, 1),
    "skip_span": (40, 8),
    "use_span": (48, 8),
    "column_shift": (56, 6),
}


#: Fields of sm_107 alone (PTX ISA 9.4), which CUTLASS does not have.
NEWER = {"wide_k", "sfa_lanes"}


@pytest.mark.parametrize(
    ("format", "places"),
    [
        (SmemDescriptor, CUTLASS_SMEM),
        (WgmmaDescriptor, CUTLASS_GMMA),
        (InstructionDescriptor, CUTLASS_INSTR),
        (BlockScaledInstructionDescriptor, CUTLASS_SCALED),
        (ZeroColumnMask, CUTLASS_MASK),
    ],
)
def test_the_bit_fields_are_those_of_cutlass(format: Any, places: dict[str, tuple[int, int]]) -> None:
    ours = {name: (field.items[0][0][0], field.width()) for name, field in format.bit_fields.items()}
    ours |= {name: (c.low, 2 if name == "version" else c.high - c.low + 1) for name, c in format.constants.items()}
    assert {name: place for name, place in ours.items() if name not in NEWER} == places


#: LayoutType of both generations in CUTLASS, S8Format, F16F32Format, MXF8F6F4Format, MXF4Format, ScaleFormat, CFormat.
def test_the_codes_are_those_of_cutlass() -> None:
    assert SmemDescriptor.bit_fields["swizzle"].values == {"none": 0, "128B_atom_32B": 1, "128B": 2, "64B": 4, "32B": 6}
    assert WgmmaDescriptor.bit_fields["swizzle"].values == {"none": 0, "128B": 1, "64B": 2, "32B": 3}
    types = InstructionDescriptor.bit_fields["a_type"].values
    assert types is not None
    assert dict(types["i8"]) == {"u8": 0, "s8": 1}
    assert dict(types["f16"]) | dict(types["tf32"]) == {"f16": 0, "bf16": 1, "tf32": 2}
    assert dict(types["f8f6f4"]) == {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
    scaled = BlockScaledInstructionDescriptor.bit_fields
    assert scaled["a_type"].values is not None
    assert scaled["scale_type"].values is not None
    assert dict(scaled["a_type"].values["mxf4"]) == {"e2m1": 1}
    assert dict(scaled["scale_type"].values["mxf4nvf4"]) == {"ue4m3": 0, "ue8m0": 1}


#: Published constants: who wrote them, the bits, and what the writer says they are.
@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        # PTX ISA 9.7.16.3.3, figures 188 to 192: LBO >> 4 and SBO >> 4 as printed there.
        (SmemDescriptor(start_address=0, leading_byte_offset=64 * 4, stride_byte_offset=32 * 4), (16, 8)),
        (SmemDescriptor(start_address=0, leading_byte_offset=128 * 2, stride_byte_offset=64 * 2), (16, 8)),
        (
            SmemDescriptor(start_address=0, leading_byte_offset=16, stride_byte_offset=64 * 4, swizzle="32B"),
            (1, 16),
        ),
        (
            SmemDescriptor(start_address=0, leading_byte_offset=128 * 2, stride_byte_offset=256 * 2, swizzle="32B"),
            (16, 32),
        ),
        (
            SmemDescriptor(start_address=0, leading_byte_offset=256 * 2, stride_byte_offset=512 * 2, swizzle="64B"),
            (32, 64),
        ),
    ],
)
def test_the_manuals_examples(bits: SmemDescriptor, expected: tuple[int, int]) -> None:
    assert (bits.encode() >> 16 & 0x3FFF, bits.encode() >> 32 & 0x3FFF) == expected


def test_constants_in_tutorials_and_libraries() -> None:
    # gau-nernst/learn-cuda 02e_matmul_sm100: (8 * 16 or 8 * 128) >> 4 at 32, 1 << 46, 2 << 61 for 128-byte swizzle.
    value = SmemDescriptor.decode((8 * 128 >> 4) << 32 | 1 << 46 | 2 << 61)
    assert (value.swizzle, value.stride_byte_offset) == ("128B", 1024)
    # DeepGEMM make_sf_desc: SWIZZLE_NONE, stride 8 * 16 bytes, leading offset 0.
    assert SmemDescriptor.scale_factors(0).encode() == (8 * 16 >> 4) << 32 | 1 << 46
    assert SmemDescriptor.scale_factors(0x1000).warnings() == ()
    # PTX ISA 9.7.16.4.2 by hand: bf16 × bf16 → f32, M 128, N 256 (also what CuTe DSL prints for it).
    assert InstructionDescriptor.decode(0x08400490).m == 128
    assert InstructionDescriptor.decode(0x08400490).n == 256
    nvf4 = read_instruction(0x08200480, kind="mxf4nvf4", cta_group=1)
    assert not nvf4.problems
    assert {row.name: row.value for row in nvf4.rows}["scale_type"] == "ue4m3"


def columns(*parts: tuple[int, int], n: int) -> int:
    """A mask that repeats (bit, count) pairs up to n bits, lowest first."""
    bits: list[int] = []
    while len(bits) < n:
        for bit, count in parts:
            bits += [bit] * count
    return sum(bit << i for i, bit in enumerate(bits[:n]))


#: The worked examples of PTX ISA 9.7.16.4.3, for N 64: skip span 2 and use span 3 mean 3 zero and 4 used columns.
def test_zero_column_masks_of_the_manual() -> None:
    spans: dict[str, Any] = {"skip_span": 3, "use_span": 4}
    assert ZeroColumnMask(m=128, enabled=False, skip_span=5, use_span=4).mask(64) == 0
    assert ZeroColumnMask(m=128, **spans).mask(64) == columns((0, 4), (1, 3), n=64)
    two = ZeroColumnMask(m=64, first_zero_0=True, **spans).mask(64)
    assert (two & 0xFFFFFFFF, two >> 32) == (columns((1, 3), (0, 4), n=32), columns((0, 4), (1, 3), n=32))
    four = ZeroColumnMask(
        m=32,
        start_count_0=0,
        start_count_1=1,
        start_count_2=2,
        start_count_3=1,
        first_zero_0=True,
        first_zero_1=True,
        column_shift=2,
        **spans,
    ).mask(64)
    parts = [four >> 16 * i & 0xFFFF for i in range(4)]
    assert parts[0] == 0b11_0000_111_0000_111
    assert parts[1] == 0b111_0000_111_0000_11
    assert parts[2] == 0b0000_111_0000_111_00
    assert parts[3] == 0b000_111_0000_111_000
