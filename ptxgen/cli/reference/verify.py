"""`ptxgen verify`: what a file of `python -m microtests --kit` settles."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ptxgen.cli.errors import OK, WRONG, InputError

if TYPE_CHECKING:
    from microtests.harness.verify import Report

#: Lines that a list shows before it is folded.
_SHOWN = 20


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="PTX files")(verify)


def verify(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File written by 'python -m microtests --kit' on a GPU.")
    ],
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help="Only microtests whose name starts with NAME; may be repeated."),
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", help="Processes; default: one per core.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Compare a GPU's answers with the emulator: which open questions they settle, and what differs.

    Needs a checkout, whose microtests the file answers. Exit code 1 where the emulator differs from the GPU.
    """
    try:
        kits = importlib.import_module("microtests.harness.kit")
        comparing = importlib.import_module("microtests.harness.verify")
    except ModuleNotFoundError as missing:
        raise InputError("verify needs the microtests of a checkout; run it there") from missing
    try:
        kit = kits.read(file)
    except kits.KitError as error:
        raise InputError(str(error)) from error

    def step(done: int, of: int) -> None:
        if sys.stderr.isatty():
            print(f"{done}/{of}", end="\r", file=sys.stderr, flush=True)

    report = comparing.compare(kit, only or (), step, jobs or os.cpu_count() or 1)
    if as_json:
        print(json.dumps(report.as_dict(), indent=2))
    else:
        _print(report)
    return OK if report.agrees else WRONG


def _print(report: Report) -> None:
    heading = report.heading
    print(", ".join(str(heading[name]) for name in ("device", "target", "driver", "date") if name in heading))
    if report.settled:
        print("\nQuestions")
        for each in report.settled:
            print(f"  {each.name}: {each.asks}")
            print(f"    {each.verdict}" + ("" if each.agrees else f"; the emulator has: {each.candidates[0]}"))
    items = report.open_items()
    if items:
        print("\nOpen until now (microtests that agree with the emulator, of those answered)")
        for what, agreeing, answered in items:
            print(f"  {what}: {agreeing:,} of {answered:,}")
    print(f"\n{len(report.equal):,} microtests agree, {len(report.differing):,} differ")
    _list(f"{name}: {message}" for name, message in report.differing)
    if report.unanswered:
        print(f"{len(report.unanswered):,} have no answer")
        _list(f"{name}: {message}" for name, message in report.unanswered)
    if report.tensormaps:
        counts = ", ".join(f"{count:,} {word}" for word, count in sorted(report.tensormaps.items()))
        print(f"tensormaps of this driver: {counts}")
        _list(iter(report.tensormaps_differing))


def _list(lines: Iterator[str]) -> None:
    for number, line in enumerate(lines):
        if number == _SHOWN and sys.stdout.isatty():
            print("  ... (--json has all)")
            return
        print(f"  {' '.join(line.split())}")
