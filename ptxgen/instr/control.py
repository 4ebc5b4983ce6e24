"""Control flow. PTX ISA 9.7.12; calls and indexed branches are not here yet."""

from dataclasses import KW_ONLY

from ptxgen.instr.form import Instruction, OperandLike
from ptxgen.instr.operands import label
from ptxgen.instr.targets import ALL


class bra(Instruction, section="9.7.12 (bra)", ptx="1.0", targets=ALL):
    """Go to a label; `uni` promises that all active threads of the warp agree."""

    syntax = "bra{.uni} target"
    target: OperandLike = label()
    _: KW_ONLY
    uni: bool = False


class ret(Instruction, section="9.7.12 (ret)", ptx="1.0", targets=ALL):
    """Return from a function; in an entry, end the thread."""

    syntax = "ret{.uni}"
    _: KW_ONLY
    uni: bool = False


class exit(Instruction, section="9.7.12 (exit)", ptx="1.0", targets=ALL):
    """End the thread."""

    syntax = "exit"
