"""What runs a kernel: the emulator with a schedule, or the GPU."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

from ptxgen.cli.errors import InputError

if TYPE_CHECKING:
    from ptxgen.cli.common.terminal import Steps
    from ptxgen.device import Accept, Device

Schedule = Literal["eager", "late", "random"]
SCHEDULES: tuple[Schedule, ...] = get_args(Schedule)
DEVICES = ("emulator", "gpu")


def open_device(
    device: str,
    kernel: str,
    target: str,
    schedule: Schedule,
    seed: int,
    steps: Steps | None = None,
    advice: float | None = None,
    accept: Sequence[Accept] = (),
    timeout: float | None = None,
    explore: float | None = None,
    jobs: int | None = 1,
) -> Device:
    """The emulator, one that explores for `explore` seconds if they are given, or the GPU.

    `jobs`: processes of the emulator, at least 1; None for one per core.

    Raises GpuNotFoundError, and InputError for a GPU that cannot run the target.
    """
    if device == "emulator":
        if explore is not None:
            from ptxgen.emulator.exploring import ExploringEmulator

            return ExploringEmulator(
                target,
                explore,
                seed=seed,
                advice=advice,
                progress=steps.advance if steps is not None else None,
                timeout=timeout,
                accept=accept,
            )
        from ptxgen.cli.launch.keeping import KeepingEmulator

        return KeepingEmulator(
            target=target,
            schedule=schedule,
            seed=seed,
            advice=advice,
            progress=steps.advance if steps is not None else None,
            heartbeat=steps.rate if steps is not None else None,
            timeout=timeout,
            accept=accept,
            jobs=max(jobs if jobs is not None else os.cpu_count() or 1, 1),
        )
    from ptxgen.gpu import Gpu

    gpu = Gpu()
    if gpu.target != target:
        raise InputError(
            f"{kernel} is for {target}, but the GPU here ({gpu.name}) is {gpu.target}; leave out --device gpu to use "
            "the emulator"
        )
    return gpu
