"""The right kernels that are broken: the project's own GEMM, and recorded kernels of compilers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ptxgen.device import LaunchReport
from ptxgen.emulator import Emulator
from ptxgen.kernels import find
from ptxgen.kernels.job import GemmJob
from tools import cases


@dataclass(frozen=True)
class Subject:
    """A kernel's text, and how a text like it is run: the report, and whether the results are right."""

    name: str
    target: str
    text: str
    run: Callable[[str, Emulator], tuple[LaunchReport, bool]]


#: Recorded kernels: of each way to load, multiply, wait and store the ones that run fastest.
CASES = (
    "cute_90_gemm_f16", "g39_100_gemm_f16_2cta_mma", "g39_90_gemm_f16_cluster2_multicastB",
    "t36_100_gemm_f16_hostdesc_edges", "t36_100_gemm_f16_TN_mnmajor", "t36_100_mxfp8_tma_tccp",
    "t36_100_tma_gather4_scatter4", "t36_100_tma_reduce_add", "t36_90_gemm_f16_TN_mnmajor", "t36_90_softmax",
    "t36_100_lock_reduce", "t36_100_scan_sort_argmax",
)  # fmt: skip
#: (problem, choices) of the project's GEMM.
GEMMS: dict[str, tuple[tuple[int, int, int], dict[str, Any]]] = {"blackwell/swizzled": ((256, 128, 256), {})}


def names() -> list[str]:
    """All subjects."""
    return [*GEMMS, *CASES]


@cache
def load(name: str) -> Subject:
    """A subject by name."""
    if name in GEMMS:
        return _gemm(name)
    case = cases.load(name)

    def run(text: str, device: Emulator) -> tuple[LaunchReport, bool]:
        outcome = case.run(device, text)
        return outcome.report, not outcome.wrong

    return Subject(name, case.target, case.text, run)


def _gemm(name: str) -> Subject:
    (m, n, k), choices = GEMMS[name]
    plan = find(name).plan(dtype="bf16", **choices)
    job = GemmJob(plan, m, n, k)

    def run(text: str, device: Emulator) -> tuple[LaunchReport, bool]:
        result = job.run(device, text=text)
        return result.launch, result.ok

    return Subject(name, plan.target, plan.text, run)
