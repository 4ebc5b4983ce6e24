"""D = (A·scaleA)·(B·scaleB) + D on tensor cores: one scale factor for each block of K. PTX ISA 9.7.16.10.9.1 and 2.

The scale factors are in TMEM at `scale_a` and `scale_b`. `scale_vectorsize` says how many a row of A has (1X, 2X, 4X),
or how long a block is (16, 32 elements).
"""

from dataclasses import KW_ONLY
from typing import Literal

from ptxgen.instr.model.form import OperandLike, rule
from ptxgen.instr.model.operands import address, predicate, source
from ptxgen.instr.model.syntax_line import modifier
from ptxgen.instr.model.targets import Availability
from ptxgen.instr.tcgen05.common import COLLECTOR_B, FAMILY, RUBIN, SINGLE
from ptxgen.instr.tcgen05.matrix import Product

_SIZES = {
    "mxf8f6f4": (None, "scale_vec::1X", "block32"),
    "mxf4": (None, "scale_vec::2X", "block32"),
    "mxf4nvf4": ("scale_vec::2X", "scale_vec::4X", "block16", "block32"),
}
_NEEDS = {
    **COLLECTOR_B,
    "kind=mxf4nvf4": Availability("8.7", FAMILY),
    **{f"scale_vec::{count}X": Availability("8.6", SINGLE) for count in (1, 2, 4)},
    **{f"block{length}": Availability("8.8", FAMILY) for length in (16, 32)},
}


class _Scaled(Product):
    _: KW_ONLY
    cta_group: Literal[1, 2] = modifier("cta_group::")
    kind: Literal["mxf8f6f4", "mxf4", "mxf4nvf4"] = modifier("kind::")
    scale_vectorsize: Literal["scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block16", "block32"] | None = None
    collector: Literal["fill", "use", "lastuse", "discard"] | None = modifier("collector::a::", default=None)
    collector_b: Literal["fill", "use", "lastuse", "discard"] | None = modifier("collector::b::", default=None)
    needs = _NEEDS

    @rule("scale-vectorsize")
    def _size(self) -> str | None:
        """Each kind has its sizes; mxf4nvf4 has no default."""
        legal = _SIZES[self.kind]
        if self.scale_vectorsize in legal:
            return None
        sizes = [f".{each}" if each else "none" for each in (*legal, self.scale_vectorsize)]
        return f".kind::{self.kind} requires {', '.join(sizes[:-1])} as .scale_vectorsize, not {sizes[-1]}"


class mma_scaled(_Scaled):
    """D = A·B (+ D if `enable_input_d`) with block scales, A and B in shared memory, D in TMEM at `d`."""

    syntax = (
        "tcgen05.mma.cta_group.kind.block_scale{.scale_vectorsize}{.collector}{.collector_b}"
        " [d], a, b, idesc, [scale_a], [scale_b], enable_input_d"
    )
    idesc: OperandLike = source("u32", sums=False, plain=True)
    scale_a: OperandLike = address("tmem", bits=(32,), untyped=True, memory="read")
    scale_b: OperandLike = address("tmem", bits=(32,), untyped=True, memory="read")
    enable_input_d: OperandLike = predicate(negatable=True, immediate=True)


class mma_scaled_ts(mma_scaled):
    """As mma_scaled, with A in TMEM at `a`."""

    syntax = (
        "tcgen05.mma.cta_group.kind.block_scale{.scale_vectorsize}{.collector}{.collector_b}"
        " [d], [a], b, idesc, [scale_a], [scale_b], enable_input_d"
    )
    a: OperandLike = address("tmem", bits=(32,), untyped=True, memory="read")


class mma_sp_scaled(_Scaled, section="9.7.16.10.9.2"):
    """As mma_scaled, with half of A, and at `metadata` in TMEM which half it is."""

    syntax = (
        "tcgen05.mma.sp.cta_group.kind.block_scale{.scale_vectorsize}{.collector}{.collector_b}"
        " [d], a, b, [metadata], idesc, [scale_a], [scale_b], enable_input_d"
    )
    metadata: OperandLike = address("tmem", bits=(32,), untyped=True, memory="read")
    idesc: OperandLike = source("u32", sums=False, plain="or element")
    scale_a: OperandLike = address("tmem", bits=(32,), untyped=True, memory="read")
    scale_b: OperandLike = address("tmem", bits=(32,), untyped=True, memory="read")
    enable_input_d: OperandLike = predicate(negatable=True, immediate=True)
    needs = {**_NEEDS, "kind=mxf4": Availability("8.6", SINGLE), "kind=mxf4nvf4": Availability("8.7", SINGLE)}


class mma_sp_scaled_ts(mma_sp_scaled):
    """As mma_sp_scaled, with A in TMEM at `a`."""

    syntax = (
        "tcgen05.mma.sp.cta_group.kind.block_scale{.scale_vectorsize}{.collector}{.collector_b}"
        " [d], [a], b, [metadata], idesc, [scale_a], [scale_b], enable_input_d"
    )
    a: OperandLike = address("tmem", bits=(32,), untyped=True, memory="read")


class mma_scaled_lut(Product, ptx=RUBIN.ptx, targets=RUBIN.targets):
    """As mma_scaled; B is compressed, and the tensor core looks its elements up in the table at `lut` in TMEM."""

    syntax = (
        "tcgen05.mma.cta_group.kind::mxf8f6f4.block_scale{.scale_vectorsize}.decompress::lut::b{.collector}{.collector_b}"
        " [d], a, b, [lut], idesc, [scale_a], [scale_b], enable_input_d"
    )
    lut: OperandLike = address("tmem", bits=(32,), untyped=True, memory="read")
    idesc: OperandLike = source("u32", sums=False, plain="or element")
    scale_a: OperandLike = address("tmem", bits=(32,), untyped=True, memory="read")
    scale_b: OperandLike = address("tmem", bits=(32,), untyped=True, memory="read")
    enable_input_d: OperandLike = predicate(negatable=True, immediate=True)
    _: KW_ONLY
    cta_group: Literal[1, 2] = modifier("cta_group::")
    scale_vectorsize: Literal["scale_vec::1X", "block32"] | None = None
    collector: Literal["fill", "use", "lastuse", "discard"] | None = modifier("collector::a::", default=None)
    collector_b: Literal["fill", "use", "lastuse", "discard"] | None = modifier("collector::b::", default=None)
    needs = {"scale_vec::1X": Availability(RUBIN.ptx, SINGLE)}


class mma_scaled_lut_ts(mma_scaled_lut):
    """As mma_scaled_lut, with A in TMEM at `a`."""

    syntax = (
        "tcgen05.mma.cta_group.kind::mxf8f6f4.block_scale{.scale_vectorsize}.decompress::lut::b{.collector}{.collector_b}"
        " [d], [a], b, [lut], idesc, [scale_a], [scale_b], enable_input_d"
    )
    a: OperandLike = address("tmem", bits=(32,), untyped=True, memory="read")
