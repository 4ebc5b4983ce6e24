"""The emulator as a program's GPU: memory shared with the program, and variables of the loaded module."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ptxgen.device import Kernel, LaunchError, LaunchReport, Status
from ptxgen.driver import protocol
from ptxgen.driver.memory import SharedMemory
from ptxgen.driver.modules import Function, Loaded
from ptxgen.driver.options import Options
from ptxgen.driver.protocol import LaunchRequest, RefusedError
from ptxgen.emulator.device import Emulator
from ptxgen.emulator.load.image import Image
from ptxgen.emulator.observer import Observer
from ptxgen.emulator.schedule.watchdog import Progress
from ptxgen.instr.model.targets import Target

#: Blocks of instructions that one launch may run: programs have `--timeout` against those that do not end.
_MOST_STEPS = 1_000_000_000
#: CTAs emulated together, whatever number of SMs is reported: one NumPy call serves all CTAs at the same pc.
_RESIDENT = 32
#: The CUresult after a fault, by the code of the finding that ended the launch.
_FAULTS = {
    "out-of-bounds": protocol.Status.ILLEGAL_ADDRESS,
    "misaligned": protocol.Status.MISALIGNED_ADDRESS,
    "assertion": protocol.Status.ASSERT,
    "illegal-ptx": protocol.Status.INVALID_PTX,
}


class ProgramDevice(Emulator):
    """The emulator with the memory and the modules of programs."""

    def __init__(self, options: Options, memory: SharedMemory) -> None:
        super().__init__(
            options.target,
            options.schedule,
            options.seed,
            multiprocessors=max(options.multiprocessors, _RESIDENT),
            max_steps=_MOST_STEPS,
            advice=options.advice,
            accept=options.accept,
            heartbeat=self._beat,
            jobs=max(options.jobs if options.jobs is not None else os.cpu_count() or 1, 1),
        )
        self.memory = memory
        self.told_multiprocessors = options.multiprocessors
        self.printed: list[str] = []
        self.notify: list[Progress] = []
        self.loaded: Loaded | None = None
        self.keeps_released = True
        #: Process and stream of the last launch that has run.
        self._last: tuple[int, int] | None = None
        self._any_target = False

    def _beat(self, progress: Progress) -> None:
        self.notify[:] = [progress]
        self.on_progress(progress)

    def on_progress(self, progress: Progress) -> None:
        """Called about each second of a launch."""

    def run(
        self, function: Function, request: LaunchRequest, process: int, observers: Sequence[Observer] = ()
    ) -> LaunchReport:
        """Run one launch of a process. Raises RefusedError for one that no GPU would take."""
        self.loaded = function.loaded
        self.observers = tuple(observers)
        stream = process, request.stream
        self.follows = bool(request.flags & protocol.FOLLOWS) and stream == self._last
        try:
            report = self.launch(
                function.kernel,
                request.grid,
                request.block,
                function.arguments(request.parameters),
                cluster=request.cluster,
                shared_bytes=request.shared_bytes,
                cooperative=bool(request.flags & protocol.COOPERATIVE),
            )
            self._last = stream
            return report
        except LaunchError as error:
            status = protocol.Status.INVALID_VALUE
            if "cooperative" in str(error):
                status = protocol.Status.COOPERATIVE_TOO_LARGE
            elif "shared memory" in str(error):
                status = protocol.Status.INVALID_VALUE
            raise RefusedError(status, str(error)) from None

    def hardware(self, kernel: Kernel) -> Target:
        """The architecture that executes a kernel."""
        return self._hardware(kernel)

    def take_printed(self) -> str:
        """What kernels have printed since the last call."""
        text = "".join(self.printed)
        self.printed.clear()
        return text

    def _print(self, text: str) -> None:
        self.printed.append(text)

    def _load(self, kernel: Kernel) -> Image:
        assert self.loaded is not None
        return self.loaded.image


def status_of(report: LaunchReport) -> protocol.Status:
    """What the driver says after a launch has ended so."""
    ended: Status = report.status
    if ended in ("ok", "findings"):
        return protocol.Status.SUCCESS
    if ended == "deadlock":
        return protocol.Status.TIMEOUT
    if ended == "incomplete":
        limit = any(each.code in ("step-limit", "time-limit") for each in report.findings)
        return protocol.Status.TIMEOUT if limit else protocol.Status.LAUNCH_FAILED
    for finding in report.findings:
        if finding.code in _FAULTS:
            return _FAULTS[finding.code]
    return protocol.Status.LAUNCH_FAILED
