"""The planner's ranking beside the measured one: how much slower its first choice is than the fastest measured."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.gpu.arms import Spec
from bench.gpu.records import Record
from bench.gpu.report import markdown
from bench.gpu.suite import Row
from ptxgen.gemm import PlanError, find
from ptxgen.gemm.prediction.estimate import Estimate
from ptxgen.gemm.selection.dispatch import GEMV, Choice, planned, rank
from ptxgen.timing import MACHINES


@dataclass(frozen=True)
class Regret:
    """Of a row: candidates that were measured, the planner's first of them and the fastest, in microseconds.

    `errors`: predicted over measured time of each, as a logarithm.
    """

    record: Record
    count: int
    first: tuple[str, float]
    best: tuple[str, float]
    errors: tuple[float, ...] = ()

    @property
    def value(self) -> float:
        return self.first[1] / self.best[1] - 1


def measured_times(record: Record) -> dict[str, float]:
    """Microseconds of the configurations of its model that were measured: no GEMV, no dependent launches."""
    return {name: us for name, us in record.candidates if not name.startswith(GEMV) and "dependent" not in name}


def regret_of(record: Record) -> Regret | None:
    """The regret of a row; None where fewer than two configurations of its model were measured."""
    row, machine = record.row, MACHINES["h200"]
    measured = measured_times(record)
    if row.dtype == "e4m3" or len(measured) < 2:
        return None
    names: dict[int, str] = {}
    choices, errors = list[Choice](), list[float]()
    for name, us in measured.items():
        choice = Choice(Spec.named(name).plan(), row.m, row.n, row.k)
        problem = choice.problem()
        estimate = Estimate.of(choice.plan, machine, problem.m, problem.n, problem.k)
        choices.append(choice)
        names[id(choice)] = name
        errors.append(math.log(estimate.microseconds / us))
    first = names[id(rank(choices, machine)[0])]
    best = min(measured, key=lambda name: measured[name])
    return Regret(record, len(measured), (first, measured[first]), (best, measured[best]), tuple(errors))


def planned_names(rows: Sequence[Row]) -> dict[str, list[str]]:
    """The planner's choice for each row, whatever was measured, by the row's key; of fp8 also with `promote=false`."""
    made: dict[str, list[str]] = {}
    for row in rows:
        fp8 = row.dtype in ("e4m3", "e5m2")
        for more in ({"c_dtype": "bf16"}, {"c_dtype": "bf16", "promote": False}) if fp8 else ({},):
            try:
                plan = planned(row.m, row.n, row.k, MACHINES["h200"], {"dtype": row.dtype, **more}).plan
            except PlanError:  # no kernel takes the row
                continue
            name = Spec(plan.name, tuple(find(plan.name).settings(plan.config))).name
            made.setdefault(row.key, []).append(name)
    return made


def regret_of_planned(records: Sequence[Record], names: Mapping[str, Sequence[str]]) -> str:
    """How much slower the kernels of these names are than the fastest measured ones of their rows, the GEMV included.

    A line for each row, then the means. fp8 with promoted sums is compared with others of that kind.
    """
    lines, regrets, missing = list[str](), dict[str, list[float]](), list[str]()
    for record in records:
        times = {name: us for name, us in record.candidates if "dependent" not in name}
        for name in names.get(record.row.key, ()):
            fast = "promote=false" in name
            same = {each: us for each, us in times.items() if ("promote=false" in each) == fast}
            if name not in times:
                missing.append(f"{record.row.key}: {name}")
                continue
            best = min(same, key=lambda each: same[each])
            regrets.setdefault(record.row.dtype, []).append(times[name] / same[best] - 1)
            lines.append(
                f"{record.row.key:24} {times[name]:9.2f} {same[best]:9.2f} {times[name] / same[best] - 1:7.1%}  "
                f"{name} | {best}"
            )
    lines += [f"not measured: {each}" for each in missing]
    for dtype, values in regrets.items():
        right = sum(each <= 0.02 for each in values)
        lines.append(
            f"{dtype}: {len(values)} rows, regret {statistics.fmean(values):.2%} in the mean, {right} within 2 %"
        )
    return "\n".join(lines)


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
    errors = [error for each in found for error in each.errors]
    spread = math.sqrt(statistics.fmean(error**2 for error in errors))
    words = (
        f"{len(found)} rows: the planner's first choice is {mean:.1%} slower than the fastest in the mean, and within "
        f"2 % of it in {right}. Its times are {spread:.1%} off (root mean square of {len(errors)}). The rows with the "
        f"largest regret:\n\n"
    )
    return words + markdown(("row", "measured", "planner's first", "µs", "fastest", "µs", "regret"), rows())
