"""cp.async.mbarrier.arrive without .noinc: its increment must come before the phase can complete."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.harness import codes, errors, launch, poisoned

#: 128 threads copy a word each, arrive as `ARRIVE` says, wait, and read the word of another warp; `GO` is free.
BODY = """
    .shared .align 8 .b64 ready;
    .shared .align 8 .b64 go;
    .shared .align 4 .b32 words[128];
    .reg .b32 %t, %warp, %lane, %own, %x, %parity, %base;
    .reg .b64 %from, %to;
    .reg .pred %first, %lane0, %warp0, %done, %p;
    mov.u32 %t, %tid.x;
    shr.u32 %warp, %t, 5;
    and.b32 %lane, %t, 31;
    setp.eq.u32 %first, %t, 0;
    setp.eq.u32 %lane0, %lane, 0;
    setp.eq.u32 %warp0, %warp, 0;
    @%first mbarrier.init.shared.b64 [ready], COUNT;
    @%first mbarrier.init.shared.b64 [go], 128;
    bar.sync 0;
    mov.u32 %parity, 0;
ROUND:
    shl.b32 %own, %t, 2;
    cvt.u64.u32 %from, %own;
    add.u64 %to, %from, %out0;
    add.u64 %from, %from, %in0;
    mov.u32 %base, words;
    add.u32 %x, %base, %own;
    cp.async.ca.shared.global [%x], [%from], 4;
    ARRIVE
WAIT:
    mbarrier.try_wait.parity.shared.b64 %done, [ready], %parity;
    @!%done bra WAIT;
    sub.u32 %own, 508, %own;
    add.u32 %own, %base, %own;
    ld.shared.u32 %x, [%own];
    st.global.u32 [%to], %x;
    AGAIN
    ret;
"""
AGAIN = "bar.sync 0; add.u32 %parity, %parity, 1; setp.lt.u32 %p, %parity, 2; @%p bra ROUND;"
INC = "cp.async.mbarrier.arrive.shared.b64 [ready];"
NOINC = "cp.async.mbarrier.arrive.noinc.shared.b64 [ready];"
ONE = "@%first mbarrier.arrive.shared.b64 _, [ready];"
ALL = "mbarrier.arrive.shared.b64 _, [ready];"
WRONG = {
    "right after its own": INC + ONE,
    "before its own": ONE + INC,
    "behind a barrier before the increments": "bar.sync 0;" + INC + ONE,
    "behind a barrier of two warps": INC + "@!%p bar.sync 1, 64;" + ONE,
    "a copy's arrival": INC + "@%first " + NOINC,
}
RIGHT = {
    "behind a barrier": (INC + "bar.sync 0;" + ONE, 1),
    "by all threads": (INC + ALL, 128),
    "by a lane of each warp": (INC + "bar.warp.sync -1; @%lane0 " + ALL, 4),
    "by the copies": (NOINC, 128),
    "by copies behind a barrier": (INC + "bar.sync 0; @%first " + NOINC, 1),
    "the others only arrive at the barrier": (
        INC + "@!%warp0 bar.arrive 1, 128; @%warp0 bar.sync 1, 128;" + ONE,
        1,
    ),
    "two increments": (INC + INC + ALL, 128),
    "behind another mbarrier": (
        INC
        + "mbarrier.arrive.shared.b64 _, [go]; @!%warp0 bra WAIT; GO:"
        + " mbarrier.try_wait.parity.shared.b64 %done, [go], %parity; @!%done bra GO;"
        + ONE,
        1,
    ),
    "behind barrier.red": (INC + "barrier.red.popc.u32 %x, 0, %first;" + ONE, 1),
    "two arrivals, one in time": (INC + "@%lane0 " + ALL + "bar.sync 0;" + ONE, 5),
    "by the last warp": (INC + "bar.sync 0; setp.eq.u32 %p, %t, 127; @%p " + ALL, 1),
    "increments of one warp": ("@%warp0 " + INC + "cp.async.wait_all;" + ALL, 128),
}


def run(arrive: str, count: int, schedule: Any, again: str) -> Any:
    data = np.random.default_rng(2).integers(0, 2**32, 128, dtype=np.uint32)
    body = BODY.replace("COUNT", str(count)).replace("ARRIVE", arrive).replace("AGAIN", again)
    body = body.replace("; ", ";\n").replace(";@", ";\n@").replace("GO:", "GO:\n")
    body = body.replace("@!%p bar.sync 1, 64;", "setp.gt.u32 %p, %warp, 1;\n@!%p bar.sync 1, 64;")
    report, (found,) = launch(body, [poisoned(128)], block=128, inputs=[data], schedule=schedule, seed=1)
    return report, found, data


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("arrive", WRONG.values(), ids=WRONG)
def test_an_increment_that_may_come_too_late(arrive: str, schedule: Any) -> None:
    report, _, _ = run(arrive, 1, schedule, "")
    assert "mbarrier-split" in errors(report), report.summary()
    assert any("pending count" in each.message for each in report.findings), report.summary()


@pytest.mark.parametrize("schedule", ["eager", "late"])
@pytest.mark.parametrize(("arrive", "count"), RIGHT.values(), ids=RIGHT)
def test_increments_in_time(arrive: str, count: int, schedule: Any) -> None:
    report, found, data = run(arrive, count, schedule, AGAIN)
    assert (report.status, codes(report)) == ("ok", []), report.summary()
    assert (found == data[::-1]).all()
