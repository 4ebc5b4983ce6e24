"""One task of the score: the changes of one kernel, or its PTX edits and equal pairs, each judged."""

from __future__ import annotations

import random
import re
import tempfile
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ptxgen.sass import Listing, compare, load
from ptxgen.toolchain import AssemblerError, Cubin, disassemble
from tools.sass_score import equal, in_ptx
from tools.sass_score.in_cubins import judged
from tools.sass_score.judges import Cccl, Judged, Verdict
from tools.sass_score.kernels import Source, assembled

_ADDRESS = re.compile(r"\s*/\*[0-9a-f]{4,}\*/")
_NUMBERED = re.compile(r"/\*[0-9a-f]{4,}\*/|(?<=\.L_x_)\d+|(?<=\$__internal_)\d+")
_NAME = re.compile(r"%[\w$]+")
_REGISTER = re.compile(r"\b(UR|UP|R|P)\d+\b")


#: Times that each kind of change of kernels is made of a module.
_KERNEL_CHANGES = 3


@dataclass(frozen=True)
class Task:
    """What one process does: `count` changes of the words of a kernel, or edits of its PTX and equal pairs."""

    what: Literal["words", "PTX"]
    source: Source
    count: int
    seed: int
    cccl: Cccl | None


def do(task: Task) -> list[Judged]:
    """Every pair of a task with its verdicts."""
    rng = random.Random(f"{task.seed} {task.source.name} {task.source.target}")
    with tempfile.TemporaryDirectory() as folder:
        if task.what == "words":
            return list(judged(task.source, task.count, rng, Path(folder), task.cccl))
        original = Side.of(assembled(task.source.text, task.source.target), task.cccl)
        found: list[Judged] = []
        for _ in range(task.count):
            found += _edits(task.source, original, rng, task.cccl)
        for _ in range(_KERNEL_CHANGES):
            found += _kernels(task.source, original, rng, task.cccl)
        return [*found, *_equal(task.source, original, rng, task.cccl, Path(folder))]


@dataclass(frozen=True)
class Side:
    """A cubin as both judges see it, and its code as nvdisasm prints it, without registers and addresses."""

    listing: Listing
    plain: dict[str, str]
    kernels: dict[str, list[str]]

    @classmethod
    def of(cls, cubin: Cubin, cccl: Cccl | None) -> Side:
        """The side of a cubin."""
        return cls(load(cubin), plain(cubin.data), cccl.kernels(cubin.data) if cccl else {})


def plain(data: bytes) -> dict[str, str]:
    """The code of each kernel as nvdisasm prints it, without registers, addresses and numbers of labels."""
    parts = disassemble(data).split(".section\t.text.")[1:]
    found: dict[str, str] = {}
    for part in parts:
        code = "\n".join(line for line in part.split("\n") if _ADDRESS.match(line))
        found[part.split(",", 1)[0]] = _REGISTER.sub(r"\1", _NUMBERED.sub("", code))
    return found


def _edits(made: Source, before: Side, rng: random.Random, cccl: Cccl | None) -> Iterator[Judged]:
    """One edit of the PTX of each kernel, as far as nvdisasm then prints other code."""
    edits = in_ptx.edited(made, rng)
    while True:
        text = in_ptx.with_lines(made.text, edits)
        try:
            after = Side.of(assembled(text, made.target), cccl)
            break
        except AssemblerError as error:
            for number in {each.line for each in error.diagnostics} & edits.keys():
                del edits[number or 0]
            if not edits:
                return
    starts = [number for number, line in enumerate(text.split("\n"), 1) if ".entry" in line]
    for line, edit in edits.items():
        name = made.entries[bisect_right(starts, line) - 1]
        if before.plain[name] == after.plain[name]:
            continue
        found = compare(before.listing, after.listing, kernel=name)
        lines = {
            function.instructions[index].ptx_line
            for pair in found.pairs
            for each in pair.differences
            for function, index in ((pair.a, each.a), (pair.b, each.b))
            if index is not None
        }
        named = {number for pair in found.pairs for both in pair.ptx for number in both}
        verdict = Verdict(not found.same, line in named and bool(lines))
        by_line_table = bool(lines & _related(text, line))
        theirs = Verdict(before.kernels[name] != after.kernels[name]) if cccl else None
        yield Judged(
            "PTX line", f"{made.name} {name}:{line} {edit.strip()}", verdict, theirs, by_line_table=by_line_table
        )


def _related(text: str, line: int) -> set[int]:
    """A line and those that name a register of it: ptxas may put a change of a branch into the comparison before it."""
    lines = text.split("\n")
    names = set(_NAME.findall(lines[line - 1]))
    return {line, *(number for number, each in enumerate(lines, 1) if names & set(_NAME.findall(each)))}


def _kernels(made: Source, before: Side, rng: random.Random, cccl: Cccl | None) -> Iterator[Judged]:
    """A kernel dropped and duplicated; and renamed, which is no difference."""
    for kind, change in in_ptx.KERNEL_KINDS.items():
        pair = change(made, rng)
        after = Side.of(assembled(pair.b, made.target), cccl)
        found = compare(before.listing, after.listing)
        other_names = [each for each in found.pairs if each.a.name != each.b.name]
        names = {*(each.name for each in found.only_a), *(each.a.name for each in other_names)}
        others = {*(each.name for each in found.only_b), *(each.b.name for each in other_names)}
        verdict = Verdict(not found.same, names == pair.only_a and others == pair.only_b)
        theirs = None
        if cccl:
            one, other = frozenset(before.kernels), frozenset(after.kernels)
            theirs = Verdict(one != other, one - other == pair.only_a and other - one == pair.only_b)
        yield Judged(kind, f"{made.name} {pair.only_a} {pair.only_b}", verdict, theirs)
    pair = in_ptx.other_name(made, rng)
    after = Side.of(assembled(pair.b, made.target), cccl)
    found = compare(before.listing, after.listing)
    theirs = Verdict(before.kernels != after.kernels) if cccl else None
    names = dict(zip(pair.only_a, pair.only_b, strict=True))
    unequal = any(before.plain[name] != after.plain[names.get(name, name)] for name in before.plain)
    what, verdict = f"{made.name} {pair.only_a} {pair.only_b}", Verdict(not found.same)
    yield Judged("kernel renamed", what, verdict, theirs, refused=unequal, equal=True)


def _equal(made: Source, before: Side, rng: random.Random, cccl: Cccl | None, folder: Path) -> Iterator[Judged]:
    """One pair of each kind for each kernel; `refused` where ptxas made other code."""
    for kind, change in equal.KINDS.items():
        build = change(made, rng)
        assert build.text != made.text or build.path != equal.PATH
        data = build.cubin(made.target, folder / kind.replace(" ", "-"))
        after, texts, kernels = load(data), plain(data), cccl.kernels(data) if cccl else {}
        for name in made.entries:
            found = compare(before.listing, after, kernel=name)
            theirs = Verdict(before.kernels[name] != kernels[name]) if cccl else None
            unequal = texts[name] != before.plain[name]
            yield Judged(kind, f"{made.name} {name}", Verdict(not found.same), theirs, refused=unequal, equal=True)
