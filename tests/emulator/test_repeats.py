"""A finding that several launches of an emulator have is shown once, then counted."""

from __future__ import annotations

import numpy as np
import pytest

from ptxgen import Emulator, Kernel
from ptxgen.device import LaunchFailedError, Repeat
from tests.support.harness import module

RACE = """
    .shared .align 4 .b32 n;
    .reg .b32 %x;
    .reg .b64 %out;
    .reg .pred %first;
    mov.u32 %x, %tid.x;
    setp.eq.u32 %first, %x, 0;
    @%first st.shared.u32 [n], %x;
    SYNC
    ld.shared.u32 %x, [n];
    ld.param.u64 %out, [out];
    @%first st.global.u32 [%out], %x;
    ret;
"""


def race(barrier: str = "") -> Kernel:
    return Kernel.from_ptx(module(RACE.replace("SYNC", barrier), ".param .u64 out"))


def test_a_race_in_a_loop_of_launches() -> None:
    emulator = Emulator()
    data = emulator.array(np.zeros(1, np.uint32))
    reports = [emulator.launch(race(), 1, 64, [data]) for _ in range(3)]
    assert [len(each.findings) for each in reports] == [len(reports[0].findings)] * 3, "each report is whole"
    errors = [[n for n, each in enumerate(one.findings) if each.severity == "error"] for one in reports]
    assert errors[0]
    assert reports[0].repeats == {}
    assert reports[2].repeats[errors[2][0]] == Repeat(1, 3)
    first, _, last = (each.summary() for each in reports)
    assert "fix: " in first
    assert "fix: " not in last
    assert f"{reports[0].findings[errors[0][0]].head} as in launch 1, 3 launches so far" in last
    assert "fix: " in reports[2].summary(repeated=True)
    with pytest.raises(LaunchFailedError, match="fix: "):
        reports[2].raise_for_status()


def test_what_is_new_is_shown() -> None:
    emulator = Emulator()
    data = emulator.array(np.zeros(1, np.uint32))
    right = emulator.launch(race("bar.sync 0;"), 1, 64, [data])
    assert not any(each.severity == "error" for each in right.findings)
    wrong = emulator.launch(race(), 1, 64, [data])
    assert "fix: " in wrong.summary()
    assert {each.first for each in emulator.launch(race(), 1, 64, [data]).repeats.values()} == {2}
