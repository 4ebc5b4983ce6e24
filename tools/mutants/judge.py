"""How a mutant fares: it is run under one schedule after the other until something tells that it is broken."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

from ptxgen.emulator import Emulator
from ptxgen.syntax import PtxSyntaxError
from tools.mutants.mutations import Mutant
from tools.mutants.pairs import all_pairs
from tools.mutants.subjects import Subject, load

Fate = Literal[
    "finding", "advice", "fault", "deadlock", "endless", "wrong result", "unreached", "redundant", "unmodelled",
    "crash", "survived",
]  # fmt: skip

#: What catches most is tried first.
SCHEDULES: tuple[tuple[Any, int], ...] = (("late", 0), ("eager", 0), ("random", 1), ("random", 2), ("random", 3))
#: Kinds that take order away and change nothing else: such a mutant is equivalent if all conflicts stay ordered.
_ORDERS = re.compile(r"dropped|wait dropped|relaxed|another stage|one group less|count [+-] 1")
_SYNCHRONISES = re.compile(
    r"(@\S+\s+)?(bar(?!\.warp)|barrier|mbarrier\.(init|arrive|try_wait|test_wait)|tcgen05\.(commit|wait|fence)"
    r"|wgmma\.(commit|wait)_group|cp\.async\.(bulk\.)?(commit|wait)_group)\b"
)
#: Strong accesses whose narrower scope the checks compare with whom they meet; where none is told, others order it.
_REACHES = re.compile(r"(@\S+\s+)?(ld|st|atom|red)\.\S*gpu\b")
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
        return self.fate in ("finding", "advice", "fault", "deadlock", "endless", "wrong result")


@dataclass(frozen=True)
class Baseline:
    """The unbroken kernel: why it is not right under some schedule (empty if it is), and what it does."""

    broken: str
    instructions: int = 0
    #: Codes of advice that it gets itself.
    advice: frozenset[str] = frozenset()


def baseline(subject: Subject) -> Baseline:
    """Run the unbroken kernel under all schedules."""
    instructions, advice = 0, set[str]()
    for schedule, seed in SCHEDULES:
        report, right = subject.run(subject.text, Emulator(subject.target, schedule, seed))
        if report.status != "ok" or not right:
            told = report.findings[0].code if report.findings else "wrong result"
            return Baseline(f"{schedule} {seed}: {report.status}, {told}")
        instructions = max(instructions, report.instructions)
        advice |= {finding.code for finding in report.findings}
    return Baseline("", instructions, frozenset(advice))


def judge(name: str, mutant: Mutant, whole: Baseline, schedules: int = len(SCHEDULES)) -> Verdict:
    """Run a mutant until it is caught."""
    subject = load(name)
    text = mutant.applied(subject.text)
    for schedule, seed in SCHEDULES[:schedules]:
        device = Emulator(subject.target, schedule, seed, max_steps=_PATIENCE * max(whole.instructions, 1000))
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
        if fresh := sorted({finding.code for finding in report.findings} - whole.advice):
            return Verdict(name, mutant, "advice", fresh[0], where)
    if not _reached(subject, mutant):
        return Verdict(name, mutant, "unreached")
    orders = _ORDERS.fullmatch(mutant.kind) and _SYNCHRONISES.match(mutant.instruction)
    if mutant.kind == "of a narrower scope":
        orders = _REACHES.match(mutant.instruction)
    if orders and not _unordered(subject, mutant):
        return Verdict(name, mutant, "redundant")
    return Verdict(name, mutant, "survived")


def _unordered(subject: Subject, mutant: Mutant) -> list[str]:
    """Pairs of conflicting accesses to shared memory that nothing in the mutant orders, under all schedules."""
    text = mutant.applied(subject.text)
    with all_pairs() as unordered:
        for schedule, seed in SCHEDULES:
            subject.run(text, Emulator(subject.target, schedule, seed))
    return unordered


def _reached(subject: Subject, mutant: Mutant) -> bool:
    """Whether the launch executes the instruction at all: a trap in its place would tell."""
    guard = mutant.instruction.split()[0] if mutant.instruction.startswith("@") else ""
    text = replace(mutant, text=f"{guard} trap;").applied(subject.text)
    report, right = subject.run(text, Emulator(subject.target))
    return report.status != "ok" or not right
