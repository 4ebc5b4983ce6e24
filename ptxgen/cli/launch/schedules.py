"""`ptxgen run --schedules N`: a kernel under one schedule after the other, over several processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import ptxgen.emulator  # noqa: F401  (so that workers begin with it)
from ptxgen.cli.launch import devices
from ptxgen.cli.launch.devices import Schedule
from ptxgen.executor import Executor, WorkError
from ptxgen.gemm.job import GemmJob, GemmResult

if TYPE_CHECKING:
    from ptxgen.cli.launch.jobs import Runnable
    from ptxgen.device import Accept, Device, LaunchReport
    from ptxgen.device.report import FailOn


class Result(Protocol):
    """What GEMMs and other jobs have in common."""

    @property
    def ok(self) -> bool: ...
    @property
    def is_right(self) -> bool: ...
    @property
    def status(self) -> str: ...
    @property
    def launch(self) -> LaunchReport: ...


def fails(result: Result, on: FailOn) -> bool:
    """Whether the exit code is 1: for findings from `on`, for wrong results, and for a launch that does not end."""
    return not result.is_right or result.launch.fails(on)


@dataclass(frozen=True, kw_only=True)
class ScheduledRun:
    """One run: a schedule with its seed, and the options of the emulator."""

    schedule: Schedule
    seed: int
    advice: float | None = None
    timeout: float | None = None
    accept: tuple[Accept, ...] = ()

    def __str__(self) -> str:
        return f"{self.schedule}, seed {self.seed}"

    def device(self, kernel: str, target: str) -> Device:
        return devices.open_device(
            "emulator",
            kernel,
            target,
            self.schedule,
            self.seed,
            advice=self.advice,
            accept=self.accept,
            timeout=self.timeout,
        )

    def run(self) -> Result:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class GemmRun(ScheduledRun):
    """Of a GEMM, whose inputs have the same seed; `text` replaces the plan's PTX."""

    kernel: str
    job: GemmJob
    text: str

    def run(self) -> GemmResult:
        device = self.device(self.kernel, self.job.plan.target)
        return replace(self.job, seed=self.seed).run(device, text=self.text)


@dataclass(frozen=True, kw_only=True)
class FileRun(ScheduledRun):
    """Of a Python or PTX file, whose inputs stay the same."""

    file: Runnable

    def run(self) -> Result:
        """Raises JobError, InputError."""
        return self.file.run(self.device(self.file.path, self.file.target))


def run_scheduled(run: ScheduledRun) -> Result:
    return run.run()


def schedules_to_try(count: int, seed: int) -> Iterator[tuple[Schedule, int]]:
    """The schedules that `--schedules` tries, each with its seed."""
    yield from list[tuple[Schedule, int]]([("eager", seed), ("late", seed)])[:count]
    for number in range(count - 2):
        yield "random", seed + number


@dataclass(frozen=True)
class Search:
    """The schedules that were tried, in order, up to the first that finds something; `last` is of the last of them."""

    tried: tuple[ScheduledRun, ...]
    statuses: tuple[str, ...]
    count: int
    last: Result
    unused_accepts: tuple[Accept, ...]

    @property
    def summary(self) -> str:
        """One line: which were tried, and what they found."""
        right = len(self.tried) - (not self.last.ok)
        parts = [f"{len(self.tried)} of {self.count} tried"] if len(self.tried) < self.count else []
        if right:
            parts.append(f"{_names(self.tried[:right])} correct")
        if not self.last.ok:
            parts.append(f"{_names(self.tried[right:])}: {self.last.status}")
        return ", ".join(parts)

    def json(self) -> list[dict[str, Any]]:
        """Each schedule with its seed and what became of it."""
        made = zip(self.tried, self.statuses, strict=True)
        return [{"schedule": run.schedule, "seed": run.seed, "status": status} for run, status in made]


def search(planned: Sequence[ScheduledRun], jobs: int | None, dask: str | None) -> Search:
    """Try schedules until one finds something. Raises what a run raises, and WorkError where workers died."""
    tried: list[ScheduledRun] = []
    statuses: list[str] = []
    died: list[str] = []
    last: Result | None = None
    unused: tuple[Accept, ...] | None = None
    with Executor(jobs, dask) as executor:
        for outcome in executor.map(run_scheduled, planned, what="schedules"):
            if isinstance(outcome.error, WorkError):  # which says nothing of the others
                died.append(outcome.problem)
                continue
            last = outcome.result()
            tried.append(outcome.item)
            statuses.append(last.status)
            now = last.launch.unused_accepts
            unused = tuple(now) if unused is None else tuple(each for each in unused if each in now)
            if not last.ok:
                break
    if last is None or (last.ok and died):
        raise WorkError("; ".join(died))
    return Search(tuple(tried), tuple(statuses), len(planned), last, unused or ())


def _names(tried: Sequence[ScheduledRun]) -> str:
    """Schedules in words: "eager, late, random 0-7"."""
    words = [each.schedule for each in tried if each.schedule != "random"]
    if seeds := [each.seed for each in tried if each.schedule == "random"]:
        words.append(f"random {seeds[0]}" + (f"-{seeds[-1]}" if len(seeds) > 1 else ""))
    return ", ".join(words)
