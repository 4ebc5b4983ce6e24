"""The whole comparison: every declaration in chunks over all cores, with progress, and resumed where it stopped.

The result of a chunk goes to a file in `build/` as soon as it is known, under the digest of its declarations; a chunk
that is there is not done again.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import TypedDict

from ptxgen.executor import Executor
from ptxgen.instr import load_all
from ptxgen.instr.model.certified import digest
from ptxgen.instr.model.form import REGISTRY, Instruction
from tools.certify import cases
from tools.certify.judges import Disagreement, compare

#: Combinations of modifiers in one chunk.
CHUNK = 20_000


@dataclass(frozen=True, slots=True)
class Settings:
    """What to compare: the least number of neighbors of a declaration, and how many each of its forms has."""

    neighbors: int
    each: float
    seed: int
    #: Legal forms of a declaration; None for all of them.
    forms: int | None = None
    #: Assemble a legal form on all its targets, or on one.
    everywhere: bool = True
    #: Try every target and PTX version for each set of demands.
    gates: bool = True


@dataclass(frozen=True, slots=True)
class Part:
    """Some combinations of modifiers of a declaration, of `total`."""

    key: str
    start: int
    stop: int
    total: int

    @property
    def effort(self) -> int:
        """Roughly how long it takes."""
        return self.stop - self.start + 500


@dataclass(frozen=True, slots=True)
class Chunk:
    """What is compared together, since lines that share modules cost less."""

    parts: tuple[Part, ...]

    def __str__(self) -> str:
        first, last = self.parts[0], self.parts[-1]
        return f"{first.key} {first.start} to {last.key} {last.stop}"

    @property
    def effort(self) -> int:
        return sum(part.effort for part in self.parts)

    def name(self, settings: Settings, ptxas_version: str) -> str:
        """What the result is filed under."""
        text = f"{[(digest(_by_key()[each.key]), each) for each in self.parts]} {settings} {ptxas_version}"
        return hashlib.sha256(text.encode()).hexdigest()[:24]


class Reason(TypedDict):
    """Lines on which the two differ for one reason, lines of its pattern on which they agree, and one that differs.

    `objection` is what the stricter of the two says of the example.
    """

    excused: int
    agreed: int
    example: str
    objection: str


@dataclass(slots=True)
class Result:
    """Counts of one part: `forms` legal forms, `assemblies` of them on targets, `neighbors` tried.

    `excused` counts the lines on which the two differ as `irreconcilable` says, `reasons` has them by reason.
    """

    key: str
    forms: int = 0
    assemblies: int = 0
    neighbors: int = 0
    excused: int = 0
    reasons: dict[str, Reason] = field(default_factory=dict)
    disagreements: list[str] = field(default_factory=list)


@cache
def _by_key() -> dict[str, type[Instruction]]:
    load_all()
    return {form.form.key: form for forms in REGISTRY.values() for form in forms}


def chunks(families: Sequence[str]) -> list[Chunk]:
    """The chunks of some families, the largest first. Families do not share chunks, so each has its own results."""
    by_family: dict[str, list[Part]] = defaultdict(list)
    for form in cases.declared(families):
        total = form.combination_count()
        by_family[form.form.key.split(".")[0]] += [
            Part(form.form.key, start, min(start + CHUNK, total), total) for start in range(0, total, CHUNK)
        ]
    found: list[Chunk] = []
    for parts in by_family.values():
        open_one: list[Part] = []
        for part in sorted(parts, key=lambda part: (-part.total, part.key, part.start)):
            open_one.append(part)
            if sum(each.effort for each in open_one) >= CHUNK // 2:
                found.append(Chunk(tuple(open_one)))
                open_one = []
        if open_one:
            found.append(Chunk(tuple(open_one)))
    return sorted(found, key=lambda chunk: -chunk.effort)


def _legal(part: Part, settings: Settings, rng: random.Random) -> list[Instruction]:
    """The legal forms of a part, or some of them: of a sample no more combinations are tried than it takes."""
    form = _by_key()[part.key]
    if settings.forms is None:
        return [made for made in form.variants(part.start, part.stop) if cases.home(made) is not None]
    found: list[Instruction] = []
    for number in rng.sample(range(part.start, part.stop), part.stop - part.start):
        made = [each for each in form.combination(number).with_operands() if cases.home(each) is not None]
        found += rng.sample(made, min(len(made), -(-settings.forms // 4)))
        if len(found) >= settings.forms:
            break
    return found[: settings.forms]


def _cases(part: Part, settings: Settings, result: Result) -> Iterator[cases.Case]:
    """The cases of a part, counted into `result`."""
    form = _by_key()[part.key]
    rng = random.Random(f"{settings.seed} {part.key} {part.start}")
    legal = _legal(part, settings, rng)
    wanted = max(settings.each * len(legal), settings.neighbors * (part.stop - part.start) / part.total)
    neighbors = cases.Neighbors(form)
    for position, made in enumerate(legal):
        targets = list(cases.assembled(made)) if settings.everywhere else [cases.at_home(made)]
        result.forms += 1
        result.assemblies += len(targets)
        yield from targets
        count = int(wanted * (position + 1) / len(legal)) - int(wanted * position / len(legal))
        for case in neighbors.draw(made, count, rng):
            result.neighbors += 1
            yield case
    others = cases.ruled_out(form, int(wanted / 6) + 1, rng)
    for case in itertools.chain(others, cases.gates_of(form) if part.start == 0 and settings.gates else ()):
        result.neighbors += 1
        yield case


def do(chunk: Chunk, settings: Settings) -> list[Result]:
    """Compare one chunk."""
    results = [Result(part.key) for part in chunk.parts]
    every = itertools.chain.from_iterable(
        _cases(part, settings, result) for part, result in zip(chunk.parts, results, strict=True)
    )
    by_key = {result.key: result for result in results}
    for differing in compare(every):
        result = by_key[differing.case.form]
        if differing.reason:
            excuse(result, differing)
        else:
            result.disagreements.append(str(differing))
    return results


def excuse(result: Result, differing: Disagreement) -> None:
    """Count a line for which there is a reason to differ."""
    empty = Reason(excused=0, agreed=0, example="", objection="")
    known = result.reasons.setdefault(differing.reason, empty)
    if differing.agreed:
        known["agreed"] += 1
        return
    result.excused += 1
    known["excused"] += 1
    known["example"] = known["example"] or differing.case.line
    known["objection"] = known["objection"] or differing.ours or differing.ptxas


def sweep(
    families: Sequence[str], settings: Settings, executor: Executor, folder: Path, ptxas_version: str, *,
    quiet: bool = False,
) -> list[Result]:  # fmt: skip
    """All chunks of some families; those that are in the folder already are read.

    A chunk that fails leaves the others; its error is raised when they are done.
    """
    folder.mkdir(parents=True, exist_ok=True)
    every = chunks(families)
    results: list[Result] = []
    left: list[tuple[Chunk, Settings, Path]] = []
    for chunk in every:
        path = folder / f"{chunk.name(settings, ptxas_version)}.json"
        if path.is_file():
            results += [Result(**row) for row in json.loads(path.read_text())]
        else:
            left.append((chunk, settings, path))
    if results and not quiet:
        print(f"{len(every) - len(left)} of {len(every)} chunks were done before", file=sys.stderr)
    failed: list[Exception] = []
    for outcome in executor.map(
        _work, left, ordered=False, name=lambda item: str(item[0]), what="" if quiet else "chunks",
        effort=lambda item: item[0].effort,
    ):  # fmt: skip
        if outcome.error is not None:
            print(outcome.problem, file=sys.stderr)
            failed.append(outcome.error)
            continue
        found = outcome.result()
        outcome.item[2].write_text(json.dumps([asdict(each) for each in found]))
        results += found
        for text in itertools.chain.from_iterable(each.disagreements for each in found):
            print(text, flush=True)
    if failed:
        raise failed[0]
    return results


def _work(item: tuple[Chunk, Settings, Path]) -> list[Result]:
    return do(*item[:2])
