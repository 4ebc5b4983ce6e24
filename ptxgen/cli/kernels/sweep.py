"""`ptxgen sweep`: every combination of some options of a kernel, as a table."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ptxgen.cli.common import completion
from ptxgen.cli.common.groups import Given, grouped
from ptxgen.cli.common.options import Columns, DaskAddress, Depth, Jobs, KernelName, Rows, find_kernel, require_option
from ptxgen.cli.errors import OK, WRONG, InputError, choose
from ptxgen.cli.launch import devices

if TYPE_CHECKING:
    from ptxgen.cli.kernels.combinations import Combination, Row
    from ptxgen.executor import Executor
    from ptxgen.gemm import KernelEntry

#: What --sort takes beside the options.
SORTS = ("registers", "shared", "tmem", "spills", "waves", "time", "predicted")
_OPTIONS_OF_TILE = ("m_tile", "n_tile")


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Kernels")(sweep)


@grouped
def sweep(
    kernel: KernelName,
    options: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[OPTION=VALUE,VALUE...]...",
            help="Options with the values to try, as --set of 'ptxgen run' takes them.",
            show_default=False,
            autocompletion=completion.settings,
        ),
    ] = None,
    settings: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="OPTION=VALUE,...",
            help="The same, spelled as for 'ptxgen run'.",
            show_default=False,
            autocompletion=completion.settings,
        ),
    ] = [],  # noqa: B006  (typer's way to say many)
    m: Rows = 512,
    n: Columns = 512,
    k: Depth = 512,
    multiprocessors: Annotated[
        int | None,
        typer.Option(
            "--multiprocessors",
            metavar="N",
            help="SMs of the GPU, for the waves; a B200 has 148, an H200 132.",
            show_default=False,
        ),
    ] = None,
    run: Annotated[bool, typer.Option("--run", help="Run each in the emulator, and compare with NumPy.")] = False,
    schedule: Annotated[
        str,
        typer.Option(
            "--schedule",
            metavar="eager|late|random",
            help="Schedule of --run.",
            autocompletion=completion.words(*devices.SCHEDULES),
        ),
    ] = "eager",
    seed: Annotated[int, typer.Option("--seed", help="Seed of the inputs and the random schedule.")] = 0,
    device: Annotated[
        str,
        typer.Option(
            "--device",
            metavar="emulator|gpu",
            help="gpu: run, compare and time each on the GPU.",
            autocompletion=completion.words(*devices.DEVICES),
        ),
    ] = "emulator",
    machine: Annotated[
        str | None,
        typer.Option(
            "--time",
            metavar="MACHINE",
            help="Predict the time of each on b200, h200 or h100, as 'ptxgen time' does.",
            show_default=False,
            autocompletion=completion.machines,
        ),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort", metavar="COLUMN", help=f"Ascending: {', '.join(SORTS)}, or an option.", show_default=False
        ),
    ] = None,
    jobs: Jobs = None,
    dask: DaskAddress = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    *,
    given: Given,
) -> int:
    """Plan, check and assemble every combination of options; what is not legal says why.

    Waves are the tiles of C by the CTAs that the GPU holds at a time. Exit code 0 if every legal combination is right
    and clean.
    """  # fmt: skip
    from ptxgen.cli.kernels.combinations import Combination
    from ptxgen.executor import Executor
    from ptxgen.limits import multiprocessors as usual

    chosen = choose("--schedule", schedule, devices.SCHEDULES)
    choose("--device", device, devices.DEVICES)
    for name, value in (("--m", m), ("--n", n), ("--k", k), ("--multiprocessors", multiprocessors), ("--seed", seed)):
        least = 0 if name == "--seed" else 1
        if value is not None and not least <= value < 2**31:
            raise InputError(f"{name} must be {least} to {2**31 - 1}, not {value}")
    if device == "gpu":
        given.require_emulator("--schedule", "--run")
    elif "--schedule" in given and not run:
        raise InputError("--schedule goes with --run, which runs each kernel in the emulator")
    if as_json and as_csv:
        raise InputError("choose one of --json and --csv")
    if kernel.endswith((".py", ".ptx")):
        raise InputError(f"{kernel} has no options to sweep; give a kernel of 'ptxgen kernels', or FOLDER#RUNG")
    entry = find_kernel(kernel)
    values = _values(entry, kernel, [*(options or ()), *settings])
    if machine is not None:
        _require_machine(machine, kernel, entry.target)
    if sort is not None:
        choose("--sort", sort, (*SORTS, *values))
        if sort == "predicted" and machine is None:
            raise InputError("--sort predicted goes with --time MACHINE, which predicts the times")
    if device == "gpu":
        gpu = devices.open_device(device, kernel, entry.target, chosen, seed)
        del gpu  # each combination has a process and a context of its own: a fault ends both
    slots = multiprocessors or usual(entry.target)
    named = f"{entry.folder.resolve()}#{entry.name}" if entry.folder else entry.name
    todo = [
        Combination(
            named,
            tuple(zip(values, each, strict=True)),
            m,
            n,
            k,
            slots,
            chosen if run else None,
            seed,
            machine=machine or "",
        )
        for each in itertools.product(*values.values())
    ]
    with Executor(jobs, dask) as executor:
        rows = _rows(executor, todo)
    if device == "gpu":
        rows = [_on_gpu(one, row) if row.ok else row for one, row in zip(todo, rows, strict=True)]
    if sort is not None:
        rows.sort(key=lambda row: _key(row, sort))
    heading = {
        "kernel": kernel, "target": entry.target, "problem": {"m": m, "n": n, "k": k}, "multiprocessors": slots,
        "device": device if run or device == "gpu" else None, "schedule": chosen if run else None,
        "predicted_on": machine,
    }  # fmt: skip
    if as_json:
        import json

        from ptxgen.cli.kernels import combinations

        print(json.dumps({**heading, "rows": [combinations.as_json(row) for row in rows]}, indent=2))
    elif as_csv:
        _print_csv(rows, list(values))
    else:
        _print_table(rows, values, heading)
    return OK if all(row.ok for row in rows if row.legal) else WRONG


def _require_machine(name: str, kernel: str, target: str) -> None:
    """Raises InputError unless the machine has a description and runs the target."""
    from ptxgen.instr.model.targets import parse_target, runs_on
    from ptxgen.timing import MACHINES

    described = MACHINES[choose("--time", name, list(MACHINES))]
    if not runs_on(parse_target(target), parse_target(described.target)):
        raise InputError(f"{kernel} is for {target}, which an {described.title} ({described.target}) does not run")


def _values(entry: KernelEntry, kernel: str, given: Sequence[str]) -> dict[str, list[str]]:
    """The values of each option. Raises InputError and PlanError for an option or a value that there is not."""
    from ptxgen.gemm import GemmConfig, parse_options

    found: dict[str, list[str]] = {}
    for each in given:
        name, equals, words = each.partition("=")
        if not equals:
            raise InputError(f"options are OPTION=VALUE,VALUE such as stages=4,5,6, not {each!r}")
        require_option(entry, kernel, name)
        if name in found:
            raise InputError(f"{name} is given twice; list its values with commas: {name}=VALUE,VALUE")
        found[name] = list(dict.fromkeys(words.split(",")))
        for value in found[name]:
            made = parse_options({name: value})
            if missing := [option for option in made if option not in entry.options]:
                require_option(entry, kernel, missing[0])
            GemmConfig(**made).require(entry.target)  # says which values the option takes
    if both := [name for name in _OPTIONS_OF_TILE if name in found and "tile" in found]:
        raise InputError(f"tile is short for {' and '.join(_OPTIONS_OF_TILE)}; leave out {both[0]}")
    return found


def _rows(executor: Executor, todo: Sequence[Combination]) -> list[Row]:
    """Evaluate combinations. Raises ToolNotFoundError: without ptxas there is none that could be evaluated."""
    from ptxgen.cli.kernels.combinations import Row, evaluate
    from ptxgen.toolchain import ToolNotFoundError

    made = []
    for outcome in executor.map(evaluate, todo, what="combinations"):
        if isinstance(outcome.error, ToolNotFoundError):
            raise outcome.error
        died = Row(outcome.item.options, "died", outcome.problem)
        made.append(outcome.value if outcome.value is not None else died)
    return made


def _on_gpu(one: Combination, row: Row) -> Row:
    """The row with what the GPU says, in a process of its own; what was predicted stays."""
    from ptxgen.executor import Executor

    with Executor(1) as executor:
        (made,) = _rows(executor, [replace(one, gpu=True)])
    return replace(
        made, predicted_us=row.predicted_us, predicted_tflops=row.predicted_tflops, bound_by=row.bound_by,
        reason=made.reason or row.reason,
    )  # fmt: skip


def _key(row: Row, sort: str) -> tuple[bool, Any]:
    """What to sort by: rows that have no such value last."""
    if sort in SORTS:
        named = {"shared": "shared_bytes", "tmem": "tmem_columns", "time": "seconds", "predicted": "predicted_us"}
        field = named.get(sort, sort)
        value = _spills(row) if sort == "spills" else getattr(row, field)
        return value is None, value or 0
    text = dict(row.options)[sort]
    parts = text.split("x")
    return False, (0, [int(each) for each in parts]) if all(map(str.isdigit, parts)) else (1, text)


def _spills(row: Row) -> int | None:
    return None if row.spill_stores is None else row.spill_stores + (row.spill_loads or 0)


def _print_csv(rows: Sequence[Row], options: Sequence[str]) -> None:
    import csv

    from ptxgen.cli.kernels.combinations import Row

    names = [name for name in Row.__dataclass_fields__ if name not in ("options", "reason")]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*options, *names, "reason"])
    for row in rows:
        shown = ["" if (value := getattr(row, name)) is None else value for name in names]
        writer.writerow([*(value for _, value in row.options), *shown, row.reason])


def _print_table(rows: Sequence[Row], options: dict[str, list[str]], heading: dict[str, Any]) -> None:
    """The table, with a column for each option that has several values; and below it why rows are not right.

    A terminal that is too narrow has a line for each figure instead.
    """
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    from ptxgen.cli.common.terminal import NARROW, grid, output

    timed = any(row.seconds is not None for row in rows)
    predicted = heading["predicted_on"] is not None
    ran = heading["device"] is not None
    heads = [
        "registers",
        "shared",
        "TMEM",
        "spills",
        "CTAs/SM",
        "tiles",
        "waves",
        *(["µs", "TFLOP/s"] if timed else []),
        *(["predicted µs", "TFLOP/s", "bound by"] if predicted else []),
    ]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    varied = [name for name, values in options.items() if len(values) > 1]
    for name in varied:
        table.add_column(name, style="cyan", no_wrap=True)
    for name in heads:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    body: list[list[str | Text]] = []
    for row in rows:
        cells = [
            row.registers, row.shared_bytes, row.tmem_columns, _spills(row), row.ctas_per_sm, row.tiles,
            None if row.waves is None else f"{row.waves:.2f}",
        ]  # fmt: skip
        if timed:
            cells += [
                None if row.seconds is None else f"{row.seconds * 1e6:.1f}",
                None if row.tflops is None else f"{row.tflops:.0f}",
            ]
        if predicted:
            cells += [
                None if row.predicted_us is None else f"{row.predicted_us:.1f}",
                None if row.predicted_tflops is None else f"{row.predicted_tflops:.0f}",
                row.bound_by or None,
            ]
        words, style = _verdict(row, "✓ correct" if ran else "✓")
        values = [value for name, value in row.options if name in varied]
        body.append([*values, *("-" if each is None else str(each) for each in cells), Text(words, style=style)])
        table.add_row(*body[-1])
    legal = [row for row in rows if row.legal]
    bad = sum(not row.ok for row in legal)
    size = "M {m}, N {n}, K {k}".format(**heading["problem"])
    how = f", run {heading['schedule']}" if heading["schedule"] else ""
    how += f", predicted for {heading['predicted_on']}" if predicted else ""
    same = "".join(f" {name}={value}" for name, (value, *others) in options.items() if not others)
    with output() as console:
        title = Text.assemble(
            (str(heading["kernel"]), "bold"), (same, "cyan"), f" for {heading['target']}, {size}{how}"
        )
        console.print(title)
        width = console.width
        needed = Measurement.get(console, console.options.update(width=1000), table).maximum
        if needed > width and (console.is_terminal or width < NARROW):
            for cells in body:
                fields = grid("dim", "")
                for name, cell in zip((*varied, *heads, ""), cells, strict=True):
                    fields.add_row(name, cell)
                console.print("", fields)
        else:
            console.width = max(width, needed)
            console.print(table)  # whole
            console.width = width
        for row in rows:
            if not row.ok or row.reason:
                words, style = _verdict(row, "✓")
                named = " ".join(f"{name}={value}" for name, value in row.options if name in varied)
                console.print(Text.assemble((f"{named} " if named else "", "cyan"), (f"{words}: ", style), row.reason))
        console.print(
            f"{len(rows)} combination{'s' * (len(rows) != 1)}: {len(legal)} legal, {len(rows) - len(legal)} illegal; "
            + (f"{bad} of the legal ones went wrong" if bad else "every legal one is clean")
            + f". Waves: tiles by the CTAs that {heading['multiprocessors']} multiprocessors hold.",
            style="red" if bad else "dim",
        )


def _verdict(row: Row, right: str) -> tuple[str, str]:
    """The last column of a row, and its style."""
    if row.ok:
        return right, "green"
    return (f"✗ {row.status}", "red") if row.legal else ("illegal", "yellow")
