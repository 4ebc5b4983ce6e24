"""Loops of a function in figures: which poll or elect only, which is the main one, and which match between two.

A spin polls a barrier, a flag or a lock; an election is what ptxas wraps around an instruction with uniform operands
(TMA, tcgen05) that one thread issues. Both run as often as they must, so they are neither weighed nor gated; the loops
around them count them once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Literal

from ptxgen.sass.classes import counts, mmas
from ptxgen.sass.counters import counter_of
from ptxgen.sass.flow import ENTRY, Flow, Loop
from ptxgen.sass.listing import Instruction
from ptxgen.sass.source_lines import Correspondence, short

Role = Literal["", "spin", "election"]
#: How many passes of an inner loop a pass of the loop around it is taken to make.
_PASSES = 8
#: Instructions of a loop that polls with a counter or a growing pause, at most.
_POLLING = 24
#: What two loops need in common to be taken for the same: from 0 (nothing) to 3.
_ALIKE = 0.5
#: What the same place in the order of as many loops adds, where loops are alike enough.
_IN_ORDER = 0.3
#: Classes of instructions that an unrolled loop has as often as before, or that say nothing of work.
_CONTROL = frozenset({"branch", "uniform", "INT", "warp", "barrier"})
#: The part of an unrolling that the work in a loop must show.
_MOST = Fraction(9, 10)
_EFFECT = re.compile(r"ST[GSL]?$|STAS|STSM|STTM|RED|UTMA|UBLK|UTC(?!ATOMSWS)|LDGSTS|LDTM|\w*MMA$|SUST|SHFL|BAR$")
_MEMORY = re.compile(r"LD[GS]?$|LDS|ATOM|SYNCS$")
_PAUSE = re.compile(r"NANOSLEEP$")


@dataclass(frozen=True)
class LoopSummary:
    """A loop: where it begins, its instructions and classes, and the sum of the stalls of one pass.

    `issue_slots` counts the instructions that issue, NOP included; `stall` adds up their stall counts in cycles: the
    least time of a pass for one warp, scoreboard waits left out. All include the loops inside, each once.
    `ptx_lines` are the first and last line of the PTX, `ptx_line` and `source` the line of the branch back.
    `role` says of loops without work of their own what they are. `step` is what a pass adds to the counter that ends
    the loop, without its sign; None where no constant is added to one. `passes` is how often the loop runs each time
    that it is entered, where its counter goes from a constant to a constant.
    """

    address: int
    depth: int
    innermost: bool
    instructions: int
    issue_slots: int
    stall: int
    scoreboard_waits: int
    classes: Mapping[str, int]
    ptx_lines: tuple[int, int] | None
    ptx_line: int | None = None
    source: str = ""
    role: Role = ""
    step: int | None = None
    passes: int | None = None
    #: What the known passes of the loops inside, after their first, add to `instructions` and `stall`.
    repeated_instructions: int = 0
    repeated_stall: int = 0
    #: What subroutines add to a pass, once for each call: slow paths of divisions, functions that are not inlined.
    called_instructions: int = 0
    called_stall: int = 0
    called_classes: Mapping[str, int] = field(default_factory=dict)

    @property
    def pass_instructions(self) -> int:
        """Instructions of a pass, with the loops inside as often as they run where that is known, else once."""
        return self.instructions + self.repeated_instructions

    @property
    def pass_stall(self) -> int:
        """The stall sum of a pass, with the loops inside as often as they run where that is known, else once."""
        return self.stall + self.repeated_stall

    @property
    def counted(self) -> bool:
        """Whether the loop around it counts it as often as it runs."""
        return self.depth > 0 and self.passes is not None

    @property
    def place(self) -> str:
        """Where a reader looks for the loop: its source line, its PTX line, or its address."""
        if self.source:
            return short(self.source)
        return f"PTX line {self.ptx_line}" if self.ptx_line is not None else f"{self.address:#x}"


def address(flow: Flow, loop: Loop) -> int:
    """The address of the first instruction of a loop's header."""
    return flow.function.instructions[flow.blocks[loop.header].start].address


def stall(each: Instruction) -> int:
    """The cycles before a warp may issue the next instruction."""
    return max(each.control.stall, 1)


def loop_summary(flow: Flow, loop: Loop) -> LoopSummary:
    """The figures of a loop, inner loops included."""
    body = flow.instructions(loop)
    lines = [each.ptx_line for each in body if each.ptx_line is not None]
    latch = _latch(flow, loop)
    counter = counter_of(flow, loop)
    own, calling = _pass(flow, loop, flow.instructions), _pass(flow, loop, flow.executed)
    plain = _figures(body)
    return LoopSummary(
        address=address(flow, loop),
        depth=loop.depth,
        innermost=loop.innermost,
        instructions=plain[0],
        issue_slots=len(body),
        stall=plain[1],
        scoreboard_waits=sum(bool(each.control.wait) for each in body),
        classes=dict(counts(body).most_common()),
        ptx_lines=(min(lines), max(lines)) if lines else None,
        ptx_line=latch.ptx_line,
        source=latch.source,
        role=role_of(flow, loop),
        step=counter.step if counter else None,
        passes=counter.passes if counter else None,
        repeated_instructions=own[0] - plain[0],
        repeated_stall=own[1] - plain[1],
        called_instructions=calling[0] - own[0],
        called_stall=calling[1] - own[1],
        called_classes=dict(counts(one for each in body for one in flow.called(each)).most_common()),
    )


def _figures(body: Sequence[Instruction]) -> tuple[int, int]:
    """Instructions, NOP left out, and stall sum."""
    return sum(each.opcode != "NOP" for each in body), sum(map(stall, body))


def _pass(flow: Flow, loop: Loop, executed: Callable[[Loop], Sequence[Instruction]]) -> tuple[int, int]:
    """Instructions and stall sum of a pass, with the loops inside as often as their counters say, else once."""
    instructions, stalls = _figures(executed(loop))
    inner = [each for each in flow.loops if each.blocks < loop.blocks]
    for each in inner:
        if any(each.blocks < other.blocks for other in inner) or role_of(flow, each):
            continue
        counter = counter_of(flow, each)
        passes = counter.passes if counter is not None and counter.passes else 1
        (once, cycles), (count, all_cycles) = _figures(executed(each)), _pass(flow, each, executed)
        instructions += passes * count - once
        stalls += passes * all_cycles - cycles
    return instructions, stalls


def _latch(flow: Flow, loop: Loop) -> Instruction:
    """The last branch back to the header, or from the end of a loop what jumps to it."""
    instructions = flow.function.instructions
    back = [each for each in flow.before[loop.header] if each in loop.blocks]
    # ptxas puts rarely executed blocks after the function: the branch of the block next to the header's is meant.
    behind = [each for each in back if each >= loop.header] or back
    return instructions[flow.blocks[max(behind, default=loop.header)].end - 1]


def role_of(flow: Flow, loop: Loop) -> Role:
    """Whether a loop only polls or elects."""
    if not loop.innermost:
        return ""
    body = flow.instructions(loop)
    opcodes = {each.opcode for each in body}
    if "ELECT" in opcodes and any(each.opcode == "BRA" and {"U", "ANY"} <= set(each.modifiers) for each in body):
        return "election"
    if any(_EFFECT.match(opcode) for opcode in opcodes):
        return ""
    polls = any(_PAUSE.match(each.opcode) or "PHASECHK" in each.modifiers for each in body)
    if polls and len(body) <= _POLLING:
        return "spin"
    if any(_MEMORY.match(opcode) for opcode in opcodes) and any(each.registers.reads for each in body):
        return "" if _carries(flow, body) else "spin"
    return ""


def _carries(flow: Flow, body: Sequence[Instruction]) -> bool:
    """Whether an instruction of a loop reads what a pass before it wrote."""
    indices = {each.index for each in body}
    for each in body:
        for register in each.registers.reads:
            inside = [source for source in flow.definitions[each.index][register] if source in indices]
            if any(source >= each.index for source in inside):
                return True
    return False


def summaries(flow: Flow) -> tuple[LoopSummary, ...]:
    """All loops of a function, outer ones first."""
    return tuple(loop_summary(flow, loop) for loop in flow.loops)


@dataclass(frozen=True)
class LoopPair:
    """A loop of one function and its partner in the other; None on the side that has none."""

    a: LoopSummary | None
    b: LoopSummary | None
    #: Source lines whose instructions differ in number or stalls: (line, instructions a, b, stall sum a, b). The line
    #: is `old.cu:60 -> new.cu:62` where its file or number differs between the sides.
    lines: tuple[tuple[str, int, int, int, int], ...] = ()

    @property
    def place(self) -> str:
        """Where the loop is: that of A, and that of B where it differs."""
        if self.a is None or self.b is None:
            loop = self.a or self.b
            return loop.place if loop is not None else ""
        return _place(self.a.place, self.b.place)

    @property
    def unrolled(self) -> Fraction:
        """How many passes of A one of B makes, told by the steps of their counters; 1 where that is not told.

        A step that grew without as much more of any work (its unit changed) says nothing.
        """
        if self.a is None or self.b is None or not self.a.step or not self.b.step:
            return Fraction(1)
        ratio = Fraction(self.b.step, self.a.step)
        grown = [
            Fraction(self.b.classes[name], count)
            for name, count in self.a.classes.items()
            if name in self.b.classes and name not in _CONTROL
        ]
        if ratio == 1 or not grown:
            return Fraction(1)
        enough = max(grown) >= ratio * _MOST if ratio > 1 else min(grown) * _MOST <= ratio
        return ratio if enough and (ratio.numerator == 1 or ratio.denominator == 1) else Fraction(1)

    @property
    def same(self) -> bool:
        """Whether the figures of both are equal."""
        return self.a is not None and self.b is not None and _compared(self.a) == _compared(self.b)


def _compared(loop: LoopSummary) -> tuple[object, ...]:
    """The figures of a loop that may differ."""
    called = loop.called_instructions, loop.called_stall, loop.called_classes
    return (loop.instructions, loop.stall, loop.classes, loop.pass_stall, *called)


def has_no_more_work(one: LoopSummary, other: LoopSummary) -> bool:
    """Whether a pass of a loop has no class of instructions more often than one of another, control left out."""
    return all(count <= other.classes.get(name, 0) for name, count in one.classes.items() if name not in _CONTROL)


def main_loop(loops: Sequence[LoopSummary], inside: Mapping[int, Sequence[int]]) -> LoopSummary | None:
    """The loop that most of the work is in; `inside` has the loops in each, by index.

    The deepest that issues MMAs, of those the one with the most. Without MMAs the heaviest outer loop, and of the loops
    in it the heaviest as long as that has most of its weight. Spins and elections do not count.
    """
    working = [loop for loop in loops if not loop.role]
    if products := [loop for loop in working if mmas(loop.classes)]:
        return max(products, key=lambda loop: (loop.depth, mmas(loop.classes)))
    if not working:
        return max(loops, key=lambda loop: loop.instructions, default=None)

    @cache
    def weight(index: int) -> float:
        nested = {deep for each in inside[index] for deep in inside[each]}
        direct = [each for each in inside[index] if each not in nested]
        own = loops[index].stall - sum(loops[each].stall for each in direct)
        return own + _PASSES * sum(weight(each) for each in direct if not loops[each].role)

    index = max((i for i, loop in enumerate(loops) if not loop.role and not _is_inner(i, loops, inside)), key=weight)
    while True:
        inner = max((i for i in inside[index] if not loops[i].role), key=weight, default=None)
        if inner is None or 2 * _PASSES * weight(inner) < weight(index):
            return loops[index]
        index = inner


def _is_inner(index: int, loops: Sequence[LoopSummary], inside: Mapping[int, Sequence[int]]) -> bool:
    return any(index in found and not loops[outer].role for outer, found in inside.items())


def nesting(flow: Flow) -> dict[int, list[int]]:
    """The loops in each loop of a function, by index."""
    return {
        i: [j for j, inner in enumerate(flow.loops) if inner.blocks < outer.blocks]
        for i, outer in enumerate(flow.loops)
    }


# Two functions.


def matched(a: Flow, b: Flow, pairs: Mapping[int, int]) -> tuple[LoopPair, ...]:
    """All loops of two functions that do work, each with its partner. `pairs`: the aligned instructions.

    Loops in matched loops are matched first, then what is left wherever it lies.
    """
    ones, others = _working(a), _working(b)
    found: dict[int, int] = {}
    sources = {i: (a.function.instructions[i].source, b.function.instructions[j].source) for i, j in pairs.items()}
    lines = Correspondence(sources.values())

    def likeness(i: int, j: int) -> float:
        return _likeness(ones[i], others[j], pairs, lines)

    def match(left: Sequence[int], right: Sequence[int], least: float) -> None:
        ordered = set(zip(left, right, strict=True)) if len(left) == len(right) else set[tuple[int, int]]()
        scores = sorted(
            ((likeness(i, j), _IN_ORDER * ((i, j) in ordered), i, j) for i in left for j in right),
            key=lambda each: (-each[0] - each[1], each[2], each[3]),
        )
        taken: set[int] = set()
        for score, _, i, j in scores:
            if score >= least and i not in found and j not in taken:
                found[i] = j
                taken.add(j)
        for i in left:
            if i in found:
                match(ones[i].inner, others[found[i]].inner, least)

    match(
        [i for i, each in ones.items() if each.outer is None],
        [j for j, each in others.items() if each.outer is None],
        _ALIKE,
    )
    rest = [i for i in ones if i not in found], [j for j in others if j not in set(found.values())]
    for score, i, j in sorted(
        ((likeness(i, j), i, j) for i in rest[0] for j in rest[1]),
        key=lambda each: (-each[0], each[1], each[2]),
    ):
        if score >= _ALIKE and i not in found and j not in found.values() and not _rolled(ones[i], others[j]):
            found[i] = j
    made = [
        _pair(ones[i], others[found[i]], lines, sources) if i in found else LoopPair(ones[i].figures, None)
        for i in ones
    ]
    made += [LoopPair(None, others[j].figures) for j in others if j not in set(found.values())]
    return tuple(made)


def _rolled(one: _Working, other: _Working) -> bool:
    """Whether one of two loops is an inner one with known passes, which the loop around it counts, the other not."""
    inner = [each.figures.counted for each in (one, other)]
    return inner[0] != inner[1]


@dataclass(frozen=True)
class _Working:
    """A loop that does work: its instructions and figures, the loop around it and those directly in it, by index."""

    body: Sequence[Instruction]
    figures: LoopSummary
    outer: int | None
    inner: tuple[int, ...]


def _working(flow: Flow) -> dict[int, _Working]:
    figures = summaries(flow)
    wanted = [i for i, each in enumerate(figures) if not each.role]
    around = {
        i: max(
            (j for j in wanted if flow.loops[i].blocks < flow.loops[j].blocks),
            key=lambda j: flow.loops[j].depth,
            default=None,
        )
        for i in wanted
    }
    return {
        i: _Working(
            flow.instructions(flow.loops[i]),
            figures[i],
            around[i],
            tuple(j for j in wanted if around[j] == i),
        )
        for i in wanted
    }


def _likeness(one: _Working, other: _Working, pairs: Mapping[int, int], lines: Correspondence) -> float:
    """How much two loops are alike, from 0 to 3: aligned instructions, mix of opcodes, and the same source line."""
    indices = {each.index for each in other.body}
    shared = sum(pairs.get(each.index, ENTRY) in indices for each in one.body)
    aligned = 2 * shared / (len(one.body) + len(other.body))
    left, right = one.figures.classes, other.figures.classes
    product = sum(count * right.get(name, 0) for name, count in left.items())
    lengths = math.sqrt(sum(x * x for x in left.values()) * sum(x * x for x in right.values()))
    named = bool(one.figures.source) and lines.partner(one.figures.source) == short(other.figures.source)
    return aligned + 0.9 * (product / lengths if lengths else 0.0) + named


def _pair(one: _Working, other: _Working, lines: Correspondence, sources: Mapping[int, tuple[str, str]]) -> LoopPair:
    left, right = _by_line(one.body), _by_line(other.body)
    votes = [sources[each.index] for each in one.body if each.index in sources]
    rows = [
        (_place(short(line), short(its)), a, b, x, y)
        for line, its, (a, x), (b, y) in lines.rows(left, right, votes)
        if (a, x) != (b, y)
    ]
    return LoopPair(one.figures, other.figures, tuple(sorted(rows, key=lambda row: -abs(row[4] - row[3]))))


def _place(one: str, other: str) -> str:
    """A place of both sides, or of the one that has it."""
    return one or other if not one or not other or one == other else f"{one} -> {other}"


def _by_line(body: Sequence[Instruction]) -> dict[str, tuple[int, int]]:
    """Instructions and stall sum by source line; empty where there is no line table of a source."""
    found: dict[str, tuple[int, int]] = {}
    for each in body:
        if each.source and each.opcode != "NOP":
            count, cycles = found.get(each.source, (0, 0))
            found[each.source] = count + 1, cycles + stall(each)
    return found


# One loop by name.


class NoLoopError(LookupError):
    """A loop that there is not."""


def chosen(flow: Flow, word: str) -> Loop:
    """The loop at an address (0x310) or a line (29, pipe.cu:29), or `main`. Raises NoLoopError that lists the loops.

    A line names the loop whose branch back it has, else the innermost loop with instructions of that line.
    """
    figures = summaries(flow)
    if word == "main":
        main = main_loop(figures, nesting(flow))
        if main is not None:
            return flow.loops[figures.index(main)]
        raise NoLoopError("the kernel has no loop")
    if word.startswith("0x"):
        found = [i for i, each in enumerate(figures) if f"{each.address:#x}" == word.lower()]
        if not found:  # an address inside
            found = [
                i for i, loop in enumerate(flow.loops) if int(word, 16) in {x.address for x in flow.instructions(loop)}
            ]
            found = found[-1:] if not found else [max(found, key=lambda i: flow.loops[i].depth)]
    else:
        found = [i for i, each in enumerate(figures) if _is_line(word, each.source, each.ptx_line)]
        if not found:
            inside = [
                i
                for i, loop in enumerate(flow.loops)
                if any(_is_line(word, each.source, each.ptx_line) for each in flow.instructions(loop))
            ]
            found = [i for i in inside if flow.loops[i].depth == max(flow.loops[j].depth for j in inside)]
    if not found and not figures:
        raise NoLoopError("the kernel has no loop")
    if not found:
        known = ", ".join(dict.fromkeys(f"{each.place} ({each.address:#x})" for each in figures if not each.role))
        raise NoLoopError(f"there is no loop at {word}; there are: {known or 'none'}")
    return flow.loops[max(found, key=lambda i: (not figures[i].role, figures[i].instructions))]


def _is_line(word: str, source: str, ptx_line: int | None) -> bool:
    """Whether a line is meant: FILE:LINE or LINE of the source; LINE of the PTX where there is no source."""
    if source:
        return source == word or source.endswith("/" + word) or (word.isdigit() and source.endswith(":" + word))
    return word == str(ptx_line)
