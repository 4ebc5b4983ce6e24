"""Spellings of operands: no traceback, and the verdicts of ptxas. `tools.programs --operands` tries all of them."""

from __future__ import annotations

import pytest

from ptxgen.toolchain import ToolNotFoundError, find_ptxas
from tools.programs.operands import examine

#: One declaration of each kind of operand; those of loads and stores take most spellings.
KEYS = ("memory.ld_volatile", "logic.shl", "bulk.wait_group", "barrier.bar_arrive", "cluster.is_canceled")


@pytest.mark.parametrize("key", KEYS)
def test_no_traceback(key: str) -> None:
    outcome = examine(key, judge=False)
    assert outcome.legal >= 20
    assert not outcome.crashes, outcome.crashes[0]


def test_verdicts_of_ptxas() -> None:
    try:
        find_ptxas()
    except ToolNotFoundError:
        pytest.skip("needs ptxas")
    outcome = examine("logic.shl")
    assert not outcome.disagreements, "\n".join(outcome.disagreements)
