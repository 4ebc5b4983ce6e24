"""Comparing a kit's file with the emulator, and its questions with their candidate rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from itertools import repeat
from typing import Any, NamedTuple

from microtests.harness import recordings
from microtests.harness.definition import definitions
from microtests.harness.draft import NotThereError
from microtests.harness.kit import Answer, Kit
from microtests.harness.questions import OPEN, Question, questions
from microtests.harness.run import run
from microtests.harness.tensormaps import build
from ptxgen.emulator import Emulator


@dataclass
class Settled:
    """A question: the candidates that the answer fits, the emulator's rule first among `candidates`."""

    name: str
    asks: str
    candidates: tuple[str, ...]
    supported: list[str]
    #: Why there is no answer; empty where there is one.
    unanswered: str = ""

    @property
    def verdict(self) -> str:
        """In words."""
        if self.unanswered:
            return f"no answer: {self.unanswered}"
        if not self.supported:
            return "none of the candidates"
        rest = "" if len(self.supported) == 1 else " (the words do not tell them apart)"
        return " or ".join(self.supported) + rest

    @property
    def agrees(self) -> bool:
        """Whether the emulator's rule is among what is supported."""
        return bool(self.unanswered) or self.candidates[0] in self.supported


@dataclass
class Report:
    """What a file says: `differing` are (microtest, message), `unanswered` have no words to compare."""

    heading: dict[str, Any]
    settled: list[Settled] = field(default_factory=list)
    equal: list[str] = field(default_factory=list)
    differing: list[tuple[str, str]] = field(default_factory=list)
    unanswered: list[tuple[str, str]] = field(default_factory=list)
    tensormaps: dict[str, int] = field(default_factory=dict)
    tensormaps_differing: list[str] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        """Whether nothing differs from the emulator."""
        return not self.differing and not self.tensormaps_differing and all(each.agrees for each in self.settled)

    def open_items(self) -> list[tuple[str, int, int]]:
        """(what was open, microtests that agree, that answered) of what ordinary microtests answer."""
        differing = [name for name, _ in self.differing]
        found = []
        for what, beginnings in OPEN.items():
            agreeing = sum(name.startswith(beginnings) for name in self.equal)
            answered = agreeing + sum(name.startswith(beginnings) for name in differing)
            if answered:
                found.append((what, agreeing, answered))
        return found

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            **asdict(self),
            "settled": [asdict(each) | {"verdict": each.verdict} for each in self.settled],
            "open": [{"what": what, "agreeing": some, "answered": all} for what, some, all in self.open_items()],
            "agrees": self.agrees,
        }


def compare(
    kit: Kit, filters: Sequence[str] = (), step: Callable[[int, int], None] | None = None, jobs: int = 1
) -> Report:
    """Run in the emulator what the file answers, all or what begins with a filter; `step(done, of)` after each."""
    report, target = Report(kit.heading), kit.heading["target"]
    chosen = [each for each in kit.answers if not filters or each["name"].startswith(tuple(filters))]
    with ProcessPoolExecutor(jobs) if jobs > 1 else nullcontext() as pool:
        judged = pool.map(_judge, chosen, repeat(target), chunksize=20) if pool else map(_judge, chosen, repeat(target))
        for number, (name, settled, differs, unanswered) in enumerate(judged):
            if settled is not None:
                report.settled.append(settled)
            elif unanswered:
                report.unanswered.append((name, unanswered))
            elif differs:
                report.differing.append((name, differs))
            else:
                report.equal.append(name)
            if step is not None:
                step(number + 1, len(chosen))
    if not filters:
        _compare_tensormaps(report, kit.tensormaps)
    return report


class _Judged(NamedTuple):
    """One answer: as a question, or how it differs, or why there is nothing to compare; else it is equal."""

    name: str
    settled: Settled | None = None
    differs: str = ""
    unanswered: str = ""


def _judge(answer: Answer, target: str) -> _Judged:
    name = answer["name"]
    definition = definitions().get(name)
    if definition is None:
        return _Judged(name, unanswered="this version has no such microtest")
    asked = questions().get(name)
    if asked is not None:
        return _Judged(name, _settle(name, asked, answer, target))
    if "inputs" not in answer:
        message = answer["message"] or answer["verdict"]
        if answer["verdict"] == "incomplete" or "no time" in message:
            return _Judged(name, unanswered=message)
        return _Judged(name, differs=message)
    try:
        draft = definition.draft(target)
    except NotThereError as reason:
        return _Judged(name, unanswered=str(reason))
    result = run(definition, Emulator(target), draft)
    if result.outputs or draft.fault:
        return _Judged(name, differs=recordings.difference(draft, result, answer))
    return _Judged(name, differs=f"in the emulator: {result.verdict}: {result.message}")


def _settle(name: str, asked: Question, answer: Answer, target: str) -> Settled:
    faulted = "fault" in answer or "CUDA_ERROR" in answer["message"]
    if not answer.get("outputs") and not faulted:
        return Settled(name, asked.asks, asked.candidates, [], answer["message"] or answer["verdict"])
    return Settled(name, asked.asks, asked.candidates, asked.supported(answer, target))


def _compare_tensormaps(report: Report, rows: Sequence[Answer]) -> None:
    counts: Counter[str] = Counter()
    for row in rows:
        if "refused" in row:
            counts["refused"] += 1
            continue
        own = build(row["tensormap"]).encode().hex()
        counts["equal" if own == row["bytes"] else "different"] += 1
        if own != row["bytes"]:
            at = next(i for i in range(128) if own[2 * i : 2 * i + 2] != row["bytes"][2 * i : 2 * i + 2])
            report.tensormaps_differing.append(f"{row['tensormap']}: byte {at} is {row['bytes'][2 * at : 2 * at + 2]}")
    report.tensormaps = dict(counts)
