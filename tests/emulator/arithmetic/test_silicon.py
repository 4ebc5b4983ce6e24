"""Sums of tensor cores against what others hold a B200 to, without words: groups of products, and floors.

Recorded words are compared in tests/emulator/semantics: test_mma_silicon, test_tcgen05_silicon.
"""

import numpy as np
import pytest

from ptxgen.emulator.arithmetic import tensor_sums


def test_cancelling_groups_count() -> None:
    """MMA-Sim and sf-tensor/tcgen05: 16 products that cancel still have their factors' exponent; zeros have none."""
    a, b = np.zeros((1, 64), np.float32), np.ones((1, 64), np.float32)
    a[0, :2], a[0, 16] = (1, -1), 1
    scales = np.array([[2.0**40, 1.0, 1.0, 1.0]]), np.ones((1, 4))
    c = np.array([[2.0**-10]], np.float32)
    assert tensor_sums.fused_groups(a, b, c, scales)[0, 0] == 0  # 40 - 35 bits: 2**5 is the smallest that is left
    a[0, :2] = 0
    assert tensor_sums.fused_groups(a, b, c, scales)[0, 0] == 1 + 2.0**-10


@pytest.mark.parametrize(("depth", "word"), [(25, 0), (26, 1)])
def test_groups_have_a_floor(depth: int, word: int) -> None:
    """sf-tensor/tcgen05: nothing below 2**-174 counts. The least number less 2**-depth of it is cut, or stays."""
    a, b = np.zeros((1, 64), np.float32), np.ones((1, 64), np.float32)
    a[0, 0], a[0, 16] = 1, -1
    scales = np.array([[2.0**-75, 2.0 ** (-75 - depth), 1.0, 1.0]]), np.full((1, 4), 2.0**-74)
    found = tensor_sums.fused_groups(a, b, None, scales)
    assert found.view(np.uint32)[0, 0] == word


def test_subnormal_scale_factors_count_as_the_least_normal_one() -> None:
    """MMA-Sim and sf-tensor/tcgen05: the exponent of a subnormal .ue4m3 is -6."""
    a, b = np.zeros((1, 64), np.float32), np.ones((1, 64), np.float32)
    a[0, 0], a[0, 16] = 1, -1
    scales = np.full((1, 4), 2.0**-9), np.full((1, 4), 2.0**-9)
    for size, kept in ((-47, True), (-48, False)):  # -12 - 35: 2**-47 is the smallest that is left
        c = np.array([[2.0**size]], np.float32)
        assert (tensor_sums.fused_groups(a, b, c, scales, scale_type="ue4m3")[0, 0] == c[0, 0]) == kept


@pytest.mark.parametrize(
    ("types", "least"),
    [(("bf16", "bf16", "f32"), -133), (("tf32", "tf32", "f32"), -133), (("f16", "f16", "f16"), -21)],
)
@pytest.mark.parametrize("rule", [tensor_sums.USUAL, tensor_sums.HOPPER])
def test_floor(types: tuple[str, str, str], least: int, rule: tensor_sums.Rule) -> None:
    """Two products that together are the smallest number of D, or not, as the cut falls."""
    unit = -149 if types[2] == "f32" else -24
    for lowest, kept in ((least - rule.fraction, True), (least - rule.fraction - 1, False)):
        a = np.array([[2.0 ** (unit // 2), 2.0 ** (lowest // 2)]], np.float32)
        b = np.array([[2.0 ** (unit - unit // 2), -(2.0 ** (lowest - lowest // 2))]], np.float32)
        found = tensor_sums.fused(a, b, None, types, rule)
        if types[2] == "f32":
            assert (found[0, 0] == 0) == kept  # cut towards zero: any bit less than the unit is nothing
        else:
            a[0, 0] /= 2  # half of the smallest number is rounded to even: to zero, if nothing is added to it
            b[0, 1] *= -1
            assert (tensor_sums.fused(a, b, None, types, rule)[0, 0] != 0) == kept
