"""tcgen05.mma of sm_107 (PTX ISA 9.4): kind::ti16, K 64 of 8-bit types, K 128 of 4-bit ones, buffers for B.

References are written from the manual's tables 48 and 51 to 53; the encoding of ti16 from NumSim (fact ti16-encoding).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.block_scales import scale_codes, scale_values, scaled_idesc
from tests.support.tensor_layouts import Bench, close, codes_of, errors, gather, values_of

WIDE = 1 << 29


def ti16_codes(rng: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.uint32]:
    """A sign on top, eleven bits of magnitude at the bottom; often the largest."""
    magnitude = np.where(rng.random(shape) < 0.3, 2047, rng.integers(0, 2048, shape))
    return (magnitude | rng.integers(0, 2, shape) << 15).astype(np.uint32)


def ti16_values(codes: NDArray[np.uint32]) -> NDArray[np.int64]:
    return np.where(codes >> 15, -1, 1) * (codes & 2047).astype(np.int64)


def ti16_idesc(m: int, n: int, *, negate_a: bool = False, more: int = 0) -> int:
    return 2 << 4 | 3 << 7 | 3 << 10 | negate_a << 13 | n // 8 << 17 | m // 16 << 24 | more


def wrapped(total: NDArray[np.int64]) -> NDArray[np.int64]:
    return (total + 2**31) % 2**32 - 2**31


@pytest.mark.parametrize(("m", "ws"), [(128, False), (64, False), (32, True)])
def test_ti16(m: int, ws: bool) -> None:
    """Exact sums of products of 22 bits, which wrap."""
    bench, n = Bench(m), 64
    start = bench.rng.integers(-(2**31), 2**31, (128, n)).astype(np.int32)
    d = bench.fill(start.view(np.uint32))
    bench.sync()
    a, b = ti16_codes(bench.rng, (m, 16)), ti16_codes(bench.rng, (n, 16))
    left, right = bench.matrix(a, "f16", "k", "32B"), bench.matrix(b, "f16")
    mode = ".ws" if ws else ""
    bench.issue(
        f"tcgen05.mma{mode}.cta_group::1.kind::ti16 [{{d}}], {{a}}, {{b}}, {{idesc}}, 1;",
        d=d,
        a=left.descriptor,
        b=right.descriptor,
        idesc=ti16_idesc(m, n, negate_a=m == 64),
    )
    report, words = bench.run(target="sm_107a")
    assert not errors(report), report.summary()
    sign = -1 if m == 64 else 1
    before = gather(np.ascontiguousarray(start.view(np.uint32)), m, n, 0, ws).view(np.int32).astype(np.int64)
    exact = wrapped(before + sign * ti16_values(a) @ ti16_values(b).T)
    assert (gather(words, m, n, d, ws).view(np.int32) == exact).all()


@pytest.mark.parametrize(("type_a", "type_b", "swizzle"), [("e4m3", "e5m2", "64B"), ("e5m2", "e4m3", "none")])
def test_k64(type_a: str, type_b: str, swizzle: str) -> None:
    bench, n = Bench(3), 48
    a, b = codes_of(bench.rng, (128, 64), type_a), codes_of(bench.rng, (n, 64), type_b)
    bench.sync()
    left, right, column = bench.matrix(a, type_a, "k", swizzle), bench.matrix(b, type_b), bench.take(n)
    code = {"e4m3": 0, "e5m2": 1}
    bench.issue(
        "tcgen05.mma.cta_group::1.kind::f8f6f4.collector::a::fill.collector::b::fill [{d}], {a}, {b}, {idesc}, 0;",
        d=column,
        a=left.descriptor,
        b=right.descriptor,
        idesc=WIDE | 1 << 4 | code[type_a] << 7 | code[type_b] << 10 | n // 8 << 17 | 8 << 24,
    )
    report, words = bench.run(target="sm_107a")
    assert not errors(report), report.summary()
    x, y = values_of(a, type_a), values_of(b, type_b)
    close(words[:, column : column + n], x @ y.T, np.abs(x) @ np.abs(y).T, 64)


def scale_cells(codes: NDArray[np.uint32], first: int, columns: int) -> NDArray[np.uint32]:
    """Row r on lane r % 32 of each quarter; a word has 4 scales of K, and there are 4 columns a word for 128 rows."""
    cells = np.random.default_rng(7).integers(0, 2**32, (128, columns), dtype=np.uint64).astype(np.uint32)
    raw = cells.view(np.uint8).reshape(128, columns, 4)
    for row in range(len(codes)):
        for quarter in range(4):
            for j in range(codes.shape[1]):
                raw[32 * quarter + row % 32, (first + j) // 4 * 4 + row // 32, (first + j) % 4] = codes[row, j]
    return cells


@pytest.mark.parametrize(
    ("kind", "size", "type", "scale", "count", "k", "bits", "first"),
    [
        ("mxf4", ".block32", "e2m1", "ue8m0", 4, 128, 1 << 3, 0),
        ("mxf4nvf4", ".block16", "e2m1", "ue4m3", 8, 128, 1 << 3, 0),
    ],
)
def test_wide_k_of_block_scales(
    kind: str, size: str, type: str, scale: str, count: int, k: int, bits: int, first: int
) -> None:
    bench, n, packed = Bench(count), 64, type == "e2m1"
    a, b = codes_of(bench.rng, (128, k), type), codes_of(bench.rng, (n, k), type)
    sfa, sfb = scale_codes(bench.rng, 128, count, scale), scale_codes(bench.rng, n, count, scale)
    at_a, at_b = bench.fill(scale_cells(sfa, first, 8)), bench.fill(scale_cells(sfb, first, 8))
    bench.sync()
    left, right = bench.matrix(a, type, "k", "64B", packed), bench.matrix(b, type, "k", "128B", packed)
    column = bench.take(n)
    bench.issue(
        f"tcgen05.mma.cta_group::1.kind::{kind}.block_scale{size}.collector::b::lastuse [{{d}}], {{a}}, {{b}}, "
        "{idesc}, [{sfa}], [{sfb}], 0;",
        d=column,
        a=left.descriptor,
        b=right.descriptor,
        sfa=at_a,
        sfb=at_b,
        idesc=bits | scaled_idesc(n, type, type, scale, (first, first), packed=packed),
    )
    report, words = bench.run(target="sm_107a")
    assert not errors(report), report.summary()
    x = values_of(a, type) * np.repeat(scale_values(sfa, scale), k // count, axis=1)
    y = values_of(b, type) * np.repeat(scale_values(sfb, scale), k // count, axis=1)
    close(words[:, column : column + n], x @ y.T, np.abs(x) @ np.abs(y).T, k)


def one(idesc: int, target: str, kind: str = "f8f6f4", sparse: str = "", meta: str = "", more: str = "") -> Any:
    bench = Bench(1)
    bench.sync()
    codes = codes_of(bench.rng, (128, 64), "e4m3")
    matrix, column = bench.matrix(codes, "e4m3").descriptor, bench.take(64)
    bench.issue(
        f"tcgen05.mma{sparse}.cta_group::1.kind::{kind} [{{d}}], {{a}}, {{b}}, {meta}{{idesc}}, {more}0;",
        d=column,
        a=matrix,
        b=matrix,
        idesc=idesc,
        meta=column,
    )
    return bench.run(target=target)[0]


def test_k64_is_of_sm_107() -> None:
    idesc = WIDE | 1 << 4 | 8 << 17 | 8 << 24
    assert "illegal-descriptor" in errors(one(idesc, "sm_100a"))
    assert "illegal-descriptor" in errors(one(idesc | 3 << 7, "sm_107a"))  # e2m3
    assert "illegal-descriptor" in errors(one(ti16_idesc(128, 24), "sm_107a", "ti16"))


def test_what_no_source_says_is_incomplete() -> None:
    wide_sparse = one(WIDE | 1 << 2 | 1 << 4 | 8 << 17 | 8 << 24, "sm_107a", sparse=".sp", meta="[{meta}], ")
    assert wide_sparse.status == "incomplete", wide_sparse.summary()
    assert "metadata" in wide_sparse.summary()
    scaled = one(
        1 << 31 | scaled_idesc(64, "e4m3", "e4m3", "ue8m0"),
        "sm_107a",
        "mxf8f6f4.block_scale",
        more="[{meta}], [{meta}], ",
    )
    assert scaled.status == "incomplete", scaled.summary()
    assert "scale factors" in scaled.summary()
    transposed = one(ti16_idesc(128, 64, more=1 << 15), "sm_107a", "ti16")
    assert transposed.status == "incomplete", transposed.summary()
    assert "contradict" in transposed.summary()
