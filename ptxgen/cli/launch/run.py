"""`ptxgen run`: plan, render, assemble, encode, run on a device, compare with NumPy, report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ptxgen.cli.common.formats import AsJson, Formats, Output
from ptxgen.cli.common.groups import ATTENTION, FILE, GEMM, JOB, For, Given, grouped
from ptxgen.cli.common.options import CDType, Columns, Depth, DType, KernelName, Rows, Settings
from ptxgen.cli.errors import InputError
from ptxgen.cli.launch.attention import AttentionOptions, AttentionRun
from ptxgen.cli.launch.options import CheckOptions, GemmOptions, GpuOptions, InspectionOptions, ScheduleOptions
from ptxgen.cli.launch.words import LaunchOptions, Outputs

#: Files that may hold PTX, by the end of their names.
_HOLDERS = (".cubin", ".fatbin", ".txt", ".o", ".so")


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Kernels")(run)


@grouped
def run(
    kernel: KernelName = "",
    m: Rows = 512,
    n: Columns = 512,
    k: Depth = 512,
    settings: Settings = [],  # noqa: B006  (typer's way to say many)
    dtype: DType = None,
    c_dtype: CDType = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the inputs and the random schedule.")] = 0,
    ptx: Annotated[
        str | None,
        typer.Option(
            "--ptx", metavar="FILE.ptx", help="Run this edited PTX of the kernel instead.", show_default=False
        ),
        For(GEMM, ATTENTION),
    ] = None,
    outputs: Outputs = [],  # noqa: B006
    html: Annotated[
        str | None,
        typer.Option(
            "--html",
            metavar="FILE.html",
            help="Write a page: findings with source, memory map, pipelines and tensor memory over time, line counts.",
            show_default=False,
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Show the consequences of each finding.")] = False,
    formats: Formats = [],  # noqa: B006
    as_json: AsJson = False,
    *,
    gemm: GemmOptions,
    attention: AttentionOptions,
    launch: LaunchOptions,
    schedules: ScheduleOptions,
    checks: CheckOptions,
    inspection: InspectionOptions,
    gpu: GpuOptions,
    given: Given,
) -> int:
    """Run a kernel on random matrices and compare every element of C = A·Bᵀ with NumPy.

    KERNEL may also be a file of your own: FILE.ptx or FILE.cu (which nvcc compiles; also a cubin, fatbin or dump of
    cuobjdump that holds PTX) with --arg for each parameter, FILE.py with a `job` (inputs, launch
    and reference) or a `kernel` (then with --arg), or FILE.ptx as 'ptxgen build' wrote it, edited. With --device gpu
    it may be left out: then the kernel and its options are what should be fastest there.
    """
    from ptxgen.cli.common.files import is_file, known_target, read_ptx
    from ptxgen.cli.launch.gemm import GemmRequest, profiled, run_gemm
    from ptxgen.cli.launch.jobs import Options, named_in, run_file
    from ptxgen.cli.launch.values import parse_outputs
    from ptxgen.emulator.load.accepts import require_comments
    from ptxgen.files import similar_file

    written = Output.of(formats, as_json=as_json)
    gpu.require(kernel, given)
    if seed < 0:
        raise InputError(f"--seed must be 0 or more, not {seed}")
    chosen = schedules.chosen(gpu.device)
    checks.require(gpu.device)
    options = Options(
        seed, chosen, gpu.device, checks.advice, checks.accepted(), schedules.schedules, schedules.jobs,
        schedules.dask, written, {}, checks.timeout, verbose, schedules.explore, checks.severity,
    )  # fmt: skip
    observed = inspection.observers(gpu.device, html, many=bool(schedules.schedules))
    known_target(launch.target)
    wanted = GemmRequest(kernel, m, n, k, tuple(settings), dtype, c_dtype, gemm.numbers, gemm.whole_range, ptx)
    if ptx is not None and not is_file(kernel) and Path(ptx).is_file():
        require_comments(read_ptx(ptx, launch.target), ptx)
    if not kernel:
        given.require("the fastest kernel", GEMM)
        wanted = wanted.fastest()
    if gpu.ncu:
        words = [*wanted.words(seed), *given.words(ATTENTION, FILE, JOB)]
        return profiled(wanted.kernel, words, gpu.ncu_report, gpu.ncu_options, as_json=written.printed == "json")
    if kernel.endswith(_HOLDERS) and not is_file(kernel):
        raise InputError(f"there is no file {kernel}{similar_file(kernel)}")
    if is_file(kernel):
        text = None if kernel.endswith(".py") else read_ptx(kernel, launch.target)
        if text is not None and kernel.endswith(".ptx"):
            require_comments(text, kernel)
        named = named_in(text) if text is not None and not given.words(FILE, JOB) else None
        if named is None:
            runnable = launch.runnable(kernel, seed, given, text)
            return run_file(runnable, replace(options, outputs=parse_outputs(outputs)), observed)
        if ptx is not None:
            raise InputError(f"--ptx is for a kernel by its name; {kernel} is the PTX of {named[0]}")
        wanted = replace(wanted, kernel=named[0], settings=(*named[1], *settings), ptx=kernel, edited=text)
    problem = attention.problem(
        wanted.kernel, list(wanted.settings), dtype, c_dtype, given, gemm.batches, path=kernel or None
    )
    if problem is None:
        return run_gemm(wanted, options, observed)
    text = None if wanted.ptx is None else wanted.text(problem.plan)
    options = replace(options, outputs=parse_outputs(outputs))
    return run_file(AttentionRun(wanted.kernel, problem, seed, text, wanted.ptx), options, observed)
