"""`ptxgen run --html`: one self-contained page about a run, without scripts or files of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Protocol

from ptxgen.device import Finding
from ptxgen.reports.frame import framed, gaps_section, head

#: Width of the pictures, in units of their view boxes; columns of tensor memory of an SM.
_WIDTH, _LABEL, _COLUMNS = 1000, 165, 512
#: Units of the narrowest span that is drawn alone, and the most rectangles of a picture: others are merged.
_NARROWEST, _MOST_RECTANGLES = 0.6, 3000
#: Findings with their source around them, and lines around each.
_MOST_FINDINGS, _AROUND = 40, 3


class SpanView(Protocol):
    """A span of a recording: `ptxgen.emulator.observers.recording.Span`."""

    begin: int
    end: int | None
    label: str
    line: int


class TensorView(Protocol):
    """An access of a recording to tensor memory."""

    step: int
    kind: str
    first: int
    last: int
    line: int
    what: str


@dataclass(frozen=True)
class Region:
    """A part of shared memory for the map; `stages` equal parts."""

    name: str
    offset: int
    bytes: int
    stages: int = 1
    holds: str = ""


@dataclass(frozen=True)
class Page:
    """All that the page shows. `counts` are warp-instructions by line; `rows` are spans by name, in two groups."""

    title: str
    ok: bool
    verdict: str
    report: str
    text: str
    findings: Sequence[Finding]
    gaps: Sequence[str] = ()
    regions: Sequence[Region] = ()
    shared_limit: int = 0
    counts: Mapping[int, int] = field(default_factory=dict)
    phases: Mapping[str, Sequence[SpanView]] = field(default_factory=dict)
    works: Mapping[str, Sequence[SpanView]] = field(default_factory=dict)
    tensor: Sequence[TensorView] = ()
    steps: int = 1
    dropped: int = 0

    def html(self) -> str:
        """The page, as UTF-8 text."""
        parts = [part for section in self._sections() for part in section]
        return framed(self.title, parts)

    def _sections(self) -> Iterator[Iterator[str]]:
        yield self._head()
        yield self._findings()
        yield self._printed()
        if self.regions:
            yield self._memory()
        if self.phases or self.works:
            yield self._pipelines()
        if self.tensor:
            yield self._tensor()
        yield self._lines()

    def _head(self) -> Iterator[str]:
        yield from head(self.title, self.ok, self.verdict, self.findings)
        yield from gaps_section(self.gaps, "Everything that ran is modelled and checked.")

    def _printed(self) -> Iterator[str]:
        yield "<section><h2>Report</h2><details open><summary>As it is printed</summary>"
        yield f"<pre>{escape(self.report)}</pre></details></section>"

    def _findings(self) -> Iterator[str]:
        yield "<section><h2>Findings</h2>"
        if not self.findings:
            yield "<p>None.</p>"
        lines = self.text.splitlines()
        for each in self.findings[:_MOST_FINDINGS]:
            first, *rest = each.message.splitlines() or [""]
            source = f' <span class="source">{escape(each.source)}</span>' if each.source else ""
            yield f'<article class="{each.severity}"><h3><code>{escape(each.code)}</code> {each.severity}{source}</h3>'
            yield f"<p>{escape(first)}</p>"
            yield from (f'<p class="fix">{escape(line)}</p>' for line in rest)
            if each.line is not None:
                yield from _excerpt(lines, each)
            if each.consequences:
                items = "".join(f"<li>{escape(one.message)}</li>" for one in each.consequences[:_MOST_FINDINGS])
                yield f"<details><summary>{escape(each.consequences_line)}</summary><ul>{items}</ul></details>"
            yield "</article>"
        if len(self.findings) > _MOST_FINDINGS:
            yield f"<p>And {len(self.findings) - _MOST_FINDINGS} more.</p>"
        yield "</section>"

    def _memory(self) -> Iterator[str]:
        used = max(each.offset + each.bytes for each in self.regions)
        limit = self.shared_limit or used
        yield "<section><h2>Shared memory</h2>"
        yield f"<p>{used:_} of {limit:_} bytes ({used / limit:.0%}).</p>".replace("_", " ")
        yield _svg(40, f"Map of shared memory: {used} of {limit} bytes")
        yield f'<rect class="free" x="0" y="4" width="{_WIDTH}" height="32"/>'
        for number, each in enumerate(self.regions):
            size = each.bytes / each.stages
            for stage in range(each.stages):
                begin = each.offset + stage * size
                part = f" stage {stage}" if each.stages > 1 else ""
                words = f"{each.name}{part}: bytes {begin:.0f} to {begin + size:.0f}"
                x, width = _WIDTH * begin / limit, max(_WIDTH * size / limit, 0.8)
                yield _rect(x, 4, width, 32, f"c{number % 8}", f"{words}; {each.holds}")
        yield "</svg><table><tr><th></th><th>region</th><th>offset</th><th>bytes</th><th>holds</th></tr>"
        for number, each in enumerate(self.regions):
            size_words = f"{each.stages} × {each.bytes // each.stages}" if each.stages > 1 else f"{each.bytes}"
            yield (
                f'<tr><td><i class="c{number % 8}"></i></td><td><code>{escape(each.name)}</code></td>'
                f'<td class="n">{each.offset}</td><td class="n">{size_words}</td><td>{escape(each.holds)}</td></tr>'
            )
        yield "</table></section>"

    def _pipelines(self) -> Iterator[str]:
        yield "<section><h2>Pipelines as they ran</h2>"
        yield (
            "<p>CTA 0. A step is a block of instructions of the emulator: the picture shows order, not duration. "
            "Phases of each mbarrier alternate in shade; below them, asynchronous work from issue to completion.</p>"
        )
        yield from self._rows(self.phases, self.works)
        if self.dropped:
            yield f"<p>{self.dropped} further events are not drawn.</p>"
        yield "</section>"

    def _rows(self, phases: Mapping[str, Sequence[SpanView]], works: Mapping[str, Sequence[SpanView]]) -> Iterator[str]:
        high, gap = 18, 14 if phases and works else 0
        height = high * (len(phases) + len(works)) + gap + 26
        yield _svg(height, "Phases of mbarriers and asynchronous work over steps", scroll=True)
        y = 2
        share = _MOST_RECTANGLES / (len(phases) + len(works))
        least = max(_NARROWEST / (_WIDTH - _LABEL), 1 / share) * max(self.steps, 1)
        for group, table in (("phase", phases), ("work", works)):
            for name, spans in table.items():
                shown = name if len(name) <= 22 else f"{name[:21]}…"
                yield _label(y + 12, f"<title>{escape(name)}</title>{escape(shown)}")
                yield f'<rect class="free" x="{_LABEL}" y="{y + 1}" width="{_WIDTH - _LABEL}" height="{high - 4}"/>'
                for begin, end, number, words in _merged(spans, self.steps, least):
                    kind = f"{group}{number % 2 if group == 'phase' else 0}"
                    width = max(self._x(end) - self._x(begin), 2)
                    yield _rect(min(self._x(begin), _WIDTH - width), y + 1, width, high - 4, kind, words)
                y += high
            y += gap
        yield from self._axis(height)

    def _x(self, step: float) -> float:
        return _LABEL + (_WIDTH - _LABEL) * step / max(self.steps, 1)

    def _axis(self, height: int) -> Iterator[str]:
        for part in range(5):
            step = round(self.steps * part / 4)
            anchor = "end" if part == 4 else "middle" if part else "start"
            yield f'<text class="a" x="{self._x(step):.1f}" y="{height - 4}" text-anchor="{anchor}">{step}</text>'
        yield "</svg>"

    def _tensor(self) -> Iterator[str]:
        top = max(each.last for each in self.tensor) + 1
        columns = next((size for size in (32, 64, 128, 256, 512) if size >= top), _COLUMNS)
        height = 220
        yield "<section><h2>Tensor memory over time</h2>"
        yield (
            '<p>CTA 0, columns from top to bottom. <i class="write"></i> written, <i class="accumulate"></i> '
            'accumulated into, <i class="read"></i> read.</p>'
        )
        yield _svg(height + 26, "Accesses to tensor memory by column over steps", scroll=True)
        yield f'<rect class="free" x="{_LABEL}" y="2" width="{_WIDTH - _LABEL}" height="{height}"/>'
        for part in range(5):
            column = columns * part // 4
            yield _label(2 + height * part / 4 + (10 if part < 4 else 0), f"{column}")
        wide = max((_WIDTH - _LABEL) / max(self.steps, 1), 1.2)
        for each in _thinned(self.tensor, self.steps):
            y, high = 2 + height * each.first / columns, height * (each.last - each.first + 1) / columns
            words = f"step {each.step}: {each.what} (line {each.line}), columns {each.first}-{each.last}, {each.kind}"
            yield _rect(min(self._x(each.step), _WIDTH - wide), y, wide, max(high, 1), each.kind, words)
        yield from self._axis(height + 26)
        yield "</section>"

    def _lines(self) -> Iterator[str]:
        lines = self.text.splitlines()
        marked = {line for each in self.findings for line in (each.line, *each.also_lines)}
        most = max(self.counts.values(), default=1) or 1
        run = sum(count > 0 for count in self.counts.values())
        yield "<section><h2>Lines</h2>"
        if self.counts:
            yield f"<p>{run} of {len(self.counts)} lines with instructions ran; counts are of warps.</p>"
        shown_lines: list[str] = []
        for number, line in enumerate(lines, 1):
            if line.lstrip().startswith(".loc "):
                continue
            count = self.counts.get(number)
            kind = "hit" if number in marked else "never" if count == 0 else ""
            share = round(100 * (count or 0) / most)
            bar = f' style="--w:{share}%"' if share else ""
            shown = "" if count is None else f"{count}"
            name = f' class="{kind}"' if kind else ""
            shown_lines.append(f'<span{name} id="L{number}"{bar}><b>{shown}</b><i>{number}</i>{escape(line)}</span>')
        yield f'<div class="scroll"><pre class="lines">{"".join(shown_lines)}</pre></div></section>'


def _excerpt(lines: Sequence[str], finding: Finding) -> Iterator[str]:
    at = finding.line or 1
    kept = [number for number, line in enumerate(lines, 1) if number == at or not line.lstrip().startswith(".loc ")]
    place = kept.index(at) if at in kept else 0
    shown: list[str] = []
    for number in kept[max(place - _AROUND, 0) : place + _AROUND + 1]:
        kind = ' class="hit"' if number == at else ""
        shown.append(f'<span{kind}><a href="#L{number}">{number:>5}</a>  {escape(lines[number - 1])}</span>')
    yield f'<pre class="excerpt">{"".join(shown)}</pre>'


def _svg(height: int, words: str, *, scroll: bool = False) -> str:
    label = escape(words, quote=True)
    kind = ' class="wide"' if scroll else ""
    return f'<svg{kind} viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{label}">'


def _label(y: float, content: str) -> str:
    return f'<text class="l" x="{_LABEL - 8}" y="{y:.1f}">{content}</text>'


def _rect(x: float, y: float, width: float, height: float, kind: str, words: str) -> str:
    title = f"<title>{escape(words)}</title>"
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}">{title}</rect>'


def _thinned(accesses: Sequence[TensorView], steps: int) -> Sequence[TensorView]:
    """The marks that a reader can see: one of each kind and columns in each part of the time axis."""
    parts = 2 * (_WIDTH - _LABEL)
    while True:
        kept = {
            (each.step * parts // max(steps, 1), each.kind, each.first, each.last): each for each in reversed(accesses)
        }
        if len(kept) <= _MOST_RECTANGLES or parts <= 1:
            return list(kept.values())
        parts //= 2


def _merged(spans: Sequence[SpanView], steps: int, least: float) -> Iterator[tuple[int, float, int, str]]:
    """(begin, end, number, words) of what is drawn: spans shorter than `least` are one with those after them."""
    begin, first, count = 0, 0, 0
    for number, each in enumerate(spans):
        end = steps if each.end is None else each.end
        if not count:
            begin, first = each.begin, number
        count += 1
        follows = spans[number + 1].begin if number + 1 < len(spans) else None
        if end - begin < least and follows is not None and follows - begin < least:
            continue
        words = f"{each.label}: steps {each.begin} to {end} (line {each.line})"
        if count > 1:
            words = f"{spans[first].label} to {each.label}, {count} of them: steps {begin} to {end}"
        yield begin, max(end, begin + least), number, words
        count = 0
