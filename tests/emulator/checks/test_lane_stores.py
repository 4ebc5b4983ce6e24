"""Lanes of a warp that store to one location by one instruction."""

from __future__ import annotations

import pytest

from tests.support.harness import codes, launch, poisoned

STORE = """
    .shared .align 8 .b8 sum[8];
    .reg .f32 %f, %g;
    .reg .b32 %lane;
    and.b32 %lane, %t, 31;
    cvt.rn.f32.u32 %f, %lane;
    fma.rn.f32 %f, %f, {step}, 0f3F800000;
    neg.f32 %g, %f;
    {store};
    ret;
"""
#: One and 31 steps of 2^-24 of it; of 2^-10.
ROUNDING, CLEAR = "0f33800000", "0f3A800000"


@pytest.mark.parametrize(
    ("space", "store"),
    [
        ("shared", "st.shared.f32 [sum], %f"),
        ("global", "st.global.f32 [%out0], %f"),
        ("global", "st.global.v2.f32 [%out0], {%f, %g}"),
    ],
)
def test_sums_that_differ_in_rounding(space: str, store: str) -> None:
    """What a butterfly of shuffles leaves in the lanes is one result; values that differ more are a race."""
    head = ".reg .b32 %t; mov.u32 %t, %tid.x;"
    for step, wanted in ((ROUNDING, []), (CLEAR, [f"{space}-race"])):
        body = head + STORE.replace("{step}", step).replace("{store}", store)
        report, _ = launch(body, [poisoned(2)], block=32)
        assert codes(report) == wanted, report.summary()


def test_elements_that_overlap_are_told_from_one_element() -> None:
    """Pairs of lanes that store to one place have a wrong address; all lanes at one place may mean one value."""
    head = ".shared .align 16 .b8 t[256]; .reg .b32 %t, %a; mov.u32 %t, %tid.x; mov.u32 %a, t; "
    for address, corrected in (("and.b32 %t, %t, 30; ", True), ("and.b32 %t, %t, 0; ", False)):
        body = head + "mov.u32 %x, %t; " + address + "mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %x; ret;"
        report, _ = launch(".reg .b32 %x; " + body, [poisoned(2)], block=32)
        assert codes(report) == ["shared-race"], report.summary()
        assert ("correct the address" in report.findings[0].fix) == corrected
