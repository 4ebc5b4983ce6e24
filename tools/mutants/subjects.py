"""The right kernels that are broken: the project's own GEMM, and recorded kernels of compilers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ptxgen.device import LaunchReport
from ptxgen.emulator import Emulator
from ptxgen.gemm import find
from ptxgen.gemm.job import GemmJob
from tools.recorded import case as cases


@dataclass(frozen=True)
class Subject:
    """A kernel's text, and how a text like it is run: the report, whether the results are right, and their bytes."""

    name: str
    target: str
    text: str
    run: Callable[[str, Emulator], tuple[LaunchReport, bool, bytes]]


#: (problem, choices) of the project's GEMM.
GEMMS: dict[str, tuple[tuple[int, int, int], dict[str, Any]]] = {"blackwell/swizzled": ((256, 128, 256), {})}


def names() -> list[str]:
    """All subjects: the project's GEMM first, then recorded kernels of compilers, then kernels written by hand."""
    return [*GEMMS, *cases.names("cases", "handwritten")]


@cache
def load(name: str) -> Subject:
    """A subject by name."""
    if name in GEMMS:
        return _gemm(name)
    case = cases.load(name)

    def run(text: str, device: Emulator) -> tuple[LaunchReport, bool, bytes]:
        outcome = case.run(device, text)
        return outcome.report, not outcome.wrong, b"".join(each.tobytes() for each in outcome.outputs.values())

    return Subject(name, case.target, case.text, run)


def _gemm(name: str) -> Subject:
    (m, n, k), choices = GEMMS[name]
    plan = find(name).plan(dtype="bf16", **choices)
    job = GemmJob(plan, m, n, k)

    def run(text: str, device: Emulator) -> tuple[LaunchReport, bool, bytes]:
        result = job.run(device, text=text)
        return result.launch, result.ok, device.memory.data.tobytes()

    return Subject(name, plan.target, plan.text, run)
