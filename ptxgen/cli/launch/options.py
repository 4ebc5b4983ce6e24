"""The options of `ptxgen run` by groups: the GEMM problem, schedules, checks, inspection, a GPU."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ptxgen.cli.common import completion
from ptxgen.cli.common.groups import ATTENTION, GEMM, For, Given, Group
from ptxgen.cli.common.options import AcceptFile, DaskAddress, Jobs
from ptxgen.cli.errors import InputError, choose
from ptxgen.cli.launch import devices
from ptxgen.cli.launch.inspect import SHOWN, Inspection
from ptxgen.project import FAIL_ON, MOST_SCHEDULES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ptxgen.device import Accept
    from ptxgen.device.report import FailOn


@dataclass(frozen=True)
class GemmOptions(Group):
    """The problem of a GEMM beside M, N and K."""

    PANEL = "The problem"
    KINDS = (GEMM,)

    batches: Annotated[
        int, typer.Option("--batches", help="GEMMs in the batch, with batched=true."), For(GEMM, ATTENTION)
    ] = 1
    groups: Annotated[int, typer.Option("--groups", help="Matrices B, with grouped=contiguous.")] = 1
    alpha: Annotated[
        float | None,
        typer.Option("--alpha", help="Scale of A·Bᵀ, for a kernel with alpha=true.", show_default=False),
    ] = None
    beta: Annotated[
        float | None, typer.Option("--beta", help="Scale of the source, for a kernel with one.", show_default=False)
    ] = None
    lda: Annotated[
        int | None, typer.Option("--lda", help="Leading dimension of A, in elements.", show_default=False)
    ] = None
    ldb: Annotated[int | None, typer.Option("--ldb", help="Leading dimension of B.", show_default=False)] = None
    ldc: Annotated[int | None, typer.Option("--ldc", help="Leading dimension of C.", show_default=False)] = None
    whole_range: Annotated[
        bool,
        typer.Option(
            "--whole-range",
            help="Draw elements and scales of a block-scaled kernel from all values of their types, NaN included.",
        ),
    ] = False

    @property
    def numbers(self) -> Mapping[str, float]:
        """All but whether the whole range is drawn, by name; not given ones left out."""
        return {name: each for name, each in asdict(self).items() if name != "whole_range" and each is not None}


@dataclass(frozen=True)
class ScheduleOptions(Group):
    """When asynchronous work completes in the emulator, and how many such schedules are tried."""

    PANEL = "Schedules (emulator)"

    schedule: Annotated[
        str,
        typer.Option(
            "--schedule",
            metavar="eager|late|random",
            help="When asynchronous work completes in the emulator.",
            autocompletion=completion.words(*devices.SCHEDULES),
        ),
    ] = "eager"
    schedules: Annotated[
        int | None,
        typer.Option(
            "--schedules",
            metavar="N",
            help="Try N schedules: eager, late, random with seeds from --seed on. Report the first that fails.",
            show_default=False,
        ),
    ] = None
    explore: Annotated[
        float | None,
        typer.Option(
            "--explore",
            metavar="[SECONDS]",
            help="Try systematically: hold one warp or CTA at a time at each point where order matters, and compare "
            "the results of all orders. Default: 60 seconds.",
            show_default=False,
        ),
    ] = None
    jobs: Jobs = None
    dask: DaskAddress = None

    def chosen(self, device: str) -> devices.Schedule:
        """The schedule of a single run. Raises InputError for options that exclude each other or the device."""
        from ptxgen.executor import require_workers

        schedule = choose("--schedule", self.schedule, devices.SCHEDULES)
        count, explore = self.schedules, self.explore
        if count is not None and count < 1:
            raise InputError(f"--schedules must be 1 or more, not {count}")
        if count is not None and count > MOST_SCHEDULES:
            raise InputError(f"--schedules must be at most {MOST_SCHEDULES}, not {count}")
        if count and device != "emulator":
            raise InputError("--schedules is for the emulator: a GPU decides for itself when work completes")
        if count and schedule != "eager":
            raise InputError("--schedules tries eager, late and random in turn; leave out --schedule")
        if explore is not None and not explore > 0:
            raise InputError(f"--explore must be more than 0 seconds, not {explore:g}")
        if explore is not None and device != "emulator":
            raise InputError("--explore is for the emulator: a GPU decides for itself who comes first")
        if explore is not None and (count or schedule != "eager"):
            other = "--schedules" if count else "--schedule"
            raise InputError(f"--explore tries its own orders, with late and with eager completion; leave out {other}")
        if not count and (self.jobs is not None or self.dask is not None):
            raise InputError("--jobs and --dask are for --schedules: one run is one process")
        require_workers(self.jobs, self.dask)
        return schedule


@dataclass(frozen=True)
class CheckOptions(Group):
    """Which findings count, and how long a launch may take."""

    PANEL = "Checks and limits"

    advice: Annotated[
        float | None,
        typer.Option(
            "--advice",
            metavar="TIMES",
            help="Advise about loads and stores that take at least this many times the wavefronts or sectors they "
            "need, such as 2.",
            show_default=False,
        ),
    ] = None
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            help="End a launch in the emulator after this time; its status is then incomplete.",
            show_default=False,
        ),
    ] = None
    accept: AcceptFile = None
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            metavar="error|advice|never",
            help="The least that makes the exit code 1; never: only wrong results, or a launch that does not end.",
            autocompletion=completion.words(*FAIL_ON),
        ),
    ] = "error"

    def require(self, device: str) -> None:
        """Raises InputError for values that no option takes, and for options that the device does not have."""
        choose("--fail-on", self.fail_on, FAIL_ON)
        if self.advice is not None and device != "emulator":
            raise InputError("--advice is for the emulator; on a GPU, use Nsight Compute")
        if self.accept is not None and device != "emulator":
            raise InputError("--accept is for the emulator: a GPU reports no findings but faults")
        if self.advice is not None and not self.advice > 1:
            raise InputError(f"--advice must be more than 1, not {self.advice:g}: every access takes what it needs")
        if self.timeout is not None and device != "emulator":
            raise InputError("--timeout is for the emulator: a GPU cannot be stopped")
        if self.timeout is not None and not self.timeout > 0:
            raise InputError(f"--timeout must be more than 0 seconds, not {self.timeout:g}")

    @property
    def severity(self) -> FailOn:
        """What makes the exit code 1."""
        return cast("FailOn", self.fail_on)

    def accepted(self) -> tuple[Accept, ...]:
        """The reviewed findings. Raises AcceptError."""
        from ptxgen.emulator.load.accepts import reviewed

        return tuple(reviewed(self.accept)) if self.accept is not None else ()


@dataclass(frozen=True)
class InspectionOptions(Group):
    """What to show of a single run."""

    PANEL = "Inspection (emulator)"

    lines: Annotated[
        str | None,
        typer.Option(
            "--lines",
            metavar="FILE",
            help="Write the PTX with execution counts per line; - prints it.",
            show_default=False,
        ),
    ] = None
    trace: Annotated[
        str | None,
        typer.Option("--trace", metavar="FILE.pftrace", help="Write a trace for ui.perfetto.dev.", show_default=False),
    ] = None
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="[FILE:]LINE[#HIT][@WARP]|finding[:CODE]",
            help="Show the state when a warp reaches a line of the PTX, or of its source, for the n-th time, or at a "
            "finding: the mbarriers, or --show.",
            show_default=False,
        ),
    ] = None
    shows: Annotated[
        list[str], typer.Option("--show", metavar="WHAT", help=f"What --at shows: {SHOWN}.", show_default=False)
    ] = field(default_factory=list)
    whys: Annotated[
        list[str],
        typer.Option(
            "--why",
            metavar="ARRAY[I,J]",
            help="Walk back from an element, such as c[3,5], to the stores, MMAs and copies that produced it.",
            show_default=False,
        ),
    ] = field(default_factory=list)

    def observers(self, device: str, html: str | None, *, many: bool) -> Inspection:
        """What observes the run. Raises InputError."""
        return Inspection.of(
            self.lines, self.trace, self.at, self.shows, self.whys, device=device, many=many, html=html
        )


@dataclass(frozen=True)
class GpuOptions(Group):
    """Where to run, and Nsight Compute."""

    PANEL = "A GPU"

    device: Annotated[
        str,
        typer.Option(
            "--device",
            metavar="emulator|gpu",
            help="Where to run.",
            autocompletion=completion.words(*devices.DEVICES),
        ),
    ] = "emulator"
    ncu: Annotated[
        bool, typer.Option("--ncu", help="Profile on the GPU with Nsight Compute, and print the summary.")
    ] = False
    ncu_report: Annotated[
        str | None,
        typer.Option(
            "--ncu-report",
            metavar="FILE",
            help="Report file of --ncu; default KERNEL.ncu-rep.",
            show_default=False,
        ),
    ] = None
    ncu_options: Annotated[
        str | None,
        typer.Option(
            "--ncu-options",
            metavar="'OPTION...'",
            help="More options of ncu, such as '--clock-control none'.",
            show_default=False,
        ),
    ] = None

    def require(self, kernel: str, given: Given) -> None:
        """Raises InputError for a device that there is not, and for options that go with another."""
        choose("--device", self.device, devices.DEVICES)
        if self.device == "gpu":
            given.require_emulator("--schedule")
        elif not kernel:
            raise InputError(
                "missing argument 'KERNEL': only --device gpu picks a kernel itself (see 'ptxgen run --help')"
            )
        elif self.ncu:
            raise InputError("--ncu profiles a GPU: add --device gpu")
        for option, value in (("--ncu-report", self.ncu_report), ("--ncu-options", self.ncu_options)):
            if value is not None and not self.ncu:
                raise InputError(f"{option} goes with --ncu")
