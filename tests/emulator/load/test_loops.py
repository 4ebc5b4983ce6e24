"""Which loops may wait for other warps: those of which an end depends on memory, or on what synchronizes."""

from __future__ import annotations

import numpy as np
import pytest

from ptxgen import Emulator, Kernel
from ptxgen.emulator.load.flow import innermost_loop
from ptxgen.emulator.load.program import Program
from ptxgen.emulator.schedule.scheduler import Scheduler
from ptxgen.emulator.state.group import Group
from ptxgen.instr.model.targets import parse_target

_MODULE = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, 0;
    mov.u32 %r2, 0;
    mov.u32 %r5, bar;
LOOP:
{body}
    @%p1 bra LOOP;
    ret;
}}
"""
_COUNTS = "    add.u32 %r1, %r1, 1;\n    setp.lt.u32 %p1, %r1, 8;"


def _may_poll(body: str) -> bool:
    program = Program(Kernel.from_ptx(_MODULE.format(body=body)), parse_target("sm_90a"))
    back = next(rank for rank, block in enumerate(program.blocks) if any(each <= rank for each in block.targets))
    return program.may_poll(program.blocks[back].targets[0], back)


@pytest.mark.parametrize(
    "body",
    [
        _COUNTS,
        f"    ld.global.u32 %r3, [%rd1];\n    add.u32 %r2, %r2, %r3;\n{_COUNTS}",
        f"    st.global.u32 [%rd1], %r2;\n{_COUNTS}",
        "    ld.param.u32 %r3, [data];\n    add.u32 %r1, %r1, 1;\n    setp.lt.u32 %p1, %r1, %r3;",
    ],
    ids=["counter", "loads data", "stores", "parameter"],
)
def test_loops_that_count(body: str) -> None:
    assert not _may_poll(body)


@pytest.mark.parametrize(
    "body",
    [
        "    ld.volatile.global.u32 %r3, [%rd1];\n    setp.eq.u32 %p1, %r3, 0;",
        "    ld.global.u32 %r3, [%rd1];\n    setp.eq.u32 %p1, %r3, 0;",
        "    ld.global.u32 %r3, [%rd1];\n    and.b32 %r4, %r3, 1;\n    mov.b32 %r6, %r4;\n    setp.eq.u32 %p1, %r6, 0;",
        "    atom.global.add.u32 %r3, [%rd1], 0;\n    setp.lt.u32 %p1, %r3, 2;",
        "    ld.global.u32 %r3, [%rd1];\n    shfl.sync.idx.b32 %r4, %r3, 0, 31, -1;\n    setp.eq.u32 %p1, %r4, 0;",
        "    ld.global.u32 %r3, [%rd1];\n    setp.eq.u32 %p2, %r3, 0;\n    vote.sync.all.pred %p1, %p2, -1;",
        "    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r5], 0;\n    not.pred %p1, %p2;",
        f"    bar.sync 0;\n{_COUNTS}",
        "    add.u32 %r1, %r1, 1;\n    ld.global.u32 %r3, [%rd1];\n    setp.eq.u32 %p2, %r3, 0;\n"
        "    mov.u32 %r4, 0;\n    @%p2 mov.u32 %r4, 1;\n    setp.eq.u32 %p1, %r4, 1;",
        "    mov.u32 %r3, %clock;\n    setp.lt.u32 %p1, %r3, 100;",
    ],
    ids=["volatile", "weak", "mask", "atomic", "broadcast", "vote", "mbarrier", "barrier", "guarded", "clock"],
)
def test_loops_that_may_wait(body: str) -> None:
    assert _may_poll(body)


def test_warps_of_a_counting_loop_stay_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds with which polling threads come last take as many steps for it as others."""
    step, steps = Scheduler._step, 0

    def counted(self: Scheduler, group: Group) -> None:
        nonlocal steps
        steps += 1
        step(self, group)

    monkeypatch.setattr(Scheduler, "_step", counted)
    kernel = Kernel.from_ptx(
        _MODULE.format(body=f"    ld.global.u32 %r3, [%rd1];\n    add.u32 %r2, %r2, %r3;\n{_COUNTS}")
    )
    taken: list[int] = []
    for seed in range(4):
        before, device = steps, Emulator("sm_90a", "random", seed)
        assert device.launch(kernel, 1, 256, [device.array(np.ones(4, np.uint32))]).ok
        taken.append(steps - before)
    assert taken == [taken[0]] * 4


@pytest.mark.parametrize(
    ("node", "loop"),
    [
        (0, set()),
        (1, {1, 2, 3, 4, 5}),
        (2, {1, 2, 3, 4, 5}),
        (3, {3}),
        (4, {1, 2, 3, 4, 5}),
        (5, {1, 2, 3, 4, 5}),
        (6, set()),
    ],
)
def test_innermost_loops(node: int, loop: set[int]) -> None:
    """A round, 1 to 5, in which some poll, 3, and others, 4, do not: a path by the others leaves no loop."""
    successors = [[1], [2, 5], [3, 4], [3, 5], [5], [1, 6], []]
    assert innermost_loop(successors, node) == loop


def test_loops_with_one_head() -> None:
    """A spin, 1, with which each round, 1 and 2, begins."""
    successors = [[1], [1, 2], [1, 3], []]
    assert [innermost_loop(successors, node) for node in range(4)] == [set(), {1}, {1, 2}, set()]
