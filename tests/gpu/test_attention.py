"""The Hopper attention kernels on a GPU: right against the reference, and the same bits as in the emulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen.attention import find, kernels
from ptxgen.attention.job import job
from ptxgen.emulator import Emulator
from ptxgen.gpu import Gpu

NAMES = [name for name, entry in kernels().items() if entry.target == "sm_90a"]
CHOICES: list[dict[str, Any]] = [
    {},
    {"causal": True, "lse": True, "dtype": "f16"},
    {"head_size": 192, "value_size": 128, "causal": True},
    {"head_size": 64, "lse": True},
]


@pytest.mark.gpu
@pytest.mark.parametrize(("queries", "keys"), [(512, 512), (1000, 65), (63, 511), (1, 1)])
@pytest.mark.parametrize("choices", CHOICES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_a_rung_is_right(gpu: Gpu, name: str, choices: dict[str, Any], queries: int, keys: int) -> None:
    problem = find(name).plan(**choices).problem(queries, keys, heads=4, kv_heads=2, batches=2)
    result = job(problem).run(gpu)
    assert result.ok, result.summary()


@pytest.mark.gpu
@pytest.mark.parametrize("choices", CHOICES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_a_rung_leaves_the_emulators_bits(gpu: Gpu, name: str, choices: dict[str, Any]) -> None:
    """Of every element: sums of the tensor cores and ex2.approx, rcp.approx and lg2.approx have the GPU's bits."""
    problem = find(name).plan(**choices).problem(130, 333, heads=2, kv_heads=1)
    one, other = (job(problem, seed=7).run(device) for device in (gpu, Emulator("sm_90a", checks=False)))
    for output in problem.outputs:
        np.testing.assert_array_equal(one.outputs[output].view(np.uint8), other.outputs[output].view(np.uint8))
