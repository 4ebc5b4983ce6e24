"""Try the orders of a launch one by one, and say what they found, and what is left to try."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ptxgen.device import Finding, LaunchReport
from ptxgen.emulator.checks.registry import launches
from ptxgen.emulator.engines.timeline import Schedule
from ptxgen.emulator.explore.delays import Delays, Point
from ptxgen.emulator.explore.orders import Actor, OrderOfAccesses

#: Both extremes of asynchronous completion.
_BASES: tuple[Schedule, ...] = ("late", "eager")
#: Seeds of `random`, which tear vectors, let timed waits reach their limit and hold several warps at once.
_SEEDS = range(8)
#: Representatives of warps that take the same way: the first and the last.
_OF_CLASS = 2


class Ran(Protocol):
    """One run of the launch."""

    @property
    def report(self) -> LaunchReport: ...
    @property
    def delays(self) -> Delays: ...
    @property
    def accesses(self) -> OrderOfAccesses: ...
    @property
    def memory(self) -> NDArray[np.uint8]:
        """Global memory after the launch."""
        ...

    def place(self, offset: int) -> str:
        """An offset of the heap by name: `c[3, 4]`."""
        ...

    def line_of(self, block: int) -> int | None:
        """The line of the first instruction of a block."""
        ...


class Run(Protocol):
    """Runs the launch once, with one point held, or by a seed of `random`."""

    def __call__(self, schedule: Schedule, held: Point | None, seed: int = 0) -> Ran: ...


@dataclass(frozen=True)
class Order:
    """An order that was run: when asynchronous work completed, and who was held where."""

    schedule: Schedule
    point: Point | None = None
    line: int | None = None
    seed: int = 0

    def __str__(self) -> str:
        if self.schedule == "random":
            return f"random, seed {self.seed}"
        if self.point is None:
            return self.schedule
        if self.point.warp < 0:
            return f"{self.schedule}, CTA {self.point.cta} begins last"
        time = "" if self.point.occurrence == 1 else f" (pass {self.point.occurrence})"
        return f"{self.schedule}, warp {self.point.warp} of CTA {self.point.cta} held before line {self.line}{time}"


@dataclass
class Exploration:
    """What an exploration found. `status` is the worst of all orders; `report` is that of the first order."""

    report: LaunchReport
    #: Findings of all orders, each once; `Finding.order` is the first order that shows it.
    findings: list[Finding] = field(default_factory=list)
    #: Delay points to try, and how many have been.
    points: int = 0
    tried: int = 0
    #: Points of warps that take the same way as one that is tried.
    symmetric: int = 0
    #: Points at which nothing but the held warp could proceed.
    alone: int = 0
    #: Seeds of `random` that have been tried.
    seeds: int = 0
    #: Orders that differ in what threads observe of each other.
    distinct: int = 0
    seconds: float = 0.0
    status: str = "ok"

    @property
    def complete(self) -> bool:
        """True if nothing is left to try."""
        return self.tried == self.points and self.seeds == len(_SEEDS)

    @property
    def ok(self) -> bool:
        """True if no order ended worse than with advice."""
        return self.status == "ok"

    @property
    def coverage(self) -> str:
        """`212 of 212 delay points and 8 random seeds tried, 38 distinct orders; nothing is left to try`."""
        left = "nothing is left to try" if self.complete else f"{self.points - self.tried} are left (time limit)"
        skipped = [f"{self.symmetric} symmetric"] if self.symmetric else []
        skipped += [f"{self.alone} where no other warp could proceed"] if self.alone else []
        same = f" ({', '.join(skipped)} skipped)" if skipped else ""
        points = f"{self.tried} of {self.points} delay points and {self.seeds} random seeds tried{same}"
        return f"{points}, {self.distinct} distinct orders; {left}"

    def summary(self) -> str:
        """The outcome, the coverage, and each finding with the order that shows it."""
        lines = [f"{self.report.kernel}: {self.status} over all orders that were tried", self.coverage]
        return "\n".join([*lines, *map(str, self.findings)])

    def to_json(self) -> dict[str, Any]:
        """All of it, as JSON takes it."""
        return {
            "status": self.status,
            "points": self.points,
            "tried": self.tried,
            "seeds": self.seeds,
            "symmetric": self.symmetric,
            "alone": self.alone,
            "distinct_orders": self.distinct,
            "complete": self.complete,
            "seconds": round(self.seconds, 3),
            "findings": [each.to_json() for each in self.findings],
        }


def explore(run: Run, seconds: float | None, progress: Callable[[int, int], None] | None = None) -> Exploration:
    """Run a launch in every order that holding one warp at one point makes.

    The first order is `late` with nothing held; `eager` and seeds of `random` follow. After `seconds` (None: no limit)
    what is left is counted, not tried.
    """
    return _Explorer(run, seconds, progress).explore()


_WORSE = ("ok", "findings", "incomplete", "deadlock", "fault")


class _Explorer:
    def __init__(self, run: Run, seconds: float | None, progress: Callable[[int, int], None] | None) -> None:
        self._run, self._seconds, self._progress = run, seconds, progress
        self._began = time.monotonic()
        self._digests: set[bytes] = set()
        self._known: set[tuple[object, ...]] = set()
        self._first: Ran | None = None
        self._differs = False

    def explore(self) -> Exploration:
        first = self._run(_BASES[0], None)
        self._first, made = first, Exploration(first.report)
        self._take(made, Order(_BASES[0]), first)
        work: list[Order] = []
        for base in _BASES:
            ran = first if base == _BASES[0] else self._run(base, None)
            if ran is not first:
                self._take(made, Order(base), ran)
            points, symmetric = _representatives(ran.delays.points)
            made.symmetric += symmetric
            made.alone += sum(each in ran.delays.alone for each in points)
            points = [each for each in points if each not in ran.delays.alone]
            work += [Order(base, each, ran.line_of(each.block)) for each in points]
        for seed in _SEEDS:
            if made.seeds and self._late():
                break
            self._take(made, Order("random", seed=seed), self._run("random", None, seed))
            made.seeds += 1
        work.sort(key=lambda order: order.point.occurrence if order.point else 0)  # first passes of all warps first
        made.points = len(work)
        for order in work:
            if self._late():
                break
            self._take(made, order, self._run(order.schedule, order.point))
            made.tried += 1
            if self._progress is not None:
                self._progress(made.tried, made.points)
        made.distinct, made.seconds = len(self._digests), time.monotonic() - self._began
        return made

    def _late(self) -> bool:
        """Whether the time is over."""
        return self._seconds is not None and time.monotonic() - self._began > self._seconds

    def _take(self, made: Exploration, order: Order, ran: Ran) -> None:
        """Add what an order shows."""
        self._digests.add(ran.accesses.digest)
        report = ran.report
        for finding in report.findings:
            key = finding.code, finding.line, *(access.line for access in finding.accesses)
            if key not in self._known:
                self._known.add(key)
                made.findings.append(replace(finding, order=str(order)))
        if report.status in ("ok", "findings"):
            self._compare(made, order, ran)
        severe = any(finding.severity == "error" for finding in made.findings)
        status = "findings" if report.status == "ok" and severe else report.status
        made.status = max(made.status, status, key=_WORSE.index)

    def _compare(self, made: Exploration, order: Order, ran: Ran) -> None:
        """Report where global memory is not what the first order left."""
        first = self._first
        assert first is not None
        if ran is first or self._differs or first.report.status not in ("ok", "findings"):
            return
        before, now = first.memory, ran.memory
        size = min(len(before), len(now))
        differing = np.flatnonzero(before[:size] != now[:size])
        if len(differing):
            differing = differing[~(first.accesses.summed(size) | ran.accesses.summed(size))[differing]]
        if not len(differing):
            return
        self._differs = True
        offset = int(differing[0])
        actor, line = _first_difference(first.accesses.stores, ran.accesses.stores)
        where = f"warp {actor[1]} of CTA {actor[0]} first stores another value in line {line}" if actor else ""
        counts = first.accesses.counts or ran.accesses.counts
        rule = "Values that atomics return depend on the order of the threads, and here reach the result."
        found = launches.SCHEDULE_DEPENDENT.finding(
            None,
            summary=f"{len(differing)} bytes of global memory differ between the orders '{_BASES[0]}' and '{order}'; "
            f"the first is in {first.place(offset)}" + (f"; {where}" if where else ""),
            rule=rule if counts else None,
            severity="advice" if counts else "error",
        )
        made.findings.append(replace(found, line=line, order=str(order)))


def _first_difference(
    one: dict[Actor, list[tuple[int, int, int]]], other: dict[Actor, list[tuple[int, int, int]]]
) -> tuple[Actor | None, int | None]:
    """The warp, and the line, of the first store that is not the same in both orders."""
    found: list[tuple[int, Actor, int]] = []
    for actor in sorted(one.keys() | other.keys()):
        for number, (a, b) in enumerate(zip(one.get(actor, []), other.get(actor, []), strict=False)):
            if a != b:
                found.append((number, actor, b[0]))
                break
    if not found:
        return None, None
    _, actor, line = min(found)
    return actor, line


def _representatives(points: Sequence[Point]) -> tuple[list[Point], int]:
    """The points to try of those that warps passed, and how many others are symmetric to them.

    Warps that pass the same blocks in the same order are alike: the first and the last of them are tried.
    """
    ways: dict[Actor, list[Point]] = {}
    for each in points:
        ways.setdefault((each.cta, each.warp), []).append(each)
    classes: dict[tuple[int, ...], list[Actor]] = {}
    for actor, way in ways.items():
        classes.setdefault(tuple(each.block for each in way), []).append(actor)
    chosen: list[Point] = []
    for actors in classes.values():
        actors.sort()
        for actor in dict.fromkeys((actors[0], actors[-1])):
            chosen += ways[actor]
    whole = list(_ctas(points))
    return chosen + whole, len(points) - len(chosen)


def _ctas(points: Sequence[Point]) -> Iterator[Point]:
    """One point for all warps of a CTA, of the first and the last CTA."""
    ctas = sorted({each.cta for each in points})
    entry = points[0].block if points else 0
    if len(ctas) > 1:
        yield from (Point(cta, -1, entry, 1) for cta in dict.fromkeys((ctas[0], ctas[-1])))
