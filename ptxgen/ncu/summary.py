"""`summarize`: the figures of a launch, its stalls, what limits its occupancy, its hottest lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ptxgen.ncu.curated import FIGURES, LIMITS, Stall, stalls
from ptxgen.ncu.schema import JsonValue, Launch, Sample
from ptxgen.ncu.units import Quantity

#: A line with a smaller share of the samples is not hot.
_LEAST = 0.005


@dataclass(frozen=True, slots=True)
class HotLine:
    """A line of PTX, else of the source, else an instruction, with the samples that fell on it. `share` is 0 to 1."""

    place: str
    text: str
    samples: int
    share: float
    #: The reason of most of them.
    stall: str
    executed: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What to look at first. `figures` are by key of `curated.FIGURES`; one that the report lacks is left out."""

    launch: Launch
    figures: Mapping[str, Quantity]
    #: By share of warp cycles, the largest first.
    stalls: Sequence[Stall]
    #: The limits that allow the fewest CTAs on a multiprocessor, with that number.
    limits: Sequence[str]
    limit: int | None
    hottest: Sequence[HotLine]

    def to_json(self) -> dict[str, JsonValue]:
        return {
            "figures": {
                key: {"value": each.value, "unit": each.unit, "resolution": each.resolution}
                for key, each in self.figures.items()
            },
            "stalls": {each.reason: each.share for each in self.stalls},
            "occupancy_limits": list(self.limits),
            "hottest": [
                {
                    "place": each.place,
                    "text": each.text,
                    "samples": each.samples,
                    "share": each.share,
                    "stall": each.stall,
                    "executed": each.executed,
                }
                for each in self.hottest
            ],
        }


def summarize(launch: Launch, *, lines: int = 5) -> Summary:
    """The summary of a launch with its `lines` hottest lines."""
    figures = {each.key: found for each in FIGURES if (found := each.of(launch)) is not None}
    limits = {what: limit for what, name in LIMITS.items() if (limit := launch.value(name)) is not None}
    least = min(limits.values(), default=None)
    return Summary(
        launch,
        figures,
        sorted(stalls(launch).values(), key=lambda each: -each.share),
        [what for what, limit in limits.items() if limit == least],
        None if least is None else int(least),
        hottest(launch.samples, lines),
    )


def hottest(samples: Sequence[Sample], count: int) -> list[HotLine]:
    """The lines with most samples. Samples of one PTX line are added up, else those of one source line."""
    total = sum(each.samples for each in samples)
    if not total:
        return []
    groups: dict[str, list[Sample]] = {}
    for each in samples:
        groups.setdefault(_place(each), []).append(each)
    found: list[HotLine] = []
    for place, members in groups.items():
        first = max(members, key=lambda each: each.samples)
        reasons: Counter[str] = Counter()
        for each in members:
            reasons.update(dict(each.stalls))
        reason = reasons.most_common(1)[0][0].replace("_", " ") if reasons else ""
        taken = sum(each.samples for each in members)
        text = f"{first.sass}  ← {first.ptx}" if first.ptx else first.sass
        found.append(HotLine(place, text, taken, taken / total, reason, max(each.executed or 0 for each in members)))
    return sorted((each for each in found if each.share >= _LEAST), key=lambda each: -each.samples)[:count]


def _place(sample: Sample) -> str:
    source = sample.source.rsplit("/", 1)[-1]
    if sample.ptx_line is not None:
        return f"PTX {sample.ptx_line}{f' {source}' if source else ''}"
    if source:
        return source
    return f"+{sample.offset or 0:#x}"
