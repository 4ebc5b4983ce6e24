"""Element types of tensormaps under MMAs of other types."""

from __future__ import annotations

import pytest

from ptxgen.descriptors import WgmmaDescriptor
from ptxgen.emulator.checks.shared.operand_types import misfit
from ptxgen.emulator.engines.matrix_operands import matrix_operand


@pytest.mark.parametrize(
    ("dtype", "type", "fits"),
    [
        ("bf16", "bf16", True),
        ("bf16", "f16", False),
        ("f16", "e4m3", False),
        ("tf32", "tf32", True),
        ("tf32_ftz", "bf16", False),
        ("f32", "tf32", True),
        ("u8", "e4m3", True),
        ("u8", "e2m1", True),
        ("u16", "bf16", True),
        ("u32", "tf32", True),
        ("16u4_align8b", "e2m1", True),
        ("16u4_align16b", "e2m1", True),
        ("16u4_align16b", "e4m3", False),
        ("16u6_align16b", "e3m2", True),
        ("16u6_align16b", "e2m1", False),
    ],
)
def test_types(dtype: str, type: str, fits: bool) -> None:
    descriptor = WgmmaDescriptor(start_address=1024, stride_byte_offset=1024, swizzle="128B")
    operand = matrix_operand("B", "tcgen05", descriptor, "k", 64, 32, 16, type)
    found = misfit(dtype, operand)
    assert (found is None) == fits
    if found is not None:
        assert found[0] == f"b_type (bits 10-12 of the instruction descriptor) is {type}, the tensormap has {dtype}"
