"""tcgen05.mma.sp: every kind without block scales. References from PTX ISA 9.7.16.10.8 and its figures.

The metadata that say which elements are stored are in tensor memory; all values that the manual lists are among them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.tensor_products import Product
from microtests.tcgen05_mma import KINDS, TYPES

#: B has 64 bytes of K.
_SWIZZLES = ("32B", "64B")


@microtest(
    *((*types, m) for types in TYPES for m in (64, 128)),
    only_if=lambda kind, a, b, d, m: kind != "f8f6f4" or a == b or "e5m2" in (a, b),
)
def types(draft: Draft, kind: Any, a: str, b: str, d: str, m: int) -> None:
    """Combinations of types, A in shared memory."""
    Product(kind=kind, a=a, b=b, d=d, m=m, sparse=True, swizzles=_SWIZZLES).run(draft)


@microtest(*((*kind, m) for kind in KINDS for m in (64, 128)))
def a_in_tensor_memory(draft: Draft, kind: Any, a: str, b: str, d: str, m: int) -> None:
    """What is stored of A in tensor memory."""
    Product(kind=kind, a=a, b=b, d=d, m=m, sparse=True, in_tensor=True, swizzles=_SWIZZLES).run(draft)


@microtest(*((kind, m, selector) for kind in ("f16", "tf32") for m in (64, 128) for selector in range(4)))
def selector(draft: Draft, kind: Any, m: int, selector: int) -> None:
    """Which column holds the metadata."""
    Product(kind=kind, a=kind, b=kind, m=m, sparse=True, selector=selector, swizzles=("none", "128B")).run(draft)


@microtest(
    *(
        (kind, swizzle, major)
        for kind in ("f16", "f8f6f4")
        for swizzle in ("none", "64B", "128B")
        for major in ("k", "mn")
    ),
    ("tf32", "none", "k"),
    ("tf32", "128B", "k"),
    ("tf32", "128B_atom_32B", "mn"),
    ("i8", "128B", "mn"),
    ("f16", "32B", "mn"),
)
def layouts_of_b(draft: Draft, kind: str, swizzle: str, major: str) -> None:
    """B has twice the K of what is stored of A."""
    type: str = {"f8f6f4": "e5m2", "i8": "s8"}.get(kind, kind)
    d = "s32" if kind == "i8" else "f32"
    Product(
        kind=kind, a=type, b=type, d=d, n=80, sparse=True, majors=("k", major), swizzles=("128B", swizzle), gaps=(1, 1)
    ).run(draft)


@microtest(*((*kind, in_tensor) for kind in KINDS for in_tensor in (False, True)))
def from_lane_16(draft: Draft, kind: Any, a: str, b: str, d: str, in_tensor: bool) -> None:
    """D of M 64, metadata, and A in tensor memory, on the other halves of each 32 lanes."""
    Product(kind=kind, a=a, b=b, d=d, m=64, lane=16, sparse=True, in_tensor=in_tensor, swizzles=_SWIZZLES).run(draft)


@microtest(*(("f16", n) for n in (8, 136, 256)), ("f8f6f4", 256), ("tf32", 8), ("i8", 256))
def shapes(draft: Draft, kind: str, n: int) -> None:
    """Other N."""
    type: str = {"f8f6f4": "e4m3", "i8": "u8"}.get(kind, kind)
    d = "s32" if kind == "i8" else "f32"
    Product(kind=kind, a=type, b=type, d=d, n=n, sparse=True, swizzles=_SWIZZLES).run(draft)


@microtest("negate", "without_input", "lanes_off", "scale_input", "saturate", "transposed")
def options(draft: Draft, option: str) -> None:
    """What dense products can do, too."""
    product = Product(kind="f16", a="f16", b="f16", sparse=True, swizzles=_SWIZZLES)
    if option == "negate":
        product.negate = (1, 0)
    elif option == "without_input":
        product.accumulate = False
    elif option == "lanes_off":
        product.lanes_off = np.random.default_rng(87).random(128) < 0.4
    elif option == "scale_input":
        product.scale_input = 3
    elif option == "saturate":
        product = Product(kind="i8", a="s8", b="u8", d="s32", sparse=True, saturate=True, swizzles=_SWIZZLES)
    else:
        product.majors = ("mn", "mn")
    product.run(draft)


@microtest(*((usage, in_tensor) for usage in ("use", "lastuse", "discard") for in_tensor in (False, True)))
def collector(draft: Draft, usage: str, in_tensor: bool) -> None:
    """A kept for the next product."""
    usages: tuple[str | None, ...] = ("discard",) if usage == "discard" else ("fill", usage)
    Product(
        kind="f16", a="bf16", b="bf16", sparse=True, collectors=usages, in_tensor=in_tensor, swizzles=_SWIZZLES
    ).run(draft)


@microtest(*KINDS)
def ashift(draft: Draft, kind: Any, a: str, b: str, d: str) -> None:
    """.ashift: after the product, the rows of A in each quarter of the lanes move by one (fact shift-direction)."""
    Product(kind=kind, a=a, b=b, d=d, sparse=True, in_tensor=True, ashift=True, swizzles=_SWIZZLES).run(draft)
