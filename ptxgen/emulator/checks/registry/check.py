"""What the declaration of a check says."""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.device.report import Access, Finding, Severity
from ptxgen.syntax import Statement


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that the emulator finds wrong or risky. Docs, `ptxgen explain CODE` and the tests read it.

    `title` leads each message, `severity` holds where a report names no other, `fault` marks what ends the launch.
    `section` are sections of the PTX ISA 9.2. `rule`, `why` and `fix` are sentences; `fix` is also the last line of a
    message. `example` is an excerpt of PTX that fires the check, with the fixed line in a comment. `fires` and `twin`
    are node ids of pytest, relative to tests/: a test whose kernel fires it, and one of a clean kernel like it.
    `explains` are the codes that follow from this one where they have the same cause.
    """

    code: str
    title: str
    group: str
    rule: str
    why: str
    fix: str
    example: str
    fires: str
    twin: str
    section: str = ""
    severity: Severity = "error"
    fault: bool = False
    explains: tuple[str, ...] = ()

    def finding(
        self,
        statement: Statement | None,
        *,
        summary: str,
        rule: str | None = None,
        fix: str | None = None,
        accesses: tuple[Access, ...] = (),
        severity: Severity | None = None,
    ) -> Finding:
        """A finding of this check at a statement; the declaration fills in what is not given."""
        return Finding(
            self.code,
            severity or self.severity,
            summary,
            line=statement.line if statement is not None else None,
            instruction=statement.text.strip() if statement is not None else "",
            title=self.title,
            rule=self.rule if rule is None else rule,
            fix=self.fix if fix is None else fix,
            section=self.section,
            accesses=accesses,
        )
