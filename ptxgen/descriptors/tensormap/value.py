"""`TensorMap`: the 128-byte CUtensorMap, tiled mode, encoded and decoded without a driver.

The rules are those of cuTensorMapEncodeTiled (CUDA driver API, Tensor Map Object Management). No manual gives
the bits: they were measured by varying one argument at a time on an H200 (driver 580.159.04) and with
tensormap.replace; the Blackwell-only codes were read off the SASS of tensormap.replace. The im2col modes are
not here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Self

from ptxgen.descriptors.bits import BitStruct, DescriptorError, array, as_int, choices, field, refuse, require
from ptxgen.descriptors.evidence import inferred, measured
from ptxgen.layouts.swizzle import SWIZZLES

_DRIVER = measured("H200, driver 580.159.04: cuTensorMapEncodeTiled, one argument varied at a time")
_DRIVER_AND_SASS = measured(f"{_DRIVER.source}; codes new in Blackwell inferred from the SASS of tensormap.replace")
_METADATA = measured(f"{_DRIVER.source}; instructions never write these words, so hardware is inferred to ignore them")
_WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class TmaType:
    """One element type: its code in the map (bit 4: tf32), and the shared-memory bits of an element."""

    code: int
    bits: int
    floating: bool = False
    packed: bool = False
    aligned_16: bool = False


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
    "16u4_align8b": TmaType(11, 4, packed=True),
    "16u4_align16b": TmaType(12, 8, packed=True, aligned_16=True),
    "16u6_align16b": TmaType(13, 8, packed=True, aligned_16=True),
}
"""Element types in the order of the driver's enum; the last three are Blackwell's."""

INTERLEAVES: dict[str, int] = {"none": 0, "16B": 1, "32B": 2}
SWIZZLE_CODES: dict[str, int] = {
    "none": 0,
    "32B": 1,
    "64B": 2,
    "128B": 3,
    "128B_atom_32B": 3 | 1 << 2,
    "128B_atom_32B_flip_8B": 3 | 2 << 2,
    "128B_atom_64B": 3 | 3 << 2,
    "96B": 1 << 5,
}
"""Swizzles in the driver's order: low two bits mode, then three of atomicity, then one of sm_103's.

From the fifth on they are Blackwell's. No driver's enum has the last one yet."""
L2_PROMOTIONS: dict[str, int] = {"none": 0, "64B": 1, "128B": 2, "256B": 3}
OOB_FILLS: dict[str, int] = {"none": 0, "nan": 1}

_TYPE_CODES = {name: t.code for name, t in TYPES.items()}
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
"""The driver's own names without their prefix, for those that differ from ours."""

_NEW_SWIZZLES = tuple(SWIZZLE_CODES)[4:]
_SWIZZLES_OF_PACKED: dict[str, tuple[str, ...]] = {
    "16u4_align16b": ("none", "128B", "128B_atom_32B"),
    "16u6_align16b": ("none", "128B", "128B_atom_32B", "128B_atom_64B"),
}
MAX_BOX_BYTES = 228 * 1024
"""The largest box: the H200's driver takes 233472 bytes, not 235520; the SM's shared memory (inferred)."""


def _word(index: int, low: int, high: int) -> tuple[int, int]:
    return index * _WORD_BITS + low, index * _WORD_BITS + high


def _whole(index: int) -> tuple[int, int]:
    return _word(index, 0, _WORD_BITS - 1)


class TensorMap(BitStruct, bits=1024, word_bits=_WORD_BITS):
    """A tiled CUtensorMap. Make one with `TensorMap.tiled`, or `TensorMap.decode` its 128 bytes.

    `dims`, `box` and `element_strides` are in elements, innermost first; `strides` in bytes, of dimensions 1
    and up. `box_bytes` and `smem_alignment` are the driver's notes about the box, derived unless given.
    """

    mode: str = field(*_word(2, 0, 0), default="tiled", values={"tiled": 0}, evidence=_DRIVER)
    rank: int = field(*_word(2, 4, 6), bias=1, maximum=5, evidence=_DRIVER)
    dtype: str = field(*_word(2, 7, 10), also=(_word(2, 16, 16),), values=_TYPE_CODES, evidence=_DRIVER_AND_SASS)
    address: int = field(
        0,
        63,
        align=16,
        maximum=(1 << 57) - 16,
        rule="a multiple of 16 (32 with 32-byte interleave) from 0 to below 2^57",
        doc="global address",
        evidence=_DRIVER,
    )
    dims: tuple[int, ...] = array(
        [[_whole(8 + j)] for j in range(5)],
        length="rank",
        label=lambda j: f"dimension {j}",
        bias=1,
        rule="an integer from 1 to 2^32 elements",
        unit="elements",
        evidence=_DRIVER,
    )
    strides: tuple[int, ...] = array(
        [[_whole(3 + j), _word(7, 4 * j, 4 * j + 3)] for j in range(4)],
        length="rank",
        length_bias=-1,
        label=lambda j: f"stride of dimension {j + 1}",
        scale=16,
        rule="a multiple of 16 bytes (32 with 32-byte interleave) from 0 to below 2^40",
        unit="bytes",
        evidence=_DRIVER,
    )
    box: tuple[int, ...] = array(
        [[_word(13, 24, 31)], *([_word(14, 8 * j, 8 * j + 7)] for j in range(4))],
        length="rank",
        label=lambda j: f"box dimension {j}",
        bias=1,
        rule="an integer from 1 to 256 elements",
        unit="elements",
        evidence=_DRIVER,
    )
    element_strides: tuple[int, ...] = array(
        [[_word(13, 3 * j, 3 * j + 2)] for j in range(5)],
        length="rank",
        label=lambda j: f"element stride of dimension {j}",
        bias=1,
        rule="an integer from 1 to 8",
        evidence=_DRIVER,
    )
    interleave: str = field(*_word(2, 11, 12), default="none", values=INTERLEAVES, evidence=_DRIVER)
    swizzle: str = field(
        *_word(2, 13, 14),
        also=(_word(2, 19, 21), _word(2, 22, 22)),
        default="none",
        values=SWIZZLE_CODES,
        evidence=_DRIVER_AND_SASS,
    )
    oob_fill: str = field(*_word(2, 15, 15), default="none", values=OOB_FILLS, evidence=_DRIVER)
    l2_promotion: str = field(*_word(2, 17, 18), default="none", values=L2_PROMOTIONS, evidence=_DRIVER)
    box_bytes: int = field(
        *_whole(16),
        default=None,
        derive=lambda m: min(m.derived_box_bytes, (1 << 32) - 1),
        unit="bytes",
        doc="driver's note",
        evidence=_METADATA,
    )
    smem_alignment: int = field(
        *_whole(18),
        default=None,
        derive=lambda m: m.derived_smem_alignment,
        unit="bytes",
        doc="driver's note",
        evidence=_METADATA,
    )

    @classmethod
    def tiled(
        cls,
        dtype: str | int,
        array_or_address: Any,
        dims: Sequence[int],
        strides: Sequence[int],
        box: Sequence[int],
        *,
        element_strides: Sequence[int] | None = None,
        interleave: str | int = "none",
        swizzle: str | int = "none",
        l2_promotion: str | int = "none",
        oob_fill: str | int = "none",
        target: str | None = None,
    ) -> Self:
        """Return the map that cuTensorMapEncodeTiled makes of the same arguments (its order, without rank).

        `dims`, `box`, `element_strides`: elements, innermost first; `strides`: bytes, dimensions 1 and up.
        Enums and `dtype` take the driver's number or the short name, in any case. `array_or_address` is a
        global address or an object with `.address`. With `target` (such as "sm_90a") what only later
        generations have is refused, without it anything goes that some generation accepts. With rank 1
        `strides` is empty; the driver itself refuses a null pointer there, and takes any other without
        reading it. Raises DescriptorError naming the broken rule and the values.
        """
        shape = _numbers("dims", dims)
        made = cls(
            rank=_rank(shape),
            dtype=_enum("dtype", dtype, TYPES),
            address=getattr(array_or_address, "address", array_or_address),
            dims=shape,
            strides=_numbers("strides", strides),
            box=_numbers("box", box),
            element_strides=(1,) * len(shape)
            if element_strides is None
            else _numbers("element_strides", element_strides),
            interleave=_enum("interleave", interleave, INTERLEAVES),
            swizzle=_enum("swizzle", swizzle, SWIZZLE_CODES),
            l2_promotion=_enum("l2_promotion", l2_promotion, L2_PROMOTIONS),
            oob_fill=_enum("oob_fill", oob_fill, OOB_FILLS),
        )
        if target is not None:
            made._require_target(target)
        return made

    @property
    def element_bits(self) -> int:
        """Bits of one element in shared memory (8 for the packed types padded to 16 bytes)."""
        return TYPES[self.dtype].bits

    @property
    def inner_bytes(self) -> int:
        """Bytes of the innermost box row."""
        return self.box[0] * self.element_bits // 8

    @property
    def derived_box_bytes(self) -> int:
        """Bytes of the box as the driver counts them: each size over its element stride, rounded down."""
        return prod(b // s for b, s in zip(self.box, self.element_strides, strict=True)) * self.element_bits // 8

    @property
    def derived_smem_alignment(self) -> int:
        """Shared-memory alignment that the driver notes, bytes: the swizzle's pattern boundary."""
        return SWIZZLES[_swizzle_layout(self.swizzle)].alignment

    def _check(self) -> None:
        kind = TYPES[self.dtype]
        require(
            self.interleave == "none" or self.rank >= 3,
            "rank",
            f"3 to 5 with interleave {self.interleave}",
            self.rank,
        )
        if self.interleave == "32B" or kind.aligned_16:
            why = "with 32-byte interleave" if self.interleave == "32B" else f"for {self.dtype}"
            require(self.address % 32 == 0, "address", f"a multiple of 32 {why}", self.address)
            for j, stride in enumerate(self.strides):
                require(stride % 32 == 0, f"stride of dimension {j + 1}", f"a multiple of 32 bytes {why}", stride)
        if kind.packed:
            self._check_packed(kind)
        self._check_box()
        require(
            self.oob_fill == "none" or kind.floating,
            "oob_fill",
            f'"none" for {self.dtype}, no float type',
            self.oob_fill,
        )

    def _check_box(self) -> None:
        bits = self.box[0] * self.element_bits
        if bits % 128:
            raise DescriptorError(
                f"the innermost box row must be a multiple of 16 bytes, not {bits / 8:g} "
                f"({self.box[0]} elements of {self.element_bits} bits)"
            )
        if self.interleave == "none" and self.swizzle != "none":
            widest = SWIZZLES[_swizzle_layout(self.swizzle)].row_bytes
            require(
                self.inner_bytes <= widest,
                "the innermost box row",
                f"at most {widest} bytes with swizzle {self.swizzle}",
                self.inner_bytes,
            )
        require(
            self.derived_box_bytes <= MAX_BOX_BYTES,
            "the box",
            f"at most {MAX_BOX_BYTES} bytes (each dimension divided by its element stride)",
            self.derived_box_bytes,
        )

    def _check_packed(self, kind: TmaType) -> None:
        step = 128 if kind.aligned_16 else 2
        require(self.dims[0] % step == 0, "dimension 0", f"a multiple of {step} for {self.dtype}", self.dims[0])
        if kind.aligned_16:
            require(self.box[0] == 128, "box dimension 0", f"128 for {self.dtype}", self.box[0])
            legal = _SWIZZLES_OF_PACKED[self.dtype]
            require(self.swizzle in legal, "swizzle", f"{choices(legal)} for {self.dtype}", self.swizzle)

    def _require_target(self, target: object) -> None:
        found = re.fullmatch(r"sm_(\d+)[af]?", target) if isinstance(target, str) else None
        if found is None or int(found[1]) < 90:
            refuse("target", "sm_90 or later (tensormaps are new there)", target)
        if int(found[1]) >= 100:
            return
        require(
            not TYPES[self.dtype].packed,
            "dtype",
            f"no packed type for {target} (sm_100 or later)",
            self.dtype,
        )
        legal = tuple(SWIZZLE_CODES)[:4]
        require(self.swizzle in legal, "swizzle", f"{choices(legal)} for {target}", self.swizzle)

    def warnings(self) -> tuple[str, ...]:
        """Return remarks on values that the documents forbid or the driver would write otherwise."""
        remarks = []
        if self.interleave == "32B" and self.swizzle != "32B":
            remarks.append(
                "the driver's documents want swizzle 32B with interleave 32B; "
                f"the H200's driver accepts {self.swizzle} too"
            )
        if self.box_bytes != self.derived_box_bytes:
            remarks.append(f"the box has {self.derived_box_bytes} bytes, the driver's note says {self.box_bytes}")
        if self.smem_alignment != self.derived_smem_alignment:
            remarks.append(
                f"the swizzle aligns to {self.derived_smem_alignment} bytes, "
                f"the driver's note says {self.smem_alignment}"
            )
        if any(b % s for b, s in zip(self.box, self.element_strides, strict=True)):
            remarks.append("box not divisible by the element stride: the driver rounds down, its documents say up")
        if TYPES[self.dtype].packed or self.swizzle in _NEW_SWIZZLES:
            remarks.append(f"Blackwell only: {inferred('documents and SASS; no driver has checked these bytes')}")
        return tuple(remarks)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed; the driver's notes are derived anew unless given."""
        return super().replace(**{"box_bytes": None, "smem_alignment": None, **changes})

    def encode(self) -> bytes:
        """Return the 128 bytes of the CUtensorMap."""
        return self._encode().to_bytes(128, "little")

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return the map that 128 bytes hold, made by the driver or by tensormap.replace.

        DescriptorError lists reserved bits that are set, illegal codes, and broken rules of the encoder.
        """
        if not isinstance(data, bytes | bytearray | memoryview) or memoryview(data).nbytes != 128:
            given = data if not isinstance(data, bytes | bytearray | memoryview) else f"{memoryview(data).nbytes} bytes"
            refuse("a tensormap", "128 bytes", given)
        return cls._decode(int.from_bytes(bytes(data), "little"))

    def _title(self) -> str:
        return f"TensorMap {self.mode}, {self.dtype}, box {' x '.join(map(str, self.box))} (innermost first)"


def _swizzle_layout(name: str) -> str:
    """Return the address map of a swizzle: the flip variant has the rows of its atom."""
    return name.removesuffix("_flip_8B")


def _enum(what: str, value: object, names: Mapping[str, object]) -> str:
    listed = tuple(names)
    if isinstance(value, str):
        key = _ALIASES.get(value.lower(), value.lower())
        for name in listed:
            if name.lower() == key:
                return name
    number = as_int(value)
    if number is None or not 0 <= number < len(listed):
        refuse(what, f"{choices(listed)}, or the driver's number 0 to {len(listed) - 1}", value)
    return listed[number]


def _numbers(what: str, values: object) -> tuple[Any, ...]:
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        refuse(what, "a sequence of integers", values)
    return tuple(values)  # type: ignore[arg-type]


def _rank(dims: Sequence[object]) -> int:
    require(1 <= len(dims) <= 5, "dims", "a sequence of 1 to 5 integers (the rank)", len(dims))
    return len(dims)
