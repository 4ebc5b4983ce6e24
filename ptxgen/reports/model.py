"""A report that is independent of the command and of the format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

#: As SARIF 2.1.0, 3.27.10 names them.
Level = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Place:
    """A file, and a line and columns in it (from 1; `end_column` is after the last character)."""

    path: str
    line: int | None = None
    column: int | None = None
    end_column: int | None = None

    def __str__(self) -> str:
        return self.path if self.line is None else f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Replacement:
    """Text that corrects a result: what stands at a place becomes `text`."""

    place: Place
    text: str


@dataclass(frozen=True)
class Result:
    """One finding of any command: a rule's code, its level, what happened and where.

    `related` are further places with what each is, `fix` says how to correct it, `accepted` is the reason of whoever
    reviewed it (empty: nobody has), `in_source` whether that stands in the source or in a file of its own.
    """

    code: str
    level: Level
    message: str
    place: Place | None = None
    related: tuple[tuple[Place, str], ...] = ()
    fix: str = ""
    replacement: Replacement | None = None
    accepted: str = ""
    in_source: bool = False
    #: Of `ptxgen check`, some of whose codes the emulator has with another meaning.
    static: bool = False
    properties: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """An input that could not be used: the sentence, and the place if it names one."""

    message: str
    place: Place | None = None


@dataclass(frozen=True)
class Report:
    """What a command found, in order, and what it could not read."""

    results: tuple[Result, ...] = ()
    failures: tuple[Failure, ...] = ()
    #: File that stands for what was run, for results without a place: code scanning takes no log that has any.
    subject: str = "ptxgen"
