"""The planner's ranking beside the measured one: how much slower its first choice is than the fastest measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.gpu.arms import Spec
from bench.gpu.records import Record
from bench.gpu.report import markdown
from ptxgen.gemm.dispatch import GEMV, Choice, rank
from ptxgen.timing import MACHINES


@dataclass(frozen=True)
class Regret:
    """Of a row: candidates that were measured, the planner's first of them and the fastest, in microseconds."""

    record: Record
    count: int
    first: tuple[str, float]
    best: tuple[str, float]

    @property
    def value(self) -> float:
        return self.first[1] / self.best[1] - 1


def regret_of(record: Record) -> Regret | None:
    """The regret of a row; None where fewer than two configurations of its model were measured."""
    row = record.row
    if row.dtype == "e4m3":
        return None
    measured = {name: us for name, us in record.candidates if not name.startswith(GEMV) and "dependent" not in name}
    if len(measured) < 2:
        return None
    names = {}
    for name in measured:
        choice = Choice(Spec.named(name).plan(), row.m, row.n, row.k)
        names[id(choice)] = (choice, name)
    ranked = rank([choice for choice, _ in names.values()], MACHINES["h200"])
    first = names[id(ranked[0])][1]
    best = min(measured, key=lambda name: measured[name])
    return Regret(record, len(measured), (first, measured[first]), (best, measured[best]))


def ranking(records: Sequence[Record]) -> str:
    """The table: the mean regret, then the rows with the largest."""
    found = [each for each in map(regret_of, records) if each is not None]

    def rows() -> Iterator[Sequence[object]]:
        for each in sorted(found, key=lambda each: -each.value)[:20]:
            row = each.record.row
            yield (
                f"{row.dtype} {row.m}×{row.n}×{row.k}", each.count, f"`{each.first[0]}`", f"{each.first[1]:.1f}",
                f"`{each.best[0]}`", f"{each.best[1]:.1f}", f"{each.value:.1%}",
            )  # fmt: skip

    mean = statistics.fmean(each.value for each in found)
    right = sum(each.value <= 0.02 for each in found)
    words = (
        f"{len(found)} rows: the planner's first choice is {mean:.1%} slower than the fastest in the mean, and within "
        f"2 % of it in {right}. The rows with the largest regret:\n\n"
    )
    return words + markdown(("row", "measured", "planner's first", "µs", "fastest", "µs", "regret"), rows())
