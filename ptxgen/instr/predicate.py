"""Comparison and selection. PTX ISA 9.7.6."""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr import operands
from ptxgen.instr.form import Instruction, OperandLike, rule
from ptxgen.instr.operands import register, source
from ptxgen.instr.targets import ALL

_Compare = Literal[
    "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"
]
_Type = Literal["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"]


def _comparison(form: Any) -> str | None:
    """Which comparisons a type has: .b equality, unsigned lo ls hi hs, float also the unordered ones."""
    kind, op = form.type[0], form.compare
    legal = {"b": "eq ne", "s": "eq ne lt le gt ge", "u": "eq ne lt le gt ge lo ls hi hs"}.get(
        kind, "eq ne lt le gt ge equ neu ltu leu gtu geu num nan"
    )
    if op not in legal.split():
        return f"{form.form.opcode}.{form.type} takes {' '.join('.' + name for name in legal.split())}, not .{op}"
    if form.ftz and form.type != "f32":
        return f"{form.form.opcode}.ftz is for .f32, not .{form.type}"
    return None


class setp(Instruction, section="9.7.6.2", ptx="1.0", targets=ALL):
    """p = a compared with b, and q = its opposite."""

    syntax = "setp.compare{.ftz}.type p{|q}, a, b"
    p: OperandLike = operands.predicate(sink=True)
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    q: OperandLike = operands.predicate(sink=True, default=None)
    _: KW_ONLY
    compare: _Compare
    ftz: bool = False
    type: _Type
    _legal = rule("compare")(_comparison)


class setp_bool(Instruction, section="9.7.6.2", ptx="1.0", targets=ALL):
    """p = (a compared with b) combined with c, and q = (its opposite) combined with c."""

    syntax = "setp.compare.combine{.ftz}.type p{|q}, a, b, c"
    p: OperandLike = operands.predicate(sink=True)
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    c: OperandLike = operands.predicate(negatable=True, immediate=True)
    q: OperandLike = operands.predicate(sink=True, default=None)
    _: KW_ONLY
    compare: _Compare
    combine: Literal["and", "or", "xor"]
    ftz: bool = False
    type: _Type
    _legal = rule("compare")(_comparison)


class selp(Instruction, section="9.7.6.3", ptx="1.0", targets=ALL):
    """d = a where c is true, else b."""

    syntax = "selp.type d, a, b, c"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    c: OperandLike = operands.predicate(negatable=True, immediate=True)
    _: KW_ONLY
    type: _Type
