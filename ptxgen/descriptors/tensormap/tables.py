"""The names and codes in a tensormap: element types, interleaving, swizzles, L2 promotion, fill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ptxgen.descriptors.errors import as_int, choices, refuse
from ptxgen.dtypes import DTYPES, DType


@dataclass(frozen=True, slots=True)
class TmaType:
    """One element type: its code in the map (bit 4: tf32), and what an element is in global memory.

    Packed types come sixteen at a time: the bits of `element` each in global memory, and padded to `padded_bits` in
    shared memory.
    """

    code: int
    element: DType
    packed: bool = False
    padded_bits: int = 0

    @property
    def bits(self) -> int:
        """Bits of an element in shared memory."""
        return self.padded_bits or self.element.bits

    @property
    def floating(self) -> bool:
        """Whether the elements are floats."""
        return self.element.kind == "float"

    @property
    def padded(self) -> bool:
        """Whether sixteen values take 16 bytes of shared memory, part of them a gap."""
        return self.padded_bits > 0

    @property
    def packed_bits(self) -> int:
        """Bits of an element of a packed type in global memory, else 0."""
        return self.element.bits if self.packed else 0

    @property
    def global_bits(self) -> int:
        """Bits of an element in global memory."""
        return self.element.bits


_SIX_BITS = DType("b6", "bits", 6)
TYPES: dict[str, TmaType] = {
    **{name: TmaType(code, DTYPES[name]) for code, name in enumerate(("u8", "u16", "u32", "s32", "u64", "s64"))},
    "f16": TmaType(6, DTYPES["f16"]),
    "f32": TmaType(7, DTYPES["f32"]),
    "f64": TmaType(9, DTYPES["f64"]),
    "bf16": TmaType(10, DTYPES["bf16"]),
    "f32_ftz": TmaType(8, DTYPES["f32"]),
    "tf32": TmaType(7 | 16, DTYPES["tf32"]),
    "tf32_ftz": TmaType(8 | 16, DTYPES["tf32"]),
    "16u4_align8b": TmaType(11, DTYPES["u4"], packed=True),
    "16u4_align16b": TmaType(12, DTYPES["u4"], packed=True, padded_bits=8),
    "16u6_align16b": TmaType(13, _SIX_BITS, packed=True, padded_bits=8),
}
"""Element types in the order of the driver's enum; the last three are Blackwell's."""
TYPE_CODES = {name: t.code for name, t in TYPES.items()}

INTERLEAVES: dict[str, int] = {"none": 0, "16B": 1, "32B": 2}
SWIZZLE_CODES: dict[str, int] = {
    "none": 0,
    "32B": 1,
    "64B": 2,
    "128B": 3,
    "128B_atom_32B": 3 | 1 << 2,
    "128B_atom_32B_flip_8B": 3 | 2 << 2,
    "128B_atom_64B": 3 | 3 << 2,
    "96B": 1 << 4,
}
"""Swizzles in the driver's order: low two bits mode, then two of atomicity, then one of sm_103's.

From the fifth on they are Blackwell's. The driver's enum (CUDA 13.0) lacks the last one.
"""
#: Of each swizzle, the widest row of a box and the boundary on which its pattern begins, in bytes (PTX ISA 5.5.7).
SWIZZLE_ROWS = {"none": 16, "32B": 32, "64B": 64, "96B": 96} | dict.fromkeys(tuple(SWIZZLE_CODES)[3:7], 128)
SWIZZLE_ALIGNMENTS = {"none": 16, "32B": 256, "64B": 512, "96B": 256} | dict.fromkeys(tuple(SWIZZLE_CODES)[3:7], 1024)
SWIZZLES_OF_DRIVER = tuple(SWIZZLE_CODES)[:7]
HOPPER_SWIZZLES = tuple(SWIZZLE_CODES)[:4]
L2_PROMOTIONS: dict[str, int] = {"none": 0, "64B": 1, "128B": 2, "256B": 3}
OOB_FILLS: dict[str, int] = {"none": 0, "nan": 1}
WIDE_MODES: dict[str, int] = {"w": 0, "w128": 1}

#: The driver's own names without their prefix, for those that differ from ours.
_ALIASES: dict[str, str] = {
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "int32": "s32",
    "uint64": "u64",
    "int64": "s64",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "float32_ftz": "f32_ftz",
    "tfloat32": "tf32",
    "tfloat32_ftz": "tf32_ftz",
    "nan_request_zero_fma": "nan",
}


def name_of(what: str, value: object, names: Mapping[str, object]) -> Any:
    """Return the name that a name in any case, or the driver's number, stands for. Raises DescriptorError."""
    if type(value) is str and value in names:
        return value
    listed = tuple(names)
    if isinstance(value, str):
        key = _ALIASES.get(value.lower(), value.lower())
        for name in listed:
            if name.lower() == key:
                return name
    if names is SWIZZLE_CODES:
        listed = SWIZZLES_OF_DRIVER
    number = as_int(value)
    if number is None or not 0 <= number < len(listed):
        refuse(what, f"{choices(names)}, or the driver's number 0 to {len(listed) - 1}", value)
    return listed[number]
