"""`ptxgen layout`: words in any form, SVG files, JSON, comparisons, colors, and the pictures of the docs."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import Cli
from tests.support.paths import DOCS

RUN = [sys.executable, "-c", "from ptxgen.cli.main import main; main()", "layout"]


@pytest.mark.parametrize(
    "words",
    [
        ["major=mn", "swizzle=64B"], ["mn", "64B"], ["--major", "mn", "--swizzle", "64B"], ["--major=mn", "64b"],
        ["--swizzle", "64B", "mn"],
    ],
)  # fmt: skip
def test_words_in_any_form(cli: Cli, words: list[str]) -> None:
    outcome = cli("layout", "operand", *words)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("MN-major f16, swizzle 64B\n")


def test_switches(cli: Cli) -> None:
    expected = cli("layout", "accumulator", "m=32", "n=64", "ws").out
    assert "layout G" in expected
    assert cli("layout", "accumulator", "--m", 32, "--n", 64, "--ws").out == expected
    assert cli("layout", "accumulator", "m=32", "n=64", "ws=yes").out == expected


def test_the_list_of_kinds(cli: Cli) -> None:
    text = cli("layout").out
    for kind in (
        "swizzle",
        "operand",
        "descriptor",
        "tma",
        "accumulator",
        "ld",
        "a",
        "metadata",
        "cp",
        "scales",
        "fragment",
    ):
        assert f"\n{kind}  " in f"\n{text}"


def test_svg_json_and_diff(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "x.svg"
    outcome = cli("layout", "swizzle", "--svg", path)
    assert outcome.out == f"{path}: Swizzle 128B, {path.stat().st_size} bytes\n"
    assert cli("layout", "swizzle", "--svg", "-").out == path.read_text()
    found = json.loads(cli("layout", "operand", "rows=8", "--json").out)
    assert found["data"]["axes"] == ["row", "k"]
    assert found["data"]["address"][1][8] == 0x80  # row 1, chunk 1: swapped with chunk 0
    assert found["panels"][0]["cells"][1][1]["text"] == "0x80"
    both = cli("layout", "swizzle", "--diff", "swizzle 64B").out
    assert "A: Swizzle 128B | B: Swizzle 64B" in both
    assert set(json.loads(cli("layout", "swizzle", "--diff", "swizzle 64B", "--json").out)["data"]) == {"a", "b"}


def test_the_width(cli: Cli) -> None:
    for width in (60, 80, 140):
        out = cli("layout", "operand", "--columns", width).out
        assert max(map(len, out.splitlines())) <= width


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["operands"], "there is no picture 'operands' (known: "),
        (["operand", "--major"], "--major needs a value (see 'ptxgen layout')"),
        (["operand", "--color", "red"], "color must be one of auto, core, bank, row, chunk, thread, not 'red'"),
        (["swizzle", "--diff", ""], "--diff takes a KIND and its words in quotes, not ''"),
        (["swizzle", "--diff", "'"], '--diff takes a KIND and its words in quotes, not "\'"'),
        (["swizzle", "--svg", "/no/such/x.svg"], "cannot write /no/such/x.svg: there is no folder /no/such"),
    ],
)
def test_bad_input(cli: Cli, arguments: list[str], sentence: str) -> None:
    outcome = cli("layout", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {sentence}")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("environment", "colored"), [({}, True), ({"NO_COLOR": "1"}, False), ({"COLORTERM": "truecolor"}, True)]
)
def test_colors_on_a_terminal(environment: dict[str, str], colored: bool) -> None:
    keep = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLORTERM", "FORCE_COLOR")}
    reader, writer = pty.openpty()
    process = subprocess.Popen([*RUN, "swizzle"], stdout=writer, env={**keep, "COLUMNS": "100", **environment})
    os.close(writer)
    out = b""
    while True:
        try:
            part = os.read(reader, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not part:
            break
        out += part
    assert process.wait() == 0
    assert (b"\x1b[" in out) == colored
    if "COLORTERM" in environment:
        assert b"48;2;119;170;221" in out


#: The pictures of docs/layouts.md, by file: the words after `ptxgen layout`.
PICTURES = {
    "swizzle.svg": ["swizzle", "128B", "access=matrix"],
    "operand.svg": ["operand", "mn", "64B"],
    "accumulator.svg": ["accumulator", "m=128", "n=256", "cta_group=2"],
}


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_of_the_docs_are_fresh(cli: Cli, name: str) -> None:
    text = (DOCS / "layouts" / name).read_text()
    command = f"ptxgen layout {' '.join(PICTURES[name])} --svg docs/layouts/{name}"
    assert cli("layout", *PICTURES[name], "--svg", "-").out == text, command
    assert command in (DOCS / "layouts.md").read_text()
    assert len(text) < 60_000


@pytest.mark.parametrize("columns", ["60", "80"])
def test_the_list_fits_a_narrow_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = cli("layout").out.splitlines()
    assert max(map(len, lines)) <= int(columns)
    assert len(lines) < 500  # where a column of a few characters is left for the words, there are thousands
    assert any("which dimension is contiguous" in each for each in lines)


def test_the_help_of_a_kind_has_its_options(cli: Cli) -> None:
    page = cli("layout", "pitch", "--help").out
    assert "Options of pitch:\n" in page
    assert "pitch=0 " in page
    assert "row=, byte=, address=" in page
    assert "byte_id" not in page
    assert "Options of pitch" not in cli("layout", "--help").out
    assert "Options of nothing" not in cli("layout", "nothing", "--help").out
