"""The command `python -m tools.mutants`."""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import platform
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

import tools.mutants
from ptxgen.executor import Executor
from tools import executing
from tools.code import Code
from tools.mutants.equivalent import UNUSED, reason
from tools.mutants.executed import instructions, missed
from tools.mutants.groups import Group, foreseen, groups, settle
from tools.mutants.judge import MORE_SEEDS, SCHEDULES, Baseline, Left, Verdict, baseline_of, begin
from tools.mutants.mutations import Mutant, mutants
from tools.mutants.rungs import RUNGS
from tools.mutants.subjects import load, names
from tools.mutants.tuned import TUNED

_DOCS = Path(__file__).parents[2] / "docs"
_BUILD = Path("build")
_REDUNDANT = (
    "redundant synchronization: without it, all conflicting accesses to shared memory are still ordered under all five "
    "schedules (`tools/mutants/pairs.py` compares all pairs), the checks of tensor and global memory report nothing, "
    "and the results are right"
)
_UNUSED = (
    "unused operand or field, such as the leading offset of swizzled K-major matrices (PTX ISA 9.7.16.5.1): the "
    "results are the same bit for bit under each of the five schedules, from random inputs, and no check reports "
    "anything"
)
#: How it is known of redundant and unused ones.
_PROOF = (
    "Redundant synchronization and unused fields are proved for a mutant alone, or for a text with more mutants of the "
    "kernel at once (`tools/mutants/groups.py`): where everything is ordered without several waits, fences and "
    "barriers, it is ordered without each of them; where the same field of several instructions has another value and "
    "the bits stay, none of them reads it. A group in which anything shows is halved, down to single mutants."
)


@dataclass(frozen=True)
class Page:
    """A page of the docs: its kernels, and what it says of them; `whole`: that all instructions are executed, too."""

    subjects: Callable[[], list[str]]
    introduction: str
    whole: bool = False


PAGES = {
    "mutants": Page(
        names,
        "Correct kernels with one synchronization or descriptor broken at a time (`tools/mutants`); `make mutants` "
        "writes this page. [The rungs of the ladders](mutants-of-rungs.md) have a page of their own.",
    ),
    "mutants-of-rungs": Page(
        lambda: list(RUNGS),
        "The kernels of [the ladders](kernels.md) with one synchronization or descriptor broken at a time; "
        "`make mutants-of-rungs` writes this page. `tools/mutants/rungs.py` has the options and problems: small tiles, "
        "with edges of C, more K blocks than stages, and more tiles than CTA slots where a kernel is persistent. "
        "modular-k1 has no mutants: it has no synchronization and no descriptor. mxfp8-o8 and mxfp8-o10 have the text "
        "of mxfp8-o11 at this size: they differ in their choices for large problems.",
        whole=True,
    ),
    "mutants-of-tuned": Page(
        lambda: list(TUNED),
        "The kernels of the dispatcher's tuning table ([hopper.md](hopper.md)) with one synchronization or descriptor "
        "broken at a time; `make mutants-of-tuned` writes this page. Kernels that differ only in sizes, hints for the "
        "L2 and griddepcontrol have one structure (`tools/mutants/structure.py`). For each structure of the table "
        "`tools/mutants/tuned.py` has one kernel with small tiles, and problems as those of "
        "[the rungs](mutants-of-rungs.md); `bench.hopper check` runs the table's own kernels under all schedules.",
        whole=True,
    ),
}
FATES = ("finding", "advice", "fault", "deadlock", "timeout", "wrong result")


class Kept:
    """Verdicts in a file, so that a run can go on where another was cut, or judge again only what was left alive.

    They hold for a subject's code (tools/code.py): where other lines have moved, they are those of the mutants that
    moved along.
    """

    def __init__(self, path: Path, *, resume: bool) -> None:
        self._path = path
        self._found: dict[tuple[object, ...], Verdict] = {}
        if resume and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                values = json.loads(line)
                mutant = Mutant(**values.pop("mutant"))
                digest, at = values.pop("digest"), values.pop("at")
                verdict = Verdict(mutant=mutant, **values)
                if verdict.fate not in ("survived", "unmodelled", "crash"):
                    self._found[_key(verdict.subject, digest, at, mutant)] = verdict
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text("", encoding="utf-8")

    def verdict(self, subject: str, mutant: Mutant) -> Verdict | None:
        """What is known of a mutant of a subject's present text."""
        code = _code(subject)
        found = self._found.get(_key(subject, code.digest, code.numbers[mutant.line - 1], mutant))
        return found and replace(found, mutant=mutant)

    def add(self, verdict: Verdict) -> None:
        """Keep a verdict."""
        code, mutant = _code(verdict.subject), verdict.mutant
        at = code.numbers[mutant.line - 1]
        self._found[_key(verdict.subject, code.digest, at, mutant)] = verdict
        with self._path.open("a") as file:
            file.write(json.dumps({**asdict(verdict), "digest": code.digest, "at": at}) + "\n")


def _key(subject: str, digest: str, at: int, mutant: Mutant) -> tuple[object, ...]:
    return subject, digest, at, mutant.column, mutant.kind, mutant.instruction


@functools.cache
def _code(subject: str) -> Code:
    return Code(load(subject).text)


def drawn(subject: str, sample: int | None, seed: int) -> list[Mutant]:
    """The mutants of a subject: all, or a seeded sample, which a larger one has in it."""
    found = list(mutants(load(subject).text))
    if sample is not None:
        random.Random(f"{seed} {subject}").shuffle(found)
    return found[:sample]


def run(
    subjects: Sequence[str], sample: int | None, seed: int, executor: Executor, kept: Kept
) -> tuple[list[Verdict], dict[str, str]]:
    """Judge mutants with progress; and why subjects were left out. A mutant that ends its process is a crash."""
    verdicts: list[Verdict] = []
    left_out: dict[str, str] = {}
    began = time.monotonic()
    for subject in subjects:
        chosen = drawn(subject, sample, seed)
        missing = [mutant for mutant in chosen if kept.verdict(subject, mutant) is None]
        if missing:
            (first,) = executor.map(baseline_of, [subject])
            whole = first.result()
            if whole.broken:
                left_out[subject] = whole.broken
                print(f"{subject}: left out, it is not right itself: {whole.broken}", flush=True)
                continue
            for verdict in judge_all(subject, missing, whole, executor):
                kept.add(verdict)
                if not (verdict.caught or verdict.fate == "unreached" or why_equivalent(verdict)):
                    print(f"{verdict.fate}: {subject}: {verdict.mutant} {verdict.reported}", flush=True)
        found = [kept.verdict(subject, mutant) for mutant in chosen]
        verdicts += [verdict for verdict in found if verdict is not None]
        print(f"{subject}: {len(chosen)} mutants, {time.monotonic() - began:.0f} s", flush=True)
    return verdicts, left_out


def judge_all(subject: str, chosen: Sequence[Mutant], whole: Baseline, executor: Executor) -> Iterator[Verdict]:
    """The verdicts on mutants of a subject: each under the first schedule, then what that leaves, in groups."""
    left = [Left(mutant) for mutant in chosen if foreseen(subject, mutant, whole)]
    known = {each.mutant for each in left}
    first = functools.partial(begin, subject, whole=whole)
    items = [mutant for mutant in chosen if mutant not in known]
    for outcome in executor.map(first, items, what=f"mutants of {subject}"):
        found = outcome.value or Verdict(subject, outcome.item, "crash", outcome.problem)
        if isinstance(found, Left):
            left.append(found)
        else:
            yield found
    rest = functools.partial(settle, subject, whole=whole)
    todo = groups(subject, left)
    while todo:
        halves: list[Group] = []
        for outcome in executor.map(rest, todo, ordered=False, what=f"groups of mutants of {subject}"):
            group, verdicts = outcome.item, outcome.value or []
            if outcome.error is not None and len(group.members) == 1:
                verdicts = [Verdict(subject, group.members[0].mutant, "crash", outcome.problem)]
            yield from verdicts
            halves += group.without(verdicts)
        todo = halves


def why_equivalent(verdict: Verdict) -> str:
    """Why a mutant that some run reaches is equivalent; empty where it is not, or where nobody has said why."""
    if verdict.fate == "redundant":
        return _REDUNDANT
    if verdict.fate == "unused":
        return reason(verdict.subject, verdict.mutant, UNUSED) or _UNUSED
    return reason(verdict.subject, verdict.mutant) if verdict.fate == "survived" else ""


def is_gap(verdict: Verdict) -> bool:
    """Whether a mutant survives for no known reason."""
    return verdict.fate == "survived" and not why_equivalent(verdict)


def table(verdicts: Sequence[Verdict]) -> list[str]:
    """The score, a line for each subject.

    "of reached" is the share of caught mutants among those that a run reaches and that are not equivalent, "of all"
    counts those that no run reaches too.
    """
    heads = ["kernel", "mutants", *FATES, "equivalent", "unreached", "survived", "unmodelled", "of reached", "of all"]
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    subjects = list(dict.fromkeys(each.subject for each in verdicts))
    for subject in [*subjects, "all"]:
        chosen = [each for each in verdicts if subject in ("all", each.subject)]
        fates = Counter(each.fate for each in chosen)
        equivalent = sum(bool(why_equivalent(each)) for each in chosen)
        gaps = sum(map(is_gap, chosen))
        caught = sum(each.caught for each in chosen)
        unreached = fates["unreached"]
        other = fates["unmodelled"] + fates["crash"]
        cells = [len(chosen), *(fates[fate] for fate in FATES), equivalent, unreached, gaps, other]
        changed = len(chosen) - equivalent
        shares = [_percent(caught, changed - unreached), _percent(caught, changed)]
        lines.append(f"| {subject} | " + " | ".join([*map(str, cells), *shares]) + " |")
    return lines


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def missing(subjects: Sequence[str], executor: Executor) -> list[str]:
    """The instructions of kernels that no schedule executes: a table, and each opcode once."""
    lines = ["| kernel | instructions | of them not executed |", "|---|---:|---:|"]
    found: Counter[str] = Counter()
    for outcome in executor.map(baseline_of, subjects, what="kernels, all instructions"):
        text = load(outcome.item).text
        left = missed(text, outcome.result().executed)
        found.update(" ".join(each.text.split()) for each in left)
        lines.append(f"| {outcome.item} | {len(instructions(text))} | {len(left)} |")
    lines += ["", "What is not executed, a guard that is never true being no execution:", ""]
    return [*lines, *(f"- `{text}`: {count}" for text, count in found.most_common())]


def report(page: Page, verdicts: Sequence[Verdict], left_out: dict[str, str], sample: int | None) -> str:
    """The page of the docs: totals, and one by one only what needs attention."""
    other = [each for each in verdicts if each.fate in ("unmodelled", "crash")]
    codes = Counter(each.reported for each in verdicts if each.caught and each.reported)
    reasons = Counter(why for each in verdicts if (why := why_equivalent(each)))
    schedules = ", ".join(f"{name} {seed}" if name == "random" else name for name, seed in SCHEDULES)
    lines = [
        "# Mutants",
        "",
        page.introduction,
        "",
        f"{datetime.date.today().isoformat()}, Python {platform.python_version()}, NumPy {np.__version__}. Schedules: "
        f"{schedules}; {len(MORE_SEEDS)} more seeds for what would survive. A mutant is caught by the first schedule "
        "that reports it. "
        + ("All mutants." if sample is None else f"A seeded sample of {sample} mutants of each kernel."),
        "",
        "*Equivalent* mutants behave like the kernel, for one of the reasons below. *Unreached* mutants change an "
        "instruction that no run of these launches executes: nothing is known of them. *Of reached* is the share of "
        "caught mutants among those that a run reaches and that are not equivalent; *of all* counts unreached ones "
        "too.",
        "",
        *table(verdicts),
        "",
        "## Findings by code",
        "",
        "| code | mutants |",
        "|---|---:|",
        *(f"| {code} | {count} |" for code, count in codes.most_common()),
    ]
    if reasons:
        lines += ["", "## Equivalent mutants by reason", ""]
        if any(each.fate in ("redundant", "unused") for each in verdicts):
            lines += [_PROOF, ""]
        lines += ["| reason | mutants |", "|---|---:|"]
        lines += [f"| {why} | {count} |" for why, count in reasons.most_common()]
    judged = {each.subject for each in verdicts} | left_out.keys() | {name for name in RUNGS if not drawn(name, 1, 0)}
    sections = (
        ("Kernels not judged yet", [f"- {name}" for name in page.subjects() if name not in judged]),
        ("Survivors without a reason", [f"- {each.subject}, {each.mutant}" for each in verdicts if is_gap(each)]),
        ("Mutants that end as incomplete", [f"- {each.subject}, {each.mutant}: {each.reported}" for each in other]),
        ("Kernels left out", [f"- {name}: it fails without a mutation: {why}" for name, why in left_out.items()]),
    )
    for title, items in sections:
        if items:
            lines += ["", f"## {title}", "", *items]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print the score; exit with 1 if a mutant survives for no known reason."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutants",
        description=tools.mutants.__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument(
        "subjects", nargs="*", help=f"kernels; all of --page by default: {', '.join([*names(), *RUNGS, *TUNED])}"
    )
    executing.add_options(parser)
    parser.add_argument("--sample", type=int, default=None, help="mutants of each kernel")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", choices=PAGES, default="mutants", help="the kernels of which page of the docs")
    parser.add_argument(
        "--resume", action="store_true", help=f"judge only what {_BUILD}/PAGE.jsonl does not have, or has as alive"
    )
    parser.add_argument("--record", action="store_true", help="write the page")
    options = parser.parse_args()
    page = PAGES[options.page]
    subjects = page.subjects()
    unknown = set(options.subjects) - set(subjects)
    if unknown:
        parser.error(f"there is no kernel {', '.join(sorted(unknown))}")
    kept = Kept(_BUILD / f"{options.page}.jsonl", resume=options.resume)
    subjects = options.subjects or subjects
    with executing.executor(parser, options) as executor:
        verdicts, left_out = run(subjects, options.sample, options.seed, executor, kept)
        unexecuted = missing(subjects, executor) if options.record and page.whole else []
    print("\n".join(table(verdicts)))
    if options.record:
        text = report(page, verdicts, left_out, options.sample)
        if unexecuted:
            text += "\n".join(["", "## Instructions that no run executes", "", *unexecuted, ""])
        (_DOCS / f"{options.page}.md").write_text(text)
    gaps = sum(map(is_gap, verdicts))
    return 1 if gaps else 0


if __name__ == "__main__":
    sys.exit(main())
