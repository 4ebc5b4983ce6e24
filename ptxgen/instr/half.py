"""Half-precision arithmetic: .f16, .bf16, and two of them in 32 bits (.f16x2, .bf16x2). PTX ISA 9.7.4.

The x2 forms do each half alone. .bf16 and the x2 forms have registers without a type (.b16, .b32) alone.
"""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.floating import signed_magnitude
from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import register, source
from ptxgen.instr.model.targets import ALL, Availability

_Half = Literal["f16", "f16x2", "bf16", "bf16x2"]


def _bf16(ptx: str, targets: str) -> dict[str, Availability]:
    """What both .bf16 types need."""
    return {"bf16": Availability(ptx, targets), "bf16x2": Availability(ptx, targets)}


def _f16_only(form: Any) -> str | None:
    """.ftz and .sat are for .f16 and .f16x2."""
    for name in ("ftz", "sat"):
        if form.type.startswith("bf16") and getattr(form, name, False):
            return f"{form.form.opcode}.{form.type} allows no .{name}; .{name} requires .f16 or .f16x2"
    return None


class _Operation(Instruction, ptx="4.2", targets=ALL):
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    ftz: bool = False
    sat: bool = False
    type: _Half
    _f16 = rule("f16-only")(_f16_only)


class _Binary(_Operation):
    rounding: Literal["rn"] | None = None
    needs = _bf16("7.8", "sm_90+")


class add(_Binary, section="9.7.4.1"):
    """d = a + b, rounded to nearest even; without `rounding` the compiler may fuse it with a product."""

    syntax = "add{.rounding}{.ftz}{.sat}.type d, a, b"


class sub(_Binary, section="9.7.4.2"):
    """d = a - b, rounded to nearest even; without `rounding` the compiler may fuse it with a product."""

    syntax = "sub{.rounding}{.ftz}{.sat}.type d, a, b"


class mul(_Binary, section="9.7.4.3"):
    """d = a * b, rounded to nearest even; without `rounding` the compiler may fuse it with a sum."""

    syntax = "mul{.rounding}{.ftz}{.sat}.type d, a, b"


class fma(_Operation, section="9.7.4.4"):
    """d = a * b + c with one rounding.

    `sat` clamps to 0 to 1, `relu` clamps negative results to 0, `oob` gives 0 where an operand is the special NaN
    that tensor copies fill in for elements out of bounds.
    """

    # ptxas 13.5 lets .rz, .rm and .rp pass with .bf16, but makes .f16 arithmetic of them (measured).
    syntax = "fma.rounding{.ftz}{.sat}{.oob}{.relu}.type d, a, b, c"
    c: OperandLike = source("type")
    _: KW_ONLY
    rounding: Literal["rn"]
    oob: bool = False
    relu: bool = False
    needs = {
        **_bf16("7.0", "sm_80+"),
        "relu": Availability("7.0", "sm_80+"),
        "oob": Availability("8.1", "sm_90+"),
    }

    @rule("exclusive")
    def _exclusive(self) -> str | None:
        """.sat excludes .relu; .ftz excludes .oob, which .sat does not (measured, ptxas 13.5)."""
        for one, other in (("sat", "relu"), ("ftz", "oob")):
            if getattr(self, one) and getattr(self, other):
                return f"fma.{self.type} allows .{one} or .{other}, not both"
        return None


class _Unary(Instruction, targets=ALL):
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    _: KW_ONLY
    ftz: bool = False
    type: _Half
    needs = _bf16("7.0", "sm_80+")
    _f16 = rule("f16-only")(_f16_only)


class neg(_Unary, section="9.7.4.5", ptx="6.0"):
    """d = -a."""

    syntax = "neg{.ftz}.type d, a"


class abs(_Unary, section="9.7.4.6", ptx="6.5"):
    """d = |a|."""

    syntax = "abs{.ftz}.type d, a"


class _Extremum(Instruction, ptx="7.0", targets="sm_80+"):
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    ftz: bool = False
    NaN: bool = False
    xorsign: bool = False
    abs: bool = False
    type: _Half
    needs = {"xorsign": Availability("7.2", "sm_86+")}
    _f16 = rule("f16-only")(_f16_only)
    _xorsign = rule("xorsign")(signed_magnitude)


class min(_Extremum, section="9.7.4.7"):
    """d = the smaller of a and b; a NaN loses against a number unless `NaN` lets it win.

    `xorsign` and `abs`, together, compare magnitudes and give the result the product of the signs.
    """

    syntax = "min{.ftz}{.NaN}{.xorsign}{.abs}.type d, a, b"


class max(_Extremum, section="9.7.4.8"):
    """d = the larger of a and b; a NaN loses against a number unless `NaN` lets it win.

    `xorsign` and `abs`, together, compare magnitudes and give the result the product of the signs.
    """

    syntax = "max{.ftz}{.NaN}{.xorsign}{.abs}.type d, a, b"


class tanh(Instruction, section="9.7.4.9", ptx="7.0", targets="sm_75+"):
    """d = the hyperbolic tangent of a, with an absolute error of at most 2**-10.987 in .f16, 2**-8 in .bf16."""

    syntax = "tanh.approx.type d, a"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    _: KW_ONLY
    type: _Half
    needs = _bf16("7.8", "sm_90+")


class ex2(Instruction, section="9.7.4.10", ptx="7.0", targets="sm_75+"):
    """d = 2 to the power a, with a relative error of at most 2**-9.9."""

    syntax = "ex2.approx.type d, a"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    _: KW_ONLY
    type: Literal["f16", "f16x2"]


class ex2_bf16(Instruction, opcode="ex2", section="9.7.4.10", ptx="7.8", targets="sm_90+"):
    """d = 2 to the power a, with a relative error of at most 2**-7; subnormal values count as zeros."""

    syntax = "ex2.approx.ftz.type d, a"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    _: KW_ONLY
    type: Literal["bf16", "bf16x2"]
