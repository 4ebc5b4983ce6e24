"""The lines of the PTX that a comparison names."""

from __future__ import annotations

from ptxgen.sass import compare, load
from ptxgen.sass.ptx_lines import changed_lines
from ptxgen.sass.show import comparison_lines
from ptxgen.toolchain import assemble

KERNEL = """\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry first(.param .u64 x)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [x];
    mov.u32 %r1, %tid.x;
    add.u32 %r2, %r1, 5;
    st.global.u32 [%rd1], %r2;
    ret;
}
"""
LINES = KERNEL.splitlines()


def text(*lines: str) -> str:
    return "\n".join(lines) + "\n"


def test_one_line_in_the_place_of_another() -> None:
    assert changed_lines(KERNEL, KERNEL.replace(", 5;", ", 6;")) == [(10, 10)]
    assert changed_lines(KERNEL, KERNEL.replace("add.u32", "sub.u32").replace("tid.x", "tid.y")) == [(9, 9), (10, 10)]


def test_lines_that_one_side_has() -> None:
    more = text(*LINES[:9], "    mul.lo.u32 %r1, %r1, 3;", "    not.b32 %r1, %r1;", *LINES[9:])
    assert changed_lines(KERNEL, more) == [(None, 10), (None, 11)]
    assert changed_lines(more, KERNEL) == [(10, None), (11, None)]
    first = text("// a kernel", "", *LINES).replace(", 5;", ", 6;")
    assert changed_lines(KERNEL, first) == [(10, 12)]


def test_comments_spaces_and_line_tables_do_not_count() -> None:
    other = text('.file 1 "k.py"', *LINES[:8], "    .loc 1 3 0", "mov.u32\t%r1,  %tid.x; // x", *LINES[9:])
    assert changed_lines(KERNEL, other) == []
    assert changed_lines(KERNEL, "") == []


def test_the_diff_names_the_lines_of_each_kernel() -> None:
    second = KERNEL[KERNEL.index(".visible") :].replace("first", "second")
    a = load(assemble(KERNEL + second, options=("-lineinfo",)))
    b = load(
        assemble((KERNEL + second).replace("%r1, 5;", "%r1, 6;", 1).replace("tid.x", "tid.y"), options=("-lineinfo",))
    )
    named = {pair.a.name: pair.ptx for pair in compare(a, b).pairs}
    assert named == {"first": ((9, 9), (10, 10)), "second": ((19, 19),)}
    assert compare(a, a).pairs[0].ptx == ()


def test_lines_whose_sass_stands_at_others_are_shown() -> None:
    """ptxas makes one shift of two, at the line of the opening brace."""
    text = KERNEL.replace("add.u32 %r2, %r1, 5;", "shl.b32 %r2, %r1, 1;\n    shl.b32 %r2, %r2, 2;")
    a, b = (load(assemble(each, options=("-lineinfo",))) for each in (text, text.replace("%r1, 1;", "%r1, 3;")))
    (pair,) = compare(a, b).pairs
    assert [a.kernel().instructions[each.a or 0].ptx_line for each in pair.differences] == [5]
    assert pair.ptx == ((10, 10),)
    shown = list(comparison_lines(compare(a, b)))
    assert shown[-2:] == ["  PTX 10 │ shl.b32 %r2, %r1, 1;", "   -> 10 │ shl.b32 %r2, %r1, 3;"]
    direct = (load(assemble(each, options=("-lineinfo",))) for each in (KERNEL, KERNEL.replace("%r1, 5;", "%r1, 6;")))
    assert not any(line.startswith("  PTX") for line in comparison_lines(compare(*direct)))
