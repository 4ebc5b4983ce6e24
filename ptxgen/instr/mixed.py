"""Mixed-precision arithmetic: .f16 or .bf16 operands, an .f32 sum. PTX ISA 9.7.5."""

from dataclasses import KW_ONLY
from typing import Literal

from ptxgen.instr.model.form import Instruction, OperandLike
from ptxgen.instr.model.operands import register, source

_Rounding = Literal["rn", "rz", "rm", "rp"]
_Half = Literal["f16", "bf16"]


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
