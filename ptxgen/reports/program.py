"""`ptxgen exec --html`: one self-contained page about the launches of a program, its kernels by finding."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Protocol

from ptxgen.device import Finding
from ptxgen.device.sources import by_source_lines
from ptxgen.reports.frame import counted, framed, gaps_section, head
from ptxgen.reports.paths import place_of, relative

#: Findings of one kernel that are shown, lines of source around each, launches that a finding names.
_MOST_FINDINGS, _AROUND, _NAMED = 40, 3, 8
#: The largest source file that is read for its lines, in bytes.
_LARGEST = 4 << 20


class LaunchView(Protocol):
    """A launch as the page needs it: `ptxgen.driver.results.Launched`."""

    number: int
    kernel: str
    status: str
    findings: list[Finding]
    instructions: int
    seconds: float
    message: str
    repeated: bool
    source_files: dict[str, str]
    gaps: list[str]

    @property
    def failed(self) -> bool:
        """Whether the launch went wrong."""
        ...


@dataclass
class _Kept:
    """One finding of a kernel with the numbers of the launches that have it."""

    finding: Finding
    files: Mapping[str, str]
    launches: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class ProgramPage:
    """All that the page shows. `names` are kernels as people write them, by the name in the PTX."""

    command: Sequence[str]
    device: str
    exit_code: int
    ok: bool
    launches: Sequence[LaunchView]
    names: Mapping[str, str]
    notes: Sequence[str] = ()

    def html(self) -> str:
        """The page, as UTF-8 text."""
        return framed(f"{shlex.join(self.command)} on {self.device}", self._parts())

    def _parts(self) -> Iterator[str]:
        kernels = self._kernels()
        kept = {kernel: _folded(launches) for kernel, launches in kernels.items()}
        every = [each.finding for found in kept.values() for each in found]
        failed = sum(each.failed for each in self.launches)
        launches = f"{len(self.launches)} launch{'es' * (len(self.launches) != 1)}"
        verdict = f"{failed} of {launches} went wrong" if failed else f"{launches}, none went wrong"
        if self.exit_code:
            verdict += f"; exit code {self.exit_code}"
        yield from head(f"{shlex.join(self.command)} on {self.device}", self.ok, verdict, every)
        yield from gaps_section(self._gaps(), "Everything that ran is modelled and checked.")
        yield from self._table(kernels, kept)
        order = sorted(kernels, key=lambda each: (not any(one.failed for one in kernels[each]), not kept[each]))
        for kernel in order:
            if kept[kernel] or any(each.status == "refused" for each in kernels[kernel]):
                yield from self._kernel(kernel, kernels[kernel], kept[kernel])

    def _kernels(self) -> dict[str, list[LaunchView]]:
        made: dict[str, list[LaunchView]] = {}
        for each in self.launches:
            made.setdefault(each.kernel, []).append(each)
        return made

    def _gaps(self) -> list[str]:
        gaps: Counter[str] = Counter()
        for each in self.launches:
            gaps.update(f"{self._name(each.kernel)}: {gap}" for gap in each.gaps)
            if each.status in ("refused", "incomplete"):
                gaps[f"{self._name(each.kernel)}: ended as {each.status}"] += 1
        return [*self.notes, *(f"{gap} ({count} launches)" if count > 1 else gap for gap, count in gaps.items())]

    def _name(self, kernel: str) -> str:
        return self.names.get(kernel, kernel)

    def _table(self, kernels: Mapping[str, Sequence[LaunchView]], kept: Mapping[str, Sequence[_Kept]]) -> Iterator[str]:
        yield "<section><h2>Kernels</h2>"
        if not kernels:
            yield "<p>No kernel was launched.</p></section>"
            return
        heads = ("kernel", "launches", "equal, not run again", "warp-instructions", "seconds", "ended as", "findings")
        yield f"<table><tr>{''.join(f'<th>{each}</th>' for each in heads)}</tr>"
        for number, (kernel, launches) in enumerate(kernels.items()):
            ended = Counter(each.status for each in launches)
            found = counted([each.finding for each in kept[kernel]])
            name = f"<code>{escape(self._name(kernel))}</code>"
            shown = f'<a href="#k{number}">{name}</a>' if self._shown(launches) else name
            counts = (
                len(launches),
                sum(each.repeated for each in launches),
                sum(each.instructions for each in launches),
            )
            yield f"<tr><td>{shown}</td>{''.join(f'<td class=n>{each}</td>' for each in counts)}"
            yield f"<td class=n>{sum(each.seconds for each in launches):.2f}</td>"
            yield f"<td>{', '.join(f'{count} {status}' for status, count in ended.items())}</td>"
            yield f"<td>{found or 'none'}</td></tr>"
        yield "</table></section>"

    @staticmethod
    def _shown(launches: Sequence[LaunchView]) -> bool:
        return any(each.findings or each.status == "refused" for each in launches)

    def _kernel(self, kernel: str, launches: Sequence[LaunchView], kept: Sequence[_Kept]) -> Iterator[str]:
        number = list(self._kernels()).index(kernel)
        yield f'<section id="k{number}"><h2>{escape(self._name(kernel))}</h2>'
        if self._name(kernel) != kernel:
            yield f"<p><code>{escape(kernel)}</code></p>"
        refused = Counter(each.message for each in launches if each.status == "refused")
        for message, count in refused.items():
            yield f'<p class="warn">{count} did not begin: {escape(message)}</p>'
        for each in kept[:_MOST_FINDINGS]:
            yield from _article(each)
        if len(kept) > _MOST_FINDINGS:
            yield f"<p>And {len(kept) - _MOST_FINDINGS} more.</p>"
        yield "</section>"


def _folded(launches: Sequence[LaunchView]) -> list[_Kept]:
    """The findings of a kernel, errors first; the same one of several launches once."""
    made: dict[tuple[str, str, str], _Kept] = {}
    for launch in launches:
        for each in launch.findings:
            key = each.code, each.severity, each.source or f"{each.line} {each.instruction}"
            made.setdefault(key, _Kept(each, launch.source_files)).launches.append(launch.number)
    return sorted(made.values(), key=lambda each: each.finding.severity != "error")


def _article(kept: _Kept) -> Iterator[str]:
    each = kept.finding
    first, *rest = by_source_lines(each.message, each, kept.files).splitlines() or [""]
    source = f' <span class="source">{escape(each.source)}</span>' if each.source else ""
    yield f'<article class="{each.severity}"><h3><code>{escape(each.code)}</code> {each.severity}{source}</h3>'
    yield f"<p>{escape(first)}</p>"
    yield from (f'<p class="fix">{escape(line)}</p>' for line in rest)
    yield from _excerpt(kept)
    numbers = ", ".join(map(str, kept.launches[:_NAMED])) + (", …" if len(kept.launches) > _NAMED else "")
    yield f"<p class=source>launch{'es' * (len(kept.launches) > 1)} {numbers}</p>"
    if each.consequences:
        messages = (by_source_lines(one.message, one, kept.files) for one in each.consequences[:_MOST_FINDINGS])
        items = "".join(f"<li>{escape(message)}</li>" for message in messages)
        yield f"<details><summary>{escape(each.consequences_line)}</summary><ul>{items}</ul></details>"
    yield "</article>"


def _excerpt(kept: _Kept) -> Iterator[str]:
    """The lines of the program around a finding, where its file is there, and the PTX instruction."""
    place = place_of(kept.finding.source, kept.files) if kept.finding.source else None
    if place is not None and place.line is not None:
        lines = _lines(Path(place.path))
        if 0 < place.line <= len(lines):
            shown: list[str] = []
            for number in range(max(place.line - _AROUND, 1), min(place.line + _AROUND, len(lines)) + 1):
                kind = ' class="hit"' if number == place.line else ""
                shown.append(f"<span{kind}>{number:>5}  {escape(lines[number - 1])}</span>")
            yield f"<p class=source>{escape(relative(place.path))}</p>"
            yield f'<pre class="excerpt">{"".join(shown)}</pre>'
    if kept.finding.instruction:
        line = f"PTX line {kept.finding.line}: " if kept.finding.line is not None else ""
        yield f"<p class=source>{line}<code>{escape(kept.finding.instruction)}</code></p>"


def _lines(path: Path) -> list[str]:
    try:
        if not path.is_file() or os.path.getsize(path) > _LARGEST:
            return []
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
