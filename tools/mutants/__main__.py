"""The command `python -m tools.mutants`."""

from __future__ import annotations

import argparse
import datetime
import functools
import hashlib
import json
import platform
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

import numpy as np

import tools.mutants
from tools.mutants.equivalent import reason
from tools.mutants.judge import MORE_SEEDS, SCHEDULES, Baseline, Verdict, baseline, judge
from tools.mutants.mutations import Mutant, mutants
from tools.mutants.subjects import load, names

REPORT = Path(__file__).parents[2] / "docs" / "mutants.md"
_REDUNDANT = (
    "A wait, arrival, commit, fence, count or barrier, without which each pair of conflicting accesses to shared "
    "memory is still ordered by others, under all five schedules (all pairs compared, `tools/mutants/pairs.py`), the "
    "checks of tensor and global memory report nothing, and the results are right: without a race they do not "
    "depend on timing. Compilers put many such; waits and commits among them are of stages that these sizes do not use "
    "again.\n"
)
_UNUSED = (
    "Fields and operands that may be otherwise: the results are the same bit for bit as those of the kernel itself, "
    "under each of the five schedules, from random inputs, and no check tells. Such are fields that the layout does "
    "not use (the leading offset of swizzled K-major matrices, PTX ISA 9.7.16.5.1), and columns and rows that nothing "
    "reads.\n"
)
_GAPS = "What neither the checks nor the results tell, and nobody has given a reason for.\n"
KEPT = Path("build") / "mutants.jsonl"
FATES = ("finding", "advice", "fault", "deadlock", "endless", "wrong result")


class Kept:
    """Verdicts in a file, so that a run can go on where another was cut, or judge again only what was left alive."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        self._path = path
        self._found: dict[tuple[str, str, Mutant], Verdict] = {}
        if resume and path.exists():
            for line in path.read_text().splitlines():
                values = json.loads(line)
                mutant = Mutant(**values.pop("mutant"))
                digest = values.pop("digest")
                verdict = Verdict(mutant=mutant, **values)
                if verdict.fate not in ("survived", "unmodelled", "crash"):
                    self._found[verdict.subject, digest, mutant] = verdict
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text("")

    def verdict(self, subject: str, mutant: Mutant) -> Verdict | None:
        """What is known of a mutant of a subject's present text."""
        return self._found.get((subject, _digest(subject), mutant))

    def add(self, verdict: Verdict) -> None:
        """Keep a verdict."""
        digest = _digest(verdict.subject)
        self._found[verdict.subject, digest, verdict.mutant] = verdict
        with self._path.open("a") as file:
            file.write(json.dumps({**asdict(verdict), "digest": digest}) + "\n")


@functools.cache
def _digest(subject: str) -> str:
    return hashlib.blake2b(load(subject).text.encode(), digest_size=8).hexdigest()


def drawn(subject: str, sample: int | None, seed: int) -> list[Mutant]:
    """The mutants of a subject: all, or a seeded sample, which a larger one has in it."""
    found = list(mutants(load(subject).text))
    if sample is not None:
        random.Random(f"{seed} {subject}").shuffle(found)
    return found[:sample]


def run(
    subjects: Sequence[str], sample: int | None, seed: int, jobs: int, kept: Kept
) -> tuple[list[Verdict], dict[str, str]]:
    """Judge mutants over several processes, with progress; and why subjects were left out."""
    verdicts: list[Verdict] = []
    left_out: dict[str, str] = {}
    began = time.monotonic()
    with ProcessPoolExecutor(jobs) as pool:
        for subject in subjects:
            chosen = drawn(subject, sample, seed)
            missing = [mutant for mutant in chosen if kept.verdict(subject, mutant) is None]
            if missing:
                whole = pool.submit(_baseline, subject).result()
                if whole.broken:
                    left_out[subject] = whole.broken
                    print(f"{subject}: left out, it is not right itself: {whole.broken}", flush=True)
                    continue
                pending = [pool.submit(judge, subject, mutant, whole) for mutant in missing]
                for number, future in enumerate(pending, 1):
                    verdict = future.result()
                    kept.add(verdict)
                    if not verdict.caught and not _equivalent(verdict):
                        print(f"{verdict.fate}: {subject}: {verdict.mutant} {verdict.told}", flush=True)
                    if sys.stderr.isatty():
                        print(
                            f"{subject}: {number}/{len(missing)}, {time.monotonic() - began:.0f} s  ",
                            end="\r",
                            file=sys.stderr,
                        )
            found = [kept.verdict(subject, mutant) for mutant in chosen]
            verdicts += [verdict for verdict in found if verdict is not None]
            print(f"{subject}: {len(chosen)} mutants, {time.monotonic() - began:.0f} s", flush=True)
    return verdicts, left_out


def _baseline(subject: str) -> Baseline:
    return baseline(load(subject))


def _equivalent(verdict: Verdict) -> bool:
    """Whether a mutant is as right as the kernel: what it changes is never executed, or there is another reason."""
    return verdict.fate in ("unreached", "redundant", "unused") or (
        verdict.fate == "survived" and bool(reason(verdict.subject, verdict.mutant))
    )


def table(verdicts: Sequence[Verdict]) -> list[str]:
    """The score, a line for each subject."""
    heads = ["kernel", "mutants", *FATES, "equivalent", "survived", "unmodelled", "caught"]
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    subjects = list(dict.fromkeys(each.subject for each in verdicts))
    for subject in [*subjects, "all"]:
        chosen = [each for each in verdicts if subject in ("all", each.subject)]
        fates = Counter(each.fate for each in chosen)
        equivalent = sum(map(_equivalent, chosen))
        gaps = sum(each.fate == "survived" and not _equivalent(each) for each in chosen)
        counted = len(chosen) - equivalent
        caught = sum(each.caught for each in chosen)
        other = fates["unmodelled"] + fates["crash"]
        cells = [len(chosen), *(fates[fate] for fate in FATES), equivalent, gaps, other]
        share = f"{100 * caught / counted:.1f} %" if counted else "-"
        lines.append(f"| {subject} | " + " | ".join(str(cell) for cell in cells) + f" | {share} |")
    return lines


def report(verdicts: Sequence[Verdict], left_out: dict[str, str], sample: int | None) -> str:
    """The page of the docs."""
    alive = [each for each in verdicts if each.fate == "survived"]
    gaps = [each for each in alive if not _equivalent(each)]
    equal = [each for each in alive if _equivalent(each)]
    redundant, unused = (_by_subject(verdicts, fate) for fate in ("redundant", "unused"))
    unreached = Counter(each.subject for each in verdicts if each.fate == "unreached")
    other = [each for each in verdicts if each.fate in ("unmodelled", "crash")]
    codes = Counter(each.told for each in verdicts if each.caught and each.told)
    lines = [
        "# Mutants", "",
        "Right kernels with one synchronization or descriptor broken at a time (`tools/mutants`); "
        "`make mutants` writes this page.", "",
        f"{datetime.date.today().isoformat()}, Python {platform.python_version()}, NumPy {np.__version__}. Schedules: "
        + ", ".join(f"{name} {seed}" if name == "random" else name for name, seed in SCHEDULES)
        + f"; {len(MORE_SEEDS)} more seeds for what would survive. A mutant is caught by the first schedule that "
        "tells. "
        + ("All mutants." if sample is None else f"A seeded sample of {sample} mutants of each kernel."), "",
        *table(verdicts), "",
    ]  # fmt: skip
    lines += ["## What told", "", "| code | mutants |", "|---|---:|"]
    lines += [f"| {code} | {count} |" for code, count in codes.most_common()]
    sections = (
        ("Survivors that are gaps", [_GAPS, *(f"- {each.subject}, {each.mutant}" for each in gaps)] if gaps else []),
        ("Survivors that are equivalent", [
            f"- {each.subject}, {each.mutant}. {reason(each.subject, each.mutant)}" for each in equal
        ]),
        ("Redundant synchronization", [_REDUNDANT, *redundant] if redundant else []),
        ("Changes that nothing reads", [_UNUSED, *unused] if unused else []),
        ("Mutants of what these launches never execute", [
            f"- {subject}: {count}"
            for subject, count in unreached.items()
        ]),
        ("Mutants that end as incomplete", [f"- {each.subject}, {each.mutant}: {each.told}" for each in other]),
        ("Kernels left out", [f"- {name}: not right itself: {why}" for name, why in left_out.items()]),
    )  # fmt: skip
    for title, items in sections:
        if items:
            lines += ["", f"## {title}", "", *items]
    return "\n".join(lines) + "\n"


def _by_subject(verdicts: Sequence[Verdict], fate: str) -> list[str]:
    """Mutants of one fate, a line for each kernel: by kind, then the lines."""
    found: dict[str, dict[str, list[str]]] = {}
    for each in verdicts:
        if each.fate == fate:
            found.setdefault(each.subject, {}).setdefault(each.mutant.kind, []).append(str(each.mutant.line))
    return [
        f"- {subject}: " + "; ".join(f"{kind}: {', '.join(lines)}" for kind, lines in kinds.items())
        for subject, kinds in found.items()
    ]


def main() -> int:
    """Print the score; exit with 1 if a mutant survives for no known reason."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutants", description=tools.mutants.__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )  # fmt: skip
    parser.add_argument("subjects", nargs="*", help=f"kernels; all by default: {', '.join(names())}")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sample", type=int, default=None, help="mutants of each kernel")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help=f"judge only what {KEPT} does not have, or has as alive")
    parser.add_argument("--record", action="store_true", help=f"write {REPORT.name}")
    options = parser.parse_args()
    unknown = set(options.subjects) - set(names())
    if unknown:
        parser.error(f"there is no kernel {', '.join(sorted(unknown))}")
    kept = Kept(KEPT, resume=options.resume)
    verdicts, left_out = run(options.subjects or names(), options.sample, options.seed, options.jobs, kept)
    print("\n".join(table(verdicts)))
    if options.record:
        REPORT.write_text(report(verdicts, left_out, options.sample))
    gaps = sum(each.fate == "survived" and not _equivalent(each) for each in verdicts)
    return 1 if gaps else 0


if __name__ == "__main__":
    sys.exit(main())
