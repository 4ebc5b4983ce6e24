"""Random texts: parse and check end, with PtxSyntaxError as the only exception. `make fuzz` tries a million."""

from __future__ import annotations

from collections import Counter

import pytest

from tools.fuzz import examine as examination
from tools.fuzz.examine import Failure, examine
from tools.fuzz.texts import text_of

HEADER = ".version 9.0\n.target sm_90a\n.address_size 64\n"


def test_a_sample() -> None:
    outcomes = Counter(examine(text_of(20261122, index)[1]) for index in range(3000))
    assert min(outcomes[name] for name in ("refused", "illegal", "legal")) > 100, outcomes


def test_every_number_gives_its_text_again() -> None:
    assert all(text_of(5, index) == text_of(5, index) for index in range(50))
    assert text_of(5, 1) != text_of(6, 1)


def broken(*arguments: object, **more: object) -> list[object]:
    raise IndexError("a mistake of ours")


def endless(*arguments: object, **more: object) -> list[object]:
    while True:
        pass


def elsewhere(module: object) -> str:
    return "another text"


@pytest.mark.parametrize(
    ("name", "mistake", "message"),
    [
        ("check", broken, "IndexError: a mistake of ours"),
        ("check", endless, "it takes more than 0.2 seconds"),
        ("parse", broken, "IndexError: a mistake of ours"),
        ("str", elsewhere, "the printed text differs"),
    ],
)
def test_mistakes_are_failures(name: str, mistake: object, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, name, mistake, raising=False)
    with pytest.raises(Failure, match=message):
        examine(HEADER, 0.2)
