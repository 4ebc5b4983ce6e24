"""Mixed-precision arithmetic: .f16 or .bf16 operands, an .f32 sum. PTX ISA 9.7.5.

Since PTX ISA 9.4 also of two elements at once, where .f32 sums and products may have .f16 or .bf16 results.
"""

from dataclasses import KW_ONLY
from typing import Literal

from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import register, source

_Rounding = Literal["rn", "rz", "rm", "rp"]
_Half = Literal["f16", "bf16"]
_HalfPair = Literal["f16x2", "bf16x2"]


class _Sum(Instruction, ptx="8.6", targets="sm_100+"):
    d: OperandLike = register("f32")
    a: OperandLike = source("atype")
    c: OperandLike = source("f32")
    _: KW_ONLY
    rounding: _Rounding | None = None
    sat: bool = False
    atype: _Half


class add(_Sum, section="9.7.5.1"):
    """d = a + c, rounded to nearest even unless `rounding` says otherwise; `sat` clamps to 0 to 1."""

    syntax = "add{.rounding}{.sat}.f32.atype d, a, c"


class sub(_Sum, section="9.7.5.2"):
    """d = a - c, rounded to nearest even unless `rounding` says otherwise; `sat` clamps to 0 to 1."""

    syntax = "sub{.rounding}{.sat}.f32.atype d, a, c"


class fma(Instruction, section="9.7.5.3", ptx="8.6", targets="sm_100+"):
    """d = a * b + c with one rounding; `sat` clamps to 0 to 1."""

    syntax = "fma.rounding{.sat}.f32.abtype d, a, b, c"
    d: OperandLike = register("f32")
    a: OperandLike = source("abtype")
    b: OperandLike = source("abtype")
    c: OperandLike = source("f32")
    _: KW_ONLY
    rounding: _Rounding
    sat: bool = False
    abtype: _Half


# Two elements at once.


class _Pair(Instruction, ptx="9.4", targets="sm_107f"):
    """What the packed forms have in common."""


class _PairSum(_Pair):
    d: OperandLike = register("f32x2")
    a: OperandLike = source("atype")
    c: OperandLike = source("f32x2")
    _: KW_ONLY
    rounding: _Rounding | None = None
    atype: _HalfPair


class add_f32x2(_PairSum, opcode="add", section="9.7.5.1 (9.4)"):
    """d = a + c for both elements, rounded to nearest even unless `rounding` says otherwise."""

    syntax = "add{.rounding}.f32x2.atype.f32x2 d, a, c"


class sub_f32x2(_PairSum, opcode="sub", section="9.7.5.2 (9.4)"):
    """d = a - c for both elements, rounded to nearest even unless `rounding` says otherwise."""

    syntax = "sub{.rounding}.f32x2.atype.f32x2 d, a, c"


class fma_f32x2(_Pair, opcode="fma", section="9.7.5.3 (9.4)"):
    """d = a * b + c for both elements with one rounding."""

    syntax = "fma.rounding.f32x2.atype.f32x2.f32x2 d, a, b, c"
    d: OperandLike = register("f32x2")
    a: OperandLike = source("atype")
    b: OperandLike = source("f32x2")
    c: OperandLike = source("f32x2")
    _: KW_ONLY
    rounding: _Rounding
    atype: _HalfPair


class _Narrowed(_Pair):
    """.ftz goes with .f16 alone. ptxas 13.5 takes sums without .rz, which the manual has as mandatory (measured)."""

    a: OperandLike = source("f32x2")
    c: OperandLike = source("f32x2")


class _ToF16(_Narrowed):
    d: OperandLike = register("f16x2")


class _ToBf16(_Narrowed):
    d: OperandLike = register("bf16x2")


class add_f16x2(_ToF16, opcode="add", section="9.7.5.1 (9.4)"):
    """d = a + c for both elements, as .f16, rounded towards zero; the manual does not have the form without .rz."""

    syntax = "add{.rounding}.ftz.f16x2.f32x2.f32x2 d, a, c"
    _: KW_ONLY
    rounding: Literal["rz"] | None = None


class add_bf16x2(_ToBf16, opcode="add", section="9.7.5.1 (9.4)"):
    """d = a + c for both elements, as .bf16, rounded towards zero; the manual does not have the form without .rz."""

    syntax = "add{.rounding}.bf16x2.f32x2.f32x2 d, a, c"
    _: KW_ONLY
    rounding: Literal["rz"] | None = None


class sub_f16x2(_ToF16, opcode="sub", section="9.7.5.2 (9.4)"):
    """d = a - c for both elements, as .f16, rounded towards zero; the manual does not have the form without .rz."""

    syntax = "sub{.rounding}.ftz.f16x2.f32x2.f32x2 d, a, c"
    _: KW_ONLY
    rounding: Literal["rz"] | None = None


class sub_bf16x2(_ToBf16, opcode="sub", section="9.7.5.2 (9.4)"):
    """d = a - c for both elements, as .bf16, rounded towards zero; the manual does not have the form without .rz."""

    syntax = "sub{.rounding}.bf16x2.f32x2.f32x2 d, a, c"
    _: KW_ONLY
    rounding: Literal["rz"] | None = None


class mul_f16x2(_ToF16, opcode="mul", section="9.7.5.4 (9.4)"):
    """d = a * c for both elements, as .f16, rounded towards zero."""

    syntax = "mul.rz.ftz.f16x2.f32x2.f32x2 d, a, c"


class mul_bf16x2(_ToBf16, opcode="mul", section="9.7.5.4 (9.4)"):
    """d = a * c for both elements, as .bf16, rounded towards zero."""

    syntax = "mul.rz.bf16x2.f32x2.f32x2 d, a, c"


class mul_halves(_Pair, opcode="mul", section="9.7.5.4 (9.4)"):
    """d = a * c for both elements, where a and d have one 16-bit format, and c has the other."""

    syntax = "mul.type.type.ctype d, a, c"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    c: OperandLike = source("ctype")
    _: KW_ONLY
    type: _HalfPair
    ctype: _HalfPair

    @rule("ctype")
    def _ctype(self) -> str | None:
        """Products of one format have a syntax line of their own."""
        if self.type != self.ctype:
            return None
        return f"mul.{self.type}.{self.type} requires the other 16-bit format for c; see mul.{self.type}"
