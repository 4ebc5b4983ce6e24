"""Every spelling of tcgen05.mma: kind, CTAs, sparse or not, place of A, size of scale factors, usage of the collectors.

Each product is issued once for each usage, of the same operands, so that D sums as many. References as in tcgen05_mma,
tcgen05_scaled and tcgen05_ws, which have the types, shapes and layouts.
"""

from __future__ import annotations

from typing import Any

from microtests import tcgen05_scaled, tcgen05_ws
from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.tensor_products import Product
from microtests.tcgen05_scaled import SIZES

_KINDS = (
    ("f16", "f16", "f16", "f32"),
    ("tf32", "tf32", "tf32", "f32"),
    ("f8f6f4", "e5m2", "e3m2", "f32"),
    ("i8", "s8", "u8", "s32"),
)
_USAGES = ("fill", "use", "lastuse", "discard")
#: Rows of a sparse A in 32 bytes, of B in 64.
_SWIZZLES = ("64B", "128B")
#: CTAs, whether A is sparse, whether it is in tensor memory.
_FORMS = tuple((ctas, sparse, in_tensor) for ctas in (1, 2) for sparse in (False, True) for in_tensor in (False, True))


@microtest(*((*kind, *form) for kind in _KINDS for form in _FORMS))
def collectors(draft: Draft, kind: Any, a: str, b: str, d: str, ctas: int, sparse: bool, in_tensor: bool) -> None:
    """A kept, used, used for the last time, and discarded."""
    Product(
        kind=kind,
        a=a,
        b=b,
        d=d,
        m=128 * ctas,
        ctas=ctas,
        sparse=sparse,
        in_tensor=in_tensor,
        collectors=_USAGES,
        swizzles=_SWIZZLES,
    ).run(draft)


@microtest(
    *(
        (*kind, ctas, sparse, usage)
        for kind in _KINDS
        for ctas in (1, 2)
        for sparse in (False, True)
        for usage in (None, "lastuse", "discard")
    )
)
def ashift(draft: Draft, kind: Any, a: str, b: str, d: str, ctas: int, sparse: bool, usage: str | None) -> None:
    """With .ashift (fact shift-direction), which neither keeps A nor uses a kept one."""
    Product(
        kind=kind,
        a=a,
        b=b,
        d=d,
        m=128 * ctas,
        ctas=ctas,
        sparse=sparse,
        in_tensor=True,
        ashift=True,
        collectors=(usage,),
        swizzles=_SWIZZLES,
    ).run(draft)


@microtest(
    *((*size, *form) for size in SIZES for form in _FORMS),
    only_if=lambda kind, size, scale, *_: scale == "ue4m3" or kind != "mxf4nvf4" or size[-1] != "X",
)
def scaled(draft: Draft, kind: str, size: str | None, scale: str, ctas: int, sparse: bool, in_tensor: bool) -> None:
    """Block scales, with A kept, used, used for the last time, and discarded."""
    tcgen05_scaled.made(
        kind, size, scale, m=128 * ctas, ctas=ctas, sparse=sparse, in_tensor=in_tensor, collectors=_USAGES
    ).run(draft)


@microtest(*((*kind, sparse, in_tensor) for kind in _KINDS for sparse in (False, True) for in_tensor in (False, True)))
def stationary(draft: Draft, kind: Any, a: str, b: str, d: str, sparse: bool, in_tensor: bool) -> None:
    """.ws, with B in each of the four buffers."""
    usages = tuple(f"b{buffer}::{usage}" for buffer in range(4) for usage in _USAGES)
    tcgen05_ws.made(kind, a, b, d, m=32, sparse=sparse, in_tensor=in_tensor, collectors=usages).run(draft)
