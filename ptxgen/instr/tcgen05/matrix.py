"""D = A·B + D on tensor cores. PTX ISA 9.7.16.10.9.1 and 9.7.16.10.9.2.

`a` and `b` are 64-bit shared-memory descriptors, `idesc` the 32-bit instruction descriptor. D is in TMEM at `d`, and in
the `_ts` forms A too. Every active thread that gets here issues one, so elect a thread.
"""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import address, immediate, predicate, source, vector
from ptxgen.instr.model.syntax_line import modifier
from ptxgen.instr.model.targets import Availability
from ptxgen.instr.tcgen05.common import BY_TENSOR_CORE, COLLECTOR_B, FAMILY, RUBIN

#: What kind::i8 needs.
I8 = Availability("8.6", "sm_100a sm_110a")


def _lanes(form: Any) -> int:
    return 4 * form.cta_group


def _scale(form: Any) -> str | None:
    """scale-input-d is for f16 and tf32."""
    if form.scale_input_d is not None and form.kind not in ("f16", "tf32"):
        return f"scale-input-d requires .kind::f16 or .kind::tf32, not .kind::{form.kind}"
    return None


def _ashift(form: Any) -> str | None:
    """.ashift goes with the collector operations lastuse and discard."""
    if form.ashift and form.collector in ("fill", "use"):
        return f".ashift requires .collector::a::lastuse or ::discard, not ::{form.collector}"
    return None


class Product(
    Instruction,
    opcode="tcgen05.mma",
    section="9.7.16.10.9.1",
    ptx="8.6",
    targets=FAMILY,
    completed_by="tcgen05.commit",
    fences=BY_TENSOR_CORE,
    multiplies=True,
):
    """The matrices of all products, with A in shared memory."""

    d: OperandLike = address("tmem", bits=(32,), untyped=True, memory="read-write")
    a: OperandLike = source("u64", memory="read", memory_space="shared")
    b: OperandLike = source("u64", memory="read", memory_space="shared")


class _Unscaled(Product):
    _: KW_ONLY
    cta_group: Literal[1, 2] = modifier("cta_group::")
    kind: Literal["f16", "tf32", "f8f6f4", "i8", "ti16"] = modifier("kind::")
    collector: Literal["fill", "use", "lastuse", "discard"] | None = modifier("collector::a::", default=None)
    collector_b: Literal["fill", "use", "lastuse", "discard"] | None = modifier("collector::b::", default=None)
    #: sm_110 refuses scale-input-d (measured, ptxas 13.5).
    needs = {
        "kind=i8": I8,
        "kind=ti16": RUBIN,
        **COLLECTOR_B,
        "scale_input_d": Availability("8.6", "sm_100f"),
    }

    @rule("collector_b")
    def _collector_b(self) -> str | None:
        """No target has both the buffer for B and .kind::i8."""
        if self.collector_b and self.kind == "i8":
            return f".collector::b::{self.collector_b} requires another .kind than .kind::i8, which sm_107 lacks"
        return None


class mma(_Unscaled):
    """D = A·B (+ D·2^-`scale_input_d` if `enable_input_d`), A and B in shared memory, D in TMEM at `d`.

    `disable_output_lane` has one bit per TMEM lane that stays as it is. `collector` keeps A in a buffer for the next
    product (fill), or takes it from there; `collector_b` does so with B.
    """

    syntax = (
        "tcgen05.mma.cta_group.kind{.collector}{.collector_b}"
        " [d], a, b, idesc{, disable_output_lane}, enable_input_d{, scale_input_d}"
    )
    idesc: OperandLike = source("u32", sums=False, plain=True)
    enable_input_d: OperandLike = predicate(negatable=True, immediate=True)
    disable_output_lane: OperandLike = vector("b32", _lanes, mixed=True, default=None)
    scale_input_d: OperandLike = immediate(0, 15, default=None)
    _s = rule("scale-input-d", reads_operands=True)(_scale)


class mma_ts(mma):
    """As mma, with A in TMEM at `a`; `ashift` moves the rows of A down by one."""

    syntax = (
        "tcgen05.mma.cta_group.kind{.ashift}{.collector}{.collector_b}"
        " [d], [a], b, idesc{, disable_output_lane}, enable_input_d{, scale_input_d}"
    )
    a: OperandLike = address("tmem", bits=(32,), untyped=True, memory="read")
    _: KW_ONLY
    ashift: bool = False
    _a = rule("ashift")(_ashift)


class mma_sp(_Unscaled, section="9.7.16.10.9.2"):
    """As mma, with half of A, and at `metadata` in TMEM which half it is: 2 of 4 elements."""

    syntax = (
        "tcgen05.mma.sp.cta_group.kind{.collector}{.collector_b}"
        " [d], a, b, [metadata], idesc{, disable_output_lane}, enable_input_d{, scale_input_d}"
    )
    metadata: OperandLike = address("tmem", bits=(32,), untyped=True, memory="read")
    idesc: OperandLike = source("u32", sums=False, plain="or element")
    enable_input_d: OperandLike = predicate(negatable=True, immediate=True)
    disable_output_lane: OperandLike = vector("b32", _lanes, mixed=True, default=None)
    scale_input_d: OperandLike = immediate(0, 15, default=None)
    _s = rule("scale-input-d", reads_operands=True)(_scale)


class mma_sp_ts(mma_sp):
    """As mma_sp, with A in TMEM at `a`; `ashift` moves the rows of A down by one."""

    syntax = (
        "tcgen05.mma.sp.cta_group.kind{.ashift}{.collector}{.collector_b}"
        " [d], [a], b, [metadata], idesc{, disable_output_lane}, enable_input_d{, scale_input_d}"
    )
    a: OperandLike = address("tmem", bits=(32,), untyped=True, memory="read")
    _: KW_ONLY
    ashift: bool = False
    _a = rule("ashift")(_ashift)


class _LookedUp(Product, ptx=RUBIN.ptx, targets=RUBIN.targets):
    """The lookup table of B and its modifiers (PTX ISA 9.4, 9.7.18.10)."""

    lut: OperandLike = address("tmem", bits=(32,), untyped=True, memory="read")
    idesc: OperandLike = source("u32", sums=False, plain="or element")
    enable_input_d: OperandLike = predicate(negatable=True, immediate=True)
    disable_output_lane: OperandLike = vector("b32", _lanes, mixed=True, default=None)
    _: KW_ONLY
    cta_group: Literal[1, 2] = modifier("cta_group::")
    collector: Literal["fill", "use", "lastuse", "discard"] | None = modifier("collector::a::", default=None)
    collector_b: Literal["fill", "use", "lastuse", "discard"] | None = modifier("collector::b::", default=None)


class mma_lut(_LookedUp):
    """As mma; B is compressed, and the tensor core looks its elements up in the table at `lut` in TMEM."""

    syntax = (
        "tcgen05.mma.cta_group.kind::f8f6f4.decompress::lut::b{.collector}{.collector_b}"
        " [d], a, b, [lut], idesc{, disable_output_lane}, enable_input_d"
    )


class mma_lut_ts(mma_lut):
    """As mma_lut, with A in TMEM at `a`."""

    syntax = (
        "tcgen05.mma.cta_group.kind::f8f6f4.decompress::lut::b{.collector}{.collector_b}"
        " [d], [a], b, [lut], idesc{, disable_output_lane}, enable_input_d"
    )
    a: OperandLike = address("tmem", bits=(32,), untyped=True, memory="read")
