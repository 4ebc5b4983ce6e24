"""What cooperative groups of CUDA ask of a launch: barriers of the grid, and reserved shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.emulator import Emulator
from tests.support.harness import codes, module

SCHEDULES = ["eager", "late", "random"]
#: grid().sync() as nvcc 13.0 makes it of cooperative_groups: the workspace is at %envreg1 (high) and %envreg2.
GRID = """
    .reg .b64 %data, %at, %low, %high; .reg .u32 %t, %cta, %ctas, %x, %old, %sum; .reg .pred %master, %p;
    ld.param.u64 %data, [data];
    mov.u32 %t, %tid.x; mov.u32 %cta, %ctaid.x; mov.u32 %ctas, %nctaid.x;
    setp.eq.u32 %master, %t, 0;
    mov.u32 %x, %envreg2; cvt.u64.u32 %low, %x;
    mov.u32 %x, %envreg1; cvt.u64.u32 %high, %x; shl.b64 %high, %high, 32; or.b64 %high, %high, %low;
    setp.eq.u64 %p, %high, 0;
    @%p trap;
    mul.wide.u32 %at, %cta, 4; add.u64 %at, %at, %data;
    @%master st.global.u32 [%at], %cta;
    barrier.sync 0;
    @!%master bra WAITED;
    setp.eq.u32 %p, %cta, 0;
    sub.u32 %x, 0x80000001, %ctas;
    selp.u32 %x, %x, 1, %p;
    atom.add.release.gpu.u32 %old, [%high+4], %x;
L:  ld.acquire.gpu.u32 %x, [%high+4];
    xor.b32 %x, %x, %old;
    setp.ge.s32 %p, %x, 0;
    @%p bra L;
WAITED:
    barrier.sync 0;
    xor.b32 %x, %cta, 1; mul.wide.u32 %at, %x, 4; add.u64 %at, %at, %data;
    ld.global.u32 %sum, [%at];
    mul.wide.u32 %at, %cta, 4; add.u64 %at, %at, %data;
    @%master st.global.u32 [%at+64], %sum;
    ret;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_barriers_of_a_grid(schedule: Any) -> None:
    """Twice, since the word in which the barrier counts stays; and without the flag there is no workspace."""
    kernel = Kernel.from_ptx(module(GRID, ".param .u64 data"))
    emulator = Emulator(schedule=schedule, multiprocessors=4)
    for _ in range(2):
        data = emulator.array(np.zeros(32, np.uint32))
        report = emulator.launch(kernel, 16, 64, [data], cooperative=True)
        assert (report.status, codes(report)) == ("ok", []), report.summary()
        assert data.numpy()[16:].tolist() == [number ^ 1 for number in range(16)]
    report = emulator.launch(kernel, 16, 64, [emulator.empty(32, "u32")])
    assert (report.status, codes(report)) == ("fault", ["trap"]), report.summary()


RESERVED = """
    .shared .b32 own;
    .reg .b64 %data, %at; .reg .u32 %t, %begin, %end, %x;
    ld.param.u64 %data, [data];
    mov.u32 %t, %tid.x;
    mov.u32 %begin, {register};
    mov.u32 %end, %reserved_smem_offset_end;
    ld.volatile.shared.u32 %x, [%begin+{at}];
    atom.shared.add.u32 %x, [%begin+{at}], 1;
    bar.sync 0;
    ld.shared.u32 %x, [%begin+{at}];
    mul.wide.u32 %at, %t, 8; add.u64 %at, %at, %data;
    st.global.v2.u32 [%at], {{%x, %end}};
    ret;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_shared_memory_of_cooperative_groups(schedule: Any) -> None:
    """288 bytes of what the system reserves are theirs, and zero at first; the rest is out of bounds."""
    for at, good in ((0, True), (284, True), (288, False), (-4, False)):
        emulator = Emulator(schedule=schedule)
        data = emulator.array(np.zeros((64, 2), np.uint32))
        text = RESERVED.format(register="%reserved_smem_offset_1", at=at)
        report = emulator.launch(Kernel.from_ptx(module(text, ".param .u64 data")), 1, 64, [data])
        if good:
            assert (report.status, codes(report)) == ("ok", []), report.summary()
            assert (data.numpy() == (64, 288)).all()
        else:
            assert (report.status, codes(report)) == ("fault", ["out-of-bounds"]), report.summary()


def test_reserved_memory_of_other_kernels() -> None:
    """It is out of bounds for kernels that do not ask where it is."""
    emulator = Emulator()
    text = RESERVED.format(register="0", at=0)
    report = emulator.launch(Kernel.from_ptx(module(text, ".param .u64 data")), 1, 64, [emulator.empty(128, "u32")])
    assert (report.status, codes(report)) == ("fault", ["out-of-bounds"]), report.summary()
