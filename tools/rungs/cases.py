"""The runs of a rung, and how one fares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ptxgen
from ptxgen.gemm import KernelEntry, PlanError, find
from ptxgen.gemm.job import run_gemm
from ptxgen.gemm.types import INPUTS

SHAPES = [(128, 128, 128), (256, 384, 192), (511, 253, 72), (1, 1, 64), (512, 512, 512)]
#: More tiles than CTA slots, for persistent kernels with tiles of 64 columns on 4 multiprocessors.
MANY = (1500, 1100, 136)
SEEDS = 5


@dataclass(frozen=True)
class Case:
    """One run."""

    name: str
    choices: dict[str, Any]
    shape: tuple[int, int, int]
    schedule: Any
    seed: int
    multiprocessors: int | None = None
    batches: int = 1

    def __str__(self) -> str:
        words = [self.name, *(f"{name}={value}" for name, value in self.choices.items()), str(self.shape)]
        return " ".join([*words, self.schedule, f"seed {self.seed}"])


def cases(entry: KernelEntry) -> Iterator[Case]:
    """All runs of a rung: its own config in full, other types and majors under one random schedule."""
    schedules = [("eager", 0), ("late", 0), *(("random", seed) for seed in range(SEEDS))]
    for schedule, seed in schedules:
        for shape in SHAPES:
            yield Case(entry.name, {}, shape, schedule, seed)
        if "scheduler" in entry.defaults:
            slots = {"slots": 4} if "slots" in entry.options else {}
            yield Case(entry.name, {"n_tile": 64, **slots}, MANY, schedule, seed, 4)
    for dtype in INPUTS:
        for a_major in ("k", "mn"):
            for b_major in ("k", "mn"):
                choices = {"dtype": dtype, "a_major": a_major, "b_major": b_major, "c_dtype": ""}
                given = {name: value for name, value in choices.items() if name in entry.options}
                yield Case(entry.name, given, (511, 253, 72), "random", 0)
    for choices in other_choices(entry):
        batches = 2 if choices.get("batched") else 1
        for schedule, seed in schedules[: 3 if batches == 1 else len(schedules)]:
            yield Case(entry.name, choices, (250, 133, 136), schedule, seed, 4, batches)


def other_choices(entry: KernelEntry) -> Iterator[dict[str, Any]]:
    """Options of the epilogue, batches, orders and consumers, as far as a rung takes them."""
    everything = {"alpha": True, "source": "bf16", "bias": "f32", "activation": "gelu", "batched": True}
    found: list[dict[str, Any]] = [everything, {"batched": True}, {"order": "hilbert", "n_tile": 64}]
    found += [{"source": dtype, "bias": dtype, "activation": "relu"} for dtype in ("bf16", "f16", "f32")]
    found += [{"c_dtype": dtype, "alpha": True, "activation": "silu"} for dtype in ("bf16", "f16", "f32")]
    found += [{"dtype": "s8", "alpha": True, "source": "s32", "bias": "s32", "activation": "relu"}]
    found += [{"consumers": "pingpong", "m_tile": 64, "n_tile": 64, "slots": 4, **more} for more in ({}, everything)]
    for choices in found:
        if all(name in entry.options for name in choices):
            yield choices


def judge(case: Case) -> str | None:
    """Why a run is not right; empty if it is, None if there is no such config."""
    try:
        plan = find(case.name).plan(**case.choices)
    except PlanError:
        return None
    device = ptxgen.Emulator(plan.target, case.schedule, seed=case.seed, multiprocessors=case.multiprocessors)
    result = run_gemm(device, plan, *case.shape, seed=case.seed, batches=case.batches)
    return "" if result.ok and not result.advice else result.summary()
