"""Attention in float64 by NumPy, and how far a right kernel may be off, element by element."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ptxgen.attention.problem import AttentionProblem
from ptxgen.gemm.reference.comparison import half_ulp
from ptxgen.gemm.types import TYPES
from ptxgen.job import Expected

#: Relative error of ex2.approx.ftz (2 ulp, PTX ISA 9.7.3.21), and a bound of that of rcp.approx.ftz (1 ulp, 9.7.3.13).
_APPROXIMATE = 2.0**-22
#: Relative error of an addition of the tensor cores, which may truncate where fp32 rounds: twice 2⁻²⁴ of the sizes.
_ADDITION = 2.0**-23
#: Half the distance of the smallest numbers of f16, where exponentials may be subnormal; the sum is at least about 1.
_SUBNORMAL = {"f16": 2.0**-25, "bf16": 0.0}

REASON = (
    "half an ulp of O, rounding the exponentials to the type of V, and fp32 errors of scores and sums; worst case, per "
    "element"
)


def random_inputs(problem: AttentionProblem, seed: int) -> dict[str, np.ndarray]:
    """Q, K and V of a problem's shapes and type. Scores have a standard deviation of 1/2 for the first key and 8 for
    the last, so that softmax has peaks, and the largest score of a row grows by far more than once.
    """
    random = np.random.default_rng(seed)
    dtype = TYPES[problem.plan.config.dtype].numpy
    made = {name: random.standard_normal(problem.shape(name), dtype=np.float32) for name in "qkv"}
    made["q"] *= np.float32(2)
    problem.by_head(made["k"])[...] *= np.exp2(np.linspace(-2, 2, problem.keys, dtype=np.float32))[:, None]
    return {name: each.astype(dtype) for name, each in made.items()}


def expected(problem: AttentionProblem, inputs: Mapping[str, np.ndarray]) -> dict[str, Expected]:
    """O of Q, K and V, and the logarithm of the sums of exponentials where the kernel stores it, with tolerances."""
    q, k, v = (problem.by_head(inputs[name]) for name in "qkv")
    heads, rows, columns = problem.extents("o")
    o, o_allowed = (np.zeros((problem.batches, heads, rows, columns)) for _ in range(2))
    lse, lse_allowed = (np.zeros((problem.batches, heads, rows)) for _ in range(2))
    group = problem.heads // problem.kv_heads
    for at in np.ndindex(problem.batches, heads):
        of_keys = (at[0], at[1] // group)
        made = _head(problem, *(each.astype(np.float64) for each in (q[at], k[of_keys], v[of_keys])))
        o[at], o_allowed[at], lse[at], lse_allowed[at] = made
    # The same permutation leads back.
    found = {"o": Expected(problem.by_head(o), problem.by_head(o_allowed))}
    if problem.plan.config.lse:
        found["lse"] = Expected(lse, lse_allowed)
    return found


Array = npt.NDArray[np.float64]


def _head(problem: AttentionProblem, q: Array, k: Array, v: Array) -> tuple[Array, Array, Array, Array]:
    """O, what it may be off by, log-sum-exp, what it may be off by: of one head."""
    config = problem.plan.config
    scores = q @ k.T * problem.score_scale
    seen = np.ones(scores.shape, bool)
    if config.causal:
        seen = np.arange(problem.keys) <= np.arange(problem.queries)[:, None] + problem.offset
    count = seen.sum(axis=1)
    largest = np.where(seen, scores, -np.inf).max(axis=1)
    safe = np.where(count > 0, largest, 0.0)
    weights = np.where(seen, np.exp(scores - safe[:, None]), 0.0)
    sums = weights.sum(axis=1)
    weights /= np.where(count > 0, sums, 1.0)[:, None]
    with np.errstate(divide="ignore"):
        lse = np.log(sums) + safe
    o, magnitude = weights @ v, weights @ np.abs(v)
    # An exponential: the sum of its score, the scale and two roundings of the exponent, and ex2. The bias does not
    # count, which a row's exponentials have in common.
    products = np.abs(q) @ np.abs(k).T * problem.score_scale
    each = products * (config.head_size + 4) * _ADDITION + _APPROXIMATE
    # What follows from these for O and for the sum; then additions, and one ex2 and product of each block's rescaling.
    blocks = -(-problem.keys // config.key_tile)
    summed = problem.keys * _ADDITION + blocks * 2 * _APPROXIMATE
    sum_error = (weights * each).sum(axis=1) + summed
    rounding = 2.0 ** -TYPES[config.dtype].digits
    o_allowed = (weights * (rounding + each)) @ np.abs(v) + summed * magnitude
    o_allowed += (sum_error + 2 * _APPROXIMATE)[:, None] * np.abs(o)
    o_allowed += _SUBNORMAL[config.dtype] * (seen @ np.abs(v))
    o_allowed += half_ulp(np.abs(o) + o_allowed, config.o_type)
    size = np.where(count > 0, np.abs(lse) + np.abs(safe), 0.0)
    # lg2 (2⁻²² absolute or relative, PTX ISA 9.7.3.20), and roundings of the largest score, scaled.
    largest_error = np.where(seen, products, 0.0).max(axis=1) * config.head_size * _ADDITION
    return o, o_allowed, lse, sum_error + largest_error + _APPROXIMATE * (1 + 2 * size)
