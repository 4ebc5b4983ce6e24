"""How a mutant fares: it is run under one schedule after the other until something tells that it is broken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ptxgen.emulator import Emulator
from ptxgen.syntax import PtxSyntaxError
from tools.mutants.mutations import Mutant
from tools.mutants.subjects import Subject, load

Fate = Literal["finding", "fault", "deadlock", "endless", "wrong result", "unmodelled", "crash", "survived"]

#: What catches most is tried first.
SCHEDULES: tuple[tuple[Any, int], ...] = (("late", 0), ("eager", 0), ("random", 1), ("random", 2), ("random", 3))
#: A mutant may take so many times the instructions of the kernel before it counts as endless.
_PATIENCE = 20


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: the code of a finding or what else told, under which schedule."""

    subject: str
    mutant: Mutant
    fate: Fate
    told: str = ""
    schedule: str = ""

    @property
    def caught(self) -> bool:
        return self.fate in ("finding", "fault", "deadlock", "endless", "wrong result")


def baseline(subject: Subject) -> tuple[str, int]:
    """Why the unbroken kernel is not right under some schedule, empty if it is; and its warp-instructions."""
    instructions = 0
    for schedule, seed in SCHEDULES:
        report, right = subject.run(subject.text, Emulator(subject.target, schedule, seed))
        if report.status != "ok" or not right:
            told = report.findings[0].code if report.findings else "wrong result"
            return f"{schedule} {seed}: {report.status}, {told}", 0
        instructions = max(instructions, report.instructions)
    return "", instructions


def judge(name: str, mutant: Mutant, instructions: int, schedules: int = len(SCHEDULES)) -> Verdict:
    """Run a mutant until it is caught."""
    subject = load(name)
    text = mutant.applied(subject.text)
    for schedule, seed in SCHEDULES[:schedules]:
        device = Emulator(subject.target, schedule, seed, max_steps=_PATIENCE * max(instructions, 1000))
        where = f"{schedule} {seed}" if schedule == "random" else schedule
        try:
            report, right = subject.run(text, device)
        except PtxSyntaxError as error:
            return Verdict(name, mutant, "crash", f"the mutation is no PTX: {error}", where)
        except Exception as error:  # what an emulator must not do
            return Verdict(name, mutant, "crash", f"{type(error).__name__}: {error}", where)
        errors = [finding for finding in report.findings if finding.severity == "error"]
        told = errors[0].code if errors else ""
        if report.status == "deadlock":
            return Verdict(name, mutant, "deadlock", told, where)
        if report.status == "fault":
            return Verdict(name, mutant, "fault", told, where)
        if report.status == "incomplete":
            if any("max_steps" in finding.message for finding in errors):
                return Verdict(name, mutant, "endless", "", where)
            return Verdict(name, mutant, "unmodelled", errors[0].message if errors else "", where)
        if report.status == "findings":
            return Verdict(name, mutant, "finding", told, where)
        if not right:
            return Verdict(name, mutant, "wrong result", "", where)
    return Verdict(name, mutant, "survived")
