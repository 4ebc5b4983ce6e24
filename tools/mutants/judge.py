"""Classify a mutant: run it under one schedule after the other until one of them detects the defect.

`begin` runs the first schedule, which catches most; `finish` judges one of the mutants that it leaves, and
`tools/mutants/groups.py` many of them at once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal
from unittest import mock

from ptxgen.device import Kernel, SharedRegion
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
    with executed() as places, parsed_once():
        for schedule, seed in SCHEDULES:
            device = subject.emulator(schedule, seed)
            report, right, result = subject.run(subject.text, device)
            if report.status != "ok" or not right:
                reported = report.findings[0].code if report.findings else "wrong result"
                return Baseline(f"{schedule} {seed}: {report.status}, {reported}")
            instructions = max(instructions, report.instructions)
            advice |= {finding.code for finding in report.all_findings}
            results.append(digest(result))
    return Baseline("", instructions, frozenset(advice), tuple(results), frozenset(places))


def baseline_of(name: str) -> Baseline:
    """That of the subject of this name."""
    return baseline(load(name))


def digest(data: bytes) -> bytes:
    return hashlib.blake2b(data).digest()


@dataclass(frozen=True)
class Left:
    """A mutant that the first schedule does not catch."""

    mutant: Mutant
    #: Whether its results under the first schedule have the kernel's bits; None where that has not run.
    same: bool | None = None


def judge(name: str, mutant: Mutant, whole: Baseline) -> Verdict:
    """Run a mutant until it is caught."""
    found = begin(name, mutant, whole)
    return found if isinstance(found, Verdict) else finish(name, found, whole)


def begin(name: str, mutant: Mutant, whole: Baseline) -> Verdict | Left:
    """Run a mutant under the first schedule."""
    subject = load(name)
    if not reached(mutant, whole):
        return Verdict(name, mutant, "unreached")
    with parsed_once():
        verdict, result = run_once(subject, mutant, mutant.applied(subject.text), whole, *SCHEDULES[0])
    return verdict if verdict.fate != "survived" else Left(mutant, digest(result) == whole.results[0])


def finish(name: str, left: Left, whole: Baseline) -> Verdict:
    """Judge a mutant that the first schedule does not catch; run that too where it has not run."""
    if left.same is None:
        return judge(name, left.mutant, whole)
    subject, mutant = load(name), left.mutant
    text = mutant.applied(subject.text)
    same, unordered = left.same, list[str]()
    with parsed_once():
        for number, (schedule, seed) in enumerate(SCHEDULES[1:], 1):
            with all_pairs(unordered) if only_orders(mutant) else nullcontext():
                verdict, result = run_once(subject, mutant, text, whole, schedule, seed)
            if verdict.fate != "survived":
                return verdict
            same = same and digest(result) == whole.results[number]
        if only_orders(mutant):  # most are caught by the first schedule, which is why it compares no pairs at first
            with all_pairs(unordered):
                subject.run(text, subject.emulator(*SCHEDULES[0]))
        fate = survivor(mutant, unordered, same=same)
        for seed in MORE_SEEDS if fate == "survived" and not reason(name, mutant) else ():
            verdict, _ = run_once(subject, mutant, text, whole, "random", seed)
            if verdict.fate != "survived":
                return verdict
    return Verdict(name, mutant, fate)


def reached(mutant: Mutant, whole: Baseline) -> bool:
    """Whether some schedule executes the instruction that it changes."""
    return (mutant.line, mutant.column) in whole.executed


@contextmanager
def parsed_once() -> Iterator[None]:
    """Launches in this context, and no others, share what a text is parsed to, its diagnostics and its program."""
    made: dict[tuple[str, str | None, tuple[SharedRegion, ...]], Kernel] = {}
    parse = Kernel._parsed  # from_ptx would give kernels of other contexts

    def kernel(text: str, entry: str | None = None, *, regions: Sequence[SharedRegion] = ()) -> Kernel:
        key = text, entry, tuple(regions)
        if key not in made:
            made[key] = parse(text, entry, regions)
        return made[key]

    with mock.patch.object(Kernel, "from_ptx", kernel):
        yield


def run_once(
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


def only_orders(mutant: Mutant) -> bool:
    """Whether it changes which order there is, and nothing else."""
    if mutant.kind == "of a narrower scope":
        return bool(_REACHES.match(mutant.instruction))
    return bool(_ORDERS.fullmatch(mutant.kind) and _SYNCHRONIZES.match(mutant.instruction))


def survivor(mutant: Mutant, unordered: list[str], *, same: bool) -> Fate:
    """Whether an undetected mutant is equivalent: from the pairs of conflicting accesses to shared memory that nothing
    orders, under all schedules; `same` says that its results have the same bits.
    """
    if only_orders(mutant):
        of_lanes = "bar.warp" in mutant.instruction
        return "survived" if any(of_lanes or not each.startswith(STRONG) for each in unordered) else "redundant"
    if mutant.kind == "of a narrower scope" or _ORDERS.fullmatch(mutant.kind):
        return "survived"
    return "unused" if same else "survived"
