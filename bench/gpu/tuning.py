"""The tuning table: the fastest of our kernels on every row that was measured, as ptxgen.gemm.dispatch reads it.

A row for dependent launches is there where they are faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.gpu.records import Record
from ptxgen.gemm.dispatch import FOLDER, machine_of

_HEAD = """\
# What was fastest on a GPU, by `make tune`: do not edit. A row is C = A·Bᵀ with A of M×K and B of N×K; microseconds of
# one launch among launches of the same. `dependent`: for programmatic dependent launches.
"""


def table(records: Sequence[Record]) -> str:
    """The table as TOML."""
    machine = records[-1].machine
    lines = [_HEAD] + [f'{name} = "{machine[name]}"' for name in ("device", "driver", "date")]
    for record in records:
        if record.row.dtype in ("bf16", "f16"):
            lines += _rows(record)
    return "\n".join(lines) + "\n"


def _rows(record: Record) -> Iterable[str]:
    row = record.row
    for kind in ("ptxgen", "ptxgen dependent"):
        figure = record.figures.get(kind)
        if figure is None or (kind != "ptxgen" and figure.us >= record.figures["ptxgen"].us):
            continue
        kernel, *options = figure.name.split()
        options = [each for each in options if not each.startswith(("dtype=", "dependent="))]
        shown = ", ".join(f'"{each}"' for each in options)
        yield ""
        yield "[[row]]"
        yield f"shape = [{row.m}, {row.n}, {row.k}]"
        yield f'dtype = "{row.dtype}"'
        if kind != "ptxgen":
            yield "dependent = true"
        yield f'kernel = "{kernel}"'
        yield f"options = [{shown}]"
        yield f"us = {figure.us}"


def write(records: Sequence[Record]) -> Path:
    """Write the table of the records' GPU; its path."""
    path = FOLDER / f"{machine_of(records[-1].machine['device']).name}.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(table(records))
    return path
