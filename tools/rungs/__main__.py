"""The command: `python -m tools.rungs --help`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import ptxgen
from ptxgen.gemm import KernelEntry, PlanError, find, kernels
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


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.rungs", description=__doc__)
    parser.add_argument("names", nargs="*", help="kernels or rungs; all by default")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    failed = 0
    with ProcessPoolExecutor(chosen.jobs) as pool:
        for name in chosen.names or list(kernels()):
            begin = time.perf_counter()
            # By their words: options that a kernel lacks do not make it run twice.
            todo = list({str(case): case for case in cases(find(name))}.values())
            outcomes = list(pool.map(judge, todo))
            wrong = [(case, outcome) for case, outcome in zip(todo, outcomes, strict=True) if outcome]
            ran = sum(outcome is not None for outcome in outcomes)
            print(f"{name}: {ran - len(wrong)} of {ran} runs right, {time.perf_counter() - begin:.0f} s", flush=True)
            for case, outcome in wrong:
                print(f"  {case}\n{outcome}")
            failed += len(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
