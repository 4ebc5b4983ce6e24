"""Workflow commands of GitHub Actions, which show results beside the lines of a pull request.

GitHub's documentation ("Workflow commands", "Setting an error message") has the syntax; what must be escaped is in
actions/toolkit, packages/core/src/command.ts: in messages %, CR and LF, in properties : and , besides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ptxgen.reports.model import Level, Place, Report
from ptxgen.reports.paths import in_repository
from ptxgen.reports.rules import rule_of

_COMMANDS: dict[Level, str] = {"error": "error", "warning": "warning", "note": "notice"}


def workflow_commands(report: Report) -> Iterator[str]:
    """A line per result that nobody has accepted: `::error file=k.cu,line=12,title=...::message`."""
    for each in report.results:
        if each.accepted:
            continue
        title = f"{rule_of(each).title} [{each.code}]"
        lines = [each.message, *([f"fix: {each.fix}"] if each.fix else [])]
        lines += [f"{_shown(place)}: {what}" for place, what in each.related]
        yield _command(_COMMANDS[each.level], each.place, title, "\n".join(lines))
    for each in report.failures:
        yield _command("error", each.place, "unusable input", each.message)


def _shown(place: Place) -> str:
    return str(replace(place, path=in_repository(place.path)))


def _command(command: str, place: Place | None, title: str, message: str) -> str:
    properties = {"title": title}
    if place is not None:
        properties = {"file": in_repository(place.path), **_position(place), **properties}
    words = ",".join(f"{name}={_escaped(value, ',', ':')}" for name, value in properties.items())
    return f"::{command} {words}::{_escaped(message)}"


def _position(place: Place) -> dict[str, str]:
    values = {"line": place.line, "col": place.column, "endColumn": place.end_column}
    return {name: str(value) for name, value in values.items() if value is not None}


def _escaped(text: str, *more: str) -> str:
    for each in ("%", "\r", "\n", *more):
        text = text.replace(each, f"%{ord(each):02X}")
    return text
