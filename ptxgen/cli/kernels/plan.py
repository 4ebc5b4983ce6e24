"""`ptxgen plan` lists configurations for a problem on a machine, with waves and bytes, and explains its choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ptxgen.cli.common import completion
from ptxgen.cli.common.options import CDType, Settings, find_kernel, parse_settings

if TYPE_CHECKING:
    from ptxgen.gemm.prediction.estimate import Estimate
    from ptxgen.gemm.selection.planner import Planning

HEAD = ("tile", "cluster", "sched", "ring", "kB", "TMEM", "waves", "last", "useful", "L2", "HBM", "µs", "bound")
LEGEND = (
    "ring: stages; kB: shared memory; TMEM: columns; last: slots used in the last wave; useful: MMA cycles that make "
    "C, of those of whole waves; L2, HBM: MB; µs: of the model; bound: by what"
)


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Kernels")(plan)


def plan(
    m: Annotated[int, typer.Argument(metavar="M", help="Rows of C.", show_default=False)],
    n: Annotated[int, typer.Argument(metavar="N", help="Columns of C.", show_default=False)],
    k: Annotated[int, typer.Argument(metavar="K", help="Columns of A and B.", show_default=False)],
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype",
            metavar="TYPE",
            help="Short for --set dtype=TYPE; mxfp8, mxfp4 and nvfp4 are those of the kernels with scales.",
            show_default=False,
            autocompletion=completion.planned_types,
        ),
    ] = None,
    c_dtype: CDType = None,
    machine: Annotated[
        str,
        typer.Option("--machine", metavar="NAME", help="b200, h200 or h100.", autocompletion=completion.machines),
    ] = "b200",
    kernel: Annotated[
        str | None,
        typer.Option(
            "--kernel",
            metavar="NAME",
            help="A kernel or rung, such as mxfp8-o11; the machine's widest by default.",
            show_default=False,
            autocompletion=completion.kernel_names,
        ),
    ] = None,
    clock: Annotated[
        float | None,
        typer.Option("--clock", metavar="MHZ", help="Instead of the machine's busy clock.", show_default=False),
    ] = None,
    settings: Settings = [],  # noqa: B006  (typer's way to say many)
    count: Annotated[int, typer.Option("--count", metavar="N", help="How many configurations to list.")] = 8,
    sources: Annotated[bool, typer.Option("--sources", help="Show the machine's numbers and their sources.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List configurations of the shipped kernels for a problem, and explain which to take.

    Times are those of a simple model, for comparing configurations: see docs/plan.md.
    """
    from ptxgen.cli.errors import choose
    from ptxgen.gemm.selection.planner import FORMATS, RUNGS, plan_gemm
    from ptxgen.timing import MACHINES

    chosen = MACHINES[choose("--machine", machine, list(MACHINES))]
    rung = kernel or FORMATS.get(dtype or "") or RUNGS[chosen.target]
    if dtype in FORMATS:
        _require_format(rung, dtype)
        dtype = None
    fixed = parse_settings(find_kernel(rung), rung, settings, dtype, c_dtype)
    found = plan_gemm(m, n, k, chosen, count=count, clock=clock, fixed=fixed, kernel=rung)
    forecast = chosen.target == "sm_90a" and kernel is None and clock is None
    taken = _best((m, n, k), chosen.name, fixed) if forecast else None
    if as_json:
        import json

        print(json.dumps({**_as_dict(found, (m, n, k)), "best": taken}, indent=2))
        return
    _print(found, (m, n, k), sources)
    if taken is not None:
        _print_best(taken)


def _best(problem: tuple[int, int, int], machine: str, fixed: Mapping[str, Any]) -> dict[str, Any] | None:
    """The kernel that ptxgen.gemm.best chooses, with its forecast time; None where it has none."""
    from ptxgen.gemm import PlanError, best

    try:
        taken = best(*problem, device=machine, **fixed)
    except PlanError:
        return None
    return {
        "kernel": taken.plan.name,
        "options": list(taken.plan.settings),
        "known": taken.known,
        "us": round(taken.us, 3) or None,
        "expected": taken.expected,
    }


def _print_best(taken: Mapping[str, Any]) -> None:
    from rich.markup import escape

    from ptxgen.cli.common.terminal import output

    with output() as out:
        out.print(
            escape(f"ptxgen.gemm.best takes {' '.join([taken['kernel'], *taken['options']])}: {taken['expected']}")
        )


def _require_format(rung: str, name: str) -> None:
    """Raises InputError for a kernel whose operands are not of a block-scaled format."""
    from ptxgen.cli.errors import InputError
    from ptxgen.gemm.selection.planner import FORMATS

    if find_kernel(rung).format != find_kernel(FORMATS[name]).format:
        raise InputError(f"--dtype {name} takes a kernel such as {FORMATS[name]}, not {rung}")


def row(each: Estimate) -> tuple[str, ...]:
    """One configuration as the cells of the table."""
    config = each.config
    return (
        each.tile,
        "×".join(map(str, each.plan.scheduler.cluster)) + " pair" * (config.cta_group == 2),
        config.scheduler,
        str(config.stages),
        f"{each.plan.shared.bytes / 1000:.0f}",
        str(each.plan.accumulator.columns or "-"),
        f"{each.waves:.2f}",
        f"{each.last_wave:.0%}",
        f"{each.wave_efficiency * each.tile_efficiency * each.mma_efficiency:.1%}",
        f"{each.l2_bytes / 1e6:.0f}",
        f"{each.hbm_bytes / 1e6:.0f}",
        f"{each.microseconds:.3g}" if each.microseconds < 1000 else f"{each.microseconds:.0f}",
        each.bound_by,
    )


def command(found: Planning, problem: tuple[int, int, int]) -> str:
    """The command that runs the choice in the emulator: what differs from the rung."""
    from ptxgen.gemm import find

    settings = [f"--set {each}" for each in find(found.rung).settings(found.chosen.config)]
    sizes = [f"--{name} {size}" for name, size in zip("mnk", problem, strict=True)]
    return " ".join(["ptxgen run", found.rung, *sizes, *settings])


def _print(found: Planning, problem: tuple[int, int, int], sources: bool) -> None:
    from rich.markup import escape
    from rich.padding import Padding

    from ptxgen.cli.common.terminal import grid, output

    best = found.chosen
    with output() as out:
        shape = "×".join(map(str, problem))
        types = f"{best.plan.a.dtype} -> {best.plan.c_dtype}"
        out.print(f"[bold]{shape}[/] {types} on {best.machine.title}, {best.clock:g} MHz, {found.rung}")
        rows = [row(each) for each in found.ranked]
        widths = [max(map(len, column)) for column in zip(HEAD, *rows, strict=True)]
        if sum(widths) + len(widths) > out.width:  # cut cells would be wrong numbers
            for cells in rows:
                out.print("\n" + ", ".join(f"{word} {cell}" for word, cell in zip(HEAD, cells, strict=True)))
            out.print()
        else:
            table = grid("bold", *[""] * (len(HEAD) - 1), gap=1)
            table.add_row(*(f"[dim]{word}[/]" for word in HEAD))
            for cells in rows:
                table.add_row(*cells)
            out.print(Padding(table, (1, 0, 1, 0)))
        out.print(f"[dim]{LEGEND}[/]")
        for sentence in found.explain():
            out.print(escape(sentence))
        out.print(f"\n[dim]{command(found, problem)}[/]")
        if sources:
            facts = grid("cyan", "", gap=2)
            for name, figure in best.machine.figures():
                facts.add_row(name, escape(str(figure)))
            out.print(Padding(facts, (1, 0, 0, 0)))


def _as_dict(found: Planning, problem: tuple[int, int, int]) -> dict[str, Any]:
    best = found.chosen
    machine = best.machine
    return {
        "problem": dict(zip("mnk", problem, strict=True)),
        "dtype": best.plan.a.dtype,
        "c_dtype": best.plan.c_dtype,
        "kernel": found.rung,
        "clock_mhz": best.clock,
        "machine": {
            "name": machine.name,
            "target": machine.target,
            "figures": {
                name: {
                    "value": each.value,
                    "unit": each.unit,
                    "status": each.evidence.kind,
                    "source": each.evidence.source,
                }
                for name, each in machine.figures()
            },
        },
        "chosen": best.as_dict(),
        "shipped": found.shipped.as_dict(),
        "gain": round(found.gain, 4),
        "explanation": found.explain(),
        "configurations": [each.as_dict() for each in found.ranked],
    }
