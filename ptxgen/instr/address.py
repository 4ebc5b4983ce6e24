"""Generic addresses: where one lies, and the way to and from the addresses of a state space. PTX ISA 9.7.9.19, .20."""

from dataclasses import KW_ONLY
from typing import Literal

from ptxgen.instr.model.form import Instruction, OperandLike
from ptxgen.instr.model.operands import predicate, register, source
from ptxgen.instr.model.targets import ALL, Availability

_Space = Literal["const", "global", "local", "shared", "shared::cta", "shared::cluster", "param", "param::entry"]
_NEEDS = {
    "const": Availability("3.1", ALL),
    "shared::cta": Availability("7.8", "sm_30+"),
    "shared::cluster": Availability("7.8", "sm_90+"),
    "param": Availability("7.7", "sm_70+"),
    "param::entry": Availability("8.3", "sm_70+"),
}


class isspacep(Instruction, section="9.7.9.19", ptx="2.0", targets=ALL):
    """p = whether the generic address a lies in the state space."""

    syntax = "isspacep.space p, a"
    p: OperandLike = predicate()
    a: OperandLike = source("u64")
    _: KW_ONLY
    space: _Space
    needs = _NEEDS


class isspacep_32(isspacep):
    """As isspacep, of an address in a 32-bit register (measured, ptxas 13.5, which crashes where it is constant)."""

    syntax = "isspacep.space p, a"
    a: OperandLike = register("u32", sums=True)


class cvta(Instruction, section="9.7.9.20", ptx="2.0", targets=ALL):
    """d = the generic address of a, which is an address in the state space."""

    syntax = "cvta.space.size d, a"
    d: OperandLike = register("size")
    a: OperandLike = source("size", symbol="space")
    _: KW_ONLY
    space: _Space
    size: Literal["u64"]  # .u32 needs the 32-bit ABI, which is gone (measured, ptxas 13.5)
    needs = _NEEDS


class cvta_to(Instruction, opcode="cvta.to", section="9.7.9.20", ptx="2.0", targets=ALL):
    """d = the address in the state space of the generic address a."""

    syntax = "cvta.to.space.size d, a"
    d: OperandLike = register("size")
    a: OperandLike = source("size")
    _: KW_ONLY
    space: _Space
    size: Literal["u64"]  # .u32 needs the 32-bit ABI, which is gone (measured, ptxas 13.5)
    needs = _NEEDS
