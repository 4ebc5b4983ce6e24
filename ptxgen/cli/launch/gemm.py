"""`ptxgen run NAME`: a kernel of a ladder on random matrices, compared with NumPy; also under Nsight Compute."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from ptxgen.cli.common.options import make_plan
from ptxgen.cli.errors import OK, WRONG, InputError
from ptxgen.cli.launch import devices

if TYPE_CHECKING:
    from ptxgen.attention import AttentionPlan
    from ptxgen.cli.launch.inspect import Inspection
    from ptxgen.cli.launch.jobs import Options
    from ptxgen.cli.launch.report import RunReport
    from ptxgen.cli.launch.schedules import Search
    from ptxgen.gemm.job import GemmJob, GemmResult
    from ptxgen.gemm.plan import GemmPlan


@dataclass(frozen=True)
class GemmRequest:
    """What the command line says of a GEMM: the kernel with its options, the problem, and whose PTX to run.

    `more`: the other numbers of the problem (batches, alpha, beta, lda, ldb, ldc) that were given. `ptx`: a file with
    an edited text of the kernel, which `edited` is, if it has been read.
    """

    kernel: str
    m: int
    n: int
    k: int
    settings: tuple[str, ...] = ()
    dtype: str | None = None
    c_dtype: str | None = None
    more: Mapping[str, float] = field(default_factory=dict)
    whole_range: bool = False
    ptx: str | None = None
    edited: str | None = None

    def fastest(self) -> GemmRequest:
        """The same by the kernel that should be fastest on the GPU here, with its options and its M and N."""
        from ptxgen.gemm import best, find, parse_options
        from ptxgen.gpu import Gpu

        given = dict(each.split("=", 1) for each in self.settings if "=" in each)
        types = (("dtype", self.dtype), ("c_dtype", self.c_dtype))
        given.update({name: each for name, each in types if each is not None})
        chosen = best(self.m, self.n, self.k, device=Gpu(), **{"dtype": "bf16", **parse_options(given)})
        name = chosen.plan.name
        m, n = chosen.operands(self.m, self.n)
        return replace(self, kernel=name, settings=tuple(find(name).settings(chosen.plan.config)), m=m, n=n)

    def words(self, seed: int) -> list[str]:
        """The arguments of `ptxgen run` that say the same."""
        words = [self.kernel, "--m", str(self.m), "--n", str(self.n), "--k", str(self.k), "--seed", str(seed)]
        given = {"--dtype": self.dtype, "--c-dtype": self.c_dtype, "--ptx": self.ptx}
        words += [word for name, value in self.more.items() for word in (f"--{name}", str(value))]
        words += [word for setting in self.settings for word in ("--set", setting)]
        words += [word for option, value in given.items() if value is not None for word in (option, value)]
        return words + ["--whole-range"] * self.whole_range

    def job(self, seed: int) -> GemmJob:
        """The job of the planned kernel. Raises PlanError, and InputError for what the kernel does not take."""
        from ptxgen.gemm.job import GemmJob

        plan = make_plan(
            self.kernel, list(self.settings), self.dtype, self.c_dtype, None if self.ptx else (self.m, self.n, self.k)
        )
        combination = plan.epilogue.combination
        for name, there, needed in (
            ("alpha", combination.alpha, "alpha=true"),
            ("beta", combination.source, "source=f32"),
        ):
            if name in self.more and not there:
                raise InputError(f"--{name} is for a kernel that takes it: add --set {needed}")
        return GemmJob(plan, self.m, self.n, self.k, seed, dict(self.more), self.whole_range)

    def text(self, plan: GemmPlan | AttentionPlan) -> str:
        """The PTX to run: the plan's, or the edited one. Raises InputError for a file that is no PTX."""
        from ptxgen.cli.common.files import parse_ptx, read_ptx

        if self.ptx is None:
            return plan.text
        text = read_ptx(self.ptx) if self.edited is None else self.edited
        parse_ptx(text, self.ptx)
        return text


def run_gemm(wanted: GemmRequest, options: Options, inspection: Inspection) -> int:
    """Plan, render, assemble, run, compare, report; the exit code."""
    # Imported here so that the time of planning and rendering is only theirs.
    import ptxgen.builder  # noqa: F401
    import ptxgen.gemm.job  # noqa: F401
    from ptxgen.cli.common.terminal import steps
    from ptxgen.cli.launch.report import RunReport
    from ptxgen.cli.toolchain.ptx import assembled

    start = time.perf_counter()
    job = wanted.job(options.seed)
    _require_memory(job)
    inspection.require_elements(job.shapes)
    text = wanted.text(job.plan)
    inspection.require_line(text)
    timings = {"plan+render": time.perf_counter() - start}
    with steps() as progress:
        progress.begin("assembling")
        start = time.perf_counter()
        cubin = assembled(text, job.plan.target)
        timings["assemble"] = time.perf_counter() - start
    result, found = _launched(wanted, job, text, options, inspection)
    timings.update({name: value for name, value in result.timings.items() if name != "render"})
    report = RunReport(
        wanted.kernel,
        result,
        cubin,
        timings,
        (found.tried[-1].schedule if found else options.schedule) if options.device == "emulator" else None,
        wanted.ptx,
        found,
        options.verbose,
        found.unused_accepts if found else result.launch.unused_accepts,
    )
    _show(report, options, inspection)
    from ptxgen.cli.launch.schedules import fails

    return WRONG if fails(result, options.fail_on) else OK


def _launched(
    wanted: GemmRequest, job: GemmJob, text: str, options: Options, inspection: Inspection
) -> tuple[GemmResult, Search | None]:
    """The result of a launch, or the last of a search over schedules with that search."""
    from ptxgen.cli.common.terminal import steps
    from ptxgen.cli.launch import schedules

    if options.schedules:
        tries = [
            schedules.GemmRun(
                schedule=now,
                seed=each,
                advice=options.advice,
                accept=options.accept,
                timeout=options.timeout,
                kernel=wanted.kernel,
                job=job,
                text=text,
            )
            for now, each in schedules.schedules_to_try(options.schedules, options.seed)
        ]
        found = schedules.search(tries, options.jobs, options.dask)
        return cast("GemmResult", found.last), found
    with steps() as progress:
        progress.begin("starting the device")
        made = devices.open_device(
            options.device, wanted.kernel, job.plan.target, options.schedule, options.seed, progress, options.advice,
            options.accept, options.timeout, options.explore, options.jobs,
        )  # fmt: skip
        progress.begin(f"running on {made.name}")
        inspection.observe(made, job.plan.roles.names)
        return job.run(made, text=text), None


def _show(report: RunReport, options: Options, inspection: Inspection) -> None:
    """Print a report, or write it in the chosen formats."""
    from ptxgen.cli.common.terminal import output, text_of
    from ptxgen.cli.launch.findings import gemm_results

    result = report.result
    inspection.write_page(
        result.launch,
        title=f"{report.kernel} on {result.launch.device}",
        ok=result.ok,
        verdict="correct" if result.ok else result.status,
        report=text_of(report.print),
        text=result.kernel.text,
        errors=[each.message for each in result.errors if each.finding is None],
        shared=result.problem.plan.shared,
    )

    def show() -> None:
        with output() as console:
            report.print(console)
        inspection.show(result.arrays)

    options.written.write(
        text=show,
        data=lambda: {**report.json(), **inspection.as_json(result.arrays)},
        report=lambda: gemm_results(result, report.kernel, report.schedule, report.edited, report.unused_accepts),
    )


def profiled(kernel: str, words: Sequence[str], report_name: str | None, options: str | None, *, as_json: bool) -> int:
    """Run `ptxgen run WORDS --device gpu` under ncu, and print the summary of its report and the command.

    Raises GpuNotFoundError without a GPU, ProfilerError without ncu or a report, InputError for options that no shell
    could split and for a report that cannot be written.
    """
    import shlex
    import sys
    from pathlib import Path

    from ptxgen.cli.common.files import require_writable
    from ptxgen.gpu import Gpu
    from ptxgen.ncu.binary import require_library
    from ptxgen.ncu.profile import find_ncu, profile, profile_command, summary_of

    report_name = report_name or re.sub(r"[^\w.]+", "-", kernel).strip("-.") + ".ncu-rep"
    if not report_name.endswith(".ncu-rep"):  # ncu would add it
        raise InputError(f"--ncu-report must end in .ncu-rep, not {report_name!r}")
    require_writable(report_name)
    try:
        more = shlex.split(options or "")
    except ValueError as error:
        raise InputError(f"--ncu-options {options!r}: {str(error).lower()}") from None
    find_ncu()
    require_library()
    Gpu()
    report = Path(report_name)
    command = profile_command([sys.executable, "-m", "ptxgen", "run", *words, "--device", "gpu"], report, more)
    profile(command, report)
    if not as_json:
        print(f"$ {shlex.join(command)}")
    print(summary_of(report, *["--json"] * as_json), end="")
    return OK


def _require_memory(job: GemmJob) -> None:
    try:
        available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # no such question on this system
        return
    if job.host_bytes > available:
        raise InputError(
            f"M {job.m}, N {job.n}, K {job.k} takes about {job.host_bytes / 2**30:.0f} GiB of memory, and this machine "
            f"has {available / 2**30:.0f} GiB; take smaller sizes"
        )
