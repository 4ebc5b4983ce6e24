"""The range that a message names is the rule's, not that of the encoding: its ends and names are legal themselves."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ptxgen.descriptors import (
    BlockScaledInstructionDescriptor,
    DescriptorError,
    InstructionDescriptor,
    SmemDescriptor,
    WgmmaDescriptor,
    ZeroColumnMask,
)
from ptxgen.descriptors.tensormap import TensorMap

_PLAIN = {"d_type": "f32", "a_type": "f16", "b_type": "f16", "m": 128, "n": 128}
_FP8 = {"kind": "f8f6f4", "d_type": "f32", "a_type": "e4m3", "b_type": "e5m2", "m": 128, "n": 128}
_FP4 = {"a_type": "e2m1", "b_type": "e2m1", "m": 128, "n": 128, "dense_k": 64}
VALUES: dict[str, Any] = {
    "smem": SmemDescriptor(start_address=0x400, stride_byte_offset=1024, swizzle="128B"),
    "wgmma": WgmmaDescriptor(start_address=0x400, stride_byte_offset=1024, swizzle="64B"),
    "f16": InstructionDescriptor(**_PLAIN),
    "f16 of a pair": InstructionDescriptor(**_PLAIN, cta_group=2),
    "ws": InstructionDescriptor(**_PLAIN, ws=True),
    "tf32": InstructionDescriptor(**{**_PLAIN, "kind": "tf32", "a_type": "tf32", "b_type": "tf32"}),
    "f8f6f4": InstructionDescriptor(**_FP8),
    "f8f6f4 with MN-major B": InstructionDescriptor(**_FP8, b_major="mn"),
    "f8f6f4 at K 64": InstructionDescriptor(**_FP8, wide_k=True),
    "i8": InstructionDescriptor(**{**_PLAIN, "kind": "i8", "d_type": "s32", "a_type": "s8", "b_type": "u8"}),
    "ti16": InstructionDescriptor(
        **{**_PLAIN, "kind": "ti16", "d_type": "s32", "a_type": "s1z4m11", "b_type": "s1z4m11"}
    ),
    "mxf8f6f4": BlockScaledInstructionDescriptor(
        a_type="e4m3", b_type="e2m1", scale_type="ue8m0", m=128, n=128, dense_k=32
    ),
    "mxf8f6f4 at K 64": BlockScaledInstructionDescriptor(
        a_type="e4m3", b_type="e5m2", scale_type="ue8m0", m=128, n=128, dense_k=64
    ),
    "mxf4": BlockScaledInstructionDescriptor(**_FP4, kind="mxf4", scale_type="ue8m0"),
    "mxf4 at K 128": BlockScaledInstructionDescriptor(**_FP4, kind="mxf4", scale_type="ue8m0", wide_k=True),
    "mxf4nvf4 4X": BlockScaledInstructionDescriptor(**_FP4, kind="mxf4nvf4", scale_type="ue4m3", scale_vec="4X"),
    "mxf4nvf4 2X": BlockScaledInstructionDescriptor(**_FP4, kind="mxf4nvf4", scale_type="ue8m0", scale_vec="2X"),
    "mxf4nvf4 at K 96": BlockScaledInstructionDescriptor(
        **{**_FP4, "dense_k": 96}, kind="mxf4nvf4", scale_type="ue4m3", scale_vec="4X"
    ),
    "mxf4nvf4, sparse, of a pair": BlockScaledInstructionDescriptor(
        **{**_FP4, "m": 256}, kind="mxf4nvf4", scale_type="ue4m3", scale_vec="4X", sparse=True, cta_group=2
    ),
    "mask": ZeroColumnMask(skip_span=4, use_span=4),
    "mask of M 32": ZeroColumnMask(m=32, skip_span=4, use_span=4),
    "tiled map": TensorMap.tiled("bf16", 0x7F0000000000, (512, 512), (1024,), (64, 8), swizzle="128B"),
}
ILLEGAL = (-1, 1000, 1 << 18, 1 << 60, "x")
#: Types, which other fields narrow with messages of their own, and what of a map the driver's names decide.
_SKIPPED = {"address", "a_type", "b_type", "d_type", "rank", "mode", "dtype", "swizzle", "oob_fill", "interleave"}


def _named(message: str) -> list[Any]:
    """The ends of a range, or the names of a list, in `NAME must be RULE, not VALUE`."""
    rule = message.partition(" must be ")[2].rpartition(", not ")[0]
    ends = re.search(r"(?:from )?(\d+) to (\d+)", rule)
    listed = re.match(r"(?:one of )?(\w+(?:(?:, | or )(?!a )\w+)*)", rule)
    assert listed is not None, message
    names = [] if rule.startswith("a") else re.split(r", | or ", listed[1])
    return [int(each) if each.isdigit() else each for each in (*names, *(ends.groups() if ends else ()))]


@pytest.mark.parametrize("what", VALUES)
def test_what_a_message_calls_legal_is_legal(what: str) -> None:
    value = VALUES[what]
    wrong, seen = [], 0
    for name, declared in value.bit_fields.items():
        if declared.flag or declared.length or name in _SKIPPED:
            continue
        for illegal in ILLEGAL:
            try:
                value.replace(**{name: illegal})
            except DescriptorError as error:
                message = str(error)
            else:
                continue
            assert message.startswith(f"{name} must be "), message
            for each in _named(message):
                seen += 1
                try:
                    made = value.replace(**{name: each})
                except DescriptorError as error:
                    wrong.append(f"{message}: but {error}")
                else:
                    wrong += [f"{message}: but {each} warns {text}" for text in made.warnings() if "must be" in text]
    assert not wrong, "\n".join(wrong)
    assert seen > 5


def test_ids_of_scale_factors_name_their_rule() -> None:
    with pytest.raises(
        DescriptorError, match=r"sfa_id must be 0 or 2 for kind::mxf4 with scale_vec::2X at K 64, not 4"
    ):
        VALUES["mxf4"].replace(sfa_id=4)
    with pytest.raises(DescriptorError, match=r"sfb_id must be 0 for kind::mxf4nvf4 with scale_vec::4X at K 64, not 7"):
        VALUES["mxf4nvf4 4X"].replace(sfb_id=7)
    with pytest.raises(DescriptorError, match=r"sfa_id must be 0 or 2 for .* at K 96, not -1"):
        VALUES["mxf4nvf4 at K 96"].replace(sfa_id=-1)


@pytest.mark.parametrize("made", [VALUES["smem"], VALUES["wgmma"], SmemDescriptor.scale_factors(0)])
def test_a_start_address_beyond_shared_memory_is_remarked(made: SmemDescriptor | WgmmaDescriptor) -> None:
    """Its 14 bits reach 256 KiB, and shared memory has 228 KiB."""
    (remark,) = set(made.replace(start_address=262128).warnings()) - set(made.warnings())
    rule = "start_address must be a multiple of 16 from 0 to 233456 bytes (shared memory has 228 KiB), not 262128"
    assert remark == rule
    assert made.replace(start_address=233456).warnings() == made.warnings()
