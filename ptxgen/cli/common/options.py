"""Options that several commands share: what a person can choose about a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ptxgen.cli.common import completion
from ptxgen.cli.common.groups import ATTENTION, GEMM, For

if TYPE_CHECKING:
    from ptxgen.attention import AttentionPlan
    from ptxgen.catalog import Entry
    from ptxgen.gemm import GemmPlan, KernelEntry

KernelName = Annotated[
    str,
    typer.Argument(
        metavar="KERNEL",
        help="A name or rung from 'ptxgen kernels', or FOLDER#RUNG of a folder with a ladder.toml.",
        show_default=False,
        autocompletion=completion.kernel_names,
    ),
]
Rows = Annotated[int, typer.Option("--m", help="Rows of A and C."), For(GEMM)]
Columns = Annotated[int, typer.Option("--n", help="Rows of B, columns of C."), For(GEMM)]
Depth = Annotated[int, typer.Option("--k", help="Columns of A and B."), For(GEMM)]
Settings = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="OPTION=VALUE",
        help="An option of 'ptxgen kernels KERNEL'; may be repeated.",
        show_default=False,
        autocompletion=completion.settings,
    ),
    For(GEMM, ATTENTION),
]
DType = Annotated[
    str | None,
    typer.Option(
        "--dtype",
        metavar="TYPE",
        help="Short for --set dtype=TYPE.",
        show_default=False,
        autocompletion=completion.types,
    ),
    For(GEMM, ATTENTION),
]
CDType = Annotated[
    str | None,
    typer.Option(
        "--c-dtype",
        metavar="TYPE",
        help="Short for --set c_dtype=TYPE.",
        show_default=False,
        autocompletion=completion.types,
    ),
    For(GEMM, ATTENTION),
]
PtxFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE.ptx|FILE.py",
        help="PTX text, or a Python file with a job or kernel; - is standard input.",
        show_default=False,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="sm_NNN",
        help="Overrides the text's .target.",
        show_default=False,
        autocompletion=completion.targets,
    ),
]
AcceptFile = Annotated[
    str | None,
    typer.Option(
        "--accept", metavar="FILE.toml", help="Leave out the reviewed findings listed there.", show_default=False
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", metavar="N", help="Processes; default: one per core; 0: run in this process.", show_default=False
    ),
]
DaskAddress = Annotated[
    str | None,
    typer.Option("--dask", metavar="ADDRESS", help="Run on the workers of a Dask cluster.", show_default=False),
]


def find_kernel(name: str) -> KernelEntry:
    """The GEMM kernel of this name, rung id, or FOLDER#RUNG. Raises InputError for an unknown name."""
    from ptxgen.cli.errors import InputError
    from ptxgen.gemm import KernelEntry

    found = find_any(name)
    if not isinstance(found, KernelEntry):
        raise InputError(f"{found.name} computes attention; this command takes GEMM kernels")
    return found


def find_any(name: str) -> Entry:
    """The kernel of this name, rung id, or FOLDER#RUNG. Raises InputError for an unknown name."""
    from ptxgen.catalog import find, kernels
    from ptxgen.cli.errors import InputError, nearest

    known = kernels()
    if "#" not in name and not any(name == each.name or name in each.rungs for each in known.values()):
        if name and Path(name).is_dir():
            raise InputError(f"{name} is a folder: name a rung of its ladder.toml, as {name}#RUNG")
        if Path(name).is_file():
            raise InputError(f"{name} is a file, not a kernel of the library ('ptxgen run {name}' launches it)")
        near = nearest(name, [*known, *(rung for each in known.values() for rung in each.rungs)])
        raise InputError(f"there is no kernel {name!r}{near} ('ptxgen kernels' lists all)")
    return find(name)


def require_option(entry: Entry, kernel: str, name: str) -> None:
    """Raises InputError for an option that a kernel, as the command line names it, has not."""
    from ptxgen.cli.errors import InputError, nearest
    from ptxgen.gemm import KernelEntry

    short = ("tile",) if isinstance(entry, KernelEntry) else ()
    if name not in (*entry.options, *short):
        near = nearest(name, entry.options)
        raise InputError(f"{entry.name} has no option {name!r}{near} ('ptxgen kernels {kernel}' lists them)")


def make_plan(
    kernel: str,
    settings: list[str],
    dtype: str | None,
    c_dtype: str | None,
    size: tuple[int, int, int] | None = None,
) -> GemmPlan:
    """The plan of a kernel with settings such as "stages=4", for a problem of M, N and K where these are known.

    Raises InputError and PlanError for what does not fit.
    """
    entry = find_kernel(kernel)
    chosen = parse_settings(entry, kernel, settings, dtype, c_dtype)
    return entry.plan(**chosen) if size is None else entry.plan_for(*size, **chosen)


def plan_any(kernel: str, settings: list[str], dtype: str | None, c_dtype: str | None) -> GemmPlan | AttentionPlan:
    """The plan of a kernel of either kind with settings. Raises InputError and PlanError for what does not fit."""
    entry = find_any(kernel)
    return entry.plan(**parse_settings(entry, kernel, settings, dtype, c_dtype))


def parse_settings(
    entry: Entry, kernel: str, settings: list[str], dtype: str | None, c_dtype: str | None
) -> dict[str, Any]:
    """Settings as options of a kernel, as the command line names it. Raises InputError and PlanError."""
    from ptxgen.cli.errors import InputError
    from ptxgen.gemm import KernelEntry, parse_options
    from ptxgen.options import parse

    given: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"--set takes OPTION=VALUE, not {setting!r}")
        require_option(entry, kernel, name)
        given[name] = value
    for name, value in (("dtype", dtype), ("c_dtype", c_dtype)):
        if value is not None:
            given[name] = value
    return parse_options(given) if isinstance(entry, KernelEntry) else parse(entry.config_type, given)
