"""`ptxgen audit`: which fences, waits, barriers, arrivals and scopes a kernel needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ptxgen.cli.common.formats import AsJson, Formats, Output
from ptxgen.cli.common.groups import FILE, JOB, Given, grouped
from ptxgen.cli.common.options import (
    AcceptFile,
    CDType,
    Columns,
    DaskAddress,
    Depth,
    DType,
    Jobs,
    KernelName,
    Rows,
    Settings,
    make_plan,
)
from ptxgen.cli.errors import OK, InputError
from ptxgen.cli.launch.attention import AttentionOptions
from ptxgen.cli.launch.words import LaunchOptions

if TYPE_CHECKING:
    import numpy as np

    from ptxgen.audit import Audit, Fate, Subject, Verdict
    from ptxgen.audit.cost import Cost
    from ptxgen.cli.launch.attention import AttentionRun
    from ptxgen.cli.launch.jobs import JobRun
    from ptxgen.cli.launch.plain import PlainResult, PlainRun
    from ptxgen.device import Device
    from ptxgen.gemm.job import GemmJob, GemmResult
    from ptxgen.job import JobResult

#: Characters of an instruction and of a message that the table shows.
_WIDTH, _MESSAGE = 72, 200


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Kernels")(audit)


@grouped
def audit(
    kernel: KernelName,
    m: Rows = 256,
    n: Columns = 256,
    k: Depth = 256,
    settings: Settings = [],  # noqa: B006  (typer's way to say many)
    dtype: DType = None,
    c_dtype: CDType = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the inputs.")] = 0,
    seconds: Annotated[
        float | None,
        typer.Option("--time", metavar="SECONDS", help="Judge no more changes after this time.", show_default=False),
    ] = None,
    jobs: Jobs = None,
    dask: DaskAddress = None,
    accept: AcceptFile = None,
    every: Annotated[
        bool, typer.Option("--all", help="List the changes that are needed too, with the reason.")
    ] = False,
    formats: Formats = [],  # noqa: B006
    as_json: AsJson = False,
    *,
    attention: AttentionOptions,
    launch: LaunchOptions,
    given: Given,
) -> int:
    """Drop or weaken each synchronizing instruction in turn, and list those that no run needs.

    KERNEL is what `ptxgen run` takes: a shipped kernel, its PTX as 'ptxgen build' wrote it and you edited it, FILE.py
    with a job, or FILE.ptx with --arg. Each fence, wait,
    barrier, arrival, expect_tx, commit and scope is changed alone, and run under eager, late and three seeds of random.
    "Not needed" holds for these runs and this launch: read the list as candidates, with the static cycles that ptxas
    schedules for each.
    """
    from ptxgen.audit import audit as judge_all
    from ptxgen.cli.common.terminal import steps
    from ptxgen.cli.launch.findings import audit_results
    from ptxgen.emulator.load.accepts import reviewed
    from ptxgen.executor import require_workers

    written = Output.of(formats, as_json=as_json)
    if seconds is not None and not seconds > 0:
        raise InputError(f"--time must be more than 0 seconds, not {seconds:g}")
    require_workers(jobs, dask)
    if seed < 0:
        raise InputError(f"--seed must be 0 or more, not {seed}")
    accepted = reviewed(accept) if accept is not None else ()
    subject = _subject(kernel, (m, n, k), settings, dtype, c_dtype, seed, launch, attention, given)
    with steps() as progress:
        made = judge_all(subject, accept=accepted, seconds=seconds, jobs=jobs, dask=dask, progress=progress.begin)
    costs = _costs(subject)
    written.write(
        text=lambda: _print(kernel, made, costs, every=every),
        data=lambda: _json(kernel, made, costs),
        report=lambda: audit_results(kernel, made, subject.text),
    )
    return OK


def _subject(
    kernel: str,
    size: tuple[int, int, int],
    settings: list[str],
    dtype: str | None,
    c_dtype: str | None,
    seed: int,
    launch: LaunchOptions,
    attention: AttentionOptions,
    given: Given,
) -> Subject:
    """What to audit. Raises InputError, JobError, PlanError."""
    from ptxgen.cli.common.files import is_file, parse_ptx, read_ptx
    from ptxgen.cli.launch.attention import AttentionRun
    from ptxgen.cli.launch.jobs import JobRun, named_in
    from ptxgen.cli.launch.plain import PlainRun
    from ptxgen.gemm.job import GemmJob

    name, text = kernel, None
    if is_file(kernel):
        text = None if kernel.endswith(".py") else read_ptx(kernel, launch.target)
        named = named_in(text) if text is not None and not given.words(FILE, JOB) else None
        if text is None or named is None:
            found = launch.runnable(kernel, seed, given, text)
            if isinstance(found, JobRun):
                return AuditedJob(found)
            assert isinstance(found, PlainRun)
            return AuditedFile(found)
        parse_ptx(text, kernel)
        name, settings = named[0], [*named[1], *settings]
    problem = attention.problem(name, settings, dtype, c_dtype, given, path=kernel)
    if problem is not None:
        return AuditedJob(AttentionRun(name, problem, seed, text))
    plan = make_plan(name, settings, dtype, c_dtype, size if text is None else None)
    return AuditedGemm(GemmJob(plan, *size, seed), plan.text if text is None else text)


@dataclass(frozen=True)
class AuditedGemm:
    """A shipped kernel and a problem."""

    job: GemmJob
    text: str

    @property
    def target(self) -> str:
        return self.job.plan.target

    def run(self, text: str, device: Device) -> GemmResult:
        return self.job.run(device, text=text)

    def outputs(self, result: object) -> Mapping[str, np.ndarray]:
        """None: the reference judges C."""
        return {}


@dataclass(frozen=True)
class AuditedJob:
    """The job of a Python file, or of an attention kernel."""

    file: JobRun | AttentionRun

    @property
    def target(self) -> str:
        return self.file.target

    @property
    def text(self) -> str:
        return self.file.ptx

    def run(self, text: str, device: Device) -> JobResult:
        return replace(self.file.job, ptx=text).run(device)

    def outputs(self, result: object) -> Mapping[str, np.ndarray]:
        """None: the job's reference judges them."""
        return {}


@dataclass(frozen=True)
class AuditedFile:
    """A PTX file with the arguments of the command line: its outputs must stay what they are."""

    file: PlainRun

    @property
    def target(self) -> str:
        return self.file.target

    @property
    def text(self) -> str:
        return self.file.ptx

    def run(self, text: str, device: Device) -> PlainResult:
        from ptxgen.device import Kernel

        whole = self.file.kernel
        return replace(self.file, kernel=Kernel.from_ptx(text, whole.name, regions=whole.regions)).run(device)

    def outputs(self, result: object) -> Mapping[str, np.ndarray]:
        from ptxgen.cli.launch.plain import PlainResult

        assert isinstance(result, PlainResult)
        return result.outputs


def _costs(subject: Subject) -> Mapping[int, Cost]:
    """The static cost of each line; empty without ptxas, or where it refuses the kernel."""
    from ptxgen.audit.cost import costs
    from ptxgen.sass import load
    from ptxgen.toolchain import AssemblerError, ToolNotFoundError, assemble

    try:
        return costs(load(assemble(subject.text, subject.target, options=("-lineinfo",)), origin="audit"))
    except (AssemblerError, ToolNotFoundError):
        return {}


def _json(kernel: str, made: Audit, costs: Mapping[int, Cost]) -> dict[str, Any]:
    return {
        "kernel": kernel,
        "schedules": list(made.schedules),
        "seconds": round(made.seconds, 3),
        "outputs_compared": made.compares_outputs,
        "remarks": made.remarks,
        "changes": [_row(each, costs) for each in made.verdicts],
    }


def _row(each: Verdict, costs: Mapping[int, Cost]) -> dict[str, Any]:
    cost = costs.get(each.mutant.line)
    return {
        "line": each.mutant.line,
        "column": each.mutant.column,
        "instruction": each.mutant.spelled,
        "change": each.mutant.kind,
        "verdict": each.fate,
        "code": each.code,
        "message": each.message,
        "schedule": each.schedule,
        "cycles": cost.cycles if cost else None,
        "loop_depth": cost.depth if cost else None,
        "sass": cost.opcodes if cost else None,
    }


def _print(kernel: str, made: Audit, costs: Mapping[int, Cost], *, every: bool) -> None:
    from ptxgen.cli.common.terminal import output

    counts = {fate: len(made.of(fate)) for fate in _HEADINGS}
    summary = ", ".join(f"{count} {fate}" for fate, count in counts.items() if count)
    with output() as console:

        def say(line: str) -> None:
            console.print(line, markup=False, soft_wrap=True)

        say(f"{kernel}: {len(made.instructions)} synchronizing instructions, {len(made.verdicts)} changes: {summary}")
        for fate, heading in _HEADINGS.items():
            rows = made.of(fate)
            if not rows or (fate in _LISTED_BY_ALL and not every):
                continue
            say(f"\n{heading}:")
            for each in rows:
                say(_line(each, costs))
            if fate == "not needed":
                for remark in made.remarks:
                    say(f"  note: {remark}")
        hidden = [fate for fate in _LISTED_BY_ALL if counts[fate] and not every]
        if hidden:
            say(f"\n--all lists what is {' and '.join(hidden)}")
        say(f"schedules: {', '.join(made.schedules)}; {made.seconds:.0f} s. {made.limits}")


_HEADINGS: dict[Fate, str] = {
    "not needed": "not needed by any run (static cycles of a pass, depth of the loop around it)",
    "advised": "only advice without it",
    "not reached": "not reached by this launch",
    "not judged": "not judged",
    "needed": "needed",
}
_LISTED_BY_ALL: tuple[Fate, ...] = ("not judged", "needed")


def _line(each: Verdict, costs: Mapping[int, Cost]) -> str:
    from ptxgen.device.report import shortened

    head = f"  line {each.mutant.line:>4}  {each.mutant.kind:<25}  {shortened(each.mutant.spelled, _WIDTH)}"
    cost = costs.get(each.mutant.line)
    if each.fate == "not needed" and cost:
        return f"{head}  ({cost.cycles} cycles, depth {cost.depth})"
    if each.code:
        return f"{head}\n{'':13}{each.schedule}: [{each.code}] {shortened(each.message, _MESSAGE)}"
    return f"{head}  ({each.message})" if each.message else head
