"""Listings, summaries and comparisons as lines of text."""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ptxgen.names import shown_name
from ptxgen.sass.classes import CLASS_NAMES, MMA_GROUPS, is_class, mmas, opcode_class
from ptxgen.sass.diff import Comparison, Difference, Pair
from ptxgen.sass.flow import Flow
from ptxgen.sass.listing import Function, Listing
from ptxgen.sass.loops import LoopPair, LoopSummary, chosen, has_no_more_work, stall
from ptxgen.sass.summary import Summary

#: Differences of a function that are shown before the rest is counted.
_SHOWN = 40
#: Numbers in a warning: lines, which an edit moves.
_NUMBER = re.compile(r"\b\d+\b")
#: Lines of the PTX that differ and are shown.
_PTX_LINES = 6
#: Loops that a summary lists.
_LOOPS = 8
#: Source lines of a loop that a comparison lists.
_SOURCE_LINES = 6
#: Characters of a PTX line that a listing shows.
_LINE = 100


def listing_lines(listing: Listing, function: Function, *, loop: str | None = None) -> Iterator[str]:
    """The code of a function beside its PTX: blocks, loops, addresses, control codes, live registers.

    `loop` lists one loop alone: `main`, an address or a line (`loops.chosen`). Raises NoLoopError.
    """
    flow = Flow(function)
    ptx = listing.ptx.splitlines()
    wanted = chosen(flow, loop) if loop is not None else None
    heads = {loop.header: loop for loop in flow.loops}
    depths = [sum(block.number in loop.blocks for loop in flow.loops) for block in flow.blocks]
    width = min(max((len(each.text) for each in function.instructions), default=0), 64)
    before: int | None = None
    for block in flow.blocks:
        if wanted is not None and block.number not in wanted.blocks:
            continue
        if block.start in function.subroutines.values():
            name = next(name for name, start in function.subroutines.items() if start == block.start)
            yield f"subroutine {name}:"
        head = heads.get(block.number)
        mark = f"  loop, depth {head.depth + 1}" if head is not None else ""
        following = ", ".join(f"B{number}" for number in block.following) or "exit"
        yield f"B{block.number} -> {following}{mark}"
        bar = "│" * depths[block.number]
        for each in function.instructions[block.start : block.end]:
            if each.ptx_line is not None and each.ptx_line != before:
                before = each.ptx_line
                if 0 < before <= len(ptx):
                    source = f"  ({each.source})" if each.source else ""
                    yield f"  {bar:<4} {before:>5} │ {_cut(ptx[before - 1].strip())}{source}"
            live = f"  {'/'.join(map(str, each.registers.live))}" if listing.has_life_ranges else ""
            yield f"  {bar:<4} {each.address:04x}  {each.text:<{width}}  {each.control}{live}"


def _cut(line: str) -> str:
    """A line of PTX, a long one cut."""
    return line if len(line) <= _LINE else f"{line[: _LINE - 1]}…"


def summary_lines(summary: Summary) -> Iterator[str]:
    """A summary as `what  figures`."""
    yield f"registers    {_known(summary.registers)} a thread; stack {_known(summary.stack_bytes)} bytes"
    yield f"spills       {summary.local_stores} STL, {summary.local_loads} LDL"
    yield f"shared       {_known(summary.shared_bytes)} bytes (static)"
    yield f"code         {summary.instructions} instructions, {summary.code_bytes} bytes"
    live = ", ".join(f"{count} {file}" for file, count in summary.live.items() if count)
    place = f" (GPR peak at {summary.live_at.get('GPR', 0):#x}"
    line = f", PTX line {summary.live_ptx_line})" if summary.live_ptx_line is not None else ")"
    yield f"live         {live + place + line if live else 'unknown'}"
    yield f"classes      {_classes(summary.classes)}"
    main = summary.main_loop
    for loop in sorted(summary.loops, key=lambda loop: (loop is not main, loop.role != ""))[:_LOOPS]:
        yield f"{'main loop' if loop is main else loop.role or 'loop':<12} {loop_text(loop)}"
    if len(summary.loops) > _LOOPS:
        yield f"             and {len(summary.loops) - _LOOPS} more loops"
    for warning in summary.warnings or ():
        yield f"ptxas        {warning}"


def _known(value: int | None) -> str:
    return "?" if value is None else str(value)


def _classes(classes: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in classes.items()) or "none"


def loop_text(loop: LoopSummary) -> str:
    """A loop in one line."""
    lines = f", PTX lines {loop.ptx_lines[0]} to {loop.ptx_lines[1]}" if loop.ptx_lines else ""
    source = f" ({loop.place})" if loop.source else ""
    called = f"; {loop.called_instructions} more in the subroutines that it calls" if loop.called_instructions else ""
    return (
        f"at {loop.address:#x}{source}, depth {loop.depth + 1}{lines}: {loop.instructions} instructions, "
        f"{loop.issue_slots} issue slots, stall sum {loop.stall}, {loop.scoreboard_waits} scoreboard waits; "
        f"{_classes(loop.classes)}{called}"
    )


# Comparisons.


def comparison_lines(comparison: Comparison, *, everything: bool = False) -> Iterator[str]:
    """What differs: what matters first, then the code side by side."""
    if comparison.options:
        changed = ", ".join(f"{name} {a} -> {b}" for name, a, b in comparison.options)
        yield f"options      {changed}"
    if comparison.a.target != comparison.b.target:
        yield f"target       {comparison.a.target} -> {comparison.b.target}"
    for gap in comparison.gaps:
        yield f"gap          {gap}"
    for side, functions in (("A", comparison.only_a), ("B", comparison.only_b)):
        for each in functions:
            kind = "kernel" if each.is_entry else "function"
            yield f"only in {side}    {kind} {shown_name(each.name)}, {len(each.instructions)} instructions"
    for pair in comparison.pairs:
        yield from _pair_lines(comparison, pair, everything=everything)
    if comparison.same:
        count = len(comparison.pairs)
        yield f"same: {count} function{'s' * (count != 1)}, no difference"


def pair_summary(pair: Pair) -> str:
    """One line on a pair that differs: `gemm: different (57 operand); registers 46 -> 48, instructions 716 -> 712`."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in pair.kinds.most_common())
    changed = ", ".join(f"{what} {_known(a)} -> {_known(b)}" for what, a, b in figures(pair))
    words = f"{shown_name(pair.b.name)}: different{f' ({kinds})' if kinds else ''}"
    return f"{words}; {changed}" if changed else words


def _pair_lines(comparison: Comparison, pair: Pair, *, everything: bool) -> Iterator[str]:
    first, second = shown_name(pair.a.name), shown_name(pair.b.name)
    name = first if pair.a.name == pair.b.name else f"{first} -> {second} (renamed)"
    if pair.same:
        moved = f"; {_renamed(pair)}" if pair.renamed else ""
        yield f"{name}: same{moved}"
        return
    kinds = ", ".join(f"{count} {kind}" for kind, count in pair.kinds.most_common())
    yield f"{name}: different{f' ({kinds})' if kinds else ''}"
    for what, a, b in figures(pair):
        yield f"  {what:<24} {_known(a):>8} -> {_known(b):<8} {_change(a, b)}"
    for loop in pair.loops:
        if not loop.same:
            yield from _loop_lines(loop, everything=everything)
    yield from _warnings(pair)
    if pair.renamed:
        yield f"  {_renamed(pair)}"
    shown = pair.differences if everything else _first(pair.differences)
    yield from _hunks(comparison, pair, shown)
    if len(shown) < len(pair.differences):
        left = Counter(each.kind for each in pair.differences)
        left.subtract(each.kind for each in shown)
        kinds = ", ".join(f"{count} {kind}" for kind, count in left.most_common() if count)
        yield f"  and {left.total()} more differences ({kinds}; --all shows them)"
    yield from _ptx_lines(comparison, pair)


def _first(differences: Sequence[Difference]) -> Sequence[Difference]:
    """The differences that are shown: those of what the code does before those of its schedule."""
    ordered = sorted(range(len(differences)), key=lambda index: differences[index].kind in _SCHEDULE)
    return [differences[index] for index in sorted(ordered[:_SHOWN])]


def loop_change(pair: LoopPair) -> str:
    """A loop of both sides in one line: `loop at pipe.cu:60: 159 -> 60 instructions, stall sum 334 -> 198`."""
    a, b = pair.a, pair.b
    if a is None or b is None:
        side, loop = ("A", a) if b is None else ("B", b)
        assert loop is not None
        return (
            f"loop at {pair.place}: in {side} only, {loop.instructions} instructions, stall sum {loop.stall}; "
            f"{loop.address:#x}"
        )
    return (
        f"loop at {pair.place}: {a.instructions} -> {b.instructions} instructions, "
        f"stall sum {a.stall} -> {b.stall}; {a.address:#x} -> {b.address:#x}"
        f"{_inner_passes(a, b)}{_calls(a, b)}{_unrolling(pair)}"
    )


def _inner_passes(a: LoopSummary, b: LoopSummary) -> str:
    """The figures with the loops inside as often as they run, where that is known and more than once."""
    if (a.pass_stall, b.pass_stall) == (a.stall, b.stall):
        return ""
    return (
        f" (with the constant passes of the loops inside: {a.pass_instructions} -> {b.pass_instructions} instructions, "
        f"stall sum {a.pass_stall} -> {b.pass_stall})"
    )


def _calls(a: LoopSummary, b: LoopSummary) -> str:
    """The figures with the subroutines that a pass calls, where it calls any."""
    if not a.called_instructions and not b.called_instructions:
        return ""
    counts = [each.pass_instructions + each.called_instructions for each in (a, b)]
    stalls = [each.pass_stall + each.called_stall for each in (a, b)]
    return (
        f" (with the subroutines that it calls: {counts[0]} -> {counts[1]} instructions, "
        f"stall sum {stalls[0]} -> {stalls[1]})"
    )


def _unrolling(pair: LoopPair) -> str:
    """How the sides are unrolled against each other, with the figures of the same number of iterations."""
    ratio, a, b = pair.unrolled, pair.a, pair.b
    if ratio == 1 or a is None or b is None:
        return ""
    side, times = ("B", ratio) if ratio > 1 else ("A", 1 / ratio)
    one, other = (
        (a.pass_stall, float(b.pass_stall / ratio)) if ratio > 1 else (float(a.pass_stall * ratio), b.pass_stall)
    )
    return (
        f" ({side} is unrolled {times} times: its counter steps by {b.step if ratio > 1 else a.step}, not by "
        f"{a.step if ratio > 1 else b.step}; stall sum an iteration {one:g} -> {other:g})"
    )


def _loop_lines(pair: LoopPair, *, everything: bool) -> Iterator[str]:
    """A loop, and the lines of its source whose instructions or stalls differ, those with most stalls first."""
    yield f"  {loop_change(pair)}"
    shown = pair.lines if everything else pair.lines[:_SOURCE_LINES]
    for line, a, b, before, after in shown:
        yield f"    {line}: {a} -> {b} instructions, stall sum {before} -> {after}"
    if len(shown) < len(pair.lines):
        yield f"    and {len(pair.lines) - len(shown)} more lines (--all shows them)"


def _warnings(pair: Pair) -> Iterator[str]:
    """What ptxas warned of on one side only, whatever the lines that it names."""
    a, b = pair.a_summary.warnings, pair.b_summary.warnings
    if a is None or b is None:
        return
    for sign, side, found, other in (("-", "A", a, b), ("+", "B", b, a)):
        left = Counter(_NUMBER.sub("N", each) for each in other)
        for each in found:
            kind = _NUMBER.sub("N", each)
            if left[kind]:
                left[kind] -= 1
            else:
                yield f"  {sign} ptxas, {side} only: {each}"


def _ptx_lines(comparison: Comparison, pair: Pair) -> Iterator[str]:
    """The lines of the PTX that differ and stand above no SASS that does: ptxas may give their SASS to other lines."""
    named = {
        (side, function.instructions[index].ptx_line)
        for each in pair.differences
        for side, function, index in ((0, pair.a, each.a), (1, pair.b, each.b))
        if index is not None
    }
    lines = [each for each in pair.ptx if not {(0, each[0]), (1, each[1])} & named]
    texts = comparison.a.ptx.splitlines(), comparison.b.ptx.splitlines()
    for each in lines[:_PTX_LINES]:
        a, b = (
            "none" if line is None else f"{line} │ {_cut(text[line - 1].strip())}"
            for line, text in zip(each, texts, strict=True)
        )
        yield f"  PTX {a}"
        yield f"   -> {b}"
    if len(lines) > _PTX_LINES:
        yield f"  and {len(lines) - _PTX_LINES} more lines of the PTX differ"


def _renamed(pair: Pair) -> str:
    first = pair.a.instructions[pair.renamed[0][0]]
    count = len(pair.renamed)
    where = f"{count} instruction{'s' * (count != 1)}, the first at {first.address:#x}: {first.text}"
    return f"other register numbers in {where}"


def figures(pair: Pair) -> Iterator[tuple[str, int | None, int | None]]:
    """(what, a, b) of the figures that differ: registers, spills, classes."""
    a, b = pair.a_summary, pair.b_summary
    rows: list[tuple[str, int | None, int | None]] = [
        ("registers", a.registers, b.registers),
        ("spills (STL + LDL)", a.local_stores + a.local_loads, b.local_stores + b.local_loads),
        ("stack bytes", a.stack_bytes, b.stack_bytes),
        ("shared bytes", a.shared_bytes, b.shared_bytes),
        ("instructions", a.instructions, b.instructions),
        ("live GPR", a.live.get("GPR"), b.live.get("GPR")),
    ]
    names = dict.fromkeys((*a.classes, *b.classes))
    rows += [(f"{name}", a.classes.get(name, 0), b.classes.get(name, 0)) for name in names]
    yield from (row for row in rows if row[1] != row[2])


def _change(a: int | None, b: int | None) -> str:
    if not a or b is None:
        return ""
    return f"{b - a:+d} ({100 * (b - a) / a:+.1f} %)"


#: Kinds whose two instructions do not show what differs.
_HIDDEN = frozenset({"control", "encoding", "target", "register", "moved"})
#: Kinds of the same instruction, issued earlier or later.
_SCHEDULE = frozenset({"moved", "control"})


def _hunks(comparison: Comparison, pair: Pair, differences: Sequence[Difference]) -> Iterator[str]:
    """Differing code side by side under its PTX lines; a blank line between what does not follow each other."""
    ptx = comparison.a.ptx.splitlines(), comparison.b.ptx.splitlines()
    before: Difference | None = None
    headings: tuple[str, str] = "", ""
    for each in differences:
        if before is not None and not _follows(before, each):
            yield ""
        now = _heading(pair.a, each.a, ptx[0]), _heading(pair.b, each.b, ptx[1])
        for side, text, old in zip("AB", now, headings, strict=True):
            if text and text != old and (side == "A" or text != now[0]):
                yield f"    {'  ' if now[0] == now[1] else side + ' '}{text}"
        headings = now
        left, right = _side(pair.a, each.a), _side(pair.b, each.b)
        sign = {"removed": "-", "added": "+", "moved": "~"}.get(each.kind, "!")
        yield f"  {sign} {left:<72} │ {right}"
        causes = comparison.causes_of(pair, each) if len(comparison.causes) > 1 else ""
        if each.kind in _HIDDEN or causes:
            detail = f"{each.kind}: {each.detail}" if each.kind in _HIDDEN else each.kind
            yield f"      {detail}{f'; cause: {causes}' if causes else ''}"
        before = each


def _heading(function: Function, index: int | None, ptx: Sequence[str]) -> str:
    """The PTX line of an instruction, with the line of its source."""
    if index is None or (line := function.instructions[index].ptx_line) is None:
        return ""
    source = function.instructions[index].source
    text = _cut(ptx[line - 1].strip()) if 0 < line <= len(ptx) else ""
    return f"{line:>5} │ {text}{f'  ({source})' if source else ''}"


def _follows(one: Difference, other: Difference) -> bool:
    return any(x is not None and y is not None and y - x <= 1 for x, y in ((one.a, other.a), (one.b, other.b)))


def _side(function: Function, index: int | None) -> str:
    if index is None:
        return ""
    each = function.instructions[index]
    return f"{each.address:04x} {each.text}"


# Thresholds.


class ThresholdError(ValueError):
    """A threshold of --fail-on that cannot be read."""


class Broken(str):
    """A broken threshold in words. `source` (`/home/k.cu:60`) and `ptx_line` are the lines of B's loop, if known."""

    __slots__ = ("ptx_line", "source")
    source: str
    ptx_line: int | None

    def __new__(cls, words: str, loop: LoopSummary | None = None) -> Broken:
        made = super().__new__(cls, words)
        made.source, made.ptx_line = ("", None) if loop is None else (loop.source, loop.ptx_line)
        return made


def broken_thresholds(comparison: Comparison, text: str) -> list[Broken]:
    """Which thresholds of `registers+2,spills,loop-stalls+5%` a comparison breaks, in words.

    `NAME` fails on any increase, `NAME+N` on more than N, `NAME+N%` on more than N percent. Names: registers, spills,
    stack, shared, instructions, loop-stalls, loop-instructions, warnings (of ptxas, where PTX was assembled), code (any
    difference), and classes such as R2UR. `loop-stalls`, `loop-instructions` and the classes of loops (`loop-BAR`) hold
    for every loop but spins and elections, of unrolled ones for an iteration; one that only B has counts from 0. Two
    kernels whose only loops are spins and elections are measured as a whole.
    `loop-waits` fails on fewer, too. A function that only one side has breaks any. Raises ThresholdError.
    """
    found: list[Broken] = []
    for name, limit, item in thresholds(text):
        for pair in comparison.pairs:
            found += _broken(pair, name, limit, item)
    for side, functions in (("A", comparison.only_a), ("B", comparison.only_b)):
        found += [Broken(f"{shown_name(each.name)} is in {side} only, so it cannot be compared") for each in functions]
    return found


def thresholds(text: str) -> list[tuple[str, str, str]]:
    """Name, limit and words of each threshold of a list. Raises ThresholdError for one that nothing can break."""
    found = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, plus, limit = (part.strip() for part in item.partition("+"))
        _allowed(0, limit or plus, item)
        kind = name.removeprefix("loop-")
        if kind == name and name not in (*_FIGURES, "code") and not is_class(name):
            raise ThresholdError(
                f"--fail-on {item!r}: known are {', '.join(_FIGURES)}, loop-stalls, loop-instructions, loop-waits, "
                f"loop-CLASS, code, and classes such as R2UR{_nearest(name)}"
            )
        if kind != name and kind not in (*_LOOP_FIGURES, "waits") and not is_class(kind):
            raise ThresholdError(
                f"--fail-on {item!r}: loops have stalls, instructions, waits, and classes such as loop-BAR"
                f"{_nearest(kind)}"
            )
        found.append((name, limit, item))
    if not found:
        raise ThresholdError("--fail-on names no threshold, such as registers or loop-stalls+5%")
    return found


def _nearest(name: str) -> str:
    """The class of an opcode that is none itself, or the name most like this one, as the end of a sentence."""
    if (group := opcode_class(name)) is not None:
        return f"; {name} counts as {group}"
    near = difflib.get_close_matches(name, [*_FIGURES, *CLASS_NAMES], n=1) or difflib.get_close_matches(
        name.lower(), _FIGURES, n=1
    )
    return f"; did you mean {near[0]}?" if near else ""


def _broken(pair: Pair, name: str, limit: str, item: str) -> Iterable[Broken]:
    if name == "code":
        return [] if pair.same else [Broken(f"code: {shown_name(pair.b.name)} differs")]
    if name.startswith("loop-"):
        return list(_broken_loops(pair, name, limit, item))
    a, b = (_figure(summary, name) for summary in (pair.a_summary, pair.b_summary))
    if a is None or b is None:
        return [Broken(f"{name}: not known for {shown_name(pair.b.name)}")]
    exceeded = b - a > _allowed(a, limit, item)
    return [Broken(f"{name}: {a} -> {b} in {shown_name(pair.b.name)}, more than {item} allows")] if exceeded else []


def _broken_loops(pair: Pair, name: str, limit: str, item: str) -> Iterator[Broken]:
    """The loops of B that exceed a threshold; of two kernels without loops, all of their code."""
    if not pair.loops:
        yield from _broken_whole(pair, name, limit, item)
    for loop in pair.loops:
        if loop.a is None and loop.b is not None and loop.b.counted:
            continue  # a part of the loop around it
        measured = _with_partner(loop, pair.loops)
        if name == "loop-waits":
            yield from _changed_waits(measured, limit, item, pair)
            continue
        kind = name.removeprefix("loop-")
        for called in (False, True):  # a long slow path must not hide what the loop itself has more
            a, b = (0 if each is None else _loop_figure(each, kind, called) for each in (measured.a, measured.b))
            if b / measured.unrolled - a > _allowed(a, limit, item):
                counted = "" if kind in _LOOP_FIGURES else f", {a} -> {b} {kind}"
                where = shown_name(pair.b.name)
                words = f"{name}: {loop_change(measured)}{counted} in {where}, more than {item} allows"
                yield Broken(words, measured.b)
                break


def _broken_whole(pair: Pair, name: str, limit: str, item: str) -> Iterator[Broken]:
    """A threshold of loops, exceeded by a kernel without loops as a whole."""
    kind = name.removeprefix("loop-")
    a_stalls, b_stalls = (
        sum(stall(one) for one in each.instructions if one.opcode != "NOP") for each in (pair.a, pair.b)
    )
    counted = ""
    if kind == "stalls":
        a, b = a_stalls, b_stalls
    elif kind == "instructions":
        a, b = pair.a_summary.instructions, pair.b_summary.instructions
    elif kind == "waits":
        a, b = (sum(each.classes.get(one, 0) for one in _WAITS) for each in (pair.a_summary, pair.b_summary))
        counted = f", {a} -> {b} of {', '.join(_WAITS)}"
    else:
        a, b = (_class_figure(each.classes, kind) for each in (pair.a_summary, pair.b_summary))
        counted = f", {a} -> {b} {kind}"
    if (abs(b - a) if kind == "waits" else b - a) > _allowed(a, limit, item):
        sizes = f"{pair.a_summary.instructions} -> {pair.b_summary.instructions} instructions"
        yield Broken(
            f"{name}: code without loops: {sizes}, stall sum {a_stalls} -> {b_stalls}{counted} in "
            f"{shown_name(pair.b.name)}, more than {item} allows"
        )


def _changed_waits(loop: LoopPair, limit: str, item: str, pair: Pair) -> Iterator[Broken]:
    """A loop that waits less or more often than before: a lost wait is a race, one more a stall."""
    if loop.a is None or loop.b is None:
        return
    a, b = (sum(_loop_figure(each, kind, called=True) for kind in _WAITS) for each in (loop.a, loop.b))
    if abs(b / loop.unrolled - a) > _allowed(a, limit, item):
        where = shown_name(pair.b.name)
        words = f"loop-waits: {loop_change(loop)}, {a} -> {b} of {', '.join(_WAITS)} in {where}, not the same"
        yield Broken(words, loop.b)


#: Classes of instructions with which warps wait for each other, for copies and for memory.
_WAITS = ("SYNCS", "BAR", "fence")
#: What the thresholds of loops count, next to classes.
_LOOP_FIGURES = ("stalls", "instructions")


#: What the other thresholds count, next to classes.
_FIGURES = ("registers", "spills", "stack", "shared", "instructions", "warnings")


def _loop_figure(loop: LoopSummary, kind: str, called: bool) -> int:
    """A figure of a loop, without what it calls or with it: `stalls`, `instructions`, or a class such as `BAR`."""
    if kind == "stalls":
        return loop.pass_stall + called * loop.called_stall
    if kind == "instructions":
        return loop.pass_instructions + called * loop.called_instructions
    return _class_figure(loop.classes, kind) + called * _class_figure(loop.called_classes, kind)


def _class_figure(classes: Mapping[str, int], kind: str) -> int:
    """How many instructions of a class there are, of all widths unless the class names one (`LDS.128`)."""
    if kind in MMA_GROUPS:
        return mmas(classes, kind)
    if kind in CLASS_NAMES:
        return sum(count for each, count in classes.items() if each.partition(".")[0] == kind)
    return classes.get(kind, 0)


def _with_partner(loop: LoopPair, loops: Sequence[LoopPair]) -> LoopPair:
    """A loop with what it is measured by. Of an unrolled loop B has two: that and its remainder, on the same line.

    The one that has no partner is measured by that of the other.
    """
    if loop.a is not None or loop.b is None:
        return loop
    for other in loops:
        if other.a is None or other.b is None or other.b.place != loop.b.place:
            continue
        made = LoopPair(other.a, loop.b)
        if made.unrolled > 1 or (other.unrolled > 1 and has_no_more_work(loop.b, other.a)):
            return made
    return loop


def _allowed(a: int, limit: str, item: str) -> float:
    """By how much a figure may grow. Raises ThresholdError."""
    percent = limit.endswith("%")
    try:
        most = float(limit.removesuffix("%") or 0)
    except ValueError:
        most = -1.0
    if not 0 <= most < math.inf:
        raise ThresholdError(f"--fail-on {item!r}: the limit must be a number or a percentage, not {limit!r}")
    return a * most / 100 if percent else most


def _figure(summary: Summary, name: str) -> int | None:
    values: dict[str, int | None] = {
        "registers": summary.registers,
        "spills": summary.local_loads + summary.local_stores,
        "stack": summary.stack_bytes,
        "shared": summary.shared_bytes,
        "instructions": summary.instructions,
        "warnings": len(summary.warnings) if summary.warnings is not None else None,
    }
    return values[name] if name in values else _class_figure(summary.classes, name)
