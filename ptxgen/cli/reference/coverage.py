"""`ptxgen coverage`: what of the instruction set is declared, certified, emulated and microtested."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ptxgen.cli.errors import OK

#: Columns of the table, and the field of a row that each shows: as many as 80 characters hold.
_COLUMNS = {
    "declared": "declarations", "certified": "certified", "forms": "forms", "differ": "disagreements",
    "emulated": "emulated", "tested": "microtested", "recorded": "recorded", "silicon": "witnessed",
}  # fmt: skip

#: The table's width; on a narrower terminal each family has lines of its own.
_WIDTH = 78


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="PTX files")(coverage)


def coverage(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with missing instructions by name.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print docs/coverage.md.")] = False,
) -> int:
    """Show per family how many instruction forms are declared, certified against ptxas, emulated, and microtested."""
    from ptxgen.cli.common.terminal import output
    from ptxgen.coverage import coverage as gather
    from ptxgen.coverage import page, total

    rows = gather()
    if as_json:
        print(json.dumps([row.as_dict() for row in rows], indent=2))
        return OK
    if as_markdown:
        print(page(rows), end="")
        return OK
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    with output() as out:
        if out.width < _WIDTH:
            for row in [*rows, total(rows)]:
                counts = ", ".join(f"{name} {getattr(row, field):,}" for name, field in _COLUMNS.items())
                out.print(Text(row.family, style="cyan"))
                out.print(Padding(counts, (0, 0, 0, 2)))
            return OK
        table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
        table.add_column("family", style="cyan", no_wrap=True)
        for name in _COLUMNS:
            table.add_column(name, justify="right", no_wrap=True)
        for row in [*rows, total(rows)]:
            numbers = [f"{getattr(row, field):,}" for field in _COLUMNS.values()]
            table.add_row(row.family, *numbers, style="bold" if row.family == "all" else "")
        out.print(table)
        versions = total(rows).ptxas or "none yet"
        out.print(
            f"\ncertified against ptxas {versions}; lines 'differ' from it; 'tested': has a microtest; 'recorded': a "
            "GPU has answered one; 'silicon': of tcgen05, somebody has seen it on Blackwell; --markdown has more",
            soft_wrap=True,
        )
    return OK
