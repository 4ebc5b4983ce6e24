"""Properties of GEMM element types beyond `ptxgen.dtypes`: name in a tensormap, kind of MMA, significand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxgen.dtypes import DTYPES, scalar_type


@dataclass(frozen=True)
class ElementType:
    """One type. `kind` is tcgen05.mma's; empty: only for C. `digits`: significand bits, the hidden one included.

    `smallest` is the exponent of the smallest normal number; both are 0 for integers.
    """

    name: str
    tensormap: str
    kind: str = ""
    digits: int = 0
    smallest: int = 0

    @property
    def bytes(self) -> int:
        return DTYPES[self.name].bytes

    @property
    def bits(self) -> int:
        """Width in global memory: 4 and 6 for the types of less than a byte."""
        return DTYPES[self.name].bits

    @property
    def numpy(self) -> np.dtype[Any]:
        return np.dtype(scalar_type(self.name))

    @property
    def is_integer(self) -> bool:
        return self.digits == 0


TYPES: dict[str, ElementType] = {
    each.name: each
    for each in (
        ElementType("bf16", "bf16", "f16", 8, -126),
        ElementType("f16", "f16", "f16", 11, -14),
        ElementType("tf32", "f32", "tf32", 11, -126),
        ElementType("e4m3", "u8", "f8f6f4", 4, -6),
        ElementType("e5m2", "u8", "f8f6f4", 3, -14),
        ElementType("e3m2", "16u6_align16b", "f8f6f4", 3, -2),
        ElementType("e2m3", "16u6_align16b", "f8f6f4", 4, 0),
        ElementType("e2m1", "16u4_align16b", "f8f6f4", 2, 0),
        ElementType("s8", "u8", "i8"),
        ElementType("u8", "u8", "i8"),
        ElementType("f32", "f32", "", 24, -126),
        ElementType("s32", "s32"),
    )
}
#: Other common names of the types.
ALIASES = {"fp16": "f16", "fp32": "f32", "int8": "s8", "uint8": "u8", "int32": "s32", "fp8": "e4m3", "fp4": "e2m1"}
INPUTS = tuple(name for name, each in TYPES.items() if each.kind)
#: Input types of kernels without scales, and of block-scaled kernels.
PLAIN_INPUTS = tuple(name for name in INPUTS if TYPES[name].bits >= 8)
SCALED_INPUTS = tuple(name for name in INPUTS if TYPES[name].kind == "f8f6f4")
OUTPUTS = ("bf16", "f16", "f32", "s32")
#: Types of a C that has a ue8m0 scale for every 32 columns.
QUANTIZED_OUTPUTS = ("e4m3", "e5m2")
