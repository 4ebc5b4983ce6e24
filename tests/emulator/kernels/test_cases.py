"""Kernels that compilers wrote, recorded with launch data and references: right and without a finding, at any time that
asynchronous work may take.
"""

from __future__ import annotations

from typing import Any

import pytest

from ptxgen.emulator import Emulator
from tools.recorded.case import load, names

#: (schedule, seed) of each test: all cases run as early and as late as legal, and with one random order.
SCHEDULES: tuple[tuple[Any, int], ...] = (("eager", 0), ("late", 0), ("random", 1))


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES, ids=[schedule for schedule, _ in SCHEDULES])
@pytest.mark.parametrize("name", names("cases"))
def test_case(name: str, schedule: Any, seed: int) -> None:
    """The outputs match, and the report has nothing worse than advice."""
    case = load(name)
    outcome = case.run(Emulator(case.target, schedule, seed))
    assert outcome.report.status == "ok", outcome.report.summary()
    assert not outcome.wrong, "; ".join(outcome.wrong.values())
