"""Tensormaps in memory: new fields, and the way to the tensormap proxy. PTX ISA 9.7.9.26 and 9.7.13.16."""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import address, immediate, predicate, source
from ptxgen.instr.model.targets import Availability

_SECTION = "9.7.9.26"
_TARGETS = "sm_90a sm_100f sm_110f sm_120f"
_BLACKWELL = "sm_100f sm_110f sm_120f"
_FENCES = "tensormap.cp_fenceproxy or fence.proxy.tensormap before copies with the tensormap"
_Space = Literal["global", "shared::cta"]


def _address(form: Any) -> bool:
    return form.field == "global_address"


class replace(Instruction, opcode="tensormap.replace", section=_SECTION, ptx="8.3", targets=_TARGETS, fences=_FENCES):
    """Replace the address of the tensor, or its rank; the value is the rank - 1."""

    syntax = "tensormap.replace.tile.field{.space}.b1024.type [addr], value"
    addr: OperandLike = address("space", bits=(32, 64), memory="read-write")
    value: OperandLike = source("type", float_sums=_address)
    _: KW_ONLY
    field: Literal["global_address", "rank"]
    space: _Space | None = None
    type: Literal["b32", "b64"]

    @rule("types")
    def _types(self) -> str | None:
        """An address has 64 bits."""
        legal = "b64" if self.field == "global_address" else "b32"
        return None if self.type == legal else f".{self.field} requires .{legal}, not .{self.type}"


class replace_dimension(
    Instruction, opcode="tensormap.replace", section=_SECTION, ptx="8.3", targets=_TARGETS, fences=_FENCES
):
    """Replace the size or stride of a dimension, `ordinal` 0 to 4; strides, in bytes, begin with the second one."""

    syntax = "tensormap.replace.tile.field{.space}.b1024.type [addr], ordinal, value"
    addr: OperandLike = address("space", bits=(32, 64), memory="read-write")
    ordinal: OperandLike = immediate(0, 4)
    # ptxas 13.5 subtracts 1 from what has 32 bits, for which it takes no float (measured).
    value: OperandLike = source(lambda form: "u32" if form.type == "b32" else form.type, float_sums=False)
    _: KW_ONLY
    field: Literal["box_dim", "global_dim", "global_stride", "element_stride"]
    space: _Space | None = None
    type: Literal["b32", "b64"]

    @rule("types")
    def _types(self) -> str | None:
        """A stride has 64 bits."""
        legal = "b64" if self.field == "global_stride" else "b32"
        return None if self.type == legal else f".{self.field} requires .{legal}, not .{self.type}"


#: The largest value of each field. Element types: 0 u8, u16, u32, s32, u64, s64, f16, f32, f32.ftz, f64, bf16, tf32,
#: tf32.ftz, b4x16, b4x16_p64, 15 b6x16_p32 or b6p2x16. Interleaving: none, 16, 32 bytes. Swizzles: none, 32, 64, 128,
#: 96 bytes. Their atoms: 16, 32, 32 with halves of 16 flipped, 64 bytes. Fill: zeros, NaN.
_CHOICES = {"elemtype": 15, "interleave_layout": 2, "swizzle_mode": 4, "swizzle_atomicity": 3, "fill_mode": 1}


class replace_choice(
    Instruction, opcode="tensormap.replace", section=_SECTION, ptx="8.3", targets=_TARGETS, fences=_FENCES
):
    """Replace a field that is one of several choices, by its number."""

    syntax = "tensormap.replace.tile.field{.space}.b1024.b32 [addr], value"
    addr: OperandLike = address("space", bits=(32, 64), memory="read-write")
    value: OperandLike = immediate(0, 15)
    _: KW_ONLY
    field: Literal["elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity", "fill_mode"]
    space: _Space | None = None
    needs = {
        "swizzle_atomicity": Availability("8.6", _BLACKWELL),
        **{f"elemtype value={number}": Availability("8.7", _BLACKWELL) for number in (13, 14, 15)},
        "swizzle_mode value=4": Availability("8.8", "sm_103a sm_107a"),
    }

    @rule("choice", reads_operands=True)
    def _choice(self) -> str | None:
        """Each field has its choices."""
        most = _CHOICES[self.field]
        value: Any = self.value
        return None if value.evaluate() <= most else f".{self.field} requires 0 to {most}, not {value}"


class cp_fenceproxy(
    Instruction,
    opcode="tensormap.cp_fenceproxy",
    section="9.7.13.16",
    ptx="8.3",
    targets="sm_90+",
    issued_by="warp",
    fences="fence.proxy.tensormap::generic.acquire in the threads that use the tensormap",
):
    """Copy a tensormap from shared to global memory, and release it to the tensormap proxy of `scope`."""

    syntax = (
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned [dst], [src], size"
    )
    dst: OperandLike = address("global", narrow=True, memory="write")
    src: OperandLike = address("shared", memory="read")
    size: OperandLike = immediate(128, 128)
    _: KW_ONLY
    scope: Literal["cta", "cluster", "gpu", "sys"]


class query_alloc_class_large(
    Instruction,
    opcode="tensormap.query.alloc_class_large",
    section="(not in the manual of 9.4)",
    ptx="9.5",
    targets=_TARGETS,
):
    """p = a property of the tensormap at `addr` (measured, ptxas 13.5; no manual describes it yet)."""

    syntax = "tensormap.query.alloc_class_large{.space}.b1024 p, [addr]"
    p: OperandLike = predicate()
    addr: OperandLike = address("space", bits=(64,), memory="read")
    _: KW_ONLY
    space: Literal["global", "shared::cta", "const", "param"] | None = None
