"""mma.sync with block scaling: dense matrices, and sparse A with ordered metadata. PTX ISA 9.7.14.3.

ptxas takes .scale_vec::4X with .ue8m0 since PTX ISA 9.1.
"""

from dataclasses import KW_ONLY
from typing import Any, ClassVar, Literal

from ptxgen.instr.mma.common import ScaledMma, SparseMma
from ptxgen.instr.mma.dense import F8F6F4
from ptxgen.instr.model.form import rule
from ptxgen.instr.model.syntax_line import modifier
from ptxgen.instr.model.targets import Availability

_SPARSE = "9.7.14.6.3"
_NEEDS = {"scale_vec::4X ue8m0": Availability("9.1", "sm_120f")}


def _factors(form: Any) -> str | None:
    """.ue4m3 factors come in fours."""
    if form.stype == "ue4m3" and form.scale_vec != "4X":
        return f".ue4m3 requires .scale_vec::4X, not .scale_vec::{form.scale_vec}"
    return None


class mxf8f6f4(ScaledMma):
    """8-, 6- and 4-bit floats, each in a byte of its own, one factor for 32 elements."""

    syntax = (
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale{.scale_vec}.f32.atype.btype.f32.ue8m0"
        " d, a, b, c, scale_a, selector_a, scale_b, selector_b"
    )
    _: KW_ONLY
    scale_vec: Literal["1X"] | None = modifier("scale_vec::", default=None)
    atype: F8F6F4
    btype: F8F6F4
    shape: ClassVar[str] = "m16n8k32"
    dtype: ClassVar[str] = "f32"
    bits: ClassVar[int] = 8
    packed: ClassVar[str] = "e4m3x4"
    default_size: ClassVar[str | None] = "1X"


class mxf4(ScaledMma):
    """4-bit floats, eight in a register, one factor for 32 elements."""

    atype = btype = "e2m1"
    syntax = (
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale{.scale_vec}.f32.e2m1.e2m1.f32.ue8m0"
        " d, a, b, c, scale_a, selector_a, scale_b, selector_b"
    )
    _: KW_ONLY
    scale_vec: Literal["2X"] | None = modifier("scale_vec::", default=None)
    shape: ClassVar[str] = "m16n8k64"
    dtype: ClassVar[str] = "f32"
    bits: ClassVar[int] = 4
    packed: ClassVar[str] = "e2m1x8"
    default_size: ClassVar[str | None] = "2X"


class mxf4nvf4(ScaledMma):
    """4-bit floats, eight in a register, one factor for 32 elements (2X) or 16 (4X)."""

    atype = btype = "e2m1"
    syntax = (
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec.f32.e2m1.e2m1.f32.stype"
        " d, a, b, c, scale_a, selector_a, scale_b, selector_b"
    )
    _: KW_ONLY
    scale_vec: Literal["2X", "4X"] = modifier("scale_vec::")
    stype: Literal["ue8m0", "ue4m3"]
    shape: ClassVar[str] = "m16n8k64"
    dtype: ClassVar[str] = "f32"
    bits: ClassVar[int] = 4
    packed: ClassVar[str] = "e2m1x8"
    needs = _NEEDS
    _s = rule("factors")(_factors)


class sp_mxf8f6f4(ScaledMma, SparseMma, section=_SPARSE):
    """As mxf8f6f4, with half of A left out."""

    syntax = (
        "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale{.scale_vec}"
        ".f32.atype.btype.f32.ue8m0 d, a, b, c, e, f, scale_a, selector_a, scale_b, selector_b"
    )
    _: KW_ONLY
    scale_vec: Literal["1X"] | None = modifier("scale_vec::", default=None)
    atype: F8F6F4
    btype: F8F6F4
    shape: ClassVar[str] = "m16n8k64"
    dtype: ClassVar[str] = "f32"
    bits: ClassVar[int] = 8
    packed: ClassVar[str] = "e4m3x4"
    default_size: ClassVar[str | None] = "1X"


class sp_mxf4(ScaledMma, SparseMma, section=_SPARSE, targets="sm_120a sm_121a"):
    """As mxf4, with half of A left out."""

    atype = btype = "e2m1"
    syntax = (
        "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4.block_scale{.scale_vec}"
        ".f32.e2m1.e2m1.f32.ue8m0 d, a, b, c, e, f, scale_a, selector_a, scale_b, selector_b"
    )
    _: KW_ONLY
    scale_vec: Literal["2X"] | None = modifier("scale_vec::", default=None)
    shape: ClassVar[str] = "m16n8k128"
    dtype: ClassVar[str] = "f32"
    bits: ClassVar[int] = 4
    packed: ClassVar[str] = "e2m1x8"
    default_size: ClassVar[str | None] = "2X"


class sp_mxf4nvf4(ScaledMma, SparseMma, section=_SPARSE, targets="sm_120a sm_121a"):
    """As mxf4nvf4, with half of A left out."""

    atype = btype = "e2m1"
    syntax = (
        "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec"
        ".f32.e2m1.e2m1.f32.stype d, a, b, c, e, f, scale_a, selector_a, scale_b, selector_b"
    )
    _: KW_ONLY
    scale_vec: Literal["2X", "4X"] = modifier("scale_vec::")
    stype: Literal["ue8m0", "ue4m3"]
    shape: ClassVar[str] = "m16n8k128"
    dtype: ClassVar[str] = "f32"
    bits: ClassVar[int] = 4
    packed: ClassVar[str] = "e2m1x8"
    needs = _NEEDS
    _s = rule("factors")(_factors)
