"""tcgen05.mma.ws: weight-stationary products, dense and sparse. References from PTX ISA 9.7.16.4.3 and 9.7.16.10.9.3.

M 32 and 64 spread N over the lanes (layouts G and E).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.tensor_products import Product
from microtests.tcgen05_mma import KINDS, TYPES

_NARROW_SAMPLE = (("e4m3", "e5m2"), ("e2m3", "e3m2"), ("e2m1", "e4m3"), ("e5m2", "e2m1"))


def made(kind: Any, a: str, b: str, d: str, **options: Any) -> Product:
    """A product of these types; sparse or not, both operands fit their swizzles."""
    return Product(**{"kind": kind, "a": a, "b": b, "d": d, "ws": True, "n": 64, **options})


@microtest(
    *((*types, m) for types in TYPES for m in (32, 64, 128)),
    only_if=lambda kind, a, b, d, m: kind != "f8f6f4" or (a, b) in _NARROW_SAMPLE,
)
def types(draft: Draft, kind: Any, a: str, b: str, d: str, m: int) -> None:
    """Types, and every M."""
    made(kind, a, b, d, m=m).run(draft)


@microtest(
    *(
        (*kind, m, n, sparse)
        for kind in KINDS
        for m in (32, 64, 128)
        for n in (64, 128, 256)
        for sparse in (False, True)
    ),
    only_if=lambda kind, a, b, d, m, n, sparse: n == 128 or (a == "bf16" and n <= 256 - sparse),
)
def shapes(draft: Draft, kind: Any, a: str, b: str, d: str, m: int, n: int, sparse: bool) -> None:
    """Every M and N."""
    made(kind, a, b, d, m=m, n=n, sparse=sparse).run(draft)


@microtest(
    *((*kind, m, sparse) for kind in KINDS for m in (32, 64, 128) for sparse in (False, True)),
    only_if=lambda kind, a, b, d, m, sparse: a in ("bf16", "tf32") or m == 32,
)
def a_in_tensor_memory(draft: Draft, kind: Any, a: str, b: str, d: str, m: int, sparse: bool) -> None:
    """A in tensor memory once for each part of N."""
    made(kind, a, b, d, m=m, sparse=sparse, in_tensor=True).run(draft)


#: By buffer: whether A is in tensor memory, whether it is sparse.
_FORMS = ((False, False), (True, False), (False, True), (True, True))


@microtest(
    *(
        (f"b{buffer}::{usage}", *form)
        for buffer, form in enumerate(_FORMS)
        for usage in ("fill", "use", "lastuse", "discard")
    )
)
def collector(draft: Draft, usage: str, in_tensor: bool, sparse: bool) -> None:
    """B kept in a buffer for the next product."""
    fill = f"{usage[:4]}fill"
    usages: tuple[str | None, ...] = (usage,) if usage[4:] in ("fill", "discard") else (fill, usage)
    made("f16", "bf16", "bf16", "f32", m=64, in_tensor=in_tensor, sparse=sparse, collectors=usages).run(draft)


@microtest(
    *(("f16", "f16", swizzle, major) for swizzle in ("none", "64B", "128B") for major in ("k", "mn")),
    ("tf32", "tf32", "128B_atom_32B", "mn"),
    ("i8", "s8", "64B", "mn"),
    ("f8f6f4", "e2m3", "none", "k"),
)
def layouts(draft: Draft, kind: Any, type: str, swizzle: str, major: str) -> None:
    """A and B of the same layout."""
    d = "s32" if kind == "i8" else "f32"
    made(kind, type, type, d, m=64, majors=(major, major), swizzles=(swizzle, swizzle), gaps=(1, 0)).run(draft)


@microtest("negate", "without_input", "saturate", "selector")
def options(draft: Draft, option: str) -> None:
    """What other products can do, too."""
    product = made("f16", "f16", "f16", "f32", m=32)
    if option == "negate":
        product.negate = (1, 0)
    elif option == "without_input":
        product.accumulate = False
    elif option == "saturate":
        product = made("i8", "u8", "s8", "s32", m=32, saturate=True)
    else:
        product = made("tf32", "tf32", "tf32", "f32", m=32, sparse=True, selector=3)
    product.run(draft)


# Zero-column masks.


def masked(n: int, m: int, starts: tuple[int, ...], firsts: tuple[int, ...], skip: int, use: int) -> np.ndarray:
    """Which columns count as zero: for each part of N a run of use + 1 columns, skip + 1 zeros, and so on.

    A first span of 1 begins with zeros; so many columns of the beginning are left out as the start count says (by the
    examples of 9.7.16.4.3, whose spans table 45 has the other way round).
    """
    parts = 128 // m
    found = []
    for part in range(parts):
        run: list[int] = []
        zero = firsts[part]
        while len(run) < n // parts + starts[part]:
            run += [zero] * ((skip if zero else use) + 1)
            zero = 1 - zero
        found += run[starts[part] :][: n // parts]
    return np.array(found, np.bool_)


def mask_descriptor(starts: tuple[int, ...], firsts: tuple[int, ...], skip: int, use: int, shift: int = 0) -> int:
    """A zero-column mask descriptor (table 45), with the bit that there is a mask."""
    value = 1 << 39 | skip << 40 | use << 48 | shift << 56
    for index, (start, first) in enumerate(zip(starts, firsts, strict=True)):
        value |= start << 8 * index | first << 32 + index
    return value


#: Start counts, first spans, skip span, use span: the manual's examples, and longer ones.
_MASKS = (
    ((0, 0, 0, 0), (0, 0, 0, 0), 2, 3),
    ((0, 0, 0, 0), (1, 0, 0, 0), 2, 3),
    ((0, 1, 2, 1), (1, 1, 0, 0), 2, 3),
    ((5, 0, 0, 3), (0, 1, 1, 0), 0, 15),
    ((0, 0, 0, 0), (1, 0, 1, 0), 63, 0),
    ((2, 1, 0, 2), (0, 1, 0, 1), 6, 2),
)


@microtest(
    *((m, number, form) for m in (32, 64, 128) for number in range(len(_MASKS)) for form in ("", "sp", "ts")),
    only_if=lambda m, number, form: not form or number == 2,
)
def zero_columns(draft: Draft, m: int, number: int, form: str) -> None:
    """Columns of B that count as zero, whatever shared memory has there."""
    starts, firsts, skip, use = _MASKS[number]
    product = made("f16", "bf16", "bf16", "f32", m=m, n=128, sparse=form == "sp", in_tensor=form == "ts")
    product.mask = mask_descriptor(starts, firsts, skip, use), masked(128, m, starts, firsts, skip, use), 0
    product.run(draft)


@microtest(*((m, number) for m in (32, 64, 128) for number in (1, 4)))
def no_mask(draft: Draft, m: int, number: int) -> None:
    """A descriptor without the bit that there is a mask: no column is zero."""
    starts, firsts, skip, use = _MASKS[number]
    product = made("tf32", "tf32", "tf32", "f32", m=m, n=64)
    product.mask = mask_descriptor(starts, firsts, skip, use) & ~(1 << 39), np.zeros(64, np.bool_), 0
    product.run(draft)


@microtest(
    *(
        (m, shift, most, masks)
        for m in (64, 128)
        for shift, most in ((1, 8), (8, 8), (16, 16), (31, 32))
        for masks in (False, True)
    ),
    only_if=lambda m, shift, most, masks: not masks or shift != 8,
)
def column_shift(draft: Draft, m: int, shift: int, most: int, masks: bool) -> None:
    """Columns of B from the shift on are used; the descriptor of the instruction bounds it. M 32 has none."""
    starts, firsts, skip, use = (0, 0, 0, 0), (0, 1, 0, 1), 2, 3
    product = made("f16", "f16", "f16", "f32", m=m, n=64, max_shift=most)
    value = mask_descriptor(starts, firsts, skip, use, shift)
    zeroed = masked(64, m, starts, firsts, skip, use)
    product.mask = (value, zeroed, shift) if masks else (value & ~(1 << 39), np.zeros(64, np.bool_), shift)
    product.run(draft)
