"""The right kernels that are broken: the project's own GEMM, and recorded kernels of compilers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ptxgen.device import LaunchReport
from ptxgen.emulator import Emulator
from tools.mutants.rungs import RUNGS, Rung
from tools.mutants.tuned import TUNED
from tools.recorded import case as cases


@dataclass(frozen=True)
class Subject:
    """A kernel's text, and how a text like it is run: the report, whether the results are right, and their bytes."""

    name: str
    target: str
    text: str
    run: Callable[[str, Emulator], tuple[LaunchReport, bool, bytes]]
    #: How many multiprocessors a device for it has.
    multiprocessors: int | None = None

    def emulator(self, schedule: Any, seed: int = 0, **more: Any) -> Emulator:
        """A device to run it on."""
        return Emulator(self.target, schedule, seed, multiprocessors=self.multiprocessors, **more)


#: The project's GEMM as it is shipped.
GEMM = {"blackwell/swizzled": Rung("blackwell/swizzled", {}, ((256, 128, 256, {}),))}


def names() -> list[str]:
    """The project's GEMM, then recorded kernels of compilers, then kernels written by hand."""
    return [*GEMM, *cases.names("cases", "handwritten")]


@cache
def load(name: str) -> Subject:
    """A subject by name."""
    rung = {**GEMM, **RUNGS, **TUNED}.get(name)
    if rung is not None:
        return Subject(name, rung.plan.target, rung.plan.text, rung.run, rung.multiprocessors)
    case = cases.load(name)

    def run(text: str, device: Emulator) -> tuple[LaunchReport, bool, bytes]:
        outcome = case.run(device, text)
        return outcome.report, not outcome.wrong, b"".join(each.tobytes() for each in outcome.outputs.values())

    return Subject(name, case.target, case.text, run)
