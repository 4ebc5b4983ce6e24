"""The runs of a rung, and how one fares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ptxgen
from ptxgen.gemm import KernelEntry, PlanError, find
from ptxgen.gemm.job import GemmJob
from ptxgen.gemm.types import PLAIN_INPUTS, QUANTIZED_OUTPUTS, SCALED_INPUTS

SHAPES = [(128, 128, 128), (256, 384, 192), (511, 253, 72), (1, 1, 64), (512, 512, 512)]
#: More tiles than CTA slots, for persistent kernels with tiles of 64 columns on 4 multiprocessors.
MANY = (1500, 1100, 136)
#: The same for block-scaled kernels: a K that is a multiple of a block of scales, but not of a K block.
SCALED_SHAPES = [(256, 256, 256), (512, 384, 512), (511, 253, 416), (1, 1, 64)]
SCALED_MANY = (700, 800, 160)
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
    whole_range: bool = False

    def __str__(self) -> str:
        words = [self.name, *(f"{name}={value}" for name, value in self.choices.items()), str(self.shape)]
        words += ["whole range"] * self.whole_range
        return " ".join([*words, self.schedule, f"seed {self.seed}"])


def cases(entry: KernelEntry) -> Iterator[Case]:
    """All runs of a rung: its own config in full, other types and majors under one random schedule."""
    schedules = [("eager", 0), ("late", 0), *(("random", seed) for seed in range(SEEDS))]
    if "kind" in entry.options:
        yield from scaled_cases(entry, schedules)
        return
    for schedule, seed in schedules:
        for shape in SHAPES:
            yield Case(entry.name, {}, shape, schedule, seed)
        if "scheduler" in entry.defaults:
            slots = {"slots": 4} if "slots" in entry.options else {}
            yield Case(entry.name, {"n_tile": 64, **slots}, MANY, schedule, seed, 4)
    for dtype in PLAIN_INPUTS:
        for a_major in ("k", "mn"):
            for b_major in ("k", "mn"):
                choices = {"dtype": dtype, "a_major": a_major, "b_major": b_major, "c_dtype": ""}
                given = {name: value for name, value in choices.items() if name in entry.options}
                yield Case(entry.name, given, (511, 253, 72), "random", 0)
    for choices in other_choices(entry):
        batches = 2 if choices.get("batched") else 1
        for schedule, seed in schedules[: 3 if batches == 1 else len(schedules)]:
            yield Case(entry.name, choices, (250, 133, 136), schedule, seed, 4, batches)


def scaled_cases(entry: KernelEntry, schedules: list[tuple[str, int]]) -> Iterator[Case]:
    """The same of a block-scaled rung, with its choices for large problems too; N is as a C with scales has it."""
    step = 32 if entry.plan().epilogue.quantizes else 1
    shapes = [(m, -(-n // step) * step, k) for m, n, k in SCALED_SHAPES]
    tails = 160 if step > 1 else 133
    for choices in [{}, entry.large] if entry.large else [{}]:
        for schedule, seed in schedules:
            for shape in shapes:
                yield Case(entry.name, choices, shape, schedule, seed)
            yield Case(entry.name, {**choices, "slots": 4}, SCALED_MANY, schedule, seed)
            yield Case(entry.name, choices, (270, 288, 256), schedule, seed, whole_range=True)
    for dtype in SCALED_INPUTS:
        for b_dtype in SCALED_INPUTS:
            yield Case(entry.name, {"dtype": dtype, "b_dtype": b_dtype}, (270, tails, 384), "random", 0)
    for dtype in ("e4m3", "e5m2"):
        for a_major, b_major in (("k", "mn"), ("mn", "k"), ("mn", "mn")):
            choices = {"dtype": dtype, "a_major": a_major, "b_major": b_major}
            yield Case(entry.name, choices, (270, tails, 416), "random", 0)
    for c_dtype in ("bf16", "f16", "f32"):
        for epilogue in ("direct", "tma"):
            choices = {"c_dtype": c_dtype, "epilogue": epilogue, "alpha": True}
            yield Case(entry.name, choices, (270, tails, 384), "random", 0)
    for c_dtype in QUANTIZED_OUTPUTS:
        choices = {"c_dtype": c_dtype, "epilogue": "direct"}
        yield Case(entry.name, choices, (270, 160, 384), "random", 0)


def other_choices(entry: KernelEntry) -> Iterator[dict[str, Any]]:
    """Options of the epilogue, batches, orders and consumers, as far as a rung takes them."""
    everything = {"alpha": True, "source": "bf16", "bias": "f32", "activation": "gelu", "batched": True}
    found: list[dict[str, Any]] = [everything, {"batched": True}, {"order": "hilbert", "n_tile": 64}]
    found += [{"source": dtype, "bias": dtype, "activation": "relu"} for dtype in ("bf16", "f16", "f32")]
    found += [{"c_dtype": dtype, "alpha": True, "activation": "silu"} for dtype in ("bf16", "f16", "f32")]
    found += [{"dtype": "s8", "alpha": True, "source": "s32", "bias": "s32", "activation": "relu"}]
    found += [{"dtype": "u8", "c_dtype": "bf16", "alpha": True, "source": "f32", "bias": "bf16", "activation": "silu"}]
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
    more = {"batches": case.batches}
    result = GemmJob(plan, *case.shape, case.seed, more, case.whole_range).run(device)
    return "" if result.ok and not result.advice else result.summary()
