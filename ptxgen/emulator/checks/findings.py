"""Collecting findings: one per broken rule, however many threads and lines break it in the same way."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ptxgen.device import Finding, Severity
from ptxgen.emulator.checks.uninitialized.suspects import Doubts
from ptxgen.syntax import Statement

#: Different messages that are kept of one code and severity.
_LIMIT = 20
#: What is told with findings of what is read, where a trial has shown it to be harmless.
HARMLESS = "; nothing depends on it: with other bytes there the launch does and leaves the same"
#: Lines that a message lists.
_LINES = 8
#: A warp that a message names (`Ordering.member_name`).
_WARP = re.compile(r"\bwarp \d+(?: of the CTA of rank \d+)?")


def line_list(numbers: Iterable[int]) -> str:
    """`line 4`, `lines 4, 7`, or the first of many `and 92 more`."""
    lines = sorted(set(numbers))
    more = f" and {len(lines) - _LINES} more" if len(lines) > _LINES else ""
    return f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines[:_LINES]))}{more}"


@dataclass(slots=True)
class _Told:
    """A finding as it came up first, and of whom and where the same was found: `warps` are those that messages name."""

    finding: Finding
    warps: set[str]
    lines: set[int]
    ends: bool
    #: Whether it is harmless each time if nothing depends on what was read.
    reads: bool

    def told(self) -> Finding:
        """The finding, with the other lines and warps that it stands for."""
        message = self.finding.message
        if others := self.lines - {self.finding.line}:
            message += f" (so do{'es' if len(others) == 1 else ''} {line_list(others)})"
        if count := len(self.warps.difference(_WARP.findall(message))):
            message += f" (the same of {count} other warp{'s' if count > 1 else ''})"
        return replace(self.finding, message=message)


class Findings:
    """The findings of a launch: what ended it first, then the others in the order in which they came up.

    Without `checks` there is only what ended it.
    """

    def __init__(self, checks: bool = True) -> None:
        self._checks = checks
        self._found: list[_Told] = []
        self._by_message: dict[tuple[str, Severity, str], _Told] = {}
        #: The same by line, and by messages without the numbers of warps.
        self._by_pattern: dict[tuple[str, Severity, int | None, str], _Told] = {}
        self._kept: Counter[tuple[str, Severity]] = Counter()
        #: Whether of what was not kept all errors are of what is read.
        self._only_reads = True
        #: Reads of what nothing has written, which may matter or not.
        self.doubts = Doubts()

    def add(
        self,
        code: str,
        message: str,
        statement: Statement | None,
        *,
        severity: Severity = "error",
        ends: bool = False,
        reads: bool = False,
    ) -> None:
        """Report a broken rule at a statement; `ends` marks what the launch ended with, and why.

        The same message at other lines is told in one finding, at the first of them, and so are messages at one line
        that name different warps. What ended the launch names all of them. `reads`: it is harmless if nothing depends
        on what is read.
        """
        if not (self._checks or ends):
            return
        line = statement.line if statement is not None else None
        known = self._by_message.get((code, severity, message))
        if known is not None and (line is None or line in known.lines):
            known.ends |= ends
            known.reads &= reads
            return
        pattern = message if ends else _WARP.sub("warp", message)
        known = known or self._by_pattern.get((code, severity, line, pattern))
        if known is None:
            self._kept[code, severity] += 1
            if self._kept[code, severity] > _LIMIT:
                self._only_reads &= reads or severity == "advice"
                return
            text = statement.text.strip() if statement is not None else ""
            known = _Told(Finding(code, severity, message, line, text), set(), set(), ends, reads)
            self._found.append(known)
        known.ends |= ends
        known.reads &= reads
        known.warps.update(_WARP.findall(message))
        known.lines.update([line] if line is not None else [])
        self._by_message.setdefault((code, severity, message), known)
        self._by_pattern.setdefault((code, severity, line, pattern), known)

    def list(self) -> list[Finding]:
        """All findings, each with the other lines and warps that it stands for."""
        return [each.told() for each in sorted(self._found, key=lambda each: not each.ends)]

    @property
    def may_be_harmless(self) -> bool:
        """Whether some errors are harmless if nothing depends on what was read."""
        return self._only_reads and any(each.reads and each.finding.severity == "error" for each in self._found)

    def make_harmless(self) -> None:
        """Nothing depends on what was read: such errors become advice."""
        for each in self._found:
            if each.reads and each.finding.severity == "error":
                each.finding = replace(each.finding, severity="advice", message=each.finding.message + HARMLESS)

    def has_error(self, code: str) -> bool:
        """Whether there is an error of a code."""
        return any(each.finding.severity == "error" and each.finding.code == code for each in self._found)

    @property
    def errors(self) -> bool:
        return any(each.finding.severity == "error" for each in self._found)
