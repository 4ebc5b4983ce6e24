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


#: What nvcc makes of an atomicMax of floats that returns the old value: that of the load where no swap is needed.
RETURNED = """
    .reg .f32 %mine, %seen;
    .reg .b32 %t, %cta, %old, %found, %new;
    .reg .b64 %at;
    .reg .pred %p, %q;
    mov.u32 %t, %tid.x;
    mov.u32 %cta, %ctaid.x;
    mad.lo.u32 %t, %cta, 64, %t;
    cvt.rn.f32.u32 %mine, %t;
    mov.b32 %new, %mine;
    ld.global.u32 %found, [%out0];
LOOP:
    mov.u32 %old, %found;
    mov.b32 %seen, %old;
    setp.le.f32 %p, %mine, %seen;
    @%p bra OVER;
    atom.global.cas.b32 %found, [%out0], %old, %new;
    setp.ne.s32 %q, %old, %found;
    @%q bra LOOP;
OVER:
    mul.wide.u32 %at, %t, 4;
    add.u64 %at, %at, %out1;
    st.global.f32 [%at], %seen;
    ret;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_old_value_may_be_returned_without_a_swap(schedule: Any) -> None:
    outputs = [np.zeros(1, np.float32), np.zeros(128, np.float32)]
    report, (found, _) = launch(RETURNED, outputs, grid=2, block=64, schedule=schedule)
    assert (report.status, found[0]) == ("ok", 127), report.summary()
    assert all(each.severity == "advice" and "atom.cas of line" in each.message for each in report.findings)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_value_that_decides_on_another_result(schedule: Any) -> None:
    """The decision leaves a number behind that no swap has found."""
    text = RETURNED.replace("atom.global", "mov.f32 %mine, 0f3F800000;\n    atom.global").replace(
        "%at], %seen", "%at], %mine"
    )
    outputs = [np.zeros(1, np.float32), np.zeros(128, np.float32)]
    report, _ = launch(text, outputs, grid=2, block=64, schedule=schedule)
    assert "global-race" in errors(report), report.summary()
    assert not any("polls it as a flag" in each.message for each in report.findings)


#: As nvcc -G has it: the value goes through local memory.
DEBUG = """
    .local .align 8 .b8 depot[16];
    .reg .b64 %sp, %local, %old, %new, %seen;
    .reg .f64 %f;
    .reg .pred %p;
    mov.b64 %local, depot;
    cvta.local.u64 %sp, %local;
    {load}
    st.b64 [%sp], %old;
LOOP:
    ld.b64 %old, [%sp];
    mov.b64 %f, %old;
    add.f64 %f, %f, 0d3FF0000000000000;
    mov.b64 %new, %f;
    atom.cas.b64 %seen, [{swap}], %old, %new;
    setp.ne.s64 %p, %old, %seen;
    st.b64 [%sp], %seen;
    @%p bra LOOP;
    ret;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("swap", ["%out0", "%out0+8"], ids=["there", "elsewhere"])
def test_through_local_memory(swap: str, schedule: Any) -> None:
    text = DEBUG.format(load="ld.b64 %old, [%out0];", swap=swap)
    if swap != "%out0":
        text = text.replace("ret;", "red.global.add.f64 [%out0], 0d3FF0000000000000; ret;")
    report, (found,) = launch(text, [np.zeros(2, np.float64)], grid=2, block=64, schedule=schedule)
    assert bool(errors(report)) == (swap != "%out0"), report.summary()
    assert found[int(swap != "%out0")] == 128


@pytest.mark.parametrize("load", ["ld", "ldu"])
def test_loads_that_other_warps_swap(load: str) -> None:
    """A weak load by any instruction races with the atom.cas of a warp that has not synchronized with its own."""
    body = f"""
        .reg .b32 %t, %v; .reg .b64 %at; .reg .pred %p;
        mov.u32 %t, %tid.x;
        mad.wide.u32 %at, %t, 4, %out1;
        setp.lt.u32 %p, %t, 32;
        @%p bra READ;
        atom.global.cas.b32 %v, [%out0], 0, 1;
        bra END;
    READ:
        {load}.global.u32 %v, [%out0];
        st.global.u32 [%at], %v;
    END:
        ret;
    """
    report, _ = launch(body, [np.zeros(1, np.uint32), np.zeros(64, np.uint32)], block=64)
    assert errors(report) == ["global-race"], report.summary()
