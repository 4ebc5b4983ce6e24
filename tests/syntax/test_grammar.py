"""Every construct, legal and illegal, against the parser and against the assembler."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ptxgen.syntax import Instruction, PtxSyntaxError, parse
from tests.support.syntax_tables import (
    BODY_LINE,
    ILLEGAL_ITEMS,
    ILLEGAL_STATEMENTS,
    LEGAL_ITEMS,
    LEGAL_STATEMENTS,
    MODULE_LINE,
    in_body,
    in_module,
)

LEGAL = [in_body(row) for row in LEGAL_STATEMENTS] + [in_module(row) for row in LEGAL_ITEMS]
ILLEGAL = [(in_body(row), BODY_LINE, row, column, expected) for row, column, expected in ILLEGAL_STATEMENTS]
ILLEGAL += [(in_module(row), MODULE_LINE, row, column, expected) for row, column, expected in ILLEGAL_ITEMS]


@pytest.mark.parametrize("text", LEGAL, ids=[*LEGAL_STATEMENTS, *LEGAL_ITEMS])
def test_legal_text_parses_and_prints_itself(text: str) -> None:
    module = parse(text)
    assert str(module) == text
    for statement in module.statements():
        assert statement.text == text[_offset(text, statement.line, statement.column) :][: len(statement.text)]
        if isinstance(statement, Instruction):
            assert all(str(operand) in statement.text for operand in statement.operands)


def _offset(text: str, line: int, column: int) -> int:
    return sum(len(row) + 1 for row in text.split("\n")[: line - 1]) + column - 1


@pytest.mark.parametrize(("text", "line", "row", "column", "expected"), ILLEGAL, ids=[row[2] for row in ILLEGAL])
def test_illegal_text_is_refused_at_its_place(text: str, line: int, row: str, column: int, expected: str) -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        parse(text)
    error = caught.value
    assert error.expected == expected
    if column > 1 or row[0] == error.source_line[:1]:
        assert (error.line, error.column) == (line, column)
    else:  # the row ends too early: the error is at the start of the next line
        assert (error.line, error.column) > (line, column)
    source, caret = error.render().split("\n")[-2:]
    assert source == text.split("\n")[error.line - 1] == error.source_line
    assert caret == " " * (error.column - 1) + "^"
    assert str(error) == error.render().split("\n")[0]
    assert f"expected {expected}, found " in str(error)


# --- the assembler is the judge of the grammar --------------------

PTXAS = next((path for entry in sys.path for path in Path(entry or ".").glob("nvidia/cu*/bin/ptxas")), Path("ptxas"))


def _assembler_refuses_grammar(text: str, path: Path) -> bool:
    path.write_text(text)
    run = subprocess.run(
        [PTXAS, "-arch=sm_100a", "-o", path.with_suffix(".cubin"), path], capture_output=True, text=True
    )
    return "Parsing error" in run.stdout + run.stderr


@pytest.mark.skipif(not PTXAS.exists(), reason="no ptxas beside this Python")
def test_the_assembler_agrees_with_the_tables(tmp_path: Path) -> None:
    rows = [(text, False) for text in LEGAL] + [(row[0], True) for row in ILLEGAL]

    def disagrees(numbered: tuple[int, tuple[str, bool]]) -> bool:
        number, (text, illegal) = numbered
        return _assembler_refuses_grammar(text, tmp_path / f"{number}.ptx") != illegal

    with ThreadPoolExecutor(4) as pool:
        wrong = list(pool.map(disagrees, enumerate(rows)))
    assert [text for (text, _), bad in zip(rows, wrong, strict=True) if bad] == []


# Where the manual has more than ptxas 13.0 takes, the parser takes it.
@pytest.mark.parametrize(
    "text",
    [
        in_body("ld.global.u32 r1, [d1-4];"),
        in_body("ld.shared.u32 r1, [s[4]];"),
        in_body("#pragma once\nret;"),
        in_body("add.u32 r1,\n # line\n r2, r3;"),
        in_module(".global .v8 .f32 x;"),
        in_module(".sreg .b32 %x;"),
        "#line 1\n.version 9.0\n",
        "",
        "// only a comment",
    ],
)
def test_text_beyond_the_assembler_parses(text: str) -> None:
    assert str(parse(text)) == text


AT_MODULE = "a directive of the module, a variable or a function"
AT_BODY = "an instruction, a label, a declaration or '}'"


@pytest.mark.parametrize(
    ("text", "line", "column", "expected", "found"),
    [
        (".version 9\n.target sm_100a", 1, 10, "a version such as '9.0'", "'9'"),
        (".version " + 5000 * "9" + ".0", 1, 10, "a version such as '9.0'", "'" + 37 * "9" + "...'"),
        (".version 9.0;", 1, 13, AT_MODULE, "';'"),
        (".version 9.0\n.version 9.0", 2, 1, AT_MODULE, "'.version'"),
        (".target sm_90 .version 9.0", 1, 1, "'.version' before anything else", "'.target'"),
        (".version 9.0 .global .b32 x; .target sm_90", 1, 14, "'.target' before anything else", "'.global'"),
        (".version 9.0\n.target sm_100a,\n", 3, 1, "a target such as 'sm_100a'", "the end of the text"),
        (".version 9.0\n.address_size 16", 2, 15, "'32' or '64'", "'16'"),
        (".entry e() {\n\tadd.u32\t%r1, %r2, 5x;\n}", 2, 20, "an operand", "'5x'"),
        (".entry e() {", 1, 13, AT_BODY, "the end of the text"),
        (".entry e() { /* ret; }", 1, 14, AT_BODY, "a comment that is never closed"),
        ('.file 1 "x', 1, 9, "a string", "a string that is never closed"),
        (".global .u32 é;", 1, 14, "a variable name", "'é'"),
        (".global .u32 \0;", 1, 14, "a variable name", "'\\x00'"),
    ],
)
def test_errors_say_what_stands_there(text: str, line: int, column: int, expected: str, found: str) -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        parse(text)
    error = caught.value
    assert (error.line, error.column, error.expected, error.found) == (line, column, expected, found)


def test_the_caret_stands_below_its_column_after_tabs() -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        parse(".entry e() {\n\tadd.u32\t%r1, %r2, 5x;\n}")
    assert caught.value.render().split("\n")[1:] == ["\tadd.u32\t%r1, %r2, 5x;", "\t       \t          ^"]


@pytest.mark.parametrize(
    ("text", "line", "expected", "found"),
    [
        ("// a\n.global .b32 x;\n.version 9.0\n.target sm_90", 2, "'.version' before anything else", "'.global'"),
        ('.version 9.0\n\n.pragma "a";\n.target sm_90', 3, "'.target' before anything else", "'.pragma'"),
        (".version 9.0\n.target sm_90\n.version 9.0", 3, AT_MODULE, "'.version'"),
    ],
)
def test_what_stands_before_the_header_is_blamed(text: str, line: int, expected: str, found: str) -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        parse(text)
    assert (caught.value.line, caught.value.expected, caught.value.found) == (line, expected, found)


NESTED = [
    (in_body("{" * 90 + "}" * 90), in_body("{" * 100_000 + "}" * 100_000)),
    (in_body(f"add.u32 r1, r2, {'(' * 40}1{')' * 40};"), in_body(f"add.u32 r1, r2, {'(' * 100_000};")),
    (in_body(f"add.u32 r1, r2, {'-' * 90}1;"), in_body(f"add.u32 r1, r2, {'~' * 100_000}1;")),
    (in_body(f"add.u32 r1, r2, {'(.s64)' * 90}1;"), in_body(f"add.u32 r1, r2, {'(.s64)' * 100_000}1;")),
    (in_body(f"add.u32 r1, r2, 1{'+1' * 150};"), in_body(f"add.u32 r1, r2, 1{'+1' * 100_000};")),
    (in_body(f"add.u32 r1, r2, {'1?1:' * 40}1;"), in_body(f"add.u32 r1, r2, {'1?1:' * 100_000}1;")),
    (in_module(f".global .b32 x = {'{' * 90}{'}' * 90};"), in_module(f".global .b32 x = {'{' * 100_000};")),
]


@pytest.mark.parametrize(("legal", "too_deep"), NESTED)
def test_nesting_is_limited_without_recursion_errors(legal: str, too_deep: str) -> None:
    module = parse(legal)
    assert str(module) == legal
    for statement in module.statements():
        repr(statement)
        if isinstance(statement, Instruction):
            assert hash(statement.operands) == hash(statement.replace(trivia=" ").operands)
    with pytest.raises(PtxSyntaxError, match="nested"):
        parse(too_deep)
