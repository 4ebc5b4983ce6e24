"""tcgen05.mma of every kind: types, majors, sparse, block-scaled, A in tensor memory, .ws. References are NumPy on
plain matrices, laid out by the loops of tensor_layouts.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.block_scales import scale_codes, scale_values, scaled_idesc
from tests.support.tensor_layouts import (
    BITS,
    CODES,
    D_CODES,
    FLOATS,
    Bench,
    a_row,
    close,
    codes_of,
    errors,
    gather,
    set_bits,
    values_of,
)

K = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}
SCHEDULES = ["eager", "late", "random"]


def idesc(
    m: int,
    n: int,
    a: str,
    b: str,
    d: str = "f32",
    *,
    sparse: bool = False,
    selector: int = 0,
    saturate: bool = False,
    majors: str = "kk",
    negate: tuple[bool, bool] = (False, False),
    shift: int = 0,
) -> int:
    """PTX ISA table 42."""
    return (
        selector
        | sparse << 2
        | saturate << 3
        | D_CODES[d] << 4
        | CODES[a] << 7
        | CODES[b] << 10
        | negate[0] << 13
        | negate[1] << 14
        | (majors[0] == "m") << 15
        | (majors[1] == "m") << 16
        | n // 8 << 17
        | m // 16 << 24
        | {0: 0, 8: 1, 16: 2, 32: 3}[shift] << 30
    )


def products(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A·Bᵀ and the sum of the magnitudes."""
    return a @ b.T, np.abs(a) @ np.abs(b).T


# Dense products, both operands in shared memory.

PAIRS = list(itertools.product(FLOATS, FLOATS))


@pytest.mark.parametrize("part", range(5))
def test_f8f6f4(part: int) -> None:
    """All pairs of 8-, 6- and 4-bit types; each accumulates two products, the second with a sign."""
    bench = Bench(part)
    swizzles = itertools.cycle(["128B", "64B", "none", "32B"])
    wanted = []
    for number, (type_a, type_b) in enumerate(PAIRS[5 * part : 5 * part + 5]):
        m, n = (64, 24) if number % 2 else (128, 40)
        column = bench.take(n)
        exact, magnitude = np.zeros((m, n)), np.zeros((m, n))
        for step in range(2):
            a, b = codes_of(bench.rng, (m, 32), type_a), codes_of(bench.rng, (n, 32), type_b)
            swizzle = next(swizzles) if bench.used < 60000 else "none"
            left, right = bench.matrix(a, type_a, "k", swizzle), bench.matrix(b, type_b, "k", "none")
            negate = (step == 1, False) if number % 2 else (False, step == 1)
            bench.issue(
                f"tcgen05.mma.cta_group::1.kind::f8f6f4 [{{d}}], {{a}}, {{b}}, {{idesc}}, {step};",
                d=column,
                a=left.descriptor,
                b=right.descriptor,
                idesc=idesc(m, n, type_a, type_b, negate=negate),
            )
            one, size = products(values_of(a, type_a), values_of(b, type_b))
            exact += -one if step else one
            magnitude += size
        wanted.append((m, n, column, exact, magnitude))
    report, words = bench.run(schedule=SCHEDULES[part % 3])
    assert not errors(report), report.summary()
    for m, n, column, exact, magnitude in wanted:
        close(gather(words, m, n, column), exact, magnitude, 66)


@pytest.mark.parametrize(
    ("kind", "type_a", "type_b", "majors", "swizzle_a", "swizzle_b"),
    [
        ("tf32", "tf32", "tf32", "kk", "128B", "32B"),
        ("tf32", "tf32", "tf32", "mk", "128B_atom_32B", "none"),
        ("tf32", "tf32", "tf32", "mm", "128B_atom_32B", "128B_atom_32B"),
        ("f16", "f16", "f16", "mm", "64B", "none"),
        ("f16", "bf16", "bf16", "km", "none", "128B"),
        ("f8f6f4", "e4m3", "e5m2", "mm", "128B", "64B"),
        ("f8f6f4", "e5m2", "e4m3", "mk", "none", "128B"),
        ("i8", "s8", "u8", "mm", "32B", "none"),
    ],
)
def test_majors(kind: str, type_a: str, type_b: str, majors: str, swizzle_a: str, swizzle_b: str) -> None:
    bench = Bench(len(kind) + len(majors))
    n, k = 64, K[kind]
    a, b = codes_of(bench.rng, (128, k), type_a), codes_of(bench.rng, (n, k), type_b)
    side = {"k": "k", "m": "mn"}
    left, right = (
        bench.matrix(a, type_a, side[majors[0]], swizzle_a),
        bench.matrix(b, type_b, side[majors[1]], swizzle_b),
    )
    column = bench.take(n)
    d = "s32" if kind == "i8" else "f32"
    bench.issue(
        f"tcgen05.mma.cta_group::1.kind::{kind} [{{d}}], {{a}}, {{b}}, {{idesc}}, 0;",
        d=column,
        a=left.descriptor,
        b=right.descriptor,
        idesc=idesc(128, n, type_a, type_b, d, majors=majors),
    )
    report, words = bench.run(schedule="late")
    assert not errors(report), report.summary()
    exact, magnitude = products(values_of(a, type_a), values_of(b, type_b))
    found = gather(words, 128, n, column)
    if kind == "i8":
        assert (found.view(np.int32) == exact).all()
    else:
        close(found, exact, magnitude, k)


@pytest.mark.parametrize(("type_a", "type_b"), [("s8", "s8"), ("u8", "s8"), ("s8", "u8"), ("u8", "u8")])
def test_integers(type_a: str, type_b: str) -> None:
    """Exact sums; with saturation they stop at the limits of .s32, without they wrap (PTX ISA table 42)."""
    bench = Bench(CODES[type_a] + 2 * CODES[type_b])
    n = 16
    start = np.array([2**31 - 5, -(2**31) + 9, 12345, -1], np.int64)
    words = np.tile(start[:, None], (32, 2 * n)).astype(np.int32).view(np.uint32)
    d = bench.fill(words)
    bench.sync()
    a, b = codes_of(bench.rng, (128, 32), type_a), codes_of(bench.rng, (n, 32), type_b)
    left, right = bench.matrix(a, type_a), bench.matrix(b, type_b, "k", "64B")
    for saturate in (False, True):
        bench.issue(
            "tcgen05.mma.cta_group::1.kind::i8 [{d}], {a}, {b}, {idesc}, 1;",
            d=d + n * saturate,
            a=left.descriptor,
            b=right.descriptor,
            idesc=idesc(128, n, type_a, type_b, "s32", saturate=saturate),
        )
    report, found = bench.run()
    assert not errors(report), report.summary()
    total = np.tile(start[:, None], (32, n)) + products(values_of(a, type_a), values_of(b, type_b))[0].astype(np.int64)
    wrapped = (total + 2**31) % 2**32 - 2**31
    assert (found[:, d : d + n].view(np.int32) == wrapped).all()
    assert (found[:, d + n : d + 2 * n].view(np.int32) == np.clip(total, -(2**31), 2**31 - 1)).all()


def test_half_accumulators_and_scaled_input() -> None:
    """.f16 sums are in the low halves of the cells; scale-input-d divides D by a power of two."""
    bench = Bench(8)
    n = 32
    a, b = codes_of(bench.rng, (128, 32), "e2m3"), codes_of(bench.rng, (n, 32), "e3m2")
    left, right = bench.matrix(a, "e2m3"), bench.matrix(b, "e3m2")
    half, scaled = bench.take(n), bench.take(n)
    text = "tcgen05.mma.cta_group::1.kind::f8f6f4 [{d}], {a}, {b}, {idesc}, 0;"
    bench.issue(text, d=half, a=left.descriptor, b=right.descriptor, idesc=idesc(128, n, "e2m3", "e3m2", "f16"))
    p, q = codes_of(bench.rng, (128, 16), "bf16"), codes_of(bench.rng, (n, 16), "bf16")
    left, right = bench.matrix(p, "bf16"), bench.matrix(q, "bf16")
    for step in range(2):
        bench.issue(
            f"tcgen05.mma.cta_group::1.kind::f16 [{{d}}], {{a}}, {{b}}, {{idesc}}, {step}, 3;",
            d=scaled,
            a=left.descriptor,
            b=right.descriptor,
            idesc=idesc(128, n, "bf16", "bf16"),
        )
    report, words = bench.run(schedule="random")
    assert not errors(report), report.summary()
    exact, magnitude = products(values_of(a, "e2m3"), values_of(b, "e3m2"))
    assert (words[:, half : half + n] >> 16 == 0).all()
    found = (words[:, half : half + n] & 0xFFFF).astype(np.uint16).view(np.float16).astype(np.float64)
    # One rounding to .f16 of a sum with at most one .f32 rounding a term.
    assert (np.abs(found - exact) <= np.abs(exact) * 2.0**-11 + magnitude * 2.0**-18).all()
    exact, magnitude = products(values_of(p, "bf16"), values_of(q, "bf16"))
    close(words[:, scaled : scaled + n], exact * 1.125, magnitude * 2, 32)


# A in tensor memory.


def lanes_of_a(codes: NDArray[np.uint32], type: str, m: int, *, ws: bool = False, packed: bool = False) -> NDArray[Any]:
    """The 8 columns of A on its lanes (9.7.16.10.4): narrow elements in bytes of their own, 4 bits in the middle."""
    cells = np.random.default_rng(3).integers(0, 2**32, (128, 8), dtype=np.uint64).astype(np.uint32)
    raw = cells.view(np.uint8)
    bits = BITS[type]
    for lane in range(128):
        row = a_row(lane, m, ws)
        if row is None:
            continue
        for k in range(codes.shape[1]):
            code = int(codes[row, k])
            if bits in (4, 6) and not packed:
                raw[lane, k] = code << 2 if bits == 4 else code
            else:
                set_bits(raw[lane], k * bits // 8, k * bits % 8, bits, code)
    return cells


@pytest.mark.parametrize(
    ("kind", "type_a", "type_b", "m"),
    [
        ("f16", "f16", "f16", 128),
        ("f16", "bf16", "bf16", 64),
        ("tf32", "tf32", "tf32", 128),
        ("i8", "u8", "s8", 64),
        ("f8f6f4", "e5m2", "e4m3", 128),
        ("f8f6f4", "e2m1", "e3m2", 128),
        ("f8f6f4", "e2m3", "e2m1", 64),
    ],
)
def test_a_in_tensor_memory(kind: str, type_a: str, type_b: str, m: int) -> None:
    bench = Bench(m + len(type_a))
    n, k = 48, K[kind]
    a, b = codes_of(bench.rng, (m, k), type_a), codes_of(bench.rng, (n, k), type_b)
    place = bench.fill(lanes_of_a(a, type_a, m))
    bench.sync()
    right, column = bench.matrix(b, type_b), bench.take(n)
    bench.issue(
        f"tcgen05.mma.cta_group::1.kind::{kind} [{{d}}], [{{a}}], {{b}}, {{idesc}}, 0;",
        d=column,
        a=place,
        b=right.descriptor,
        idesc=idesc(m, n, type_a, type_b, "s32" if kind == "i8" else "f32"),
    )
    report, words = bench.run(schedule="late")
    assert not errors(report), report.summary()
    exact, magnitude = products(values_of(a, type_a), values_of(b, type_b))
    found = gather(words, m, n, column)
    if kind == "i8":
        assert (found.view(np.int32) == exact).all()
    else:
        close(found, exact, magnitude, k)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_shifted_rows_of_a(schedule: Any) -> None:
    """.ashift takes effect after its product: the next one has row r + 1 in row r, but in the last of each 32 lanes."""
    bench = Bench(6)
    a, b = codes_of(bench.rng, (128, 8), "tf32"), codes_of(bench.rng, (16, 8), "tf32")
    place = bench.fill(lanes_of_a(a, "tf32", 128))
    bench.sync()
    right, first, second = bench.matrix(b, "tf32"), bench.take(16), bench.take(16)
    for column, ashift in ((first, ".ashift"), (second, "")):
        bench.issue(
            f"tcgen05.mma.cta_group::1.kind::tf32{ashift} [{{d}}], [{{a}}], {{b}}, {{idesc}}, 0;",
            d=column,
            a=place,
            b=right.descriptor,
            idesc=idesc(128, 16, "tf32", "tf32"),
        )
    report, words = bench.run(schedule=schedule)
    assert not errors(report), report.summary()
    before, after = values_of(a, "tf32"), values_of(a, "tf32")
    for row in range(127):
        if row % 32 != 31:
            after[row] = before[row + 1]
    for column, left in ((first, before), (second, after)):
        close(words[:, column : column + 16], *products(left, values_of(b, "tf32")), 8)


# Weight-stationary products.


@pytest.mark.parametrize(
    ("m", "n", "in_tmem"), [(32, 64, False), (32, 128, True), (64, 128, True), (64, 64, False), (128, 64, True)]
)
def test_weight_stationary(m: int, n: int, in_tmem: bool) -> None:
    """Layouts G, E and D; A in tensor memory is there once for each part of N. Once with a mask of zero columns."""
    bench = Bench(m + n)
    a, b = codes_of(bench.rng, (m, 16), "f16"), codes_of(bench.rng, (n + 16, 16), "f16")
    place = bench.fill(lanes_of_a(a, "f16", m, ws=True)) if in_tmem else 0
    bench.sync()
    left = "[{a}]" if in_tmem else "{a}"
    matrix = place if in_tmem else bench.matrix(a, "f16").descriptor
    right = bench.matrix(b, "f16", "k", "32B")
    whole, masked = bench.take(n * m // 128), bench.take(n * m // 128)
    text = f"tcgen05.mma.ws.cta_group::1.kind::f16.collector::b1::fill [{{d}}], {left}, {{b}}, {{idesc}}, 0"
    bench.issue(text + ";", d=whole, a=matrix, b=right.descriptor, idesc=idesc(m, n, "f16", "f16"))
    # Three columns of B, then two zeros; the second sub-mask begins with zeros, one of them counted already. M 32 has
    # no shift (fact max-shift-m32).
    offset, most = (0, 0) if m == 32 else (5, 8)
    mask = 1 << 8 | 1 << 33 | 1 << 39 | 1 << 40 | 2 << 48 | offset << 56
    bench.issue(
        text + ", {mask};",
        d=masked,
        a=matrix,
        b=right.descriptor,
        idesc=idesc(m, n, "f16", "f16", shift=most),
        mask=mask,
    )
    report, words = bench.run(schedule="late")
    assert not errors(report), report.summary()
    x, y = values_of(a, "f16"), values_of(b, "f16")
    close(gather(words, m, n, whole, ws=True), *products(x, y[:n]), 16)
    shifted = y[offset : n + offset].copy()
    parts = 128 // m
    for part in range(parts):
        for i in range(n // parts):
            phase = (i + 4) % 5 if part == 1 else i % 5  # part 1: one zero is left of two, then three are used
            if phase >= 3:
                shifted[part * (n // parts) + i] = 0
    close(gather(words, m, n, masked, ws=True), *products(x, shifted), 16)


# Sparse A.

KEPT = {0x4: (0, 1), 0x8: (0, 2), 0xC: (0, 3), 0x9: (1, 2), 0xD: (1, 3), 0xE: (2, 3)}
"""Metadata of 2:4 chunks: the low two bits name the place of the first element."""


def sparse_a(
    rng: np.random.Generator, rows: int, kind: str, type: str
) -> tuple[NDArray[np.uint32], NDArray[Any], NDArray[np.uint32]]:
    """Stored codes [rows, K/2 of the sparse K], their values [rows, K], and the metadata nibbles [rows, chunks]."""
    k = 2 * K[kind]
    stored = codes_of(rng, (rows, k // 2), type)
    numbers = values_of(stored, type)
    size = {"tf32": 2, "mxf4": 8, "mxf4nvf4": 8}.get(kind, 4)
    nibbles = np.zeros((rows, k // size), np.uint32)
    whole = np.zeros((rows, k))
    for row in range(rows):
        for chunk in range(k // size):
            if kind == "tf32":
                odd = int(rng.integers(2))
                nibbles[row, chunk] = (0b0100, 0b1110)[odd]
                whole[row, 2 * chunk + odd] = numbers[row, chunk]
                continue
            nibble = list(KEPT)[rng.integers(6)]
            nibbles[row, chunk] = nibble
            width = size // 4  # pairs of elements in 4:8 chunks
            for which, at in enumerate(KEPT[nibble]):
                for i in range(width):
                    given = numbers[row, chunk * 2 * width + which * width + i]
                    whole[row, size * chunk + width * at + i] = given
    return stored, whole, nibbles


def metadata_words(nibbles: NDArray[np.uint32], kind: str, m: int, selector: int, ws: bool) -> NDArray[np.uint32]:
    """Lanes by columns. Kinds of 8 and 4 bits: a row's nibbles on its lane. Others: figures 262 to 265."""
    cells = np.random.default_rng(5).integers(0, 2**32, (128, 4), dtype=np.uint64).astype(np.uint32)
    for lane in range(128):
        row = a_row(lane, m, ws)
        if row is None:
            continue
        for chunk in range(nibbles.shape[1]):
            if nibbles.shape[1] == 16:
                at, column, bit = lane, chunk // 8, 4 * (chunk % 8)
            else:
                at = lane // 16 * 16 + lane % 8 + (8 if chunk >= 4 else 0)
                column, bit = selector, (16 if lane % 16 >= 8 else 0) + 4 * (chunk % 4)
            cells[at, column] = int(cells[at, column]) & ~(15 << bit) & 0xFFFFFFFF | int(nibbles[row, chunk]) << bit
    return cells


@pytest.mark.parametrize(
    ("kind", "type_a", "type_b", "m", "ws", "in_tmem"),
    [
        ("f16", "f16", "f16", 128, False, False),
        ("f16", "bf16", "bf16", 64, False, True),
        ("tf32", "tf32", "tf32", 128, False, True),
        ("tf32", "tf32", "tf32", 64, True, False),
        ("i8", "s8", "u8", 64, False, False),
        ("f8f6f4", "e4m3", "e2m1", 128, False, False),
        ("f8f6f4", "e3m2", "e5m2", 32, True, True),
        ("f16", "f16", "f16", 32, True, True),
    ],
)
def test_sparse(kind: str, type_a: str, type_b: str, m: int, ws: bool, in_tmem: bool) -> None:
    bench = Bench(m + len(type_a))
    n, k = 64, 2 * K[kind]
    selector = 2 if kind in ("f16", "tf32") else 0
    stored, whole, nibbles = sparse_a(bench.rng, m, kind, type_a)
    b = codes_of(bench.rng, (n, k), type_b)
    meta = bench.fill(metadata_words(nibbles, kind, m, selector, ws))
    place = bench.fill(lanes_of_a(stored, type_a, m, ws=ws)) if in_tmem else 0
    bench.sync()
    matrix = place if in_tmem else bench.matrix(stored, type_a, "k", "64B").descriptor
    right, column = bench.matrix(b, type_b), bench.take(n)
    left, mode = "[{a}]" if in_tmem else "{a}", ".ws" if ws else ""
    bench.issue(
        f"tcgen05.mma{mode}.sp.cta_group::1.kind::{kind} [{{d}}], {left}, {{b}}, [{{meta}}], {{idesc}}, 0;",
        d=column,
        a=matrix,
        b=right.descriptor,
        meta=meta,
        idesc=idesc(m, n, type_a, type_b, "s32" if kind == "i8" else "f32", sparse=True, selector=selector),
    )
    report, words = bench.run(schedule="late")
    assert not errors(report), report.summary()
    exact, magnitude = products(whole, values_of(b, type_b))
    found = gather(words, m, n, column, ws)
    if kind == "i8":
        assert (found.view(np.int32) == exact).all()
    else:
        close(found, exact, magnitude, k)


def test_metadata_that_names_one_place_twice() -> None:
    bench = Bench(1)
    meta = bench.fill(np.zeros((128, 4), np.uint32))
    bench.sync()
    a, b = codes_of(bench.rng, (128, 16), "f16"), codes_of(bench.rng, (16, 32), "f16")
    left, right, column = bench.matrix(a, "f16"), bench.matrix(b, "f16"), bench.take(16)
    bench.issue(
        "tcgen05.mma.sp.cta_group::1.kind::f16 [{d}], {a}, {b}, [{meta}], {idesc}, 0;",
        d=column,
        a=left.descriptor,
        b=right.descriptor,
        meta=meta,
        idesc=idesc(128, 16, "f16", "f16", sparse=True),
    )
    report, _ = bench.run()
    assert "illegal-metadata" in errors(report)
    assert report.status == "findings"


# Block scales.


def scale_words(codes: NDArray[np.uint32], first: int, columns: int) -> NDArray[np.uint32]:
    """Row r on lane r % 32 of each quarter, column r // 32, from byte `first` on (9.7.16.10.7)."""
    cells = np.random.default_rng(7).integers(0, 2**32, (128, columns), dtype=np.uint64).astype(np.uint32)
    raw = cells.view(np.uint8).reshape(128, columns, 4)
    for row in range(len(codes)):
        for quarter in range(4):
            for j in range(codes.shape[1]):
                raw[32 * quarter + row % 32, row // 32, first + j] = codes[row, j]
    return cells


SCALED = [
    # kind, size, A, B, scale type, scales a row, SFA_ID, SFB_ID
    ("mxf8f6f4", "", "e4m3", "e4m3", "ue8m0", 1, 0, 0),
    ("mxf8f6f4", ".block32", "e5m2", "e2m1", "ue8m0", 1, 3, 1),
    ("mxf8f6f4", ".scale_vec::1X", "e2m3", "e3m2", "ue8m0", 1, 2, 3),
    ("mxf4", "", "e2m1", "e2m1", "ue8m0", 2, 0, 2),
    ("mxf4", ".block32", "e2m1", "e2m1", "ue8m0", 2, 2, 0),
    ("mxf4nvf4", ".scale_vec::2X", "e2m1", "e2m1", "ue8m0", 2, 2, 2),
    ("mxf4nvf4", ".block16", "e2m1", "e2m1", "ue4m3", 4, 0, 0),
    ("mxf4nvf4", ".scale_vec::4X", "e2m1", "e2m1", "ue8m0", 4, 0, 0),
]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("kind", "size", "type_a", "type_b", "scale", "count", "id_a", "id_b"), SCALED)
def test_block_scales(
    kind: str, size: str, type_a: str, type_b: str, scale: str, count: int, id_a: int, id_b: int, sparse: bool
) -> None:
    bench = Bench(count + id_a + 7 * sparse)
    n, packed = 72, kind != "mxf8f6f4"
    k = K[kind] * (2 if sparse else 1)
    meta = place = 0
    if sparse:
        a, x, nibbles = sparse_a(bench.rng, 128, kind, type_a)
        meta = bench.fill(metadata_words(nibbles, kind, 128, 0, False))
    else:
        a = codes_of(bench.rng, (128, k), type_a)
        x = values_of(a, type_a)
    in_tmem = id_a == 2 or kind == "mxf4"
    if in_tmem:
        place = bench.fill(lanes_of_a(a, type_a, 128, packed=packed))
    b = codes_of(bench.rng, (n, k), type_b)
    sfa, sfb = scale_codes(bench.rng, 128, count, scale), scale_codes(bench.rng, n, count, scale)
    at_a, at_b = bench.fill(scale_words(sfa, id_a, 4)), bench.fill(scale_words(sfb, id_b, 3))
    bench.sync()
    swizzle = "64B" if sparse else "32B"
    matrix = place if in_tmem else bench.matrix(a, type_a, "k", swizzle, packed).descriptor
    right, column = bench.matrix(b, type_b, "k", "128B", packed), bench.take(n)
    left, mode, more = "[{a}]" if in_tmem else "{a}", ".sp" if sparse else "", ", [{meta}]" if sparse else ""
    bench.issue(
        f"tcgen05.mma{mode}.cta_group::1.kind::{kind}.block_scale{size} [{{d}}], {left}, {{b}}{more}, {{idesc}}, "
        "[{sfa}], [{sfb}], 0;",
        d=column,
        a=matrix,
        b=right.descriptor,
        meta=meta,
        sfa=at_a,
        sfb=at_b,
        idesc=scaled_idesc(n, type_a, type_b, scale, (id_a, id_b), sparse=sparse, packed=packed, negate=(True, False)),
    )
    report, words = bench.run(schedule="late")
    assert not errors(report), report.summary()
    left_values = -x * np.repeat(scale_values(sfa, scale), k // count, axis=1)
    right_values = values_of(b, type_b) * np.repeat(scale_values(sfb, scale), k // count, axis=1)
    close(words[:, column : column + n], *products(left_values, right_values), k)


def test_extreme_scales() -> None:
    """Scales whose product is moderate while each is not: 2^-127 to 2^127. 255 is NaN."""
    bench = Bench(2)
    a, b = np.full((128, 32), 0x7B, np.uint32), np.full((16, 32), 0x38, np.uint32)  # 57344 of e5m2, 1 of e4m3
    sfa = np.array([[0], [254], [127], [255]] * 32, np.uint32)
    sfb = np.array([[254], [0], [127], [200]] * 4, np.uint32)
    at_a, at_b = bench.fill(scale_words(sfa, 0, 4)), bench.fill(scale_words(sfb, 0, 1))
    bench.sync()
    left, right, column = bench.matrix(a, "e5m2"), bench.matrix(b, "e4m3"), bench.take(16)
    bench.issue(
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [{d}], {a}, {b}, {idesc}, [{sfa}], [{sfb}], 0;",
        d=column,
        a=left.descriptor,
        b=right.descriptor,
        sfa=at_a,
        sfb=at_b,
        idesc=scaled_idesc(16, "e5m2", "e4m3", "ue8m0"),
    )
    report, words = bench.run()
    assert not errors(report), report.summary()
    found = words[:, column : column + 16].view(np.float32)
    for row in range(128):
        for col in range(16):
            one, two = int(sfa[row, 0]), int(sfb[col, 0])
            if one == 255:
                assert np.isnan(found[row, col])
            else:
                exact = 57344 * 32 * 2.0 ** (one + two - 254)
                assert found[row, col] == (np.float32(exact) if exact < 2.0**128 else np.inf)


def test_scale_factors_of_each_quarter_are_its_own() -> None:
    """A quarter of the lanes reads the copies on its own lanes: what one of them lacks shows there only."""
    bench = Bench(4)
    a, b = codes_of(bench.rng, (128, 32), "e4m3"), codes_of(bench.rng, (32, 32), "e4m3")
    sfa, sfb = scale_codes(bench.rng, 128, 1, "ue8m0"), scale_codes(bench.rng, 32, 1, "ue8m0")
    cells = scale_words(sfb, 0, 1)
    cells[64:96] += 1  # quarter 2 has scales twice as large
    at_a, at_b = bench.fill(scale_words(sfa, 0, 4)), bench.fill(cells)
    bench.sync()
    left, right, column = bench.matrix(a, "e4m3"), bench.matrix(b, "e4m3"), bench.take(32)
    bench.issue(
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [{d}], {a}, {b}, {idesc}, [{sfa}], [{sfb}], 0;",
        d=column,
        a=left.descriptor,
        b=right.descriptor,
        sfa=at_a,
        sfb=at_b,
        idesc=scaled_idesc(32, "e4m3", "e4m3", "ue8m0"),
    )
    report, words = bench.run()
    assert not errors(report), report.summary()
    x = values_of(a, "e4m3") * scale_values(sfa, "ue8m0")
    x[64:96] *= 2
    close(words[:, column : column + 32], *products(x, values_of(b, "e4m3") * scale_values(sfb, "ue8m0")), 32)
