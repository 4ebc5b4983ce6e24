"""CTAs that poll memory, with a barrier and a store in the loop, while another's asynchronous work is due."""

from __future__ import annotations

from typing import Any

import pytest

from ptxgen.emulator import Emulator
from tools.recorded.case import SCHEDULES, load


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_chain_of_ctas_goes_on(schedule: Any) -> None:
    """Each waits for the one before it, whose products and copies are not done before it is left alone."""
    case = load("t36_90_split")
    outcome = case.run(Emulator(case.target, schedule, max_steps=20_000))
    assert outcome.right, outcome.report.summary()
