"""Sums of products in tensor cores: inputs that distinguish models, and exact integer sums, for references.

The rules are those of docs/hardware.md ("Sums in tensor cores"). Shares nothing with the emulator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: Fraction bits, the least exponent of a normal number, and the greatest exponent.
FORMATS = {
    "f16": (10, -14, 15),
    "bf16": (7, -126, 127),
    "tf32": (10, -126, 127),
    "e4m3": (3, -6, 8),
    "e5m2": (2, -14, 15),
    "e2m3": (3, 0, 2),
    "e3m2": (2, -2, 4),
    "e2m1": (1, 0, 2),
    "f32": (23, -126, 127),
    "f64": (52, -1022, 1023),
}


# Inputs.


def _numbers(kind: str, exponent: Array, rng: np.random.Generator) -> Array:
    """Numbers with these exponents and random fractions; subnormal where an exponent is below the least."""
    fraction, least, most = FORMATS[kind]
    exponent = np.clip(exponent, least - fraction, most)
    steps = rng.integers(0, 1 << fraction, exponent.shape).astype(np.float64)
    steps = np.where(rng.random(exponent.shape) < 0.2, rng.choice([0.0, 2.0**fraction - 1], exponent.shape), steps)
    if kind == "e4m3":  # the last number of the last exponent is NaN
        steps = np.where(exponent == most, np.minimum(steps, 6), steps)
    unit = np.exp2(np.maximum(exponent, least) - fraction)
    whole = np.where(exponent < least, np.floor(np.exp2(exponent - least + fraction)), 2.0**fraction)
    value = np.where(exponent < least, whole, whole + steps) * unit
    return value * rng.choice([-1.0, 1.0], exponent.shape)


def lines(kind: str, shape: tuple[int, int], rng: np.random.Generator, *, negated: bool) -> Array:
    """Rows of A or columns of B, [lines, k], each of a sort of its own; pairs cancel where A's are `negated`."""
    fraction, least, most = FORMATS[kind]
    count, k = shape
    sort = rng.permutation(np.arange(count) % 9)[:, None]
    centre = rng.integers(max(least, -40), min(most, 40) + 1, (count, 1))
    wide = rng.integers(least - fraction, most + 1, shape)
    near = centre + rng.integers(-4, 5, shape)
    exponent = np.select(
        [sort == 1, sort == 4, sort == 5, sort == 6, sort == 7],
        [
            wide,
            wide,
            np.where(rng.random(shape) < 0.8, least - rng.integers(0, fraction + 1, shape), near),
            most - rng.integers(0, 3, shape),
            rng.integers(-2, 3, shape),
        ],
        near,
    )
    values = _numbers(kind, exponent, rng)
    normal = _numbers(kind, np.floor(np.log2(np.abs(rng.standard_normal(shape)))).astype(np.int64), rng)
    values = np.where(sort == 0, normal, values)
    values = np.where((sort == 8), np.sign(values) * rng.integers(0, 4, shape), values)
    partner = np.repeat(values[:, 0::2], 2, axis=1)
    if negated:
        partner[:, 1::2] *= -1
    paired = (sort == 3) & np.repeat(rng.random((count, k // 2)) < 0.8, 2, axis=1)
    values = np.where(paired, partner, values)
    values = np.where((sort == 4) & (rng.random(shape) < 0.6), np.copysign(0.0, values), values)
    special = np.array([np.nan] if kind == "e4m3" else [np.inf, -np.inf, np.nan])
    return np.where((sort == 7) & (rng.random(shape) < 0.5 / k), rng.choice(special, shape), values)


def addends(kind: str, product: Array, rng: np.random.Generator) -> Array:
    """C for a product A * B: zeros, what cancels it, and what is far below or above it."""
    fraction, least, most = FORMATS[kind]
    shape = product.shape
    size = np.where(np.isfinite(product) & (product != 0), product, 1.0)
    exponent = np.frexp(size)[1] - 1
    limit = (2.0 - 2.0**-fraction) * 2.0**most
    choices = [
        np.zeros(shape),
        np.full(shape, -0.0),
        -size,
        size * rng.uniform(-2, 2, shape),
        _numbers(kind, exponent + rng.integers(-40, 41, shape), rng),
        _numbers(kind, exponent + rng.integers(-4, 5, shape), rng),
        _numbers(kind, rng.integers(least - fraction, most + 1, shape), rng),
        _numbers(kind, least - rng.integers(0, fraction + 1, shape), rng),
        rng.choice([np.inf, -np.inf, np.nan], shape),
    ]
    sort = rng.choice(9, shape, p=[0.06, 0.04, 0.2, 0.2, 0.2, 0.2, 0.06, 0.03, 0.01])
    found = np.choose(sort, choices)
    found = np.where(np.isfinite(found), np.clip(found, -limit, limit), found)
    return found.astype({"f16": np.float16, "f32": np.float32}[kind]).astype(np.float64)


def unread_bits(values: Array, rng: np.random.Generator) -> Array:
    """Numbers of .tf32 as .f32 with random bits below, which are not read."""
    made = values.astype(np.float32)
    words = made.view(np.uint32) | rng.integers(0, 1 << 13, made.shape).astype(np.uint32)
    return np.where(np.isfinite(made), words, made.view(np.uint32)).view(np.float32).astype(np.float64)


# References.


@dataclass(frozen=True)
class Rule:
    """How one instruction sums.

    Of C and all products each is cut at `fraction` bits below the largest exponent, which is at least `least` (None:
    as `least_of` says); a result of .f32 keeps `kept` bits of fraction.
    """

    fraction: int = 25
    kept: int = 23
    least: int | None = None


#: As `least` of a rule: no floor.
NO_FLOOR = -9999


def least_of(kinds: tuple[str, str, str]) -> int:
    """The floor under the exponent at which sums are cut, by the types of A, B and D: 7 below the normal numbers of D.

    Only these types have products that small.
    """
    a, _, d = kinds
    if (a == "f16" and d == "f16") or (a in ("bf16", "tf32") and d == "f32"):
        return FORMATS[d][1] - 7
    return NO_FLOOR


def _parts(kind: str, values: Array) -> tuple[Array, Array]:
    """(whole numbers, exponents): a value is number * 2 ** (exponent - fraction of the type)."""
    fraction, least, _ = FORMATS[kind]
    finite = np.where(np.isfinite(values), values, 0.0)
    exponent = np.maximum(np.frexp(finite)[1] - 1, least).astype(np.int64)
    exponent = np.where(finite == 0, -10000, exponent)
    scale = np.where(finite == 0, 0, fraction - exponent)
    return np.ldexp(finite, scale.astype(np.int32)).astype(np.int64), exponent


def _cut(number: Array, shift: Array) -> Array:
    """number * 2 ** shift, towards zero."""
    size = np.abs(number)
    return np.sign(number) * np.where(shift >= 0, size << np.clip(shift, 0, 40), size >> np.clip(-shift, 0, 63))


def total(
    a: Array,
    b: Array,
    c: Array,
    kinds: tuple[str, str, str],
    rule: Rule | None = None,
    *,
    named: Array | None = None,
) -> Array:
    """A [m, k] times B [n, k] transposed, and C; kinds are those of A, B and D, `named` the elements of a sparse A."""
    return _sum(a[:, None], b[None], c, kinds, rule or Rule(), named)


def total_of_halves(a: Array, b: Array, c: Array, dtype: str, group: int, named: Array | None = None) -> Array:
    """The same of 8-bit floats on mma.sync: products of .f16, of every other `group` of K and then of the rest.

    C is added to their sum by an ordinary addition.
    """
    first = np.arange(a.shape[1]) // group % 2 == 0
    product = np.zeros(c.shape)
    for half in (first, ~first):
        these = None if named is None else named[:, half]
        product = total(a[:, half], b[:, half], product, ("f16", "f16", dtype), named=these)
    made = {"f16": np.float16, "f32": np.float32}[dtype]
    with np.errstate(all="ignore"):
        return (product.astype(made) + c.astype(made)).astype(np.float64)


def _sum(a: Array, b: Array, c: Array, kinds: tuple[str, str, str], rule: Rule, named: Array | None) -> Array:
    atype, btype, dtype = kinds
    (na, ea), (nb, eb), (nc, ec) = _parts(atype, a), _parts(btype, b), _parts(dtype, c)
    exponents = ea + eb
    largest = np.maximum(exponents.max(-1), ec)
    largest = np.maximum(largest, least_of(kinds) if rule.least is None else rule.least)
    largest = np.where(largest < -1000, 0, largest)
    below = FORMATS[atype][0] + FORMATS[btype][0]
    summed = _cut(na * nb, exponents - below + rule.fraction - largest[..., None]).sum(-1)
    summed += _cut(nc, ec - FORMATS[dtype][0] + rule.fraction - largest)
    exact = np.ldexp(summed.astype(np.float64), (largest - rule.fraction).astype(np.int32))
    with np.errstate(invalid="ignore"):
        products = np.where(np.isfinite(a) & np.isfinite(b), 0.0, a * b)
        if named is not None:
            products = np.where(named[:, None], products, 0.0)
        special = products.sum(-1) + np.where(np.isfinite(c), 0.0, c)
    found = np.where(special == 0, _rounded(exact, dtype, rule), special)
    return np.where(found == 0, 0.0, found)  # a zero has no sign


def _rounded(exact: Array, dtype: str, rule: Rule) -> Array:
    if dtype == "f16":
        with np.errstate(over="ignore"):
            return exact.astype(np.float16).astype(np.float64)
    exponent = np.maximum(np.frexp(exact)[1] - 1, -126)
    cut = np.trunc(np.ldexp(exact, rule.kept - exponent))
    found = np.ldexp(cut, exponent - rule.kept)
    return np.where(np.abs(found) >= 2.0**128, np.copysign(np.inf, found), found)


# Groups of 4-bit floats with scale factors.


@dataclass(frozen=True)
class GroupRule:
    """How tcgen05.mma sums products of e2m1 with scale factors: `group` products are one exact addend."""

    group: int = 16
    fraction: int = 35
    least: int = -139
    #: A group has its factors' exponent though its products cancel; though all of them are zero.
    cancelled: bool = True
    empty: bool = False
    #: C's exponent counts only where it is at least that of the largest product.
    late_c: bool = False


def total_of_groups(
    a: Array, b: Array, c: Array, scales: tuple[Array, Array], kind: str, rule: GroupRule | None = None
) -> Array:
    """A [m, k] times B [n, k] transposed, and C; `scales` [m, blocks], [n, blocks] of ue8m0 or ue4m3."""
    rule = rule or GroupRule()
    least = -6 if kind == "ue4m3" else -127
    k, found = a.shape[1], np.zeros(c.shape)
    starts = range(0, k, rule.group)
    for row, column in np.ndindex(*c.shape):
        addend, parts, sizes, product = float(c[row, column]), [], [], -NONE
        for start in starts:
            block = start * scales[0].shape[1] // k
            x, y = float(scales[0][row, block]), float(scales[1][column, block])
            terms = a[row, start : start + rule.group] * b[column, start : start + rule.group]
            part, used = float(terms.sum()) * x * y, bool(terms.any())
            size = sum(max(int(np.frexp(each)[1]) - 1, least) for each in (x, y))
            parts.append(part)
            if (used and (part or rule.cancelled)) or rule.empty:
                sizes.append(size)
            if used:
                at = np.flatnonzero(terms) + start
                exponents = np.maximum(np.frexp(a[row, at])[1] - 1, 0) + np.maximum(np.frexp(b[column, at])[1] - 1, 0)
                product = max(product, size + int(exponents.max()))
        own = max(int(np.frexp(addend)[1]) - 1, -126)
        if addend and not (rule.late_c and own < product):
            sizes.append(own)
        unit = 2.0 ** (max([*sizes, rule.least]) - rule.fraction)
        found[row, column] = sum(float(np.trunc(part / unit)) for part in (*parts, addend)) * unit
    return _rounded(found, "f32", Rule()) + 0.0


#: Below every exponent.
NONE = 10000
