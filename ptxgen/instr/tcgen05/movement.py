"""Between tensor memory, registers and shared memory. PTX ISA 9.7.16.8 and 9.7.16.9.

`taddr` is lane << 16 | column. By loads and stores a warp reaches only its own quarter of the lanes.
"""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import address, immediate, register, source, vector
from ptxgen.instr.model.operands.compound import repeated
from ptxgen.instr.model.syntax_line import flag, modifier
from ptxgen.instr.tcgen05.common import BETWEEN_THREADS, BY_TENSOR_CORE, FAMILY, SINGLE
from ptxgen.layouts.tmem import MAX_REPEAT, REGISTERS_PER_REPEAT


def _registers(form: Any) -> int:
    return REGISTERS_PER_REPEAT[form.shape] * form.num


def _repeats(form: Any) -> str | None:
    """At most 128 registers a thread."""
    limit = MAX_REPEAT[form.shape]
    if form.num > limit:
        return f"{form.form.opcode}.{form.shape} requires .x1 to .x{limit}, not .x{form.num}"
    return None


# Loads.


class _Load(
    Instruction,
    section="9.7.16.8.3",
    ptx="8.6",
    targets=FAMILY,
    issued_by="warp",
    completed_by="tcgen05.wait::ld",
    fences=BETWEEN_THREADS,
):
    @rule("registers", reads_names=True)
    def _registers(self) -> str | None:
        """No register takes two results; of others ptxas 13.5 says so, here it loses its way (measured)."""
        return repeated(self, *self.form.operands)


class ld(_Load, opcode="tcgen05.ld"):
    """Load `num` repetitions of a shape from TMEM into registers; `pack` puts two 16-bit columns into a register."""

    syntax = "tcgen05.ld.sync.aligned.shape.num{.pack}.b32 r, [taddr]"
    r: OperandLike = vector("b32", _registers)
    taddr: OperandLike = address("tmem", bits=(32,), memory="read")
    _: KW_ONLY
    shape: Literal["16x64b", "16x128b", "16x256b", "32x32b"]
    num: Literal[1, 2, 4, 8, 16, 32, 64, 128] = modifier("x")
    pack: bool = flag("pack::16b", default=False)
    _n = rule("num")(_repeats)


class ld_halves(_Load, opcode="tcgen05.ld"):
    """Load from two column ranges at once: lanes 0-15 from `taddr`, lanes 16-31 `split` columns further."""

    syntax = "tcgen05.ld.sync.aligned.16x32bx2.num{.pack}.b32 r, [taddr], split"
    r: OperandLike = vector("b32", lambda form: form.num)
    taddr: OperandLike = address("tmem", bits=(32,), memory="read")
    split: OperandLike = immediate(-(2**63), 2**64 - 1)
    _: KW_ONLY
    num: Literal[1, 2, 4, 8, 16, 32, 64, 128] = modifier("x")
    pack: bool = flag("pack::16b", default=False)


class _Reduction(_Load, opcode="tcgen05.ld.red", ptx="8.8", targets="sm_103f sm_110f", results=("r", "result")):
    r: OperandLike = vector("b32", lambda form: form.num)
    result: OperandLike = register("b32")
    taddr: OperandLike = address("tmem", bits=(32,), memory="read")
    _: KW_ONLY
    num: Literal[2, 4, 8, 16, 32, 64, 128] = modifier("x")
    op: Literal["min", "max"]
    abs: bool = False
    NaN: bool = False
    type: Literal["f32", "u32", "s32"]

    @rule("float")
    def _float(self) -> str | None:
        """.abs and .NaN are for .f32."""
        if (self.abs or self.NaN) and self.type != "f32":
            return f".abs and .NaN go with .f32, not with .{self.type}"
        return None


class ld_red(_Reduction):
    """As ld of the shape 32x32b; `result` gets the least or greatest of the columns of each lane.

    `abs` takes absolute values, `NaN` makes the result NaN if one of them is.
    """

    syntax = "tcgen05.ld.red.sync.aligned.32x32b.num.op{.abs}{.NaN}.type r, result, [taddr]"


class ld_red_halves(_Reduction):
    """As ld_halves; `result` gets the least or greatest of the columns of each lane."""

    syntax = "tcgen05.ld.red.sync.aligned.16x32bx2.num.op{.abs}{.NaN}.type r, result, [taddr], split"
    split: OperandLike = immediate(-(2**63), 2**64 - 1)


class _Compression(_Load, ptx="9.4", targets="sm_107a"):
    """Newer than the manual at hand (9.2): the forms are measured, ptxas 13.5; semantics inferred from names."""

    indices: OperandLike = vector("b32", lambda form: -(-form.num // 32))
    r: OperandLike = vector("b32", lambda form: form.num // 2)
    _: KW_ONLY
    num: Literal[4, 8, 16, 32, 64, 128] = modifier("x")
    op: Literal["min", "max"]
    abs: bool = False


class ld_spcompress(_Compression, opcode="tcgen05.ld.spcompress", results=("indices", "r")):
    """Load `num` .f32 columns and keep 2 of each 4 in `r`, the least or greatest; `indices` gives which, 2 bits each.

    `abs` takes absolute values.
    """

    syntax = "tcgen05.ld.spcompress.sync.aligned.32x32b.num.op{.abs}.sp::2:4.f32.b2 indices, r, [taddr]"
    taddr: OperandLike = address("tmem", bits=(32,), memory="read")


class ld_red_spcompress(_Compression, opcode="tcgen05.ld.red.spcompress", results=("indices", "r", "result")):
    """As ld_spcompress; `result` gets the least or greatest of the columns of each lane."""

    syntax = (
        "tcgen05.ld.red.spcompress.sync.aligned.32x32b.num.op{.abs}{.NaN}.sp::2:4.f32.b2 indices, r, result, [taddr]"
    )
    result: OperandLike = register("b32")
    taddr: OperandLike = address("tmem", bits=(32,), memory="read")
    _: KW_ONLY
    NaN: bool = False


# Stores.


class _Store(
    Instruction,
    opcode="tcgen05.st",
    section="9.7.16.8.4",
    ptx="8.6",
    targets=FAMILY,
    issued_by="warp",
    completed_by="tcgen05.wait::st",
    fences=BETWEEN_THREADS,
):
    taddr: OperandLike = address("tmem", bits=(32,), memory="write")
    _: KW_ONLY
    num: Literal[1, 2, 4, 8, 16, 32, 64, 128] = modifier("x")
    unpack: bool = flag("unpack::16b", default=False)


class st(_Store):
    """Store `num` repetitions of a shape from registers to TMEM; `unpack` puts a register's halves into two columns."""

    syntax = "tcgen05.st.sync.aligned.shape.num{.unpack}.b32 [taddr], r"
    r: OperandLike = vector("b32", _registers, mixed=True)
    _: KW_ONLY
    shape: Literal["16x64b", "16x128b", "16x256b", "32x32b"]
    _n = rule("num")(_repeats)


class st_halves(_Store):
    """Store to two column ranges at once: lanes 0-15 at `taddr`, lanes 16-31 `split` columns further."""

    syntax = "tcgen05.st.sync.aligned.16x32bx2.num{.unpack}.b32 [taddr], split, r"
    split: OperandLike = immediate(-(2**63), 2**64 - 1)
    r: OperandLike = vector("b32", lambda form: form.num, mixed=True)


class wait(
    Instruction,
    opcode="tcgen05",
    section="9.7.16.8.5",
    ptx="8.6",
    targets=FAMILY,
    issued_by="warp",
    leading=1,
    synchronizes=True,
):
    """Wait until this thread's earlier tcgen05.ld (or st) are done, so that their registers may be used."""

    syntax = "tcgen05.what.sync.aligned"
    _: KW_ONLY
    what: Literal["ld", "st"] = modifier("wait::")


# By the tensor core.


class cp(
    Instruction,
    opcode="tcgen05.cp",
    section="9.7.16.9.2",
    ptx="8.6",
    targets=FAMILY,
    completed_by="tcgen05.commit",
    fences=BY_TENSOR_CORE,
):
    """Copy a matrix of lanes x bits, which the shared-memory descriptor `sdesc` describes, to TMEM at `taddr`.

    64x128b and 32x128b go to several warps' lanes, as `multicast` says; 4x256b puts one row into each warp's.
    `dst_fmt` and `src_fmt` expand 4-bit or 6-bit floats to 8 bits. A later mma of this thread sees the data.
    """

    syntax = "tcgen05.cp.cta_group.shape{.multicast}{.dst_fmt}{.src_fmt} [taddr], sdesc"
    taddr: OperandLike = address("tmem", bits=(32,), memory="write")
    sdesc: OperandLike = source("u64", memory="read", memory_space="shared")
    _: KW_ONLY
    cta_group: Literal[1, 2] = modifier("cta_group::")
    shape: Literal["128x256b", "4x256b", "128x128b", "64x128b", "32x128b"]
    multicast: Literal["warpx2::02_13", "warpx2::01_23", "warpx4"] | None = None
    dst_fmt: Literal["b8x16"] | None = None
    src_fmt: Literal["b6x16_p32", "b4x16_p64"] | None = None

    @rule("multicast")
    def _warps(self) -> str | None:
        """64 rows go to pairs of warps, 32 rows to all four; the others have no choice."""
        every = {"64x128b": ["warpx2::02_13", "warpx2::01_23"], "32x128b": ["warpx4"]}
        legal = every.get(self.shape, [None])
        if self.multicast in legal:
            return None
        wanted, found = (" or ".join(f".{each}" if each else "none" for each in of) for of in (legal, [self.multicast]))
        return f"the multicast of tcgen05.cp.{self.shape} is {wanted}, not {found}"

    @rule("format")
    def _formats(self) -> str | None:
        """Both formats, or neither."""
        if bool(self.dst_fmt) == bool(self.src_fmt):
            return None
        return f"tcgen05.cp requires .b8x16 with .b6x16_p32 or .b4x16_p64, not .{self.dst_fmt or self.src_fmt} alone"


class shift(
    Instruction,
    opcode="tcgen05.shift",
    section="9.7.16.9.3",
    ptx="8.6",
    targets=SINGLE,
    completed_by="tcgen05.commit",
    fences="tcgen05.fence::after_thread_sync once its mbarrier has been waited for",
):
    """Move the rows of 8 columns at `taddr` down by one, all but the last; the lane of `taddr` is a multiple of 32."""

    syntax = "tcgen05.shift.cta_group.down [taddr]"
    taddr: OperandLike = address("tmem", bits=(32,), memory="read-write")
    _: KW_ONLY
    cta_group: Literal[1, 2] = modifier("cta_group::")
