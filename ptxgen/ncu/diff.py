"""`compare`: matches the launches of two reports and sorts their differences by what explains the difference in time.

Every figure that stands for work (bytes, wavefronts, instructions, a share of a pipe) is turned into cycles at the peak
rate of its unit, and every stall reason into the cycles that an average warp stands in it. That makes their differences
comparable with the difference in elapsed cycles. It is an estimate: units overlap, so the shares do not add up to 1.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from statistics import median
from typing import Literal

from ptxgen.ncu.curated import BY_KEY, CYCLES, DURATION, FIGURES, Figure, Section, stalls
from ptxgen.ncu.schema import JsonValue, Launch, Report, ReportError, shortened
from ptxgen.ncu.units import Quantity

#: Relative differences up to this are noise, where repeats do not say more.
THRESHOLD = 0.02
#: Differences that stand for less of the elapsed cycles are not significant: large and small relative ones.
_IMPACT, _LARGE, _LARGE_IMPACT = 0.02, 0.25, 0.0025
#: Stalls move between reasons without a change in time, up to this share of the cycles.
_STALL_NOISE = 0.10
#: Percentages differ by more than so many points, or not at all.
_POINTS = 3.0
_CLOCK = 0.01
#: From this share of its peak on, in percent, a unit bounds a kernel.
_BOUND = 60.0
_NAMED = 6


@dataclass(frozen=True, slots=True)
class Change:
    """One figure in both reports: medians over repeats, in base units.

    `noise` is the relative spread over repeats (0 without any). `cycles` is the difference, b less a, in cycles of the
    launch, None where it stands for none; `share` is that over the difference in elapsed cycles, None where time is the
    same.
    """

    key: str
    label: str
    section: Section | Literal["stall", "metric"]
    metric: str
    a: float
    b: float
    unit: str
    noise: float = 0.0
    significant: bool = False
    cycles: float | None = None
    share: float | None = None

    @property
    def ratio(self) -> float | None:
        """b over a, None if a is 0."""
        return self.b / self.a if self.a else None

    def to_json(self) -> dict[str, JsonValue]:
        return {
            "key": self.key,
            "label": self.label,
            "section": self.section,
            "metric": self.metric,
            "a": self.a,
            "b": self.b,
            "unit": self.unit,
            "ratio": self.ratio,
            "noise": self.noise,
            "significant": self.significant,
            "cycles": self.cycles,
            "share": self.share,
        }


@dataclass(frozen=True)
class Pair:
    """Launches of one kernel in both reports; several are repeats of each other.

    `time` is the relative difference in time that the SM clock does not explain, and `slower` None where that is noise.
    `changes` are sorted; `others` are additional metrics, on request.
    """

    name: str
    a: Sequence[Launch]
    b: Sequence[Launch]
    duration: Change | None
    cycles: Change | None
    time: float
    slower: bool | None
    clock: tuple[float, float] | None
    shapes: Sequence[tuple[str, str, str]]
    changes: Sequence[Change]
    others: Sequence[Change] = ()
    gaps: Sequence[str] = ()

    @property
    def significant(self) -> list[Change]:
        return [each for each in self.changes if each.significant]

    @property
    def same(self) -> bool:
        return not self.significant and not self.gaps and not self.shapes and self.slower is None

    def to_json(self) -> dict[str, JsonValue]:
        return {
            "kernel": self.name,
            "launches": [[each.index for each in self.a], [each.index for each in self.b]],
            "same": self.same,
            "time": self.time,
            "duration": self.duration.to_json() if self.duration is not None else None,
            "cycles": self.cycles.to_json() if self.cycles is not None else None,
            "sm_clock": list(self.clock) if self.clock is not None else None,
            "shapes": [[what, a, b] for what, a, b in self.shapes],
            "changes": [each.to_json() for each in self.changes],
            "metrics": [each.to_json() for each in self.others],
            "gaps": list(self.gaps),
        }


@dataclass(frozen=True)
class Comparison:
    """Two reports. `notes` say what limits the comparison; gaps, in the pairs too, make reports not the same."""

    a: Report
    b: Report
    pairs: Sequence[Pair]
    only_a: Sequence[Launch]
    only_b: Sequence[Launch]
    notes: Sequence[str]
    #: Differing parts of the profiled command lines, as (A, B); None if equal or unknown.
    commands: tuple[str, str] | None = None

    @property
    def same(self) -> bool:
        """No significant difference, nothing that only one report has."""
        return not self.only_a and not self.only_b and all(pair.same for pair in self.pairs)

    def to_json(self) -> dict[str, JsonValue]:
        return {
            "a": {"path": self.a.path, "version": self.a.version},
            "b": {"path": self.b.path, "version": self.b.version},
            "same": self.same,
            "pairs": [each.to_json() for each in self.pairs],
            "only_a": [{"name": each.name, "index": each.index} for each in self.only_a],
            "only_b": [{"name": each.name, "index": each.index} for each in self.only_b],
            "commands": list(self.commands) if self.commands is not None else None,
            "notes": list(self.notes),
        }


def compare(
    a: Report,
    b: Report,
    *,
    by_order: bool = False,
    threshold: float = THRESHOLD,
    metrics: re.Pattern[str] | None = None,
) -> Comparison:
    """Compare two reports. `metrics` adds every metric whose name matches; `by_order` ignores the names of kernels.

    Raises ReportError where they cannot be compared: other GPUs, no kernel in both.
    """
    notes = list(_notes(a, b))
    groups, only_a, only_b = _matched(a, b, by_order=by_order)
    pairs = [_pair(one, other, threshold, metrics) for one, other in groups]
    pairs.sort(key=lambda pair: -_gained(pair))
    return Comparison(a, b, pairs, only_a, only_b, notes, _commands(a.command, b.command))


def _commands(a: str, b: str) -> tuple[str, str] | None:
    """The words of two command lines that only one has."""
    one, other = a.split(), b.split()
    if not one or not other or one == other:
        return None
    return " ".join(word for word in one if word not in other), " ".join(word for word in other if word not in one)


def _gained(pair: Pair) -> float:
    """How much time a pair differs by, in ns (cycles where there is no duration)."""
    change = pair.duration or pair.cycles
    return abs(change.b - change.a) * len(pair.a) if change is not None and pair.slower is not None else 0.0


# What is compared with what.


def _notes(a: Report, b: Report) -> Iterator[str]:
    """What limits the comparison. Raises ReportError for other GPUs."""
    for what in ("capability", "name"):
        one, other = ({value for each in report.launches if (value := getattr(each.device, what))} for report in (a, b))
        if one and other and one != other:
            left, right = (" and ".join(sorted({str(each.device) for each in report.launches})) for report in (a, b))
            raise ReportError(f"the reports are of different GPUs: A is of {left}, B of {right}")
        if not one or not other:
            side = "neither report says" if not one and not other else f"{'A' if not one else 'B'} does not say"
            yield f"{side} which {'GPU' if what == 'name' else 'compute capability'} it is of"
    if a.version and b.version:
        if a.version != b.version:
            yield f"measured by different versions of ncu: A {a.version}, B {b.version}; names and meanings may differ"
    else:
        sides = [side for side, report in (("A", a), ("B", b)) if not report.version]
        yield f"no version of ncu in {' and '.join(sides)} (a CSV page has none)"
    if a.driver and b.driver and a.driver != b.driver:
        yield f"different drivers: A {a.driver}, B {b.driver}"
    locked = [{each.clocks.locked for each in report.launches} for report in (a, b)]
    if locked[0] != locked[1] and None not in locked[0] | locked[1]:
        yield "ncu locked the clocks in one of them only"
    if a.page != b.page:
        yield f"A is read from {_page(a)}, B from {_page(b)}"


def _page(report: Report) -> str:
    return "a .ncu-rep file" if report.page == "ncu-rep" else f"the {report.page} page"


_Group = tuple[list[Launch], list[Launch]]


def _matched(a: Report, b: Report, *, by_order: bool) -> tuple[list[_Group], list[Launch], list[Launch]]:
    """Launches of the same kernel, and those that only one report has. Raises ReportError if nothing matches."""
    if by_order:
        return _in_order(list(a.launches), list(b.launches))
    names = [name for name in a.kernels if name in b.kernels]
    if not names:
        left, right = (", ".join(shortened(name) for name in report.kernels[:_NAMED]) for report in (a, b))
        raise ReportError(
            f"the reports are of different kernels: A has {left}; B has {right}; --by-order compares their launches "
            "all the same"
        )
    groups: list[_Group] = []
    only_a = [each for each in a.launches if each.name not in names]
    only_b = [each for each in b.launches if each.name not in names]
    for name in names:
        one, other = ([each for each in report.launches if each.name == name] for report in (a, b))
        shapes = list(dict.fromkeys(map(_shape, one)))
        if set(shapes) == set(map(_shape, other)):
            groups += [
                ([x for x in one if _shape(x) == shape], [y for y in other if _shape(y) == shape]) for shape in shapes
            ]
            continue
        found, left, right = _in_order(one, other)
        groups += found
        only_a += left
        only_b += right
    return groups, only_a, only_b


def _shape(launch: Launch) -> tuple[object, ...]:
    return launch.grid, launch.block  # not the cluster, which the details page does not have


def _in_order(one: Sequence[Launch], other: Sequence[Launch]) -> tuple[list[_Group], list[Launch], list[Launch]]:
    both = list(zip_longest(one, other))
    return (
        [([x], [y]) for x, y in both if x is not None and y is not None],
        [x for x, y in both if y is None],
        [y for x, y in both if x is None],
    )


# Figures.


@dataclass(frozen=True, slots=True)
class _Values:
    """A figure over the repeats of both sides."""

    a: list[Quantity]
    b: list[Quantity]

    @property
    def middle(self) -> tuple[float, float]:
        return median(each.value for each in self.a), median(each.value for each in self.b)

    @property
    def resolution(self) -> float:
        return max(each.resolution for each in self.a) + max(each.resolution for each in self.b)

    @property
    def noise(self) -> float:
        """The relative spread: of the ratios where repeats come in pairs, else the larger one of both sides."""
        a, b = ([each.value for each in side] for side in (self.a, self.b))
        if len(a) == len(b) and all(a):
            ratios = [y / x for x, y in zip(a, b, strict=True)]
            return max(ratios) - min(ratios)
        return max((max(side) - min(side)) / abs(median(side)) if median(side) else 0.0 for side in (a, b))

    def relative(self) -> float:
        """b over a, less 1; infinite from 0 to something."""
        a, b = self.middle
        if abs(b - a) <= self.resolution:
            return 0.0
        return b / a - 1 if a else math.copysign(math.inf, b - a)


def _pair(a: Sequence[Launch], b: Sequence[Launch], threshold: float, metrics: re.Pattern[str] | None) -> Pair:
    gaps = list(_gaps(a, b))
    if len(a) != len(b):
        gaps.append(f"A has {len(a)} launches of it, B {len(b)}: all are compared as repeats")
    duration, cycles = _timed("duration", a, b, DURATION), _timed("cycles", a, b, CYCLES)
    clocks = [[each.clocks.sm for each in side if each.clocks.sm is not None] for side in (a, b)]
    clock = (median(clocks[0]), median(clocks[1])) if all(clocks) else None
    time = _time(duration, cycles, clock, bound_by_sm=all(_bound_by_sm(each) for each in (*a, *b)))
    noise = max((each.noise for each in (duration, cycles) if each is not None), default=0.0)
    slower = None if abs(time) <= max(threshold, noise) else time > 0
    elapsed = cycles.a if cycles is not None else None
    difference = cycles.b - cycles.a if cycles is not None and slower is not None else None
    judge = _Judge(threshold, elapsed, difference)
    changes = [
        found
        for figure in FIGURES
        if figure.section != "time" and (found := _figure(figure, a, b, judge, gaps)) is not None
    ]
    changes += _stalls(a, b, judge)
    sign = -1.0 if slower is False else 1.0
    changes.sort(key=lambda each: _rank(each, sign))
    name = a[0].name if a[0].name == b[0].name else f"{shortened(a[0].name, 46)} -> {shortened(b[0].name, 46)}"
    return Pair(
        name,
        a,
        b,
        duration,
        cycles,
        time,
        slower,
        clock,
        list(_shapes(a[0], b[0])),
        changes,
        list(_others(a, b, metrics, threshold)) if metrics is not None else (),
        gaps,
    )


def _rank(change: Change, sign: float) -> tuple[bool, float, float]:
    """What explains the difference in time comes first, then what differs most."""
    ratio = change.ratio
    size = abs(math.log(ratio)) if ratio is not None and ratio > 0 else math.inf if change.a != change.b else 0.0
    return not change.significant, -(change.cycles or 0.0) * sign, -size


def _timed(key: str, a: Sequence[Launch], b: Sequence[Launch], names: tuple[str, ...]) -> Change | None:
    """Duration or cycles. The metric is one that both have, where there is one."""
    both = [name for name in names if all(each.quantity(name) is not None for each in (*a, *b))]
    values = _values(a, b, lambda launch: launch.quantity(*(both or names)))
    if values is None:
        return None
    one, other = values.middle
    label = "duration" if key == "duration" else "elapsed cycles"
    return Change(key, label, "time", (both or names)[0], one, other, values.a[0].unit, values.noise)


def _time(
    duration: Change | None, cycles: Change | None, clock: tuple[float, float] | None, *, bound_by_sm: bool
) -> float:
    """The relative difference in time that the clock does not explain.

    At one clock duration and cycles say the same, else the larger one counts. At two it is the cycles' of a kernel that
    the SMs bound; any other waits for memory, whose time in ns does not follow the SM clock: what duration and cycles
    agree on, the smaller one.
    """
    found = [each.b / each.a - 1 for each in (duration, cycles) if each is not None and each.a]
    if not found:
        return 0.0
    if clock is None or abs(clock[1] / clock[0] - 1) <= _CLOCK:
        return max(found, key=abs)
    if bound_by_sm:
        return found[-1]
    if any(each > 0 for each in found) and any(each < 0 for each in found):
        return 0.0
    return min(found, key=abs)


def _bound_by_sm(launch: Launch) -> bool:
    """Whether the SMs are busier than memory, and busy enough to bound the kernel."""
    compute, memory = (BY_KEY[key].of(launch) for key in ("compute", "memory"))
    return compute is not None and compute.value >= _BOUND and (memory is None or compute.value > memory.value)


def _values(a: Sequence[Launch], b: Sequence[Launch], of: Callable[[Launch], Quantity | None]) -> _Values | None:
    one, other = ([found for each in side if (found := of(each)) is not None] for side in (a, b))
    return _Values(one, other) if one and other else None


@dataclass(frozen=True, slots=True)
class _Judge:
    """Says what is significant. `elapsed`: A's cycles; `difference`: B's less A's, None where time is the same."""

    threshold: float
    elapsed: float | None
    difference: float | None

    def figure(self, figure: Figure, values: _Values, cycles: float | None) -> bool:
        relative = abs(values.relative())
        if figure.exact:
            return relative > 0
        if relative <= max(self.threshold, values.noise):
            return False
        a, b = values.middle
        if figure.section == "local memory" and not (a and b):
            return True  # spills that appear or go are no noise
        if values.a[0].unit == "%" and figure.cost is None:
            return abs(b - a) > _POINTS
        return cycles is None or figure.counted or self._matters(relative, cycles)

    def stall(self, relative: float, noise: float, cycles: float | None) -> bool:
        if cycles is None or not self.elapsed or relative <= max(self.threshold, noise):
            return False
        return abs(cycles) / self.elapsed > (_IMPACT if self.difference is not None else _STALL_NOISE)

    def share(self, cycles: float | None) -> float | None:
        return cycles / self.difference if cycles is not None and self.difference else None

    def _matters(self, relative: float, cycles: float) -> bool:
        if not self.elapsed:
            return True
        impact = abs(cycles) / self.elapsed
        return impact > _IMPACT or (relative > _LARGE and impact > _LARGE_IMPACT)


def _figure(figure: Figure, a: Sequence[Launch], b: Sequence[Launch], judge: _Judge, gaps: list[str]) -> Change | None:
    names = [name for name in figure.names if all(each.quantity(name) is not None for each in (*a, *b))]
    values = _values(a, b, figure.of)
    if values is None:
        return None
    metric = names[0] if names else figure.metric(a[0]) or figure.names[0]
    if not names:
        gaps.append(f"{figure.label} is {figure.metric(a[0])} in A and {figure.metric(b[0])} in B")
    units = {found.unit for each in (*a, *b) if (found := each.quantity(*figure.names)) is not None and found.unit}
    if len(units) > 1:  # a count without a unit is not scaled: it goes with any
        gaps.append(f"{figure.label} is in different units, not compared: {' and '.join(sorted(units))}")
        return None
    cycles = None
    if figure.cost is not None:
        costs = [[found for each in side if (found := figure.cost(each)) is not None] for side in (a, b)]
        cycles = median(costs[1]) - median(costs[0]) if all(costs) else None
    one, other = values.middle
    return Change(
        figure.key,
        figure.label,
        figure.section,
        metric,
        one,
        other,
        values.a[0].unit,
        values.noise,
        judge.figure(figure, values, cycles),
        cycles,
        judge.share(cycles),
    )


def _stalls(a: Sequence[Launch], b: Sequence[Launch], judge: _Judge) -> Iterator[Change]:
    """Stall reasons, in cycles of an average warp, else in percent. A reason that one side does not list is 0."""
    left, right = ([stalls(each) for each in side] for side in (a, b))
    if not all(left) or not all(right):
        return
    for reason in dict.fromkeys(reason for each in (*left, *right) for reason in each):
        sides = [[each[reason].cycles if reason in each else 0.0 for each in side] for side in (left, right)]
        counted = all(value is not None for side in sides for value in side)
        if not counted:  # without cycles, as on the source page: shares of the samples
            sides = [[each[reason].share * 100 if reason in each else 0.0 for each in side] for side in (left, right)]
        unit = "cycle" if counted else "%"
        values = _Values(*([Quantity(value or 0.0, unit) for value in side] for side in sides))
        one, other = values.middle
        if not one and not other:
            continue
        metric = next(each[reason].metric for each in (*left, *right) if reason in each)
        cycles = other - one if counted else None
        relative = abs(values.relative())
        significant = judge.stall(relative, values.noise, cycles) if counted else abs(other - one) > 100 * _STALL_NOISE
        yield Change(
            f"stall_{reason}",
            f"stalled on {reason.replace('_', ' ')}",
            "stall",
            metric,
            one,
            other,
            unit,
            values.noise,
            significant,
            cycles,
            judge.share(cycles),
        )


def _shapes(a: Launch, b: Launch) -> Iterator[tuple[str, str, str]]:
    for what in ("grid", "block", "cluster"):
        one, other = getattr(a, what), getattr(b, what)
        if one is not None and other is not None and one != other:
            yield what, "x".join(map(str, one)), "x".join(map(str, other))


# Everything else that the reports have.


def _gaps(a: Sequence[Launch], b: Sequence[Launch]) -> Iterator[str]:
    """Metrics that only one side has, or has a value of."""
    have = [
        {name for each in side for name, metric in each.metrics.items() if _compared(name) and metric.value is not None}
        for side in (a, b)
    ]
    for side, mine, theirs in (("A", have[0], have[1]), ("B", have[1], have[0])):
        only = sorted(mine - theirs)
        if not only:
            continue
        named: list[str] = []
        for name in only[:_NAMED]:
            near = difflib.get_close_matches(name, theirs - mine, n=1, cutoff=0.8)
            named.append(f"{name} (renamed {near[0]}?)" if near else name)
        more = f" and {len(only) - _NAMED} more" if len(only) > _NAMED else ""
        yield f"{len(only)} metric{'s' * (len(only) > 1)} only in {side}, not compared: {', '.join(named)}{more}"


def _compared(name: str) -> bool:
    """Whether a metric is of the launch: not of the device or ncu, no list of metrics (group:), no kind (..._type)."""
    return (
        ":" not in name
        and not name.startswith(("device__", "nvlink__", "numa__", "profiler__", "c2clink__"))
        and not name.endswith("_type")
    )


def _others(a: Sequence[Launch], b: Sequence[Launch], metrics: re.Pattern[str], threshold: float) -> Iterator[Change]:
    """Every metric that both have and whose name matches, the largest differences first."""
    found: list[Change] = []
    for name in a[0].metrics:
        if not metrics.search(name):
            continue
        values = _values(a, b, lambda launch, name=name: launch.quantity(name))
        if values is None or values.a[0].unit != values.b[0].unit:
            continue
        one, other = values.middle
        significant = abs(values.relative()) > max(threshold, values.noise)
        found.append(Change(name, name, "metric", name, one, other, values.a[0].unit, values.noise, significant))
    yield from sorted(found, key=lambda each: _rank(each, 1.0))
