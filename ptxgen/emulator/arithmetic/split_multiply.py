"""Products of mma.sync and wmma that ptxas makes of several instructions, and what is rounded between them.

Read off the SASS of ptxas 13.5 and measured on an H200 (docs/hardware.md, microtests tensor_sums).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arithmetic.exact import round_odd, two_sum
from ptxgen.emulator.arithmetic.tensor_sums import Rule, Values, fused
from ptxgen.instr.model.targets import Target


def splits_f8(target: Target) -> bool:
    """Whether mma.sync of 8-bit floats is made of products of .f16: everywhere but on sm_120 and its kin."""
    return target.major != 12


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


def steps_of_4(a: Values, b: Values, c: Values, rule: Rule) -> NDArray[Any]:
    """wmma of .tf32: two products of K 4."""
    for start in range(0, a.shape[-1], 4):
        inside = slice(start, start + 4)
        c = fused(a[..., inside], b[..., inside], c, ("tf32", "tf32", "f32"), rule)
    return c


def multiply_adds(a: Values, b: Values, c: Values, c_type: str, d_type: str) -> NDArray[Any]:
    """mma.m8n8k4 of .f16, which a routine computes without a tensor core, in .f32.

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
