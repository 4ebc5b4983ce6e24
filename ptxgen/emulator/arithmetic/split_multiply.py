"""Products of mma.sync and wmma that are several sums, and what is rounded between them.

Those that ptxas makes of several instructions: read off the SASS of ptxas 13.5 and measured on an H200
(docs/hardware.md, microtests tensor_sums). Those that tensor cores before Hopper make: `sum_rules`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arithmetic.exact import round_odd, two_sum
from ptxgen.emulator.arithmetic.tensor_sums import Rule, Values, fused


def halves(a: Values, b: Values, c: Values, d_type: str, columns: NDArray[np.int64] | None, rule: Rule) -> NDArray[Any]:
    """Products of 8-bit floats: one of .f16 with every other pair of K (of a sparse A pairs that are stored), then one
    with the rest, and C is added to their sum. Shapes as for `tensor_sums.fused`."""
    width = 2 if columns is None else 4
    first = np.arange(a.shape[-1]) // width % 2 == 0
    product = None
    for half in (first, ~first):
        named = None if columns is None else _renumbered(columns, half)
        product = fused(a[..., half], b[..., half], product, ("f16", "f16", d_type), rule, columns=named)
        product = product.astype(np.float32, copy=False)
    assert product is not None
    with np.errstate(over="ignore", invalid="ignore"):
        if d_type == "f16":
            return (product.astype(np.float64) + c).astype(np.float16)
        return product + c


def _renumbered(columns: NDArray[np.int64], half: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The columns in one half of K, by their numbers there: each row has as many."""
    inside = columns[half[columns]].reshape(*columns.shape[:-1], -1)
    return (np.cumsum(half) - 1)[inside]


def steps(
    a: Values,
    b: Values,
    c: Values,
    types: tuple[str, str, str],
    rule: Rule,
    size: int,
    columns: NDArray[np.int64] | None = None,
) -> NDArray[Any]:
    """Sums of so many columns of A each, one after the other; each rounds to D's type. Shapes as for `fused`."""
    k = a.shape[-1]
    if k <= size:
        return fused(a, b, c, types, rule, columns=columns)
    found: NDArray[Any] = c
    for start in range(0, k, size):
        inside = (np.arange(k) >= start) & (np.arange(k) < start + size)
        named = None if columns is None else _renumbered(columns, inside)
        before = found.astype(np.float32, copy=False)
        found = fused(a[..., inside], b[..., inside], before, types, rule, columns=named)
    return found


def multiply_adds(a: Values, b: Values, c: Values, c_type: str, d_type: str) -> NDArray[Any]:
    """mma.m8n8k4 of .f16 since sm_80, which a routine computes without a tensor core, in .f32.

    All four products are added, and C last; where C and D are .f16, C, the first two and the last two.
    """
    terms = [a[..., :, None, k].astype(np.float64) * b[..., None, :, k] for k in range(4)]
    with np.errstate(over="ignore", invalid="ignore"):
        if c_type == d_type == "f16":
            total = c
            for first in (0, 2):
                total = total + _add(terms[first].astype(np.float32), terms[first + 1])
        else:
            total = np.zeros(c.shape, np.float32)
            for term in terms:
                total = _add(total, term)
            total = total + c
        return total.astype(np.float16) if d_type == "f16" else total


def _add(total: Values, product: NDArray[np.float64]) -> Values:
    """A fused multiply-add of .f32, of an exact product."""
    return round_odd(*two_sum(product, total.astype(np.float64))).astype(np.float32)
