"""What tensormap.replace does to the 128 bytes of a map, as numbers in the fields of `TensorMap`. PTX ISA 9.7.9.26.

The instruction puts bits in place and checks nothing. What it does where the manual is silent was read off the machine
code that ptxas 13.5 makes of it (sm_90a, sm_100a and sm_103a), and tried on an H200.
"""

from __future__ import annotations

from ptxgen.descriptors.fields import BitField
from ptxgen.descriptors.tensormap.formats import TiledMap
from ptxgen.descriptors.tensormap.tables import TYPES

#: The driver's name of each element type that the instruction can set (table 33), by its number.
ELEMENT_TYPES = (
    "u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32_ftz", "f64", "bf16", "tf32", "tf32_ftz",
    "16u4_align8b", "16u4_align16b", "16u6_align16b",
)  # fmt: skip

#: Field of the instruction -> field of `TensorMap`, and what is subtracted from the value.
FIELDS: dict[str, tuple[str, int]] = {
    "global_address": ("address", 0),
    "rank": ("rank", 0),
    "box_dim": ("box", 1),
    "global_dim": ("dims", 1),
    "global_stride": ("strides", 0),
    "element_stride": ("element_strides", 1),
    "elemtype": ("dtype", 0),
    "interleave_layout": ("interleave", 0),
    "swizzle_mode": ("swizzle", 0),
    "swizzle_atomicity": ("swizzle", 0),
    "fill_mode": ("oob_fill", 0),
}
_WORD_7 = 7 * 32
_STRIDES = 4


def replace_field(encoded: int, field: str, value: int, ordinal: int = 0) -> int:
    """Return the 1024 bits of a map after tensormap.replace of `field` by `value`, for dimension `ordinal`.

    Bits of `value` beyond the field's width are dropped. Other element types leave the bit that marks tf32 set.
    """
    name, less = FIELDS[field]
    declared = TiledMap.bit_fields[name]
    if field == "global_stride":
        return _stride(encoded, declared, value >> 4, ordinal)
    if field == "elemtype":
        kind = TYPES[ELEMENT_TYPES[value]]
        spans = declared.items[0] if kind.code > 15 else declared.items[0][:1]
        return _put(encoded, spans, kind.code)
    if field == "swizzle_mode":
        mode, _, wide = declared.items[0]
        return _put(encoded, (mode, wide), value)
    if field == "swizzle_atomicity":
        return _put(encoded, declared.items[0][1:2], value)
    return _put(encoded, declared.items[ordinal], value - less)


def without_unused_dimensions(encoded: int) -> int:
    """The bits of a map with 0 in what is said of dimensions beyond its rank, which no copy reads (measured, H200).

    CUTLASS's grouped GEMMs replace four strides of a map of rank 2, the last three by whatever a register holds.
    """
    fields = TiledMap.bit_fields
    rank, mode = (_get(encoded, fields[name].items[0][0]) for name in ("rank", "mode"))
    for name in ("dims", "strides", "element_strides", *(("box",) if mode == 0 else ())):
        unused = fields[name].items[rank + (name != "strides") :]
        for spans in unused:
            encoded = _put(encoded, spans, 0)
    return encoded


def _get(encoded: int, span: tuple[int, int]) -> int:
    low, high = span
    return encoded >> low & (1 << high - low + 1) - 1


def _stride(encoded: int, declared: BitField, units: int, ordinal: int) -> int:
    """Rank 5 has four strides. ptxas takes a fifth, and puts it where the upper bits of all of them are."""
    if ordinal < _STRIDES:
        return _put(encoded, declared.items[ordinal], units)
    spans = ((_WORD_7, _WORD_7 + 31), (_WORD_7 + 16, _WORD_7 + 19))
    for low, high in spans:
        encoded = _put(encoded, ((low, high),), units)
        units >>= 32
    return encoded


def _put(encoded: int, spans: tuple[tuple[int, int], ...], raw: int) -> int:
    for low, high in spans:
        mask = (1 << (high - low + 1)) - 1
        encoded = encoded & ~(mask << low) | (raw & mask) << low
        raw >>= high - low + 1
    return encoded
