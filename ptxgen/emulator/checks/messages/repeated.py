"""Findings that come up again and again: after some reports of the same, only their warps are counted."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ptxgen.emulator.checks.findings import Findings

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import HappensBefore

#: After so many reports one more says nothing new: a finding keeps fewer parties.
_ENOUGH = 32


@dataclass(slots=True)
class _Kind:
    """How often findings of a kind have been reported, the warps of the finding that stands for them, and which of
    `HappensBefore.actors` have been added to these since.
    """

    times: int = 0
    warps: set[Hashable] | None = None
    actors: set[int] = field(default_factory=set)


class Repeated:
    """The findings of a check, by what makes them the same but for warps and addresses."""

    def __init__(self, happens_before: HappensBefore, findings: Findings) -> None:
        self._happens_before, self._findings = happens_before, findings
        self._kinds: dict[Hashable, _Kind] = {}

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def reported(self, kind: Hashable, warps: set[Hashable] | None) -> None:
        """A finding of a kind has been reported; it is of these warps, which `Findings.report` gives."""
        known = self._kinds.setdefault(kind, _Kind())
        known.times, known.warps = known.times + 1, warps

    def is_known(self, kind: Hashable, times: int = _ENOUGH) -> bool:
        """Whether a finding of a kind has been reported often enough."""
        known = self._kinds.get(kind)
        return known is not None and known.times >= times

    def count(self, kind: Hashable, actors: Iterable[int]) -> None:
        """Instead of a report of a kind that is known: these warps are its parties."""
        self._findings.leave_out(f"races of one kind beyond {_ENOUGH} were counted, not examined")
        known = self._kinds[kind]
        fresh = set(actors) - known.actors
        known.actors |= fresh
        if known.warps is not None:
            known.warps.update(map(self._named, fresh))

    def _named(self, actor: int) -> Hashable:
        """A warp, as findings count them."""
        found = self._findings.access("accessor", None, self._happens_before.resident_warp(actor))
        return found.cta, found.warp
