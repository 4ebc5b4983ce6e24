"""Lines of two sides of a comparison: renamed files, moved text, and which loop is which then."""

from __future__ import annotations

import pytest

from ptxgen.sass import Listing, compare, load
from ptxgen.sass.loops import LoopPair
from ptxgen.sass.show import broken_thresholds
from ptxgen.sass.source_lines import Correspondence
from ptxgen.toolchain import assemble


def listing(file: str, lines: tuple[int, int], products: tuple[int, int]) -> Listing:
    """Two loops whose branches back are at these lines of a file, with so many products of loaded values in each."""
    loops = "\n".join(
        f"""
        mov.u32 %i, 0;
    $loop{number}:
        .loc 1 {line} 0
        {"ld.global.f32 %v, [%in]; fma.rn.f32 %sum, %sum, %v, %v; add.s64 %in, %in, 4;" * count}
        add.u32 %i, %i, 1;
        setp.lt.u32 %p, %i, %n;
        @%p bra $loop{number};"""
        for number, (line, count) in enumerate(zip(lines, products, strict=True))
    )
    text = f"""
.version 8.7
.target sm_90a
.address_size 64
.file 1 "{file}"
.visible .entry k(.param .b64 in, .param .u32 count)
{{
    .reg .b64 %in; .reg .b32 %n, %i; .reg .pred %p; .reg .f32 %sum, %v;
    .loc 1 {lines[0] - 2} 0
    ld.param.b64 %in, [in]; ld.param.u32 %n, [count]; mov.f32 %sum, 0f3F800000;
    {loops}
    .loc 1 {lines[1] + 2} 0
    st.global.f32 [%in], %sum;
    ret;
}}
"""
    return load(assemble(text, options=("-lineinfo",)), origin="k")


def loops(a: Listing, b: Listing) -> dict[str, LoopPair]:
    return {each.place: each for each in compare(a, b).pairs[0].loops}


OLD = listing("/src/old.cu", (10, 14), (6, 1))


@pytest.mark.parametrize(
    ("file", "lines", "products", "first", "second"),
    [
        ("/src/old.cu", (10, 14), (4, 5), "old.cu:10", "old.cu:14"),
        ("/elsewhere/new.cu", (10, 14), (4, 5), "old.cu:10 -> new.cu:10", "old.cu:14 -> new.cu:14"),
        # The text has moved by the distance of the loops: the first is where the second was.
        ("/src/old.cu", (14, 18), (6, 3), "old.cu:10 -> old.cu:14", "old.cu:14 -> old.cu:18"),
    ],
)
def test_a_loop_keeps_its_partner_when_another_becomes_like_it(
    file: str, lines: tuple[int, int], products: tuple[int, int], first: str, second: str
) -> None:
    """The second loop becomes heavier, and more like the first was: each is compared with itself."""
    new = listing(file, lines, products)
    found = loops(OLD, new)
    assert set(found) == {first, second}
    (row,) = found[second].lines
    a, b = found[second].a, found[second].b
    assert a is not None
    assert b is not None
    assert row == (second, a.instructions, b.instructions, a.stall, b.stall)
    assert b.stall > a.stall
    (broken,) = broken_thresholds(compare(OLD, new), "loop-stalls+5%")
    assert f"loop at {second}: " in broken


def test_lines_go_together_by_votes_and_then_by_what_has_moved() -> None:
    votes = [("/a/k.cu:3", "/b/m.cu:5")] * 3 + [("/a/k.cu:9", "/b/m.cu:11"), ("/a/k.cu:4", "/b/m.cu:9"), ("", "")]
    found = Correspondence(votes)
    assert found.partner("/a/k.cu:7") == "m.cu:9"
    assert found.partner("/other/x.h:7") == "x.h:7"
    a = {"/a/k.cu:3": (1, 1), "/a/k.cu:4": (2, 2), "/a/k.cu:7": (3, 3), "/a/k.cu:8": (4, 4)}
    b = {"/b/m.cu:5": (5, 5), "/b/m.cu:9": (6, 6), "/b/m.cu:10": (7, 7), "/b/m.cu:30": (8, 8)}
    assert found.rows(a, b, votes) == [
        ("/a/k.cu:3", "/b/m.cu:5", (1, 1), (5, 5)),
        ("/a/k.cu:4", "/b/m.cu:9", (2, 2), (6, 6)),  # an aligned instruction says so
        ("/a/k.cu:7", "", (3, 3), (0, 0)),  # line 9 is taken
        ("/a/k.cu:8", "/b/m.cu:10", (4, 4), (7, 7)),
        ("", "/b/m.cu:30", (0, 0), (8, 8)),
    ]
