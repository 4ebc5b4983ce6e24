"""Predicted against measured launches of an H200, for docs/timing.md: tables, a scatter plot, and the planner beside.

python -m bench.gpu.microbench.compare --join seen.jsonl held-out.jsonl     # those of validate: the record
python -m bench.gpu.microbench.compare                                      # tables and plot again, from the record
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from itertools import chain
from pathlib import Path

from bench.gpu.arms import Spec
from bench.gpu.microbench.validate import held_out
from bench.gpu.report import markdown
from ptxgen.gemm import GemmPlan
from ptxgen.gemm.prediction.estimate import Estimate
from ptxgen.timing import MACHINES

ROOT = Path(__file__).parents[3]
RECORD = ROOT / "bench" / "data" / "h200-predicted.json"
PAGE, PLOT = ROOT / "docs" / "timing.md", ROOT / "docs" / "timing-scatter.svg"
#: Launches below these cycles are short: their start and their epilogue are most of them.
SHORT = 15_000
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 720, 560, 60, 40, 30
#: Parts with their titles and the style of their points.
_PARTS = {"seen": 'fill="none" stroke="#7a9e3a"', "held out": 'fill="#2f6fb0"'}


@dataclass(frozen=True)
class Launch:
    """One launch: measured and predicted cycles, those of the planner, and MHz."""

    spec: str
    m: int
    n: int
    k: int
    held_out: bool
    cycles: float
    predicted: float
    planner: float | None
    clock: int

    @property
    def error(self) -> float:
        return self.predicted / self.cycles - 1

    @property
    def planner_error(self) -> float | None:
        return None if self.planner is None else self.planner / self.cycles - 1

    @property
    def part(self) -> str:
        return "held out" if self.held_out else "seen"

    @property
    def title(self) -> str:
        words = self.spec.removeprefix("hopper/")
        return f"{words} {self.m}×{self.n}×{self.k}: {self.cycles:,.0f} cycles, predicted {self.predicted:,.0f}"


def joined(paths: Sequence[Path]) -> list[Launch]:
    """The launches of files of `validate`, with the planner's cycles at the same clock."""
    found: list[Launch] = []
    for line in chain.from_iterable(path.read_text(encoding="utf-8").splitlines() for path in paths):
        row = json.loads(line)
        if "predicted" not in row:
            raise ValueError(f"no prediction of {row['spec']}: {row['error']}")
        shape, clock = (row["m"], row["n"], row["k"]), round(row["cycles"] / row["ns"] * 1e3)
        launch = {key: value for key, value in row.items() if key not in ("predicted", "bound_by", "seconds")}
        plan = Spec.named(row["spec"]).plan()
        planner = planned_cycles(plan, *shape, clock)
        made = Launch(row["spec"], *shape, held_out(launch), row["cycles"], row["predicted"], planner, clock)
        found.append(made)
    return sorted(found, key=lambda each: (each.held_out, each.spec, each.m, each.n, each.k))


def planned_cycles(plan: GemmPlan, m: int, n: int, k: int, clock: int) -> float | None:
    """Cycles by the planner's formulas; None for kernels without tiles, which it does not know."""
    if plan.name == "hopper/gemv":
        return None
    return round(Estimate.of(plan, MACHINES["h200"], m, n, k, clock).cycles)


def kind(launch: Launch) -> str:
    """What of a launch decides how well a model fits."""
    if "gemv" in launch.spec:
        return "`gemv`"
    if launch.cycles < SHORT:
        return f"under {SHORT:,} cycles"
    if "split_k=" in launch.spec:
        return "split K"
    plan = Spec.named(launch.spec).plan()
    if plan.scheduler.kind != "grid":
        return "persistent"
    clusters = math.prod(plan.scheduler.grid(launch.m, launch.n)) // plan.scheduler.cluster_size
    waves = clusters > MACHINES["h200"].cluster_slots(plan.scheduler.cluster_size)
    return "one tile a CTA, several waves" if waves else "one tile a CTA, one wave"


def figures(launches: Sequence[Launch]) -> str:
    """How right the predictions are, by part."""
    held = [each for each in launches if each.held_out]
    parts = {
        "held out": held,
        "held out, without `gemv`": [each for each in held if "gemv" not in each.spec],
        "seen": [each for each in launches if not each.held_out],
    }
    rows = [[name, *_figures([each.error for each in part])] for name, part in parts.items()]
    return markdown(("launches", "number", "mean error", "median", "within 10 %"), rows)


def _figures(errors: Sequence[float]) -> list[object]:
    near = sum(abs(each) <= 0.1 for each in errors) / len(errors)
    return [
        len(errors),
        f"{statistics.fmean(map(abs, errors)):.1%}",
        f"{statistics.median(errors):+.1%}",
        f"{near:.0%}",
    ]


def beside_the_planner(launches: Sequence[Launch]) -> str:
    """Errors of the model and of the planner, and their ratio, by kind of launch."""
    kinds: dict[str, list[Launch]] = {}
    for each in launches:
        kinds.setdefault(kind(each), []).append(each)
    rows: list[list[object]] = []
    for name, part in sorted(kinds.items(), key=lambda each: -len(each[1])):
        both = [(each, error) for each in part if (error := each.planner_error) is not None]
        if not both:
            continue
        mine, planner = [each.error for each, _ in both], [error for _, error in both]
        ratio = statistics.median((1 + error) / (1 + each.error) for each, error in both)
        rows.append([name, len(both), *_figures(mine)[1:3], *_figures(planner)[1:3], f"{ratio:.2f}"])
    heads = ("launches", "number", "model: mean error", "median", "planner: mean error", "median", "planner / model")
    return markdown(heads, rows)


def apart(launches: Sequence[Launch], count: int = 8) -> str:
    """The launches on which model and planner differ most."""
    both = [(each, planner) for each in launches if (planner := each.planner) is not None]
    both.sort(key=lambda each: -abs(math.log(each[1] / each[0].predicted)))
    rows = [
        [
            f"`{each.spec.removeprefix('hopper/')}` {each.m}×{each.n}×{each.k}",
            f"{each.cycles:,.0f}",
            f"{each.error:+.0%}",
            f"{planner / each.cycles - 1:+.0%}",
            kind(each),
        ]
        for each, planner in both[:count]
    ]
    return markdown(("launch", "measured", "model", "planner", "kind"), rows)


def scatter(launches: Sequence[Launch]) -> str:
    """Predicted over measured cycles on logarithmic axes, with a band of 10 %."""
    values = [value for each in launches for value in (each.cycles, each.predicted)]
    low, high = math.log(min(values) / 1.2), math.log(max(values) * 1.2)

    def x(value: float) -> float:
        return _LEFT + (math.log(value) - low) / (high - low) * (_WIDTH - _LEFT - 20)

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - (math.log(value) - low) / (high - low) * (_HEIGHT - _BOTTOM - _TOP)

    first, last = math.exp(low), math.exp(high)
    band = [(first, first * 1.1), (last / 1.1, last), (last, last), (last, last * 0.9), (first / 0.9, first)]
    corners = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in [*band, (first, first)])
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="11">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="16" font-size="13">predicted over measured cycles of GEMM launches on an H200; the band '
        "is 10 % wide to each side</text>",
        f'<polygon points="{corners}" fill="#eeeeee"/>',
        *_axes(x, y, first, last),
    ]
    for part, style in _PARTS.items():
        lines += [
            f'<circle cx="{x(each.cycles):.1f}" cy="{y(each.predicted):.1f}" r="3" {style}>'
            f"<title>{escape(each.title)}</title></circle>"
            for each in launches
            if each.part == part
        ]
    for number, (part, style) in enumerate(_PARTS.items()):
        count = sum(each.part == part for each in launches)
        lines.append(f'<circle cx="{_LEFT + 20}" cy="{_TOP + 20 + 18 * number}" r="3" {style}/>')
        lines.append(f'<text x="{_LEFT + 30}" y="{_TOP + 24 + 18 * number}">{part}: {count} launches</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def _axes(x: Callable[[float], float], y: Callable[[float], float], first: float, last: float) -> Iterator[str]:
    """The diagonal, and ticks at 1, 2 and 5 of each power of ten."""
    yield f'<line x1="{x(first)}" y1="{y(first)}" x2="{x(last):.1f}" y2="{y(last):.1f}" stroke="#555555"/>'
    steps = (digit * 10**power for power in range(3, 8) for digit in (1, 2, 5))
    for value in steps:
        if first <= value <= last:
            shown = f"{value // 1000}k" if value < 10**6 else f"{value // 10**6}M"
            yield f'<text x="{x(value):.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{shown}</text>'
            yield f'<text x="{_LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{shown}</text>'
    yield f'<text x="{_WIDTH // 2}" y="{_HEIGHT - 8}" text-anchor="middle">measured cycles</text>'


def written(page: str, tables: dict[str, str]) -> str:
    """The page with these tables between their markers."""
    for name, text in tables.items():
        begin, end = f"<!-- {name}, by bench.gpu.microbench.compare -->\n", f"<!-- end of {name} -->"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        if len(pattern.findall(page)) != 1:
            raise ValueError(f"the page needs one pair of markers of {name}")
        page = pattern.sub(lambda _, made=begin + text + end: made, page)
    return page


def tables(launches: Sequence[Launch]) -> dict[str, str]:
    """The generated parts of docs/timing.md."""
    return {
        "figures": figures(launches),
        "model and planner": beside_the_planner(launches),
        "most apart": apart(launches),
    }


def read() -> list[Launch]:
    return [Launch(**each) for each in json.loads(RECORD.read_text(encoding="utf-8"))["launches"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--join", type=Path, nargs="+")
    options = parser.parse_args()
    if options.join:
        record = {
            "what": "python -m bench.gpu.microbench.validate of all launches of h200-launches.json; planner: cycles by "
            "ptxgen.gemm.prediction.estimate",
            "launches": [asdict(each) for each in joined(options.join)],
        }
        RECORD.write_text(json.dumps(record, indent=0) + "\n", encoding="utf-8")
    launches = read()
    PLOT.write_text(scatter(launches), encoding="utf-8")
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), tables(launches)), encoding="utf-8")


if __name__ == "__main__":
    main()
