"""Concepts: everything that one names exists, its examples are legal and run, and it is found by what people write."""

from __future__ import annotations

import re

import pytest

from ptxgen import concepts
from ptxgen.concepts import Concept
from ptxgen.descriptors import facts
from ptxgen.emulator.checks.registry import CHECKS
from ptxgen.instr import load_all
from ptxgen.instr.model.explain import explain
from ptxgen.instr.model.form import REGISTRY
from ptxgen.pictures import KINDS
from tests.support.paths import DATA

ALL = concepts.concepts()
#: What the issue that asked for concepts names.
ASKED = (
    "SBO", "LBO", "expect_tx", "phase", "parity", "swizzle", "TMEM", "cta_group::2", "tensormap", "proxy", "scope",
    "elect", "CLC", "scale factors",
)  # fmt: skip


def _sections() -> set[str]:
    lines = (DATA / "manual/sections_9.2.txt").read_text().splitlines()[1:]
    return {number for line in lines for number in line.split()}


def test_there_are_many_and_all_that_was_asked_for() -> None:
    assert len(ALL) >= 100
    assert ALL.keys() >= set(ASKED)


def test_all_that_a_concept_names_exists() -> None:
    load_all()
    opcodes = {form.form.opcode for forms in REGISTRY.values() for form in forms}
    known = {
        "checks": set(CHECKS),
        "layouts": set(KINDS),
        "facts": {each.name for each in facts.FACTS},
        "see": set(ALL),
        "sections": _sections(),
        "instructions": opcodes,
    }
    wrong = [
        f"{each.name}: {field} {name}"
        for each in ALL.values()
        for field, names in known.items()
        for name in getattr(each, field)
        if name not in names
    ]
    assert not wrong
    of_ptx = [
        each for each in ALL.values() if each.room not in ("sass", "kernels")
    ]  # which the manual does not describe
    assert not [each.name for each in of_ptx if not each.sections or not each.instructions]
    assert not [each.name for each in ALL.values() if not (each.picture or each.ptx or each.commands or each.see)]


def test_definitions_are_short_and_names_are_not_taken_twice() -> None:
    assert not [each.name for each in ALL.values() if len(each.what.splitlines()) > 5]
    assert not [
        line for each in ALL.values() for line in f"{each.what}\n{each.picture}".splitlines() if len(line) > 120
    ]
    names = [one for each in ALL.values() for one in {concepts.normalized(name) for name in (each.name, *each.aliases)}]
    own = [concepts.normalized(name) for name in ALL]
    assert len(own) == len(set(own))
    repeated = {name for name in names if names.count(name) > 1}
    # An alias may be the name of another concept that is closer to it, or of the concept itself in other letters.
    assert repeated <= set(own), repeated - set(own)


def test_examples_are_legal_ptx() -> None:
    wrong = [
        f"{each.name}: {line} {[problem.message for problem in found.problems]}"
        for each in ALL.values()
        for line in each.ptx
        for found in explain(line)
        if any(problem.severity == "error" for problem in found.problems)
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("tma", "TMA"), ("TMA", "TMA"), ("mbarrier phase", "phase"), ("mbarrier-phase", "phase"),
        ("swizzle 128B", "swizzle"),
        ("128b swizzle", "swizzle"), ("sf", "scale factors"), ("SFB", "scale factors"), ("tmem", "TMEM"),
        ("tensor memory", "TMEM"), ("cta pair", "cta_group::2"), ("clc", "CLC"), ("sbo", "SBO"), ("lbo", "LBO"),
        ("EXPECT_TX", "expect_tx"), ("dsmem", "distributed shared memory"), ("idesc", "instruction descriptor"),
        ("nvfp4", "NVFP4"), (".aligned", ".aligned"), ("aligned", ".aligned"), ("fresh mbarrier", "parity"),
        ("wait::ld", "tcgen05.wait"), ("ts mma", "A in tensor memory"), ("ftz", "subnormals"),
        ("wavefront", "bank conflict"), ("element strides", "element stride"), ("sector", "coalescing"),
        ("CGA", "cluster"), ("election", "elect"), ("stage", "pipeline"), ("wgmma descriptor", "matrix descriptor"),
        ("tensormap rank", "tensormap limits"), ("weak", "morally strong"),
    ],
)  # fmt: skip
def test_names_people_use(word: str, name: str) -> None:
    found = concepts.find(word)
    assert found is not None
    assert found.name == name


def test_links_go_both_ways() -> None:
    assert "swizzle" in [each.name for each in concepts.about("checks", "swizzle-mismatch")]
    assert "lane rights" in [each.name for each in concepts.about("instructions", "tcgen05.ld.sync.aligned.32x32b")]
    assert "mbarrier" in [each.name for each in concepts.about("instructions", "mbarrier.try")]
    assert "im2col" in [each.name for each in concepts.about("layouts", "tensormap")]
    assert next(each.name for each in concepts.search("parity")) == "parity"


def test_layouts_and_most_checks_belong_to_a_concept() -> None:
    assert set(KINDS) == {name for each in ALL.values() for name in each.layouts}
    named = {code for each in ALL.values() for code in each.checks}
    # Others are about the machine, calls and limits of a run, which are no concepts of the manual.
    assert len(named) > 0.8 * len(CHECKS)


def test_an_unknown_field_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    (tmp_path / "x.toml").write_text('[a]\nwhat = "b"\nwhy = ""\nrule = ""\nwat = 1\n')
    monkeypatch.setattr(concepts, "_FOLDER", tmp_path)
    with pytest.raises(ValueError, match=re.escape("x.toml: a has no field wat")):
        concepts.concepts.__wrapped__()


def test_a_concept_is_a_value() -> None:
    assert ALL["SBO"] == Concept(**ALL["SBO"].as_dict())  # type: ignore[arg-type]


def test_checks_name_sections_of_the_manual() -> None:
    assert {check.section for check in CHECKS.values() if check.section} <= _sections()
