"""One run of a recorded kernel, in the emulator or on a GPU, and what is said of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache

from ptxgen.device import Device
from ptxgen.emulator.engines.timeline import Schedule
from ptxgen.gpu import Gpu
from tools.recorded.case import load


@dataclass(frozen=True)
class Run:
    """A case under a schedule, or on the GPU where there is none."""

    name: str
    schedule: Schedule | None
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.name} {self.schedule or gpu().name}"


@dataclass(frozen=True)
class Ran:
    """How it went: seconds of this process, and what is wrong, in lines."""

    seconds: float
    wrong: tuple[str, ...] = ()


@cache
def gpu() -> Gpu:
    """The GPU of this machine. Raises GpuNotFoundError."""
    return Gpu()


def run(one: Run) -> Ran:
    """Run a case and compare."""
    case = load(one.name)
    device: Device = case.emulator(one.schedule, one.seed) if one.schedule else gpu()
    began = time.process_time()
    outcome = case.run(device)
    seconds = time.process_time() - began
    if outcome.right:
        return Ran(seconds)
    report = outcome.report.summary().replace("\n", "\n    ")[:2000]
    return Ran(seconds, (report, *outcome.wrong.values(), *map(str, outcome.report.stale_values)))
