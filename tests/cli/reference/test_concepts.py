"""`ptxgen explain CONCEPT`: matching, links from instructions, checks and facts, the list, JSON, the page of docs."""

from __future__ import annotations

import json
import shlex

import pytest

from ptxgen.concepts import concepts
from tests.support.command_line import Cli
from tests.support.paths import DOCS

COMMANDS = sorted({command for each in concepts().values() for command in each.commands})


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_that_are_commands_run(cli: Cli, command: str) -> None:
    name, *words = shlex.split(command)
    assert name == "ptxgen"
    outcome = cli(*words)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out


@pytest.mark.parametrize(
    ("word", "lines"),
    [
        ("SBO", ["SBO  stride byte offset", "  rule  Write bytes >> 4", "  checks        operand-layout"]),
        ("tmem", ["TMEM  tensor memory", "    address = lane << 16 | column"]),
        ("mbarrier phase", ["phase  mbarrier phase"]),
        ("swizzle 128B", ["swizzle  swizzling", "                ptxgen layout swizzle 128B at=3,17"]),
        ("elect", ["elect  elect.sync", "  legal elect.sync"]),
        ("tensormap", ["tensormap  CUtensorMap", "tensormap.replace"]),
        (
            "fresh mbarrier",
            ["      wait parity 0   blocks until phase 0 completes"],
        ),
    ],
)
def test_concepts_by_name_and_alias(cli: Cli, word: str, lines: list[str]) -> None:
    outcome = cli("explain", word)
    assert (outcome.code, outcome.err) == (0, "")
    printed = outcome.out.splitlines()
    for line in lines:
        assert any(each.startswith(line) for each in printed), line


def test_a_misspelled_concept_is_suggested(cli: Cli) -> None:
    outcome = cli("explain", "tmen")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "error: PTX has no tmen; did you mean the concept TMEM?\n"
    assert cli("explain", "bar.sync 0").out.startswith("bar.sync 0;\n")
    assert "PTX has no .sinc" in cli("explain", "bar.sinc 0").out
    assert "tcgen05.ld?" in cli("explain", "tcgn05.ld").out
    assert "did you mean expect-tx" in cli("explain", "expcet-tx").err


def test_an_instruction_of_the_name_is_still_explained(cli: Cli) -> None:
    out = cli("explain", "griddepcontrol.wait").out
    assert out.startswith("griddepcontrol.wait;\n")
    assert "concepts      PDL (ptxgen explain NAME)" in out
    assert cli("explain", "deadlock").out.startswith("deadlock  deadlock (error")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["tcgen05.st.sync"], "concepts: "),
        (["swizzle-mismatch"], "  concepts  "),
        (["facts", "base-offset"], "  concepts   base offset (ptxgen explain NAME)"),
        (["tcgen05.ld.sync.aligned.32x32b.x4.b32"], "  concepts      tcgen05, tcgen05.ld, "),
    ],
)
def test_links_to_concepts(cli: Cli, words: list[str], line: str) -> None:
    assert any(each.startswith(line) for each in cli("explain", *words).out.splitlines())


def test_the_list(cli: Cli) -> None:
    out = cli("explain", "concepts").out
    assert "\nmbarriers\n" in out
    assert all(f"  {name} " in out for name in concepts())
    assert len(json.loads(cli("explain", "concepts", "--json").out)) == len(concepts())
    assert "tensor memory" in cli("explain", "concepts", "warpx4").out
    assert cli("explain", "concepts", "no such").err.startswith("error: no concept is called or about 'no such'")


def test_json(cli: Cli) -> None:
    found = json.loads(cli("explain", "mbarrier", "--json").out)
    assert found["concept"]["name"] == "mbarrier"
    assert {each["opcode"] for each in found["forms"]} >= {"mbarrier.init", "mbarrier.arrive"}
    assert json.loads(cli("explain", "SBO", "--json").out)["forms"] == []


def test_the_page_is_fresh(cli: Cli) -> None:
    page = cli("explain", "concepts", "--markdown").out
    assert (DOCS / "concepts.md").read_text() == page, "ptxgen explain concepts --markdown > docs/concepts.md"


@pytest.mark.parametrize(
    ("phrase", "sentence"),
    [
        ("limits of strides", "did you mean the concept tensormap limits?"),
        ("number of TMEM columns", "did you mean the concept TMEM address or TMEM allocation?"),
        ("im2col pixels", "did you mean the concept im2col?"),
        ("swizzle of a tensormap", "did you mean the concept "),
    ],
)
def test_a_phrase_finds_the_concept_that_shares_its_words(cli: Cli, phrase: str, sentence: str) -> None:
    outcome = cli("explain", phrase)
    assert (outcome.code, outcome.out) == (2, "")
    assert sentence in outcome.err
    assert "instruction" in (other := cli("explain", "foo qux")).out + other.err  # words that no concept has
