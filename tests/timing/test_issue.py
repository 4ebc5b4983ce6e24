"""Costs of lines from machine code, and units that warps ask out of order."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ptxgen.device import Kernel
from ptxgen.emulator import Emulator
from ptxgen.timing import predict
from ptxgen.timing.engines import Shared

#: A sum over lines of memory in which each load is issued one iteration before its consumer, or in the same.
_SUM = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry sum(.param .u64 data, .param .u64 out, .param .u32 count) .maxntid 32, 1, 1
{
    .reg .b32 %r<8>;
    .reg .f32 %f<8>;
    .reg .b64 %d<8>;
    .reg .pred %p;
    ld.param.u64 %d0, [data];
    ld.param.u64 %d1, [out];
    ld.param.u32 %r0, [count];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d2, %r1, 4;
    add.u64 %d0, %d0, %d2;
    add.u64 %d1, %d1, %d2;
    mov.f32 %f0, 0f00000000;
    ld.global.cg.f32 %f1, [%d0];
loop:
    .pragma "nounroll";
    add.u64 %d0, %d0, 128;
WORK
    mov.f32 %f1, %f2;
    sub.u32 %r0, %r0, 1;
    setp.ne.u32 %p, %r0, 0;
    @%p bra loop;
    st.global.f32 [%d1], %f0;
    ret;
}
"""
_STEPS = 160


def _cycles(count: int, *, ahead: bool) -> float:
    consumer = "" if ahead else "    add.f32 %f0, %f0, %f2;\n"
    work = f"    ld.global.cg.f32 %f2, [%d0];\n{consumer}" + "    fma.rn.f32 %f0, %f0, %f1, %f1;\n" * _STEPS
    emulator = Emulator("sm_90a", checks=False)
    data, out = emulator.array(np.zeros(32 * 128, np.float32)), emulator.empty((32,), np.float32)
    kernel = Kernel.from_ptx(_SUM.replace("WORK", work))
    return predict(kernel, 1, 32, [data, out, count], machine="h200").cycles


def test_a_load_of_the_iteration_before_costs_only_what_the_work_does_not_cover() -> None:
    ahead, same = ((_cycles(40, ahead=ahead) - _cycles(20, ahead=ahead)) / 20 for ahead in (True, False))
    # 160 fma of 4 cycles each cover a load of 285; without them between, its latency adds to theirs.
    assert 4 * _STEPS <= ahead <= 4 * _STEPS + 40
    assert same - ahead == pytest.approx(285, abs=30)


def test_a_unit_serves_earlier_requests_in_its_idle_cycles_and_never_more_than_it_can() -> None:
    unit = Shared()
    assert unit.take(10_000, 5) == 10_000
    assert unit.take(0, 5) == 0
    assert unit.take(0, 5) < 64
    # A backlog of long requests stays one: none begins before those that came earlier have ended.
    unit = Shared()
    assert [unit.take(now, 256) for now in (0, 0, 200)] == [0, 256, 512]
    # 3000 requests of 7 cycles in any order from cycle 0 on need 21,000 cycles; a stretch may be half a request over.
    unit, random_ = Shared(), random.Random(1)
    ends = [unit.take(random_.uniform(0, 1000), 7) + 7 for _ in range(3000)]
    assert max(ends) + 64 >= 21_000
    assert max(ends) <= 21_000 + 1000
    assert unit.busy == 21_000
