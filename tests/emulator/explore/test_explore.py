"""Explorations: every point where order matters is tried, findings come with their order, results are compared."""

from __future__ import annotations

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.emulator import Emulator
from ptxgen.emulator.explore import Exploration
from tests.bugs import BUGS
from tests.bugs.bug import DATA

HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
.reqntid 128
{
    .shared .align 4 .b8 data[512];
    .shared .align 4 .u32 count;
    .reg .pred %p, %first;
    .reg .b32 %t, %v, %w, %old, %at, %d;
    .reg .f32 %f;
    .reg .b64 %out, %o;
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    shr.u32 %w, %t, 5;
    and.b32 %at, %t, 31;
    mov.u32 %d, data;
    setp.eq.u32 %p, %t, 0;
    @%p st.shared.u32 [count], 0;
    bar.sync 0;
"""
#: Three warps publish a word each and count; the fourth waits for LIMIT of them, and reads all.
COUNTED = f"""{HEAD}
    setp.eq.u32 %p, %w, 3;
    @%p bra $poll;
    setp.eq.u32 %p, %at, 0;
    mad.lo.u32 %at, %t, 4, %d;
    st.shared.u32 [%at], %t;
    bar.warp.sync 0xffffffff;
    @%p fence.acq_rel.cta;
    @%p atom.shared.add.u32 %old, [count], 1;
    ret;
$poll:
    ld.relaxed.cta.shared.u32 %old, [count];
    setp.lt.u32 %p, %old, LIMIT;
    @%p bra $poll;
    fence.acq_rel.cta;
    mad.lo.u32 %v, %at, 12, %d;
    ld.shared.u32 %v, [%v];
    mad.wide.u32 %o, %at, 4, %out;
    st.global.u32 [%o], %v;
    ret;
}}
"""
#: The first lane of each warp exchanges a flag; who comes first stores its number.
FIRST = f"""{HEAD}
    setp.eq.u32 %first, %at, 0;
    @!%first ret;
    atom.shared.exch.b32 %old, [count], 1;
    setp.eq.u32 %p, %old, 0;
    @%p st.global.u32 [%out], %t;
    ret;
}}
"""
#: The warps overwrite one word by relaxed stores: no atomic returns anything, and the last one wins.
LAST = f"""{HEAD}
    setp.eq.u32 %first, %at, 0;
    @!%first ret;
    st.relaxed.gpu.global.u32 [%out], %t;
    ret;
}}
"""
#: The warps add floats, whose sum depends on the order.
SUM = f"""{HEAD}
    setp.eq.u32 %first, %at, 0;
    @!%first ret;
    add.u32 %t, %t, 1;
    cvt.rn.f32.u32 %f, %t;
    rcp.rn.f32 %f, %f;
    mul.f32 %f, %f, 0f4B800001;
    red.global.add.f32 [%out], %f;
    ret;
}}
"""


def explored(text: str, seconds: float | None = None) -> Exploration:
    device = Emulator("sm_90a")
    return device.explore(Kernel.from_ptx(text), 1, 128, [device.array(np.zeros(32, np.uint32))], seconds=seconds)


def codes(made: Exploration) -> list[tuple[str, str]]:
    return [(each.code, each.severity) for each in made.findings]


def test_a_count_that_waits_for_too_few() -> None:
    made = explored(COUNTED.replace("LIMIT", "2"))
    assert made.status == "findings"
    assert [code for code, _ in codes(made)] == ["shared-race"]
    assert "held before line" in made.findings[0].order or made.findings[0].order in ("late", "eager")
    assert made.complete
    assert made.tried == made.points > 10


def test_a_count_that_waits_for_all() -> None:
    made = explored(COUNTED.replace("LIMIT", "3"))
    assert (made.status, made.findings, made.complete) == ("ok", [], True)
    assert made.distinct > 1
    assert f"{made.tried} of {made.points} delay points and 8 random seeds tried" in made.coverage
    assert "nothing is left to try" in made.coverage


def test_a_result_that_depends_on_who_comes_first() -> None:
    """Strong stores do not race; which is the last depends on the schedule."""
    made = explored(LAST)
    assert codes(made) == [("schedule-dependent", "error")]
    (finding,) = made.findings
    assert "the first is in out[0]" in finding.message
    assert finding.order
    assert f"order: {finding.order}" in made.summary()


def test_a_result_that_does_not() -> None:
    made = explored(LAST.replace("[%out], %t", "[%out], 7"))
    assert (made.status, made.findings) == ("ok", [])


def test_a_value_that_an_atomic_returns_is_advice() -> None:
    made = explored(FIRST)
    assert codes(made) == [("schedule-dependent", "advice")]
    assert made.status == "ok"


def test_the_order_of_floating_point_sums_is_no_finding() -> None:
    made = explored(SUM)
    assert (made.status, made.findings) == ("ok", [])
    assert made.distinct > 1


def test_memory_keeps_what_the_first_order_leaves() -> None:
    device = Emulator("sm_90a", "late")
    out = device.array(np.zeros(32, np.uint32))
    device.launch(Kernel.from_ptx(LAST), 1, 128, [out])
    expected = out.numpy().copy()
    out.write(np.zeros(32, np.uint32))
    device.explore(Kernel.from_ptx(LAST), 1, 128, [out])
    assert np.array_equal(out.numpy(), expected)


def test_the_time_is_bounded() -> None:
    made = explored(COUNTED.replace("LIMIT", "3"), seconds=1e-9)
    assert not made.complete
    assert made.tried < made.points
    assert "are left (time limit)" in made.coverage


def test_an_illegal_kernel() -> None:
    made = explored(LAST.replace("st.relaxed.gpu", "st.relaxed.gpx"))
    assert made.status == "fault"
    assert codes(made) == [("illegal-ptx", "error")]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("lanes", [1, 31, 32])
def test_whole_warps_are_held(lanes: int) -> None:
    """A barrier behind instructions of some lanes requires the whole warp: no order may divide it."""
    text = COUNTED.replace("LIMIT", "3").replace(
        "    bar.sync 0;\n",
        f"    bar.sync 0;\n    setp.lt.u32 %p, %at, {lanes};\n"
        "    @%p atom.shared.add.u32 %old, [count], 0;\n    bar.sync 0;\n"
        "    @%p red.shared.add.u32 [count], 0;\n    bar.sync 0;\n",
    )
    made = explored(text)
    assert (made.status, made.findings) == ("ok", [])


@pytest.mark.parametrize(
    ("name", "code"), [("vector-with-one-flag", "schedule-dependent"), ("active-mask-asked-twice", "")]
)
def test_what_takes_a_lucky_seed(name: str, code: str) -> None:
    """A vector that is torn, and lanes that run apart, are no matter of one late warp; the right twins stay clean."""
    bug = next(each for each in BUGS if each.name == name)
    for right in (False, True):
        device = Emulator(bug.target)
        arrays = [device.array(np.zeros(DATA // 4, np.uint32)) for _ in range(2)]
        kernel = Kernel.from_ptx(bug.text(right=right))
        made = device.explore(kernel, bug.grid, bug.block, [*arrays, bytes(128)], cluster=bug.cluster)
        assert made.complete
        assert [each.code for each in made.findings] == ([] if right else ["schedule-dependent"]), made.summary()
        assert made.ok == (right or not code)


def test_lanes_that_wait_for_others_outlast_the_held_warp() -> None:
    """Warps of other CTAs wait for theirs at bar.sync, whose lane 0 polls until the held warp has arrived."""
    bug = next(each for each in BUGS if each.name == "sense-read-after-the-arrival")
    device = Emulator(bug.target)
    arrays = [device.array(np.zeros(DATA // 4, np.uint32)) for _ in range(2)]
    made = device.explore(
        Kernel.from_ptx(bug.text(right=True).replace("%r9, 3;", "%r9, 1;")), 2, bug.block, [*arrays, bytes(128)]
    )
    assert (made.status, made.findings) == ("ok", []), made.summary()
