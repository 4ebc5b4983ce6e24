"""One thread reads and publishes a count while other warps of its CTA still count: under every schedule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.harness import errors, launch

BODY = """
    .reg .b32 %t, %x, %y;
    .reg .pred %first, %warp0, %p;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    setp.lt.u32 %warp0, %t, 32;
    mov.u32 %y, 0;
"""
COUNT = "red.global.add.u32 [%out0], 1; "
SLOW = "@%warp0 bra GO; SPIN: add.u32 %y, %y, 1; setp.lt.u32 %p, %y, 60; @%p bra SPIN; GO: "
LOOP = f"LOOP: {COUNT} add.u32 %y, %y, 1; setp.lt.u32 %p, %y, 5; @%p bra LOOP; "
PUBLISH = "@%first ld.global.u32 %x, [%out0]; @%first st.global.u32 [%out1], %x; "
WRONG = {
    "others count later": SLOW + COUNT + PUBLISH,
    "several times": LOOP + PUBLISH,
    "only others": SLOW + "@!%warp0 " + COUNT + PUBLISH,
}
RIGHT = {
    "barrier": (SLOW + COUNT + "bar.sync 0; " + PUBLISH, 128),
    "barrier after a loop": (LOOP + "bar.sync 0; " + PUBLISH, 640),
    "before a barrier": (PUBLISH + "bar.sync 0; " + COUNT, 0),
    "none counts": (PUBLISH, 0),
    "all warps load, one updates": ("ld.global.u32 %x, [%out0]; add.u32 %x, %x, 1; @%first " + COUNT, 0),
}


def run(use: str, schedule: Any, seed: int) -> Any:
    body = (BODY + use + " ret;").replace("; ", ";\n").replace(": ", ":\n")
    return launch(body, [np.zeros(1, np.uint32), np.zeros(1, np.uint32)], block=128, schedule=schedule, seed=seed)


SCHEDULES: list[Any] = ["eager", "late", "random", "random"]


@pytest.mark.parametrize("use", WRONG.values(), ids=WRONG)
def test_a_count_that_is_published_too_early(use: str) -> None:
    for seed, schedule in enumerate(SCHEDULES):
        report, _ = run(use, schedule, seed)
        assert set(errors(report)) == {"global-race"}, report.summary()


@pytest.mark.parametrize(("use", "count"), RIGHT.values(), ids=RIGHT)
def test_a_count_that_is_complete(use: str, count: int) -> None:
    for seed, schedule in enumerate(SCHEDULES):
        report, (_, published) = run(use, schedule, seed)
        assert (report.status, published[0]) == ("ok", count), report.summary()
