"""8x8 and larger matrices between shared memory and the registers of a warp, as the mma instructions require them.

Each address is that of a row, from a thread of its own. PTX ISA 9.7.14.5.15 to 9.7.14.5.17.
"""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.model.form import Instruction, OperandLike
from ptxgen.instr.model.operands import address, register, vector
from ptxgen.instr.model.syntax_line import modifier
from ptxgen.instr.model.targets import Availability

_Space = Literal["shared", "shared::cta"]
_CTA = {"shared::cta": Availability("7.8", "sm_75+")}
#: Of the formats with 8-bit, 6-bit and 4-bit elements.
_NARROW = "sm_100f sm_110f sm_120f"
#: Of 4-bit integers, which sm_90a has as well.
_SIGNED = "sm_90a sm_100f sm_110f sm_120f"


def _one_each(form: Any) -> int:
    return form.num


def _two_each(form: Any) -> int:
    return 2 * form.num


class ldmatrix(Instruction, section="9.7.14.5.15", ptx="6.5", targets="sm_75+", issued_by="warp"):
    """Load `num` 8x8 matrices of 16-bit elements: thread t gets columns 2(t%4) and the next of row t/4.

    `trans` exchanges rows and columns. Threads 8i to 8i+7 give the addresses of the rows of matrix i.
    """

    syntax = "ldmatrix.sync.aligned.m8n8.num{.trans}{.space}.b16 r, [addr]"
    r: OperandLike = vector("b32", _one_each, sink=True)
    addr: OperandLike = address("space", bits=(32, 64), short=True, memory="read")
    _: KW_ONLY
    num: Literal[1, 2, 4] = modifier("x")
    trans: bool = False
    space: _Space | None = None
    needs = _CTA


class ldmatrix_m16n16(Instruction, section="9.7.14.5.15", ptx="8.6", targets=_NARROW, issued_by="warp"):
    """Load `num` 16x16 matrices of 8-bit elements and transpose them, two registers each."""

    syntax = "ldmatrix.sync.aligned.m16n16.num.trans{.space}.b8 r, [addr]"
    r: OperandLike = vector("b32", _two_each, sink=True)
    addr: OperandLike = address("space", bits=(32, 64), short=True, memory="read")
    _: KW_ONLY
    num: Literal[1, 2] = modifier("x")
    space: _Space | None = None


class ldmatrix_m8n16_unpack(Instruction, section="9.7.14.5.15", ptx="8.6", targets=_NARROW, issued_by="warp"):
    """Load `num` 8x16 matrices of 6-bit or 4-bit elements, padded to 16 bytes for each 16, into bytes."""

    syntax = "ldmatrix.sync.aligned.m8n16.num{.space}.b8x16.src r, [addr]"
    r: OperandLike = vector("b32", _one_each, sink=True)
    addr: OperandLike = address("space", bits=(32, 64), short=True, memory="read")
    _: KW_ONLY
    num: Literal[1, 2, 4] = modifier("x")
    space: _Space | None = None
    src: Literal["b6x16_p32", "b4x16_p64"]


class ldmatrix_m8n16_signed(
    Instruction, opcode="ldmatrix", section="9.7.16.5.15 (9.4)", ptx="9.4", targets=_SIGNED, issued_by="warp"
):
    """Load `num` 8x16 matrices of .s4, two a byte, as .s8."""

    syntax = "ldmatrix.sync.aligned.m8n16.num{.space}.s8.s4 r, [addr]"
    r: OperandLike = vector("b32", _one_each, sink=True)
    addr: OperandLike = address("space", bits=(32, 64), short=True, memory="read")
    _: KW_ONLY
    num: Literal[1, 2, 4] = modifier("x")
    space: _Space | None = None


class ldmatrix_m16n16_unpack(Instruction, section="9.7.14.5.15", ptx="8.6", targets=_NARROW, issued_by="warp"):
    """As ldmatrix_m16n16, of 6-bit or 4-bit elements, padded to 16 bytes for each 16, into bytes."""

    syntax = "ldmatrix.sync.aligned.m16n16.num.trans{.space}.b8x16.src r, [addr]"
    r: OperandLike = vector("b32", _two_each, sink=True)
    addr: OperandLike = address("space", bits=(32, 64), short=True, memory="read")
    _: KW_ONLY
    num: Literal[1, 2] = modifier("x")
    space: _Space | None = None
    src: Literal["b6x16_p32", "b4x16_p64"]


class stmatrix(Instruction, section="9.7.14.5.16", ptx="7.8", targets="sm_90+", issued_by="warp"):
    """Store `num` 8x8 matrices of 16-bit elements, as ldmatrix loads them."""

    syntax = "stmatrix.sync.aligned.m8n8.num{.trans}{.space}.b16 [addr], r"
    addr: OperandLike = address("space", bits=(32, 64), short=True, memory="write")
    r: OperandLike = vector("b32", _one_each, mixed=True)
    _: KW_ONLY
    num: Literal[1, 2, 4] = modifier("x")
    trans: bool = False
    space: _Space | None = None


class stmatrix_m16n8(Instruction, section="9.7.14.5.16", ptx="8.6", targets=_NARROW, issued_by="warp"):
    """Store `num` 16x8 matrices of 8-bit elements, transposed."""

    syntax = "stmatrix.sync.aligned.m16n8.num.trans{.space}.b8 [addr], r"
    addr: OperandLike = address("space", bits=(32, 64), short=True, memory="write")
    r: OperandLike = vector("b32", _one_each, mixed=True)
    _: KW_ONLY
    num: Literal[1, 2, 4] = modifier("x")
    space: _Space | None = None


class movmatrix(Instruction, section="9.7.14.5.17", ptx="7.8", targets="sm_75+", issued_by="warp"):
    """Transpose an 8x8 matrix of 16-bit elements that a warp holds as ldmatrix loads it."""

    syntax = "movmatrix.sync.aligned.m8n8.trans.b16 d, a"
    d: OperandLike = register("b32")
    a: OperandLike = register("b32", sums=True)
