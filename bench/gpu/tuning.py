"""The tuning table: a kernel for every row that was measured, as ptxgen.gemm.selection.dispatch reads it.

Of the kernels that are as fast as the fastest, within the noise, the one whose options most rows share: fewer kinds of
kernels to load, and to judge. A row for dependent launches is there where they are faster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.gpu.records import Record
from ptxgen.gemm.selection.dispatch import FOLDER, forecast, machine_of

_HEAD = """\
# What was fastest on a GPU, by `make tune`: do not edit. A row is C = A·Bᵀ with A of M×K and B of N×K; microseconds of
# one launch among launches of the same. `dependent`: for programmatic dependent launches.
"""


#: Times that differ by less are equal: half the distance of a row's quartiles is as much in the median of the rows.
_TIE = 1.005
#: A kernel of the forecast that should take less than this part of the measured time is taken instead.
_CLEARLY = 0.95
#: Options whose value is a size: kernels that differ in these alone are of one kind.
_SIZES = ("n_tile", "stages", "slots")


def table(records: Sequence[Record]) -> str:
    """The table as TOML."""
    machine = records[-1].machine
    lines = [_HEAD] + [f'{name} = "{machine[name]}"' for name in ("device", "driver", "date")]
    rows = [record for record in records if record.row.dtype in ("bf16", "f16")]
    chosen = _fewest_kinds([_equals(record, dependent) for record in rows for dependent in (False, True)])
    for record, plain, dependent in zip(rows, chosen[::2], chosen[1::2], strict=True):
        lines += _row(record, plain)
        if dependent is not None and plain is not None and dependent[1] < plain[1]:
            lines += _row(record, dependent)
    return "\n".join(lines) + "\n"


def fp8_table(records: Sequence[Record]) -> str:
    """The table of fp8 without scales, with promoted sums and without."""
    machine = records[-1].machine
    lines = [_HEAD] + [f'{name} = "{machine[name]}"' for name in ("device", "driver", "date")]
    for record in records:
        if record.row.dtype == "e4m3":
            for kind in ("ptxgen", "ptxgen promoted"):
                lines += _fp8_row(record, kind)
    return "\n".join(lines) + "\n"


def _fp8_row(record: Record, kind: str) -> Iterable[str]:
    """The row of an fp8 product, unless the forecast has a kernel that should be clearly faster."""
    figure, row = record.figures.get(kind), record.row
    if figure is None or "scales=" in figure.name:
        return []
    given = {"dtype": "e4m3", "c_dtype": "bf16", "promote": kind == "ptxgen promoted"}
    other = forecast(row.m, row.n, row.k, machine_of(record.machine["device"]).name, given)
    if other is not None and other.us < _CLEARLY * figure.us:
        return []
    return list(_row(record, (figure.name, figure.us)))


def _equals(record: Record, dependent: bool) -> dict[str, float]:
    """Kernels that are as fast as the fastest of a row, with their microseconds."""
    figure = record.figures.get("ptxgen dependent" if dependent else "ptxgen")
    if figure is None:
        return {}
    same = {name: us for name, us in record.candidates if ("dependent=true" in name) == dependent}
    return {name: us for name, us in same.items() if us <= figure.us * _TIE} | {figure.name: figure.us}


def _kind(name: str) -> str:
    """A kernel's options without its sizes, and without dependent launches."""
    return " ".join(each for each in name.split() if not each.startswith((*_SIZES, "dependent=")))


def _fewest_kinds(wanted: Sequence[dict[str, float]]) -> list[tuple[str, float] | None]:
    """One of each, of as few kinds as a greedy choice finds; None where there is none."""
    chosen: list[tuple[str, float] | None] = [None] * len(wanted)
    left = {number for number, equals in enumerate(wanted) if equals}
    while left:
        counts = Counter(kind for number in sorted(left) for kind in {_kind(name): 0 for name in wanted[number]})
        kind, _ = counts.most_common(1)[0]
        for number in sorted(left):
            of_kind = {name: us for name, us in wanted[number].items() if _kind(name) == kind}
            if of_kind:
                name = min(of_kind, key=lambda each: of_kind[each])
                chosen[number] = name, of_kind[name]
                left.remove(number)
    return chosen


def _row(record: Record, chosen: tuple[str, float] | None) -> Iterable[str]:
    if chosen is None:
        return
    row, (name, us) = record.row, chosen
    kernel, *options = name.split()
    shown = ", ".join(f'"{each}"' for each in options if not each.startswith(("dtype=", "c_dtype=", "dependent=")))
    yield ""
    yield "[[row]]"
    yield f"shape = [{row.m}, {row.n}, {row.k}]"
    yield f'dtype = "{row.dtype}"'
    if "dependent=true" in options:
        yield "dependent = true"
    yield f'kernel = "{kernel}"'
    yield f"options = [{shown}]"
    yield f"us = {us}"


def write(records: Sequence[Record]) -> Path:
    """Write the tables of the records' GPU; the path of that of 16-bit types."""
    path = FOLDER / f"{machine_of(records[-1].machine['device']).name}.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(table(records), encoding="utf-8")
    fp8 = [each for each in records if each.row.dtype == "e4m3"]
    if fp8:
        path.with_stem(f"{path.stem}-fp8").write_text(fp8_table(fp8), encoding="utf-8")
    return path
