"""One task of the score: the changes of one kernel, or its PTX edits and equal pairs, each judged."""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ptxgen.sass import compare, load
from ptxgen.toolchain import AssemblerError, disassemble
from tools.sass_score import equal, in_ptx
from tools.sass_score.in_cubins import judged
from tools.sass_score.judges import Cccl, Judged, Verdict
from tools.sass_score.kernels import Source, assembled, source

_ADDRESS = re.compile(r"/\*[0-9a-f]{4,}\*/")
_NAME = re.compile(r"%[\w$]+")
_REGISTER = re.compile(r"\b(UR|UP|R|P)\d+\b")


@dataclass(frozen=True)
class Task:
    """What one process does: `count` changes of the words of a kernel, or edits of its PTX and equal pairs."""

    what: str
    name: str
    target: str
    count: int
    seed: int
    cccl: Cccl | None


def do(task: Task) -> list[Judged]:
    """Every pair of a task with its verdicts."""
    rng = random.Random(f"{task.seed} {task.name} {task.target}")
    made = source(task.name, task.target)
    with tempfile.TemporaryDirectory() as folder:
        if task.what == "words":
            return list(judged(made, task.count, rng, Path(folder), task.cccl))
        return [*_edits(made, rng, task.cccl), *_kernels(made, rng, task.cccl), *_equal(made, rng, task.cccl, folder)]


def _edits(made: Source, rng: random.Random, cccl: Cccl | None) -> Iterator[Judged]:
    """One edit of the PTX that nvdisasm prints otherwise, apart from registers and addresses."""
    before = assembled(made.text, made.target)
    plain = _code(before.data)
    for _ in range(4):
        edit = in_ptx.edited(made, rng)
        if edit is None:
            return
        text, line = edit
        try:
            after = assembled(text, made.target)
        except AssemblerError:
            continue
        if _code(after.data) != plain:
            found = compare(load(before), load(after))
            lines = {
                function.instructions[index].ptx_line
                for pair in found.pairs
                for each in pair.differences
                for function, index in ((pair.a, each.a), (pair.b, each.b))
                if index is not None
            }
            theirs = None
            if cccl:
                theirs = Verdict(cccl.kernels(before.data) != cccl.kernels(after.data))
            what = f"{made.name}:{line} {text.splitlines()[line - 1].strip()}"
            yield Judged("PTX line", what, Verdict(not found.same, bool(lines & _related(text, line))), theirs)
            return


def _related(text: str, line: int) -> set[int]:
    """A line and those that name a register of it: ptxas may put a change of a branch into the comparison before it."""
    lines = text.split("\n")
    names = set(_NAME.findall(lines[line - 1]))
    return {line, *(number for number, each in enumerate(lines, 1) if names & set(_NAME.findall(each)))}


def _code(data: bytes) -> str:
    return _REGISTER.sub(r"\1", _ADDRESS.sub("", disassemble(data)))


def _kernels(made: Source, rng: random.Random, cccl: Cccl | None) -> Iterator[Judged]:
    """A kernel dropped, duplicated and renamed."""
    for kind, change in in_ptx.KERNEL_KINDS.items():
        pair = change(made, rng)
        a, b = (assembled(text, made.target) for text in (pair.a, pair.b))
        found = compare(load(a), load(b))
        other_names = [each for each in found.pairs if each.a.name != each.b.name]
        names = {*(each.name for each in found.only_a), *(each.a.name for each in other_names)}
        others = {*(each.name for each in found.only_b), *(each.b.name for each in other_names)}
        verdict = Verdict(not found.same, names == pair.only_a and others == pair.only_b)
        theirs = None
        if cccl:
            one, other = (frozenset(cccl.kernels(each.data)) for each in (a, b))
            theirs = Verdict(one != other, one - other == pair.only_a and other - one == pair.only_b)
        yield Judged(kind, made.name, verdict, theirs)


def _equal(made: Source, rng: random.Random, cccl: Cccl | None, folder: str) -> Iterator[Judged]:
    """One pair of each kind."""
    for kind, change in equal.KINDS.items():
        a, b = (
            each.cubin(made.target, Path(folder) / f"{kind} {side}")
            for side, each in zip("ab", change(made, rng), strict=True)
        )
        one, other = load(a), load(b)
        kernel = made.entry if kind == equal.ONE_KERNEL else None
        found = compare(one, other, kernel=kernel)
        theirs = None
        if cccl:
            left, right = cccl.kernels(a), cccl.kernels(b)
            differ = left[made.entry] != right[made.entry] if kernel else left != right
            theirs = Verdict(differ)
        yield Judged(kind, made.name, Verdict(not found.same), theirs, equal=True)
