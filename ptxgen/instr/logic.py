"""Bitwise logic and shifts. PTX ISA 9.7.8. Names that Python reserves end in an underscore."""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.model.form import Instruction, OperandLike
from ptxgen.instr.model.operands import immediate, is_sink, predicate, register, source
from ptxgen.instr.model.targets import ALL

_Bits = Literal["b16", "b32", "b64"]


class and_(Instruction, opcode="and", section="9.7.8.1", ptx="1.0", targets=ALL):
    """d = a & b."""

    syntax = "and.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    type: _Bits


class and_pred(Instruction, opcode="and", section="9.7.8.1", ptx="1.0", targets=ALL):
    """p = a and b, on predicates."""

    syntax = "and.pred d, a, b"
    d: OperandLike = predicate()
    a: OperandLike = predicate(negatable=True, immediate=True)
    b: OperandLike = predicate(negatable=True, immediate=True)


class or_(Instruction, opcode="or", section="9.7.8.2", ptx="1.0", targets=ALL):
    """d = a | b."""

    syntax = "or.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    type: _Bits


class or_pred(Instruction, opcode="or", section="9.7.8.2", ptx="1.0", targets=ALL):
    """p = a or b, on predicates."""

    syntax = "or.pred d, a, b"
    d: OperandLike = predicate()
    a: OperandLike = predicate(negatable=True, immediate=True)
    b: OperandLike = predicate(negatable=True, immediate=True)


class xor(Instruction, section="9.7.8.3", ptx="1.0", targets=ALL):
    """d = a ^ b."""

    syntax = "xor.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("type")
    _: KW_ONLY
    type: _Bits


class xor_pred(Instruction, opcode="xor", section="9.7.8.3", ptx="1.0", targets=ALL):
    """p = a xor b, on predicates."""

    syntax = "xor.pred d, a, b"
    d: OperandLike = predicate()
    a: OperandLike = predicate(negatable=True, immediate=True)
    b: OperandLike = predicate(negatable=True, immediate=True)


class not_(Instruction, opcode="not", section="9.7.8.4", ptx="1.0", targets=ALL):
    """d = ~a."""

    syntax = "not.type d, a"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    _: KW_ONLY
    type: _Bits


class not_pred(Instruction, opcode="not", section="9.7.8.4", ptx="1.0", targets=ALL):
    """p = not a, on predicates."""

    syntax = "not.pred d, a"
    d: OperandLike = predicate()
    a: OperandLike = predicate(negatable=True, immediate=True)


class cnot(Instruction, section="9.7.8.5", ptx="1.0", targets=ALL):
    """d = 1 where a is 0, else 0."""

    syntax = "cnot.type d, a"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    _: KW_ONLY
    type: _Bits


class lop3(Instruction, section="9.7.8.6", ptx="4.3", targets="sm_50+"):
    """d = any function of the bits of a, b and c: `lut` is that function of 0xF0, 0xCC and 0xAA, in 8 bits."""

    syntax = "lop3.b32 d, a, b, c, lut"
    d: OperandLike = register("b32", sink=True)
    a: OperandLike = source("b32")
    b: OperandLike = source("b32")
    c: OperandLike = source("b32")
    lut: OperandLike = immediate(0, 255, advice=True)


def _predicate_alone(form: Any) -> bool:
    return is_sink(form.d)


class lop3_bool(Instruction, opcode="lop3", section="9.7.8.6", ptx="8.2", targets="sm_70+"):
    """As lop3, and p = (d is not 0) combined with q."""

    syntax = "lop3.combine.b32 d|p, a, b, c, lut, q"
    d: OperandLike = register("b32", sink=True)
    p: OperandLike = predicate()
    a: OperandLike = source("b32", float_sums=_predicate_alone)
    b: OperandLike = source("b32", float_sums=_predicate_alone)
    c: OperandLike = source("b32", float_sums=_predicate_alone)
    lut: OperandLike = immediate(0, 255, advice=True)
    q: OperandLike = predicate(negatable=True, immediate=True)
    _: KW_ONLY
    combine: Literal["or", "and"]


class shf(Instruction, section="9.7.8.7", ptx="3.1", targets="sm_32+", leading=1):
    """d = the upper word of b:a << c (`l`), or the lower word of b:a >> c (`r`), where b:a are 64 bits.

    Amounts above 32 count as 32 (`clamp`) or modulo 32 (`wrap`).
    """

    syntax = "shf.direction.mode.b32 d, a, b, c"
    d: OperandLike = register("b32")
    a: OperandLike = source("b32")
    b: OperandLike = source("b32")
    c: OperandLike = source("u32")
    _: KW_ONLY
    direction: Literal["l", "r"]
    mode: Literal["clamp", "wrap"]


class shl(Instruction, section="9.7.8.8", ptx="1.0", targets=ALL):
    """d = a << b; b is 32 bits wide, amounts of the width or more give 0."""

    syntax = "shl.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("u32")
    _: KW_ONLY
    type: _Bits


class shr(Instruction, section="9.7.8.9", ptx="1.0", targets=ALL):
    """d = a >> b, filling with the sign for .s types; b is 32 bits wide and clamped to the width."""

    syntax = "shr.type d, a, b"
    d: OperandLike = register("type")
    a: OperandLike = source("type")
    b: OperandLike = source("u32")
    _: KW_ONLY
    type: Literal["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"]
