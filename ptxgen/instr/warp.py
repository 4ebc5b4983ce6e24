"""Warp-level communication. PTX ISA 9.7.9.6 (shfl.sync), 9.7.13 (elect); votes and matches are not here yet."""

from dataclasses import KW_ONLY
from typing import Literal

from ptxgen.instr.form import Instruction, OperandLike
from ptxgen.instr.operands import predicate, register, source


class elect(Instruction, section="9.7.13 (elect.sync)", ptx="8.0", targets="sm_90+", issued_by="warp"):
    """p = true in one thread of `mask`, the same one each time; d = its lane."""

    syntax = "elect.sync d|p, mask"
    d: OperandLike = register("b32", sink=True)
    p: OperandLike = predicate()
    mask: OperandLike = source("u32")


class shfl(Instruction, section="9.7.9.6", ptx="6.0", targets="sm_30+", issued_by="warp"):
    """d = a of another lane, chosen by `mode` and b within the segments that c describes; p = whether there is one."""

    syntax = "shfl.sync.mode.b32 d{|p}, a, b, c, mask"
    d: OperandLike = register("b32")
    a: OperandLike = source("b32")
    b: OperandLike = source("b32")
    c: OperandLike = source("b32")
    mask: OperandLike = source("u32")
    p: OperandLike = predicate(default=None)
    _: KW_ONLY
    mode: Literal["up", "down", "bfly", "idx"]
