"""Sums and products that read or write the carry, for integers wider than registers. PTX ISA 9.7.2.

Each thread has one carry. No other instruction reads or writes it, and it does not outlive a call.
"""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import register, source
from ptxgen.instr.model.targets import ALL, Availability

_Wide = Literal["u32", "s32", "u64", "s64"]
_Int = Literal["u16", "s16", "u32", "s32", "u64", "s64"]
_NEEDS = {name: Availability("4.3", ALL) for name in ("u64", "s64")}


def _last_word(form: Any) -> str | None:
    """What carries nothing out may have 16 bits, or .sat with .s32 (measured, ptxas 13.5; not in the manual)."""
    name = form.form.opcode
    if form.cc and form.type in ("u16", "s16"):
        return f"{name}.cc requires 32-bit or 64-bit types, not .{form.type}"
    if form.sat and (form.cc or form.type != "s32"):
        return f"{name}.sat requires .s32 without .cc, not {'.cc' if form.cc else ''}.{form.type}"
    return None


class add_cc(Instruction, section="9.7.2.1", ptx="1.2", targets=ALL, lanewise=False):
    """d = a + b; the carry gets what is carried out."""

    syntax = "add.cc.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    type: _Wide
    needs = _NEEDS


class addc(Instruction, section="9.7.2.2", ptx="1.2", targets=ALL, lanewise=False):
    """d = a + b + the carry; with `cc`, the carry gets what is carried out."""

    syntax = "addc{.cc}{.sat}.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    cc: bool = False
    sat: bool = False
    type: _Int
    needs = _NEEDS
    _l = rule("last-word")(_last_word)


class sub_cc(Instruction, section="9.7.2.3", ptx="1.2", targets=ALL, lanewise=False):
    """d = a - b; the carry gets what is borrowed."""

    syntax = "sub.cc.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    type: _Wide
    needs = _NEEDS


class subc(Instruction, section="9.7.2.4", ptx="1.2", targets=ALL, lanewise=False):
    """d = a - (b + the carry); with `cc`, the carry gets what is borrowed."""

    syntax = "subc{.cc}{.sat}.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    cc: bool = False
    sat: bool = False
    type: _Int
    needs = _NEEDS
    _l = rule("last-word")(_last_word)


class mad_cc(Instruction, section="9.7.2.5", ptx="3.0", targets=ALL, leading=1, lanewise=False):
    """d = the low or high half of a * b, plus c; the carry gets what the sum carries out."""

    syntax = "mad.half.cc.type d, a, b, c"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    c: OperandLike = source("type")
    _: KW_ONLY
    half: Literal["lo", "hi"]
    type: _Wide
    needs = _NEEDS


class madc(Instruction, section="9.7.2.6", ptx="3.0", targets=ALL, leading=1, lanewise=False):
    """d = the low or high half of a * b, plus c and the carry; with `cc`, the carry gets what the sum carries out."""

    syntax = "madc.half{.cc}{.sat}.type d, a, b, c"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    c: OperandLike = source("type")
    _: KW_ONLY
    half: Literal["lo", "hi"]
    cc: bool = False
    sat: bool = False
    type: _Int
    needs = _NEEDS
    _l = rule("last-word")(_last_word)

    @rule("saturated-half")
    def _saturated(self) -> str | None:
        """.sat is for the high half, as in mad."""
        return f"madc.sat requires .hi, not .{self.half}" if self.sat and self.half != "hi" else None
