"""Classify a mutant: run it under one schedule after the other until one of them detects the defect."""

from __future__ import annotations

import hashlib
import re
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal

from ptxgen.syntax import PtxSyntaxError
from tools.mutants.equivalent import reason
from tools.mutants.executed import Place, executed
from tools.mutants.mutations import Mutant
from tools.mutants.pairs import STRONG, all_pairs
from tools.mutants.subjects import Subject, load

Fate = Literal[
    "finding",
    "advice",
    "fault",
    "deadlock",
    "timeout",
    "wrong result",
    "unreached",
    "redundant",
    "unused",
    "unmodelled",
    "crash",
    "survived",
]

#: What catches most is tried first.
SCHEDULES: tuple[tuple[Any, int], ...] = (("late", 0), ("eager", 0), ("random", 1), ("random", 2), ("random", 3))
#: Tried besides on what would survive.
MORE_SEEDS = range(4, 16)
#: Kinds that change which order there is, and nothing else: equivalent if all conflicts stay ordered.
_ORDERS = re.compile(
    r"(wait )?dropped|relaxed|another (stage|barrier)|one group less|(count|32 threads|an arrival) .*|parity flipped"
    r"|for tcgen05\..*|on the other side|of (another state space|the generic proxy alone|the sources alone)"
)
_SYNCHRONIZES = re.compile(
    r"(@\S+\s+)?(bar|barrier|mbarrier\.(init|arrive|arrive_drop|try_wait|test_wait)|tcgen05\.(commit|wait|fence)"
    r"|wgmma\.(commit|wait)_group|cp\.async\.(bulk\.)?(commit|wait)_group|fence\.(proxy\.async|mbarrier_init))\b"
)
#: Strong accesses whose scope the checks compare with the synchronizing access; unreported ones are ordered.
_REACHES = re.compile(r"(@\S+\s+)?(ld|st|atom|red)\.\S*gpu\b|(@\S+\s+)?mbarrier\.")
#: A mutant may take so many times the instructions of the kernel before it counts as a timeout.
_PATIENCE = 20


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: the code of a finding, or what else shows it, and under which schedule."""

    subject: str
    mutant: Mutant
    fate: Fate
    reported: str = ""
    schedule: str = ""

    @property
    def caught(self) -> bool:
        return self.fate in ("finding", "advice", "fault", "deadlock", "timeout", "wrong result")


@dataclass(frozen=True)
class Baseline:
    """The unbroken kernel: why it is not right under some schedule (empty if it is), and what it does."""

    broken: str
    instructions: int = 0
    #: Codes of advice that it gets itself.
    advice: frozenset[str] = frozenset()
    #: A digest of the results' bytes for each schedule.
    results: tuple[bytes, ...] = ()
    #: The instructions that some schedule executes.
    executed: frozenset[Place] = frozenset()


def baseline(subject: Subject) -> Baseline:
    """Run the unbroken kernel under all schedules."""
    instructions, advice, results = 0, set[str](), list[bytes]()
    with executed() as places:
        for schedule, seed in SCHEDULES:
            device = subject.emulator(schedule, seed)
            report, right, result = subject.run(subject.text, device)
            if report.status != "ok" or not right:
                reported = report.findings[0].code if report.findings else "wrong result"
                return Baseline(f"{schedule} {seed}: {report.status}, {reported}")
            instructions = max(instructions, report.instructions)
            advice |= {finding.code for finding in report.all_findings}
            results.append(_digest(result))
    return Baseline("", instructions, frozenset(advice), tuple(results), frozenset(places))


def baseline_of(name: str) -> Baseline:
    """That of the subject of this name."""
    return baseline(load(name))


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data).digest()


def judge(name: str, mutant: Mutant, whole: Baseline, schedules: int = len(SCHEDULES)) -> Verdict:
    """Run a mutant until it is caught."""
    subject = load(name)
    if (mutant.line, mutant.column) not in whole.executed:
        return Verdict(name, mutant, "unreached")
    text = mutant.applied(subject.text)
    same, unordered = True, list[str]()
    for number, (schedule, seed) in enumerate(SCHEDULES[:schedules]):
        with all_pairs(unordered) if number and _only_orders(mutant) else nullcontext():
            verdict, result = _run(subject, mutant, text, whole, schedule, seed)
        if verdict.fate != "survived":
            return verdict
        same = same and _digest(result) == whole.results[number]
    if _only_orders(mutant):  # most are caught by the first schedule, which is why it compares no pairs at first
        with all_pairs(unordered):
            subject.run(text, subject.emulator(*SCHEDULES[0]))
    fate = _survivor(mutant, unordered, same=same)
    for seed in MORE_SEEDS if fate == "survived" and not reason(name, mutant) else ():
        verdict, _ = _run(subject, mutant, text, whole, "random", seed)
        if verdict.fate != "survived":
            return verdict
    return Verdict(name, mutant, fate)


def _run(
    subject: Subject, mutant: Mutant, text: str, whole: Baseline, schedule: Any, seed: int
) -> tuple[Verdict, bytes]:
    """The outcome under one schedule, "survived" if nothing is detected; and the results."""

    def verdict(fate: Fate, reported: str = "") -> Verdict:
        return Verdict(subject.name, mutant, fate, reported, f"{schedule} {seed}" if schedule == "random" else schedule)

    device = subject.emulator(schedule, seed, max_steps=_PATIENCE * max(whole.instructions, 1000))
    try:
        report, right, result = subject.run(text, device)
    except PtxSyntaxError as error:
        return verdict("crash", f"the mutation is no PTX: {error}"), b""
    except Exception as error:  # what an emulator must not do
        return verdict("crash", f"{type(error).__name__}: {error}"), b""
    errors = [finding for finding in report.all_findings if finding.severity == "error"]
    reported = errors[0].code if errors else ""
    if report.status == "deadlock":
        return verdict("deadlock", reported), result
    if report.status == "fault":
        return verdict("fault", reported), result
    if report.status == "incomplete":
        if any("max_steps" in finding.message for finding in errors):
            return verdict("timeout"), result
        return verdict("unmodelled", errors[0].message if errors else ""), result
    if report.status == "findings":
        return verdict("finding", reported), result
    if not right:
        return verdict("wrong result"), result
    if fresh := sorted({finding.code for finding in report.all_findings} - whole.advice):
        return verdict("advice", fresh[0]), result
    return verdict("survived"), result


def _only_orders(mutant: Mutant) -> bool:
    """Whether it changes which order there is, and nothing else."""
    if mutant.kind == "of a narrower scope":
        return bool(_REACHES.match(mutant.instruction))
    return bool(_ORDERS.fullmatch(mutant.kind) and _SYNCHRONIZES.match(mutant.instruction))


def _survivor(mutant: Mutant, unordered: list[str], *, same: bool) -> Fate:
    """Whether an undetected mutant is equivalent: from the pairs of conflicting accesses to shared memory that nothing
    orders, under all schedules; `same` says that its results have the same bits.
    """
    if _only_orders(mutant):
        of_lanes = "bar.warp" in mutant.instruction
        return "survived" if any(of_lanes or not each.startswith(STRONG) for each in unordered) else "redundant"
    if mutant.kind == "of a narrower scope" or _ORDERS.fullmatch(mutant.kind):
        return "survived"
    return "unused" if same else "survived"
