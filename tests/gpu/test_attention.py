"""The Hopper attention kernels on a GPU, against the reference; exponentials are approximate: no bits are compared."""

from __future__ import annotations

from typing import Any

import pytest

from ptxgen.attention import find, kernels
from ptxgen.attention.job import job
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
