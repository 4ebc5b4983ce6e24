"""The names and codes in a tensormap: element types, interleaving, swizzles, L2 promotion, fill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ptxgen.descriptors.errors import as_int, choices, refuse


@dataclass(frozen=True, slots=True)
class TmaType:
    """One element type: its code in the map (bit 4: tf32), and the shared-memory bits of an element.

    Packed types come sixteen at a time: `packed_bits` each in global memory, and padded to `bits` in shared memory.
    """

    code: int
    bits: int
    floating: bool = False
    packed_bits: int = 0

    @property
    def padded(self) -> bool:
        """Whether sixteen values take 16 bytes of shared memory, part of them a gap."""
        return self.packed_bits not in (0, self.bits)

    @property
    def global_bits(self) -> int:
        """Bits of an element in global memory."""
        return self.packed_bits or self.bits


TYPES: dict[str, TmaType] = {
    "u8": TmaType(0, 8),
    "u16": TmaType(1, 16),
    "u32": TmaType(2, 32),
    "s32": TmaType(3, 32),
    "u64": TmaType(4, 64),
    "s64": TmaType(5, 64),
    "f16": TmaType(6, 16, floating=True),
    "f32": TmaType(7, 32, floating=True),
    "f64": TmaType(9, 64, floating=True),
    "bf16": TmaType(10, 16, floating=True),
    "f32_ftz": TmaType(8, 32, floating=True),
    "tf32": TmaType(7 | 16, 32, floating=True),
    "tf32_ftz": TmaType(8 | 16, 32, floating=True),
    "16u4_align8b": TmaType(11, 4, packed_bits=4),
    "16u4_align16b": TmaType(12, 8, packed_bits=4),
    "16u6_align16b": TmaType(13, 8, packed_bits=6),
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
