"""Machine code adds products as the NumPy code of tensor cores' sums does, to the bit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from microtests.harness import sums
from ptxgen.emulator.arithmetic import tensor_sums
from ptxgen.emulator.arithmetic.sum_rules import AMPERE, TURING
from ptxgen.emulator.native.library import Library
from tests.emulator.native.test_memory import _restored, both, found  # noqa: F401

TYPES = [
    ("f16", "f16", "f32"), ("f16", "f16", "f16"), ("bf16", "bf16", "f32"), ("tf32", "tf32", "f32"),
    ("e4m3", "e5m2", "f32"), ("e5m2", "e4m3", "f16"), ("e2m1", "e3m2", "f32"),
]  # fmt: skip
RULES = {"usual": tensor_sums.USUAL, "f8": tensor_sums.HOPPER_F8, "Ampere": AMPERE.rule, "Turing": TURING.rule}
SIZES = [(1, 64, 96, 16), (7, 16, 8, 8), (2, 5, 33, 48)]


@pytest.mark.parametrize("types", TYPES, ids=".".join)
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_sums(found: Library, types: tuple[str, str, str], rule: tensor_sums.Rule) -> None:  # noqa: F811
    """Numbers of all sizes that cancel, moderate ones and tiny ones, with C and without; finite or not."""
    rng = np.random.default_rng(len(types[0]) + rule.fraction)
    for (count, m, n, k), kind in itertools.product(SIZES, ("all", "finite", "moderate", "tiny")):
        a, b = (
            np.stack([sums.lines(type, (lines, k), rng, negated=negated) for _ in range(count)]).astype(np.float32)
            for type, lines, negated in ((types[0], m, True), (types[1], n, False))
        )
        if kind != "all":
            a, b = (np.where(np.isfinite(each), each, np.float32(1)) for each in (a, b))
        if kind == "moderate":
            a, b = (np.where(np.abs(np.log2(np.abs(each) + 1e-30)) < 9, each, np.float32(0)) for each in (a, b))
        if kind == "tiny":
            least = np.float32(2.0 ** tensor_sums.FORMATS[types[0]].smallest)
            a = np.where(rng.integers(0, 2, a.shape) == 1, least, np.float32(0))
        with np.errstate(all="ignore"):
            products = np.einsum("pmk,pnk->pmn", a, b)
            c = np.stack([sums.addends(types[2], each, rng) for each in products]).astype(np.float32)
        if kind != "all":
            c = np.where(np.isfinite(c), c, np.float32(0))
        for addend in (c, None):
            with np.errstate(all="ignore"):
                wanted, got = both(found, lambda _, c=addend, a=a, b=b: tensor_sums.fused(a, b, c, types, rule))
            assert wanted.dtype == got.dtype
            np.testing.assert_array_equal(
                tensor_sums.words_of(wanted, types[2]), tensor_sums.words_of(got, types[2]), f"{kind} {m}x{n}x{k}"
            )


def test_only_what_is_finite_takes_the_machine_code(found: Library) -> None:  # noqa: F811
    a, types, rule = np.ones((4, 8), np.float32), ("f16", "f16", "f32"), tensor_sums.USUAL
    for value, takes in ((0, True), (np.inf, False), (np.nan, False)):
        c = np.full((4, 4), value, np.float32)
        _, made = both(found, lambda _, c=c: tensor_sums._by_machine_code(a, a, c, types, rule))
        assert (made is not None) == takes
