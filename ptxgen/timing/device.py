"""`TimingDevice`: a device that predicts each launch instead of running it whole, for what runs on any device."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import DTypeLike

from ptxgen.device import DeviceArray, Extent, Kernel, Launch, LaunchReport
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
        #: All arrays: a launch may have only their addresses, in tensormaps or as numbers.
        self._arrays: list[DeviceArray] = []

    def array(self, values: object, dtype: DTypeLike | None = None) -> DeviceArray:
        self._arrays.append(super().array(values, dtype))
        return self._arrays[-1]

    def empty(self, shape: Extent, dtype: DTypeLike) -> DeviceArray:
        self._arrays.append(super().empty(shape, dtype))
        return self._arrays[-1]

    def launch_overlapping(self, launches: Sequence[Launch]) -> list[LaunchReport]:
        reports = []
        for each in launches:
            given = any(isinstance(arg, DeviceArray) for arg in each.args)
            found = predict(
                each.kernel, each.grid, each.block, each.args, machine=self._machine, cluster=each.cluster,
                shared_bytes=each.shared_bytes, l2=self._l2, clock=self._clock,
                arrays=[] if given else self._arrays,
            )  # fmt: skip
            self.predictions.append(found)
            reports.append(_report(each.kernel, found))
        return reports


def _report(kernel: Kernel, found: Prediction) -> LaunchReport:
    return LaunchReport("ok", [], kernel=kernel.name, device=found.machine.title)
