"""The bytes of an mbarrier that is gone, used again: only what is ordered after the mbarrier.inval may."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.harness import errors, launch

BODY = """
    .shared .align 8 .b64 bar[2];
    .reg .b32 %t, %x;
    .reg .b64 %s;
    .reg .pred %first, %w1, %p;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    setp.eq.u32 %w1, %t, 32;
    @%first mbarrier.init.shared.b64 [bar], 64;
    bar.sync 0;
    mbarrier.arrive.shared.b64 %s, [bar];
    WAIT: mbarrier.try_wait.shared.b64 %p, [bar], %s;
    @!%p bra WAIT;
    bar.sync 0;
    @%first mbarrier.inval.shared.b64 [bar];
"""
WRONG = {
    "another warp stores": ("@%w1 st.shared.b32 [bar], %t;", "shared-race"),
    "another warp stores to its upper half": ("@%w1 st.shared.b32 [bar+4], %t;", "shared-race"),
    "another warp makes an mbarrier": ("@%w1 mbarrier.init.shared.b64 [bar], 1;", "mbarrier-inval-race"),
}
RIGHT = {
    "after a barrier": "bar.sync 0; @%w1 st.shared.b32 [bar], %t;",
    "by the same warp": "@%first st.shared.b32 [bar], %t;",
    "beside it": "@%w1 st.shared.b32 [bar+8], %t;",
    "a new mbarrier after a barrier": "bar.sync 0; @%w1 mbarrier.init.shared.b64 [bar], 1;",
    "a new mbarrier of the same thread": "@%first mbarrier.init.shared.b64 [bar], 1;",
}
SCHEDULES: list[Any] = ["eager", "late", "random"]


def run(use: str, schedule: Any) -> Any:
    body = (BODY + use + " ret;").replace("; ", ";\n").replace(": ", ":\n")
    return launch(body, [np.zeros(1, np.uint32)], block=64, schedule=schedule)[0]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("use", "code"), WRONG.values(), ids=WRONG)
def test_a_use_that_may_come_before_the_inval(use: str, code: str, schedule: Any) -> None:
    report = run(use, schedule)
    assert errors(report) == [code], report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("use", RIGHT.values(), ids=RIGHT)
def test_a_use_after_the_inval(use: str, schedule: Any) -> None:
    report = run(use, schedule)
    assert (report.status, report.findings) == ("ok", []), report.summary()
