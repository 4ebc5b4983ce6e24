"""States at breakpoints against what the kernels have put there, laid out by formulas of the tests' own."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

import ptxgen
from ptxgen.emulator.engines.timeline import Schedule
from ptxgen.emulator.observers import BreakpointError
from ptxgen.gemm import find
from ptxgen.gemm.job import GemmJob

LOOP = dedent("""\
    .version 8.8
    .target sm_100a
    .address_size 64
    .visible .entry loop(.param .u64 out)
    {
        .reg .b32 %r<6>;
        .reg .pred %p<2>;
        .shared .align 16 .b32 words[64];
        mov.u32 %r1, %tid.x;
        mov.u32 %r2, 0;
        shl.b32 %r3, %r1, 2;
        mov.u32 %r4, words;
        add.u32 %r4, %r4, %r3;
    again:
        add.u32 %r2, %r2, 3;
        add.u32 %r5, %r1, %r2;
        st.shared.u32 [%r4], %r5;
        setp.lt.u32 %p1, %r2, 30;
        @%p1 bra again;
        ret;
    }
    """)


@pytest.mark.parametrize(("hit", "warp"), [(1, 0), (4, 0), (10, 1)])
def test_registers_and_shared_memory_before_an_instruction(hit: int, warp: int) -> None:
    emulator = ptxgen.Emulator("sm_100a")
    kernel = ptxgen.Kernel.from_ptx(LOOP)
    with emulator.breakpoint(line=17, hit=hit, warp=warp) as at:
        report = emulator.launch(kernel, 1, 64, [emulator.empty(1, np.uint32)])
    assert report.status == "ok"
    state = at.state
    assert (state.warp, state.line, state.cta) == (warp, 17, (0, 0, 0))
    threads = np.arange(32) + 32 * warp
    assert np.array_equal(state.registers["%r2"], np.full(32, 3 * hit))
    assert np.array_equal(state.registers["%r5"], threads + 3 * hit)
    if hit > 1:  # the store of this round has not happened yet
        assert np.array_equal(state.shared["words"].values("u32")[threads], threads + 3 * (hit - 1))


def test_a_breakpoint_that_is_not_reached_says_how_often() -> None:
    emulator = ptxgen.Emulator("sm_100a")
    kernel = ptxgen.Kernel.from_ptx(LOOP)
    with emulator.breakpoint(line=17, hit=11, warp=1) as at:
        emulator.launch(kernel, 1, 64, [emulator.empty(1, np.uint32)])
    with pytest.raises(BreakpointError, match="line 17 was reached 10 times, not 11"):
        _ = at.state


def test_unknown_names_say_what_there_is() -> None:
    emulator = ptxgen.Emulator("sm_100a")
    with emulator.breakpoint(line=17) as at:
        emulator.launch(ptxgen.Kernel.from_ptx(LOOP), 1, 64, [emulator.empty(1, np.uint32)])
    with pytest.raises(BreakpointError, match="no shared variable or region 'word'; there are: words"):
        _ = at.state.shared["word"]
    with pytest.raises(BreakpointError, match="a tile of 512 bytes is larger than words, which has 256"):
        at.state.shared["words"].tile((16, 8), "u32")


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_the_operands_of_a_product_lie_in_the_tiles_of_a_stage(schedule: Schedule) -> None:
    """At the first tcgen05.mma both operands are those of the first K tile, whatever the swizzle did with them."""
    plan = find("blackwell/tilus-roles").plan()
    job = GemmJob(plan, 128, 256, 256)
    line = next(number for number, text in enumerate(plan.text.splitlines(), 1) if "tcgen05.mma." in text)
    emulator = ptxgen.Emulator("sm_100a", schedule, 5)
    with emulator.breakpoint(line=line) as at:
        assert job.run(emulator).ok
    a, b = job.reference.inputs[:2]
    for name, whole in (("a", a), ("b", b)):
        stage = at.state.shared[name].stage(0)
        rows = len(stage.bytes) // 128
        tile = stage.tile((rows, 64), "f16", swizzle="128B")
        assert np.array_equal(tile.view(np.uint16), whole[:rows, :64].view(np.uint16)), name
    full = at.state.mbarriers["ab_full[0]"]
    assert full.phase >= 1
    assert full.pending == full.expected


def test_the_state_at_a_finding() -> None:
    emulator = ptxgen.Emulator("sm_100a")
    kernel = ptxgen.Kernel.from_ptx(LOOP.replace("shl.b32 %r3, %r1, 2", "mov.b32 %r3, 0"))  # all threads store there
    with emulator.breakpoint(finding="shared-race") as state, emulator.breakpoint(finding="") as any_:
        report = emulator.launch(kernel, 1, 64, [emulator.empty(1, np.uint32)])
    found = next(each for each in report.findings if each.code == "shared-race")
    assert state.state.finding is not None
    assert (state.state.finding.code, state.state.line, any_.state.line) == ("shared-race", found.line, found.line)
    assert str(state.state).startswith(f"finding [shared-race], hit 1, at line {found.line}: st.shared.u32")
    assert state.registers["%r2"][0] >= 3
    assert state.shared["words"].values("u32").shape == (64,)
    with emulator.breakpoint(finding="deadlock") as never:
        emulator.launch(kernel, 1, 64, [emulator.empty(1, np.uint32)])
    with pytest.raises(BreakpointError, match="no launch since has had a finding deadlock 1 times: 0 came up"):
        _ = never.state


def test_a_breakpoint_is_at_a_line_or_at_a_finding() -> None:
    emulator = ptxgen.Emulator("sm_100a")
    with pytest.raises(ValueError, match="at a line, or at a finding"), emulator.breakpoint():
        pass
