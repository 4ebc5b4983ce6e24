"""Fifth-generation tensor cores and tensor memory (TMEM). PTX ISA 9.7.16.

mma.sp, mma.ws, the block-scaled and integer kinds, cp, shift and ld.red are not here yet. ptxas wants one
.cta_group throughout a kernel.
"""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.form import Instruction, OperandLike, flag, modifier, rule
from ptxgen.instr.operands import address, immediate, predicate, source, vector
from ptxgen.instr.targets import Availability
from ptxgen.layouts.tmem import MAX_REPEAT, REGISTERS_PER_REPEAT
from ptxgen.syntax import Expression, Immediate

_TARGETS = "sm_100f sm_110f"
#: sm_110a refuses scale-input-d (measured, ptxas 13.0).
_MMA_NEEDS = {"scale_input_d": Availability("8.6", "sm_100f")}


class alloc(Instruction, opcode="tcgen05.alloc", section="9.7.16.7.1", ptx="8.6", targets=_TARGETS, issued_by="warp"):
    """Allocate `columns` TMEM columns (32 to 512, a power of two) and write their address to shared memory.

    Waits until they are free. One warp per CTA; with cta_group 2 one warp of each CTA of the pair.
    """

    syntax = "tcgen05.alloc.cta_group.sync.aligned{.space}.b32 [dst], columns"
    dst: OperandLike = address("space", bits=(32, 64))
    columns: OperandLike = source("u32")
    _: KW_ONLY
    cta_group: Literal[1, 2] = modifier("cta_group::")
    space: Literal["shared::cta"] | None = None

    @rule("columns", reads_operands=True)
    def _columns(self) -> str | None:
        """The number of columns is a power of two from 32 to 512."""
        return _legal_columns("tcgen05.alloc", self.columns)


class dealloc(
    Instruction, opcode="tcgen05.dealloc", section="9.7.16.7.1", ptx="8.6", targets=_TARGETS, issued_by="warp"
):
    """Free `columns` TMEM columns at `taddr`, as allocated. Required before the kernel ends."""

    syntax = "tcgen05.dealloc.cta_group.sync.aligned.b32 taddr, columns"
    taddr: OperandLike = source("u32")
    columns: OperandLike = source("u32")
    _: KW_ONLY
    cta_group: Literal[1, 2] = modifier("cta_group::")

    @rule("columns", reads_operands=True)
    def _columns(self) -> str | None:
        """The number of columns is a power of two from 32 to 512."""
        return _legal_columns("tcgen05.dealloc", self.columns)


def _legal_columns(opcode: str, operand: Any) -> str | None:
    if isinstance(operand, Immediate | Expression) and operand.evaluate() not in (32, 64, 128, 256, 512):
        return f"{opcode} takes 32, 64, 128, 256 or 512 columns, not {operand}"
    return None


class relinquish_alloc_permit(
    Instruction, opcode="tcgen05.relinquish_alloc_permit", section="9.7.16.7.1", ptx="8.6", targets=_TARGETS,
    issued_by="warp",
):  # fmt: skip
    """Promise that this CTA allocates no more TMEM."""

    syntax = "tcgen05.relinquish_alloc_permit.cta_group.sync.aligned"
    _: KW_ONLY
    cta_group: Literal[1, 2] = modifier("cta_group::")


def _lane_mask_length(form: Any) -> int:
    return 4 * form.cta_group


def _scale_kinds(form: Any) -> str | None:
    if form.scale_input_d is not None and form.kind not in ("f16", "tf32"):
        return f"scale-input-d is for .kind::f16 and .kind::tf32, not .kind::{form.kind}"
    return None


class mma(
    Instruction, opcode="tcgen05.mma", section="9.7.16.10.9.1", ptx="8.6", targets=_TARGETS,
    completed_by="tcgen05.commit",
):  # fmt: skip
    """D = A·B (+ D if `enable_input_d`), A and B in shared memory, D in TMEM at `d`.

    `a` and `b` are 64-bit shared-memory descriptors, `idesc` the 32-bit instruction descriptor. Every active thread
    that gets here issues one, so elect a thread. `disable_output_lane` has one bit per TMEM lane that stays as it is.
    """

    syntax = (
        "tcgen05.mma.cta_group.kind{.collector}"
        " [d], a, b, idesc{, disable_output_lane}, enable_input_d{, scale_input_d}"
    )
    d: OperandLike = address("tmem", bits=(32,), untyped=True)
    a: OperandLike = source("u64")
    b: OperandLike = source("u64")
    idesc: OperandLike = source("u32")
    enable_input_d: OperandLike = predicate(negatable=True, immediate=True)
    disable_output_lane: OperandLike = vector("b32", _lane_mask_length, default=None)
    scale_input_d: OperandLike = immediate(0, 15, default=None)
    _: KW_ONLY
    cta_group: Literal[1, 2] = modifier("cta_group::")
    kind: Literal["f16", "tf32", "f8f6f4"] = modifier("kind::")
    collector: Literal["fill", "use", "lastuse", "discard"] | None = modifier("collector::a::", default=None)
    needs = _MMA_NEEDS

    @rule("scale-input-d", reads_operands=True)
    def _scale(self) -> str | None:
        """scale-input-d is for f16 and tf32."""
        return _scale_kinds(self)


class mma_ts(
    Instruction, opcode="tcgen05.mma", section="9.7.16.10.9.1", ptx="8.6", targets=_TARGETS,
    completed_by="tcgen05.commit",
):  # fmt: skip
    """As mma, with A in TMEM at `a`; `ashift` moves the rows of A down by one."""

    syntax = (
        "tcgen05.mma.cta_group.kind{.ashift}{.collector}"
        " [d], [a], b, idesc{, disable_output_lane}, enable_input_d{, scale_input_d}"
    )
    d: OperandLike = address("tmem", bits=(32,), untyped=True)
    a: OperandLike = address("tmem", bits=(32,), untyped=True)
    b: OperandLike = source("u64")
    idesc: OperandLike = source("u32")
    enable_input_d: OperandLike = predicate(negatable=True, immediate=True)
    disable_output_lane: OperandLike = vector("b32", _lane_mask_length, default=None)
    scale_input_d: OperandLike = immediate(0, 15, default=None)
    _: KW_ONLY
    cta_group: Literal[1, 2] = modifier("cta_group::")
    kind: Literal["f16", "tf32", "f8f6f4"] = modifier("kind::")
    ashift: bool = False
    collector: Literal["fill", "use", "lastuse", "discard"] | None = modifier("collector::a::", default=None)

    @rule("ashift")
    def _ashift(self) -> str | None:
        """.ashift goes with the collector operations lastuse and discard."""
        if self.ashift and self.collector in ("fill", "use"):
            return f".ashift takes .collector::a::lastuse or ::discard, not ::{self.collector}"
        return None

    needs = _MMA_NEEDS

    @rule("scale-input-d", reads_operands=True)
    def _scale(self) -> str | None:
        """scale-input-d is for f16 and tf32."""
        return _scale_kinds(self)


class commit(Instruction, opcode="tcgen05.commit", section="9.7.16.12.1", ptx="8.6", targets=_TARGETS):
    """Arrive once on an mbarrier when all earlier mma, cp and shift of this thread are done.

    Implies fence::before_thread_sync. `mask` names the CTAs of the cluster whose mbarrier at this offset is meant.
    """

    syntax = "tcgen05.commit.cta_group.mbarrier::arrive::one{.space}{.multicast}.b64 [mbar]{, mask}"
    mbar: OperandLike = address("space", bits=(32, 64))
    mask: OperandLike = source("u16", low=0, high=65535, when="multicast", default=None)
    _: KW_ONLY
    cta_group: Literal[1, 2] = modifier("cta_group::")
    space: Literal["shared::cluster"] | None = None
    multicast: bool = flag("multicast::cluster", default=False)


def _registers(form: Any) -> int:
    return REGISTERS_PER_REPEAT[form.shape] * form.num


def _repeats(form: Any) -> str | None:
    """At most 128 registers a thread."""
    limit = MAX_REPEAT[form.shape]
    if form.num > limit:
        return f"{form.form.opcode}.{form.shape} takes .x1 to .x{limit}, not .x{form.num}"
    return None


class ld(
    Instruction, opcode="tcgen05.ld", section="9.7.16.8.2", ptx="8.6", targets=_TARGETS, issued_by="warp",
    completed_by="tcgen05.wait::ld",
):  # fmt: skip
    """Load `num` repetitions of a shape from TMEM into registers; a warp reaches only its own quarter of the lanes.

    `taddr` is lane << 16 | column. `pack` puts two 16-bit columns into a register.
    """

    syntax = "tcgen05.ld.sync.aligned.shape.num{.pack}.b32 r, [taddr]"
    r: OperandLike = vector("b32", _registers)
    taddr: OperandLike = address("tmem", bits=(32,))
    _: KW_ONLY
    shape: Literal["16x64b", "16x128b", "16x256b", "32x32b"]
    num: Literal[1, 2, 4, 8, 16, 32, 64, 128] = modifier("x")
    pack: bool = flag("pack::16b", default=False)
    _n = rule("num")(_repeats)


class ld_halves(
    Instruction, opcode="tcgen05.ld", section="9.7.16.8.2", ptx="8.6", targets=_TARGETS, issued_by="warp",
    completed_by="tcgen05.wait::ld",
):  # fmt: skip
    """Load from two column ranges at once: lanes 0-15 from `taddr`, lanes 16-31 `split` columns further."""

    syntax = "tcgen05.ld.sync.aligned.16x32bx2.num{.pack}.b32 r, [taddr], split"
    r: OperandLike = vector("b32", lambda form: form.num)
    taddr: OperandLike = address("tmem", bits=(32,))
    split: OperandLike = immediate(-(2**63), 2**63 - 1)
    _: KW_ONLY
    num: Literal[1, 2, 4, 8, 16, 32, 64, 128] = modifier("x")
    pack: bool = flag("pack::16b", default=False)


class st(
    Instruction, opcode="tcgen05.st", section="9.7.16.8.3", ptx="8.6", targets=_TARGETS, issued_by="warp",
    completed_by="tcgen05.wait::st",
):  # fmt: skip
    """Store `num` repetitions of a shape from registers to TMEM; a warp reaches only its own quarter of the lanes.

    `unpack` puts the halves of a register into two columns.
    """

    syntax = "tcgen05.st.sync.aligned.shape.num{.unpack}.b32 [taddr], r"
    taddr: OperandLike = address("tmem", bits=(32,))
    r: OperandLike = vector("b32", _registers)
    _: KW_ONLY
    shape: Literal["16x64b", "16x128b", "16x256b", "32x32b"]
    num: Literal[1, 2, 4, 8, 16, 32, 64, 128] = modifier("x")
    unpack: bool = flag("unpack::16b", default=False)
    _n = rule("num")(_repeats)


class st_halves(
    Instruction, opcode="tcgen05.st", section="9.7.16.8.3", ptx="8.6", targets=_TARGETS, issued_by="warp",
    completed_by="tcgen05.wait::st",
):  # fmt: skip
    """Store to two column ranges at once: lanes 0-15 at `taddr`, lanes 16-31 `split` columns further."""

    syntax = "tcgen05.st.sync.aligned.16x32bx2.num{.unpack}.b32 [taddr], split, r"
    taddr: OperandLike = address("tmem", bits=(32,))
    split: OperandLike = immediate(-(2**63), 2**63 - 1)
    r: OperandLike = vector("b32", lambda form: form.num)
    _: KW_ONLY
    num: Literal[1, 2, 4, 8, 16, 32, 64, 128] = modifier("x")
    unpack: bool = flag("unpack::16b", default=False)


class wait(
    Instruction, opcode="tcgen05", section="9.7.16.8.4", ptx="8.6", targets=_TARGETS, issued_by="warp", leading=1
):
    """Wait until this thread's earlier tcgen05.ld (or st) are done, so that their registers may be used."""

    syntax = "tcgen05.what.sync.aligned"
    _: KW_ONLY
    what: Literal["ld", "st"] = modifier("wait::")


class fence(Instruction, opcode="tcgen05", section="9.7.16.11", ptx="8.6", targets=_TARGETS):
    """Order this thread's asynchronous tcgen05 operations before, or after, a synchronisation of threads."""

    syntax = "tcgen05.where"
    _: KW_ONLY
    where: Literal["before_thread_sync", "after_thread_sync"] = modifier("fence::")
