"""`TimingDevice`: a device that predicts each launch instead of running it whole, for what runs on any device."""

from __future__ import annotations

from collections.abc import Sequence

from ptxgen.device import Kernel, Launch, LaunchReport
from ptxgen.emulator import Emulator
from ptxgen.timing.machines import Machine
from ptxgen.timing.prediction import Prediction
from ptxgen.timing.simulate import L2, predict


class TimingDevice(Emulator):
    """Launches give a report without results; `predictions` has one entry for each. Raises TimingError."""

    def __init__(self, machine: Machine, *, l2: L2 = "warm", clock: float | None = None) -> None:
        super().__init__(machine.target, checks=False)
        self._machine, self._clock = machine, clock
        self._l2: L2 = l2
        self.predictions: list[Prediction] = []

    def launch_overlapping(self, launches: Sequence[Launch]) -> list[LaunchReport]:
        reports = []
        for each in launches:
            found = predict(
                each.kernel, each.grid, each.block, each.args, machine=self._machine, cluster=each.cluster,
                shared_bytes=each.shared_bytes, l2=self._l2, clock=self._clock,
            )  # fmt: skip
            self.predictions.append(found)
            reports.append(_report(each.kernel, found))
        return reports


def _report(kernel: Kernel, found: Prediction) -> LaunchReport:
    return LaunchReport("ok", [], kernel=kernel.name, device=found.machine.title)
