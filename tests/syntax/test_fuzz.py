"""Any text: it parses and prints itself, or raises PtxSyntaxError. The quick patterns agree with the full parser."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ptxgen.syntax import Instruction, PtxSyntaxError, parse, parser
from ptxgen.syntax.operand_parser import operands_of, split_operands
from tests.support.syntax_tables import (
    ILLEGAL_ITEMS,
    ILLEGAL_STATEMENTS,
    LEGAL_ITEMS,
    LEGAL_STATEMENTS,
    in_body,
    in_module,
)
from tools.recorded.files import compiled

FILES = compiled()
LINES = sorted({line for path in FILES for line in path.read_text().split("\n")})[::7]
STATEMENTS = [*LEGAL_STATEMENTS, *[row[0] for row in ILLEGAL_STATEMENTS], *LINES]
ITEMS = [*LEGAL_ITEMS, *[row[0] for row in ILLEGAL_ITEMS], *LINES]
PIECES = [
    *"{}()[]<>;:,.@!|+-*/%~?=&^_\"'#$ \t\n\r\0",
    "//",
    "/*",
    "*/",
    "::",
    "0x",
    "0f",
    "1e",
    "é",
    ".b32",
    "{{",
    "call ",
]


def check(text: str) -> str:
    """What became of `text`: the printed tree or the error."""
    error, module = None, None
    try:
        module = parse(text)
    except PtxSyntaxError as caught:
        error = caught
    if module is None:
        assert error is not None
        lines = text.split("\n")
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1
        assert error.render().count("\n") == 2
        return str(error)
    assert str(module) == text
    for statement in module.statements():
        if isinstance(statement, Instruction):
            assert all(str(operand) in statement.text for operand in statement.operands)
            assert (statement.guard is not None) == statement.text.startswith("@")
    return str(module)


@st.composite
def mutated(draw: st.DrawFn, lines: list[str]) -> str:
    text = "\n".join(draw(st.lists(st.sampled_from(lines), min_size=1, max_size=3)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        end = min(len(text), at + draw(st.integers(0, 4)))
        text = text[:at] + draw(st.sampled_from(PIECES) | st.text(max_size=2)) + text[end:]
    return text


@settings(max_examples=400, deadline=None)
@given(mutated(STATEMENTS))
def test_mutated_statements(text: str) -> None:
    check(in_body(text))


@settings(max_examples=200, deadline=None)
@given(mutated(ITEMS))
def test_mutated_items(text: str) -> None:
    check(in_module(text))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    check(text)


NOTHING = re.compile(r"(?!)")


@settings(max_examples=300, deadline=None)
@example("setp.eq.b32 .113, %r1, %r2;")
@given(mutated(STATEMENTS))
def test_quick_patterns_change_nothing(text: str) -> None:
    text = in_body(text)
    quick = check(text)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_INSTRUCTION", "_LABEL", "_LOCATION"):
            patch.setattr(parser, name, NOTHING)
        assert check(text) == quick


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_operands_read_quickly_are_the_operands(path: Path) -> None:
    for statement in parse(path.read_text()).statements():
        if isinstance(statement, Instruction):
            rest, is_call = statement._rest, statement.is_call
            assert operands_of(rest, is_call) == split_operands(rest, is_call)[0]


@pytest.mark.parametrize(
    "piece",
    [
        "add.u32 r1, r2, ",
        "{",
        "/",
        "/*",
        "/**",
        " ",
        "\n#",
        "a.",
        "a::",
        "(",
        "1+",
        "[a, ",
        "0",
        "r1, ",
        "a:",
        "@",
        '"',
        "\\",
    ],
)
def test_repeated_pieces_take_linear_time(piece: str) -> None:
    start = time.perf_counter()
    check(in_body(piece * (400_000 // len(piece))))
    assert time.perf_counter() - start < 5
