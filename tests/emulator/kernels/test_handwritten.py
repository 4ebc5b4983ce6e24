"""Kernels written by hand, as authors do with CUDA C++ and inline PTX: right and without a finding.

Each runs eagerly, and in one more schedule that changes from case to case; `python -m tools.recorded` runs any.
"""

from __future__ import annotations

from typing import Any

import pytest

from ptxgen import check
from tools.recorded.case import load, names

NAMES = names("handwritten")
OTHERS: tuple[tuple[Any, int], ...] = (("late", 0), ("random", 1), ("random", 2))


def _tests() -> list[Any]:
    made = []
    for number, name in enumerate(NAMES):
        for schedule, seed in (("eager", 0), OTHERS[number % len(OTHERS)]):
            made.append(pytest.param(name, schedule, seed, id=f"{name}-{schedule}"))
    return made


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("name", "schedule", "seed"), _tests())
def test_kernel(name: str, schedule: Any, seed: int) -> None:
    """The outputs match, and the report has nothing worse than advice."""
    case = load(name)
    outcome = case.run(case.emulator(schedule, seed))
    assert outcome.report.status == "ok", outcome.report.summary()
    assert not outcome.wrong, "; ".join(outcome.wrong.values())


@pytest.mark.parametrize("name", NAMES)
def test_text_is_legal(name: str) -> None:
    assert [each for each in check(load(name).text) if each.severity == "error"] == []
