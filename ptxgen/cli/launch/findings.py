"""What launches found, for `--format sarif` and `github`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ptxgen.cli.common.files import is_file, machine_code
from ptxgen.reports import Place, Report, Result
from ptxgen.reports.convert import accepted, launched, unused
from ptxgen.reports.convert import found as converted
from ptxgen.reports.paths import inside, place_of, shown_place

if TYPE_CHECKING:
    from ptxgen.audit import Audit
    from ptxgen.cli.launch.plain import PlainResult
    from ptxgen.device import Accept
    from ptxgen.driver.results import Results
    from ptxgen.gemm.job import GemmResult
    from ptxgen.job import JobResult


def gemm_results(
    result: GemmResult, kernel: str, schedule: str | None, ptx: str | None, accepts: Iterable[Accept]
) -> Report:
    """Of a GEMM: the findings, then wrong elements and writes outside C, at the PTX file if there is one."""
    facts = {"kernel": kernel, "schedule": schedule or "gpu", "seed": result.seed}
    made = list(launched(result.launch, ptx or "", facts))
    for each in result.errors:
        if each.finding is None:
            place = Place(ptx, next(iter(each.shown), None)) if ptx else None
            made.append(Result("wrong-result", "error", each.message, place, properties=facts))
    return Report((*made, *unused(accepts, ptx or "")), subject=kernel)


def file_results(result: JobResult | PlainResult, path: str, schedule: str, accepts: Sequence[Accept] | None) -> Report:
    """Of a file: the findings, then outputs that are wrong; what its launch did not name is at the file itself."""
    ptx = path if _is_ptx(path) else ""
    made = [_at_file(each, path) for each in launched(result.launch, ptx, {"schedule": schedule})]
    if not result.launch.ok and all(each.accepted for each in made):
        made.append(Result("wrong-result", "error", f"the launch ended as {result.launch.status}", Place(path)))
    made += [Result("wrong-result", "error", each, Place(path)) for each in result.wrong]
    left = result.launch.unused_accepts if accepts is None else accepts
    return Report((*made, *unused(left, ptx)))


def _is_ptx(path: str) -> bool:
    """Whether lines of a kernel's PTX are lines of its file; of CUDA C++, Python and machine code they are not."""
    if path == "-" or path.endswith((".py", ".cu")):
        return path == "-"
    with open(path, "rb") as file:
        return machine_code(file.read(8)) is None


def _at_file(each: Result, path: str) -> Result:
    return each if each.place is not None else replace(each, place=Place(path))


def program_results(results: Results, command: Sequence[str] = ()) -> Report:
    """Of a program: what its launches found, the same of a kernel once, and launches that did not begin.

    What no source is known of is at the first file that the command names.
    """
    seen: dict[tuple[str, str, str], None] = {}
    made: list[Result] = []
    for launch in results.launches:
        facts: Mapping[str, str | int] = {"kernel": launch.kernel, "launch": launch.number, "status": launch.status}
        rows: list[Result] = [converted(each, launch.source_files, "", facts) for each in launch.findings]
        if launch.status == "refused":
            rows.append(Result("refused-launch", "error", launch.message, properties=facts))
        elif launch.failed and not any(each.level == "error" for each in rows):
            rows.append(Result("wrong-result", "error", f"the launch ended as {launch.status}", properties=facts))
        for each in rows:
            key = launch.kernel, each.code, f"{each.place or each.message}"
            if key not in seen:
                seen[key] = None
                made.append(each)
    report = Report((*made, *accepted(results.used_accepts), *unused(results.unused_accepts)))
    named = next((each for each in command if os.path.isfile(each) and inside(Place(each))), None)
    subject = named or os.path.basename(command[0] if command else "")
    return replace(report, subject=subject) if subject else report


def audit_results(kernel: str, made: Audit, text: str) -> Report:
    """Of an audit: a note for each change that no run needs, at its line of the source, else of the PTX file."""
    return Report(tuple(_unneeded(kernel, made, text)), subject=kernel)


def _unneeded(kernel: str, made: Audit, text: str) -> Iterator[Result]:
    from ptxgen.emulator.load.accepts import source_files
    from ptxgen.emulator.load.source_lines import SourceLines
    from ptxgen.syntax import parse

    module = parse(text)
    sources, files = SourceLines(module), source_files(module)
    is_ptx = is_file(kernel) and _is_ptx(kernel)
    for each in made.of("not needed"):
        change = each.mutant
        source = sources.of(change.line)
        message = f"no run of {kernel} needs {change.spelled.strip()} (line {change.line}): {change.kind}"
        yield Result(
            "not-needed",
            "note",
            message,
            shown_place(
                place_of(source, files) if source else None,
                Place(kernel, change.line, change.column) if is_ptx else None,
            ),
            properties={"kernel": kernel, "change": change.kind, "ptxLine": change.line},
        )
