"""The probe for modifiers that no declaration has finds one that is taken away."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from ptxgen.instr import half, tcgen05
from ptxgen.instr.model.overlooked import OVERLOOKED
from tools.outside import probe as probing

TARGET = "sm_107a"


def test_the_vocabulary_is_of_modifiers() -> None:
    known = set(probing.vocabulary(TARGET))
    assert {"satfinite", "relu", "collector::b::fill", "decompress::lut::b", "shared::cta"} <= known
    assert not known & {"entry", "reg", "bogus", *OVERLOOKED}


def test_representatives_have_every_value() -> None:
    made = probing.representatives(half.fma, TARGET, 12, random.Random(0))
    assert {token for each in made for token in each.modifiers} >= {"ftz", "sat", "relu", "oob", "f16", "bf16x2"}
    assert len(probing.representatives(half.fma, TARGET, 2, random.Random(0))) == 2


def test_a_modifier_that_check_lacks_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    real = probing.ours

    def without_saturation(lines: Sequence[str], target: str, version: str) -> list[str]:
        found = real(lines, target, version)
        return [said or ("no .sat" if ".sat" in line else "") for line, said in zip(lines, found, strict=True)]

    monkeypatch.setattr(probing, "ours", without_saturation)
    monkeypatch.setattr(probing, "representatives", lambda form, *_: [next(form.variants())])
    found = probing.probe(half.add, TARGET, ["sat", "relu", "bogus"], 1, replace=False, rng=random.Random(1))
    assert list(found.refused) == ["sat"]
    assert found.refused["sat"].startswith("add.")
    assert "half.add [sm_107a] .sat: add." in probing.summary([found])
    assert "1 refused" in probing.summary([found])


def test_modifiers_that_want_other_operands_are_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing.cases, "declared", lambda families=(): [])
    found = probing.probe(tcgen05.mma, TARGET, ["decompress::lut::b"], 40, replace=False, rng=random.Random(0))
    assert not found.refused
    assert list(found.leads) == ["decompress::lut::b"]
