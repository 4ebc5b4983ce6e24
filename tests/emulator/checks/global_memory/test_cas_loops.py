"""The loop around atom.cas that begins with a weak load, as the CUDA programming guide and LLVM have it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.harness import codes, errors, launch

SCHEDULES = ["eager", "late", "random"]
LOOP = """
    .shared .align 8 .b64 sum;
    .reg .b64 %old, %new, %seen;
    .reg .f64 %f;
    .reg .b32 %t;
    .reg .pred %p, %q, %first;
    .reg .b64 %kept;
    mov.b64 %kept, 6;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    {before}
    ld.{space}.u64 %old, [{load}];
    {between}
LOOP:
    mov.b64 %f, %old;
    add.f64 %f, %f, 0d3FF0000000000000;
    mov.b64 %new, %f;
    atom.{space}.cas.b64 %seen, [{address}], {compare}, %new;
    setp.ne.s64 %p, %old, %seen;
    mov.u64 %old, %seen;
    @%p bra LOOP;
    {after}
    ret;
"""
KEEP = "st.global.u64 [%out0+24], %kept;"
#: The maximum of %lane and what is there, as Warp's atomic_max has it for floats.
MAXIMUM = """
    .reg .f32 %old, %new, %seen;
    .reg .b32 %t, %count;
    .reg .pred %p, %again;
    mov.u32 %t, %tid.x;
    mov.u32 %count, 0;
AGAIN:
    cvt.rn.f32.u32 %new, %t;
    ld.global.f32 %old, [%out0];
LOOP:
    max.f32 %new, %new, %old;
    setp.eq.f32 %p, %old, %new;
    @%p bra OVER;
    atom.relaxed.gpu.global.cas.b32 %seen, [%out0], %old, %new;
    setp.ne.b32 %p, %old, %seen;
    mov.b32 %old, %seen;
    @%p bra LOOP;
OVER:
    add.u32 %count, %count, 1;
    setp.lt.u32 %again, %count, 2;
    @%again bra AGAIN;
    ret;
"""


def run(schedule: Any, **options: Any) -> Any:
    """(report, sum): 64 threads of each of two CTAs add 1."""
    text = {"before": "", "between": "", "after": "", "space": "global", "address": "%out0", "compare": "%old"}
    text.update(options)
    body = LOOP.format(**{"load": text["address"], **text})
    report, (found,) = launch(body, [np.zeros(4, np.float64)], grid=2, block=64, schedule=schedule)
    return report, float(found[0])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_value_only_feeds_the_swap(schedule: Any) -> None:
    report, total = run(schedule)
    assert (report.status, codes(report), total) == ("ok", ["global-race"], 128), report.summary()
    (finding,) = report.findings
    assert finding.severity == "advice"
    assert "atom.cas of line" in finding.message
    assert "ld.relaxed" in finding.fix


@pytest.mark.parametrize(
    "before",
    [
        "add.s64 %where, %out0, 0;",
        "add.s64 %mid, %out0, 8; add.s64 %where, %mid, -8;",
        "cvta.to.global.u64 %where, %out0;",
    ],
)
def test_another_register_with_the_same_address(before: str) -> None:
    """LLVM loads from [%rd5+28] and swaps at [%rd22], their sum."""
    report, total = run("eager", before=f".reg .b64 %mid, %where; {before}", load="%out0", address="%where")
    assert (report.status, codes(report), total) == ("ok", ["global-race"], 128), report.summary()


def test_a_swap_at_another_address() -> None:
    before = ".reg .b64 %where; add.s64 %where, %out0, 8;"
    report, _ = run("eager", before=before, load="%out0", address="%where", after="red.global.add.u64 [%out0], 1;")
    assert errors(report), report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_value_may_decide_that_no_swap_is_needed(schedule: Any) -> None:
    report, (found,) = launch(MAXIMUM, [np.zeros(1, np.float32)], grid=2, block=64, schedule=schedule)
    assert (report.status, set(codes(report)), found[0]) == ("ok", {"global-race"}, 63), report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_shared_memory(schedule: Any) -> None:
    report, _ = run(schedule, space="shared", address="sum", before="@%first st.shared.u64 [sum], 0; bar.sync 0;")
    assert (report.status, codes(report)) == ("ok", ["shared-race"]), report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    "change",
    [
        {"between": "st.global.u64 [%out0+8], %old;"},
        {"between": "setp.gt.s64 %p, %old, 5; @%p bra OVER;", "after": "st.global.u64 [%out0+16], %old; OVER:"},
        {"between": "setp.gt.s64 %q, %old, 5; @%q bra OVER; mov.b64 %kept, 7;", "after": "OVER: " + KEEP},
        {"between": "@%first bra LAST;", "after": "LAST: st.global.u64 [%out0+16], %old;"},
    ],
    ids=["stored", "decides on a store", "decides on a value", "left without a swap"],
)
def test_values_that_go_elsewhere(change: dict[str, str], schedule: Any) -> None:
    """The same load is a race where anything but the swap uses its value."""
    report, _ = run(schedule, **change)
    assert "global-race" in errors(report), report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_strong_loads_are_clean(schedule: Any) -> None:
    body = LOOP.format(before="", between="", after="", space="global", load="%out0", address="%out0", compare="%old")
    body = body.replace("ld.global", "ld.relaxed.gpu.global")
    report, (found,) = launch(body, [np.zeros(4, np.float64)], grid=2, block=64, schedule=schedule)
    assert (report.status, codes(report), found[0]) == ("ok", [], 128), report.summary()
