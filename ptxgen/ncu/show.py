"""Summaries and comparisons as lines of text and CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

from ptxgen.ncu.diff import Change, Comparison, Pair
from ptxgen.ncu.schema import Launch, Metric, Report, Rule, shortened
from ptxgen.ncu.summary import Summary, summarize
from ptxgen.ncu.units import base_unit

#: Stall reasons, rules and characters of a line that a summary shows.
_STALLS, _RULES, _TEXT = 5, 4, 88
#: Rows of a comparison before the rest is counted, and causes in its second line.
_ROWS, _WORK, _REASONS = 12, 2, 2
#: Kernels without a difference that are named.
_EQUAL = 8
#: Characters of a kernel's name in a comparison.
_NAME = 96
_SMALL_SHARE = 0.1
#: Duration and cycles whose ratios differ by no more say the same.
_ALIKE = 0.01
_LINK = re.compile(r"@url:([^:@]+):[^@]*@|@(?:section|sass|source):(?:[^:@]+:)+([^:@]+)@")

# Numbers.


def quantity_text(value: float, unit: str) -> str:
    """A number in a base unit, scaled for people: 174656 ns is "174.7 us"."""
    if unit == "%":
        return f"{value:.1f} %"
    if unit == "ns":
        return _scaled(value, (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)))
    if unit == "hz":
        return _scaled(value, (("GHz", 1e9), ("MHz", 1e6), ("Hz", 1.0)))
    if unit.startswith("byte"):
        rest = unit.removeprefix("byte").replace("/block", "")
        return _scaled(value, [(f"{each}{rest}", scale) for each, scale in _BYTES])
    return f"{_count(value)}{_SAID.get(unit, f' {unit}')}"


#: Units of counts; what a label says already is left out.
_SAID = {"": "", "cycle": " cycles", "wavefront": "", "inst": "", "request": "", "register/thread": ""}
_BYTES = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3), ("B", 1.0))


def _scaled(value: float, scales: Sequence[tuple[str, float]]) -> str:
    name, scale = next((each for each in scales if abs(value) >= each[1]), scales[-1])
    return f"{_digits(value / scale)} {name}"


def _count(value: float) -> str:
    if abs(value) < 1e5 and value == int(value):
        return f"{value:,.0f}".replace(",", " ")
    for letter, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= scale:
            return f"{_digits(value / scale)} {letter}"
    return _digits(value)


def _digits(value: float) -> str:
    """Four digits, without zeros at the end."""
    if abs(value) >= 1000:
        return f"{value:.0f}"
    text = f"{value:.4g}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def _ratio(change: Change) -> str:
    """ "1.8x", "new" from nothing, "gone" to nothing."""
    ratio = change.ratio
    if ratio is None:
        return "new" if change.b else "1x"
    if not change.b:
        return "gone"
    return f"{ratio:.0f}x" if ratio >= 100 else f"{ratio:.3g}x" if ratio >= 10 else f"{ratio:.2f}x"


# Summaries.


def report_lines(report: Report, *, lines: int = 5) -> Iterator[str]:
    """A report: where it is from, then the summary of each launch."""
    version = f"ncu {report.version}" if report.version else "version of ncu unknown"
    page = "" if report.page == "ncu-rep" else f", {report.page} page"
    yield f"{report.path}: {len(report.launches)} launch{'es' * (len(report.launches) != 1)} ({version}{page})"
    for launch in report.launches:
        yield ""
        yield from summary_lines(summarize(launch, lines=lines))
    gaps = dict.fromkeys((*report.gaps, *(gap for each in report.launches for gap in each.gaps)))
    if gaps:
        yield ""
        yield from (f"note: {gap}" for gap in gaps)


def summary_lines(summary: Summary) -> Iterator[str]:
    """A launch: what it is, and the figures by section; a section that the report lacks is named at the end."""
    launch = summary.launch
    yield f"{shortened(launch.name)} (launch {launch.index})"
    missing: list[str] = []
    sections = (
        ("launch", _launch_text(summary)),
        ("time", _time_text(summary)),
        ("throughput", _joined(summary, ("compute", "compute {}"), ("memory", "memory {}"))),
        ("tensor pipe", _joined(summary, ("tensor", "{} busy"))),
        ("TMA", _tma_text(summary)),
        (
            "L2",
            _joined(
                summary,
                ("l2", "{}"),
                ("l2_hits", "hit rate {}"),
                ("l2_read_bytes", "read {}"),
                ("l2_write_bytes", "write {}"),
            ),
        ),
        ("HBM", _joined(summary, ("hbm", "{}"), ("hbm_read_bytes", "read {}"), ("hbm_write_bytes", "write {}"))),
        ("shared memory", _shared_text(summary)),
        ("local memory", _local_text(summary)),
        ("stalls", ", ".join(f"{each.label} {each.share:.0%}" for each in summary.stalls[:_STALLS])),
        ("occupancy", _occupancy_text(summary)),
    )
    for name, text in sections:
        if text:
            yield f"  {name:<14} {text}"
        else:
            missing.append(name)
    width = max((len(each.place) for each in summary.hottest), default=0)
    for number, each in enumerate(summary.hottest):
        name = "hottest lines" if not number else ""
        stall = f"  ({each.stall})" if each.stall else ""
        yield f"  {name:<14} {each.share:>4.0%}  {each.place:<{width}}  {_cut(each.text)}{stall}"
    if not summary.hottest:
        missing.append("hottest lines")
    for number, rule in enumerate(_worth(launch)):
        estimate = f"{rule.speedup:.0f} % ({rule.speedup_of}): " if rule.speedup else ""
        yield f"  {'rules' if not number else '':<14} {rule.kind} {rule.name}: {estimate}{_cut(plain(rule.message))}"
    if missing:
        yield f"  {'not measured':<14} {', '.join(missing)}"


def _worth(launch: Launch) -> list[Rule]:
    """Rules with a recommendation, largest estimate first."""
    found = [each for each in launch.rules if each.kind in ("OPT", "WRN", "ERR")]
    return sorted(found, key=lambda each: -(each.speedup or 0.0))[:_RULES]


def plain(message: str) -> str:
    """A rule's message without the links of the user interface: @url:text:address@."""
    return _LINK.sub(lambda found: found[1] or found[2], message)


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT else f"{text[: _TEXT - 1]}…"


def _figure(summary: Summary, key: str) -> str | None:
    found = summary.figures.get(key)
    return None if found is None else quantity_text(found.value, found.unit)


def _joined(summary: Summary, *parts: tuple[str, str]) -> str:
    found = [(form, text) for key, form in parts if (text := _figure(summary, key)) is not None]
    return ", ".join(form.format(text) for form, text in found)


def _launch_text(summary: Summary) -> str:
    launch = summary.launch
    parts = [
        f"{what} {'x'.join(map(str, sizes))}"
        for what, sizes in (("grid", launch.grid), ("block", launch.block), ("cluster", launch.cluster))
        if sizes is not None and (what != "cluster" or sizes != (1, 1, 1))
    ]
    registers, dynamic, static = (_figure(summary, key) for key in ("registers", "dynamic_shared", "static_shared"))
    if registers is not None:
        parts.append(f"{registers} registers")
    if dynamic is not None and static is not None:
        parts.append(f"shared memory {dynamic} dynamic, {static} static")
    if launch.passes is not None:
        parts.append(f"{launch.passes} passes")
    if launch.device.name:
        parts.append(str(launch.device))
    elif launch.device.capability:
        parts.append(f"compute capability {launch.device.capability}")
    return ", ".join(parts)


def _time_text(summary: Summary) -> str:
    text = _joined(summary, ("duration", "{}"), ("cycles", "{}"))
    clocks = summary.launch.clocks
    parts = [text] if text else []
    parts += [f"SM {quantity_text(clocks.sm, 'hz')}"] if clocks.sm is not None else []
    parts += [f"memory {quantity_text(clocks.memory, 'hz')}"] if clocks.memory is not None else []
    locked = {True: "clocks locked by ncu", False: "clocks not locked", None: ""}[clocks.locked]
    return ", ".join([*parts, *([locked] if locked and parts else [])])


def _tma_text(summary: Summary) -> str:
    parts: list[str] = []
    for what, count, amount in (("loads", "tma_loads", "tma_load_bytes"), ("stores", "tma_stores", "tma_store_bytes")):
        number, size = _figure(summary, count), _figure(summary, amount)
        if number is None and size is None:
            continue
        text = f"{number} {what}" if number is not None else what
        parts.append(f"{text}, {size}" if size is not None else text)
    idle = {"0 loads, 0 B", "0 stores, 0 B"}
    return "none" if parts and set(parts) <= idle else "; ".join(parts)


def _shared_text(summary: Summary) -> str:
    wavefronts, conflicts = (summary.figures.get(key) for key in ("shared_wavefronts", "shared_conflicts"))
    if wavefronts is None and conflicts is None:
        return ""
    parts = [f"{quantity_text(wavefronts.value, '')} wavefronts"] if wavefronts is not None else []
    if conflicts is not None:
        share = f" ({conflicts.value / wavefronts.value:.1%})" if wavefronts is not None and wavefronts.value else ""
        parts.append(f"{quantity_text(conflicts.value, '')} of them bank conflicts{share}")
    return ", ".join(parts)


def _local_text(summary: Summary) -> str:
    keys = ("local_loads", "local_stores", "spills")
    if not any(key in summary.figures for key in keys):
        return ""
    if not any(summary.figures[key].value for key in keys if key in summary.figures):
        return "none" if "local_loads" in summary.figures else "no spilled registers"
    return _joined(
        summary, ("local_loads", "{} loads"), ("local_stores", "{} stores"), ("spills", "{} from spilled registers")
    )


def _occupancy_text(summary: Summary) -> str:
    text = _joined(summary, ("occupancy", "{} achieved"), ("occupancy_limit", "{} possible"), ("waves", "waves {}"))
    if summary.limit is not None:
        limits = " and ".join(summary.limits)
        text += f", {summary.limit} CTA{'s' * (summary.limit != 1)} per SM by {limits}"
    return text.removeprefix(", ")


# Metrics.


def metric_lines(launch: Launch, metrics: Sequence[Metric], *, instances: bool = False) -> Iterator[str]:
    """Metrics as the report has them: name, value, unit, how many instances."""
    yield f"{shortened(launch.name)} (launch {launch.index})"
    width = max((len(each.name) for each in metrics), default=0)
    for each in metrics:
        value = "no value" if each.value is None else each.value
        count = f"  ({len(each.instances)} instances)" if each.instances else ""
        yield f"  {each.name:<{width}}  {value} {each.unit}{count}".rstrip()
        if instances:
            yield from (f"    {_key(one.key)}{one.value}" for one in each.instances)


def _key(key: int | str | None) -> str:
    return "" if key is None else f"{key:#x}: " if isinstance(key, int) else f"{key}: "


def csv_text(rows: Iterable[tuple[Report, Launch, Metric]]) -> str:
    """One row a metric of a launch, in base units."""
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(("report", "launch", "kernel", "metric", "value", "unit"))
    for report, launch, metric in rows:
        base = metric.base
        value = metric.value if base is None else base.value
        unit = base_unit(metric.unit)[1] if base is not None else metric.unit
        writer.writerow((report.path, launch.index, launch.name, metric.name, value, unit))
    return made.getvalue()


def figure_metrics(summary: Summary) -> list[Metric]:
    """The figures of a summary and its stalls (in percent of warp cycles) as metrics, named by their keys."""
    made = [Metric(key, each.value, each.unit, each.resolution) for key, each in summary.figures.items()]
    return [*made, *(Metric(f"stall_{each.reason}", each.share * 100, "%") for each in summary.stalls)]


# Comparisons.


def comparison_lines(comparison: Comparison, *, everything: bool = False) -> Iterator[str]:
    """What differs: per kernel the time, what explains it, what was launched otherwise, then all figures."""
    equal = [pair for pair in comparison.pairs if pair.same]
    shown = equal if everything else equal[:_EQUAL]
    for pair in comparison.pairs:
        if not pair.same or pair in shown:
            yield from _pair_lines(pair, comparison.commands, everything=everything)
    if len(equal) > len(shown):
        yield f"{len(equal) - len(shown)} more kernels: no significant difference"
    for side, launches in (("A", comparison.only_a), ("B", comparison.only_b)):
        for name in dict.fromkeys(each.name for each in launches):
            count = sum(each.name == name for each in launches)
            yield f"only in {side}: {shortened(name)}, {count} launch{'es' * (count != 1)}"
    for gap in dict.fromkeys(gap for pair in comparison.pairs for gap in pair.gaps):
        count = sum(gap in pair.gaps for pair in comparison.pairs)
        yield f"gap: {gap}{f' (in {count} kernels)' if count > 1 else ''}"
    if comparison.same:
        yield "no significant difference"
    for side, report in (("A", comparison.a), ("B", comparison.b)):
        device = next((str(each.device) for each in report.launches if each.device.capability), "")
        version = f"ncu {report.version}" if report.version else ""
        about = ", ".join(each for each in (device, version) if each)
        yield f"{side} {report.path}{f' ({about})' if about else ''}"
    yield from (f"note: {note}" for note in comparison.notes)


def _pair_lines(pair: Pair, commands: tuple[str, str] | None, *, everything: bool) -> Iterator[str]:
    yield f"{shortened(pair.name, _NAME)}: {_headline(pair)}"
    causes = _causes(pair)
    if causes:
        word = "explained by" if pair.slower is not None else "differs in"
        yield f"  {word}: {'; '.join(causes)}"
    elif pair.slower is not None:
        yield "  no figure of these reports explains it"
    launched = [f"{what} {a} -> {b}" for what, a, b in pair.shapes]
    launched += [_two(each) for each in pair.significant if each.section == "launch"]
    if commands is not None and not pair.same:
        launched.append(f"command line {commands[0] or '(less)'} -> {commands[1] or '(less)'}")
    if launched:
        yield f"  launched with: {'; '.join(launched)}"
    rows = [each for each in pair.significant if each.section != "launch"]
    shown = rows if everything else rows[:_ROWS]
    if everything:
        shown = [*rows, *(each for each in pair.changes if not each.significant)]
    yield from _table(shown)
    if len(rows) > len(shown):
        yield f"  and {len(rows) - len(shown)} more figures (--all shows them)"
    if pair.others:
        yield "  requested metrics:"
        yield from _table(pair.others)


def _headline(pair: Pair) -> str:
    change = pair.duration or pair.cycles
    if change is None:
        return "no duration in these reports" if not pair.same else "no significant difference"
    noise = f", repeats spread {change.noise:.1%}" if change.noise else ""
    repeats = f" over {len(pair.a)} and {len(pair.b)} launches" if len(pair.a) + len(pair.b) > 2 else ""
    sizes = f"({_arrow(change)}{noise}){repeats}"
    clock = ""
    if pair.clock is not None and abs(pair.clock[1] / pair.clock[0] - 1) > 0.01:
        clock = f"; SM clock {quantity_text(pair.clock[0], 'hz')} -> {quantity_text(pair.clock[1], 'hz')}"
    if pair.cycles is not None and change is not pair.cycles and _differ(change, pair.cycles):
        clock += f", elapsed cycles {_ratio(pair.cycles)}"
    if pair.same:
        return f"no significant difference, {change.label} {_ratio(change)} {sizes}{clock}"
    if pair.slower is None:
        return f"same {change.label} {sizes}{clock}"
    return f"{change.label} {_ratio(change)} {sizes}{clock}"


def _differ(one: Change, other: Change) -> bool:
    """Whether two figures do not change alike."""
    return one.ratio is not None and other.ratio is not None and abs(one.ratio - other.ratio) > _ALIKE


def _causes(pair: Pair) -> list[str]:
    """The figures and stalls that explain most of the difference in time; without one, those that differ."""
    explaining = [
        each
        for each in pair.significant
        if each.section != "launch"
        and (pair.slower is None or each.share is None or each.share > _SMALL_SHARE or not each.a)
        and (pair.slower is None or each.cycles is not None)
    ]
    work = [each for each in explaining if each.section != "stall"]
    appeared = [each for each in work if not each.a][: _WORK + 1]
    others = [each for each in work if each.a][: max(0, _WORK - len(appeared))]
    reasons = [each for each in explaining if each.section == "stall"]
    return [_cause(each) for each in (*appeared, *others, *reasons[:_REASONS])]


def _arrow(change: Change) -> str:
    """ "213.2 -> 164 KB": the unit once where both have it."""
    a, b = quantity_text(change.a, change.unit), quantity_text(change.b, change.unit)
    number, _, unit = a.rpartition(" ")
    return f"{number if number and not unit.isdigit() and b.endswith(f' {unit}') else a} -> {b}"


def _cause(change: Change) -> str:
    sizes = _arrow(change)
    if change.ratio is None or not change.b:
        return f"{change.label} {sizes} ({_ratio(change)})"
    return f"{change.label} {_ratio(change)} ({sizes})"


def _two(change: Change) -> str:
    return f"{change.label} {_arrow(change)}"


def _table(changes: Sequence[Change]) -> Iterator[str]:
    width = max((len(each.label) for each in changes), default=0)
    for each in changes:
        a, b = quantity_text(each.a, each.unit), quantity_text(each.b, each.unit)
        share = f"  {each.share:>5.0%} of the difference" if each.share is not None else ""
        noise = f"  repeats spread {each.noise:.1%}" if each.noise else ""
        yield f"  {each.label:<{width}}  {a:>18} -> {b:<18} {_ratio(each):>7}{share}{noise}".rstrip()
