"""Tables and a picture of recorded rows, for docs/hopper.md."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench.gpu.records import Record, geometric_mean
from bench.gpu.suite import TOKENS

#: What is compared: the arm, and which of ours.
_PLAIN, _DEPENDENT = "ptxgen", "ptxgen dependent"
_WIDTH, _HEIGHT, _LEFT, _TOP = 1080, 420, 60, 30
_LOW, _HIGH = 0.7, 1.3


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table, numbers to the right."""
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join(lines + [f"| {' | '.join(map(str, each))} |" for each in rows]) + "\n"


def shown(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3f}"


def machine(records: Sequence[Record]) -> str:
    """Where and when."""
    last = records[-1].machine
    clocks = sorted(each.clock["mhz"] for each in records if "mhz" in each.clock)
    watts = max(each.clock.get("watts", 0) for each in records)
    return (
        f"{last['device']}, driver {last['driver']}, torch {last['torch']}, cublasLt {last['cublaslt']}, "
        f"{last['date']}; clock {clocks[0]:.0f} to {clocks[-1]:.0f} MHz, up to {watts:.0f} W.\n"
    )


def summary(records: Sequence[Record]) -> str:
    """The measures of the suite: geometric means and the worst row, in time and in cycles."""
    bf16 = [each for each in records if each.row.dtype == "bf16" and each.row.group != "gemv"]
    few = [each for each in bf16 if each.row.m <= 128]
    squares = [each for each in bf16 if each.row.group == "square"]
    measures: list[tuple[str, Sequence[Record], str, str, Callable[[Sequence[float]], float]]] = [
        ("bf16 against torch, geometric mean", bf16, "torch", "", geometric_mean),
        ("bf16 against the best of cublasLt, geometric mean", bf16, "cublaslt", "", geometric_mean),
        ("M up to 128 against the best of cublasLt, geometric mean", few, "cublaslt", "", geometric_mean),
        ("squares against torch, geometric mean", squares, "torch", "", geometric_mean),
        ("squares against fast.cu, worst", squares, "fast.cu", "", min),
        ("worst row against the best of cublasLt", bf16, "cublaslt", "", min),
    ]
    if fast := [each for each in records if "torch fast" in each.figures]:
        for other in ("torch", "cublaslt"):
            words = "torch" if other == "torch" else "the best of cublasLt"
            measures.append((f"fp8 fast against {words}, geometric mean", fast, f"{other} fast", "", geometric_mean))
    if scaled := [each for each in records if "DeepGEMM" in each.figures]:
        for words, mean in (("geometric mean", geometric_mean), ("worst", min)):
            measures.append(
                (f"promoted fp8 with scales against DeepGEMM, {words}", scaled, "DeepGEMM", " scaled", mean)
            )

    def rows() -> Iterator[Sequence[object]]:
        for words, chosen, other, product, mean in measures:
            cells: list[object] = [words]
            for ours in (_PLAIN, "fastest"):
                for cycles in (False, True):
                    ratios = [each.ratio(other, ours + product, cycles=cycles) for each in chosen]
                    found = [each for each in ratios if each is not None]
                    cells.append(f"{mean(found):.3f}" if found else "-")
            yield [*cells, sum(each.ratio(other, _PLAIN + product) is not None for each in chosen)]

    return markdown(("measure", "time", "cycles", "dependent where faster: time", "cycles", "rows"), rows())


def squares(records: Sequence[Record]) -> str:
    """Squares and the article's shapes, one a line."""

    def rows() -> Iterator[Sequence[object]]:
        for each in records:
            if each.row.group not in ("square", "article") or each.row.dtype != "bf16":
                continue
            row, figures = each.row, each.figures
            times = [f"{figures[kind].us:.1f}" if kind in figures else "-" for kind in ("torch", "cublaslt", "fast.cu")]
            name = f"{row.m}³" if row.m == row.n == row.k else f"{row.m}×{row.n}×{row.k}"
            ratios = [shown(each.ratio(kind)) for kind in ("torch", "cublaslt", "fast.cu")]
            ratios.append(shown(each.ratio("cublaslt", cycles=True)))
            ours = figures[_PLAIN]
            yield (
                name, *times, f"{ours.us:.1f}", f"{each.tflops:.0f}", *ratios,
                f"{each.clock.get('mhz', 0):.0f}", f"`{ours.name}`",
            )  # fmt: skip

    head = (
        "M×N×K", "torch µs", "cublasLt", "fast.cu", "ours", "TFLOPS", "torch / ours", "cublasLt / ours",
        "fast.cu / ours", "cublasLt / ours in cycles", "MHz", "kernel",
    )  # fmt: skip
    return markdown(head, rows())


def projections(records: Sequence[Record], ours: str = _PLAIN) -> str:
    """cublasLt's best over ours: shapes down, rows of A across."""
    found = {(each.row.n, each.row.k, each.row.m): each for each in records if each.row.dtype == "bf16"}
    shapes = list(
        dict.fromkeys((each.row.source, each.row.n, each.row.k) for each in records if each.row.group == "llm")
    )

    def rows() -> Iterator[Sequence[object]]:
        for source, n, k in shapes:
            cells = [found.get((n, k, m)) for m in TOKENS]
            yield source, f"{n}×{k}", *(shown(each.ratio("cublaslt", ours)) if each else "-" for each in cells)

    return markdown(("model", "N×K", *(f"M {m}" for m in TOKENS)), rows())


def fp8(records: Sequence[Record]) -> str:
    """e4m3 with C of bf16: fast accumulation against fast, promoted against promoted, scales against scales."""
    if all(each.row.dtype != "e4m3" for each in records):
        return "No rows of fp8 are recorded yet; [hopper-tuning.md](hopper-tuning.md) has those of a sweep.\n"
    kinds = ["torch fast", "cublaslt fast", "ptxgen", "torch promoted", "cublaslt promoted", "ptxgen promoted"]
    head = [
        "M×N×K", "torch fast µs", "cublasLt fast", "ours fast", "torch promoted", "cublasLt promoted", "ours promoted",
        "torch / ours, fast", "cublasLt / ours, fast", "torch / ours, promoted", "cublasLt / ours, promoted",
    ]  # fmt: skip
    scaled = any("DeepGEMM" in each.figures for each in records)
    if scaled:
        kinds += ["DeepGEMM", "torch scaled", "ptxgen scaled"]
        head[7:7] = ["DeepGEMM, with scales", "torch, with scales", "ours, with scales"]
        head += ["DeepGEMM / ours, with scales", "DeepGEMM / ours, dependent"]

    def rows() -> Iterator[Sequence[object]]:
        for each in records:
            if each.row.dtype != "e4m3":
                continue
            times = [f"{each.figures[kind].us:.1f}" if kind in each.figures else "-" for kind in kinds]
            ratios = [shown(each.ratio(f"{other} fast")) for other in ("torch", "cublaslt")]
            ratios += [shown(each.ratio(f"{other} promoted", "ptxgen promoted")) for other in ("torch", "cublaslt")]
            if scaled:
                for more in ("", " dependent"):
                    ratios.append(shown(each.ratio(f"DeepGEMM{more}", f"ptxgen scaled{more}")))
            row = each.row
            yield f"{row.m}×{row.n}×{row.k}", *times, *ratios

    return markdown(head, rows())


def bandwidth(records: Sequence[Record]) -> str:
    """TB/s where M is 1 or 2."""

    def rows() -> Iterator[Sequence[object]]:
        for each in records:
            if each.row.m > 2 or each.row.dtype == "e4m3":
                continue
            row, ours, dependent = each.row, each.figures[_PLAIN], each.figures.get(_DEPENDENT)
            rates = [f"{row.bytes / figure.us / 1e6:.2f}" if figure else "-" for figure in (ours, dependent)]
            lt = each.figures["cublaslt"].us
            yield (
                f"{row.dtype} {row.m}×{row.n}×{row.k}", f"{row.bytes / lt / 1e6:.2f}", *rates,
                shown(each.ratio("cublaslt")), shown(each.ratio("cublaslt", _DEPENDENT)), f"`{ours.name}`",
            )  # fmt: skip

    head = ("M×N×K", "cublasLt TB/s", "ours", "dependent", "cublasLt / ours", "dependent", "kernel")
    return markdown(head, rows())


@dataclass(frozen=True)
class Floor:
    """What rows of few rows of A take at least: `us` and the time of their bytes at `rate`, in bytes a microsecond."""

    us: float
    rate: float

    def of(self, record: Record) -> float:
        return self.us + record.row.bytes / self.rate


def floors(few: Sequence[Record]) -> tuple[Floor, Floor]:
    """By bytes alone, at the highest rate of any arm; and the line below which no arm is on any row.

    The line touches two rows, one with fewer and one with more bytes than the median. Without dependent launches.
    """
    points = [(each.row.bytes, min(_plain_times(each))) for each in few]
    middle = statistics.median(count for count, _ in points)
    for (few_bytes, fast), (many_bytes, slow) in itertools.product(points, points):
        if few_bytes <= middle < many_bytes:
            rate = (many_bytes - few_bytes) / (slow - fast)
            line = Floor(fast - few_bytes / rate, rate)
            if all(us >= (line.us + count / rate) * (1 - 1e-9) for count, us in points):
                return Floor(0.0, max(count / us for count, us in points)), line
    raise ValueError("no line: all rows have as many bytes")


def _plain_times(record: Record) -> list[float]:
    return [figure.us for kind, figure in record.figures.items() if kind != _DEPENDENT]


def bounds(records: Sequence[Record]) -> str:
    """How much faster than cublasLt's best a kernel could be where M is up to 128, by the two floors."""
    few = [each for each in records if each.row.dtype == "bf16" and each.row.m <= 128 and each.row.group == "llm"]
    bytes_alone, line = floors(few)
    found = {(each.row.n, each.row.k, each.row.m): each for each in few}
    shapes = list(dict.fromkeys((each.row.n, each.row.k) for each in few))

    def gain(record: Record, floor: Floor) -> float:
        return record.figures["cublaslt"].us / floor.of(record)

    def rows() -> Iterator[Sequence[object]]:
        tokens = [each for each in TOKENS if each <= 128]
        for n, k in shapes:
            made = [found.get((n, k, m)) for m in tokens]
            yield f"{n}×{k}", *(f"{gain(each, line):.3f}" if each else "-" for each in made)

    def mean(floor: Floor) -> float:
        return geometric_mean([gain(each, floor) for each in few])

    ours = geometric_mean([each.figures[_PLAIN].us / line.of(each) for each in few])
    goal = 1.08
    capped, bare = (sum(gain(each, floor) < goal for each in few) for floor in (line, bytes_alone))
    words = (
        f"- **Bytes alone**, at {bytes_alone.rate / 1e6:.2f} TB/s, the most of any arm: cublasLt's best over it "
        f"is {mean(bytes_alone):.3f} in the geometric mean of {len(few)} rows, and below {goal} in {bare}. It leaves "
        "out what every launch takes.\n"
        f"- **The line below which no arm is on any row**, {line.us:.2f} µs and the bytes at {line.rate / 1e6:.2f} "
        f"TB/s: cublasLt's best over it is {mean(line):.3f} in the geometric mean, and below {goal} in {capped} rows, "
        f"where no kernel on the line reaches {goal}. {goal} in the mean takes kernels at {mean(line) / goal:.3f} of "
        f"the line; ours are at {ours:.3f}.\n\n"
        "cublasLt's best over the line, N×K by M:\n\n"
    )
    return words + markdown(("N×K", *(f"M {m}" for m in TOKENS if m <= 128)), rows())


def rows_table(records: Sequence[Record]) -> str:
    """Every row: microseconds with their spread, and ratios."""

    def rows() -> Iterator[Sequence[object]]:
        for each in records:
            if each.row.dtype == "e4m3":
                continue
            row, figures = each.row, each.figures
            cells = [
                f"{figures[kind].us:.2f} ±{figures[kind].spread:.1%}" if kind in figures else "-"
                for kind in ("torch", "cublaslt", _PLAIN, _DEPENDENT)
            ]
            ratios = [
                shown(each.ratio("torch")),
                shown(each.ratio("cublaslt")),
                shown(each.ratio("cublaslt", _DEPENDENT)),
            ]
            watts = f"{each.clock.get('mhz', 0):.0f} MHz, {each.clock.get('watts', 0):.0f} W"
            yield f"{row.dtype} {row.m}×{row.n}×{row.k}", *cells, *ratios, watts

    head = (
        "row", "torch µs", "cublasLt", "ours", "dependent", "torch / ours", "cublasLt / ours", "cublasLt / dependent",
        "clock",
    )  # fmt: skip
    return markdown(head, rows())


def picture(records: Sequence[Record]) -> str:
    """SVG: a dot for every row, cublasLt's best over ours, by shape; a ring for dependent launches."""
    drawn = [each for each in records if each.row.dtype == "bf16" and each.ratio("cublaslt") is not None]
    step = (_WIDTH - _LEFT - 20) / max(len(drawn), 1)

    def y(ratio: float) -> float:
        return _TOP + (_HIGH - min(max(ratio, _LOW), _HIGH)) / (_HIGH - _LOW) * (_HEIGHT - _TOP - 70)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="11">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="16" font-size="13">time of the best of cublasLt / time of ours, bf16; above 1 ours is '
        "faster (ring: dependent launches)</text>",
    ]
    for tenth in range(round(_LOW * 10), round(_HIGH * 10) + 1):
        ratio = tenth / 10
        color = "#555555" if tenth == 10 else "#dddddd"
        lines.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - 20}" y1="{y(ratio):.1f}" y2="{y(ratio):.1f}" stroke="{color}"/>'
        )
        lines.append(f'<text x="{_LEFT - 8}" y="{y(ratio) + 4:.1f}" text-anchor="end">{ratio:.1f}</text>')
    before = None
    for number, each in enumerate(drawn):
        x = _LEFT + (number + 0.5) * step
        shape = each.row.group if each.row.group != "llm" else f"{each.row.n}×{each.row.k}"
        if shape != before:
            edge, bottom = f"{x - step / 2:.1f}", _HEIGHT - 66
            lines.append(f'<line x1="{edge}" x2="{edge}" y1="{_TOP}" y2="{bottom}" stroke="#eeeeee"/>')
            lines.append(
                f'<text x="{x:.1f}" y="{_HEIGHT - 58}" transform="rotate(40 {x:.1f} {_HEIGHT - 58})">{shape}</text>'
            )
            before = shape
        for ours, style in ((_DEPENDENT, 'fill="none" stroke="#7a9e3a"'), (_PLAIN, 'fill="#2f6fb0"')):
            ratio = each.ratio("cublaslt", ours)
            if ratio is not None:
                title = f"{each.row.key}: {ratio:.3f}"
                lines.append(f'<circle cx="{x:.1f}" cy="{y(ratio):.1f}" r="3" {style}><title>{title}</title></circle>')
    return "\n".join([*lines, "</svg>"]) + "\n"
