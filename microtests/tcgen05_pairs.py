"""tcgen05.mma of .cta_group::2: each CTA of a pair has half of the rows of A and D, and half of the columns of B.

References from PTX ISA 9.7.16.5, 9.7.16.10.5 (layouts A, B and C) and, for scale factors, from the facts sfb-both-ctas
and sfb-split-m128.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.tensor_products import Product
from microtests.tcgen05_mma import KINDS, TYPES
from microtests.tcgen05_scaled import SIZES, made

_SAMPLE = (("e4m3", "e5m2"), ("e2m3", "e3m2"), ("e2m1", "e4m3"), ("e5m2", "e2m1"), ("e3m2", "e3m2"))


@microtest(
    *((*types, m) for types in TYPES for m in (128, 256)),
    only_if=lambda kind, a, b, d, m: kind != "f8f6f4" or (a, b) in _SAMPLE,
)
def types(draft: Draft, kind: Any, a: str, b: str, d: str, m: int) -> None:
    """Types, both M."""
    Product(kind=kind, a=a, b=b, d=d, m=m, ctas=2).run(draft)


@microtest(*((*kind, m, sparse) for kind in KINDS for m in (128, 256) for sparse in (False, True)))
def a_in_tensor_memory(draft: Draft, kind: Any, a: str, b: str, d: str, m: int, sparse: bool) -> None:
    """A, and metadata, in the tensor memories of both CTAs; twice where the lanes hold two parts of N."""
    product = Product(kind=kind, a=a, b=b, d=d, m=m, ctas=2, in_tensor=True, sparse=sparse)
    product.run(draft)


@microtest(
    *((*kind, m, lane) for kind in KINDS for m in (128, 256) for lane in (0, 16)),
    only_if=lambda kind, a, b, d, m, lane: m == 128 or not lane,
)
def sparse(draft: Draft, kind: Any, a: str, b: str, d: str, m: int, lane: int) -> None:
    """A sparse A; M 128 uses half of the lanes (layout C)."""
    Product(kind=kind, a=a, b=b, d=d, m=m, ctas=2, sparse=True, lane=lane, swizzles=("64B", "128B")).run(draft)


@microtest(
    *(("f16", "f16", "f32", m, n) for m in (128, 256) for n in (16, 48, 256)),
    *(("i8", "s8", "s32", m, n) for m in (128, 256) for n in (32, 96)),
    ("f8f6f4", "e4m3", "f32", 256, 256),
    ("tf32", "tf32", "f32", 128, 240),
)
def shapes(draft: Draft, kind: Any, type: str, d: str, m: int, n: int) -> None:
    """M and N, which count both CTAs."""
    Product(kind=kind, a=type, b=type, d=d, m=m, n=n, ctas=2, swizzles=("none", "32B")).run(draft)


@microtest(
    *(("f16", "f16", swizzle, major) for swizzle in ("none", "32B", "64B", "128B") for major in ("k", "mn")),
    ("tf32", "tf32", "128B_atom_32B", "mn"),
    ("f8f6f4", "e5m2", "32B", "mn"),
    ("i8", "u8", "none", "mn"),
)
def layouts(draft: Draft, kind: Any, type: str, swizzle: str, major: str) -> None:
    """One descriptor is for the shared memories of both CTAs."""
    d = "s32" if kind == "i8" else "f32"
    Product(
        kind=kind,
        a=type,
        b=type,
        d=d,
        m=256,
        n=160,
        ctas=2,
        majors=(major, major),
        swizzles=(swizzle, swizzle),
        gaps=(1, 1),
    ).run(draft)


_OPTIONS = ("negate", "without_input", "lanes_off", "scale_input", "use", "starts", "saturate")


@microtest(*((m, option) for m in (128, 256) for option in _OPTIONS))
def options(draft: Draft, m: int, option: str) -> None:
    """What products of one CTA can do, too; 8 words say which lanes of both CTAs stay."""
    product = Product(kind="f16", a="f16", b="f16", m=m, ctas=2)
    if option == "negate":
        product.negate = (0, 1)
    elif option == "without_input":
        product.accumulate = False
    elif option == "lanes_off":
        product.lanes_off = np.random.default_rng(89).random(256) < 0.4
    elif option == "scale_input":
        product.scale_input = 5
    elif option == "use":
        product.collectors = ("fill", "use")
    elif option == "starts":
        product.starts = (128, 32)
    else:
        product = Product(kind="i8", a="s8", b="u8", d="s32", m=m, ctas=2, saturate=True)
    product.run(draft)


@microtest(
    *((*kind, sparse) for kind in KINDS for sparse in (False, True)),
    only_if=lambda kind, a, b, d, sparse: not sparse or a == "bf16",
)
def ashift(draft: Draft, kind: Any, a: str, b: str, d: str, sparse: bool) -> None:
    """.ashift in both CTAs (fact shift-direction)."""
    Product(kind=kind, a=a, b=b, d=d, m=256, ctas=2, in_tensor=True, ashift=True, sparse=sparse).run(draft)


@microtest(*((m, in_tensor) for m in (128, 256) for in_tensor in (False, True)))
def issued_by_the_odd_cta(draft: Draft, m: int, in_tensor: bool) -> None:
    """Either CTA of a pair may issue: the parts of A, B and D are the same."""
    product = Product(kind="f16", a="f16", b="f16", m=m, ctas=2, in_tensor=in_tensor)
    tensor = product.tensor(draft)
    tensor.leader = 1
    tensor.issue(*product.instructions(tensor))
    product.compare(tensor)
    tensor.end()


@microtest(
    *((*size, m, sparse) for size in SIZES for m in (128, 256) for sparse in (False, True)),
    only_if=lambda kind, size, scale, m, sparse: (
        (m == 256 or not sparse) and size is not None and size.startswith("block")
    ),
)
def scaled(draft: Draft, kind: str, size: str, scale: str, m: int, sparse: bool) -> None:
    """Block scales: each CTA has those of its rows of A, and of all columns of B."""
    made(kind, size, scale, m=m, sparse=sparse, ctas=2, n=64).run(draft)


@microtest(
    *(
        (kind, m, n, in_tensor)
        for kind in ("mxf8f6f4", "mxf4nvf4")
        for m in (128, 256)
        for n in (16, 208, 256)
        for in_tensor in (False, True)
    ),
    only_if=lambda kind, m, n, in_tensor: not in_tensor or n == 208,
)
def scaled_shapes(draft: Draft, kind: str, m: int, n: int, in_tensor: bool) -> None:
    """Block scales of many columns, with ids, and A in tensor memory."""
    size, scale, ids = ("block16", "ue4m3", (0, 0)) if kind == "mxf4nvf4" else ("block32", "ue8m0", (1, 3))
    made(kind, size, scale, ids=ids, m=m, ctas=2, n=n, in_tensor=in_tensor).run(draft)
