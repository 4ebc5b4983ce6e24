"""tcgen05.mma of the kinds f16, tf32, f8f6f4 and i8, dense, of one CTA. References from PTX ISA 9.7.16.10.

Results are exact and compared bit for bit, with all of tensor memory around them; but for `rounding`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness import tensor_layouts as layouts
from microtests.harness.definition import microtest
from microtests.harness.draft import Draft, Tolerance
from microtests.harness.tensor_products import Product

NARROW = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
#: Kind, types of A, B and D.
TYPES = (
    ("f16", "f16", "f16", "f16"),
    ("f16", "f16", "f16", "f32"),
    ("f16", "bf16", "bf16", "f32"),
    ("tf32", "tf32", "tf32", "f32"),
    *(("f8f6f4", a, b, "f32") for a in NARROW for b in NARROW),
    ("f8f6f4", "e4m3", "e5m2", "f16"),
    ("f8f6f4", "e2m1", "e3m2", "f16"),
    *(("i8", a, b, "s32") for a in ("s8", "u8") for b in ("s8", "u8")),
)
#: One of each kind: the other rules are the same for all types.
KINDS = (
    ("f16", "bf16", "bf16", "f32"),
    ("f16", "f16", "f16", "f16"),
    ("tf32", "tf32", "tf32", "f32"),
    ("f8f6f4", "e4m3", "e2m3", "f32"),
    ("f8f6f4", "e2m1", "e5m2", "f16"),
    ("i8", "u8", "s8", "s32"),
)


@microtest(
    *((*types, m) for types in TYPES for m in (64, 128)),
    only_if=lambda kind, a, b, d, m: m == 128 or kind != "f8f6f4" or a == b or d == "f16",
)
def types(draft: Draft, kind: Any, a: str, b: str, d: str, m: int) -> None:
    """Every combination of types, A and B in shared memory."""
    Product(kind=kind, a=a, b=b, d=d, m=m).run(draft)


@microtest(
    *((*types, m) for types in TYPES for m in (64, 128)),
    only_if=lambda kind, a, b, d, m: kind != "f8f6f4" or (b == "e4m3" and m == 128) or d == "f16",
)
def a_in_tensor_memory(draft: Draft, kind: Any, a: str, b: str, d: str, m: int) -> None:
    """A in tensor memory, on the lanes of D: packed, or elements of 4 and 6 bits in bytes of their own."""
    Product(kind=kind, a=a, b=b, d=d, m=m, in_tensor=True).run(draft)


@microtest(
    *(("f16", "f16", "f32", m, n) for m in (64, 128) for n in (8, 24, 64, 136, 248, 256)),
    *(("tf32", "tf32", "f32", 64, n) for n in (8, 40, 256)),
    ("f16", "f16", "f16", 128, 256),
    *(("f8f6f4", "e5m2", "f32", 128, n) for n in (8, 104, 256)),
    *(("i8", "s8", "s32", m, n) for m in (64, 128) for n in (8, 24, 48, 256)),
)
def shapes(draft: Draft, kind: Any, type: str, d: str, m: int, n: int) -> None:
    """M and N; columns of tensor memory behind N stay."""
    Product(kind=kind, a=type, b=type, d=d, m=m, n=n, swizzles=("none", "32B")).run(draft)


_SWIZZLES = ("none", "32B", "64B", "128B")


@microtest(
    *(("f16", "f16", swizzle, major) for swizzle in _SWIZZLES for major in ("k", "mn")),
    *(("f8f6f4", "e5m2", swizzle, major) for swizzle in _SWIZZLES for major in ("k", "mn")),
    *(("f8f6f4", "e3m2", swizzle, "k") for swizzle in _SWIZZLES),
    *(("i8", "s8", swizzle, "mn") for swizzle in ("none", "128B")),
    *(("tf32", "tf32", swizzle, "k") for swizzle in _SWIZZLES),
    ("tf32", "tf32", "128B_atom_32B", "mn"),
)
def layouts_of_a(draft: Draft, kind: Any, type: str, swizzle: str, major: str) -> None:
    """Every swizzle and major-ness of A, with strides that leave gaps."""
    d = "s32" if kind == "i8" else "f32"
    product = Product(kind=kind, a=type, b=type, d=d, majors=(major, "k"), swizzles=(swizzle, "32B"), gaps=(1, 0))
    product.run(draft)


@microtest(
    *(("f16", "bf16", swizzle, major) for swizzle in _SWIZZLES for major in ("k", "mn")),
    *(("f8f6f4", "e4m3", swizzle, major) for swizzle in _SWIZZLES for major in ("k", "mn")),
    *(("f8f6f4", "e2m1", swizzle, "k") for swizzle in _SWIZZLES),
    *(("i8", "u8", swizzle, "mn") for swizzle in ("none", "128B")),
    *(("tf32", "tf32", swizzle, "k") for swizzle in _SWIZZLES),
    ("tf32", "tf32", "128B_atom_32B", "mn"),
)
def layouts_of_b(draft: Draft, kind: Any, type: str, swizzle: str, major: str) -> None:
    """Every swizzle and major-ness of B, with strides that leave gaps; N takes several patterns."""
    d, n = "s32" if kind == "i8" else "f32", 144
    product = Product(kind=kind, a=type, b=type, d=d, m=64, n=n, majors=("k", major), swizzles=("128B", swizzle))
    product.gaps = (0, 1)
    product.run(draft)


@microtest("f16", "f8f6f4")
def both_transposed(draft: Draft, kind: Any) -> None:
    """A and B MN-major, of different swizzles."""
    type = "f16" if kind == "f16" else "e5m2"
    Product(kind=kind, a=type, b=type, majors=("mn", "mn"), swizzles=("64B", "128B"), n=80).run(draft)


@microtest(
    *((swizzle, 32 * step) for swizzle, steps in (("64B", 2), ("128B", 4)) for step in range(steps)),
    ("128B", 128),
    ("128B", 128 * 5 + 64),
    ("64B", 384),
    ("32B", 128),
)
def starts(draft: Draft, swizzle: str, start: int) -> None:
    """Operands that begin anywhere in the pattern of the swizzle, which goes by the address."""
    Product(kind="f16", a="f16", b="f16", swizzles=(swizzle, swizzle), starts=(start, start)).run(draft)


@microtest(*(("128B", 128 * line) for line in (1, 3, 7)), ("64B", 128), ("32B", 128))
def base_offset(draft: Draft, swizzle: str, start: int) -> None:
    """Patterns that do not begin at their boundary: the base offset gives the start (table 41)."""
    Product(kind="f16", a="f16", b="f16", swizzles=(swizzle, swizzle), starts=(start, start), based=True).run(draft)


@microtest(0, 16, 0x3FFF0)
def unread_stride(draft: Draft, stride: int) -> None:
    """Swizzled K-major operands do not need a leading-dimension offset (9.7.16.3.1.1)."""
    Product(kind="f16", a="f16", b="f16", unread=stride).run(draft)


@microtest(*((form, before) for form in ("mma", "sp", "ws", "mxf8f6f4", "pair") for before in (4, 32, 100)))
def columns(draft: Draft, form: str, before: int) -> None:
    """Matrices that do not begin in the first column."""
    options: dict[str, dict[str, Any]] = {
        "sp": {"sparse": True},
        "ws": {"ws": True, "n": 64, "m": 32},
        "pair": {"ctas": 2, "sparse": True},
    }
    kind, type = (form, "e4m3") if form.startswith("mx") else ("f16", "f16")
    Product(kind=kind, a=type, b=type, in_tensor=True, before=before, **options.get(form, {})).run(draft)


@microtest(
    *((*kind, na, nb) for kind in KINDS for na, nb in ((0, 1), (1, 0), (1, 1)) if kind[0] != "i8"),
    only_if=lambda kind, a, b, d, na, nb: d == "f32" or na + nb == 1,
)
def negate(draft: Draft, kind: Any, a: str, b: str, d: str, na: int, nb: int) -> None:
    """The elements of A or B negated."""
    Product(kind=kind, a=a, b=b, d=d, negate=(na, nb), in_tensor=bool(na)).run(draft)


@microtest(*KINDS)
def without_input(draft: Draft, kind: Any, a: str, b: str, d: str) -> None:
    """D = A·B where enable-input-d is false: what was there does not count, nor its NaNs."""
    Product(kind=kind, a=a, b=b, d=d, accumulate=False).run(draft)


@microtest(
    *(
        (form, way, accumulate)
        for form in ("mma", "sp", "ws", "scaled", "pair")
        for way in ("negated", "immediate")
        for accumulate in (False, True)
    )
)
def enable_input_d(draft: Draft, form: str, way: str, accumulate: bool) -> None:
    """enable-input-d as a negated predicate or an immediate."""
    options: dict[str, Any] = {"mma": {}, "sp": {"sparse": True}, "ws": {"ws": True, "n": 64}, "pair": {"ctas": 2}}.get(
        form, {}
    )
    kind, type = ("mxf8f6f4", "e4m3") if form == "scaled" else ("f16", "bf16")
    Product(kind=kind, a=type, b=type, enable=way, accumulate=accumulate, **options).run(draft)


@microtest("s8", "u8")
def saturate(draft: Draft, type: str) -> None:
    """Sums beyond 32 bits are clamped where the descriptor says so."""
    Product(kind="i8", a=type, b="s8", d="s32", saturate=True, n=64).run(draft)


@microtest(
    *((kind, scale, d) for kind in ("f16", "tf32") for scale in (0, 1, 8, 15) for d in ("f32", "f16")),
    only_if=lambda kind, scale, d: d == "f32" or (kind == "f16" and scale < 9),
)
def scale_input_d(draft: Draft, kind: Any, scale: int, d: str) -> None:
    """D = A·B + D·2^-scale."""
    Product(kind=kind, a=kind, b=kind, d=d, scale_input=scale).run(draft)


@microtest(*((*kind, m) for kind in KINDS for m in (64, 128)), only_if=lambda kind, a, b, d, m: m == 128 or a == "bf16")
def disable_output_lane(draft: Draft, kind: Any, a: str, b: str, d: str, m: int) -> None:
    """Lanes whose bit is set stay as they are."""
    off = np.random.default_rng(82).random(128) < 0.4
    Product(kind=kind, a=a, b=b, d=d, m=m, lanes_off=off).run(draft)


@microtest(
    *((*kind, usage) for kind in KINDS for usage in ("fill", "use", "lastuse", "discard")),
    only_if=lambda kind, a, b, d, usage: usage == "use" or a == "bf16",
)
def collector(draft: Draft, kind: Any, a: str, b: str, d: str, usage: str) -> None:
    """A kept for the next product: the same one again gives the same."""
    usages = {"fill": ("fill",), "use": ("fill", "use"), "lastuse": ("fill", "lastuse"), "discard": ("discard",)}
    Product(kind=kind, a=a, b=b, d=d, collectors=usages[usage]).run(draft)


@microtest(*((*kind, in_tensor) for kind in KINDS for in_tensor in (False, True)))
def from_lane_16(draft: Draft, kind: Any, a: str, b: str, d: str, in_tensor: bool) -> None:
    """D of M 64, and A in tensor memory, on the other halves of each 32 lanes."""
    Product(kind=kind, a=a, b=b, d=d, m=64, lane=16, in_tensor=in_tensor).run(draft)


@microtest(
    *((*kind, usage) for kind in KINDS for usage in (None, "lastuse", "discard")),
    only_if=lambda kind, a, b, d, usage: usage is None or a == "bf16",
)
def ashift(draft: Draft, kind: Any, a: str, b: str, d: str, usage: str | None) -> None:
    """.ashift: after the product, the rows of A in each quarter of the lanes move by one (fact shift-direction)."""
    Product(kind=kind, a=a, b=b, d=d, in_tensor=True, ashift=True, collectors=(usage,)).run(draft)


@microtest(*NARROW, "s8", "u8")
def every_code(draft: Draft, type: str) -> None:
    """Each element of A alone: all finite codes, of the largest and smallest numbers too."""
    integer = type in ("s8", "u8")
    every = layouts.table(type)
    legal = np.flatnonzero(np.isfinite(every))
    rng = np.random.default_rng(83)
    codes = np.resize(rng.permutation(legal), (128, 32)).astype(np.uint32)
    b = "s8" if integer else "e4m3"
    one = int(np.flatnonzero(layouts.table(b) == 1)[0])
    unit = np.eye(32)
    given_b = ((unit * one).astype(np.uint32), unit)
    product = Product(
        kind="i8" if integer else "f8f6f4",
        a=type,
        b=b,
        d="s32" if integer else "f32",
        accumulate=False,
        given_a=(codes, every[codes]),
        given_b=given_b,
    )
    # Zeros of both signs are zero in a sum of several.
    product.run(draft)


@microtest("f16", "bf16", "tf32")
def wide_edges(draft: Draft, type: str) -> None:
    """Each element of A alone: the largest, the smallest that are normal, and neighbors of 1; of .f16 all smaller."""
    rng = np.random.default_rng(83)
    k, one = 256 // layouts.BITS[type], {"f16": 0x3C00, "bf16": 0x3F80, "tf32": 0x3F800000}[type]
    bits, low = {"f16": (16, 0), "bf16": (16, 7), "tf32": (32, 23)}[type]
    words = rng.integers(1 << low, 0x7C00 if type == "f16" else 0xFF << low, (128, k)).astype(np.uint32)
    edges = [1 << low, (1 << low) + 1, one, one + 1, one - 1, (0x7C00 if type == "f16" else 0xFF << low) - 1]
    words[:6, 0] = edges
    words |= rng.integers(0, 2, words.shape).astype(np.uint32) << np.uint32(bits - 1)
    if type == "tf32":
        words &= np.uint32(0xFFFFE000)
    values = words.astype(np.uint16).view(np.float16) if type == "f16" else words << (16 if type == "bf16" else 0)
    exact = (values if type == "f16" else values.view(np.float32)).astype(np.float64)
    unit = np.eye(k)
    # Zeros of both signs are zero in a sum of several.
    given_b = np.resize((unit * one).astype(np.uint32), (32, k)), np.resize(unit, (32, k))
    Product(
        kind=type if type == "tf32" else "f16",
        a=type,
        b=type,
        accumulate=False,
        given_a=(words, exact),
        given_b=given_b,
    ).run(draft)


@microtest("shared", "tensor")
def tf32_low_bits(draft: Draft, where: str) -> None:
    """.tf32 is a .f32 whose 13 low bits are not read (as mma.sync has it; 9.7.16 does not say)."""
    rng = np.random.default_rng(84)
    parts = []
    for rows in (128, 32):
        codes, values = layouts.elements("tf32", (rows, 8), rng)
        parts.append((codes | rng.integers(0, 1 << 13, codes.shape).astype(np.uint32), values))
    a, b = parts
    Product(kind="tf32", a="tf32", b="tf32", given_a=a, given_b=b, in_tensor=where == "tensor").run(draft)


_NANS = Tolerance("which NaN comes is open", np.float32)


@microtest(("f16", "f16"), ("f16", "bf16"), ("tf32", "tf32"), ("f8f6f4", "e5m2"))
def specials(draft: Draft, kind: Any, type: str) -> None:
    """Infinities and NaNs go where they do in IEEE arithmetic."""
    rng = np.random.default_rng(85)
    k = 256 // layouts.BITS[type]
    values = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan])

    def operand(rows: int) -> tuple[np.ndarray, np.ndarray]:
        chosen = rng.choice(values, (rows, k), p=[0.3, 0.1, 0.3, 0.24, 0.03, 0.02, 0.01])
        if type != "e5m2":
            return layouts.codes_of(type, chosen), chosen
        codes = np.array([0x00, 0x80, 0x3C, 0xC0, 0x7C, 0xFC, 0x7E], np.uint32)
        places = np.argmax(
            (chosen[..., None] == values) & (np.signbit(chosen)[..., None] == np.signbit(values))
            | (np.isnan(chosen)[..., None] & np.isnan(values)),
            axis=-1,
        )
        return codes[places], chosen

    Product(kind=kind, a=type, b=type, given_a=operand(128), given_b=operand(32), tolerance=_NANS).run(draft)


#: Sums of products of random numbers: how the hardware adds is not documented.
_ROUNDED = Tolerance(
    "tensor cores add in an order and with bits that are not documented", np.float32, 2.0**-10, 2.0**-6, recorded=True
)


@microtest(("f16", "f16"), ("f16", "bf16"), ("tf32", "tf32"), ("f8f6f4", "e4m3"), ("f8f6f4", "e5m2"))
def rounding(draft: Draft, kind: Any, type: str) -> None:
    """Random numbers, whose sums are rounded somehow: for the record."""
    rng = np.random.default_rng(86)
    k = 256 // layouts.BITS[type]

    def operand(rows: int) -> tuple[np.ndarray, np.ndarray]:
        if type in ("e4m3", "e5m2"):
            every = layouts.table(type)
            codes = rng.choice(np.flatnonzero(np.abs(np.where(np.isfinite(every), every, 99)) <= 4), (rows, k))
            return codes.astype(np.uint32), every[codes]
        codes = layouts.codes_of(type, rng.standard_normal((rows, k)))
        if type == "f16":
            return codes, codes.astype(np.uint16).view(np.float16).astype(np.float64)
        codes &= np.uint32(0xFFFFE000 if type == "tf32" else 0xFFFF)
        words = codes << (16 if type == "bf16" else 0)
        return codes, words.astype(np.uint32).view(np.float32).astype(np.float64)

    c = (rng.standard_normal((128, 32)) * 2.0 ** rng.integers(-8, 9, (128, 32))).astype(np.float32).astype(np.float64)
    a, b = operand(128), operand(32)
    Product(kind=kind, a=type, b=type, given_a=a, given_b=b, given_c=c, tolerance=_ROUNDED).run(draft)
