"""Loops that one side unrolls are gated by iteration, where the counters tell it."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ptxgen.sass import compare, load
from ptxgen.sass.flow import Flow
from ptxgen.sass.loops import LoopPair, LoopSummary, summaries
from ptxgen.sass.show import Broken, ThresholdError, broken_thresholds, loop_change
from ptxgen.toolchain import assemble
from tests.sass.test_dumps import dump

#: A sum of n squares, as a loop that ptxas unrolls four times unless it is told not to.
DOT = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry dot(.param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .b32 %n, %i;
    .reg .b64 %x, %y, %a;
    .reg .f32 %v, %s;
    .reg .pred %p;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.u32 %n, [n];
    mov.u32 %i, 0;
    mov.f32 %s, 0f00000000;
$loop:
    .pragma "nounroll";
    mad.wide.u32 %a, %i, 4, %x;
    ld.global.f32 %v, [%a];
    fma.rn.f32 %s, %v, %v, %s;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, %n;
    @%p bra $loop;
    st.global.f32 [%y], %s;
    ret;
}
"""
ROLLED = DOT
UNROLLED = DOT.replace('    .pragma "nounroll";\n', "")
#: The same loop, whose counter counts bytes.
BYTES = DOT.replace("mad.wide.u32 %a, %i, 4, %x;", "mad.wide.u32 %a, %i, 1, %x;").replace("%i, %i, 1;", "%i, %i, 4;")
#: Sixteen times the arithmetic in each pass, and a counter that steps by 1.
MORE = DOT.replace("fma.rn.f32 %s, %v, %v, %s;\n", "fma.rn.f32 %s, %v, %v, %s;\n" * 16)


def broken(a: str, b: str, thresholds: str = "loop-stalls+5%") -> list[Broken]:
    listings = [load(assemble(text)) for text in (a, b)]
    return broken_thresholds(compare(*listings), thresholds)


def test_unrolling_is_no_growth() -> None:
    assert broken(ROLLED, UNROLLED, "loop-stalls+5%,loop-instructions+5%") == []


def test_rolling_up_is_one_by_iteration() -> None:
    (found,) = broken(UNROLLED, ROLLED)
    assert "(A is unrolled 4 times: its counter steps by 4, not by 1; stall sum an iteration " in found


@pytest.mark.parametrize(("a", "b"), [(ROLLED, MORE), (BYTES, MORE)])
def test_more_work_is_growth_whatever_the_counter_counts(a: str, b: str) -> None:
    (found,) = broken(a, b)
    assert "unrolled" not in found


def test_a_counter_of_bytes_is_not_unrolled() -> None:
    assert broken(ROLLED, BYTES, "loop-stalls+25%") == []
    assert broken(BYTES, ROLLED, "loop-stalls+25%") == []


def test_loops_of_dumps_tell_it_too() -> None:
    """Without life ranges, as for dumps and cubins of CUDA 12."""
    listings = [load(dump(load(assemble(text))).encode(), origin="dump") for text in (ROLLED, UNROLLED)]
    assert broken_thresholds(compare(*listings), "loop-stalls") == []


def loop(stall: int, step: int | None, loads: int, place: str = "k.cu:4") -> LoopSummary:
    work = {"LDG.32": loads, "FP32": loads, "INT": 3, "branch": 1}
    return LoopSummary(0x100, 1, True, stall, stall, stall, 1, work, None, source=place, step=step)


def gated(*loops: LoopPair) -> list[Broken]:
    pair = SimpleNamespace(loops=loops, b=SimpleNamespace(name="k"), same=False)
    return broken_thresholds(cast("Any", SimpleNamespace(pairs=[pair], only_a=(), only_b=())), "loop-stalls+5%")


def test_the_remainder_of_an_unrolled_loop() -> None:
    """Of the two loops on a line of B the one without a partner is measured by that of the other."""
    rolled, unrolled, rest = loop(30, 128, 1), loop(60, 512, 4), loop(29, 1, 1)
    assert gated(LoopPair(rolled, unrolled), LoopPair(None, rest)) == []
    assert gated(LoopPair(rolled, replace(rest, step=128)), LoopPair(None, unrolled)) == []
    assert len(gated(LoopPair(rolled, unrolled), LoopPair(None, replace(rest, stall=40)))) == 1
    assert len(gated(LoopPair(rolled, unrolled), LoopPair(None, loop(29, 1, 1, "k.cu:9")))) == 1
    assert len(gated(LoopPair(rolled, unrolled), LoopPair(None, loop(29, 1, 2)))) == 1  # more work than it had
    assert len(gated(LoopPair(rolled, loop(130, 512, 4)))) == 1  # slower by iteration


@pytest.mark.parametrize(
    ("a", "b", "ratio"),
    [
        (loop(30, 1, 1), loop(60, 4, 4), Fraction(4)),
        (loop(60, 4, 4), loop(30, 1, 1), Fraction(1, 4)),
        (loop(30, 1, 1), loop(60, 4, 1), Fraction(1)),  # another unit
        (loop(30, 1, 1), loop(60, 1, 4), Fraction(1)),  # more work
        (loop(30, 1, 1), loop(60, None, 4), Fraction(1)),
        (loop(30, 2, 2), loop(60, 3, 3), Fraction(1)),  # no whole number of times
    ],
)
def test_what_the_counters_tell(a: LoopSummary, b: LoopSummary, ratio: Fraction) -> None:
    pair = LoopPair(a, b)
    assert pair.unrolled == ratio
    assert ("unrolled" in loop_change(pair)) == (ratio != 1)


#: Rows of eight elements: an inner loop of eight passes.
ROWS = """.version 8.6
.target sm_100a
.address_size 64
.visible .entry rows(.param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .b32 %n, %i, %j;
    .reg .b64 %x, %y, %a;
    .reg .f32 %v, %s;
    .reg .pred %p;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.u32 %n, [n];
    mov.u32 %i, 0;
    mov.f32 %s, 0f00000000;
$outer:
    .pragma "nounroll";
    mad.wide.u32 %a, %i, 32, %x;
    mov.u32 %j, START;
$inner:
    .pragma "nounroll";
    ld.global.f32 %v, [%a];
    sqrt.rn.f32 %v, %v;
    add.f32 %s, %s, %v;
    add.u64 %a, %a, 4;
    add.s32 %j, %j, STEP;
    setp.COMPARE.s32 %p, %j, BOUND;
    @%p bra $inner;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, %n;
    @%p bra $outer;
    st.global.f32 [%y], %s;
    ret;
}
"""


def rows(start: int = 0, step: int = 1, compare: str = "ne", bound: int = 8) -> str:
    text = ROWS.replace("START", str(start)).replace("STEP", str(step))
    return text.replace("COMPARE", compare).replace("BOUND", str(bound))


@pytest.mark.parametrize(
    ("counter", "passes"),
    [((0, 1, "ne", 8), 8), ((8, -1, "gt", 0), 8), ((1, 2, "le", 15), 8), ((3, 2, "lt", 16), 7), ((-4, 1, "lt", 4), 8)],
)
def test_constant_passes_of_an_inner_loop(counter: tuple[int, int, str, int], passes: int) -> None:
    flow = Flow(load(assemble(rows(*counter))).functions[0])
    outer, inner = summaries(flow)
    assert (outer.passes, inner.passes) == (None, passes)
    assert outer.pass_stall == outer.stall + (passes - 1) * inner.stall


def test_an_unrolled_inner_loop_that_is_rolled_up_again() -> None:
    """Each pass of the outer loop becomes slower, though it has fewer instructions."""
    before, body, after = re.split(r"\$inner:\n.*?;\n|    add.s32 %j.*inner;\n", rows(), flags=re.DOTALL)
    unrolled = before + body * 8 + after
    (found,) = broken(unrolled, rows())
    assert "(with the constant passes of the loops inside: " in found
    assert broken(rows(), unrolled) == []


def test_a_kernel_with_subroutines_under_another_name() -> None:
    """ptxas makes a subroutine of sqrt.rn, whose return names the kernel."""
    one, other = (load(assemble(text)) for text in (rows(), rows().replace("rows", "sums")))
    assert any(each.opcode == "RET" for each in one.functions[0].instructions)
    assert compare(one, other).same


def test_classes_of_loops() -> None:
    """One barrier in a pass is one instruction among many, and may cost more than all of them."""
    fenced = rows().replace("    add.u32 %i, %i, 1;", "    membar.gl;\n    add.u32 %i, %i, 1;")
    assert broken(rows(), fenced, "loop-stalls+50%,loop-BAR,loop-LDG") == []
    (found,) = broken(rows(), fenced, "loop-fence+2")
    assert re.search(r"^loop-fence: loop at .*, 0 -> \d fence in rows, more than loop-fence\+2 allows$", found)
    (found,) = broken(fenced, rows(), "loop-stalls,loop-fence,loop-waits")
    assert re.search(r"^loop-waits: loop at .*, \d -> 0 of SYNCS, BAR, fence in rows, not the same$", found)
    assert broken(fenced, fenced.replace("rows", "sums"), "loop-waits") == []
    assert broken(ROLLED, UNROLLED, "loop-waits") == []
    with pytest.raises(ThresholdError, match="loops have stalls, instructions, waits, and classes such as loop-BAR"):
        broken(rows(), fenced, "loop-speed")
