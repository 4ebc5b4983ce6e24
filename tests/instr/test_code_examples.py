"""The example of each code of `check`: it fires the code alone, and ptxas refuses it where that is an error."""

from __future__ import annotations

import re

import pytest

from ptxgen.instr.model.check import check
from ptxgen.instr.model.code_examples import examples, shown
from ptxgen.instr.model.code_rules import RULES
from ptxgen.toolchain import AssemblerError
from tests.support.instr_tables import assembled
from tools.code_examples import reduced

#: Where the answer of `assemble` says nothing of the code, and why.
APART = {
    "non-ascii": "assemble gives ptxas ASCII; tests/instr/test_non_ascii.py asks ptxas itself",
    "trailing-nul": "assemble strips them; tests/instr/test_characters.py asks ptxas itself",
    "texture-mode": "the row of tests/instr/lines/texture.txt has `!`: ptxas lets it pass",
    "unresolved-extern": "a warning: with --compile-only the linker may resolve it",
}


def test_every_code_has_one() -> None:
    assert examples().keys() == RULES.keys(), "python -m tools.code_examples"


@pytest.mark.parametrize("code", RULES)
def test_it_fires_its_code_alone(code: str) -> None:
    text = examples()[code]
    assert [each.code for each in check(text)] == [code]
    assert reduced(text, code) == text, "python -m tools.code_examples"
    assert f"[{code}]\n" in shown(code)
    assert "\0" not in shown(code)


def test_ptxas_agrees() -> None:
    texts = examples()
    targets = {code: re.findall(r"\bsm_\d+[af]?", text)[0] for code, text in texts.items()}
    answers = assembled([(text, targets[code]) for code, text in texts.items()])
    wrong = [
        f"{code}: {answer}"
        for (code, text), answer in zip(texts.items(), answers, strict=True)
        if isinstance(answer, AssemblerError) != (check(text)[0].severity == "error") and code not in APART
    ]
    assert not wrong, "\n".join(wrong)
