"""Counts of instructions against loops and guards whose counts are known."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

import ptxgen
from ptxgen.emulator.observers import LineCounts
from ptxgen.syntax import Instruction

LOOP = dedent("""\
    .version 8.8
    .target sm_100a
    .address_size 64
    .visible .entry loop(.param .u64 out, .param .u32 rounds)
    {
        .reg .b64 %rd<4>;
        .reg .b32 %r<6>;
        .reg .pred %p<3>;
        ld.param.u64 %rd1, [out];
        ld.param.u32 %r1, [rounds];
        mov.u32 %r2, %tid.x;
        mov.u32 %r3, 0;
    again:
        add.u32 %r3, %r3, 1;
        setp.lt.u32 %p1, %r3, %r1;
        @%p1 bra again;
        setp.lt.u32 %p2, %r2, 8;
        mul.wide.u32 %rd2, %r2, 4;
        add.u64 %rd3, %rd1, %rd2;
        @%p2 st.global.u32 [%rd3], %r3;
        setp.eq.u32 %p1, %r1, 0;
        @!%p1 bra done;
        trap;
    done:
        ret;
    }
    """)


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_counts_follow_loops_and_guards(schedule: str) -> None:
    counts = LineCounts()
    emulator = ptxgen.Emulator("sm_100a", schedule=schedule, observers=[counts])  # type: ignore[arg-type]
    kernel = ptxgen.Kernel.from_ptx(LOOP)
    out = emulator.empty(64, np.uint32)
    assert emulator.launch(kernel, 3, 64, [out, 5]).status == "ok"
    found = {
        statement.opcode: counts.count(statement)
        for statement in kernel.module.statements()
        if isinstance(statement, Instruction)
    }
    assert (found["add.u32"].warps, found["add.u32"].threads) == (3 * 2 * 5, 3 * 64 * 5)
    store = found["st.global.u32"]
    assert (store.warps, store.threads, store.predicated_off) == (3 * 2, 3 * 8, 3 * 56)
    assert (found["trap"].warps, found["trap"].threads) == (0, 0)
    assert counts.coverage(kernel.module) == (len(list(_instructions(kernel))) - 1, len(list(_instructions(kernel))))


def test_two_launches_add_up_and_reruns_do_not_count() -> None:
    counts = LineCounts()
    emulator = ptxgen.Emulator("sm_100a", observers=[counts])
    kernel = ptxgen.Kernel.from_ptx(LOOP.replace("mov.u32 %r3, 0;", "and.b32 %r3, %r5, 0;"))  # %r5: uninitialized
    for _ in range(2):
        emulator.launch(kernel, 1, 32, [emulator.empty(64, np.uint32), 1])
    statement = next(each for each in _instructions(kernel) if each.opcode == "and.b32")
    assert counts.count(statement).warps == 2


def test_the_listing_marks_lines_that_no_thread_executes() -> None:
    counts = LineCounts()
    emulator = ptxgen.Emulator("sm_100a", observers=[counts])
    kernel = ptxgen.Kernel.from_ptx(LOOP)
    emulator.launch(kernel, 1, 32, [emulator.empty(64, np.uint32), 2])
    lines = counts.listing(kernel.module).splitlines()
    assert lines[22].startswith("- 0")
    assert "trap;" in lines[22]
    assert lines[19].split()[:3] == ["1", "25%", "20"]
    assert lines[13].split()[:2] == ["2", "14"]


def _instructions(kernel: ptxgen.Kernel) -> list[Instruction]:
    return [each for each in kernel.module.statements() if isinstance(each, Instruction)]
