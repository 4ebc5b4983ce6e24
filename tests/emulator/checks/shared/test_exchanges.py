"""A store after other lanes' loads, with a shuffle or reduction of the whole warp in between: cooperative groups."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.harness import launch

BODY = """
    .shared .align 4 .b32 slot[32];
    .reg .b32 %t, %x, %y, %own, %at;
    .reg .pred %first, %p;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    mov.u32 %at, slot;
    shl.b32 %own, %t, 2;
    add.u32 %own, %own, %at;
    st.shared.u32 [%own], %t;
    bar.warp.sync -1;
"""
LOAD = "ld.shared.u32 %x, [slot]; "
STORE = "@%first st.shared.u32 [slot], %y;"
EXCHANGES = {
    "redux": "redux.sync.add.s32 %y, %t, -1; ",
    "shuffle": "shfl.sync.idx.b32 %y, %t, 5, 31, -1; ",
    "vote": "vote.sync.ballot.b32 %y, %first, -1; ",
}
CASES = {
    **{each: (LOAD + text + STORE, "advice") for each, text in EXCHANGES.items()},
    "other loads later": (LOAD + EXCHANGES["redux"] + "ld.shared.u32 %x, [slot+8]; " + STORE, "advice"),
    "all lanes store": (LOAD + EXCHANGES["redux"] + "st.shared.u32 [slot], %y;", "advice"),
    "bar.warp.sync": (LOAD + "bar.warp.sync -1; mov.u32 %y, 3; " + STORE, None),
    "nothing": (LOAD + "mov.u32 %y, 3; " + STORE, "error"),
    "half of the warp": (
        LOAD + "setp.lt.u32 %p, %t, 16; @%p redux.sync.add.s32 %y, %t, 0xffff; " + STORE,
        "error",
    ),
    "loaded again": (LOAD + EXCHANGES["redux"] + LOAD + STORE, "error"),
    "load after the store": (EXCHANGES["redux"] + STORE + " " + LOAD, "error"),
    "an exchange before": (EXCHANGES["redux"] + LOAD + STORE, "error"),
}


@pytest.mark.parametrize(("use", "severity"), CASES.values(), ids=CASES)
def test_severity(use: str, severity: str | None) -> None:
    body = (BODY + use + " st.global.u32 [%out0], %x; ret;").replace("; ", ";\n")
    report, _ = launch(body, [np.zeros(1, np.uint32)], block=32)
    shared = [(each.code, each.severity) for each in report.findings if each.code == "shared-race"]
    assert shared == ([("shared-race", severity)] if severity else []), report.summary()
