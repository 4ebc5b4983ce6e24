"""tcgen05.mma.block_scale, dense and sparse: mxf8f6f4, mxf4, mxf4nvf4. References from PTX ISA 9.7.16.10.7.

Scale factors are in tensor memory: .ue8m0 is 2^(x - 127), .ue4m3 is e4m3 without a sign; each is for 32 or 16 elements
of K, twice as many of a sparse A.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft, Tolerance
from microtests.harness.tensor_products import Product
from microtests.tcgen05_mma import NARROW

#: Kind, .scale_vectorsize, type of the scale factors.
SIZES = (
    ("mxf8f6f4", None, "ue8m0"),
    ("mxf8f6f4", "scale_vec::1X", "ue8m0"),
    ("mxf8f6f4", "block32", "ue8m0"),
    ("mxf4", None, "ue8m0"),
    ("mxf4", "scale_vec::2X", "ue8m0"),
    ("mxf4", "block32", "ue8m0"),
    ("mxf4nvf4", "scale_vec::2X", "ue8m0"),
    ("mxf4nvf4", "block32", "ue8m0"),
    ("mxf4nvf4", "scale_vec::4X", "ue8m0"),
    ("mxf4nvf4", "block16", "ue8m0"),
    ("mxf4nvf4", "scale_vec::4X", "ue4m3"),
    ("mxf4nvf4", "block16", "ue4m3"),
)


def made(kind: str, size: str | None, scale: str, **options: Any) -> Product:
    """A product of a kind, of e4m3 and e2m3 where there is a choice."""
    a, b = ("e4m3", "e2m3") if kind == "mxf8f6f4" else ("e2m1", "e2m1")
    return Product(**{"kind": kind, "size": size, "scale": scale, "a": a, "b": b, **options})


@microtest(*((*size, sparse, in_tensor) for size in SIZES for sparse in (False, True) for in_tensor in (False, True)))
def sizes(draft: Draft, kind: str, size: str | None, scale: str, sparse: bool, in_tensor: bool) -> None:
    """Every kind with every size and type of scale factors."""
    made(kind, size, scale, sparse=sparse, in_tensor=in_tensor).run(draft)


@microtest(
    *(
        (a, b, sparse, in_tensor)
        for a in NARROW
        for b in NARROW
        for sparse in (False, True)
        for in_tensor in (False, True)
    ),
    only_if=lambda a, b, sparse, in_tensor: (not sparse and not in_tensor) or b == "e5m2",
)
def types(draft: Draft, a: str, b: str, sparse: bool, in_tensor: bool) -> None:
    """Every combination of types of mxf8f6f4."""
    made("mxf8f6f4", "block32", "ue8m0", a=a, b=b, sparse=sparse, in_tensor=in_tensor).run(draft)


def _ids(kind: str, size: str) -> tuple[int, ...]:
    """Legal scale-factor ids (tables 43 and 44; 9.7.16.10.7.2)."""
    return (0, 1, 2, 3) if kind == "mxf8f6f4" else (0, 2) if size.endswith("32") else (0,)


@microtest(
    *(
        (kind, size, scale, i, j, sparse)
        for kind, size, scale in SIZES
        if size and size.startswith("block")
        for i in _ids(kind, size)
        for j in _ids(kind, size)
        for sparse in (False, True)
    ),
    only_if=lambda kind, size, scale, i, j, sparse: i != j and (not sparse or i == 2),
)
def ids(draft: Draft, kind: str, size: str, scale: str, i: int, j: int, sparse: bool) -> None:
    """Which bytes of the words are the scale factors of A and of B; the others hold anything."""
    made(kind, size, scale, ids=(i, j), sparse=sparse).run(draft)


@microtest(
    *(
        (kind, n, sparse)
        for kind in ("mxf8f6f4", "mxf4", "mxf4nvf4")
        for n in (8, 40, 128, 136, 256)
        for sparse in (False, True)
    ),
    only_if=lambda kind, n, sparse: not sparse or n == 256,
)
def shapes(draft: Draft, kind: str, n: int, sparse: bool) -> None:
    """Columns of scale factors as N needs them."""
    size, scale = ("block16", "ue4m3") if kind == "mxf4nvf4" else ("block32", "ue8m0")
    made(kind, size, scale, n=n, sparse=sparse).run(draft)


@microtest(
    *((which, swizzle, major) for which in "ab" for swizzle in ("none", "64B", "128B") for major in ("k", "mn")),
    *((which, "32B", "mn") for which in "ab"),
)
def layouts_of_bytes(draft: Draft, which: str, swizzle: str, major: str) -> None:
    """Swizzles and major-ness of mxf8f6f4, whose elements of 8 bits may be transposed."""
    second = which == "b"
    product = made("mxf8f6f4", "block32", "ue8m0", a="e5m2", b="e4m3", n=144)
    product.majors, product.gaps = ("k", major) if second else (major, "k"), (int(not second), int(second))
    product.swizzles = ("32B", swizzle) if second else (swizzle, "32B")
    product.run(draft)


@microtest(*((kind, swizzle) for kind in ("mxf4", "mxf4nvf4") for swizzle in ("none", "32B", "64B", "128B")))
def layouts_of_nibbles(draft: Draft, kind: str, swizzle: str) -> None:
    """Swizzles of packed elements of 4 bits."""
    made(kind, "block32", "ue8m0", swizzles=(swizzle, swizzle), gaps=(1, 1), n=72).run(draft)


@microtest(
    *(
        (kind, option)
        for kind in ("mxf8f6f4", "mxf4", "mxf4nvf4")
        for option in ("negate_a", "negate_b", "without_input", "use", "discard")
    )
)
def options(draft: Draft, kind: str, option: str) -> None:
    """Negated operands, no input, collector usages."""
    product = made(kind, "block32", "ue8m0")
    if option.startswith("negate"):
        product.negate = (1, 0) if option.endswith("a") else (0, 1)
    elif option == "without_input":
        product.accumulate = False
    else:
        product.collectors = ("fill", "use", "lastuse") if option == "use" else ("discard",)
    product.run(draft)


#: Kind, .scale_vectorsize, type of scale factors, legal ids with K 96.
_LONG = (
    ("mxf4", None, "ue8m0", (0, 1, 2, 3)),
    ("mxf4", "block32", "ue8m0", (0, 3)),
    ("mxf4nvf4", "block32", "ue8m0", (0, 1, 2, 3)),
    ("mxf4nvf4", "block16", "ue4m3", (0, 2)),
    ("mxf4nvf4", "block16", "ue8m0", (2,)),
)


@microtest(
    *((kind, size, scale, i, ids[-1 - index]) for kind, size, scale, ids in _LONG for index, i in enumerate(ids))
)
def k96(draft: Draft, kind: str, size: str | None, scale: str, i: int, j: int) -> None:
    """K 96: 3 or 6 scale factors of a row, which may go on in the next words (fact scales-k96)."""
    made(kind, size, scale, ids=(i, j), long=True, swizzles=("64B", "128B")).run(draft)


@microtest(*((n, ctas, in_tensor) for n in (16, 144, 256) for ctas in (1, 2) for in_tensor in (False, True)))
def k96_shapes(draft: Draft, n: int, ctas: int, in_tensor: bool) -> None:
    """K 96 of a CTA and of a pair; A in 12 columns of tensor memory."""
    product = made("mxf4nvf4", "block16", "ue4m3", n=n, ctas=ctas, m=128 * ctas, in_tensor=in_tensor, ids=(2, 0))
    product.long, product.swizzles = True, ("none", "128B")
    product.run(draft)


@microtest(*((start, gap) for start in (0, 48, 80, 96, 112) for gap in (0, 1)))
def k96_absolute(draft: Draft, start: int, gap: int) -> None:
    """Rows that go on at an absolute address behind the 128 bytes of a row (9.7.16.3.1.2)."""
    product = made("mxf4", "block32", "ue8m0", long=True, absolute=True, swizzles=("128B", "128B"))
    product.starts, product.gaps = (start, 96), (gap, 0)
    product.run(draft)


@microtest("ue8m0", "ue4m3")
def every_scale(draft: Draft, scale: str) -> None:
    """Each row of A, ones, has a scale factor of its own: all of ue4m3, or of ue8m0 from 2^-126 to 2^127; B's are 1."""
    product = made("mxf4nvf4", "block16" if scale == "ue4m3" else "block32", scale, n=8, accumulate=False)
    count = product.scales
    k, one = product.k, 2  # 0b0010 is 1.0
    product.given_a = (np.full((128, k), one, np.uint32), np.ones((128, k)))
    # A column of B has a single 1, in the block of one scale factor.
    values = np.zeros((8, k))
    values[np.arange(8), np.arange(8) * (k // 8)] = 1
    product.given_b = (np.where(values > 0, one, 0).astype(np.uint32), values)
    rng = np.random.default_rng(88)
    codes = np.arange(127) if scale == "ue4m3" else np.arange(1, 255)
    product.scale_a = np.resize(rng.permutation(codes), (128, count))
    product.scale_b = np.full((8, count), 0x38 if scale == "ue4m3" else 127)
    product.run(draft)


@microtest(("mxf8f6f4", 255), ("mxf8f6f4", 0), ("mxf4nvf4", 0x7F))
def special_scales(draft: Draft, kind: str, code: int) -> None:
    """Scale factors that are NaN make NaNs; the least of .ue8m0 is 2^-127."""
    scale = "ue4m3" if kind == "mxf4nvf4" else "ue8m0"
    product = made(kind, "block16" if kind == "mxf4nvf4" else "block32", scale, a="e2m1", b="e2m1", accumulate=False)
    rows = product.scale_a.copy()
    rows[::3] = code
    product.scale_a = rows
    product.tolerance = Tolerance("which NaN comes is open", np.float32)
    product.run(draft)
