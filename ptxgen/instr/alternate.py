"""Arithmetic on four 8-bit, 6-bit or 4-bit floats, packed in a register. PTX ISA 9.4 and later, 9.7.6.

Sums are e4m3x4 or e5m2x4, in .b32 registers; operands also have the formats e2m3x4, e3m2x4 and ue8m0x4, and e2m1x4 in
.b16 registers, or in .b32 ones as e2m1p4x4, each in the lower half of a byte.
"""

from dataclasses import KW_ONLY
from typing import Literal

from ptxgen.instr.model.form import Instruction, OperandLike
from ptxgen.instr.model.operands import register, source

_Sum = Literal["e4m3x4", "e5m2x4"]
_Operand = Literal["e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4", "e2m1x4", "e2m1p4x4", "ue8m0x4"]


class _Alternate(Instruction, ptx="9.4", targets="sm_100a sm_103a"):
    d: OperandLike = register("dtype")
    a: OperandLike = source("atype")
    _: KW_ONLY
    rounding: Literal["rn"] | None = None
    satfinite: bool = False
    dtype: _Sum
    atype: _Operand


class add(_Alternate, section="9.7.6.1 (9.4)"):
    """d = a + c for each of four elements, rounded to nearest even.

    `satfinite` clamps to the largest finite value; without it what e4m3 cannot hold is NaN.
    """

    syntax = "add{.rounding}{.satfinite}.dtype.atype d, a, c"
    c: OperandLike = source("dtype")


class sub(_Alternate, section="9.7.6.2 (9.4)"):
    """d = a - c for each of four elements, rounded to nearest even.

    `satfinite` clamps to the largest finite value; without it what e4m3 cannot hold is NaN.
    """

    syntax = "sub{.rounding}{.satfinite}.dtype.atype d, a, c"
    c: OperandLike = source("dtype")


class mul(_Alternate, section="9.7.6.3 (9.4)"):
    """d = a * b for each of four elements, rounded to nearest even.

    `satfinite` clamps to the largest finite value; without it what e4m3 cannot hold is NaN.
    """

    syntax = "mul{.rounding}{.satfinite}.dtype.atype.btype d, a, b"
    b: OperandLike = source("btype")
    _: KW_ONLY
    btype: _Operand


class fma(mul, section="9.7.6.4 (9.4)"):
    """d = a * b + c for each of four elements, with one rounding; `satfinite` as in mul."""

    syntax = "fma{.rounding}{.satfinite}.dtype.atype.btype d, a, b, c"
    c: OperandLike = source("dtype")
