"""`ptxgen assemble`: what ptxas says of a PTX file."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ptxgen.cli.common.options import PtxFile, Target
from ptxgen.cli.errors import OK, WRONG, InputError, nearest
from ptxgen.names import shown_name

if TYPE_CHECKING:
    from ptxgen.toolchain import Cubin


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="PTX files")(assemble)


def assemble(
    file: PtxFile,
    target: Target = None,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE.cubin", help="Output file of the cubin.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Assemble a PTX file with ptxas: registers, spills, shared memory, warnings."""
    from ptxgen.cli.common.files import known_target, parse_ptx, read_ptx, write_output
    from ptxgen.instr.model.targets import TARGETS
    from ptxgen.toolchain import AssemblerError, ptxas_version
    from ptxgen.toolchain import assemble as run_ptxas

    text = read_ptx(file, target)
    try:
        made = run_ptxas(text, known_target(target))
    except AssemblerError as error:
        unknown = any("option 'gpu-name'" in each.message for each in error.diagnostics)
        if unknown:
            raise InputError(
                f"ptxas {ptxas_version()} cannot target {error.target}{nearest(str(error.target), TARGETS)}"
            ) from None
        parse_ptx(text, file)  # what is not PTX at all has a place of its own, with column and caret
        if not as_json:
            raise
        _print_json({"file": file, "target": error.target, "ok": False, "diagnostics": error.diagnostics})
        return WRONG
    if output is not None:
        write_output(output, made.data)
    if as_json:
        _print_json(
            {
                "file": file,
                "target": made.target,
                "ok": True,
                "bytes": len(made.data),
                "written": output,
                "entries": made.entries,
                "diagnostics": [*made.warnings, *made.advisories],
            }
        )
    else:
        _show(file, made, output)
    return OK


def assembled(text: str, target: str) -> Cubin | None:
    """What ptxas makes of a kernel that a device will run; None where there is none, which the emulator can do without.

    Raises AssemblerError, and ToolNotFoundError where PTXGEN_PTXAS names no program.
    """
    from ptxgen.toolchain import ToolNotInstalledError
    from ptxgen.toolchain import assemble as run_ptxas

    try:
        return run_ptxas(text, target)
    except ToolNotInstalledError:
        return None


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, indent=2, default=asdict))


def _show(file: str, made: Cubin, output_path: str | None) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from ptxgen.cli.common.terminal import grid, output

    written = f", written to {output_path}" if output_path else ""
    with output() as out:
        head = f"{file}: assembled for {made.target}, {len(made.data)} bytes of cubin{written}"
        out.print(Text(head), soft_wrap=True)
        for entry in made.entries:
            table = grid("cyan", "")
            table.add_row("registers", f"{entry.registers} a thread")
            table.add_row("spills", spills(entry.spill_stores, entry.spill_loads))
            table.add_row("stack", f"{entry.stack_bytes} bytes a thread")
            table.add_row("shared", f"{entry.shared_bytes} bytes a CTA, dynamic shared memory not counted")
            out.print(Text(f"  {shown_name(entry.name)}", style="bold"))
            out.print(Padding(table, (0, 0, 0, 4)))
        for each in (*made.warnings, *made.advisories):
            out.print(Text(f"  {each}", style="yellow" if each.severity == "warning" else ""), soft_wrap=True)
        if not made.warnings:
            out.print("  no warnings")


def spills(stores: int, loads: int) -> str:
    """What ptxas spilled, in words."""
    return f"{stores} bytes stored, {loads} bytes loaded a thread" if stores or loads else "none"
