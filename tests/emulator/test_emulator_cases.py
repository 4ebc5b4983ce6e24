"""Kernels that compilers wrote, recorded with launch data and references: right and without a finding, at any time that
asynchronous work may take.
"""

from __future__ import annotations

from typing import Any

import pytest

from ptxgen.emulator import Emulator
from tools.cases import load, names

#: Cases that are not right yet, with the reason; each turns red when it begins to work.
KNOWN: dict[str, str] = {}
#: (schedule, seed) of each test: all cases run as early and as late as legal, and with one random order.
SCHEDULES: tuple[tuple[Any, int], ...] = (("eager", 0), ("late", 0), ("random", 1))
#: Cases of several seconds, which run in one schedule here, in all by `python -m tools.cases`.
SLOW: tuple[str, ...] = ()


def _tests() -> list[Any]:
    made = []
    for name in names("cases"):
        marks = [pytest.mark.xfail(strict=True, reason=KNOWN[name])] if name in KNOWN else []
        for number, (schedule, seed) in enumerate(SCHEDULES):
            if number == 0 or name not in SLOW:
                made.append(pytest.param(name, schedule, seed, id=f"{name}-{schedule}", marks=marks))
    return made


@pytest.mark.parametrize(("name", "schedule", "seed"), _tests())
def test_case(name: str, schedule: Any, seed: int) -> None:
    """The outputs match, and the report has nothing worse than advice."""
    case = load(name)
    outcome = case.run(Emulator(case.target, schedule, seed))
    assert outcome.report.status == "ok", outcome.report.summary()
    assert not outcome.wrong, "; ".join(outcome.wrong.values())
