"""Several warps that store the same value to one place, as compilers let them, are advice; other values are a race."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen.device import LaunchReport
from tests.support.harness import codes, launch, poisoned

#: Two warps store `value` to shared memory, in one instruction or in two, and both read it after a barrier.
BOTH = """\
    .shared .align 16 .b8 room[16];
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    .reg .pred %p<3>;
    mov.u32 %r0, %tid.x;
    shr.u32 %r1, %r0, 5;
    mov.b32 %r2, 41;
    setp.eq.u32 %p0, %r1, 0;
    {first} st.shared.v2.b32 [room+8], {{{value}, %r2}};
    {second}
    bar.sync 0;
    ld.shared.b32 %r3, [room+8];
    mul.wide.u32 %rd0, %r0, 4;
    add.u64 %rd1, %out0, %rd0;
    st.global.b32 [%rd1], %r3;
    ret;"""


def stored(value: str, together: bool, schedule: Any) -> tuple[LaunchReport, np.ndarray]:
    again = "" if together else f"@!%p0 st.shared.v2.b32 [room+8], {{{value}, %r2}};"
    body = BOTH.format(value=value, first="" if together else "@%p0", second=again)
    report, (out,) = launch(body, [poisoned(64, np.uint32)], block=64, schedule=schedule)
    return report, out


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("together", [True, False])
def test_equal_values_are_advice(together: bool, schedule: Any) -> None:
    report, out = stored("%r2", together, schedule)
    (found,) = report.findings
    assert (found.code, found.severity) == ("shared-race", "advice")
    assert "room+0x8" in found.message
    assert "Both store the same bytes, so their order changes nothing" in found.message
    assert found.message.endswith("let one warp store, or put a barrier between the two stores")
    assert report.status == "ok"
    assert (out == 41).all()


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("together", [True, False])
def test_other_values_race(together: bool, schedule: Any) -> None:
    report, _ = stored("%r1", together, schedule)
    assert {(each.code, each.severity) for each in report.findings} == {("shared-race", "error")}, report.summary()


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_ordered_stores_of_equal_values_are_silent(schedule: Any) -> None:
    body = BOTH.format(value="%r2", first="@%p0", second="bar.sync 1; @!%p0 st.shared.v2.b32 [room+8], {%r2, %r2};")
    report, _ = launch(body, [poisoned(64, np.uint32)], block=64, schedule=schedule)
    assert codes(report) == []


#: The lanes of two warps store to one place in one instruction.
ONE_PLACE = """\
    .shared .align 16 .b8 room[16];
    .reg .b32 %r<9>;
    mov.u32 %r0, %tid.x;
    shr.u32 %r1, %r0, {shift};
    st.shared.b32 [room], %r1;
    ret;"""


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(
    ("shift", "severity", "said"),
    [
        (6, "advice", "Both store the same bytes"),
        (5, "error", "The two warps have not synchronized"),
        (0, "error", "to which lane 1 stores another value"),
    ],
    ids=["equal", "warps", "lanes"],
)
def test_lanes_that_store_to_one_place(shift: int, severity: str, said: str, schedule: Any) -> None:
    report, _ = launch(ONE_PLACE.format(shift=shift), block=64, schedule=schedule)
    assert {(each.code, each.severity) for each in report.findings} == {("shared-race", severity)}
    every = [each.message for found in report.findings for each in (found, *found.consequences)]
    assert any(said in each for each in every), report.summary()


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_lanes_of_one_warp_may_store_equal_values_in_one_instruction(schedule: Any) -> None:
    report, _ = launch(ONE_PLACE.format(shift=6), block=32, schedule=schedule)
    assert codes(report) == []


#: Lane 0 of each of four warps stores `{type}` at `{step}` times its warp, all in one 16-byte unit.
NEIGHBOURS = """\
    .shared .align 16 .b8 room[32];
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    .reg .pred %p<3>;
    mov.u32 %r0, %tid.x;
    shr.u32 %r1, %r0, 5;
    and.b32 %r2, %r0, 31;
    setp.eq.u32 %p0, %r2, 0;
    mad.lo.u32 %r3, %r1, 77, 5;
    cvt.u64.u32 %rd3, %r3;
    mul.lo.u32 %r4, %r1, {step};
    mov.b32 %r5, room;
    add.u32 %r5, %r5, %r4;
    @%p0 {store};
    bar.sync 0;
    and.b32 %r6, %r1, 3;
    mul.lo.u32 %r6, %r6, {step};
    mov.b32 %r5, room;
    add.u32 %r5, %r5, %r6;
    ld.shared.b32 %r7, [%r5];
    mul.wide.u32 %rd0, %r0, 4;
    add.u64 %rd1, %out0, %rd0;
    st.global.b32 [%rd1], %r7;
    ret;"""


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_neighbors_in_a_unit_do_not_race(schedule: Any) -> None:
    body = NEIGHBOURS.format(step=4, store="st.shared.b32 [%r5], %r3")
    report, (out,) = launch(body, [poisoned(128, np.uint32)], block=128, schedule=schedule)
    assert codes(report) == []
    assert (out == np.arange(128) // 32 * 77 + 5).all()


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_warps_that_store_to_one_byte_together_race(schedule: Any) -> None:
    body = NEIGHBOURS.format(step=0, store="st.shared.b64 [%r5], %rd3")
    report, _ = launch(body, [poisoned(128, np.uint32)], block=128, schedule=schedule)
    assert set(codes(report)) == {"shared-race"}
