"""Control fields of a sample of cubins, from their bytes; `make sass-control` does it for thousands."""

from __future__ import annotations

from tests.support.cubins import cubin
from tools.sass_score.control import check, sweep, texts


def test_a_sample_comes_back() -> None:
    found = [each for text in texts(8, ["logic", "mbarrier"]) if (each := sweep(text)) is not None]
    assert {each.kind for each in found} >= {"cases", "witnesses", "certification"}
    assert {each.target for each in found} == {"sm_90a", "sm_100a"}
    assert sum(each.words for each in found) > 500
    assert [word for each in found for word in each.wrong] == []


def test_reserved_bits_are_kept() -> None:
    """Bits above the control fields are not touched, whatever they are."""
    words, wrong = check(cubin("groups").data, "groups")
    assert words > 200
    assert wrong == ()
