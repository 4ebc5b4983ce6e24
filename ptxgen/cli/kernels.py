"""`ptxgen kernels` lists the kernels, `ptxgen build` prints the PTX of one."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ptxgen.cli.options import CONFIG_HELP, CDType, DType, KernelName, MTile, NTile, make_plan


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Kernels")(kernels)
    app.command(rich_help_panel="Kernels")(build)


def kernels() -> None:
    """List the kernels and what can be chosen about them."""
    from rich.padding import Padding

    from ptxgen.cli.terminal import grid, output
    from ptxgen.kernels import KERNELS

    table = grid("cyan", "", "dim")
    for row in CONFIG_HELP:
        table.add_row(*row)
    with output() as out:
        for entry in KERNELS.values():
            out.print(f"[bold]{entry.name}[/]  [dim]{entry.target}[/]")
            out.print(Padding(entry.summary, (0, 0, 1, 2)))
        out.print("[bold]options[/] of 'ptxgen build' and 'ptxgen run'")
        out.print(Padding(table, (0, 0, 0, 2)))


def build(
    kernel: KernelName,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE.ptx", help="Where to write; else printed.", show_default=False),
    ] = None,
    dtype: DType = "bf16",
    c_dtype: CDType = None,
    m_tile: MTile = 128,
    n_tile: NTile = 128,
) -> None:
    """Plan and render a kernel: its PTX, which takes any problem size."""
    from ptxgen.cli.files import write_output

    plan = make_plan(kernel, dtype, c_dtype, m_tile, n_tile)
    data = plan.text.encode()
    if output is None:
        sys.stdout.write(plan.text)
        return
    write_output(output, data)
    print(f"{output}: {plan.entry} for {plan.target}, {plan.text.count(chr(10))} lines, {len(data)} bytes")
