"""Races of weak loads whose values are dropped: kernels that work in place while other warps load the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxgen.device import LaunchReport
from ptxgen.emulator.checks.findings import DEAD
from ptxgen.emulator.checks.uninitialized.suspects import UNJUDGED
from tests.support.harness import codes, errors, launch, poisoned

SCHEDULES: list[Any] = ["eager", "late", "random"]
HEAD = """
    .shared .align 16 .b32 data[64];
    .reg .b32 %t, %i, %x, %y, %at, %lane, %z;
    .reg .b64 %to, %from, %out;
    .reg .pred %p, %q, %first;
    mov.u32 %t, %tid.x;
    and.b32 %i, %t, 31;
    setp.lt.u32 %p, %t, 32;
    mul.wide.u32 %to, %i, 4;
    add.u64 %to, %to, %out0;
    mul.wide.u32 %out, %t, 4;
    add.u64 %out, %out, %out1;
    shl.b32 %at, %i, 2;
    mov.u32 %x, data;
    add.u32 %at, %at, %x;
"""
#: What warps of 64 threads do with what they load; warp 0 stores in place. DROPPED leave the other's values alone.
IN_PLACE = "ld.global.u32 %x, [%to]; shl.b32 %x, %x, 1; @%p st.global.u32 [%to], %x;"
DROPPED = {
    "as it is": IN_PLACE,
    "as by Triton": "ld.global.u32 %x, [%to]; cvt.rn.f32.u32 %f, %x; mul.f32 %f, %f, 0f40000000;"
    " cvt.rzi.u32.f32 %x, %f; @%p st.global.b32 [%to], %x;",
    "with shuffles": "ld.global.u32 %x, [%to]; shfl.sync.bfly.b32 %y, %x, 1, 31, -1; add.u32 %x, %x, %y;"
    " @%p st.global.u32 [%to], %x;",
    "selected": "ld.global.u32 %x, [%to]; selp.b32 %y, %x, 7, %p; st.global.u32 [%out], %y;"
    " @%p st.global.u32 [%to], %t;",
    "clamped": "min.u32 %z, %t, 31; mul.wide.u32 %from, %z, 4; add.u64 %from, %from, %out0; ld.global.u32 %x, [%from];"
    " add.u32 %x, %x, 1; @%p st.global.u32 [%to], %x;",
    "of halves": "ld.global.u16 %h, [%to]; add.u16 %h, %h, 1; @%p st.global.u16 [%to], %h;",
    "of vectors": "ld.global.v2.u32 {%x, %y}, [%to8]; add.u32 %x, %x, %y; @%p st.global.u32 [%to8], %x;"
    " @%p st.global.u32 [%to8+4], %x;",
    "in a branch": "ld.global.u32 %x, [%to]; @!%p bra OVER; add.u32 %x, %x, 1; st.global.u32 [%to], %x; OVER:",
    "by generic accesses": "ld.u32 %x, [%to]; shl.b32 %x, %x, 1; @%p st.u32 [%to], %x;",
    "through another register": "ld.global.u32 %x, [%to]; mov.b32 %y, %x; and.b32 %y, %y, 0; add.u32 %z, %t, %y;"
    " st.global.u32 [%out], %z; @%p st.global.u32 [%to], %t;",
}
#: The twins: what the others loaded matters.
USED = {
    "stored elsewhere": "ld.global.u32 %x, [%to]; shl.b32 %x, %x, 1; @%p st.global.u32 [%to], %x;"
    " @!%p st.global.u32 [%out], %x;",
    "by another warp's stores": "ld.global.u32 %x, [%to]; shl.b32 %x, %x, 1; @%p st.global.u32 [%to], %x;"
    " st.global.u32 [%out], %x;",
    "in a vote": "ld.global.u32 %x, [%to]; setp.gt.u32 %q, %x, 100; vote.sync.any.pred %q, %q, -1;"
    " selp.b32 %y, 1, 2, %q; @!%p st.global.u32 [%out], %y; @%p st.global.u32 [%to], %t;",
    "compared with zero": "ld.global.u32 %x, [%to]; setp.eq.u32 %q, %x, 0; selp.b32 %y, 1, 2, %q;"
    " @!%p st.global.u32 [%out], %y; @%p st.global.u32 [%to], %t;",
    "as an address": "ld.global.u32 %x, [%to]; and.b32 %x, %x, 31; mul.wide.u32 %from, %x, 4;"
    " add.u64 %from, %from, %out0; ld.global.u32 %y, [%from+128]; @!%p st.global.u32 [%out], %y;"
    " @%p st.global.u32 [%to], %t;",
    "in a sum over all": "ld.global.u32 %x, [%to]; @!%p red.global.add.u32 [%out1], %x; @%p st.global.u32 [%to], %t;",
    "deciding on a branch": "ld.global.u32 %x, [%to]; setp.lt.u32 %q, %x, 50; @%q bra OVER; "
    " @!%p st.global.u32 [%out], 9; OVER: @%p st.global.u32 [%to], %t;",
}


def in_place(use: str, schedule: Any, seed: int = 0) -> tuple[LaunchReport, list[NDArray[Any]]]:
    registers = ".reg .f32 %f; .reg .b16 %h; .reg .b64 %to8; mul.wide.u32 %to8, %i, 8; add.u64 %to8, %to8, %out0;"
    x = np.random.default_rng(3).integers(0, 100, 64, dtype=np.uint32)
    return launch(HEAD + registers + use + " ret;", [x, poisoned(64)], block=64, schedule=schedule, seed=seed)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("use", DROPPED.values(), ids=DROPPED)
def test_values_that_others_drop(use: str, schedule: Any) -> None:
    for seed in range(2 if schedule == "random" else 1):
        report, _ = in_place(use, schedule, seed)
        assert report.status == "ok", report.summary()
        assert set(codes(report)) == {"global-race"}
        assert all(DEAD in each.message for each in report.findings)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("use", USED.values(), ids=USED)
def test_values_that_others_use(use: str, schedule: Any) -> None:
    report, _ = in_place(use, schedule)
    assert errors(report) == ["global-race"], report.summary()
    assert not any(DEAD in each.message for each in report.findings)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_races_of_a_launch_that_is_cut_off(schedule: Any) -> None:
    """Without a rerun they are advice: the value may be dropped."""
    count = " mov.u32 %z, 0; COUNT: add.u32 %z, %z, 1; setp.lt.u32 %q, %z, 100000; @%q bra COUNT; ret;"
    outputs = [np.arange(64, dtype=np.uint32), poisoned(64)]
    report, _ = launch(HEAD + IN_PLACE + count, outputs, block=64, schedule=schedule, max_steps=300)
    told = {(each.code, each.severity, UNJUDGED in each.message) for each in report.findings}
    assert (report.status, errors(report)) == ("incomplete", ["step-limit"]), report.summary()
    assert ("global-race", "advice", True) in told
    assert any("an incomplete launch is not rerun" in each for each in report.gaps)


SHARED_USES = {
    "dropped": ("@%p st.shared.u32 [%at], %x;", True),
    "selected": ("selp.b32 %y, %x, 7, %p; @%p st.shared.u32 [%at], %y; @!%p st.global.u32 [%out], %y;", True),
    "used": ("@%p st.shared.u32 [%at], %x; @!%p st.global.u32 [%out], %x;", False),
    "reduced": (
        "add.u32 %z, %t, 5; @%p st.shared.u32 [%at], %z; redux.sync.add.u32 %x, %x, -1; @!%p st.global.u32 [%out], %x;",
        False,
    ),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("use", "harmless"), SHARED_USES.values(), ids=SHARED_USES)
def test_shared_memory(use: str, harmless: bool, schedule: Any) -> None:
    """All warps load a table, one changes it in place, and writes it out behind a barrier."""
    body = (
        "ld.global.u32 %x, [%to]; @%p st.shared.u32 [%at], %x; bar.sync 0; ld.shared.u32 %x, [%at]; add.u32 %x, %x, 3;"
    )
    after = "bar.sync 0; ld.shared.u32 %y, [%at]; @%p st.global.u32 [%to], %y; ret;"
    report, (found, _) = launch(
        (HEAD + body + use + after).replace("; ", ";\n"),
        [np.arange(32, dtype=np.uint32), poisoned(64)],
        block=64,
        schedule=schedule,
    )
    assert set(codes(report)) == {"shared-race"}, report.summary()
    assert (errors(report) == []) == harmless, report.summary()
    assert report.status == ("ok" if harmless else "findings")
    if use == SHARED_USES["dropped"][0]:
        assert (found == np.arange(32) + 3).all()


def test_a_used_value_among_dropped_ones() -> None:
    """Each load is judged alone where not all are harmless."""
    use = IN_PLACE + "\n add.u64 %to, %to, 128; ld.global.u32 %y, [%to];\n @%p st.global.u32 [%to], %t;"
    report, _ = in_place(use + " @!%p st.global.u32 [%out], %y;", "eager")
    found = [(each.severity, DEAD in each.message) for each in report.findings]
    assert sorted(found) == [("advice", True), ("error", False)], report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_polled_flag_is_never_dropped(schedule: Any) -> None:
    """Any value but 0 lets it pass, and the data have come by then: still the flag is weak."""
    body = """
    @%p bra PRODUCER;
AGAIN:
    ld.global.u32 %x, [%out1];
    setp.eq.u32 %q, %x, 0;
    @%q bra AGAIN;
    ret;
PRODUCER:
    setp.eq.u32 %first, %t, 0;
    st.global.u32 [%to], %t;
    @%first st.global.u32 [%out1], 1;
    ret;
"""
    outputs = [np.zeros(64, np.uint32), np.zeros(64, np.uint32)]
    report, _ = launch(HEAD + body, outputs, block=64, schedule=schedule, max_steps=20_000)
    assert "global-race" in errors(report), report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_many_ctas(schedule: Any) -> None:
    """Warps of other CTAs race too; a fourth CTA uses what it loads in the twin."""
    text = (
        HEAD
        + """
    .reg .b32 %cta;
    mov.u32 %cta, %ctaid.x;
    setp.eq.u32 %q, %cta, 0;
    setp.eq.u32 %first, %cta, 3;
    ld.global.u32 %x, [%to];
    add.u32 %x, %x, 1;
    @%q st.global.u32 [%to], %x;
    {use}
    ret;
"""
    )
    outputs = [np.arange(32, dtype=np.uint32), poisoned(64)]
    report, _ = launch(text.format(use=""), outputs, grid=4, block=32, schedule=schedule)
    assert (report.status, errors(report)) == ("ok", []), report.summary()
    outputs = [np.arange(32, dtype=np.uint32), poisoned(64)]
    report, _ = launch(
        text.format(use="@%first st.global.u32 [%out], %x;"), outputs, grid=4, block=32, schedule=schedule
    )
    assert errors(report) == ["global-race"], report.summary()
