"""Warp-level communication. PTX ISA 9.7.13 (elect); votes, shuffles and matches are not here yet."""

from ptxgen.instr.form import Instruction, OperandLike
from ptxgen.instr.operands import predicate, register, source


class elect(Instruction, section="9.7.13 (elect.sync)", ptx="8.0", targets="sm_90+", issued_by="warp"):
    """p = true in one thread of `mask`, the same one each time; d = its lane."""

    syntax = "elect.sync d|p, mask"
    d: OperandLike = register("b32", sink=True)
    p: OperandLike = predicate()
    mask: OperandLike = source("u32")
