"""Integer arithmetic. PTX ISA 9.7.1; sums and products with a carry are in `extended`."""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import register, source
from ptxgen.instr.model.targets import ALL, Availability

_Int = Literal["u16", "u32", "u64", "s16", "s32", "s64"]
_Packed = Literal["u16", "u32", "u64", "s16", "s32", "s64", "u16x2", "s16x2", "u8x4", "s8x4"]
_X2: dict[str, Availability] = dict.fromkeys(("u16x2", "s16x2"), Availability("8.0", "sm_90+"))
#: Bytes four at a time, and the saturated sums that came with them.
_BYTES = Availability("9.2", "sm_107f sm_120f")
_X4: dict[str, Availability] = dict.fromkeys(("u8x4", "s8x4"), _BYTES)
_SATURATED: dict[str, Availability] = {**dict.fromkeys(("u32", "u16x2", "s16x2"), _BYTES), **_X4}


def _relu(form: Any) -> str | None:
    """.relu is for signed types: .s32, .s16x2 and .s8x4."""
    if form.relu and form.type not in ("s32", "s16x2", "s8x4"):
        return f"{form.form.opcode}.relu requires .s32, .s16x2 or .s8x4, not .{form.type}"
    return None


def doubled(form: Any) -> str:
    """The type of twice the width: what a wide product has."""
    return form.type[0] + str(2 * int(form.type[1:]))


class add(Instruction, section="9.7.1.1", ptx="1.0", targets=ALL):
    """d = a + b, wrapping."""

    syntax = "add.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    type: _Packed
    needs = {**_X2, **_X4}


class add_sat(Instruction, section="9.7.1.1", ptx="1.0", targets=ALL):
    """d = a + b, clamped to the range of the type, or of each part of it."""

    syntax = "add.sat.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    type: Literal["s32", "u32", "u16x2", "s16x2", "u8x4", "s8x4"]
    needs = _SATURATED


class sub(Instruction, section="9.7.1.2", ptx="1.0", targets=ALL):
    """d = a - b, wrapping."""

    syntax = "sub.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    type: Literal["u16", "u32", "u64", "s16", "s32", "s64", "u8x4", "s8x4"]
    needs = _X4


class sub_sat(Instruction, section="9.7.1.2", ptx="1.0", targets=ALL):
    """d = a - b, clamped to the range of the type, or of each part of it."""

    syntax = "sub.sat.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    type: Literal["s32", "u8x4", "s8x4"]
    needs = _X4


class mul(Instruction, section="9.7.1.3", ptx="1.0", targets=ALL, leading=1):
    """d = the low or high half of a * b."""

    syntax = "mul.half.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    half: Literal["lo", "hi"]
    type: _Int


class mul_wide(Instruction, opcode="mul.wide", section="9.7.1.3", ptx="1.0", targets=ALL):
    """d = a * b, twice as wide as a and b."""

    syntax = "mul.wide.type d, a, b"
    d: OperandLike = register(doubled)
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    type: Literal["u16", "u32", "s16", "s32"]


class mad(Instruction, section="9.7.1.4", ptx="1.0", targets=ALL, leading=1):
    """d = the low or high half of a * b, plus c."""

    syntax = "mad.half.type d, a, b, c"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    c: OperandLike = source("type")
    _: KW_ONLY
    half: Literal["lo", "hi"]
    type: _Int


class mad_wide(Instruction, opcode="mad.wide", section="9.7.1.4", ptx="1.0", targets=ALL):
    """d = a * b + c, with c and d twice as wide as a and b."""

    syntax = "mad.wide.type d, a, b, c"
    d: OperandLike = register(doubled)
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    c: OperandLike = source(doubled)
    _: KW_ONLY
    type: Literal["u16", "u32", "s16", "s32"]


class mad_sat(Instruction, section="9.7.1.4", ptx="1.0", targets=ALL, leading=1):
    """d = the high half of a * b, plus c, clamped to the range of .s32."""

    syntax = "mad.hi.sat.s32 d, a, b, c"
    d: OperandLike = register("s32")
    a: OperandLike = source("s32")
    b: OperandLike = source("s32")
    c: OperandLike = source("s32")


class clmad(Instruction, section="9.7.1 (clmad)", ptx="9.3", targets="sm_80+", leading=1):
    """d = the low or high half of the carry-less product of a and b, exclusive-or c.

    Not in the manual of PTX ISA 9.2 (measured, H200, driver 580, 2026-11-20).
    """

    syntax = "clmad.half.type d, a, b, c"
    d: OperandLike = register("type")
    a: OperandLike = source("type", sums=False)
    b: OperandLike = source("type", sums=False)
    c: OperandLike = source("type", sums=False)
    _: KW_ONLY
    half: Literal["lo", "hi"]
    type: Literal["u64", "s64"]


class mul24(Instruction, section="9.7.1.5", ptx="1.0", targets=ALL, leading=1):
    """d = bits 0 to 31 or 16 to 47 of the product of the low 24 bits of a and b."""

    syntax = "mul24.half.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    half: Literal["lo", "hi"]
    type: Literal["u32", "s32"]


class mad24(Instruction, section="9.7.1.6", ptx="1.0", targets=ALL, leading=1):
    """d = bits 0 to 31 or 16 to 47 of the product of the low 24 bits of a and b, plus c."""

    syntax = "mad24.half.type d, a, b, c"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    c: OperandLike = source("type")
    _: KW_ONLY
    half: Literal["lo", "hi"]
    type: Literal["u32", "s32"]


class mad24_sat(Instruction, section="9.7.1.6", ptx="1.0", targets=ALL, leading=1):
    """d = bits 16 to 47 of the product of the low 24 bits of a and b, plus c, clamped to the range of .s32."""

    syntax = "mad24.hi.sat.s32 d, a, b, c"
    d: OperandLike = register("s32")
    a: OperandLike = source("s32")
    b: OperandLike = source("s32")
    c: OperandLike = source("s32")


class sad(Instruction, section="9.7.1.7", ptx="1.0", targets=ALL):
    """d = c + |a - b|."""

    syntax = "sad.type d, a, b, c"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    c: OperandLike = source("type")
    _: KW_ONLY
    type: _Int


def _single(form: Any) -> bool:
    return form.type == "b32"


def _wide(form: Any) -> bool:
    return form.type in ("u64", "s64")


class div(Instruction, section="9.7.1.8", ptx="1.0", targets=ALL):
    """d = a / b, truncated; by zero gives an unspecified value."""

    syntax = "div.type d, a, b"
    d: OperandLike = register("type", plain=_wide)
    a: OperandLike = source("type", plain=_wide)
    b: OperandLike = source("type", plain=_wide)
    _: KW_ONLY
    type: _Int


class rem(Instruction, section="9.7.1.9", ptx="1.0", targets=ALL):
    """d = a % b, with the sign of a."""

    syntax = "rem.type d, a, b"
    d: OperandLike = register("type", plain=_wide)
    a: OperandLike = source("type", plain=_wide)
    b: OperandLike = source("type", plain=_wide)
    _: KW_ONLY
    type: _Int


class abs(Instruction, section="9.7.1.10", ptx="1.0", targets=ALL):
    """d = |a|."""

    syntax = "abs.type d, a"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    _: KW_ONLY
    type: Literal["s16", "s32", "s64"]


class neg(Instruction, section="9.7.1.11", ptx="1.0", targets=ALL):
    """d = -a."""

    syntax = "neg.type d, a"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    _: KW_ONLY
    type: Literal["s16", "s32", "s64", "s8x4"]
    needs = _X4


class min(Instruction, section="9.7.1.12", ptx="1.0", targets=ALL):
    """d = the smaller of a and b; `relu` clamps negative results to 0."""

    syntax = "min{.relu}.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    relu: bool = False
    type: _Packed
    needs = {**_X2, **_X4, "relu": Availability("8.0", "sm_90+")}
    _r = rule("relu")(_relu)


class max(Instruction, section="9.7.1.13", ptx="1.0", targets=ALL):
    """d = the larger of a and b; `relu` clamps negative results to 0."""

    syntax = "max{.relu}.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    relu: bool = False
    type: _Packed
    needs = {**_X2, **_X4, "relu": Availability("8.0", "sm_90+")}
    _r = rule("relu")(_relu)


class popc(Instruction, section="9.7.1.14", ptx="2.0", targets=ALL):
    """d = the number of ones in a."""

    syntax = "popc.type d, a"
    d: OperandLike = register("u32")
    a: OperandLike = source("type", float_sums=_single)
    _: KW_ONLY
    type: Literal["b32", "b64"]


class clz(Instruction, section="9.7.1.15", ptx="2.0", targets=ALL):
    """d = the number of zeros above the highest one in a: the width if a is 0."""

    syntax = "clz.type d, a"
    d: OperandLike = register("u32")
    a: OperandLike = source("type", float_sums=_single)
    _: KW_ONLY
    type: Literal["b32", "b64"]


class bfind(Instruction, section="9.7.1.16", ptx="2.0", targets=ALL):
    """d = the highest bit of a that differs from the sign, 0xffffffff if there is none.

    With `shiftamt`, how far to shift a left to bring that bit to the top.
    """

    syntax = "bfind{.shiftamt}.type d, a"
    d: OperandLike = register("u32")
    a: OperandLike = source("type")
    _: KW_ONLY
    shiftamt: bool = False
    type: Literal["u32", "u64", "s32", "s64"]


class fns(Instruction, section="9.7.1.17", ptx="6.0", targets="sm_30+"):
    """d = the place of the |offset|-th one of `mask` from bit `base` on, upwards or down if offset is negative.

    0xffffffff if there is none; with offset 0, `base` if that bit is set. `base` is 0 to 31.
    """

    syntax = "fns.b32 d, mask, base, offset"
    d: OperandLike = register("b32")
    mask: OperandLike = source("b32")
    base: OperandLike = source("b32", high=31, advice=True)
    offset: OperandLike = source("b32")


class brev(Instruction, section="9.7.1.18", ptx="2.0", targets=ALL):
    """d = the bits of a in reverse order."""

    syntax = "brev.type d, a"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    _: KW_ONLY
    type: Literal["b32", "b64"]


class bfe(Instruction, section="9.7.1.19", ptx="2.0", targets=ALL):
    """d = the c bits of a from bit b on, zero- or sign-extended; b and c are 0 to 255."""

    syntax = "bfe.type d, a, b, c"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("u32", low=0, high=255)
    c: OperandLike = source("u32", low=0, high=255)
    _: KW_ONLY
    type: Literal["u32", "u64", "s32", "s64"]


class bfi(Instruction, section="9.7.1.20", ptx="2.0", targets=ALL):
    """f = b with the low d bits of a put in from bit c on; c and d are 0 to 255."""

    syntax = "bfi.type f, a, b, c, d"
    f: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    c: OperandLike = source("u32", low=0, high=255)
    d: OperandLike = source("u32", low=0, high=255)
    _: KW_ONLY
    type: Literal["b32", "b64"]


class szext(Instruction, section="9.7.1.21", ptx="7.6", targets="sm_70+"):
    """d = the low b bits of a, zero- or sign-extended; b of 32 or more leaves a (`clamp`) or counts modulo 32."""

    syntax = "szext.mode.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("u32")
    _: KW_ONLY
    mode: Literal["clamp", "wrap"]
    type: Literal["u32", "s32"]


class bmsk(Instruction, section="9.7.1.22", ptx="7.6", targets="sm_70+"):
    """d = b ones from bit a on; larger a and b are cut to 32 (`clamp`) or count modulo 32 (`wrap`)."""

    syntax = "bmsk.mode.b32 d, a, b"
    d: OperandLike = register("u32")
    a: OperandLike = source("u32")
    b: OperandLike = source("u32")
    _: KW_ONLY
    mode: Literal["clamp", "wrap"]


class dp4a(Instruction, section="9.7.1.23", ptx="5.0", targets="sm_61+"):
    """d = c plus the products of the four bytes of a and b."""

    syntax = "dp4a.atype.btype d, a, b, c"
    d: OperandLike = register("u32")
    a: OperandLike = source("atype")
    b: OperandLike = source("btype")
    c: OperandLike = source("u32")
    _: KW_ONLY
    atype: Literal["u32", "s32"]
    btype: Literal["u32", "s32"]


class dp2a(Instruction, section="9.7.1.24", ptx="5.0", targets="sm_61+", leading=1):
    """d = c plus the products of the two halves of a and the two low or high bytes of b."""

    syntax = "dp2a.half.atype.btype d, a, b, c"
    d: OperandLike = register("u32")
    a: OperandLike = source("atype")
    b: OperandLike = source("btype")
    c: OperandLike = source("u32")
    _: KW_ONLY
    half: Literal["lo", "hi"]
    atype: Literal["u32", "s32"]
    btype: Literal["u32", "s32"]
