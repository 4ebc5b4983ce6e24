"""Reads of what nothing has written that matter only if something depends on it, as a trial finds out (`trial`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.findings import Findings

#: What is read: a register, by its number in `Machine.registers`, or the memory "tensor" or "local".
Source = int | str
#: What a trial has shown: nothing is different; memory is, but only by copies of what was read; something else is.
Verdict = Literal["dropped", "copied", "used"]

_COPIED = "; the launch leaves in memory, as it is, what it finds there"
_USED = "; what the launch does or leaves depends on it"
#: So many reads are kept, and of each source the first in any case.
_LIMIT = 200


@dataclass(slots=True)
class _Doubt:
    source: Source
    code: str
    message: str
    statement: Statement
    plain: bool


class Doubts:
    """Such reads of a launch, in the order in which they came up."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int | None], _Doubt] = {}
        self.sources: frozenset[Source] = frozenset()
        #: Whether anything made of a register has gone elsewhere (`derived`).
        self.registers_may_matter = False

    def add(self, source: Source, code: str, message: str, statement: Statement, *, plain: bool) -> None:
        """A read. `plain` ones are told, as advice, where nobody knows whether anything depends on them."""
        if len(self._kept) < _LIMIT or source not in self.sources:
            self._kept.setdefault((message, statement.line), _Doubt(source, code, message, statement, plain))
        self.sources |= {source}

    def tell(self, verdicts: Mapping[Source, Verdict], findings: Findings, *, failed: bool) -> None:
        """Turn them into findings, but for those that are dropped.

        Without a verdict plain ones are advice, and all of a launch that has `failed`.
        """
        for doubt in self._kept.values():
            verdict = verdicts.get(doubt.source)
            if verdict == "used":
                findings.add(doubt.code, doubt.message + _USED, doubt.statement)
            elif verdict == "copied":
                findings.add(doubt.code, doubt.message + _COPIED, doubt.statement, severity="advice")
            elif verdict is None and (doubt.plain or failed):
                findings.add(doubt.code, doubt.message, doubt.statement, severity="advice")
