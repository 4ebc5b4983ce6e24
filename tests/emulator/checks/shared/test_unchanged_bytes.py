"""Stores of the bytes that are there already, as those of constant inputs: advice where other warps load these."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.harness import codes, launch

SCHEDULES: list[Any] = ["eager", "late", "random"]
#: Each turn stores a tile of ones and adds up words of the other warp.
LOOP = """
    .shared .b32 tile[64]; .reg .u32 %t, %i, %x, %s; .reg .b32 %own, %other; .reg .pred %p; .reg .b64 %at;
    mov.u32 %t, %tid.x; mov.b32 %own, tile; mad.lo.u32 %own, %t, 4, %own;
    xor.b32 %x, %t, 32; mov.b32 %other, tile; mad.lo.u32 %other, %x, 4, %other;
    mov.u32 %i, 0; mov.u32 %s, 0;
turn:
    FIRST
    bar.sync 0;
    SECOND
    add.u32 %s, %s, %x; LAST
    add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 4; @%p bra turn;
    mul.wide.u32 %at, %t, 4; add.u64 %at, %at, %out0; st.global.u32 [%at], %s; ret;
"""
STORE, LOAD = "st.shared.u32 [%own], 1;", "ld.shared.u32 %x, [%other];"


def run(first: str, second: str, last: str, schedule: Any) -> Any:
    body = LOOP.replace("FIRST", first).replace("SECOND", second).replace("LAST", last)
    return launch(body, [np.zeros(64, np.uint32)], block=64, schedule=schedule)[0]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_tile_of_ones_stored_again_under_its_readers(schedule: Any) -> None:
    report = run(STORE, LOAD, "", schedule)
    assert [(each.code, each.severity) for each in report.findings] == [("shared-race", "advice")], report.summary()
    assert "with other data it does" in report.findings[0].message
    assert "bar.sync after" in report.findings[0].fix
    assert codes(run(STORE, LOAD, "bar.sync 0;", schedule)) == []
