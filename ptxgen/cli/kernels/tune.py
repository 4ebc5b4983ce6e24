"""`ptxgen tune`: measure the kernels for a problem on this machine's GPU, and remember the fastest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ptxgen.cli.common import completion
from ptxgen.cli.common.files import reason
from ptxgen.cli.errors import InputError
from ptxgen.files import read_file

if TYPE_CHECKING:
    from ptxgen.gemm.selection.tuning import Timed

#: Kernels of a problem that are shown.
_SHOWN = 5


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Kernels")(tune)


def tune(
    sizes: Annotated[
        list[int] | None,
        typer.Argument(metavar="[M N K]", help="Rows of C, columns of C, columns of A and B.", show_default=False),
    ] = None,
    shapes: Annotated[
        Path | None,
        typer.Option("--shapes", metavar="FILE", help="A file with M N K in each line.", show_default=False),
    ] = None,
    settings: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="OPTION=VALUE",
            help="Options that must hold, such as dtype=e4m3 or promote=false.",
            show_default=False,
            autocompletion=completion.settings,
        ),
    ] = [],  # noqa: B006  (typer's way to say many)
    count: Annotated[int, typer.Option("--count", metavar="N", min=1, help="Kernels of the forecast to measure.")] = 24,
    forget: Annotated[bool, typer.Option("--dry-run", help="Measure, and remember nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure kernels for GEMM shapes on this machine's GPU, and let ptxgen.gemm.best choose the fastest from now on.

    The user's cache remembers them: $PTXGEN_CACHE, else ~/.cache/ptxgen.
    """
    import json

    from ptxgen.gemm import PlanError, best, parse_options
    from ptxgen.gemm.selection.dispatch import machine_of, user_path
    from ptxgen.gemm.selection.tuning import remember
    from ptxgen.gemm.selection.tuning import tune as measure
    from ptxgen.gpu import Gpu, GpuNotFoundError

    problems = list(_problems(sizes or [], shapes))
    given = parse_options(dict(_pair(each) for each in settings))
    try:
        gpu = Gpu()
    except GpuNotFoundError as error:
        raise InputError(f"tune measures on a GPU: {error}") from None
    found: list[dict[str, Any]] = []
    winners: list[Timed] = []
    for m, n, k in problems:
        try:
            before = best(m, n, k, device=gpu, **given)
            timed = measure(gpu, m, n, k, given, count, say=lambda words: typer.echo(words, err=True))
        except PlanError as error:
            raise InputError(str(error)) from None
        winners.append(timed[0])
        was = next((each.us for each in timed if each.choice.plan.settings == before.plan.settings), None)
        found.append(
            {
                "shape": [m, n, k],
                "before": {"us": was, "expected": before.expected},
                "kernels": [
                    {"us": each.us, "spread": each.spread, "kernel": each.choice.plan.name,
                     "options": list(each.choice.plan.settings)}
                    for each in timed
                ],
            }
        )  # fmt: skip
        if not as_json:
            _print(m, n, k, timed, was)
        if not forget:
            remember(gpu, winners[-1:])
    if as_json:
        print(json.dumps(found, indent=2))
    elif not forget:
        typer.echo(f"{len(winners)} remembered in {user_path(machine_of(gpu).name)}")


def _problems(sizes: list[int], shapes: Path | None) -> Iterator[tuple[int, int, int]]:
    """M, N and K of each problem. Raises InputError."""
    if bool(sizes) == (shapes is not None):
        raise InputError("tune takes M N K, or --shapes FILE")
    lines = [" ".join(map(str, sizes))]
    if shapes is not None:
        try:
            lines = read_file(shapes).decode().splitlines()
        except OSError as error:
            raise InputError(f"cannot read {shapes}: {reason(error)}") from None
        except UnicodeDecodeError as error:
            raise InputError(f"cannot read {shapes}: {error}") from None
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].replace(",", " ").replace("x", " ").split()
        if not words:
            continue
        if len(words) != 3 or not all(word.isdigit() and int(word) > 0 for word in words):
            where = f"{shapes}:{number}: " if shapes is not None else ""
            raise InputError(f"{where}a problem is M N K, three whole numbers from 1 on, not {line.strip()!r}")
        m, n, k = map(int, words)
        yield m, n, k


def _pair(setting: str) -> tuple[str, str]:
    name, equals, value = setting.partition("=")
    if not equals:
        raise InputError(f"--set takes OPTION=VALUE, not {setting!r}")
    return name, value


def _print(m: int, n: int, k: int, timed: list[Timed], before: float | None) -> None:
    gain = f"; chosen before: {before:.4g} µs ({before / timed[0].us - 1:+.1%})" if before else ""
    typer.echo(f"{m}x{n}x{k}: {timed[0].us:.4g} µs of {len(timed)} kernels{gain}")
    for each in timed[:_SHOWN]:
        kernel = " ".join([each.choice.plan.name, *each.choice.plan.settings])
        typer.echo(f"  {each.us:9.2f} µs ±{each.spread:.1%}  {kernel}")
