"""What a person chooses about a run of a program under the emulator."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ptxgen.device.accept import Accept

#: Device memory that the driver reports, in bytes; untouched pages take no host memory.
MEMORY = 8 << 30
#: Multiprocessors that the driver reports; persistent kernels and benchmarks launch as many CTAs.
MULTIPROCESSORS = 8
FailOn = Literal["error", "advice", "never"]


@dataclass(frozen=True)
class Options:
    """Options of `ptxgen exec`.

    `timeout` limits the whole run, in seconds. `kernels` limits the checks to kernels whose name it matches. `launches`
    are the numbers of launches that are checked, counted from 1 for each kernel: (first, last), None for no end.
    `jobs` are processes that share large launches, None for one per core.
    `benchmarks` has autotuners and benchmark loops of known libraries run whole.
    """

    target: str = "sm_100a"
    schedule: Literal["eager", "late", "random"] = "eager"
    seed: int = 0
    multiprocessors: int = MULTIPROCESSORS
    jobs: int | None = None
    memory: int = MEMORY
    timeout: float | None = None
    json: Path | None = None
    trace: Path | None = None
    accept: Sequence[Accept] = ()
    fail_on: FailOn = "error"
    kernels: re.Pattern[str] | None = None
    launches: tuple[int, int | None] = (1, None)
    advice: float | None = None
    benchmarks: bool = False
    verbose: bool = False
    quiet: bool = False
    environment: dict[str, str] = field(default_factory=dict)
