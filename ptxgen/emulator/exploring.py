"""An emulator whose launches are explorations: `ptxgen run --explore` runs jobs of every kind on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ptxgen.device import Extent, Kernel, LaunchReport
from ptxgen.emulator.device import Emulator

if TYPE_CHECKING:
    from ptxgen.emulator.explore import Exploration


class ExploringEmulator(Emulator):
    """An Emulator that tries all orders of each launch, for at most `seconds` each; other options as `Emulator` has.

    The report of a launch has the findings of all orders, the worst status, and what was tried. Memory keeps what the
    first order leaves; that other orders leave the same is part of the exploration.
    """

    def __init__(self, target: str | None = None, seconds: float | None = None, **options: Any) -> None:
        super().__init__(target, **options)
        self.seconds = seconds
        #: The exploration of the last launch.
        self.exploration: Exploration | None = None

    def launch(
        self,
        kernel: Kernel,
        grid: Extent,
        block: Extent,
        args: Sequence[object],
        *,
        cluster: Extent | None = None,
        shared_bytes: int = 0,
        cooperative: bool = False,
    ) -> LaunchReport:
        made = self.exploration = self.explore(
            kernel, grid, block, args, cluster=cluster, shared_bytes=shared_bytes, cooperative=cooperative,
            seconds=self.seconds,
        )  # fmt: skip
        return replace(made.report, status=made.status, findings=made.findings, explored=made.coverage)
