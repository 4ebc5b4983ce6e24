"""Integer arithmetic. PTX ISA 9.7.1; the extended-precision forms of 9.7.2 are not here yet."""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.form import Instruction, OperandLike, rule
from ptxgen.instr.operands import register, source
from ptxgen.instr.targets import ALL, Availability

_Int = Literal["u16", "u32", "u64", "s16", "s32", "s64"]
_IntX2 = Literal["u16", "u32", "u64", "s16", "s32", "s64", "u16x2", "s16x2"]
_SIMD = {name: Availability("8.0", "sm_90+") for name in ("u16x2", "s16x2")}


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
    type: _IntX2
    needs = _SIMD


class add_sat(Instruction, section="9.7.1.1", ptx="1.0", targets=ALL):
    """d = a + b, clamped to the range of .s32."""

    syntax = "add.sat.s32 d, a, b"
    d: OperandLike = register("s32")
    a: OperandLike = source("s32")
    b: OperandLike = source("s32")


class sub(Instruction, section="9.7.1.2", ptx="1.0", targets=ALL):
    """d = a - b, wrapping."""

    syntax = "sub.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    type: _Int


class sub_sat(Instruction, section="9.7.1.2", ptx="1.0", targets=ALL):
    """d = a - b, clamped to the range of .s32."""

    syntax = "sub.sat.s32 d, a, b"
    d: OperandLike = register("s32")
    a: OperandLike = source("s32")
    b: OperandLike = source("s32")


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


class div(Instruction, section="9.7.1.8", ptx="1.0", targets=ALL):
    """d = a / b, truncated; by zero gives an unspecified value."""

    syntax = "div.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    type: _Int


class rem(Instruction, section="9.7.1.9", ptx="1.0", targets=ALL):
    """d = a % b, with the sign of a."""

    syntax = "rem.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
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
    type: Literal["s16", "s32", "s64"]


class min(Instruction, section="9.7.1.12", ptx="1.0", targets=ALL):
    """d = the smaller of a and b; `relu` clamps negative results to 0."""

    syntax = "min{.relu}.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    relu: bool = False
    type: _IntX2
    needs = {**_SIMD, "relu": Availability("8.0", "sm_90+")}

    @rule("relu")
    def _relu(self) -> str | None:
        """.relu is for .s32 and .s16x2."""
        if self.relu and self.type not in ("s32", "s16x2"):
            return f"min.relu takes .s32 or .s16x2, not .{self.type}"
        return None


class max(Instruction, section="9.7.1.13", ptx="1.0", targets=ALL):
    """d = the larger of a and b; `relu` clamps negative results to 0."""

    syntax = "max{.relu}.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    relu: bool = False
    type: _IntX2
    needs = {**_SIMD, "relu": Availability("8.0", "sm_90+")}

    @rule("relu")
    def _relu(self) -> str | None:
        """.relu is for .s32 and .s16x2."""
        if self.relu and self.type not in ("s32", "s16x2"):
            return f"max.relu takes .s32 or .s16x2, not .{self.type}"
        return None


class bfe(Instruction, section="9.7.1.19", ptx="2.0", targets=ALL):
    """d = the c bits of a from bit b on, zero- or sign-extended; b and c are 0 to 255."""

    syntax = "bfe.type d, a, b, c"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("u32", low=0, high=255)
    c: OperandLike = source("u32", low=0, high=255)
    _: KW_ONLY
    type: Literal["u32", "u64", "s32", "s64"]
