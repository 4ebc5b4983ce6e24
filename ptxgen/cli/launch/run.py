"""`ptxgen run`: plan, render, assemble, encode, run on a device, compare with NumPy, report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ptxgen.cli.common import completion
from ptxgen.cli.common.formats import AsJson, Formats, Output
from ptxgen.cli.common.options import (
    AcceptFile,
    CDType,
    DaskAddress,
    DType,
    Jobs,
    KernelName,
    Settings,
)
from ptxgen.cli.errors import InputError, choose
from ptxgen.cli.launch import devices
from ptxgen.cli.launch.attention import (
    AttentionRun,
    AttentionWords,
    Causal,
    Heads,
    HeadSize,
    Keys,
    KvHeads,
    LayoutName,
    Queries,
)
from ptxgen.cli.launch.inspect import SHOWN, Inspection
from ptxgen.cli.launch.words import (
    Arguments,
    BlockExtent,
    ClusterExtent,
    CudaTarget,
    EntryName,
    GridExtent,
    LaunchWords,
    Outputs,
    SharedBytes,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ptxgen.device.report import Severity


#: Default of M, N and K.
_SIZE = 512


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Kernels")(run)


#: Schedules that `--schedules` tries at most.
_MOST_SCHEDULES = 100_000
#: Groups of options on the help page.
_PROBLEM = "The problem"
_SCHEDULES = "Schedules (emulator)"
_CHECKS = "Checks and limits"
_INSPECTION = "Inspection (emulator)"
_GPU = "A GPU"


def run(
    kernel: KernelName = "",
    m: Annotated[int, typer.Option("--m", help="Rows of A and C.")] = _SIZE,
    n: Annotated[int, typer.Option("--n", help="Rows of B, columns of C.")] = _SIZE,
    k: Annotated[int, typer.Option("--k", help="Columns of A and B.")] = _SIZE,
    batches: Annotated[
        int, typer.Option("--batches", help="GEMMs in the batch, with batched=true.", rich_help_panel=_PROBLEM)
    ] = 1,
    groups: Annotated[
        int, typer.Option("--groups", help="Matrices B, with grouped=contiguous.", rich_help_panel=_PROBLEM)
    ] = 1,
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha", help="Scale of A·Bᵀ, for a kernel with alpha=true.", show_default=False, rich_help_panel=_PROBLEM
        ),
    ] = None,
    beta: Annotated[
        float | None,
        typer.Option(
            "--beta", help="Scale of the source, for a kernel with one.", show_default=False, rich_help_panel=_PROBLEM
        ),
    ] = None,
    lda: Annotated[
        int | None,
        typer.Option(
            "--lda", help="Leading dimension of A, in elements.", show_default=False, rich_help_panel=_PROBLEM
        ),
    ] = None,
    ldb: Annotated[
        int | None, typer.Option("--ldb", help="Leading dimension of B.", show_default=False, rich_help_panel=_PROBLEM)
    ] = None,
    ldc: Annotated[
        int | None, typer.Option("--ldc", help="Leading dimension of C.", show_default=False, rich_help_panel=_PROBLEM)
    ] = None,
    settings: Settings = [],  # noqa: B006  (typer's way to say many)
    dtype: DType = None,
    c_dtype: CDType = None,
    queries: Queries = None,
    keys: Keys = None,
    heads: Heads = None,
    kv_heads: KvHeads = None,
    head_size: HeadSize = None,
    causal: Causal = False,
    layout: LayoutName = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the inputs and the random schedule.")] = 0,
    whole_range: Annotated[
        bool,
        typer.Option(
            "--whole-range",
            help="Elements and scales of a block-scaled kernel over all values of their types, NaN too.",
            rich_help_panel=_PROBLEM,
        ),
    ] = False,
    schedule: Annotated[
        str,
        typer.Option(
            "--schedule",
            metavar="eager|late|random",
            help="When asynchronous work completes in the emulator.",
            autocompletion=completion.words(*devices.SCHEDULES),
            rich_help_panel=_SCHEDULES,
        ),
    ] = "eager",
    schedules: Annotated[
        int | None,
        typer.Option(
            "--schedules",
            metavar="N",
            help="Try N schedules: eager, late, random with seeds from --seed on. Report the first that fails.",
            show_default=False,
            rich_help_panel=_SCHEDULES,
        ),
    ] = None,
    explore: Annotated[
        float | None,
        typer.Option(
            "--explore",
            metavar="[SECONDS]",
            help="Try systematically: hold one warp or CTA at a time at each point where order matters, and compare "
            "the results of all orders. Default: 60 seconds.",
            show_default=False,
            rich_help_panel=_SCHEDULES,
        ),
    ] = None,
    jobs: Jobs = None,
    dask: DaskAddress = None,
    advice: Annotated[
        float | None,
        typer.Option(
            "--advice",
            metavar="TIMES",
            help="Advise about loads and stores that take so many times the wavefronts or sectors that they need, such "
            "as 2.",
            show_default=False,
            rich_help_panel=_CHECKS,
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            help="End a longer launch in the emulator, as incomplete.",
            show_default=False,
            rich_help_panel=_CHECKS,
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            "--device",
            metavar="emulator|gpu",
            help="Where to run.",
            autocompletion=completion.words(*devices.DEVICES),
            rich_help_panel=_GPU,
        ),
    ] = "emulator",
    ptx: Annotated[
        str | None,
        typer.Option(
            "--ptx", metavar="FILE.ptx", help="Run this edited PTX of the kernel instead.", show_default=False
        ),
    ] = None,
    accept: AcceptFile = None,
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            metavar="error|advice",
            help="The least severity that makes the exit code 1.",
            autocompletion=completion.words("error", "advice"),
            rich_help_panel=_CHECKS,
        ),
    ] = "error",
    ncu: Annotated[
        bool,
        typer.Option(
            "--ncu", help="Profile on the GPU with Nsight Compute, and print the summary.", rich_help_panel=_GPU
        ),
    ] = False,
    ncu_report: Annotated[
        str | None,
        typer.Option(
            "--ncu-report",
            metavar="FILE",
            help="Report file of --ncu; default KERNEL.ncu-rep.",
            show_default=False,
            rich_help_panel=_GPU,
        ),
    ] = None,
    ncu_options: Annotated[
        str | None,
        typer.Option(
            "--ncu-options",
            metavar="'OPTION...'",
            help="More options of ncu, such as '--clock-control none'.",
            show_default=False,
            rich_help_panel=_GPU,
        ),
    ] = None,
    lines: Annotated[
        str | None,
        typer.Option(
            "--lines",
            metavar="FILE",
            help="Write the PTX with execution counts per line; - prints it.",
            show_default=False,
            rich_help_panel=_INSPECTION,
        ),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(
            "--trace",
            metavar="FILE.pftrace",
            help="Write a trace for ui.perfetto.dev.",
            show_default=False,
            rich_help_panel=_INSPECTION,
        ),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option(
            "--html",
            metavar="FILE.html",
            help="Write a page: findings with source, memory map, pipelines and tensor memory over time, line counts.",
            show_default=False,
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="[FILE:]LINE[#HIT][@WARP]|finding[:CODE]",
            help="Show the state when a warp reaches a line of the PTX, or of its source, for the n-th time, or at a "
            "finding: the mbarriers, or --show.",
            show_default=False,
            rich_help_panel=_INSPECTION,
        ),
    ] = None,
    shows: Annotated[
        list[str],
        typer.Option(
            "--show", metavar="WHAT", help=f"What --at shows: {SHOWN}.", show_default=False, rich_help_panel=_INSPECTION
        ),
    ] = [],  # noqa: B006
    whys: Annotated[
        list[str],
        typer.Option(
            "--why",
            metavar="ARRAY[I,J]",
            help="Walk back from an element, such as c[3,5], to the stores, MMAs and copies that produced it.",
            show_default=False,
            rich_help_panel=_INSPECTION,
        ),
    ] = [],  # noqa: B006
    arguments: Arguments = [],  # noqa: B006
    outputs: Outputs = [],  # noqa: B006
    grid: GridExtent = None,
    block: BlockExtent = None,
    cluster: ClusterExtent = None,
    shared_bytes: SharedBytes = None,
    entry: EntryName = None,
    target: CudaTarget = None,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Show the consequences of each finding.")] = False,
    formats: Formats = [],  # noqa: B006
    as_json: AsJson = False,
) -> int:
    """Run a kernel on random matrices and compare every element of C = A·Bᵀ with NumPy.

    KERNEL may also be a file of your own: FILE.ptx or FILE.cu (which nvcc compiles; also a cubin, fatbin or dump of
    cuobjdump that holds PTX) with --arg for each parameter, FILE.py with a `job` (inputs, launch
    and reference) or a `kernel` (then with --arg), or FILE.ptx as 'ptxgen build' wrote it, edited. With --device gpu
    it may be left out: then the kernel and its options are what should be fastest there.
    """
    from ptxgen.cli.common.files import is_file, known_target, read_ptx
    from ptxgen.cli.launch import gemm
    from ptxgen.cli.launch.jobs import Options, named_in, run_file
    from ptxgen.cli.launch.values import parse_outputs
    from ptxgen.device import read_accepts
    from ptxgen.executor import require_workers
    from ptxgen.files import similar_file

    written = Output.of(formats, as_json=as_json)
    chosen = choose("--schedule", schedule, devices.SCHEDULES)
    choose("--device", device, devices.DEVICES)
    severity: Severity = choose("--fail-on", fail_on, ("error", "advice"))
    _require_possible(
        kernel, device, schedule, seed, schedules, explore, advice, timeout, accept,
        parallel=jobs is not None or dask is not None,
    )  # fmt: skip
    require_workers(jobs, dask)
    accepted = read_accepts(accept) if accept is not None else ()
    inspection = Inspection.of(lines, trace, at, shows, whys, device=device, many=bool(schedules), html=html)
    own_launch = LaunchWords(arguments, outputs, grid, block, cluster, shared_bytes, entry, known_target(target))
    options = Options(
        seed, chosen, device, advice, accepted, schedules, jobs, dask, written, {}, timeout, verbose, explore, severity
    )
    sizes = {"batches": batches, "groups": groups, "alpha": alpha, "beta": beta, "lda": lda, "ldb": ldb, "ldc": ldc}
    more = {name: value for name, value in sizes.items() if value is not None}
    attention = AttentionWords(queries, keys, heads, kv_heads, head_size, causal, layout)
    wanted = gemm.GemmRequest(kernel, m, n, k, tuple(settings), dtype, c_dtype, more, whole_range, ptx)
    if not kernel:
        wanted = wanted.fastest()
    if ncu:
        if device != "gpu":
            raise InputError("--ncu profiles a GPU: add --device gpu")
        words = [*wanted.words(seed), *own_launch.words]
        return gemm.profiled(wanted.kernel, words, ncu_report, ncu_options, as_json=written.printed == "json")
    for option, value in (("--ncu-report", ncu_report), ("--ncu-options", ncu_options)):
        if value is not None:
            raise InputError(f"{option} goes with --ncu")
    if kernel.endswith((".cubin", ".fatbin", ".txt", ".o", ".so")) and not is_file(kernel):
        raise InputError(f"there is no file {kernel}{similar_file(kernel)}")
    if is_file(kernel):
        text = None if kernel.endswith(".py") else read_ptx(kernel, target)
        named = named_in(text) if text is not None and not own_launch.words else None
        if named is None:
            if whole_range:
                raise InputError(f"--whole-range is for shipped kernels: {kernel} has inputs of its own")
            attention.refuse(kernel)
            options = replace(options, outputs=parse_outputs(outputs))
            return run_file(own_launch.runnable(kernel, seed, text), options, inspection)
        wanted = replace(wanted, kernel=named[0], settings=(*named[1], *settings), ptx=kernel, edited=text)
    problem = attention.problem(wanted.kernel, list(wanted.settings), dtype, c_dtype, batches)
    if problem is not None:
        of_gemm = {name: value for name, value in more.items() if name != "batches"}
        _require_attention(wanted.kernel, (m, n, k), of_gemm, whole_range=whole_range)
        own_launch.refuse_launch(wanted.kernel)
        text = None if wanted.ptx is None else wanted.text(problem.plan)
        options = replace(options, outputs=parse_outputs(outputs))
        return run_file(AttentionRun(wanted.kernel, problem, seed, text, wanted.ptx), options, inspection)
    own_launch.refuse(wanted.kernel)
    return gemm.run_gemm(wanted, options, inspection)


def _require_attention(
    kernel: str, sizes: tuple[int, int, int], more: Mapping[str, float], *, whole_range: bool
) -> None:
    """Raises InputError for options that describe a GEMM."""
    given = [f"--{name}" for name, value in zip("mnk", sizes, strict=True) if value != _SIZE]
    given += [f"--{name}" for name, value in more.items() if name != "groups" or value != 1]
    given += ["--whole-range"] * whole_range
    if given:
        raise InputError(f"{given[0]} is for GEMM kernels; {kernel} takes --queries, --keys and --heads")


def _require_possible(
    kernel: str | None,
    device: str,
    schedule: str,
    seed: int,
    schedules: int | None,
    explore: float | None,
    advice: float | None,
    timeout: float | None,
    accept: str | None,
    *,
    parallel: bool,
) -> None:
    """Raises InputError for options that exclude each other, and values that no option takes."""
    if not kernel and device != "gpu":
        raise InputError("missing argument 'KERNEL': only --device gpu picks a kernel itself (see 'ptxgen run --help')")
    if seed < 0:
        raise InputError(f"--seed must be 0 or more, not {seed}")
    if schedules is not None and schedules < 1:
        raise InputError(f"--schedules must be 1 or more, not {schedules}")
    if schedules is not None and schedules > _MOST_SCHEDULES:
        raise InputError(f"--schedules must be at most {_MOST_SCHEDULES}, not {schedules}")
    if schedules and device != "emulator":
        raise InputError("--schedules is for the emulator: a GPU decides for itself when work completes")
    if schedules and schedule != "eager":
        raise InputError("--schedules tries eager, late and random in turn; leave out --schedule")
    if explore is not None and not explore > 0:
        raise InputError(f"--explore must be more than 0 seconds, not {explore:g}")
    if explore is not None and device != "emulator":
        raise InputError("--explore is for the emulator: a GPU decides for itself who comes first")
    if explore is not None and (schedules or schedule != "eager"):
        given = "--schedules" if schedules else "--schedule"
        raise InputError(f"--explore tries its own orders, with late and with eager completion; leave out {given}")
    if not schedules and parallel:
        raise InputError("--jobs and --dask are for --schedules: one run is one process")
    if advice is not None and device != "emulator":
        raise InputError("--advice is for the emulator; on a GPU, use Nsight Compute")
    if accept is not None and device != "emulator":
        raise InputError("--accept is for the emulator: a GPU reports no findings but faults")
    if advice is not None and not advice > 1:
        raise InputError(f"--advice must be more than 1, not {advice:g}: every access takes what it needs")
    if timeout is not None and device != "emulator":
        raise InputError("--timeout is for the emulator: a GPU cannot be stopped")
    if timeout is not None and not timeout > 0:
        raise InputError(f"--timeout must be more than 0 seconds, not {timeout:g}")
