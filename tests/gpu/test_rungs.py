"""The Hopper rungs on a GPU: right, and the same bits as in the emulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen.device import Device, Kernel
from ptxgen.emulator import Emulator
from ptxgen.gemm import GemmPlan, find, kernels
from ptxgen.gemm.job import GemmJob
from ptxgen.gemm.types import TYPES
from ptxgen.gpu import Gpu

NAMES = [name for name, entry in kernels().items() if entry.target == "sm_90a"]
CHOICES: list[dict[str, Any]] = [
    {},
    {"dtype": "f16", "b_major": "mn"},
    {"dtype": "s8", "c_dtype": "s32", "epilogue": "direct"},
    {"dtype": "e4m3", "b_dtype": "e5m2", "c_dtype": "bf16", "n_tile": 128},
]


def result(device: Device, plan: GemmPlan, shape: tuple[int, int, int]) -> np.ndarray:
    """C as it lies in memory, with the gaps between its rows."""
    job = GemmJob(plan, *shape, seed=5)
    a, b = (device.array(job.reference.lines(name)) for name in ("a", "b"))
    c = device.array(np.zeros((shape[0], job.problem.leading("c")), TYPES[plan.c_dtype].numpy))
    problem = job.problem
    report = device.launch(
        Kernel.from_ptx(plan.text),
        problem.grid,
        problem.block,
        problem.arguments(a, b, c),
        shared_bytes=plan.shared.bytes,
    )
    assert report.status == "ok", report.summary()
    return c.numpy().view(np.uint8)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(511, 253, 72), (256, 384, 192), (1, 1, 64)], ids=str)
@pytest.mark.parametrize("choices", CHOICES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_a_rung_gives_the_bits_of_the_emulator(
    gpu: Gpu, name: str, choices: dict[str, Any], shape: tuple[int, int, int]
) -> None:
    plan = find(name).plan(**choices)
    assert (result(gpu, plan, shape) == result(Emulator("sm_90a"), plan, shape)).all()


@pytest.mark.parametrize("name", NAMES)
def test_schedules_give_the_same_bits(name: str) -> None:
    """What the comparison with a GPU rests on: the order of sums does not depend on the schedule."""
    plan = find(name).plan()
    one, other = (result(Emulator("sm_90a", schedule), plan, (130, 70, 136)) for schedule in ("late", "random"))
    assert (one == other).all()
