"""`ptxgen exec PROGRAM`: an unchanged GPU program on the emulator, with every check on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ptxgen.cli.common import completion, interrupt
from ptxgen.cli.common.files import require_writable, write_output
from ptxgen.cli.common.formats import Formats, Output
from ptxgen.cli.errors import InputError, choose
from ptxgen.project import FAIL_ON

if TYPE_CHECKING:
    from ptxgen.device.accept import Accept
    from ptxgen.driver.results import Results
    from ptxgen.reports import Report


def register(app: typer.Typer) -> None:
    app.command(
        "exec",
        rich_help_panel="Kernels",
        context_settings={"allow_interspersed_args": False},
    )(execute)


def execute(
    command: Annotated[
        list[str],
        typer.Argument(metavar="PROGRAM [ARGS]...", help="The program and its arguments.", show_default=False),
    ],
    target: Annotated[
        str,
        typer.Option("--target", metavar="sm_NNN", help="The GPU to emulate.", autocompletion=completion.targets),
    ] = "sm_100a",
    schedule: Annotated[str, typer.Option("--schedule", metavar="S", help="eager, late or random.")] = "eager",
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of the schedule random.")] = 0,
    sms: Annotated[int, typer.Option("--sms", metavar="N", help="Multiprocessors that the program sees.")] = 8,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            metavar="N",
            help="Processes that share a large launch; default: one per core.",
            show_default=False,
        ),
    ] = None,
    memory: Annotated[str, typer.Option("--memory", metavar="SIZE", help="Device memory, such as 8G or 512M.")] = "8G",
    formats: Formats = [],  # noqa: B006  (typer's way to say many)
    json: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Short for --format json=FILE; - is standard output."),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option(
            "--html",
            metavar="FILE.html",
            help="Write one page: kernels with their launches, findings with the program's lines.",
            show_default=False,
        ),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(
            "--trace",
            metavar="FILE.pftrace",
            help="Write a trace of the launches that are checked, for ui.perfetto.dev.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="S", help="End the program after S seconds.")
    ] = None,
    kernel: Annotated[
        str | None, typer.Option("--kernel", metavar="REGEX", help="Check only kernels whose name matches.")
    ] = None,
    launches: Annotated[
        str | None,
        typer.Option("--launches", metavar="N[:M]", help="Check only launches N to M of each kernel, from 1 on."),
    ] = None,
    accept: Annotated[
        Path | None, typer.Option("--accept", metavar="FILE", help="Reviewed findings, which are left out (TOML).")
    ] = None,
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            metavar="error|advice|never",
            help="The least that makes the exit code 1; never: the exit code is the program's.",
            autocompletion=completion.words(*FAIL_ON),
        ),
    ] = "error",
    benchmarks: Annotated[
        bool,
        typer.Option("--benchmarks", help="Run autotuners and benchmarks of Triton whole: they are cut without it."),
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the consequences of findings, too.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary at the end.")] = False,
) -> int:
    """Run an unchanged GPU program on the emulator: CUDA C++, Triton, Numba, CuPy, CuTe DSL and others.

    The exit code is the program's if that is not 0, else 1 if there is a finding of severity error (--fail-on).
    """
    # The program starts before the emulator is imported: nothing here may import it (tests/driver/test_start.py).
    from ptxgen.driver import Options, run
    from ptxgen.instr.model.targets import VERSIONS, parse_target, target_problem

    written = Output.of(formats)
    if html is not None:
        require_writable(html)
    if json is not None and str(json) != "-":
        require_writable(str(json))
    if trace is not None:
        from ptxgen.emulator.observers.trace import require_perfetto

        require_perfetto()
        require_writable(trace)
    problem = target_problem(parse_target(target), VERSIONS[-1])
    if problem is not None:
        raise InputError(f"--target: {problem}")
    if sms < 1:
        raise InputError(f"--sms must be 1 or more, not {sms}")
    if jobs is not None and jobs < 0:
        raise InputError(f"--jobs must be 0 or more, not {jobs}")
    if timeout is not None and timeout <= 0:
        raise InputError(f"--timeout must be a number of seconds above 0, not {timeout:g}")
    options = Options(
        target=target,
        schedule=choose("--schedule", schedule, ("eager", "late", "random")),
        seed=seed,
        multiprocessors=sms,
        jobs=jobs,
        memory=_size(memory),
        timeout=timeout,
        json=json,
        trace=Path(trace) if trace is not None else None,
        accept=_accepted(accept),
        fail_on=choose("--fail-on", fail_on, FAIL_ON),
        kernels=_pattern(kernel),
        launches=_range(launches),
        benchmarks=benchmarks,
        verbose=verbose,
        quiet=quiet,
    )
    with interrupt.finishes_itself():
        results = run(command, options)
    assert results.exit_code is not None
    written.write(text=lambda: None, data=results.to_json, report=lambda: _report(results, command), indent=1)
    if html is not None:
        _write_page(html, command, results)
    return results.exit_code


def _accepted(path: Path | None) -> Sequence[Accept]:
    if path is None:
        return ()
    from ptxgen.emulator.load.accepts import reviewed

    return reviewed(path)


def _report(results: Results, command: Sequence[str]) -> Report:
    from ptxgen.cli.launch.findings import program_results

    return program_results(results, command)


def _write_page(path: str, command: list[str], results: Results) -> None:
    from ptxgen.driver.names import short_name
    from ptxgen.reports.program import ProgramPage

    options = results.options
    seed = f" {options.seed}" if options.schedule == "random" else ""
    page = ProgramPage(
        command=command,
        device=f"emulated {options.target}, {options.schedule}{seed} schedule",
        exit_code=results.exit_code or 0,
        ok=not results.exit_code,
        launches=results.launches,
        names={each.kernel: short_name(each.kernel) for each in results.launches},
        notes=results.notes,
    )
    write_output(path, page.html())
    if not options.quiet:
        results.say(f"page: {path}")


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+)([KMG]?)i?B?", text.strip(), re.IGNORECASE)
    size = int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2].upper()] if found else 0
    if size < 64 << 20:
        raise InputError(f"--memory must be a size of 64M or more, such as 8G, not {text!r}")
    return size


def _pattern(text: str | None) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise InputError(f"--kernel is no regular expression: {error}") from None


def _range(text: str | None) -> tuple[int, int | None]:
    if text is None:
        return 1, None
    found = re.fullmatch(r"(\d+)(:(\d*))?", text)
    if found is None or int(found[1]) < 1:
        raise InputError(f"--launches must be N or N:M, counted from 1, not {text!r}")
    first = int(found[1])
    return first, first if found[2] is None else int(found[3]) if found[3] else None
