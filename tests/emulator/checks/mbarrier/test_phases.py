"""Phases that end among the arrivals of a warp, or while a waiter is a round behind."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness import codes, launch

ARRIVE = """\
    .shared .align 8 .b64 ready;
    .reg .b32 %t;
    .reg .pred %first, %done;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    @%first mbarrier.init.shared.b64 [ready], COUNT;
    bar.sync 0;
    mbarrier.arrive.shared.b64 _, [ready];
    wait: mbarrier.try_wait.parity.shared.b64 %done, [ready], 0;
    @!%done bra wait;
    ret;"""


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(("count", "found"), [(128, []), (127, ["mbarrier-split"]), (96, [])])
def test_a_phase_ends_among_the_arrivals_of_a_warp(count: int, found: list[str], schedule: Any) -> None:
    """One round is enough to prove it where a warp's arrivals count in two phases."""
    report, _ = launch(ARRIVE.replace("COUNT", str(count)), block=128, schedule=schedule)
    assert codes(report) == found, report.summary()
