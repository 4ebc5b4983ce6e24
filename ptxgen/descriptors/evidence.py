"""The evidence for a fact: a small value attached to descriptor fields and printed by `explain()`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EvidenceKind = Literal["documented", "measured", "inferred", "unverified"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The class of a fact and where it comes from.

    `documented`: the vendor's text says it. `measured`: a device or driver answered so (the source names it).
    `inferred`: sources agree without stating it. `unverified`: one indirect source, or sources disagree.
    """

    kind: EvidenceKind
    source: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.source}"


def documented(source: str) -> Evidence:
    """Evidence from the vendor's text; `source` is the section or table."""
    return Evidence("documented", source)


def measured(source: str) -> Evidence:
    """Evidence from a device or a driver; `source` names it."""
    return Evidence("measured", source)


def inferred(source: str) -> Evidence:
    """Evidence from sources that agree without stating the fact."""
    return Evidence("inferred", source)


def unverified(source: str) -> Evidence:
    """A fact with one indirect source only."""
    return Evidence("unverified", source)


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that the manual omits or leaves unclear: the statement, its evidence and its consequences."""

    name: str
    subject: str
    statement: str
    evidence: Evidence
    consequence: str
    #: Who has seen it on Blackwell silicon, "" for nobody; None where it is not about Blackwell's own instructions.
    silicon: str | None = None

    @property
    def witness(self) -> str:
        """The line about Blackwell silicon; empty where there is none to give."""
        if self.silicon is None:
            return ""
        return f"Blackwell silicon: {self.silicon or 'no public record; make blackwell tests it'}"

    def as_dict(self) -> dict[str, str | None]:
        """Plain values, for JSON."""
        return {
            "name": self.name,
            "subject": self.subject,
            "statement": self.statement,
            "evidence": self.evidence.kind,
            "source": self.evidence.source,
            "consequence": self.consequence,
            "silicon": self.silicon,
        }
