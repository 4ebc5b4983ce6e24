"""Results of what the library finds: diagnostics of `check`, findings of launches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ptxgen import syntax
from ptxgen.device import Accept, Finding, LaunchReport
from ptxgen.device.sources import by_source_lines
from ptxgen.emulator.load.accepts import check_accepts, launch_codes, source_files
from ptxgen.emulator.load.source_lines import SourceLines
from ptxgen.instr.model.check import Diagnostic
from ptxgen.reports.model import Level, Place, Replacement, Result
from ptxgen.reports.paths import place_of, relative, shown_place


@dataclass(frozen=True)
class Checked:
    """A PTX file as `ptxgen check` judged it: what is left, what somebody has accepted, and what was not found."""

    path: str
    target: str
    diagnostics: tuple[Diagnostic, ...]
    accepted: tuple[tuple[Diagnostic, Accept], ...] = ()
    unused: tuple[Accept, ...] = ()
    results: tuple[Result, ...] = field(default=(), repr=False)


def checked(
    path: str,
    text: str,
    module: syntax.Module,
    target: str,
    found: Sequence[Diagnostic],
    accepts: Sequence[Accept] = (),
) -> Checked:
    """Divide the diagnostics of a file by what its comments and these entries accept. Raises AcceptError."""
    entries = [*check_accepts(text, module, relative(path)), *accepts]
    statements = {each.line: each for each in module.statements()} if entries else {}
    used: set[Accept] = set()
    left: list[Diagnostic] = []
    taken: list[tuple[Diagnostic, Accept]] = []
    for each in found:
        statement = statements.get(each.line)
        words = statement.text.strip() if statement is not None else ""
        matching = [one for one in entries if one.matches(each.code, words, "", [each.line])]
        used.update(matching)
        if matching:
            taken.append((each, matching[0]))
        else:
            left.append(each)
    unused = tuple(one for one in entries if one.place and one not in used and one.code not in launch_codes())
    sources, files, lines = SourceLines(module), source_files(module), text.splitlines()
    results = [_diagnosed(path, lines, each, None, sources.of(each.line) if files else "", files) for each in left]
    results += [
        _diagnosed(path, lines, each, one, sources.of(each.line) if files else "", files) for each, one in taken
    ]
    results += [unused_result(each, path) for each in unused]
    return Checked(path, target, tuple(left), tuple(taken), unused, tuple(results))


def _diagnosed(
    path: str, lines: Sequence[str], each: Diagnostic, accept: Accept | None, source: str, files: Mapping[str, str]
) -> Result:
    here = Place(path, each.line, each.column, each.end_column or None)
    origin = place_of(source, files) if source else None
    place = shown_place(origin, here)
    return Result(
        each.code,
        each.severity,
        each.message,
        place,
        _other(place, origin, here),
        fix=each.nearest and f"use {each.nearest}",
        replacement=_replacement(path, lines, each) if place == here else None,
        accepted=accept.reason if accept is not None else "",
        in_source=accept is not None and bool(accept.place),
        static=True,
    )


def _replacement(path: str, lines: Sequence[str], each: Diagnostic) -> Replacement | None:
    """The nearest legal opcode in the place of the one that was refused, if that stands in the line as it is."""
    line = lines[each.line - 1] if each.line <= len(lines) else ""
    begin = line.find(each.opcode) if each.opcode and each.nearest else -1
    if begin < 0:
        return None
    return Replacement(Place(path, each.line, begin + 1, begin + 1 + len(each.opcode)), each.nearest)


def launched(
    report: LaunchReport, ptx: str = "", properties: Mapping[str, str | int] | None = None
) -> Iterator[Result]:
    """The findings of a launch, accepted ones last; `ptx` is the file of its PTX, empty if there is none."""
    facts = {"kernel": report.kernel, **(properties or {})}
    for each in report.findings:
        yield found(each, report.source_files, ptx, facts)
    ended = {each.code for each in report.findings} if report.status not in ("ok", "findings") else set()
    yield from accepted((each for each in report.used_accepts if each.code not in ended), ptx)


def _other(place: Place | None, source: Place | None, ptx: Place | None) -> tuple[tuple[Place, str], ...]:
    """The line of the PTX or of the source that a result is not shown at."""
    other, what = (source, "the source") if place == ptx else (ptx, "the PTX")
    return ((other, what),) if other is not None and other != place else ()


def found(
    finding: Finding, files: Mapping[str, str], ptx: str = "", properties: Mapping[str, str | int] | None = None
) -> Result:
    """A finding at the line of its source where that is known and there, else at that of the PTX."""
    level: Level = "error" if finding.severity == "error" else "note"
    origin = place_of(finding.source, files) if finding.source else None
    here = Place(ptx, finding.line) if ptx else None
    shown = shown_place(origin, here)
    related: dict[Place, str] = {}

    def words(text: str) -> str:
        """A text that names lines of the PTX only where its file is known."""
        return text if ptx else by_source_lines(text, finding, files)

    for each in finding.accesses:
        place = place_of(each.source, files) if each.source else None
        if place is None and ptx and each.line is not None:
            place = Place(ptx, each.line)
        if place is not None and place != shown:
            related.setdefault(place, words(f"{each.role}: {each}"))
    for place, what in _other(shown, origin, here):
        related.setdefault(place, what)
    facts = {**(properties or {}), "instruction": finding.instruction, "section": finding.section}
    if finding.consequences:
        facts["consequences"] = len(finding.consequences)
    if finding.line is not None:
        facts["ptxLine"] = finding.line
    message = words(replace(finding, fix="").message)
    if finding.consequences:
        message += f"\n{finding.consequences_line}"
    return Result(
        finding.code,
        level,
        message,
        shown,
        tuple(related.items()),
        fix=words(finding.fix),
        properties={name: value for name, value in facts.items() if value != ""},
    )


def unused(accepts: Iterable[Accept], path: str = "") -> Iterator[Result]:
    """A note for each accepted finding that did not come up."""
    return (unused_result(each, path) for each in accepts)


def unused_result(accept: Accept, path: str = "") -> Result:
    """Of one; `path` is the file of the PTX."""
    return Result(
        "unused-accept", "note", f"accepted, but not found any more: {accept}", _place_of_accept(accept, path)
    )


def accepted(accepts: Iterable[Accept], path: str = "") -> Iterator[Result]:
    """A suppressed result for each entry that findings of a launch have matched, at the comment that accepts them."""
    from ptxgen.emulator.checks.registry import CHECKS

    for each in accepts:
        check = CHECKS.get(each.code)
        yield Result(
            each.code,
            "error" if check is not None and check.severity == "error" else "note",
            f"{check.title if check is not None else each.code}, accepted: {each.reason}",
            _place_of_accept(each, path),
            accepted=each.reason,
            in_source=bool(each.place),
            properties={"instruction": each.instruction} if each.instruction else {},
        )


def _place_of_accept(accept: Accept, path: str) -> Place | None:
    name, _, line = accept.place.rpartition(":")
    if name and line.isdecimal():
        return Place(accept.path or name, int(line))
    if path and accept.place.startswith("line "):
        return Place(path, int(accept.place.removeprefix("line ")))
    return Place(path) if path else None
