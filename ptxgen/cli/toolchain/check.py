"""`ptxgen check`: what the instruction model says of PTX files and of folders of them."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ptxgen.cli.common import completion
from ptxgen.cli.common.formats import AsJson, Formats, Output
from ptxgen.cli.common.options import AcceptFile, Target
from ptxgen.cli.errors import OK, WRONG, InputError, choose, report
from ptxgen.project import FAIL_ON

if TYPE_CHECKING:
    from ptxgen.device import Accept
    from ptxgen.reports import Failure
    from ptxgen.reports.convert import Checked

#: Seconds between two looks at a watched file.
_POLL = 0.1
#: Folders that hold nothing of the project: hidden ones begin with a dot.
_LEFT_OUT = frozenset({"node_modules", "__pycache__"})


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="PTX files")(check)


def check(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE.ptx|FILE.py|FOLDER...",
            help="PTX text, Python files with a job or kernel, folders (all .ptx files in them), - for standard input.",
            show_default=False,
        ),
    ],
    target: Target = None,
    accept: AcceptFile = None,
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            metavar="error|advice|never",
            help="The least that makes the exit code 1; advice: warnings, too.",
            autocompletion=completion.words(*FAIL_ON),
        ),
    ] = "error",
    watch: Annotated[
        bool, typer.Option("--watch", help="Check again whenever the file changes, until Ctrl-C.")
    ] = False,
    formats: Formats = [],  # noqa: B006  (typer's way to say many)
    as_json: AsJson = False,
) -> int:
    """Check every instruction of PTX files: whether it is legal, and on the target, and why not."""
    from ptxgen.cli.common.files import known_target
    from ptxgen.emulator.load.accepts import reviewed

    output = Output.of(formats, as_json=as_json)
    choose("--fail-on", fail_on, FAIL_ON)
    known_target(target)
    accepted = reviewed(accept) if accept is not None else ()
    options = _Options(target, tuple(accepted), fail_on)
    if watch:
        if len(files) > 1 or Path(files[0]).is_dir():
            raise InputError("--watch is for one file")
        if files[0] == "-" or not output.text or output.files:
            what = "standard input" if files[0] == "-" else "--json" if as_json else "--format"
            raise InputError(f"--watch is for a file and its words, not for {what}")
        return _watch(files[0], options)
    paths = list(_paths(files))
    if len(files) == 1 and paths == files:
        return _alone(files[0], options, output)
    return _several(paths, options, output)


@dataclass(frozen=True)
class _Options:
    target: str | None
    accept: tuple[Accept, ...]
    fail_on: str

    def code(self, found: Sequence[Checked]) -> int:
        """The exit code of what was found."""
        severities = {each.severity for one in found for each in one.diagnostics}
        wrong = {"error": "error" in severities, "advice": bool(severities), "never": False}[self.fail_on]
        return WRONG if wrong else OK


def _paths(words: Sequence[str]) -> Iterator[str]:
    """The files that are named, and those of folders in the order of their names, each once. Raises InputError."""
    seen: set[str] = set()
    for word in words:
        found = list(_in_folder(word)) if word != "-" and os.path.isdir(word) else [word]
        if not found:
            raise InputError(f"{word} has no .ptx files")
        for each in found:
            if (key := os.path.realpath(each) if each != "-" else each) not in seen:
                seen.add(key)
                yield each


def _in_folder(folder: str) -> Iterator[str]:
    """The .ptx files of a folder, and folders in it that cannot be listed: reading these says why."""
    unlisted: list[str] = []
    for root, folders, names in os.walk(folder, onerror=lambda error: unlisted.append(str(error.filename))):
        folders[:] = sorted(each for each in folders if not each.startswith(".") and each not in _LEFT_OUT)
        yield from (os.path.join(root, each) for each in sorted(names) if each.endswith(".ptx"))
    yield from unlisted


def _watch(file: str, options: _Options) -> NoReturn:
    """Check a file now, and whenever its time or size changes; it may be gone for a while, as editors do."""
    seen: object = ()
    while True:
        try:
            found = os.stat(file)
            now = found.st_mtime_ns, found.st_size
        except OSError:
            now = None
        if now != seen:
            seen = now
            print(time.strftime("%H:%M:%S"))
            try:
                _print(*_checked(file, options))
            except InputError as error:
                report(error)
            sys.stdout.flush()
        time.sleep(_POLL)


def _checked(file: str, options: _Options) -> tuple[Checked, str]:
    """What is found in a file, and its text. Raises InputError, AcceptError."""
    from ptxgen.cli.common.files import parse_ptx, read_ptx
    from ptxgen.instr.model.check import check as diagnose
    from ptxgen.reports.convert import checked

    text = read_ptx(file, options.target)
    module = parse_ptx(text, file)
    found = diagnose(module, options.target)
    wanted = options.target or module.target or "any target"
    return checked(file, text, module, wanted, found, options.accept), text


def _alone(file: str, options: _Options, output: Output) -> int:
    """One file: what cannot be used is the command's own error, also where a report says so."""
    from ptxgen.cli.common.files import UnparsedError
    from ptxgen.device import AcceptError
    from ptxgen.reports import Report

    try:
        found, text = _checked(file, options)
    except (InputError, AcceptError) as error:
        if output.wants_report:
            made = Report(failures=(_failure(error, file),))
            if isinstance(error, UnparsedError):
                made = Report(results=(_unparsed(error),))
            nothing = Output("text" if output.printed == "json" else output.printed, output.files)
            nothing.write(text=lambda: None, data=lambda: {"file": file, "ok": False}, report=lambda: made)
        raise
    output.write(text=lambda: _print(found, text), data=lambda: _json(found), report=lambda: Report(found.results))
    return options.code([found])


def _several(paths: Sequence[str], options: _Options, output: Output) -> int:
    """Several files: one that cannot be used does not keep the others from being checked."""
    from ptxgen.cli.common.files import UnparsedError
    from ptxgen.device import AcceptError
    from ptxgen.reports import Report, Result

    found: list[Checked] = []
    results: list[Result] = []
    failures: list[Failure] = []
    rows: list[dict[str, Any]] = []
    worst = OK
    for path in paths:
        try:
            made, text = _checked(path, options)
        except (InputError, AcceptError) as error:
            worst = max(worst, report(error) or OK)
            unparsed = isinstance(error, UnparsedError)
            results += [_unparsed(error)] if unparsed else []
            failures += [] if unparsed else [_failure(error, path)]
            rows.append({"file": path, "ok": False, "error": str(error), "diagnostics": []})
            continue
        found.append(made)
        results += made.results
        rows.append(_json(made))
        if output.text:
            _print(made, text)
    worst = max(worst, options.code(found))
    output.write(
        text=lambda: _summary(found, len(paths)),
        data=lambda: {"ok": all(each["ok"] for each in rows), "files": rows},
        report=lambda: Report(tuple(results), tuple(failures)),
    )
    return worst


def _failure(error: Exception, path: str) -> Failure:
    from ptxgen.reports import Failure, Place

    found = re.match(r"(\d+): ", str(error).removeprefix(f"{path}:"))  # of a comment that accepts
    return Failure(str(error), Place(path, int(found[1]) if found else None))


def _unparsed(error: Exception) -> Any:
    from ptxgen.cli.common.files import UnparsedError
    from ptxgen.reports import Place, Result

    assert isinstance(error, UnparsedError)
    place = Place(error.path, error.line, error.column)
    return Result("syntax-error", "error", f"not PTX: {error.said}", place)


def _counts(found: Sequence[Checked]) -> str:
    """`1 error, 2 warnings, 1 accepted`; empty if there are none."""
    severities = [each.severity for one in found for each in one.diagnostics]
    accepted = sum(len(one.accepted) for one in found)
    words = [
        f"{count} {word}{'s' * (count != 1)}" for word in ("error", "warning") if (count := severities.count(word))
    ]
    return ", ".join([*words, *([f"{accepted} accepted"] if accepted else [])])


def _summary(found: Sequence[Checked], files: int) -> None:
    unread = files - len(found)
    parts = [_counts(found) or "all legal", *([f"{unread} not usable"] if unread else [])]
    print(f"{files} file{'s' * (files != 1)}: {', '.join(parts)}")


def _json(found: Checked) -> dict[str, Any]:
    def row(each: Any) -> dict[str, Any]:
        return {**asdict(each), "nearest": each.nearest, "message": each.message}

    made: dict[str, Any] = {
        "file": found.path,
        "target": found.target,
        "ok": all(each.severity != "error" for each in found.diagnostics),
        "diagnostics": [row(each) for each in found.diagnostics],
    }
    if found.accepted:
        made["accepted"] = [{**row(each), "reason": accept.reason} for each, accept in found.accepted]
    if found.unused:
        made["unused_accepts"] = [asdict(each) for each in found.unused]
    return made


def _print(found: Checked, text: str) -> None:
    from rich.text import Text

    from ptxgen.cli.common.source import excerpt
    from ptxgen.cli.common.terminal import output

    file = found.path
    place = _places(file, text)
    with output() as out:
        for each in found.diagnostics:
            source = place(each.line)
            head = Text(f"{file}:{each.line}:{each.column}: {f'({source}) ' if source else ''}")
            head.append(each.severity, style="bold red" if each.severity == "error" else "bold yellow")
            head.append(f": {each.message} [{each.code}]")
            out.print(head, soft_wrap=True)
            for line in excerpt(text, [each.line], caret=each.column, end=each.end_column, width=out.width):
                out.print(Text(line, style="dim"), soft_wrap=True)
        for accept in found.unused:
            out.print(Text(f"{file}: accepted, but not found any more: {accept}", style="yellow"), soft_wrap=True)
        counts = _counts([found])
        legal = f"legal for {found.target}"
        words = legal if not counts else counts if found.diagnostics else f"{legal}, {counts}"
        out.print(Text(f"{file}: {words}"), soft_wrap=True)


def _places(file: str, text: str) -> Callable[[int], str]:
    """Which line of a Python file appended a line of its PTX; nothing for other files."""
    if not file.endswith(".py"):
        return lambda line: ""
    from ptxgen.emulator.load.source_lines import SourceLines
    from ptxgen.syntax import parse

    return SourceLines(parse(text)).of
