"""What `ptxgen run` shows of a run in the emulator: executions by line, a trace, the state at a line."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ptxgen.cli.common.files import reason, require_writable, write_output
from ptxgen.cli.errors import InputError

if TYPE_CHECKING:
    from ptxgen.device import Device, LaunchReport
    from ptxgen.device.placed import Placed
    from ptxgen.emulator import Emulator
    from ptxgen.emulator.load.source_lines import SourceLines
    from ptxgen.emulator.observers import Breakpoint, LineCounts, Provenance, State, Trace
    from ptxgen.emulator.observers.recording import Recording
    from ptxgen.gemm.concepts.shared_map import SharedMap

_AT = re.compile(r"(?:line:)?(?:(?P<file>[^:#@]+):)?(\d+)(?:#(\d+))?(?:@(\d+))?$")
_AT_FINDING = re.compile(r"finding(?::([\w-]+))?(?:#(\d+))?$")
_TILE = re.compile(r"(\d+)x(\d+):(\w+?)(?::(none|32B|64B|128B|128B_atom_\w+))?$")
SHOWN = "smem:NAME[/STAGE][=ROWSxCOLUMNS:TYPE[:SWIZZLE]], reg:%NAME, tmem:FIRST-LAST or mbarriers"


@dataclass
class Inspection:
    """The observers selected by the options, and their output after the run."""

    lines: str | None = None
    trace: str | None = None
    shows: Sequence[str] = ()
    whys: Sequence[str] = ()
    roles: Mapping[int, str] = field(default_factory=dict)
    _counts: LineCounts | None = None
    _trace: Trace | None = None
    _at: Breakpoint | None = None
    _history: Provenance | None = None
    #: The file of an `--at FILE:LINE`, whose line is still that of the file.
    _file: str = ""
    _sources: SourceLines | None = None
    #: The file of the page of `--html`.
    html: str | None = None
    _recording: Recording | None = None

    @classmethod
    def of(
        cls,
        lines: str | None,
        trace: str | None,
        at: str | None,
        shows: Sequence[str],
        whys: Sequence[str],
        *,
        device: str,
        many: bool,
        html: str | None = None,
    ) -> Inspection:
        """The inspections selected by the options. Raises InputError."""
        asked = [name for name, value in (("--lines", lines), ("--trace", trace), ("--at", at)) if value is not None]
        asked += ["--why"] if whys else []
        asked += ["--html"] if html is not None else []
        if asked and device != "emulator":
            raise InputError(f"{asked[0]} requires the emulator: a GPU does not stop at a line")
        if asked and many:
            raise InputError(f"{asked[0]} inspects a single run; omit --schedules")
        if shows and at is None:
            raise InputError("--show shows the state at a line: add --at LINE[#HIT]")
        made = cls(lines, trace, shows, whys, html=html)
        if not asked:
            return made
        for each in shows:
            _require_words(each)
        for path in (trace, lines, html):
            if path is not None and path != "-":
                require_writable(path)
        from ptxgen.emulator.observers import LineCounts, Provenance, Trace
        from ptxgen.emulator.observers.recording import Recording
        from ptxgen.emulator.observers.trace import require_perfetto

        if trace is not None:
            require_perfetto()
        if whys:
            made._history = Provenance()
        if lines is not None or html is not None:
            made._counts = LineCounts()
        if html is not None:
            made._recording = Recording()
        if trace is not None:
            made._trace = Trace(made.roles)
        if at is not None:
            made._at = _breakpoint(at)
            found = _AT.match(at)
            made._file = (found["file"] or "") if found is not None else ""
        return made

    def require_elements(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Raises ElementError for a `--why` of an array or element that there is not, before anything runs."""
        from ptxgen.device.placed import Placed, parse_element

        arrays = {name: Placed.packed(name, 0, shape, 1) for name, shape in shapes.items()}
        for each in self.whys:
            array, index = parse_element(each, arrays)
            array.address_of(index)

    def require_line(self, text: str, path: str = "") -> None:
        """Find the line of the PTX from `path` that `--at FILE:LINE` names, and what source lines the PTX has.

        Raises InputError for an `--at` of a line without an instruction, before anything runs.
        """
        if self._at is None and self._history is None:
            return
        from ptxgen.emulator.load.source_lines import SourceLines
        from ptxgen.syntax import Instruction, parse

        module = parse(text)
        sources = self._sources = SourceLines(module)
        line = self._at.line if self._at is not None else None
        if line is None or self._at is None:
            return
        lines = [each.line for each in module.statements() if isinstance(each, Instruction)]
        if self._file and not (path.endswith(".ptx") and Path(self._file).name == Path(path).name):
            wanted = f"{self._file}:{line}"
            places = {each: sources.of(each).partition(", inlined at ")[0] for each in lines}
            found = [each for each, place in places.items() if _is_place(wanted, place)]
            if not found:
                named = [parts for place in places.values() if len(parts := place.split(":")) > 1]
                own = {int(parts[1]) for parts in named if Path(parts[0]).name == Path(self._file).name}
                near = sorted(sorted(own, key=lambda each: abs(each - line))[:2])
                files = ", ".join(dict.fromkeys(parts[0] for parts in named))
                lacks = f"the PTX has lines of {files}" if files else "the PTX has no source lines (.loc)"
                if near:
                    verb = "are" if len(near) > 1 else "is"
                    lacks = f"the nearest of {Path(self._file).name} {verb} {' and '.join(map(str, near))}"
                raise InputError(f"--at {wanted}: there is no instruction of this line; {lacks}")
            self._at.line = found[0]
        elif line not in lines:
            near = min(lines, key=lambda each: (each < line, abs(each - line)), default=0)
            raise InputError(f"--at line:{line}: there is no instruction; the nearest is in line {near}")

    def _named(self, text: object) -> str:
        """A text with the source lines of what it names."""
        return self._sources.named(str(text)) if self._sources is not None else str(text)

    def observe(self, device: Device, roles: Mapping[int, str]) -> None:
        """Have the launches of an emulator observed; `roles` name warps of a CTA in the trace."""
        if self._trace is not None:
            self._trace.roles = dict(roles)
        every = (self._counts, self._trace, self._at, self._history, self._recording)
        watching = [each for each in every if each is not None]
        if watching:
            cast("Emulator", device).observers = tuple(watching)

    def as_json(self, arrays: Mapping[str, Placed]) -> dict[str, list[str]]:
        """For `--json`: `inspection` has the lines that `show` prints, which also writes the files; empty if nothing is
        asked. Raises as `show`.
        """
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.show(arrays)
        found = printed.getvalue().splitlines()
        return {"inspection": found} if found else {}

    def show(self, arrays: Mapping[str, Placed]) -> None:
        """Write the files and print the state and the origin of elements of `arrays`.

        Raises InputError, BreakpointError, TraceError, ElementError.
        """
        from ptxgen.emulator.observers.breakpoint import BreakpointError

        refused: list[Exception] = []
        if self.html is not None:
            print(f"page: {self.html}")
        if self._counts is not None and self.lines is not None:
            executed, every = self._counts.coverage()
            text = self._counts.listing()
            if self.lines == "-":
                print(text)
            else:
                write_output(self.lines, text + "\n")
            where = "" if self.lines == "-" else f"; {self.lines} has the counts by line"
            print(f"lines: {executed} of {every} instructions executed{where}")
        if self._trace is not None and self.trace is not None:
            try:
                self._trace.write(self.trace)
            except OSError as error:
                raise InputError(f"cannot write {self.trace}: {reason(error)}") from None
            print(f"trace: {self.trace}; open it in ui.perfetto.dev")
        if self._at is not None:
            state = self._at.state
            print(self._named(state))
            for each in self.shows or ["mbarriers"]:
                try:
                    print(_shown(state, each))
                except (InputError, BreakpointError) as error:  # the others are shown all the same
                    refused.append(error)
        if self._history is not None:
            from ptxgen.device.placed import parse_element
            from ptxgen.emulator.observers.why import Why

            why = Why(self._history, arrays)
            for each in self.whys:
                print(self._named(why.explain(*parse_element(each, arrays))))
        if refused:
            raise refused[0]

    def write_page(
        self,
        launch: LaunchReport,
        *,
        title: str,
        ok: bool,
        verdict: str,
        report: str,
        text: str,
        errors: Sequence[str] = (),
        shared: SharedMap | None = None,
    ) -> None:
        """Write the page of `--html`, if it is asked for; `errors` are those that no finding of the launch has."""
        if self.html is None or self._counts is None or self._recording is None:
            return
        from ptxgen.device import Finding
        from ptxgen.reports.html import Page, Region

        ran, regions = self._recording, shared.regions if shared is not None else ()
        others = [Finding("wrong-result", "error", each) for each in errors]
        page = Page(
            title=title,
            ok=ok,
            verdict=verdict,
            report=report,
            text=text,
            findings=[*launch.findings, *others],
            gaps=launch.gaps,
            regions=[Region(each.name, each.offset, each.bytes, each.stages, each.holds) for each in regions],
            shared_limit=shared.limit if shared is not None else 0,
            counts={line: count.warps for line, count in self._counts.by_line().items()},
            phases={name: each.phases for name, each in ran.mbarriers.items()},
            works=ran.works,
            tensor=ran.tensor,
            steps=ran.steps,
            dropped=ran.dropped,
        )
        write_output(self.html, page.html())


def _is_place(wanted: str, place: str) -> bool:
    """Whether a source line (`mma.j2:21`, `norm.cu:12:5`) is the one that is meant, in whatever folder."""
    return f"/{wanted.rsplit('/', 1)[-1]}:" in f"/{place}:"


def _breakpoint(at: str) -> Breakpoint:
    """What `--at` says. Raises InputError."""
    from ptxgen.emulator.observers import Breakpoint

    found = _AT.match(at)
    if found is not None and int(found[3] or 1):
        return Breakpoint(int(found[2]), int(found[3] or 1), warp=int(found[4]) if found[4] else None)
    found = _AT_FINDING.match(at)
    if found is not None and int(found[2] or 1):
        return Breakpoint(finding=found[1] or "", hit=int(found[2] or 1))
    raise InputError(
        f"--at takes LINE, LINE#HIT or LINE#HIT@WARP, such as line:87#2, or finding, finding:CODE or finding#HIT, "
        f"not {at!r}; a line of the source is FILE:LINE, such as kernel.py:60"
    )


def _require_words(what: str) -> None:
    """Raises InputError for what `--show` does not take, before anything runs."""
    kind, _, name = what.partition(":")
    if what != "mbarriers" and not (kind in ("reg", "smem", "tmem") and name):
        raise InputError(f"--show takes {SHOWN}; not {what!r}")
    layout = name.partition("=")[2]
    if kind == "smem" and layout and _TILE.match(layout) is None:
        raise InputError(f"--show smem:{name}: a tile is ROWSxCOLUMNS:TYPE[:SWIZZLE], such as 128x64:bf16:128B")
    if kind == "tmem" and re.match(r"(\d+)-(\d+)$", name) is None:
        raise InputError(f"--show takes {SHOWN}; not {what!r}")


def _shown(state: State, what: str) -> str:
    """A part of the state as text. Raises InputError, BreakpointError."""
    import numpy as np

    kind, _, name = what.partition(":")
    with np.printoptions(linewidth=120, threshold=256, edgeitems=4):
        match kind:
            case "mbarriers":
                return "\n".join(str(each) for each in state.mbarriers.values()) or "no mbarriers"
            case "reg":
                return f"{name}: {state.register(name)}"
            case "smem":
                return _tile(state, name)
            case _:
                first, _, last = name.partition("-")
                columns = state.tensor[:, int(first) : int(last) + 1]
                return f"tensor memory, columns {name}, as .f32:\n{columns.view(np.float32)}"


def _tile(state: State, what: str) -> str:
    part, _, layout = what.partition("=")
    name, _, stage = part.partition("/")
    view = state.shared[name]
    if stage:
        if not stage.isdigit():
            raise InputError(f"--show smem:{name}/{stage}: a stage is a number")
        view = view.stage(int(stage))
    where = f"{view.name} at {view.start:#x}, {len(view.bytes)} bytes"
    if not layout:
        return f"{where}:\n{view.values('u32')}"
    found = _TILE.match(layout)
    assert found is not None  # as `_require_words` has seen
    try:
        tile = view.tile((int(found[1]), int(found[2])), found[3], swizzle=found[4] or "none")
    except (ValueError, TypeError) as error:
        raise InputError(f"--show smem:{what}: {error}") from error
    return f"{where}:\n{tile}"
