"""Collecting findings: one per rule and place, however many threads break it."""

from __future__ import annotations

from ptxgen.device import Finding, Severity
from ptxgen.syntax import Statement

#: Different places that one code is reported for; the rest are counted.
_LIMIT = 20


class Findings:
    """The findings of a launch, in the order in which they came up."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int | None, str], Finding] = {}
        self._per_code: dict[str, int] = {}

    def add(
        self, code: str, message: str, statement: Statement | None, *, severity: Severity = "error", also: str = ""
    ) -> None:
        """Report a broken rule at a statement; `also` tells places apart that share a line."""
        line = statement.line if statement is not None else None
        key = (code, line, also)
        if key in self._found:
            return
        self._per_code[code] = self._per_code.get(code, 0) + 1
        if self._per_code[code] > _LIMIT:
            return
        text = statement.text.strip() if statement is not None else ""
        self._found[key] = Finding(code, severity, message, line, text)

    def list(self) -> list[Finding]:
        return list(self._found.values())

    @property
    def errors(self) -> bool:
        return any(finding.severity == "error" for finding in self._found.values())
