"""What is said to the caches: prefetches, eviction policies, discarded lines. PTX ISA 9.7.9.15 to 9.7.9.18."""

from dataclasses import KW_ONLY
from typing import Literal

from ptxgen.instr.form import Instruction, OperandLike
from ptxgen.instr.operands import address


class prefetch_tensormap(Instruction, opcode="prefetch", section="9.7.9.15", ptx="8.0", targets="sm_90+"):
    """Bring a 128-byte tensormap close, ahead of its first use."""

    syntax = "prefetch{.space}.tensormap [a]"
    a: OperandLike = address("space", bits=(32, 64))
    _: KW_ONLY
    space: Literal["const", "param"] | None = None
