"""Findings name the lines of the source that `.loc` tells of."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ptxgen import Kernel, parse
from ptxgen.device import Finding
from ptxgen.driver.results import finding_lines
from ptxgen.emulator import Emulator
from ptxgen.emulator.load.source_lines import SourceLines
from tests.support.harness import launch, module

#: Two warps store to the same word; the places are those of tile.cu and, inlined, norm.cuh.
BODY = """.shared .b32 word; .reg .u32 %t, %x; .reg .pred %p; .reg .b64 %o;
    ld.param.u64 %o, [out];
    mov.u32 %t, %tid.x;
    setp.lt.u32 %p, %t, 32;
    .loc 1 31 3
    .loc 1 20 5
    @%p st.shared.u32 [word], 1;
    .loc 2 7 9, function_name $L__info_string0, inlined_at 1 31 3
    @!%p st.shared.u32 [word], 2;
    .loc 1 0 0
    bar.sync 0;
    ld.shared.u32 %x, [word];
    @%p st.global.u32 [%o], %x;
    ret;
    """
FILES = """.file 1 "/home/me/tile.cu"
.file 2 "/usr/include/norm.cuh\""""


def text(body: str = BODY) -> str:
    section = """.section .debug_str
{
$L__info_string0:
.b8 110, 0
}
"""
    return module(body, ".param .u64 out", items=FILES) + section


def test_both_sides_of_a_race() -> None:
    emulator = Emulator("sm_100a")
    report = emulator.launch(Kernel.from_ptx(text()), 1, 64, [emulator.array(np.zeros(1, np.uint32))])
    (finding,) = report.findings
    lines = text().splitlines()
    first = next(number for number, line in enumerate(lines, 1) if "@%p st" in line)
    assert (finding.line, finding.source) == (first + 2, "norm.cuh:7:9, inlined at tile.cu:31:3"), report.summary()
    assert f"st.shared (line {first} (tile.cu:20:5), warp 0" in finding.message
    assert str(finding).startswith(f"line {first + 2} (norm.cuh:7:9, inlined at tile.cu:31:3): error [shared-race]")


def test_what_no_line_is_known_of() -> None:
    lines = SourceLines(parse(text()))
    at = {line.strip(): number for number, line in enumerate(text().splitlines(), 1)}
    assert lines.of(1) == ""
    assert lines.of(at["bar.sync 0;"]) == ""
    assert lines.of(at["@%p st.shared.u32 [word], 1;"]) == "tile.cu:20:5"
    finding = Finding("code", "error", "nothing known", at["bar.sync 0;"])
    assert lines.located(finding) == finding


def test_templates_keep_their_folder() -> None:
    made = text().replace("/home/me/tile.cu", "blocks/pipeline.j2")
    line = next(number for number, each in enumerate(made.splitlines(), 1) if "@%p st.shared.u32" in each)
    assert SourceLines(parse(made)).of(line) == "blocks/pipeline.j2:20:5"


def test_a_location_ends_with_its_function() -> None:
    other = text("ret;").partition("$L")[0].partition(".visible")[2].partition(".section")[0].replace("k(", "other(")
    both = text().replace(".section", ".visible" + other + ".section", 1)
    assert SourceLines(parse(both)).of(both[: both.index("other(")].count("\n") + 3) == ""


def test_the_words_of_an_assertion_stay() -> None:
    lines = SourceLines(parse(text()))
    line = next(number for number, each in enumerate(text().splitlines(), 1) if "@%p st" in each)
    said = Finding("assertion", "error", f"k.cu, line {line}: the assertion does not hold", line)
    assert lines.located(said).message == said.message


def chain(*locations: str) -> tuple[SourceLines, dict[int, int]]:
    """The lines of a module with these `.loc`, a barrier after each; the PTX line of each barrier by its number."""
    body = "".join(f".loc {each}\nbar.sync {number};\n" for number, each in enumerate(locations))
    made = text(body + "ret;")
    at = {
        n: next(i for i, each in enumerate(made.splitlines(), 1) if f"bar.sync {n};" in each)
        for n in range(len(locations))
    }
    return SourceLines(parse(made)), at


def inlined(place: str, at: str) -> str:
    return f"{place}, function_name $L__info_string0, inlined_at {at}"


def test_two_inlined_calls_of_one_function() -> None:
    """Line 7 of norm.cuh calls line 3; both are inlined into tile.cu at 31 and at 40."""
    lines, at = chain(
        "1 31 3",
        inlined("2 7 9", "1 31 3"),
        inlined("2 3 1", "2 7 9"),
        "1 40 3",
        inlined("2 7 9", "1 40 3"),
        inlined("2 3 1", "2 7 9"),
    )
    assert lines.of(at[1]) == "norm.cuh:7:9, inlined at tile.cu:31:3"
    assert lines.of(at[2]) == "norm.cuh:3:1, inlined at norm.cuh:7:9, inlined at tile.cu:31:3"
    assert lines.of(at[4]) == "norm.cuh:7:9, inlined at tile.cu:40:3"
    assert lines.of(at[5]) == "norm.cuh:3:1, inlined at norm.cuh:7:9, inlined at tile.cu:40:3"


def test_a_call_of_another_function_is_no_caller() -> None:
    first = text(".loc 2 7 9, function_name $L__info_string0, inlined_at 1 31 3\nret;")
    head, _, tail = first.partition(".visible .entry k(")
    inner = ".loc 2 3 1, function_name $L__info_string0, inlined_at 2 7 9"
    other = f".visible .entry other()\n{{\n{inner}\nbar.sync 5;\nret;\n}}\n"
    both = head + ".visible .entry k(" + tail.replace(".section", other + ".section", 1)
    line = next(number for number, each in enumerate(both.splitlines(), 1) if "bar.sync 5" in each)
    assert SourceLines(parse(both)).of(line) == "norm.cuh:3:1, inlined at norm.cuh:7:9"


def test_long_chains_keep_the_callers_line() -> None:
    """Of nine places the two innermost and the two outermost are shown; of five all are."""
    calls = ["1 90 3"]
    for depth in range(8):
        calls.append(inlined(f"2 {80 - 10 * depth} 1", "1 90 3" if depth == 0 else f"2 {90 - 10 * depth} 1"))
    lines, at = chain(*calls)
    assert lines.of(at[8]) == (
        "norm.cuh:10:1, inlined at norm.cuh:20:1, ... 5 more calls ..., "
        "inlined at norm.cuh:80:1, inlined at tile.cu:90:3"
    )
    assert lines.of(at[4]).count("inlined at") == 4
    assert lines.of(at[0]) == "tile.cu:90:3"


def test_a_function_that_is_inlined_into_itself() -> None:
    """The place of a call inside it is its own caller, as far as places tell."""
    lines, at = chain("1 5 1", inlined("1 9 2", "1 5 1"), inlined("1 9 2", "1 9 2"), inlined("1 9 2", "1 9 2"))
    assert lines.of(at[3]).endswith("inlined at tile.cu:5:1")


#: As LLVM prints an asm statement of three lines in line 54, and the store after it in line 55.
ASSEMBLY = """.reg .u32 %x, %y; .reg .b64 %o;
    ld.param.u64 %o, [out];
    .loc 1 54 9
    // begin inline asm
    .loc 1 54 9
    mov.u32 %x, 1;
    .loc 1 55 9
    mov.u32 %y, 2;
    .loc 1 56 9
    st.global.u32 [%o+4096], %x;

    // end inline asm
    .loc 1 55 5
    st.global.u32 [%o], %y;
    ret;
    """


def test_lines_of_inline_assembly() -> None:
    given = module(ASSEMBLY, ".param .u64 out", items='.file 1 "k.py"')
    numbers = {line.strip(): number for number, line in enumerate(given.splitlines(), 1)}
    lines = SourceLines(parse(given))
    for instruction in ("mov.u32 %x, 1;", "mov.u32 %y, 2;", "st.global.u32 [%o+4096], %x;"):
        assert lines.of(numbers[instruction]) == "k.py:54:9"
    assert lines.of(numbers["st.global.u32 [%o], %y;"]) == "k.py:55:5"


#: A barrier is missing between a store and loads, two of which a compiler made of one source line.
UNROLLED = """
    .shared .align 4 .b32 words[64];
    .reg .b32 %t, %at, %x;
    mov.u32 %t, %tid.x; mov.u32 %at, words; mad.lo.u32 %at, %t, 4, %at;
    .loc 1 5 3
    st.shared.u32 [%at], 1;
    mov.u32 %at, words; xor.b32 %t, %t, 32; mad.lo.u32 %at, %t, 4, %at;
    .loc 1 6 3
    ld.shared.u32 %x, [%at];
    ld.shared.u32 %x, [%at];
    ld.shared.u32 %x, [%at];
    .loc 1 7 3
    ld.shared.u32 %x, [%at];
    ret;"""


def test_other_lines_have_their_source() -> None:
    report, _ = launch(UNROLLED, block=64, items='.file 1 "reverse.cu"')
    (found,) = report.findings
    assert "(also at line 21 (reverse.cu:7:3), 2 other instructions of this source line)" in found.message
    assert found.fix == "bar.sync between line 14 (reverse.cu:5:3) and line 17"
    assert not any("PTX" in line for line in finding_lines(found, True, {}))


def test_the_text_of_the_source_is_shown_where_its_file_is(tmp_path: Path) -> None:
    lines = ["// a comment"] * 5 + ["    total += tile[63 - t];", ""]
    (tmp_path / "reverse.cu").write_text("\n".join(lines), encoding="utf-8")
    for name, text in (("reverse.cu", "total += tile[63 - t];"), ("missing.cu", "")):
        report, _ = launch(UNROLLED, block=64, items=f'.file 1 "{tmp_path / name}"')
        (found,) = report.findings
        assert (found.source, found.source_text) == (f"{name}:6:3", text)
        assert any(line.strip() == text for line in finding_lines(found, False, {})) == bool(text)
        assert ("total +=" in report.summary()) == bool(text)


def test_copies_of_an_unrolled_loop_are_one_finding() -> None:
    """Copies of one load race each with a copy of one store; a load of another statement is another finding."""
    turn = """
    .loc 1 5 3
    st.shared.u32 [%s], %t;
    .loc 1 LINE 7
    ld.shared.u32 %y, [words+200];
    add.u32 %x, %x, %y;
    .loc 1 10 3
    bar.sync 0;
    """
    turns = "".join(turn.replace("LINE", line) for line in ("9", "9", "11"))
    body = f""".shared .b32 words[64]; .reg .u32 %t, %x, %y; .reg .b64 %o; .reg .b32 %s;
    mov.u32 %t, %tid.x;
    mov.b32 %s, words;
    mad.lo.u32 %s, %t, 4, %s;
    mov.u32 %x, 0;
    {turns}
    .loc 1 12 3
    ld.param.u64 %o, [out];
    mad.wide.u32 %o, %t, 4, %o;
    st.global.u32 [%o], %x;
    ret;
    """
    emulator = Emulator("sm_100a", schedule="late")
    report = emulator.launch(Kernel.from_ptx(text(body)), 1, 64, [emulator.array(np.zeros(64, np.uint32))])
    assert [each.source for each in report.findings] == ["tile.cu:9:7", "tile.cu:11:7"], report.summary()
    copies, other = report.findings
    assert copies.also_sources == ("tile.cu:9:7",)
    assert len(copies.consequences) > len(other.consequences)
