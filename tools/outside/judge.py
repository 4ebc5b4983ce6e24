"""Both verdicts on many lines, ptxas's kept from one run to the next."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ptxgen.instr import load_all
from ptxgen.instr.model.form import REGISTRY
from tools.certify import judges
from tools.certify.broken import BROKEN
from tools.certify.cases import NEWEST, Case
from tools.certify.irreconcilable import STRICTER

#: One target of each generation that has instructions of its own.
TARGETS = ("sm_80", "sm_90a", "sm_100a", "sm_103a", "sm_107a", "sm_110a", "sm_120a", "sm_121a")
#: Lines in one module, and their length together: an instruction of 128 registers costs ptxas much more than others.
BATCH, LENGTH = 300, 40_000
CRASH = "crash: "
#: Seconds of CPU for one run of ptxas; mutations send it into endless loops more often than forms.
judges.TIMEOUT = 2


class Ptxas:
    """What ptxas says of lines, "" where it accepts; verdicts are kept in a file."""

    def __init__(self, kept: Path | None = None) -> None:
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
        self._kept = sqlite3.connect(kept or ":memory:")
        # Losing the file costs a rerun; waiting for the disk after each batch costs more.
        self._kept.execute("pragma synchronous = off")
        self._kept.execute(
            "create table if not exists verdicts (target text, line text, said text, primary key (target, line))"
        )

    def __call__(self, lines: Iterable[str], target: str) -> dict[str, str]:
        found: dict[str, str] = {}
        new: dict[tuple[bool, bool], list[str]] = defaultdict(list)
        for line in dict.fromkeys(lines):
            known = self._kept.execute("select said from verdicts where target = ? and line = ?", (target, line))
            row = known.fetchone()
            if row:
                found[line] = row[0]
            else:
                new[_module(line)].append(line)
        for batch in _batches(new.values()):
            said = judges.ptxas(batch, target, NEWEST)
            if any("fatal" in each and ".version" in each for each in said):
                raise ValueError(f"this ptxas does not take .version {NEWEST}: {said[0]}")
            rows = [(target, line, each) for line, each in zip(batch, said, strict=True)]
            self._kept.executemany("insert or replace into verdicts values (?, ?, ?)", rows)
            self._kept.commit()
            found.update(zip(batch, said, strict=True))
        return found

    def alone(self, line: str, target: str) -> str:
        """The verdict on one line in a module of its own: some objections depend on the lines around."""
        said = judges.ptxas([line], target, NEWEST)[0]
        self._kept.execute("insert or replace into verdicts values (?, ?, ?)", (target, line, said))
        self._kept.commit()
        return said


def ours(lines: Iterable[str], target: str) -> dict[str, str]:
    """What check says of lines, "" where it accepts, `crash: ...` where it raises."""
    groups: dict[tuple[bool, bool], list[str]] = defaultdict(list)
    for line in dict.fromkeys(lines):
        groups[_module(line)].append(line)
    found: dict[str, str] = {}
    for batch in _batches(groups.values()):
        found.update(zip(batch, _ours(batch, target), strict=True))
    return found


def _ours(lines: list[str], target: str) -> list[str]:
    try:
        return judges.ours(lines, target, NEWEST)
    except Exception as error:
        if len(lines) == 1:
            return [f"{CRASH}{type(error).__name__}: {error}"]
        middle = len(lines) // 2
        return _ours(lines[:middle], target) + _ours(lines[middle:], target)


def _module(line: str) -> tuple[bool, bool]:
    """Lines that may share a module: a function has one cta_group, a module one texture mode."""
    case = Case("", "form", line, "")
    return case.group[2:4]


def _batches(groups: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    for group in groups:
        batch: list[str] = []
        length = 0
        for line in group:
            if len(batch) == BATCH or length > LENGTH:
                yield batch
                batch, length = [], 0
            batch.append(line)
            length += len(line)
        if batch:
            yield batch


@dataclass(frozen=True, slots=True)
class Difference:
    """A line on which the two differ on a target: what each objects to, "" where it accepts."""

    line: str
    target: str
    ours: str
    ptxas: str
    #: Why they differ, if that is known.
    reason: str = ""

    @property
    def direction(self) -> str:
        if self.ours.startswith(CRASH):
            return "crash"
        return "refused though legal" if self.ours else "accepted though refused"

    @property
    def kind(self) -> str:
        """Lines that differ alike: opcode, and the objection without names and numbers."""
        opcode = ".".join(self.line.split(" ")[0].rstrip(";").split(".")[:2])
        said = self.ours or self.ptxas
        code = re.search(r"\[[\w-]+\]$", said)
        plain = re.sub(r"%?\bx_\w+|\d+", "", said.split(": ")[-1] if len(said) > 120 else said)
        return f"{opcode}: {plain[:100]}{' ' + code[0] if code and code[0] not in plain[:100] else ''}"


def compare(
    lines: Sequence[str], target: str, ptxas: Callable[[Iterable[str], str], dict[str, str]]
) -> list[Difference]:
    """The lines on which the two differ on a target, those with a reason among them."""
    theirs, mine = ptxas(lines, target), ours(lines, target)
    found: list[Difference] = []
    for line in dict.fromkeys(lines):
        if bool(theirs[line]) == bool(mine[line]) and not mine[line].startswith(CRASH):
            continue
        said = ptxas.alone(line, target) if isinstance(ptxas, Ptxas) else theirs[line]
        my = _ours([line], target)[0]
        if bool(said) == bool(my) and not my.startswith(CRASH):
            continue
        found.append(Difference(line, target, my, said, _reason(line, my, said)))
    return found


def _reason(line: str, mine: str, said: str) -> str:
    """Why the two differ on purpose, "" if no reason is known."""
    load_all()
    root = line.split(" ")[0].rstrip(";").split(".")[0]
    keys = {form.form.key for form in REGISTRY.get(root, ())}
    entries, objection = (STRICTER, mine) if mine else (BROKEN, said)
    for entry in entries:
        if any(entry.matches(key, line, objection) for key in keys):
            return entry.reason
    return ""
