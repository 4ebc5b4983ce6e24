"""Comparison and selection. PTX ISA 9.7.6, and 9.7.7 for the 16-bit floats, single and two at a time.

With `combine`, the result of a comparison is combined with the predicate c before it is written.
"""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.model import operands
from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import is_sink, register, source
from ptxgen.instr.model.targets import ALL, Availability
from ptxgen.syntax import Expression, Immediate

_FloatCompare = Literal["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]
_Compare = Literal[
    "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"
]
_Combine = Literal["and", "or", "xor"]
_Type = Literal["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"]
_AnySource = Literal["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f16", "bf16", "f32", "f64"]
_BF16 = Availability("7.8", "sm_90+")
#: bf16 as source or result, and integers as results of halves.
_NEEDS = {
    **dict.fromkeys(("bf16", "bf16x2"), _BF16),
    **{f"dtype={name}": Availability("6.5", "sm_53+") for name in ("u16", "s16", "u32", "s32")},
}


def _compared(form: Any) -> str:
    """The type that is compared."""
    return getattr(form, "stype", None) or form.type


def _comparison(form: Any) -> str | None:
    """Which comparisons a type has: .b equality, unsigned lo ls hi hs, float also the unordered ones."""
    type = _compared(form)
    kind = type.rstrip("0123456789x")
    legal = {"b": "eq ne", "s": "eq ne lt le gt ge", "u": "eq ne lt le gt ge lo ls hi hs"}.get(
        kind, "eq ne lt le gt ge equ neu ltu leu gtu geu num nan"
    )
    if form.compare not in legal.split():
        takes = " ".join("." + name for name in legal.split())
        return f"{form.form.opcode} of .{type} requires {takes}, not .{form.compare}"
    return None


def _flush(form: Any) -> str | None:
    """.ftz is for comparisons of .f32, .f16 or .f16x2, and not for .bf16 results."""
    if form.ftz and _compared(form) not in ("f32", "f16", "f16x2"):
        return f"{form.form.opcode}.ftz requires .f32, .f16 or .f16x2, not .{_compared(form)}"
    if form.ftz and getattr(form, "dtype", "") == "bf16":
        return f"{form.form.opcode}.ftz allows no .bf16 result"
    return None


def _constant(form: Any) -> str | None:
    """With .bf16 or .bf16x2, c is a register (measured, ptxas 13.5)."""
    types = (_compared(form), getattr(form, "dtype", ""))
    if isinstance(form.c, Immediate | Expression) and any(type.startswith("bf16") for type in types):
        return f"{form.form.opcode} with .bf16 requires a predicate register as c, not the constant {form.c}"
    return None


def _result(form: Any) -> str | None:
    """One destination of two may be the sink, not both."""
    if form.q is not None and str(form.p) == str(form.q) == "_":
        return f"{form.form.opcode} must write p or q, not _|_"
    return None


def _one_result(form: Any) -> bool:
    return form.q is None or is_sink(form.p) or is_sink(form.q)


class _TwoResults(Instruction):
    p: OperandLike = operands.predicate(sink=True)
    a: OperandLike = source("type", float_sums=_one_result)
    b: OperandLike = source("type", float_sums=_one_result)
    c: OperandLike = operands.predicate(negatable=True, immediate=True, when="combine", default=None)
    q: OperandLike = operands.predicate(sink=True, default=None)
    _: KW_ONLY
    compare: _Compare
    combine: _Combine | None = None
    ftz: bool = False
    _c = rule("compare")(_comparison)
    _f = rule("flush")(_flush)
    _r = rule("result", reads_operands=True)(_result)


class setp(_TwoResults, section="9.7.6.2", ptx="1.0", targets=ALL):
    """p = a compared with b, and q = its opposite."""

    syntax = "setp.compare{.combine}{.ftz}.type p{|q}, a, b{, c}"
    _: KW_ONLY
    type: _Type


class setp_half(Instruction, opcode="setp", section="9.7.7.2", ptx="4.2", targets="sm_53+"):
    """p = a compared with b, in a 16-bit float type."""

    syntax = "setp.compare{.combine}{.ftz}.type p, a, b{, c}"
    p: OperandLike = operands.predicate(sink=True)
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    c: OperandLike = operands.predicate(negatable=True, immediate=True, when="combine", default=None)
    _: KW_ONLY
    compare: _FloatCompare
    combine: _Combine | None = None
    ftz: bool = False
    type: Literal["f16", "bf16"]
    needs = _NEEDS
    _f = rule("flush")(_flush)
    _k = rule("constant", reads_operands=True)(_constant)


class setp_half2(_TwoResults, section="9.7.7.2", ptx="4.2", targets="sm_53+"):
    """p = the low halves compared, and q = the high halves compared."""

    syntax = "setp.compare{.combine}{.ftz}.type p{|q}, a, b{, c}"
    _: KW_ONLY
    compare: _FloatCompare
    type: Literal["f16x2", "bf16x2"]
    needs = _NEEDS
    _k = rule("constant", reads_operands=True)(_constant)


class _Set(Instruction):
    d: OperandLike = register("dtype")
    a: OperandLike = source("stype")
    b: OperandLike = source("stype")
    c: OperandLike = operands.predicate(negatable=True, immediate=True, when="combine", default=None)
    _: KW_ONLY
    compare: _Compare
    combine: _Combine | None = None
    ftz: bool = False
    _c = rule("compare")(_comparison)
    _f = rule("flush")(_flush)


class set(_Set, section="9.7.6.1", ptx="1.0", targets=ALL):
    """d = all ones, or 1.0 for .f32, where a compares with b, else 0."""

    syntax = "set.compare{.combine}{.ftz}.dtype.stype d, a, b{, c}"
    _: KW_ONLY
    dtype: Literal["u32", "s32", "f32"]
    stype: _Type


class set_half(_Set, section="9.7.7.1", ptx="4.2", targets="sm_53+"):
    """d = 1.0 in a 16-bit float type where a compares with b, else 0."""

    syntax = "set.compare{.combine}{.ftz}.dtype.stype d, a, b{, c}"
    _: KW_ONLY
    dtype: Literal["f16", "bf16"]
    stype: _AnySource
    needs = _NEEDS
    _k = rule("constant", reads_operands=True)(_constant)

    @rule("source")
    def _source(self) -> str | None:
        """.bf16 sources have .bf16 results."""
        return "set.f16 does not take .bf16, set.bf16 does" if (self.dtype, self.stype) == ("f16", "bf16") else None


class set_of_half(_Set, section="9.7.7.1", ptx="4.2", targets="sm_53+"):
    """d = all ones where a compares with b in a 16-bit float type, else 0."""

    syntax = "set.compare{.combine}{.ftz}.dtype.stype d, a, b{, c}"
    _: KW_ONLY
    compare: _FloatCompare
    dtype: Literal["u16", "s16", "u32", "s32"]
    stype: Literal["f16", "bf16"]
    needs = _NEEDS
    _k = rule("constant", reads_operands=True)(_constant)


class set_half2(_Set, section="9.7.7.1", ptx="4.2", targets="sm_53+"):
    """The halves of d = 1.0, or all ones for .u32 and .s32, where those of a and b compare, else 0."""

    syntax = "set.compare{.combine}{.ftz}.dtype.stype d, a, b{, c}"
    _: KW_ONLY
    compare: _FloatCompare
    dtype: Literal["f16x2", "bf16x2", "u32", "s32"]
    stype: Literal["f16x2", "bf16x2"]
    needs = _NEEDS
    _k = rule("constant", reads_operands=True)(_constant)

    @rule("packed")
    def _packed(self) -> str | None:
        """Halves in a packed float type come from the same type."""
        if self.dtype.endswith("x2") and self.dtype != self.stype:
            return f"set.{self.dtype} requires .{self.dtype}, not .{self.stype}"
        return None


class set_packed(Instruction, opcode="set", section="9.7.7.1 (9.4)", ptx="9.4", targets="sm_107f"):
    """The elements of d = all ones where those of a and b compare, else 0."""

    syntax = "set.compare.type d, a, b"
    d: OperandLike = register("b32", untyped=True)
    a: OperandLike = register("b32", untyped=True, sums=True)
    b: OperandLike = register("b32", untyped=True, sums=True)
    _: KW_ONLY
    compare: Literal["eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"]
    type: Literal["u8x4", "s8x4", "u16x2", "s16x2"]

    @rule("compare")
    def _unsigned(self) -> str | None:
        """lo, ls, hi and hs are for unsigned types."""
        if self.compare in ("lo", "ls", "hi", "hs") and self.type.startswith("s"):
            return f".{self.compare} requires .u8x4 or .u16x2, not .{self.type}"
        return None


class selp(Instruction, section="9.7.6.3", ptx="1.0", targets=ALL):
    """d = a where c is true, else b."""

    syntax = "selp.type d, a, b, c"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    c: OperandLike = operands.predicate(negatable=True, immediate=True)
    _: KW_ONLY
    type: _Type


class slct(Instruction, section="9.7.6.4", ptx="1.0", targets=ALL):
    """d = a where the integer c is 0 or more, else b."""

    syntax = "slct.type.s32 d, a, b, c"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    c: OperandLike = source("s32")
    _: KW_ONLY
    type: _Type


class slct_float(Instruction, opcode="slct", section="9.7.6.4", ptx="1.0", targets=ALL):
    """d = a where the float c is 0 or more, -0.0 included, else b."""

    syntax = "slct{.ftz}.type.f32 d, a, b, c"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    c: OperandLike = source("f32")
    _: KW_ONLY
    ftz: bool = False
    type: _Type
