"""Warpgroup-wide MMA of Hopper. PTX ISA 9.7.15.

The names with `_rs` take A from registers, the others from shared memory; those with `_sp` have a sparse A. `n` is N of
the shape m64nNkK, whose K follows from the type. D is in registers, read and written. `fence` orders accesses to the
registers, `commit_group` groups MMAs, which are complete after `wait_group`.
"""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.fragments import registers
from ptxgen.instr.model.operands import immediate, predicate, source, vector
from ptxgen.instr.model.syntax_line import modifier
from ptxgen.instr.model.targets import Availability
from ptxgen.syntax import Expression, Immediate

_N = Literal[
    8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 168, 176, 184, 192, 200, 208,
    216, 224, 232, 240, 248, 256,
]  # fmt: skip
_IntegerN = Literal[8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256]
_F8 = Literal["e4m3", "e5m2"]
_I8 = Literal["s8", "u8"]
#: Rows of D and A that each of the four warps holds.
_ROWS = 16
_MIXED = {f"atype={a} btype={b}": Availability("8.4", "sm_90a") for a, b in (("s8", "u8"), ("u8", "s8"))}


def _d_type(form: Any) -> str:
    return "f16x2" if form.dtype == "f16" else form.dtype


def _d_count(form: Any) -> int:
    return registers(_ROWS * form.n, 16 if form.dtype == "f16" else 32)


def _a_type(form: Any) -> str:
    return f"{form.type}x2"


def _a_count(_: Any) -> int:
    # K is 256 bits of each row of A; of a sparse A 512 bits, half of them stored.
    return registers(_ROWS * 256, 1)


def _enable(form: Any) -> str | None:
    """A constant scale_d is 0 or 1."""
    if isinstance(form.scale_d, Immediate | Expression) and form.scale_d.evaluate() not in (0, 1):
        return f"scale_d must be a predicate, 0 or 1, not {form.scale_d}"
    return None


def _half_precision(form: Any) -> str | None:
    """bf16 accumulates in f32."""
    if form.type == "bf16" and form.dtype == "f16":
        return "wgmma.mma_async of .bf16 requires a D of .f32, not .f16"
    return None


class _Group(
    Instruction,
    opcode="wgmma.mma_async",
    ptx="8.0",
    targets="sm_90a",
    issued_by="warpgroup",
    completed_by="wgmma.commit_group, then wgmma.wait_group",
    fences="wgmma.fence after other accesses to its registers, fence.proxy.async after stores to its shared memory",
    multiplies=True,
    updates=("d",),
):
    """D = A*B, plus D if `scale_d`. `a` and `b` are descriptors of matrices in shared memory."""


class _Dense(_Group, section="9.7.15.5.2"):
    d: OperandLike = vector(_d_type, _d_count)
    a: OperandLike = source("u64", memory="read", memory_space="shared")
    b: OperandLike = source("u64", memory="read", memory_space="shared")
    scale_d: OperandLike = predicate(negatable=True, immediate=True)
    _enable = rule("scale-d", reads_operands=True)(_enable)


class _DenseScaled(_Dense):
    imm_scale_a: OperandLike = immediate(-1, 1, multiple=2)
    imm_scale_b: OperandLike = immediate(-1, 1, multiple=2)


class _Sparse(_Group, section="9.7.15.6.3", ptx="8.2"):
    """Half of A is zeros and not stored; `sp_meta` says where the rest is, `sp_sel` which threads of a quad hold it."""

    d: OperandLike = vector(_d_type, _d_count)
    a: OperandLike = source("u64", memory="read", memory_space="shared")
    b: OperandLike = source("u64", memory="read", memory_space="shared")
    sp_meta: OperandLike = vector("b32", 1, scalar=True, sums=True)
    sp_sel: OperandLike = immediate(0, 1)
    scale_d: OperandLike = predicate(negatable=True, immediate=True)
    _enable = rule("scale-d", reads_operands=True)(_enable)


class _SparseScaled(_Sparse):
    imm_scale_a: OperandLike = immediate(-1, 1, multiple=2)
    imm_scale_b: OperandLike = immediate(-1, 1, multiple=2)


class mma_async_f16(_DenseScaled):
    """Half precision and bfloat16. `imm_trans_a` and `imm_trans_b` are 1 for an A, a B that is M-major, N-major."""

    syntax = (
        "wgmma.mma_async.sync.aligned.n.dtype.type.type"
        " d, a, b, scale_d, imm_scale_a, imm_scale_b, imm_trans_a, imm_trans_b"
    )
    imm_trans_a: OperandLike = immediate(0, 1)
    imm_trans_b: OperandLike = immediate(0, 1)
    _: KW_ONLY
    n: _N = modifier("m64n", "k16")
    dtype: Literal["f16", "f32"]
    type: Literal["f16", "bf16"]
    _accumulator = rule("accumulator")(_half_precision)


class mma_async_f16_rs(_DenseScaled):
    """As mma_async_f16, with A in registers."""

    syntax = "wgmma.mma_async.sync.aligned.n.dtype.type.type d, a, b, scale_d, imm_scale_a, imm_scale_b, imm_trans_b"
    a: OperandLike = vector(_a_type, _a_count, mixed=True)
    imm_trans_b: OperandLike = immediate(0, 1)
    _: KW_ONLY
    n: _N = modifier("m64n", "k16")
    dtype: Literal["f16", "f32"]
    type: Literal["f16", "bf16"]
    _accumulator = rule("accumulator")(_half_precision)


class mma_async_tf32(_DenseScaled):
    """tf32: the upper 19 bits of 32."""

    atype = btype = "tf32"
    syntax = "wgmma.mma_async.sync.aligned.n.dtype.tf32.tf32 d, a, b, scale_d, imm_scale_a, imm_scale_b"
    _: KW_ONLY
    n: _N = modifier("m64n", "k8")
    dtype: Literal["f32"]


class mma_async_tf32_rs(_DenseScaled):
    """As mma_async_tf32, with A in registers."""

    atype = btype = "tf32"
    syntax = "wgmma.mma_async.sync.aligned.n.dtype.tf32.tf32 d, a, b, scale_d, imm_scale_a, imm_scale_b"
    a: OperandLike = vector("tf32", _a_count, mixed=True)
    _: KW_ONLY
    n: _N = modifier("m64n", "k8")
    dtype: Literal["f32"]


class mma_async_f8(_DenseScaled):
    """8-bit floats; f32 sums have fewer bits than f32."""

    syntax = "wgmma.mma_async.sync.aligned.n.dtype.atype.btype d, a, b, scale_d, imm_scale_a, imm_scale_b"
    _: KW_ONLY
    n: _N = modifier("m64n", "k32")
    dtype: Literal["f16", "f32"]
    atype: _F8
    btype: _F8


class mma_async_f8_rs(_DenseScaled):
    """As mma_async_f8, with A in registers."""

    syntax = "wgmma.mma_async.sync.aligned.n.dtype.atype.btype d, a, b, scale_d, imm_scale_a, imm_scale_b"
    a: OperandLike = vector("e4m3x4", _a_count, mixed=True)
    _: KW_ONLY
    n: _N = modifier("m64n", "k32")
    dtype: Literal["f16", "f32"]
    atype: _F8
    btype: _F8


class mma_async_i8(_Dense):
    """8-bit integers; `satfinite` clamps the sums instead of wrapping them."""

    dtype = "s32"
    syntax = "wgmma.mma_async.sync.aligned.n{.satfinite}.s32.atype.btype d, a, b, scale_d"
    _: KW_ONLY
    n: _IntegerN = modifier("m64n", "k32")
    satfinite: bool = False
    atype: _I8
    btype: _I8
    needs = _MIXED


class mma_async_i8_rs(_Dense):
    """As mma_async_i8, with A in registers."""

    dtype = "s32"
    syntax = "wgmma.mma_async.sync.aligned.n{.satfinite}.s32.atype.btype d, a, b, scale_d"
    a: OperandLike = vector("u32", _a_count, mixed=True)
    _: KW_ONLY
    n: _IntegerN = modifier("m64n", "k32")
    satfinite: bool = False
    atype: _I8
    btype: _I8
    needs = _MIXED


class mma_async_b1(_Dense):
    """Single bits: the number of ones in a row of A and a column of B."""

    atype = btype = "b1"
    dtype = "s32"
    syntax = "wgmma.mma_async.sync.aligned.n.s32.b1.b1.and.popc d, a, b, scale_d"
    _: KW_ONLY
    n: _IntegerN = modifier("m64n", "k256")


class mma_async_b1_rs(_Dense):
    """As mma_async_b1, with A in registers."""

    atype = btype = "b1"
    dtype = "s32"
    syntax = "wgmma.mma_async.sync.aligned.n.s32.b1.b1.and.popc d, a, b, scale_d"
    a: OperandLike = vector("u32", _a_count, mixed=True)
    _: KW_ONLY
    n: _IntegerN = modifier("m64n", "k256")


class mma_async_sp_f16(_SparseScaled):
    """As mma_async_f16, with 2 of 4 elements of A."""

    syntax = (
        "wgmma.mma_async.sp.sync.aligned.n.dtype.type.type"
        " d, a, b, sp_meta, sp_sel, scale_d, imm_scale_a, imm_scale_b, imm_trans_a, imm_trans_b"
    )
    imm_trans_a: OperandLike = immediate(0, 1)
    imm_trans_b: OperandLike = immediate(0, 1)
    _: KW_ONLY
    n: _N = modifier("m64n", "k32")
    dtype: Literal["f16", "f32"]
    type: Literal["f16", "bf16"]
    _accumulator = rule("accumulator")(_half_precision)


class mma_async_sp_f16_rs(_SparseScaled):
    """As mma_async_sp_f16, with A in registers."""

    syntax = (
        "wgmma.mma_async.sp.sync.aligned.n.dtype.type.type"
        " d, a, b, sp_meta, sp_sel, scale_d, imm_scale_a, imm_scale_b, imm_trans_b"
    )
    a: OperandLike = vector(_a_type, _a_count, mixed=True)
    imm_trans_b: OperandLike = immediate(0, 1)
    _: KW_ONLY
    n: _N = modifier("m64n", "k32")
    dtype: Literal["f16", "f32"]
    type: Literal["f16", "bf16"]
    _accumulator = rule("accumulator")(_half_precision)


class mma_async_sp_tf32(_SparseScaled):
    """As mma_async_tf32, with 1 of 2 elements of A."""

    atype = btype = "tf32"
    syntax = (
        "wgmma.mma_async.sp.sync.aligned.n.dtype.tf32.tf32 d, a, b, sp_meta, sp_sel, scale_d, imm_scale_a, imm_scale_b"
    )
    _: KW_ONLY
    n: _N = modifier("m64n", "k16")
    dtype: Literal["f32"]


class mma_async_sp_tf32_rs(_SparseScaled):
    """As mma_async_sp_tf32, with A in registers."""

    atype = btype = "tf32"
    syntax = (
        "wgmma.mma_async.sp.sync.aligned.n.dtype.tf32.tf32 d, a, b, sp_meta, sp_sel, scale_d, imm_scale_a, imm_scale_b"
    )
    a: OperandLike = vector("tf32", _a_count, mixed=True)
    _: KW_ONLY
    n: _N = modifier("m64n", "k16")
    dtype: Literal["f32"]


class mma_async_sp_f8(_SparseScaled):
    """As mma_async_f8, with 2 of 4 elements of A."""

    syntax = (
        "wgmma.mma_async.sp.sync.aligned.n.dtype.atype.btype"
        " d, a, b, sp_meta, sp_sel, scale_d, imm_scale_a, imm_scale_b"
    )
    sp_sel: OperandLike = immediate(0, 0)
    _: KW_ONLY
    n: _N = modifier("m64n", "k64")
    dtype: Literal["f16", "f32"]
    atype: _F8
    btype: _F8


class mma_async_sp_f8_rs(_SparseScaled):
    """As mma_async_sp_f8, with A in registers."""

    syntax = (
        "wgmma.mma_async.sp.sync.aligned.n.dtype.atype.btype"
        " d, a, b, sp_meta, sp_sel, scale_d, imm_scale_a, imm_scale_b"
    )
    a: OperandLike = vector("e4m3x4", _a_count, mixed=True)
    sp_sel: OperandLike = immediate(0, 0)
    _: KW_ONLY
    n: _N = modifier("m64n", "k64")
    dtype: Literal["f16", "f32"]
    atype: _F8
    btype: _F8


class mma_async_sp_i8(_Sparse):
    """As mma_async_i8, with 2 of 4 elements of A."""

    dtype = "s32"
    syntax = "wgmma.mma_async.sp.sync.aligned.n{.satfinite}.s32.atype.btype d, a, b, sp_meta, sp_sel, scale_d"
    sp_sel: OperandLike = immediate(0, 0)
    _: KW_ONLY
    n: _IntegerN = modifier("m64n", "k64")
    satfinite: bool = False
    atype: _I8
    btype: _I8
    needs = _MIXED


class mma_async_sp_i8_rs(_Sparse):
    """As mma_async_sp_i8, with A in registers."""

    dtype = "s32"
    syntax = "wgmma.mma_async.sp.sync.aligned.n{.satfinite}.s32.atype.btype d, a, b, sp_meta, sp_sel, scale_d"
    a: OperandLike = vector("u32", _a_count, mixed=True)
    sp_sel: OperandLike = immediate(0, 0)
    _: KW_ONLY
    n: _IntegerN = modifier("m64n", "k64")
    satfinite: bool = False
    atype: _I8
    btype: _I8
    needs = _MIXED


class fence(
    Instruction,
    opcode="wgmma.fence",
    section="9.7.15.7.1",
    ptx="8.0",
    targets="sm_90a",
    issued_by="warpgroup",
    synchronizes=True,
):
    """Order earlier accesses to registers before those of later mma_async, unless both are mma_async of one shape."""

    syntax = "wgmma.fence.sync.aligned"


class commit_group(
    Instruction,
    opcode="wgmma.commit_group",
    section="9.7.15.7.2",
    ptx="8.0",
    targets="sm_90a",
    issued_by="warpgroup",
    completed_by="wgmma.wait_group",
    asynchronous=False,
):
    """Make a group of the mma_async that are in none yet; it may be empty."""

    syntax = "wgmma.commit_group.sync.aligned"


class wait_group(
    Instruction,
    opcode="wgmma.wait_group",
    section="9.7.15.7.3",
    ptx="8.0",
    targets="sm_90a",
    issued_by="warpgroup",
    synchronizes=True,
):
    """Wait until at most `pending` of the latest groups are not done; then the registers of the others may be used."""

    syntax = "wgmma.wait_group.sync.aligned pending"
    pending: OperandLike = immediate(0, 2**63 - 1)
