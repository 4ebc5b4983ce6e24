"""`ptxgen kernels` lists the kernels or the options of one, `ptxgen build` prints the PTX of one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ptxgen.cli.common import completion
from ptxgen.cli.common.options import CDType, DType, KernelName, Settings, find_any, plan_any
from ptxgen.cli.errors import InputError

if TYPE_CHECKING:
    from ptxgen.catalog import Entry


#: Columns from which on the options are a table.
_WIDE = 70


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Kernels")(kernels)
    app.command(rich_help_panel="Kernels")(build)


def kernels(
    kernel: Annotated[
        str | None,
        typer.Argument(
            metavar="[KERNEL]",
            help="Show the options of this kernel.",
            show_default=False,
            autocompletion=completion.kernel_names,
        ),
    ] = None,
    copy: Annotated[
        str | None,
        typer.Option(
            "--copy",
            metavar="FOLDER",
            help="Start your own kernel: copy its template, with a ladder.toml that names it.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print names, rungs and options as JSON.")] = False,
) -> None:
    """List the kernels, or what can be chosen about one and what it adds to the rung before it."""
    from rich.markup import escape
    from rich.padding import Padding

    from ptxgen.catalog import kernels as packaged
    from ptxgen.cli.common.terminal import grid, output, pairs
    from ptxgen.gemm.ladder import LARGE

    entries = list(packaged().values()) if kernel is None else [find_any(kernel)]
    if copy is not None:
        if as_json:
            raise InputError("--json lists kernels, and --copy starts one: leave out --json")
        _copy(entries[0] if kernel is not None else None, copy)
        return
    if as_json:
        import json

        made = [_described(entry) for entry in entries]
        print(json.dumps(made if kernel is None else made[0], indent=2))
        return
    with output() as out:
        for entry in entries:
            out.print(f"[bold]{entry.name}[/]  [dim]{entry.target}  {', '.join(entry.rungs)}[/]")
            out.print(Padding(escape(entry.summary), (0, 0, 0, 2)))
        if kernel is None:
            out.print(
                "\n[dim]ptxgen kernels KERNEL shows options, 'ptxgen run KERNEL --set OPTION=VALUE' takes them[/]"
            )
            return
        [entry] = entries
        rows = pairs(out)
        if entry.parent:
            rows.add_row("from", entry.parent)
            rows.add_row("adds", ", ".join(f"{name}={value}" for name, value in entry.changes.items()) or "a template")
        if entry.large:
            words = ", ".join(f"{name}={value}" for name, value in entry.large.items())
            rows.add_row("large problems", f"{words} where M, N and K are all at least {LARGE}")
        rows.add_row("template", entry.template.name)
        for who, said in (("the article's choice", entry.article), ("ours", entry.ours)):
            if said:
                rows.add_row(who, escape(said))
        out.print(Padding(rows, (0, 0, 1, 2)))
        short = "; tile=MxN is short for m_tile and n_tile" if "m_tile" in entry.options else ""
        out.print(f"[bold]options[/], their defaults and values{short}")
        table = grid("cyan", "bold", "", "dim")
        for name, option in entry.described().items():
            default, values, help = _shown(option["default"]), _values(option), escape(option["help"])
            if out.width >= _WIDE:
                table.add_row(name, default, values, help)
            else:
                out.print(Padding(f"[cyan]{name}[/] [bold]{default}[/] {values}", (0, 0, 0, 2)))
                out.print(Padding(f"[dim]{help}[/]", (0, 0, 0, 4)))
        if out.width >= _WIDE:
            out.print(Padding(table, (0, 0, 0, 2)))


#: The ladder of a folder that `--copy` starts.
_LADDER = """\
[[rung]]
name = "mine"
from = "{entry.name}"
template = "{template}"
summary = "a kernel of my own"
set = {{ }}
"""


def _copy(entry: Entry | None, folder: str) -> None:
    """Copy a kernel's template to a folder, with a ladder.toml that names it. Raises InputError; replaces no file."""
    from ptxgen.builder import KERNELS_FOLDER
    from ptxgen.cli.common.files import reason

    if entry is None:
        raise InputError("--copy takes the name of one kernel: ptxgen kernels KERNEL --copy FOLDER")
    source = (entry.template.folder or KERNELS_FOLDER) / entry.template.name
    made = {Path(folder) / source.name: source.read_text(encoding="utf-8")}
    made[Path(folder) / "ladder.toml"] = _LADDER.format(entry=entry, template=source.name)
    if existing := [str(path) for path in made if path.exists()]:
        raise InputError(f"{' and '.join(existing)} already there; --copy replaces no file")
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for path, text in made.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {folder}: {reason(error)}") from None
    print(f"{folder}: {', '.join(path.name for path in made)}; run it: ptxgen run {folder}#mine")


def _described(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "target": entry.target,
        "summary": entry.summary,
        "rungs": list(entry.rungs),
        "from": entry.parent,
        "changes": entry.changes,
        "large": entry.large,
        "options": entry.described(),
    }


def _shown(value: object) -> str:
    from ptxgen.options import as_text

    return "-" if value == "" else as_text(value)


def _values(option: dict[str, Any]) -> str:
    if "choices" in option:
        return "|".join(_shown(each) for each in option["choices"] if each != "")
    first, last, step = option["range"]
    return f"{first}..{last}" + (f" step {step}" if step > 1 else "")


def build(
    kernel: KernelName,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE.ptx", help="Output file; default: stdout.", show_default=False),
    ] = None,
    settings: Settings = [],  # noqa: B006  (typer's way to say many)
    dtype: DType = None,
    c_dtype: CDType = None,
) -> None:
    """Plan and render a kernel: its PTX, which takes any problem size; or the PTX of a Python file's job."""
    from ptxgen.cli.common.files import write_output

    if kernel.endswith(".py"):
        _build_file(kernel, output, given=[*settings, *filter(None, (dtype, c_dtype))])
        return
    plan = plan_any(kernel, settings, dtype, c_dtype)
    data = plan.text.encode()
    if output is None:
        sys.stdout.write(plan.text)
        return
    write_output(output, data)
    print(f"{output}: {plan.entry} for {plan.target}, {plan.text.count(chr(10))} lines, {len(data)} bytes")


def _build_file(path: str, output: str | None, given: list[str]) -> None:
    """Write the PTX of a Python file. Raises InputError, JobError."""
    from ptxgen.cli.common.files import python_ptx, write_output

    if given:
        raise InputError(f"{path} has no options of ours to set: leave out {given[0]}")
    text = python_ptx(path)
    if output is None:
        sys.stdout.write(text)
        return
    write_output(output, text.encode())
    print(f"{output}: {text.count(chr(10))} lines, {len(text.encode())} bytes")
