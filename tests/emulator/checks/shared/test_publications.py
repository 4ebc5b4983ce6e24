"""One thread reads and publishes a count in shared memory while other warps still count: under every schedule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.harness import errors, launch

BODY = """
    .shared .align 4 .b32 n;
    .reg .b32 %t, %x, %y;
    .reg .pred %first, %warp0, %p;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    setp.lt.u32 %warp0, %t, 32;
    mov.u32 %y, 0;
    @%first st.shared.u32 [n], 0;
    bar.sync 0;
"""
COUNT = "red.shared.add.u32 [n], 1; "
SLOW = "@%warp0 bra GO; SPIN: add.u32 %y, %y, 1; setp.lt.u32 %p, %y, 60; @%p bra SPIN; GO: "
LOOP = f"LOOP: {COUNT} add.u32 %y, %y, 1; setp.lt.u32 %p, %y, 5; @%p bra LOOP; "
PUBLISH = "@%first ld.shared.u32 %x, [n]; @%first st.global.u32 [%out0], %x; "
WRONG = {
    "others count later": SLOW + COUNT + PUBLISH,
    "several times": LOOP + PUBLISH,
    "only others": SLOW + "@!%warp0 " + COUNT + PUBLISH,
    "others count earlier": "@!%warp0 " + COUNT + SLOW.replace("@%warp0", "@!%warp0") + COUNT + PUBLISH,
}
RIGHT = {
    "barrier": (SLOW + COUNT + "bar.sync 0; " + PUBLISH, 128),
    "barrier after a loop": (LOOP + "bar.sync 0; " + PUBLISH, 640),
    "before a barrier": (PUBLISH + "bar.sync 0; " + COUNT, 0),
}
SCHEDULES: list[tuple[Any, int]] = [("eager", 0), ("late", 0), ("random", 2), ("random", 3)]


def run(use: str, schedule: Any, seed: int) -> Any:
    body = (BODY + use + " ret;").replace("; ", ";\n").replace(": ", ":\n")
    return launch(body, [np.zeros(1, np.uint32)], block=128, schedule=schedule, seed=seed)


@pytest.mark.parametrize("use", WRONG.values(), ids=WRONG)
def test_a_count_that_is_published_too_early(use: str) -> None:
    for schedule, seed in SCHEDULES:
        report, _ = run(use, schedule, seed)
        assert set(errors(report)) == {"shared-race"}, report.summary()


@pytest.mark.parametrize(("use", "count"), RIGHT.values(), ids=RIGHT)
def test_a_count_that_is_complete(use: str, count: int) -> None:
    for schedule, seed in SCHEDULES:
        report, (published,) = run(use, schedule, seed)
        assert (report.status, published[0]) == ("ok", count), report.summary()
