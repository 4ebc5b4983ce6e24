"""What the launches of a program have shown: printed as it comes, summed up at its end, and as JSON."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from linecache import getline
from typing import Any, TextIO

from ptxgen.device import Accept, Finding, LaunchReport
from ptxgen.device.report import Severity, shortened
from ptxgen.device.sources import authors, by_source_lines, source_places
from ptxgen.driver import sites
from ptxgen.driver.names import demangled, readable, short_name
from ptxgen.driver.options import Options
from ptxgen.driver.protocol import LaunchRequest

#: Characters of an instruction that are shown under a finding.
_SHOWN_INSTRUCTION = 120
#: Strong loads of stale values that are shown for a kernel.
_SHOWN_STALE = 3
#: Words before what `ptxgen exec` itself says.
PREFIX = "ptxgen exec: "


@dataclass(frozen=True)
class StaleSource:
    """A strong load that found what was there before a strong store, by lines of the source or of the PTX."""

    load: str
    store: str
    times: int


@dataclass
class Launched:
    """One launch and how it ended."""

    number: int
    kernel: str
    status: str
    findings: list[Finding] = field(default_factory=list)
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (1, 1, 1)
    cluster: tuple[int, int, int] | None = None
    stream: int = 0
    process: int = 0
    site: str = ""
    instructions: int = 0
    seconds: float = 0.0
    message: str = ""
    #: True where an equal launch had run before and this one would change nothing.
    repeated: bool = False
    #: The paths of source files, by the names that findings have.
    source_files: dict[str, str] = field(default_factory=dict)
    #: Reasons why a check is partial, in words.
    gaps: list[str] = field(default_factory=list)
    #: Strong loads that have returned what was there before a strong store, and how often.
    stale: list[StaleSource] = field(default_factory=list)
    #: Of the findings, the advice that the compiler of this name causes, which only the summary has.
    compiler_made: list[Finding] = field(default_factory=list)
    compiler: str = ""

    @property
    def failed(self) -> bool:
        """Whether there is a finding of severity error, or none ran at all."""
        return self.status in ("refused", "deadlock", "fault", "incomplete") or any(
            each.severity == "error" for each in self.findings
        )

    def to_json(self) -> dict[str, Any]:
        """All fields, as JSON takes them."""
        made: dict[str, Any] = {
            "number": self.number,
            "kernel": self.kernel,
            "name": demangled(self.kernel),
            "status": self.status,
            "grid": self.grid,
            "block": self.block,
            "cluster": self.cluster,
            "stream": self.stream,
            "process": self.process,
            "site": sites.describe(self.site, self.kernel),
            "instructions": self.instructions,
            "seconds": round(self.seconds, 6),
            "repeated": self.repeated,
            "findings": [self._finding_to_json(each) for each in self.findings],
            "stale_values": [asdict(each) for each in self.stale],
        }
        if self.message:
            made["message"] = self.message
        return made

    def _finding_to_json(self, finding: Finding) -> dict[str, Any]:
        """A finding with the author's line as its source, and as `inlined` all lines where they are more."""
        made = finding.to_json()
        made["source"] = authors(finding.source, self.source_files)
        if made["source"] != finding.source:
            made["inlined"] = finding.source
        return made


def _extent(extent: tuple[int, int, int]) -> str:
    """`8` or `8x4` without trailing ones."""
    parts = [*extent]
    while len(parts) > 1 and parts[-1] == 1:
        parts.pop()
    return "x".join(map(str, parts))


def _outcome(launched: Launched) -> str:
    """`fault`, or `2 errors, 1 advice` of a launch that ran to its end."""
    if launched.status not in ("ok", "findings"):
        return launched.status
    errors = sum(each.severity == "error" for each in launched.findings)
    advice = len(launched.findings) - errors
    parts = [f"{errors} error{'s' if errors > 1 else ''}"] if errors else []
    return ", ".join([*parts, f"{advice} advice"] if advice else parts)


class Results:
    """The launches of a run. Equal findings of a kernel are printed once, and counted."""

    def __init__(self, options: Options, out: TextIO | None = None) -> None:
        self.options = options
        self.launches: list[Launched] = []
        self.notes: list[str] = []
        #: Host races between copies and the program, which no launch takes part in.
        self.host_findings: list[Finding] = []
        #: Launches of kernels whose module could not be loaded, by name.
        self.not_loaded: Counter[str] = Counter()
        #: True if NVIDIA's runtime in the program could not be replaced: what it launches is not seen here.
        self.is_blind = False
        #: Calls that were refused, such as unsupported ones and launches of shapes that no GPU takes.
        self.refused_calls = 0
        #: Libraries of machine code whose calls fail, such as cuBLAS: what the program does without them is its own.
        self.failing_libraries: list[str] = []
        #: The kernel that ran when the program was ended; empty if there was none.
        self.unfinished = ""
        self.exit_code: int | None = None
        self._out = out if out is not None else sys.stderr
        #: Refused launches, by kernel and reason.
        self._refused: Counter[tuple[str, str]] = Counter()
        #: The severity of what was printed, by kernel, code and place.
        self._worst: dict[tuple[str, str, str], Severity] = {}
        self._used: set[Accept] = set()
        self._unused: dict[Accept, None] = {}

    def say(self, text: str) -> None:
        """Print a sentence of `ptxgen exec` itself."""
        print(f"{PREFIX}{text}", file=self._out, flush=True)

    def note(self, text: str) -> None:
        """A sentence that is said once, however often it applies."""
        if text not in self.notes:
            self.notes.append(text)
            self.say(text)

    def add(
        self,
        request: LaunchRequest,
        kernel: str,
        report: LaunchReport,
        process: int,
        *,
        repeated: bool = False,
        line: Callable[[int], str] = str,
    ) -> Launched:
        """Keep a launch, and print what is new in it; `line` names a line of the PTX."""
        made = self._make(request, kernel, report.status, process)
        made.stale = [StaleSource(line(each.line), line(each.store_line), each.times) for each in report.stale_values]
        made.findings, made.repeated = list(report.findings), repeated
        made.source_files, made.gaps = report.source_files, list(report.gaps)
        if report.compiler is not None and not self.options.verbose and self.options.fail_on != "advice":
            made.compiler, made.compiler_made = report.compiler.name, report.compiler_made
        self._used.update(report.used_accepts)
        self._unused.update(dict.fromkeys(report.unused_accepts))
        if not repeated:
            made.instructions, made.seconds = report.instructions, report.seconds
        own = [each for each in report.findings if not any(each is other for other in made.compiler_made)]
        new = [each for each in sorted(own, key=lambda each: each.severity != "error") if self._is_new(kernel, each)]
        if new or (report.status not in ("ok", "findings") and not report.findings):
            self._print(made, new)
        return made

    def add_host_race(self, finding: Finding, launch: int) -> None:
        """Keep what the host's happens-before has found, at the launch with this number, or at none (0)."""
        if 0 < launch <= len(self.launches):
            self.launches[launch - 1].findings.append(finding)
        else:
            self.host_findings.append(finding)
        if self._is_new("", finding):
            first, *rest = finding_lines(finding, self.options.verbose, {})
            self.say("\n".join([first, *(f"    {line}" for line in rest)]))

    def refuse(self, request: LaunchRequest, kernel: str, message: str, process: int) -> Launched:
        """Keep a launch that did not begin."""
        made = self._make(request, kernel, "refused", process)
        made.message = message
        if self._refused[kernel, message] == 0:
            self.say(f"{self._title(made)} did not begin: {message}")
        self._refused[kernel, message] += 1
        return made

    def _make(self, request: LaunchRequest, kernel: str, status: str, process: int) -> Launched:
        made = Launched(
            len(self.launches) + 1,
            kernel,
            status,
            grid=request.grid,
            block=request.block,
            cluster=request.cluster,
            stream=request.stream,
            process=process,
            site=request.site,
        )
        self.launches.append(made)
        return made

    def _is_new(self, kernel: str, finding: Finding) -> bool:
        place = finding.source or (f"{finding.line} {finding.instruction}" if finding.line else finding.message)
        key = kernel, finding.code, place
        before = self._worst.get(key)
        if before is None or (before == "advice" and finding.severity == "error"):
            self._worst[key] = finding.severity
            return True
        return False

    def _title(self, launched: Launched) -> str:
        cluster = f", cluster {_extent(launched.cluster)}" if launched.cluster else ""
        site = sites.describe(launched.site, launched.kernel)
        where = f", launched at {site}" if site else ""
        shape = f"grid {_extent(launched.grid)}, block {_extent(launched.block)}{cluster}"
        return f"launch {launched.number}, {short_name(launched.kernel)} ({shape}{where})"

    def _print(self, launched: Launched, findings: list[Finding]) -> None:
        self.say(f"{self._title(launched)}: {_outcome(launched)}")
        for finding in findings:
            for line in finding_lines(finding, self.options.verbose, launched.source_files):
                print(f"    {line}", file=self._out)
        self._out.flush()

    @property
    def used_accepts(self) -> list[Accept]:
        """What is accepted, and came up in a launch."""
        return sorted(self._used, key=str)

    @property
    def unused_accepts(self) -> list[Accept]:
        """What is accepted for a kernel that ran, and came up in no launch."""
        return [each for each in self._unused if each not in self._used]

    @property
    def failed(self) -> bool:
        """Whether the findings alone make the run fail."""
        if self.options.fail_on == "never":
            return False
        if self.not_loaded or self.is_blind:
            return True
        if not self.launches and (self.failing_libraries or self.refused_calls):
            return True
        if self.options.fail_on == "advice":
            return bool(self.host_findings) or any(each.failed or each.findings for each in self.launches)
        return bool(self.host_findings) or any(each.failed for each in self.launches)

    def summary(self) -> Iterator[str]:
        """A line per kernel: launches, warp-instructions, time, findings by code."""
        by_kernel: dict[str, list[Launched]] = {}
        for each in self.launches:
            by_kernel.setdefault(each.kernel, []).append(each)
        if not by_kernel and not self.not_loaded and not self.unfinished:
            yield "no kernel was launched"
            return
        if self.unfinished:
            yield f"{self.unfinished}: 1 launch that did not end"
        for kernel, count in self.not_loaded.items():
            yield f"{short_name(kernel)}: {count} launch{'' if count == 1 else 'es'} refused, not run"
        for kernel, launches in by_kernel.items():
            usual = Counter(finding.code for each in launches for finding in each.compiler_made)
            codes = Counter((finding.severity, finding.code) for each in launches for finding in each.findings)
            codes -= Counter({("advice", code): count for code, count in usual.items()})
            counts = ", ".join(
                f"{code}{' (advice)' if severity == 'advice' else ''} ×{count}"
                for (severity, code), count in sorted(codes.items(), reverse=True)
            )
            if usual:
                kinds = ", ".join(f"{code} ×{count}" for code, count in usual.items())
                compiler = next(each.compiler for each in launches if each.compiler)
                counts += (
                    f"{'; ' if counts else ''}advice that {compiler} causes by the code that it always emits: {kinds}"
                )
            others = Counter(each.status for each in launches if each.status not in ("ok", "findings"))
            repeated = sum(each.repeated for each in launches)
            again = f", {repeated} of them equal and not run again" if repeated else ""
            ended = "".join(f", {count} {status}" for status, count in others.items())
            plural = "" if len(launches) == 1 else "es"
            instructions = sum(each.instructions for each in launches)
            seconds = sum(each.seconds for each in launches)
            yield (
                f"{short_name(kernel)}: {len(launches)} launch{plural}{again}, {instructions} warp-instructions, "
                f"{seconds:.2f} s{ended}; {counts or 'no findings'}"
            )

    def stale_loads(self) -> Iterator[str]:
        """A line per kernel on strong loads of stale values, which explain wrong results where a fence is missing."""
        by_kernel: dict[str, Counter[tuple[str, str]]] = {}
        for launch in self.launches:
            for each in launch.stale:
                by_kernel.setdefault(launch.kernel, Counter())[each.load, each.store] += each.times
        for kernel, loads in by_kernel.items():
            shown = "; ".join(f"{load} missed the store of {store}, ×{times}" for (load, store), times in
                              loads.most_common(_SHOWN_STALE))  # fmt: skip
            yield (
                f"{short_name(kernel)}: strong loads returned stale values, as the memory model allows where no fence "
                f"orders them; if a result is wrong, look here: {shown}"
            )

    def finish(self, exit_code: int) -> None:
        """Print the summary and write the JSON file."""
        self.exit_code = exit_code
        if not self.options.quiet:
            for line in self.summary():
                self.say(line)
            if exit_code or self.options.verbose:
                for line in self.stale_loads():
                    self.say(line)
            if self.failing_libraries:
                self.say(
                    f"what the program does by {' and '.join(self.failing_libraries)} was not run: it is machine code "
                    "without PTX, and its calls returned errors"
                )
            for each in self.unused_accepts:
                self.say(f"accepted, but not found any more: {each}")
        if self.options.json is not None:
            text = json.dumps(self.to_json(), indent=1)
            if str(self.options.json) == "-":
                print(text)
                return
            try:
                self.options.json.write_text(text + "\n", encoding="utf-8")
            except OSError as error:
                self.say(f"cannot write {self.options.json}: {(error.strerror or str(error)).lower()}")

    def to_json(self) -> dict[str, Any]:
        """The run as JSON takes it."""
        return {
            "exit_code": self.exit_code,
            "target": self.options.target,
            "schedule": self.options.schedule,
            "seed": self.options.seed,
            "notes": self.notes,
            "not_loaded": dict(self.not_loaded),
            "findings": [each.to_json() for each in self.host_findings],
            "unused_accepts": [asdict(each) for each in self.unused_accepts],
            "launches": [each.to_json() for each in self.launches],
        }


def _text_of(place: str, files: Mapping[str, str]) -> str:
    """The line of the source at a place; empty where its file is not there."""
    for each in source_places(place):
        return getline(files.get(each.name, each.name), each.line).strip()
    return ""


def finding_lines(finding: Finding, verbose: bool, files: Mapping[str, str]) -> Iterator[str]:
    """A finding for people who wrote its source: `k.py:12:5: error [code] message`, lines of the PTX left out."""
    author = authors(finding.source, files)
    place = author or ("" if finding.line is None else f"PTX line {finding.line}")
    message = readable(by_source_lines(finding.message, finding, files))
    first, *rest = f"{place}{': ' if place else ''}{finding.severity} [{finding.code}] {message}".splitlines()
    yield first
    yield from (f"    {line}" for line in rest)
    text = finding.source_text if finding.source.startswith(author) else _text_of(author, files)
    if text:
        yield f"    {shortened(text, _SHOWN_INSTRUCTION)}"
    if finding.instruction:
        yield f"    {shortened(finding.instruction, _SHOWN_INSTRUCTION)}"
    if finding.consequences:
        yield f"    {finding.consequences_line}"
    if verbose:
        if finding.source != author:
            yield f"    in {finding.source}"
        for each in finding.consequences:
            yield from (f"    + {line}" for line in finding_lines(each, verbose, files))
