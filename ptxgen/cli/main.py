"""The entry of the `ptxgen` command: its groups, and how it ends."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from ptxgen.cli import errors
from ptxgen.cli.common import interrupt, project
from ptxgen.cli.common.help import Application, Commands
from ptxgen.cli.kernels import kernels, plan, sweep, tune
from ptxgen.cli.launch import audit, run, timing
from ptxgen.cli.launch import exec as execute_program
from ptxgen.cli.reference import coverage, explain, layout, verify
from ptxgen.cli.toolchain import check, language_server, ncu, ptx, sass

#: Columns of a help page, at most.
_WIDEST = 100

app = Application(
    name="ptxgen",
    cls=Commands,
    help="Build, run and check NVIDIA PTX kernels for Hopper and Blackwell, without a GPU.",
    epilog="Exit codes: 0 all is well, 1 the kernel or the PTX is wrong, 2 the command or its input cannot be used.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
run.register(app)
execute_program.register(app)
audit.register(app)
timing.register(app)
sweep.register(app)
tune.register(app)
kernels.register(app)
plan.register(app)
ptx.register(app)
check.register(app)
language_server.register(app)
explain.register(app)
sass.register(app)
ncu.register(app)
layout.register(app)
coverage.register(app)
verify.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        from ptxgen.toolchain import AssemblerError, ToolNotFoundError, ptxas_version

        print(f"ptxgen {version('ptxgen')}")
        try:
            print(f"ptxas {ptxas_version()}")
        except (AssemblerError, ToolNotFoundError) as error:
            print(f"ptxas: {str(error).splitlines()[0]}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


def execute(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (by default this process's); returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an ASCII terminal shows ? for what it lacks
    words = sys.argv[1:] if arguments is None else arguments
    try:
        _require_folder()
        command = typer.main.get_command(app.for_words(words))
        width = min(shutil.get_terminal_size().columns, _WIDEST)
        code = command.main(
            args=arguments,
            prog_name="ptxgen",
            standalone_mode=False,
            terminal_width=width,
            default_map=project.defaults(words),
        )
        return code if isinstance(code, int) else errors.OK
    except (KeyboardInterrupt, typer.Abort):
        return errors.INTERRUPTED
    except Exception as error:
        code = errors.report(error, " ".join(["ptxgen", *words[:1]]) if words and words[0][:1].isalpha() else "ptxgen")
        if code is None:
            raise
        return code


def _require_folder() -> None:
    """Raises InputError in a folder that has been deleted, where paths mean nothing."""
    try:
        os.getcwd()
    except OSError as error:
        raise errors.InputError(f"cannot use the working directory: {(error.strerror or str(error)).lower()}") from None


def main() -> None:
    """Run this process's command line, and end it."""
    interrupt.watch()
    code = execute()
    if code == errors.INTERRUPTED or "ptxgen.driver.server" in sys.modules:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # freeing an emulator takes longer than a person waits, and a fifth of its import
    sys.exit(code)
