"""Bitwise logic and shifts. PTX ISA 9.7.8. Names that Python reserves end in an underscore."""

from dataclasses import KW_ONLY
from typing import Literal

from ptxgen.instr.form import Instruction, OperandLike
from ptxgen.instr.operands import predicate, register, source
from ptxgen.instr.targets import ALL

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
