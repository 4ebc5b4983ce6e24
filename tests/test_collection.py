"""Pausing the collector: what is made inside stays, what the caller froze stays frozen."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from ptxgen.collection import paused_collection


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    """No object is frozen during a test; those that were, are again after it."""
    frozen = gc.get_freeze_count() > 0
    gc.unfreeze()
    gc.enable()
    yield
    gc.enable()
    if frozen:
        gc.freeze()


def oldest(container: list[list[int]]) -> bool:
    return any(each is container for each in gc.get_objects(generation=2))


def test_much_goes_to_the_oldest_generation() -> None:
    with paused_collection():
        made: list[list[int]] = [[] for _ in range(50_000)]
    assert oldest(made)
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_little_is_left_to_the_next_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """`gc.get_freeze_count` walks every frozen object: a small launch must not ask."""
    monkeypatch.setattr(gc, "get_freeze_count", lambda: pytest.fail("walks all frozen objects"))
    with paused_collection():
        made: list[list[int]] = [[] for _ in range(100)]
    assert not oldest(made)
    assert gc.isenabled()


def test_what_the_caller_froze_stays_frozen() -> None:
    gc.freeze()
    before = gc.get_freeze_count()
    assert before
    with paused_collection():
        made: list[list[int]] = [[] for _ in range(50_000)]
    assert gc.get_freeze_count() >= before
    assert not oldest(made)


def test_the_caller_switched_it_off() -> None:
    gc.disable()
    with paused_collection():
        assert not gc.isenabled()
    assert not gc.isenabled()
