"""Suspect reads: of uninitialized data, where that matters only if something depends on it (`rerun`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ptxgen.device.report import Finding, Severity
from ptxgen.emulator.checks.causes import Cause

#: Source of a suspect read: a register by its number in `Machine.registers`, the memory "tensor" or "local", or the
#: value that a shuffle takes from an inactive lane (`perturbation.shuffled_by`).
Source = int | str
#: Outcome of a rerun with perturbed memory: nothing changes; only copies of the read value change; something else does.
Verdict = Literal["dropped", "copied", "used"]

_COPIED = "the uninitialized value is only copied to memory"
_USED = "results depend on it: a rerun with different bytes there changed them"
#: Of a launch that ended early.
UNJUDGED = "the launch did not end, so no rerun has shown whether results depend on it"
#: So many reads are kept, and of each source the first in any case.
_LIMIT = 200


def noted(finding: Finding, note: str) -> Finding:
    """A finding with one more sentence on why it is what it is."""
    if not finding.title:
        return replace(finding, summary=f"{finding.summary}; {note}")
    return replace(finding, rule=f"{finding.rule.removesuffix('.')}; {note}" if finding.rule else note)


@dataclass(slots=True)
class _Suspect:
    source: Source
    finding: Finding
    plain: bool
    cause: Cause
    copied: Severity


class Suspects:
    """The suspect reads of a launch, in the order in which they came up."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int | None], _Suspect] = {}
        self.sources: frozenset[Source] = frozenset()
        #: The bits with which registers have been compared for equality.
        self.compared: dict[int, int] = {}
        #: True once a tainted register has influenced memory or control flow (`taint`).
        self.registers_may_matter = False

    def report(
        self, source: Source, finding: Finding, *, plain: bool, cause: Cause = None, copied: Severity = "advice"
    ) -> None:
        """A read, as the finding that it would be (`Check.finding`).

        `plain` ones are advice where no rerun has shown whether anything depends on them; `copied` is the severity
        where the value is only copied to memory.
        """
        if len(self._kept) < _LIMIT or source not in self.sources:
            self._kept.setdefault((finding.summary, finding.line), _Suspect(source, finding, plain, cause, copied))
        self.sources |= {source}

    def settled(self, verdicts: Mapping[Source, Verdict], *, failed: bool) -> Iterator[tuple[Finding, Cause]]:
        """The findings that they turn out to be, with their causes; those of values that are dropped are none.

        Without a verdict plain ones are advice, and all of a launch that has `failed`.
        """
        for each in self._kept.values():
            verdict = verdicts.get(each.source)
            if verdict == "used":
                yield noted(each.finding, _USED), each.cause
            elif verdict == "copied":
                yield replace(noted(each.finding, _COPIED), severity=each.copied), each.cause
            elif verdict is None and failed:
                yield replace(noted(each.finding, UNJUDGED), severity="advice"), each.cause
            elif verdict is None and each.plain:
                yield replace(each.finding, severity="advice"), each.cause
