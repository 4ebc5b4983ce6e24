"""Waits with the wrong parity: for a phase that was over long ago, or for one that does not come."""

from __future__ import annotations

from typing import Any

import pytest
from harness import codes, launch

SCHEDULES = ("eager", "late", "random")

#: Thread 0 ends two phases; all wait for the first, the second warp then for the other.
TWO_PHASES = """
    .shared .align 8 .b64 bar; .reg .b32 %t; .reg .pred %first, %p, %second;
    mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0; setp.ge.u32 %second, %t, 32;
    @%first mbarrier.init.shared::cta.b64 [bar], 1;
    bar.sync 0;
    @%first mbarrier.arrive.shared::cta.b64 _, [bar];
once: mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0; @!%p bra once;
    bar.sync 0;
    @%first mbarrier.arrive.shared::cta.b64 _, [bar];
    bar.sync 0;
    @!%second bra end;
again: mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], PARITY; @!%p bra again;
end: ret;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_phase_that_does_not_come(schedule: Any) -> None:
    report, _ = launch(TWO_PHASES.replace("PARITY", "0"), block=64, schedule=schedule)
    assert (report.status, codes(report)) == ("deadlock", ["deadlock", "mbarrier-parity"]), report.summary()
    wait, parity = report.findings
    assert "phase 2 (parity 0)" in wait.message
    assert "last wait" in parity.message
    assert "phase 1 (parity 1) is over, but it waits with parity 0" in parity.message
    assert parity.line == wait.line
    clean, _ = launch(TWO_PHASES.replace("PARITY", "1"), block=64, schedule=schedule)
    assert (clean.status, codes(clean)) == ("ok", []), clean.summary()
