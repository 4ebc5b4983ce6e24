"""Memory on the stack of a thread. PTX ISA 9.7.17.

The forms of .u32 need the 32-bit ABI for their addresses, but assemble (measured, ptxas 13.5).
"""

from dataclasses import KW_ONLY
from typing import Literal

from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import immediate, register, source

_Size = Literal["u32", "u64"]


class stacksave(Instruction, section="9.7.17.1", ptx="7.3", targets="sm_52+", lanewise=False):
    """d = the stack pointer."""

    syntax = "stacksave.type d"
    d: OperandLike = register("type")
    _: KW_ONLY
    type: _Size


class stackrestore(Instruction, section="9.7.17.2", ptx="7.3", targets="sm_52+", results=()):
    """The stack pointer = a, which frees what was taken since a was saved."""

    syntax = "stackrestore.type a"
    a: OperandLike = register("type")
    _: KW_ONLY
    type: _Size


class alloca(Instruction, section="9.7.17.3", ptx="7.3", targets="sm_52+", lanewise=False):
    """ptr = the .local address of `size` bytes on the stack, aligned to `align` bytes (8 without it)."""

    syntax = "alloca.type ptr, size{, align}"
    ptr: OperandLike = register("type")
    size: OperandLike = source("type")
    align: OperandLike = immediate(1, 2**23, default=None)
    _: KW_ONLY
    type: _Size

    @rule("alignment", reads_operands=True)
    def _alignment(self) -> str | None:
        """A power of two."""
        if self.align is None or int(self.align.evaluate()).bit_count() == 1:
            return None
        return f"align must be a power of two up to 2^23, not {self.align}"
