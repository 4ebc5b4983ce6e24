"""Run a kernel with one synchronizing instruction changed at a time, and judge each change.

`begin` runs the kernel as it is, `judge` one change until a schedule shows it, `audit` all of them on several
processes.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from ptxgen.audit.mutant import Mutant
from ptxgen.audit.weaken import synchronization
from ptxgen.emulator import Emulator
from ptxgen.emulator.observers import LineCounts
from ptxgen.executor import Executor
from ptxgen.instr.model.check import check
from ptxgen.syntax import Instruction, Module

if TYPE_CHECKING:
    from ptxgen.device import Accept, Device, Finding, Kernel, LaunchReport

Schedule = Literal["eager", "late", "random"]
Fate = Literal["needed", "advised", "not needed", "not reached", "not judged"]

#: Tried in this order: what shows most changes first.
SCHEDULES: tuple[tuple[Schedule, int], ...] = (("late", 0), ("eager", 0), ("random", 1), ("random", 2), ("random", 3))
#: A changed kernel may take so many times the instructions of the kernel before it counts as spinning.
_PATIENCE = 20
_FEWEST_STEPS = 1000
#: Purposes of an instruction besides the results, which are all that an audit judges: pattern of opcodes, purpose.
_REMARKS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"bar\.warp\.sync"),
        "bar.warp.sync may keep a warp converged after a loop or a branch of one lane. ptxas compiles what follows "
        "accordingly: compare `ptxgen sass` and the time without it.",
    ),
    (
        re.compile(r"mbarrier\.(try|test)_wait|bar(rier)?(\.cta)?\.(sync|arrive)"),
        "A wait that publishes nothing may make roles take turns, such as warpgroups that issue MMAs one after the "
        "other: without it the results are the same, the time need not be.",
    ),
    (
        re.compile(r"wgmma\.fence"),
        "A wgmma.fence orders all earlier accesses to registers of MMAs. The manual requires one before the first MMA "
        "of a warp and after such accesses, which these runs check: one right after another orders nothing more.",
    ),
)


class AuditError(ValueError):
    """The kernel cannot be audited: as it is, it does not run right and clean."""


class Result(Protocol):
    """How a launch of the subject went."""

    @property
    def ok(self) -> bool: ...
    @property
    def launch(self) -> LaunchReport: ...
    @property
    def kernel(self) -> Kernel: ...


class Subject(Protocol):
    """A kernel with its launch: it goes to other processes."""

    @property
    def target(self) -> str: ...
    @property
    def text(self) -> str:
        """The PTX."""
        ...

    def run(self, text: str, device: Device) -> Result:
        """Launch another text of the kernel on a device."""
        ...

    def outputs(self, result: Result) -> Mapping[str, np.ndarray]:
        """What the launch left in memory where no reference judges it; empty where one does."""
        ...


@dataclass(frozen=True)
class Baseline:
    """The kernel as it is, under each schedule."""

    instructions: int
    #: Codes of the advice that the kernel gets as it is.
    advice: frozenset[str]
    #: Digest of the outputs under each schedule; None where they differ between schedules, or a reference judges them.
    outputs: tuple[bytes, ...] | None
    #: True where a reference judges the outputs.
    has_reference: bool
    #: Lines and columns of the instructions that some thread executes.
    executed: frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Verdict:
    """What one change showed: a finding, or what else, and under which schedule."""

    mutant: Mutant
    fate: Fate
    #: Code of the finding, or `wrong result`, `changed output`, `spins`.
    code: str = ""
    message: str = ""
    schedule: str = ""


@dataclass(frozen=True)
class Audit:
    """The verdicts of all changes, in the order of the lines."""

    verdicts: tuple[Verdict, ...]
    baseline: Baseline
    seconds: float
    #: Schedules as `late`, `random 2`.
    schedules: tuple[str, ...]

    @property
    def instructions(self) -> dict[tuple[int, int], list[Verdict]]:
        """The verdicts by line and column of the instruction."""
        found: dict[tuple[int, int], list[Verdict]] = {}
        for each in self.verdicts:
            found.setdefault((each.mutant.line, each.mutant.column), []).append(each)
        return found

    @property
    def compares_outputs(self) -> bool:
        """True where no reference judges the outputs, and every schedule leaves the same bytes."""
        return self.baseline.outputs is not None

    @property
    def limits(self) -> str:
        """What the verdict `not needed` rests on, in a sentence."""
        if self.baseline.outputs is None and not self.baseline.has_reference:
            return "Outputs were not compared: they depend on the schedule, and nothing says what they must be."
        return "One launch on one device: it cannot show what .sys scopes, other inputs or other sizes need."

    @property
    def remarks(self) -> list[str]:
        """What instructions that no run needs may be there for all the same."""
        spelled = [each.mutant.spelled for each in self.of("not needed")]
        return [remark for opcode, remark in _REMARKS if any(map(opcode.search, spelled))]

    def of(self, fate: Fate) -> list[Verdict]:
        """The verdicts of one kind."""
        return [each for each in self.verdicts if each.fate == fate]


def audit(
    subject: Subject,
    *,
    schedules: Sequence[tuple[Schedule, int]] = SCHEDULES,
    accept: Sequence[Accept] = (),
    seconds: float | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Audit:
    """Judge every change of the subject's synchronization.

    Findings of `accept` count neither for the kernel nor for a change of it. After `seconds` (None: no limit) what is
    left is `not judged`. `jobs` and `dask` as for `ptxgen.executor.Executor`.
    Raises AuditError for a kernel that is not right and clean as it is.
    """
    began = time.monotonic()
    progress("running the kernel as it is")
    baseline = begin(subject, schedules, accept)
    changes = _legal(subject)
    reached = [each for each in changes if (each.line, each.column) in baseline.executed]
    # Whole instructions before their scopes and semantics: a bounded audit says most with those.
    reached.sort(key=lambda each: not each.kind.endswith("dropped"))
    made = {id(each): Verdict(each, "not reached") for each in changes}
    made.update({id(each): Verdict(each, "not judged", message="time limit") for each in reached})
    work = [_Work(subject, each, baseline, tuple(schedules), tuple(accept)) for each in reached]
    with Executor(jobs, dask) as executor:
        for outcome in executor.map(_judged, work, ordered=False, name=lambda each: str(each.mutant), what="changes"):
            mutant = outcome.item.mutant
            problem = Verdict(mutant, "not judged", message=outcome.problem)
            made[id(mutant)] = problem if outcome.value is None else replace_mutant(outcome.value, mutant)
            if seconds is not None and time.monotonic() - began > seconds:
                break
    names = tuple(name_of(*each) for each in schedules)
    verdicts = tuple(made[id(each)] for each in changes)
    return Audit(verdicts, baseline, time.monotonic() - began, names)


def replace_mutant(verdict: Verdict, mutant: Mutant) -> Verdict:
    """The verdict of another process, about this process's object."""
    return Verdict(mutant, verdict.fate, verdict.code, verdict.message, verdict.schedule)


def name_of(schedule: Schedule, seed: int) -> str:
    """A schedule in words: `late`, `random 2`."""
    return f"{schedule} {seed}" if schedule == "random" else schedule


def _legal(subject: Subject) -> list[Mutant]:
    """The changes whose text has no error that the kernel has not."""
    before = _errors(subject.text, subject.target)
    return [each for each in synchronization(subject.text) if _still_legal(each, subject, before)]


def _still_legal(mutant: Mutant, subject: Subject, before: int) -> bool:
    """Whether PTX allows the change: leaving an instruction out always is, weaker semantics are not everywhere."""
    return mutant.kind.endswith("dropped") or _errors(mutant.applied(subject.text), subject.target) <= before


def _errors(text: str, target: str) -> int:
    return sum(each.severity == "error" for each in check(text, target))


def begin(
    subject: Subject, schedules: Sequence[tuple[Schedule, int]] = SCHEDULES, accept: Sequence[Accept] = ()
) -> Baseline:
    """Run the kernel as it is under all schedules. Raises AuditError where it is not right and clean."""
    instructions, advice, digests = 0, set[str](), list[bytes]()
    executed = set[tuple[int, int]]()
    for schedule, seed in schedules:
        counts = LineCounts()
        result = subject.run(subject.text, Emulator(subject.target, schedule, seed, observers=(counts,), accept=accept))
        if not result.ok:
            shown = next((each for each in result.launch.findings if each.severity == "error"), None)
            why = f"[{shown.code}] {shown.message}" if shown else "its result is wrong"
            status = "wrong" if result.launch.ok else result.launch.status
            raise AuditError(f"an audit requires a kernel that is right and clean; under {name_of(schedule, seed)} "
                             f"this one ends as {status}: {why}")  # fmt: skip
        instructions = max(instructions, result.launch.instructions)
        advice |= {each.code for each in result.launch.all_findings}
        executed.update(_executed(counts, result.kernel.module))
        digests.append(_digest(subject.outputs(result)))
    same = bool(digests[0]) and len(set(digests)) == 1
    return Baseline(
        instructions, frozenset(advice), tuple(digests) if same else None, not digests[0], frozenset(executed)
    )


def _executed(counts: LineCounts, module: Module) -> Iterator[tuple[int, int]]:
    return (
        (each.line, each.column)
        for each in module.statements()
        if isinstance(each, Instruction) and counts.count(each).threads
    )


def _digest(outputs: Mapping[str, np.ndarray]) -> bytes:
    """One digest of all outputs; empty where there are none."""
    if not outputs:
        return b""
    made = hashlib.blake2b()
    for name, values in sorted(outputs.items()):
        made.update(name.encode())
        made.update(np.ascontiguousarray(values).tobytes())
    return made.digest()


@dataclass(frozen=True)
class _Work:
    """What a process gets to judge."""

    subject: Subject
    mutant: Mutant
    baseline: Baseline
    schedules: tuple[tuple[Schedule, int], ...]
    accept: tuple[Accept, ...]


def _judged(work: _Work) -> Verdict:
    return judge(work.subject, work.mutant, work.baseline, work.schedules, work.accept)


def judge(
    subject: Subject,
    mutant: Mutant,
    baseline: Baseline,
    schedules: Sequence[tuple[Schedule, int]] = SCHEDULES,
    accept: Sequence[Accept] = (),
) -> Verdict:
    """Run a change under one schedule after the other until one shows it."""
    text = mutant.applied(subject.text)
    advised: Verdict | None = None
    for number, (schedule, seed) in enumerate(schedules):
        steps = _PATIENCE * max(baseline.instructions, _FEWEST_STEPS)
        result = subject.run(text, Emulator(subject.target, schedule, seed, max_steps=steps, accept=accept))
        found = _shown(subject, mutant, result, baseline, number, name_of(schedule, seed))
        if found is not None and found.fate != "advised":
            return found
        advised = advised or found
    return advised or Verdict(mutant, "not needed")


def _shown(
    subject: Subject, mutant: Mutant, result: Result, baseline: Baseline, number: int, schedule: str
) -> Verdict | None:
    """What one run shows of a change, if anything."""
    launch = result.launch
    errors = [each for each in launch.all_findings if each.severity == "error"]
    if launch.status == "incomplete":
        if any(each.code == "step-limit" for each in errors):
            return Verdict(mutant, "needed", "spins", "the kernel does not end without it", schedule)
        return Verdict(mutant, "not judged", message=errors[0].message if errors else launch.status, schedule=schedule)
    if not launch.ok:
        return Verdict(mutant, "needed", errors[0].code if errors else launch.status, _first(errors), schedule)
    if not result.ok:
        return Verdict(mutant, "needed", "wrong result", "an output is wrong without it", schedule)
    if baseline.outputs is not None and _digest(subject.outputs(result)) != baseline.outputs[number]:
        return Verdict(mutant, "needed", "changed output", "an output has other bytes without it", schedule)
    fresh = [each for each in launch.all_findings if each.code not in baseline.advice]
    return Verdict(mutant, "advised", fresh[0].code, _first(fresh), schedule) if fresh else None


def _first(findings: Sequence[Finding]) -> str:
    """The class and the accesses of the first finding."""
    return f"{findings[0].title}: {findings[0].summary}" if findings else ""
