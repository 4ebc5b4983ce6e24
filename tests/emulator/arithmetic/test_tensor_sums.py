"""Sums of tensor cores against whole numbers (microtests.harness.sums, which an H200 agrees with bit for bit)."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from microtests.harness import matrices, sums
from ptxgen.emulator.arithmetic import tensor_sums
from ptxgen.emulator.arithmetic.formats import values

TYPES = [
    ("f16", "f16", "f32"), ("f16", "f16", "f16"), ("bf16", "bf16", "f32"), ("tf32", "tf32", "f32"),
    ("e4m3", "e5m2", "f32"), ("e5m2", "e4m3", "f16"),
]  # fmt: skip
#: Products of large matrices go row by row, many small ones side by side.
SIZES = [(1, 64, 96), (2, 64, 64), (5, 16, 8), (300, 16, 8)]


def words(found: NDArray[Any], d_type: str) -> NDArray[Any]:
    return tensor_sums.words_of(found.astype(matrices.DTYPES[d_type]), d_type)


@pytest.mark.parametrize("types", TYPES, ids=".".join)
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("rule", [tensor_sums.USUAL, tensor_sums.HOPPER_F8], ids=["usual", "f8"])
def test_wide_numbers(types: tuple[str, str, str], size: tuple[int, int, int], rule: tensor_sums.Rule) -> None:
    """Numbers of all sizes, that cancel, subnormal, infinite and NaN."""
    count, m, n = size
    rng = np.random.default_rng([count, rule.fraction])
    a = np.stack([sums.lines(types[0], (m, 16), rng, negated=True) for _ in range(count)])
    b = np.stack([sums.lines(types[1], (n, 16), rng, negated=False) for _ in range(count)])
    wanted = []
    with np.errstate(all="ignore"):
        c = np.stack([sums.addends(types[2], x @ y.T, rng) for x, y in zip(a, b, strict=True)])
        for x, y, z in zip(a, b, c, strict=True):
            wanted.append(sums.total(x, y, z, types, sums.Rule(rule.fraction, rule.kept)))
        left, right, addend = (each.astype(np.float32) for each in (a, b, c))
    found = tensor_sums.fused(left, right, addend, types, rule)
    assert (words(found, types[2]) == words(np.stack(wanted), types[2])).all()


@pytest.mark.parametrize("types", TYPES, ids=".".join)
def test_no_addend(types: tuple[str, str, str]) -> None:
    """Without C it is zero; usual numbers are summed in .f32."""
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal((64, 32)).astype(matrices.DTYPES[type]).astype(np.float64) for type in types[:2])
    if types[0] == "tf32":
        a, b = (np.trunc(each * 2.0**8) / 2.0**8 for each in (a, b))
    wanted = sums.total(a, b, np.zeros((64, 64)), types)
    found = tensor_sums.fused(a.astype(np.float32), b.astype(np.float32), None, types)
    assert (words(found, types[2]) == words(wanted, types[2])).all()


def test_largest_addends() -> None:
    """All products as large as they can be: their sum needs more than 32 bits."""
    a = np.full((8, 32), 65504.0)
    wanted = sums.total(a, a, np.zeros((8, 8)), ("f16", "f16", "f32"))
    found = tensor_sums.fused(a.astype(np.float32), a.astype(np.float32), None, ("f16", "f16", "f32"))
    assert (found == wanted).all()
    assert (found == 32 * 65504.0**2).all()


@pytest.mark.parametrize(
    ("of_a", "of_b"),
    # Last: scaled elements of A are beyond .f32, and the products are usual numbers.
    [((100, 155), (100, 155)), ((1, 254), (1, 254)), ((248, 255), (0, 100)), ((0, 30), (225, 255))],
)
def test_scales(of_a: tuple[int, int], of_b: tuple[int, int]) -> None:
    """Powers of two for blocks of K are those of the products."""
    rng = np.random.default_rng(of_a[0])
    a, b = (sums.lines("e4m3", (rows, 32), rng, negated=False) for rows in (32, 16))
    a, b = (np.where(np.isnan(each), 0.0, each) for each in (a, b))
    scales = (
        np.exp2(rng.integers(*of_a, (32, 1)) - 127.0),
        np.exp2(rng.integers(*of_b, (16, 1)) - 127.0),
    )
    c = (a * scales[0]) @ (b * scales[1]).T * 2.0 ** rng.integers(-20, 21, (32, 16))
    c = np.where(np.abs(c) < 2.0**127, c, 0.0).astype(np.float32)
    found = tensor_sums.fused(a.astype(np.float32), b.astype(np.float32), c, ("e4m3", "e4m3", "f32"), scales=scales)
    for row, column in np.ndindex(32, 16):
        factor = float(scales[0][row, 0] * scales[1][column, 0])
        wanted = total_of(
            a[row] * b[column],
            exponents("e4m3", a[row]) + exponents("e4m3", b[column]),
            factor,
            float(c[row, column]),
            25,
        )
        assert found[row, column] == wanted


def exponents(kind: str, numbers: NDArray[Any]) -> NDArray[Any]:
    found = np.maximum(np.frexp(numbers)[1] - 1, sums.FORMATS[kind][1])
    return np.where(numbers == 0, -10000, found)


def total_of(terms: NDArray[Any], sizes: NDArray[Any], factor: float, c: float, fraction: int) -> np.float32:
    """One sum, of terms with these exponents, times a power of two."""
    shift = int(np.frexp(factor)[1]) - 1
    own = int(exponents("f32", np.array([c]))[0])
    top = max(int(sizes.max()) + shift, own)
    top = 0 if top < -5000 else top
    cut = [int(np.trunc(np.ldexp(float(term), shift + fraction - top))) for term in (*terms, np.ldexp(c, -shift))]
    exact = np.ldexp(float(sum(cut)), top - fraction)
    return towards_zero(exact)


def towards_zero(exact: float) -> np.float32:
    with np.errstate(over="ignore"):
        near = np.float32(exact)
    if abs(float(near)) > abs(exact) and np.isfinite(near):
        near = np.nextafter(near, np.float32(0))
    return near


@pytest.mark.parametrize(("type", "blocks"), [("ue4m3", 4), ("ue8m0", 2), ("ue8m0", 4)])
def test_groups(type: str, blocks: int) -> None:
    """4-bit floats: 16 products are added exactly, then scaled, then cut by the exponents of their factors."""
    rng = np.random.default_rng(blocks)
    a, b = (values("e2m1")[rng.integers(0, 16, (rows, 64))] for rows in (16, 24))
    low, high = (8, 120) if type == "ue4m3" else (90, 160)
    table: NDArray[Any] = np.exp2(np.arange(256) - 127.0) if type == "ue8m0" else values("ue4m3").astype(np.float64)
    scales = table[rng.integers(low, high, (16, blocks))], table[rng.integers(low, high, (24, blocks))]
    c = (rng.standard_normal((16, 24)) * 2.0 ** rng.integers(-30, 40, (16, 24))).astype(np.float32)
    found = tensor_sums.fused_groups(a, b, c, scales)
    for row, column in np.ndindex(16, 24):
        parts, sizes = [], [int(np.frexp(c[row, column])[1]) - 1]
        for group in range(4):
            inside, block = slice(16 * group, 16 * group + 16), group * blocks // 4
            x, y = float(scales[0][row, block]), float(scales[1][column, block])
            parts.append(float(a[row, inside].astype(np.float64) @ b[column, inside]) * x * y)
            sizes.append(int(np.frexp(x)[1]) + int(np.frexp(y)[1]) - 2)
        unit = 2.0 ** (max(sizes) - 35)
        exact = sum(int(part / unit) for part in (*parts, float(c[row, column]))) * unit
        assert found[row, column] == towards_zero(exact)
