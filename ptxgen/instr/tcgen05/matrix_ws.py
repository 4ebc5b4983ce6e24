"""D = A·B + D with B kept in one of four buffers: weight-stationary MMA. PTX ISA 9.7.16.10.9.3 and 9.7.16.10.9.4.

`zero_column_mask` is a 64-bit descriptor of the columns of B that count as zero.
"""

from dataclasses import KW_ONLY
from typing import Literal

from ptxgen.instr.model.form import OperandLike
from ptxgen.instr.model.operands import address, predicate, source
from ptxgen.instr.model.syntax_line import modifier
from ptxgen.instr.tcgen05.common import RUBIN
from ptxgen.instr.tcgen05.matrix import I8, Product


class _Stationary(Product, opcode="tcgen05.mma.ws", section="9.7.16.10.9.3"):
    _: KW_ONLY
    kind: Literal["f16", "tf32", "f8f6f4", "i8", "ti16"] = modifier("kind::")
    collector: (
        Literal[
            "b0::fill",
            "b0::use",
            "b0::lastuse",
            "b0::discard",
            "b1::fill",
            "b1::use",
            "b1::lastuse",
            "b1::discard",
            "b2::fill",
            "b2::use",
            "b2::lastuse",
            "b2::discard",
            "b3::fill",
            "b3::use",
            "b3::lastuse",
            "b3::discard",
        ]
        | None
    ) = modifier("collector::", default=None)
    needs = {"kind=i8": I8, "kind=ti16": RUBIN}


class mma_ws(_Stationary):
    """D = A·B (+ D if `enable_input_d`), A and B in shared memory, D in TMEM at `d`.

    `collector` keeps B in a buffer for the next MMA (fill), or takes it from there.
    """

    syntax = "tcgen05.mma.ws.cta_group::1.kind{.collector} [d], a, b, idesc, enable_input_d{, zero_column_mask}"
    idesc: OperandLike = source("u32", sums=False, plain=True)
    enable_input_d: OperandLike = predicate(negatable=True, immediate=True)
    zero_column_mask: OperandLike = source("u64", sums=False, default=None)


class mma_ws_ts(mma_ws):
    """As mma_ws, with A in TMEM at `a`."""

    syntax = "tcgen05.mma.ws.cta_group::1.kind{.collector} [d], [a], b, idesc, enable_input_d{, zero_column_mask}"
    a: OperandLike = address("tmem", bits=(32,), untyped=True, memory="read")


class mma_ws_sp(_Stationary, section="9.7.16.10.9.4"):
    """As mma_ws, with half of A, and at `metadata` in TMEM which half it is."""

    syntax = (
        "tcgen05.mma.ws.sp.cta_group::1.kind{.collector}"
        " [d], a, b, [metadata], idesc, enable_input_d{, zero_column_mask}"
    )
    metadata: OperandLike = address("tmem", bits=(32,), untyped=True, memory="read")
    idesc: OperandLike = source("u32", sums=False, plain="or element")
    enable_input_d: OperandLike = predicate(negatable=True, immediate=True)
    zero_column_mask: OperandLike = source("u64", sums=False, default=None)


class mma_ws_sp_ts(mma_ws_sp):
    """As mma_ws_sp, with A in TMEM at `a`."""

    syntax = (
        "tcgen05.mma.ws.sp.cta_group::1.kind{.collector}"
        " [d], [a], b, [metadata], idesc, enable_input_d{, zero_column_mask}"
    )
    a: OperandLike = address("tmem", bits=(32,), untyped=True, memory="read")
