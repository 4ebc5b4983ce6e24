"""Control flow: branches, calls, returns. PTX ISA 9.7.12.

With `uni`, all active threads of the warp must agree on where they go.
"""

from dataclasses import KW_ONLY

from ptxgen.instr.model import operands
from ptxgen.instr.model.form import Instruction, OperandLike
from ptxgen.instr.model.operands import callee, label, source, targets, values
from ptxgen.instr.model.targets import ALL


class bra(Instruction, section="9.7.12.3", ptx="1.0", targets=ALL, control="branch"):
    """Go to a label."""

    syntax = "bra{.uni} target"
    target: OperandLike = label()
    _: KW_ONLY
    uni: bool = False


class brx_idx(Instruction, opcode="brx.idx", section="9.7.12.4", ptx="6.0", targets="sm_30+", control="branch"):
    """Go to the label that has number `index`, from 0 on, in a .branchtargets list."""

    syntax = "brx.idx{.uni} index, labels"
    index: OperandLike = source("u32")
    labels: OperandLike = label("branch targets")
    _: KW_ONLY
    uni: bool = False


class call(Instruction, section="9.7.12.5", ptx="1.0", targets=ALL, control="call", results=("returns",)):
    """Call a function by its name."""

    syntax = "call{.uni} {(returns),} function{, (arguments)}"
    function: OperandLike = callee()
    arguments: OperandLike = values(default=None)
    returns: OperandLike = values(default=None)
    _: KW_ONLY
    uni: bool = False


class call_pointer(
    Instruction, opcode="call", section="9.7.12.5", ptx="2.1", targets="sm_20+", control="call", results=("returns",)
):
    """Call the function whose address a register holds; `signature` is one that all possible callees have.

    It names a .callprototype, a .calltargets list, or an array of functions in .const or .global.
    """

    syntax = "call{.uni} {(returns),} pointer{, (arguments)}, signature"
    pointer: OperandLike = operands.pointer()
    signature: OperandLike = targets()
    arguments: OperandLike = values(default=None)
    returns: OperandLike = values(default=None)
    _: KW_ONLY
    uni: bool = False


class ret(Instruction, section="9.7.12.6", ptx="1.0", targets=ALL, control="return"):
    """Return from a function; in an entry, end the thread."""

    syntax = "ret{.uni}"
    _: KW_ONLY
    uni: bool = False


class exit(Instruction, section="9.7.12.7", ptx="1.0", targets=ALL, control="exit"):
    """End the thread."""

    syntax = "exit"
