"""`ptxgen assemble` and `ptxgen check`: what ptxas says of a PTX file, and what the instruction model says."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ptxgen.cli.common.options import PtxFile, Target
from ptxgen.cli.errors import OK, WRONG, InputError, nearest
from ptxgen.names import shown_name

if TYPE_CHECKING:
    from ptxgen.toolchain import Cubin


#: Seconds between two looks at a watched file.
_POLL = 0.1
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="PTX files")(assemble)
    app.command(rich_help_panel="PTX files")(check)


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

    text = read_ptx(file)
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


def check(
    file: PtxFile,
    target: Target = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Check again whenever the file changes, until Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Check every instruction of a PTX file: whether it is legal, and on the target, and why not."""
    if watch:
        if file == "-" or as_json:
            raise InputError(
                f"--watch is for a file and its words, not for {'--json' if as_json else 'standard input'}"
            )
        return _watch(file, target)
    return _check(file, target, as_json=as_json)


def _watch(file: str, target: str | None) -> NoReturn:
    """Check a file now, and whenever its time or size changes; it may be gone for a while, as editors do."""
    from ptxgen.cli.errors import report

    seen: object = ()
    while True:
        try:
            found = os.stat(file)
            now = found.st_mtime_ns, found.st_size
        except OSError:
            now = None
        if now != seen:
            seen = now
            print(time.strftime("%H:%M:%S"))
            try:
                _check(file, target, as_json=False)
            except InputError as error:
                report(error)
            sys.stdout.flush()
        time.sleep(_POLL)


def _check(file: str, target: str | None, *, as_json: bool) -> int:
    from rich.text import Text

    from ptxgen.cli.common.files import known_target, parse_ptx, read_ptx
    from ptxgen.cli.common.source import excerpt
    from ptxgen.cli.common.terminal import output
    from ptxgen.instr.model.check import check as diagnose

    text = read_ptx(file)
    module = parse_ptx(text, file)
    found = diagnose(module, known_target(target))
    errors = sum(each.severity == "error" for each in found)
    counts = ", ".join(
        f"{count} {word}{'s' * (count != 1)}"
        for count, word in ((errors, "error"), (len(found) - errors, "warning"))
        if count
    )
    wanted = target or module.target or "any target"
    if as_json:
        rows = [{**asdict(each), "nearest": each.nearest, "message": each.message} for each in found]
        _print_json({"file": file, "target": wanted, "ok": not errors, "diagnostics": rows})
        return WRONG if errors else OK
    with output() as out:
        for each in found:
            head = Text(f"{file}:{each.line}:{each.column}: ")
            head.append(each.severity, style="bold red" if each.severity == "error" else "bold yellow")
            head.append(f": {each.message} [{each.code}]")
            out.print(head, soft_wrap=True)
            for line in excerpt(text, [each.line], caret=each.column, end=each.end_column, width=out.width):
                out.print(Text(line, style="dim"), soft_wrap=True)
        out.print(Text(f"{file}: {counts}" if found else f"{file}: legal for {wanted}"), soft_wrap=True)
    return WRONG if errors else OK
