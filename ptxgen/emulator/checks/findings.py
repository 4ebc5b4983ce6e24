"""Collecting findings: one per broken rule, however many threads and lines break it in the same way."""

from __future__ import annotations

from dataclasses import replace

from ptxgen.device import Finding, Severity
from ptxgen.syntax import Statement

#: Different messages that are kept of one code.
_LIMIT = 20


class Findings:
    """The findings of a launch: what ended it first, then the others in the order in which they came up."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[Finding, list[int]]] = {}
        self._per_code: dict[str, int] = {}
        self._ends: set[str] = set()

    def add(
        self,
        code: str,
        message: str,
        statement: Statement | None,
        *,
        severity: Severity = "error",
        ends: bool = False,
    ) -> None:
        """Report a broken rule at a statement; `ends` marks what the launch ended with.

        The same message at other lines is told in one finding, at the first of them.
        """
        line = statement.line if statement is not None else None
        known = self._found.get((code, message))
        if known is not None:
            if line is not None and line != known[0].line and line not in known[1]:
                known[1].append(line)
            return
        self._per_code[code] = self._per_code.get(code, 0) + 1
        if self._per_code[code] > _LIMIT:
            return
        if ends:
            self._ends.add(code)
        text = statement.text.strip() if statement is not None else ""
        self._found[code, message] = Finding(code, severity, message, line, text), []

    def list(self) -> list[Finding]:
        """All findings, each with the other lines that it stands for."""
        told = [
            replace(finding, message=f"{finding.message} (so do lines {', '.join(map(str, sorted(lines)))})")
            if lines
            else finding
            for finding, lines in self._found.values()
        ]
        return sorted(told, key=lambda finding: finding.code not in self._ends)

    @property
    def errors(self) -> bool:
        return any(finding.severity == "error" for finding, _ in self._found.values())
