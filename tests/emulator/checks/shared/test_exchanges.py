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


#: Warp 0 reads a stage and lane 0 arrives; warp 1 waits and fills the stage again.
RING = """\
    .shared .align 128 .b8 stage[128];
    .shared .align 128 .b8 other[128];
    .shared .align 8 .b64 empty;
    .reg .b32 %t, %x, %y, %z, %at, %old;
    .reg .b64 %in;
    .reg .pred %p, %first, %reader, %done;
    mov.u64 %in, %out0;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    setp.lt.u32 %reader, %t, 32;
    and.b32 %t, %t, 31;
    shl.b32 %at, %t, 2;
    mov.u32 %x, stage;
    add.u32 %at, %at, %x;
    mov.u32 %old, 0;
    @%reader st.shared.u32 [%at], %t;
    @%reader st.shared.u32 [%at+128], %t;
    @%first mbarrier.init.shared.b64 [empty], 1;
    bar.sync 0;
    @!%reader bra FILL;
    READ
    @%first mbarrier.arrive.shared.b64 _, [empty];
    bra END;
FILL:
    mbarrier.try_wait.parity.shared.b64 %done, [empty], 0;
    @!%done bra FILL;
    REFILL
END:
    bar.sync 0;
    @%first st.global.u32 [%out0], %x;
    ret;
"""
LOAD_OWN = "ld.shared.u32 %x, [%at]; "
SHUFFLE = "shfl.sync.bfly.b32 {}, {}, 16, 31, -1; "
#: What the readers do before lane 0 arrives, and the severity of the race.
READS = {
    "shuffle of the value": (LOAD_OWN + SHUFFLE.format("%y", "%x"), "advice"),
    "butterfly": (
        LOAD_OWN
        + "".join(f"shfl.sync.bfly.b32 %y, %x, {each}, 31, -1; add.u32 %x, %x, %y; " for each in (16, 8, 4, 2, 1)),
        "advice",
    ),
    "computed of the value": (LOAD_OWN + "mad.lo.u32 %y, %x, %x, 3; " + SHUFFLE.format("%z", "%y"), "advice"),
    "redux": (LOAD_OWN + "redux.sync.add.u32 %x, %x, -1; ", "advice"),
    "vote": (LOAD_OWN + "setp.gt.u32 %p, %x, 7; vote.sync.ballot.b32 %y, %p, -1; ", "advice"),
    "another exchange later": (LOAD_OWN + SHUFFLE.format("%y", "%x") + SHUFFLE.format("%z", "%t"), "advice"),
    "another load later": (LOAD_OWN + SHUFFLE.format("%y", "%x") + "ld.shared.u32 %z, [%at+128]; ", "advice"),
    "a sum in a loop": (
        "mov.u32 %y, 0; mov.u32 %z, 0; SUM: ld.shared.u32 %x, [%at]; add.u32 %y, %y, %x; add.u32 %z, %z, 1; "
        "setp.lt.u32 %p, %z, 3; @%p bra SUM; " + SHUFFLE.format("%x", "%y"),
        "advice",
    ),
    "bar.warp.sync": (LOAD_OWN + "bar.warp.sync -1; ", None),
    "nothing": (LOAD_OWN, "error"),
    "shuffle of another value": (LOAD_OWN + SHUFFLE.format("%y", "%t"), "error"),
    "overwritten before the shuffle": (LOAD_OWN + "mov.u32 %x, 5; " + SHUFFLE.format("%y", "%x"), "error"),
    "shuffle before the load": (SHUFFLE.format("%x", "%x") + LOAD_OWN, "error"),
    "loaded again": (LOAD_OWN + SHUFFLE.format("%y", "%x") + LOAD_OWN, "error"),
    "one word loaded again": (
        LOAD_OWN + SHUFFLE.format("%y", "%x") + "setp.eq.u32 %p, %t, 20; @%p ld.shared.u32 %z, [%at]; ",
        "error",
    ),
    "value of the turn before": (
        "mov.u32 %z, 0; TURN: "
        + SHUFFLE.format("%y", "%old")
        + LOAD_OWN
        + "mov.u32 %old, %x; add.u32 %z, %z, 1; setp.lt.u32 %p, %z, 3; @%p bra TURN; ",
        "error",
    ),
    "half of the warp": (
        LOAD_OWN + "setp.lt.u32 %p, %t, 16; @%p redux.sync.add.s32 %y, %x, 0xffff; ",
        "error",
    ),
}
REFILLS = {
    "store": "st.shared.u32 [%at], %at;",
    "copy": "setp.eq.u32 %p, %t, 0; @!%p bra END; mbarrier.init.shared.b64 [other], 1; "
    "mbarrier.arrive.expect_tx.shared.b64 _, [other], 128; "
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [stage], [%in], 128, [other]; "
    "FULL: mbarrier.try_wait.parity.shared.b64 %done, [other], 0; @!%done bra FULL;",
}


@pytest.mark.parametrize("schedule", ["eager", "random"])
@pytest.mark.parametrize("refill", REFILLS)
@pytest.mark.parametrize(("read", "severity"), READS.values(), ids=READS)
def test_one_lane_returns_a_stage(read: str, severity: str | None, refill: str, schedule: str) -> None:
    """A shuffle of the loaded values waits for the loads of all lanes."""
    text = RING.replace("REFILL", REFILLS[refill]).replace("READ", read).replace("; ", ";\n")
    data = [np.arange(64, dtype=np.uint32)]
    report, _ = launch(text, data, block=64, kernel_target="sm_90a", schedule=schedule, seed=3)
    races = [(each.code, each.severity) for each in report.findings if each.code == "shared-race"]
    assert races == ([("shared-race", severity)] if severity else []), report.summary()
