"""Outcomes in a file, so that a run goes on where another was cut, and a table of them."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ptxgen.gemm import PlanError, find
from tools.code import Code
from tools.rungs.cases import Case, cases


@dataclass(frozen=True)
class Tally:
    """Runs of a kernel: how many there are, how many were right, wrong, and refused as no config of it."""

    kernel: str
    runs: int
    right: int
    wrong: int
    refused: int

    @property
    def left(self) -> int:
        """Runs that are still to be made."""
        return self.runs - self.right - self.wrong - self.refused


class Kept:
    """What became of cases, as `judge` gives it, for the code that a kernel has now."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        self._path = path
        self._found: dict[tuple[str, str], str | None] = {}
        if resume and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                case, text, outcome = json.loads(line)
                self._found[case, text] = outcome
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text("", encoding="utf-8")

    def known(self, case: Case) -> bool:
        """Whether a case need not run: it was right, or there is no such config."""
        return not self._found.get(_key(case), "never run")

    def add(self, case: Case, outcome: str | None) -> None:
        """Keep an outcome."""
        self._found[_key(case)] = outcome
        with self._path.open("a") as file:
            file.write(json.dumps([*_key(case), outcome]) + "\n")

    def tally(self, name: str) -> Tally:
        """What is known of a kernel."""
        keys = [_key(case) for case in all_cases(name)]
        outcomes = [self._found[key] for key in keys if key in self._found]
        refused = sum(each is None for each in outcomes)
        right = sum(each == "" for each in outcomes)
        return Tally(name, len(keys), right, len(outcomes) - right - refused, refused)


def all_cases(name: str) -> list[Case]:
    """The runs of a kernel. By their words: options that it lacks do not make it run twice."""
    return list({str(case): case for case in cases(find(name))}.values())


def table(tallies: Iterable[Tally]) -> str:
    """The score."""
    lines = ["| kernel | runs | right | wrong | no such config | not run |", "|---|---:|---:|---:|---:|---:|"]
    found = list(tallies)
    columns = zip(*((each.runs, each.right, each.wrong, each.refused, each.left) for each in found), strict=True)
    rows = [(f"`{each.kernel}`", each.runs, each.right, each.wrong, each.refused, each.left) for each in found]
    lines += [f"| {' | '.join(map(str, row))} |" for row in [*rows, ("all", *map(sum, columns))]]
    return "\n".join(lines) + "\n"


def _key(case: Case) -> tuple[str, str]:
    return str(case), _digest(case.name, tuple(case.choices.items()))


@functools.cache
def _digest(name: str, choices: tuple[tuple[str, object], ...]) -> str:
    """Of a kernel's code; empty where there is no such config."""
    try:
        return Code(find(name).plan(**dict(choices)).text).digest
    except PlanError:
        return ""
