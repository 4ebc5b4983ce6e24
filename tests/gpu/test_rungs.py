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
#: Those with tensor cores.
WGMMA = [name for name in NAMES if "n_tile" in find(name).options]
CHOICES: list[dict[str, Any]] = [
    {},
    {"dtype": "f16", "b_major": "mn"},
    {"dtype": "s8", "c_dtype": "s32", "epilogue": "direct"},
    {"dtype": "e4m3", "b_dtype": "e5m2", "c_dtype": "bf16", "n_tile": 128},
]
#: Options of the epilogue, the order of tiles and consumers; not every rung has all of them.
OPTIONS: list[dict[str, Any]] = [
    {"alpha": True, "source": "bf16", "bias": "f32", "activation": "relu", "batched": True},
    {"dtype": "e4m3", "c_dtype": "f16", "n_tile": 128, "alpha": True, "source": "f32", "bias": "bf16"},
    {"dtype": "s8", "c_dtype": "s32", "epilogue": "direct", "alpha": True, "source": "s32", "bias": "s32"},
    {"dtype": "s8", "c_dtype": "bf16", "alpha": True, "bias": "f32", "activation": "relu"},
    {"dtype": "f16", "n_tile": 64, "order": "hilbert", "activation": "relu"},
    {"consumers": "pingpong", "scheduler": "static", "m_tile": 64, "n_tile": 128, "slots": 8, "bias": "f16"},
    {"split_k": 4, "scheduler": "grid", "cluster_m": 1, "n_tile": 64},
    {"k_clusters": 3, "scheduler": "grid", "cluster_m": 2, "n_tile": 64, "panel": 0},
    {"k_clusters": 2, "split_k": 2, "sums": "ring", "scheduler": "grid", "cluster_m": 2, "n_tile": 64, "panel": 0},
    {"k_clusters": 16, "scheduler": "grid", "cluster_m": 1, "n_tile": 64, "panel": 0},
]


def job_of(plan: GemmPlan, shape: tuple[int, int, int]) -> GemmJob:
    return GemmJob(plan, *shape, seed=5, more={"batches": 2} if plan.config.batched else {})


def result(device: Device, plan: GemmPlan, shape: tuple[int, int, int]) -> np.ndarray:
    """C as it lies in memory, with the gaps between its rows."""
    job = job_of(plan, shape)
    problem, reference = job.problem, job.reference
    a, b = (device.array(reference.lines(name)) for name in ("a", "b"))
    source = None if reference.source is None else device.array(reference.lines("source"))
    bias = None if reference.bias is None else device.array(reference.bias)
    order = None if problem.tile_order is None else device.array(problem.tile_order)
    words = problem.workspace_words
    workspace = device.array(np.zeros(words, np.uint32)) if words else None
    c = device.array(np.zeros((problem.batches * problem.m, problem.leading("c")), TYPES[plan.c_dtype].numpy))
    report = device.launch(
        Kernel.from_ptx(plan.text),
        problem.grid,
        problem.block,
        problem.arguments(a, b, c, source, bias, order, workspace=workspace),
        shared_bytes=plan.shared.bytes,
    )
    assert report.status == "ok", report.summary()
    return c.numpy().view(np.uint8)


def with_options() -> list[Any]:
    """Each Hopper rung with the options that it has."""
    return [
        pytest.param(name, choices, id=f"{name}-{number}")
        for name in NAMES
        for number, choices in enumerate(OPTIONS)
        if all(option in find(name).options for option in choices)
    ]


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(511, 253, 72), (256, 384, 192), (1, 1, 64)], ids=str)
@pytest.mark.parametrize("choices", CHOICES, ids=str)
@pytest.mark.parametrize("name", WGMMA)
def test_a_rung_gives_the_bits_of_the_emulator(
    gpu: Gpu, name: str, choices: dict[str, Any], shape: tuple[int, int, int]
) -> None:
    plan = find(name).plan(**choices)
    assert (result(gpu, plan, shape) == result(Emulator("sm_90a"), plan, shape)).all()


@pytest.mark.gpu
@pytest.mark.parametrize("choices", [{}, {"vectors": 2, "warp_rows": 2}, {"dtype": "f16", "k_warps": 8}], ids=str)
@pytest.mark.parametrize("shape", [(1, 260, 4672), (2, 33, 520), (3, 17, 8)], ids=str)
def test_the_gemv_gives_the_bits_of_the_emulator(
    gpu: Gpu, choices: dict[str, Any], shape: tuple[int, int, int]
) -> None:
    plan = find("hopper/gemv").plan(**choices)
    assert (result(gpu, plan, shape) == result(Emulator("sm_90a"), plan, shape)).all()


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "choices"), with_options())
def test_options_give_the_bits_of_the_emulator(gpu: Gpu, name: str, choices: dict[str, Any]) -> None:
    plan = find(name).plan(**choices)
    shape = (250, 133, 136)
    assert (result(gpu, plan, shape) == result(Emulator("sm_90a"), plan, shape)).all()


@pytest.mark.gpu
@pytest.mark.parametrize("activation", ["gelu", "silu"])
@pytest.mark.parametrize("name", WGMMA)
def test_tanh_gives_the_bits_of_the_emulator(gpu: Gpu, name: str, activation: str) -> None:
    """And every element is within the tolerance of the reference."""
    plan = find(name).plan(activation=activation, alpha=True, bias="f32")
    shape = (250, 133, 136)
    outcome = job_of(plan, shape).run(gpu)
    assert outcome.ok, outcome.summary()
    assert (result(gpu, plan, shape) == result(Emulator("sm_90a"), plan, shape)).all()


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("name", "choices"), with_options())
def test_options_give_the_same_bits_under_two_schedules(name: str, choices: dict[str, Any]) -> None:
    plan = find(name).plan(**choices)
    one, other = (result(Emulator("sm_90a", schedule), plan, (130, 70, 72)) for schedule in ("eager", "random"))
    assert (one == other).all()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", NAMES)
def test_schedules_give_the_same_bits(name: str) -> None:
    """What the comparison with a GPU rests on: the order of sums does not depend on the schedule."""
    plan = find(name).plan()
    one, other = (result(Emulator("sm_90a", schedule), plan, (130, 70, 136)) for schedule in ("late", "random"))
    assert (one == other).all()
